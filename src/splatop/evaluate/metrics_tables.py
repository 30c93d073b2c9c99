"""Tables from loaded metrics: text for people (Markdown), plain numbers for programs (CSV)."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..data.atomic import write_whole
from .labels import benchmark_label, method_label
from .published import (
    PublishedRollout,
    published_identification,
    published_local_rendering,
    published_representation,
    published_rollout,
)
from .results import Metrics, divergence_text, measured_on
from .written import parameter_count, plain, with_deviation

PUBLISHED = "Rows marked published are the paper's numbers, not measured here."


@dataclass(frozen=True)
class Table:
    """Rows as text, and the same rows as records of plain values."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    records: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        """The table for people, with title and notes."""
        lines = [f"# {self.title}", "", _line(self.columns), _line(["---"] * len(self.columns))]
        lines += [_line(row) for row in self.rows]
        return "\n".join([*lines, *(f"\n{note}" for note in self.notes)]) + "\n"

    def csv(self) -> str:
        """The records for programs."""
        names = list(dict.fromkeys(name for record in self.records for name in record))
        out = io.StringIO()
        writer = csv.DictWriter(out, names, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.records)
        return out.getvalue()

    def save(self, stem: Path) -> list[Path]:
        """Write `stem.md` and `stem.csv`, each complete or not at all."""
        paths = []
        for suffix, text in ((".md", self.markdown()), (".csv", self.csv())):
            paths.append(stem.with_name(stem.name + suffix))
            write_whole(paths[-1], text)
        return paths


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


ROLLOUT_COLUMNS = (
    "Method",
    "Params",
    "PSNR (dB)",
    "rL2",
    "Spec. err",
    "0.1 at",
    "ms",
)


def rollout_row(metrics: Metrics) -> tuple[str, ...]:
    """One measured model; a mean that a divergence took away is replaced by where it happened."""
    lost = bool(metrics.diverged)
    passed = "never" if metrics.step_above is None else str(metrics.step_above)
    return (
        method_label(metrics),
        parameter_count(metrics.model["parameters"]),
        "-" if lost else with_deviation(metrics.psnr_mean, metrics.psnr_std),
        divergence_text(metrics) if lost else with_deviation(metrics.rl2_mean, metrics.rl2_std),
        "-" if lost else plain(metrics.spectral_error),
        passed,
        plain(metrics.cost_ms_per_step),
    )


def published_row(row: PublishedRollout) -> tuple[str, ...]:
    """A row of the paper's table, in the columns of `rollout_row`."""
    return (
        row.label,
        parameter_count(row.parameters),
        with_deviation(*row.psnr),
        with_deviation(*row.rl2),
        plain(row.spectral_error),
        "",
        "",
    )


def rollout_record(metrics: Metrics) -> dict[str, Any]:
    """The numbers of `rollout_row`, and those that a CSV file has room for."""
    return {
        "benchmark": metrics.benchmark,
        "method": method_label(metrics),
        "source": "measured",
        "parameters": metrics.model["parameters"],
        "psnr_mean": metrics.psnr_mean,
        "psnr_std": metrics.psnr_std,
        "rl2_mean": metrics.rl2_mean,
        "rl2_std": metrics.rl2_std,
        "spectral_error": metrics.spectral_error,
        "energy_drift": metrics.energy_drift,
        "step_above_0.1": metrics.step_above,
        **{f"correlation_time_{k}": v for k, v in metrics.correlation_time.items()},
        "diverged": len(metrics.diverged),
        "first_divergence": min((d["step"] for d in metrics.diverged), default=None),
        "cost_ms_per_step": metrics.cost_ms_per_step,
        "steps": metrics.steps,
        "trajectories": metrics.trajectories,
        "points": "x".join(map(str, metrics.data["points"])),
    }


def published_record(row: PublishedRollout, benchmark: str) -> dict[str, Any]:
    """The numbers of `published_row`."""
    return {
        "benchmark": benchmark,
        "method": row.kind,
        "source": "published",
        "parameters": row.parameters,
        "psnr_mean": row.psnr[0],
        "psnr_std": row.psnr[1],
        "rl2_mean": row.rl2[0],
        "rl2_std": row.rl2[1],
        "spectral_error": row.spectral_error,
        "steps": 200,
        "trajectories": 30,
    }


def with_physics_alone(several: Iterable[Metrics]) -> list[Metrics]:
    """Every model, each surrogate followed by its physics alone."""
    return [m for one in several for m in (one, one.physics_alone) if m is not None]


def rollout_table(groups: Mapping[str, Sequence[Metrics]]) -> Table:
    """Accuracy over the whole rollout, by benchmark, published numbers beside."""
    rows, records = [], []
    for benchmark, several in groups.items():
        measured = with_physics_alone(several)
        published = published_rollout(benchmark).values()
        rows += [(benchmark_label(benchmark), *rollout_row(m)) for m in measured]
        rows += [(benchmark_label(benchmark), *published_row(p)) for p in published]
        records += [rollout_record(m) for m in measured]
        records += [published_record(p, benchmark) for p in published]
    return Table(
        "Aggregate test-rollout performance",
        ("Benchmark", *ROLLOUT_COLUMNS),
        tuple(rows),
        tuple(records),
        (protocol_note(m for several in groups.values() for m in several), PUBLISHED),
    )


def protocol_note(several: Iterable[Metrics]) -> str:
    """On what the measured rows were measured, which may be less than the paper's protocol."""
    several = list(several)
    protocols = dict.fromkeys(
        f"{measured_on(m)}, {m.steps} steps on " + "x".join(map(str, m.data["points"])) + " points"
        for m in several
    )
    published = any(published_rollout(m.benchmark) for m in several)
    paper = "The paper: 30 trajectories of 200 steps on 160x160 or 64x64x64 points. "
    return (
        f"Measured over {'; '.join(protocols)}. {paper if published else ''}"
        'Means and standard deviations are over trajectories; "0.1 at" is the step at which the '
        "mean rL2 passes 0.1, ms the time of one step."
    )


def representation_table(several: Sequence[Metrics]) -> Table:
    """e_u, e_grad and e_lap of each benchmark's surrogate, the paper's encoder beside."""
    rows, records = [], []
    for metrics in several:
        label, found = benchmark_label(metrics.benchmark), metrics.representation
        if found is not None:
            encoder = (metrics.model["numerics"] or {}).get("encoder")
            anchors = found["gaussians"]
            errors = [found[key] for key in ("e_u", "e_grad", "e_lap")]
            rows.append((label, f"measured: {encoder}, {anchors} Gaussians", *map(plain, errors)))
            records.append({"benchmark": metrics.benchmark, "source": "measured", **found})
            records[-1].pop("local_against_dense")
        published = published_representation(metrics.benchmark)
        if published:
            rows.append((label, "published", *(plain(v) for v in published.values())))
            records.append({"benchmark": metrics.benchmark, "source": "published", **published})
    return Table(
        "Relative reconstruction errors of the Gaussian representation",
        ("Benchmark", "Encoder", "e_u", "e_grad", "e_lap"),
        tuple(rows),
        tuple(records),
        ("Against spectral derivatives, without the filter. " + PUBLISHED,),
    )


def local_rendering_table(several: Sequence[Metrics]) -> Table:
    """Local against dense rendering of each 2D benchmark's Gaussians."""
    rows, records = [], []
    keys = ("u", "dx", "dy", "lap")
    for metrics in several:
        label = benchmark_label(metrics.benchmark)
        found = (metrics.representation or {}).get("local_against_dense")
        for source, values in (
            ("measured", found),
            ("published", published_local_rendering(metrics.benchmark)),
        ):
            if values:
                cells = [plain(values.get(key)) for key in keys]
                rows.append((label, source, *cells, f"{values['speedup']:.1f}x"))
                records.append({"benchmark": metrics.benchmark, "source": source, **values})
    return Table(
        "Local against dense rendering",
        ("Benchmark", "Source", "u", "∂x u", "∂y u", "Δu", "Speedup"),
        tuple(rows),
        tuple(records),
        ("Relative L2 differences of a window of 4 anchor cells from all Gaussians. " + PUBLISHED,),
    )


def identification_table(metrics: Metrics) -> Table:
    """Relative errors of the identified coefficients."""
    published = published_identification()
    measured = metrics.coefficients.get("relative_error", {})
    largest = metrics.coefficients.get("relative_error_max", {})
    rows = tuple(
        (name, f"{measured[name]:.3%}", f"{largest[name]:.3%}", f"{published.get(name, 0):.2%}")
        for name in measured
    )
    records = tuple(
        {
            "coefficient": name,
            "relative_error": measured[name],
            "relative_error_max": largest[name],
            "published_relative_error": published.get(name),
        }
        for name in measured
    )
    return Table(
        "Identified coefficients, relative errors",
        ("Coefficient", "mean", "largest", "published"),
        rows,
        records,
        (f"Over {metrics.trajectories} test trajectories. " + PUBLISHED,),
    )

"""The top of the page: what was modelled, the verdict, the key numbers, the comparison table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..benchmarks import BENCHMARKS
from ..evaluate.published import PublishedRollout
from ..evaluate.results import Metrics, divergence_text
from ..evaluate.written import percent, typeset
from .charts import swatch
from .evaluated import Entry, EvaluatedRun
from .markup import Child, Html, tag, wide
from .sections import section
from .words import ReportVerdict


def page_title(runs: Sequence[EvaluatedRun]) -> str:
    """What the browser's tab says."""
    benchmark = BENCHMARKS.get(runs[0].model.spec.benchmark or "")
    spec = runs[0].model.spec
    subject = benchmark.title if benchmark else f"A {spec.dims}D model of {', '.join(spec.fields)}"
    return subject if len(runs) == 1 else f"{subject}: {len(runs)} runs compared"


def header(runs: Sequence[EvaluatedRun], version: str) -> Html:
    """The top of the page: runs, fields, box, grid and test set, and the version that wrote it."""
    first = runs[0]
    spec, metrics = first.model.spec, first.metrics
    points = metrics.data.get("points") or []
    facts: list[tuple[str, str]] = [
        ("run" if len(runs) == 1 else "runs", ", ".join(run.label for run in runs)),
        ("fields", ", ".join(spec.fields)),
        ("box", " × ".join(f"{length:g}" for length in spec.lengths)),
        ("from", ", ".join(f"{o:g}" for o in spec.origin) if any(spec.origin) else ""),
        ("grid", " × ".join(str(n) for n in points)),
        ("Δt", f"{spec.dt:g}"),
        ("test set", f"{metrics.trajectories} × {metrics.steps} steps"),
    ]
    return tag(
        "header",
        tag("p.eyebrow", f"splatop {version} report"),
        tag("h1", page_title(runs)),
        tag(
            "dl.facts",
            *(tag("div", tag("dt", name), tag("dd", value)) for name, value in facts if value),
        ),
    )


def verdict_section(said: ReportVerdict, runs: Sequence[EvaluatedRun]) -> Html:
    """The headline, its sentences, and the numbers that carry it."""
    return tag(
        "section",
        tag("h2.sr", "Verdict"),
        tag(
            "div",
            tag("p.headline", said.headline),
            *(tag("p", sentence) for sentence in said.sentences),
            class_=f"verdict {said.tone}",
        ),
        *(tag("p.note", line) for line in _trained(runs)),
        _tiles(runs[0]) if len(runs) == 1 else None,
        id="verdict",
    )


def _trained(runs: Sequence[EvaluatedRun]) -> list[str]:
    """What each training learned, from how much, and how far ahead it can be trusted."""
    found = [(run.label, run.model.record.get("summary")) for run in runs]
    named = len(runs) > 1
    return [
        f"{label}: {line}." if named else f"{line[:1].upper()}{line[1:]}."
        for label, line in found
        if isinstance(line, str) and line
    ]


def _tiles(run: EvaluatedRun) -> Html:
    metrics = run.metrics
    last = metrics.rl2_curve[-1] if metrics.rl2_curve else None
    tiles = [
        ("mean relative error", _mean(metrics), "rL2 over all steps"),
        ("at the last step", "–" if last is None else percent(last), f"step {metrics.steps}"),
        ("signal to noise", _with_unit(metrics.psnr_mean, "dB", 1), "PSNR, mean"),
        ("spectral error", typeset(metrics.spectral_error), "time-averaged"),
        ("correlated until", _correlated(metrics), "correlation above 0.9"),
        ("cost of a step", _with_unit(metrics.cost_ms_per_step, "ms", 1), "minimum of five"),
        ("parameters", _count(run.model.parameters), "without encoder"),
    ]
    return tag(
        "ul.tiles",
        *(
            tag("li", tag("span.name", name), tag("span.value", value), tag("span.unit", note))
            for name, value, note in tiles
        ),
    )


def _count(value: int) -> str:
    return f"{value:,}".replace(",", "\u2009")


def _mean(metrics: Metrics) -> str:
    return "diverged" if metrics.diverged else percent(metrics.rl2_mean)


def _with_unit(value: float | None, unit: str, digits: int) -> str:
    if value is None:
        return "–"
    return f"{value:.{digits}f} {unit}" if unit == "dB" else f"{typeset(value, digits + 1)} {unit}"


def _correlated(metrics: Metrics) -> str:
    if metrics.diverged:
        return "–"
    step = metrics.correlation_time.get("0.9")
    return "the end" if step is None else f"step {step}"


@dataclass(frozen=True)
class _Column:
    title: str
    text: Callable[[Metrics], str]
    value: Callable[[Metrics], float | None]  # what "best" compares
    lower_is_better: bool = True


_COLUMNS = (
    _Column("rL2, mean", lambda m: _pair(m.rl2_mean, m.rl2_std), lambda m: m.rl2_mean),
    _Column("rL2, last step", lambda m: typeset(_last(m)), lambda m: _last(m)),
    _Column("PSNR (dB)", lambda m: _pair(m.psnr_mean, m.psnr_std, 1), lambda m: m.psnr_mean, False),
    _Column("spectral error", lambda m: typeset(m.spectral_error), lambda m: m.spectral_error),
    _Column("rL2 > 0.1", lambda m: _step(m.step_above), lambda m: None),
    _Column("correlation < 0.9", lambda m: _step(m.correlation_time.get("0.9")), lambda m: None),
    _Column(
        "energy drift",
        lambda m: _signed(m.energy_drift),
        lambda m: None if m.energy_drift is None else abs(m.energy_drift),
    ),
    _Column("ms per step", lambda m: typeset(m.cost_ms_per_step), lambda m: m.cost_ms_per_step),
)


def comparison_section(shown: Sequence[Entry], published: Sequence[PublishedRollout]) -> Html:
    """One row per model; published numbers below, labelled as such."""
    best = {column.title: _best(column, [entry.metrics for entry in shown]) for column in _COLUMNS}
    rows = [_row(entry, best) for entry in shown]
    width = len(_COLUMNS) + 2
    if published:
        said = "published in the paper, at its own size and grid"
        rows.append(tag("tr.group", tag("th", said, colspan=width, scope="rowgroup")))
        rows += [_published_row(row) for row in published]
    head = tag(
        "tr",
        tag("th", "model", scope="col"),
        tag("th", "parameters", scope="col"),
        *(tag("th", column.title, scope="col") for column in _COLUMNS),
    )
    return section(
        "numbers",
        "In numbers",
        wide(tag("table", tag("thead", head), tag("tbody", *rows)), label="In numbers"),
        tag(
            "p.note",
            "rL2 is the relative L2 error over all fields together, averaged over steps and then "
            "trajectories (± standard deviation over trajectories). “rL2 > 0.1” and “correlation "
            "< 0.9” name the first step at which the mean curve passes that value. Energy drift is "
            "the relative error of the energy at the last step. "
            + ("The best value of each column is bold." if len(shown) > 1 else ""),
        ),
    )


def _row(entry: Entry, best: dict[str, float | None]) -> Html:
    metrics = entry.metrics
    cells: list[Child] = [tag("th", swatch(entry.style), entry.label, scope="row")]
    count = entry.model.parameters
    cells.append(tag("td", _count(count) if count else "none"))
    if metrics.diverged:
        cells.append(tag("td.lost", divergence_text(metrics), colspan=len(_COLUMNS) - 1))
        cells.append(tag("td", typeset(metrics.cost_ms_per_step)))
        return tag("tr", *cells)
    for column in _COLUMNS:
        value = column.value(metrics)
        # Values that are printed alike are all marked as the best.
        is_best = value is not None and typeset(value) == typeset(best[column.title])
        cells.append(tag("td", column.text(metrics), class_="best" if is_best else None))
    return tag("tr", *cells)


def _published_row(row: PublishedRollout) -> Html:
    return tag(
        "tr.published",
        tag("th", row.label, scope="row"),
        tag("td", _count(row.parameters)),
        tag("td", f"{row.rl2[0]:g} ± {row.rl2[1]:g}"),
        tag("td", "–"),
        tag("td", f"{row.psnr[0]:.1f} ± {row.psnr[1]:.1f}"),
        tag("td", f"{row.spectral_error:g}"),
        *(tag("td", "–") for _ in range(len(_COLUMNS) - 4)),
    )


def _best(column: _Column, several: Sequence[Metrics]) -> float | None:
    values = [column.value(m) for m in several if not m.diverged]
    held = [v for v in values if v is not None]
    if len(held) < 2:
        return None
    return min(held) if column.lower_is_better else max(held)


def _pair(mean: float | None, spread: float | None, places: int | None = None) -> str:
    if mean is None:
        return "–"
    if places is not None:
        tail = f" ± {spread:.{places}f}" if spread is not None else ""
        return f"{mean:.{places}f}{tail}"
    if not spread:
        return typeset(mean)
    said = typeset(spread)
    if "×" in said and "×" not in typeset(mean):  # one notation for both
        said = f"{spread:.{len(typeset(mean).partition('.')[2]) + 1}f}"
    return f"{typeset(mean)} ± {said}"


def _last(metrics: Metrics) -> float | None:
    return metrics.rl2_curve[-1] if metrics.rl2_curve else None


def _step(step: int | None) -> str:
    return "never" if step is None else f"step {step}"


def _signed(value: float | None) -> str:
    return "–" if value is None else ("+" if value > 0 else "") + typeset(value)

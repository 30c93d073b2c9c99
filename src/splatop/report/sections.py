"""Sections with curves: rollout error, spectra with their ratio, training loss."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import finite
from ..evaluate.results import measured_on
from ..evaluate.written import typeset
from .charts import Chart, Line, Mark, chart, legend
from .evaluated import Entry, EvaluatedRun
from .markup import Child, Html, tag
from .ticks import ChartAxis

# Shells with less than this share of the largest one are rounding, and their ratio is noise.
SPECTRUM_FLOOR = 1e-12
RATIO_FLOOR = 1e-8


@dataclass
class Charts:
    """The charts of a page, numbered as they are drawn; `hover` goes to the page's script."""

    hover: dict[str, Any] = field(default_factory=dict)

    def figure(self, name: str, drawn: Chart, caption: Child) -> Html:
        """A chart that answers to pointer and arrow keys, with its caption."""
        self.hover[name] = drawn.hover
        return tag(
            "figure.panel",
            tag(
                "div.plot",
                drawn.svg,
                tag("div.tip", hidden="hidden", role="status"),
                data_chart=name,
                tabindex=0,
                aria_label=f"{name}: arrow keys read off values",
                role="group",
            ),
            tag("figcaption", caption),
        )


def section(identifier: str, title: str, *children: Child) -> Html:
    """A section of the page with its heading, found by `#identifier`."""
    return tag("section", tag("h2", title), *children, id=identifier)


def error_section(charts: Charts, shown: Sequence[Entry], dt: float) -> Html:
    """rL2 by step on a log axis, with the band of the trajectories, and who diverged where."""
    lines = [
        Line(
            entry.label,
            range(1, entry.metrics.steps + 1),
            entry.metrics.rl2_curve,
            entry.style,
            _band(entry),
        )
        for entry in shown
    ]
    lines += _ensembles(shown) + [line for entry in shown for line in _spread(entry)]
    marks = [
        Mark(step, f"{entry.label}: diverges at step {step}")
        for entry in shown
        if (step := _first_divergence(entry)) is not None
    ]
    drawn = chart(
        lines,
        x=ChartAxis(f"step k  (time t = k Δt, Δt = {dt:g})", low=0.0),
        y=ChartAxis("relative L2 error", log=True),
        title="Relative L2 error of the rollout by step, logarithmic",
        marks=marks[:4],
        height=400,
    )
    several = shown[0].metrics.trajectories > 1
    caption = (
        f"Mean over {measured_on(shown[0].metrics)}"
        + ("; the band holds the middle 80 % of them. " if several else ". ")
        + "A straight rise would be exponential growth. The thin vertical line follows the player."
        + "".join(_spread_caption(entry) for entry in shown)
    )
    return tag(
        "div.column",
        tag("h3", "Error along the rollout"),
        legend(lines),
        charts.figure("error", drawn, caption),
    )


def _band(entry: Entry):
    band = entry.metrics.rl2_band
    low, high = band.get("low") or [], band.get("high") or []
    if entry.is_physics_alone or entry.metrics.trajectories < 2:
        return None
    same = len(low) == len(high) == len(entry.metrics.rl2_curve)
    return (low, high) if same else None


def _ensembles(shown: Sequence[Entry]) -> list[Line]:
    """Runs of one description differ by their seed alone: their spread, as one more curve."""
    groups: dict[str, list[Entry]] = {}
    for entry in shown:
        if not entry.is_physics_alone:
            groups.setdefault(repr(entry.model.spec), []).append(entry)
    lines = []
    for group in groups.values():
        curves = np.array([e.metrics.rl2_curve for e in group], float)
        if len(group) > 1 and np.isfinite(curves).all():
            lines.append(
                Line(
                    f"mean of {len(group)} seeds",
                    range(1, curves.shape[1] + 1),
                    curves.mean(axis=0).tolist(),
                    "ensemble",
                    (curves.min(axis=0).tolist(), curves.max(axis=0).tolist()),
                )
            )
    return lines


def _spread(entry: Entry) -> list[Line]:
    """Of an ensemble: its members' errors as a band, and how far they are apart."""
    held = entry.metrics.ensemble
    if not held or entry.is_physics_alone:
        return []
    steps = range(1, entry.metrics.steps + 1)
    curves = np.array(held["rl2_curves"], float)
    spread = [finite(v) for v in np.array(held["spread_curve"], float)]
    lines = [Line(f"spread of {len(curves)} members", steps, spread, "spread")]
    if np.isfinite(curves).all():
        band = (curves.min(axis=0).tolist(), curves.max(axis=0).tolist())
        mean = curves.mean(axis=0).tolist()
        lines.append(Line("mean of the members’ errors", steps, mean, "ensemble", band))
    return lines


def _spread_caption(entry: Entry) -> str:
    held = entry.metrics.ensemble
    if not held or entry.is_physics_alone:
        return ""
    return (
        f" Each of {held['members']} members of the ensemble also runs by itself: their errors "
        "fill the band around their mean, and their spread, the deviation over members relative "
        "to the reference, is what the ensemble says of its own uncertainty."
    )


def _first_divergence(entry: Entry) -> int | None:
    return min((e["step"] for e in entry.metrics.diverged), default=None)


def ratio_of(energy: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Energy over the true one, shell by shell; NaN where next to nothing is."""
    shares = truth > RATIO_FLOOR * truth.max()
    return np.where(shares, energy / np.where(shares, truth, 1.0), np.nan)


def spectrum_section(charts: Charts, shown: Sequence[Entry]) -> Html | None:
    """Time-averaged radial spectra, and their ratio to the reference."""
    first = shown[0].metrics.spectrum
    reference = np.array(first.get("reference") or [], float)
    wavenumber = np.array(first.get("wavenumber") or [], float)
    start = 0 if first.get("mean_evolves") else 1
    if len(reference) <= start + 1 or len(wavenumber) != len(reference):
        return None
    last = int(np.max(np.nonzero(reference > SPECTRUM_FLOOR * reference.max())[0]))
    kept = slice(start, max(last, start + 2) + 1)
    k, truth = wavenumber[kept], reference[kept]
    spectra = [Line("reference", k.tolist(), truth.tolist(), "reference")]
    ratios, largest = [], 0.0
    for entry in shown:
        found = entry.metrics.spectrum.get("prediction")
        if not found or len(found) != len(reference):
            continue
        values = np.array(found, float)[kept]
        spectra.append(Line(entry.label, k.tolist(), values.tolist(), entry.style))
        ratio = ratio_of(values, truth)
        ratios.append(Line(entry.label, k.tolist(), [finite(v) for v in ratio], entry.style))
        largest = max(largest, float(np.nanmax(np.abs(ratio - 1), initial=0.0)))
    reach = min(max(1.15 * largest, 0.002), 1.0)
    limits = ChartAxis("", low=float(k[0]), high=float(k[-1]))
    drawn = chart(
        spectra,
        x=limits,
        y=ChartAxis("energy per shell", log=True),
        title="Time-averaged radial energy spectrum",
        height=250,
    )
    ratio_chart = chart(
        ratios or [Line("", k.tolist(), [None] * len(k), "reference")],
        x=ChartAxis("wavenumber κ  (cycles per unit length)", low=float(k[0]), high=float(k[-1])),
        y=ChartAxis("ratio to reference", low=1 - reach, high=1 + reach),
        title="Ratio of the spectrum to the reference's",
        level=1.0,
        height=186,
    )
    lost = [entry.label for entry in shown if not entry.metrics.spectrum.get("prediction")]
    beyond = " Values beyond the frame are drawn at its edge." if largest > 1 else ""
    caption = (
        "Energy per shell averaged over all steps and trajectories; below, its ratio to the "
        "reference: above 1 the model adds energy at that scale, below 1 it loses some."
        + beyond
        + (f" Diverged, and left out: {', '.join(lost)}." if lost else "")
    )
    return tag(
        "div.column",
        tag("h3", "Energy by scale"),
        legend(spectra),
        charts.figure("spectrum", drawn, ""),
        charts.figure("ratio", ratio_chart, caption),
    )


def loss_section(charts: Charts, runs: Sequence[EvaluatedRun]) -> Html | None:
    """Loss by stage; runs that share a stage share a chart."""
    stages = list(dict.fromkeys(stage.name for run in runs for stage in run.history))
    if not stages:
        return None
    figures = []
    for position, name in enumerate(stages):
        lines = [
            _loss_line(run.label, f"s{index % 6}", stage.steps, stage.loss)
            for index, run in enumerate(runs)
            for stage in run.history
            if stage.name == name
        ]
        drawn = chart(
            lines,
            x=ChartAxis("training step", low=0.0),
            y=ChartAxis("loss", log=True),
            title=f"Training loss of the stage {name}",
            height=280,
        )
        final = ", ".join(
            f"{line.label}: {typeset(next((v for v in reversed(line.y) if v), None))}"
            for line in lines
        )
        figures.append(
            tag(
                "div.column",
                tag("h3", f"Stage: {name}"),
                legend(lines),
                charts.figure(f"loss{position}", drawn, f"Loss at the end of training: {final}."),
            )
        )
    return section(
        "training",
        "Training",
        tag(
            "p.note",
            "Median of neighbouring steps; the band reaches from their least to their greatest "
            "loss. Losses of different models need not have the same unit.",
        ),
        tag("div.columns", *figures),
    )


def _loss_line(label: str, style: str, steps: Sequence[int], loss: Sequence[float | None]) -> Line:
    """A noisy curve as medians of bins with their extremes."""
    held = [(s, v) for s, v in zip(steps, loss, strict=True) if v is not None and v > 0]
    if not held:
        return Line(label, [1], [None], style)
    rows, size = np.array(held, float), -(-len(held) // 140)
    bins = [rows[i : i + size] for i in range(0, len(rows), size)]
    x = [float(np.median(b[:, 0])) for b in bins]
    y = [float(np.median(b[:, 1])) for b in bins]
    band = ([float(b[:, 1].min()) for b in bins], [float(b[:, 1].max()) for b in bins])
    return Line(label, x, y, style, band if len(held) > len(bins) else None)

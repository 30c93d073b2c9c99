"""The parts that figures are made of, each drawn into given axes from loaded metrics."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from ..benchmarks import BENCHMARKS
from ..evaluate.labels import method_label
from ..evaluate.results import Metrics
from .style import COLOURS, SHORT, in_order, method_colour, styled_in_order

# Shells with less than this share of the largest one's energy are left out of ratios.
_CONTAINING = 1e-4


def draw_curves(ax: Axes, several: Sequence[Metrics], *, band: bool = True) -> None:
    """rL2 over lead time on a log axis; a curve that ends in a cross has diverged there."""
    for metrics, style in styled_in_order(several):
        curve = _numbers(metrics.rl2_curve)
        steps = np.arange(1, len(curve) + 1)
        ax.plot(steps, curve, label=method_label(metrics), **style)
        if band and metrics.trajectories > 2:
            low, high = (_numbers(metrics.rl2_band[key]) for key in ("low", "high"))
            ax.fill_between(steps, low, high, color=style["color"], alpha=0.13, linewidth=0)
        if metrics.diverged:
            last = int(np.flatnonzero(np.isfinite(curve))[-1]) if np.isfinite(curve).any() else 0
            height = curve[last] if np.isfinite(curve[last]) else 1.0
            ax.plot(steps[last], height, "x", color=style["color"], markersize=7, markeredgewidth=2)
    ax.set_yscale("log")
    ax.set_xlim(0, max(m.steps for m in several))
    ax.set_xlabel("lead time (steps)")
    ax.set_ylabel("relative $\\ell_2$ error")
    _minor_ticks(ax)


def draw_spectra(ax: Axes, several: Sequence[Metrics]) -> None:
    """Time-averaged radial spectra on log axes, the reference in black below them."""
    reference = several[0].spectrum
    first = 0 if reference["mean_evolves"] else 1
    wavenumber = _numbers(reference["wavenumber"])[first:]
    truth = _numbers(reference["reference"])[first:]
    shown = np.maximum(wavenumber, 0.5 * wavenumber[wavenumber > 0][0])  # κ = 0 has no logarithm
    lowest = 1e-14 * truth.max()
    ax.plot(
        shown, np.maximum(truth, lowest), color=COLOURS["reference"], linewidth=3.4, alpha=0.85,
        label="Reference", zorder=1,
    )  # fmt: skip
    for metrics, style in styled_in_order(several):
        if metrics.spectrum["prediction"] is not None:
            energy = _numbers(metrics.spectrum["prediction"])[first:]
            ax.plot(
                shown, np.maximum(energy, lowest), label=method_label(metrics),
                **style,
            )  # fmt: skip
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_ylim(0.5 * lowest, None)
    ax.set_xlabel("wavenumber $\\kappa$")
    ax.set_ylabel("$\\overline{E}(\\kappa)$")
    ticks = [k for k in (1, 2, 5, 10, 20, 50) if k <= shown.max()]
    ax.set_xticks(ticks, [str(k) for k in ticks])
    ax.xaxis.set_minor_formatter(NullFormatter())
    if first == 0:
        ax.set_xticks([shown[0], *ticks], ["0", *map(str, ticks)])


def draw_ratio(ax: Axes, several: Sequence[Metrics]) -> None:
    """Spectra over the reference's, where it holds its energy."""
    truth = _numbers(several[0].spectrum["reference"])
    first = 0 if several[0].spectrum["mean_evolves"] else 1
    containing = np.flatnonzero(truth[first:] > _CONTAINING * truth[first:].max()) + first
    shells = np.arange(first, max(containing.max(), first + 2) + 1)
    wavenumber = _numbers(several[0].spectrum["wavenumber"])[shells]
    ax.axhline(1.0, color=COLOURS["reference"], linewidth=1.0, zorder=1)
    for metrics, style in styled_in_order(several):
        if metrics.spectrum["prediction"] is not None:
            ratio = _numbers(metrics.spectrum["prediction"])[shells] / truth[shells]
            ax.plot(wavenumber, ratio, marker="o", markersize=2.6, **style)
    low, high = ax.get_ylim()
    ax.set_ylim(max(low, 0.0), min(high, 3.0))
    ax.set_xlabel("wavenumber $\\kappa$")
    ax.set_ylabel("$\\overline{E}/\\overline{E}_\\mathrm{ref}$")


def draw_bars(
    ax: Axes,
    several: Sequence[Metrics],
    value: Callable[[Metrics], float | None],
    *,
    published: Mapping[str, float] | None = None,
    text: Callable[[float], str] = lambda v: f"{v:.2g}",
) -> None:
    """Horizontal bars on a log axis; a hollow diamond is the published number of that kind."""
    ordered = in_order(list(several))[::-1]
    values = [value(metrics) for metrics in ordered]
    positive = [v for v in [*values, *(published or {}).values()] if v]
    left = 10 ** np.floor(np.log10(min(positive)) - 0.35) if positive else 1e-3
    right = max(positive, default=1.0)
    for row, (metrics, length) in enumerate(zip(ordered, values, strict=True)):
        tenfold = bool(metrics.model.get("tenfold"))
        if length:
            ax.barh(
                row, length - left, left=left, height=0.62, color=method_colour(metrics),
                alpha=0.45 if tenfold else 0.9, hatch="////" if tenfold else None,
                edgecolor="white" if tenfold else "none", linewidth=0.0,
            )  # fmt: skip
        known = None
        if not tenfold and metrics.model["kind"] != "physics":
            known = (published or {}).get(metrics.model["kind"])
        _bar_text(ax, metrics, text(length) if length else "", (length or left, float(row)), known)
        if known:
            ax.plot(
                known, row, "D", markersize=6, markerfacecolor="white",
                markeredgecolor=method_colour(metrics), markeredgewidth=1.4, zorder=4,
            )  # fmt: skip
    ax.set_yticks(range(len(ordered)), [method_label(m) for m in ordered])
    ax.set_xscale("log")
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlim(left, right * (right / left) ** 0.22)
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    if published:
        ax.plot([], [], "D", markersize=5, markerfacecolor="white", markeredgecolor="#555555",
                label="published")  # fmt: skip
        ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1, handlelength=1)


def _bar_text(
    ax: Axes, metrics: Metrics, text: str, end: tuple[float, float], known: float | None
) -> None:
    """A bar's value: after it, or inside it where a published mark follows."""
    inside = bool(known and text and known > 0.8 * end[0])
    ax.annotate(
        text or ("diverged" if metrics.diverged else "not measured"),
        end, xytext=(-5 if inside else 4, 0), textcoords="offset points", va="center",
        ha="right" if inside else "left", fontsize=7.5, color="white" if inside else "#333333",
    )  # fmt: skip


def draw_groups(ax: Axes, groups: Mapping[str, Sequence[Metrics]]) -> None:
    """Mean rL2 of each method, side by side for each benchmark, on a log axis."""
    methods = list(
        dict.fromkeys(m.model["kind"] for s in groups.values() for m in in_order(list(s)))
    )
    values = [m.rl2_mean for several in groups.values() for m in several if m.rl2_mean]
    bottom = 10 ** np.floor(np.log10(min(values, default=1e-3)))
    width = 0.8 / len(methods)
    for offset, kind in enumerate(methods):
        for place, several in enumerate(groups.values()):
            found = [m for m in several if m.model["kind"] == kind]
            if not found:
                continue
            metrics, x = found[0], place + (offset - (len(methods) - 1) / 2) * width
            if metrics.rl2_mean is None:
                ax.plot(x, bottom * 1.6, "x", color=method_colour(metrics), markeredgewidth=2)
                continue
            ax.bar(
                x, metrics.rl2_mean - bottom, bottom=bottom, width=0.9 * width,
                color=method_colour(metrics), linewidth=0,
                yerr=metrics.rl2_std if metrics.trajectories > 1 else None,
                error_kw={"elinewidth": 0.8, "ecolor": "#333333"},
                label=method_label(metrics) if place == 0 else None,
            )  # fmt: skip
    ax.set_yscale("log")
    ax.set_ylim(bottom, None)
    ax.set_xticks(range(len(groups)), [SHORT.get(name, name) for name in groups])
    ax.grid(axis="x", visible=False)
    ax.set_ylabel("mean relative $\\ell_2$ error")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=len(methods))


def mark_initial_band(ax: Axes, metrics: Metrics) -> None:
    """Mark the highest wavenumber of a benchmark's initial states."""
    benchmark = BENCHMARKS.get(metrics.benchmark or "")
    if benchmark is not None:
        edge = benchmark.initial_cutoff * np.sqrt(benchmark.dims)
        ax.axvline(edge, color="#555555", linestyle=":", linewidth=1.2)
        ax.annotate(
            "initial band", (edge, 0.03), xytext=(-3, 0), xycoords=("data", "axes fraction"),
            textcoords="offset points", ha="right", fontsize=7, color="#555555",
        )  # fmt: skip


def _minor_ticks(ax: Axes) -> None:
    ax.yaxis.set_minor_locator(LogLocator(subs="auto", numticks=12))
    ax.yaxis.set_minor_formatter(NullFormatter())


def _numbers(values: Sequence[float | None]) -> np.ndarray:
    return np.array([np.nan if v is None else v for v in values], float)

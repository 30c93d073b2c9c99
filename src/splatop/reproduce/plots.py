"""Figures from loaded metrics: error curves, spectra, bars. No model is touched here."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..data.atomic import complete_or_absent
from ..evaluate.labels import benchmark_label
from ..evaluate.published import published_rollout
from ..evaluate.results import Metrics
from .panels import (
    draw_bars,
    draw_curves,
    draw_groups,
    draw_ratio,
    draw_spectra,
    mark_initial_band,
)
from .style import RC


def styled(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """A figure function that runs under the package's style and leaves the user's alone."""

    def wrapped(*args: Any, **kwargs: Any) -> Figure:
        with matplotlib.rc_context(RC):
            return draw(*args, **kwargs)

    wrapped.__doc__, wrapped.__name__ = draw.__doc__, draw.__name__
    return wrapped


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """Write `stem.png` and `stem.pdf`, each complete or not at all."""
    paths = []
    with matplotlib.rc_context(RC):
        for kind in ("png", "pdf"):
            paths.append(stem.with_name(f"{stem.name}.{kind}"))
            with complete_or_absent(paths[-1]) as partial:
                figure.savefig(partial, format=kind, bbox_inches="tight", pad_inches=0.05)
    return paths


@styled
def rollout_figure(train: Sequence[Metrics], test: Sequence[Metrics], train_steps: int) -> Figure:
    """Error over lead time on training and on held-out trajectories."""
    figure, axes = _panels(1, 2, width=3.6, height=2.9, sharey=True)
    for ax, several, title in zip(
        axes, (train, test), ("(a) training trajectories", "(b) held-out trajectories"), strict=True
    ):
        draw_curves(ax, several)
        ax.set_title(title)
        if train_steps < max(m.steps for m in several):
            ax.axvspan(train_steps, max(m.steps for m in several), color="#F2F2F2", zorder=0)
            ax.annotate(
                "beyond the training horizon", (train_steps, 0.98), xytext=(4, 0),
                xycoords=("data", "axes fraction"), textcoords="offset points",
                va="top", fontsize=7, color="#666666",
            )  # fmt: skip
    axes[1].set_ylabel("")
    _legend_below(figure, axes[0])
    return figure


@styled
def rollout_grid(groups: Mapping[str, Sequence[Metrics]]) -> Figure:
    """Error over lead time, one panel for each benchmark."""
    return _benchmark_grid(groups, draw_curves, height=2.5)


@styled
def spectra_figure(several: Sequence[Metrics]) -> Figure:
    """Spectra, their ratio to the reference, and the error of each."""
    figure, axes = _panels(1, 3, width=3.1, height=2.8)
    draw_spectra(axes[0], several)
    axes[0].set_title("(a) time-averaged spectrum")
    draw_ratio(axes[1], several)
    axes[1].set_title("(b) ratio to the reference")
    known = {
        kind: row.spectral_error for kind, row in published_rollout(several[0].benchmark).items()
    }
    draw_bars(axes[2], several, lambda m: m.spectral_error, published=known)
    axes[2].set_title("(c) spectral error")
    _legend_below(figure, axes[0])
    return figure


@styled
def spectra_grid(groups: Mapping[str, Sequence[Metrics]]) -> Figure:
    """Time-averaged spectra, one panel for each benchmark."""
    return _benchmark_grid(groups, draw_spectra, height=2.6)


@styled
def curves_and_spectra(several: Sequence[Metrics]) -> Figure:
    """Error over lead time and spectra, with the edge of the initial band marked."""
    figure, axes = _panels(1, 2, width=3.6, height=2.9)
    draw_curves(axes[0], several, band=False)
    axes[0].set_title("(a) rollout error")
    draw_spectra(axes[1], several)
    axes[1].set_title("(b) time-averaged spectrum")
    mark_initial_band(axes[1], several[0])
    _legend_below(figure, axes[1])
    return figure


@styled
def partial_ablation_figure(several: Sequence[Metrics]) -> Figure:
    """What physics and operator contribute when both use the identified coefficients."""
    figure, axes = _panels(1, 3, width=3.1, height=2.8)
    draw_curves(axes[0], several)
    axes[0].set_title("(a) rollout error")
    draw_spectra(axes[1], several)
    axes[1].set_title("(b) time-averaged spectrum")
    mark_initial_band(axes[1], several[0])
    draw_bars(axes[2], several, lambda m: m.rl2_mean)
    axes[2].set_title("(c) mean error of the rollout")
    _legend_below(figure, axes[1])
    return figure


@styled
def capacity_figure(several: Sequence[Metrics]) -> Figure:
    """Matched and ten-fold budgets: error over lead time and spectral error."""
    figure, axes = _panels(1, 2, width=3.6, height=3.0)
    draw_curves(axes[0], several, band=False)
    axes[0].set_title("(a) rollout error; dashed: ten-fold parameters")
    draw_bars(axes[1], several, lambda m: m.spectral_error)
    axes[1].set_title("(b) spectral error")
    _legend_below(figure, axes[0])
    return figure


@styled
def cost_figure(groups: Mapping[str, Sequence[Metrics]]) -> Figure:
    """Wall-clock time of one step."""
    figure, axes = _panels(1, len(groups), width=3.6, height=2.3)
    for ax, letter, (benchmark, several) in zip(axes, "abcdef", groups.items(), strict=False):
        draw_bars(ax, several, lambda m: m.cost_ms_per_step, text=lambda v: f"{v:.3g} ms")
        points = "×".join(map(str, several[0].data["points"]))
        ax.set_title(f"({letter}) {benchmark_label(benchmark)}, {points}")
        ax.set_xlabel("milliseconds per step")
    return figure


@styled
def ablation_figure(groups: Mapping[str, Sequence[Metrics]], filtered: Sequence[Metrics]) -> Figure:
    """Physics removed on every benchmark, and the filter removed on one."""
    figure, axes = _panels(1, 2, width=3.9, height=2.9)
    draw_groups(axes[0], groups)
    axes[0].set_title("(a) physics or operator removed")
    draw_curves(axes[1], filtered)
    axes[1].set_title(f"(b) filter removed, {benchmark_label(filtered[0].benchmark)}")
    axes[1].legend(loc="best")
    return figure


def _benchmark_grid(
    groups: Mapping[str, Sequence[Metrics]], draw: Callable[..., Any], *, height: float
) -> Figure:
    figure, axes = _panels((len(groups) + 1) // 2, min(2, len(groups)), width=3.6, height=height)
    for ax, letter, (benchmark, several) in zip(axes, "abcdefgh", groups.items(), strict=False):
        draw(ax, several)
        ax.set_title(f"({letter}) {benchmark_label(benchmark)}")
    _legend_below(figure, axes[0])
    return figure


def _panels(rows: int, columns: int, *, width: float, height: float, sharey: bool = False):
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharey=sharey)
    return figure, list(axes.ravel())


def _legend_below(figure: Figure, ax: Axes) -> None:
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=len(labels) if len(labels) <= 6 else -(-len(labels) // 2),
        handlelength=2.4,
    )

"""Figures that show fields: saved frames of rollouts in 2D and isosurfaces in 3D."""

from collections.abc import Sequence

import jax.numpy as jnp
import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..derivative import gradient
from ..errors import SplatopError
from ..report.isosurface import LEVEL, add_surfaces
from ..spectral import differentiate
from .plots import styled
from .rollout_frames import RolloutFrames
from .style import FIELD_MAP, ORDER

_MISSING = "#BDBDBD"  # where a rollout has diverged
# Finer grids are thinned out: panels of two inches show no more, and triangles are slow to draw.
_SURFACE_POINTS = 40


def _ordered(several: Sequence[RolloutFrames]) -> list[RolloutFrames]:
    if not several:
        raise SplatopError("expected frames of at least one rollout, got none")
    first = several[0]
    for other in several[1:]:
        if (other.benchmark, other.steps) != (first.benchmark, first.steps):
            raise SplatopError(
                f"expected frames of the same benchmark and steps, got {first.benchmark} "
                f"{first.steps} and {other.benchmark} {other.steps}: reproduce them again"
            )
    return sorted(several, key=lambda f: ORDER.index(f.kind) if f.kind in ORDER else len(ORDER))


@styled
def snapshot_figure(several: Sequence[RolloutFrames]) -> Figure:
    """The scalar field (or vorticity) of each method over time, on one colour scale."""
    several = _ordered(several)
    first = several[0]
    vorticity = first.reference.shape[1] == 2
    shown = _vorticity if vorticity else (lambda frames, states: states[:, 0])
    truth = shown(first, first.reference)
    spread = truth.std(axis=(1, 2)) if vorticity else np.ones(len(truth))
    rows = [("Reference", truth)] + [(f.name, shown(f, f.prediction)) for f in several]
    scaled = [(label, values / spread[:, None, None]) for label, values in rows]
    limit = float(np.quantile(np.abs(scaled[0][1]), 0.999))
    columns = len(first.steps)
    figure = Figure(figsize=(1.25 * columns + 1.3, 1.25 * len(rows) + 0.5), layout="constrained")
    axes = figure.subplots(len(rows), columns, squeeze=False)
    image = None
    for row, (label, values) in enumerate(scaled):
        for column, ax in enumerate(axes[row]):
            image = _picture(ax, values[column], limit, first.lengths)
            if row == 0:
                ax.set_title(f"$t={first.steps[column] * first.dt:g}$", loc="center", fontsize=9)
        axes[row][0].set_ylabel(label, fontsize=9)
    if vorticity:
        for ax, sigma in zip(axes[-1], spread, strict=True):
            ax.set_xlabel(f"$\\sigma_\\omega={sigma:.3g}$", fontsize=7.5)
    assert image is not None
    bar = figure.colorbar(image, ax=axes, shrink=0.55, aspect=26, pad=0.015, extend="both")
    bar.outline.set_linewidth(0.5)  # pyright: ignore[reportCallIssue]
    bar.set_label("$\\omega/\\sigma_\\omega(t)$" if vorticity else "$u$")
    return figure


def _vorticity(frames: RolloutFrames, states: np.ndarray) -> np.ndarray:
    along_x, along_y = gradient(2)
    with np.errstate(all="ignore"):
        return np.stack(
            [
                np.asarray(
                    differentiate(u[1:2], along_x, frames.lengths)
                    - differentiate(u[0:1], along_y, frames.lengths)
                )[0]
                for u in jnp.asarray(states)
            ]
        )


def _picture(ax: Axes, values: np.ndarray, limit: float, lengths: tuple[float, ...]):
    colours = matplotlib.colormaps[FIELD_MAP].with_extremes(bad=_MISSING)
    image = ax.imshow(
        np.ma.masked_invalid(values).T,
        origin="lower",
        extent=(0, lengths[0], 0, lengths[1]),
        cmap=colours,
        vmin=-limit,
        vmax=limit,
        interpolation="bilinear",
        rasterized=True,
    )
    ax.set_xticks([])
    ax.set_yticks([])
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set(visible=True, linewidth=0.5, color="#888888")
    return image


@styled
def isosurface_figure(several: Sequence[RolloutFrames]) -> Figure:
    """Surfaces `u = ±LEVEL` of a 3D field: a column for each method, a row for each time."""
    several = _ordered(several)
    first = several[0]
    columns = [("Reference", first.reference)] + [(f.name, f.prediction) for f in several]
    figure = Figure(figsize=(1.75 * len(columns) + 0.2, 1.75 * len(first.steps) + 0.3))
    for row, step in enumerate(first.steps):
        for column, (label, states) in enumerate(columns):
            ax = figure.add_subplot(
                len(first.steps), len(columns), row * len(columns) + column + 1, projection="3d"
            )
            _surfaces(ax, states[row, 0], LEVEL, first.lengths)
            if row == 0:
                ax.set_title(label, loc="center", pad=2)
            if column == 0:
                ax.text2D(
                    -0.04, 0.5, f"$t={step * first.dt:g}$", transform=ax.transAxes,
                    rotation=90, va="center", ha="center",
                )  # fmt: skip
    figure.subplots_adjust(left=0.03, right=1, bottom=0, top=0.95, wspace=-0.1, hspace=-0.1)
    return figure


def _surfaces(ax, values: np.ndarray, level: float, lengths: tuple[float, ...]) -> None:
    stride = max(1, max(values.shape) // _SURFACE_POINTS)
    values = values[::stride, ::stride, ::stride]
    add_surfaces(ax, values, level, lengths)
    if not np.isfinite(values).all():
        ax.text2D(0.5, 0.5, "diverged", transform=ax.transAxes, ha="center", color="#555555")
    ax.set(xticks=[], yticks=[], zticks=[])
    ax.set_box_aspect(lengths, zoom=0.97)
    ax.view_init(elev=22, azim=-58)
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        axis.pane.set(facecolor="#F7F7F7", edgecolor="#CCCCCC")
        axis.line.set(color="#999999", linewidth=0.6)
    ax.grid(False)

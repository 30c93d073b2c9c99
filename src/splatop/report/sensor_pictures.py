"""Pictures of fields with their sensors and their spread, and of placed sensors."""

import io
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from ..assimilate import Analysis, Placement
from ..assimilate.uncertain_frames import Frames
from ..data.atomic import write_whole
from ..errors import SplatopError
from ..points import Points
from .pictures import DIVERGING, SEQUENTIAL, picture_address


def write_placement_picture(placement: Placement, out: str | Path) -> Path:
    """The chosen places, numbered, on what is left of the spread; and how it falls."""
    out = Path(out)
    kind = out.suffix.lower().removeprefix(".")
    if kind not in ("png", "svg", "pdf"):
        raise SplatopError(f"expected a picture named .png, .svg or .pdf, got '{out}'")
    figure = Figure(figsize=(9.0, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    dynamics = placement.dynamics
    spread = np.sqrt(np.mean(np.square(placement.spread), axis=0))
    at = placement.places
    if dynamics.domain.dims == 1:
        left.plot(dynamics.written.coordinates()[0].ravel(), spread, color="0.3")
        left.plot(at[:, 0], np.zeros(len(at)), "k^", clip_on=False)
        left.set(xlabel="x", ylabel="expected standard deviation", ylim=(0, None))
    else:
        _image(left, _plane(spread, dynamics.written), placement.dynamics.written, SEQUENTIAL)
        left.plot(at[:, 0], at[:, 1], "o", color="w", markeredgecolor="k", markersize=5)
        for number, where in enumerate(at[:40]):
            left.annotate(
                str(number + 1),
                where[:2],
                fontsize=6,
                color="w",
                xytext=(3, 3),
                textcoords="offset points",
            )
        left.set_title("what is left of the spread", fontsize=9)
    right.plot(range(len(placement.expected)), placement.expected, "k.-")
    right.set(xlabel="sensors", ylabel="expected standard deviation", ylim=(0, None))
    write_whole(out, _bytes(figure, kind))
    return out


def frame_picture(analysis: Analysis, frames: Frames, number: int) -> str:
    """A row of pictures for each field: with the sensors of the time, and its spread."""
    fields = frames.fields
    count = 1 if frames.std is None else 2
    figure = Figure(figsize=(4.8 * count, 3.8 * len(fields)), layout="constrained")
    axes = figure.subplots(len(fields), count, squeeze=False)
    held = analysis.observations
    near = np.abs(held.times - frames.times[number]) <= 0.5 * analysis.dt
    for row, name in enumerate(fields):
        limit = float(np.abs(frames.mean[:, row]).max()) or 1.0
        image = _image(
            axes[row, 0],
            _plane(frames.mean[number, row], frames.grid),
            frames.grid,
            DIVERGING,
            limit,
        )
        figure.colorbar(image, ax=axes[row, 0], shrink=0.8)
        axes[row, 0].set_title(f"{name}, t = {frames.times[number]:g}", fontsize=9)
        own = near & (held.fields == name)
        axes[row, 0].scatter(
            held.places[own, 0],
            held.places[own, 1],
            c=held.values[own],
            cmap=DIVERGING,
            vmin=-limit,
            vmax=limit,
            s=10,
            edgecolors="k",
            linewidths=0.4,
        )
        if frames.std is not None:
            image = _image(
                axes[row, 1],
                _plane(frames.std[number, row], frames.grid),
                frames.grid,
                SEQUENTIAL,
            )
            figure.colorbar(image, ax=axes[row, 1], shrink=0.8)
            axes[row, 1].set_title("standard deviation", fontsize=9)
    return picture_address(_bytes(figure, "png"), "png")


def space_time_picture(analysis: Analysis, frames: Frames) -> str:
    """Each field over time and x with the sensors, and its spread beside it."""
    fields = frames.fields
    figure = Figure(figsize=(9.0, 3.6 * len(fields)), layout="constrained")
    axes = figure.subplots(len(fields), 2, squeeze=False)
    x = frames.grid.coordinates()[0].ravel()
    held = analysis.observations
    for row, name in enumerate(fields):
        limit = float(np.abs(frames.mean[:, row]).max()) or 1.0
        image = axes[row, 0].pcolormesh(
            frames.times,
            x,
            frames.mean[:, row].T,
            cmap=DIVERGING,
            vmin=-limit,
            vmax=limit,
            shading="nearest",
            rasterized=True,
        )
        own = held.fields == name
        axes[row, 0].scatter(held.times[own], held.places[own, 0], s=1.5, color="k")
        axes[row, 0].set(xlabel="t", ylabel="x", title=name)
        figure.colorbar(image, ax=axes[row, 0])
        if frames.std is not None:
            image = axes[row, 1].pcolormesh(
                frames.times,
                x,
                frames.std[:, row].T,
                cmap=SEQUENTIAL,
                shading="nearest",
                rasterized=True,
            )
            axes[row, 1].set(xlabel="t", ylabel="x", title="standard deviation")
            figure.colorbar(image, ax=axes[row, 1])
        else:
            axes[row, 1].set_axis_off()
    return picture_address(_bytes(figure, "png"), "png")


def _plane(values: np.ndarray, grid: Any) -> np.ndarray:
    """What is shown as an image; of scattered points their values."""
    if isinstance(grid, Points):
        return values if grid.cells is None else grid.on_grid(values)
    return values if values.ndim == 2 else values[:, :, values.shape[2] // 2]


def _image(
    axes: Any, values: np.ndarray, grid: Any, colours: str, limit: float | None = None
) -> Any:
    x0, y0 = grid.origin[:2]
    x1, y1 = x0 + grid.lengths[0], y0 + grid.lengths[1]
    low = None if limit is None else -limit
    if values.ndim == 1:
        axes.set_aspect("equal")
        colour = matplotlib.colormaps[colours]
        return axes.scatter(*grid.places.T, c=values, cmap=colour, vmin=low, vmax=limit, s=8)
    return axes.imshow(
        values.T,
        origin="lower",
        extent=(x0, x1, y0, y1),
        cmap=matplotlib.colormaps[colours],
        vmin=low,
        vmax=limit,
        interpolation="nearest",
    )


def _bytes(figure: Figure, kind: str) -> bytes:
    held = io.BytesIO()
    figure.savefig(held, format=kind, dpi=90, bbox_inches="tight")
    return held.getvalue()

"""A picture of data on a shape: points and edges, a few frames, the lowest harmonics."""

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import SplatopError
from ..points import Points
from ..shapes import Shape
from ..spaces import shape_harmonics
from .atomic import complete_or_absent
from .trajectories import Trajectories

_HARMONICS = 4
_COLORS = ("#b2182b", "#2166ac", "#1b7837", "#762a83", "#e08214", "#01665e", "#c51b7d", "#4d4d4d")


def plot_shape(trajectories: Trajectories, path: str | Path) -> None:
    """Draw the points and the named edges, frames of the first trajectory and harmonics."""
    from matplotlib.figure import Figure  # slow to import, and only pictures need it

    path = Path(path)
    if path.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise SplatopError(f"expected a picture named .png, .pdf or .svg, got {path.name}")
    grid, domain = trajectories.grid, trajectories.domain
    assert isinstance(grid, Points)
    assert domain.shape is not None
    steps = np.unique(np.linspace(0, trajectories.frames - 1, 3).astype(int))
    rows, columns = len(trajectories.fields) + 1, _HARMONICS + 1
    figure = Figure(figsize=(2.7 * columns, 2.6 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for ax in axes.ravel():
        ax.axis("off")
    draw_edges(axes[0][0], domain.shape, named=True)
    axes[0][0].plot(*grid.places.T, ".", color="0.4", markersize=1)
    axes[0][0].set_title(f"{len(grid.places)} points", fontsize=9)
    frames = [trajectories.states(0, int(step), 1)[0] for step in steps]
    for row, name in enumerate(trajectories.fields):
        limit = max(float(np.nanmax(np.abs(frame[row]), initial=0.0)) for frame in frames) or 1.0
        for ax, step, frame in zip(axes[row][1:], steps, frames, strict=False):
            _draw(ax, grid, frame[row], limit, domain.shape)
            ax.set_title(f"{name}, t = {step * trajectories.dt:g}", fontsize=9)
    places = _raster(domain.shape)
    values = shape_harmonics(domain, places, _HARMONICS + 1)
    at = Points.of(places)
    for number, ax in enumerate(axes[-1][1:], start=1):
        limit = float(np.abs(values[:, number]).max())
        _draw(ax, at, values[:, number], limit, domain.shape)
        ax.set_title(f"harmonic {number}", fontsize=9)
    with complete_or_absent(path) as partial:
        figure.savefig(partial, format=path.suffix[1:].lower(), dpi=120)


def draw_edges(ax: Any, shape: Shape, *, named: bool = False) -> None:
    """The outline of a shape; `named`, with a colour and the name of each edge."""
    names = {name: n for n, name in enumerate(shape.edge_names)}
    t = np.linspace(0, 1, 65)
    for edge in shape.edges:
        color = _COLORS[names[edge.name] % len(_COLORS)] if named else "0.2"
        ax.plot(*edge.piece.at(t).T, color=color, linewidth=1.5 if named else 0.8)
    if named:
        for name, number in list(names.items())[:12]:
            own = [edge for edge in shape.edges if edge.name == name]
            x, y = own[len(own) // 2].piece.at(np.array([0.5]))[0]
            color = _COLORS[number % len(_COLORS)]
            ax.text(x, y, name, color=color, fontsize=7, ha="center", va="center")
    ax.set_aspect("equal")


def _draw(ax: Any, grid: Points, values: np.ndarray, limit: float, shape: Shape) -> None:
    size = np.clip(6000 / len(grid.places), 1.0, 12.0)
    ax.scatter(
        *grid.places.T, c=values, s=size, cmap="RdBu_r", vmin=-limit, vmax=limit, linewidths=0
    )
    draw_edges(ax, shape)


def _raster(shape: Shape, count: int = 70) -> np.ndarray:
    (x0, y0), (x1, y1) = shape.bounds
    x, y = np.meshgrid(np.linspace(x0, x1, count), np.linspace(y0, y1, count), indexing="ij")
    every = np.stack([x.ravel(), y.ravel()], axis=1)
    return every[shape.inside(every)]

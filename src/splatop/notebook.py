"""How results show themselves in a notebook: a small HTML card with a picture, and axes to plot on.

Matplotlib is imported when something is drawn. No figure goes through pyplot, so that nothing is
left open.
"""

import base64
import html
import io
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from .grid import Grid

Draw = Callable[[Any], object]


def new_axes(ax: Any = None) -> Any:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(figsize=(4.0, 2.4), layout="constrained").subplots()


def card(
    title: str,
    rows: Mapping[str, object],
    *,
    notes: Iterable[str] = (),
    draw: Draw | None = None,
) -> str:
    """Title, a table of what is known, notes, and what `draw` puts on axes; all text escaped."""
    cells = "".join(
        f'<tr><th style="text-align:left">{_text(name)}</th>'
        f'<td style="text-align:left">{_text(value)}</td></tr>'
        for name, value in rows.items()
    )
    said = "".join(f"<div>{_text(note)}</div>" for note in notes)
    shown = "" if draw is None else f'<img alt="{_text(title)}" src="{_picture(draw)}">'
    return f"<div><b>{_text(title)}</b><table>{cells}</table>{said}{shown}</div>"


def draw_intervals(
    ax: Any, values: Mapping[str, float], intervals: Mapping[str, tuple[float, float]]
) -> Any:
    """Each value at 1, its interval in units of its size; unbounded ones without a bar."""
    for row, (name, value) in enumerate(values.items()):
        size = abs(value) or 1.0
        low, high = intervals[name]
        if math.isfinite(low) and math.isfinite(high):
            ax.plot([1 + (low - value) / size, 1 + (high - value) / size], [row, row], "C0", lw=3)
        ax.plot([1.0], [row], "ko", markersize=4)
    ax.set_yticks(range(len(values)), [f"{name} = {value:.4g}" for name, value in values.items()])
    ax.set(xlabel="95 % interval over the estimate", ylim=(len(values) - 0.5, -0.5))
    return ax


def draw_state(ax: Any, state: np.ndarray, grid: Any, **line: Any) -> Any:
    """One field `(*N)`: a line in 1D, colours in 2D, the middle slice in 3D, dots at points."""
    values = np.asarray(state, float)
    finite = np.abs(values[np.isfinite(values)])
    colours = {"cmap": "RdBu_r", "vmax": float(finite.max(initial=0.0)) or 1.0}
    colours["vmin"] = -colours["vmax"]
    if not isinstance(grid, Grid):
        ax.scatter(*np.asarray(grid.places).T, c=values, s=6, **colours)
        ax.set_aspect("equal")
    elif values.ndim == 1:
        ax.plot(grid.coordinates()[0], values, **line)
    else:
        if values.ndim == 3:
            values = values[..., values.shape[-1] // 2]
        (x0, y0), (a, b) = grid.origin[:2], grid.lengths[:2]
        ax.imshow(values.T, origin="lower", extent=(x0, x0 + a, y0, y0 + b), **colours)
    return ax


def _picture(draw: Draw) -> str:
    axes = new_axes()
    draw(axes)
    buffer = io.BytesIO()
    axes.figure.savefig(buffer, format="png", dpi=80)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"


def _text(value: object) -> str:
    return html.escape(f"{value:.6g}" if isinstance(value, float) else str(value), quote=True)

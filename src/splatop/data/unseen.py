"""Edges that data cannot tell: points without a value, ends where nothing happens."""

from collections.abc import Sequence

import numpy as np

from ..domain import AXES
from ..errors import SplatopError
from .ends import sampled
from .trajectories import Trajectories

_REST = 1e-3  # of the spread of a field: what changes less does not change


def check_holes(data: Trajectories, unsaid: Sequence[int]) -> None:
    """Refuse to look at edges through points that never have a value, such as land in the sea."""
    numbers = np.unique([0, data.frames // 2, data.frames - 1])
    frames = np.stack([data.states(0, int(t), 1)[0] for t in numbers])
    holes = np.isnan(frames).all(axis=(0, 1))
    if unsaid and holes.any() and not holes.all():
        mask = "--mask nan and --boundary" if data.grid.dims == 2 else "--boundary"
        raise SplatopError(
            f"{data.source}: expected to know what holds at the edges; the file does not say, and "
            f"{int(holes.sum())} of {holes.size} points have no value (NaN) in any frame: if they "
            f'lie outside, such as land, give {mask} "all: free" or what holds there, else '
            "--periodic or --boundary, and fill them in"
        )


def at_rest(data: Trajectories, axes: Sequence[int]) -> str:
    """A word on axes at whose ends nothing happens: there a wall would look the same."""
    frames = sampled(data).frames
    spread = np.maximum(frames.std(axis=(0, *range(2, frames.ndim))), 1e-30)
    quiet = [
        AXES[axis]
        for axis in axes
        if (np.ptp(_ends_of(frames, axis), axis=1) <= _REST * spread).all()
    ]
    if not quiet:
        return ""
    return f", but rests at the ends of {', '.join(quiet)}, where walls would look the same"


def _ends_of(frames: np.ndarray, axis: int) -> np.ndarray:
    """The values `(C, n)` of all frames at both ends of an axis."""
    ends = frames.take([0, -1], axis + 2)
    return np.moveaxis(ends, 1, 0).reshape(frames.shape[1], -1)

"""Grids whose coordinates fall or are not even: turned round, and interpolated to even points."""

import warnings
from collections.abc import Sequence

import numpy as np
from scipy.interpolate import make_interp_spline

from ..grid import Grid
from .axes import SPATIAL, as_lengths, as_origin, uneven_axis, uneven_gaps
from .sampling import rounded
from .trajectories import Constant, Trajectories

# Even points for each uneven one, the first that loses less than `_LITTLE` of a field's spread.
_FINER = (1, 2, 4)
_REACH = 0.5 + 1e-6  # of the first and the last gap: how far beyond its cell's middle an end may be
_LITTLE, _MUCH = 1e-3, 1e-2
_LOOKED_AT = 8
_DEGREE = 5


class Evened(Trajectories):
    """Trajectories with some axes turned round or interpolated.

    `maps` are matrices `(M, N)` by axis, from the points of the file to those of the grid.
    """

    def __init__(
        self, whole: Trajectories, maps: dict[int, np.ndarray], coordinates: dict[str, np.ndarray]
    ):
        self.whole, self._maps = whole, maps
        self._like(whole)
        self.coordinates = {**whole.coordinates, **coordinates}
        points, lengths, origin = (
            list(part) for part in (whole.grid.points, whole.grid.lengths, whole.grid.origin)
        )
        for axis in maps:
            along = self.coordinates[SPATIAL[axis]]
            points[axis], origin[axis] = len(along), float(along[0])
            lengths[axis] = len(along) * float(along[-1] - along[0]) / (len(along) - 1)
        self.grid = Grid(tuple(points), tuple(lengths), tuple(origin))
        self.static = {name: self._changed(one) for name, one in whole.static.items()}

    def _changed(self, constant: Constant) -> Constant:
        return lambda trajectory: _mapped(constant(trajectory), self._maps, 0)

    def read(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        return _mapped(self.whole.read(trajectory, start, frames), self._maps, 2)

    def close(self) -> None:
        self.whole.close()


def evened(
    data: Trajectories,
    *,
    resample: bool,
    lengths: float | Sequence[float] | None,
    origin: float | Sequence[float] | None,
) -> Trajectories:
    """The data with coordinates that increase evenly: themselves where they do.

    Uneven ones are refused unless they are to be resampled; what that loses is measured and said.
    Lengths that the user gives for even points replace coordinates, whatever these are.
    """
    dims = data.grid.dims
    sides = as_lengths(lengths, dims) or (None,) * dims
    begins = as_origin(origin, dims) or (None,) * dims
    maps: dict[int, np.ndarray] = {}
    coordinates: dict[str, np.ndarray] = {}
    said = []
    for axis, name in enumerate(SPATIAL[:dims]):
        along = data.coordinates.get(name)
        if not _is_line(along, data.grid.points[axis]):
            continue
        nodes = np.asarray(along, float)
        falls = bool(nodes[0] > nodes[-1])
        turned = np.eye(len(nodes))[::-1] if falls else np.eye(len(nodes))
        nodes = nodes[::-1] if falls else nodes
        if uneven_gaps(nodes).any() and (sides[axis] is None or resample):
            if not resample:
                raise uneven_axis(
                    nodes,
                    name,
                    data.source,
                    "give --resample (resample=True) to interpolate to even points, or do so first",
                )
            even, words = _even_points(data, axis, nodes, falls, begins[axis], sides[axis])
            maps[axis] = interpolation(nodes, even) @ turned
            coordinates[name] = even
            said.append(words)
        elif falls:
            maps[axis], coordinates[name] = turned, nodes
            said.append(f"{name} falls in the file and was turned round")
    if not maps:
        return data
    changed = data.made_of(lambda whole: Evened(whole, maps, coordinates))
    changed.attributes["axes"] = "; ".join(said)
    return changed


def turned(mask: np.ndarray, data: Trajectories) -> np.ndarray:
    """A mask in the order of the file, turned round along axes whose coordinates fall."""
    for axis, name in enumerate(SPATIAL[: mask.ndim]):
        along = data.coordinates.get(name)
        if along is not None and _is_line(along, mask.shape[axis]) and along[0] > along[-1]:
            mask = np.flip(mask, axis)
    return mask


def _is_line(along: np.ndarray | None, count: int) -> bool:
    return (
        along is not None
        and along.shape == (count,)
        and count > 1
        and np.issubdtype(along.dtype, np.number)
        and bool(np.isfinite(along).all())
    )


def _even_points(
    data: Trajectories,
    axis: int,
    nodes: np.ndarray,
    falls: bool,
    begin: float | None,
    length: float | None,
) -> tuple[np.ndarray, str]:
    """Centres of even cells between the ends of the axis, enough of them to lose little, and what
    was done, in words."""
    first, last = nodes[1] - nodes[0], nodes[-1] - nodes[-2]
    # The nodes at the ends may be the ends, which rounding must not put out of reach.
    low = rounded(nodes[0] - first / 2, _REACH * first) if begin is None else begin
    high = rounded(nodes[-1] + last / 2, _REACH * last) if length is None else low + length
    frames = _frames(data, axis)
    frames = frames[..., ::-1] if falls else frames
    even, loss = nodes, np.inf
    for finer in _FINER:
        count = finer * len(nodes)
        even = low + (np.arange(count) + 0.5) * (high - low) / count
        there, back = interpolation(nodes, even), interpolation(even, nodes)
        lost = frames @ (back @ there - np.eye(len(nodes))).T
        loss = float(np.max(lost.std(axis=(0, 2)) / np.maximum(frames.std(axis=(0, 2)), 1e-30)))
        if loss < _LITTLE:
            break
    name = SPATIAL[axis]
    words = (
        f"{name} interpolated from {len(nodes)} uneven points to {len(even)} even ones from "
        f"{low:g} to {high:g}, which lose {loss:.1g} of a field's spread"
    )
    if loss > _MUCH:
        warnings.warn(
            f"{data.source}: {words}: what is thinner than an even cell is gone", stacklevel=2
        )
    return even, words


def _frames(data: Trajectories, axis: int) -> np.ndarray:
    """Frames `(F, C, *, N)` spread over the data, the axis last, lines across it flattened."""
    numbers = np.unique(np.linspace(0, data.frames - 1, _LOOKED_AT).astype(int))
    frames = np.stack([data.states(0, int(t), 1)[0] for t in numbers]).astype(float)
    lines = np.moveaxis(np.nan_to_num(frames), axis + 2, -1)
    return lines.reshape(*lines.shape[:2], -1, lines.shape[-1])


def interpolation(nodes: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The matrix of a spline through the nodes, evaluated at places."""
    degree = min(_DEGREE, len(nodes) - 1)
    degree -= 1 - degree % 2  # an odd one
    return make_interp_spline(nodes, np.eye(len(nodes)), k=degree)(places)


def _mapped(states: np.ndarray, maps: dict[int, np.ndarray], before: int) -> np.ndarray:
    """States with a matrix applied to each of these axes of space."""
    for axis, matrix in maps.items():
        at = axis + before
        if np.array_equal(np.abs(matrix), np.eye(len(matrix))[::-1]):
            states = np.flip(states, at)  # exact, and NaN stays where it is
        else:
            moved = np.tensordot(matrix.astype(np.float32), states, (1, at))
            states = np.moveaxis(moved, 0, at)
    return np.ascontiguousarray(states)

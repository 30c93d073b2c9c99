"""Values at listed places: on the even grid that these fill, or at scattered points in 2D."""

from collections.abc import Sequence

import numpy as np

from ..errors import SplatopError
from ..grid import Grid
from ..points import Points
from .axes import SPATIAL, as_lengths, as_origin, need, uneven_gaps
from .in_memory import ArrayTrajectories
from .times import frame_times

_FEWEST = 3  # points along an axis of what is taken for a grid
_DIGITS = 9  # of a place, in units of the box: what a file has rounded away is no difference


def at_points(
    array: np.ndarray,
    places: np.ndarray,
    *,
    dt: float | None,
    fields: Sequence[str],
    source: str,
    kind: str,
    times: np.ndarray | None = None,
    lengths: Sequence[float] | None = None,
    origin: Sequence[float] | None = None,
) -> ArrayTrajectories:
    """Trajectories from values `(B, T, C, P)` at places `(P, 2)`.

    A `dt` that is given replaces the `times` of the frames, which need not be even.
    """
    grid = Points.of(places, lengths=lengths, origin=origin)
    repeated = len(places) - len(np.unique(np.round(grid.places, 12), axis=0))
    if repeated:
        raise SplatopError(
            f"{source}: expected points in different places, got {repeated} that repeat another: "
            "keep one of each"
        )
    if array.ndim != 4 or array.shape[3] != len(grid.places):
        raise SplatopError(
            f"{source}: expected values (B, T, C, P) at its P = {len(grid.places)} points, got "
            f"shape {array.shape}"
        )
    if dt is not None:
        times = None
    elif times is not None:
        dt, times = frame_times(times, source=source, name="t")
    step = need(dt, "the time between frames", "give it (--dt)", source)
    about = {"source": source, "format": kind}
    return ArrayTrajectories(
        array, grid, dt=step, fields=tuple(fields), attributes=about, times=times
    )


def at_places(
    array: np.ndarray,
    points: np.ndarray,
    times: np.ndarray | None,
    *,
    fields: Sequence[str],
    dt: float | None,
    lengths: float | Sequence[float] | None,
    origin: float | Sequence[float] | None,
    source: str,
    kind: str,
) -> ArrayTrajectories:
    """Trajectories from values `(B, T, C, P)` at places `(P, d)`."""
    on_grid = even_grid(points)
    if on_grid is None:
        if points.shape[1] != 2:
            raise SplatopError(
                f"{source}: expected rows at the points of an even grid in {points.shape[1]}D, got "
                f"{len(points)} places that fill none: scattered points are for 2D, interpolate "
                "to even ones first"
            )
        return at_points(array, points, dt=dt, fields=fields, source=source, kind=kind, times=times)
    axes, where = on_grid
    sides = tuple(len(along) for along in axes)
    given = as_lengths(lengths, len(axes))
    box = tuple(len(a) * float(a[-1] - a[0]) / (len(a) - 1) for a in axes)
    begins = as_origin(origin, len(axes)) or tuple(float(along[0]) for along in axes)
    stamps = None
    if dt is None and times is not None:
        dt, stamps = frame_times(times, source=source, name="t")
    found = ArrayTrajectories(
        array[..., where].reshape(*array.shape[:3], *sides),
        Grid(sides, given or box, begins),
        dt=need(dt, "the time between frames", "give it (--dt)", source),
        fields=tuple(fields),
        attributes={"source": source, "format": kind},
        times=stamps,
    )
    found.coordinates = dict(zip(SPATIAL, axes, strict=False))
    return found


def even_grid(points: np.ndarray) -> tuple[list[np.ndarray], np.ndarray] | None:
    """The even axes that points `(P, d)` fill and the point at each place of them, or None."""
    axes, numbers = [], []
    for values in np.asarray(points, float).T:
        extent = float(np.ptp(values))
        if extent == 0 or not np.isfinite(extent):
            return None
        whole = np.round((values - values.min()) / extent, _DIGITS)
        _, first, number = np.unique(whole, return_index=True, return_inverse=True)
        axes.append(values[first])
        numbers.append(number.ravel())
    sides = tuple(len(along) for along in axes)
    if np.prod(sides, dtype=float) != len(points) or min(sides) < _FEWEST:
        return None
    if any(uneven_gaps(along).any() for along in axes):
        return None
    place = np.ravel_multi_index(tuple(numbers), sides)
    where = np.full(len(points), -1)
    where[place] = np.arange(len(points))
    return None if (where < 0).any() else (axes, where)

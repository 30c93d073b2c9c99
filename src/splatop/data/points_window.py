"""The window that scattered points look through, where nobody knows an edge: their box or hull."""

import warnings

import numpy as np
from scipy.spatial import ConvexHull, Delaunay, QhullError

from ..errors import SplatopError
from ..points import Points
from ..shapes import Box, Polygon, Shape
from .trajectories import Trajectories

# Points fill their box if their hull leaves out less than this share of it.
_LEFT_OUT = 0.1
# A disk without points is conspicuous if it is so many times larger than the area for each point:
# among n random points one is expected with probability n exp(-28), 1e-9 for a thousand.
_EMPTY = 28.0
# Corners of the hull that are closer together than this share of its size count as one.
_FINE = 0.02


def all_free(boundary: str | None) -> bool:
    """Whether a boundary says that nothing holds anywhere."""
    return boundary is not None and "".join(boundary.split()).rstrip(";") == "all:free"


def window_of(points: Points, *, boxed: bool = False) -> Shape:
    """What free edges may surround: the box that the points fill (`boxed`: in any case), else
    their convex hull."""
    places = points.places
    low, high = places.min(0), places.max(0)
    box = Box((float(low[0]), float(low[1])), (float(high[0]), float(high[1])))
    hull = _hull(places)
    if boxed or hull.volume >= (1 - _LEFT_OUT) * np.prod(high - low):
        return box
    corners = _thinned(places[hull.vertices], _FINE * float((high - low).max()))
    middle = corners.mean(axis=0)
    # Fewer corners cut off slivers with points in them: the polygon grows until it holds them all.
    for grow in (1.0, 1.001, 1.003, 1.01, 1.03, 1.1):
        wide = middle + grow * (corners - middle)
        polygon = Polygon(tuple((float(x), float(y)) for x, y in wide))
        if polygon.inside(places).all():
            return polygon
    return box


def look_for_holes(data: Trajectories, shape: Shape) -> None:
    """Warn of a part of the shape that no point tells anything about."""
    assert isinstance(data.grid, Points)
    found = emptiest_place(data.grid, shape)
    if found is not None:
        x, y, radius = found
        text = (
            f"no point lies within {radius:.3g} of ({x:.4g}, {y:.4g}): what happens there is a "
            f'guess; if there is an obstacle, take it out of the shape ("... - disk({x:.4g}, '
            f'{y:.4g}, radius)")'
        )
        data.attributes["shape"] = f"{data.attributes['shape']}; {text}"
        warnings.warn(f"{data.source}: {text}", stacklevel=2)


def emptiest_place(points: Points, shape: Shape) -> tuple[float, float, float] | None:
    """The largest disk `(x, y, radius)` in the shape without a point, if it is conspicuous."""
    places = np.unique(points.places, axis=0)
    try:
        mesh = Delaunay(places)
    except QhullError:
        return None
    a, b, c = (places[mesh.simplices[:, k]] for k in range(3))
    ab, ac = b - a, c - a
    cross = 2 * (ab[:, 0] * ac[:, 1] - ab[:, 1] * ac[:, 0])
    keep = np.abs(cross) > 1e-12 * np.ptp(places, axis=0).prod()
    a, ab, ac, cross = a[keep], ab[keep], ac[keep], cross[keep]
    square_b, square_c = (ab**2).sum(1), (ac**2).sum(1)
    centre = np.stack(
        [
            (ac[:, 1] * square_b - ab[:, 1] * square_c) / cross,
            (ab[:, 0] * square_c - ac[:, 0] * square_b) / cross,
        ],
        axis=1,
    )
    radius = np.hypot(*centre.T)
    centre = centre + a
    radius = np.where(shape.inside(centre), radius, 0.0)
    most = int(np.argmax(radius))
    if np.pi * radius[most] ** 2 < _EMPTY * shape.area / len(places):
        return None
    return float(centre[most, 0]), float(centre[most, 1]), float(radius[most])


def _hull(places: np.ndarray) -> ConvexHull:
    try:
        return ConvexHull(places)
    except QhullError as error:
        raise SplatopError(
            "expected points that span an area, got points on a line: shapes are 2D"
        ) from error


def _thinned(corners: np.ndarray, distance: float) -> np.ndarray:
    kept = [corners[0]]
    for corner in corners[1:]:
        if np.hypot(*(corner - kept[-1])) >= distance:
            kept.append(corner)
    if len(kept) > 3 and np.hypot(*(kept[0] - kept[-1])) < distance:
        kept.pop()
    return np.array(kept)

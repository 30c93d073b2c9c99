"""Data on a shape: what is said of it and of its edges, and which samples lie in it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..domain import Axis, Condition, Domain
from ..equation import parse_boundary
from ..equation.shape_text import parse_shape
from ..errors import SplatopError
from ..grid import Grid
from ..points import ROUNDING, Points, points_inside, random_points
from ..shapes import Place, Shape, shape_of_mask
from ..shapes.mesh import SUFFIXES, read_mesh, shape_of_mesh
from .axes import as_lengths, as_origin
from .masks import where_finite
from .obeyed import check_conditions
from .points_window import all_free, look_for_holes, window_of
from .sampling import axis_points, rounded, sampling_words
from .trajectories import Trajectories

# Points that show a side of their box lie on it, up to this share of its length.
_FEWEST_ON_SIDE, _ON_SIDE = 3, 1e-6


class MaskedTrajectories(Trajectories):
    """The samples of a grid that lie inside of a shape."""

    def __init__(self, whole: Trajectories, points: Points):
        self._whole = whole
        self._like(whole)
        self.grid = points

    def read(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        assert isinstance(self.grid, Points)
        assert self.grid.mask is not None
        return self._whole.read(trajectory, start, frames)[..., self.grid.mask]

    def close(self) -> None:
        self._whole.close()


def speaks_of_a_shape(data: Trajectories, shape: str | None, mask: Any) -> bool:
    """Whether the file or the user says that the data are of a part of their box."""
    stated = data.stated.domain
    return (
        isinstance(data.grid, Points)
        or shape is not None
        or mask is not None
        or (stated is not None and stated.shape is not None)
    )


def settled_on_shape(data: Trajectories, told: Any) -> Trajectories:
    """The data on the shape that was told or stated, with a condition for each field and edge.

    `told` is what the user says (`edges.Told`). Refused with place and cure if points lie outside,
    if nobody gave a condition for an edge, or if the data break one.
    """
    if data.grid.dims != 2:
        raise SplatopError(
            f"{data.source}: expected 2D data for a shape, got {data.grid.dims}D: shapes are 2D, "
            "leave --shape out, or take a plane of the data"
        )
    if told.periodic:
        raise SplatopError("expected --shape or --periodic, got both: a shape has edges all around")
    if isinstance(data.grid, Points):
        shape, box = _shape_of_points(data, told)
    else:
        data, shape, box = _masked(data, told)
    assert isinstance(data.grid, Points)
    low, high = box
    lengths = (high[0] - low[0], high[1] - low[1])
    data.grid = data.grid.in_box(lengths, low)
    _check_inside(data, shape)
    axes = tuple(Axis(length, begin, False) for length, begin in zip(lengths, low, strict=True))
    domain = Domain(axes, shape=shape).with_conditions(_conditions(data, told, shape))
    data.domain = domain
    by = "" if told.boundary is None else " (as told)"
    data.attributes["boundary_conditions"] = domain.describe(data.fields) + by
    data.attributes["shape"] = shape.text() + (
        "" if shape.is_exact else "; its edge was read off a mask and is known to a cell only"
    )
    if told.boundary is not None:
        check_conditions(data, domain)
    look_for_holes(data, shape)
    return data


# --- which shape ---------------------------------------------------------------------------------


def _shape_of_points(data: Trajectories, told: Any) -> tuple[Shape, tuple[Place, Place]]:
    stated = data.stated.domain
    lengths = as_lengths(told.lengths, 2)
    begin = as_origin(told.origin, 2) or ((0.0, 0.0) if lengths is not None else None)
    around = None
    if lengths is not None and begin is not None:
        around = (begin[0], begin[1]), (begin[0] + lengths[0], begin[1] + lengths[1])
    elif stated is not None:
        around = _corners(stated)
    elif all_free(told.boundary):
        around = window_of(data.grid, boxed=True).bounds
    else:
        around = _box_of_sides(data.grid)
    mesh = data.mesh_shape
    if told.shape is not None:
        shape = _read(told.shape, around)
    elif stated is not None and stated.shape is not None:
        shape = stated.shape
    elif mesh is not None:
        shape = mesh
    elif all_free(told.boundary):
        shape = window_of(data.grid)
    else:
        low, high = data.grid.places.min(0), data.grid.places.max(0)
        corners = [_outward(one, (high - low)[k % 2], k < 2) for k, one in enumerate((*low, *high))]
        raise SplatopError(
            f"{data.source}: expected the shape that the points lie in; the file does not say. "
            f"They reach from ({low[0]:.4g}, {low[1]:.4g}) to ({high[0]:.4g}, {high[1]:.4g}): give "
            f'--shape "box({", ".join(f"{one:g}" for one in corners)})" if that is where '
            "the edges are, or what is (shape= in Python). If the points are a window of something "
            'larger and nothing holds at its edges, give --boundary "all: free"'
        )
    return shape, around or shape.bounds


def _box_of_sides(grid: Points) -> tuple[Place, Place] | None:
    """The box that points show by lying on each of its sides, as those of a mesh do; None if they
    do not, or if rounder numbers lie close beyond, as where points are the middles of cells."""
    low, high = grid.places.min(0), grid.places.max(0)
    tiny = _ON_SIDE * (high - low)
    on_sides = [np.abs(grid.places - end) <= tiny for end in (low, high)]
    if min(int(count) for one in on_sides for count in one.sum(0)) < _FEWEST_ON_SIDE:
        return None
    size, ends = high - low, (*low, *high)
    rounder = [_outward(one, size[k % 2], k < 2) for k, one in enumerate(ends)]
    if (np.abs(np.subtract(rounder, ends)) > np.tile(tiny, 2)).any():
        return None
    return (float(low[0]), float(low[1])), (float(high[0]), float(high[1]))


def _outward(end: float, size: float, low: bool) -> float:
    """The roundest number up to 3 % of the size beyond the outermost points."""
    margin = 0.015 * float(size)
    return rounded(float(end) + (-margin if low else margin), margin)


def _masked(data: Trajectories, told: Any) -> tuple[Trajectories, Shape, tuple[Place, Place]]:
    grid = _grid(data, told)
    corners = _corners(Domain.box(grid.lengths, grid.origin, (False, False)))
    finite = where_finite(data)
    stated = data.stated.domain
    if told.mask is not None:
        mask = _mask(told.mask, grid, data.source)
        shape = _of_mask(mask, grid, corners) if told.shape is None else None
    elif told.shape is None and stated is not None and stated.shape is not None:
        shape, mask = stated.shape, None
    else:
        shape, mask = None, None
    if shape is None:
        shape = _read(str(told.shape), corners)
    if mask is None:
        mask = points_inside(shape, grid).mask
        assert mask is not None
    lost = mask & ~finite
    if lost.any():
        x, y = grid.places[np.argmax(lost)]
        raise SplatopError(
            f"{data.source}: expected finite values inside of the shape, got NaN at "
            f"({x:.4g}, {y:.4g}) and {int(lost.sum()) - 1} other points: give a shape that leaves "
            "them out, or the mask that the NaN are (--mask nan)"
        )
    points = Points.of_mask(grid, mask)
    return data.made_of(lambda whole: MaskedTrajectories(whole, points)), shape, corners


def _of_mask(mask: np.ndarray, grid: Grid, corners: tuple[Place, Place]) -> Shape:
    (x, y), (dx, dy) = grid.first_point, grid.spacing
    return shape_of_mask(mask, (x, y), (dx, dy), *corners)


def _mask(name: Any, grid: Grid, source: str) -> np.ndarray:
    """A mask given as an array, True inside."""
    mask = np.asarray(name)
    if mask.shape != grid.points:
        raise SplatopError(
            f"{source}: expected a mask of shape {grid.points}, one value for each point of the "
            f"grid, got {mask.shape}"
        )
    if mask.dtype.kind == "f" and not np.isin(mask, (0.0, 1.0)).all():
        raise SplatopError(
            f"{source}: expected a mask of ones (inside) and zeros, got other values"
        )
    return mask.astype(bool)


def _grid(data: Trajectories, told: Any) -> Grid:
    """The grid with points where they lie; as they are stored where nobody says."""
    old: Any = data.grid
    words = sampling_words(told.sampling, 2)
    given = as_lengths(told.lengths, 2) or (None, None)
    begins = as_origin(told.origin, 2) or (None, None)
    stored = data.stated.domain
    lengths, origin, layout = list(old.lengths), list(old.origin), list(old.layout)
    for axis in range(2):
        if stored is not None and stored.shape is not None and words[axis] is None:
            lengths[axis], origin[axis] = stored.axes[axis].length, stored.axes[axis].origin
            layout[axis] = data.stated.layout[axis]
            continue
        one = axis_points(data, axis, word=words[axis], length=given[axis], begin=begins[axis])
        if one is not None:
            lengths[axis], origin[axis], layout[axis] = one.length, one.begin, one.layout
    return Grid(old.points, tuple(lengths), tuple(origin), tuple(layout))


def _corners(domain: Domain) -> tuple[Place, Place]:
    (x, y), (width, height) = domain.origin, domain.lengths
    return (x, y), (x + width, y + height)


def _read(text: str, around: tuple[Place, Place] | None) -> Shape:
    """From text, or from a mesh file of that name."""
    path = Path(text)
    if path.suffix.lower() in SUFFIXES:
        if not path.exists():
            raise SplatopError(f"expected a mesh file, {path} does not exist")
        return shape_of_mesh(read_mesh(path), path.name)
    return parse_shape(text, box=around)


# --- what holds at its edges ----------------------------------------------------------------------


def _conditions(data: Trajectories, told: Any, shape: Shape) -> dict[tuple[str, str], Condition]:
    if told.boundary is not None:
        return parse_boundary(told.boundary, fields=data.fields, dims=2, shape=shape)[1]
    stated = data.stated.domain
    if stated is not None and stated.shape == shape:
        return stated.held_by(data.fields)
    if data.stated.text is not None:
        return parse_boundary(
            data.stated.text, fields=data.fields, dims=2, others=data.stated.others, shape=shape
        )[1]
    each = ", ".join(f"{name} = 0" for name in data.fields)
    raise SplatopError(
        f"{data.source}: expected to know what holds at the edges of the shape "
        f"({', '.join(shape.edge_names)}); the file does not say: give --boundary, such as "
        f'"all: {each}" or "all: {", ".join(f"dn({n}) = 0" for n in data.fields)}" (boundary= in '
        "Python)"
    )


def _check_inside(data: Trajectories, shape: Shape) -> None:
    grid: Any = data.grid
    if grid.cells is not None:
        return
    away = shape.distance(grid.places)
    outside = away > ROUNDING * max(grid.lengths)
    if outside.any():
        worst = int(np.argmax(away))
        x, y = grid.places[worst]
        raise SplatopError(
            f"{data.source}: expected points inside of the shape, got {int(outside.sum())} of "
            f"{len(away)} outside, the farthest at ({x:.6g}, {y:.6g}), {away[worst]:.3g} from the "
            "edge: correct the shape, or leave these points out"
        )


def shape_and_points(
    text: str,
    boundary: str | None,
    grid: Grid,
    fields: Sequence[str],
    *,
    sampling: str | None = None,
    scattered: int | None = None,
    seed: int = 0,
) -> tuple[Domain, Points]:
    """The domain that texts state in the box of a grid, and points on it: those of the grid that
    lie inside, or as many random ones."""
    if grid.dims != 2:
        raise SplatopError(f"expected --dims 2 for a shape, got {grid.dims}: shapes are 2D")
    words = sampling_words(sampling, 2)
    grid = replace(grid, layout=tuple(word or "ends" for word in words))
    box = Domain.box(grid.lengths, grid.origin, (False, False))
    shape = _read(text, _corners(box))
    (x0, y0), (x1, y1) = shape.bounds
    (left, low), (right, high) = _corners(box)
    size = max(grid.lengths)
    if min(x0 - left, y0 - low, right - x1, high - y1) < -ROUNDING * size:
        raise SplatopError(
            f"expected a shape inside of the box from ({left:g}, {low:g}) to ({right:g}, {high:g}),"
            f" got one that reaches from ({x0:.4g}, {y0:.4g}) to ({x1:.4g}, {y1:.4g}): give "
            "--length and --origin"
        )
    if boundary is None:
        raise SplatopError(
            f"expected --boundary with --shape: what holds at {', '.join(shape.edge_names)}"
        )
    conditions = parse_boundary(boundary, fields=fields, dims=2, shape=shape)[1]
    domain = replace(box, shape=shape).with_conditions(conditions)
    if scattered is None:
        return domain, points_inside(shape, grid)
    if scattered < 2:
        raise SplatopError(f"expected at least two points (--scattered), got {scattered}")
    return domain, random_points(shape, scattered, seed, lengths=grid.lengths, origin=grid.origin)

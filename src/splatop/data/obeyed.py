"""Do data on a shape obey what is said to hold at its edges?"""

from dataclasses import replace

import numpy as np

from ..derivative import gradient, value
from ..domain import AXES, Domain
from ..equation import edge_values
from ..errors import SplatopError
from ..points import Points
from ..spaces.shape_basis import ShapeBasis, build_basis, edge_points, lattice, spacing_of
from ..threads import one_blas_thread
from .trajectories import Trajectories

# Data break a condition if half of an edge is off by this share of a field's spread; for slopes, of
# the spread over a tenth of the shape.
_OFF = 0.1
_LOOKED_AT = 3
# Slopes are judged at edges as long as so many spacings of what the points are fitted with: around
# a smaller hole a field changes faster than that shows.
_LONG = 3.0


def check_conditions(data: Trajectories, domain: Domain) -> None:
    """Refuse values and slopes that the data plainly do not have at an edge: two fits of different
    resolution say so, by more than they differ from each other."""
    grid, shape = data.grid, domain.shape
    assert isinstance(grid, Points)
    assert shape is not None
    if all(one.kind == "free" for one in domain.conditions.values()):
        return
    count = len(grid.places)
    spacings = [
        float(np.sqrt(shape.area / n)) for n in (min(count / 5, 300), count / 12, count / 30)
    ]
    bases = [(spacing, _free(domain, spacing)) for spacing in spacings]
    bases = [(spacing, free) for spacing, free in bases if free.size <= count / 2][:2]
    if len(bases) < 2:
        return  # too few points to see anything
    every = np.linspace(0, data.frames - 1, _LOOKED_AT).astype(int)
    frames = np.stack([data.window(0, int(t), 1)[0] for t in every]).astype(float)
    spacing = bases[0][0]
    names, places, normals = edge_points(shape, spacing)
    fits = [_at_edges(free, grid, frames, places, normals) for _, free in bases]
    reach = 0.1 * np.sqrt(shape.area)
    for (side, name), one in domain.conditions.items():
        if name not in data.fields:
            continue  # an inverse Laplacian, which the data do not hold
        here = np.array(names) == side
        if one.kind == "slope" and np.ptp(places[here], axis=0).max() < _LONG * spacing:
            continue
        channel = data.fields.index(name)
        spread = float(frames[:, channel].std())
        along = dict(zip(AXES, places[here].T, strict=False))
        try:
            each = [edge_values(one, along, data.known_at(0, int(t))) for t in every]
        except (SplatopError, KeyError):
            continue  # a coefficient that only the equation will give
        wanted = np.stack(np.broadcast_arrays(*each), axis=-1)
        unit = 1.0 if one.kind == "value" else reach
        found = [unit * fit[one.kind][here, :, channel] for fit in fits]
        wanted = wanted * unit
        off = min(float(np.median(np.abs(one_fit - wanted))) for one_fit in found)
        allowed = _OFF * spread + float(np.median(np.abs(found[0] - found[1])))
        if not shape.is_exact and one.kind == "value":  # the edge of a mask is known to a cell
            cell = np.sqrt(shape.area / len(grid.places))
            allowed += cell * float(np.median(np.abs(fits[0]["slope"][here, :, channel])))
        if off > allowed > 0:
            what = "values" if one.kind == "value" else "slopes"
            raise SplatopError(
                f"{data.source}: expected data that obey their boundary, but '{one.text(name)}' at "
                f"{side} does not hold: {what} there differ from it by about {off / unit:.3g} "
                f"(the field's spread is {spread:.3g}): state what holds there (--boundary)"
            )


def _free(domain: Domain, spacing: float) -> ShapeBasis:
    """Gaussians alone: with functions that grow towards an edge few points tell nothing there."""
    assert domain.shape is not None
    anchors = tuple(max(6, int(np.ceil(n / spacing)) + 1) for n in domain.lengths)
    gaussians = replace(lattice(domain.shape, domain.origin, domain.lengths, anchors), beside=())
    with one_blas_thread():
        return build_basis(gaussians, domain.shape, (), max(spacing_of(domain.lengths, anchors)))


def _at_edges(
    free: ShapeBasis, grid: Points, frames: np.ndarray, places: np.ndarray, normals: np.ndarray
) -> dict[str, np.ndarray]:
    """Values and slopes along the normals, `(E, n, C)`, of a fit to frames `(n, C, P)`."""
    rows = free.evaluate(grid.places, value(2))
    columns = np.moveaxis(frames, -1, 0).reshape(len(rows), -1)
    fitted = np.linalg.pinv(rows, rcond=1e-5) @ columns
    across = sum(
        normals[:, axis, None] * free.evaluate(places, d) for axis, d in enumerate(gradient(2))
    )
    shape = (len(places), *frames.shape[:2])
    return {
        "value": (free.evaluate(places, value(2)) @ fitted).reshape(shape),
        "slope": (across @ fitted).reshape(shape),
    }

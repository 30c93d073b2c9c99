"""States on a shape: the points that they are written at, and how they are seen from anywhere."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ..data import shape_and_points
from ..derivative import value
from ..domain import Domain
from ..equation import Equation
from ..equation.shape_text import parse_shape
from ..errors import SplatopError
from ..grid import Grid
from ..points import Points
from ..spaces.kept import shape_basis_of
from ..walls import wall_space
from ..walls.shape_resolution import shape_anchors

# Gaussians across the shape, for each point along the longer side of its box, and limits.
_ANCHORS, _LEAST, _MOST = 0.4, 10, 36
# Functions for each point that states are written at, at most: of those that obey the conditions,
# and of those without any, which smooth states are seen through.
_SHARE, _SHARE_FREE = 0.4, 0.8
# The least singular value that counts, relative to the largest.
_RCOND = 1e-6


def shape_box(text: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The sides and the corner of the box around a shape that says them itself."""
    low, high = parse_shape(text, box=None).bounds
    return (high[0] - low[0], high[1] - low[1]), low


def shape_domain(
    text: str, boundary: str | None, grid: Grid, fields: Sequence[str], sampling: str | None
) -> tuple[Domain, Points]:
    """The domain, and the points of a grid that lie in it."""
    return shape_and_points(text, boundary, grid, tuple(fields), sampling=sampling)


def anchors_on_shape(equation: Equation, domain: Domain, at: Points) -> tuple[int, ...]:
    """As many Gaussians as the points can tell apart."""
    assert at.cells is not None
    count = int(np.clip(round(_ANCHORS * max(at.cells.points)), _LEAST, _MOST))
    while count >= _LEAST:
        anchors = shape_anchors(domain, count)
        space = wall_space(equation, domain, anchors)
        free = shape_basis_of(domain.with_conditions({}), anchors, ()).size
        few = space.shape[0] <= _SHARE * len(at.places) and free <= _SHARE_FREE * len(at.places)
        energies = space.energies()
        # Too few Gaussians for a curved edge leave functions that diffusion would make grow.
        if few and energies.min() > -1e-6 * energies.max():
            return anchors
        count -= 2
    raise SplatopError(
        f"expected more points in the shape than {len(at.places)}, which {_LEAST} Gaussians across "
        "it need: give finer points (--points)"
    )


def functions_of(domain: Domain, anchors: tuple[int, ...], places: np.ndarray) -> np.ndarray:
    """What samples at `places` are fitted with: Gaussians without any condition, `(n, r)`."""
    basis = shape_basis_of(domain.with_conditions({}), anchors, ())
    return basis.evaluate(np.asarray(places, float), value(2))


@lru_cache(maxsize=8)
def fitting(domain: Domain, anchors: tuple[int, ...], at: Points) -> np.ndarray:
    """From samples at points to the amplitudes of these, `(r, P)`."""
    return np.linalg.pinv(functions_of(domain, anchors, at.places), rcond=_RCOND)

"""How many Gaussians data on a shape need: those that hold them, or all but their noise."""

import jax.numpy as jnp
import numpy as np

from ..domain import Domain
from ..equation import Equation
from ..errors import SplatopError
from ..points import Points
from ..spaces import ShapeSpace
from ..stepper import Coefficients
from .galerkin import Galerkin
from .resolution import LEVEL, SpaceSize, least_size, wall_space, why_so_many

# Anchors along the longer side of the box around the shape.
CANDIDATES = (8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 36, 40, 48, 56, 64, 80)
# Functions for each point, at most: beyond, a fit amplifies noise between the points.
_MOST = 0.4
# Functions for each anchor squared that fits in the shape, before they are counted.
_EXPECTED = 1.0


def shape_anchors(domain: Domain, count: int) -> tuple[int, ...]:
    """So many anchors along the longer side of the shape's own extent, and as dense along both
    axes of the box."""
    assert domain.shape is not None
    (x0, y0), (x1, y1) = domain.shape.bounds
    spacing = max(x1 - x0, y1 - y0) / (count - 1)
    return tuple(max(6, round(length / spacing) + 1) for length in domain.lengths)


def choose_on_shape(
    equation: Equation,
    coefficients: Coefficients,
    frames: np.ndarray,
    *,
    domain: Domain,
    at: Points,
    tail: float,
    level: float = LEVEL,
) -> list[SpaceSize]:
    """The fewest functions that hold sample frames `(n, C, P)`, as anchors of the box's axes."""
    assert domain.shape is not None
    size = max(float(np.sqrt(np.mean(np.square(frames)))), 1e-300)
    left: dict[int, float] = {}
    anchors: dict[int, tuple[int, ...]] = {}
    full = False  # whether the points hold no more
    for candidate in CANDIDATES:
        here = shape_anchors(domain, candidate)
        if here in anchors.values():
            continue
        spacing = max(n / (a - 1) for n, a in zip(domain.lengths, here, strict=True))
        full = _EXPECTED * domain.shape.area / spacing**2 > _MOST * len(at.places)
        if full:
            break
        space = wall_space(equation, domain, here)
        assert isinstance(space, ShapeSpace)
        full = space.shape[0] > _MOST * len(at.places)
        if full:
            break
        anchors[candidate] = here
        left[candidate] = _left(Galerkin(equation, space), coefficients, frames, at) / size
        if left[candidate] <= tail:
            break
    if not left:
        raise SplatopError(
            f"expected more points for the shape, got {len(at.places)}: {CANDIDATES[0]} anchors "
            f"across it have more than {_MOST:.0%} as many functions; give more points"
        )
    chosen, noise = least_size(left, tail, level)
    found = anchors[chosen]
    functions = wall_space(equation, domain, found).shape[0]
    what = f"{chosen} Gaussians across the shape ({functions} functions)"
    limit = f"{len(at.places)} points hold no more" if full else "more were not tried"
    why = why_so_many(left[chosen], tail, noise, limit)
    return [SpaceSize(n, left[chosen], noise, f"anchors: {what} {why}") for n in found]


def _left(scheme: Galerkin, coefficients: Coefficients, frames: np.ndarray, at: Points) -> float:
    """The root mean square of what a fit leaves, of as much noise as that would be."""
    space = scheme.space
    assert isinstance(space, ShapeSpace)
    lifted = scheme.lifted_of_frames(coefficients, len(frames))
    rest = frames.astype(float)
    if lifted[0] is not None:
        rest = rest - np.stack(
            [np.asarray(space.lift_evaluate(jnp.asarray(one), at)) for one in lifted]
        )
    values, fit = space.sample_matrix(at), space.fit_matrix(at)
    fitted = np.matmul(values, np.matmul(fit, rest[..., None]))[..., 0]
    freedom = max(1 - space.shape[0] / len(at.places), 0.05)
    return float(np.sqrt(np.mean(np.square(rest - fitted)) / freedom))

"""How many Gaussians data between walls need: those that hold them, or all but their noise."""

import math
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from ..derivative import value
from ..domain import AXES, Domain
from ..equation import Equation
from ..equation.expansion import split_linear
from ..errors import SplatopError
from ..grid import Grid
from ..points import Points
from ..spaces import BoxSpace, ShapeSpace, Space
from ..stepper import Coefficients
from .galerkin import Galerkin

_CANDIDATES = (8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 36, 40, 48, 56, 64, 72, 80, 96, 112, 128)
# Anchors for each sample, at most: beyond, a fit amplifies noise and rounding at the ends. Where no
# sample lies at an end that has no condition, it does so earlier.
_MOST, _MOST_FREE = 0.5, 0.4
# The residual of a fit that is noise does not fall as anchors are added; a fall by less is none.
LEVEL = 0.9


@dataclass(frozen=True)
class Size:
    """What was chosen along one axis, the share of the data's amplitude that it leaves, whether
    that is noise, and the reason in words."""

    anchors: int
    left: float
    noise: bool
    reason: str


def wall_space(
    equation: Equation, domain: Domain, anchors: tuple[int, ...], sampling: Points | None = None
) -> Space:
    """Gaussians between walls, with as many functions around a ring as there are anchors; or on a
    shape, for states at these points."""
    if domain.shape is not None:
        wanted = {value(domain.dims), *equation.derivatives(domain.dims)}
        linear, _ = split_linear(equation, domain.dims)
        wanted |= {part.operator for part in linear}
        return ShapeSpace(domain, equation.fields, tuple(anchors), tuple(sorted(wanted)), sampling)
    sizes = tuple(
        max(1, (a - 1) // 2) if axis.periodic else a
        for a, axis in zip(anchors, domain.axes, strict=True)
    )
    return BoxSpace(domain, equation.fields, sizes, degree=int(min(max(equation.degree, 2), 4)))


def choose_sizes(
    equation: Equation,
    coefficients: Coefficients,
    frames: np.ndarray,
    *,
    domain: Domain,
    grid: Grid,
    tail: float,
    level: float = LEVEL,
) -> list[Size]:
    """For each axis the fewest functions that hold sample frames `(n, C, *N)`.

    Where noise keeps any from doing so, those that leave no more than 1 / `level` of what the best
    leave.
    """
    rest = _homogeneous(equation, coefficients, frames, domain, grid)
    each = tail / math.sqrt(domain.dims)
    return [
        _choose_size(equation, rest, domain, grid, axis, each, level) for axis in range(domain.dims)
    ]


def _homogeneous(
    equation: Equation,
    coefficients: Coefficients,
    frames: np.ndarray,
    domain: Domain,
    grid: Grid,
) -> np.ndarray:
    """The frames without what takes the values set at the edges."""
    scheme = Galerkin(equation, wall_space(equation, domain, (16,) * domain.dims))
    lifted = scheme.lifted(coefficients)
    if lifted is None:
        return frames.astype(float)
    zero = jnp.zeros((len(equation.fields), *scheme.space.shape), lifted.dtype)
    return frames - np.asarray(scheme.leave(zero, grid.fractions(), lifted))


def _choose_size(
    equation: Equation,
    frames: np.ndarray,
    domain: Domain,
    grid: Grid,
    axis: int,
    tail: float,
    level: float,
) -> Size:
    """The fewest functions along an axis that hold the frames, or all but their noise."""
    n, name = grid.points[axis], AXES[axis]
    along = grid.fractions()[axis]
    ring = domain.axes[axis].periodic
    unset = not ring and any(
        one.kind == "free" for field in equation.fields for one in domain.ends(axis, field)
    )
    most = int((0.9 if ring else _MOST_FREE if unset else _MOST) * n)
    candidates = [a for a in _CANDIDATES if a <= most]
    if not candidates:
        raise SplatopError(
            f"expected at least {math.ceil(_CANDIDATES[0] / _MOST)} points along {name} between "
            f"its ends, got {n}: give finer data"
        )
    moved, channels = np.moveaxis(frames, axis + 2, -1), frames.shape[1]
    size = max(float(np.sqrt(np.mean(np.square(moved)))), 1e-300)
    left: dict[int, float] = {}
    for candidate in candidates:
        space = wall_space(equation, domain, tuple(candidate for _ in grid.points))
        matrix, fit = space._matrix(axis, along, 0), space._fit(axis, along)
        keep = np.eye(n) - matrix @ fit  # (N, N), or (C, N, N)
        rest = np.einsum("bc...n,cmn->bc...m", moved, np.broadcast_to(keep, (channels, n, n)))
        freedom = max(1 - candidate / n, 0.05)  # of the samples that a fit leaves
        left[candidate] = float(np.sqrt(np.mean(np.square(rest)) / freedom)) / size
        if left[candidate] <= tail:
            break
    chosen, noise = least_size(left, tail, level)
    what = f"{chosen} {'harmonics' if ring else 'Gaussians'} along {name}"
    if left[chosen] <= tail:
        why = f"leave {left[chosen]:.1e} of the data's amplitude (wanted {tail:.0e})"
    elif noise:
        why = f"leave {left[chosen]:.1e} of the data's amplitude, which more of them do not explain"
    else:
        why = (
            f"leave {left[chosen]:.1e} of the data's amplitude (wanted {tail:.0e}); {n} points "
            "hold no more"
        )
    return Size(chosen, left[chosen], noise, f"anchors: {what} {why}")


def least_size(left: dict[int, float], tail: float, level: float) -> tuple[int, bool]:
    """The size to take, and whether what it leaves is noise."""
    sizes = list(left)
    if left[sizes[-1]] <= tail:
        return sizes[-1], False
    floor = min(left.values())
    chosen = next(a for a in sizes if left[a] * level <= floor)
    return chosen, chosen < sizes[-1] and left[sizes[-1]] > 0.8 * floor

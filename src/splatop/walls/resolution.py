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
# A frame of which the finest Gaussians leave more than this share of its amplitude is not resolved
# by its grid, such as a start from noise in each cell.
_ROUGH = 0.3


@dataclass(frozen=True)
class SpaceSize:
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
) -> list[SpaceSize]:
    """For each axis the fewest functions that hold sample frames `(n, C, *N)`.

    Where noise keeps any from doing so, those that leave no more than 1 / `level` of what the best
    leave.
    """
    rest = _homogeneous(equation, coefficients, frames, domain, grid)
    each = tail / math.sqrt(domain.dims)
    axes = [_Along(equation, domain, grid, axis) for axis in range(domain.dims)]
    return [_choose_size(one, rest, each, level) for one in axes]


def most_anchors(equation: Equation, domain: Domain, grid: Grid) -> tuple[int, ...]:
    """As many Gaussians along each axis as its points tell apart; around a ring its points, which
    stand for the waves below their limit."""
    return tuple(
        n if axis.periodic else int(_share(equation, domain, number) * n)
        for number, (n, axis) in enumerate(zip(grid.points, domain.axes, strict=True))
    )


def _share(equation: Equation, domain: Domain, axis: int) -> float:
    """Anchors for each sample between two ends, at most."""
    ends = (one for field in equation.fields for one in domain.ends(axis, field))
    return _MOST_FREE if any(one.kind == "free" for one in ends) else _MOST


def resolved_frames(
    equation: Equation,
    coefficients: Coefficients,
    frames: np.ndarray,
    *,
    domain: Domain,
    grid: Grid,
) -> np.ndarray:
    """Which of the frames `(n, C, *N)` their grid resolves; all of them if it resolves none."""
    rest = _homogeneous(equation, coefficients, frames, domain, grid)
    axes = [_Along(equation, domain, grid, axis) for axis in range(domain.dims)]
    left = np.max([one.left_of_each(rest, one.candidates[-1]) for one in axes], axis=0)
    return left <= max(_ROUGH, float(np.min(left)))


def _homogeneous(
    equation: Equation,
    coefficients: Coefficients,
    frames: np.ndarray,
    domain: Domain,
    grid: Grid,
) -> np.ndarray:
    """The frames without what takes the values set at the edges."""
    scheme = Galerkin(equation, wall_space(equation, domain, (16,) * domain.dims))
    lifted = scheme.lifted_of_frames(coefficients, len(frames))
    if lifted[0] is None:
        return frames.astype(float)
    zero = jnp.zeros((len(equation.fields), *scheme.space.shape), lifted[0].dtype)
    along = grid.fractions()
    return frames - np.stack([np.asarray(scheme.leave(zero, along, one)) for one in lifted])


class _Along:
    """One axis of the data: which numbers of functions may be taken there, and what they leave."""

    def __init__(self, equation: Equation, domain: Domain, grid: Grid, axis: int):
        self.equation, self.domain, self.grid, self.axis = equation, domain, grid, axis
        self.points, self.ring = grid.points[axis], domain.axes[axis].periodic
        share = 0.9 if self.ring else _share(equation, domain, axis)
        most = int(share * self.points)
        self.candidates = [a for a in _CANDIDATES if a <= most]
        if not self.candidates:
            raise SplatopError(
                f"expected at least {math.ceil(_CANDIDATES[0] / share)} points along {AXES[axis]} "
                f"between its ends, got {self.points}: give finer data"
            )

    def energy_left(self, frames: np.ndarray, size: int) -> np.ndarray:
        """The mean square that a fit leaves of each frame `(n, C, *N)`, over its freedom."""
        moved, n = np.moveaxis(frames, self.axis + 2, -1), self.points
        along = self.grid.fractions()[self.axis]
        space = wall_space(self.equation, self.domain, (size,) * self.grid.dims)
        assert isinstance(space, BoxSpace)
        matrix, fit = space._matrix(self.axis, along, 0), space._fit(self.axis, along)
        keep = np.eye(n) - matrix @ fit  # (N, N), or (C, N, N)
        rest = moved.reshape(*frames.shape[:2], -1, n) @ np.swapaxes(keep, -1, -2)
        freedom = max(1 - size / n, 0.05)  # of the samples that a fit leaves
        return np.mean(np.square(rest), axis=tuple(range(1, rest.ndim))) / freedom

    def left_of_each(self, frames: np.ndarray, size: int) -> np.ndarray:
        """The share of each frame's own amplitude that a fit leaves."""
        whole = np.mean(np.square(frames), axis=tuple(range(1, frames.ndim)))
        return np.sqrt(self.energy_left(frames, size) / np.maximum(whole, 1e-300))


def _choose_size(data: _Along, frames: np.ndarray, tail: float, level: float) -> SpaceSize:
    """The fewest functions along an axis that hold the frames, or all but their noise."""
    size = max(float(np.sqrt(np.mean(np.square(frames)))), 1e-300)
    left: dict[int, float] = {}
    for candidate in data.candidates:
        left[candidate] = float(np.sqrt(np.mean(data.energy_left(frames, candidate)))) / size
        if left[candidate] <= tail:
            break
    chosen, noise = least_size(left, tail, level)
    what = f"{chosen} {'harmonics' if data.ring else 'Gaussians'} along {AXES[data.axis]}"
    why = why_so_many(left[chosen], tail, noise, f"{data.points} points hold no more")
    return SpaceSize(chosen, left[chosen], noise, f"anchors: {what} {why}")


def why_so_many(left: float, tail: float, noise: bool, limit: str) -> str:
    """What a chosen number of functions leaves of the data, and why there are not more."""
    if noise and left > tail:
        return f"leave {left:.1e} of the data's amplitude, which more of them do not explain"
    said = f"leave {left:.1e} of the data's amplitude (wanted {tail:.0e})"
    return said if left <= tail else f"{said}; {limit}"


def least_size(left: dict[int, float], tail: float, level: float) -> tuple[int, bool]:
    """The size to take, and whether what it leaves is noise."""
    sizes = list(left)
    if left[sizes[-1]] <= tail:
        return sizes[-1], False
    floor = min(left.values())
    chosen = next(a for a in sizes if left[a] * level <= floor)
    return chosen, chosen < sizes[-1] and left[sizes[-1]] > 0.8 * floor

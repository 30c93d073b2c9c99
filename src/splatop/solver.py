"""Reference solutions of any equation on a periodic box, to generate data and to check against.

ETDRK4 on spectral derivatives, in double precision, with as many substeps per frame as it takes
until halving them changes nothing that matters.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .domain import Domain
from .equation import Equation, split_coefficients
from .errors import SplatopError, check_field
from .etdrk4 import Scheme, Tables
from .grid import Grid, as_number, as_numbers
from .initial import initial_condition as initial_condition
from .points import Points
from .spectral import Field
from .stepper import TIME, Coefficients, Stepper, interval_of
from .walls import random_starts, random_state, solve_between_walls, solve_on_shape
from .walls.converged import converged_frames
from .walls.shape_solver import ANCHORS

# Trajectories on a shape that are solved at once.
_TOGETHER = 16

# Share of the amplitude beyond two thirds of the grid's band from which a run counts as coarse.
UNRESOLVED = 1e-3


class ReferenceSolver(Stepper):
    """One frame by `substeps` steps of ETDRK4 (Kassam and Trefethen 2005).

    What acts on each Fourier mode of a field alone is integrated exactly. Products are taken on
    a grid fine enough that none of degree up to 4 aliases. Works in the precision of the state.
    """

    equation: Equation
    lengths: tuple[float, ...] = eqx.field(static=True, converter=as_numbers)
    dt: float = eqx.field(static=True, converter=as_number)
    substeps: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        if not self.dt > 0 or self.substeps < 1:
            raise SplatopError(
                "expected a positive time step and at least one substep, "
                f"got dt={self.dt:g} and {self.substeps}"
            )

    def __call__(self, u: Field, coefficients: Coefficients) -> Field:
        check_field(u, dims=len(self.lengths), channels=len(self.equation.fields))
        self.equation.check_coefficients(coefficients)
        scheme = Scheme(self.equation, Grid(tuple(u.shape[1:]), self.lengths))
        interval = interval_of(coefficients, self.dt)
        tables = scheme.tables(interval / self.substeps, coefficients)
        tables = jax.tree.map(lambda a: jnp.asarray(a, jnp.result_type(u, 1j)), tables)
        step = interval / self.substeps
        return scheme.advance(u, tables, coefficients, self.substeps, step)

    @property
    def interval(self) -> float:
        return self.dt

    @property
    def autonomous(self) -> bool:
        return not self.equation.uses_time


def solve(
    equation: Equation,
    coefficients: Mapping[str, float],
    u0: Float[Array | np.ndarray, "C *N"],
    *,
    lengths: tuple[float, ...],
    dt: float,
    steps: int,
    tolerance: float = 1e-6,
    t0: float = 0.0,
) -> tuple[Float[np.ndarray, "T C *N"], float]:
    """The trajectory `(steps + 1, C, *N)` from a state `u0` at the time `t0`, with frames `dt`
    apart, in double precision on a periodic box; and its error estimate.

    Each frame is computed with n and with 2n substeps, n doubled until the two differ by less
    than the tolerance (relative L2 over all channels); the frame kept is what fourth order
    extrapolates from the two. The estimate is the largest such difference. It measures the error
    in time, not in space: a warning says when the grid is too coarse for what the solution became.
    """
    dt = as_number(dt)
    if steps < 0 or not tolerance > 0 or not dt > 0:
        raise SplatopError(
            "expected steps >= 0, a positive time step and a positive tolerance, "
            f"got {steps}, {dt:g} and {tolerance:g}"
        )
    check_field(np.asarray(u0), dims=len(lengths), channels=len(equation.fields))
    values = _all_values(equation, coefficients)
    scheme = Scheme(equation, Grid(tuple(u0.shape[1:]), lengths))
    with jax.enable_x64(True):
        scalars = {name: jnp.asarray(value) for name, value in values.items()}
        tables: dict[int, Tables] = {}

        def one_frame(u: Array, number: int, substeps: int) -> Array:
            if substeps not in tables:
                tables[substeps] = jax.tree.map(jnp.asarray, scheme.tables(dt / substeps, values))
            now = {**scalars, TIME: jnp.asarray(t0 + number * dt)}
            count, step = jnp.asarray(substeps), jnp.asarray(dt / substeps)
            return _advance(scheme, u[0], tables[substeps], now, count, step)[None]

        start = jnp.asarray(u0, jnp.float64)[None]
        frames, worst = [np.asarray(start[0])], 0.0
        for u, error in converged_frames(start, one_frame, steps=steps, dt=dt, tolerance=tolerance):
            frames.append(np.asarray(u[0]))
            worst = max(worst, error)
    _warn_if_unresolved(frames)
    return np.stack(frames), worst


def solve_trajectories(
    equation: Equation,
    coefficients: Mapping[str, float],
    *,
    grid: Grid | Points,
    dt: float,
    steps: int,
    trajectories: int,
    initial: str = "fourier",
    seed: int = 0,
    domain: Domain | None = None,
    t0: float = 0.0,
) -> Iterator[Float[np.ndarray, "T C *N"]]:
    """Solve from random initial states, one trajectory `(steps + 1, C, *N)` after another, in
    single precision.

    `initial` names the kind of initial state on a periodic box (`initial_condition`); between walls
    and on shapes, which `domain` describes, it is made of random harmonics. The time of the initial
    states is `t0`.
    """
    equation = equation.placed_at(grid.origin)
    keys = jax.random.split(jax.random.key(seed), trajectories)
    if isinstance(grid, Points):
        assert domain is not None
        yield from solve_many_on_shape(
            equation, coefficients, keys, domain=domain, at=grid, dt=dt, steps=steps
        )
        return
    for key in keys:
        if domain is not None and not domain.all_periodic:
            yield solve_one_between_walls(
                equation, coefficients, key, domain=domain, grid=grid, dt=dt, steps=steps, t0=t0
            )
            continue
        u0 = initial_condition(initial, grid, channels=len(equation.fields), key=key)
        sides = grid.lengths
        frames, _ = solve(equation, coefficients, u0, lengths=sides, dt=dt, steps=steps, t0=t0)
        yield frames.astype(np.float32)


def solve_one_between_walls(
    equation: Equation,
    coefficients: Mapping[str, float],
    key: Array,
    *,
    domain: Domain,
    grid: Grid,
    dt: float,
    steps: int,
    t0: float = 0.0,
) -> Float[np.ndarray, "T C *N"]:
    """The trajectory of a random state, in single precision."""
    with jax.enable_x64(False):  # the same key draws other numbers in double precision
        u0 = random_state(equation, coefficients, domain=domain, grid=grid, key=key, t0=t0)
    frames, _ = solve_between_walls(
        equation, coefficients, u0, domain=domain, grid=grid, dt=dt, steps=steps, t0=t0
    )
    return frames.astype(np.float32)


def solve_many_on_shape(
    equation: Equation,
    coefficients: Mapping[str, float],
    keys: Sequence[Array] | Array,
    *,
    domain: Domain,
    at: Points,
    dt: float,
    steps: int,
    anchors: int = ANCHORS,
) -> Iterator[Float[np.ndarray, "T C P"]]:
    """The trajectories of random states, in single precision. A few are solved at a time: their
    steps are products of matrices then."""
    place: dict[str, Any] = {"domain": domain, "anchors": anchors}
    for first in range(0, len(keys), _TOGETHER):
        with jax.enable_x64(False):
            starts = random_starts(equation, keys=keys[first : first + _TOGETHER], **place)
        frames, _ = solve_on_shape(
            equation, coefficients, starts, at=at, dt=dt, steps=steps, **place
        )
        yield from frames.astype(np.float32)


@eqx.filter_jit
def _advance(
    scheme: Scheme,
    u: Field,
    tables: Tables,
    coefficients: Coefficients,
    substeps: Array,
    step: Array,
) -> Field:
    """One frame. Compiled once for an equation and a grid, whatever the numbers."""
    return scheme.advance(u, tables, coefficients, substeps, step)


def _all_values(equation: Equation, coefficients: Mapping[str, float]) -> dict[str, float]:
    values, missing = split_coefficients(equation, coefficients)
    if missing:
        raise SplatopError(
            f"expected a number for each coefficient ({', '.join(equation.coefficient_names)}), "
            f"got none for {', '.join(missing)}: give it"
        )
    return values


def _warn_if_unresolved(frames: list[np.ndarray]) -> None:
    tails, whole = zip(*(_power(frame) for frame in frames), strict=True)
    # Of a field that is constant, what is left beside the mean is rounding.
    rounding = max(1e-20 * frame[0].size * float(np.sum(frame**2)) for frame in frames)
    share = np.sqrt(max(tails) / max(*whole, rounding, 1e-300))
    if share > UNRESOLVED:
        warnings.warn(
            f"the grid of {'x'.join(str(n) for n in frames[0].shape[1:])} points is coarse for "
            f"this solution: {share:.1%} of its amplitude lies beyond two thirds of the band. "
            "Take more points, or more diffusion",
            stacklevel=3,
        )


def _power(u: np.ndarray) -> tuple[float, float]:
    """Power in the modes beyond two thirds of the band, and in all but the mean."""
    grid = Grid(tuple(u.shape[1:]), (1.0,) * (u.ndim - 1))
    power = np.sum(np.abs(np.fft.rfftn(u, axes=range(1, u.ndim))) ** 2, axis=0)
    power *= grid.multiplicity()
    power[(0,) * power.ndim] = 0.0
    outside = np.zeros(power.shape, bool)
    for k, n in zip(grid.modes(), grid.points, strict=True):
        outside = outside | (np.abs(k) > n / 3)
    return float(power[outside].sum()), float(power.sum())

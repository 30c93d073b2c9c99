"""Reference solutions and initial conditions of the benchmarks.

Linear transport is solved exactly in Fourier space. The nonlinear cases use exponax (ETDRK4, which
needs no substeps here). Advection never enters its integrator, which drops imaginary parts, but
follows as an exact shift: the two commute.
"""

from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from ..benchmarks import Benchmark
from ..derivative import gradient, laplacian
from ..equation import (
    Advection,
    ConservativeSelfAdvection,
    Diffusion,
    Equation,
    Reaction,
    SelfAdvection,
    Term,
)
from ..errors import SplatopError, check_field, is_concrete
from ..grid import Grid
from ..spectral import Field, derivative_symbol, from_modes, resample, to_modes
from ..stepper import Coefficients, Scalar, Stepper

_ALLEN_CAHN = (0.0, 1.0, 0.0, -1.0)
# Points that resolve the benchmark's interfaces to 3e-6 with the cube dealiased (64: 5e-4).
_RESOLVED = 128
SPLITS = ("train", "test")


def reference_stepper(benchmark: Benchmark) -> Stepper:
    """The solver that makes a benchmark's data, as a stepper over one frame."""
    grid, dt, equation = benchmark.grid, benchmark.dt, benchmark.equation
    terms = _by_type(equation)
    along_ones = getattr(terms.get(Advection), "velocity", None) is None
    if set(terms) <= {Advection, Diffusion} and along_ones:
        return ExactTransport(equation, grid, dt)
    if set(terms) in ({SelfAdvection, Diffusion}, {ConservativeSelfAdvection, Diffusion}):
        return BurgersReference(equation, grid, dt)
    polynomial = getattr(terms.get(Reaction), "polynomial", None)
    if set(terms) == {Advection, Diffusion, Reaction} and polynomial == _ALLEN_CAHN and along_ones:
        return AllenCahnReference(equation, grid, dt)
    raise SplatopError(
        "expected an equation of the benchmarks (advection, diffusion, Burgers, Allen-Cahn), "
        f"got the terms {', '.join(equation.term_names)}: bring data of your own for it"
    )


class ExactTransport(Stepper):
    """Advection with the velocity `v 1`, and diffusion: each Fourier mode times one exponential."""

    equation: Equation
    grid: Grid = eqx.field(static=True)
    dt: float = eqx.field(static=True)

    def __call__(self, u: Field, coefficients: Coefficients) -> Field:
        _check_state(u, self.grid, self.equation, coefficients)
        rates = [_coefficient(term, coefficients) for term in self.equation.terms]
        symbols = [self.dt * _linear_symbol(term, self.grid) for term in self.equation.terms]
        if all(is_concrete(rate) for rate in rates):
            # In double precision: a rounded phase would add up over hundreds of steps.
            exponents = [float(rate) * symbol for rate, symbol in zip(rates, symbols, strict=True)]
            factor = jnp.asarray(np.exp(np.sum(exponents, axis=0)))
        else:
            factor = jnp.exp(sum(r * jnp.asarray(s) for r, s in zip(rates, symbols, strict=True)))
        return from_modes(to_modes(u) * factor, self.grid.points).astype(u.dtype)


class BurgersReference(Stepper):
    """Burgers, in the form that the equation has, by exponax."""

    equation: Equation
    grid: Grid = eqx.field(static=True)
    dt: float = eqx.field(static=True)

    def __call__(self, u: Field, coefficients: Coefficients) -> Field:
        _check_state(u, self.grid, self.equation, coefficients)
        rates = {kind: _coefficient(t, coefficients) for kind, t in _by_type(self.equation).items()}
        form = SelfAdvection if SelfAdvection in rates else ConservativeSelfAdvection
        return _solver(form, self.grid, self.dt, (rates[form], rates[Diffusion]))(u)


class AllenCahnReference(Stepper):
    """Allen-Cahn by exponax, then the exact shift."""

    equation: Equation
    grid: Grid = eqx.field(static=True)
    dt: float = eqx.field(static=True)

    def __call__(self, u: Field, coefficients: Coefficients) -> Field:
        _check_state(u, self.grid, self.equation, coefficients)
        terms = _by_type(self.equation)
        rates = {kind: _coefficient(term, coefficients) for kind, term in terms.items()}
        # Dealiasing the cube costs half of the modes: coarse grids lend them from a finer one.
        points = self.grid.points
        fine = points if min(points) >= _RESOLVED else tuple(2 * n for n in points)
        grid = Grid(fine, self.grid.lengths)
        solve = _solver(Reaction, grid, self.dt, (rates[Reaction], rates[Diffusion]))
        u = resample(solve(resample(u, fine)), points)
        shift = Equation((terms[Advection],), self.equation.fields)
        return ExactTransport(shift, self.grid, self.dt)(u, coefficients)


def initial_state(benchmark: Benchmark, key: PRNGKeyArray) -> Field:
    """A random truncated Fourier series for each channel: zero mean, largest value 1.

    exponax draws other series on other grids: they are drawn on one and carried to the benchmark's.
    """
    import exponax  # with matplotlib, a second that most commands do without

    series = exponax.ic.RandomTruncatedFourierSeries(
        benchmark.dims, cutoff=benchmark.initial_cutoff, max_one=True
    )
    keys = jax.random.split(key, benchmark.channels)
    drawn_on = benchmark.initial_points or benchmark.points
    drawn = jnp.concatenate([series(drawn_on, key=k) for k in keys])
    return drawn if drawn_on == benchmark.points else resample(drawn, benchmark.grid.points)


def draw_coefficients(benchmark: Benchmark, key: PRNGKeyArray) -> dict[str, Any]:
    """The fixed coefficients and, log-uniform in their ranges, those that vary."""
    drawn: dict[str, Any] = dict(benchmark.coefficients)
    keys = jax.random.split(key, max(1, len(benchmark.coefficient_ranges)))
    for k, (name, (low, high)) in zip(keys, benchmark.coefficient_ranges.items(), strict=False):
        drawn[name] = jnp.exp(jax.random.uniform(k, minval=np.log(low), maxval=np.log(high)))
    return drawn


def trajectory_keys(seed: int, split: str, index: int) -> tuple[PRNGKeyArray, PRNGKeyArray]:
    """Two keys, for coefficients and initial state, that only this trajectory has."""
    root = jax.random.key(seed, impl="threefry2x32")
    split_key = jax.random.fold_in(root, SPLITS.index(split))
    coefficient_key, state_key = jax.random.split(jax.random.fold_in(split_key, index))
    return coefficient_key, state_key


def _by_type(equation: Equation) -> dict[type[Term], Term]:
    return {type(term): term for term in equation.terms}


def _coefficient(term: Term, coefficients: Coefficients) -> Scalar:
    return 1.0 if term.coefficient is None else coefficients[term.coefficient]


def _linear_symbol(term: Term, grid: Grid) -> np.ndarray:
    if isinstance(term, Diffusion):
        return derivative_symbol(laplacian(grid.dims), grid)
    return -np.sum([derivative_symbol(d, grid) for d in gradient(grid.dims)], axis=0)


def _check_state(u: Field, grid: Grid, equation: Equation, coefficients: Coefficients) -> None:
    check_field(u, dims=grid.dims, channels=len(equation.fields))
    equation.check_coefficients(coefficients)
    if u.shape[1:] != grid.points:
        raise SplatopError(
            f"expected u on the grid {grid.points} of this solver, got shape {u.shape}: "
            "build the reference with `benchmark.with_points`"
        )


def _solver(kind: type[Term], grid: Grid, dt: float, rates: tuple[Scalar, Scalar]):
    """An exponax stepper for these rates (of the nonlinear term, and of diffusion)."""
    if all(is_concrete(rate) for rate in rates):
        # Built once and outside any trace: inside a scan its setup would run at every step.
        return _built(kind, grid, dt, tuple(map(float, rates)), jax.config.read("jax_enable_x64"))
    return _build(kind, grid, dt, rates)


@lru_cache(maxsize=32)
def _built(kind, grid, dt, rates, _x64):
    with jax.ensure_compile_time_eval():
        return _build(kind, grid, dt, rates)


def _build(kind: type[Term], grid: Grid, dt: float, rates: tuple[Any, Any]):
    import exponax

    box: tuple[Any, ...] = (grid.dims, grid.lengths[0], grid.points[0], dt)
    if len(set(grid.points)) > 1 or len(set(grid.lengths)) > 1:
        raise SplatopError(f"expected a square box with equal points per axis, got {grid}")
    rate, diffusivity = rates  # numbers, or tracers that stand for them
    if kind is Reaction:
        return exponax.stepper.reaction.AllenCahn(
            *box,
            diffusivity=diffusivity,
            first_order_coefficient=rate,
            third_order_coefficient=-rate,
            order=4,
        )
    return exponax.stepper.Burgers(
        *box,
        diffusivity=diffusivity,
        convection_scale=rate,
        conservative=kind is ConservativeSelfAdvection,
        order=4,
    )

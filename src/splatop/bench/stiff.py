"""What exponential steps save, and what walls cost, beside RK4 and beside a periodic box."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..benchmarks import BENCHMARKS
from ..encoders import LatticeEncoder
from ..equation import EXAMPLES, parse_equation
from ..equation.boundary import domain_from_text
from ..grid import Grid
from ..jets import SplatJets
from ..numerics import Numerics, build_physics
from ..physics import EmbeddedPhysics, Physics
from ..solver import initial_condition, solve
from ..spectral import BoxFilter, resample
from ..stability import RK4_REACH, spectral_radius
from ..stepper import Coefficients
from ..tune import choose_numerics
from ..walls import random_state, solve_between_walls
from .stiff_solvers import Step, as_good, doubled, looped, made_by_exponax, on_grid
from .timing import Measured, measured_times, relative_error

_WALLED = "reaction_diffusion2d"
STIFF = ("kuramoto_sivashinsky", "gray_scott", "kdv", _WALLED)
# Frames after which states are developed: what is smooth at first needs few steps by any scheme.
_DEVELOPED = {"kuramoto_sivashinsky": 200, "gray_scott": 60, "kdv": 40, _WALLED: 50}
# Of these, the last ones choose the numerics.
_FRAMES = 10
# Frames in one step: one of KdV takes few steps of ETDRK4, and fewer than one cannot be counted.
_STRIDE = {"kdv": 4}
# Points of data in 2D: states on the examples' own grids hold nothing that these would add.
_DATA = 160
# An error is no larger than another one if it is within what single precision leaves open.
_EQUAL = 1.05
# Steps in one compiled loop when times are taken.
_LOOP = 20
NOT_REACHED = "no grid and step of exponax that was tried is as accurate"


@dataclass(frozen=True)
class _Problem:
    """Φ by scheme and substeps, those that `tune` chose, a frame and the next one, and exponax
    beside it: on states that are `spread` onto its own box."""

    name: str
    build: Callable[[str, int], Physics]
    chosen: tuple[str, int]
    coefficients: Coefficients
    before: Array
    after: Array
    make: Callable[[int, float], Step]
    spread: Callable[[Array], Array] = lambda u: u


def stiff(repeats: int = 5) -> Measured:
    """Evaluations and time of a step by RK4 over those by ETDRK4, at equal or smaller error, and
    the time of the latter over that of exponax's ETDRK4 on the grid that costs it least."""
    found: Measured = {}
    for name in STIFF:
        found |= stiff_row(name, repeats)
    return found


def stiff_row(
    name: str, repeats: int = 5, *, clock: Callable[[], float] = time.perf_counter
) -> Measured:
    """The same of one problem."""
    return _compared(_between_walls() if name == _WALLED else _on_rings(name), repeats, clock)


def _on_rings(name: str) -> _Problem:
    example, stride = EXAMPLES[name], _STRIDE.get(name, 1)
    grid = Grid(example.points, example.lengths)
    u0 = initial_condition(
        example.initial, grid, channels=len(example.equation.fields), key=jax.random.key(0)
    )
    frames, _ = solve(
        example.equation,
        example.coefficients,
        u0,
        lengths=grid.lengths,
        dt=example.dt,
        steps=_DEVELOPED[name],
        tolerance=1e-8,
    )
    frames, dt = frames[-_FRAMES - 1 :], stride * example.dt
    tuned = choose_numerics(
        example.equation, example.coefficients, frames, lengths=grid.lengths, dt=dt
    )

    def build(scheme: str, count: int) -> Physics:
        numerics = replace(tuned.numerics, integrator=scheme, substeps=count)
        return build_physics(example.equation, numerics, lengths=grid.lengths, dt=dt)

    points = grid.points if grid.dims == 1 else (_DATA,) * grid.dims
    with jax.enable_x64(True):
        pair = [np.asarray(resample(jnp.asarray(frames[n]), points)) for n in (-1 - stride, -1)]
    return _Problem(
        name,
        build,
        (tuned.numerics.integrator, tuned.numerics.substeps),
        example.coefficients,
        *(jnp.asarray(frame, jnp.float32) for frame in pair),
        make=made_by_exponax(name, example.coefficients, grid.lengths[0], grid.dims),
    )


def _between_walls() -> _Problem:
    benchmark = BENCHMARKS[_WALLED].with_points(_DATA)
    grid, values = benchmark.grid, benchmark.coefficients
    place = {"domain": benchmark.domain, "grid": grid}
    u0 = random_state(benchmark.equation, values, key=jax.random.key(0), **place)
    frames, _ = solve_between_walls(
        benchmark.equation, values, u0, dt=benchmark.dt, steps=_DEVELOPED[_WALLED], **place
    )
    frames = frames[-_FRAMES - 1 :]
    placed = {"domain": benchmark.domain, "layout": grid.layout, "dt": benchmark.dt}
    tuned = choose_numerics(benchmark.equation, values, frames, lengths=benchmark.lengths, **placed)

    def build(scheme: str, count: int) -> Physics:
        numerics = replace(tuned.numerics, integrator=scheme, substeps=count)
        return build_physics(benchmark.equation, numerics, **placed)

    return _Problem(
        _WALLED,
        build,
        (tuned.numerics.integrator, tuned.numerics.substeps),
        values,
        jnp.asarray(frames[-2], jnp.float32),
        jnp.asarray(frames[-1], jnp.float32),
        make=made_by_exponax(_WALLED, values, 2 * grid.lengths[0], grid.dims),
        spread=doubled,
    )


def _compared(problem: _Problem, repeats: int, clock: Callable[[], float]) -> Measured:
    """RK4 at the fewest substeps that keep it stable, ETDRK4 at the fewest no less accurate; Φ as
    `tune` chose it, and exponax at its error. Each as a rollout carries its state."""
    build, before, after = problem.build, problem.before, problem.after
    numbers, key = dict(problem.coefficients), f"stiff_{problem.name}"

    def error(scheme: str, count: int) -> float:
        step = jax.jit(lambda u: build(scheme, count)(u, numbers))
        return relative_error(step(before), after)

    one = build("rk4", 1)
    rk4 = max(1, math.ceil(1.15 * spectral_radius(one, before, numbers) * one.dt / RK4_REACH))
    target = error("rk4", rk4)
    etd = next((n for n in range(1, rk4) if error("etdrk4", n) <= _EQUAL * target), rk4)
    reached, own = error("etdrk4", etd), error(*problem.chosen)
    contenders: dict[str, tuple[Callable, tuple]] = {}
    for called, how in (("rk4", ("rk4", rk4)), ("etdrk4", ("etdrk4", etd)), ("Φ", problem.chosen)):
        physics = build(*how)
        step = partial(physics.carried, coefficients=numbers)
        contenders[called] = looped(step, _LOOP), (physics.enter(before),)
    theirs, wanted = problem.spread(before), problem.spread(after)
    solvers = as_good(problem.make, theirs, wanted, dt=one.dt, error=_EQUAL * own)
    for solver in solvers:
        start = on_grid(theirs, solver.points)
        contenders[f"{solver.points[0]}"] = looped(solver, _LOOP), (start,)
    times = measured_times(contenders, repeats, clock=clock)
    found: Measured = {
        f"{key}_rk4_substeps": float(rk4),
        f"{key}_etdrk4_substeps": float(etd),
        f"{key}_evaluations_saved": rk4 / etd,
        f"{key}_time_saved": times["rk4"] / times["etdrk4"],
        f"{key}_rk4_error": target,
        f"{key}_etdrk4_error": reached,
        f"{key}_chosen": f"{problem.chosen[1]} of {problem.chosen[0].upper()}",
        f"{key}_chosen_error": own,
    }
    if not solvers:
        return found | {f"{key}_over_exponax": NOT_REACHED}
    best = min(solvers, key=lambda s: times[f"{s.points[0]}"])
    return found | {
        f"{key}_over_exponax": times["Φ"] / times[f"{best.points[0]}"],
        f"{key}_exponax_points": float(best.points[0]),
        f"{key}_exponax_substeps": float(best.substeps),
        f"{key}_exponax_error": best.error,
    }


def walls(repeats: int = 20, anchors: int = 40) -> Measured:
    """The right-hand side on a bounded 2D box over that on a periodic one with as many anchors."""
    equation = parse_equation("dt(u) = D*lap(u) + u - u^3 - v; dt(v) = D*lap(v) + u - v", dims=2)
    domain = domain_from_text(
        "all: dn(u) = 0, dn(v) = 0", lengths=(1.0, 1.0), fields=equation.fields
    )
    numerics = Numerics("none", (), 0.0, (anchors, anchors), 1)
    bounded = build_physics(equation, numerics, domain=domain, layout=("cells", "cells"), dt=0.1)
    band = (anchors - 6) // 2
    jets = SplatJets(
        encoder=LatticeEncoder((anchors, anchors)),
        lengths=(1.0, 1.0),
        filter=BoxFilter((float(band), float(band))),
    )
    periodic = EmbeddedPhysics(equation=equation, jets=jets, dt=0.1)
    rng = np.random.default_rng(0)
    u = jnp.asarray(rng.normal(size=(2, 128, 128)), jnp.float32)
    numbers = {"D": 1e-3}
    contenders = {}
    for name, physics in (("bounded", bounded), ("periodic", periodic)):
        state, rate = physics.motion(u, numbers)
        contenders[name] = (rate, (state,))
    times = measured_times(contenders, repeats)
    return {"walls_right_side_over_periodic": times["bounded"] / times["periodic"]}

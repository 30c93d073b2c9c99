"""What exponential steps save, and what walls cost, beside RK4 and beside a periodic box."""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from ..benchmarks import BENCHMARKS
from ..encoders import LatticeEncoder
from ..equation import EXAMPLES, Equation, parse_equation
from ..equation.boundary import domain_from_text
from ..grid import Grid
from ..jets import SplatJets
from ..numerics import Numerics, build_physics
from ..physics import EmbeddedPhysics, Physics
from ..solver import initial_condition, solve
from ..spectral import BoxFilter
from ..stability import RK4_REACH, spectral_radius
from ..stepper import Coefficients
from ..tune import choose_numerics
from ..walls import random_state, solve_between_walls
from .timing import Measured, measured_times, relative_error

_PERIODIC = ("kuramoto_sivashinsky", "gray_scott", "kdv")
_WALLED = "reaction_diffusion2d"
# Frames after which states are developed: what is smooth at first needs few steps by any scheme.
_DEVELOPED = {"kuramoto_sivashinsky": 200, "gray_scott": 60, "kdv": 40, _WALLED: 50}
# Of these, the last ones choose the numerics.
_FRAMES = 10


def stiff(repeats: int = 5) -> Measured:
    """Evaluations and time of a frame by RK4 over those by ETDRK4, at equal or smaller error."""
    found: Measured = {}
    for name in _PERIODIC:
        example = EXAMPLES[name]
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
        frames = frames[-_FRAMES - 1 :]
        built = _chosen(example.equation, example.coefficients, frames, grid, example.dt)
        found |= _compared(name, built, example.coefficients, frames, repeats)
    benchmark = BENCHMARKS[_WALLED]
    grid, values = benchmark.grid, benchmark.coefficients
    place = {"domain": benchmark.domain, "grid": grid}
    u0 = random_state(benchmark.equation, values, key=jax.random.key(0), **place)
    frames, _ = solve_between_walls(
        benchmark.equation, values, u0, dt=benchmark.dt, steps=_DEVELOPED[_WALLED], **place
    )
    frames = frames[-_FRAMES - 1 :]
    tuned = choose_numerics(
        benchmark.equation,
        values,
        frames,
        lengths=benchmark.lengths,
        dt=benchmark.dt,
        domain=benchmark.domain,
        layout=grid.layout,
    )

    def walled(scheme: str, count: int) -> Physics:
        numerics = replace(tuned.numerics, integrator=scheme, substeps=count)
        return build_physics(
            benchmark.equation,
            numerics,
            domain=benchmark.domain,
            layout=grid.layout,
            dt=benchmark.dt,
        )

    return found | _compared(_WALLED, walled, values, frames, repeats)


def _chosen(
    equation: Equation, coefficients: Coefficients, frames: np.ndarray, grid: Grid, dt: float
):
    tuned = choose_numerics(equation, coefficients, frames, lengths=grid.lengths, dt=dt)

    def built(scheme: str, count: int) -> Physics:
        numerics = replace(tuned.numerics, integrator=scheme, substeps=count)
        return build_physics(equation, numerics, lengths=grid.lengths, dt=dt)

    return built


def _compared(
    name: str, built, coefficients: Coefficients, frames: np.ndarray, repeats: int
) -> Measured:
    """RK4 at the fewest substeps that keep it stable, ETDRK4 at the fewest no less accurate."""
    before, after = (jnp.asarray(frames[n], jnp.float32) for n in (_FRAMES - 1, _FRAMES))
    numbers = dict(coefficients)

    def error(scheme: str, count: int) -> float:
        step = jax.jit(lambda u: built(scheme, count)(u, numbers))
        return relative_error(step(before), after)

    one = built("rk4", 1)
    rk4 = max(1, math.ceil(1.15 * spectral_radius(one, before, numbers) * one.dt / RK4_REACH))
    target = error("rk4", rk4)
    etd = next((n for n in range(1, rk4) if error("etdrk4", n) <= 1.05 * target), rk4)
    times = measured_times(
        {
            scheme: (built(scheme, count), (before, numbers))
            for scheme, count in (("rk4", rk4), ("etdrk4", etd))
        },
        repeats,
    )
    return {
        f"stiff_{name}_rk4_substeps": float(rk4),
        f"stiff_{name}_etdrk4_substeps": float(etd),
        f"stiff_{name}_evaluations_saved": rk4 / etd,
        f"stiff_{name}_time_saved": times["rk4"] / times["etdrk4"],
        f"stiff_{name}_rk4_error": target,
        f"stiff_{name}_etdrk4_error": error("etdrk4", etd),
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

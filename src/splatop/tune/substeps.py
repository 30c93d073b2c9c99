"""How a frame is integrated: which scheme, and in how many substeps."""

import math
from collections.abc import Callable
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..numerics import Numerics
from ..physics import Physics
from ..signal import Signal
from ..stability import RK4_REACH, spectral_radius
from ..stepper import TIME, Coefficients, of_frames
from .tuned import MOST_SUBSTEPS, TIME_TOLERANCE

_NAMES = {"rk4": "RK4", "etdrk4": "ETDRK4"}
# More substeps than this of one scheme are not tried where the other does with fewer.
_HOPELESS = 512


def choose_steps(
    build: Callable[[Numerics], Physics],
    numerics: Numerics,
    states: Float[Array, "n C *N"],
    coefficients: Coefficients,
) -> tuple[Numerics, float, float, str]:
    """The cheaper scheme that is stable and converged to the tolerance, its error over a frame, the
    reach of its substeps, and the reason in words. A time `t` among the coefficients is one for
    each state."""
    physics = build(numerics)
    dt = physics.dt
    last = of_frames(coefficients, -1)
    radius = {
        "rk4": spectral_radius(physics, states[-1], last),
        "etdrk4": spectral_radius(physics, states[-1], last, rest=True),
    }
    moments = {
        name: jax.tree.map(jnp.asarray, value)
        for name, value in coefficients.items()
        if name == TIME or isinstance(value, Signal)
    }
    coefficients = {k: v for k, v in coefficients.items() if k not in moments}

    @eqx.filter_jit
    def advance(physics, states, moments, coefficients):  # folded for minutes if constants
        return jax.vmap(lambda u, now: physics(u, {**coefficients, **now}))(states, moments)

    def converge(scheme: str) -> tuple[int, float]:
        def step(count: int) -> Array:
            physics = build(replace(numerics, integrator=scheme, substeps=count))
            return advance(physics, states, moments, coefficients)

        stable = count = max(1, math.ceil(1.15 * radius[scheme] * dt / RK4_REACH))
        if scheme == "rk4" and count > _HOPELESS and 4 * radius["etdrk4"] < radius["rk4"]:
            return count, math.nan
        while True:
            coarse, fine = step(count), step(2 * count)
            # Fourth order at half the step has 1/16 of the error: the difference is 15/16 of it.
            error = float(jnp.linalg.norm(coarse - fine) / jnp.linalg.norm(fine)) * 16 / 15
            if error <= TIME_TOLERANCE or count >= max(MOST_SUBSTEPS, stable):
                return count, error
            growth = (error / TIME_TOLERANCE) ** 0.25 if math.isfinite(error) else 2.0
            more = max(count + 1, math.ceil(count * min(growth, 4.0)))
            count = min(more, max(MOST_SUBSTEPS, stable))

    best = {"rk4": converge("rk4")}
    if radius["etdrk4"] < 0.9 * radius["rk4"]:  # something is diagonal, and it is what is fast
        best["etdrk4"] = converge("etdrk4")
    # A substep of either takes four evaluations, which cost ETDRK4 no more (`bench --only stiff`).
    met = {name: count for name, (count, error) in best.items() if error <= TIME_TOLERANCE}
    scheme = min(met or best, key=lambda name: (met or best)[name])
    count, error = best[scheme]
    reach = radius[scheme] * dt / count
    reason = (
        f"substeps: {count} of {_NAMES[scheme]} per frame; |λ| dt = {reach:.2g} each, of the "
        f"{RK4_REACH} that it allows; halving them changes a frame by {error:.1e} "
        f"(wanted {TIME_TOLERANCE:.0e})"
    )
    other = next((name for name in best if name != scheme), None)
    if other is not None:
        reason += f"; {_NAMES[other]} would take {best[other][0]}"
    return replace(numerics, integrator=scheme, substeps=count), error, reach, reason

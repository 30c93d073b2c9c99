"""One frame ahead inside the band: Φ with enough substeps, or its multipliers on Fourier modes."""

import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..equation import Equation
from ..errors import SplatopError
from ..physics import EmbeddedPhysics
from ..spectral import Field, from_modes, to_modes
from ..stepper import Coefficients
from .problem import Problem, Reduced

# Error of RK4 over one frame, relative to the change; and the most substeps spent on it.
_TIME_TOLERANCE = 1e-6
_MOST_SUBSTEPS = 96
_MODAL_SUBSTEPS = 16
# RK4 is stable up to rates of 2.78 per step.
_STABLE = 2.5
_POWER_ITERATIONS = 24


class Settings(NamedTuple):
    """What compiled code depends on besides shapes.

    `modal`: the flow is linear and the same everywhere, so it multiplies each Fourier mode.
    """

    unknown: tuple[str, ...]
    dt: float
    substeps: int
    modal: bool


def settings_for(problem: Problem, reduced: Reduced, x: np.ndarray) -> Settings:
    """Enough substeps of RK4 that its error does not count beside that of the data."""
    state = reduced.states[len(reduced.states) // 2]
    noise = np.random.default_rng(0).standard_normal(state.shape)
    point = jnp.asarray(x)
    draft = Settings(problem.unknown, problem.dt, 1, False)
    rate, asymmetry = _probe(
        problem.equation, reduced, point, problem.given, (draft, state, noise * np.std(state))
    )
    z = float(rate) * problem.dt
    if not math.isfinite(z):
        return draft._replace(substeps=_MOST_SUBSTEPS)
    if problem.equation.degree <= 1 and float(asymmetry) < 1e-9:
        # Modes turn independently: one that turns by z in s steps is off by (z/s)^4/120 of it.
        accurate = z / (120 * _TIME_TOLERANCE) ** 0.25
        return draft._replace(
            substeps=_MODAL_SUBSTEPS * math.ceil(accurate / _MODAL_SUBSTEPS), modal=True
        )
    stable = draft._replace(substeps=_rounded(z / _STABLE))
    error = float(_step_error(problem.equation, reduced, point, problem.given, (stable, state)))
    if not math.isfinite(error):
        return draft._replace(substeps=_MOST_SUBSTEPS)
    tolerance = max(_TIME_TOLERANCE, 0.01 * problem.spectrum.relative_noise)
    return stable._replace(substeps=_rounded(stable.substeps * (error / tolerance) ** 0.25))


def check_reached(problem: Problem, residual: np.ndarray, x: np.ndarray) -> None:
    """Refuse a flow that blows up at the coefficients where the search began."""
    if not np.isfinite(residual).all():
        values = ", ".join(f"{k} = {v:.3g}" for k, v in zip(problem.unknown, x, strict=True))
        raise SplatopError(
            f"expected a flow that stays finite, the equation blows up within a frame at {values}: "
            "check the time step and the signs, or give values to start from"
        )


def named(names: tuple[str, ...], x: Float[Array, " p"], known: Coefficients) -> Coefficients:
    return {**known, **{name: x[i] for i, name in enumerate(names)}}


def propagator(
    equation: Equation, reduced: Reduced, coefficients: Coefficients, settings: Settings
) -> Callable[[Field], Field]:
    """The map from one frame to the next."""
    physics = EmbeddedPhysics(
        equation, reduced.jets, settings.dt, settings.substeps, working_grid=False
    )
    if not settings.modal:
        return lambda u: physics(u, coefficients)
    channels, points = reduced.states.shape[1], reduced.points
    # What one impulse per channel becomes holds the factor on every mode.
    impulse = np.zeros((channels, channels, *points))
    impulse[(np.arange(channels), np.arange(channels), *(0,) * len(points))] = math.prod(points)
    band = reduced.jets.filter
    responses = jax.vmap(lambda u: to_modes(physics(band(u, reduced.jets.lengths), coefficients)))(
        jnp.asarray(impulse)
    )

    def advance(u: Field) -> Field:
        return from_modes(jnp.einsum("io...,i...->o...", responses, to_modes(u)), points)

    return advance


@eqx.filter_jit
def _probe(
    equation: Equation, reduced: Reduced, x: Float[Array, " p"], known: Coefficients, at
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Spectral radius of the linearised equation, by power iteration inside the band, and how
    much the equation depends on the place (or acts on nothing)."""
    settings, state, noise = at
    physics = EmbeddedPhysics(equation, reduced.jets, settings.dt, working_grid=False)
    coefficients = named(settings.unknown, x, known)
    band, lengths = reduced.jets.filter, reduced.jets.lengths
    noise = band(jnp.asarray(noise), lengths)

    def tendency(u):
        return band(physics.tendency(u, coefficients), lengths)

    def iterate(carry, _):
        v, _growth = carry
        v = v / jnp.maximum(jnp.linalg.norm(v.ravel()), 1e-300)
        w = jax.jvp(tendency, (jnp.asarray(state),), (v,))[1]
        return (w, jnp.linalg.norm(w.ravel())), None

    rate = jax.lax.scan(iterate, (noise, jnp.zeros(())), length=_POWER_ITERATIONS)[0][1]
    axes = tuple(range(1, noise.ndim))
    shifts = tuple(range(1, noise.ndim))  # different along each axis
    moved = jnp.roll(tendency(jnp.roll(noise, shifts, axes)), tuple(-s for s in shifts), axes)
    here = tendency(noise)
    off = jnp.abs(moved - here).max() + jnp.abs(tendency(jnp.zeros_like(noise))).max()
    return rate, off / jnp.maximum(jnp.abs(here).max(), 1e-300)


@eqx.filter_jit
def _step_error(
    equation: Equation, reduced: Reduced, x: Float[Array, " p"], known: Coefficients, at
) -> Float[Array, ""]:
    """What half the step length changes in one frame, relative to what the frame changes."""
    settings, state = at
    coefficients = named(settings.unknown, x, known)
    coarse, fine = (
        propagator(equation, reduced, coefficients, settings._replace(substeps=n))(state)
        for n in (settings.substeps, 2 * settings.substeps)
    )
    return jnp.linalg.norm((coarse - fine).ravel()) / jnp.linalg.norm((fine - state).ravel())


def _rounded(substeps: float) -> int:
    """Up to 2^k or 3·2^k, so that trajectories share compiled code."""
    substeps = min(max(substeps, 1.0), _MOST_SUBSTEPS)
    power = 2 ** math.ceil(math.log2(substeps) - 1e-9)
    return power * 3 // 4 if power >= 4 and substeps <= power * 3 / 4 else power

"""Identification from noisy frames: the initial state is estimated along with the coefficients.

Matching noisy frame to noisy frame takes the noise in the input for signal that decays, which
biases damping upward. Here one clean trajectory is matched to all frames. For white noise this is
the maximum-likelihood estimate. The state is eliminated by variable projection, matrix free: its
normal matrix `Σ_n J_nᵀ J_n` is close to a multiple of the identity unless the flow damps strongly,
so a few conjugate-gradient iterations solve for it.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..equation import Equation
from ..stepper import Coefficients
from .problem import Problem, Reduced
from .propagate import Settings, check_reached, named, propagator, settings_for
from .uncertainty import Fit, solve, spread

_ITERATIONS = 15
_LEAST_STEP = 1e-3
_GAIN = 1e-3
# Steps need not be exact, the next iteration corrects them.
_CG_TOLERANCE = 1e-4
_CG_ITERATIONS = 60
# Residual variance up to this multiple of the noise measured beforehand is the noise itself.
_EXPLAINED = 1.3


class _Linearised(NamedTuple):
    """At one point: the residual; columns and residual without what a change of state explains;
    and those changes of state."""

    residual: Array
    columns: Array
    remainder: Array
    column_states: Array
    state: Array


def fit(problem: Problem, reduced: Reduced, start: np.ndarray) -> Fit:
    """The coefficients of the one trajectory that comes closest to all frames."""
    reduced = _noise_weighted(problem, reduced)
    x, at = _minimise(problem, reduced, start)
    residual = np.asarray(at.residual)
    steps = len(residual) - 1
    expected = np.sqrt(steps) * reduced.noise(problem.spectrum)
    ages = np.arange(len(residual)) - steps / 2
    aged = reduced.weigh(reduced.states) * ages.reshape(-1, *(1,) * (residual.ndim - 1))
    found = spread(
        np.asarray(at.columns),
        residual,
        freedom=steps * reduced.freedom - len(x),
        dims=problem.grid.dims,
        rounding=problem.precision * float(np.linalg.norm(aged)),
        white=bool(np.sum(residual**2) <= _EXPLAINED * expected**2),
    )
    change = max(reduced.change, 1e-300)
    return Fit(x, found, float(np.linalg.norm(residual)) / change, expected / change)


def _minimise(
    problem: Problem, reduced: Reduced, start: np.ndarray
) -> tuple[np.ndarray, _Linearised]:
    """Gauss-Newton over coefficients and state, with step halving."""
    settings = settings_for(problem, reduced, start)

    def linearise(x: np.ndarray, state: np.ndarray) -> _Linearised:
        point = jnp.asarray(x), jnp.asarray(state)
        return _linearise(problem.equation, reduced, *point, problem.given, settings)

    def cost_at(x: np.ndarray, state: np.ndarray) -> float:
        point = jnp.asarray(x), jnp.asarray(state)
        return float(_cost(problem.equation, reduced, *point, problem.given, settings))

    x, state = np.array(start), reduced.states[0]
    at = linearise(x, state)
    check_reached(problem, np.asarray(at.residual), x)
    for _ in range(_ITERATIONS):
        columns, remainder = np.asarray(at.columns), np.asarray(at.remainder)
        step = solve(columns, remainder)
        state_step = np.asarray(at.state) - np.tensordot(step, np.asarray(at.column_states), 1)
        cost = float(np.sum(np.square(at.residual)))
        gain = cost - float(np.sum((remainder - np.tensordot(step, columns, axes=1)) ** 2))
        factor = 1.0
        while factor > _LEAST_STEP and not cost_at(
            x + factor * step, state + factor * state_step
        ) <= cost * (1 + 1e-9):
            factor /= 2
        if factor <= _LEAST_STEP:
            break
        x, state = x + factor * step, state + factor * state_step
        at = linearise(x, state)
        # A gain of one variance is a step of one standard error.
        if factor == 1 and gain <= _GAIN * cost / columns[0].size:
            break
    return x, at


def _noise_weighted(problem: Problem, reduced: Reduced) -> Reduced:
    """Channels weighted by their noise, or by their size where there is none to speak of."""
    noise = np.maximum(problem.spectrum.noise, 1e-7 * problem.spectrum.scale)
    return eqx.tree_at(lambda r: r.weights, reduced, 1 / np.where(noise > 0, noise, 1.0))


def _predict(equation: Equation, reduced: Reduced, known: Coefficients, settings: Settings):
    steps = len(reduced.states) - 1

    def predict(state, x):
        advance = propagator(equation, reduced, named(settings.unknown, x, known), settings)

        def step(u, _):
            u = advance(u)
            return u, u

        first = reduced.jets.filter(state, reduced.jets.lengths)
        later = jax.lax.scan(step, first, length=steps)[1]
        return reduced.weigh(jnp.concatenate([first[None], later]))

    return predict


@eqx.filter_jit
def _cost(
    equation: Equation,
    reduced: Reduced,
    x: Float[Array, " p"],
    state: Array,
    known: Coefficients,
    settings: Settings,
) -> Float[Array, ""]:
    predict = _predict(equation, reduced, known, settings)
    return jnp.sum(jnp.square(reduced.weigh(reduced.states) - predict(state, x)))


@eqx.filter_jit
def _linearise(
    equation: Equation,
    reduced: Reduced,
    x: Float[Array, " p"],
    state: Array,
    known: Coefficients,
    settings: Settings,
) -> _Linearised:
    predict = _predict(equation, reduced, known, settings)
    predicted, forward = jax.linearize(lambda s: predict(s, x), jnp.asarray(state))
    backward = jax.linear_transpose(forward, state)
    columns = jax.vmap(
        lambda direction: jax.jvp(lambda x: predict(state, x), (x,), (direction,))[1]
    )(jnp.eye(len(x)))
    residual = reduced.weigh(reduced.states) - predicted

    def eliminate(target):
        """What a change of state leaves of a target, and that change."""
        size = jnp.maximum(jnp.linalg.norm(target.ravel()), 1e-300)
        step, _ = jax.scipy.sparse.linalg.cg(
            lambda s: backward(forward(s))[0],
            backward(target / size)[0],
            tol=_CG_TOLERANCE,
            maxiter=_CG_ITERATIONS,
        )
        return target - size * forward(step), size * step

    remainders, steps = jax.vmap(eliminate)(jnp.concatenate([columns, residual[None]]))
    return _Linearised(residual, remainders[:-1], remainders[-1], steps[:-1], steps[-1])

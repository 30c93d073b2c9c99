"""A first estimate inside the band: the paper's regression, also for unknowns that enter
nonlinearly."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..equation import Equation
from ..errors import SplatopError
from ..stepper import Coefficients
from .columns import columns_of
from .problem import Problem, Reduced
from .propagate import named
from .regression import PAPER_FRAMES, central_difference
from .uncertainty import levenberg_marquardt, solve

# Where the search for a nonlinear unknown begins, both signs, and how many beginnings are tried.
_MAGNITUDES = 10.0 ** np.arange(-3, 2.01, 0.5)
_MOST_STARTS = 600
_REFINED = 4


def first_estimate(problem: Problem, reduced: Reduced) -> np.ndarray:
    """Minimises `‖∂u/∂t - F(u; λ)‖` at the middle of the window."""
    centre, slope = centre_and_slope(reduced.states[problem.pieces // 2], problem.dt)

    def linearise(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        residual, columns = _linearise(
            problem.equation,
            reduced,
            jnp.asarray(x),
            problem.given,
            (problem.unknown, centre, slope),
        )
        return np.asarray(residual).ravel(), np.asarray(columns).reshape(len(x), -1)

    best, least = None, np.inf
    for start in _starts(problem, reduced, centre, slope):
        x, residual, _ = levenberg_marquardt(linearise, start)
        if residual @ residual < least:
            best, least = x, residual @ residual
    if best is None:
        raise SplatopError(
            f"found no values of {', '.join(problem.unknown)} at which the equation is finite: "
            "give starting values, as in unknown={'a': 0.5}"
        )
    return best


def centre_and_slope(states: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """A state in the middle of the window and its time derivative, from seven frames at most."""
    frames = min(len(states), PAPER_FRAMES)
    if frames == 2:
        return (states[0] + states[1]) / 2, (states[1] - states[0]) / dt
    frames -= 1 - frames % 2
    first = (len(states) - frames) // 2
    window = states[first : first + frames]
    slope = np.tensordot(central_difference(frames), window, axes=1) / dt
    return window[frames // 2], slope


def _starts(
    problem: Problem, reduced: Reduced, centre: np.ndarray, slope: np.ndarray
) -> list[np.ndarray]:
    """Where to begin: zero for linear unknowns, the best of many values for the others."""
    searched = [name for name in problem.nonlinear if name not in problem.starts]
    given = np.array([problem.starts.get(name, 0.0) for name in problem.unknown])
    if not searched:
        return [given]
    values = np.concatenate([_MAGNITUDES, -_MAGNITUDES])
    trials = list(itertools.islice(itertools.product(values, repeat=len(searched)), 200_000))
    if len(trials) > _MOST_STARTS:
        chosen = np.random.default_rng(0).choice(len(trials), _MOST_STARTS, replace=False)
        trials = [trials[i] for i in chosen]
    linear = tuple(n for n in problem.unknown if n not in problem.nonlinear)
    rated = []
    for trial in trials:
        tried = dict(zip(searched, map(float, trial), strict=True))
        at = {**problem.known, **problem.starts, **tried}
        rated.append(_rate(problem, reduced, linear, at, (centre, slope)))
    rated.sort(key=lambda one: one[0])
    return [x for error, x in rated[:_REFINED] if np.isfinite(error)]


def _rate(
    problem: Problem,
    reduced: Reduced,
    linear: tuple[str, ...],
    at: dict[str, float],
    window: tuple[np.ndarray, np.ndarray],
) -> tuple[float, np.ndarray]:
    """Residual with the linear unknowns solved for, and all values in order."""
    centre, slope = window
    traced = {name: jnp.asarray(value) for name, value in at.items()}
    columns = columns_of(problem.equation, reduced.jets, jnp.asarray(centre), linear, traced)
    target = reduced.weigh(slope - np.asarray(columns.offset))
    values = dict(at)
    if linear and np.isfinite(target).all():
        matrix = np.stack([reduced.weigh(np.asarray(columns.parts[n]).sum(0)) for n in linear])
        if not np.isfinite(matrix).all():
            return np.inf, np.array([])
        beta = solve(matrix, target)
        target = target - np.tensordot(beta, matrix, axes=1)
        values.update(zip(linear, map(float, beta), strict=True))
    error = float(np.sum(target**2))
    return (error if np.isfinite(error) else np.inf), np.array([values[n] for n in problem.unknown])


@eqx.filter_jit
def _linearise(
    equation: Equation, reduced: Reduced, x: Float[Array, " p"], known: Coefficients, settings
) -> tuple[Array, Array]:
    names, centre, slope = settings
    centre = jnp.asarray(centre)
    jet = reduced.jets(centre, sorted(equation.derivatives(centre.ndim - 1)))

    def tendency(x):
        return reduced.weigh(equation(jet, named(names, x, known)))

    columns = jax.vmap(lambda direction: jax.jvp(tendency, (x,), (direction,))[1])(jnp.eye(len(x)))
    return reduced.weigh(slope) - tendency(x), columns

"""A first estimate inside the band: the paper's regression, also for unknowns that enter
nonlinearly."""

import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..data.times import is_even
from ..equation import Equation
from ..errors import SplatopError
from ..stepper import TIME, Coefficients
from .columns import Columns, columns_of, driven_jet
from .inverse import InverseProblem
from .propagate import named
from .reduced import Reduced
from .regression import PAPER_FRAMES, central_difference
from .uncertainty import levenberg_marquardt, solve

# Where the search for a nonlinear unknown begins, both signs, and how many beginnings are tried.
_MAGNITUDES = 10.0 ** np.arange(-3, 2.01, 0.5)
_MOST_STARTS = 600
_REFINED = 4
# Moments looked at where the equation depends on time.
_MOMENTS = 48


def first_estimate(problem: InverseProblem, reduced: Reduced) -> np.ndarray:
    """Minimises `‖∂u/∂t - F(u; λ)‖` at the middle of the window, or at several moments where the
    equation depends on time."""
    window = _windows(problem, reduced)

    def linearise(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        residual, columns = _linearise(
            problem.equation,
            reduced,
            jnp.asarray(x),
            problem.given,
            (problem.unknown, *window),
        )
        return np.asarray(residual).ravel(), np.asarray(columns).reshape(len(x), -1)

    best, least = None, np.inf
    for start in _starts(problem, reduced, window):
        x, residual, _ = levenberg_marquardt(linearise, start)
        if residual @ residual < least:
            best, least = x, residual @ residual
    if best is None:
        raise SplatopError(
            f"found no values of {', '.join(problem.unknown)} at which the equation is finite: "
            "give starting values, as in unknown={'a': 0.5}"
        )
    return best


# States `(m, C, *M)`, their time derivatives, the times `(m,)` at which they are, and the inputs.
Window = tuple[np.ndarray, np.ndarray, np.ndarray, Any]


def _windows(problem: InverseProblem, reduced: Reduced) -> Window:
    """States in the middle of seven frames at most: of one piece, or of all where what happens
    depends on when."""
    pieces, length = reduced.states.shape[:2]
    width = min(length, PAPER_FRAMES)
    if width > 2:
        width -= 1 - width % 2
    which = [(pieces // 2, (length - width) // 2)]
    if problem.equation.uses_time:
        every = [(s, first) for s in range(pieces) for first in range(length - width + 1)]
        chosen = np.linspace(0, len(every) - 1, min(_MOMENTS, len(every))).astype(int)
        which = [every[i] for i in np.unique(chosen)]
    found = [
        centre_and_slope(states[first : first + width], times[first : first + width])
        for states, times, first in ((reduced.states[s], problem.times[s], f) for s, f in which)
    ]
    centres, slopes, times = (np.stack(part) for part in zip(*found, strict=True))
    each = [reduced.moment(s, first + width // 2) for s, first in which]
    drive = jax.tree.map(lambda *own: jnp.stack(own), *each)
    drive.pop(TIME)
    return centres, slopes, times, drive


def centre_and_slope(
    states: np.ndarray, times: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The state in the middle of an odd number of frames, or between two, its time derivative, and
    when it is."""
    if len(states) == 2:
        slope = (states[1] - states[0]) / (times[1] - times[0])
        return (states[0] + states[1]) / 2, slope, np.asarray(np.mean(times))
    middle = len(states) // 2
    scale = (times[-1] - times[0]) / (len(times) - 1)
    if is_even(times):
        weights = central_difference(len(states))
    else:  # exact for polynomials through all frames
        powers = np.vander((times - times[middle]) / scale, increasing=True).T
        weights = np.linalg.solve(powers, np.eye(len(states))[1])
    slope = np.tensordot(weights, states, axes=1) / scale
    return states[middle], slope, np.asarray(times[middle])


def _starts(problem: InverseProblem, reduced: Reduced, window: Window) -> list[np.ndarray]:
    """Where to begin: zero for linear unknowns, the best of many values for the others."""
    searched = [name for name in problem.nonlinear if name not in problem.starts]
    given = np.array([problem.starts.get(name, 0.0) for name in problem.unknown])
    if not searched:
        return [given]
    usual = np.concatenate([_MAGNITUDES, -_MAGNITUDES])
    rates = problem.equation.rates
    values = [_frequencies(problem) if name in rates else usual for name in searched]
    trials = list(itertools.islice(itertools.product(*values), 200_000))
    if len(trials) > _MOST_STARTS:
        chosen = np.random.default_rng(0).choice(len(trials), _MOST_STARTS, replace=False)
        trials = [trials[i] for i in chosen]
    linear = tuple(n for n in problem.unknown if n not in problem.nonlinear)
    rated = []
    for trial in trials:
        tried = dict(zip(searched, map(float, trial), strict=True))
        at = {**problem.known, **problem.starts, **tried}
        rated.append(_rate(problem, reduced, linear, at, window))
    rated.sort(key=lambda one: one[0])
    return [x for error, x in rated[:_REFINED] if np.isfinite(error)]


def _frequencies(problem: InverseProblem) -> np.ndarray:
    """Where to look for a coefficient that multiplies the time: so close that between two of them
    no phase turns by more than a quarter, and up to what frames can tell apart."""
    span = float(np.ptp(problem.times))
    gap = float(np.median(np.diff(problem.times, axis=1)))
    return np.pi / (2 * span) * np.arange(1, 2 + min(int(2 * span / gap), _MOST_STARTS // 2))


def _rate(
    problem: InverseProblem,
    reduced: Reduced,
    linear: tuple[str, ...],
    at: dict[str, float],
    window: Window,
) -> tuple[float, np.ndarray]:
    """Residual with the linear unknowns solved for, and all values in order."""
    centres, slopes, times, drive = window
    traced = {name: jnp.asarray(value) for name, value in at.items()}
    columns = _all_columns(
        problem.equation,
        reduced.jets,
        (jnp.asarray(centres), jnp.asarray(times), drive),
        linear,
        traced,
    )
    target = reduced.weigh(slopes - np.asarray(columns.offset))
    values = dict(at)
    if linear and np.isfinite(target).all():
        matrix = np.stack([reduced.weigh(np.asarray(columns.parts[n]).sum(1)) for n in linear])
        if not np.isfinite(matrix).all():
            return np.inf, np.array([])
        beta = solve(matrix, target)
        target = target - np.tensordot(beta, matrix, axes=1)
        values.update(zip(linear, map(float, beta), strict=True))
    error = float(np.sum(target**2))
    return (error if np.isfinite(error) else np.inf), np.array([values[n] for n in problem.unknown])


@eqx.filter_jit
def _all_columns(equation, jets, moments, linear, coefficients) -> Columns:
    def at(u, t, drive):
        return columns_of(equation, jets, u, linear, {**coefficients, TIME: t, **drive})

    return jax.vmap(at)(*moments)


@eqx.filter_jit
def _linearise(
    equation: Equation, reduced: Reduced, x: Float[Array, " p"], known: Coefficients, settings
) -> tuple[Array, Array]:
    names, centres, slopes, times, drive = settings

    def jet_of(u, t, drive):
        return driven_jet(equation, reduced.jets, u, {TIME: t, **drive})

    jets = jax.vmap(jet_of)(jnp.asarray(centres), times, drive)

    def tendency(x):
        values = named(names, x, known)
        rates = jax.vmap(lambda jet, t: equation(jet, {**values, TIME: t}))(jets, times)
        return reduced.weigh(rates)

    columns = jax.vmap(lambda direction: jax.jvp(tendency, (x,), (direction,))[1])(jnp.eye(len(x)))
    return reduced.weigh(slopes) - tendency(x), columns

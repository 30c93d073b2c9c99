"""The weak form: the equation integrated against smooth test functions, linear and noise proof.

In space the test functions are the Fourier modes of the band, in time a bell over a few frames:
derivatives move onto them. Noise in the columns shrinks a least-squares estimate towards zero
(errors in variables); its expected share is drawn, and taken out of the normal equations.
"""

from collections.abc import Callable
from functools import lru_cache
from math import comb

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..equation import Equation
from ..errors import SplatopError
from ..signal import held
from ..stepper import TIME, Coefficients
from .columns import columns_of
from .inverse import InverseProblem
from .reduced import Reduced
from .uncertainty import Fit, beyond_noise, solve, spread

WEAK_FRAMES = 5
_WINDOW = 7
_DRAWS = 8
# How often rows are weighed by the noise in them, and modes below which energy hold nothing.
_REWEIGHTED = 2
_NOTHING = 1e-12


def integrate(problem: InverseProblem, reduced: Reduced) -> Fit:
    """The coefficients for which the weak form comes closest."""
    frames = problem.length
    if frames < WEAK_FRAMES:
        raise SplatopError(
            f"expected at least {WEAK_FRAMES} frames for the weak form, got {frames}: "
            "pass more frames, or use the flow method"
        )
    columns, target = _system(problem, reduced, reduced.states)
    ratio = np.sqrt(np.prod(reduced.points) / np.prod(problem.grid.points))
    deviation = (problem.spectrum.noise * ratio).reshape(-1, *(1,) * len(reduced.points))
    generator = np.random.default_rng(0)
    draws = []
    for _ in range(_DRAWS):
        noise = deviation * generator.standard_normal(reduced.states.shape)
        moved, moved_target = _system(problem, reduced, reduced.states + noise)
        draws.append((moved - columns, moved_target - target))
    x = _without_noise(columns, target, draws)
    slopes = np.sqrt(problem.pieces) * float(np.linalg.norm(time_tests(frames)[1]))
    noise = reduced.noise(problem.spectrum) * slopes / problem.dt
    if problem.noisy:
        for _ in range(_REWEIGHTED):
            weigh = _weights(x, draws, reduced.waves)
            own = [(weigh(shake), weigh(moved)) for shake, moved in draws]
            weighed = weigh(columns), weigh(target)
            x = _without_noise(*weighed, own)
        columns, target = weighed
        noise = np.sqrt(np.mean([np.sum(_left(x, *one) ** 2) for one in own]))
    residual = _left(x, columns, target)
    whole = max(float(np.linalg.norm(target)), 1e-300)
    found = spread(
        columns,
        residual,
        freedom=len(target) * reduced.freedom - len(x),
        dims=problem.grid.dims,
        rounding=problem.precision
        * reduced.size
        * np.sqrt(len(target) / (problem.pieces * frames))
        / problem.dt,
        unseen=beyond_noise(residual, noise),
    )
    return Fit(x, found, float(np.linalg.norm(residual)) / whole, noise / whole)


@lru_cache(maxsize=32)
def time_tests(frames: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights `a` on du/dt and `b` on u with `Σ b_n u_n = dt Σ a_n u'_n`, `(windows, frames)` each.

    Both windows are odd. `a` is the squared binomial bell, for which the sums agree for
    polynomials up to twice the order that the window has frames: no error of quadrature is left.
    """
    width = min(frames - 1 + frames % 2, _WINDOW)
    half = width // 2
    n = np.arange(-half, half + 1)
    bell = np.array([comb(2 * half, half + i) ** 2 for i in n], float)
    bell /= bell.sum()
    powers = np.arange(1, 2 * half, 2)
    moments = np.array([p * np.sum(bell * n ** (p - 1.0)) for p in powers])
    positive = n[half + 1 :].astype(float)
    slopes = np.linalg.solve(2 * positive[None] ** powers[:, None], moments)
    slope = np.concatenate([-slopes[::-1], [0.0], slopes])
    starts = range(frames - width + 1)
    a, b = np.zeros((2, len(starts), frames))
    for row, first in enumerate(starts):
        a[row, first : first + width] = bell
        b[row, first : first + width] = slope
    return a, b


def _system(
    problem: InverseProblem, reduced: Reduced, states: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Columns `(p, windows, C, *M)` and the right side, inside the band."""
    tests = time_tests(states.shape[1])
    columns, target = _tested(
        problem.equation,
        reduced,
        jnp.asarray(states),
        problem.given,
        (problem.unknown, problem.dt, *tests),
    )
    return np.asarray(columns), np.asarray(target)


@eqx.filter_jit
def _tested(
    equation: Equation, reduced: Reduced, states: Array, known: Coefficients, tests
) -> tuple[Array, Array]:
    unknown, dt, values, slopes = tests

    def at(u, t, given):
        inputs = {} if given is None else {n: held(f, t) for n, f in zip(names, given, strict=True)}
        return columns_of(equation, reduced.jets, u, unknown, {**known, TIME: t, **inputs})

    names = reduced.inputs
    driving = None if reduced.driving is None else jnp.asarray(reduced.driving)
    found = jax.vmap(jax.vmap(at))(states, jnp.asarray(reduced.times), driving)

    def tested(weights, fields):
        fields = jnp.einsum("wl,sl...->sw...", weights, fields)
        fields = fields.reshape(-1, *fields.shape[2:])
        in_band = jax.vmap(lambda u: reduced.jets.filter(u, reduced.jets.lengths))(fields)
        return reduced.weigh(in_band)

    columns = jnp.stack([tested(values, found.parts[name].sum(2)) for name in unknown])
    return columns, tested(slopes, states) / dt - tested(values, found.offset)


Draws = list[tuple[np.ndarray, np.ndarray]]


def _left(x: np.ndarray, columns: np.ndarray, target: np.ndarray) -> np.ndarray:
    return target - np.tensordot(x, columns, axes=1)


def _weights(x: np.ndarray, draws: Draws, dims: int) -> Callable[[np.ndarray], np.ndarray]:
    """Rows `(..., C, *M)` in units of what noise leaves of each Fourier mode at the values x: high
    derivatives of noise would else outweigh what little the data hold there."""
    axes = tuple(range(-dims, 0))
    left = np.stack([_left(x, *one) for one in draws])
    energy = np.mean(np.abs(np.fft.rfftn(left, axes=axes, norm="ortho")) ** 2, axis=(0, 1))
    # Modes beyond the band hold nothing.
    weight = np.where(energy > _NOTHING * np.max(energy), 1 / np.sqrt(energy + 1e-300), 0.0)

    def weigh(rows: np.ndarray) -> np.ndarray:
        modes = weight * np.fft.rfftn(rows, axes=axes)
        return np.fft.irfftn(modes, s=rows.shape[-dims:], axes=axes)

    return weigh


def _without_noise(columns: np.ndarray, target: np.ndarray, draws: Draws) -> np.ndarray:
    """Least squares, without what noise adds to the normal equations."""
    p = len(columns)
    gram, moment = np.zeros((p, p)), np.zeros(p)
    for moved, moved_target in draws:
        shake = moved.reshape(p, -1)
        gram += shake @ shake.T / len(draws)
        moment += shake @ moved_target.ravel() / len(draws)
    return _corrected(columns.reshape(p, -1), target.ravel(), gram, moment)


def _corrected(
    columns: np.ndarray, target: np.ndarray, gram: np.ndarray, moment: np.ndarray
) -> np.ndarray:
    """The solution of the normal equations without the noise's share, if they allow for it."""
    norms = np.linalg.norm(columns, axis=1)
    norms = np.where(norms > 0, norms, 1.0)
    scaled = columns / norms[:, None]
    clean = scaled @ scaled.T - gram / np.outer(norms, norms)
    least = np.linalg.eigvalsh(scaled @ scaled.T)[0]
    if np.linalg.eigvalsh(clean)[0] < max(1e-3 * least, 1e-12):
        return solve(columns, target)
    return np.linalg.solve(clean, scaled @ target - moment / norms) / norms

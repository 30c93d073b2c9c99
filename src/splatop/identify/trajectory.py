"""Identification from noisy frames: initial states are estimated along with the coefficients.

Matching noisy frame to noisy frame takes the noise in the input for signal that decays, which
biases damping upward. Here one clean trajectory is matched to all frames of a piece. For white
noise this is the maximum-likelihood estimate. The states are eliminated by variable projection:
with their Jacobian where it fits into memory, else by conjugate gradients.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float

from ..equation import Equation
from ..stepper import Coefficients
from .noise import multiplicity, project
from .pieces import SHORTEST, cut
from .problem import Problem, Reduced
from .propagate import Steps, named, propagator
from .uncertainty import LASTING, SLACK, Fit, beyond_noise, solve, spread

_ITERATIONS = 24
_LEAST_STEP = 1e-3
# A search ends when its steps are a tenth of a standard error, and has not settled at a half.
_SETTLED = 0.1
_UNSETTLED = 0.5
# Residuals are in units of the noise, or of 1e-7 of the field: a variance below this is rounding.
_ROUNDING = 1e-2
# A step that gains more than this share of what the last one gained calls for a new tangent.
_SLOW = 0.5
_CG_TOLERANCE = 1e-5
_CG_ITERATIONS = 200
# Numbers in a Jacobian that is kept, 0.4 GB.
_MOST_NUMBERS = 5e7
# Directions differentiated along at once: small arrays cost as much as larger ones.
_BATCH = 32
# A prediction that is off by this share of the field has lost the data.
_LOST = 0.3

Eliminate = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class _Tangent:
    """The prediction linearised at one point.

    `eliminate` splits a target `(S, L, C, *M)` into what no change of states explains, and the
    change `(S, C, *M)` that explains the rest. `columns` `(p, S, L, C, *M)` are what it leaves of
    the derivatives by the coefficients, `changes` the changes that go with them.
    """

    eliminate: Eliminate
    columns: np.ndarray
    changes: np.ndarray


@dataclass(frozen=True)
class _Minimum:
    """Where a search ended, and whether it settled there."""

    x: np.ndarray
    residual: np.ndarray
    tangent: _Tangent
    settled: bool


def fit(problem: Problem, reduced: Reduced, start: np.ndarray, steps: Steps) -> Fit:
    """The coefficients of the trajectories, one for each piece, that come closest to all frames."""
    reduced = _noise_weighted(problem, reduced)
    length = _followed(problem, reduced, start, steps)
    reduced = eqx.tree_at(lambda r: r.states, reduced, cut(reduced.states, length))
    problem = replace(problem, frames=cut(problem.frames, length))
    least = _minimise(problem, reduced, start, steps)
    x, residual, tangent = least.x, least.residual, least.tangent
    own_steps = problem.pieces * (problem.length - 1)
    expected = np.sqrt(own_steps) * reduced.noise(problem.spectrum)
    alike, lasting = _alike(problem, reduced, residual) if problem.noisy else (0.0, 0.0)
    noisy = lasting <= LASTING and bool(np.sum(residual**2) <= (SLACK * expected) ** 2)
    ages = np.arange(problem.length) - (problem.length - 1) / 2
    aged = reduced.weigh(reduced.states) * ages.reshape(1, -1, *(1,) * (residual.ndim - 2))
    flat = problem.pieces * problem.length
    found = spread(
        tangent.columns.reshape(len(x), flat, *residual.shape[2:]),
        residual.reshape(flat, *residual.shape[2:]),
        freedom=own_steps * reduced.freedom - len(x),
        dims=problem.grid.dims,
        rounding=problem.precision * float(np.linalg.norm(aged)),
        unseen=0.0 if noisy else max(beyond_noise(residual, expected), np.sqrt(max(alike, 0.0))),
        white=noisy,
    )
    change = max(reduced.change, 1e-300)
    left = float(np.linalg.norm(residual)) / change
    return Fit(x, found, left, expected / change, lasting, least.settled)


def _alike(problem: Problem, reduced: Reduced, residual: np.ndarray) -> tuple[float, float]:
    """What successive frames of the residual have in common: its energy, and by how many standard
    deviations of white noise that is.

    A missing term leaves a pattern that lasts, in the modes that carry the field; noise does not.
    """
    axes = tuple(range(3, residual.ndim))
    weighted = reduced.weigh(reduced.states)
    field, left = (np.fft.rfftn(part, axes=axes, norm="ortho") for part in (weighted, residual))
    noise = np.square(problem.spectrum.noise * reduced.weights)
    noise = noise * np.prod(reduced.points) / problem.spectrum.points
    noise = np.maximum(noise, 1e-300).reshape(-1, *(1,) * len(axes))
    power = np.mean(np.abs(field) ** 2, axis=(0, 1))
    weights = np.maximum(1 - noise / np.maximum(power, 1e-300), 0.0)
    share = multiplicity(reduced.points) * weights
    products = np.real(left[:, 1:] * np.conj(left[:, :-1]))
    alike = float(np.sum(share * products))
    pairs = products.shape[0] * products.shape[1]
    # The real part of a product of two complex modes of variance v has a variance of v²/2, and
    # stands for two such modes.
    deviation = float(np.sqrt(pairs * np.sum(share * weights * noise**2)))
    return alike, alike / max(deviation, 1e-300)


def _followed(problem: Problem, reduced: Reduced, x: np.ndarray, steps: Steps) -> int:
    """How many frames the equation follows the data from a noisy first frame.

    Beyond that a search for the first state could end in another minimum. Chaotic trajectories
    part soon, from whatever they begin.
    """
    states = jnp.asarray(reduced.states[:, 0])
    predicted = _run(problem.equation, reduced, jnp.asarray(x), states, problem.given, steps)
    axes = tuple(range(2, reduced.states.ndim))
    off = np.sum((np.asarray(predicted) - reduced.weigh(reduced.states)) ** 2, axis=axes)
    size = np.sum(np.mean(reduced.weigh(reduced.states) ** 2, axis=(0, 1)))
    lost = ~(off <= _LOST**2 * size).all(axis=0)
    first = int(np.argmax(lost)) if lost.any() else problem.length
    return max(SHORTEST, first)


def _minimise(problem: Problem, reduced: Reduced, start: np.ndarray, steps: Steps) -> _Minimum:
    """Gauss-Newton over coefficients and states, with step halving. A tangent costs most, so it is
    kept while steps gain quickly."""
    observed = reduced.weigh(reduced.states)

    def residual_at(x: np.ndarray, states: np.ndarray) -> np.ndarray:
        point = jnp.asarray(x), jnp.asarray(states)
        return observed - np.asarray(_run(problem.equation, reduced, *point, problem.given, steps))

    x, states = np.array(start), reduced.states[:, 0]
    residual, tangent = residual_at(x, states), _tangent(problem, reduced, x, states, steps)
    before, fresh, length = np.inf, True, np.inf
    for _ in range(_ITERATIONS):
        remainder, change = tangent.eliminate(residual)
        step = solve(tangent.columns, remainder)
        change = change - np.tensordot(step, tangent.changes, axes=1)
        left = remainder - np.tensordot(step, tangent.columns, axes=1)
        cost = float(np.sum(residual**2))
        gain = cost - float(np.sum(left**2))
        factor, found = 1.0, residual_at(x + step, states + change)
        while factor > _LEAST_STEP and not np.sum(found**2) <= cost * (1 + 1e-9):
            factor /= 2
            found = residual_at(x + factor * step, states + factor * change)
        if factor > _LEAST_STEP:
            x, states, residual = x + factor * step, states + factor * change, found
        # The length of the step in standard errors, which a kept tangent does not tell.
        variance = max(cost / residual.size, _ROUNDING)
        if fresh:
            length = float(np.sqrt(np.sum(np.tensordot(step, tangent.columns, 1) ** 2) / variance))
        if fresh and factor == 1 and length <= _SETTLED:
            break
        slow = factor < 1 or gain > _SLOW * before or gain <= variance
        if slow and fresh and factor <= _LEAST_STEP:
            break
        before, fresh = (np.inf, True) if slow else (gain, False)
        if slow:
            tangent = _tangent(problem, reduced, x, states, steps)
    return _Minimum(x, residual, tangent, length <= _UNSETTLED)


def _tangent(
    problem: Problem, reduced: Reduced, x: np.ndarray, states: np.ndarray, steps: Steps
) -> _Tangent:
    point = jnp.asarray(x), jnp.asarray(states)
    basis = _basis(reduced)
    if len(basis) * reduced.states.size <= _MOST_NUMBERS:
        jacobian, columns = _jacobian(
            problem.equation, reduced, *point, problem.given, (steps, jnp.asarray(basis))
        )
        eliminate = _by_jacobian(np.asarray(jacobian), basis)
    else:
        columns = _columns(problem.equation, reduced, *point, problem.given, steps)

        def by_gradients(target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            how = steps, jnp.asarray(target)
            found = _by_gradients(problem.equation, reduced, *point, problem.given, how)
            return np.asarray(found[0]), np.asarray(found[1])

        eliminate = by_gradients
    left, changes = zip(*(eliminate(column) for column in np.asarray(columns)), strict=True)
    return _Tangent(eliminate, np.stack(left), np.stack(changes))


def _basis(reduced: Reduced) -> np.ndarray:
    """Fields `(n, C, *M)` that span the band: impulses on a grid with a point for each mode."""
    least = tuple(2 * b + 1 for b in reduced.band)
    impulses = np.eye(int(np.prod(least))).reshape(-1, *least)
    fields = project(impulses, reduced.band, reduced.points)
    channels = np.eye(reduced.states.shape[2])
    return np.einsum("cd,k...->ckd...", channels, fields).reshape(
        -1, len(channels), *reduced.points
    )


def _by_jacobian(jacobian: np.ndarray, basis: np.ndarray) -> Eliminate:
    """From the predictions' derivatives `(n, S, L, C, *M)` along the basis."""
    n, pieces = jacobian.shape[:2]
    rows = np.moveaxis(jacobian.reshape(n, pieces, -1), 0, 1)  # (S, n, rows)
    gram = rows @ rows.transpose(0, 2, 1)
    ridge = 1e-12 * np.trace(gram, axis1=1, axis2=2)[:, None, None] / n * np.eye(n)
    factors = [scipy.linalg.cho_factor(one) for one in gram + ridge]

    def eliminate(target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        flat = target.reshape(pieces, -1)
        weights = np.stack(
            [
                scipy.linalg.cho_solve(factor, own @ one)
                for factor, own, one in zip(factors, rows, flat, strict=True)
            ]
        )
        explained = np.einsum("sn,snr->sr", weights, rows)
        return (flat - explained).reshape(target.shape), np.tensordot(weights, basis, axes=1)

    return eliminate


def _noise_weighted(problem: Problem, reduced: Reduced) -> Reduced:
    """Channels weighted by their noise, or by their size where there is none to speak of."""
    noise = np.maximum(problem.spectrum.noise, 1e-7 * problem.spectrum.scale)
    return eqx.tree_at(lambda r: r.weights, reduced, 1 / np.where(noise > 0, noise, 1.0))


def _predict(equation: Equation, reduced: Reduced, known: Coefficients, steps: Steps):
    """Initial states `(S, C, *M)` and coefficients to weighted frames `(S, L, C, *M)`."""
    later_frames = reduced.states.shape[1] - 1

    def predict(states, x):
        coefficients = named(steps.unknown, x, known)
        advance = jax.vmap(propagator(equation, reduced, coefficients, steps.dt, steps.substeps))

        def step(u, _):
            u = advance(u)
            return u, u

        first = jax.vmap(lambda u: reduced.jets.filter(u, reduced.jets.lengths))(states)
        later = jax.lax.scan(step, first, length=later_frames)[1]
        return reduced.weigh(jnp.moveaxis(jnp.concatenate([first[None], later]), 0, 1))

    return predict


@eqx.filter_jit
def _run(
    equation: Equation,
    reduced: Reduced,
    x: Float[Array, " p"],
    states: Array,
    known: Coefficients,
    steps: Steps,
) -> Array:
    return _predict(equation, reduced, known, steps)(states, x)


@eqx.filter_jit
def _jacobian(
    equation: Equation,
    reduced: Reduced,
    x: Float[Array, " p"],
    states: Array,
    known: Coefficients,
    how: tuple[Steps, Array],
) -> tuple[Array, Array]:
    """Derivatives of the prediction along the basis of states, and by the coefficients."""
    steps, basis = how
    forward = jax.linearize(_predict(equation, reduced, known, steps), states, x)[1]

    def along(direction):
        field, e = direction
        return forward(jnp.broadcast_to(field, states.shape), e)

    n, p = len(basis), len(x)
    fields = jnp.concatenate([basis, jnp.zeros((p, *basis.shape[1:]))])
    found = jax.lax.map(along, (fields, jnp.eye(n + p, p, k=-n)), batch_size=_BATCH)
    return found[:n], found[n:]


@eqx.filter_jit
def _columns(
    equation: Equation,
    reduced: Reduced,
    x: Float[Array, " p"],
    states: Array,
    known: Coefficients,
    steps: Steps,
) -> Array:
    predict = _predict(equation, reduced, known, steps)
    return jax.lax.map(
        lambda e: jax.jvp(lambda x: predict(states, x), (x,), (e,))[1], jnp.eye(len(x))
    )


@eqx.filter_jit
def _by_gradients(
    equation: Equation,
    reduced: Reduced,
    x: Float[Array, " p"],
    states: Array,
    known: Coefficients,
    how: tuple[Steps, Array],
) -> tuple[Array, Array]:
    """What a change of states leaves of a target, and that change, by conjugate gradients."""
    steps, target = how
    predict = _predict(equation, reduced, known, steps)
    forward = jax.linearize(lambda states: predict(states, x), states)[1]
    backward = jax.linear_transpose(forward, states)
    precondition = _preconditioner(reduced, named(steps.unknown, x, known), steps.dt)
    size = jnp.maximum(jnp.linalg.norm(target.ravel()), 1e-300)
    change, _ = jax.scipy.sparse.linalg.cg(
        lambda change: backward(forward(change))[0],
        backward(target / size)[0],
        tol=_CG_TOLERANCE,
        maxiter=_CG_ITERATIONS,
        M=jax.vmap(precondition),
    )
    return target - size * forward(change), size * change


def _preconditioner(reduced: Reduced, coefficients: Coefficients, dt: float):
    """The inverse of the states' normal matrix if each mode only decayed by itself.

    A mode that is m times as large from frame to frame is seen `Σ m^2n` times in L frames.
    """
    scheme = reduced.scheme
    if scheme is None:
        return lambda change: change
    decay = jnp.asarray(scheme.tables(dt, coefficients)[0])
    if decay.ndim > 1 + len(reduced.points):  # coupled channels
        return lambda change: change
    frames = np.arange(reduced.states.shape[1]).reshape(-1, *(1,) * decay.ndim)
    seen = jnp.sum(jnp.minimum(jnp.abs(decay), 1.0) ** (2 * frames), axis=0)
    seen = seen * jnp.square(reduced.weights).reshape(-1, *(1,) * len(reduced.points))
    return lambda change: scheme.multiply(1 / seen, change)

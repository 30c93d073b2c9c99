"""A trajectory from each initial state, and its derivatives by states and coefficients.

The states are eliminated by variable projection: with their Jacobian where it fits into memory,
else by conjugate gradients.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float

from ..equation import Equation
from ..stepper import Coefficients
from .followed import Followed
from .inverse import InverseProblem
from .propagate import Steps, named

_CG_TOLERANCE = 1e-5
_CG_ITERATIONS = 200
# Numbers in a Jacobian that is kept, 0.4 GB.
_MOST_NUMBERS = 5e7
# Directions differentiated along at once: small arrays cost as much as larger ones.
_BATCH = 32
# Times a state still a number in single precision.
_LARGEST = 1e30

Eliminate = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Tangent:
    """The prediction linearised at one point.

    `eliminate` splits a target `(S, 1 + L, C, *M)` into what no change of states explains, and the
    change `(S, C, *M)` that explains the rest. `columns` `(p, S, 1 + L, C, *M)` are what it leaves
    of the derivatives by the coefficients, `changes` the changes that go with them.
    """

    eliminate: Eliminate
    columns: np.ndarray
    changes: np.ndarray


def predicted(
    problem: InverseProblem, reduced: Followed, x: np.ndarray, states: np.ndarray, steps: Steps
) -> np.ndarray:
    """Weighted frames `(S, 1 + L, C, *M)`, the first of them what restrains the states."""
    point = jnp.asarray(x), jnp.asarray(states)
    return np.asarray(_run(problem.equation, reduced, *point, problem.given, _traced(steps)))


def trajectories_of(
    problem: InverseProblem, reduced: Followed, x: np.ndarray, states: np.ndarray, steps: Steps
) -> np.ndarray:
    """Frames `(S, L, C, *M)` of the trajectories from these states; zeros beyond those followed."""
    point = jnp.asarray(x), jnp.asarray(states)
    how = problem.given, _traced(steps), _frames
    return np.asarray(_run(problem.equation, reduced, *point, *how))


def tangent(
    problem: InverseProblem, reduced: Followed, x: np.ndarray, states: np.ndarray, steps: Steps
) -> Tangent:
    """The prediction at `x` `(p,)` and these states, linearised, with the states eliminated."""
    point = jnp.asarray(x), jnp.asarray(states)
    directions = reduced.freedom
    if directions <= reduced.directions and directions * reduced.states.size <= _MOST_NUMBERS:
        basis = reduced.basis()
        how = problem.given, (_traced(steps), jnp.asarray(basis))
        jacobian, columns = _jacobian(problem.equation, single(reduced), *point, *how)
        if not np.isfinite(jacobian).all():
            jacobian, columns = _jacobian(problem.equation, reduced, *point, *how)
        eliminate = _by_jacobian(np.asarray(jacobian, np.float64), basis)
        columns = np.asarray(columns, np.float64)
    else:
        columns = _columns(problem.equation, reduced, *point, problem.given, _traced(steps))

        def by_gradients(target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            how = _counted(steps), jnp.asarray(target)
            found = _by_gradients(problem.equation, reduced, *point, problem.given, how)
            return np.asarray(found[0]), np.asarray(found[1])

        eliminate = by_gradients
    left, changes = zip(*(eliminate(column) for column in np.asarray(columns)), strict=True)
    return Tangent(eliminate, np.stack(left), np.stack(changes))


def known_columns(
    problem: InverseProblem, reduced: Followed, x: np.ndarray, states: np.ndarray, steps: Steps
) -> np.ndarray:
    """Derivatives `(k, S, 1 + L, C, *M)` of the prediction by the known coefficients."""
    if not problem.known:
        return np.empty((0, *states.shape))
    swapped = _traced(steps)._replace(unknown=tuple(problem.known))
    values = jnp.asarray(list(problem.known.values()))
    found = {name: jnp.asarray(v) for name, v in zip(problem.unknown, x, strict=True)}
    return np.asarray(
        _columns(problem.equation, reduced, values, jnp.asarray(states), found, swapped)
    )


def _traced(steps: Steps) -> Steps:
    """The same for code that is not compiled anew for another number of substeps; what is
    differentiated backwards needs to know it."""
    substeps = jnp.asarray(steps.substeps)
    return _counted(steps)._replace(substeps=substeps)


def _counted(steps: Steps) -> Steps:
    """The same for code that is not compiled anew for another number of frames."""
    every = np.iinfo(np.int64).max if steps.frames is None else steps.frames
    return steps._replace(frames=jnp.asarray(every))


def single(reduced: Followed) -> Followed:
    """In single precision, which is enough for a tangent: an error of a millionth in it moves what
    noise leaves uncertain by as much of its standard error."""
    arrays, rest = eqx.partition(reduced, eqx.is_inexact_array)
    # What is held to nothing is held as much as single precision can tell.
    cast = jax.tree.map(lambda a: np.clip(a, -_LARGEST, _LARGEST).astype(np.float32), arrays)
    return eqx.combine(cast, rest)


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


def _frames(equation: Equation, reduced: Followed, known: Coefficients, steps: Steps):
    """Initial states `(S, C, *M)` and coefficients to frames `(S, L, C, *M)`."""
    later_frames = reduced.states.shape[1] - 1

    def follow(states, x):
        coefficients = named(steps.unknown, x, known)
        one = reduced.propagator(equation, coefficients, steps.dt, steps.substeps)
        drive = jax.tree.map(jnp.asarray, reduced.drive)
        advance = jax.vmap(lambda u, now, drive: one(u, {**now, **drive}))

        def step(u, at):
            n, now = at
            followed = n < steps.frames
            u = jax.lax.cond(followed, lambda: advance(u, now, drive), lambda: jnp.zeros_like(u))
            return u, u

        first = reduced.confined(states)
        when = {name: jnp.asarray(values).T for name, values in reduced.when.items()}
        later = jax.lax.scan(step, first, (jnp.arange(1, 1 + later_frames), when))[1]
        return jnp.moveaxis(jnp.concatenate([first[None], later]), 0, 1)

    return follow


def _predict(equation: Equation, reduced: Followed, known: Coefficients, steps: Steps):
    """The same to weighted frames `(S, 1 + L, C, *M)`, the first of them what restrains the
    states."""
    follow = _frames(equation, reduced, known, steps)

    def predict(states, x):
        frames = follow(states, x)
        held = reduced.held(frames[:, 0])
        return jnp.concatenate([held[:, None], reduced.weigh(frames)], axis=1)

    return predict


@eqx.filter_jit
def _run(
    equation: Equation,
    reduced: Followed,
    x: Float[Array, " p"],
    states: Array,
    known: Coefficients,
    steps: Steps,
    what: Callable = _predict,
) -> Array:
    return what(equation, reduced, known, steps)(states, x)


@eqx.filter_jit
def _jacobian(
    equation: Equation,
    reduced: Followed,
    x: Float[Array, " p"],
    states: Array,
    known: Coefficients,
    how: tuple[Steps, Array],
) -> tuple[Array, Array]:
    """Derivatives of the prediction along the basis of states, and by the coefficients."""
    steps, basis = how
    kind = jnp.asarray(reduced.states).dtype
    predict = _predict(equation, reduced, known, steps)
    states, basis = states.astype(kind), basis.astype(kind)

    def along(direction):
        field, e = direction
        return jax.jvp(predict, (states, x), (jnp.broadcast_to(field, states.shape), e))[1]

    # Batches of one size: another one at the end would be compiled by itself.
    n, p = len(basis), len(x)
    batches = math.ceil((n + p) / _BATCH)
    size = math.ceil((n + p) / batches)
    fields = jnp.concatenate([basis, jnp.zeros((batches * size - n, *basis.shape[1:]), kind)])
    directions = fields, jnp.eye(len(fields), p, k=-n)
    found = jax.lax.map(along, directions, batch_size=size)
    return found[:n], found[n : n + p]


@eqx.filter_jit
def _columns(
    equation: Equation,
    reduced: Followed,
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
    reduced: Followed,
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
    precondition = reduced.preconditioner(named(steps.unknown, x, known), steps.dt)
    size = jnp.maximum(jnp.linalg.norm(target.ravel()), 1e-300)
    change, _ = jax.scipy.sparse.linalg.cg(
        lambda change: backward(forward(change))[0],
        backward(target / size)[0],
        tol=_CG_TOLERANCE,
        maxiter=_CG_ITERATIONS,
        M=jax.vmap(precondition),
    )
    return target - size * forward(change), size * change

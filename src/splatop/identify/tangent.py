"""Predictions linearised in initial states and coefficients.

The states are eliminated by variable projection: with their Jacobian where it fits into memory,
else by conjugate gradients.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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
from .prediction import columns, counted, prediction, traced, trajectories_of
from .propagate import Lost, Steps, named
from .uncertainty import solve

_CG_TOLERANCE = 1e-5
_CG_ITERATIONS = 200
# Numbers in a Jacobian that is kept, 0.4 GB.
_MOST_NUMBERS = 5e7
# Directions differentiated along at once: small arrays cost as much as larger ones.
_BATCH = 32
# A tangent is as good as another if what it leaves of the coefficients' effects, when states are
# eliminated, differs by this share: an error of e there moves estimates by e of a standard error.
_ALIKE = 0.1
# Times a state still a number in single precision.
_LARGEST = 1e30

Eliminate = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Tangent:
    """The prediction linearised at one point.

    `eliminate` splits a target `(S, 1 + L, C, *M)` into what no change of states explains, and the
    change `(S, C, *M)` that explains the rest. `columns` `(p, S, 1 + L, C, *M)` are what it leaves
    of the derivatives by the coefficients, `by_x`, and `changes` the changes that go with them.
    `rough` is how many substeps it took. `restrained` makes the same tangent for another restraint,
    which costs next to nothing where states have a Jacobian; without one it is None.
    """

    eliminate: Eliminate
    columns: np.ndarray
    changes: np.ndarray
    by_x: np.ndarray
    rough: int | Array
    restrained: Callable[[Followed], "Tangent"] | None = None

    def holds(self, by_x: np.ndarray) -> bool:
        """Whether it still holds where, or as, the derivatives by the coefficients are these."""
        off = [self.eliminate(one)[0] for one in by_x - self.by_x]
        pairs = zip(off, self.columns, strict=True)
        return all(np.linalg.norm(one) <= _ALIKE * np.linalg.norm(own) for one, own in pairs)

    def explained(self, remainder: np.ndarray) -> float:
        """How much of what `eliminate` left is explained by a change of the coefficients."""
        if not np.isfinite(remainder).all():
            return np.inf
        return float(
            np.sum(np.tensordot(solve(self.columns, remainder), self.columns, axes=1) ** 2)
        )


def tangent(
    problem: InverseProblem, reduced: Followed, x: np.ndarray, states: np.ndarray, steps: Steps
) -> Tangent:
    """The prediction at `x` `(p,)` and these states, linearised, with the states eliminated."""
    point = jnp.asarray(x), jnp.asarray(states)
    directions = reduced.freedom
    by_x = columns(problem, reduced, x, states, steps)
    if directions <= reduced.directions and directions * reduced.states.size <= _MOST_NUMBERS:
        return _in_few_substeps(problem, reduced, x, states, steps, by_x)

    def by_gradients(target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        how = counted(steps), jnp.asarray(target)
        found = _by_gradients(problem.equation, reduced, *point, problem.given, how)
        return np.asarray(found[0]), np.asarray(found[1])

    return _eliminated(by_gradients, by_x, steps.rough)


def _eliminated(
    eliminate: Eliminate,
    columns: np.ndarray,
    rough: int | Array,
    restrained: Callable[[Followed], Tangent] | None = None,
) -> Tangent:
    left, changes = zip(*(eliminate(column) for column in columns), strict=True)
    return Tangent(eliminate, np.stack(left), np.stack(changes), columns, rough, restrained)


def _in_few_substeps(
    problem: InverseProblem,
    reduced: Followed,
    x: np.ndarray,
    states: np.ndarray,
    steps: Steps,
    by_x: np.ndarray,
) -> Tangent:
    """The tangent by the states' Jacobian, in so many substeps that derivatives by the coefficients
    come close to those in all substeps, `by_x`.

    There are hundreds of directions, so that substeps count; but an error in a tangent moves what
    noise leaves uncertain by as much of its standard error, and one in a trajectory by far more.
    """
    point = jnp.asarray(x), jnp.asarray(states)
    clean = jnp.asarray(trajectories_of(problem, reduced, x, states, steps))
    basis, rough = reduced.basis(), steps.rough
    while True:
        own = traced(steps._replace(substeps=min(rough, steps.substeps)))
        given = problem.given, (own, basis, clean)
        jacobian, found = _in_halves(problem.equation, single(reduced), *point, *given)
        if not np.isfinite(jacobian).all():
            if rough < steps.substeps:
                rough *= 2
                continue
            jacobian, found = _in_halves(problem.equation, reduced, *point, *given)
            if not np.isfinite(jacobian).all():
                raise Lost("expected values near which the equation stays finite")
        rows = _Rows(jacobian.astype(np.float64), basis)

        def restrained(reduced: Followed, rows=rows, rough=rough) -> Tangent:
            return _eliminated(rows.held_by(reduced), by_x, rough, restrained)

        made = restrained(reduced)
        if rough >= steps.substeps or made.holds(found):
            return made
        rough *= 2


def single(reduced: Followed) -> Followed:
    """In single precision, which is enough for a tangent: an error of a millionth in it moves what
    noise leaves uncertain by as much of its standard error."""
    arrays, rest = eqx.partition(reduced, eqx.is_inexact_array)
    # What is held to nothing is held as much as single precision can tell.
    cast = jax.tree.map(lambda a: np.clip(a, -_LARGEST, _LARGEST).astype(np.float32), arrays)
    return eqx.combine(cast, rest)


class _Rows:
    """The predictions' derivatives `(n, S, 1 + L, C, *M)` along the basis. What restrains the
    states is the first of the frames, and linear in them."""

    def __init__(self, jacobian: np.ndarray, basis: np.ndarray):
        n, pieces = jacobian.shape[:2]
        self.basis = basis
        self.later = np.moveaxis(jacobian[:, :, 1:].reshape(n, pieces, -1), 0, 1)  # (S, n, rows)
        self.gram = self.later @ self.later.transpose(0, 2, 1)

    def held_by(self, reduced: Followed) -> Eliminate:
        """How states are eliminated under a restraint."""
        later, basis, n = self.later, self.basis, len(self.basis)
        held = np.asarray(reduced.held(reduced.confined(jnp.asarray(basis)))).reshape(n, -1)
        gram = self.gram + held @ held.T
        ridge = 1e-12 * np.trace(gram, axis1=1, axis2=2)[:, None, None] / n * np.eye(n)
        factors = [scipy.linalg.cho_factor(one) for one in gram + ridge]

        def eliminate(target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            first, rest = (part.reshape(len(later), -1) for part in np.split(target, [1], axis=1))
            sides = np.einsum("snr,sr->sn", later, rest) + first @ held.T
            pairs = zip(factors, sides, strict=True)
            weights = np.stack([scipy.linalg.cho_solve(factor, side) for factor, side in pairs])
            explained = weights @ held, np.einsum("sn,snr->sr", weights, later)
            whole = np.concatenate(explained, axis=1).reshape(target.shape)
            return target - whole, np.tensordot(weights, basis, axes=1)

        return eliminate


def _in_halves(
    equation: Equation,
    reduced: Followed,
    x: Array,
    states: Array,
    known: Coefficients,
    how: tuple[Steps, np.ndarray, Array],
) -> tuple[np.ndarray, np.ndarray]:
    """The derivatives of `_jacobian`, those along one half of the basis on a core of their own:
    arrays are so small that one core is all that a batch uses."""
    steps, basis, clean = how
    half = math.ceil(len(basis) / 2)
    # Halves of one size are compiled once: an odd basis has a direction twice.
    parts = basis[:half], basis[len(basis) - half :]

    def along(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with jax.enable_x64(True):  # which is said in each thread anew
            own = steps, jnp.asarray(part), clean
            found = _jacobian(equation, reduced, x, states, known, own)
            return np.asarray(found[0]), np.asarray(found[1])

    with ThreadPoolExecutor(max_workers=2) as threads:
        (first, by_x), (second, _) = threads.map(along, parts)
    return np.concatenate([first, second[2 * half - len(basis) :]]), by_x


@eqx.filter_jit
def _jacobian(
    equation: Equation,
    reduced: Followed,
    x: Float[Array, " p"],
    states: Array,
    known: Coefficients,
    how: tuple[Steps, Array, Array],
) -> tuple[Array, Array]:
    """Derivatives of the prediction along the basis of states, and by the coefficients."""
    steps, basis, clean = how
    kind = jnp.asarray(reduced.states).dtype
    predict = prediction(equation, reduced, known, steps, clean)
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
    predict = prediction(equation, reduced, known, steps)
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

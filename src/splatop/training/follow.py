"""A learned term fitted to short rollouts of Φ, after it was fitted to the change in frames.

Its outputs are linear in the weights of its units, so Gauss-Newton steps in these weights are few.
Each solves a linear least squares problem by conjugate gradients, with derivatives of the rollouts
forwards and backwards, in coordinates in which the units are orthonormal on the data.
"""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..data import Trajectories
from ..equation import Equation, LearnedTerm
from ..physics import Physics
from ..spectral import Field
from ..stepper import Coefficients, Stepper, rollout

FRAMES = 4
_STEPS = 2
_ITERATIONS = 8
_MOST_WINDOWS = 32
# Evaluations at points that all rollouts and their derivatives may take, and what one iteration
# takes in units of a rollout.
_WORK = 1e8
_PER_ITERATION = 5
# Of the mean eigenvalue of the units' Gram matrix: what data hardly tell stays as it is.
_RIDGE = 1e-8
_DAMPING = 1e-6


def learned_term(equation: Equation) -> LearnedTerm:
    return next(term for term in equation.terms if isinstance(term, LearnedTerm))


def followed(
    physics: Physics, gram: np.ndarray, coefficients: Mapping[str, float], data: Trajectories
) -> Physics | None:
    """Φ with the weights of its learned term fitted to rollouts over a few frames, or None if that
    takes too long or lowers their error not.

    `gram` is the Gram matrix of the term's units on the data.
    """
    places = _places(physics, data)
    if not len(places):
        return None
    windows = data.windows(places, FRAMES + 1)
    times = None if data.even else data.times
    longest = None if times is None else float(np.diff(times).max())
    term = learned_term(physics.equation)
    start = jnp.asarray(np.asarray(term.weights).ravel())
    # weights = start + basis @ z, where a z of length 1 changes the rate by its own deviation.
    size = np.trace(gram) / len(gram)
    values, vectors = np.linalg.eigh(gram + _RIDGE * size * np.eye(len(gram)))
    basis = jnp.asarray(vectors / np.sqrt(np.maximum(values, _RIDGE * size)), jnp.float32)
    unit = np.std(np.diff(windows, axis=1), axis=(0, 1, *range(3, windows.ndim)))
    unit = jnp.asarray(np.where(unit > 0, unit, 1.0).reshape(-1, *(1,) * (windows.ndim - 3)))
    # Frames, and what drives each window.
    held = jax.tree.map(
        lambda leaf: jnp.asarray(leaf, jnp.float32), (windows, data.all_drive(places, FRAMES + 1))
    )

    def at(physics: Physics, z: Array) -> Physics:
        weights = (start + basis @ z).reshape(term.weights.shape)
        return _with_term(physics, term.with_weights(weights))

    def off(z: Array, physics: Physics, held: Any) -> Array:
        one = at(physics, z)
        stepper = one if longest is None else _Steady(one, one.substeps_over(longest))

        @jax.checkpoint  # else all that networks make is kept for all windows: gigabytes in 2D
        def window(own: tuple[Array, Any]) -> Array:
            frames, driven = own
            made = rollout(stepper, frames[0], {**coefficients, **driven}, steps=FRAMES)
            return (made - frames[1:]) / unit

        return jax.lax.map(window, held)

    @eqx.filter_jit
    def step(z: Array, physics: Physics, held: Any) -> tuple[Array, Array]:
        """One Gauss-Newton step, and the sum of squares before it."""
        rest, forwards = jax.linearize(lambda z: off(z, physics, held), z)
        backwards = jax.linear_transpose(forwards, z)

        def normal(v: Array) -> Array:
            (back,) = backwards(forwards(v))
            return back / rest.size + _DAMPING * v

        (slope,) = backwards(rest)
        found, _ = jax.scipy.sparse.linalg.cg(normal, -slope / rest.size, maxiter=_ITERATIONS)
        return z + found, jnp.sum(rest**2)

    @eqx.filter_jit
    def total(z: Array, physics: Physics, held: Any) -> Array:
        return jnp.sum(off(z, physics, held) ** 2)

    best = z = jnp.zeros(basis.shape[1], jnp.float32)
    lowest = first = float(total(z, physics, held))
    for _ in range(_STEPS):
        z, _ = step(z, physics, held)
        now = float(total(z, physics, held))
        if not now < lowest:
            break
        best, lowest = z, now
    return at(physics, best) if lowest < first else None


class _Steady(Stepper):
    """Φ with as many substeps for every interval, so that derivatives go backwards through it."""

    physics: Physics
    substeps: int = eqx.field(static=True)

    def __call__(self, u: Field, coefficients: Coefficients) -> Field:
        return self.physics.advance(u, coefficients, substeps=self.substeps)

    @property
    def interval(self) -> float:
        return self.physics.interval


def _with_term(physics: Physics, term: LearnedTerm) -> Physics:
    place = next(i for i, t in enumerate(physics.equation.terms) if isinstance(t, LearnedTerm))
    return eqx.tree_at(lambda p: p.equation.terms[place], physics, term)


def _places(physics: Physics, data: Trajectories) -> np.ndarray:
    """Where windows of five frames begin, spread over the data, as many as the work allows for."""
    rates = 4 * max(1, physics.substeps) * FRAMES
    each = rates * int(np.prod(data.grid.points)) * _PER_ITERATION * _ITERATIONS * _STEPS
    last = data.frames - FRAMES - 1
    count = min(_MOST_WINDOWS, int(_WORK // each), data.trajectories * max(0, last + 1))
    if count < 1:
        return np.empty((0, 2), int)
    places = np.linspace(0, data.trajectories * (last + 1) - 1, count).round().astype(int)
    return np.stack(np.divmod(places, last + 1), axis=1)

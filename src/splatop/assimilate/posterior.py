"""How well the unknowns are known: samples of the posterior, linearised at the minimum (Laplace),
or of the minima for perturbed data (an ensemble of analyses)."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .minimise import Data, Forward, Minimum, Once, Right, minimise, normal_equations, residual
from .observe import Taps

# Up to so many unknowns the Hessian is formed, up to so many reports its counterpart among them,
# and samples are exact.
DENSE = 800
# Samples, where the Hessian is formed, and where each takes a solve.
MANY, FEW = 50, 12
# Of each solve. It starts from a sample for a diagonal Hessian: what it leaves out stays as wide.
_TOLERANCE, _ITERATIONS = 0.01, 80

Report = Callable[[int, int], None]


@eqx.filter_jit
def jacobian(
    forward: Forward, taps: Taps, data: Data, x: jax.Array, columns: jax.Array
) -> jax.Array:
    """Columns of J, `(k, n)`: what sensors see of each of `columns` `(k, s)`, in units of noise."""
    _, tangent = jax.linearize(lambda x: residual(forward, taps, data, x), x)
    return jax.lax.map(tangent, columns, batch_size=8)


@eqx.filter_jit
def gradients(forward: Forward, taps: Taps, data: Data, x: jax.Array) -> jax.Array:
    """Rows of J, `(n, s)`."""
    _, transpose = jax.vjp(lambda x: residual(forward, taps, data, x), x)
    rows = jnp.eye(taps.count, dtype=x.dtype)
    return jax.lax.map(lambda row: transpose(row)[0], rows, batch_size=8)


def laplace(
    forward: Forward,
    taps: Taps,
    data: Data,
    minimum: Minimum,
    *,
    seed: int = 0,
    samples: int | None = None,
    report: Report = lambda *_: None,
    once: Once = lambda compute: compute(),
) -> tuple[np.ndarray, np.ndarray] | None:
    """Deviations `(N, s)` from the minimum, and the variances of the unknown coefficients `(p,)`;
    None where the rollout, or its derivative, leaves the finite numbers.

    With `H = I + JᵀJ`, a sample of N(0, H⁻¹) is `H⁻¹(ξ + Jᵀε)` for standard normal ξ and ε. No
    low-rank approximation is made: with as many directions told by the data as sensors report, none
    would do. With fewer reports than unknowns the same is `ξ - Jᵀ(I + JJᵀ)⁻¹(Jξ + ε)`.
    """
    rng = np.random.default_rng(seed)
    size, n = len(minimum.x), taps.count
    first, last = forward.unknowns.numbers_count, forward.unknowns.known_count
    p = last - first
    x = jnp.asarray(minimum.x)
    if size <= min(DENSE, n):
        report(0, 1)
        j = np.asarray(jacobian(forward, taps, data, x, jnp.eye(size)), float)
        if not np.isfinite(j).all():
            return None
        hessian = np.eye(size) + j @ j.T
        eigenvalues, turn = np.linalg.eigh(hessian)
        drawn = rng.normal(size=(samples or MANY, size)) / np.sqrt(eigenvalues)
        variances = (turn[first:last] ** 2) @ (1 / eigenvalues)
        report(1, 1)
        return (drawn @ turn.T).astype(np.float32), variances
    if n <= DENSE:
        report(0, 1)
        j = np.asarray(gradients(forward, taps, data, x), float)
        if not np.isfinite(j).all():
            return None
        factor = cho_factor(np.eye(n) + j @ j.T, lower=True)
        drawn = rng.normal(size=(samples or MANY, size))
        seen = drawn @ j.T + rng.normal(size=(len(drawn), n))
        made = drawn - cho_solve(factor, seen.T).T @ j
        # Of coefficients as such, without the small difference of large numbers.
        own, others = j[:, first:last], np.delete(j, slice(first, last), axis=1)
        weighted = np.linalg.solve(np.eye(n) + others @ others.T, own)
        variances = np.diag(np.linalg.inv(np.eye(p) + own.T @ weighted))
        report(1, 1)
        return made.astype(np.float32), variances
    total = (samples or FEW) + p
    nothing, zero = jnp.zeros(size), jnp.zeros(())

    def solve(right: Right, tolerance: float) -> np.ndarray:
        return solved(forward, taps, data, minimum, right, tolerance)

    made, variances = [], []
    for number in range(samples or FEW):
        drawn = jnp.asarray(rng.normal(size=size), jnp.float32)
        noise = jnp.asarray(rng.normal(size=taps.count), jnp.float32)
        guess = drawn / jnp.sqrt(1 + jnp.asarray(minimum.diagonal, jnp.float32))
        right = Right(zero, noise, guess, drawn - guess)
        step = once(lambda right=right: {"step": solve(right, _TOLERANCE)})["step"]
        made.append(np.asarray(guess) + step)
        report(number + 1, total)
    for number in range(p):
        one = nothing.at[first + number].set(1.0)
        own = solve(Right(zero, jnp.zeros(taps.count), nothing, one), 1e-3)
        variances.append(own[first + number])
        report(total - p + number + 1, total)
    return _finite(np.stack(made), np.array(variances))


def perturbed_analyses(
    forward: Forward,
    taps: Taps,
    data: Data,
    minimum: Minimum,
    *,
    seed: int = 0,
    samples: int | None = None,
    report: Report = lambda *_: None,
    once: Once = lambda compute: compute(),
) -> tuple[np.ndarray, np.ndarray] | None:
    """As `laplace`, by minimising anew, for data with noise added and a prior that is shifted at
    random: no linearisation, at the cost of a minimisation each."""
    rng = np.random.default_rng(seed)
    count = samples or FEW
    made = []
    for number in range(count):
        shift = rng.normal(size=len(minimum.x)).astype(np.float32)
        noise = jnp.asarray(rng.normal(size=taps.count), jnp.float32)
        shifted = eqx.tree_at(lambda f: f.unknowns, forward, forward.unknowns.shifted(shift))
        noisy = eqx.tree_at(lambda d: d.values, data, data.values + data.sigma * noise)
        own = minimise(shifted, [(taps, noisy)], minimum.x - shift, most_steps=5, once=once)
        made.append(own.x + shift - minimum.x)
        report(number + 1, count)
    deviations = np.stack(made)
    own = slice(forward.unknowns.numbers_count, forward.unknowns.known_count)
    return _finite(deviations, np.mean(deviations[:, own] ** 2, axis=0))


def _finite(*found: np.ndarray) -> Any:
    return found if all(np.isfinite(one).all() for one in found) else None


def solved(
    forward: Forward, taps: Taps, data: Data, minimum: Minimum, right: Right, tolerance: float
) -> np.ndarray:
    """`H⁻¹` times a right-hand side, by conjugate gradients."""
    return np.asarray(
        normal_equations(
            forward,
            taps,
            data,
            jnp.asarray(minimum.x),
            right,
            jnp.asarray(minimum.diagonal, jnp.float32),
            jnp.asarray(0.0, jnp.float32),
            jnp.asarray(tolerance, jnp.float32),
            jnp.asarray(_ITERATIONS),
        ).step
    )


def directions_told(
    forward: Forward, taps: Taps, data: Data, minimum: Minimum, among: slice
) -> float:
    """How many of these unknowns the reports tell, the others being unknown too."""
    return float(told_each(forward, taps, data, minimum, among)[among].sum())


def told_each(
    forward: Forward, taps: Taps, data: Data, minimum: Minimum, among: slice = slice(None)
) -> np.ndarray:
    """The diagonal of `I - H⁻¹` by one random vector of signs: of sums over many unknowns among
    these it is a good estimate, of each a wild one."""
    signs = np.zeros(len(minimum.x), np.float32)
    signs[among] = np.random.default_rng(0).choice((-1.0, 1.0), len(signs[among]))
    nothing = jnp.zeros(len(signs))
    right = Right(jnp.zeros(()), jnp.zeros(taps.count), nothing, jnp.asarray(signs))
    return signs * (signs - solved(forward, taps, data, minimum, right, 0.02))

"""How well the unknowns are known: samples of the posterior, linearised at the minimum (Laplace),
or of the minima for perturbed data (an ensemble of analyses)."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .minimise import Data, Forward, Minimum, Right, minimise, normal_equations, residual
from .observe import Taps

# Up to so many unknowns the Hessian is formed, and samples of it are exact.
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


def laplace(
    forward: Forward,
    taps: Taps,
    data: Data,
    minimum: Minimum,
    *,
    seed: int = 0,
    samples: int | None = None,
    report: Report = lambda *_: None,
) -> tuple[np.ndarray, np.ndarray]:
    """Deviations `(N, s)` from the minimum, and the variances of the unknown coefficients `(p,)`.

    With `H = I + JᵀJ`, a sample of N(0, H⁻¹) is `H⁻¹(ξ + Jᵀε)` for standard normal ξ and ε. No
    low-rank approximation is made: with as many directions told by the data as sensors report, none
    would do.
    """
    rng = np.random.default_rng(seed)
    size, p = len(minimum.x), len(forward.unknowns.names)
    x = jnp.asarray(minimum.x)
    if size <= DENSE:
        report(0, 1)
        j = np.asarray(jacobian(forward, taps, data, x, jnp.eye(size)), float)
        hessian = np.eye(size) + j @ j.T
        eigenvalues, turn = np.linalg.eigh(hessian)
        drawn = rng.normal(size=(samples or MANY, size)) / np.sqrt(eigenvalues)
        covariance = (turn[size - p :] ** 2) @ (1 / eigenvalues)
        report(1, 1)
        return (drawn @ turn.T).astype(np.float32), covariance
    total = (samples or FEW) + p
    nothing, zero = jnp.zeros(size), jnp.zeros(())

    def solve(right: Right, tolerance: float) -> np.ndarray:
        return np.asarray(
            normal_equations(
                forward,
                taps,
                data,
                x,
                right,
                jnp.asarray(minimum.diagonal, jnp.float32),
                jnp.asarray(0.0, jnp.float32),
                jnp.asarray(tolerance, jnp.float32),
                jnp.asarray(_ITERATIONS),
            ).step
        )

    made, variances = [], []
    for number in range(samples or FEW):
        drawn = jnp.asarray(rng.normal(size=size), jnp.float32)
        noise = jnp.asarray(rng.normal(size=taps.count), jnp.float32)
        guess = drawn / jnp.sqrt(1 + jnp.asarray(minimum.diagonal, jnp.float32))
        right = Right(zero, noise, guess, drawn - guess)
        made.append(np.asarray(guess) + solve(right, _TOLERANCE))
        report(number + 1, total)
    for number in range(p):
        one = nothing.at[size - p + number].set(1.0)
        own = solve(Right(zero, jnp.zeros(taps.count), nothing, one), 1e-3)
        variances.append(own[size - p + number])
        report(total - p + number + 1, total)
    return np.stack(made), np.array(variances)


def perturbed_analyses(
    forward: Forward,
    taps: Taps,
    data: Data,
    minimum: Minimum,
    *,
    seed: int = 0,
    samples: int | None = None,
    report: Report = lambda *_: None,
) -> tuple[np.ndarray, np.ndarray]:
    """As `laplace`, by minimising anew, for data with noise added and a prior that is shifted at
    random: no linearisation, at the cost of a minimisation each."""
    rng = np.random.default_rng(seed)
    count, p = samples or FEW, len(forward.unknowns.names)
    made = []
    for number in range(count):
        shift = rng.normal(size=len(minimum.x)).astype(np.float32)
        noise = jnp.asarray(rng.normal(size=taps.count), jnp.float32)
        shifted = eqx.tree_at(lambda f: f.unknowns, forward, forward.unknowns.shifted(shift))
        noisy = eqx.tree_at(lambda d: d.values, data, data.values + data.sigma * noise)
        own = minimise(shifted, [(taps, noisy)], minimum.x - shift, most_steps=5)
        made.append(own.x + shift - minimum.x)
        report(number + 1, count)
    deviations = np.stack(made)
    return deviations, np.mean(deviations[:, len(minimum.x) - p :] ** 2, axis=0)

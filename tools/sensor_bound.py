"""What any analysis of Burgers' reports could reach: the expected error of the best estimate, for the
very distribution that the study's trajectories begin with, linearised about the truth."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from splatop import Observations
from splatop.assimilate.posterior import jacobian
from splatop.assimilate.runs import rolled
from splatop.assimilate.source import EquationSetting, as_dynamics
from splatop.assimilate.unknowns import Prior
from splatop.assimilate.window import Window, unknowns_of
from splatop.benchmarks import get_benchmark
from splatop.data.reference import initial_state

# Initial states from which the size of their modes is told: all modes of a field are alike.
_STATES = 400


def bound(truth: np.ndarray, obs: Observations, frames: int) -> dict[str, Any]:
    """Root of the expected squared error of the first and last state, over their own size.

    Initial states of the benchmark are Gaussian, so nothing more is to be known beforehand than
    the variance of each mode. With it and noise ε the error is `H⁻¹(Jᵀε - ξ)`, of covariance H⁻¹.
    """
    points = truth.shape[-1]
    dynamics = as_dynamics("burgers2d", EquationSetting(points=points))
    benchmark = get_benchmark("burgers2d").with_points(points)
    flat = np.ones((len(dynamics.fields), *dynamics.space.shape))
    every = unknowns_of(dynamics, Prior(flat, flat, "any"), {})
    keys = jax.random.split(jax.random.key(2**20), _STATES)
    states = jax.vmap(lambda key: initial_state(benchmark, key))(keys)
    numbers = np.asarray(jax.vmap(lambda u: every.numbers_of(u, every.start))(states), float)
    power = np.mean(numbers**2, axis=0)
    there = power > 1e-6 * power.max()
    std = np.stack(
        [np.sqrt(np.where(t, p[t].mean(), 0.0)) for p, t in zip(power, there, strict=True)]
    )
    prior = Prior(np.zeros_like(std), std, "the distribution of initial states")
    window = Window(dynamics, obs, prior, {}, float(obs.times.min()), {})
    forward, unknowns = window.forward, window.unknowns
    assert obs.sigma is not None
    taps, data = window.programs([window.steps], obs.sigma)[0]
    first = jnp.asarray(truth[0], jnp.float32)
    along = dynamics.space.sampled((points, points), dynamics.written.layout)
    true = np.asarray(dynamics.space.fit(first, along), float).ravel()[np.asarray(unknowns.index)]
    x = jnp.asarray(true / np.asarray(unknowns.std), jnp.float32)
    j = np.asarray(jacobian(forward, taps, data, x, jnp.eye(len(x))), float)
    spread = np.linalg.inv(np.eye(len(x)) + j @ j.T)
    states = np.asarray(_tangents(forward, x, frames), float)
    grid = np.asarray(rolled(forward, x, frames))
    return {
        name: float(np.sqrt(np.einsum("ij,in,jn->", spread, own, own)) / np.linalg.norm(u))
        for name, own, u in (
            ("first", states[:, 0], grid[0]),
            ("state", states[:, 1], grid[-1]),
        )
    }


@eqx.filter_jit
def _tangents(forward, x, frames: int):
    """The first and the last state for each unknown, `(s, 2, n)`."""

    def ends(x):
        u = rolled(forward, x, frames)
        return jnp.stack([u[0].ravel(), u[-1].ravel()])

    _, tangent = jax.linearize(ends, x)
    return jax.lax.map(tangent, jnp.eye(len(x)), batch_size=8)

"""The weights of a learned term from samples: by least squares where they enter linearly, by
descent where they do not."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from ..equation.learned import LearnedTerm
from .samples import Samples, predicted, units

_RATE = 5e-3
# Windows of a step of descent, and points of each; a flux needs all points.
_BATCH = 8
_BATCH_POINTS = 128
_FLUX_BATCH = 2
_CHUNK = 100
# Points of a window that weights are solved from.
_ROWS = 384
_RIDGE = 1e-10


def left(term: LearnedTerm, samples: Samples) -> float:
    """The share of the target's energy that a term does not explain, over its fields together."""
    made = eqx.filter_jit(lambda t, s: jax.lax.map(lambda w: predicted(t, w), s))(term, samples)
    unit = samples.deviation.reshape(-1, *(1,) * (samples.target.ndim - 2))
    rest = (np.asarray(samples.target, np.float64) - np.asarray(made, np.float64)) / unit
    whole = np.asarray(samples.target, np.float64) / unit
    return float(np.sum(rest**2) / max(float(np.sum(whole**2)), 1e-300))


def solved(term: LearnedTerm, samples: Samples, *, hidden: bool = True) -> LearnedTerm:
    """With the weights of all units solved for, or of those beside the network's `hidden` ones."""
    outputs, count = term.weights.shape
    first = 0 if hidden else term.network.layers[-1].weight.shape[1]
    gram, moment = normal_equations(term, samples, first=first)
    scale = np.sqrt(np.diag(gram))
    scale = np.where(scale > 0, scale, 1.0)
    gram = gram / np.outer(scale, scale) + _RIDGE * len(gram) * np.eye(len(gram))
    solution = (np.linalg.solve(gram, moment / scale) / scale).reshape(outputs, count - first)
    weights = np.concatenate([np.zeros((outputs, first)), solution], axis=1)
    return term.with_weights(jnp.asarray(weights, jnp.float32))


def normal_equations(
    term: LearnedTerm, samples: Samples, *, first: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Gram matrix of the units from the `first` on, for all outputs, and their products with the
    target: means over points, in units of the target's deviation."""
    outputs, count = term.weights.shape
    size = outputs * (count - first)
    gram, moment, rows = np.zeros((size, size)), np.zeros(size), 0
    unit = samples.deviation[:, None]
    generator = np.random.default_rng(2)
    columns = eqx.filter_jit(units)
    for index in range(len(samples)):
        window = samples[index]
        made = np.asarray(columns(term, window), np.float64)[:, first:]
        made = made.reshape(*made.shape[:3], -1) / unit
        wanted = np.asarray(window.target, np.float64).reshape(len(unit), -1) / unit
        if wanted.shape[1] > _ROWS:
            chosen = generator.permutation(wanted.shape[1])[:_ROWS]
            made, wanted = made[..., chosen], wanted[:, chosen]
        flat = made.reshape(size, -1)
        gram += flat @ flat.T
        moment += flat @ wanted.ravel()
        rows += wanted.size
    return gram / rows, moment / rows


def trained(
    term: LearnedTerm,
    samples: Samples,
    *,
    steps: int,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> LearnedTerm:
    """With a network for what the term leaves, which is learned in units of that."""
    rest = eqx.filter_jit(
        lambda t, s: jax.lax.map(lambda window: window.target - predicted(t, window), s)
    )
    held = eqx.tree_at(lambda s: s.target, samples, rest(term, samples))
    ratio = held.deviation / samples.deviation
    outputs = len(term.size)
    scale = jnp.asarray(np.repeat(ratio, outputs // len(ratio)), jnp.float32)
    key, first = jax.random.split(jax.random.key(seed))
    layers = term.network
    network = eqx.nn.MLP(
        layers.in_size, outputs, layers.width_size, layers.depth, layers.activation, key=first
    )
    alone = eqx.tree_at(
        lambda t: (t.network, t.direct, t.size),
        term,
        (network, None, term.size * scale),
        is_leaf=lambda leaf: leaf is None,
    )
    alone = _descended(alone, held, jax.random.split(key, steps), progress)
    own, told = alone.weights * scale[:, None], term.weights
    both = told.at[:, : own.shape[1]].add(own)
    return eqx.tree_at(lambda t: t.network, term, alone.network).with_weights(both)


def _descended(
    term: LearnedTerm,
    samples: Samples,
    keys: Array,
    progress: Callable[[int, int], None] | None,
) -> LearnedTerm:
    """With its network trained by Adam."""
    steps = len(keys)
    optimiser = optax.adam(
        optax.warmup_cosine_decay_schedule(0, _RATE, min(50, steps // 4), steps, 1e-6)
    )
    weights, fixed = eqx.partition(term.network, eqx.is_inexact_array)
    unit = jnp.asarray(samples.deviation, jnp.float32)

    def loss(weights, samples: Samples, key: Array) -> Array:
        trial = eqx.tree_at(lambda t: t.network, term, eqx.combine(weights, fixed))
        batch = _drawn(samples, key, whole=term.conservative)
        off = jax.vmap(lambda window: predicted(trial, window) - window.target)(batch)
        return jnp.mean((off / unit.reshape(-1, *(1,) * (off.ndim - 2))) ** 2)

    @eqx.filter_jit
    def some(weights, state, samples, keys):
        def step(carry, key):
            weights, state = carry
            slope = jax.grad(loss)(weights, samples, key)
            update, state = optimiser.update(slope, state, weights)
            return (optax.apply_updates(weights, update), state), None

        return jax.lax.scan(step, (weights, state), keys)[0]

    state = optimiser.init(weights)
    for first in range(0, steps, _CHUNK):
        weights, state = some(weights, state, samples, keys[first : first + _CHUNK])
        if progress is not None:
            progress(min(first + _CHUNK, steps), steps)
    return eqx.tree_at(lambda t: t.network, term, eqx.combine(weights, fixed))


def _drawn(samples: Samples, key: Array, *, whole: bool) -> Samples:
    """Random windows, and random points of them where a window need not be `whole`."""
    first, second = jax.random.split(key)
    count = _FLUX_BATCH if whole else _BATCH
    batch = samples[jax.random.randint(first, (count,), 0, len(samples))]
    if whole:
        return batch
    points = samples.target.shape[-1]
    chosen = jax.random.randint(second, (_BATCH_POINTS,), 0, points)
    return jax.tree.map(lambda leaf: leaf[..., chosen], batch)

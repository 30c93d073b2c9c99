"""A learned term from frames: regression on what the known terms leave of the change.

The change is taken in the weak form in time: a bell over seven frames, against which the network
is integrated as well. So the error of a time difference is not what it learns.
"""

from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from ..data import Trajectories
from ..derivative import gradient, laplacian
from ..equation import Equation, PartialEquation
from ..equation.learned import (
    LearnedTerm,
    divergence,
    feature_names,
    features,
    usual_arguments,
)
from ..errors import SplatopError
from ..identify.noise import measure, project
from ..identify.weak import time_tests
from ..jets import Jet, SpectralJets
from ..spectral import BoxFilter
from ..stepper import Coefficients

WINDOW = 7
WIDTH, DEPTH = 48, 2
STEPS = 1500
_RATE = 5e-3
_BATCH = 1024
_FLUX_BATCH = 2
# Windows and points that are kept, and of them those used for the last layer.
_WINDOWS = 160
_POINTS = 2048
_LAST = 40_000
_RIDGE = 1e-10
# Values of the arguments that are kept to show where there were data.
_SHOWN = 300


@dataclass(frozen=True)
class Learned:
    """A term that was learned: `explained` is the share of what the known terms leave of the
    change that it accounts for (in energy, 1 is all), on windows not used for it; `names` those of
    its arguments, and `samples` `(n, F)` some of their values in the data."""

    term: LearnedTerm
    explained: float
    names: tuple[str, ...]
    samples: np.ndarray


@dataclass(frozen=True)
class _Samples:
    """Features `(W, 7, F, *M)` and what is to be explained `(W, T, *M)`."""

    features: np.ndarray
    target: np.ndarray
    lengths: tuple[float, ...]


def learn(
    data: Trajectories,
    partial: PartialEquation,
    *,
    known: Equation | None,
    coefficients: Coefficients,
    invariant: bool = False,
    conservative: bool = False,
    steps: int = STEPS,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Learned:
    """The term that `?` stands for, as a network of what it may depend on.

    `known` are the terms that are told, with `coefficients` for all of them.
    """
    if data.frames < WINDOW:
        raise SplatopError(
            f"expected trajectories of at least {WINDOW} frames to learn a term from, got "
            f"{data.frames}: give longer ones"
        )
    if steps < 1:
        raise SplatopError(f"expected at least one step of training, got {steps}")
    targets = tuple(partial.unknown)
    given = [a for own in partial.unknown.values() for a in own or ()]
    free = any(own is None for own in partial.unknown.values())
    dims = data.grid.dims
    arguments = usual_arguments(data.fields, dims) if free else tuple(dict.fromkeys(given))
    if not free:
        invariant = False
    with jax.enable_x64(True):
        samples = _samples(data, arguments, invariant, targets, known, coefficients)
    key = jax.random.key(seed)
    outputs = len(targets) * (dims if conservative else 1)
    flat = np.moveaxis(samples.features, 2, 0).reshape(samples.features.shape[2], -1)
    centre, spread = flat.mean(axis=1), flat.std(axis=1)
    spread = np.where(spread > 0, spread, 1.0)
    scaled = (flat - centre[:, None]) / spread[:, None]
    size = _sizes(samples, conservative, outputs)
    term = LearnedTerm(
        network=eqx.nn.MLP(len(flat), outputs, WIDTH, DEPTH, activation=jax.nn.gelu, key=key),
        centre=jnp.asarray(centre, jnp.float32),
        spread=jnp.asarray(spread, jnp.float32),
        low=jnp.asarray(scaled.min(axis=1), jnp.float32),
        high=jnp.asarray(scaled.max(axis=1), jnp.float32),
        size=jnp.asarray(size, jnp.float32),
        fields=data.fields,
        targets=targets,
        arguments=arguments,
        invariant=invariant,
        conservative=conservative,
    )
    held = max(1, len(samples.target) // 8)
    training = _Samples(samples.features[held:], samples.target[held:], samples.lengths)
    testing = _Samples(samples.features[:held], samples.target[:held], samples.lengths)
    term = _trained(term, training, steps, key, progress or (lambda *_: None))
    if not conservative:
        before = _explained(term, testing)
        refitted = _last_layer(term, training)
        if _explained(refitted, testing) > before:
            term = refitted
    names = feature_names(data.fields, arguments, invariant=invariant)
    some = np.random.default_rng(seed).integers(0, flat.shape[1], _SHOWN)
    return Learned(term, _explained(term, testing), names, flat[:, some].T)


def _sizes(samples: _Samples, conservative: bool, outputs: int) -> np.ndarray:
    axes = (0, *range(2, samples.target.ndim))
    size = np.sqrt(np.mean(samples.target**2, axis=axes))
    size = np.where(size > 0, size, 1.0)
    if not conservative:
        return size
    # A flux is larger than its divergence by about the box over some waves.
    return np.repeat(size * min(samples.lengths) / (2 * np.pi), outputs // len(size))


def _samples(data, arguments, invariant, targets, known, coefficients) -> _Samples:
    """Windows spread over all trajectories, filtered to the band of the data."""
    generator = np.random.default_rng(0)
    starts = [(i, s) for i in range(data.trajectories) for s in range(data.frames - WINDOW + 1)]
    count = min(_WINDOWS, len(starts))
    chosen = generator.permutation(len(starts))[:count]
    windows = data.windows(np.array([starts[i] for i in chosen]), WINDOW).astype(np.float64)
    band = measure(windows).band
    lengths = data.grid.lengths
    points = tuple(min(n, max(16, 4 * b + 2)) for n, b in zip(data.grid.points, band, strict=True))
    states = project(windows, band, points)
    cutoffs = tuple(b / side for b, side in zip(band, lengths, strict=True))
    jets = SpectralJets(lengths, BoxFilter(cutoffs))
    a, b = time_tests(WINDOW)
    if known is not None:
        known = known.placed_at(data.grid.origin)
    places = np.array([data.fields.index(name) for name in targets])
    wanted = {d.operator for d in arguments if not d.is_value}
    dims = data.grid.dims
    if invariant:
        wanted |= {*gradient(dims), laplacian(dims)}
    if known is not None:
        wanted |= known.derivatives(dims)

    @eqx.filter_jit
    def one(u: Array) -> tuple[Array, Array]:
        jet = jets(u, sorted(wanted))
        told = jnp.zeros_like(u) if known is None else known(jet, coefficients)
        return features(jet, data.fields, arguments, invariant=invariant), told

    flat = states.reshape(-1, *states.shape[2:])
    found, told = (np.asarray(part) for part in jax.lax.map(one, jnp.asarray(flat)))
    rate = np.tensordot(b[0] / data.dt, states, axes=(0, 1))
    told = np.tensordot(a[0], told.reshape(states.shape), axes=(0, 1))
    target = (rate - told)[:, places]
    return _Samples(
        found.reshape(count, WINDOW, *found.shape[1:]).astype(np.float32),
        target.astype(np.float32),
        lengths,
    )


def _integrated(term: LearnedTerm, x: Array) -> Array:
    """The network integrated against the bell: features `(n, 7, F)` to `(n, O)`, in units of its
    size."""
    bell = jnp.asarray(time_tests(WINDOW)[0][0], x.dtype)
    outputs = term.values(x.reshape(-1, x.shape[-1]).T) / term.size[:, None]
    return jnp.einsum("l,onl->no", bell, outputs.reshape(-1, len(x), WINDOW))


def _flux_prediction(term: LearnedTerm, x: Array, lengths) -> Array:
    """The divergence of the flux of one window, features `(7, F, *M)` to `(T, *M)`."""
    points = x.shape[2:]
    bell = jnp.asarray(time_tests(WINDOW)[0][0], x.dtype)
    columns = jnp.moveaxis(x, 1, 0).reshape(x.shape[1], -1)
    outputs = term.values(columns).reshape(-1, WINDOW, *points)
    flux = jnp.tensordot(bell, outputs, axes=(0, 1))
    jet = Jet(jnp.zeros((1, *points), x.dtype), {}, lengths)
    return divergence(flux, len(term.targets), jet)


def _trained(term, samples: _Samples, steps: int, key, progress) -> LearnedTerm:
    optimiser = optax.adam(
        optax.warmup_cosine_decay_schedule(0, _RATE, min(50, steps // 4), steps, 1e-6)
    )
    weights, rest = eqx.partition(term.network, eqx.is_inexact_array)
    state = optimiser.init(weights)
    size = jnp.asarray(term.size)
    windows = len(samples.target)
    targets = samples.target.shape[1]
    if term.conservative:
        x, y = jnp.asarray(samples.features), jnp.asarray(samples.target)
        unit = jnp.asarray(_sizes(samples, False, targets), jnp.float32)

        def loss(weights, key):
            own = eqx.tree_at(lambda t: t.network, term, eqx.combine(weights, rest))
            i = jax.random.randint(key, (_FLUX_BATCH,), 0, windows)
            made = jax.vmap(lambda f: _flux_prediction(own, f, samples.lengths))(x[i])
            shape = (1, targets, *(1,) * (y.ndim - 2))
            return jnp.mean(((made - y[i]) / unit.reshape(shape)) ** 2)
    else:
        x, y = _columns(samples)

        def loss(weights, key):
            own = eqx.tree_at(lambda t: t.network, term, eqx.combine(weights, rest))
            i = jax.random.randint(key, (_BATCH,), 0, len(x))
            return jnp.mean((_integrated(own, x[i]) - y[i] / size) ** 2)

    @eqx.filter_jit
    def some(weights, state, keys):
        def step(carry, key):
            weights, state = carry
            slope = jax.grad(loss)(weights, key)
            update, state = optimiser.update(slope, state, weights)
            return (optax.apply_updates(weights, update), state), None

        return jax.lax.scan(step, (weights, state), keys)[0]

    keys = jax.random.split(key, steps)
    chunk = 100
    for first in range(0, steps, chunk):
        weights, state = some(weights, state, keys[first : first + chunk])
        progress(min(first + chunk, steps), steps)
    return eqx.tree_at(lambda t: t.network, term, eqx.combine(weights, rest))


def _columns(samples: _Samples) -> tuple[Array, Array]:
    """Points of all windows: features `(n, 7, F)` and targets `(n, T)`."""
    windows, length, count = samples.features.shape[:3]
    x = np.moveaxis(samples.features.reshape(windows, length, count, -1), 3, 1)
    y = np.moveaxis(samples.target.reshape(windows, samples.target.shape[1], -1), 2, 1)
    generator = np.random.default_rng(1)
    if x.shape[1] > _POINTS:
        kept = generator.permutation(x.shape[1])[:_POINTS]
        x, y = x[:, kept], y[:, kept]
    return (
        jnp.asarray(x.reshape(-1, length, count)),
        jnp.asarray(y.reshape(-1, y.shape[-1])),
    )


def _last_layer(term: LearnedTerm, samples: _Samples) -> LearnedTerm:
    """With the last layer solved for by least squares: it enters linearly."""
    x, y = _columns(samples)
    keep = np.random.default_rng(2).permutation(len(x))[:_LAST]
    x, y = x[keep], y[keep] / term.size
    body = eqx.tree_at(lambda n: n.layers, term.network, term.network.layers[:-1])

    def hidden(f: Array) -> Array:
        for layer in body.layers:
            f = term.network.activation(layer(f))
        return f

    scaled = jnp.clip((x - term.centre) / term.spread, term.low, term.high)
    bell = jnp.asarray(time_tests(WINDOW)[0][0], x.dtype)
    rows = jax.jit(lambda s: jax.lax.map(lambda w: bell @ jax.vmap(hidden)(w), s, batch_size=512))(
        scaled
    )
    rows = np.asarray(rows, np.float64)
    rows = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
    gram = rows.T @ rows
    gram += _RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
    solution = np.linalg.solve(gram, rows.T @ np.asarray(y, np.float64)).T
    last = term.network.layers[-1]
    last = eqx.tree_at(
        lambda one: (one.weight, one.bias),
        last,
        (jnp.asarray(solution[:, :-1], jnp.float32), jnp.asarray(solution[:, -1], jnp.float32)),
    )
    return eqx.tree_at(lambda t: t.network.layers[-1], term, last)


def _explained(term: LearnedTerm, samples: _Samples) -> float:
    if term.conservative:
        made = np.stack(
            [
                np.asarray(_flux_prediction(term, jnp.asarray(f), samples.lengths))
                for f in samples.features
            ]
        )
        left, whole = np.sum((samples.target - made) ** 2), np.sum(samples.target**2)
    else:
        x, y = _columns(samples)
        made = np.asarray(eqx.filter_jit(_integrated)(term, x) * term.size)
        left, whole = np.sum((np.asarray(y) - made) ** 2), np.sum(np.asarray(y) ** 2)
    return float(1 - left / max(float(whole), 1e-300))

"""A learned term from frames: regression on what the known terms leave of the change.

Outputs of the term are linear in the units of its last layer, so their weights are solved for.
First those of the arguments and of their products, then a network is trained for what they leave,
then the weights of both together. Each is kept if windows that were not used for it say so.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..data import Trajectories
from ..equation import Equation, PartialEquation
from ..equation.learned import LearnedTerm, feature_names, usual_arguments
from ..errors import SplatopError
from ..stepper import Coefficients
from .samples import WINDOW, Samples, take
from .weights import left, normal_equations, solved, trained

WIDTH, DEPTH = 48, 2
STEPS = 1500
# One window in so many is kept from learning, to judge by.
_JUDGES = 8
# Where arguments and products leave less of the change (in energy), no network is trained.
_ENOUGH = 1e-8
# Higher derivatives are arguments if so small a share of what is left without them remains.
_HIGHER = 0.25
# A part is kept if it lowers what is left by more.
_GAIN = 0.99
# Values of the arguments that are kept to show where there were data.
_SHOWN = 1000


@dataclass(frozen=True)
class Learned:
    """A term that was learned: `explained` is the share of what the known terms leave of the
    change that it accounts for (in energy, 1 is all), on windows not used for it; `names` those of
    its arguments, `samples` `(n, F)` some of their values in the data, and `gram` the Gram matrix
    of the term's units on them."""

    term: LearnedTerm
    explained: float
    names: tuple[str, ...]
    samples: np.ndarray
    gram: np.ndarray


def learn(
    data: Trajectories,
    partial: PartialEquation,
    *,
    known: Equation | None,
    coefficients: Coefficients,
    symmetry: Iterable[str] = (),
    steps: int = STEPS,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Learned:
    """The term that `?` stands for, as a network of what it may depend on.

    `known` are the terms that are told, with `coefficients` for all of them. With the `symmetry`
    rotation it depends on what does not change when the axes turn, with conservation it is the
    divergence of a flux. Inputs of the data are arguments as fields are.
    """
    if data.frames < WINDOW:
        raise SplatopError(
            f"expected trajectories of at least {WINDOW} frames to learn a term from, got "
            f"{data.frames}: give longer ones"
        )
    if steps < 1:
        raise SplatopError(f"expected at least one step of training, got {steps}")
    term, higher = _asked(data, partial, frozenset(symmetry))
    data = data.together
    with jax.enable_x64(True):
        samples = take(data, term, known, coefficients)
    judges = max(1, len(samples) // _JUDGES)
    if higher and not _needed(term, samples[judges:], samples[:judges], higher):
        kept = [i for i in range(len(term.arguments)) if i not in higher]
        term = replace(term, arguments=tuple(term.arguments[i] for i in kept))
        samples = samples.of(kept)
    training, judging = samples[judges:], samples[:judges]
    found = solved(_ready(term, training, seed), training, hidden=False)
    rest = left(found, judging)
    if rest > _ENOUGH:
        wider = trained(found, training, steps=steps, seed=seed, progress=progress)
        for better in (wider, solved(wider, training)):
            if (now := left(better, judging)) < _GAIN * rest:
                found, rest = better, now
    flat = training.arguments
    some = np.random.default_rng(seed).integers(0, flat.shape[1], _SHOWN)
    names = feature_names(data.fields, found.arguments, invariant=found.invariant)
    gram, _ = normal_equations(found, training)
    return Learned(found, 1 - rest, names, flat[:, some].T, gram)


def _asked(
    data: Trajectories, partial: PartialEquation, symmetry: frozenset[str]
) -> tuple[LearnedTerm, frozenset[int]]:
    """A term that may depend on all that it could need, and which of its arguments are derivatives
    above the second."""
    given = [a for own in partial.unknown.values() for a in own or ()]
    free = any(own is None for own in partial.unknown.values())
    conservative, invariant = "conservation" in symmetry, "rotation" in symmetry and free
    fields, dims = (*data.fields, *data.inputs), data.grid.dims
    few = usual_arguments(fields, dims) if free else tuple(dict.fromkeys(given))
    arguments = few
    if free and not (conservative or invariant):
        arguments = usual_arguments(fields, dims, order=4)
    each = (len(fields) if invariant else dims) if conservative else 1
    term = LearnedTerm(
        network=eqx.nn.MLP(1, 1, 1, DEPTH, key=jax.random.key(0)),
        centre=jnp.zeros(1),
        spread=jnp.ones(1),
        low=jnp.zeros(1),
        high=jnp.zeros(1),
        size=jnp.ones(len(partial.unknown) * each),
        fields=data.fields,
        inputs=data.inputs,
        targets=tuple(partial.unknown),
        arguments=arguments,
        invariant=invariant,
        conservative=conservative,
    )
    return term, frozenset(i for i, a in enumerate(arguments) if a not in few)


def _ready(term: LearnedTerm, samples: Samples, seed: int) -> LearnedTerm:
    """With the range and the units of the data, and all weights 0."""
    flat = samples.arguments
    count, outputs = len(flat), len(term.size)
    centre, spread = flat.mean(axis=1), flat.std(axis=1)
    spread = np.where(spread > 0, spread, 1.0)
    scaled = (flat - centre[:, None]) / spread[:, None]
    size = np.repeat(samples.deviation, outputs // len(term.targets))
    if term.conservative and not term.invariant:
        # A flux is larger than its divergence by about the box over some waves.
        size = size * min(samples.lengths) / (2 * np.pi)
    values = (centre, spread, scaled.min(axis=1), scaled.max(axis=1), size)
    single = [jnp.asarray(value, jnp.float32) for value in values]
    key = jax.random.key(seed)
    ready = replace(
        term,
        network=eqx.nn.MLP(count, outputs, WIDTH, DEPTH, activation=jax.nn.gelu, key=key),
        cubic=True,
        **dict(zip(("centre", "spread", "low", "high", "size"), single, strict=True)),
    )
    direct = count + sum(map(len, ready.products))
    ready = replace(ready, direct=jnp.zeros((outputs, direct), jnp.float32))
    return ready.with_weights(jnp.zeros_like(ready.weights))


def _needed(term: LearnedTerm, training: Samples, judging: Samples, higher: frozenset[int]) -> bool:
    """Whether derivatives above the second explain what others cannot."""
    kept = [i for i in range(len(term.arguments)) if i not in higher]
    few, many = (
        left(solved(_ready(term, one, 0), one, hidden=False), other)
        for one, other in ((training.of(kept), judging.of(kept)), (training, judging))
    )
    return few > _ENOUGH and many < _HIGHER * few

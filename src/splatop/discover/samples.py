"""Frames as samples of a learned term: its arguments at points, and what it has to explain there.

The change is taken in the weak form in time: a bell over seven frames, against which the term is
integrated as well. So the error of a time difference is not what it learns.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..data import Trajectories
from ..data.split import part
from ..derivative import Derivative, gradient
from ..equation import Equation
from ..equation.learned import LearnedTerm, divergence, features, fluxes
from ..errors import SplatopError
from ..identify.weak import time_tests
from .gather import Gathered, gather, gather_between_walls

WINDOW = 7
# Windows, and points of each that are kept; a flux needs all points, so fewer windows.
_WINDOWS = 160
_FLUX_WINDOWS = 24
_POINTS = 2048
# Products of the jet are as wide as cubic ones.
_DEGREE = 3
BELL, SLOPE = (tests[0] for tests in time_tests(WINDOW))


class Samples(eqx.Module):
    """Arguments `(W, 7, F, ...)` and what is to be explained `(W, T, ...)` at points of windows.

    For a flux the points are those of a whole grid, and `slopes` `(W, 7, C, d, ...)` the gradients
    of all fields, if it is along them.
    """

    features: Array
    target: Array
    slopes: Array | None
    lengths: tuple[float, ...] = eqx.field(static=True)

    def __getitem__(self, rows: Any) -> "Samples":
        return jax.tree.map(lambda leaf: leaf[rows], self)

    def __len__(self) -> int:
        return len(self.target)

    def of(self, arguments: list[int]) -> "Samples":
        """With some of the arguments alone."""
        return replace(self, features=self.features[:, :, np.array(arguments)])

    @property
    def arguments(self) -> np.ndarray:
        """`(F, n)`, over all windows and frames."""
        flat = np.moveaxis(np.asarray(self.features, np.float64), 2, 0)
        return flat.reshape(len(flat), -1)

    @property
    def deviation(self) -> np.ndarray:
        """Of what is to be explained, for each of its fields; 1 where that does not vary."""
        target = np.asarray(self.target, np.float64)
        size = np.sqrt(np.mean(target**2, axis=(0, *range(2, target.ndim))))
        return np.where(size > 0, size, 1.0)


def take(
    data: Trajectories,
    shape: LearnedTerm,
    known: Equation | None,
    coefficients: Mapping[str, float],
) -> Samples:
    """Windows spread over all trajectories; `shape` says what the term may depend on."""
    windows = _FLUX_WINDOWS if shape.conservative else _WINDOWS
    if shape.conservative and not data.domain.all_periodic:
        raise SplatopError(
            f"{data.source}: expected a periodic box to learn a flux on, got one with walls: leave "
            "the symmetry conservation out"
        )
    dims = data.grid.dims
    wanted: set[Derivative] = set(shape.derivatives(dims))
    if known is not None:
        known = known.placed_at(data.grid.origin)
        wanted |= known.derivatives(dims)
    held = gathered(data, windows, coefficients, wanted)
    places = np.array([data.fields.index(name) for name in shape.targets])
    along = shape.conservative and shape.invariant

    def one(u: Array) -> tuple[Array, ...]:
        jet = held.modes.jet(u, sorted(wanted))
        told = jnp.zeros_like(jet.state) if known is None else known(jet, coefficients)
        found = features(jet, data.fields, shape.arguments, invariant=shape.invariant)
        parts = (found, jet.state[places], told[places])
        if along:
            parts += (jnp.stack([jet[d] for d in gradient(dims)], axis=1),)
        return parts

    @eqx.filter_jit
    def window(states: Array) -> tuple[Array, ...]:
        """Features, target and slopes of one window `(7, C, *M)`."""
        found, values, told, *slopes = jax.lax.map(one, states)
        target = jnp.tensordot(jnp.asarray(SLOPE) / held.dt, values, 1)
        return (found, target - jnp.tensordot(jnp.asarray(BELL), told, 1), *slopes)

    generator = np.random.default_rng(0)
    order = generator.permutation(len(held.states))[:windows]
    kept: list[list[np.ndarray]] = []
    for place in order:
        parts = [np.asarray(part) for part in window(jnp.asarray(held.states[place]))]
        if not shape.conservative:
            parts = _some(parts, generator)
        kept.append([part.astype(np.float32) for part in parts])
    found, target, *slopes = (jnp.asarray(np.stack(part)) for part in zip(*kept, strict=True))
    return Samples(found, target, slopes[0] if slopes else None, data.domain.lengths)


def _some(parts: list[np.ndarray], generator: np.random.Generator) -> list[np.ndarray]:
    """Features `(7, F, *M)` and target `(T, *M)` at some points, on one axis."""
    found, target = parts
    found, target = found.reshape(*found.shape[:2], -1), target.reshape(len(target), -1)
    if target.shape[-1] > _POINTS:
        chosen = generator.permutation(target.shape[-1])[:_POINTS]
        found, target = found[..., chosen], target[..., chosen]
    return [found, target]


def gathered(
    data: Trajectories,
    windows: int,
    coefficients: Mapping[str, float],
    wanted: Iterable[Derivative],
) -> Gathered:
    """About so many windows of seven frames, spread over all trajectories."""
    if data.trajectories > windows:
        data = part(data, slice(0, windows), which=f"the first {windows} trajectories")
    each = max(1, -(-windows // data.trajectories))
    begin = np.unique(np.linspace(0, data.frames - WINDOW, each).round().astype(int))
    if data.domain.all_periodic:
        return gather(data, begin, WINDOW, _DEGREE)
    return gather_between_walls(data, begin, WINDOW, _DEGREE, coefficients, wanted)


def predicted(term: LearnedTerm, window: Samples) -> Array:
    """What a term makes of the arguments of one window, `(T, ...)`."""
    points = window.features.shape[2:]
    outputs = term.values(_columns(window)).reshape(-1, WINDOW, *points)
    return _integrated(term, outputs, window)


def units(term: LearnedTerm, window: Samples) -> Array:
    """What that is linear in: `(O, U, T, ...)`, for a weight of 1 of each unit in each output."""
    points = window.features.shape[2:]
    own = term.units(_columns(window)).reshape(-1, WINDOW, *points)

    def one(output: Array, unit: Array) -> Array:
        placed = jnp.zeros((len(term.size), *unit.shape), unit.dtype)
        return _integrated(term, placed.at[output].set(unit * term.size[output]), window)

    return jax.vmap(lambda o: jax.vmap(lambda u: one(o, u))(own))(jnp.arange(len(term.size)))


def _columns(window: Samples) -> Array:
    """One column for each frame and point."""
    f = window.features
    return jnp.moveaxis(f, 1, 0).reshape(f.shape[1], -1)


def _integrated(term: LearnedTerm, outputs: Array, window: Samples) -> Array:
    """Outputs `(O, 7, ...)` integrated against the bell; of a flux the divergence."""
    bell = jnp.asarray(BELL, outputs.dtype)
    if not term.conservative:
        return jnp.tensordot(bell, outputs, axes=(0, 1))
    slopes = None if window.slopes is None else jnp.moveaxis(window.slopes, 0, 2)
    flux = fluxes(outputs, len(term.targets), slopes)
    return divergence(jnp.tensordot(bell, flux, axes=(0, 2)), window.lengths)

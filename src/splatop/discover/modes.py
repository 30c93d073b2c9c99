"""Functions of space that an equation is integrated against: waves around a ring, harmonics between
walls."""

import abc
import math
from dataclasses import replace
from itertools import pairwise

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..derivative import Derivative
from ..identify.noise import project
from ..jets import Jet, SpectralJets
from ..spaces import ShapeSpace, Space
from ..spectral import BoxFilter
from ..walls import Galerkin

SHELLS = 16
# A field with a kink has as much energy beyond a band as in its last fifth.
_NARROWER = 0.8


class Modes(eqx.Module):
    """States in a form of their own, their jets at points, and inner products with test functions.

    The functions come in `SHELLS` shells by wavenumber: shell s holds the numbers from `edges[s]`
    to `edges[s + 1]`, of which `freedom[s]` are independent.
    """

    edges: eqx.AbstractVar[tuple[int, ...]]
    freedom: eqx.AbstractVar[tuple[float, ...]]

    @property
    @abc.abstractmethod
    def dims(self) -> int: ...

    @abc.abstractmethod
    def jet(self, state: Array, wanted: list[Derivative]) -> Jet:
        """A state and its derivatives at the points where products are taken."""

    @abc.abstractmethod
    def against(self, columns: Float[Array, "q *Q"]) -> Float[Array, "q n"]:
        """Inner products of values at these points with all functions, shell after shell."""

    def noise(self, drawn: np.ndarray) -> np.ndarray:
        """White noise `(L, C, *M)` as a part of states."""
        return drawn

    @abc.abstractmethod
    def narrower(self, states: np.ndarray, times: int) -> np.ndarray:
        """States `(L, C, *M)` without the last part of their modes, and again of these."""

    @property
    def inner(self) -> int:
        """Shells inside the band that is narrower by once."""
        return int(_NARROWER * SHELLS / math.sqrt(self.dims))


class RingModes(Modes):
    """Fourier modes of a band; states are fields on a grid that holds their products."""

    jets: SpectralJets
    order: Array
    weights: Array
    edges: tuple[int, ...] = eqx.field(static=True)
    freedom: tuple[float, ...] = eqx.field(static=True)
    band: tuple[int, ...] = eqx.field(static=True)
    points: tuple[int, ...] = eqx.field(static=True)

    @classmethod
    def of(
        cls, band: tuple[int, ...], points: tuple[int, ...], lengths: tuple[float, ...]
    ) -> "RingModes":
        full = [np.concatenate([np.arange(b + 1), np.arange(-b, 0)]) for b in band[:-1]]
        modes = np.meshgrid(*full, np.arange(band[-1] + 1), indexing="ij")
        radius = np.sqrt(sum((k / b) ** 2 for k, b in zip(modes, band, strict=True))).ravel()
        order, edges = _shells(radius)
        # A mode of a real field stands for itself and its mirror image: two real numbers, or one.
        weights = np.sqrt(np.where(modes[-1].ravel() == 0, 1.0, 2.0))[order]
        freedom = tuple(float(np.sum(weights[a:b] ** 2)) for a, b in pairwise(edges))
        cutoffs = tuple(b / side for b, side in zip(band, lengths, strict=True))
        return cls(
            jets=SpectralJets(lengths, BoxFilter(cutoffs)),
            order=jnp.asarray(order),
            weights=jnp.asarray(weights),
            edges=tuple(int(2 * edge) for edge in edges),
            freedom=freedom,
            band=band,
            points=points,
        )

    @property
    def dims(self) -> int:
        return len(self.band)

    def jet(self, state: Array, wanted: list[Derivative]) -> Jet:
        return self.jets(state, wanted)

    def against(self, columns: Float[Array, "q *Q"]) -> Float[Array, "q n"]:
        modes = jnp.fft.rfftn(columns, axes=range(1, self.dims + 1), norm="forward")
        for axis, b in enumerate(self.band, start=1):
            last = modes.shape[axis]
            kept = np.arange(b + 1)
            if axis < self.dims:
                kept = np.concatenate([kept, np.arange(last - b, last)])
            modes = jnp.take(modes, kept, axis=axis)
        modes = modes.reshape(len(columns), -1)[:, self.order] * self.weights
        return jnp.stack([modes.real, modes.imag], axis=-1).reshape(len(columns), -1)

    def noise(self, drawn: np.ndarray) -> np.ndarray:
        return project(drawn, self.band, self.points)

    def narrower(self, states: np.ndarray, times: int) -> np.ndarray:
        return project(states, tuple(int(_NARROWER**times * b) for b in self.band), self.points)


class WallModes(Modes):
    """Harmonics of a box with walls or of a shape; states are their numbers, those of each field's
    own.

    What an equation is integrated against need not obey the conditions of its field: the harmonics
    of the first field serve all.
    """

    scheme: Galerkin
    tests: Space
    lifted: Array | None
    order: Array
    edges: tuple[int, ...] = eqx.field(static=True)
    freedom: tuple[float, ...] = eqx.field(static=True)

    @classmethod
    def of(cls, scheme: Galerkin, lifted: Array | None) -> "WallModes":
        space = scheme.space
        if isinstance(space, ShapeSpace):
            tests = ShapeSpace(space.domain, space.fields[:1], space.sizes)
        else:
            tests = replace(space, fields=space.fields[:1])
        order, edges = _shells(np.sqrt(np.maximum(tests.energies()[0], 0.0)).ravel())
        freedom = tuple(float(b - a) for a, b in pairwise(edges))
        bounds = tuple(int(edge) for edge in edges)
        return cls(
            scheme=scheme,
            tests=tests,
            lifted=lifted,
            order=jnp.asarray(order),
            edges=bounds,
            freedom=freedom,
        )

    @property
    def dims(self) -> int:
        return self.tests.dims

    def jet(self, state: Array, wanted: list[Derivative]) -> Jet:
        return self.scheme.jet(state, wanted, self.lifted)

    def against(self, columns: Float[Array, "q *Q"]) -> Float[Array, "q n"]:
        return self.tests.project(columns).reshape(len(columns), -1)[:, self.order]

    def narrower(self, states: np.ndarray, times: int) -> np.ndarray:
        kept = states
        for axis, n in enumerate(states.shape[2:], start=2):
            place = [1] * states.ndim
            place[axis] = n
            kept = kept * (np.arange(n) <= _NARROWER**times * (n - 1)).reshape(place)
        return kept


def _shells(radius: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An order of functions by their wavenumber, and where the shells begin and end in it."""
    order = np.argsort(radius, kind="stable")
    limits = np.linspace(0, radius.max() * (1 + 1e-9), SHELLS + 1)
    return order, np.searchsorted(radius[order], limits)

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
from ..spaces import BoxSpace, ShapeSpace, Space
from ..spectral import BoxFilter
from ..walls import Galerkin

SHELLS = 16
# A field with a kink has as much energy beyond a band as in its last fifth.
_NARROWER = 0.8
# Share of an axis over which a window rises from a wall.
_MARGIN = 0.15


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

    @abc.abstractmethod
    def narrower(self, states: np.ndarray, times: int) -> np.ndarray:
        """States `(L, C, *M)` without the last part of their modes, and again of these."""

    @property
    def inner(self) -> int:
        """Shells inside the band that is narrower by once."""
        return int(_NARROWER * SHELLS / math.sqrt(self.dims))


# Successive channels, so many of each, and the band that they lie in.
Bands = tuple[tuple[int, tuple[int, ...]], ...]


def within(states: np.ndarray, bands: Bands, points: tuple[int, ...]) -> np.ndarray:
    """The part of states `(..., C, *N)` inside the band of each channel, sampled at `points`."""
    axis = states.ndim - len(points) - 1
    ends = np.cumsum([count for count, _ in bands])[:-1]
    parts = np.split(states, ends, axis=axis)
    own = [project(part, band, points) for part, (_, band) in zip(parts, bands, strict=True)]
    return np.concatenate(own, axis=axis)


class RingModes(Modes):
    """Fourier modes of a band, that of the first channels; states are fields on a grid that holds
    their products, each in the band of its own channels."""

    jets: SpectralJets
    order: Array
    weights: Array
    edges: tuple[int, ...] = eqx.field(static=True)
    freedom: tuple[float, ...] = eqx.field(static=True)
    bands: Bands = eqx.field(static=True)
    points: tuple[int, ...] = eqx.field(static=True)

    @classmethod
    def of(cls, bands: Bands, points: tuple[int, ...], lengths: tuple[float, ...]) -> "RingModes":
        band = bands[0][1]
        full = [np.concatenate([np.arange(b + 1), np.arange(-b, 0)]) for b in band[:-1]]
        modes = np.meshgrid(*full, np.arange(band[-1] + 1), indexing="ij")
        radius = np.sqrt(sum((k / b) ** 2 for k, b in zip(modes, band, strict=True))).ravel()
        order, edges = _shells(radius)
        # A mode of a real field stands for itself and its mirror image: two real numbers, or one.
        weights = np.sqrt(np.where(modes[-1].ravel() == 0, 1.0, 2.0))[order]
        freedom = tuple(float(np.sum(weights[a:b] ** 2)) for a, b in pairwise(edges))
        widest = np.max([own for _, own in bands], axis=0)
        cutoffs = tuple(float(b) / side for b, side in zip(widest, lengths, strict=True))
        return cls(
            jets=SpectralJets(lengths, BoxFilter(cutoffs)),
            order=jnp.asarray(order),
            weights=jnp.asarray(weights),
            edges=tuple(int(2 * edge) for edge in edges),
            freedom=freedom,
            bands=bands,
            points=points,
        )

    @property
    def dims(self) -> int:
        return len(self.points)

    def jet(self, state: Array, wanted: list[Derivative]) -> Jet:
        return self.jets(state, wanted)

    def against(self, columns: Float[Array, "q *Q"]) -> Float[Array, "q n"]:
        modes = jnp.fft.rfftn(columns, axes=range(1, self.dims + 1), norm="forward")
        for axis, b in enumerate(self.bands[0][1], start=1):
            last = modes.shape[axis]
            kept = np.arange(b + 1)
            if axis < self.dims:
                kept = np.concatenate([kept, np.arange(last - b, last)])
            modes = jnp.take(modes, kept, axis=axis)
        modes = modes.reshape(len(columns), -1)[:, self.order] * self.weights
        return jnp.stack([modes.real, modes.imag], axis=-1).reshape(len(columns), -1)

    def narrower(self, states: np.ndarray, times: int) -> np.ndarray:
        share = _NARROWER**times
        bands = tuple((n, tuple(int(share * b) for b in band)) for n, band in self.bands)
        return within(states, bands, self.points)


class WallModes(Modes):
    """Harmonics of a box with walls or of a shape; states are their numbers, those of each field's
    own.

    What an equation is integrated against need not obey the conditions of its field: the harmonics
    of the first field serve all.
    """

    scheme: Galerkin
    tests: Space
    lifted: Array | None
    window: Array | None
    order: Array
    edges: tuple[int, ...] = eqx.field(static=True)
    freedom: tuple[float, ...] = eqx.field(static=True)
    band: tuple[int, ...] = eqx.field(static=True)

    @classmethod
    def of(
        cls, scheme: Galerkin, lifted: Array | None, band: tuple[int, ...], *, noisy: bool = False
    ) -> "WallModes":
        """Of states that hold the first `band` harmonics along each axis: of others, what a product
        has there says nothing. If they are `noisy`, products are tested away from the walls of a
        box: there samples lie on one side only, and a fit gathers noise."""
        space = scheme.space
        if isinstance(space, ShapeSpace):
            tests = ShapeSpace(space.domain, space.fields[:1], space.sizes)
        else:
            tests = replace(space, fields=space.fields[:1])
        energies = np.maximum(tests.energies()[0], 0.0)
        heard = np.arange(energies.size).reshape(energies.shape)[tuple(map(slice, band))].ravel()
        order, edges = _shells(np.sqrt(energies.ravel()[heard]))
        freedom = tuple(float(b - a) for a, b in pairwise(edges))
        bounds = tuple(int(edge) for edge in edges)
        return cls(
            scheme=scheme,
            tests=tests,
            lifted=lifted,
            window=_window(space) if noisy and isinstance(space, BoxSpace) else None,
            order=jnp.asarray(heard[order]),
            edges=bounds,
            freedom=freedom,
            band=band,
        )

    @property
    def dims(self) -> int:
        return self.tests.dims

    def jet(self, state: Array, wanted: list[Derivative]) -> Jet:
        return self.scheme.jet(state, wanted, self.lifted)

    def against(self, columns: Float[Array, "q *Q"]) -> Float[Array, "q n"]:
        if self.window is not None:
            columns = columns * self.window
        return self.tests.project(columns).reshape(len(columns), -1)[:, self.order]

    def narrower(self, states: np.ndarray, times: int) -> np.ndarray:
        kept = states
        for axis, b in enumerate(self.band, start=2):
            place = [1] * states.ndim
            place[axis] = n = states.shape[axis]
            kept = kept * (np.arange(n) <= _NARROWER**times * (b - 1)).reshape(place)
        return kept


def _window(space: BoxSpace) -> Array:
    """1 inside, 0 at the walls, at the working points."""
    window = np.ones(())
    for axis, x in zip(space.domain.axes, space.working_points(), strict=True):
        inside = np.ones(len(x))
        if not axis.periodic:
            share = (x - axis.origin) / axis.length
            far = np.minimum(share, 1 - share) / _MARGIN
            inside = np.sin(np.pi / 2 * np.clip(far, 0.0, 1.0)) ** 2
        window = window[..., None] * inside
    return jnp.asarray(window)


def _shells(radius: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An order of functions by their wavenumber, and where the shells begin and end in it."""
    order = np.argsort(radius, kind="stable")
    limits = np.linspace(0, radius.max() * (1 + 1e-9), SHELLS + 1)
    return order, np.searchsorted(radius[order], limits)

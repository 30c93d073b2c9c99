"""Jets: the filtered derivatives of a state, and the providers that compute them.

A jet is the only interface between a representation and the physics. The providers fill the same
slot: `SplatJets` (Gaussians), `SpectralJets` (exact, the oracle), `FiniteDifferenceJets`.
"""

import abc
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float

from .derivative import Derivative
from .encoders import Encoder, HeldGeometry, LatticeEncoder, modes_of_samples, sample_points
from .errors import SplatopError, check_field
from .grid import Grid, as_numbers, broadcastable
from .render import FourierRenderer, Renderer
from .render.fourier import band_modes, fields_of_band, fourier_modes
from .spectral import Field, Filter, derivative_symbol, from_modes, resample, to_modes

# Anchors of a lattice beyond two for each mode it is to hold.
LATTICE_MARGIN = 6


class Jet(eqx.Module):
    """A state and the derivatives that were asked for, all at the same points.

    `state` is the current state itself, for algebraic terms; `jet[derivative]` is filtered.
    `origin` is where the box begins; a term that knows it says so, providers count from 0.
    The points are those of a uniform grid, unless `fractions` say where along each axis they lie;
    `scattered` points have one fraction each along every axis.
    """

    state: Field
    values: dict[Derivative, Field]
    lengths: tuple[float, ...] = eqx.field(static=True)
    origin: tuple[float, ...] = eqx.field(static=True, default=())
    fractions: tuple[tuple[float, ...], ...] | None = eqx.field(static=True, default=None)
    scattered: bool = eqx.field(static=True, default=False)

    def __getitem__(self, derivative: Derivative) -> Field:
        if derivative not in self.values:
            held = ", ".join(str(d) for d in self.values) or "none"
            raise SplatopError(
                f"expected a jet with the derivative {derivative}, it holds {held}: "
                "list it in the term's `derivatives`"
            )
        return self.values[derivative]

    def first(self, channels: int) -> "Jet":
        """The jet of the first channels alone."""
        if len(self.state) == channels:
            return self
        values = {d: field[:channels] for d, field in self.values.items()}
        return replace(self, state=self.state[:channels], values=values)

    @property
    def dims(self) -> int:
        return len(self.lengths)

    @property
    def grid(self) -> Grid:
        return Grid(tuple(self.state.shape[1:]), self.lengths, self.origin)

    def coordinates(self) -> tuple[np.ndarray, ...]:
        """Physical coordinates of the points, one broadcastable array per axis."""
        if self.fractions is None:
            return self.grid.coordinates()
        begins = self.origin or (0.0,) * self.dims
        places = [
            begin + length * np.asarray(along)
            for begin, length, along in zip(begins, self.lengths, self.fractions, strict=True)
        ]
        return tuple(places) if self.scattered else broadcastable(places)


class JetProvider(eqx.Module):
    """State to jet. `lengths` are the sides of the periodic box, `filter` is Π_κ.

    `__call__` is all that a provider must have. The other methods tell Φ and the identification
    what they would otherwise have to know about it; each has an answer that is right for a provider
    that differentiates whatever its grid resolves.
    """

    lengths: eqx.AbstractVar[tuple[float, ...]]
    filter: eqx.AbstractVar[Filter]

    @abc.abstractmethod
    def __call__(self, u: Field, derivatives: Iterable[Derivative]) -> Jet: ...

    def for_step(self, u: Field) -> "JetProvider":
        """The provider for the stages of one time step that starts at `u`: it may hold what it
        learned from `u`."""
        return self

    def working_points(self, points: tuple[int, ...], degree: float) -> tuple[int, ...]:
        """The least grid for states of `points`, on which nothing aliases into the filter's band.

        Products of an equation's degree need `(degree + 1)` times the band.
        """
        band = self.filter.band(Grid(points, self.lengths))
        return tuple(fast_size(int((min(degree, 3) + 1) * b) + 1) for b in band)

    def with_filter(self, filter: Filter) -> "JetProvider":
        """The same provider with another filter."""
        return replace(self, filter=filter)  # type: ignore[type-var]

    def inside(self, band: tuple[int, ...], filter: Filter) -> "JetProvider":
        """The cheapest provider that gives the same derivatives of states whose modes all lie in
        `band`, with this filter."""
        return self.with_filter(filter)

    @property
    def is_spectral(self) -> bool:
        """Whether derivatives are those of the trigonometric interpolant, exactly: multiplications
        of its modes."""
        return False

    @property
    def gaussian_encoder(self) -> Encoder | None:
        """The encoder of the Gaussians that are differentiated, if there are any."""
        return None


class SpectralJets(JetProvider):
    """Derivatives of the trigonometric interpolant by FFT, filtered in the same transform."""

    lengths: tuple[float, ...] = eqx.field(static=True, converter=as_numbers)
    filter: Filter

    @property
    def is_spectral(self) -> bool:
        return True

    def __call__(self, u: Field, derivatives: Iterable[Derivative]) -> Jet:
        check_field(u, dims=len(self.lengths))
        grid = Grid(tuple(u.shape[1:]), self.lengths)
        modes = to_modes(u)
        weights = self.filter.weights(grid.wavenumbers())
        values = {
            d: from_modes(
                modes * jnp.asarray(weights * derivative_symbol(d, grid), modes.dtype), grid.points
            ).astype(u.dtype)
            for d in derivatives
        }
        return Jet(u, values, self.lengths)


class SplatJets(JetProvider):
    """Derivatives of the Gaussians that an encoder makes of the state, in closed form.

    With `hold_geometry` a step's first stage decides the primitives' geometry and later stages
    only solve for amplitudes, or, where those are predicted or too many, add what a lattice holds
    of the difference; otherwise every stage encodes anew, as in the paper.
    """

    encoder: Encoder
    lengths: tuple[float, ...] = eqx.field(static=True, converter=as_numbers)
    filter: Filter
    renderer: Renderer = FourierRenderer()
    hold_geometry: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        if self.encoder.anchors == "auto":
            raise SplatopError(
                'expected an encoder with a fixed lattice, got anchors="auto", which could change '
                "from stage to stage: use LatticeEncoder.for_field(u)"
            )

    def for_step(self, u: Field) -> JetProvider:
        later = self.encoder.later_stages
        if not self.hold_geometry or later == "encode":
            return self
        grid = Grid(tuple(u.shape[1:]), self.lengths)
        band = self.filter.band(grid)
        if self.renderer.in_modes and later == "increment":
            return _IncrementJets.of(self.encoder, u, grid, band, self.filter)
        held: Any = self.encoder.hold(u)
        # One matrix instead of two where the band has fewer modes than there are amplitudes.
        narrow = 2 * math.prod(map(len, band_modes(band))) <= math.prod(self.encoder.anchors)
        if self.renderer.in_modes and narrow and later == "solve":
            return _HeldJets.of(held, grid, band, self.filter)
        return replace(self, encoder=held, hold_geometry=False)

    def working_points(self, points: tuple[int, ...], degree: float) -> tuple[int, ...]:
        """A lattice of A anchors mirrors mode k at A - k, which the grid must resolve to be told
        apart from k."""
        band = self.filter.band(Grid(points, self.lengths))
        least = super().working_points(points, degree)
        return tuple(
            max(n, fast_size(2 * (a - b) + 1), a)
            for n, a, b in zip(least, self.encoder.anchors, band, strict=True)
        )

    def inside(self, band: tuple[int, ...], filter: Filter) -> JetProvider:
        """A lattice that carries the band differentiates it exactly, as Fourier modes do at a tenth
        of the cost."""
        if self.encoder.carries(band):
            return SpectralJets(self.lengths, filter)
        return self.with_filter(filter)

    @property
    def gaussian_encoder(self) -> Encoder:
        return self.encoder

    def __call__(self, u: Field, derivatives: Iterable[Derivative]) -> Jet:
        check_field(u, dims=len(self.lengths))
        grid = Grid(tuple(u.shape[1:]), self.lengths)
        values = self.renderer(self.encoder(u), derivatives, grid, self.filter)
        return Jet(u, values, self.lengths)


class _HeldJets(JetProvider):
    """`SplatJets` during one step, while its Gaussians keep their places and widths.

    Fitting amplitudes and rendering are then both linear in the state: one matrix, from the samples
    that amplitudes are fitted to, to the modes of the Gaussians inside the filter's band.
    """

    matrix: Float[Array, "Q two_K"]
    samples: tuple[int, ...] = eqx.field(static=True)
    band: tuple[int, ...] = eqx.field(static=True)
    lengths: tuple[float, ...] = eqx.field(static=True)
    filter: Filter

    @classmethod
    def of(
        cls, encoder: HeldGeometry, grid: Grid, band: tuple[int, ...], filter: Filter
    ) -> "_HeldJets":
        samples = sample_points(encoder.geometry, grid.points)
        matrix = modes_of_samples(encoder.geometry, samples, band, renderer=encoder.renderer)
        return cls(matrix=matrix, samples=samples, band=band, lengths=grid.lengths, filter=filter)

    def __call__(self, u: Field, derivatives: Iterable[Derivative]) -> Jet:
        check_field(u, dims=len(self.lengths))
        mean = jnp.mean(u, axis=range(1, u.ndim))
        centred = u - mean.reshape((-1,) + (1,) * (u.ndim - 1))
        fitted = resample(centred, self.samples).reshape(len(u), -1)
        modes = jax.lax.complex(*jnp.split(fitted @ self.matrix, 2, axis=1))
        modes = modes.reshape(-1, *map(len, band_modes(self.band)))
        modes = modes.at[(slice(None),) + (0,) * len(self.band)].add(mean)
        grid = Grid(tuple(u.shape[1:]), self.lengths)
        values = fields_of_band(modes, derivatives, grid, self.filter)
        return Jet(u, values, self.lengths)


class _IncrementJets(JetProvider):
    """`SplatJets` during one step, where amplitudes are predicted by a network, or are too many to
    solve for in every stage: the Gaussians of the step's first state, plus those of a lattice for
    the difference that later stages make to it.
    """

    start: Field
    modes: Complex[Array, "C *K"]
    lattice: LatticeEncoder
    band: tuple[int, ...] = eqx.field(static=True)
    lengths: tuple[float, ...] = eqx.field(static=True)
    filter: Filter

    @classmethod
    def of(
        cls, encoder: Encoder, u: Field, grid: Grid, band: tuple[int, ...], filter: Filter
    ) -> "_IncrementJets":
        anchors = tuple(
            min(n, max(a, 2 * b + LATTICE_MARGIN))
            for n, a, b in zip(grid.points, encoder.anchors, band, strict=True)
        )
        return cls(
            start=u,
            modes=fourier_modes(encoder(u), band),
            lattice=LatticeEncoder(anchors),
            band=band,
            lengths=grid.lengths,
            filter=filter,
        )

    def __call__(self, u: Field, derivatives: Iterable[Derivative]) -> Jet:
        check_field(u, dims=len(self.lengths))
        modes = self.modes + fourier_modes(self.lattice.fit(u - self.start), self.band)
        grid = Grid(tuple(u.shape[1:]), self.lengths)
        return Jet(u, fields_of_band(modes, derivatives, grid, self.filter), self.lengths)


def fast_size(least: int) -> int:
    """The next even size with only small prime factors."""
    size = max(4, least + least % 2)
    while True:
        rest = size
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return size
        size += 2

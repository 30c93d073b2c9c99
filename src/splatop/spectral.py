"""Fourier tools on periodic grids: filters, derivatives, resampling, spectra."""

import abc
import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .derivative import Derivative
from .errors import SplatopError
from .grid import Grid, as_number, as_numbers

Field = Float[Array, "C *N"]
# A field on another grid than the one it is made of.
Other = Float[Array, "C *M"]

# A filter weight below this is rounding noise of a float32 field.
NEGLIGIBLE_WEIGHT = 1e-7


def to_modes(u: Field) -> Array:
    """Fourier coefficients `û(k)` with `u(x) = Σ û(k) exp(2πi k·x)`, in the layout of `rfftn`."""
    return jnp.fft.rfftn(u, axes=range(1, u.ndim), norm="forward")


def from_modes(modes: Array, points: tuple[int, ...]) -> Field:
    return jnp.fft.irfftn(
        modes, s=points, axes=range(modes.ndim - len(points), modes.ndim), norm="forward"
    )


def pad_modes(modes: Array, band: tuple[int, ...], points: tuple[int, ...]) -> Array:
    """Modes `(..., *K)` of a band, `0..b, -b..-1` and along the last axis `0..b`, in the layout of
    `rfftn` on a grid of these points. Pieces put side by side: a scatter is a loop on CPUs."""
    first = modes.ndim - len(band)
    *full, last = zip(band, points, strict=True)
    for axis, (b, n) in enumerate(full, start=first):
        gap = list(modes.shape)
        gap[axis] = n - (2 * b + 1)
        low, high = jnp.split(modes, [b + 1], axis=axis)
        modes = jnp.concatenate([low, jnp.zeros(gap, modes.dtype), high], axis=axis)
    widths = [(0, 0)] * (modes.ndim - 1) + [(0, last[1] // 2 - last[0])]
    return jnp.pad(modes, widths)


def keep_band(modes: Array, band: tuple[int, ...]) -> Array:
    """The modes of a band from the layout of `rfftn`, `(C, *K)`: what `pad_modes` undoes."""
    for axis, b in enumerate(band[:-1], start=1):
        low = jax.lax.slice_in_dim(modes, 0, b + 1, axis=axis)
        size = modes.shape[axis]
        high = jax.lax.slice_in_dim(modes, size - b, size, axis=axis)
        modes = jnp.concatenate([low, high], axis=axis)
    return modes[..., : band[-1] + 1]


# A band of so few modes of one axis is transformed by a small matrix, which costs less than
# transforms that are calls of their own.
_SMALL_BAND = 64


def band_values(
    modes: Array,
    symbols: Sequence[np.ndarray | float],
    band: tuple[int, ...],
    points: tuple[int, ...],
) -> Float[Array, "D C *N"]:
    """Fields on a grid from the modes of a band, each mode multiplied by its factor: one stack of
    fields for each table of factors."""
    if len(band) == 1 and band[0] <= _SMALL_BAND:
        parts = jnp.concatenate([modes.real, modes.imag], axis=-1)
        matrix = np.concatenate([_synthesis(band[0], points[0], symbol) for symbol in symbols], 1)
        found = parts @ jnp.asarray(matrix, parts.dtype)
        return jnp.moveaxis(found.reshape(len(modes), len(symbols), points[0]), 1, 0)
    scaled = jnp.stack([modes * jnp.asarray(symbol, modes.dtype) for symbol in symbols])
    return from_modes(pad_modes(scaled, band, points), points)


def band_modes(u: Field, weights: np.ndarray | float, band: tuple[int, ...]) -> Array:
    """The modes of a band, weighted."""
    if len(band) == 1 and band[0] <= _SMALL_BAND:
        found = u @ jnp.asarray(_analysis(band[0], u.shape[-1], weights), u.dtype)
        return jax.lax.complex(*jnp.split(found, 2, axis=-1))
    modes = keep_band(to_modes(u), band)
    return modes if isinstance(weights, float) else modes * jnp.asarray(weights, u.dtype)


def _synthesis(band: int, points: int, symbol: np.ndarray | float) -> np.ndarray:
    """From real and imaginary parts of the modes 0..b to values: `(2 (b + 1), N)`."""
    k = np.arange(band + 1)
    waves = (
        symbol
        * np.where(k, 2.0, 1.0)
        * np.exp(2j * np.pi * np.outer(np.arange(points), k) / points)
    )
    return np.concatenate([np.real(waves), -np.imag(waves)], axis=1).T


def _analysis(band: int, points: int, weights: np.ndarray | float) -> np.ndarray:
    """From values to weighted real and imaginary parts of the modes 0..b: `(N, 2 (b + 1))`."""
    k = np.arange(band + 1)
    waves = weights * np.exp(-2j * np.pi * np.outer(np.arange(points), k) / points) / points
    return np.concatenate([np.real(waves), np.imag(waves)], axis=1)


class Filter(eqx.Module):
    """A low-pass filter Π_κ: a weight on each wavenumber (cycles per unit length)."""

    @classmethod
    def from_numerics(cls, numerics: Any, dims: int) -> "Filter":
        """The filter that `filter=<its registered name>` in the settings stands for: radial, with
        the one cutoff of `numerics`."""
        return cls(one_cutoff(numerics))  # pyright: ignore[reportCallIssue]

    @abc.abstractmethod
    def weights(self, wavenumbers: Sequence[np.ndarray]) -> np.ndarray: ...

    @abc.abstractmethod
    def reach(self, axis: int) -> float:
        """The wavenumber along an axis beyond which nothing is kept."""

    def band(self, grid: Grid) -> tuple[int, ...]:
        """Highest mode number kept along each axis of the grid (Nyquist modes never are)."""
        return tuple(
            int(min((n - 1) // 2, self.reach(axis) * length + 1e-9))
            for axis, (n, length) in enumerate(zip(grid.points, grid.lengths, strict=True))
        )

    def __call__(self, u: Field, lengths: tuple[float, ...]) -> Field:
        grid = Grid(tuple(u.shape[1:]), lengths)
        weights = jnp.asarray(self.weights(grid.wavenumbers()), u.dtype)
        return from_modes(to_modes(u) * weights, grid.points).astype(u.dtype)


def one_cutoff(numerics: Any) -> float:
    """The cutoff of a radial filter."""
    if len(numerics.cutoff) != 1:
        raise SplatopError(
            f"expected one cutoff for the radial filter '{numerics.filter}', "
            f"got {numerics.cutoff}: give one, or use filter=box"
        )
    return numerics.cutoff[0]


class SharpFilter(Filter):
    """Keeps `|k| <= cutoff`, drops the rest (paper, appendix B)."""

    cutoff: float = eqx.field(static=True, converter=as_number)

    def weights(self, wavenumbers):
        return (_radius(wavenumbers) <= self.cutoff + 1e-9).astype(float)

    def reach(self, axis):
        return self.cutoff


class SmoothFilter(Filter):
    """Keeps `|k| <= cutoff`, then rolls off as `exp(-((k - cutoff)/width)²)` (appendix B)."""

    cutoff: float = eqx.field(static=True, converter=as_number)
    width: float = eqx.field(static=True, converter=as_number)

    @classmethod
    def from_numerics(cls, numerics, dims):
        return cls(one_cutoff(numerics), numerics.rolloff)

    def weights(self, wavenumbers):
        excess = np.maximum(_radius(wavenumbers) - self.cutoff, 0.0)
        weight = np.exp(-((excess / self.width) ** 2))
        return np.where(weight < NEGLIGIBLE_WEIGHT, 0.0, weight)

    def reach(self, axis):
        return self.cutoff + self.width * math.sqrt(-math.log(NEGLIGIBLE_WEIGHT))


class BoxFilter(Filter):
    """Keeps `|k_i| <= cutoff_i` along each axis; with a width, rolls off smoothly beyond.

    A per-axis band suits data whose band is a box, as the paper's initial conditions are.
    """

    cutoffs: tuple[float, ...] = eqx.field(static=True, converter=as_numbers)
    width: float = eqx.field(static=True, default=0.0, converter=as_number)

    @classmethod
    def from_numerics(cls, numerics, dims):
        cutoffs = numerics.cutoff * (dims if len(numerics.cutoff) == 1 else 1)
        return cls(tuple(cutoffs), numerics.rolloff)

    def weights(self, wavenumbers):
        if len(wavenumbers) != len(self.cutoffs):
            raise SplatopError(
                f"expected one cutoff per axis, got {len(self.cutoffs)} cutoffs "
                f"for a {len(wavenumbers)}D field"
            )
        weight = np.ones(np.broadcast_shapes(*(k.shape for k in wavenumbers)))
        for k, cutoff in zip(wavenumbers, self.cutoffs, strict=True):
            excess = np.maximum(np.abs(k) - cutoff - 1e-9, 0.0)
            along = np.exp(-((excess / self.width) ** 2)) if self.width else excess == 0
            weight = weight * along
        return np.where(weight < NEGLIGIBLE_WEIGHT, 0.0, weight)

    def reach(self, axis):
        return self.cutoffs[axis] + self.width * math.sqrt(-math.log(NEGLIGIBLE_WEIGHT))


class PassThrough(Filter):
    """No filter: keeps everything the grid resolves."""

    @classmethod
    def from_numerics(cls, numerics, dims):
        return cls()

    def weights(self, wavenumbers):
        return np.ones(np.broadcast_shapes(*(k.shape for k in wavenumbers)))

    def reach(self, axis):
        return math.inf

    def __call__(self, u, lengths):
        return u


def _radius(wavenumbers: Sequence[np.ndarray]) -> np.ndarray:
    return np.sqrt(sum(np.square(k) for k in wavenumbers))


def derivative_symbol(derivative: Derivative, grid: Grid) -> np.ndarray:
    """The symbol on `rfftn`'s modes.

    On an even grid the Nyquist mode stands for ±N/2 at once: its symbol is the mean over both,
    along each axis, in which odd derivatives cancel.
    """
    nyquist = [
        (n % 2 == 0) & (np.abs(k) == n // 2) for n, k in zip(grid.points, grid.modes(), strict=True)
    ]
    total = np.zeros((), complex)
    for signs in itertools.product((1, -1), repeat=grid.dims):
        flipped = [
            np.where(own, sign * k, k)
            for sign, own, k in zip(signs, nyquist, grid.wavenumbers(), strict=True)
        ]
        total = total + derivative.symbol(flipped)
    return total / 2**grid.dims


def differentiate(u: Field, derivative: Derivative, lengths: tuple[float, ...]) -> Field:
    """The exact derivative of the trigonometric interpolant: the oracle for every other one."""
    grid = Grid(tuple(u.shape[1:]), lengths)
    symbol = jnp.asarray(derivative_symbol(derivative, grid))
    return from_modes(to_modes(u) * symbol, grid.points).astype(u.dtype)


@lru_cache(maxsize=256)
def interpolation_matrix(source: int, target: int) -> np.ndarray:
    """Band-limited interpolation of a periodic axis from `source` to `target` points.

    Exact for modes below both Nyquist limits; a Nyquist mode is shared between ±N/2 on the way up
    and summed on the way down, so up and down again is the identity.
    """
    modes = np.fft.rfft(np.eye(source), axis=0, norm="forward")
    keep = min(source, target)
    kept = np.zeros((target // 2 + 1, source), complex)
    kept[: keep // 2 + 1] = modes[: keep // 2 + 1]
    if keep % 2 == 0 and source != target:
        kept[keep // 2] *= 0.5 if target > source else 2.0
        if target < source:
            kept[keep // 2] = kept[keep // 2].real
    return np.fft.irfft(kept, n=target, axis=0, norm="forward")


def resample(u: Field, points: tuple[int, ...]) -> Other:
    """Band-limited resampling to another number of points: one small GEMM per axis."""
    if u.ndim - 1 != len(points):
        raise SplatopError(f"expected {u.ndim - 1} target sizes for {u.shape}, got {points}")
    for axis, target in enumerate(points, start=1):
        source = u.shape[axis]
        if source != target:
            matrix = jnp.asarray(interpolation_matrix(source, target), u.dtype)
            u = jnp.moveaxis(jnp.tensordot(matrix, u, axes=(1, axis)), 0, axis)
    return u


def radial_spectrum(u: Field, lengths: tuple[float, ...]) -> Float[Array, " K"]:
    """Energy per shell `κ - 1/2 <= |q| < κ + 1/2` (paper, Eq. for E(κ)), summed over channels.

    Shells are counted in cycles per longest side, so on the unit box κ is the mode number.
    They reach to the highest Nyquist mode, inclusive.
    """
    grid = Grid(tuple(u.shape[1:]), lengths)
    longest = max(lengths)
    shell = np.floor(_radius(grid.wavenumbers()) * longest + 0.5).astype(int)
    shells = (
        int(max(n / 2 * longest / length for n, length in zip(grid.points, lengths, strict=True)))
        + 1
    )
    energy = jnp.sum(jnp.abs(to_modes(u)) ** 2, axis=0) * grid.multiplicity()
    kept = np.minimum(shell, shells)  # the corners beyond the last shell go to a bin of their own
    return jnp.zeros(shells + 1, energy.dtype).at[kept.ravel()].add(energy.ravel())[:shells]

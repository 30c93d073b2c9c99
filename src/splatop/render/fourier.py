"""Rendering in Fourier space: the transform of a Gaussian is a Gaussian."""

from collections.abc import Iterable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex

from ..derivative import Derivative
from ..gaussians import GaussianLattice, Gaussians, Splats
from ..grid import Grid
from ..spectral import Filter, PassThrough, derivative_symbol, from_modes
from .renderer import Rendered, Renderer


class FourierRenderer(Renderer):
    """Closed-form Fourier coefficients of the periodic field, only inside the filter's band.

    Derivatives of any order, the filter, all periodic images and resampling are one product on
    those modes: nothing is truncated, and the cost does not depend on the grid.
    """

    def __call__(
        self,
        splats: Splats,
        derivatives: Iterable[Derivative],
        grid: Grid,
        filter: Filter = PassThrough(),
    ) -> Rendered:
        derivatives = tuple(derivatives)
        if not derivatives:
            return {}
        band = filter.band(grid)
        kept = _band_indices(band, grid)
        modes = fourier_modes(splats, band)
        weights = filter.weights(grid.wavenumbers())
        factors = np.stack([derivative_symbol(d, grid)[kept] for d in derivatives])
        factors = jnp.asarray(factors * weights[kept], modes.dtype)
        shape = (len(derivatives), modes.shape[0], *grid.points[:-1], grid.points[-1] // 2 + 1)
        padded = jnp.zeros(shape, modes.dtype)
        padded = padded.at[(..., *kept)].set(factors[:, None] * modes)
        fields = from_modes(padded, grid.points).astype(splats.offset.dtype)
        return dict(zip(derivatives, fields, strict=True))


def fourier_modes(splats: Splats, band: tuple[int, ...]) -> Complex[Array, "C *K"]:
    """`û(k) = (2π)^{d/2} |Σ|^{1/2} Σ_i α_i exp(-2π² kᵀΣk - 2πi k·μ)` for `|k_i| <= band_i`.

    In the order of `rfftn`: 0..b, -b..-1 along each axis but the last, which has 0..b.
    """
    if isinstance(splats, GaussianLattice):
        modes = _lattice_modes(splats, band)
    else:
        modes = _explicit_modes(splats.explicit(), band)
    zero = (slice(None),) + (0,) * len(band)
    return modes.at[zero].add(splats.offset)


def band_modes(band: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Integer mode numbers inside the band, one 1D array per axis."""
    full = [np.concatenate([np.arange(b + 1), np.arange(-b, 0)]) for b in band[:-1]]
    return (*full, np.arange(band[-1] + 1))


def _band_indices(band: tuple[int, ...], grid: Grid) -> tuple[np.ndarray, ...]:
    """Where the band sits in the grid's `rfftn` layout."""
    axes = [k % n for k, n in zip(band_modes(band), grid.points, strict=True)]
    return np.ix_(*axes)


def _lattice_modes(lattice: GaussianLattice, band: tuple[int, ...]) -> Complex[Array, "C *K"]:
    dims = len(band)
    modes = jnp.fft.fftn(lattice.amplitude, axes=range(1, dims + 1))
    ks = band_modes(band)
    modes = modes[(slice(None), *np.ix_(*(k % a for k, a in zip(ks, lattice.anchors, strict=True))))]
    factor = np.ones(())
    for k, a in zip(ks, lattice.anchors, strict=True):
        sigma = lattice.ratio / a
        kernel = np.sqrt(2 * np.pi) * sigma * np.exp(-2 * (np.pi * sigma * k) ** 2)
        factor = factor[..., None] * kernel * np.exp(-1j * np.pi * k / a)
    return modes * jnp.asarray(factor, modes.dtype)


def _explicit_modes(g: Gaussians, band: tuple[int, ...]) -> Complex[Array, "C *K"]:
    ks = [jnp.asarray(k, g.center.dtype) for k in band_modes(band)]
    covariance = g.covariance()
    volume = (2 * jnp.pi) ** (g.dims / 2) * jnp.prod(g.scale, axis=-1)
    # The phase factors by axis, so only its per-axis tables need sines and cosines.
    phases = [jnp.exp(-2j * jnp.pi * g.center[:, axis, None] * k) for axis, k in enumerate(ks)]
    # The table of primitives against modes does not depend on the amplitudes, so stages that
    # share a geometry share it.
    if g.dims < 3:
        table = _mode_table(ks, covariance, phases) * volume.reshape(-1, *(1,) * g.dims)
        return jnp.einsum("gc,g...->c...", g.amplitude.astype(table.dtype), table)

    def plane(row: tuple[Array, Array]) -> Array:
        """In 3D the table is too large: one plane of modes after the other."""
        k0, phase0 = row
        table = _mode_table([k0[None], *ks[1:]], covariance, [phase0[:, None], *phases[1:]])
        weight = g.amplitude * volume[:, None]
        return jnp.einsum("gc,gkl->ckl", weight.astype(table.dtype), table[:, 0])

    return jnp.moveaxis(jax.lax.map(plane, (ks[0], phases[0].T)), 0, 1)


def _mode_table(ks: list[Array], covariance: Array, phases: list[Array]) -> Array:
    """`exp(-2π² kᵀΣk - 2πi k·μ)` for every primitive and mode, `(G, *K)`."""
    dims = len(ks)
    axis_shape = [tuple(-1 if j == i else 1 for j in range(dims)) for i in range(dims)]
    k = [ks[i].reshape(axis_shape[i]) for i in range(dims)]
    per_primitive = (-1,) + (1,) * dims
    exponent = sum(
        covariance[:, i, j].reshape(per_primitive) * k[i] * k[j]
        for i in range(dims)
        for j in range(dims)
    )
    phase = 1.0
    for i in range(dims):
        phase = phase * phases[i].reshape(len(covariance), *axis_shape[i])
    return jnp.exp(-2 * jnp.pi**2 * exponent) * phase

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
    phases = [
        jnp.exp(-2j * jnp.pi * g.center[:, axis, None] * k) for axis, k in enumerate(ks)
    ]

    def mode_row(k0: Array, phase0: Array) -> Array:
        """All modes that share one mode number along the first axis."""
        quadratic = covariance[:, 0, 0] * k0**2
        weight = (g.amplitude * (volume * phase0)[:, None]).T
        if g.dims == 1:
            return weight @ jnp.exp(-2 * jnp.pi**2 * quadratic).astype(weight.dtype)
        k1 = ks[1]
        exponent = (
            quadratic[:, None]
            + 2 * covariance[:, 0, 1, None] * k0 * k1
            + covariance[:, 1, 1, None] * k1**2
        )
        if g.dims == 2:
            table = jnp.exp(-2 * jnp.pi**2 * exponent) * phases[1]
            return weight @ table
        k2 = ks[2]
        linear = 2 * (covariance[:, 0, 2, None] * k0 + covariance[:, 1, 2, None] * k1)
        exponent = (
            exponent[..., None]
            + linear[..., None] * k2
            + covariance[:, 2, 2, None, None] * k2**2
        )
        table = jnp.exp(-2 * jnp.pi**2 * exponent) * (
            phases[1][:, :, None] * phases[2][:, None, :]
        )
        return jnp.einsum("cg,gkl->ckl", weight, table)

    rows = jax.lax.map(
        lambda row: mode_row(*row), (ks[0], phases[0].T), batch_size=1 if g.dims == 3 else None
    )
    return jnp.moveaxis(rows, 0, 1)


"""Rendering in Fourier space: the transform of a Gaussian is a Gaussian."""

import itertools
from collections.abc import Iterable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float

from ..derivative import Derivative
from ..gaussians import GaussianLattice, Gaussians, Splats
from ..grid import Grid
from ..spectral import Filter, PassThrough, derivative_symbol, from_modes, keep_band, pad_modes
from .dense import minimum_image
from .renderer import Rendered, Renderer


class FourierRenderer(Renderer):
    """Closed-form Fourier coefficients of the periodic field, only inside the filter's band.

    Derivatives of any order, the filter, all periodic images and resampling are one product on
    those modes: nothing is truncated, and the cost does not depend on the grid.
    """

    @property
    def in_modes(self) -> bool:
        return True

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
        modes = fourier_modes(splats, filter.band(grid))
        return fields_of_band(modes, derivatives, grid, filter)


def fields_of_band(
    modes: Complex[Array, "C *K"], derivatives: Iterable[Derivative], grid: Grid, filter: Filter
) -> Rendered:
    """Filtered derivatives on a grid from the modes inside the filter's band."""
    derivatives = tuple(derivatives)
    if not derivatives:
        return {}
    kept = _band_indices(filter.band(grid), grid)
    weights = filter.weights(grid.wavenumbers())
    factors = np.stack([derivative_symbol(d, grid)[kept] for d in derivatives])
    factors = jnp.asarray(factors * weights[kept], modes.dtype)
    padded = pad_modes(factors[:, None] * modes, filter.band(grid), grid.points)
    return dict(zip(derivatives, from_modes(padded, grid.points), strict=True))


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
    ks, axes = band_modes(band), range(1, dims + 1)
    if all(a > 2 * b for a, b in zip(lattice.anchors, band, strict=True)):
        modes = keep_band(jnp.fft.rfftn(lattice.amplitude, axes=axes), band)
    else:  # a lattice repeats its modes beyond what it tells apart
        modes = jnp.fft.fftn(lattice.amplitude, axes=axes)
        periodic = np.ix_(*(k % a for k, a in zip(ks, lattice.anchors, strict=True)))
        modes = modes[(slice(None), *periodic)]
    factor = np.ones(())
    for k, a in zip(ks, lattice.anchors, strict=True):
        sigma = lattice.ratio / a
        kernel = np.sqrt(2 * np.pi) * sigma * np.exp(-2 * (np.pi * sigma * k) ** 2)
        factor = factor[..., None] * kernel * np.exp(-1j * np.pi * k / a)
    return modes * jnp.asarray(factor, modes.dtype)


def _explicit_modes(g: Gaussians, band: tuple[int, ...]) -> Complex[Array, "C *K"]:
    """In real numbers throughout, which XLA multiplies far faster on a CPU."""
    planes, table = _planes(g, band)
    amplitude = g.amplitude.T

    def rows(k0: Array, cos0: Array, sin0: Array) -> Complex[Array, "k C R"]:
        """The modes with some mode numbers along the first axis, whose phase goes with the
        amplitude: that is one product with a table."""
        weight = jnp.concatenate([amplitude * cos0[:, None], amplitude * sin0[:, None]], axis=1)
        with_cos0, with_sin0 = jnp.split(weight @ table(k0), 2, axis=1)
        cos_cos, cos_sin = jnp.split(with_cos0, 2, axis=2)
        sin_cos, sin_sin = jnp.split(with_sin0, 2, axis=2)
        return (cos_cos - sin_sin) - 1j * (cos_sin + sin_cos)

    if g.dims < 3:
        modes = rows(*planes)
    else:
        # In 3D the table is too large to hold, also for the backward pass.
        one_plane = jax.checkpoint(lambda plane: rows(*(x[None] for x in plane))[0])
        modes = jax.lax.map(one_plane, planes)
    return jnp.moveaxis(modes, 0, 1).reshape(-1, *map(len, band_modes(band)))


def fourier_basis(g: Gaussians, band: tuple[int, ...]) -> Float[Array, "2 G K"]:
    """Real and imaginary parts of each primitive's modes at unit amplitude, `K` in the order of
    `fourier_modes`."""
    (k0, cos0, sin0), table = _planes(g, band)
    cos, sin = jnp.split(table(k0), 2, axis=2)
    cos0, sin0 = cos0[..., None], sin0[..., None]
    parts = jnp.stack([cos0 * cos - sin0 * sin, -(cos0 * sin + sin0 * cos)])
    return jnp.moveaxis(parts, 1, 2).reshape(2, len(g.center), -1)


def _planes(g: Gaussians, band: tuple[int, ...]):
    """Planes of modes by number along the first axis, with its cosines and sines `(k, G)`, and
    the function from such numbers to the rest of a mode at unit amplitude, `(k, G, 2 R)`."""
    first, *others = band_modes(band)
    rest = np.array(list(itertools.product(*others))).T  # (d - 1, R)
    phases = _phases(g.center, band)
    cos, sin = _sum_phases(phases[1:], like=g.center[:, :1])
    exponents = -2 * jnp.pi**2 * g.covariance()
    volume = (2 * jnp.pi) ** (g.dims / 2) * jnp.prod(g.scale, axis=-1)

    def table(k0: Array) -> Float[Array, "k G cos_and_sin"]:
        k = [k0[:, None, None], *rest]
        quadratic = sum(
            exponents[:, i, j, None] * k[i] * k[j] for i in range(g.dims) for j in range(g.dims)
        )
        bell = volume[:, None] * jnp.exp(quadratic)
        return jnp.concatenate([bell * cos, bell * sin], axis=-1)

    return (jnp.asarray(first, g.center.dtype), phases[0][0].T, phases[0][1].T), table


def _phases(center: Float[Array, "G d"], band: tuple[int, ...]) -> list[tuple[Array, Array]]:
    """`cos` and `sin` of `2π k center` along each axis, `(G, K)`."""
    k = jnp.arange(max(band) + 1, dtype=center.dtype)

    def one_axis(x: Float[Array, " G"]) -> tuple[Array, Array]:
        # Large angles lose digits in float32. Few enough bits that k times this is exact:
        coarse = jnp.round(x * 4096)[:, None] / 4096
        turns = minimum_image(k * coarse) + k * (x[:, None] - coarse)
        return jnp.cos(2 * jnp.pi * turns), jnp.sin(2 * jnp.pi * turns)

    # A loop, or XLA fuses the sines into products and computes each of them many times.
    cosines, sines = jax.lax.map(one_axis, center.T)
    tables = [(c[:, : b + 1], s[:, : b + 1]) for c, s, b in zip(cosines, sines, band, strict=True)]
    mirrored = [
        (jnp.concatenate([c, c[:, :0:-1]], axis=1), jnp.concatenate([s, -s[:, :0:-1]], axis=1))
        for c, s in tables[:-1]
    ]
    return [*mirrored, tables[-1]]


def _sum_phases(phases: list[tuple[Array, Array]], like: Array) -> tuple[Array, Array]:
    """`cos` and `sin` of sums of phases, one of each axis: `(G, R)`, row-major over the axes."""
    cos, sin = jnp.ones_like(like), jnp.zeros_like(like)
    for c, s in phases:
        c, s, rows = c[:, None], s[:, None], len(c)
        cos, sin = (
            cos[:, :, None] * c - sin[:, :, None] * s,
            sin[:, :, None] * c + cos[:, :, None] * s,
        )
        cos, sin = cos.reshape(rows, -1), sin.reshape(rows, -1)
    return cos, sin

"""Energy by harmonic: the radial spectrum of a periodic box, and its like between walls."""

from functools import lru_cache

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..domain import Domain
from ..grid import Grid
from ..points import Layout, Points
from ..spectral import Field, radial_spectrum
from .axis import ring
from .shape_harmonics import insulated, shape_harmonics

# Four functions are set up for each, which takes seconds for as many as these.
_MOST_HARMONICS = 100


def energy_spectrum(u: Field, domain: Domain, layout: Layout) -> Float[Array, " K"]:
    """Energy per shell of wavenumber, in cycles per longest side, summed over channels.

    Between two ends the harmonics are those of an insulated axis, cosines of half waves, in which
    every field can be written whatever holds at its ends; on a shape those of the insulated shape.
    """
    if isinstance(layout, Points):
        return _on_shape(u, domain, layout)
    if domain.all_periodic:
        return radial_spectrum(u, domain.lengths)
    waves = []
    for axis, n in enumerate(u.shape[1:]):
        closed = domain.axes[axis].periodic
        forth, wavenumbers = _harmonics(n, layout[axis], closed)
        amplitudes = jnp.tensordot(jnp.asarray(forth, u.dtype), u, axes=(1, axis + 1))
        u = jnp.moveaxis(amplitudes, 0, axis + 1)
        waves.append(wavenumbers / domain.axes[axis].length)
    longest = max(domain.lengths)
    mesh = np.meshgrid(*waves, indexing="ij")
    shell = np.floor(np.sqrt(sum(k**2 for k in mesh)) * longest + 0.5).astype(int)
    shells = int(max(k.max() for k in waves) * longest) + 1
    kept = np.minimum(shell, shells)
    energy = jnp.sum(u**2, axis=0)
    return jnp.zeros(shells + 1, energy.dtype).at[kept.ravel()].add(energy.ravel())[:shells]


def _on_shape(u: Field, domain: Domain, at: Points) -> Float[Array, " K"]:
    forth, shell = _shape_harmonics(domain.with_conditions({}), at)
    energy = jnp.sum((u @ jnp.asarray(forth.T, u.dtype)) ** 2, axis=0)
    return jnp.zeros(int(shell.max()) + 1, energy.dtype).at[shell].add(energy)


@lru_cache(maxsize=16)
def _shape_harmonics(domain: Domain, at: Points) -> tuple[np.ndarray, np.ndarray]:
    """From samples at points to amplitudes of the shape's harmonics, and their shells."""
    count = int(min(len(at.places) // 4, _MOST_HARMONICS))
    values = shape_harmonics(domain, at.places, count)
    waves = np.sqrt(np.maximum(insulated(domain, count).energies[:count], 0.0)) / (2 * np.pi)
    shell = np.floor(waves * max(domain.lengths) + 0.5).astype(int)
    return np.linalg.pinv(values, rcond=1e-6), shell


@lru_cache(maxsize=64)
def _harmonics(n: int, layout: str, closed: bool) -> tuple[np.ndarray, np.ndarray]:
    """From samples of an axis to amplitudes of its harmonics, and their cycles along it."""
    (x,) = Grid((n,), (1.0,), layout=(layout,)).fractions()
    if closed:
        band = (n - 1) // 2
        return np.linalg.pinv(ring(band).evaluate(x)), (np.arange(2 * band + 1) + 1) // 2
    k = np.arange(n)
    values = np.where(k == 0, 1.0, np.sqrt(2.0)) * np.cos(np.pi * np.outer(x, k))
    # Points at one end alone do not tell the highest cosines apart.
    kept = n if layout != "left" else max(1, int(0.8 * n))
    return np.linalg.pinv(values[:, :kept]), k[:kept] / 2

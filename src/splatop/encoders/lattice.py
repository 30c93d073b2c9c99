"""Closed-form encoder: isotropic Gaussians on the lattice, least-squares amplitudes.

Kernel and lattice factor by axis, so the least-squares solution over the grid is one small matrix
per axis. There is nothing to train. Inside a band below half the anchors its derivatives equal
spectral ones: on a periodic box this is a spectral method in Gaussian clothes.
"""

from functools import lru_cache
from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..errors import SplatopError, check_field, is_concrete
from ..gaussians import GaussianLattice
from ..spectral import Field
from .encoder import Encoder, check_frame

# σ/h. Wider kernels reach higher accuracy but reach further than a local window of 4 cells; with
# Fourier rendering nothing is truncated. docs/rendering.md has the table.
DEFAULT_RATIO = 1.2


class LatticeEncoder(Encoder):
    """Amplitudes by least squares over the grid, `ratio` = σ over the anchor spacing.

    With `anchors="auto"` each frame gets the lattice that its spectrum asks for. Inside `jit`, or
    for a time step, the lattice must be fixed: `LatticeEncoder.for_field(u)`.
    """

    anchors: tuple[int, ...] | Literal["auto"] = eqx.field(static=True, default="auto")  # type: ignore[assignment]
    ratio: float = eqx.field(static=True, default=DEFAULT_RATIO)

    @classmethod
    def for_field(cls, u: Field, ratio: float = DEFAULT_RATIO) -> "LatticeEncoder":
        """With as many anchors as the spectrum of this field asks for."""
        return cls(anchors_for(u), ratio)

    def __check_init__(self):
        if not 0.5 <= self.ratio <= 2.0:
            raise SplatopError(
                f"expected a kernel width of 0.5 to 2 anchor spacings, got {self.ratio:g}: "
                "narrower kernels leave gaps, wider ones cannot be told apart"
            )
        if self.anchors == "auto":
            return
        if any(self.ratio / a > 0.5 for a in self.anchors):
            raise SplatopError(
                f"expected more than {int(2 * self.ratio)} anchors along each axis for a kernel "
                f"width of {self.ratio:g} spacings, got {self.anchors}"
            )

    @classmethod
    def from_numerics(cls, numerics, channels, *, key) -> "LatticeEncoder":
        return cls(numerics.anchors, numerics.kernel_width)

    def carries(self, band: tuple[int, ...]) -> bool | None:
        if self.anchors == "auto":
            return None
        return all(a > 2 * b for a, b in zip(self.anchors, band, strict=True))

    def __call__(self, u: Field) -> GaussianLattice:
        if self.anchors == "auto":
            return LatticeEncoder.for_field(u, self.ratio)(u)
        check_frame(u, self.anchors)
        return self.fit(u)

    def fit(self, u: Field) -> GaussianLattice:
        """The Gaussians of `u` on a fixed lattice, also of a constant field, which `__call__`
        refuses."""
        assert self.anchors != "auto"
        offset = jnp.mean(u, axis=range(1, u.ndim))
        amplitude = u - offset.reshape((-1,) + (1,) * (u.ndim - 1))
        for axis, a in enumerate(self.anchors, start=1):
            matrix = jnp.asarray(_solution(u.shape[axis], a, self.ratio), u.dtype)
            amplitude = jnp.moveaxis(jnp.tensordot(matrix, amplitude, axes=(1, axis)), 0, axis)
        return GaussianLattice(amplitude, offset, self.ratio)


@lru_cache(maxsize=256)
def _solution(points: int, anchors: int, ratio: float) -> np.ndarray:
    """Pseudo-inverse of the kernels sampled along one axis, in double precision."""
    return np.linalg.pinv(lattice_basis(points, anchors, ratio))


def lattice_basis(points: int, anchors: int, ratio: float) -> np.ndarray:
    """Periodic Gaussians of one axis at its grid points, `(points, anchors)`."""
    distance = np.arange(points)[:, None] / points - (np.arange(anchors) + 0.5) / anchors
    sigma = ratio / anchors
    # Images beyond 9 σ are below double precision.
    reach = int(np.ceil(9 * sigma)) + 1
    images = np.arange(-reach, reach + 1)[:, None, None]
    return np.exp(-0.5 * ((distance - images) / sigma) ** 2).sum(axis=0)


def anchors_for(u: Field, *, tail: float = 1e-6) -> tuple[int, ...]:
    """Enough anchors for a field: along each axis, the least A whose lattice resolves all but a
    fraction `tail` of its energy (in the sense of amplitude, `tail` squared in energy).

    A lattice of A anchors carries modes up to A/2; a margin of a quarter keeps the kernel's
    transform away from the edge of that band.
    """
    if not is_concrete(u):
        raise SplatopError(
            "expected a field whose values are known to choose anchors from, got one inside jit: "
            "choose them before, with LatticeEncoder.for_field(u)"
        )
    check_field(u)
    values = np.asarray(u)
    centred = values - values.mean(axis=tuple(range(1, u.ndim)), keepdims=True)
    energy = np.abs(np.fft.rfftn(centred, axes=range(1, u.ndim), norm="forward")) ** 2
    chosen = []
    for axis, n in enumerate(u.shape[1:], start=1):
        along = energy.sum(axis=tuple(i for i in range(energy.ndim) if i != axis))
        modes = np.abs(np.fft.fftfreq(n, 1 / n)).astype(int) if axis < u.ndim - 1 else None
        if modes is not None:
            along = np.bincount(modes, along)
        beyond = np.sqrt(np.cumsum(along[::-1])[::-1] / max(along.sum(), 1e-300))
        highest = int(np.max(np.nonzero(beyond > tail)[0], initial=1))
        chosen.append(int(min(n, max(8, 2 * int(np.ceil(1.25 * highest)) + 2))))
    return tuple(chosen)

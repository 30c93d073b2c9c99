"""Gaussian primitives on the unit torus, and how a network's outputs become them.

Positions and scales are fractions of the box (`x / length`), so one set of primitives serves any
box; renderers turn derivatives into physical units.
"""

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .errors import SplatopError, is_concrete
from .grid import Grid
from .spectral import Field


class Splats(eqx.Module):
    """A continuous periodic field as a sum of Gaussians plus a constant per channel."""

    offset: eqx.AbstractVar[Float[Array, " C"]]

    @abc.abstractmethod
    def explicit(self) -> "Gaussians":
        """The same field as a list of primitives."""


class Gaussians(Splats):
    """`u(x) = offset + Σ_i amplitude_i exp(-½ rᵀ Σ_i⁻¹ r)`, `Σ = R diag(scale²) Rᵀ` (Eqs. 5, 6).

    With `anchors`, primitive i belongs to cell i (row-major) of that lattice, which is what local
    rendering relies on. `r` is the minimum-image displacement.
    """

    center: Float[Array, "G d"]
    rotation: Float[Array, "G d d"]
    scale: Float[Array, "G d"]
    amplitude: Float[Array, "G C"]
    offset: Float[Array, " C"]
    anchors: tuple[int, ...] | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.anchors is not None and int(np.prod(self.anchors)) != self.center.shape[0]:
            raise SplatopError(
                f"expected one primitive for each of {self.anchors} anchors, "
                f"got {self.center.shape[0]}"
            )
        if is_concrete(self.scale):
            scale = np.asarray(self.scale)  # in numpy, or inside `jit` it would be traced
            low, high = float(scale.min()), float(scale.max())
            if not (low > 0 and high <= 0.5):
                raise SplatopError(
                    f"expected scales in (0, 0.5] of the box, got {low:g} to {high:g}: "
                    "beyond half a box a primitive overlaps its own periodic image"
                )

    @property
    def dims(self) -> int:
        return self.center.shape[1]

    def precision(self) -> Float[Array, "G d d"]:
        """`Σ⁻¹`."""
        return jnp.einsum("gij,gj,gkj->gik", self.rotation, self.scale**-2, self.rotation)

    def covariance(self) -> Float[Array, "G d d"]:
        return jnp.einsum("gij,gj,gkj->gik", self.rotation, self.scale**2, self.rotation)

    def with_amplitude(self, amplitude: Float[Array, "G C"], offset: Float[Array, " C"]):
        """The same geometry carrying another field."""
        return Gaussians(self.center, self.rotation, self.scale, amplitude, offset, self.anchors)

    def explicit(self) -> "Gaussians":
        return self


class GaussianLattice(Splats):
    """Gaussians of one isotropic scale at the centres of a regular lattice.

    `ratio` is σ over the anchor spacing. Sums over this lattice factor by axis, which makes it far
    cheaper to render than the same primitives written out.
    """

    amplitude: Float[Array, "C *A"]
    offset: Float[Array, " C"]
    ratio: float = eqx.field(static=True)

    @property
    def anchors(self) -> tuple[int, ...]:
        return tuple(self.amplitude.shape[1:])

    def explicit(self) -> Gaussians:
        center = jnp.asarray(anchor_positions(self.anchors), self.amplitude.dtype)
        count, dims = center.shape
        scale = jnp.asarray([self.ratio / a for a in self.anchors], center.dtype)
        return Gaussians(
            center,
            jnp.broadcast_to(jnp.eye(dims, dtype=center.dtype), (count, dims, dims)),
            jnp.broadcast_to(scale, (count, dims)),
            self.amplitude.reshape(self.amplitude.shape[0], -1).T,
            self.offset,
            self.anchors,
        )


def anchor_positions(anchors: tuple[int, ...]) -> np.ndarray:
    """Centres of the anchor cells, `(G, d)`, row-major, as fractions of the box."""
    dims = len(anchors)
    return Grid(anchors, (1.0,) * dims, layout=("cells",) * dims).places


def rotation_2d(angle: Float[Array, " G"]) -> Float[Array, "G 2 2"]:
    """Counter-clockwise rotation by an angle in radians."""
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.stack([jnp.stack([c, -s], -1), jnp.stack([s, c], -1)], -2)


def rotation_3d(quaternion: Float[Array, "G 4"]) -> Float[Array, "G 3 3"]:
    """Rotation of a quaternion (w, x, y, z), normalised here."""
    # The tiny constant keeps the gradient finite at the zero quaternion.
    norm = jnp.sqrt(jnp.sum(quaternion**2, axis=-1, keepdims=True) + 1e-12)
    w, x, y, z = jnp.moveaxis(quaternion / norm, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return jnp.stack([jnp.stack(row, -1) for row in rows], -2)


class ScaleMap(eqx.Module):
    """A network's raw output to scales, as fractions of the box."""

    @abc.abstractmethod
    def __call__(self, raw: Float[Array, "G d"], spacing: Float[Array, " d"]) -> Array: ...


class ClippedScales(ScaleMap):
    """Exponentiate, then clip to `[minimum, maximum]` (paper, appendix A)."""

    minimum: float = eqx.field(static=True, default=0.008)
    maximum: float = eqx.field(static=True, default=0.25)

    def __call__(self, raw, spacing):
        return jnp.clip(spacing * jnp.exp(raw), self.minimum, self.maximum)


class BoundedScales(ScaleMap):
    """`log σ = log(ratio h) + span tanh(raw / span)`: bounded, with a gradient everywhere.

    Hard clipping has none outside its interval, which lets scales collapse at high learning rates.
    """

    ratio: float = eqx.field(static=True, default=0.8)
    span: float = eqx.field(static=True, default=0.9)

    def __call__(self, raw, spacing):
        return self.ratio * spacing * jnp.exp(self.span * jnp.tanh(raw / self.span))


def rotation_outputs(dims: int) -> int:
    """Numbers that describe an orientation: none in 1D, an angle, a quaternion."""
    return {1: 0, 2: 1, 3: 4}[dims]


def geometry_outputs(dims: int) -> int:
    return 2 * dims + rotation_outputs(dims)


def gaussians_from_raw(raw: Field, *, scales: ScaleMap, channels: int) -> Gaussians:
    """Read a network's output on the lattice as primitives (paper, appendix A).

    Channels of `raw`: centre offset (d), log-scale (d), orientation, then amplitude (C) if there.
    """
    anchors = tuple(raw.shape[1:])
    dims = len(anchors)
    flat = raw.reshape(raw.shape[0], -1).T
    spacing = jnp.asarray([1 / a for a in anchors], raw.dtype)
    home = jnp.asarray(anchor_positions(anchors), raw.dtype)
    center = (home + spacing / 2 * jnp.tanh(flat[:, :dims])) % 1.0
    scale = scales(flat[:, dims : 2 * dims], spacing)
    turn = flat[:, 2 * dims : geometry_outputs(dims)]
    if dims == 1:
        rotation = jnp.ones((flat.shape[0], 1, 1), raw.dtype)
    elif dims == 2:
        rotation = rotation_2d(turn[:, 0])
    else:
        # The identity is (1, 0, 0, 0): a network that outputs zeros starts unrotated.
        rotation = rotation_3d(turn + jnp.asarray([1.0, 0, 0, 0], raw.dtype))
    amplitude = flat[:, geometry_outputs(dims) :]
    if amplitude.shape[1] == 0:
        amplitude = jnp.zeros((flat.shape[0], channels), raw.dtype)
    return Gaussians(center, rotation, scale, amplitude, jnp.zeros(channels, raw.dtype), anchors)

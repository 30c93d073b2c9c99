"""A neural operator on the harmonics of a domain: the FNO where waves do not close.

Between two ends its waves are the harmonics of an insulated axis, cosines, which every smooth field
can be written in whatever holds at its ends; around a ring they are sines and cosines. On a shape
they are the lowest eigenfunctions of the Laplacian with insulated edges.
"""

import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ..domain import Domain
from ..errors import SplatopError, check_field
from ..grid import Grid
from ..points import Layout, Points
from ..precomputed import Precomputed, with_fields
from ..spaces import shape_harmonics
from ..spaces.axis import ring
from ..spectral import Field
from .fno import FiLM


class HarmonicBlock(eqx.Module):
    """`GELU(FiLM(K h + W h + b))`: K multiplies the kept harmonics, W mixes the channels."""

    kernel: Float[Array, "*M O I"]
    weight: Float[Array, "O I"]
    bias: Float[Array, " O"]
    film: FiLM | None


class HarmonicOperator(eqx.Module):
    """Lifting, blocks on the lowest harmonics, projection: the architecture of `FNO`.

    `closed` tells which axes are rings, `layout` where the points of each axis lie. `modes` are
    waves around a ring as in the FNO, and harmonics between two ends. On a `domain` with a shape,
    whose states are at the points that `layout` is, there are as many harmonics as the product of
    `modes`.
    """

    lifting_weight: Float[Array, "H C"]
    lifting_bias: Float[Array, " H"]
    blocks: tuple[HarmonicBlock, ...]
    projection_weight: Float[Array, "C H"]
    projection_bias: Float[Array, " C"]
    modes: tuple[int, ...] = eqx.field(static=True)
    closed: tuple[bool, ...] = eqx.field(static=True)
    layout: Layout = eqx.field(static=True)
    conditions: int = eqx.field(static=True)
    domain: Domain | None = eqx.field(static=True, default=None)
    waves: Precomputed | None = None

    scannable: ClassVar[bool] = True
    light_gradient: ClassVar[bool] = False

    def __init__(
        self,
        channels: int,
        *,
        closed: tuple[bool, ...],
        layout: Layout,
        domain: Domain | None = None,
        hidden: int = 6,
        modes: int | tuple[int, ...] = 10,
        blocks: int = 4,
        conditions: int = 0,
        key: PRNGKeyArray,
        zero_projection: bool = True,
    ):
        dims = len(closed)
        self.modes = (modes,) * dims if isinstance(modes, int) else tuple(modes)
        self.closed, self.layout, self.conditions = tuple(closed), layout, conditions
        self.domain = domain if domain is not None and domain.shape is not None else None
        if not 1 <= dims <= 3 or min(channels, hidden, blocks, *self.modes) < 1:
            raise SplatopError(
                "expected 1 to 3 dimensions and at least one channel, hidden channel, mode and "
                f"block, got {dims}, {channels}, {hidden}, {modes} and {blocks}"
            )
        keys = iter(jax.random.split(key, 2 + 3 * blocks))
        self.lifting_weight = _uniform(next(keys), (hidden, channels), channels)
        self.lifting_bias = jnp.zeros(hidden)
        self.blocks = tuple(
            HarmonicBlock(
                kernel=jax.random.normal(next(keys), (*self._kept, hidden, hidden)) / hidden,
                weight=_uniform(next(keys), (hidden, hidden), hidden),
                bias=_uniform(next(keys), (hidden,), hidden),
                film=FiLM(hidden, conditions) if conditions else None,
            )
            for _ in range(blocks)
        )
        projection = _uniform(next(keys), (channels, hidden), hidden)
        self.projection_weight = jnp.zeros_like(projection) if zero_projection else projection
        self.projection_bias = jnp.zeros(channels)

    def __check_init__(self):
        if self.domain is not None and self.waves is None:
            object.__setattr__(self, "waves", self._shape_waves())

    def moved_to(self, points: Points) -> "HarmonicOperator":
        """The same operator on states at other points of its shape."""
        return with_fields(self, layout=points)

    @property
    def _kept(self) -> tuple[int, ...]:
        """Harmonics along each axis of a state."""
        if self.domain is not None:
            return (math.prod(self.modes),)
        return tuple(
            2 * m - 1 if ends else m for m, ends in zip(self.modes, self.closed, strict=True)
        )

    def __call__(self, u: Field, condition: Float[Array, " P"] | None = None) -> Field:
        check_field(u, dims=len(self._kept), channels=len(self.projection_bias))
        points = tuple(u.shape[1:])
        self._check(points, condition)
        if self.waves is not None:
            forth, back = (self.waves["forth"],), (self.waves["back"],)
        else:
            pairs = (self._waves(axis, n) for axis, n in enumerate(points))
            forth, back = zip(*pairs, strict=True)
        h = _mix(self.lifting_weight, u.astype(self.lifting_weight.dtype), self.lifting_bias)
        for block in self.blocks:
            waves = _along_axes(h, forth)
            mixed = jnp.einsum("...oi,i...->o...", block.kernel, waves)
            a = _along_axes(mixed, back) + _mix(block.weight, h, block.bias)
            if block.film is not None and condition is not None:
                scale, shift = block.film(condition.astype(h.dtype))
                shape = (-1, *(1,) * len(points))
                a = (1 + scale).reshape(shape) * a + shift.reshape(shape)
            h = jax.nn.gelu(a)
        return _mix(self.projection_weight, h, self.projection_bias).astype(u.dtype)

    def _check(self, points: tuple[int, ...], condition: Array | None) -> None:
        least = self._kept
        if any(n < wanted for n, wanted in zip(points, least, strict=True)):
            raise SplatopError(
                f"grid coarser than the model's modes: {self.modes} modes per axis need at least "
                f"{least} points, got {points}: use a finer grid, or a model with fewer modes"
            )
        given = 0 if condition is None else condition.size
        if given != self.conditions:
            raise SplatopError(
                f"expected a condition of {self.conditions} coefficient(s), got {given}: pass the "
                "standardised coefficients that the network was built for"
            )

    def _shape_waves(self) -> Precomputed:
        """From samples at the points to the lowest harmonics of the insulated shape, and back."""
        if self.domain is None or not isinstance(self.layout, Points):
            raise SplatopError("expected points on a shape, got a layout of a grid")
        values = shape_harmonics(self.domain, self.layout.places, self._kept[0])
        with jax.ensure_compile_time_eval():
            return Precomputed(
                {"forth": jnp.asarray(np.linalg.pinv(values)), "back": jnp.asarray(values)}
            )

    def _waves(self, axis: int, n: int) -> tuple[np.ndarray, np.ndarray]:
        """From the samples of an axis to its lowest harmonics, and back."""
        assert not isinstance(self.layout, Points)
        (x,) = Grid((n,), (1.0,), layout=(self.layout[axis],)).fractions()
        m = self.modes[axis]
        if self.closed[axis]:
            values = ring(m - 1).evaluate(x)
        else:
            k = np.arange(m)
            values = np.where(k == 0, 1.0, np.sqrt(2.0)) * np.cos(np.pi * np.outer(x, k))
        return np.linalg.pinv(values), values


def _along_axes(h: Array, matrices) -> Array:
    for axis, matrix in enumerate(matrices, start=1):
        m = jnp.asarray(matrix, h.dtype)
        h = jnp.moveaxis(jnp.moveaxis(h, axis, -1) @ m.T, -1, axis)
    return h


def _mix(weight: Array, h: Array, bias: Array) -> Array:
    return jnp.tensordot(weight, h, axes=1) + bias.reshape(-1, *(1,) * (h.ndim - 1))


def _uniform(key: PRNGKeyArray, shape: tuple[int, ...], fan_in: int) -> Array:
    return jax.random.uniform(key, shape, minval=-1.0, maxval=1.0) / np.sqrt(fan_in)

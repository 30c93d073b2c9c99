"""A small convolutional network: what a coarse physics lacks is local, and the same everywhere."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..encoders.unet import PeriodicConv
from ..errors import SplatopError

# Points that a kernel spans along each axis, by the number of axes: further in 1D, where it is
# cheap.
REACH = {1: 7, 2: 3, 3: 3}


class Convolutions(eqx.Module):
    """`blocks` convolutions of `hidden` channels with GELUs between, `u -> correction`.

    They wrap around the axes that are `closed` (all, unless told otherwise); beyond the ends of the
    others everything is zero, from which a network can tell that it is near one.

    Each is one GEMM, which compiled loops run as fast as anything else. The last one starts at
    zero, so that an untrained network changes nothing. Numbers that it is conditioned on are
    further channels that are the same everywhere. It `answers` with as many channels as it is
    given, or with another number.
    """

    layers: tuple[PeriodicConv, ...]
    reach: int = eqx.field(static=True)
    closed: tuple[bool, ...] = eqx.field(static=True, default=())

    def __init__(
        self,
        dims: int,
        channels: int,
        *,
        hidden: int = 32,
        blocks: int = 4,
        conditions: int = 0,
        reach: int | None = None,
        answers: int | None = None,
        closed: tuple[bool, ...] = (),
        key: PRNGKeyArray,
    ):
        if blocks < 2:
            raise SplatopError(f"expected at least two layers of convolutions, got {blocks}")
        self.reach = REACH[dims] if reach is None else reach
        self.closed = () if all(closed) else tuple(closed)
        given = channels if answers is None else answers
        widths = (channels + conditions, *(hidden,) * (blocks - 1), given)
        layers = [
            PeriodicConv(dims, source, target, self.reach, 1, key=own)
            for source, target, own in zip(
                widths, widths[1:], jax.random.split(key, blocks), strict=False
            )
        ]
        layers[-1] = eqx.tree_at(
            lambda c: (c.weight, c.bias), layers[-1], replace_fn=lambda w: 0.0 * w
        )
        self.layers = tuple(layers)

    def __call__(
        self, u: Float[Array, "C *N"], condition: Float[Array, " P"] | None = None
    ) -> Float[Array, "A *N"]:
        *hidden, last = self.layers
        # Channels last: a batch then is one GEMM with its points, whatever `vmap` adds in front.
        h = jnp.moveaxis(u, 0, -1)
        if condition is not None:
            even = jnp.broadcast_to(condition.astype(u.dtype), (*h.shape[:-1], condition.size))
            h = jnp.concatenate([h, even], axis=-1)
        for layer in hidden:
            h = jax.nn.gelu(_convolved(layer, h, self.closed))
        return jnp.moveaxis(_convolved(last, h, self.closed), -1, 0)

    @property
    def scannable(self) -> bool:
        return True

    @property
    def light_gradient(self) -> bool:
        """Along one axis the fields of a whole rollout fit the memory of any machine."""
        return self.layers[0].weight.ndim == 3


def _convolved(
    layer: PeriodicConv, h: Float[Array, "*N I"], closed: tuple[bool, ...]
) -> Float[Array, "*N O"]:
    """The convolution of a field whose channels come last.

    What has fewer channels is shifted: copies of the field before one GEMM, or after it what the
    GEMM gives for each place of the kernel.
    """
    target, source, *kernel = layer.weight.shape
    shifts = [
        [k // 2 - i for i, k in zip(at, kernel, strict=True)]
        for at in itertools.product(*map(range, kernel))
    ]
    if source < target:
        columns = jnp.concatenate([_shifted(h, by, closed) for by in shifts], axis=-1)
        rows = jnp.moveaxis(layer.weight, (0, 1), (-1, -2)).reshape(-1, target)
        return columns @ rows + layer.bias.reshape(-1)
    rows = jnp.moveaxis(layer.weight, (1, 0), (0, -1)).reshape(source, -1)
    parts = jnp.split(h @ rows, len(shifts), axis=-1)
    moved = (_shifted(one, by, closed) for one, by in zip(parts, shifts, strict=True))
    return sum(moved, start=layer.bias.reshape(-1))


def _shifted(
    h: Float[Array, "*N I"], by: list[int], closed: tuple[bool, ...]
) -> Float[Array, "*N I"]:
    """A field moved by so many points along each axis: around it, or with zeros after it."""
    for axis in (axis for axis, ring in enumerate(closed) if not ring):
        n, k = h.shape[axis], by[axis]
        kept = jax.lax.slice_in_dim(h, max(0, -k), n - max(0, k), axis=axis)
        pad = [(0, 0)] * h.ndim
        pad[axis] = (max(0, k), max(0, -k))
        h = jnp.pad(kept, pad)
    around = [axis for axis in range(h.ndim - 1) if not closed or closed[axis]]
    return jnp.roll(h, [by[axis] for axis in around], around)

"""The learned encoder: a periodic U-Net on the anchor lattice that predicts the geometry."""

import itertools
import math
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..errors import SplatopError, unknown_name
from ..gaussians import (
    BoundedScales,
    ClippedScales,
    Gaussians,
    ScaleMap,
    gaussians_from_raw,
    geometry_outputs,
)
from ..render import DenseRenderer, LocalRenderer, PointRenderer
from ..spectral import Field, resample
from .amplitudes import LARGEST_DIRECT_SOLVE, RIDGE, solve_amplitudes
from .encoder import Encoder, check_frame, normalise
from .reconstruction import batch_reconstruction_loss

# Hidden channels per level: 450k parameters in 2D and 1.33M in 3D for one channel, as the paper.
# Most of them on the lattice itself, because geometry is decided by what is near; in 3D they would
# cost too much there.
WIDTHS = {1: (76, 58, 40, 28), 2: (76, 58, 40, 28), 3: (20, 39, 76, 76)}


class UNetEncoder(Encoder):
    """The paper's encoder (appendix A): four-level periodic U-Net and a 1x1 head.

    The normalised frame is resampled to `pixels` points per anchor cell, whose values become the
    input channels of their cell, so any grid works and the network runs on the lattice alone.
    `amplitudes` is "solved" (least squares for the predicted geometry) or "predicted" (the paper).
    """

    network: "_UNet"
    scales: ScaleMap
    renderer: PointRenderer
    anchors: tuple[int, ...] = eqx.field(static=True)
    channels: int = eqx.field(static=True)
    amplitudes: str = eqx.field(static=True)
    pixels: int = eqx.field(static=True)

    def __init__(
        self,
        anchors: tuple[int, ...],
        channels: int,
        *,
        key: PRNGKeyArray,
        amplitudes: str = "solved",
        scales: ScaleMap = BoundedScales(),
        renderer: PointRenderer = DenseRenderer(),
        widths: tuple[int, ...] | None = None,
        pixels: int = 4,
    ):
        if amplitudes not in ("solved", "predicted"):
            raise unknown_name("amplitude rule", amplitudes, ("solved", "predicted"))
        if channels < 1 or any(a < 2 for a in anchors):
            raise SplatopError(
                f"expected at least one channel and two anchors per axis, "
                f"got {channels} and {anchors}"
            )
        dims = len(anchors)
        outputs = geometry_outputs(dims) + (channels if amplitudes == "predicted" else 0)
        self.network = _UNet(
            dims, channels * pixels**dims, outputs, widths=widths or WIDTHS[dims], key=key
        )
        self.scales = scales
        self.renderer = renderer
        self.anchors = tuple(anchors)
        self.channels = channels
        self.amplitudes = amplitudes
        self.pixels = pixels

    def __call__(self, u: Field) -> Gaussians:
        check_frame(u, self.anchors)
        if u.shape[0] != self.channels:
            raise SplatopError(
                f"expected a field with {self.channels} channel(s), got shape {tuple(u.shape)}"
            )
        normalised, mean, std = normalise(u)
        gaussians = self.predict(normalised)
        if self.amplitudes == "solved":
            gaussians = solve_amplitudes(gaussians, normalised, renderer=self.renderer, ridge=RIDGE)
        return gaussians.with_amplitude(gaussians.amplitude * std, gaussians.offset * std + mean)

    @classmethod
    def from_numerics(cls, numerics, channels, *, key, predicted: bool = False) -> "UNetEncoder":
        # More than can be solved for are also too many to sum at every point.
        many = math.prod(numerics.anchors) > LARGEST_DIRECT_SOLVE
        local = numerics.renderer == "local" or many
        return cls(
            numerics.anchors,
            channels,
            key=key,
            amplitudes="predicted" if predicted else "solved",
            scales=ClippedScales() if predicted else BoundedScales(),
            renderer=LocalRenderer(numerics.window) if local else DenseRenderer(),
        )

    @property
    def learned(self) -> "_UNet":
        return self.network

    @property
    def later_stages(self) -> Literal["encode", "solve", "increment"]:
        return "solve" if self.solves_directly else "increment"

    def reconstruction_loss(self, frames, shifts, *, sobolev=0.0, reconstruction="shifted"):
        return batch_reconstruction_loss(
            self, frames, shifts, sobolev=sobolev, reconstruction=reconstruction
        )

    @property
    def solves_directly(self) -> bool:
        """Whether amplitudes are solved for, and are few enough for it to be done at once."""
        return self.amplitudes == "solved" and math.prod(self.anchors) <= LARGEST_DIRECT_SOLVE

    def hold(self, u: Field) -> Encoder:
        """An encoder that keeps this frame's geometry and only solves for amplitudes."""
        if self.amplitudes == "predicted":
            return self
        normalised, _, _ = normalise(u)
        return HeldGeometry(
            geometry=self.predict(normalised), renderer=self.renderer, anchors=self.anchors
        )

    def predict(self, normalised: Field) -> Gaussians:
        """What the network says about a normalised frame; amplitudes are zero if to be solved."""
        fine = resample(normalised, tuple(self.pixels * a for a in self.anchors))
        raw = self.network(_cells_to_channels(fine, self.anchors, self.pixels))
        return gaussians_from_raw(raw, scales=self.scales, channels=self.channels)


class HeldGeometry(Encoder):
    """Fixed primitives; a frame only decides their amplitudes.

    Within one step the geometry of the first stage serves the later ones.
    """

    geometry: Gaussians
    renderer: PointRenderer
    anchors: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, u: Field) -> Gaussians:
        check_frame(u, self.anchors)
        mean = jnp.mean(u, axis=range(1, u.ndim))
        centred = u - mean.reshape((-1,) + (1,) * (u.ndim - 1))
        solved = solve_amplitudes(self.geometry, centred, renderer=self.renderer)
        return solved.with_amplitude(solved.amplitude, mean)


def _cells_to_channels(u: Field, anchors: tuple[int, ...], pixels: int) -> Float[Array, "k *A"]:
    dims = len(anchors)
    split = u.reshape(u.shape[0], *(size for a in anchors for size in (a, pixels)))
    order = (0, *(2 + 2 * i for i in range(dims)), *(1 + 2 * i for i in range(dims)))
    return split.transpose(order).reshape(-1, *anchors)


class PeriodicConv(eqx.Module):
    """A periodic convolution as one GEMM over shifted copies of its input.

    XLA's own convolution is fifteen times slower on CPUs inside a compiled loop, such as a rollout.
    """

    weight: Float[Array, "target source *K"]
    bias: Float[Array, "target *ones"]
    stride: int = eqx.field(static=True)

    def __init__(
        self, dims: int, source: int, target: int, kernel: int, stride: int, *, key: PRNGKeyArray
    ):
        drawn = eqx.nn.Conv(dims, source, target, kernel, key=key)
        assert drawn.bias is not None
        self.weight, self.bias, self.stride = drawn.weight, drawn.bias, stride

    def __call__(self, x: Float[Array, "source *N"]) -> Float[Array, "target *M"]:
        target, source, *kernel = self.weight.shape
        axes = range(1, x.ndim)
        every = (slice(None), *(slice(None, None, self.stride) for _ in axes))
        shifted = [
            jnp.roll(x, [k // 2 - i for i, k in zip(at, kernel, strict=True)], axes)[every]
            for at in itertools.product(*map(range, kernel))
        ]
        size = shifted[0].shape[1:]
        columns = jnp.concatenate(shifted).reshape(len(shifted) * source, -1)
        rows = jnp.moveaxis(self.weight, 1, -1).reshape(target, -1)
        return (rows @ columns).reshape(target, *size) + self.bias


class _UNet(eqx.Module):
    stem: PeriodicConv
    down: list[PeriodicConv]
    encode: list[PeriodicConv]
    up: list[PeriodicConv]
    decode: list[PeriodicConv]
    head: PeriodicConv

    def __init__(
        self, dims: int, inputs: int, outputs: int, *, widths: tuple[int, ...], key: PRNGKeyArray
    ):
        keys = iter(jax.random.split(key, 4 * len(widths) + 2))

        def conv(source: int, target: int, kernel: int = 3, stride: int = 1) -> PeriodicConv:
            return PeriodicConv(dims, source, target, kernel, stride, key=next(keys))

        self.stem = conv(inputs, widths[0])
        self.encode = [conv(w, w) for w in widths]
        self.down = [conv(a, b, stride=2) for a, b in itertools.pairwise(widths)]
        self.up = [conv(b, a) for a, b in itertools.pairwise(widths)]
        self.decode = [conv(2 * w, w) for w in widths[:-1]]
        head = conv(widths[0], outputs, kernel=1)
        # Zeros are the isotropic lattice, a good place to start from.
        self.head = eqx.tree_at(lambda c: (c.weight, c.bias), head, replace_fn=lambda w: 0.01 * w)

    def __call__(self, x: Float[Array, "c *A"]) -> Float[Array, "o *A"]:
        x = jax.nn.gelu(self.stem(x))
        skips = []
        for level, encode in enumerate(self.encode):
            x = x + jax.nn.gelu(encode(x))
            if level < len(self.down):
                skips.append(x)
                x = jax.nn.gelu(self.down[level](x))
        for level in reversed(range(len(self.down))):
            skip = skips[level]
            for axis, size in enumerate(skip.shape[1:], start=1):
                x = jnp.repeat(x, 2, axis=axis)
                x = jax.lax.slice_in_dim(x, 0, size, axis=axis)
            x = jax.nn.gelu(self.up[level](x))
            x = x + jax.nn.gelu(self.decode[level](jnp.concatenate([x, skip])))
        return self.head(x)

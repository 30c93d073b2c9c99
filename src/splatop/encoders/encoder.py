"""The interface of an encoder, and the normalisation they share."""

import abc
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ..derivative import gradient, value
from ..errors import SplatopError, check_field, is_concrete
from ..gaussians import Splats
from ..grid import Grid
from ..render import FourierRenderer
from ..spectral import Field, differentiate

# Keeps the normalisation of a constant channel finite (paper, appendix A).
EPSILON = 1e-6


class Encoder(eqx.Module):
    """One frame to Gaussians, with `anchors` lattice sites per axis.

    `__call__` is all that an encoder must have; the other methods have answers that suit one that
    encodes every frame anew.
    """

    anchors: eqx.AbstractVar[tuple[int, ...]]

    @abc.abstractmethod
    def __call__(self, u: Field) -> Splats: ...

    @classmethod
    def from_numerics(cls, numerics: Any, channels: int, *, key: PRNGKeyArray) -> "Encoder":
        """The encoder that `encoder=<its registered name>` in the settings stands for.

        `numerics` are the `splatop.Numerics` of a model, `channels` its fields.
        """
        return cls(anchors=numerics.anchors)  # pyright: ignore[reportCallIssue]

    @property
    def later_stages(self) -> Literal["encode", "solve", "increment"]:
        """What the later stages of a time step do, if geometry is held during the step.

        "encode" the state anew; "solve" for the amplitudes of `hold(u)`, a `HeldGeometry`; or put
        only the "increment" since the step's first stage on a lattice.
        """
        return "encode"

    def hold(self, u: Field) -> "Encoder":
        """An encoder for states close to `u`, which may reuse what it learns from `u`."""
        return self

    def carries(self, band: tuple[int, ...]) -> bool | None:
        """Whether modes up to `band` along each axis are represented, and differentiated, as
        Fourier modes are; None where that depends on the field."""
        return None

    @property
    def learned(self) -> Any:
        """The part that stage 1 trains, if it has any arrays: all of it, or a module in it."""
        return self

    @property
    def is_learned(self) -> bool:
        return any(eqx.is_inexact_array(leaf) for leaf in jax.tree.leaves(self.learned))

    def reconstruction_loss(
        self,
        frames: Float[Array, "B C *N"],
        shifts: Float[Array, "B d"],
        *,
        sobolev: float = 0.0,
        reconstruction: str = "shifted",
    ) -> Float[Array, ""]:
        """What stage 1 minimises: the mean squared error of the rendered values on the frames' own
        grid, each in units of its channel's deviation, plus `sobolev` times the relative one of the
        gradients. `shifts`, fractions of half an anchor cell, are for encoders that move the frames
        under their lattice.
        """
        points = tuple(frames.shape[2:])
        grid = Grid(points, (1.0,) * len(points))
        wanted = (value(grid.dims), *(gradient(grid.dims) if sobolev else ()))

        def one(u: Field) -> Array:
            normalised, _, _ = normalise(u)
            rendered = FourierRenderer()(self(normalised), wanted, grid)
            loss = jnp.mean((rendered[wanted[0]] - normalised) ** 2)
            for slope in wanted[1:]:
                truth = differentiate(normalised, slope, grid.lengths)
                wrong = jnp.mean((rendered[slope] - truth) ** 2)
                loss = loss + sobolev * wrong / jnp.mean(truth**2)
            return loss

        return jnp.mean(jax.lax.map(jax.checkpoint(one), frames))


def normalise(u: Field) -> tuple[Field, Float[Array, " C"], Float[Array, " C"]]:
    """`(u - m)/(s + ε)`, m and s for each frame and channel by itself (appendix A)."""
    axes = tuple(range(1, u.ndim))
    mean, std = jnp.mean(u, axis=axes), jnp.std(u, axis=axes) + EPSILON
    shape = (-1,) + (1,) * len(axes)
    return (u - mean.reshape(shape)) / std.reshape(shape), mean, std


def check_frame(u: Field, anchors: tuple[int, ...]) -> None:
    """Refuse a state `(C, *N)` that no encoder can represent with `anchors` Gaussians per axis."""
    check_field(u, dims=len(anchors))
    if any(n < a for n, a in zip(u.shape[1:], anchors, strict=True)):
        raise SplatopError(
            f"expected at least as many grid points as anchors along each axis, got "
            f"{tuple(u.shape[1:])} points and {anchors} anchors: use fewer anchors or a finer grid"
        )
    if is_concrete(u) and _is_constant(np.asarray(u)):
        raise SplatopError(
            "expected a field that varies in space, got a constant one (std 0): there is nothing "
            "to encode; leave such frames out"
        )


def _is_constant(u: np.ndarray) -> bool:
    """Whether no channel varies by more than rounding, which resampling leaves behind."""
    variation = np.ptp(u.reshape(len(u), -1), axis=1).max()
    return bool(variation <= 16 * np.finfo(u.dtype).eps * np.abs(u).max())

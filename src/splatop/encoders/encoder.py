"""The interface of an encoder, and the normalisation they share."""

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import SplatopError, check_field, is_concrete
from ..gaussians import Splats
from ..spectral import Field

# Keeps the normalisation of a constant channel finite (paper, appendix A).
EPSILON = 1e-6


class Encoder(eqx.Module):
    """One frame to Gaussians, with `anchors` lattice sites per axis."""

    anchors: eqx.AbstractVar[tuple[int, ...]]

    @abc.abstractmethod
    def __call__(self, u: Field) -> Splats: ...

    def hold(self, u: Field) -> "Encoder":
        """An encoder for states close to `u`, which may reuse what it learns from `u`."""
        return self


def normalise(u: Field) -> tuple[Field, Float[Array, " C"], Float[Array, " C"]]:
    """`(u - m)/(s + ε)`, m and s for each frame and channel by itself (appendix A)."""
    axes = tuple(range(1, u.ndim))
    mean, std = jnp.mean(u, axis=axes), jnp.std(u, axis=axes) + EPSILON
    shape = (-1,) + (1,) * len(axes)
    return (u - mean.reshape(shape)) / std.reshape(shape), mean, std


def check_frame(u: Field, anchors: tuple[int, ...]) -> None:
    """Refuse what no encoder can represent."""
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

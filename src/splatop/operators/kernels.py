"""The two halves of a Fourier block, with reverse-mode derivatives written out where that saves
time. `PLAIN` are the same functions without them, which forward mode differentiates as they are.

The channel axis is the second from the end. It is short (six in the paper), so a matrix over the
channels is a sum of multiples of the channels: the compiler fuses it with what follows, which it
does not do with a matrix product. Beyond 32 channels the matrix product is the better choice.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.lax import Precision
from jaxtyping import Array, Float

from .dft import from_modes, to_modes

Into = Float[Array, "*N I last"]
Out = Float[Array, "*N O last"]

UNROLLED_CHANNELS = 32

_SLOPE = 2 * math.sqrt(2 / math.pi)
_CUBIC = 0.044715


@jax.custom_vjp
def multiply_modes(
    z: Float[Array, "*R I M"],
    real: Float[Array, "*K I O m"],
    imag: Float[Array, "*K I O m"],
) -> Float[Array, "*R O M"]:
    """Multiplies each mode's channels by a complex matrix: `Y_o = Σ_i (real + i imag)_io X_i`."""
    return _multiply_forward(z, real, imag)[0]


def _multiply_forward(z, real, imag):
    x_r, x_i = to_modes(z)
    y_r = _contract(real, x_r) - _contract(imag, x_i)
    y_i = _contract(real, x_i) + _contract(imag, x_r)
    return from_modes((y_r, y_i)), (x_r, x_i, real, imag)


def _multiply_backward(residuals, gradient):
    """`from_modes` is the transpose of `to_modes`, so back is forth with the adjoint matrices."""
    x_r, x_i, real, imag = residuals
    y_r, y_i = to_modes(gradient)
    real_t, imag_t = jnp.swapaxes(real, -3, -2), jnp.swapaxes(imag, -3, -2)
    g_r = _contract(real_t, y_r) + _contract(imag_t, y_i)
    g_i = _contract(real_t, y_i) - _contract(imag_t, y_r)
    x_r, x_i = x_r[..., :, None, :], x_i[..., :, None, :]
    y_r, y_i = y_r[..., None, :, :], y_i[..., None, :, :]
    return from_modes((g_r, g_i)), x_r * y_r + x_i * y_i, x_r * y_i - x_i * y_r


multiply_modes.defvjp(_multiply_forward, _multiply_backward)


def _contract(kernel: Array, x: Array) -> Array:
    if x.shape[-2] > UNROLLED_CHANNELS:
        return jnp.einsum("...iom,...im->...om", kernel, x, precision=Precision.HIGHEST)
    return _total(kernel[..., i, :, :] * x[..., i, None, :] for i in range(x.shape[-2]))


@jax.custom_vjp
def mix_channels(weight: Float[Array, "O I"], h: Into) -> Out:
    """A matrix over the channels of each point."""
    return _mix(weight, h)


mix_channels.defvjp(
    lambda weight, h: (_mix(weight, h), (weight, h)),
    lambda saved, g: (_outer(g, saved[1]), _mix(saved[0].T, g)),
)


@jax.custom_vjp
def activate(s: Out, weight: Float[Array, "O I"], h: Into) -> Out:
    """`GELU(s + weight h)` in one pass over the field.

    What is kept for the way back are the inputs, which are in memory anyway.
    """
    return _activate(s, weight, h)


def _activate(s: Out, weight: Float[Array, "O I"], h: Into) -> Out:
    a = s + _mix(weight, h)
    # The tanh form of GELU is a sigmoid; ending in a division keeps XLA from computing it again
    # for each of its uses.
    return a / (1 + jnp.exp(-_SLOPE * a * (1 + _CUBIC * a * a)))


def _activate_forward(s, weight, h):
    return activate(s, weight, h), (s, weight, h)


def _activate_backward(saved, g):
    s, weight, h = saved
    a = s + _mix(weight, h)
    square = _CUBIC * a * a
    # Beyond exp(40) the derivative is zero to rounding, and the square below must not overflow.
    e = jnp.exp(jnp.minimum(-_SLOPE * a * (1 + square), 40.0))
    g = g * (1 + e * (1 + _SLOPE * a * (1 + 3 * square))) / ((1 + e) * (1 + e))
    return g, _outer(g, h), _mix(weight.T, g)


activate.defvjp(_activate_forward, _activate_backward)


def _mix(weight: Float[Array, "O I"], h: Into) -> Out:
    if weight.shape[1] > UNROLLED_CHANNELS:
        return jnp.matmul(weight, h, precision=Precision.HIGHEST)
    return _total(weight[:, i, None] * h[..., i, None, :] for i in range(weight.shape[1]))


def _outer(g: Out, h: Into) -> Float[Array, "O I"]:
    """`Σ_x g_o(x) h_i(x)`: a small product for each row, then the sum over rows."""
    rows = jnp.einsum("...oy,...iy->...oi", g, h, precision=Precision.HIGHEST)
    return jnp.sum(rows, axis=tuple(range(g.ndim - 2)))


def _total(terms) -> Array:
    first, *rest = terms
    for term in rest:
        first = first + term
    return first


class Kernels(NamedTuple):
    multiply_modes: Callable
    mix_channels: Callable
    activate: Callable


REVERSE = Kernels(multiply_modes, mix_channels, activate)
PLAIN = Kernels(lambda z, real, imag: _multiply_forward(z, real, imag)[0], _mix, _activate)

"""The real discrete Fourier transform cut to a few modes per axis, as small matrix products.

An FNO keeps so few modes that products with the columns of the DFT matrix beat the FFT. Fields
are laid out `(*leading axes, channel, last axis)`: each axis is then transformed by one plain
matrix product, with no transposition in between.

Everything between field and field stays real. `analysis` gives products of cosines and sines
along the leading axes with a complex mode along the last; `to_modes` turns them into the complex
modes of `rfftn`, and `from_modes` is its transpose.
"""

import math
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap
from jax.lax import Precision
from jaxtyping import Array, Float

from ..errors import SplatopError
from .linear import LinearMap, apply

Hidden = Float[Array, "*N C last"]
Waves = Float[Array, "*R C M"]
Modes = tuple[Float[Array, "*K C m"], Float[Array, "*K C m"]]


def check_modes(points: tuple[int, ...], modes: tuple[int, ...]) -> None:
    """Refuse a grid on which the kept modes are not all distinct.

    A leading axis keeps the modes `-m ... m - 1`, the last one `0 ... m - 1` (the rest follows
    from the field being real).
    """
    least = (*(2 * m for m in modes[:-1]), 2 * (modes[-1] - 1))
    if any(n < wanted for n, wanted in zip(points, least, strict=True)):
        raise SplatopError(
            f"grid coarser than the model's modes: {modes} modes per axis need at least "
            f"{least} points, got {points}: use a finer grid, or a model with fewer modes"
        )


def analysis(h: Hidden, modes: tuple[int, ...]) -> Waves:
    """Coefficients on cosines and sines of each leading axis and on `exp(-ik.)` of the last.

    Leading axes: m + 1 cosines, then m + 1 sines. Last axis: m real parts, then m imaginary ones.
    Scaled so that the coefficient of the constant is the mean.
    """
    z = _product(h, _last_analysis(h.shape[-1], modes[-1]))
    for axis in reversed(range(len(modes) - 1)):
        z = _along(_leading(h.shape[axis], modes[axis]) / h.shape[axis], z, axis)
    return z


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def recall(z: Waves, h: Hidden, modes: tuple[int, ...]) -> Waves:
    """`analysis(h, modes)` where its value `z` is known: only its derivative is ever computed."""
    return z


recall.defvjp(
    lambda z, h, modes: (z, h),
    lambda modes, h, g: (jnp.zeros_like(g), jax.vjp(lambda h: analysis(h, modes), h)[1](g)[0]),
)


def synthesis(z: Waves, points: tuple[int, ...]) -> Hidden:
    """The real field of these coefficients."""
    for axis, n in enumerate(points[:-1]):
        z = _along(_leading(n, z.shape[axis] // 2 - 1).T, z, axis)
    return _product(z, _last_synthesis(points[-1], z.shape[-1] // 2))


def to_modes(z: Waves) -> Modes:
    """Real and imaginary parts of the modes `0 ... m - 1, -1 ... -m` of each leading axis."""
    real, imag = jnp.split(z, 2, axis=-1)
    for axis in range(z.ndim - 2):
        cos_r, sin_r = jnp.split(real, 2, axis=axis)
        cos_i, sin_i = jnp.split(imag, 2, axis=axis)
        up, down = _rows(axis, slice(None, -1)), _rows(axis, slice(1, None))
        real = jnp.concatenate([(cos_r + sin_i)[up], (cos_r - sin_i)[down]], axis=axis)
        imag = jnp.concatenate([(cos_i - sin_r)[up], (cos_i + sin_r)[down]], axis=axis)
    return real, imag


def from_modes(modes: Modes) -> Waves:
    """The transpose of `to_modes`, which is also the way back to waves that `synthesis` needs."""
    real, imag = modes
    for axis in range(real.ndim - 2):
        up_r, down_r = _spread(real, axis)
        up_i, down_i = _spread(imag, axis)
        real = jnp.concatenate([up_r + down_r, down_i - up_i], axis=axis)
        imag = jnp.concatenate([up_i + down_i, up_r - down_r], axis=axis)
    return jnp.concatenate([real, imag], axis=-1)


def constant_mode(modes: tuple[int, ...]) -> np.ndarray:
    """The waves of the constant 1, with a channel axis of length one."""
    z = np.zeros((*(2 * (m + 1) for m in modes[:-1]), 1, 2 * modes[-1]))
    z[(0,) * z.ndim] = 1.0
    return z


def _rows(axis: int, rows: slice) -> tuple[slice, ...]:
    return (*(slice(None),) * axis, rows)


def _spread(part: Array, axis: int) -> tuple[Array, Array]:
    """Modes `0 ... m - 1` and `-1 ... -m`, each padded to the rows `0 ... m`."""
    up, down = jnp.split(part, 2, axis=axis)
    pad = [(0, 0)] * part.ndim
    above, below = pad.copy(), pad.copy()
    above[axis], below[axis] = (0, 1), (1, 0)
    return jnp.pad(up, above), jnp.pad(down, below)


def _product(h: Array, matrix: np.ndarray) -> Array:
    # Exact float32 also where the default would be a faster, coarser format.
    return jnp.matmul(h, jnp.asarray(matrix, h.dtype), precision=Precision.HIGHEST)


def _along(matrix: np.ndarray, z: Array, axis: int) -> Array:
    """Multiplies one axis by a matrix; all axes before it are batch axes."""
    return _linear_along(axis)(jnp.asarray(matrix, z.dtype), z)


@lru_cache(maxsize=16)
def _linear_along(axis: int):
    """The product as a batched one, also under `vmap`, whose own choice copies the field twice."""

    @custom_vmap
    def product(matrix, z):
        before, after = z.shape[:axis], z.shape[axis + 1 :]
        flat = z.reshape(math.prod(before), z.shape[axis], -1)
        matrices = matrix + jnp.zeros_like(flat[:, :1, :1])  # sharded as the field is
        out = jnp.matmul(matrices, flat, precision=Precision.HIGHEST)
        return out.reshape(*before, matrix.shape[0], *after)

    @product.def_vmap
    def rule(size, batched, matrix, z):
        if batched[0] or not batched[1]:
            raise NotImplementedError("the matrix is a constant")
        return _linear_along(axis + 1)(matrix, z), True

    linear = LinearMap(
        lambda matrix, z: [product(matrix, z)], lambda matrix, g: [product(matrix.T, g)]
    )
    return lambda matrix, z: apply(linear, [matrix], [z])[0]


def _angles(mode_numbers: np.ndarray, points: int) -> np.ndarray:
    """`2π k j / N`, reduced first so that multiples of π are exact to rounding."""
    return 2 * np.pi / points * (np.outer(mode_numbers, np.arange(points)) % points)


@lru_cache(maxsize=64)
def _leading(points: int, modes: int) -> np.ndarray:
    angle = _angles(np.arange(modes + 1), points)
    return np.concatenate([np.cos(angle), np.sin(angle)])


@lru_cache(maxsize=64)
def _last_analysis(points: int, modes: int) -> np.ndarray:
    angle = _angles(np.arange(modes), points).T
    return np.concatenate([np.cos(angle), -np.sin(angle)], axis=1) / points


@lru_cache(maxsize=64)
def _last_synthesis(points: int, modes: int) -> np.ndarray:
    """Each mode stands for itself and its conjugate, except the mean and the Nyquist mode."""
    k = np.arange(modes)
    alone = ((k == 0) | (2 * k == points))[:, None]
    angle = _angles(k, points)
    return np.concatenate(
        [np.where(alone, 1, 2) * np.cos(angle), np.where(alone, 0, -2) * np.sin(angle)]
    )

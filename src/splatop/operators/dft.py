"""The real discrete Fourier transform cut to a few modes per axis, as small matrix products.

An FNO keeps so few modes that multiplying by the columns of the DFT matrix beats the FFT. Fields
are laid out `(*leading axes, channel, last axis)`: each axis is then transformed by one plain
matrix product, with no transposition in between.
"""

from functools import lru_cache

import jax.numpy as jnp
import numpy as np
from jax.lax import Precision
from jaxtyping import Array, Float

from ..errors import SplatopError


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


def forward(h: Float[Array, "*N C last"], modes: tuple[int, ...]) -> Float[Array, "*K C 2 m"]:
    """The kept modes of `rfftn`; real and imaginary part along the second axis from the end."""
    dims = len(modes)
    points = (*h.shape[: dims - 1], h.shape[-1])
    matrix = jnp.asarray(_last_forward(points[-1], modes[-1]), h.dtype)
    z = jnp.matmul(h, matrix, precision=Precision.HIGHEST)
    z = z.reshape(*h.shape[:-1], 2, modes[-1])
    for axis in range(dims - 2, -1, -1):
        z = _leading_forward(z, axis, modes[axis])
    return z


def inverse(z: Float[Array, "*K C 2 m"], points: tuple[int, ...]) -> Float[Array, "*N C last"]:
    """The real field of these modes, all others zero: `irfftn`."""
    for axis, n in enumerate(points[:-1]):
        z = _leading_inverse(z, axis, n)
    modes = z.shape[-1]
    matrix = jnp.asarray(_last_inverse(points[-1], modes), z.dtype)
    return jnp.matmul(z.reshape(*z.shape[:-2], 2 * modes), matrix, precision=Precision.HIGHEST)


def _leading_forward(z: Array, axis: int, modes: int) -> Array:
    matrix = jnp.asarray(_waves(z.shape[axis], modes), z.dtype)
    before, after = z.shape[:axis], z.shape[axis + 1 :]
    rows = jnp.matmul(
        matrix.reshape(-1, z.shape[axis]),
        z.reshape(*before, z.shape[axis], -1),
        precision=Precision.HIGHEST,
    )
    rows = rows.reshape(*before, 2, 2 * modes, *after)
    cos, sin = jnp.split(rows, 2, axis=len(before))
    cos, sin = cos.squeeze(len(before)), sin.squeeze(len(before))
    real = cos[..., 0, :] + sin[..., 1, :]
    imag = cos[..., 1, :] - sin[..., 0, :]
    return jnp.stack([real, imag], axis=-2)


def _leading_inverse(z: Array, axis: int, points: int) -> Array:
    modes = z.shape[axis] // 2
    before, after = z.shape[:axis], z.shape[axis + 1 :]
    matrix = jnp.asarray(_waves(points, modes) / points, z.dtype)
    sin = jnp.stack([-z[..., 1, :], z[..., 0, :]], axis=-2)
    rows = jnp.concatenate([z, sin], axis=axis)
    out = jnp.matmul(
        matrix.reshape(-1, points).T,
        rows.reshape(*before, 4 * modes, -1),
        precision=Precision.HIGHEST,
    )
    return out.reshape(*before, points, *after)


def _angles(mode_numbers: np.ndarray, points: int) -> np.ndarray:
    """`2π k j / N`, reduced first so that multiples of π are exact to rounding."""
    return 2 * np.pi / points * (np.outer(mode_numbers, np.arange(points)) % points)


@lru_cache(maxsize=64)
def _last_forward(points: int, modes: int) -> np.ndarray:
    angle = _angles(np.arange(modes), points).T
    return np.concatenate([np.cos(angle), -np.sin(angle)], axis=1)


@lru_cache(maxsize=64)
def _last_inverse(points: int, modes: int) -> np.ndarray:
    """Each mode stands for itself and its conjugate, except the mean and the Nyquist mode."""
    k = np.arange(modes)
    twice = np.where((k == 0) | (2 * k == points), 1.0, 2.0)[:, None] / points
    angle = _angles(k, points)
    sine = np.where((k == 0) | (2 * k == points), 0.0, 1.0)[:, None] * np.sin(angle)
    return np.concatenate([twice * np.cos(angle), -twice * sine])


@lru_cache(maxsize=64)
def _waves(points: int, modes: int) -> np.ndarray:
    """Cosines and sines of the modes `0 ... m - 1, -m ... -1`: shape (2, 2m, N)."""
    k = np.concatenate([np.arange(modes), np.arange(-modes, 0)])
    angle = _angles(k, points)
    return np.stack([np.cos(angle), np.sin(angle)])

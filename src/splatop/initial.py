"""Random initial conditions that do not depend on the resolution they are sampled at."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .domain import Domain
from .errors import SplatopError, unknown_name
from .grid import Grid
from .spaces import BoxSpace

Sampled = Float[np.ndarray, "C *N"]

BAND = 5  # highest mode per axis of the truncated Fourier series, as in the paper
SEEDS = 6


def initial_condition(kind: str, grid: Grid, *, channels: int, key: Array) -> Sampled:
    """A random state `(channels, *points)` in double precision.

    `fourier`: modes up to 5 per axis, zero mean, largest value 1. `positive`: the same, between
    0.05 and 0.95. `seeds`: the first channel 1 and the others 0, but for a few smooth spots.
    `solitons`: two pulses of the Korteweg-de Vries equation (c = 6, b = 1), in 1D.
    """
    if kind not in INITIAL_CONDITIONS:
        raise unknown_name("initial condition", kind, INITIAL_CONDITIONS)
    from_zero = Grid(grid.points, grid.lengths)  # the same state wherever the box begins
    return INITIAL_CONDITIONS[kind](from_zero, channels, key)


def harmonic_condition(
    domain: Domain, fields: tuple[str, ...], grid: Grid, *, key: Array
) -> Sampled:
    """A random state on a box with walls that obeys homogeneous conditions there: its lowest `BAND`
    harmonics along each axis, and those of as many waves around a ring; largest value 1.

    The same function on every grid. Where an end sets a value other than 0, add what takes it.
    """
    sizes = tuple(BAND if axis.periodic else 4 * BAND for axis in domain.axes)
    space = BoxSpace(domain, fields, sizes)
    kept = tuple(2 * BAND + 1 if axis.periodic else BAND for axis in domain.axes)
    drawn = np.asarray(jax.random.normal(key, (len(fields), *kept), np.float32), np.float64)
    amplitude = np.zeros((len(fields), *space.shape))
    amplitude[(slice(None), *(slice(n) for n in kept))] = drawn
    with jax.enable_x64(True):
        fine = tuple(np.linspace(0, 1, 12 * BAND + 1) for _ in sizes)
        size = np.abs(np.asarray(space.evaluate(jnp.asarray(amplitude), fine)))
        largest = size.max(axis=tuple(range(1, size.ndim)), keepdims=True)
        return np.asarray(space.evaluate(jnp.asarray(amplitude), grid.fractions())) / largest


def _uniform(key: Array, shape: tuple[int, ...], low: float, high: float) -> np.ndarray:
    # Single precision on purpose: the same numbers whether or not double precision is enabled.
    return np.asarray(jax.random.uniform(key, shape, np.float32, low, high), np.float64)


def _fourier(grid: Grid, channels: int, key: Array) -> Sampled:
    size = (channels, *(2 * BAND + 1,) * grid.dims)
    real, imaginary = np.asarray(jax.random.normal(key, (2, *size), np.float32), np.float64)
    amplitude = real + 1j * imaginary
    amplitude[(slice(None), *(BAND,) * grid.dims)] = 0.0
    modes = np.arange(-BAND, BAND + 1)
    for axis, n in enumerate(grid.points):
        kept = np.abs(modes) <= (n - 1) // 2  # a coarser grid sees the smooth part alone
        waves = np.exp(2j * np.pi * np.outer(modes, np.arange(n) / n)) * kept[:, None]
        amplitude = np.moveaxis(np.tensordot(amplitude, waves, (axis + 1, 0)), -1, axis + 1)
    u = np.real(amplitude)
    largest = np.max(np.abs(u), axis=tuple(range(1, u.ndim)), keepdims=True)
    return u / np.where(largest > 0, largest, 1.0)


def _positive(grid: Grid, channels: int, key: Array) -> Sampled:
    return 0.5 + 0.45 * _fourier(grid, channels, key)


def _seeds(grid: Grid, channels: int, key: Array) -> Sampled:
    centres = _uniform(key, (SEEDS, grid.dims), 0.0, 1.0)
    empty = np.ones(grid.points)
    for centre in centres:
        away = [
            (x / length - c + 0.5) % 1 - 0.5
            for x, length, c in zip(grid.coordinates(), grid.lengths, centre, strict=True)
        ]
        empty = empty * (1 - np.exp(-sum(d**2 for d in away) / (2 * 0.05**2)))
    spots = 1 - empty
    return np.stack([1 - spots / 2] + [spots / 4] * (channels - 1))


def _solitons(grid: Grid, channels: int, key: Array) -> Sampled:
    if grid.dims != 1:
        raise SplatopError(f"expected a 1D box for solitons, got {grid.dims}D: use fourier")
    (length,) = grid.lengths
    (x,) = grid.coordinates()
    where, speed = jax.random.split(key)
    starts = _uniform(where, (channels, 2), 0.0, 1.0) * 0.2 + [0.1, 0.6]
    u = np.zeros((channels, *grid.points))
    for channel, speeds in enumerate(_uniform(speed, (channels, 2), 0.8, 2.5)):
        for start, c in zip(starts[channel], speeds, strict=True):
            away = (x - start * length + length / 2) % length - length / 2
            u[channel] += c / 2 / np.cosh(np.sqrt(c) / 2 * away) ** 2
    return u


INITIAL_CONDITIONS: dict[str, Callable[[Grid, int, Array], Sampled]] = {
    "fourier": _fourier,
    "positive": _positive,
    "seeds": _seeds,
    "solitons": _solitons,
}

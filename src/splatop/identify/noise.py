"""Noise level and band of measured frames, from their Fourier spectrum."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..grid import Grid

# Modes beyond this fraction of the Nyquist limit along any axis are taken to be noise.
_NOISE_ONLY = 0.75
# A slab of modes belongs to the band if it stands out of the noise by this many deviations.
_DEVIATIONS = 5.0
# What lies beyond the band of clean data, in amplitude relative to the whole.
_TAIL = 1e-6


@dataclass(frozen=True)
class Spectrum:
    """What the spectrum of frames `(T, C, *N)` tells.

    `noise` and `scale` hold one standard deviation per channel, of the white noise and of the
    field about its mean; `band` the highest mode along each axis that stands out of the noise;
    `points` the number of grid points.
    """

    noise: np.ndarray
    scale: np.ndarray
    band: tuple[int, ...]
    points: int

    @property
    def relative_noise(self) -> float:
        """Noise over signal, the worst channel's."""
        return float(np.max(self.noise / np.maximum(self.scale, 1e-300)))


def measure(frames: np.ndarray) -> Spectrum:
    """Noise from the floor at high wavenumbers, band from what rises above it."""
    points = frames.shape[2:]
    axes = tuple(range(2, frames.ndim))
    modes = np.fft.rfftn(frames, axes=axes, norm="forward")
    energy = np.mean(np.abs(modes) ** 2, axis=0)
    floor = _floor(energy, points, len(frames))
    total = np.prod(points)
    mean = (slice(None),) + (0,) * len(points)
    weights = _multiplicity(points)
    energy[mean] = 0.0
    signal = np.maximum(np.sum(energy * weights, axis=axes_of(energy)) - floor * total, 0.0)
    band = tuple(
        _highest(energy * weights, weights, axis, floor, frames=len(frames))
        for axis in range(len(points))
    )
    return Spectrum(
        noise=np.sqrt(floor * total), scale=np.sqrt(signal), band=band, points=int(total)
    )


def axes_of(field: np.ndarray) -> tuple[int, ...]:
    """The spatial axes of a field `(C, *N)`."""
    return tuple(range(1, field.ndim))


def add_noise(frames: np.ndarray, level: float, seed: int | tuple[int, ...]) -> np.ndarray:
    """Frames with white noise of `level` times each channel's standard deviation, for studies."""
    deviation = np.std(frames, axis=(0, *range(2, frames.ndim)), keepdims=True)
    noise = np.random.default_rng(seed).standard_normal(frames.shape)
    return (frames + level * deviation * noise).astype(frames.dtype)


def project(frames: np.ndarray, band: tuple[int, ...], points: tuple[int, ...]) -> np.ndarray:
    """The part of the frames inside the band, sampled at `points` per axis."""
    first = frames.ndim - len(points)
    for axis, (b, target) in enumerate(zip(band, points, strict=True), start=first):
        matrix = _projection(frames.shape[axis], b, target)
        frames = np.moveaxis(np.tensordot(matrix, frames, axes=(1, axis)), 0, axis)
    return np.ascontiguousarray(frames)


@lru_cache(maxsize=64)
def _projection(source: int, band: int, target: int) -> np.ndarray:
    distance = np.arange(target)[:, None] / target - np.arange(source) / source
    k = np.arange(1, band + 1)[:, None, None]
    return (1 + 2 * np.sum(np.cos(2 * np.pi * k * distance), axis=0)) / source


def _floor(energy: np.ndarray, points: tuple[int, ...], frames: int) -> np.ndarray:
    """Energy of noise in one mode, per channel: the median over the highest modes."""
    far = np.zeros(energy.shape[1:], bool)
    for k, n in zip(Grid(points, (1.0,) * len(points)).modes(), points, strict=True):
        far |= np.abs(k) > _NOISE_ONLY * (n // 2)
    if not far.any():
        return np.zeros(len(energy))
    # The mean of `frames` exponential variables has this median, to better than 4 %.
    return np.median(energy[:, far], axis=1) / (1 - 1 / (3 * frames))


def _highest(
    energy: np.ndarray, weights: np.ndarray, axis: int, floor: np.ndarray, *, frames: int
) -> int:
    """The last mode number along an axis at which any channel rises above noise and tail."""
    others = tuple(i for i in range(1, energy.ndim) if i != axis + 1)
    along = energy.sum(axis=others)
    count = weights.sum(axis=tuple(i - 1 for i in others))
    if axis < energy.ndim - 2:  # a full axis: fold the negative modes onto the positive ones
        n = along.shape[1]
        index = np.abs(np.fft.fftfreq(n, 1 / n)).astype(int)
        along = np.stack([np.bincount(index, one) for one in along])
        count = np.bincount(index, count)
    noise = floor[:, None] * count
    excess = along - noise
    # The energy of noise in `count` real degrees of freedom and `frames` frames has this deviation.
    seen = excess > _DEVIATIONS * noise * np.sqrt(2 / (count * frames))
    beyond = np.cumsum((excess * seen)[:, ::-1], axis=1)[:, ::-1]
    total = np.maximum(beyond[:, :1], 1e-300)
    rising = (beyond > _TAIL**2 * total).any(axis=0)
    highest = int(np.max(np.nonzero(rising)[0], initial=1))
    return max(1, min(highest, (2 * (len(count) - 1) - 1) // 2))


def _multiplicity(points: tuple[int, ...]) -> np.ndarray:
    """How many modes of the full transform each mode of `rfftn` stands for."""
    last = np.arange(points[-1] // 2 + 1)
    alone = (last == 0) | (2 * last == points[-1])
    shape = (*points[:-1], len(last))
    return np.broadcast_to(np.where(alone, 1.0, 2.0), shape).copy()

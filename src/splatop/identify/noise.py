"""Noise level and band of measured frames, from their Fourier spectrum."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..grid import Grid

# Modes beyond this fraction of the Nyquist limit along any axis are taken to be noise.
_NOISE_ONLY = 0.75
# A slab of modes belongs to the band if it stands out of the noise by this many deviations.
_DEVIATIONS = 5.0
# What lies beyond the band of clean data, in amplitude relative to the whole.
TAIL = 1e-6
# Small scales below this share of a field matter to nobody, whatever they are.
VISIBLE = 1e-4
# Below this share they are what single precision leaves, also of a field's own mean.
_ROUNDING = 2e-6
_ROUNDING_OF_MEAN = 1e-7
# Deviations from what white noise would do, from which small scales are no noise.
_NOT_WHITE = 8.0
# Differences in time that leave noise of fields that are smooth in time; and by what share of it
# noise may be uneven over modes, places, and these differences.
_DIFFERENCES = (4, 6)
_UNEVEN = 0.2


@dataclass(frozen=True)
class Spectrum:
    """What the spectrum of frames `(S, L, C, *N)` tells.

    `noise` and `scale` hold one standard deviation per channel, of the white noise and of the
    field about its mean; `band` the highest mode along each axis that stands out of the noise;
    `points` the number of grid points. `unresolved` is the share of the field in its smallest
    scales where these are no noise but a part of the solution that the grid cannot hold, else 0.
    """

    noise: np.ndarray
    scale: np.ndarray
    band: tuple[int, ...]
    points: int
    unresolved: float = 0.0

    @property
    def relative_noise(self) -> float:
        """Noise over signal, the worst channel's."""
        return float(np.max(self.noise / np.maximum(self.scale, 1e-300)))


def measure(frames: np.ndarray, *, tail: float = TAIL) -> Spectrum:
    """Noise from the floor at high wavenumbers, band from what rises above it.

    `frames` are pieces of successive frames `(S, L, C, *N)`. Beyond the band of clean data lies
    no more than the `tail` of their amplitude.
    """
    points = frames.shape[3:]
    modes = np.fft.rfftn(frames, axes=tuple(range(3, frames.ndim)), norm="forward")
    energy = np.mean(np.abs(modes) ** 2, axis=(0, 1))
    count = frames.shape[0] * frames.shape[1]
    floor = _floor(energy, points, count)
    total = int(np.prod(points))
    weights = _unit(points).multiplicity()
    energy[(slice(None), *(0,) * len(points))] = 0.0
    axes = tuple(range(1, energy.ndim))
    power = np.sum(energy * weights, axis=axes)
    small = _not_white(frames, modes, points, power)
    if small:
        floor = _floor_in_time(modes, points)
    band = tuple(
        _highest(energy * weights, weights, axis, floor, frames=count, tail=tail)
        for axis in range(len(points))
    )
    return Spectrum(
        noise=np.sqrt(floor * total),
        scale=np.sqrt(np.maximum(power - floor * total, 0.0)),
        band=band,
        points=total,
        unresolved=small if small >= VISIBLE else 0.0,
    )


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
    """Dirichlet's kernel: 1 and twice the cosines up to the band, at the points' distances."""
    apart = np.arange(target)[:, None] * source - np.arange(source) * target
    half = np.pi * apart / (source * target)
    return (
        np.where(
            apart == 0,
            2 * band + 1,
            np.sin((2 * band + 1) * half) / np.sin(np.where(apart, half, 1)),
        )
        / source
    )


def _unit(points: tuple[int, ...]) -> Grid:
    return Grid(points, (1.0,) * len(points))


def _far(points: tuple[int, ...]) -> np.ndarray:
    """The modes of `rfftn` beyond any field that the grid resolves well."""
    far = np.zeros((*points[:-1], points[-1] // 2 + 1), bool)
    for k, n in zip(_unit(points).modes(), points, strict=True):
        far |= np.abs(k) > _NOISE_ONLY * (n // 2)
    return far


def _floor(energy: np.ndarray, points: tuple[int, ...], frames: int) -> np.ndarray:
    """Energy of noise in one mode, per channel: the median over the highest modes."""
    far = _far(points)
    if not far.any():
        return np.zeros(len(energy))
    return _from_median(energy[:, far], float(frames))


def _from_median(energy: np.ndarray, count: float) -> np.ndarray:
    """The mean of variables `(..., n)` that are means of so many exponential ones, from their
    median, to better than 4 %: a few that are a field do not move it."""
    return np.asarray(np.median(energy, axis=-1) / (1 - 1 / (3 * max(count, 1.0))))


def _floor_in_time(modes: np.ndarray, points: tuple[int, ...]) -> np.ndarray:
    """The same where a field reaches into the highest modes: what remains of these in high
    differences from frame to frame, if that is white. Zero if it is not: then it is the field."""
    far = _far(points)
    axes = tuple(range(2, 2 + len(points)))
    found = np.zeros(modes.shape[2])
    if modes.shape[1] < 2 * max(_DIFFERENCES):
        return found
    for c in range(len(found)):
        floors = []
        for order in _DIFFERENCES:
            grown = math.comb(2 * order, order)
            rest = np.diff(modes[:, :, c], n=order, axis=1) * far / math.sqrt(grown)
            energy = np.mean(np.abs(rest) ** 2, axis=(0, 1))[far]
            # Differences have so much in common that they count for fewer frames.
            alike = math.comb(4 * order, 2 * order) / grown**2
            floor = float(_from_median(energy, rest.shape[0] * rest.shape[1] / alike))
            small = np.fft.irfftn(rest, s=points, axes=axes, norm="forward")
            peaked = abs(_fourth_moment(small) / 3 - 1) > _UNEVEN
            if peaked or not np.mean(energy) <= (1 + _UNEVEN) * floor:
                break
            floors.append(floor)
        else:
            if max(floors) <= (1 + _UNEVEN) * min(floors):
                found[c] = floors[-1]
    return found


def _not_white(
    frames: np.ndarray, modes: np.ndarray, points: tuple[int, ...], power: np.ndarray
) -> float:
    """The share of the field in its smallest scales, if these do not look like white noise."""
    far = _far(points)
    axes = tuple(range(3, frames.ndim))
    small = np.fft.irfftn(modes * far, s=points, axes=axes, norm="forward")
    freedom = float(np.sum(_unit(points).multiplicity() * far))
    means = np.abs(modes[(..., *(0,) * len(points))]).max(axis=(0, 1))
    return share_not_white(small, np.sqrt(power), freedom, means=means)


def share_not_white(
    rest: np.ndarray,
    sizes: np.ndarray,
    freedom: float,
    white: np.ndarray | None = None,
    means: np.ndarray | None = None,
) -> float:
    """The share that a rest `(S, L, C, *N)` has of fields of these `sizes` `(C,)`, in the worst
    channel whose rest is no white noise of `freedom` numbers a frame; 0 if there is none.

    A front thinner than a cell fills the spectrum to its end as noise does. But noise is spread
    evenly over place and time and forgets itself from frame to frame; a front does neither.
    `white` is what is left of a draw of white noise, if that is not even over the places. `means`
    `(C,)` are what the fields vary about, if that may be large beside them.
    """
    axes = tuple(i for i in range(rest.ndim) if i != 2)
    shares = np.sqrt(np.mean(rest**2, axis=axes)) / np.maximum(sizes, 1e-150)
    worst = 0.0
    for c, share in enumerate(shares):
        rounding = 0.0 if means is None else _ROUNDING_OF_MEAN * means[c] / max(sizes[c], 1e-150)
        if share < max(_ROUNDING, rounding) or freedom < 8:
            continue
        own = rest[:, :, c] / np.sqrt(np.mean(rest[:, :, c] ** 2))
        count = own.shape[0] * own.shape[1]
        # White noise: the energy of a frame varies by sqrt(2/f) for f degrees of freedom ...
        in_time = np.mean(own**2, axis=tuple(range(2, own.ndim)))
        uneven = (np.max(in_time) - 1) / np.sqrt(2 / freedom)
        # ... its fourth moment is 3 ± sqrt(96/n) (Gaussian; correlated by the cut to n = f) ...
        fourth = 3.0 if white is None else _fourth_moment(white[:, :, c])
        peaked = (_fourth_moment(own) - fourth) / np.sqrt(96 / (freedom * count))
        # ... and successive frames have nothing in common, to 1/sqrt(n).
        lasting = 0.0
        if own.shape[1] > 1:
            pairs = own.shape[0] * (own.shape[1] - 1)
            lasting = abs(np.mean(own[:, 1:] * own[:, :-1])) * np.sqrt(freedom * pairs)
        if max(uneven, peaked, lasting) > _NOT_WHITE:
            worst = max(worst, float(share))
    return worst


def _fourth_moment(values: np.ndarray) -> float:
    """3 for Gaussian ones, and where there is nothing."""
    size = float(np.mean(values**2))
    return float(np.mean(values**4)) / size**2 if size else 3.0


def _highest(
    energy: np.ndarray,
    weights: np.ndarray,
    axis: int,
    floor: np.ndarray,
    *,
    frames: int,
    tail: float,
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
    rising = (beyond > tail**2 * total).any(axis=0)
    highest = int(np.max(np.nonzero(rising)[0], initial=1))
    return max(1, min(highest, (2 * (len(count) - 1) - 1) // 2))

"""Smooth windows in time, against which an equation is integrated: no difference is taken."""

import math

import numpy as np

from ..identify.weak import time_tests

# Half widths of the bells, in frames.
HALVES = (3, 6, 12, 24)
_NARROW = 3


def bells(frames: int, half: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Weights on du/dt and on u times dt, `(windows, frames)` each, and how many of the windows
    count as one because they overlap.

    Up to seven frames the bell is that of the weak method, beyond a power of `1 - s²`.
    """
    if half <= _NARROW:
        a, b = time_tests(frames) if half == _NARROW else _narrow(frames)
        deviation = 0.9 if half == _NARROW else 0.76
    else:
        n = np.arange(-half, half + 1) / (half + 1)
        power = max(half, 11)
        bell = (1 - n**2) ** power
        bell /= bell.sum()
        slope = _slope(bell)
        stride = max(1, half // 6)
        starts = range(0, frames - 2 * half, stride)
        a, b = np.zeros((2, len(starts), frames))
        for row, first in enumerate(starts):
            a[row, first : first + 2 * half + 1] = bell
            b[row, first : first + 2 * half + 1] = slope
        deviation = (half + 1) / math.sqrt(2 * power + 3)
        return a, b, max(1.0, 3.5 * deviation / stride)
    return a, b, 3.5 * deviation


def _slope(bell: np.ndarray) -> np.ndarray:
    """Weights b on frames with `Σ b u = dt Σ a u'` for all that turns by up to 2 per frame."""
    half = len(bell) // 2
    positive = np.arange(1, half + 1)
    turns = np.linspace(0.02, 2.0, 12 * half)[:, None]
    wanted = turns[:, 0] * (bell[half] + 2 * np.cos(turns * positive) @ bell[half + 1 :])
    slopes = np.linalg.lstsq(2 * np.sin(turns * positive), wanted, rcond=None)[0]
    return np.concatenate([-slopes[::-1], [0.0], slopes])


def _narrow(frames: int) -> tuple[np.ndarray, np.ndarray]:
    a, b = time_tests(5)
    rows = frames - 4
    values, slopes = np.zeros((2, rows, frames))
    for row in range(rows):
        values[row, row : row + 5], slopes[row, row : row + 5] = a[0], b[0]
    return values, slopes


def usable_halves(length: int, dims: int) -> tuple[int, ...]:
    """Widths of which a piece holds several independent windows; fewer where each costs more."""
    some = HALVES if dims == 1 else (3, 10)
    fitting = tuple(h for h in some if 3 * h + 1 <= length)
    return fitting or ((_NARROW,) if length >= 7 else (2,))

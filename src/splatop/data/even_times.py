"""Frames that are not evenly spaced in time, interpolated to even times."""

import warnings

import numpy as np

from .evened import interpolation
from .trajectories import Trajectories

# Weights of a spline less than this are left out, so that a few frames need not all to be read.
_NONE = 1e-9
# Frames that are foretold from every other one by no more than this part of a field's spread are
# known between themselves 2^6 times better: a spline of fifth degree errs with the sixth power.
_UNSURE = 0.1
_LOOKED_AT = 64


class EvenTimes(Trajectories):
    """Trajectories at as many even times between their first and their last."""

    def __init__(self, whole: Trajectories, times: np.ndarray):
        assert whole.times is not None
        self._like(whole)
        self.whole, self.times = whole, times
        self.dt = float(times[1] - times[0])
        self._matrix = interpolation(np.asarray(whole.times, float), times)

    def read(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        rows = self._matrix[start : start + frames]
        needed = np.flatnonzero(np.abs(rows).max(axis=0) > _NONE)
        first, last = int(needed[0]), int(needed[-1]) + 1
        seen = self.whole.read(trajectory, first, last - first)
        return np.tensordot(rows[:, first:last].astype(np.float32), seen, (1, 0))

    @property
    def observed(self) -> Trajectories:
        return self

    def close(self) -> None:
        self.whole.close()


def at_even_times(data: Trajectories) -> Trajectories:
    """The data at even times: themselves where these are, and else interpolated, which is said, as
    is how well frames are foretold by their neighbours."""
    if data.even or data.times is None:
        return data
    even = np.linspace(data.times[0], data.times[-1], data.frames)
    off = _foretold(data)
    words = (
        f"{data.frames} uneven times interpolated to even ones {even[1] - even[0]:g} apart; frames "
        f"are foretold from every other one but for {off:.1g} of a field's spread"
    )
    if not off <= _UNSURE:
        warnings.warn(
            f"{data.source}: {words}: between frames that are so far apart nobody knows the fields",
            stacklevel=2,
        )
    changed = data.made_of(lambda whole: EvenTimes(whole, even))
    changed.attributes["times"] = words
    return changed


def _foretold(data: Trajectories) -> float:
    """How far the frames of a stretch are from what every other of them says, over the spread."""
    count = min(data.frames, _LOOKED_AT)
    if count < 3 or data.times is None:
        return float("inf")
    start = int(np.argmax(np.convolve(np.diff(data.times), np.ones(count - 1), "valid")))
    times = np.asarray(data.times[start : start + count], float)
    frames = data.states(0, start, count).astype(float)
    inside = np.arange(1, count - 1, 2)
    found = np.tensordot(interpolation(times[::2], times[inside]), frames[::2], (1, 0))
    axes = (0, *range(2, frames.ndim))
    off = np.sqrt(np.nanmean((found - frames[inside]) ** 2, axis=axes))
    spread = np.nanstd(frames, axis=axes)
    return float(np.max(np.divide(off, spread, out=np.zeros_like(off), where=spread > 0)))

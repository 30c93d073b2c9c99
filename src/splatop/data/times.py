"""When the frames of a data set are: their time stamps, checked, and the time between them."""

from collections.abc import Mapping

import numpy as np

from ..errors import SplatopError
from ..stepper import INTERVAL, TIME
from .axes import uneven_gaps

# Intervals that differ by less than this part of them are the same.
_SAME = 1e-6
# Rounding of a time may be this part of the interval.
_COARSE = 1e-3


def frame_times(
    stamps: np.ndarray, *, source: str, stated_dt: float | None = None, name: str = "time"
) -> tuple[float, np.ndarray]:
    """The time between frames, and the time of each.

    Stamps that are even but for their rounding become exactly so, a time `stated_dt` apart if that
    agrees with them. Of uneven ones the interval is the median. Stamps that go backwards or repeat
    are refused.
    """
    stamps = np.asarray(stamps, float)
    if stamps.shape == (1,):
        raise steady(source)
    if stamps.ndim != 1 or len(stamps) < 2 or not np.isfinite(stamps).all():
        raise SplatopError(
            f"{source}: expected at least two finite values along {name}, "
            f"got an array of shape {stamps.shape}"
        )
    gaps = np.diff(stamps)
    if (gaps <= 0).any():
        first = int(np.argmax(gaps <= 0))
        how = "the same again" if gaps[first] == 0 else "one before it"
        raise SplatopError(
            f"{source}: expected times that increase along {name}, got {stamps[first]:g} and then "
            f"{how}, {stamps[first + 1]:g}, at index {first}: sort the frames, or leave out those "
            "that repeat"
        )
    if uneven_gaps(stamps).any():
        return float(np.median(gaps)), stamps
    step = float(gaps.mean())
    fitted = float(np.polyfit(np.arange(len(stamps)), stamps, 1)[0])
    if abs(fitted - step) > _SAME * step:  # stamps of few decimals: the ends are rounded too
        step = fitted
    if stated_dt is not None and np.isclose(step, stated_dt, rtol=1e-4):
        step = float(stated_dt)
    return step, stamps[0] + step * np.arange(len(stamps))


def steady(source: str) -> SplatopError:
    """What is said of data of one moment."""
    return SplatopError(
        f"{source}: expected trajectories of at least two frames, got one: a steady state, or a "
        "pair of input and output, tells nothing of an evolution in time, which is what splatop "
        "works with"
    )


def is_even(times: np.ndarray | None) -> bool:
    """Whether one interval is like the other; without stamps it is."""
    if times is None or len(times) < 3:
        return True
    gaps = np.diff(times)
    return bool(np.ptp(gaps) <= _SAME * gaps.mean() + 4e-16 * np.abs(times).max())


def told_times(
    times: np.ndarray | None, t0: float | None, *, dt: float, frames: int
) -> np.ndarray | None:
    """The times of frames of which the first is at `t0`, if the user says so."""
    if t0 is None:
        return times
    if not np.isfinite(t0):
        raise SplatopError(f"expected a finite time of the first frame, got t0 = {t0}")
    ahead = dt * np.arange(frames) if times is None else times - times[0]
    return float(t0) + ahead


def unknown_time(source: str) -> SplatopError:
    """What is said of data without times where `t` stands in an equation."""
    return SplatopError(
        f"expected to know when {source} are, because t stands in the equation or at an edge, got "
        "no time stamps: give the time of the first frame (t0=0, --t0 0)"
    )


def check_clock(times: np.ndarray | None, dt: float, source: str) -> None:
    """Refuse data of which nobody knows when they are, or not well enough in single precision, for
    an equation that depends on time."""
    if times is None:
        raise unknown_time(source)
    coarse = float(np.finfo(np.float32).eps) * float(np.abs(times).max())
    if coarse > _COARSE * dt:
        raise SplatopError(
            f"{source}: expected times that single precision tells apart, because t stands in the "
            f"equation, got some up to {np.abs(times).max():g} with frames {dt:g} apart: count "
            "them from the first frame on (t0=0, --t0 0), and shift phases in the equation"
        )


def windows_when(
    times: np.ndarray | None, starts: np.ndarray, frames: int
) -> Mapping[str, np.ndarray]:
    """For windows of so many frames the time `t` at which each of their steps begins and, where
    frames are uneven, its length `dt`: `(n, frames - 1)` each. Nothing where times are not known.
    """
    if times is None:
        return {}
    index = np.minimum(np.asarray(starts), len(times) - frames)[:, None] + np.arange(frames - 1)
    found = {TIME: times[index].astype(np.float32)}
    if not is_even(times):
        found[INTERVAL] = np.diff(times)[index].astype(np.float32)
    return found

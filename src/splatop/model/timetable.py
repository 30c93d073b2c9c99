"""The steps that lead to given times: how long each is, and after which a state is asked for."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import SplatopError
from ..stepper import INTERVAL, TIME
from .spec import ModelSpec

# A network that saw intervals of several lengths is trusted up to so many times the longest.
BEYOND = 2.0


@dataclass(frozen=True)
class Timetable:
    """`begins` and `intervals` of the steps, and the numbers of those that end at times asked for;
    where all steps are the model's own, `intervals` are None."""

    begins: np.ndarray
    intervals: np.ndarray | None
    asked: np.ndarray

    @property
    def steps(self) -> int:
        return len(self.begins)

    @property
    def when(self) -> dict[str, np.ndarray]:
        """As a rollout's coefficients have it."""
        found = {TIME: self.begins.astype(np.float32)}
        if self.intervals is None:
            return found
        return {**found, INTERVAL: self.intervals.astype(np.float32)}


def timetable(
    spec: ModelSpec, times: Sequence[float] | np.ndarray, *, t0: float, learned: bool
) -> Timetable:
    """From `t0` to each of the `times` in turn.

    Physics takes steps of any length, and so does a network that was `learned` from intervals of
    several lengths. One that saw a single length takes multiples of it.
    """
    asked = np.asarray(times, float)
    gaps = np.diff(np.concatenate([[t0], asked]))
    if asked.ndim != 1 or not len(asked) or not np.isfinite(asked).all():
        raise SplatopError(
            f"expected finite times to predict, one after the other, got shape {asked.shape}"
        )
    if (gaps <= 0).any():
        at = int(np.argmax(gaps <= 0))
        before = t0 if at == 0 else asked[at - 1]
        raise SplatopError(
            f"expected times that increase from that of the state, t0 = {t0:g}, on, got "
            f"{asked[at]:g} after {before:g}: sort them, and give the state's time (t0)"
        )
    if learned and not spec.intervals:
        counts = np.rint(gaps / spec.dt).astype(int)
        if (counts < 1).any() or (np.abs(gaps / spec.dt - counts) > 1e-4 * counts).any():
            raise SplatopError(
                f"expected times that are multiples of dt = {spec.dt:g} apart, which is what the "
                f"operator was trained for, got intervals of {gaps.min():g} to {gaps.max():g}: ask "
                "for such times, take the physics alone, or train on uneven frames"
            )
        asked_at = np.cumsum(counts) - 1
        return Timetable(t0 + spec.dt * np.arange(counts.sum()), None, asked_at)
    longest = BEYOND * spec.intervals[1] if learned else spec.dt
    counts = np.array([max(1, math.ceil(gap / longest - 1e-6)) for gap in gaps])
    lengths = np.repeat(gaps / counts, counts)
    if learned and lengths.min() < spec.intervals[0] * (1 - 1e-4):
        warnings.warn(
            f"the operator was trained on intervals of {spec.intervals[0]:g} to "
            f"{spec.intervals[1]:g}, a step of {lengths.min():g} is shorter: what it adds there is "
            "not tested",
            stacklevel=3,
        )
    begins = t0 + np.concatenate([[0.0], np.cumsum(lengths)[:-1]])
    return Timetable(begins, lengths, np.cumsum(counts) - 1)

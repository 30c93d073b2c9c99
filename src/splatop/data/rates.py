"""Rates of fields as fields of their own, for equations of second order in time: `v=dt(u)`."""

import re
import warnings
from collections.abc import Mapping, Sequence

import numpy as np

from ..errors import SplatopError, in_percent, unknown_name
from .times import is_even
from .trajectories import Trajectories

_RATE = re.compile(r"\s*(\w+)\s*=\s*dt\(\s*(\w+)\s*\)\s*")
# Central differences of sixth and of fourth order, times the interval.
_SIXTH = np.array([-1 / 60, 3 / 20, -3 / 4, 0, 3 / 4, -3 / 20, 1 / 60])
_FOURTH = np.array([0, 1 / 12, -2 / 3, 0, 2 / 3, -1 / 12, 0])
REACH = 3
# Differences of both orders that are farther apart than this show noise or frames too far apart.
_ROUGH = 1e-2


def rates_asked(fields: Sequence[str] | None) -> tuple[list[str] | None, dict[str, str]]:
    """The fields asked for without their rates, and what each of these, by name, is the rate of."""
    if fields is None:
        return None, {}
    found = [_RATE.fullmatch(str(asked)) for asked in fields]
    rates = {one[1]: one[2] for one in found if one}
    return [asked for asked, one in zip(fields, found, strict=True) if not one] or None, rates


class WithRates(Trajectories):
    """Trajectories with differences in time of some fields as further fields.

    Each takes three frames on both sides, so that the first three frames and the last are gone.
    """

    def __init__(self, whole: Trajectories, rates: Mapping[str, str]):
        for name, source in rates.items():
            if source not in whole.fields:
                raise unknown_name("field to take the rate of", source, whole.fields)
            if name in whole.fields:
                raise SplatopError(
                    f"expected a new name for the rate of {source}, got '{name}', which is a field"
                )
        if not is_even(whole.times):
            raise SplatopError(
                f"{whole.source}: expected frames evenly apart to take the rate of a field from, "
                "got uneven ones"
            )
        least = 2 * REACH + 2
        if whole.frames < least:
            raise SplatopError(
                f"{whole.source}: expected at least {least} frames to take the rate of a field "
                f"from, got {whole.frames}"
            )
        self.whole = whole
        self._like(whole)
        self._channels = [whole.fields.index(source) for source in rates.values()]
        self.fields = (*whole.fields, *rates)
        self.frames = whole.frames - 2 * REACH
        self.times = None if whole.times is None else whole.times[REACH:-REACH]
        self._say_if_rough(rates)

    def read(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        held = self.whole.read(trajectory, start, frames + 2 * REACH)
        return np.concatenate([held[REACH:-REACH], self._rates(held, _SIXTH)], axis=1)

    def _rates(self, held: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """`(frames, rates, *N)` of `(frames + 6, C, *N)`."""
        own = held[:, self._channels].astype(float)
        frames = len(held) - 2 * REACH
        rate = sum(w * own[k : k + frames] for k, w in enumerate(weights)) / self.dt
        return np.asarray(rate, np.float32)

    def _say_if_rough(self, rates: Mapping[str, str]) -> None:
        """Warn where the differences are not the rates: by noise, or because too much happens
        between frames."""
        held = self.whole.states(0, 0, min(self.whole.frames, 64))
        sixth, fourth = self._rates(held, _SIXTH), self._rates(held, _FOURTH)
        for n, (name, source) in enumerate(rates.items()):
            size = np.linalg.norm(sixth[:, n])
            off = float(np.linalg.norm(sixth[:, n] - fourth[:, n]) / size) if size > 0 else 0.0
            if off > _ROUGH:
                warnings.warn(
                    f"{self.source}: {name}, the rate of {source} by differences between frames, "
                    f"is uncertain by {in_percent(off)}: the frames are noisy, or too far apart",
                    stacklevel=5,
                )

    def close(self) -> None:
        self.whole.close()

"""What identification returns: estimates, how sure they are, and what to mind."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_NUMBER = re.compile(r"[-+]?\d[\d.]*(e[-+]?\d+)?")
METHODS = ("paper", "flow", "weak", "trajectory")


@dataclass(frozen=True)
class Identified:
    """Coefficients of one trajectory, in the units of its data.

    `intervals` are 95 % intervals. `relative_residual` is the part of the change from frame to
    frame that the equation leaves unexplained (1 is all of it), `noise_level` the noise in the
    frames over their standard deviation, `condition_number` that of the normalised columns (1 is
    best, beyond 1e3 terms can hardly be told apart). `frames` is how many were used. `warnings` are
    plain sentences; `trusted` is false if one of them puts the estimates or intervals in doubt.
    """

    method: str
    estimates: dict[str, float]
    standard_errors: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    known: dict[str, float]
    frames: int
    relative_residual: float
    noise_level: float
    condition_number: float
    warnings: tuple[str, ...] = ()
    trusted: bool = True

    @property
    def coefficients(self) -> Mapping[str, float]:
        """All that the equation needs: the known values and the estimates."""
        return {**self.known, **self.estimates}

    def relative_errors(self, true: Mapping[str, float]) -> dict[str, float]:
        """`|estimate - true| / |true|` for each estimate whose true value is given and not zero."""
        return {
            name: abs(value / true[name] - 1)
            for name, value in self.estimates.items()
            if true.get(name)
        }

    def covers(self, true: Mapping[str, float]) -> dict[str, bool]:
        """Whether each interval holds the true value."""
        return {
            name: low <= true[name] <= high
            for name, (low, high) in self.intervals.items()
            if name in true
        }

    def plot(self, ax: Any = None) -> Any:
        """The estimates with their intervals, on matplotlib axes, which it returns."""
        from ..notebook import draw_intervals, new_axes

        return draw_intervals(new_axes(ax), self.estimates, self.intervals)

    def _repr_html_(self) -> str:
        from ..notebook import card

        trust = "" if self.trusted else ", not trusted"
        rows = {
            name: f"{value:.6g} ({_shown(low)} to {_shown(high)})"
            for name, value in self.estimates.items()
            for low, high in [self.intervals[name]]
        }
        notes = [f"warning: {text}" for text in self.warnings]
        return card(f"Identified coefficients{trust}", rows, notes=notes, draw=self.plot)

    def __str__(self) -> str:
        lines = [
            f"{name} = {value:.6g} ± {_shown(self.standard_errors[name])} "
            f"(95 %: {_shown(self.intervals[name][0])} to {_shown(self.intervals[name][1])})"
            for name, value in self.estimates.items()
        ]
        doubt = [] if self.trusted else ["not trusted: see the warnings"]
        return "\n".join([*doubt, *lines, *(f"warning: {text}" for text in self.warnings)])


def told_once(found: Sequence[Identified]) -> list[str]:
    """The warnings about trajectories, those that differ by their numbers alone once, after how
    many trajectories they are about."""
    kinds: dict[str, list[str]] = {}
    for one in found:
        for text in dict.fromkeys(one.warnings):
            kinds.setdefault(_NUMBER.sub("#", text), []).append(text)
    return [f"({len(texts)} of {len(found)}): {texts[0]}" for texts in kinds.values()]


def _shown(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else "unbounded"

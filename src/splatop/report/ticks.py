"""Axes of charts: limits that follow the data, round ticks, linear or logarithmic."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..evaluate.written import minus, power_of_ten

Number = float | int


@dataclass(frozen=True)
class ChartAxis:
    """What an axis shows. Limits that are not given follow the data."""

    label: str
    log: bool = False
    low: Number | None = None
    high: Number | None = None


@dataclass
class Scale:
    """From values to pixels: `low` is drawn at `start`, `high` at `end`."""

    low: Number
    high: Number
    log: bool
    start: Number
    end: Number
    ticks: list[tuple[Number, str]] = field(default_factory=list)

    def __call__(self, value: Number) -> float:
        a, b = (math.log10(v) if self.log else v for v in (self.low, self.high))
        v = math.log10(value) if self.log else value
        return self.start + (self.end - self.start) * (v - a) / (b - a)


def usable(value: Number | None, log: bool) -> bool:
    """Whether a value has a place on the axis: finite, and positive on a logarithmic one."""
    return value is not None and math.isfinite(value) and (value > 0 or not log)


def fitted_scale(
    axis: ChartAxis, values: Sequence[Number | None], start: Number, end: Number, *, tight: bool
) -> Scale:
    """A scale from `start` to `end`, in pixels, that holds all values; `tight` ends at them."""
    held = [v for v in values if v is not None and usable(v, axis.log)]
    held = held or [1.0, 10.0]
    low = min(held) if axis.low is None else axis.low
    high = max(held) if axis.high is None else axis.high
    if axis.log:
        # A curve that falls to rounding should not squeeze all others into the top.
        low = max(low, high * 1e-12)
        if high < low * 1.5:
            low, high = low / 1.5, high * 1.5
        if not tight:
            low = low if axis.low is not None else _decade(low, -1)
            high = high if axis.high is not None else _decade(high, 1)
        return Scale(low, high, True, start, end, _log_ticks(low, high))
    if high <= low:
        low, high = low - (abs(low) or 1) * 0.5, high + (abs(high) or 1) * 0.5
    ticks = _linear_ticks(low, high)
    if not tight:
        step = ticks[1] - ticks[0]
        low = low if axis.low is not None else math.floor(low / step + 1e-9) * step
        high = high if axis.high is not None else math.ceil(high / step - 1e-9) * step
        ticks = _linear_ticks(low, high)
    return Scale(low, high, False, start, end, [(t, _number(t)) for t in ticks])


def _decade(value: Number, direction: int) -> float:
    """The next of 1, 2, 5 times a power of ten, downwards or upwards."""
    power = 10.0 ** math.floor(math.log10(value))
    steps = [power * m for m in (1, 2, 5, 10)]
    if direction < 0:
        return max(s for s in steps if s <= value * (1 + 1e-9))
    return min(s for s in steps if s >= value * (1 - 1e-9))


def _log_ticks(low: Number, high: Number) -> list[tuple[Number, str]]:
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    multiples = (1, 2, 5) if math.log10(high / low) <= 2.2 else (1,)
    stride = max(1, math.ceil((last - first) / 7))
    plain = low >= 0.9e-3 and high < 1e4
    ticks = []
    for power in range(first, last + 1, stride):
        for m in multiples:
            value = m * 10.0**power
            if low * (1 - 1e-9) <= value <= high * (1 + 1e-9):
                times = "" if m == 1 else f"{m}·"
                ticks.append((value, f"{value:g}" if plain else times + power_of_ten(power)))
    return ticks


def _linear_ticks(low: Number, high: Number) -> list[Number]:
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = min((m * power for m in (1, 2, 2.5, 5, 10)), key=lambda s: abs(s - rough))
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)] or [low, high]


def _number(value: Number) -> str:
    return minus(f"{value:.4g}") if abs(value) > 1e-15 else "0"

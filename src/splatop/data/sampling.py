"""Where the points of a bounded axis lie: with both ends, in the middle of cells, or with the left
end alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import SplatopError, unknown_name
from ..grid import LAYOUTS
from .axes import SPATIAL, uniform_spacing
from .trajectories import Trajectories

_CLOSE = 1e-3  # of a spacing: coordinates and lengths that agree to this are the same
_MOST_DIGITS = 10


@dataclass(frozen=True)
class AxisPoints:
    """A bounded axis as a domain `[begin, begin + length]` and where its points lie in it.

    `why` says how that was told.
    """

    begin: float
    length: float
    layout: str
    why: str


def sampling_words(sampling: str | Sequence[str] | None, dims: int) -> tuple[str | None, ...]:
    """One word for all axes, or one for each; None where nothing is said."""
    if sampling is None:
        return (None,) * dims
    words = sampling.split(",") if isinstance(sampling, str) else sampling
    words = tuple(str(word).strip().lower() for word in words)
    words = words * dims if len(words) == 1 else words
    if len(words) != dims:
        raise SplatopError(
            f"expected one word on the sampling, or {dims} of them for {dims}D data, got "
            f"'{','.join(words)}'"
        )
    for word in words:
        if word not in LAYOUTS:
            raise unknown_name("sampling", word, LAYOUTS)
    return words


def axis_points(
    data: Trajectories,
    axis: int,
    *,
    word: str | None,
    length: float | None,
    begin: float | None,
) -> AxisPoints | None:
    """Of an axis whose sampling was told by `word`, or else is told by the file's coordinates.

    `length` and `begin` are the domain's where the user gave them. None if nothing tells it.
    """
    name, count = SPATIAL[axis], data.grid.points[axis]
    along = data.coordinates.get(name)
    if not _usable(along, count):
        if word is None:
            return None
        given = data.grid.lengths[axis] if length is None else length
        return AxisPoints(begin or 0.0, given, word, "as told")
    step = uniform_spacing(along, name, source=data.source)  # type: ignore[arg-type]
    first = float(along[0])  # type: ignore[index]
    found = candidates(first, step, count)
    if word is None:
        word, why = _chosen(found, step, length=length, begin=begin)
        if word is None:
            return None
    else:
        why = "as told"
    start, side = found[word]
    if length is not None:  # given lengths replace the file's, and with them the spacing
        step = length / (count - (word == "ends"))
        start, side = first - (step / 2 if word == "cells" else 0.0), length
    return AxisPoints(_tidy(start, step) if begin is None else begin, _tidy(side, step), word, why)


def both_ends(data: Trajectories, axis: int, length: float | None = None) -> AxisPoints | None:
    """An axis whose coordinates run from one end of the box to the other; None of all others."""
    found = axis_points(data, axis, word=None, length=length, begin=None)
    return found if found is not None and found.layout == "ends" else None


def candidates(first: float, step: float, count: int) -> dict[str, tuple[float, float]]:
    """The begin and the length of the domain for each layout of the same points."""
    return {
        "ends": (first, (count - 1) * step),
        "cells": (first - step / 2, count * step),
        "left": (first, count * step),
    }


def _chosen(
    found: dict[str, tuple[float, float]],
    step: float,
    *,
    length: float | None,
    begin: float | None,
) -> tuple[str | None, str]:
    """The layout that agrees with what is given, else the one whose ends are rounder numbers."""
    possible = dict(found)
    for at, given in ((1, length), (0, begin)):
        if given is not None:
            near = {k: v for k, v in possible.items() if abs(v[at] - given) <= _CLOSE * step}
            if not near:
                return None, ""
            possible = near
    if len(possible) == 1:
        return next(iter(possible)), "by the given box"
    costs = {word: digits(a, step) + digits(a + side, step) for word, (a, side) in possible.items()}
    least = min(costs.values())
    best = [word for word, cost in costs.items() if cost == least]
    if len(best) > 1:
        return None, ""
    a, side = possible[best[0]]
    return best[0], f"told by the coordinates: from {_tidy(a, step):g} to {_tidy(a + side, step):g}"


def digits(number: float, step: float) -> int:
    """Significant digits of a coordinate, 0 for 0, one more as a multiple of pi.

    It is known to a thousandth of the spacing.
    """
    exact = _digits(number, _CLOSE * step)
    return min(exact, _digits(number / np.pi, _CLOSE * step / np.pi) + 1)


def _digits(number: float, close: float) -> int:
    if abs(number) <= close:
        return 0
    for count in range(1, _MOST_DIGITS):
        if abs(float(f"{number:.{count - 1}e}") - number) <= close:
            return count
    return _MOST_DIGITS


def rounded(number: float, close: float) -> float:
    """The number of fewest digits that is this close."""
    if abs(number) <= close:
        return 0.0
    for count in range(1, 16):
        short = float(f"{number:.{count - 1}e}")
        if abs(short - number) <= close:
            return short
    return number


def _tidy(number: float, step: float) -> float:
    """Without the rounding of coordinates in single precision or of sums."""
    for unit in (1.0, np.pi):
        short = rounded(number / unit, 1e-5 * step / unit) * unit
        if _digits(short / unit, 1e-9 * step / unit) <= 4:
            return float(short)
    return float(number)


def _usable(along: np.ndarray | None, count: int) -> bool:
    return (
        along is not None
        and along.shape == (count,)
        and np.issubdtype(along.dtype, np.number)
        and bool(np.isfinite(along).all())
    )


def unknown_sampling(data: Trajectories, axis: int) -> SplatopError:
    """What to give where nothing tells the sampling of a bounded axis."""
    name, count = SPATIAL[axis], data.grid.points[axis]
    along = data.coordinates.get(name)
    reading = "ends (both ends are points), cells (in the middle of cells) or left (without x1)"
    reading = reading.replace("x1", f"{name}1")
    if not _usable(along, count):
        return SplatopError(
            f"{data.source}: expected to know where the {count} points along {name} lie, which has "
            f"two ends and no coordinates: give --sampling {reading}"
        )
    step = uniform_spacing(along, name, source=data.source)  # type: ignore[arg-type]
    found = candidates(float(along[0]), step, count)  # type: ignore[index]
    listed = ", ".join(f"{word} {a:.6g} to {a + side:.6g}" for word, (a, side) in found.items())
    return SplatopError(
        f"{data.source}: expected to know where the {count} points along {name} lie, the "
        f"coordinates do not tell (the domain may be {listed}): give --sampling {reading}"
    )

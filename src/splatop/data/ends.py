"""What data do at the ends of an axis: the value and the slope there, and how well they are known.

A parabola through the first points is continued to the end, through more of them the more noise
there is. What it can be wrong by is taken from the data themselves: noise from high differences,
which a smooth field does not have; the shape from a cubic beside; the discretisation from how much
the field bends, so that a code of first or second order is not blamed for its own error.
"""

import warnings
from dataclasses import dataclass
from math import comb

import numpy as np

from ..domain import AXES, FREE, Condition, Domain, Kind
from ..equation import edge_values, value_names
from ..grid import Grid
from .sampling import rounded
from .trajectories import Trajectories

_LINES = 2000
_MOST_FRAMES = 32
_EPS = float(np.finfo(np.float32).eps)
# Points that the parabola may go through: few for smooth data, many against noise.
_SPANS = (3, 5, 8, 12, 18, 27, 40)
# Of how much the field bends from point to point: a wall half a cell away, or a slope by one-sided
# differences of first order, are off by up to half of it.
_DISCRETE = 0.75
_SMALL = 1e-4  # of the spread of the field: what nobody would call a violation
_SLIGHT = 2e-3  # of the spread: a violation by less is warned of, and the condition taken
_TELLING = 0.25  # of the spread: what is known no better than that tells nothing


@dataclass(frozen=True)
class Sampled:
    """Frames `(F, C, *N)`, and which trajectory and which of its times each is."""

    frames: np.ndarray
    places: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Known:
    """A number at an end, `(F, *side)`, and `(F,)` what it may be off by and what would be a lot.

    `unsure` is the part of it that is noise and shape, without the discretisation.
    """

    found: np.ndarray
    allowed: np.ndarray
    unsure: np.ndarray
    spread: np.ndarray

    def excess(self, wanted: np.ndarray | float) -> float:
        """How far from `wanted`, over what is allowed, in the frame in the middle.

        The first states of a computation often break its own conditions, and are few.
        """
        return float(np.median(_rms(self.found - wanted) / self.allowed))

    @property
    def tells(self) -> bool:
        """Whether it is known well enough to guess by."""
        spread = np.median(self.spread)
        return bool(
            np.median(self.unsure) <= _TELLING * spread
            and np.median(self.allowed) <= 2 * _TELLING * spread
        )


@dataclass(frozen=True)
class End:
    """One field at one end: its value and its outward slope."""

    value: Known
    slope: Known

    def of(self, kind: str) -> Known:
        return self.value if kind == "value" else self.slope


def sampled(data: Trajectories) -> Sampled:
    """Frames of the first and the last trajectory; what is not finite is 0."""
    fewest = int(np.prod(data.grid.points)) // max(data.grid.points)
    count = int(np.clip(_LINES // (fewest * len(data.fields)), 3, _MOST_FRAMES))
    times = np.unique(np.linspace(0, data.frames - 1, count).astype(int))
    places = tuple((b, int(t)) for b in sorted({0, data.trajectories - 1}) for t in times)
    frames = [data.states(b, t, 1)[0] for b, t in places]
    clean = np.nan_to_num(np.stack(frames), posinf=0.0, neginf=0.0)
    return Sampled(clean, places)


def end_of(sample: Sampled, channel: int, axis: int, end: int, grid: Grid) -> End:
    """The field's value and outward slope at one end of an axis with this grid's layout."""
    whole = sample.frames[(slice(None), channel, *_thinned(grid.points, axis))]
    lines = np.moveaxis(whole, axis + 1, 1).astype(float)
    side = lines.shape[2:]
    lines = (lines[:, ::-1] if end else lines).reshape(*lines.shape[:2], -1)
    step, count = grid.spacing[axis], lines.shape[1]
    gap = {"ends": 0.0, "cells": 0.5, "left": float(end)}[grid.layout[axis]]  # in spacings
    # A root mean square over few points varies: four standard deviations where it is one.
    noise = _noise(lines) * (1.5 + 3 / np.sqrt(lines.shape[2]))
    flat = lines.reshape(len(lines), -1)
    floor = 32 * _EPS * max(float(np.abs(flat).max()), 1e-30) + _SMALL * flat.std(axis=1)
    spans = [span for span in _SPANS if span == _SPANS[0] or span <= count // 3]
    tried = [_continued(lines, gap, span, noise, floor) for span in spans]
    value = min((one[0] for one in tried), key=lambda one: float(np.median(one.allowed)))
    slope = min((one[1] for one in tried), key=lambda one: float(np.median(one.allowed)))
    bend = tried[0][2]
    spread = np.maximum(flat.std(axis=1), 1e-30)
    steepness = np.maximum(_rms(np.diff(lines, axis=1)), 1e-30)
    return End(
        Known(
            value.found.reshape(-1, *side),
            value.allowed + (_DISCRETE * bend if gap else 0.0),
            value.allowed,
            spread,
        ),
        Known(
            slope.found.reshape(-1, *side) / step,
            (slope.allowed + _DISCRETE * bend) / step,
            slope.allowed / step,
            steepness / step,
        ),
    )


def _thinned(points: tuple[int, ...], axis: int) -> tuple[slice, ...]:
    """All points along an axis, at lines across it that are enough to tell."""
    along = round(_LINES ** (1 / max(1, len(points) - 1)))
    return tuple(
        slice(None) if i == axis else slice(None, None, max(1, n // along))
        for i, n in enumerate(points)
    )


def _continued(
    lines: np.ndarray, gap: float, span: int, noise: np.ndarray, floor: np.ndarray
) -> tuple[Known, Known, np.ndarray]:
    """Value, outward slope per spacing, and bend there, of a parabola through `span` points."""
    weights = _weights(gap, min(span, lines.shape[1]), 2)
    more = _weights(gap, min(max(span, 4), lines.shape[1]), 3)
    rows = [np.einsum("p,fpl->fl", row, lines[:, : len(row)]) for row in weights]
    cubic = [np.einsum("p,fpl->fl", row, lines[:, : len(row)]) for row in more]
    known = []
    for order, sign in ((0, 1.0), (1, -1.0)):
        shape = _rms(cubic[order] - rows[order])
        unsure = np.linalg.norm(weights[order]) * noise + floor + shape
        known.append(Known(sign * rows[order], unsure, unsure, floor))
    return known[0], known[1], 2 * _rms(rows[2])


def _weights(gap: float, count: int, degree: int) -> np.ndarray:
    """Rows that give the coefficients of a polynomial from the end inwards, by least squares.

    The `count` points lie `gap`, `gap + 1`, ... spacings inside.
    """
    powers = np.vander(gap + np.arange(count), min(degree + 1, count), increasing=True)
    rows = np.zeros((3, count))
    found = np.linalg.pinv(powers)[:3]
    rows[: len(found)] = found
    return rows


def _noise(lines: np.ndarray) -> np.ndarray:
    """Standard deviation `(F,)` of white noise, at most: of the differences with least of it."""
    found = []
    for order in range(2, min(7, lines.shape[1])):
        differences = np.abs(np.diff(lines, order, axis=1)).reshape(len(lines), -1)
        found.append(np.median(differences, axis=1) / (0.6745 * comb(2 * order, order) ** 0.5))
    return np.min(found, axis=0) if found else np.zeros(len(lines))


def _rms(values: np.ndarray) -> np.ndarray:
    return np.sqrt(np.mean(np.square(values.reshape(len(values), -1)), axis=1))


# --- what is found -------------------------------------------------------------------------------


def proposed(sample: Sampled, grid: Grid, domain: Domain, fields: tuple[str, ...]) -> Domain:
    """The domain with the conditions that the data seem to obey at the ends of its axes."""
    found = {}
    for side in domain.sides:
        axis, end = AXES.index(side[0]), int(side[1])
        for channel, name in enumerate(fields):
            found[side, name] = guess(end_of(sample, channel, axis, end, grid))
    return domain.with_conditions(found)


def guess(end: End) -> Condition:
    """Zero, flat, one number or one slope in all frames; free if it is none of them."""
    kinds: tuple[Kind, ...] = ("value", "slope")
    telling: list[Kind] = [kind for kind in kinds if end.of(kind).tells]
    if not telling:
        return FREE
    zero = {kind: end.of(kind).excess(0.0) for kind in telling}
    best: Kind = min(telling, key=lambda kind: zero[kind])
    if zero[best] <= 1:
        return Condition(best, 0.0)
    for kind in telling:
        known = end.of(kind)
        middle = float(np.median(known.found))
        if known.excess(middle) <= 1:
            return Condition(kind, rounded(middle, float(np.median(known.allowed)) / 4))
    return FREE


def seen(condition: Condition, end: End, name: str, side: str) -> str:
    """In words what the data do."""
    both = end.value.excess(0.0) <= 1 and end.slope.excess(0.0) <= 1
    match condition.kind:
        case "value" | "slope" if both:
            return f"{name} is 0 and flat at {side} (either may be what holds)"
        case "value":
            return f"{name} is {condition.value:g} at {side}"
        case "slope" if not condition.value:
            return f"{name} is flat at {side}"
        case "slope":
            return f"{name} has the slope {condition.value:g} at {side}"
    low, high = float(end.value.found.min()), float(end.value.found.max())
    known = end.value.tells and end.slope.tells
    what = "neither constant nor flat" if known else "too rough or noisy to tell"
    return f"{name} is {what} at {side} ({low:.3g} to {high:.3g})"


def seen_at(
    sample: Sampled,
    grid: Grid,
    domain: Domain,
    fields: tuple[str, ...],
    *,
    but: tuple[str, ...] = (),
) -> list[str]:
    """What the data do at each end `but` these, for the conditions proposed from them."""
    return [
        seen(
            domain.at(side, name),
            end_of(sample, channel, AXES.index(side[0]), int(side[1]), grid),
            name,
            side,
        )
        for side in domain.sides
        if side not in but
        for channel, name in enumerate(fields)
    ]


def violation(data: Trajectories, sample: Sampled) -> str | None:
    """The first condition of the domain that the data break by more than noise, in words.

    Values that need a coefficient which the data do not hold are not looked at.
    """
    for (side, name), condition in data.domain.conditions.items():
        needs = value_names(condition)
        if name not in data.fields or any(one not in data.coefficients for one in needs):
            continue
        axis, end = AXES.index(side[0]), int(side[1])
        found = end_of(sample, data.fields.index(name), axis, end, data.grid)
        wanted = _wanted(data, sample, condition, axis)
        known = found.of(condition.kind)
        if known.excess(wanted) > 1:
            values, allowed = known.found, known.allowed
            off = float(np.median(_rms(values - wanted)))
            what = "value" if condition.kind == "value" else "outward slope"
            said = (
                f"{condition.text(name)} at {side} is not what the data do: the {what} of {name} "
                f"there is {np.median(values):.3g} ({values.min():.3g} to {values.max():.3g}), "
                f"off by {off:.2g}, where noise and spacing explain {np.median(allowed):.1g}"
            )
            if condition.kind == "slope" or off > _SLIGHT * float(np.median(known.spread)):
                return said
            warnings.warn(f"{data.source}: {said}: models hold the condition", stacklevel=5)
    return None


def _wanted(data: Trajectories, sample: Sampled, condition: Condition, axis: int) -> np.ndarray:
    """What is set along the side, `(F, *side)`."""
    others = [i for i in range(data.grid.dims) if i != axis]
    thinned = _thinned(data.grid.points, axis)
    points = [data.grid.coordinates()[i].ravel()[thinned[i]] for i in others]
    mesh = dict(zip((AXES[i] for i in others), np.meshgrid(*points, indexing="ij"), strict=True))
    return np.stack(
        [np.asarray(edge_values(condition, mesh, data.known_at(b, t))) for b, t in sample.places]
    )

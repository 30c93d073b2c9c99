"""Smooth curves that the sides of a mesh stand for: each side between gentle turns as two arcs.

Slopes that are set along the outward normal of a polygon in place of a circle jump from side to
side, which no smooth field obeys: the first tone of a plate with a hole of 37 sides came out 1 %
too high. Arcs with the directions of the curve have no jumps; those of one circle are that circle.
"""

import math

import numpy as np

from .pieces import SHARP, Arc, Piece, Place, Segment

# Arcs of one circle are joined up to this angle (radians); by how much they may differ, relative.
_JOINED, _ALIKE = math.pi / 8, 1e-3
# Arcs that turn by less are straight.
_LEAST = 1e-6


def arc_or_segment(begin: Place, end: Place, sweep: float) -> Piece:
    """From one place to another; anticlockwise by `sweep`, if that is positive."""
    if abs(sweep) < _LEAST:
        return Segment(begin, end)
    (x0, y0), (x1, y1) = begin, end
    high = 0.5 / math.tan(sweep / 2)  # of the centre over the side, in its lengths, to the left
    centre = (x0 + x1) / 2 - high * (y1 - y0), (y0 + y1) / 2 + high * (x1 - x0)
    radius = math.dist(centre, begin)
    return Arc(centre, radius, math.atan2(y0 - centre[1], x0 - centre[0]), sweep)


def bent(
    ring: np.ndarray, straight: np.ndarray, names: list[str]
) -> tuple[list[Place], list[float], list[str]]:
    """A closed ring of corners `(n, 2)` with the angle that each side turns by, and its name.

    Sides that are `straight` stay so. The direction of the curve at a corner is that of a straight
    side that ends there, else of the circle through it and its neighbours. Sharp corners
    stay; a side beside one is one arc.
    """
    way = np.roll(ring, -1, axis=0) - ring
    side, length = np.arctan2(way[:, 1], way[:, 0]), np.hypot(way[:, 0], way[:, 1])
    turn = _wrapped(side - np.roll(side, 1))
    before, on = np.roll(length, 1), length
    # Half the arc over a side is the angle that the triangle of both has opposite to it.
    part = np.arctan2(before * np.sin(turn), on + before * np.cos(turn))
    tangent = np.roll(side, 1) + part
    tangent = np.where(straight, side, np.where(np.roll(straight, 1), np.roll(side, 1), tangent))
    sharp = np.abs(turn) > SHARP
    after = np.roll(sharp, -1)
    curved = ~straight & ~(sharp & after)
    found: list[tuple[np.ndarray, float, str]] = []
    for k in range(len(ring)):
        if not curved[k]:
            found.append((ring[k], 0.0, names[k]))
            continue
        begin, end = (float(_wrapped(tangent[n % len(ring)] - side[k])) for n in (k, k + 1))
        begin, end = (-end if sharp[k] else begin), (-begin if after[k] else end)
        # Two arcs that meet with one direction: from -begin + x to end, in halves of equal weight.
        middle = -(begin + end) / 2
        joint = _joint(begin, middle, end)
        place = ring[k] + _turned(joint * length[k], side[k])
        found += [(ring[k], middle - begin, names[k]), (place, end - middle, names[k])]
    return _joined(found)


def _joint(begin: float, middle: float, end: float) -> np.ndarray:
    """Where two arcs meet that lead from (0, 0) to (1, 0) with these directions at the beginning,
    where they meet, and at the end: chords lie half way between."""
    first, second = (begin + middle) / 2, (middle + end) / 2
    if abs(math.sin(second - first)) < 1e-12:
        return np.array([0.5, 0.0])
    share = math.sin(second) / math.sin(second - first)
    return share * np.array([math.cos(first), math.sin(first)])


def _joined(
    sides: list[tuple[np.ndarray, float, str]],
) -> tuple[list[Place], list[float], list[str]]:
    """With successive arcs of one circle as one."""
    places: list[Place] = []
    sweeps: list[float] = []
    names: list[str] = []
    held: Piece | None = None
    for number, (place, sweep, name) in enumerate(sides):
        after = sides[(number + 1) % len(sides)][0]
        begin, end = (float(place[0]), float(place[1])), (float(after[0]), float(after[1]))
        one = arc_or_segment(begin, end, sweep)
        if (
            isinstance(held, Arc)
            and isinstance(one, Arc)
            and names[-1] == name
            and abs(sweeps[-1] + sweep) <= _JOINED
            and sweeps[-1] * sweep > 0
            and math.dist(held.centre, one.centre) < _ALIKE * held.radius
            and abs(held.radius - one.radius) < _ALIKE * held.radius
        ):
            sweeps[-1] += sweep
            held = arc_or_segment(places[-1], end, sweeps[-1])
            continue
        places.append(begin)
        sweeps.append(float(sweep))
        names.append(name)
        held = one
    return places, sweeps, names


def _wrapped(angle):
    """An angle between -π and π."""
    return (angle + math.pi) % (2 * math.pi) - math.pi


def _turned(place: np.ndarray, angle: float) -> np.ndarray:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([c * place[0] - s * place[1], s * place[0] + c * place[1]])

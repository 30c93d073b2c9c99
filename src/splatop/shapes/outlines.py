"""Closed outlines of pieces: where they cross others, what lies inside, whether they are simple."""

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..errors import SplatopError
from .pieces import Piece, Place

# Lengths below this share of a shape's size are rounding.
TINY = 1e-9


def split(piece: Piece, others: Iterable[Piece], tiny: float) -> list[Piece]:
    """The piece in parts that end wherever another one crosses it, or ends on it."""
    places = [piece.at(np.array([0.0, 1.0]))]
    for other in others:
        for candidates in (piece.crossings(other), other.at(np.array([0.0, 1.0]))):
            if len(candidates):
                on_both = (piece.distance(candidates) < tiny) & (other.distance(candidates) < tiny)
                places.append(candidates[on_both])
    t = np.sort(np.clip(piece.parameter(np.concatenate(places)), 0.0, 1.0))
    t = np.concatenate([[0.0], t, [1.0]])
    return [
        piece.part(float(a), float(b))
        for a, b in itertools.pairwise(t)
        if (b - a) * piece.length > 10 * tiny
    ]


def even_odd(places: np.ndarray, rings: Iterable[tuple[Place, ...]]) -> np.ndarray:
    """Whether a ray from each place to the right crosses the rings an odd number of times."""
    odd = np.zeros(len(places), bool)
    x, y = places[:, 0], places[:, 1]
    for ring in rings:
        ends = ring[1:] + ring[:1]
        for (x0, y0), (x1, y1) in zip(ring, ends, strict=True):
            if y0 == y1:
                continue
            across = (y0 > y) != (y1 > y)
            odd ^= across & (x < x0 + (y - y0) * (x1 - x0) / (y1 - y0))
    return odd


def check_simple(pieces: list[Piece], what: str) -> None:
    """Refuse sides that cross or touch others than their neighbours, and say where."""
    import shapely

    ends = np.array([piece.at(np.array([0.0, 1.0])) for piece in pieces])
    if (np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1) == 0).any():
        raise SplatopError(f"expected {what} without repeated corners, got two in the same place")
    lines: Any = shapely.linestrings(ends)
    first, second = shapely.STRtree(lines).query(lines, predicate="intersects")
    for i, j in zip(first, second, strict=True):
        if i >= j:
            continue
        met = lines[i].intersection(lines[j])
        ways = ends[[i, j], 1] - ends[[i, j], 0]
        back = ways[0] @ ways[1] < -(1 - 1e-12) * np.prod(np.linalg.norm(ways, axis=1))
        gaps = np.linalg.norm([ends[i, 1] - ends[j, 0], ends[j, 1] - ends[i, 0]], axis=1)
        after = gaps.min() <= TINY * np.linalg.norm(ways, axis=1).max()
        if after and not back:
            continue
        place = met.centroid
        raise SplatopError(
            f"expected {what} whose sides meet at its corners alone, got sides {i + 1} and {j + 1} "
            f"that meet at ({place.x:.6g}, {place.y:.6g}): list its corners in order around it"
        )

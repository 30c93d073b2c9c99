"""Shapes that are not made of others: disks, boxes, polygons, and the outlines of meshes and masks.

Plain values; arcs stay arcs.
"""

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..errors import SplatopError
from .bends import arc_or_segment
from .outlines import check_simple, even_odd
from .pieces import Arc, Piece, Place, Segment
from .shape import Primitive


@dataclass(frozen=True)
class Disk(Primitive):
    x: float
    y: float
    radius: float

    kind = "disk"

    def __post_init__(self):
        _check_finite(self)
        if not self.radius > 0:
            raise SplatopError(f"expected a disk of positive radius, got {self.radius:g}")

    def inside(self, places: np.ndarray) -> np.ndarray:
        return np.hypot(places[:, 0] - self.x, places[:, 1] - self.y) <= self.radius

    def outline(self) -> list[tuple[str, Piece]]:
        quarter = math.pi / 2
        return [("", Arc((self.x, self.y), self.radius, k * quarter, quarter)) for k in range(4)]

    def text(self) -> str:
        return f"disk({self.x:.12g}, {self.y:.12g}, {self.radius:.12g})"


@dataclass(frozen=True)
class Box(Primitive):
    low: Place
    high: Place

    kind = "box"

    def __post_init__(self):
        _check_finite(self)
        if not (self.low[0] < self.high[0] and self.low[1] < self.high[1]):
            raise SplatopError(
                f"expected a box whose second corner lies above and right of its first, got "
                f"{self.low} and {self.high}"
            )

    def inside(self, places: np.ndarray) -> np.ndarray:
        return np.all((places >= self.low) & (places <= self.high), axis=1)

    def outline(self) -> list[tuple[str, Piece]]:
        (left, low), (right, high) = self.low, self.high
        corners = [(left, low), (right, low), (right, high), (left, high)]
        names = ("y0", "x1", "y1", "x0")
        ends = corners[1:] + corners[:1]
        return [(n, Segment(a, b)) for n, a, b in zip(names, corners, ends, strict=True)]

    def text(self) -> str:
        return f"box({', '.join(f'{value:.12g}' for value in (*self.low, *self.high))})"


@dataclass(frozen=True)
class Polygon(Primitive):
    corners: tuple[Place, ...]

    kind = "polygon"

    def __post_init__(self):
        object.__setattr__(self, "corners", tuple((float(x), float(y)) for x, y in self.corners))
        _check_finite(self)
        if len(self.corners) < 3:
            raise SplatopError(
                f"expected a polygon of at least three corners, got {len(self.corners)}"
            )
        check_simple([piece for _, piece in self.outline()], "a polygon")

    def inside(self, places: np.ndarray) -> np.ndarray:
        return even_odd(places, (self.corners,))

    def outline(self) -> list[tuple[str, Piece]]:
        ends = self.corners[1:] + self.corners[:1]
        pairs = zip(self.corners, ends, strict=True)
        return [(f"{k}", Segment(a, b)) for k, (a, b) in enumerate(pairs, start=1)]

    def text(self) -> str:
        return f"polygon({', '.join(f'{x:.12g} {y:.12g}' for x, y in self.corners)})"


@dataclass(frozen=True)
class Outline(Primitive):
    """Closed rings of corners, with the name of each side: what a mesh or a mask gives.

    A ring inside another is a hole. `exact` is False where the corners were read off a mask, so
    that the edge is known to a cell only. `sweeps` are the angles by which sides turn, where some
    are arcs.
    """

    rings: tuple[tuple[Place, ...], ...]
    names: tuple[tuple[str, ...], ...]
    exact: bool = True
    sweeps: tuple[tuple[float, ...], ...] = ()

    kind = "outline"

    def __post_init__(self):
        _check_finite(self)
        if not self.rings or [len(r) for r in self.rings] != [len(n) for n in self.names]:
            raise SplatopError("expected one name for each side of each ring of an outline")
        if self.sweeps and [len(r) for r in self.rings] != [len(s) for s in self.sweeps]:
            raise SplatopError("expected one angle for each side of each ring of an outline")
        check_simple([piece for _, piece in self.outline()], "an outline")

    def inside(self, places: np.ndarray) -> np.ndarray:
        found = even_odd(places, self.rings)
        for _, piece in self.outline():
            if isinstance(piece, Arc):
                found ^= piece.over_chord(places)
        return found

    def outline(self) -> list[tuple[str, Piece]]:
        sweeps = self.sweeps or tuple((0.0,) * len(ring) for ring in self.rings)
        return [
            (name, arc_or_segment(a, b, sweep))
            for ring, names, turns in zip(self.rings, self.names, sweeps, strict=True)
            for name, a, b, sweep in zip(names, ring, ring[1:] + ring[:1], turns, strict=True)
        ]

    def text(self) -> str:
        return f"an outline of {sum(map(len, self.rings))} sides"


def _check_finite(shape: Any) -> None:
    for field in fields(shape):
        if not np.isfinite(np.asarray(_flat(getattr(shape, field.name)), float)).all():
            raise SplatopError(f"expected finite numbers in a {shape.kind}, got NaN or infinity")


def _flat(value: Any) -> list[float]:
    if isinstance(value, tuple):
        return [number for one in value for number in _flat(one)]
    return [] if isinstance(value, str) else [float(value)]

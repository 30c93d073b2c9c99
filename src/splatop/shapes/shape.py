"""Shapes cut out of a box in 2D: disks, polygons, boxes, and what is made of them.

Plain values that JSON holds. A shape knows what lies inside and which named edges it has; arcs stay
arcs.
"""

import abc
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import SplatopError, unknown_name
from .outlines import TINY, check_simple, even_odd, split
from .pieces import Arc, Edge, Piece, Place, Run, Segment, runs_of

# Names that stand for several edges.
OUTER, EVERYWHERE = "outer", "all"
# How far beside an edge it is looked which side of it is inside.
_BESIDE = 1e-7


class Shape(abc.ABC):
    """A part of the plane."""

    @abc.abstractmethod
    def inside(self, places: np.ndarray) -> np.ndarray:
        """Whether each of the places `(n, 2)` lies in the shape."""

    @abc.abstractmethod
    def primitives(self) -> Iterator["Primitive"]:
        """What it is made of, as written from left to right."""

    @property
    def edges(self) -> tuple[Edge, ...]:
        """Its edges, in pieces that end where two primitives meet."""
        return _edges(self)

    @property
    def runs(self) -> tuple[Run, ...]:
        """Its edges, those that follow each other without a sharp corner together."""
        return _runs(self)

    @property
    def is_exact(self) -> bool:
        """Whether the edge is known better than to a cell of a grid."""
        return all(getattr(one, "exact", True) for one in self.primitives())

    @property
    def edge_names(self) -> tuple[str, ...]:
        """The names of its edges, each once."""
        return tuple(dict.fromkeys(edge.name for edge in self.edges))

    @property
    def bounds(self) -> tuple[Place, Place]:
        """The lower left and the upper right corner of the box around it."""
        t = np.linspace(0, 1, 257)
        every = np.concatenate([edge.piece.at(t) for edge in self.edges])
        for edge in self.edges:
            piece = edge.piece
            if isinstance(piece, Arc):  # the outermost points of a circle, where the arc has them
                ways = np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1]])
                extremes = np.asarray(piece.centre) + piece.radius * ways
                t_there = piece.parameter(extremes)
                every = np.concatenate([every, extremes[(t_there >= 0) & (t_there <= 1)]])
        low, high = every.min(0), every.max(0)
        return (float(low[0]), float(low[1])), (float(high[0]), float(high[1]))

    @property
    def area(self) -> float:
        """By Green's theorem, exact up to rounding: `½ ∮ x·n ds`."""
        nodes, weights = np.polynomial.legendre.leggauss(16)
        total = 0.0
        for edge in self.edges:
            t = (nodes + 1) / 2
            dot = np.sum(edge.piece.at(t) * edge.piece.normal(t), axis=1)
            parts = 8 if isinstance(edge.piece, Arc) else 1
            if parts > 1:
                dot = np.concatenate(
                    [
                        np.sum(piece.at(t) * piece.normal(t), axis=1)
                        for k in range(parts)
                        for piece in (edge.piece.part(k / parts, (k + 1) / parts),)
                    ]
                )
            total += edge.piece.length / parts / 2 * float(np.tile(weights, parts) @ dot) / 2
        return total

    def distance(self, places: np.ndarray) -> np.ndarray:
        """From each of the places `(n, 2)` to the edge, negative inside."""
        away = np.min([edge.piece.distance(places) for edge in self.edges], axis=0)
        return np.where(self.inside(places), -away, away)

    def sides(self, name: str) -> tuple[str, ...]:
        """The edges that a name stands for: one, the sides of a polygon or box, or all."""
        known = self.edge_names
        if name == EVERYWHERE:
            return known
        if name in known:
            return (name,)
        group = BOX_SIDES if name == OUTER else ()
        found = tuple(e for e in known if e in group or e.rpartition(".")[0] == name)
        if not found:
            groups = {e.rpartition(".")[0] for e in known if "." in e}
            groups |= {OUTER} if any(e in BOX_SIDES for e in known) else set()
            raise unknown_name("edge of the shape", name, (*known, *groups, EVERYWHERE))
        return found

    @abc.abstractmethod
    def text(self) -> str:
        """In the language of `parse_shape`."""


class Primitive(Shape):
    """A shape that is not made of others."""

    kind: str

    @abc.abstractmethod
    def outline(self) -> list[tuple[str, Piece]]:
        """Its pieces; the names of its sides, empty where it has but one."""

    def primitives(self) -> Iterator["Primitive"]:
        yield self


BOX_SIDES = ("x0", "x1", "y0", "y1")


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
    that the edge is known to a cell only.
    """

    rings: tuple[tuple[Place, ...], ...]
    names: tuple[tuple[str, ...], ...]
    exact: bool = True

    kind = "outline"

    def __post_init__(self):
        _check_finite(self)
        if not self.rings or [len(r) for r in self.rings] != [len(n) for n in self.names]:
            raise SplatopError("expected one name for each side of each ring of an outline")
        check_simple([piece for _, piece in self.outline()], "an outline")

    def inside(self, places: np.ndarray) -> np.ndarray:
        return even_odd(places, self.rings)

    def outline(self) -> list[tuple[str, Piece]]:
        return [
            (name, Segment(a, b))
            for ring, names in zip(self.rings, self.names, strict=True)
            for name, a, b in zip(names, ring, ring[1:] + ring[:1], strict=True)
        ]

    def text(self) -> str:
        return f"an outline of {sum(map(len, self.rings))} sides"


@dataclass(frozen=True)
class _Pair(Shape):
    first: Shape
    second: Shape

    symbol = ""

    def primitives(self) -> Iterator[Primitive]:
        yield from self.first.primitives()
        yield from self.second.primitives()

    def text(self) -> str:
        second = self.second.text()
        if isinstance(self.second, _Pair):
            second = f"({second})"
        first = self.first.text()
        if isinstance(self.first, _Pair) and self.symbol == "&":
            first = f"({first})"
        return f"{first} {self.symbol} {second}"


class Union(_Pair):
    """What lies in one of two shapes."""

    symbol = "+"

    def inside(self, places: np.ndarray) -> np.ndarray:
        return self.first.inside(places) | self.second.inside(places)


class Difference(_Pair):
    """What lies in the first of two shapes but not in the second."""

    symbol = "-"

    def inside(self, places: np.ndarray) -> np.ndarray:
        return self.first.inside(places) & ~self.second.inside(places)


class Intersection(_Pair):
    """What lies in both of two shapes."""

    symbol = "&"

    def inside(self, places: np.ndarray) -> np.ndarray:
        return self.first.inside(places) & self.second.inside(places)


KINDS: dict[str, type[Any]] = {
    "disk": Disk,
    "box": Box,
    "polygon": Polygon,
    "outline": Outline,
    "union": Union,
    "difference": Difference,
    "intersection": Intersection,
}


def shape_as_dict(shape: Shape) -> dict[str, Any]:
    """A tree that JSON holds."""
    kind = next(name for name, cls in KINDS.items() if type(shape) is cls)
    values = {f.name: getattr(shape, f.name) for f in fields(shape)}  # type: ignore[arg-type]
    plain = {k: shape_as_dict(v) if isinstance(v, Shape) else v for k, v in values.items()}
    return {"kind": kind, **plain}


def shape_from_dict(values: Any) -> Shape:
    try:
        own = dict(values)
        cls = KINDS[own.pop("kind")]
        return cls(**{k: _read(v) for k, v in own.items()})
    except SplatopError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise SplatopError(f"expected the description of a shape, got {error}") from error


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        return shape_from_dict(value)
    return tuple(_read(one) for one in value) if isinstance(value, list | tuple) else value


# --- edges ---------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _edges(shape: Shape) -> tuple[Edge, ...]:
    named = list(_named(shape))
    size = max(float(np.ptp(piece.at(np.linspace(0, 1, 5)), axis=0).max()) for _, _, piece in named)
    found: list[Edge] = []
    for number, name, piece in named:
        others = [other for k, _, other in named if k != number]
        for part in split(piece, others, TINY * size):
            beside = part.at(np.array([0.5])), _BESIDE * size * part.normal(np.array([0.5]))
            right, left = shape.inside(
                np.concatenate([beside[0] + beside[1], beside[0] - beside[1]])
            )
            if right == left:
                continue
            middle = beside[0]
            if any(held.piece.distance(middle)[0] < TINY * size for held in found):
                continue  # two primitives share this edge: it has the name of the first
            found.append(Edge(name, part if left else part.reversed))
    if not found:
        raise SplatopError(
            f"expected a shape with something inside, got {shape.text()}: it is empty"
        )
    return tuple(found)


@lru_cache(maxsize=64)
def _runs(shape: Shape) -> tuple[Run, ...]:
    (x0, y0), (x1, y1) = shape.bounds
    return runs_of(shape.edges, 100 * TINY * max(x1 - x0, y1 - y0))


def _named(shape: Shape) -> Iterator[tuple[int, str, Piece]]:
    """The number of each primitive, and its pieces under the names they have in the whole."""
    count: Counter[str] = Counter()
    for number, one in enumerate(shape.primitives()):
        count[one.kind] += 1
        base = f"{one.kind}{count[one.kind]}"
        for side, piece in one.outline():
            if one.kind == "outline" or (base == "box1"):
                yield number, side, piece
            else:
                yield number, f"{base}.{side}" if side else base, piece


def _check_finite(shape: Any) -> None:
    for field in fields(shape):
        if not np.isfinite(np.asarray(_flat(getattr(shape, field.name)), float)).all():
            raise SplatopError(f"expected finite numbers in a {shape.kind}, got NaN or infinity")


def _flat(value: Any) -> list[float]:
    if isinstance(value, tuple):
        return [number for one in value for number in _flat(one)]
    return [] if isinstance(value, str) else [float(value)]

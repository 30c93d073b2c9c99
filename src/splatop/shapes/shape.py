"""What a shape cut out of a box in 2D is: what lies inside, and which named edges it has."""

import abc
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from ..errors import SplatopError, unknown_name
from .outlines import TINY, split
from .pieces import Arc, Edge, Piece, Place, Run, runs_of

# Names that stand for several edges.
OUTER, EVERYWHERE = "outer", "all"
BOX_SIDES = ("x0", "x1", "y0", "y1")
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

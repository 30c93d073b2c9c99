"""What edges are made of: straight segments and arcs of circles, travelled from begin to end.

An edge of a shape has the shape on its left, so that the normal to the right points outwards.
"""

import abc
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Place = tuple[float, float]


class Piece(abc.ABC):
    """A smooth part of an edge, by a parameter that runs from 0 to 1 with its length."""

    length: float

    @abc.abstractmethod
    def at(self, t: np.ndarray) -> np.ndarray:
        """The places `(n, 2)` at parameters `(n,)`."""

    @abc.abstractmethod
    def normal(self, t: np.ndarray) -> np.ndarray:
        """Unit normals `(n, 2)` to the right of the way."""

    @abc.abstractmethod
    def part(self, begin: float, end: float) -> "Piece":
        """From one parameter to another."""

    @abc.abstractmethod
    def parameter(self, places: np.ndarray) -> np.ndarray:
        """The parameter of the nearest point of the line or circle; beyond 0 to 1 outside."""

    @abc.abstractmethod
    def crossings(self, other: "Piece") -> np.ndarray:
        """Places `(n, 2)` where the two lines or circles meet, wherever the pieces end."""

    @property
    @abc.abstractmethod
    def reversed(self) -> "Piece": ...

    def distance(self, places: np.ndarray) -> np.ndarray:
        """From each of the places `(n, 2)` to the piece."""
        nearest = self.at(np.clip(self.parameter(places), 0.0, 1.0))
        ends = self.at(np.array([0.0, 1.0]))
        found = [np.linalg.norm(places - end, axis=1) for end in (nearest, ends[0], ends[1])]
        return np.min(found, axis=0)


@dataclass(frozen=True)
class Segment(Piece):
    begin: Place
    end: Place

    @property
    def length(self) -> float:  # type: ignore[override]
        return math.dist(self.begin, self.end)

    @property
    def _way(self) -> np.ndarray:
        return np.subtract(self.end, self.begin)

    def at(self, t: np.ndarray) -> np.ndarray:
        return np.asarray(self.begin) + np.asarray(t)[:, None] * self._way

    def normal(self, t: np.ndarray) -> np.ndarray:
        x, y = self._way / self.length
        return np.broadcast_to([y, -x], (len(t), 2))

    def part(self, begin: float, end: float) -> "Segment":
        first, last = self.at(np.array([begin, end]))
        return Segment((float(first[0]), float(first[1])), (float(last[0]), float(last[1])))

    def parameter(self, places: np.ndarray) -> np.ndarray:
        return (places - self.begin) @ self._way / self.length**2

    def crossings(self, other: Piece) -> np.ndarray:
        if isinstance(other, Arc):
            return other.crossings(self)
        assert isinstance(other, Segment)
        matrix = np.stack([self._way, -other._way], axis=1)
        if abs(np.linalg.det(matrix)) <= 1e-12 * self.length * other.length:
            return np.empty((0, 2))
        t = np.linalg.solve(matrix, np.subtract(other.begin, self.begin))[0]
        return self.at(np.array([t]))

    @property
    def reversed(self) -> "Segment":
        return Segment(self.end, self.begin)


@dataclass(frozen=True)
class Arc(Piece):
    """Around `centre` from an angle on, by `sweep`: anticlockwise if that is positive."""

    centre: Place
    radius: float
    start: float
    sweep: float

    @property
    def length(self) -> float:  # type: ignore[override]
        return self.radius * abs(self.sweep)

    def _directions(self, t: np.ndarray) -> np.ndarray:
        angle = self.start + self.sweep * np.asarray(t)
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)

    def at(self, t: np.ndarray) -> np.ndarray:
        return np.asarray(self.centre) + self.radius * self._directions(t)

    def normal(self, t: np.ndarray) -> np.ndarray:
        return math.copysign(1.0, self.sweep) * self._directions(t)

    def part(self, begin: float, end: float) -> "Arc":
        start = self.start + self.sweep * begin
        return Arc(self.centre, self.radius, start, self.sweep * (end - begin))

    def parameter(self, places: np.ndarray) -> np.ndarray:
        x, y = (places - self.centre).T
        turn = (np.arctan2(y, x) - self.start) * math.copysign(1.0, self.sweep) % (2 * math.pi)
        # Behind the end, whichever of the two is nearer.
        beyond = turn > math.pi + abs(self.sweep) / 2
        return np.where(beyond, turn - 2 * math.pi, turn) / abs(self.sweep)

    def crossings(self, other: Piece) -> np.ndarray:
        centre = np.asarray(self.centre)
        if isinstance(other, Segment):
            way = other._way / other.length
            foot = np.asarray(other.begin) + ((centre - other.begin) @ way) * way
            away, along = float(np.linalg.norm(foot - centre)), way
        else:
            assert isinstance(other, Arc)
            between = np.subtract(other.centre, centre)
            apart = float(np.linalg.norm(between))
            if apart <= 1e-12 * self.radius:
                return np.empty((0, 2))
            away = (apart**2 + self.radius**2 - other.radius**2) / (2 * apart)
            foot = centre + away * between / apart
            along = np.array([-between[1], between[0]]) / apart
        half = self.radius**2 - away**2
        if half < 0:
            return np.empty((0, 2))
        return foot + math.sqrt(half) * np.array([[-1.0], [1.0]]) * along

    def over_chord(self, places: np.ndarray) -> np.ndarray:
        """Whether places `(n, 2)` lie between the arc and the straight way from its begin to its
        end; it turns by less than π."""
        begin, end = self.at(np.array([0.0, 1.0]))
        (dx, dy), (x, y) = end - begin, (places - begin).T
        right = (dy * x - dx * y) * math.copysign(1.0, self.sweep) > 0
        return right & (np.hypot(*(places - self.centre).T) <= self.radius)

    @property
    def reversed(self) -> "Arc":
        return Arc(self.centre, self.radius, self.start + self.sweep, -self.sweep)


@dataclass(frozen=True)
class Edge:
    """A piece of a shape's edge under its name; the shape lies to its left."""

    name: str
    piece: Piece


@dataclass(frozen=True)
class Run:
    """Successive edges, of whatever names, that follow each other without a sharp corner."""

    edges: tuple[Edge, ...]
    closed: bool


# A corner that turns by more (radians) is sharp.
SHARP = 0.35


def runs_of(edges: Sequence[Edge], tiny: float) -> tuple[Run, ...]:
    """Edges that follow each other smoothly, together."""
    ends = np.array([edge.piece.at(np.array([0.0, 1.0])) for edge in edges])
    normals = np.array([edge.piece.normal(np.array([0.0, 1.0])) for edge in edges])
    after: dict[int, int | None] = {}
    for i in range(len(edges)):
        near = np.linalg.norm(ends[:, 0] - ends[i, 1], axis=1) < tiny
        smooth = normals[:, 0] @ normals[i, 1] > math.cos(SHARP)
        followers = np.flatnonzero(near & smooth)
        after[i] = int(followers[0]) if len(followers) else None
    followed = {j for j in after.values() if j is not None}
    order = [i for i in after if i not in followed] + list(after)  # those after a corner first
    found, used = [], set()
    for first in order:
        numbers, at = [], first
        while at is not None and at not in used:
            used.add(at)
            numbers.append(at)
            at = after[at]
        if numbers:
            found.append(Run(tuple(edges[n] for n in numbers), at == first))
    return tuple(found)

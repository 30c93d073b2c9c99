"""What solutions have at a corner that Gaussians do not: powers of the distance that are no
polynomials.

At a corner of angle ω between two straight sides a field behaves as `r^β sin(βθ)` or `r^β cos(βθ)`,
β a multiple of π/ω (an odd multiple of π/2ω where one side sets a value and the other a slope).
Where the least β is below 1, slopes have no bound there, and smooth functions that obey the
conditions are held down around the corner: the first tone of an L came out 7 % too high,
however many anchors there were. A few such functions under a bell take that off.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial import hermite_e

from ..domain import Kind
from ..shapes import Place, Segment, Shape

# The bell's σ over the spacing of the anchors.
WIDTH = 3.0
# Powers below this one; and each again times r² so many times, less one.
MOST, AGAIN = 4.0, 2
# Corners whose least power is above this one are left to the Gaussians.
_SINGULAR = 0.9
# Sides shorter than so many spacings are details that the anchors do not see.
_SHORT = 1.0


@dataclass(frozen=True)
class Corner:
    """Where two straight sides meet: the place, the direction of the side that begins there, the
    angle from it to the other side through the shape, what holds at both, and the bell's σ."""

    place: Place
    direction: float
    angle: float
    kinds: tuple[Kind, Kind]
    width: float

    @property
    def singular(self) -> tuple[Place, ...]:
        """Where integrals need finer triangles."""
        return (self.place,)

    @property
    def powers(self) -> tuple[float, ...]:
        """The powers of the distance that no polynomial has."""
        first, second = self.kinds
        step, shift = math.pi / self.angle, 0.0 if first == second else 0.5
        every = ((k - shift) * step for k in range(1, 1 + math.ceil(MOST / step + shift)))
        return tuple(b for b in every if b < MOST and abs(b - round(b)) > 1e-6)

    @property
    def size(self) -> int:
        """How many functions it has."""
        return AGAIN * len(self.powers)

    def at(self, places: np.ndarray, index: tuple[int, ...]) -> np.ndarray:
        """A partial derivative of each function at places `(P, 2)`: `(P, size)`. At the corner
        itself, where slopes have no bound, it is 0, as along both sides."""
        x, y = ((places - np.asarray(self.place)) / self.width).T
        # The branch cut lies outside of the shape, half way between the sides.
        middle = self.direction + self.angle / 2
        turned = (x + 1j * y) * np.exp(-1j * middle)
        r, angle = np.abs(turned), np.angle(turned) + self.angle / 2
        here = r < 1e-9
        r = np.where(here, 1.0, r)
        found = []
        for power in self.powers:
            waves = [
                _falling(power, n) * r ** (power - n) * np.exp(1j * (power - n) * angle)
                for n in range(sum(index) + 1)
            ]
            for again in range(AGAIN):
                total = np.zeros(len(places))
                for way, factor in _leibniz(index):
                    along = np.exp(-1j * self.direction * sum(way)) * 1j ** way[1]
                    wave = along * waves[sum(way)]
                    part = wave.imag if self.kinds[0] == "value" else wave.real
                    rest = (index[0] - way[0], index[1] - way[1])
                    total += factor * part * _bell(x, y, rest, again)
                # About as large as a Gaussian of the lattice: none hides what is small in others.
                size = 2 * math.sqrt(math.gamma(power + 2 * again + 1)) * self.width ** sum(index)
                found.append(np.where(here, 0.0, total) / size)
        return np.stack(found, axis=1)


@lru_cache(maxsize=64)
def corners_of(
    shape: Shape, kinds: tuple[tuple[str, Kind], ...], spacing: float
) -> tuple[Corner, ...]:
    """The corners of a shape where its conditions let slopes grow without bound."""
    held: dict[str, Kind] = dict(kinds)
    free: Kind = "free"
    (x0, y0), (x1, y1) = shape.bounds
    tiny = 1e-7 * max(x1 - x0, y1 - y0)
    sides: list[tuple[Kind, Segment]] = [
        (held.get(edge.name, free), edge.piece)
        for edge in shape.edges
        if isinstance(edge.piece, Segment) and edge.piece.length > _SHORT * spacing
    ]
    found = []
    for before, one in sides:
        for after, other in sides:
            if math.dist(one.end, other.begin) > tiny or free in (before, after):
                continue
            back, on = (
                math.atan2(a[1] - b[1], a[0] - b[0])
                for a, b in ((one.begin, one.end), (other.end, other.begin))
            )
            angle = (back - on) % (2 * math.pi)
            beside: tuple[Kind, Kind] = (after, before)
            corner = Corner(other.begin, on, angle, beside, WIDTH * spacing)
            if angle > 0 and corner.powers and min(corner.powers) < _SINGULAR:
                found.append(corner)
    return tuple(found)


def _falling(power: float, count: int) -> float:
    return math.prod((power - n for n in range(count)), start=1.0)


def _leibniz(index: tuple[int, ...]) -> Iterator[tuple[tuple[int, int], int]]:
    """Which derivatives of the first factor of a product stand in that of the product, and how
    often."""
    for i in range(index[0] + 1):
        for j in range(index[1] + 1):
            yield (i, j), math.comb(index[0], i) * math.comb(index[1], j)


def _bell(x: np.ndarray, y: np.ndarray, index: tuple[int, int], again: int) -> np.ndarray:
    """A derivative of `r^(2 again) exp(-r²/2)`, `again` 0 or 1: `x² = He_2 + 1`."""

    def along(z: np.ndarray, order: int) -> np.ndarray:
        return (-1) ** order * hermite_e.hermeval(z, [0] * order + [1]) * np.exp(-z * z / 2)

    plain = [along(z, order) for z, order in zip((x, y), index, strict=True)]
    if not again:
        return plain[0] * plain[1]
    squares = [along(z, o + 2) + p for z, o, p in zip((x, y), index, plain, strict=True)]
    return squares[0] * plain[1] + plain[0] * squares[1]

"""Functions that fields around a round hole are made of, for a space whose Gaussians are too wide.

What surrounds a hole goes on into it, as a smooth function, to its centre at most: there powers
`r^-n cos nθ` and `log r` have no value, of which harmonics outside of a hole consist. Gaussians of
a spacing h leave about `exp(-2.3 R/h)` of them around a hole of radius R.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..shapes import Arc, Place, Run, Shape

# Waves around the hole; each with r^-n and so many of r^(2-n), r^(4-n), ... that fall.
WAVES, POWERS = 8, 4
# Powers of the distance up to which there are logarithms, which solutions have beside these.
LOGARITHMS = 2
# Spacings of the lattice in a radius from which Gaussians alone leave less than 1e-6.
RESOLVED = 6.0

# `log|z|` times the first number, and the second, times `z^a conj(z)^b`: by (a, b).
_Terms = dict[tuple[int, int], tuple[complex, complex]]


@dataclass(frozen=True)
class Hole:
    """A round hole in a shape that reaches so far from its centre. Its functions are at most 1."""

    centre: Place
    radius: float
    reach: float

    @property
    def singular(self) -> tuple[Place, ...]:
        """Its functions are smooth wherever the shape is."""
        return ()

    @property
    def size(self) -> int:
        """How many functions it has."""
        return sum(1 if n == 0 else 2 for n, _, _ in _KINDS)

    def at(self, places: np.ndarray, index: tuple[int, ...]) -> np.ndarray:
        """A partial derivative of each function at places `(P, 2)`: `(P, size)`."""
        # Nothing is done about places inside of the hole: values there are not used.
        z = ((places - np.asarray(self.centre)) / self.radius) @ np.array([1.0, 1.0j])
        log, turned = np.log(np.abs(z)), z.conj()
        found = []
        for n, power, logarithm in _KINDS:
            a, b = (power + n) // 2, (power - n) // 2
            terms: _Terms = {(a, b): (1.0 + 0j, 0j) if logarithm else (0j, 1.0 + 0j)}
            for axis, order in enumerate(index):
                for _ in range(order):
                    terms = _slope(terms, axis)
            value = np.zeros(len(z), complex)
            for (a, b), (of_log, plain) in terms.items():
                value += (of_log * log + plain) * z**a * turned**b
            far = self.reach / self.radius
            size = np.log(far) * far**power if logarithm else 1.0
            value = value / (size * self.radius ** sum(index))
            found += [value.real] if n == 0 else [value.real, value.imag]
        return np.stack(found, axis=1)


def _kinds() -> list[tuple[int, int, bool]]:
    """Waves around, power of the distance, and whether a logarithm multiplies it."""
    falling = [(n, 2 * m - n, False) for n in range(WAVES + 1) for m in range(POWERS)]
    slow = [(n, power, True) for n in range(LOGARITHMS + 1) for power in range(n, 3, 2)]
    return [one for one in falling if one[1] < 0] + slow


_KINDS = _kinds()


def _slope(terms: _Terms, axis: int) -> _Terms:
    """A derivative along x or y: `∂x = ∂z + ∂z̄`, `∂y = i (∂z - ∂z̄)`."""
    found: _Terms = {}
    for (a, b), (of_log, plain) in terms.items():
        for way, power, sign in (((a - 1, b), a, 1), ((a, b - 1), b, -1)):
            factor = 1j * sign if axis else 1.0 + 0j
            before = found.get(way, (0j, 0j))
            # log|z| is half of log z + log z̄.
            own = power * of_log, power * plain + of_log / 2
            found[way] = before[0] + factor * own[0], before[1] + factor * own[1]
    return found


@lru_cache(maxsize=64)
def holes_of(shape: Shape, spacing: float) -> tuple[Hole, ...]:
    """The round holes of a shape that Gaussians of this spacing do not resolve."""
    found = (hole_of(run, shape) for run in shape.runs)
    return tuple(one for one in found if one is not None and one.radius < RESOLVED * spacing)


def hole_of(run: Run, shape: Shape) -> Hole | None:
    """The round hole that edges go around, if they do."""
    arcs = [edge.piece for edge in run.edges if isinstance(edge.piece, Arc)]
    if not run.closed or len(arcs) < len(run.edges):
        return None
    first = arcs[0]
    alike = all(
        np.allclose((*one.centre, one.radius), (*first.centre, first.radius), rtol=1e-9, atol=0.0)
        for one in arcs
    )
    around = np.isclose(sum(one.sweep for one in arcs), -2 * np.pi)
    if not (alike and around):
        return None
    (x0, y0), (x1, y1) = shape.bounds
    x, y = first.centre
    reach = max(np.hypot(a - x, b - y) for a in (x0, x1) for b in (y0, y1))
    return Hole(first.centre, first.radius, float(reach))

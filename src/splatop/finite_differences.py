"""Jets by finite differences: central ones, and one-sided ones where an axis ends."""

from collections.abc import Iterable
from functools import lru_cache
from math import factorial

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .derivative import Derivative
from .errors import SplatopError, check_field
from .grid import Grid, as_numbers
from .jets import Jet, JetProvider
from .spectral import Field, Filter, PassThrough

# Central differences of order p along one axis: offsets -r..r times spacing^-p, accuracy >= 2.
_STENCILS = {
    (1, 2): (-1 / 2, 0, 1 / 2),
    (2, 2): (1, -2, 1),
    (3, 2): (-1 / 2, 1, 0, -1, 1 / 2),
    (4, 2): (1, -4, 6, -4, 1),
    (1, 4): (1 / 12, -2 / 3, 0, 2 / 3, -1 / 12),
    (2, 4): (-1 / 12, 4 / 3, -5 / 2, 4 / 3, -1 / 12),
    (3, 4): (1 / 8, -1, 13 / 8, 0, -13 / 8, 1, -1 / 8),
    (4, 4): (-1 / 6, 2, -13 / 2, 28 / 3, -13 / 2, 2, -1 / 6),
}


class FiniteDifferenceJets(JetProvider):
    """Central differences of accuracy 2 or 4, up to fourth derivatives, then the filter.

    `layout` says where the points of each axis lie: around a ring (`left`, or nothing), or between
    two ends (`ends`, `cells`), close to which differences are one-sided, of the same accuracy. They
    know of no condition there: a baseline for derivatives up to the wall.
    """

    lengths: tuple[float, ...] = eqx.field(static=True, converter=as_numbers)
    filter: Filter
    accuracy: int = eqx.field(static=True, default=4)
    layout: tuple[str, ...] = eqx.field(static=True, default=())

    def __check_init__(self):
        if self.accuracy not in (2, 4):
            raise SplatopError(f"expected accuracy 2 or 4, got {self.accuracy}")
        if self.layout and len(self.layout) != len(self.lengths):
            raise SplatopError(
                f"expected where the points lie along each of {len(self.lengths)} axes, got "
                f"{', '.join(self.layout)}"
            )
        if any(map(self._ends, range(len(self.lengths)))) and not isinstance(
            self.filter, PassThrough
        ):
            raise SplatopError(
                "expected no filter between two ends, because filters are those of a periodic box, "
                f"got {type(self.filter).__name__}: give PassThrough()"
            )

    def _ends(self, axis: int) -> bool:
        return bool(self.layout) and self.layout[axis] != "left"

    def working_points(self, points: tuple[int, ...], degree: float) -> tuple[int, ...]:
        """The grid of the data: on a coarser one differences would be another scheme."""
        return points

    def __call__(self, u: Field, derivatives: Iterable[Derivative]) -> Jet:
        check_field(u, dims=len(self.lengths))
        values = {d: self.filter(self._differentiate(u, d), self.lengths) for d in derivatives}
        if not self.layout:
            return Jet(u, values, self.lengths)
        at = self._grid(u).fractions()
        return Jet(u, values, self.lengths, fractions=tuple(tuple(x.tolist()) for x in at))

    def _grid(self, u: Field) -> Grid:
        return Grid(tuple(u.shape[1:]), self.lengths, layout=self.layout)

    def _differentiate(self, u: Field, derivative: Derivative) -> Field:
        if derivative.inverse_laplacians or derivative.order > 4:
            raise SplatopError(
                f"finite differences give derivatives up to fourth order, got {derivative}: "
                "use SplatJets with the Fourier renderer, or SpectralJets"
            )
        spacing = self._grid(u).spacing
        total = jnp.zeros_like(u)
        for index, weight in derivative.terms:
            part = u
            for axis, order in enumerate(index):
                if order and self._ends(axis):
                    matrix = _between_ends(part.shape[axis + 1], order, self.accuracy)
                    matrix = jnp.asarray(matrix / spacing[axis] ** order, u.dtype)
                    part = jnp.moveaxis(
                        jnp.tensordot(part, matrix, axes=(axis + 1, 1)), -1, axis + 1
                    )
                elif order:
                    stencil = np.asarray(_STENCILS[order, self.accuracy]) / spacing[axis] ** order
                    reach = len(stencil) // 2
                    shifted = (
                        float(s) * jnp.roll(part, -offset, axis + 1)
                        for offset, s in zip(range(-reach, reach + 1), stencil, strict=True)
                        if s
                    )
                    part = sum(shifted, start=jnp.zeros_like(part))
            total = total + weight * part
        return total


@lru_cache(maxsize=64)
def _between_ends(points: int, order: int, accuracy: int) -> np.ndarray:
    """Differences at each of the points of an axis of spacing 1, `(N, N)`: central where they fit,
    else of the points that are next to an end."""
    width = order + accuracy
    if points < width:
        raise SplatopError(
            f"expected at least {width} points between two ends for differences of accuracy "
            f"{accuracy}, got {points}"
        )
    central = np.asarray(_STENCILS[order, accuracy])
    reach = len(central) // 2
    matrix = np.zeros((points, points))
    for i in range(points):
        if reach <= i < points - reach:
            matrix[i, i - reach : i + reach + 1] = central
            continue
        first = 0 if i < reach else points - width
        # Exact for polynomials up to the width, by their values around the point.
        powers = np.vander(np.arange(first, first + width) - float(i), increasing=True).T
        wanted = np.zeros(width)
        wanted[order] = factorial(order)
        matrix[i, first : first + width] = np.linalg.solve(powers, wanted)
    return matrix

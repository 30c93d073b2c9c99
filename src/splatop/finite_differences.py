"""Jets by finite differences."""

from collections.abc import Iterable

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .derivative import Derivative
from .errors import SplatopError, check_field
from .grid import Grid, as_numbers
from .jets import Jet, JetProvider
from .spectral import Field, Filter

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
    """Central differences of accuracy 2 or 4, up to fourth derivatives, then the filter."""

    lengths: tuple[float, ...] = eqx.field(static=True, converter=as_numbers)
    filter: Filter
    accuracy: int = eqx.field(static=True, default=4)

    def __check_init__(self):
        if self.accuracy not in (2, 4):
            raise SplatopError(f"expected accuracy 2 or 4, got {self.accuracy}")

    def working_points(self, points: tuple[int, ...], degree: float) -> tuple[int, ...]:
        """The grid of the data: on a coarser one differences would be another scheme."""
        return points

    def __call__(self, u: Field, derivatives: Iterable[Derivative]) -> Jet:
        check_field(u, dims=len(self.lengths))
        values = {d: self.filter(self._differentiate(u, d), self.lengths) for d in derivatives}
        return Jet(u, values, self.lengths)

    def _differentiate(self, u: Field, derivative: Derivative) -> Field:
        if derivative.inverse_laplacians or derivative.order > 4:
            raise SplatopError(
                f"finite differences give derivatives up to fourth order, got {derivative}: "
                "use SplatJets with the Fourier renderer, or SpectralJets"
            )
        spacing = Grid(tuple(u.shape[1:]), self.lengths).spacing
        total = jnp.zeros_like(u)
        for index, weight in derivative.terms:
            part = u
            for axis, order in enumerate(index):
                if order:
                    stencil = np.asarray(_STENCILS[order, self.accuracy]) / spacing[axis] ** order
                    reach = len(stencil) // 2
                    part = sum(
                        float(s) * jnp.roll(part, -offset, axis + 1)
                        for offset, s in zip(range(-reach, reach + 1), stencil, strict=True)
                        if s
                    )
            total = total + weight * part
        return total

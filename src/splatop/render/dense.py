"""The slow, obvious renderer: every primitive at every point. The oracle for the others."""

from collections.abc import Iterable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..derivative import Derivative, MultiIndex
from ..gaussians import Gaussians, Splats
from ..grid import Grid
from ..spectral import Filter, PassThrough
from .renderer import PointRenderer, Rendered, add_offset, grid_positions, physical_terms


class DenseRenderer(PointRenderer):
    """Sums all primitives with the paper's closed forms (Eq. 7), `chunk` points at a time.

    Orders above two are nested forward-mode derivatives of the first two.
    """

    chunk: int = eqx.field(static=True, default=256)

    def __call__(
        self,
        splats: Splats,
        derivatives: Iterable[Derivative],
        grid: Grid,
        filter: Filter = PassThrough(),
    ) -> Rendered:
        points = jnp.asarray(grid_positions(grid), splats.offset.dtype)
        rendered = self._at_positions(splats.explicit(), derivatives, points, grid.lengths)
        return {
            d: filter(values.reshape(-1, *grid.points), grid.lengths)
            for d, values in rendered.items()
        }

    def at(
        self,
        splats: Splats,
        derivatives: Iterable[Derivative],
        points: Float[Array, "Q d"],
        lengths: tuple[float, ...],
    ) -> dict[Derivative, Float[Array, "C Q"]]:
        positions = points / jnp.asarray(lengths, points.dtype)
        return self._at_positions(splats.explicit(), derivatives, positions, lengths)

    def basis(self, gaussians: Gaussians, positions: Float[Array, "Q d"]) -> Float[Array, "Q G"]:
        # Written out by axis: one fused pass, where an einsum would store the displacements.
        precision = gaussians.precision()
        axes = range(gaussians.dims)
        r = [minimum_image(positions[:, i, None] - gaussians.center[:, i]) for i in axes]
        quadratic = sum(precision[:, i, j] * r[i] * r[j] for i in axes for j in axes)
        return jnp.exp(-0.5 * quadratic)

    def _at_positions(self, gaussians, derivatives, positions, lengths):
        derivatives = tuple(derivatives)
        precision = gaussians.precision()

        def one_point(x: Float[Array, " d"]) -> dict[Derivative, Float[Array, " C"]]:
            return {
                d: sum(
                    weight * _primitives(x, index, gaussians.center, precision)
                    for index, weight in physical_terms(d, lengths)
                )
                @ gaussians.amplitude
                for d in derivatives
            }

        values = jax.lax.map(one_point, positions, batch_size=min(self.chunk, len(positions)))
        return {d: add_offset(values[d].T, d, gaussians.offset) for d in derivatives}


def minimum_image(r: Array) -> Array:
    """The displacement to the nearest periodic image (paper, appendix A)."""
    return r - jnp.round(r)


def _primitives(
    x: Float[Array, " d"], index: MultiIndex, center: Array, precision: Array
) -> Float[Array, " G"]:
    """The derivative `index` of every primitive of unit amplitude, at one point."""
    axes = [axis for axis, order in enumerate(index) for _ in range(order)]
    if len(axes) > 2:
        *rest, last = axes
        lower = tuple(rest.count(axis) for axis in range(len(index)))
        direction = jnp.zeros_like(x).at[last].set(1.0)
        return jax.jvp(lambda y: _primitives(y, lower, center, precision), (x,), (direction,))[1]
    r = minimum_image(x - center)
    slope = jnp.einsum("gij,gj->gi", precision, r)
    g = jnp.exp(-0.5 * jnp.sum(r * slope, axis=-1))
    if len(axes) == 1:
        g = -g * slope[:, axes[0]]
    elif len(axes) == 2:
        a, b = axes
        g = g * (slope[:, a] * slope[:, b] - precision[:, a, b])
    return g

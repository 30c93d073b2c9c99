"""Networks of grids on states at scattered points, as they are used elsewhere.

Values are interpolated onto the box around the shape, a mask is one more channel, and the answer is
read off at the points.
"""

import math
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..domain import Domain
from ..errors import SplatopError, check_field
from ..points import Points
from ..precomputed import Precomputed, with_fields

# Points of the grid along an axis, at least and at most, and what their number is a multiple of, so
# that a network may halve it.
_LEAST, _MOST, _MULTIPLE = 16, 96, 4


class OnBox(eqx.Module):
    """A `network` of grids for states at the points that `layout` is.

    Linear interpolation between the points, the nearest of them beyond; 1 in the shape and 0
    outside as the last channel; `padding` cells of zeros beyond the far sides, which a network that
    takes the box for periodic needs.
    """

    network: Callable
    domain: Domain = eqx.field(static=True)
    layout: Points = eqx.field(static=True)
    sides: tuple[int, int] = eqx.field(static=True)
    padding: int = eqx.field(static=True, default=0)
    tables: Precomputed | None = None

    scannable: ClassVar[bool] = True
    light_gradient: ClassVar[bool] = False

    def __check_init__(self):
        if self.domain.shape is None or not isinstance(self.layout, Points):
            raise SplatopError("expected points on a shape, got a grid")
        if self.tables is None:
            with jax.ensure_compile_time_eval():
                held = {name: jnp.asarray(one) for name, one in self._host_tables().items()}
            object.__setattr__(self, "tables", Precomputed(held))

    def moved_to(self, points: Points) -> "OnBox":
        """The same network on states at other points of its shape."""
        return with_fields(self, layout=points)

    def __call__(
        self, u: Float[Array, "C P"], condition: Float[Array, " K"] | None = None
    ) -> Float[Array, "C P"]:
        check_field(u, dims=1)
        assert self.tables is not None
        held = self.tables
        on_grid = jnp.sum(u[:, held["from"]] * held["shares"].astype(u.dtype), axis=-1)
        on_grid = jnp.concatenate([on_grid, held["mask"][None].astype(u.dtype)])
        on_grid = on_grid.reshape(len(on_grid), *self.sides)
        wide = jnp.pad(on_grid, ((0, 0), (0, self.padding), (0, self.padding)))
        out = self.network(wide) if condition is None else self.network(wide, condition)
        flat = out[:-1, : self.sides[0], : self.sides[1]].reshape(len(u), -1)
        return jnp.sum(flat[:, held["to"]] * held["parts"].astype(u.dtype), axis=-1)

    def _host_tables(self) -> dict[str, np.ndarray]:
        from scipy.spatial import Delaunay, KDTree

        places, shape = self.layout.places, self.domain.shape
        assert shape is not None
        (x0, y0), (x1, y1) = shape.bounds
        low, size = np.array([x0, y0]), np.array([x1 - x0, y1 - y0])
        axes = [np.arange(n) / (n - 1) for n in self.sides]
        unit = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
        grid = low + size * unit
        triangles = Delaunay(places)
        which = triangles.find_simplex(grid)
        transform = triangles.transform[which]
        part = np.einsum("gij,gj->gi", transform[:, :2], grid - transform[:, 2])
        shares = np.concatenate([part, 1 - part.sum(axis=1, keepdims=True)], axis=1)
        source = triangles.simplices[which]
        # Beyond the points' hull, and where a triangle is flat to rounding.
        lost = (which < 0) | ~np.isfinite(shares).all(axis=1)
        nearest = np.asarray(KDTree(places).query(grid[lost])[1])
        source[lost], shares[lost] = nearest[:, None], [1.0, 0.0, 0.0]
        at = (places - low) / size * (np.array(self.sides) - 1)
        first = np.clip(np.floor(at).astype(int), 0, np.array(self.sides) - 2)
        rest = at - first
        target, parts = [], []
        for i in (0, 1):
            for j in (0, 1):
                target.append((first[:, 0] + i) * self.sides[1] + first[:, 1] + j)
                parts.append(np.abs(1 - i - rest[:, 0]) * np.abs(1 - j - rest[:, 1]))
        return {
            "from": source,
            "shares": shares,
            "mask": shape.inside(grid).astype(float),
            "to": np.stack(target, axis=1),
            "parts": np.stack(parts, axis=1),
        }


def sides_for(domain: Domain, points: Points) -> tuple[int, int]:
    """As dense a grid on the box around the shape as the points are in it."""
    shape = domain.shape
    assert shape is not None
    (x0, y0), (x1, y1) = shape.bounds
    spacing = math.sqrt(shape.area / len(points.places))
    x, y = (
        int(np.clip(round(length / spacing / _MULTIPLE) * _MULTIPLE, _LEAST, _MOST))
        for length in (x1 - x0, y1 - y0)
    )
    return x, y

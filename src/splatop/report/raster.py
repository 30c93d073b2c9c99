"""Values at points as pixels: those of the grid that the points are of, else the nearest point."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from ..domain import Domain
from ..grid import Grid
from ..points import Points

PIXELS = 96


@dataclass(frozen=True)
class Raster:
    """A grid, and which point each of its pixels shows; -1 outside of the shape."""

    grid: Grid
    point: np.ndarray  # (Nx, Ny)

    def __call__(self, values: np.ndarray, *, outside: float) -> np.ndarray:
        """Values `(..., P)` on the grid."""
        shown = np.asarray(values, np.float32)[..., np.maximum(self.point, 0)]
        return np.where(self.point >= 0, shown, np.float32(outside))


def raster(points: Points, domain: Domain) -> Raster:
    """The pixels of a shape's box."""
    if points.cells is not None and points.mask is not None:
        number = np.full(points.cells.points, -1)
        number[points.mask] = np.arange(len(points.places))
        return Raster(points.cells, number)
    longest = max(domain.lengths)
    count = tuple(max(8, round(PIXELS * length / longest)) for length in domain.lengths)
    grid = Grid(count, domain.lengths, domain.origin, ("cells", "cells"))
    nearest = np.asarray(KDTree(points.places).query(grid.places)[1])
    if domain.shape is not None:
        nearest = np.where(domain.shape.inside(grid.places), nearest, -1)
    return Raster(grid, nearest.reshape(count))

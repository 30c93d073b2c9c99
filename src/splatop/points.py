"""Scattered places at which fields are sampled, and the points of a grid that lie in a shape."""

import base64
import binascii
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from .errors import SplatopError
from .grid import Grid, as_numbers
from .shapes import Quadrature, Shape, quadrature

# Points may lie outside of an edge by this share of the box: coordinates in single precision.
ROUNDING = 2e-6
# Nodes of the quadrature that measures what each point stands for, for each point, and at most.
_NODES, _MOST_NODES = 24, 300_000


@dataclass(frozen=True)
class Points:
    """P fixed places, in a box of side `lengths` that begins at `origin`, where fields are known:
    the counterpart of a `Grid` for scattered data.

    `Points.of(places)` makes it of an array `(P, d)`. It is a value that JSON can hold, so places
    are kept as text (`packed`). Those of a
    masked grid know the grid, `cells`, and which of its points they are, `inside`.
    """

    packed: str
    lengths: tuple[float, ...]
    origin: tuple[float, ...]
    cells: Grid | None = None
    inside: str = ""

    @classmethod
    def of(
        cls,
        places: Any,
        *,
        lengths: Sequence[float] | None = None,
        origin: Sequence[float] | None = None,
    ) -> "Points":
        """From an array `(P, 2)`; without a box, in the one around them."""
        array = np.asarray(places, np.float64)
        if array.ndim != 2 or array.shape[1] != 2 or len(array) < 2:
            raise SplatopError(
                f"expected points as an array (P, 2) of x and y, got shape {array.shape}"
            )
        if not np.isfinite(array).all():
            row = int(np.argmin(np.isfinite(array).all(axis=1)))
            raise SplatopError(f"expected finite coordinates, got {array[row]} for point {row}")
        low = array.min(0) if origin is None else np.asarray(origin, float)
        size = array.max(0) - low if lengths is None else np.asarray(lengths, float)
        size = np.where(size > 0, size, 1.0)
        return cls(_pack(array), as_numbers(size), as_numbers(low))

    @classmethod
    def of_mask(cls, grid: Grid, mask: np.ndarray) -> "Points":
        """The points of a grid where a mask is True."""
        if grid.dims != 2 or mask.shape != grid.points:
            raise SplatopError(
                f"expected a mask with the points of a 2D grid, {grid.points}, got {mask.shape}"
            )
        places = grid.places[mask.ravel()]
        if len(places) < 2:
            raise SplatopError(f"expected points inside the mask, got {len(places)}")
        return cls(_pack(places), grid.lengths, grid.origin, grid, _pack(np.packbits(mask)))

    @cached_property
    def places(self) -> np.ndarray:
        """`(P, 2)`, in the units of the box."""
        return _unpack(self.packed, np.float64).reshape(-1, 2)

    @cached_property
    def mask(self) -> np.ndarray | None:
        """Which points of the grid these are, where they are of one."""
        if self.cells is None:
            return None
        bits = np.unpackbits(_unpack(self.inside, np.uint8))
        return bits[: np.prod(self.cells.points)].reshape(self.cells.points).astype(bool)

    @cached_property
    def neighbours(self) -> np.ndarray:
        """The number of the nearest other point of each."""
        from scipy.spatial import KDTree  # slow to import

        return np.asarray(KDTree(self.places).query(self.places, k=2)[1])[:, 1]

    @property
    def points(self) -> tuple[int, ...]:
        """The shape of one channel of a state, as a grid has it."""
        return (len(self.places),)

    @property
    def layout(self) -> "Points":
        """Where the samples are: at these points."""
        return self

    @property
    def dims(self) -> int:
        return 2

    @property
    def spacing(self) -> tuple[float, ...]:
        """Typical distances, by axis: those of as many points on a uniform grid."""
        area = float(np.prod(self.lengths))
        step = float(np.sqrt(area / len(self.places)))
        return (step, step) if self.cells is None else self.cells.spacing

    def coordinates(self) -> tuple[np.ndarray, ...]:
        return self.places[:, 0], self.places[:, 1]

    def begins_like(self, origin: tuple[float, ...]) -> bool:
        """Coordinates of points are what they are, wherever their box begins."""
        return True

    def weights(self, shape: Shape | None) -> np.ndarray:
        """The share of the area that each point stands for, `(P,)`: they sum to 1."""
        return _weights(self, shape)

    def in_box(self, lengths: Sequence[float], origin: Sequence[float]) -> "Points":
        """The same points in another box."""
        return Points(self.packed, as_numbers(lengths), as_numbers(origin), self.cells, self.inside)

    def on_grid(self, values: np.ndarray) -> np.ndarray:
        """Values `(..., P)` on the grid that the points are of, NaN outside."""
        if self.cells is None or self.mask is None:
            raise SplatopError("expected points of a masked grid, got scattered ones")
        out = np.full((*values.shape[:-1], *self.cells.points), np.nan, np.float32)
        out[..., self.mask] = values
        return out


def points_inside(shape: Shape, grid: Grid) -> Points:
    """The points of a grid that lie in a shape, or on its edge."""
    away = shape.distance(grid.places).reshape(grid.points)
    return Points.of_mask(grid, away <= ROUNDING * max(grid.lengths))


def random_points(
    shape: Shape, count: int, seed: int, *, lengths: Sequence[float], origin: Sequence[float]
) -> Points:
    """So many points, evenly distributed in a shape."""
    rng, found = np.random.default_rng(seed), np.empty((0, 2))
    low, high = (np.array(corner) for corner in shape.bounds)
    while len(found) < count:
        drawn = low + (high - low) * rng.random((2 * count, 2))
        found = np.concatenate([found, drawn[shape.inside(drawn)]])
    return Points.of(found[:count], lengths=lengths, origin=origin)


# Where the samples of a state lie: a word for each axis of a grid, or the points themselves.
Layout = tuple[str, ...] | Points


def layout_as_json(layout: Layout) -> Any:
    """A layout in words that JSON holds."""
    return asdict(layout) if isinstance(layout, Points) else layout


def layout_from_json(value: Any) -> Layout:
    """What `layout_as_json` wrote, or a message of what is wrong with it."""
    if not isinstance(value, dict):
        return tuple(value)
    try:
        cells = value["cells"]
        grid = cells and Grid(
            *(tuple(cells[key]) for key in ("points", "lengths", "origin", "layout"))
        )
        found = Points(
            str(value["packed"]),
            as_numbers(value["lengths"]),
            as_numbers(value["origin"]),
            grid,
            str(value["inside"]),
        )
        found.places  # noqa: B018  (refuses what is damaged)
    except (KeyError, TypeError, ValueError) as error:
        raise SplatopError(f"expected a description of points, got {error}") from error
    return found


@lru_cache(maxsize=16)
def _weights(points: Points, shape: Shape | None) -> np.ndarray:
    if points.cells is not None or shape is None:
        return np.full(len(points.places), 1 / len(points.places))
    from scipy.spatial import KDTree

    # Voronoi's cells, clipped to the shape, measured by which point is nearest to each node.
    nodes = _nodes(shape, min(_NODES * len(points.places), _MOST_NODES))
    nearest = KDTree(points.places).query(nodes.places)[1]
    areas = np.bincount(nearest, nodes.weights, minlength=len(points.places))
    return areas / areas.sum()


def _nodes(shape: Shape, count: int) -> Quadrature:
    """Gauss points of a shape, about as many."""
    order = 4
    side = float(np.sqrt(shape.area * 2.3 * order**2 / count))
    return quadrature(shape, side, order)


def _pack(array: np.ndarray) -> str:
    return base64.b64encode(zlib.compress(np.ascontiguousarray(array).tobytes(), 9)).decode()


def _unpack(text: str, dtype: Any) -> np.ndarray:
    try:
        return np.frombuffer(zlib.decompress(base64.b64decode(text, validate=True)), dtype)
    except (binascii.Error, zlib.error, ValueError) as error:
        raise SplatopError(f"expected packed numbers, got something damaged ({error})") from None

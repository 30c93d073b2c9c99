"""A box and the points at which fields are sampled in it."""

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import SplatopError, unknown_name

# Where the points of an axis lie: at jL/N (with the left end alone), with both ends, or in the
# middle of N cells.
LAYOUTS = ("left", "ends", "cells")


def as_number(value: Any) -> float:
    """A plain number, which compiled code can hold fixed, also of NumPy's and JAX's."""
    return float(np.asarray(value).reshape(()))


def as_numbers(values: Any) -> tuple[float, ...]:
    """`as_number` of each in a sequence or an array."""
    return tuple(as_number(value) for value in values)


@dataclass(frozen=True)
class Grid:
    """A box of side `lengths` that begins at `origin`, sampled at `points` uniform points per axis.

    The first spatial axis is x. `layout` says for each axis where the points lie: "left" at
    `origin + j * length / points`, as on a periodic axis; "ends" from one end to the other; "cells"
    in the middle of as many cells. Without an origin every axis begins at 0, without a layout every
    axis is "left".
    """

    points: tuple[int, ...]
    lengths: tuple[float, ...]
    origin: tuple[float, ...] = ()
    layout: tuple[str, ...] = ()

    def __post_init__(self):
        object.__setattr__(self, "points", _whole(self.points))
        object.__setattr__(self, "lengths", as_numbers(self.lengths))
        origin = as_numbers(self.origin) if len(self.origin) else (0.0,) * len(self.points)
        object.__setattr__(self, "origin", origin)
        object.__setattr__(self, "layout", tuple(self.layout) or ("left",) * len(self.points))
        if not 1 <= len(self.points) <= 3 or len(self.points) != len(self.lengths):
            raise SplatopError(
                "expected one number of points and one length for each of 1 to 3 axes, "
                f"got points {self.points} and lengths {self.lengths}"
            )
        if any(n < 1 for n in self.points) or any(
            not 0 < length < math.inf for length in self.lengths
        ):
            raise SplatopError(
                f"expected positive points and finite lengths, got {self.points}, {self.lengths}"
            )
        if len(self.origin) != len(self.points) or not np.isfinite(self.origin).all():
            raise SplatopError(
                f"expected one finite coordinate for each of the {len(self.points)} axes to begin "
                f"at, got {self.origin}"
            )
        if len(self.layout) != len(self.points):
            raise SplatopError(
                f"expected one layout of points for each of the {len(self.points)} axes, got "
                f"{', '.join(self.layout)}"
            )
        for name, n in zip(self.layout, self.points, strict=True):
            if name not in LAYOUTS:
                raise unknown_name("layout of points", name, LAYOUTS)
            if name == "ends" and n < 2:
                raise SplatopError(
                    f"expected at least two points on an axis with its ends, got {n}"
                )

    @classmethod
    def unit(cls, points: int, dims: int) -> "Grid":
        """The paper's box: `[0, 1)^dims` with the same number of points along each axis."""
        return cls((points,) * dims, (1.0,) * dims)

    @property
    def dims(self) -> int:
        return len(self.points)

    @property
    def spacing(self) -> tuple[float, ...]:
        return tuple(
            length / (n - (layout == "ends"))
            for n, length, layout in zip(self.points, self.lengths, self.layout, strict=True)
        )

    @property
    def first_point(self) -> tuple[float, ...]:
        """The coordinates of the first point, which is the origin unless points are in cells."""
        return tuple(
            begin + (step / 2 if layout == "cells" else 0.0)
            for begin, step, layout in zip(self.origin, self.spacing, self.layout, strict=True)
        )

    def coordinates(self) -> tuple[np.ndarray, ...]:
        """Physical coordinates of the points, one broadcastable array per axis."""
        return broadcastable(
            [
                begin + np.arange(n) * step
                for begin, n, step in zip(self.first_point, self.points, self.spacing, strict=True)
            ]
        )

    @property
    def places(self) -> np.ndarray:
        """The coordinates of all points, `(n, dims)`, in the order of a state's values."""
        mesh = np.meshgrid(*(along.ravel() for along in self.coordinates()), indexing="ij")
        return np.stack([along.ravel() for along in mesh], axis=1)

    def fractions(self) -> tuple[np.ndarray, ...]:
        """Where the points lie along each axis, as fractions of it."""
        inside = Grid(self.points, (1.0,) * self.dims, layout=self.layout)
        return tuple(along.ravel() for along in inside.coordinates())

    def begins_like(self, origin: tuple[float, ...]) -> bool:
        """Whether the first point lies at `origin`, to a thousandth of the spacing."""
        away = np.subtract(self.origin, origin or (0.0,) * self.dims)
        return bool(np.all(np.abs(away) <= 1e-3 * np.array(self.spacing)))

    def modes(self) -> tuple[np.ndarray, ...]:
        """Integer mode numbers in the layout of `rfftn` (last axis halved), broadcastable."""
        full = [np.fft.fftfreq(n, 1 / n) for n in self.points[:-1]]
        half = np.arange(self.points[-1] // 2 + 1, dtype=float)
        return broadcastable([*full, half])

    def multiplicity(self) -> np.ndarray:
        """How many modes of the full transform each mode of `rfftn` stands for."""
        n = self.points[-1]
        last = np.arange(n // 2 + 1)
        twice = np.where((last == 0) | (2 * last == n), 1.0, 2.0)
        return np.broadcast_to(twice, (*self.points[:-1], len(last))).copy()

    def wavenumbers(self) -> tuple[np.ndarray, ...]:
        """Cycles per unit length, `mode / length`, in the layout of `rfftn`."""
        return tuple(k / length for k, length in zip(self.modes(), self.lengths, strict=True))


def _whole(points: Iterable[Any]) -> tuple[int, ...]:
    try:
        return tuple(operator.index(n) for n in points)
    except TypeError:
        raise SplatopError(f"expected whole numbers of points, got {points}") from None


def broadcastable(axes: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Coordinates along each axis, reshaped so that together they span the grid."""
    dims = len(axes)
    return tuple(a.reshape((1,) * i + (-1,) + (1,) * (dims - 1 - i)) for i, a in enumerate(axes))

"""What a benchmark is: an equation, its numbers, a grid and a protocol."""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..domain import Domain
from ..equation import (
    Equation,
    domain_from_text,
    format_equation,
)
from ..equation.shape_text import parse_shape
from ..errors import SplatopError, unknown_name
from ..grid import Grid
from ..points import points_inside, random_points
from ..spectral import Filter


@dataclass(frozen=True)
class Benchmark:
    """An equation, its coefficients, a grid and a protocol (paper, table 1 and appendix B).

    Times and lengths are nondimensional. `coefficients` are the same for all trajectories;
    `coefficient_ranges` are drawn log-uniformly for each (appendix E), and one of the two is empty.
    Initial conditions are zero-mean Fourier series with `|k_i| <= initial_cutoff`, largest value 1,
    drawn on `initial_points` per axis (`points`, if 0) and the same functions on every grid.
    `text` is the equation as its field writes it, where the terms would print in another form.

    The box is the periodic unit box, unless `boundary` says what holds at its edges; it then has
    the sides `sides` from `corner` on, points that lie as `layout` says, and initial states of the
    domain's lowest harmonics. A `shape` may be cut out of the box; states are then at those of the
    grid's points that lie inside, or at `scattered` random ones, and the reference has so many
    `anchors` across it.
    """

    name: str
    title: str
    equation: Equation
    points: int
    dims: int
    dt: float
    paper_filter: Filter | None = None
    coefficients: Mapping[str, float] = field(default_factory=dict)
    coefficient_ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    paper_anchors: int = 20
    initial_cutoff: int = 5
    initial_points: int = 0
    train_trajectories: int = 256
    train_steps: int = 50
    test_trajectories: int = 30
    test_steps: int = 200
    mean_evolves: bool = False
    boundary: str = ""
    layout: tuple[str, ...] = ()
    sides: tuple[float, ...] = ()
    corner: tuple[float, ...] = ()
    text: str = ""
    shape: str = ""
    scattered: int = 0
    anchors: int = 28

    @functools.cached_property
    def equation_text(self) -> str:
        """The equation as text, which `parse_equation` reads."""
        return self.text or format_equation(self.equation, dims=self.dims)

    @property
    def channels(self) -> int:
        return len(self.equation.fields)

    @property
    def fields(self) -> tuple[str, ...]:
        return self.equation.fields

    @property
    def lengths(self) -> tuple[float, ...]:
        """The paper's box is the unit box."""
        return self.sides or (1.0,) * self.dims

    @property
    def grid(self) -> Any:  # a Grid, or Points
        grid = Grid((self.points,) * self.dims, self.lengths, self.corner, self.layout)
        cut = self.domain.shape
        if cut is None:
            return grid
        if self.scattered:
            return random_points(cut, self.scattered, 0, lengths=grid.lengths, origin=grid.origin)
        return points_inside(cut, grid)

    @property
    def domain(self) -> Domain:
        if not self.boundary:
            return Domain.box(self.lengths)
        low = self.corner or (0.0,) * self.dims
        cut = None
        if self.shape:
            (x, y), (width, height) = low, self.lengths
            cut = parse_shape(self.shape, box=((x, y), (x + width, y + height)))
        return domain_from_text(
            self.boundary, lengths=self.lengths, origin=low, fields=self.fields, shape=cut
        )

    def with_points(self, points: int) -> "Benchmark":
        """The same problem and the same initial conditions on another number of points per axis."""
        smallest = 2 * self.initial_cutoff + 2
        if points < smallest:
            raise SplatopError(
                f"expected at least {smallest} points per axis, which the initial modes up to "
                f"{self.initial_cutoff} need, got {points}: ask for more points"
            )
        return replace(self, points=points, initial_points=self.initial_points or self.points)

    def reduced(self) -> "Benchmark":
        """A size for laptops and tests: 64² or 24³ points, 64 and 8 trajectories."""
        points = {1: self.points, 2: 64, 3: 24}[self.dims]
        return replace(self.with_points(points), train_trajectories=64, test_trajectories=8)

    def size(self, split: str) -> tuple[int, int]:
        """Trajectories and steps of the paper's "train" or "test" split."""
        sizes = {
            "train": (self.train_trajectories, self.train_steps),
            "test": (self.test_trajectories, self.test_steps),
        }
        if split not in sizes:
            raise unknown_name("split", split, sizes)
        return sizes[split]

    def typical_coefficients(self) -> dict[str, float]:
        """The coefficients, or the geometric middle of their ranges."""
        middles = {k: math.sqrt(low * high) for k, (low, high) in self.coefficient_ranges.items()}
        return {**self.coefficients, **middles}

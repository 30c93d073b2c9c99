"""The paper's benchmarks, those between walls and those on shapes, each one value in one table."""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .domain import Domain
from .equation import (
    Advection,
    ConservativeSelfAdvection,
    Diffusion,
    Equation,
    Reaction,
    SelfAdvection,
    domain_from_text,
    format_equation,
    parse_equation,
)
from .equation.shape_text import parse_shape
from .errors import SplatopError, unknown_name
from .grid import Grid
from .points import points_inside, random_points
from .spectral import Filter, SharpFilter, SmoothFilter


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


_ADVECTION_DIFFUSION = Equation((Advection(), Diffusion()))
_BURGERS_FIELDS = ("u_x", "u_y")
# The paper prints c = 4.69e-3: APEBench's difficulty 1.5 over 160 points times 2 dimensions.
_BURGERS_COEFFICIENTS = {"c": 1.5 / 320, "nu": 1e-4}
# pyright takes the abstract `degree` for an argument.
_ALLEN_CAHN = Reaction((0.0, 1.0, 0.0, -1.0))  # pyright: ignore[reportCallIssue]

_TABLE = (
    Benchmark(
        name="advection2d",
        title="2D advection",
        equation=Equation((Advection(),)),
        coefficients={"v": 0.025},
        points=160,
        dims=2,
        dt=1.0,
        paper_filter=SmoothFilter(6.0, 2.0),
    ),
    Benchmark(
        name="advection_diffusion2d",
        title="2D advection-diffusion",
        equation=_ADVECTION_DIFFUSION,
        coefficients={"v": 0.025, "D": 2e-6},
        points=160,
        dims=2,
        dt=1.0,
        paper_filter=SmoothFilter(6.0, 2.0),
    ),
    Benchmark(
        name="burgers2d",
        title="2D Burgers",
        equation=Equation((SelfAdvection(), Diffusion(coefficient="nu")), _BURGERS_FIELDS),
        coefficients=_BURGERS_COEFFICIENTS,
        points=160,
        dims=2,
        dt=1.0,
        paper_filter=SharpFilter(10.0),
    ),
    Benchmark(
        name="advection_allen_cahn2d",
        title="2D advection-Allen-Cahn",
        equation=Equation((Advection(), Diffusion(coefficient="nu"), _ALLEN_CAHN)),
        coefficients={"v": 0.05, "nu": 1e-3, "r": 1.0},
        points=160,
        dims=2,
        dt=0.1,
        paper_filter=SharpFilter(14.0),
        mean_evolves=True,
    ),
    Benchmark(
        name="advection_diffusion3d",
        title="3D advection-diffusion",
        equation=_ADVECTION_DIFFUSION,
        coefficients={"v": 0.0125, "D": 1e-6},
        points=64,
        dims=3,
        dt=1.0,
        paper_filter=SmoothFilter(8.0, 2.0),
    ),
    Benchmark(
        name="unknown_advection_diffusion2d",
        title="2D advection-diffusion, unknown coefficients",
        equation=_ADVECTION_DIFFUSION,
        coefficient_ranges={"v": (0.0125, 0.025), "D": (1e-6, 4e-6)},
        points=160,
        dims=2,
        dt=1.0,
        paper_filter=SharpFilter(7.0),
    ),
    Benchmark(
        name="burgers2d_conservative",
        title="2D Burgers, conservative form",
        equation=Equation(
            (ConservativeSelfAdvection(), Diffusion(coefficient="nu")), _BURGERS_FIELDS
        ),
        text=(
            "dt(u_x) = -c/2*(dx(u_x*u_x) + dy(u_y*u_x)) + nu*lap(u_x); "
            "dt(u_y) = -c/2*(dx(u_x*u_y) + dy(u_y*u_y)) + nu*lap(u_y)"
        ),
        coefficients=_BURGERS_COEFFICIENTS,
        points=160,
        dims=2,
        dt=1.0,
        paper_filter=SharpFilter(10.0),
    ),
)


def _walls(name: str, title: str, text: str, boundary: str, **rest: Any) -> Benchmark:
    """A benchmark between walls. Its equation is what its text says."""
    dims = rest["dims"]
    equation = parse_equation(text, dims=dims)
    corner = rest.get("corner") or (0.0,) * dims
    return Benchmark(
        name=name,
        title=title,
        equation=equation.placed_at(corner),
        text=text,
        boundary=boundary,
        train_trajectories=32,
        test_trajectories=8,
        **rest,
    )


_WALLS = (
    _walls(
        "heat2d_walls",
        "2D heat, two cold and two insulated walls",
        "dt(u) = D*lap(u)",
        "x: u = 0; y: dn(u) = 0",
        coefficients={"D": 1e-3},
        points=64,
        dims=2,
        dt=0.1,
        layout=("ends", "cells"),
    ),
    _walls(
        "burgers1d_walls",
        "1D Burgers between walls",
        "dt(u) = -u*dx(u) + nu*d2x(u)",
        "x: u = 0",
        coefficients={"nu": 0.02},
        points=161,
        dims=1,
        dt=0.01,
        layout=("ends",),
    ),
    _walls(
        "reaction_diffusion2d",
        "2D reaction-diffusion, insulated (PDEBench's FitzHugh-Nagumo)",
        "dt(u) = Du*lap(u) + u - u^3 - k - v; dt(v) = Dv*lap(v) + u - v",
        "all: dn(u) = 0, dn(v) = 0",
        coefficients={"Du": 1e-3, "Dv": 5e-3, "k": 5e-3},
        points=128,
        dims=2,
        dt=0.05,
        layout=("cells", "cells"),
        sides=(2.0, 2.0),
        corner=(-1.0, -1.0),
        mean_evolves=True,
    ),
    _walls(
        "advection_channel2d",
        "2D tracer in a channel: inflow, outflow, two walls",
        "dt(u) = -4*U*y*(1 - y)*dx(u) + D*lap(u)",
        "x0: u = sin(pi*y)^2; x1: dn(u) = 0; y: dn(u) = 0",
        coefficients={"U": 0.5, "D": 5e-3},
        points=96,
        dims=2,
        dt=0.05,
        layout=("ends", "ends"),
        sides=(2.0, 1.0),
        mean_evolves=True,
    ),
    _walls(
        "allen_cahn2d_insulated",
        "2D Allen-Cahn, insulated",
        "dt(u) = nu*lap(u) + r*(u - u^3)",
        "all: dn(u) = 0",
        coefficients={"nu": 1e-3, "r": 1.0},
        points=96,
        dims=2,
        dt=0.1,
        layout=("cells", "cells"),
        mean_evolves=True,
    ),
    _walls(
        "advection_diffusion3d_walls",
        "3D advection-diffusion: a ring in x, walls in y, open in z",
        "dt(u) = -v*dx(u) - w*dz(u) + D*lap(u)",
        "x: periodic; y: u = 0; z0: u = sin(pi*y); z1: dn(u) = 0",
        coefficients={"v": 0.2, "w": 0.2, "D": 2e-3},
        points=40,
        dims=3,
        dt=0.05,
        layout=("left", "ends", "ends"),
        mean_evolves=True,
    ),
)

_AROUND = "((x - 0.6)^2 + (y - 0.5)^2)"  # the square of the distance from the cylinder's axis

_SHAPES = (
    _walls(
        "heat_disk",
        "2D heat in a disk with a cold edge, at 2,000 random points",
        "dt(u) = D*lap(u)",
        "disk1: u = 0",
        shape="disk(0.5, 0.5, 0.4)",
        scattered=2000,
        coefficients={"D": 1e-3},
        points=64,
        dims=2,
        dt=0.1,
        anchors=20,
    ),
    _walls(
        "allen_cahn_lshape",
        "2D reaction-diffusion in an L-shape, insulated",
        "dt(u) = D*lap(u) + r*(u - u^3)",
        "all: dn(u) = 0",
        shape="polygon(0 0, 1 0, 1 0.5, 0.5 0.5, 0.5 1, 0 1)",
        coefficients={"D": 5e-3, "r": 1.0},
        points=49,
        dims=2,
        dt=0.05,
        layout=("ends", "ends"),
        mean_evolves=True,
    ),
    _walls(
        "tracer_cylinder",
        "2D tracer that a potential flow carries around a cylinder",
        f"dt(u) = -U*(1 - 0.0225*((x - 0.6)^2 - (y - 0.5)^2)/{_AROUND}^2)*dx(u) "
        f"+ U*0.045*(x - 0.6)*(y - 0.5)/{_AROUND}^2*dy(u) + D*lap(u)",
        "x0: u = sin(pi*y)^2; x1: dn(u) = 0; y0: dn(u) = 0; y1: dn(u) = 0; disk1: dn(u) = 0",
        shape="box - disk(0.6, 0.5, 0.15)",
        coefficients={"U": 0.5, "D": 1e-2},
        points=64,
        dims=2,
        dt=0.05,
        layout=("ends", "ends"),
        sides=(2.0, 1.0),
        mean_evolves=True,
        anchors=36,
    ),
)

BENCHMARKS: dict[str, Benchmark] = {
    benchmark.name: benchmark for benchmark in (*_TABLE, *_WALLS, *_SHAPES)
}


def get_benchmark(name: str) -> Benchmark:
    if name not in BENCHMARKS:
        if "." in name:
            raise SplatopError(
                f"expected the name of a benchmark, got '{name}', which looks like a file: give it "
                f"as --data {name}"
            )
        raise unknown_name("benchmark", name, BENCHMARKS)
    return BENCHMARKS[name]

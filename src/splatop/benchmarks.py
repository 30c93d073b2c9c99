"""The paper's six benchmarks, each one value in one table."""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .equation import (
    Advection,
    ConservativeSelfAdvection,
    Diffusion,
    Equation,
    Reaction,
    SelfAdvection,
    format_equation,
)
from .errors import SplatopError, unknown_name
from .grid import Grid
from .spectral import Filter, SharpFilter, SmoothFilter


@dataclass(frozen=True)
class Benchmark:
    """An equation, its coefficients, a grid and a protocol (paper, table 1 and appendix B).

    Times and lengths are nondimensional. `coefficients` are the same for all trajectories;
    `coefficient_ranges` are drawn log-uniformly for each (appendix E), and one of the two is empty.
    Initial conditions are zero-mean Fourier series with `|k_i| <= initial_cutoff`, largest value 1,
    drawn on `initial_points` per axis (`points`, if 0) and the same functions on every grid.
    `text` is the equation as its field writes it, where the terms would print in another form.
    """

    name: str
    title: str
    equation: Equation
    points: int
    dims: int
    dt: float
    paper_filter: Filter
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
    text: str = ""

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
        return (1.0,) * self.dims

    @property
    def grid(self) -> Grid:
        return Grid((self.points,) * self.dims, self.lengths)

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
        points = 64 if self.dims == 2 else 24
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

BENCHMARKS: dict[str, Benchmark] = {benchmark.name: benchmark for benchmark in _TABLE}


def get_benchmark(name: str) -> Benchmark:
    if name not in BENCHMARKS:
        raise unknown_name("benchmark", name, BENCHMARKS)
    return BENCHMARKS[name]

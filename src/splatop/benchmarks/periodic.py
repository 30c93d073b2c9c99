"""The paper's benchmarks, on periodic boxes."""

from ..equation import (
    Advection,
    ConservativeSelfAdvection,
    Diffusion,
    Equation,
    Reaction,
    SelfAdvection,
)
from ..spectral import SharpFilter, SmoothFilter
from .benchmark import Benchmark

_ADVECTION_DIFFUSION = Equation((Advection(), Diffusion()))
_BURGERS_FIELDS = ("u_x", "u_y")
# The paper prints c = 4.69e-3: APEBench's difficulty 1.5 over 160 points times 2 dimensions.
_BURGERS_COEFFICIENTS = {"c": 1.5 / 320, "nu": 1e-4}
# pyright takes the abstract `degree` for an argument.
_ALLEN_CAHN = Reaction((0.0, 1.0, 0.0, -1.0))  # pyright: ignore[reportCallIssue]

PERIODIC = (
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

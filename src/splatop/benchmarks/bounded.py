"""Benchmarks between walls and on shapes."""

from typing import Any

from ..equation import (
    parse_equation,
)
from .benchmark import Benchmark


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


WALLS = (
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

SHAPES = (
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

"""Equations to start from, each with a box, numbers and an initial condition that suit it."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .equation import Equation
from .text import parse_equation


@dataclass(frozen=True)
class Example:
    """An equation as text with a setting in which it does what it is known for.

    `initial` names a kind of `splatop.solver.initial_condition`. Lengths and times are in the
    units in which the coefficients are.
    """

    title: str
    text: str
    coefficients: Mapping[str, float]
    lengths: tuple[float, ...]
    points: tuple[int, ...]
    dt: float
    steps: int
    initial: str = "fourier"

    @property
    def dims(self) -> int:
        return len(self.points)

    @property
    def equation(self) -> Equation:
        return parse_equation(self.text, dims=self.dims)


EXAMPLES: Mapping[str, Example] = MappingProxyType(
    {
        "fisher_kpp": Example(
            title="Fisher-KPP: a population that spreads and saturates",
            text="dt(u) = D*lap(u) + r*u*(1 - u)",
            coefficients={"D": 1e-3, "r": 0.5},
            lengths=(1.0, 1.0),
            points=(48, 48),
            dt=0.1,
            steps=50,
            initial="positive",
        ),
        "kuramoto_sivashinsky": Example(
            title="Kuramoto-Sivashinsky: chaotic flame fronts",
            text="dt(u) = -c*u*dx(u) - a*lap(u) - b*bilap(u)",
            coefficients={"c": 1.0, "a": 1.0, "b": 1.0},
            lengths=(60.0,),
            points=(128,),
            dt=0.2,
            steps=100,
        ),
        "kdv": Example(
            title="Korteweg-de Vries: solitons",
            text="dt(u) = -c*u*dx(u) - b*d3x(u)",
            coefficients={"c": 6.0, "b": 1.0},
            lengths=(40.0,),
            points=(128,),
            dt=0.05,
            steps=100,
            initial="solitons",
        ),
        "gray_scott": Example(
            title="Gray-Scott: two chemicals that form patterns",
            text="dt(a) = Da*lap(a) - a*b^2 + F*(1 - a); dt(b) = Db*lap(b) + a*b^2 - (F + k)*b",
            coefficients={"Da": 1.5e-4, "Db": 7.5e-5, "F": 0.03, "k": 0.055},
            lengths=(1.0, 1.0),
            points=(64, 64),
            dt=5.0,
            steps=60,
            initial="seeds",
        ),
        "navier_stokes_vorticity": Example(
            title="Navier-Stokes in 2D: vorticity, with its stream function from Fourier space",
            text="dt(w) = dy(invlap(w))*dx(w) - dx(invlap(w))*dy(w) + nu*lap(w)",
            coefficients={"nu": 1e-4},
            lengths=(1.0, 1.0),
            points=(64, 64),
            dt=0.25,
            steps=60,
        ),
        "burgers": Example(
            title="Viscous Burgers: a velocity that carries itself into fronts",
            text=(
                "dt(u) = -c*dot(vec(u, v), grad(u)) + D*lap(u); "
                "dt(v) = -c*dot(vec(u, v), grad(v)) + D*lap(v)"
            ),
            coefficients={"c": 0.05, "D": 1e-3},
            lengths=(1.0, 1.0),
            points=(64, 64),
            dt=0.1,
            steps=50,
        ),
        "fitzhugh_nagumo": Example(
            title="FitzHugh-Nagumo: excitation and recovery",
            text="dt(u) = D*lap(u) + u - u^3 - w; dt(w) = eps*(u - g*w + s)",
            coefficients={"D": 1e-3, "eps": 0.1, "g": 0.5, "s": 0.1},
            lengths=(1.0, 1.0),
            points=(48, 48),
            dt=0.2,
            steps=60,
        ),
        "variable_advection": Example(
            title="Advection by a velocity that varies in space",
            text=("dt(u) = -v*((1 + sin(2*pi*y)/2)*dx(u) + cos(2*pi*x)/2*dy(u)) + D*lap(u)"),
            coefficients={"v": 0.05, "D": 1e-4},
            lengths=(1.0, 1.0),
            points=(48, 48),
            dt=0.2,
            steps=50,
        ),
    }
)

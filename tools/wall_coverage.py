"""Do intervals between walls hold the truth, and is a wrong equation told? In 1D, from data of other
solvers: an analytic series, and finite volumes with scipy's integrators.

python tools/wall_coverage.py measure [NAME ...]   # into results/walls/coverage/NAME.json
python tools/wall_coverage.py tables               # docs/walls.md from these
"""

import json
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline
from scipy.sparse import diags, kron

from measured import measure_or_tables, write_between
from splatop.data import ArrayTrajectories
from splatop.equation import parse_equation
from splatop.equation.boundary import domain_from_text
from splatop.grid import Grid
from splatop.identify import Identified, identify_trajectories

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results" / "walls" / "coverage"
PAGE = ROOT / "docs" / "walls.md"
BEGIN, END = "<!-- coverage:begin -->", "<!-- coverage:end -->"
DRAWS, FRAMES, NOISES = 20, 41, (0.0, 0.01, 0.05)
CELLS = 960  # of the finite volumes


@dataclass(frozen=True)
class Case:
    """An equation with its truth, one that is wrong, and how the samples lie."""

    text: str
    wrong: str
    boundary: str
    truth: dict[str, float]
    layout: str
    points: int
    length: float
    dt: float
    fields: tuple[str, ...] = ("u",)


CASES = {
    "heat": Case(
        "dt(u) = D*d2x(u)", "dt(u) = -r*u", "x: u = 0", {"D": 0.02}, "ends", 65, 1.0, 0.05
    ),
    "burgers": Case(
        "dt(u) = -c*u*dx(u) + nu*d2x(u)",
        "dt(u) = -c*dx(u) + nu*d2x(u)",
        "x: u = 0",
        {"c": 1.0, "nu": 0.03},
        "ends",
        97,
        2.0,
        0.02,
    ),
    "allen_cahn": Case(
        "dt(u) = D*d2x(u) + r*(u - u^3)",
        "dt(u) = D*d2x(u) + r*(1 - u^2)",
        "x: dn(u) = 0",
        {"D": 0.01, "r": 1.0},
        "cells",
        80,
        2.0,
        0.08,
    ),
    "inflow": Case(
        "dt(u) = -c*dx(u) + D*d2x(u)",
        "dt(u) = -c*dx(u) - D*u",
        "x0: u = 1; x1: dn(u) = 0",
        {"c": 0.7, "D": 0.02},
        "cells",
        96,
        3.0,
        0.03,
    ),
    "fitzhugh_nagumo": Case(
        "dt(u) = Du*d2x(u) + u - u^3 - k - v; dt(v) = Dv*d2x(v) + u - v",
        "dt(u) = Du*d2x(u) + u - k - v; dt(v) = Dv*d2x(v) + u - v",
        "x: dn(u) = 0, dn(v) = 0",
        {"Du": 5e-3, "Dv": 1e-2, "k": 0.05},
        "cells",
        80,
        2.0,
        0.1,
        fields=("u", "v"),
    ),
}


def frames_of(name: str, draw: int) -> tuple[np.ndarray, Grid]:
    """Clean frames `(T, C, N)` of a random start, by another solver."""
    case = CASES[name]
    grid = Grid((case.points,), (case.length,), layout=(case.layout,))
    (x,) = grid.coordinates()
    times = case.dt * np.arange(FRAMES)
    generator = np.random.default_rng((draw, 7))
    if name == "heat":
        n = np.arange(1, 7)
        sizes = generator.standard_normal(6) / n
        decay = np.exp(-case.truth["D"] * np.outer(times, (n * np.pi / case.length) ** 2))
        return (decay * sizes @ np.sin(np.pi * np.outer(n, x) / case.length))[:, None], grid
    h = case.length / CELLS
    middle = h * (np.arange(CELLS) + 0.5)
    k = np.arange(1, 5)
    wave = np.sin if case.boundary == "x: u = 0" else np.cos
    sizes = generator.standard_normal((len(case.fields), 4)) / k
    start = sizes @ wave(np.pi * np.outer(k, middle) / case.length)
    if name == "inflow":  # what is carried in meets what was there
        across = 0.5 * (1 + np.cos(np.pi * middle / case.length))
        start = across + start * np.sin(np.pi * middle / case.length) ** 2
    near = diags([1.0, 1.0, 1.0], [-1, 0, 1], shape=(CELLS, CELLS))
    coupled = kron(np.ones((len(case.fields),) * 2), near)
    found = solve_ivp(
        partial(_rate, name, h),
        (0.0, times[-1]),
        start.ravel(),
        "BDF",
        times,
        rtol=1e-8,
        atol=1e-10,
        jac_sparsity=coupled,
    )
    states = CubicSpline(middle, found.y.T.reshape(FRAMES, -1, CELLS), axis=-1)
    return states(x), grid


def _rate(name: str, h: float, t: float, state: np.ndarray) -> np.ndarray:
    """du/dt by finite volumes of second order, with cells beyond the walls that mirror the field."""
    fields, true = state.reshape(-1, CELLS), CASES[name].truth
    low, high = fields[:, :1], fields[:, -1:]
    if CASES[name].boundary == "x: u = 0":
        low, high = -low, -high
    if name == "inflow":
        low = 2 - low
    wide = np.concatenate([low, fields, high], axis=1)
    second = (wide[:, 2:] - 2 * fields + wide[:, :-2]) / h**2
    first = (wide[:, 2:] - wide[:, :-2]) / (2 * h)
    u = fields[0]
    if name == "burgers":
        return -true["c"] * u * first[0] + true["nu"] * second[0]
    if name == "allen_cahn":
        return true["D"] * second[0] + true["r"] * (u - u**3)
    if name == "inflow":
        return -true["c"] * first[0] + true["D"] * second[0]
    v = fields[1]
    rates = true["Du"] * second[0] + u - u**3 - true["k"] - v, true["Dv"] * second[1] + u - v
    return np.concatenate(rates)


def identified(name: str, draw: int, noise: float, text: str, method: str = "auto") -> Identified:
    case = CASES[name]
    frames, grid = frames_of(name, draw)
    size = frames.std(axis=(0, 2), keepdims=True)
    frames = frames + noise * size * np.random.default_rng(draw).standard_normal(frames.shape)
    data = ArrayTrajectories(frames[None], grid, dt=case.dt, fields=case.fields)
    data.domain = domain_from_text(case.boundary, lengths=grid.lengths, fields=case.fields)
    equation = parse_equation(text, dims=1)
    return identify_trajectories(equation, None, data, frames="all", method=method)[0]


def measure(name: str) -> dict:
    case = CASES[name]
    found: dict = {"draws": DRAWS, "frames": FRAMES}
    for noise in NOISES:
        draws = DRAWS if noise else 2
        rows = []
        for draw in range(draws):
            began = time.perf_counter()
            one = identified(name, draw, noise, case.text)
            wrong = identified(name, draw, noise, case.wrong) if draw < 3 else None
            rows.append(
                {
                    "percent": {k: 100 * e for k, e in one.relative_errors(case.truth).items()},
                    "covered": one.covers(case.truth),
                    "trusted": one.trusted,
                    "method": one.method,
                    "warnings": list(one.warnings),
                    "wrong_trusted": wrong.trusted if wrong else None,
                }
            )
            print(
                name,
                noise,
                draw,
                one.estimates,
                one.trusted,
                f"{time.perf_counter() - began:.1f} s",
            )
        found[f"{noise:g}"] = rows
    return found


def tables() -> None:
    rows = [
        "| case | noise | mean / largest error of a coefficient | covered | trusted | "
        "wrong equation trusted |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    total = {f"{noise:g}": [0, 0] for noise in NOISES}
    for name in CASES:
        path = RESULTS / f"{name}.json"
        if not path.exists():
            continue
        measured = json.loads(path.read_text())
        for noise in total:
            own = measured[noise]
            errors = [e for row in own for e in row["percent"].values()]
            held = [c for row in own for c in row["covered"].values()]
            wrong = [row["wrong_trusted"] for row in own if row["wrong_trusted"] is not None]
            total[noise][0] += sum(held)
            total[noise][1] += len(held)
            rows.append(
                f"| {name} | {100 * float(noise):g} % | {np.mean(errors):.2g} / {max(errors):.2g} % "
                f"| {sum(held)} of {len(held)} | {sum(row['trusted'] for row in own)} of "
                f"{len(own)} | {sum(wrong)} of {len(wrong)} |"
            )
    sums = ", ".join(
        f"{100 * held / count:.0f} % at {100 * float(noise):g} % noise"
        for noise, (held, count) in total.items()
        if count
    )
    intro = (
        f"By `python tools/wall_coverage.py measure`: {FRAMES} frames in 1D from an analytic series "
        "(heat) and from finite volumes with scipy's BDF (the others), random starts, "
        f"{DRAWS} draws of start and noise (2 without). The 95 % intervals hold the truth: {sums}."
    )
    write_between(PAGE, BEGIN, END, f"{intro}\n\n" + "\n".join(rows))


if __name__ == "__main__":
    measure_or_tables(__doc__, {name: partial(measure, name) for name in CASES}, tables, RESULTS)

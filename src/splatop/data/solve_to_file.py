"""Reference trajectories of any equation, streamed into a file."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from .._version import __version__
from ..domain import Domain
from ..equation import Equation, format_equation
from ..errors import SplatopError
from ..grid import Grid
from ..points import Points
from ..solver import solve_trajectories
from .generate import check_trajectory
from .well_writer import Layout, Progress, check_writable_size, writing


def solve_to_file(
    equation: Equation,
    path: str | Path,
    *,
    coefficients: Mapping[str, float],
    grid: Grid | Points,
    dt: float,
    steps: int,
    trajectories: int,
    initial: str = "fourier",
    seed: int = 0,
    domain: Domain | None = None,
    t0: float = 0.0,
    progress: Progress | None = None,
) -> None:
    """Solve from random initial states at the time `t0` and write all frames; the file appears when
    complete."""
    if trajectories < 1 or steps < 1:
        raise SplatopError(
            f"expected at least 1 trajectory of 1 step, got {trajectories} of {steps}"
        )
    shape = (trajectories, steps + 1, len(equation.fields), *grid.points)
    check_trajectory(shape)
    check_writable_size(path, shape)
    layout = Layout(
        shape,
        grid,
        dt,
        equation.fields,
        {name: np.full(trajectories, value) for name, value in coefficients.items()},
        {
            "equation": format_equation(equation, dims=grid.dims),
            "initial": initial if domain is None or domain.all_periodic else "harmonics",
            "seed": seed,
            "splatop_version": __version__,
        },
        domain,
        t0 + dt * np.arange(steps + 1),
    )
    solutions = solve_trajectories(
        equation,
        coefficients,
        grid=grid,
        dt=dt,
        steps=steps,
        trajectories=trajectories,
        initial=initial,
        seed=seed,
        domain=domain,
        t0=t0,
    )
    with writing(path, layout) as write:
        for index, frames in enumerate(solutions):
            write(index, 0, frames)
            if progress:
                progress(index + 1, trajectories)

"""Diffusion between edges of several kinds by py-pde: `python tests/pypde_solutions.py OUT.npz`.

The tests run this in a process of its own, without numba's compiler, which would take longer than
these few steps do. py-pde is a finite-volume code: points are in the middle of cells, and its edges
hold to second order.
"""

import sys

import numpy as np
import pde

STEP, FRAMES = 0.05, 7
BOXES = {  # bounds, cells, periodic, conditions, start
    "walls": ([[0, 1]], [48], [False], {"value": 0}, "x*(1 - x)*(1 + 3*x)"),
    "uneven": (
        [[-1, 1]],
        [40],
        [False],
        {"x-": {"value": 1}, "x+": {"derivative": 0.7}},
        "1 + (x + 1)*(0.7 - 2*(1 - x)) + 0.5*sin(pi*(x + 1))*(1 - x)",
    ),
    "channel": (
        [[-1, 1], [0, 1]],
        [32, 24],
        [False, True],
        {"x-": {"value": 0}, "x+": {"derivative": 0}, "y": "periodic"},
        "(1 + x)*(3 - x)*(1 + 0.5*sin(2*pi*y + x))",
    ),
    "box": (
        [[0, 2], [0, 1], [-0.5, 0.5]],
        [12, 10, 8],
        [False, False, False],
        {"x": {"value": 0}, "y": {"derivative": 0}, "z": {"derivative": 0}},
        "sin(pi*x/2)*(1 + cos(pi*y))*(2 + sin(pi*z)) + sin(pi*x)",
    ),
}


def solution(bounds, cells, periodic, conditions, start):
    """Coordinates of the cells by axis, and frames `(T, *N)`."""
    grid = pde.CartesianGrid(bounds, cells, periodic=periodic)
    state = pde.ScalarField.from_expression(grid, start)
    held = pde.MemoryStorage()
    finest = min((b - a) / n for (a, b), n in zip(bounds, cells, strict=True))
    steps = int(np.ceil(STEP * 0.1 * 2 * len(cells) / (0.9 * finest**2)))
    pde.DiffusionPDE(0.1, bc=conditions).solve(
        state, t_range=STEP * (FRAMES - 1), dt=STEP / steps, tracker=held.tracker(STEP)
    )
    return grid.axes_coords, np.stack(list(held.data))[:FRAMES]


def main(path):
    arrays = {}
    for name, problem in BOXES.items():
        axes, frames = solution(*problem)
        arrays[name] = frames
        arrays |= {f"{name}_{k}": x for k, x in zip("xyz", axes, strict=False)}
    np.savez(path, **arrays)


if __name__ == "__main__":
    main(sys.argv[1])

"""Automatic numerics between walls: as many Gaussians as the data need, and the time steps."""

import jax.numpy as jnp
import numpy as np

from ..domain import Domain
from ..equation import Equation
from ..grid import Grid
from ..numerics import Numerics, build_physics
from ..points import Layout, Points
from ..stepper import Coefficients, of_frames
from ..walls import (
    check_conditions,
    check_flow,
    choose_on_shape,
    choose_sizes,
    resolved_frames,
)
from .substeps import choose_steps
from .tuned import TAIL, Tuned


def choose_between_walls(
    equation: Equation,
    coefficients: Coefficients,
    frames: np.ndarray,
    *,
    domain: Domain,
    layout: Layout,
    dt: float,
    tail: float = TAIL,
) -> Tuned:
    """Numerics for a box with walls and sample frames `(n, C, *N)` of its data."""
    check_conditions(equation, domain)
    check_flow(equation, domain, coefficients)
    total = len(frames)
    if isinstance(layout, Points):
        sizes = choose_on_shape(equation, coefficients, frames, domain=domain, at=layout, tail=tail)
    else:
        grid = Grid(tuple(frames.shape[2:]), domain.lengths, domain.origin, layout)
        good = resolved_frames(equation, coefficients, frames, domain=domain, grid=grid)
        frames, coefficients = frames[good], of_frames(coefficients, np.flatnonzero(good))
        sizes = choose_sizes(equation, coefficients, frames, domain=domain, grid=grid, tail=tail)
    reasons = list(dict.fromkeys(size.reason for size in sizes))
    worst = max(size.left for size in sizes)
    if len(frames) < total:
        reasons.append(
            f"{total - len(frames)} of {total} sample frames were not counted: their grid does not "
            "resolve them, and the physics cannot be right from there on"
        )
    anchors = tuple(size.anchors for size in sizes)
    numerics = Numerics("none", (), 0.0, anchors, 1)

    def build(numerics: Numerics):
        return build_physics(equation, numerics, dt=dt, domain=domain, layout=layout)

    few = np.linspace(0, len(frames) - 1, min(4, len(frames))).astype(int)
    numerics, error, reach, reason = choose_steps(
        build, numerics, jnp.asarray(frames[few]), of_frames(coefficients, few)
    )
    reasons.append(reason)
    return Tuned(numerics, tuple(reasons), anchors, worst, worst, error, reach)

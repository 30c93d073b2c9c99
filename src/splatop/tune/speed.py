"""Points and stride for a wanted speed-up: what a coarse physics alone can do with each."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..coarse import CoarseTrajectories, axis_words, coarse_points
from ..coarse.chaos import horizon, mean_errors
from ..coarse.projection import FEWEST, enough
from ..data import Trajectories
from ..equation import Equation
from ..errors import SplatopError
from ..numerics import build_physics
from ..stepper import Coefficients, at_step, rollout
from .coarse_numerics import Pairs, choose_coarse

STRIDES = (1, 2, 4, 8, 16)
FACTORS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
_PAIRS, _TRAJECTORIES, _STEPS = 12, 4, 100


@dataclass(frozen=True)
class Proposal:
    """A coarse grid and a stride, the speed-up by arithmetic alone (points and steps that are
    computed less), and how well its physics does without any operator: the error of one step in
    standard deviations, and the frames until its rollouts are off by 0.3 of them."""

    factor: int
    stride: int
    points: tuple[int, ...]
    substeps: int
    speed: float
    residual: float
    horizon: int
    frames: int  # that there were to hold

    def __str__(self) -> str:
        held = "all" if self.horizon >= self.frames else str(self.horizon)
        return (
            f"--coarse {self.factor} --stride {self.stride}: {' x '.join(map(str, self.points))} "
            f"points, {self.substeps} substep{'s' if self.substeps > 1 else ''} a step, about "
            f"{self.speed:.3g} times less arithmetic; the physics alone holds for {held} of "
            f"{self.frames} frames and is off by {self.residual:.1e} standard deviations a step"
        )


def propose(
    equation: Equation, coefficients: Coefficients, data: Trajectories, *, speed: float
) -> list[Proposal]:
    """For each stride the finest grid that is `speed` times cheaper than the data's own with one
    frame a step; those that hold longest come first."""
    if not speed >= 1:
        raise SplatopError(f"expected a speed-up of at least 1, got {speed:g}")
    axis_words(data.domain, data.grid.layout)  # refuses what has no coarser grid
    found = [
        proposal
        for stride in STRIDES
        if stride < data.frames - 1
        and (proposal := _finest(equation, coefficients, data, stride, speed)) is not None
    ]
    if not found:
        raise SplatopError(
            f"found no grid of at least {FEWEST} points per axis that is {speed:g} times cheaper "
            f"than {' x '.join(map(str, data.grid.points))}: ask for a smaller speed-up"
        )
    return sorted(found, key=lambda one: (-one.horizon, one.residual))


def _finest(
    equation: Equation, coefficients: Coefficients, data: Trajectories, stride: int, speed: float
) -> Proposal | None:
    words = axis_words(data.domain, data.grid.layout)
    where = {"domain": data.domain, "layout": data.grid.layout}
    for factor in FACTORS:
        if not enough(tuple(n // factor for n in data.grid.points), words) and factor > 1:
            return None
        points = coarse_points(data.grid, factor, words)
        fewer = np.prod(data.grid.points) / np.prod(points)
        if fewer * stride < speed:  # one substep at least
            continue
        seen = CoarseTrajectories(data, points=points, stride=stride)
        tuned = choose_coarse(
            equation,
            coefficients,
            Pairs.spread_over(seen, _PAIRS),
            dt=seen.dt,
            **where,
        )
        gained = float(fewer * stride / tuned.numerics.substeps)
        if gained < speed:
            continue
        physics = build_physics(equation, tuned.numerics, dt=seen.dt, **where)
        steps = min(_STEPS, seen.frames - 1)
        return Proposal(
            factor,
            stride,
            points,
            tuned.numerics.substeps,
            gained,
            tuned.time_error,
            stride * _held(physics, coefficients, seen, steps),
            stride * steps,
        )
    return None


def _held(physics, coefficients: Coefficients, data: Trajectories, steps: int) -> int:
    """Steps until the mean error of rollouts passes a part of the standard deviation."""
    count = min(_TRAJECTORIES, data.trajectories)
    truth = np.stack([data.window(b, 0, steps + 1) for b in range(count)])

    coefficients = {**coefficients, **at_step(data.when(), 0)}

    @eqx.filter_jit
    def roll(starts):
        return jax.vmap(lambda u: rollout(physics, u, coefficients, steps=steps))(starts)

    made = np.asarray(roll(jnp.asarray(truth[:, 0])))
    return horizon(mean_errors(made, truth[:, 1:]), float(truth.std()))

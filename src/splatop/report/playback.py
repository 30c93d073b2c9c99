"""One test trajectory and what each run makes of it, frame by frame, for the player."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..benchmarks import BENCHMARKS
from ..data import Trajectories, open_trajectories
from ..errors import SplatopError
from ..evaluate.coefficients import identified
from ..evaluate.evaluation import check_model_fits
from ..evaluate.on_demand import ReferenceTrajectories, SomeTrajectories
from ..grid import Grid
from ..points import Points
from ..stepper import on_device
from ..training.problem import reported_data
from .evaluated import Entry, EvaluatedRun
from .raster import raster

MOST_FRAMES = 41
# Bytes of all frames in the page before compression, which halves them at least.
FRAME_BUDGET = 3_500_000
# Points along an axis at most: what a panel shows, and what a slice of a volume needs.
MOST_POINTS = {1: 256, 2: 96, 3: 32}


@dataclass(frozen=True)
class PlayedRollout:
    """A run's states at the frames shown, and its error at every step of this trajectory."""

    label: str
    states: np.ndarray  # (F, C, *N) on the data's grid
    rl2: tuple[float | None, ...]  # steps 1, 2, ...; None once it diverged
    coefficients: dict[str, float]
    intervals: dict[str, tuple[float, float]]  # 95 %, of what was identified


@dataclass(frozen=True)
class Playback:
    """The reference and every run's rollout at the same frames."""

    source: str
    trajectory: int
    grid: Grid
    dt: float
    fields: tuple[str, ...]
    steps: tuple[int, ...]  # of the frames shown, from 0
    reference: np.ndarray  # (F, C, *N)
    truth: dict[str, float]  # the coefficients that the data state
    rollouts: tuple[PlayedRollout, ...]

    @property
    def times(self) -> tuple[float, ...]:
        """The time of each shown frame, from the start of the rollout."""
        return tuple(step * self.dt for step in self.steps)


def play(
    entries: Sequence[Entry],
    *,
    data: str | Path | Trajectories | None = None,
    trajectory: int | None = None,
) -> Playback | None:
    """Roll every model out along one test trajectory; None if its data are not to be had.

    Without a choice the trajectory is the first run's median one, so that it is typical.
    """
    first = entries[0].run
    source = _test_data(first, data)
    if source is None and trajectory is not None:
        raise SplatopError(
            f"expected the test data to play trajectory {trajectory} of, which are not where the "
            "run was evaluated: give --data"
        )
    if source is None:
        return None
    # Data that the caller opened are closed by the caller.
    with contextlib.nullcontext() if source is data else source:
        for entry in entries:
            check_model_fits(entry.model, source)
        steps = min(first.metrics.steps, source.frames - 1)
        index = _chosen(first, source, trajectory)
        shown = frame_steps(steps, source, len(entries))
        truth = source.window(index, 0, steps + 1)
        rollouts = [_roll_out(entry, source, index, truth, shown) for entry in entries]
        grid, reference = source.grid, truth[shown]
        if isinstance(grid, Points):
            rastered = raster(grid, source.domain)
            grid, reference = rastered.grid, rastered(reference, outside=0.0)
            rollouts = [replace(r, states=rastered(r.states, outside=np.nan)) for r in rollouts]
        return Playback(
            source=source.source,
            trajectory=index,
            grid=grid,
            dt=source.dt,
            fields=first.model.spec.fields,
            steps=tuple(int(s) for s in shown),
            reference=reference,
            truth=source.trajectory_coefficients(index),
            rollouts=tuple(rollouts),
        )


def _test_data(run: EvaluatedRun, data: str | Path | Trajectories | None) -> Trajectories | None:
    """The data that were asked for, that the metrics were made of, or None."""
    if isinstance(data, Trajectories):
        return data
    if data is not None:
        return open_trajectories(data)
    known: dict[str, Any] = run.metrics.data
    benchmark = BENCHMARKS.get(known.get("benchmark") or run.model.spec.benchmark or "")
    split, seed = known.get("split"), known.get("seed")
    if benchmark is not None and isinstance(split, str) and isinstance(seed, int):
        points = list(known.get("points") or benchmark.grid.points)
        if len(set(points)) == 1:
            return ReferenceTrajectories(
                benchmark,
                split=split,
                trajectories=run.metrics.trajectories,
                steps=run.metrics.steps,
                points=points[0],
                seed=seed,
            )
    return _trained_on(run)


def _trained_on(run: EvaluatedRun) -> Trajectories | None:
    """What the run held out of its own file, or all of that file, if the metrics are of it."""
    problem = run.config.get("problem")
    held = problem if isinstance(problem, dict) else run.config
    path = held.get("data")
    if not isinstance(path, str) or not Path(path).exists():
        return None
    source = run.metrics.data.get("source")
    if Path(path).name == source:
        return open_trajectories(path, **(held.get("reading") or {}))
    reported = reported_data(run.config)
    return reported if reported is not None and reported.source == source else None


def _chosen(run: EvaluatedRun, source: Trajectories, trajectory: int | None) -> int:
    if trajectory is not None:
        if not 0 <= trajectory < source.trajectories:
            raise SplatopError(
                f"expected a trajectory from 0 to {source.trajectories - 1} of {source.source}, "
                f"got {trajectory}"
            )
        return trajectory
    errors = run.metrics.per_trajectory.get("rl2") or []
    held = [np.inf if e is None else float(e) for e in errors][: source.trajectories]
    return int(np.argsort(held, kind="stable")[(len(held) - 1) // 2]) if held else 0


def frame_steps(steps: int, source: Trajectories, models: int) -> np.ndarray:
    """The steps to show: evenly spread, from the first state to the last, as the page can hold."""
    grid = source.grid
    own = (MOST_POINTS[2],) * 2 if isinstance(grid, Points) else grid.points
    points = int(np.prod(shown_points(own)))
    frame = len(source.fields) * points * (1 + models)
    count = int(np.clip(FRAME_BUDGET // frame, 3, MOST_FRAMES))
    return np.unique(np.rint(np.linspace(0, steps, min(count, steps + 1))).astype(int))


def strides(points: tuple[int, ...]) -> tuple[int, ...]:
    """The page holds every k-th point of each axis, so that what is shown was computed."""
    return tuple(-(-n // MOST_POINTS[len(points)]) for n in points)


def shown_points(points: tuple[int, ...]) -> tuple[int, ...]:
    """Points per axis that are left of a grid in the player."""
    return tuple(len(range(0, n, k)) for n, k in zip(points, strides(points), strict=True))


def thinned(states: np.ndarray, points: tuple[int, ...]) -> np.ndarray:
    """The states `(..., *points)` at the points shown."""
    return states[(..., *(slice(None, None, k) for k in strides(points)))]


def _roll_out(
    entry: Entry, source: Trajectories, index: int, truth: np.ndarray, shown: np.ndarray
) -> PlayedRollout:
    model = entry.model.for_data(source.grid)
    found = identified(model, SomeTrajectories(source, [index]))
    own = {name: float(found[0].estimates[name]) for name in model.spec.unknown} if found else {}
    intervals = {name: found[0].intervals[name] for name in own}
    coefficients = model.complete({k: jnp.asarray(v, jnp.float32) for k, v in own.items()})
    coefficients |= on_device(source.signals(index))
    states, errors = [truth[0]], []
    u = jnp.asarray(truth[0])
    for start, end in pairwise(shown):
        when = source.when(int(start), int(end - start) + 1)
        u, relative = _advance(model.stepper, u, truth[start + 1 : end + 1], coefficients, when)
        states.append(np.asarray(u))
        errors += [float(e) if np.isfinite(e) else None for e in np.asarray(relative)]
    diverged = entry.metrics.per_trajectory.get("diverged_step") or []
    lost = diverged[index] if index < len(diverged) else None
    kept = tuple(None if lost is not None and k >= lost else e for k, e in enumerate(errors, 1))
    return PlayedRollout(entry.label, np.stack(states), kept, own, intervals)


@eqx.filter_jit
def _advance(stepper, u, truth, coefficients, when):
    """The states after `truth`'s frames, which are `when` it says, and the relative error at
    each."""

    def step(u, at):
        reference, now = at
        u = stepper(u, {**coefficients, **now})
        return u, jnp.linalg.norm(u - reference) / jnp.linalg.norm(reference)

    return jax.lax.scan(step, u, (truth, when))

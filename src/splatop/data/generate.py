"""Reference trajectories of a benchmark, into memory or streamed into a file."""

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._version import __version__
from ..benchmarks import Benchmark
from ..errors import SplatopError, check_memory, size_text
from ..points import Points
from ..solver import solve_many_on_shape, solve_one_between_walls
from ..stepper import rollout
from .in_memory import GIBIBYTE, ArrayTrajectories
from .reference import draw_coefficients, initial_state, reference_stepper, trajectory_keys
from .well_writer import Layout, Progress, check_writable_size, writing

# Of a trajectory: the solver's, its result, the next one, and the one that is written.
_COPIES = 4


@dataclass(frozen=True)
class _Plan:
    benchmark: Benchmark
    split: str
    trajectories: int
    steps: int
    seed: int
    first: int = 0  # the index of the first trajectory

    @property
    def attributes(self) -> dict[str, object]:
        return {
            "benchmark": self.benchmark.name,
            "split": self.split,
            "seed": self.seed,
            "equation": self.benchmark.equation_text,
            "splatop_version": __version__,
            "exponax_version": version("exponax"),
        }


def generate(
    benchmark: Benchmark,
    *,
    split: str = "train",
    trajectories: int | None = None,
    steps: int | None = None,
    points: int | None = None,
    seed: int = 0,
    first: int = 0,
    progress: Progress | None = None,
) -> ArrayTrajectories:
    """Solve a benchmark for its "train" or "test" trajectories, in memory; sizes that are not given
    are the benchmark's own.

    `first` is the index of the first trajectory. `progress` is called with the trajectories
    done and their total.
    """
    plan = replace(_plan(benchmark, split, trajectories, steps, points, seed), first=first)
    shape = _shape(plan)
    if 4 * math.prod(shape) > 4 * GIBIBYTE:
        raise SplatopError(
            "expected a data set of at most 4 GiB to hold in memory, this one has "
            f"{size_text(4 * math.prod(shape))}: use generate_to_file, or ask for fewer "
            "trajectories or points"
        )
    array = np.empty(shape, np.float32)
    coefficients = _coefficients(plan)
    for index, states in enumerate(_solutions(plan, coefficients)):
        array[index] = states
        if progress:
            progress(index + 1, plan.trajectories)
    made = ArrayTrajectories(
        array,
        plan.benchmark.grid,
        dt=plan.benchmark.dt,
        times=plan.benchmark.dt * np.arange(plan.steps + 1),
        fields=plan.benchmark.fields,
        coefficients=coefficients,
        attributes=plan.attributes,
    )
    made.domain = plan.benchmark.domain
    return made


def generate_to_file(
    benchmark: Benchmark,
    path: str | Path,
    *,
    split: str = "train",
    trajectories: int | None = None,
    steps: int | None = None,
    points: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> None:
    """As `generate`, written trajectory by trajectory; the file appears when it is complete."""
    plan = _plan(benchmark, split, trajectories, steps, points, seed)
    check_trajectory(_shape(plan))
    check_writable_size(path, _shape(plan))
    coefficients = _coefficients(plan)
    layout = Layout(
        _shape(plan),
        plan.benchmark.grid,
        plan.benchmark.dt,
        plan.benchmark.fields,
        coefficients,
        plan.attributes,
        plan.benchmark.domain,
    )
    solutions = _solutions(plan, coefficients)
    # Before there is a file: the first one loads and compiles all that is needed.
    ready = list(itertools.islice(solutions, 1))
    with writing(path, layout) as write:
        for index, states in enumerate(itertools.chain(ready, solutions)):
            write(index, 0, states)
            if progress:
                progress(index + 1, plan.trajectories)


def check_trajectory(shape: tuple[int, ...]) -> None:
    """Refuse trajectories `(B, T, C, *N)` of which memory cannot hold one while it is solved."""
    needed = 4 * _COPIES * math.prod(shape[1:])
    check_memory(needed, "a trajectory", "ask for fewer points or steps")


def _plan(
    benchmark: Benchmark,
    split: str,
    trajectories: int | None,
    steps: int | None,
    points: int | None,
    seed: int,
) -> _Plan:
    default_trajectories, default_steps = benchmark.size(split)
    trajectories = default_trajectories if trajectories is None else trajectories
    steps = default_steps if steps is None else steps
    if trajectories < 1 or steps < 1:
        raise SplatopError(
            f"expected at least 1 trajectory of 1 step, got {trajectories} of {steps}"
        )
    if not 0 <= seed < 2**32:
        raise SplatopError(f"expected a seed from 0 to 2^32 - 1, got {seed}")
    if points is not None:
        benchmark = benchmark.with_points(points)
    return _Plan(benchmark, split, trajectories, steps, seed)


def _shape(plan: _Plan) -> tuple[int, ...]:
    benchmark = plan.benchmark
    return (plan.trajectories, plan.steps + 1, benchmark.channels, *benchmark.grid.points)


def _coefficients(plan: _Plan) -> dict[str, np.ndarray]:
    with jax.enable_x64(False):
        drawn = [
            draw_coefficients(plan.benchmark, _keys(plan, index)[0])
            for index in range(plan.trajectories if plan.benchmark.coefficient_ranges else 1)
        ]
    return {
        name: np.broadcast_to([float(one[name]) for one in drawn], (plan.trajectories,))
        for name in drawn[0]
    }


def _keys(plan: _Plan, index: int):
    return trajectory_keys(plan.seed, plan.split, plan.first + index)


def _solutions(plan: _Plan, coefficients: Mapping[str, np.ndarray]) -> Iterator[np.ndarray]:
    """The states `(T, C, *N)` of each trajectory.

    One trajectory at a time: the bits then depend on its own key alone, never on a batch, and the
    working set stays in cache and below 1 GB for every benchmark. The next one is computed while
    the caller stores this one.
    """
    if plan.benchmark.boundary:
        yield from _between_walls(plan, coefficients)
        return
    stepper = reference_stepper(plan.benchmark)
    fixed = dict(plan.benchmark.coefficients)

    @eqx.filter_jit
    def solve(key, varying):
        u0 = initial_state(plan.benchmark, key)
        states = rollout(stepper, u0, {**fixed, **varying}, steps=plan.steps)
        return jnp.concatenate([u0[None], states])

    def start(index: int) -> jax.Array:
        # The same seed draws other numbers in double precision.
        with jax.enable_x64(False):
            ranges = plan.benchmark.coefficient_ranges
            varying = {name: jnp.asarray(coefficients[name][index]) for name in ranges}
            return solve(_keys(plan, index)[1], varying)

    ahead = start(0)
    for index in range(plan.trajectories):
        states = ahead
        if index + 1 < plan.trajectories:
            ahead = start(index + 1)
        yield np.asarray(states)


def _between_walls(plan: _Plan, coefficients: Mapping[str, np.ndarray]) -> Iterator[np.ndarray]:
    benchmark, times = plan.benchmark, {"dt": plan.benchmark.dt, "steps": plan.steps}
    with jax.enable_x64(False):
        keys = [_keys(plan, index)[1] for index in range(plan.trajectories)]
    place: dict[str, Any] = {"domain": benchmark.domain, **times}
    if isinstance(benchmark.grid, Points):
        place |= {"at": benchmark.grid, "anchors": benchmark.anchors}
        yield from solve_many_on_shape(benchmark.equation, benchmark.coefficients, keys, **place)
        return
    for index, key in enumerate(keys):
        own = {name: float(values[index]) for name, values in coefficients.items()}
        place["grid"] = benchmark.grid
        yield solve_one_between_walls(benchmark.equation, own, key, **place)

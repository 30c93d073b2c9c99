"""A benchmark's split as trajectories that are computed when they are read, one at a time."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._version import __version__
from ..benchmarks import Benchmark
from ..data import Trajectories, reference_stepper
from ..data.generate import check_trajectory, generate
from ..data.reference import draw_coefficients, initial_state, trajectory_keys
from ..errors import SplatopError, check_memory
from ..stepper import rollout


class ReferenceTrajectories(Trajectories):
    """The trajectories that `generate` makes, each solved when it is read; the last one is kept
    in memory."""

    def __init__(
        self,
        benchmark: Benchmark,
        *,
        split: str = "test",
        trajectories: int | None = None,
        steps: int | None = None,
        points: int | None = None,
        seed: int = 0,
    ):
        if points is not None:
            benchmark = benchmark.with_points(points)
        default_trajectories, default_steps = benchmark.size(split)
        self.trajectories = default_trajectories if trajectories is None else trajectories
        steps = default_steps if steps is None else steps
        if self.trajectories < 1 or steps < 1:
            raise SplatopError(
                f"expected at least 1 trajectory of 1 step, got {self.trajectories} of {steps}"
            )
        if not 0 <= seed < 2**32:
            raise SplatopError(f"expected a seed from 0 to 2^32 - 1, got {seed}")
        check_trajectory((1, steps + 1, benchmark.channels, *benchmark.grid.points))
        check_memory(
            8 * self.trajectories * (steps + 1),  # the error at each step is kept
            "the errors of so many trajectories",
            "ask for fewer trajectories or steps",
        )
        self.benchmark, self.split, self.seed = benchmark, split, seed
        self.grid, self.dt, self.fields = benchmark.grid, benchmark.dt, benchmark.fields
        self.frames = steps + 1
        self.times = self.dt * np.arange(self.frames)
        with jax.enable_x64(False):
            drawn = [
                draw_coefficients(benchmark, trajectory_keys(seed, split, index)[0])
                for index in range(self.trajectories)
            ]
        self.coefficients = {
            name: np.array([float(one[name]) for one in drawn]) for name in drawn[0]
        }
        self.attributes = {
            "source": f"{benchmark.name}, {split} split, seed {seed}",
            "benchmark": benchmark.name,
            "split": split,
            "held_out": split == "test",
            "seed": seed,
            "equation": benchmark.equation_text,
            "splatop_version": __version__,
        }
        # Between walls and on shapes the reference is that of `generate`, trajectory by trajectory.
        self._solve = None if benchmark.boundary else _solver(benchmark, steps)
        if benchmark.boundary:
            self.domain = benchmark.domain
        self._held: tuple[int, np.ndarray] | None = None

    def read(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        """Frames `(frames, C, *N)` of a trajectory, solved when it is first asked for."""
        if self._held is None or self._held[0] != trajectory:
            self._held = None  # freed before the next one is made
            if self._solve is None:
                self._held = trajectory, self._generated(trajectory)
                return self._held[1][start : start + frames]
            with jax.enable_x64(False):
                varying = {
                    name: jnp.asarray(self.coefficients[name][trajectory])
                    for name in self.benchmark.coefficient_ranges
                }
                key = trajectory_keys(self.seed, self.split, trajectory)[1]
                self._held = trajectory, np.asarray(self._solve(key, varying))
        return self._held[1][start : start + frames]

    def _generated(self, trajectory: int) -> np.ndarray:
        (states,) = generate(
            self.benchmark,
            split=self.split,
            trajectories=1,
            steps=self.frames - 1,
            seed=self.seed,
            first=trajectory,
        ).array
        return states


def _solver(benchmark: Benchmark, steps: int):
    stepper = reference_stepper(benchmark)
    fixed = dict(benchmark.coefficients)

    @eqx.filter_jit
    def solve(key, varying):
        u0 = initial_state(benchmark, key)
        states = rollout(stepper, u0, {**fixed, **varying}, steps=steps)
        return jnp.concatenate([u0[None], states])

    return solve


class SomeTrajectories(Trajectories):
    """A few trajectories of a data set, in the order of their indices."""

    def __init__(self, whole: Trajectories, indices: Sequence[int]):
        outside = [index for index in indices if not 0 <= index < whole.trajectories]
        if outside or not indices:
            raise SplatopError(
                f"expected trajectories from 0 to {whole.trajectories - 1}, which is what "
                f"{whole.source} has, got {outside[0] if outside else 'none'}"
            )
        self.whole, self.indices = whole, tuple(indices)
        self.grid, self.dt, self.fields = whole.grid, whole.dt, whole.fields
        self.trajectories, self.frames = len(self.indices), whole.frames
        self.coefficients = {
            name: values[list(indices)] for name, values in whole.coefficients.items()
        }
        self.attributes, self.domain, self.times = whole.attributes, whole.domain, whole.times
        self.inputs = whole.inputs

    def read(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        """Frames `(frames, C, *N)` of one of the chosen trajectories."""
        return self.whole.read(self.indices[trajectory], start, frames)

    @property
    def observed(self) -> Trajectories:
        """The same few of the data as they were observed."""
        whole = self.whole.observed
        return self if whole is self.whole else SomeTrajectories(whole, self.indices)

    def signals(self, trajectory: int, start: int = 0, frames: int | None = None) -> dict[str, Any]:
        """The inputs of a window of one of the chosen trajectories."""
        return self.whole.signals(self.indices[trajectory], start, frames)

    def close(self) -> None:
        """Close the data set that they are part of."""
        self.whole.close()

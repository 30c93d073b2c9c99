"""The data of a problem, made or read: where training, deciding and reporting take frames from."""

import abc
import math
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..benchmarks import Benchmark
from ..data import (
    Split,
    Trajectories,
    frames_at,
    generate,
    generate_to_file,
    open_trajectories,
    part,
    roughest_pairs,
    spread_pairs,
)
from ..domain import Domain
from ..equation import Equation
from ..stepper import Coefficients
from ..tune import Tuned, choose_numerics
from .coarsened import coarsened, highest_mode
from .settings import FULL, Settings

# Data sets beyond this are written to disk and read window by window.
IN_MEMORY = 4 * 2**30
# The name that they begin with there.
SCRATCH = ".splatop-train"
# Dense enough in time: fronts steepen and fade again, and the steepest decides the band.
SAMPLED_MOMENTS = 13
# Of a user's data, the roughest frames of all as well.
ROUGHEST = 4
# Trajectories of a benchmark beyond those of training, to decide on the operator and to report on.
HELD_OUT_GENERATED = 3
# As many trajectories at most decide on the operator.
MOST_DECIDING = 4
# Rounding moves the mean of float32 states by 1e-6 of their size; evolution by far more.
MEAN_MOVES = 1e-4
_COARSEST = 3


class Loaded(abc.ABC):
    """The problem with its data at hand: `known` coefficients, `unknown` ones, and trajectories."""

    equation: Equation
    equation_text: str
    terms: Any = None  # the equation's description, where its terms have no text
    known: Mapping[str, float]
    unknown: tuple[str, ...]
    benchmark: str | None
    grid: Any  # a Grid, or Points
    domain: Domain
    dt: float
    size: tuple[int, int]  # trajectories that are trained on, and frames of each
    inputs: tuple[str, ...] = ()  # known fields that drive the others
    intervals: np.ndarray | None = None  # between frames, where they are uneven
    in_time: bool  # whether held-out data are later frames of the training trajectories themselves
    decides_on_reported: bool  # whether there are too few data to decide on others

    coarse: tuple[int, ...] = ()  # points per axis of a coarse model's grid
    reasons: tuple[str, ...] = ()  # what to say of the data's grid, beside the numerics' own

    def tuned(self, equation: Equation, coefficients: Coefficients, frames: np.ndarray) -> Tuned:
        """Numerics for what is known of the equation, by frames `(n, C, *N)` of the data."""
        return choose_numerics(
            equation,
            coefficients,
            frames,
            lengths=self.grid.lengths,
            dt=self.dt,
            domain=self.domain,
            layout=self.grid.layout,
        )

    def keeps_mean(self) -> bool:
        """Whether the mean of every field stays what it is in each trajectory."""
        if not self.domain.all_periodic:
            return False
        data = self.at(FULL)
        for b in np.linspace(0, data.trajectories - 1, min(4, data.trajectories)).astype(int):
            frames = data.window(int(b), 0, data.frames).astype(float)
            space = tuple(range(2, frames.ndim))
            means = frames.mean(axis=space)
            if np.abs(means - means[0]).max() > MEAN_MOVES * max(frames.std(), 1e-30):
                return False
        return True

    @property
    def given_grid(self) -> Any:
        """The grid of the data that the model was given."""
        return self.grid

    @abc.abstractmethod
    def deciding(self, points: int) -> Trajectories:
        """What decides whether an operator is kept, on the grid of `points`."""

    @abc.abstractmethod
    def reported(self) -> Trajectories:
        """What the model is reported on; its attribute `held_out` says whether training saw it."""

    @abc.abstractmethod
    def at(self, points: int) -> Trajectories:
        """The training data on a coarser grid, about `points` per axis (0: the data's own)."""

    @abc.abstractmethod
    def points_at(self, points: int) -> tuple[int, ...]:
        """The points per axis of that grid."""

    def observed(self, points: int) -> Trajectories:
        """What unknown coefficients are identified from: the training data about as `at` has them,
        and of a coarse problem the fine ones."""
        return self.at(points)

    @abc.abstractmethod
    def store(self, points: int) -> None:
        """Write the data of a grid to disk if they do not fit memory, for all processes."""

    @abc.abstractmethod
    def sample(self) -> tuple[np.ndarray, dict[str, Any]]:
        """Frames `(n, C, *N)` of the data's own grid, from all of the training data, also where
        settings train on a part of them; and the time `t` of each and what its inputs are, where
        they are known."""

    def sample_frames(self) -> np.ndarray:
        return self.sample()[0]


class GeneratedProblem(Loaded):
    """A benchmark: the reference solver makes the data of each grid when it is asked for."""

    def __init__(self, benchmark: Benchmark, settings: Settings, scratch: Path):
        if settings.points is not None:
            benchmark = benchmark.with_points(settings.points)
        self._benchmark, self._settings, self._scratch = benchmark, settings, scratch
        self.equation, self.equation_text = benchmark.equation, benchmark.equation_text
        self.known = dict(benchmark.coefficients)
        self.unknown = tuple(benchmark.coefficient_ranges)
        self.benchmark = benchmark.name
        self.grid, self.dt, self.domain = benchmark.grid, benchmark.dt, benchmark.domain
        count, steps = self._size(self._points(settings.phases[0][0]))
        self.size = count, steps + 1
        self.in_time = self.decides_on_reported = False
        self._latest: tuple[int, Trajectories] | None = None

    def deciding(self, points: int) -> Trajectories:
        return self._beyond(self._points(points), 0, "held out to decide on the operator")

    def reported(self) -> Trajectories:
        return self._reported

    @cached_property
    def _reported(self) -> Trajectories:
        return self._beyond(self._benchmark.points, HELD_OUT_GENERATED, "held out")

    def _beyond(self, points: int, first: int, why: str) -> Trajectories:
        """Trajectories of the training split that no phase of the training draws."""
        count, frames = self.size
        held = generate(
            self._benchmark,
            split="train",
            trajectories=HELD_OUT_GENERATED,
            steps=frames - 1,
            points=points,
            seed=self._settings.seed_of_data,
            first=count + first,
        )
        which = f"{HELD_OUT_GENERATED} trajectories beyond those of training"
        return part(held, which=which, why=why, held_out=True)

    def at(self, points: int) -> Trajectories:
        if self._latest is None or self._latest[0] != points:
            self._latest = (points, self._generate(points))
        return self._latest[1]

    def store(self, points: int) -> None:
        if not self._fits_memory(self._points(points)):
            self.at(points)

    def _points(self, points: int) -> int:
        return points if points and points < self._benchmark.points else self._benchmark.points

    def points_at(self, points: int) -> tuple[int, ...]:
        return (self._points(points),) * self._benchmark.dims

    def _size(self, points: int) -> tuple[int, int]:
        """Trajectories and steps of a grid's data.

        A later phase gets no more trajectories than its windows can come from: solving all of them
        again on a fine grid for a short finish would take longer than the training.
        """
        count, steps = self._benchmark.size("train")
        count = self._settings.trajectories or count
        steps = self._settings.data_steps or steps
        first, *later = self._settings.phases
        if points != self._points(first[0]):
            windows = self._settings.batch * sum(n for p, n in later if self._points(p) == points)
            each = max(1, steps + 1 - self._settings.horizon)
            count = min(count, max(8, 2 * math.ceil(windows / each)))
        return count, steps

    def _fits_memory(self, points: int) -> bool:
        count, steps = self._size(points)
        frame = len(self._benchmark.fields) * points**self._benchmark.dims
        return 4 * count * (steps + 1) * frame <= IN_MEMORY

    def _generate(self, points: int) -> Trajectories:
        points = self._points(points)
        count, steps = self._size(points)
        sizes: dict[str, Any] = {
            "trajectories": count,
            "steps": steps,
            "points": points,
            "seed": self._settings.seed_of_data,
        }
        if self._fits_memory(points):
            return generate(self._benchmark, split="train", **sizes)
        path = self._scratch / f"{SCRATCH}-{points}.h5"
        if not path.exists():
            self._scratch.mkdir(parents=True, exist_ok=True)
            generate_to_file(self._benchmark, path, split="train", **sizes)
        return open_trajectories(path)

    def sample(self) -> tuple[np.ndarray, dict[str, Any]]:
        count = min(4, self._settings.trajectories or 4)
        sample = generate(
            self._benchmark,
            split="train",
            trajectories=count,
            seed=self._settings.seed_of_data,
        )
        pairs = spread_pairs(sample, SAMPLED_MOMENTS)
        return frames_at(sample, pairs), sample.moments(pairs)


class FileProblem(Loaded):
    """A user's data with the equation they wrote."""

    def __init__(
        self,
        equation: Equation,
        text: str,
        known: Mapping[str, float],
        parts: Split,
        settings: Settings,
        terms: Any = None,
    ):
        self.equation, self.equation_text, self.known = equation, text, dict(known)
        self.terms = terms
        self.unknown = tuple(name for name in equation.coefficient_names if name not in known)
        self.benchmark = None
        self.grid, self.dt = parts.training.grid, parts.training.dt
        self.domain = parts.training.domain
        self.in_time, self.decides_on_reported = parts.in_time, parts.validation is None
        self._parts, self.inputs = parts, parts.training.inputs
        if not parts.training.even:
            assert parts.training.times is not None
            self.intervals = np.diff(parts.training.times)
        self._whole = _cut(parts.training, settings.trajectories, None)
        self._data = _cut(self._whole, None, settings.data_steps)
        self.size = self._data.trajectories, self._data.frames

    def at(self, points: int) -> Trajectories:
        return self._on(self._data, points)

    def observed(self, points: int) -> Trajectories:
        """All frames: the first ones, which settings may train on, often tell least."""
        return self._on(self._whole, points)

    def deciding(self, points: int) -> Trajectories:
        return self._on(self._parts.deciding, points, most=MOST_DECIDING)

    def reported(self) -> Trajectories:
        return self._parts.reported

    def _on(self, data: Trajectories, points: int, *, most: int | None = None) -> Trajectories:
        there = self.points_at(points)
        return data if there == self.grid.points else coarsened(data, there, most=most)

    def points_at(self, points: int) -> tuple[int, ...]:
        """No axis gets coarser than what holds the data, and none where little would be saved."""
        own = self.grid.points
        if points == FULL or points >= max(own) or self.grid.dims == 1:
            return own
        if not self.domain.all_periodic:  # samples between walls are not carried to other grids
            return own
        least = [max(points, _COARSEST * (band + 1)) for band in self._band]
        coarse = tuple(min(n, m + m % 2) for n, m in zip(own, least, strict=True))
        return coarse if 2 * math.prod(coarse) <= math.prod(own) else own

    @cached_property
    def _band(self) -> tuple[int, ...]:
        frames = self.sample_frames()
        energy = np.abs(np.fft.fftn(frames, axes=range(2, frames.ndim))) ** 2
        return tuple(
            highest_mode(energy.sum(axis=tuple(a for a in range(energy.ndim) if a != axis)))
            for axis in range(2, energy.ndim)
        )

    def store(self, points: int) -> None:
        pass  # all processes read the user's file

    def sample(self) -> tuple[np.ndarray, dict[str, Any]]:
        data = self._parts.training
        pairs = np.concatenate(
            [spread_pairs(data, SAMPLED_MOMENTS), roughest_pairs(data, ROUGHEST)]
        )
        return frames_at(data, pairs), data.moments(pairs)


def _cut(data: Trajectories, trajectories: int | None, steps: int | None) -> Trajectories:
    """The first trajectories, and the first steps of them, where settings ask for fewer."""
    count = min(trajectories or data.trajectories, data.trajectories)
    frames = min((steps or data.frames) + 1, data.frames)
    if (count, frames) == (data.trajectories, data.frames):
        return data
    which = f"{count} trajectories of {frames} frames"
    return part(data, slice(0, count), slice(0, frames), which=which, held_out=False)

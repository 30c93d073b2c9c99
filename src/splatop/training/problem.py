"""What is to be learned: an equation, what is known of it, and where its data come from."""

import abc
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..benchmarks import Benchmark, get_benchmark
from ..data import (
    ArrayTrajectories,
    Trajectories,
    generate,
    generate_to_file,
    in_memory,
    open_trajectories,
)
from ..equation import Equation, parse_equation
from ..errors import SplatopError
from ..grid import Grid
from ..spectral import resample
from .settings import FULL, Settings

# Data sets beyond this are written to disk and read window by window.
IN_MEMORY = 4 * 2**30
# The name that they begin with there.
SCRATCH = ".splatop-train"


@dataclass(frozen=True)
class Problem:
    """A benchmark by name, or a data file with an equation as text, in a form JSON can hold."""

    benchmark: str | None = None
    data: str | None = None
    equation_text: str | None = None
    coefficients: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self):
        if (self.benchmark is None) == (self.data is None):
            raise SplatopError(
                "expected either a benchmark or a data file to train on, "
                f"got {self.benchmark!r} and {self.data!r}"
            )
        if self.data is not None and self.equation_text is None:
            raise SplatopError(
                "expected an equation for the data file: give --equation, for example "
                '"dt(u) = D*lap(u)"'
            )

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def load(self, settings: Settings, scratch: Path) -> "Loaded":
        """Make the training data available; what does not fit memory goes to `scratch`."""
        if self.benchmark is not None:
            return GeneratedProblem(get_benchmark(self.benchmark), settings, scratch)
        assert self.data is not None
        return _load_file(self, open_trajectories(self.data), settings)


class Loaded(abc.ABC):
    """The problem with its data at hand: `known` coefficients, `unknown` ones, and trajectories."""

    equation: Equation
    equation_text: str
    known: Mapping[str, float]
    unknown: tuple[str, ...]
    benchmark: str | None
    grid: Grid
    dt: float

    @abc.abstractmethod
    def at(self, points: int) -> Trajectories:
        """The training data on a grid of `points` along its first axis (0: the data's own)."""

    @abc.abstractmethod
    def store(self, points: int) -> None:
        """Write the data of a grid to disk if they do not fit memory, for all processes."""

    @abc.abstractmethod
    def sample_frames(self) -> np.ndarray:
        """Frames `(n, C, *N)` of the data's own grid, spread over trajectories and time."""


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
        self.grid, self.dt = benchmark.grid, benchmark.dt
        self._latest: tuple[int, Trajectories] | None = None

    def at(self, points: int) -> Trajectories:
        if self._latest is None or self._latest[0] != points:
            self._latest = (points, self._generate(points))
        return self._latest[1]

    def store(self, points: int) -> None:
        if not self._fits_memory(self._points(points)):
            self.at(points)

    def _points(self, points: int) -> int:
        return points if points and points < self._benchmark.points else self._benchmark.points

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
            "seed": self._settings.seed,
        }
        if self._fits_memory(points):
            return generate(self._benchmark, split="train", **sizes)
        path = self._scratch / f"{SCRATCH}-{points}.h5"
        if not path.exists():
            self._scratch.mkdir(parents=True, exist_ok=True)
            generate_to_file(self._benchmark, path, split="train", **sizes)
        return open_trajectories(path)

    def sample_frames(self) -> np.ndarray:
        count = min(4, self._settings.trajectories or 4)
        sample = generate(
            self._benchmark,
            split="train",
            trajectories=count,
            steps=self._settings.data_steps,
            seed=self._settings.seed,
        )
        return spread_frames(sample)


class FileProblem(Loaded):
    """A user's data with the equation they wrote."""

    def __init__(
        self, equation: Equation, text: str, known: Mapping[str, float], data: Trajectories
    ):
        self.equation, self.equation_text, self.known = equation, text, dict(known)
        self.unknown = tuple(name for name in equation.coefficient_names if name not in known)
        self.benchmark = None
        self.grid, self.dt = data.grid, data.dt
        self._data = data

    def at(self, points: int) -> Trajectories:
        own = self.grid.points
        if points == FULL or points >= own[0]:
            return self._data
        return coarsened(self._data, tuple(max(4, round(n * points / own[0] / 2) * 2) for n in own))

    def store(self, points: int) -> None:
        pass  # a file is where it is

    def sample_frames(self) -> np.ndarray:
        return spread_frames(self._data)


def spread_frames(data: Trajectories, moments: int = 13) -> np.ndarray:
    """Frames spread over trajectories and time, first and last ones included.

    Densely in time: fronts steepen and fade again, and the steepest decides which band is needed.
    """
    which = np.linspace(0, data.trajectories - 1, min(4, data.trajectories)).astype(int)
    times = np.linspace(0, data.frames - 1, min(moments, data.frames)).astype(int)
    return np.stack([data.window(int(b), int(t), 1)[0] for b in which for t in times])


def _load_file(problem: Problem, data: Trajectories, settings: Settings) -> FileProblem:
    assert problem.equation_text is not None
    equation = parse_equation(problem.equation_text, dims=data.grid.dims)
    if set(equation.fields) != set(data.fields):
        raise SplatopError(
            f"expected an equation for the fields {', '.join(data.fields)} of "
            f"'{problem.data}', got one for {', '.join(equation.fields)}: name them alike"
        )
    if equation.fields != data.fields:
        raise SplatopError(
            f"expected the equation's fields in the order of the file, {', '.join(data.fields)}, "
            f"got {', '.join(equation.fields)}: write the dt(...) statements in that order"
        )
    names = equation.coefficient_names
    stray = [name for name in problem.coefficients if name not in names]
    if stray:
        raise SplatopError(
            f"the equation has no coefficient {', '.join(stray)}: it has {', '.join(names)}"
        )
    if settings.trajectories is not None or settings.data_steps is not None:
        data = _cut(data, settings.trajectories, settings.data_steps)
    return FileProblem(equation, problem.equation_text, problem.coefficients, in_memory(data))


def _cut(data: Trajectories, trajectories: int | None, steps: int | None) -> ArrayTrajectories:
    count = min(trajectories or data.trajectories, data.trajectories)
    frames = min((steps or data.frames) + 1, data.frames)
    array = np.stack([data.window(b, 0, frames) for b in range(count)])
    return ArrayTrajectories(
        array,
        data.grid,
        dt=data.dt,
        fields=data.fields,
        coefficients={name: values[:count] for name, values in data.coefficients.items()},
        attributes=data.attributes,
    )


def coarsened(data: Trajectories, points: tuple[int, ...]) -> ArrayTrajectories:
    """Band-limited copies of all frames on a coarser grid, in memory."""
    array = np.empty((data.trajectories, data.frames, len(data.fields), *points), np.float32)
    for b in range(data.trajectories):
        frames = jnp.asarray(data.window(b, 0, data.frames))
        flat = resample(frames.reshape(-1, *frames.shape[2:]), points)
        array[b] = np.asarray(flat).reshape(array.shape[1:])
    return ArrayTrajectories(
        array,
        Grid(points, data.grid.lengths),
        dt=data.dt,
        fields=data.fields,
        coefficients=data.coefficients,
        attributes=data.attributes,
    )

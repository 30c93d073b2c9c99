"""What is to be learned: an equation, what is known of it, and where its data come from."""

import abc
import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
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
    spread_frames,
)
from ..equation import Equation, parse_equation, split_coefficients
from ..errors import SplatopError
from ..grid import Grid
from ..spectral import resample
from .settings import FULL, Settings

# Data sets beyond this are written to disk and read window by window.
IN_MEMORY = 4 * 2**30
# The name that they begin with there.
SCRATCH = ".splatop-train"
# Dense enough in time: fronts steepen and fade again, and the steepest decides the band.
SAMPLED_MOMENTS = 13
# A coarse grid for a user's data keeps all but this part of its amplitude, and this many points
# per kept mode: two to hold it, a third for its products.
_COARSE_TAIL = 1e-4
_COARSEST = 3


@dataclass(frozen=True)
class Problem:
    """A benchmark by name, or data with an equation as text.

    `data` is a file, or trajectories that are at hand already.
    """

    benchmark: str | None = None
    data: str | Trajectories | None = None
    equation_text: str | None = None
    coefficients: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self):
        if (self.benchmark is None) == (self.data is None):
            raise SplatopError(
                "expected either a benchmark or a data file to train on, "
                f"got {self.benchmark or 'no benchmark'} and {_named(self.data) or 'no data'}"
            )
        if self.data is not None and self.equation_text is None:
            raise SplatopError(
                "expected an equation for the data file: give --equation, for example "
                '"dt(u) = D*lap(u)"'
            )

    def as_dict(self) -> dict[str, Any]:
        """In a form that JSON can hold; trajectories are told by their shape and a checksum."""
        return {
            "benchmark": self.benchmark,
            "data": _named(self.data),
            "equation_text": self.equation_text,
            "coefficients": dict(self.coefficients),
        }

    def load(self, settings: Settings, scratch: Path) -> "Loaded":
        """Make the training data available; what does not fit memory goes to `scratch`."""
        if self.benchmark is not None:
            return GeneratedProblem(get_benchmark(self.benchmark), settings, scratch)
        assert self.data is not None
        data = open_trajectories(self.data) if isinstance(self.data, str) else self.data
        return _load_data(self, data, settings)


def _named(data: str | Trajectories | None) -> str | None:
    if data is None or isinstance(data, str):
        return data
    digest = hashlib.sha256(str((data.dt, data.fields, data.grid)).encode())
    if isinstance(data, ArrayTrajectories):
        digest.update(np.ascontiguousarray(data.array).data)
    return f"{data.source} of shape {data.shape}, sha256 {digest.hexdigest()[:16]}"


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
        """The training data on a coarser grid, about `points` per axis (0: the data's own)."""

    @abc.abstractmethod
    def points_at(self, points: int) -> tuple[int, ...]:
        """The points per axis of that grid."""

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

    def sample_frames(self) -> np.ndarray:
        count = min(4, self._settings.trajectories or 4)
        sample = generate(
            self._benchmark,
            split="train",
            trajectories=count,
            steps=self._settings.data_steps,
            seed=self._settings.seed_of_data,
        )
        return spread_frames(sample, SAMPLED_MOMENTS)


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
        points_there = self.points_at(points)
        if points_there == self.grid.points:
            return self._data
        return coarsened(self._data, points_there)

    def points_at(self, points: int) -> tuple[int, ...]:
        """No axis gets coarser than what holds the data, and none where little would be saved."""
        own = self.grid.points
        if points == FULL or points >= max(own) or self.grid.dims == 1:
            return own
        least = [max(points, _COARSEST * (band + 1)) for band in self._band]
        coarse = tuple(min(n, m + m % 2) for n, m in zip(own, least, strict=True))
        return coarse if 2 * math.prod(coarse) <= math.prod(own) else own

    @cached_property
    def _band(self) -> tuple[int, ...]:
        frames = spread_frames(self._data, SAMPLED_MOMENTS)
        energy = np.abs(np.fft.fftn(frames, axes=range(2, frames.ndim))) ** 2
        return tuple(
            _highest_mode(energy.sum(axis=tuple(a for a in range(energy.ndim) if a != axis)))
            for axis in range(2, energy.ndim)
        )

    def store(self, points: int) -> None:
        pass  # a file is where it is

    def sample_frames(self) -> np.ndarray:
        return spread_frames(self._data, SAMPLED_MOMENTS)


def _highest_mode(energy: np.ndarray) -> int:
    """The mode along one axis up to which all but `_COARSE_TAIL` of the amplitude lies."""
    modes = np.abs(np.fft.fftfreq(len(energy), 1 / len(energy)))
    allowed = _COARSE_TAIL**2 * energy.sum()
    return next(b for b in range(len(energy)) if energy[modes > b].sum() <= allowed)


def _load_data(problem: Problem, data: Trajectories, settings: Settings) -> FileProblem:
    assert problem.equation_text is not None
    equation = parse_equation(problem.equation_text, dims=data.grid.dims, fields=data.fields)
    known, _ = split_coefficients(equation, problem.coefficients)
    if data.frames <= settings.horizon and settings.model != "physics":
        raise SplatopError(
            f"expected trajectories of more than {settings.horizon} frames, which is what the "
            f"rollouts of training need, got {data.frames} in {data.source}: give longer ones, "
            f"or set horizon={max(1, data.frames - 1)}"
        )
    if settings.trajectories is not None or settings.data_steps is not None:
        data = _cut(data, settings.trajectories, settings.data_steps)
    equation = equation.placed_at(data.grid.origin)
    return FileProblem(equation, problem.equation_text, known, in_memory(data))


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
        replace(data.grid, points=points),
        dt=data.dt,
        fields=data.fields,
        coefficients=data.coefficients,
        attributes=data.attributes,
    )

"""A problem seen by a coarse model: its data projected to fewer points, and fewer frames."""

from functools import cached_property

import jax.numpy as jnp
import numpy as np

from ..coarse import (
    CoarseTrajectories,
    axis_words,
    coarse_points,
    expand,
    truncated_frames,
)
from ..coarse.projection import check_stride
from ..data import Trajectories, in_memory
from ..equation import Equation
from ..errors import SplatopError
from ..grid import Grid
from ..stepper import Coefficients, of_frames
from ..tune import Pairs, Tuned, choose_coarse
from .loaded import Loaded
from .settings import FULL, Settings

# States from which a step of the physics is compared with the data.
SAMPLED_PAIRS = 16
# What a coarse grid leaves out beyond this part of the amplitude is said to be lost.
LOST_AMPLITUDE = 0.01


class CoarseProblem(Loaded):
    """The problem `fine` on fewer points and with every `stride`-th of its frames.

    Coefficients are identified from the fine data, and the model is reported on the fine grid,
    unless it answers on its own.
    """

    def __init__(self, fine: Loaded, settings: Settings):
        self._words = () if settings.coarse is None else axis_words(fine.domain, fine.grid.layout)
        if self._words and settings.refine:
            raise SplatopError(
                "expected a periodic box to guess the small scales of, got walls: leave out refine"
            )
        self.fine, self.stride = fine, settings.stride
        self.answers = settings.answers
        self.equation, self.equation_text, self.terms = (
            fine.equation,
            fine.equation_text,
            fine.terms,
        )
        self.known, self.unknown, self.benchmark = fine.known, fine.unknown, fine.benchmark
        self.domain, self.in_time = fine.domain, fine.in_time
        self.decides_on_reported = fine.decides_on_reported
        self._points = (
            None
            if settings.coarse is None
            else coarse_points(fine.grid, settings.coarse, self._words)
        )
        held = self._seen(fine.at(FULL))
        self._training = in_memory(held)
        self.grid, self.dt = held.grid, held.dt
        self.size = held.trajectories, held.frames
        self.coarse, self.reasons = self._points or (), self._reasons()

    def _reasons(self) -> tuple[str, ...]:
        said = f"one step takes {self.stride} frame{'s' if self.stride > 1 else ''} of the data"
        if self._points is None:
            return (f"coarse: {said}",)
        fine, coarse = self.fine.sample_frames(), self.sample_frames()
        there = [expand(jnp.asarray(frame), self.fine.grid.points, self._words) for frame in coarse]
        about = fine - fine.mean(axis=(0, *range(2, fine.ndim)), keepdims=True)
        lost = float(np.sqrt(np.mean((np.stack(there) - fine) ** 2) / np.mean(about**2)))
        sizes = [" x ".join(map(str, n)) for n in (self._points, self.fine.grid.points)]
        warning = "; the rest is lost to this model" if lost > LOST_AMPLITUDE else ""
        return (
            f"coarse: {sizes[0]} of {sizes[1]} points hold all but {lost:.1e} of the amplitude"
            f"{warning}; {said}",
        )

    def tuned(self, equation: Equation, coefficients: Coefficients, frames: np.ndarray) -> Tuned:
        if self._points is None:
            return super().tuned(equation, coefficients, frames)
        return choose_coarse(
            equation,
            of_frames(coefficients, 0),
            Pairs.spread_over(self._training, SAMPLED_PAIRS),
            domain=self.domain,
            layout=self.grid.layout,
            dt=self.dt,
        )

    def _seen(self, data: Trajectories, *, projected: bool = True) -> Trajectories:
        check_stride(self.stride, data)
        points = self._points if projected else None
        seen = CoarseTrajectories(data, points=points, stride=self.stride)
        seen.attributes = dict(data.attributes)
        return seen

    @property
    def given_grid(self) -> Grid:
        return self.fine.grid

    def deciding(self, points: int) -> Trajectories:
        return self._seen(self.fine.deciding(FULL))

    def reported(self) -> Trajectories:
        return self._reported

    @cached_property
    def _reported(self) -> Trajectories:
        return self._seen(self.fine.reported(), projected=self.answers == "coarse")

    def at(self, points: int) -> Trajectories:
        return self._training

    def observed(self, points: int) -> Trajectories:
        return self.fine.observed(FULL)

    def points_at(self, points: int) -> tuple[int, ...]:
        return self.grid.points

    def store(self, points: int) -> None:
        self.fine.store(FULL)

    def sample(self) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        frames, moments = self.fine.sample()
        if self._points is None:
            return frames, moments
        return truncated_frames(frames, self._points, self._words), moments

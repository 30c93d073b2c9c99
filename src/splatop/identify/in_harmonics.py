"""Frames between walls, or on a shape, in the harmonics of their domain, and how noisy they are."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..data import Trajectories
from ..domain import Domain
from ..equation import Equation
from ..errors import SplatopError
from ..points import Points
from ..signal import Signal
from ..spaces import Space
from ..stepper import TIME
from ..walls import Galerkin, choose_on_shape, choose_sizes, wall_space
from .noise import VISIBLE, share_not_white

_NO_INPUTS: Mapping[str, Signal] = {}
_TAIL = 1e-6
# A space for noisy frames: so many times the Gaussians that noise lets one see, up to such a share
# of the points.
_FINER, _WELL_TOLD = 1.75, 0.25
# Numbers of a state up to which first states are estimated without being asked for.
MOST_NUMBERS = 600
# Harmonics that are not heard are left out anyway: none that are may be missing.
_LEVEL = 0.995
# The amplitude of a harmonic, in standard deviations of its noise, from which it counts. One that
# is mostly noise pulls a rate towards zero.
HEARD = 5.0


class Harmonics:
    """Pieces of frames `(S, L, C, *N)` at `times` `(S, L)` as numbers `(S, L, C, *R)` of a space
    that is fine enough for them.

    `rest` is what the space does not hold of the frames. `noise`, `rounding` and `sizes` hold one
    standard deviation for each field, of white noise as large as the rest, of single precision,
    and of the field itself; `deviation` `(C, *R)` is that of noise in each number. `unresolved` is
    the share of the rest in the fields where it is no white noise, else 0. `drive` are the inputs.
    """

    def __init__(
        self,
        equation: Equation,
        trajectories: Trajectories,
        frames: np.ndarray,
        times: np.ndarray,
        given: Mapping[str, float],
        signals: Mapping[str, Signal] = _NO_INPUTS,
    ):
        grid = trajectories.grid
        self.scheme = scheme = _scheme(equation, trajectories, frames, times, given)
        self.times = jnp.asarray(times)
        self.along = along = scheme.space.sampled(grid.points, grid.layout)
        self.drive = scheme.all_inputs(signals, along)
        fixed = None if scheme.moving else scheme.lifted(given)

        def lifted(t):
            return scheme.lifted({**given, TIME: t}) if scheme.moving else fixed

        enter = jax.jit(jax.vmap(jax.vmap(lambda u, t: scheme.enter(u, along, lifted(t)))))
        leave = jax.jit(jax.vmap(jax.vmap(lambda c, t: scheme.leave(c, along, lifted(t)))))

        def left(u):
            return u - np.asarray(leave(enter(jnp.asarray(u), self.times), self.times))

        self._enter, self._frames = enter, frames
        self.numbers = enter(jnp.asarray(frames), self.times)
        self.rest = rest = left(frames)
        share = np.prod([r / n for r, n in zip(scheme.space.shape, grid.points, strict=True)])
        axes = (0, 1, *range(3, frames.ndim))
        self.noise = np.sqrt(np.mean(rest**2, axis=axes) / max(1 - share, 0.05))
        self.rounding = 1e-7 * np.sqrt(np.mean(frames**2, axis=axes))
        self.sizes = frames.std(axis=axes)
        self.relative_noise = float(np.max(self.noise / np.maximum(self.sizes, 1e-300)))
        self.freedom = float(max(1 - share, 0.05) * np.prod(grid.points))
        # A fit leaves more of white noise at some places than at others: at walls.
        white = left(frames + np.random.default_rng(0).standard_normal(frames.shape)) - rest
        small = share_not_white(rest, self.sizes, self.freedom, white)
        self.unresolved = small if small >= VISIBLE else 0.0
        shape = (len(self.noise), *(1,) * (frames.ndim - 3))
        self._sample_deviation = np.maximum(self.noise, self.rounding).reshape(shape)
        shape = (len(self.noise), *(1,) * len(scheme.space.shape))
        self.deviation = self._sample_deviation.reshape(shape) * np.sqrt(scheme.space.gain(along))

    def noisier(self, key: int, times: float = 1.0) -> jax.Array:
        """The numbers of samples with so many times the noise's variance once more.

        A fit gathers much of it at the walls, where samples lie on one side only: numbers of noise
        belong together.
        """
        drawn = np.sqrt(times) * np.random.default_rng(key).standard_normal(self._frames.shape)
        return self._enter(jnp.asarray(self._frames + drawn * self._sample_deviation), self.times)


def _scheme(
    equation: Equation,
    trajectories: Trajectories,
    frames: np.ndarray,
    times: np.ndarray,
    given: Mapping[str, float],
) -> Galerkin:
    grid, domain = trajectories.grid, trajectories.domain
    sparse = slice(None, None, max(1, times.size // 24))
    few = frames.reshape(-1, *frames.shape[2:])[sparse]
    at = {**given, TIME: times.reshape(-1)[sparse]}
    if isinstance(grid, Points):
        sizes = choose_on_shape(equation, at, few, domain=domain, at=grid, tail=_TAIL, level=_LEVEL)
    else:
        sizes = choose_sizes(equation, at, few, domain=domain, grid=grid, tail=_TAIL, level=_LEVEL)
    anchors = tuple(size.anchors for size in sizes)
    space = wall_space(equation, domain, anchors)
    if any(size.noise for size in sizes):
        space = _finer(equation, domain, grid, space, anchors)
    return Galerkin(equation, space)


def _finer(
    equation: Equation, domain: Domain, grid: Any, space: Space, anchors: tuple[int, ...]
) -> Space:
    """A space with three quarters as many Gaussians again along each axis, if it is not too large.

    What a space lacks may be hidden by the noise of each frame. Over all frames, along which the
    equation is followed, it adds up to more than noise.
    """
    most = [math.inf if space.scattered else _WELL_TOLD * n for n in (*grid.points, 1)]
    more = tuple(max(a, int(min(_FINER * a, n))) for a, n in zip(anchors, most, strict=False))
    finer = wall_space(equation, domain, more)
    numbers, points = np.prod(finer.shape), np.prod(grid.points)
    fits = numbers <= MOST_NUMBERS and (numbers <= _WELL_TOLD * points or not space.scattered)
    return finer if fits else space


def times_of(trajectories: Trajectories, begin: Sequence[int], length: int) -> np.ndarray:
    """When the frames of each piece are, `(S, L)`."""
    if not trajectories.even:
        raise SplatopError(
            f"{trajectories.source}: expected evenly spaced frames between walls to learn an "
            "equation from, got uneven ones: give --resample (resample=True) to interpolate them "
            "to even times"
        )
    every = trajectories.times
    if every is None:
        every = trajectories.dt * np.arange(trajectories.frames)
    return every[np.asarray(begin)[:, None] + np.arange(length)]

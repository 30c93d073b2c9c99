"""Frames around a periodic box, inside their band."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..equation import Equation
from ..etdrk4 import Scheme
from ..grid import Grid
from ..jets import JetProvider
from ..physics import EmbeddedPhysics
from ..spectral import BoxFilter
from ..stepper import INTERVAL, Coefficients, interval_of
from .followed import Advance, Derived, Followed, as_precise
from .inverse import InverseProblem
from .noise import Spectrum, project

# What is known of when a step begins, of equations that are the same at all times.
_ALWAYS: Coefficients = {}


class Reduced(Followed):
    """A problem inside its band, on a grid that just holds it: small, and the same for any N.

    States are on this grid. Only modes in the band are ever compared, so the filter takes part in
    no estimate. `scheme` integrates what acts on Fourier modes exactly; without it, as for a
    learned encoder, Φ's own RK4 does.
    """

    states: np.ndarray
    times: np.ndarray
    driving: np.ndarray | None
    inputs: tuple[str, ...] = eqx.field(static=True)
    intervals: np.ndarray | None
    weights: np.ndarray
    jets: JetProvider
    scheme: Scheme | None
    band: tuple[int, ...] = eqx.field(static=True)
    restraint: np.ndarray | None = None

    @property
    def points(self) -> tuple[int, ...]:
        return tuple(self.states.shape[3:])

    @property
    def freedom(self) -> int:
        return self.states.shape[2] * math.prod(2 * b + 1 for b in self.band)

    @property
    def directions(self) -> float:
        return math.inf

    @property
    def dims(self) -> int:
        return len(self.points)

    @property
    def waves(self) -> int:
        return len(self.points)

    @property
    def _axes(self) -> tuple[int, ...]:
        return tuple(range(-self.waves, 0))

    @property
    def multiplicity(self) -> np.ndarray:
        return Grid(self.points, self.jets.lengths).multiplicity() * self._inside(self.band)

    def carried(self, spectrum: Spectrum) -> np.ndarray:
        return self._inside(spectrum.band)

    def _inside(self, band: tuple[int, ...]) -> np.ndarray:
        """Which modes a band holds: a box, whose corners may carry a field as well."""
        return np.all([np.abs(k) <= b for k, b in zip(self._numbers(), band, strict=True)], 0)

    def modes(self, states: np.ndarray) -> np.ndarray:
        return np.fft.rfftn(states, axes=self._axes, norm="forward")

    def smoothed(self, states: np.ndarray) -> np.ndarray:
        assert self.restraint is not None
        modes = self.modes(states) / (1 + np.square(self.restraint))
        return np.fft.irfftn(modes, s=self.points, axes=self._axes, norm="forward")

    def shells(self, spectrum: Spectrum) -> np.ndarray:
        pairs = zip(self._numbers(), spectrum.band, strict=True)
        return np.sqrt(np.sum([np.square(k / b) for k, b in pairs], axis=0))

    def _numbers(self) -> list[np.ndarray]:
        """The mode numbers along each axis in the layout of `rfftn`."""
        *full, last = self.points
        axes = [*(np.fft.fftfreq(n, 1 / n) for n in full), np.arange(last // 2 + 1.0)]
        return list(np.meshgrid(*axes, indexing="ij"))

    def floor(self, spectrum: Spectrum) -> np.ndarray:
        each = np.square(spectrum.noise) / spectrum.points
        return each.reshape(-1, *(1,) * self.waves)

    def noise_energy(self, spectrum: Spectrum) -> np.ndarray:
        return np.square(spectrum.noise * self.weights) * np.prod(self.points) / spectrum.points

    def weigh(self, states: Any) -> Any:
        return states * self.weights.reshape(-1, *(1,) * self.waves)

    def rows(self, weighed: np.ndarray) -> np.ndarray:
        return np.fft.rfftn(weighed, axes=self._axes, norm="ortho")

    def basis(self) -> np.ndarray:
        """Impulses on a grid with a point for each mode."""
        least = tuple(2 * b + 1 for b in self.band)
        impulses = np.eye(int(np.prod(least))).reshape(-1, *least)
        fields = project(impulses, self.band, self.points)
        channels = np.eye(self.states.shape[2])
        return np.einsum("cd,k...->ckd...", channels, fields).reshape(
            -1, len(channels), *self.points
        )

    def confined(self, states: Array) -> Array:
        return jax.vmap(lambda u: self.jets.filter(u, self.jets.lengths))(states)

    def held(self, states: Array) -> Array:
        assert self.restraint is not None
        modes = jnp.fft.rfftn(states, axes=self._axes) * self.restraint
        return self.weigh(jnp.fft.irfftn(modes, s=self.points, axes=self._axes))

    def propagator(
        self, equation: Equation, coefficients: Coefficients, dt: float, substeps: int | Array
    ) -> Advance:
        scheme = self.scheme
        if scheme is None:
            physics = EmbeddedPhysics(equation=equation, jets=self.jets, dt=dt, working_grid=False)
            return lambda u, now=_ALWAYS: physics.advance(
                u, as_precise(u, {**coefficients, **now}), substeps=substeps
            )
        usual = jax.tree.map(jnp.asarray, scheme.tables(dt / substeps, coefficients))

        def advance(u: Array, now: Coefficients = _ALWAYS) -> Array:
            step, tables = dt / substeps, usual
            if INTERVAL in now:
                step = interval_of(now, dt) / substeps
                tables = jax.tree.map(jnp.asarray, scheme.tables(step, coefficients))
            tables, given = as_precise(u, (tables, {**coefficients, **now}))
            return scheme.advance(u, tables, given, substeps, step)

        return advance

    def seen(self, coefficients: Coefficients, dt: float) -> Array | None:
        if self.scheme is None:
            return None
        decay = jnp.asarray(self.scheme.tables(dt, coefficients)[0])
        if decay.ndim > 1 + self.waves:  # coupled channels
            return None
        return times_seen(decay, jnp.arange(self.states.shape[1]))

    def frames_seen(self, coefficients: Coefficients, dt: float) -> np.ndarray:
        *full, last = self.points
        shape = self.states.shape[2], *full, last // 2 + 1
        found = np.full(shape, float(self.states.shape[1]))
        seen = self.seen(coefficients, dt)
        if seen is None:
            return found
        places = [np.r_[0 : b + 1, n - b : n] for b, n in zip(self.band[:-1], full, strict=True)]
        found[np.ix_(range(shape[0]), *places, range(self.band[-1] + 1))] = np.asarray(seen)
        return found

    def preconditioner(self, coefficients: Coefficients, dt: float) -> Callable[[Array], Array]:
        scheme, seen = self.scheme, self.seen(coefficients, dt)
        if scheme is None or seen is None:
            return lambda change: change
        factors = 1 / (seen * jnp.square(self.weights).reshape(-1, *(1,) * self.waves))
        return lambda change: scheme.multiply(factors, change)

    def derived(
        self, states: np.ndarray, coefficients: Coefficients, wanted: set[tuple[int, int]]
    ) -> Derived:
        modes = np.fft.fftn(states, axes=self._axes)

        def of(axis: int, order: int) -> np.ndarray:
            n, length = self.points[axis], self.jets.lengths[axis]
            place = [-1 if i == axis else 1 for i in range(self.waves)]
            symbol = (2j * np.pi * np.fft.fftfreq(n, length / n).reshape(place)) ** order
            return np.fft.ifftn(modes * symbol, axes=self._axes).real

        return {(axis, order): of(axis, order) for axis, order in wanted}

    def project(self, values: np.ndarray) -> np.ndarray:
        return values


@jax.jit
def times_seen(decay: Array, frames: Array) -> Array:
    """In how many of the `frames`, by number, a mode is seen that is `decay` times as large in
    the next."""
    number = frames.reshape(-1, *(1,) * decay.ndim)
    return jnp.sum(jnp.minimum(jnp.abs(decay), 1.0) ** (2 * number), axis=0)


def reduce(problem: InverseProblem, *, margin: float | None = None) -> Reduced:
    """The frames inside their band, on the coarsest grid without aliasing.

    With a margin the band is so many times as wide, and rounded up to a size that data sets share:
    compiled code is then shared as well.
    """
    full = problem.grid
    band = tuple(
        min((n - 1) // 2, b if margin is None else _rounded(margin * b))
        for n, b in zip(full.points, problem.spectrum.band, strict=True)
    )
    cutoffs = tuple(b / length for b, length in zip(band, full.lengths, strict=True))
    jets = problem.periodic_jets.inside(problem.spectrum.band, BoxFilter(cutoffs))
    physics = EmbeddedPhysics(equation=problem.equation, jets=jets, dt=problem.dt)
    # A velocity field widens the band as a product does, though its term is linear.
    points = tuple(
        min(n, max(m, 3 * b + 2))
        for n, m, b in zip(full.points, physics.working_points(full.points), band, strict=True)
    )
    grid = Grid(points, full.lengths)
    return Reduced(
        states=project(problem.frames, band, points),
        times=problem.times,
        driving=None if problem.driving is None else project(problem.driving, band, points),
        inputs=problem.equation.inputs,
        intervals=None if problem.even else np.diff(problem.times, axis=1),
        weights=1 / np.where(problem.spectrum.scale > 0, problem.spectrum.scale, 1.0),
        jets=double(jets),
        scheme=Scheme(problem.equation, grid, band) if jets.is_spectral else None,
        band=band,
    )


def _rounded(band: float) -> int:
    """Up to a multiple of 4, or 8."""
    unit = 4 if band <= 16 else 8
    return unit * math.ceil(band / unit)


def double(module):
    """The module with its parameters in double precision, for calibration under x64."""
    return jax.tree.map(
        lambda leaf: np.asarray(leaf, np.float64) if eqx.is_inexact_array(leaf) else leaf, module
    )

"""The question that identification answers: its parts, checked."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..data.times import is_even, unknown_time
from ..equation import Equation
from ..errors import SplatopError, check_finite, unknown_name
from ..etdrk4 import Scheme
from ..grid import Grid
from ..jets import JetProvider
from ..physics import EmbeddedPhysics
from ..signal import Signal, held
from ..spectral import BoxFilter
from ..stepper import INTERVAL, TIME
from .noise import Spectrum, measure, project

# Above this relative noise, frames are not compared with one another.
NOISY = 1e-4

Unknown = Iterable[str] | Mapping[str, float] | None


@dataclass(frozen=True)
class Problem:
    """Frames a time `dt` apart, and what is known of the equation behind them.

    `frames` are `(S, L, C, *N)`: S pieces of L successive frames, all of one trajectory, at the
    `times` `(S, L)`, which need not be even. `driving` `(S, L, I, *N)` are the inputs, if the
    equation has some. `starts`
    are first guesses that the user gave. `precision` is the rounding of the data type that the
    frames came in.
    """

    equation: Equation
    jets: JetProvider
    frames: np.ndarray
    times: np.ndarray
    driving: np.ndarray | None
    dt: float
    unknown: tuple[str, ...]
    known: dict[str, float]
    starts: dict[str, float]
    spectrum: Spectrum
    precision: float

    @property
    def grid(self) -> Grid:
        return Grid(tuple(self.frames.shape[3:]), self.jets.lengths)

    @property
    def pieces(self) -> int:
        return self.frames.shape[0]

    @property
    def length(self) -> int:
        """Successive frames of a piece."""
        return self.frames.shape[1]

    @property
    def noisy(self) -> bool:
        """Whether the frames hold too much noise to be compared with one another."""
        return self.spectrum.relative_noise > NOISY

    @property
    def given(self) -> dict[str, Array]:
        """The known values as arrays: compiled code does not depend on them."""
        return {name: jnp.asarray(value) for name, value in self.known.items()}

    @property
    def nonlinear(self) -> tuple[str, ...]:
        """The unknowns in which the equation is not linear."""
        inner = {name for term in self.equation.terms for name in term.inner_coefficients}
        return tuple(name for name in self.unknown if name in inner)

    @property
    def even(self) -> bool:
        """Whether all frames of a piece are equally far apart."""
        return all(is_even(times) for times in self.times)

    def of(self, choose: Callable[[np.ndarray], np.ndarray]) -> "Problem":
        """The problem of other pieces, cut from these: `choose` takes `(S, L, ...)`."""
        driving = None if self.driving is None else choose(self.driving)
        return replace(self, frames=choose(self.frames), times=choose(self.times), driving=driving)

    def moment(self, piece: int, frame: int) -> dict[str, Any]:
        """When one of the frames is, and what its inputs are."""
        return moment_of(self.equation.inputs, self.times, self.driving, piece, frame)

    def with_band(self, band: tuple[int, ...]) -> "Problem":
        return replace(self, spectrum=replace(self.spectrum, band=band))

    def with_tail(self, tail: float) -> "Problem":
        """The same frames in a narrower band, which leaves out this share of their amplitude."""
        return replace(self, spectrum=measure(self.frames, tail=tail))


class Reduced(eqx.Module):
    """A problem inside its band, on a grid that just holds it: small, and the same for any N.

    `states` are `(S, L, C, *M)`. Only modes in the band are ever compared, so the filter takes
    part in no estimate. Rows carry `weights`, one per channel. `scheme` integrates what acts on
    Fourier modes exactly; without it, as for a learned encoder, Φ's own RK4 does. `restraint` holds
    initial states to their expected size, see `restraint.py`; without it they are free.
    """

    states: np.ndarray
    times: np.ndarray
    driving: np.ndarray | None
    inputs: tuple[str, ...] = eqx.field(static=True)
    intervals: np.ndarray | None  # between the frames of a piece, where they differ
    weights: np.ndarray
    jets: JetProvider
    scheme: Scheme | None
    band: tuple[int, ...] = eqx.field(static=True)
    restraint: np.ndarray | None = None

    @property
    def points(self) -> tuple[int, ...]:
        return tuple(self.states.shape[3:])

    @property
    def drive(self) -> dict[str, Any]:
        """The inputs of each piece over time, by name."""
        if self.driving is None:
            return {}
        return {
            name: Signal(self.driving[:, :, n], self.times) for n, name in enumerate(self.inputs)
        }

    def moment(self, piece: int, frame: int) -> dict[str, Any]:
        """When one of the frames is, and what its inputs are."""
        return moment_of(self.inputs, self.times, self.driving, piece, frame)

    @property
    def when(self) -> dict[str, Any]:
        """When each step from frame to frame begins, `(S, L - 1)`, and how long it is where that
        differs."""
        found = {TIME: self.times[:, :-1]}
        return found if self.intervals is None else {**found, INTERVAL: self.intervals}

    def of(self, choose: Callable[[np.ndarray], np.ndarray]) -> "Reduced":
        """The same of other pieces, cut from these."""
        times = choose(self.times)
        intervals = None if self.intervals is None else np.diff(times, axis=1)
        driving = None if self.driving is None else choose(self.driving)
        return replace(
            self, states=choose(self.states), times=times, intervals=intervals, driving=driving
        )

    @property
    def freedom(self) -> int:
        """Real degrees of freedom of one frame."""
        return self.states.shape[2] * math.prod(2 * b + 1 for b in self.band)

    @property
    def size(self) -> float:
        """The norm of all frames, weighted as residuals are."""
        return float(np.linalg.norm(self.weigh(self.states)))

    @property
    def change(self) -> float:
        """The size of what happens between the frames, weighted as residuals are."""
        return float(np.linalg.norm(self.weigh(np.diff(self.states, axis=1))))

    def noise(self, spectrum: Spectrum) -> float:
        """The expected size of white noise in one frame, weighted as residuals are."""
        share = self.freedom / len(spectrum.noise) * np.prod(self.points) / spectrum.points
        return float(np.linalg.norm(self.weights * spectrum.noise) * np.sqrt(share))

    def weigh(self, states):
        return states * self.weights.reshape(-1, *(1,) * len(self.points))


def pose(
    equation: Equation,
    jets: JetProvider,
    frames: np.ndarray,
    dt: float,
    *,
    unknown: Unknown = None,
    known: Mapping[str, float] | None = None,
    times: np.ndarray | None = None,
    driving: np.ndarray | None = None,
) -> Problem:
    """The problem, or an error that says what is wrong with it.

    `frames` are `(T, C, *N)`, or pieces of them `(S, L, C, *N)`, at the `times` `(T)` or `(S, L)`;
    `driving` are the inputs there, `(S, L, I, *N)`.
    """
    precision = np.finfo(np.result_type(frames, np.float16)).eps
    frames = np.asarray(frames, np.float64)
    dims = len(jets.lengths)
    if frames.ndim not in (dims + 2, dims + 3) or frames.shape[-dims - 1] != len(equation.fields):
        raise SplatopError(
            f"expected frames of shape (T, {len(equation.fields)}, *N) in {dims}D, "
            f"got {frames.shape}: pass one trajectory at a time, channels after time"
        )
    if not (math.isfinite(dt) and dt > 0):
        raise SplatopError(f"expected a positive time between frames, got dt = {dt}")
    if frames.shape[-dims - 2] < 2:
        raise SplatopError(
            "expected at least 2 frames to see a change, "
            f"got {frames.shape[-dims - 2]}: pass more frames"
        )
    check_finite(frames, "frames")
    frames = frames.reshape(-1, *frames.shape[-dims - 2 :])
    if times is None and equation.uses_time:
        raise unknown_time("the frames")
    if times is None:
        times = np.broadcast_to(dt * np.arange(frames.shape[1]), frames.shape[:2])
    if np.ptp(frames) == 0:
        raise SplatopError(
            "expected frames that vary in space or time, got one constant value: "
            "nothing can be learned from them"
        )
    names, starts = unknown_names(equation, unknown, known or {})
    given = known_values(equation, names, known or {})
    return Problem(
        equation,
        jets,
        frames,
        np.asarray(times, float).reshape(frames.shape[:2]),
        None if driving is None else np.asarray(driving, float),
        float(dt),
        unknown=names,
        known=given,
        starts=starts,
        spectrum=measure(frames),
        precision=float(precision),
    )


def moment_of(
    inputs: tuple[str, ...], times: np.ndarray, driving: np.ndarray | None, piece: int, frame: int
) -> dict[str, Any]:
    """When a frame of a piece is, and what its inputs are."""
    found: dict[str, Any] = {TIME: jnp.asarray(times[piece, frame])}
    if driving is not None:
        for n, name in enumerate(inputs):
            found[name] = held(driving[piece, frame, n], times[piece, frame])
    return found


def reduce(problem: Problem, *, margin: float | None = None) -> Reduced:
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
    jets = problem.jets.inside(problem.spectrum.band, BoxFilter(cutoffs))
    physics = EmbeddedPhysics(equation=problem.equation, jets=jets, dt=problem.dt)
    # A velocity field widens the band as a product does, though its term is linear.
    points = tuple(
        min(n, max(m, 3 * b + 2))
        for n, m, b in zip(full.points, physics.working_points(full.points), band, strict=True)
    )
    return Reduced(
        project(problem.frames, band, points),
        problem.times,
        None if problem.driving is None else project(problem.driving, band, points),
        problem.equation.inputs,
        None if problem.even else np.diff(problem.times, axis=1),
        1 / np.where(problem.spectrum.scale > 0, problem.spectrum.scale, 1.0),
        double(jets),
        Scheme(problem.equation, Grid(points, full.lengths), band) if jets.is_spectral else None,
        band,
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


def unknown_names(
    equation: Equation, unknown: Unknown, known: Mapping[str, Any]
) -> tuple[tuple[str, ...], dict[str, float]]:
    valid = equation.coefficient_names
    if unknown is None:
        unknown = tuple(name for name in valid if name not in known)
    if isinstance(unknown, str):
        unknown = (unknown,)
    starts = dict(unknown) if isinstance(unknown, Mapping) else {}
    names = tuple(unknown)
    for name in names:
        if name not in valid:
            raise unknown_name("coefficient", name, valid)
    if not names or len(set(names)) != len(names):
        raise SplatopError(
            "expected at least one unknown coefficient, each once, got "
            f"{', '.join(names) or 'none'}: the equation has {', '.join(valid) or 'none'}"
        )
    return names, {name: float(value) for name, value in starts.items()}


def known_values(
    equation: Equation, names: tuple[str, ...], known: Mapping[str, float]
) -> dict[str, float]:
    for name, value in known.items():
        if name not in equation.coefficient_names:
            raise unknown_name("coefficient", name, equation.coefficient_names)
        if name in names:
            raise SplatopError(f"expected '{name}' either known or unknown, got it as both")
        if not math.isfinite(float(value)):
            raise SplatopError(f"expected a finite value for '{name}', got {value}")
    missing = [n for n in equation.coefficient_names if n not in names and n not in known]
    if missing:
        raise SplatopError(
            f"expected a value for {', '.join(missing)}, which is neither known nor unknown: "
            "give it as known, or list it among the unknown"
        )
    return {name: float(value) for name, value in known.items()}

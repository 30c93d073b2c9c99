"""The question that identification answers: its parts, checked."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..data.times import is_even, unknown_time
from ..equation import Equation
from ..equation.about import about
from ..equation.expansion import split_linear
from ..errors import SplatopError, check_finite, unknown_name
from ..grid import Grid
from ..jets import JetProvider
from .followed import moment_of
from .noise import Spectrum, measure

# Offsets from this many deviations of a field on are taken off it.
_LARGE_OFFSET = 10.0
# Above this relative noise, frames are not compared with one another.
NOISY = 1e-4

Unknown = Iterable[str] | Mapping[str, float] | None


@dataclass(frozen=True)
class InverseProblem:
    """Frames a time `dt` apart, and what is known of the equation behind them.

    `frames` are `(S, L, C, *N)`: S pieces of L successive frames, all of one trajectory, at the
    `times` `(S, L)`, which need not be even. `driving` `(S, L, I, *N)` are the inputs, if the
    equation has some. `jets` are those of a periodic box. `starts` are first guesses that the user
    gave. `precision` is the rounding of the data type that the frames came in.
    """

    equation: Equation
    jets: JetProvider | None
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
        return Grid(tuple(self.frames.shape[3:]), self.periodic_jets.lengths)

    @property
    def periodic_jets(self) -> JetProvider:
        """The jets of a periodic box, where the frames are of one."""
        assert self.jets is not None
        return self.jets

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

    def of(self, choose: Callable[[np.ndarray], np.ndarray]) -> "InverseProblem":
        """The problem of other pieces, cut from these: `choose` takes `(S, L, ...)`."""
        driving = None if self.driving is None else choose(self.driving)
        return replace(self, frames=choose(self.frames), times=choose(self.times), driving=driving)

    def moment(self, piece: int, frame: int) -> dict[str, Any]:
        """When one of the frames is, and what its inputs are."""
        return moment_of(self.equation.inputs, self.times, self.driving, piece, frame)

    def with_band(self, band: tuple[int, ...]) -> "InverseProblem":
        return replace(self, spectrum=replace(self.spectrum, band=band))

    def with_tail(self, tail: float) -> "InverseProblem":
        """The same frames in a narrower band, which leaves out this share of their amplitude."""
        return replace(self, spectrum=measure(self.frames, tail=tail))


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
) -> InverseProblem:
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
    return InverseProblem(
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


def about_offset(problem: InverseProblem) -> InverseProblem:
    """The same question about what is left of fields that are small beside their own means.

    Where products transport or diffuse such a field, the equation is stiff about its mean; and
    rounding counts for more beside a small signal.
    """
    frames = problem.frames
    axes = tuple(i for i in range(frames.ndim) if i != 2)
    means, sizes = frames.mean(axis=axes), frames.std(axis=axes)
    large = np.abs(means) > _LARGE_OFFSET * sizes
    # Two digits, so that trajectories share compiled code.
    offsets = [float(f"{mean:.1e}") for mean in np.where(large & (sizes > 0), means, 0.0)]
    equation = about(problem.equation, offsets) if any(offsets) else None
    dims = frames.ndim - 3
    if equation is None or len(split_linear(equation, dims)[0]) == len(
        split_linear(problem.equation, dims)[0]
    ):
        return problem
    coarser = float(np.max(np.abs(offsets) / np.where(sizes > 0, sizes, 1.0)))
    return replace(
        problem,
        equation=equation,
        frames=frames - np.reshape(offsets, (-1, *(1,) * dims)),
        precision=problem.precision * coarser,
    )


def unknown_names(
    equation: Equation, unknown: Unknown, known: Mapping[str, Any]
) -> tuple[tuple[str, ...], dict[str, float]]:
    """The coefficients to look for, by default all that are not known, and values to start from."""
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
    """Finite numbers for all the other coefficients; refused if one of them is missing."""
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

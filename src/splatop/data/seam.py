"""Where a periodic axis closes: a jump, a repeated end point, or a step like any other."""

from dataclasses import dataclass, replace

import numpy as np

from ..errors import SplatopError
from .axes import SPATIAL
from .sampling import both_ends
from .trajectories import Trajectories

# A step across the seam, relative to the steps beside it, from which the two points may be one.
_SAME = 0.1
# A step across the seam of more than so many largest steps between neighbours is a jump.
MOST_JUMP = 3.0
# The same of fewer points than fourth differences need: three times is a straight line there.
_MOST_OF_FEW = 1.5
# Fourth differences of fields held in float32 are rounding below this share of their size.
_ROUNDING = 32 * float(np.finfo(np.float32).eps)
# Steps that noise makes this share of are noise.
_NOISE = 0.5
# Changes below this share of those beside them are none.
_STILL = 1e-5
# Lines across an axis that are looked at: so many tell a repeated point from noise.
_LINES = 2000
_MOST_FRAMES = 32
_STENCIL = 7  # points that the fourth differences around the seam need


@dataclass(frozen=True)
class Seam:
    """What the data say about the last and the first point along one axis."""

    jump: float  # the step across, over the largest step between neighbours
    repeats: bool  # the last point is the first again
    kink: bool  # the field turns there as nowhere else
    may_drop: bool  # without the last point the field is no rougher
    held: bool = False  # both ends keep their values while the points beside them change
    hidden: bool = False  # the steps there are noise, and tell nothing
    equal: bool = False  # the step across is nothing, those beside it are not
    few: bool = False  # points: slopes cannot be looked at


class WithoutEnd(Trajectories):
    """Trajectories without the last point along some axes, which repeats the first."""

    def __init__(self, whole: Trajectories, axes: tuple[int, ...], *, keep_lengths: bool):
        self._like(whole)
        self.whole = whole
        points = tuple(n - (axis in axes) for axis, n in enumerate(whole.grid.points))
        lengths = whole.grid.lengths
        if not keep_lengths:  # they count a cell for each point
            lengths = tuple(
                spacing * n for spacing, n in zip(whole.grid.spacing, points, strict=True)
            )
        self.grid = replace(whole.grid, points=points, lengths=lengths)
        names = ", ".join(SPATIAL[axis] for axis in axes)
        self.attributes = {**whole.attributes, "dropped_end": names}

    def read(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        kept = tuple(slice(n) for n in self.grid.points)
        return self.whole.read(trajectory, start, frames)[(..., *kept)]

    def close(self) -> None:
        self.whole.close()


def without_end(
    data: Trajectories, axes: tuple[int, ...] | None = None, *, keep_lengths: bool
) -> WithoutEnd:
    """Drop the last point along every axis, or these, where the data do not speak against it.

    Lengths that were given are those of the box; lengths from coordinates lose a cell.
    """
    axes = tuple(range(data.grid.dims)) if axes is None else axes
    seams = seams_of(data, axes)
    dropped = tuple(
        axis
        for axis, seam in zip(axes, seams, strict=True)
        if seam.may_drop or (seam.equal and both_ends(data, axis))
    )
    if not dropped:
        along = ", ".join(SPATIAL[axis] for axis in axes)
        raise SplatopError(
            f"{data.source}: expected a last point that repeats the first, to drop it; "
            + (
                f"along {along} the field goes on from the last point to the first"
                if axes
                else "no axis is periodic"
            )
            + ": leave out --drop-end (drop_end=True)"
        )
    return WithoutEnd(data, dropped, keep_lengths=keep_lengths)


def check_seam(data: Trajectories, axes: tuple[int, ...]) -> None:
    """Refuse a repeated end point along axes that are periodic."""
    for axis, seam in zip(axes, seams_of(data, axes), strict=True):
        if seam.repeats:
            raise SplatopError(
                f"{data.source}: expected each point of the period once; the last point along "
                f"{SPATIAL[axis]} repeats the first, which makes the box a cell too long: drop the "
                "last point with --drop-end (drop_end=True in Python); --periodic (periodic=True) "
                "does not do that. If the box has walls there, say what holds (--boundary)"
            )


def open_seam(seam: Seam, name: str) -> str | None:
    """Why an axis is not periodic, in words; None if it may be.

    The step from the last point to the first should look like any step between neighbours.
    """
    if seam.repeats and seam.held:
        return (
            f"and its first and last points along {name} are equal and keep their values, as at "
            "walls, or as a period whose end is there twice (--drop-end, drop_end=True)"
        )
    if seam.repeats:
        return None  # periodic, and refused for that point by itself
    if seam.jump > MOST_JUMP:
        return (
            f"and the jump from its last point to its first along {name} is {seam.jump:.0f} times "
            "the largest step between neighbours"
        )
    if seam.few and seam.jump > _MOST_OF_FEW:
        return (
            f"its points along {name} are few, and from the last to the first the step is "
            f"{seam.jump:.1f} times the largest between neighbours"
        )
    if seam.held:
        return (
            f"and its first and last points along {name} keep their values while those beside them "
            "change, as at walls"
        )
    if seam.kink:
        return (
            f"and from its last point to its first along {name} the slopes do not fit together, as "
            "at walls"
        )
    return None


def seams_of(data: Trajectories, axes: tuple[int, ...] | None = None) -> tuple[Seam, ...]:
    """The seam along each axis, or these, seen in frames spread over the data."""
    axes = tuple(range(data.grid.dims)) if axes is None else axes
    if not axes:
        return ()
    states = _sampled(data)
    changes = states[len(data.fields) :] - states[: -len(data.fields)]
    return tuple(
        replace(_seam(_lines(states, axis)), held=_held(_lines(changes, axis))) for axis in axes
    )


def _lines(states: np.ndarray, axis: int) -> np.ndarray:
    """Everything along one axis, `(N, lines)`."""
    return np.moveaxis(states, axis + 1, 0).reshape(states.shape[axis + 1], -1)


def _held(changes: np.ndarray) -> bool:
    """Whether from frame to frame the ends stay as they are and their neighbours do not."""
    if len(changes) < _STENCIL or not changes.size:
        return False
    moved = _rms(changes)
    beside = min(moved[1], moved[-2])
    return bool(max(moved[0], moved[-1]) <= _STILL * beside and beside > _STILL * moved.max())


def _sampled(data: Trajectories) -> np.ndarray:
    """Frames of the first and the last trajectory, one field after the other: `(n, *N)`."""
    fewest = int(np.prod(data.grid.points)) // max(data.grid.points)  # lines that one field has
    count = int(np.clip(_LINES // (fewest * len(data.fields)), 2, _MOST_FRAMES))
    times = np.unique(np.linspace(0, data.frames - 1, count).astype(int))
    frames = [
        data.states(b, int(t), 1)[0] for b in sorted({0, data.trajectories - 1}) for t in times
    ]
    return np.nan_to_num(np.concatenate(frames), posinf=0.0, neginf=0.0).astype(float)


def _seam(lines: np.ndarray) -> Seam:
    """Of lines `(N, lines)` along one axis.

    A repeated point leaves a stall in an otherwise smooth field: the step across is nothing beside
    its neighbours, and without the point the fourth differences there are smaller. Where a field is
    flat or noise at its ends, both are alike, and the point is not called a repeated one. A field
    that is symmetric about the seam has equal ends too, but gets rougher without one of them; so
    does one with a kink there, and then only coordinates can tell (`equal`).
    """
    steps = _rms(np.roll(lines, -1, 0) - lines)
    inner, across = float(steps[:-1].max(initial=0.0)), float(steps[-1])
    if inner == 0:
        return Seam(0.0 if across == 0 else np.inf, False, False, across == 0 and len(lines) > 1)
    if len(lines) < _STENCIL:
        same = across < 1e-6 * inner
        return Seam(across / inner, same, False, same, few=True)
    whole = _fourth(np.concatenate([lines[-3:], lines[:3]]))
    dropped = _fourth(np.concatenate([lines[-4:-1], lines[:3]]))
    rounding = _ROUNDING * float(np.abs(lines).max())
    equal = across <= _SAME * float(max(steps[0], steps[-2]))
    repeats = equal and whole > rounding and dropped < whole / 2
    fourth = _rms(np.diff(lines, 4, axis=0))
    kink = not repeats and whole > rounding and whole > 3 * float(fourth.max())
    # Fourth differences of white noise are sqrt(70), first ones sqrt(2) times as large as it is.
    noise = float(np.median(fourth) / np.sqrt(70 / 2))
    hidden = noise > max(_NOISE * float(max(steps[0], steps[-2])), rounding)
    may_drop = dropped <= max(1.5 * whole, rounding)
    same = across <= rounding < _SAME * float(min(steps[0], steps[-2]))
    return Seam(across / inner, repeats, kink, may_drop, hidden=hidden, equal=same)


def _fourth(points: np.ndarray) -> float:
    return float(_rms(np.diff(points, 4, axis=0)).max())


def _rms(values: np.ndarray) -> np.ndarray:
    return np.sqrt(np.mean(np.square(values), axis=1))

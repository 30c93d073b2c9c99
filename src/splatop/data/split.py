"""What a model is trained on, and what it is judged and reported on: the one rule for all ways in.

One trajectory in five is held out. Where there are too few to spare one, the last fifth in time of
each is. Where there is enough left, a further tenth decides whether an operator is kept, so that
the data that are reported on decide nothing.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import SplatopError
from .in_memory import ArrayTrajectories
from .trajectories import Trajectories

# One in so many is held out to report on, one in so many of the rest to decide on.
HELD_OUT = 5
VALIDATION = 10
# A stretch of fewer frames decides nothing.
LEAST_VALIDATION_FRAMES = 8
LEAST_FRAMES = 2  # a state and the one that follows


@dataclass(frozen=True)
class Split:
    """`test` and `validation` are None where nothing, or no more, could be spared.

    `in_time` says that all parts are of the same trajectories, one after the other.
    """

    training: Trajectories
    validation: Trajectories | None
    test: Trajectories | None
    in_time: bool

    @property
    def deciding(self) -> Trajectories:
        """What decides whether an operator is kept: data that training has not seen, if any."""
        return self.reported if self.validation is None else self.validation

    @property
    def reported(self) -> Trajectories:
        """What the model is reported on: what is held out, else the training data."""
        return self.training if self.test is None else self.test


def split(data: Trajectories, hold_out: int | None = None) -> Split:
    """Parts of the data, none of which shares a frame with another.

    `hold_out` is how many trajectories, the last ones, to hold out; with 0 everything is trained
    on.
    """
    count = data.trajectories
    if hold_out is not None and not 0 <= hold_out < count:
        raise SplatopError(
            f"expected 0 to {count - 1} trajectories to hold out of {count}, got {hold_out}"
            + (": leave it out, and the last fifth in time is held out" if count == 1 else "")
        )
    if hold_out == 0:
        training = part(data, which="the training data", held_out=False)
        return Split(training, None, None, in_time=True)
    kept = count // HELD_OUT if hold_out is None else hold_out
    return _by_trajectory(data, kept) if kept else _in_time(data)


def _by_trajectory(data: Trajectories, kept: int) -> Split:
    count = data.trajectories
    decide = (count - kept) // VALIDATION
    first = count - kept - decide
    training = part(
        data, slice(0, first), which=f"the first {first} of {count} trajectories", held_out=False
    )
    validation = None
    if decide:
        validation = part(
            data,
            slice(first, count - kept),
            which=_numbered("trajector", first, count - kept, "y", "ies"),
            why="held out to decide on the operator",
            held_out=True,
        )
    last = "the last trajectory" if kept == 1 else f"the last {kept}"
    test = part(
        data,
        slice(count - kept, count),
        which=f"{last} of {count}",
        why="held out",
        held_out=True,
    )
    return Split(training, validation, test, in_time=False)


def _in_time(data: Trajectories) -> Split:
    frames = data.frames
    held = max(LEAST_FRAMES, frames // HELD_OUT)
    if frames - held < LEAST_FRAMES:
        raise SplatopError(
            f"expected at least {2 * LEAST_FRAMES} frames of each trajectory, to hold out the last "
            f"{held}, got {frames} in {data.source}: give longer or more trajectories, or hold "
            "nothing out (hold_out=0, --hold-out 0)"
        )
    decide = frames // VALIDATION if frames // VALIDATION >= LEAST_VALIDATION_FRAMES else 0
    first = frames - held - decide
    training = part(
        data,
        frames=slice(0, first),
        which=f"the first {first} of {frames} frames",
        held_out=False,
    )
    validation = None
    if decide:
        validation = part(
            data,
            frames=slice(first, frames - held),
            which=_numbered("frame", first, frames - held, "", "s"),
            why="held out to decide on the operator",
            held_out=True,
        )
    test = part(
        data,
        frames=slice(frames - held, frames),
        which=f"the last {held} of {frames} frames",
        why="held out",
        held_out=True,
    )
    return Split(training, validation, test, in_time=True)


def _numbered(name: str, first: int, stop: int, one: str, many: str) -> str:
    """Those from `first` to before `stop`, counted from 0 as everywhere."""
    if stop - first == 1:
        return f"{name}{one} {first}"
    return f"{name}{many} {first} to {stop - 1}"


def part(
    data: Trajectories,
    trajectories: slice = slice(None),
    frames: slice = slice(None),
    *,
    which: str,
    why: str | None = None,
    held_out: bool | None = None,
) -> Trajectories:
    """Successive trajectories of a data set, successive frames of them.

    `which` says so in words, `why` what they are apart for. `held_out` is whether training has not
    seen them, None where that is not known.
    """
    if data.inputs:
        about: dict[str, Any] = {"which": which, "why": why, "held_out": held_out}
        return data.made_of(lambda whole: part(whole, trajectories, frames, **about))
    attributes = {
        **data.attributes,
        "source": f"{data.source} ({which if why is None else f'{which}, {why}'})",
        "part": which,
        "held_out": held_out,
    }
    if not isinstance(data, ArrayTrajectories):
        chosen = range(data.trajectories)[trajectories], range(data.frames)[frames]
        return _Part(data, *chosen, attributes)
    return ArrayTrajectories.of(
        data,
        data.array[trajectories, frames],
        coefficients={name: values[trajectories] for name, values in data.coefficients.items()},
        attributes=attributes,
        times=None if data.times is None else data.times[frames],
    )


def from_frame(data: Trajectories, start: int) -> Trajectories:
    """The same without the first `start` frames of each trajectory."""
    if not 0 <= start <= data.frames - LEAST_FRAMES:
        raise SplatopError(
            f"{data.source}: expected a first frame from 0 to {data.frames - LEAST_FRAMES}, for "
            f"{LEAST_FRAMES} of {data.frames} to be left, got {start} (--start)"
        )
    attributes = {**data.attributes, "left_out": f"the first {start} of {data.frames} frames"}
    kept = range(data.trajectories), range(start, data.frames)
    return _Part(data, *kept, attributes) if start else data


class _Part(Trajectories):
    """The same of data that are read from a file."""

    def __init__(self, whole: Trajectories, trajectories: range, frames: range, attributes: dict):
        self._whole, self._first, self._start = whole, trajectories.start, frames.start
        self._like(whole)
        self.trajectories, self.frames = len(trajectories), len(frames)
        self.times = None if whole.times is None else whole.times[frames.start : frames.stop]
        self.coefficients = {
            name: values[list(trajectories)] for name, values in whole.coefficients.items()
        }
        self.attributes = attributes

    def read(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        return self._whole.read(self._first + trajectory, self._start + start, frames)

    def close(self) -> None:
        self._whole.close()

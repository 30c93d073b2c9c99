"""Known fields that drive the others: channels of the data that are given and not predicted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import SplatopError, unknown_name
from ..signal import Signal
from .axes import choose_fields
from .trajectories import Trajectories

# Frames before and after a window that its inputs are interpolated from.
_MARGIN = 1


class Driven(Trajectories):
    """Trajectories of the fields that are predicted, with the `inputs` beside them."""

    def __init__(self, whole: Trajectories, inputs: Sequence[str]):
        self.whole, self.inputs = whole, tuple(inputs)
        for name in self.inputs:
            if name not in whole.fields:
                raise unknown_name("field of the data", name, whole.fields)
        if len(set(self.inputs)) != len(self.inputs) or len(self.inputs) == len(whole.fields):
            raise SplatopError(
                f"expected inputs among {', '.join(whole.fields)}, each once and not all of them, "
                f"got {', '.join(self.inputs)}"
            )
        self._like(whole)
        self.stated = replace(whole.stated, others=(*whole.stated.others, *self.inputs))
        self.fields = tuple(name for name in whole.fields if name not in self.inputs)
        self._own = [whole.fields.index(name) for name in self.fields]
        self._given = [whole.fields.index(name) for name in self.inputs]
        if self.times is None:  # only their distance matters where t is not in the equation
            self.times = self.dt * np.arange(self.frames)

    def read(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        return self.whole.read(trajectory, start, frames)[:, self._own]

    def signals(self, trajectory: int, start: int = 0, frames: int | None = None) -> dict[str, Any]:
        frames = min((frames or self.frames) + 2 * _MARGIN, self.frames)
        first = int(np.clip(start - _MARGIN, 0, self.frames - frames))
        states = self.whole.window(trajectory, first, frames)[:, self._given]
        assert self.times is not None
        times = self.times[first : first + frames].astype(np.float32)
        return {
            name: Signal(np.ascontiguousarray(states[:, n]), times)
            for n, name in enumerate(self.inputs)
        }

    @property
    def _all(self) -> Trajectories:
        """All channels, with what was told of this since: where and when they are."""
        whole = self.whole
        whole.grid, whole.domain, whole.dt, whole.times = (
            self.grid,
            self.domain,
            self.dt,
            self.times,
        )
        return whole

    def made_of(self, change: Callable[[Trajectories], Trajectories]) -> Trajectories:
        return Driven(change(self._all), self.inputs)

    @property
    def together(self) -> Trajectories:
        return _Together(self._all, [*self._own, *self._given])

    def close(self) -> None:
        self.whole.close()


class _Together(Trajectories):
    """Channels of trajectories in another order."""

    def __init__(self, whole: Trajectories, order: Sequence[int]):
        self.whole, self._order = whole, list(order)
        self._like(whole)
        self.fields = tuple(whole.fields[n] for n in self._order)

    def read(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        return self.whole.read(trajectory, start, frames)[:, self._order]

    def close(self) -> None:
        self.whole.close()


class _WithConstant(Trajectories):
    """Trajectories with fields beside them that a file holds once for all times."""

    def __init__(self, whole: Trajectories, names: Sequence[str]):
        self.whole, self._constant = whole, tuple(names)
        self._like(whole)
        self.fields = (*whole.fields, *self._constant)

    def read(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        states = self.whole.read(trajectory, start, frames)
        beside = np.stack([self.static[name](trajectory) for name in self._constant])
        every = np.broadcast_to(beside, (frames, *beside.shape)).astype(states.dtype)
        return np.concatenate([states, every], axis=1)

    def close(self) -> None:
        self.whole.close()


def with_inputs(data: Trajectories, inputs: Sequence[str] | None) -> Trajectories:
    """The data with some of its fields as inputs of the others; those that do not change in time
    are read where they are asked for, and named where they are not."""
    if data.static:
        names = ",".join(data.static)
        data.attributes["constant_fields"] = f"{names} (known inputs: --inputs {names})"
    if not inputs:
        return data
    wanted = choose_fields(inputs, (*data.fields, *data.static))
    constant = [name for name in wanted if name not in data.fields]
    return Driven(_WithConstant(data, constant) if constant else data, wanted)


def check_drop(drop_end: bool, inputs: Sequence[str] | None) -> None:
    """Refuse to leave out a repeated end of data with inputs."""
    if drop_end and inputs:
        raise SplatopError(
            "expected data without a repeated last point beside inputs, got drop_end: leave that "
            "point out of the data first"
        )


def check_cover(
    signals: Mapping[str, Signal], names: Sequence[str], *, begin: float, until: float, hold: bool
) -> None:
    """Refuse a rollout beyond what is known of its inputs, unless their last values are to hold."""
    for name in names:
        if name not in signals:
            raise SplatopError(
                f"expected values of the input {name} over time, got "
                f"{', '.join(signals) or 'none'}: give them (inputs=, --inputs-file)"
            )
        times = np.asarray(signals[name].times, float)
        slack = 1e-4 * (until - begin)
        if times[0] > begin + slack:
            raise SplatopError(
                f"expected values of the input {name} from t = {begin:g} on, where the rollout "
                f"begins, got them from {times[0]:g} on"
            )
        if times[-1] < until - slack and not hold:
            raise SplatopError(
                f"expected values of the input {name} up to t = {until:g}, where the rollout ends, "
                f"got them up to {times[-1]:g}: give more of them (inputs=, --inputs-file), ask "
                "for fewer steps, or hold the last ones (hold_inputs=True, --hold-inputs)"
            )


class _OnlyInputs(Trajectories):
    """Trajectories of which all fields are inputs."""

    def __init__(self, whole: Trajectories, inputs: tuple[str, ...]):
        self._like(whole)
        self.whole, self.inputs = whole, inputs
        if self.times is None:
            self.times = self.dt * np.arange(self.frames)

    def read(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        return self.whole.read(trajectory, start, frames)

    def signals(self, trajectory: int, start: int = 0, frames: int | None = None) -> dict[str, Any]:
        states = self.whole.window(trajectory, 0, self.frames)
        assert self.times is not None
        times = self.times.astype(np.float32)
        return {
            name: Signal(np.ascontiguousarray(states[:, self.fields.index(name)]), times)
            for name in self.inputs
        }


def open_inputs(
    path: str | Path, inputs: Sequence[str], reading: Mapping[str, Any]
) -> Trajectories:
    """A file with the inputs of a rollout over its time, read as the data are."""
    if not inputs:
        raise SplatopError("expected a model with inputs for a file of them, got one without")
    from .open import open_trajectories  # which knows of inputs itself

    kept = ("axes", "lengths", "origin", "dt", "t0", "periodic")
    asked = {k: v for k, v in reading.items() if k in kept}
    found = open_trajectories(path, fields=tuple(inputs), **asked)
    return _OnlyInputs(found, tuple(inputs))

"""Some trajectories of a file, by number; of those with coordinates of their own, such as share
them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ..errors import SplatopError
from .axes import SPATIAL, first_coordinate, mean_spacing
from .times import frame_times
from .trajectories import Constant, Trajectories

_ALIKE = 1e-6  # of its extent: rows of coordinates in single precision
_LISTED = 12  # numbers in a message


def check_only(data: Trajectories, only: Sequence[int] | None) -> None:
    """Refuse numbers of trajectories that a file does not have, and one given twice."""
    if only is None:
        return
    if not only or len(set(only)) < len(only) or not all(0 <= n < data.trajectories for n in only):
        raise SplatopError(
            f"{data.source}: expected trajectories from 0 to {data.trajectories - 1}, each once, "
            f"got {', '.join(map(str, only)) or 'none'} (--only)"
        )


def only_these(data: Trajectories, only: Sequence[int] | None) -> Trajectories:
    """The trajectories that were asked for, all of them without numbers."""
    return data if only is None else _These(data, only)


def on_own_coordinates(
    data: Trajectories, rows: Mapping[str, np.ndarray], only: Sequence[int] | None
) -> None:
    """Give data the coordinates that the trajectories asked for share; `rows` `(B, N)`, by letter,
    are those that each has of its own. A data set has one grid: others are refused."""
    for letter, every in rows.items():
        found = every if only is None else every[list(only)]
        extent = np.ptp(found[0])
        if np.max(np.abs(found - found[0])) > _ALIKE * extent:
            raise _differ(data, letter, found, _together(rows), only)
        if letter == "t":
            data.dt, data.times = frame_times(found[0], source=data.source)
            continue
        axis, lengths, origin = SPATIAL.index(letter), list(data.grid.lengths), data.grid.origin
        begins = list(origin)
        lengths[axis] = len(found[0]) * mean_spacing(found[0], letter, source=data.source)
        begins[axis] = first_coordinate(found[0], len(found[0]))
        data.grid = replace(data.grid, lengths=tuple(lengths), origin=tuple(begins))
        data.coordinates = {**data.coordinates, letter: found[0]}


def _together(rows: Mapping[str, np.ndarray]) -> list[int]:
    """The most trajectories that share all of their coordinates."""
    groups: dict[bytes, list[int]] = {}
    ends = [np.stack([held[:, 0], held[:, -1]], axis=1) for held in rows.values()]
    scale = max(float(np.max(np.abs(one))) for one in ends)
    for number, own in enumerate(np.round(np.concatenate(ends, axis=1) / (_ALIKE * scale))):
        groups.setdefault(own.tobytes(), []).append(number)
    return max(groups.values(), key=len)


def _differ(
    data: Trajectories,
    letter: str,
    found: np.ndarray,
    together: list[int],
    only: Sequence[int] | None,
) -> SplatopError:
    ends = found[:, -1] - found[:, 0]
    share = len(together) > 1
    words = "the most that share theirs are" if share else "each has its own, so read one, as with"
    which = ",".join(map(str, together)) if len(together) <= _LISTED else str(together[0])
    option = "--dt" if letter == "t" else "--lengths"
    asked = "all trajectories" if only is None else "the trajectories asked for"
    return SplatopError(
        f"{data.source}: expected {letter} to be the same for {asked}, got rows over "
        f"{ends.min():g} to {ends.max():g} and different starts or steps: {words} --only {which}; "
        f"or give what holds for all ({option})"
    )


class _These(Trajectories):
    """Some trajectories of others, in the order asked for."""

    def __init__(self, whole: Trajectories, only: Sequence[int]):
        self._whole, self._only = whole, list(only)
        self._like(whole)
        self.trajectories = len(only)
        self.coefficients = {k: values[self._only] for k, values in whole.coefficients.items()}
        self.static = {name: partial(self._constant, one) for name, one in whole.static.items()}
        self.attributes = {
            **whole.attributes,
            "read": f"{len(only)} of {whole.trajectories} trajectories",
        }

    def _constant(self, held: Constant, trajectory: int) -> np.ndarray:
        return held(self._only[trajectory])

    def read(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        return self._whole.read(self._only[trajectory], start, frames)

    def close(self) -> None:
        self._whole.close()

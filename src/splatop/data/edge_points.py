"""Where the points of axes that end lie: as told, as the file says, or as the values show."""

from dataclasses import replace
from typing import Any

import numpy as np

from ..domain import AXES, Condition
from ..grid import Grid
from .axes import as_lengths, as_origin
from .ends import sampled
from .sampling import AxisPoints, axis_points, sampling_words, unknown_sampling
from .trajectories import Trajectories

Conditions = dict[tuple[str, str], Condition]


def points_between(
    data: Trajectories, told: Any, periodic: tuple[bool, ...], conditions: Conditions
) -> dict[int, AxisPoints]:
    """Domain and layout of each bounded axis. `told` is what the user says (`edges.Told`)."""
    dims = data.grid.dims
    words = sampling_words(told.sampling, dims)
    lengths = as_lengths(told.lengths, dims) or (None,) * dims
    begins = as_origin(told.origin, dims) or (None,) * dims
    found = {}
    for axis, ring in enumerate(periodic):
        if ring:
            continue
        word, stored = words[axis], data.stated.domain
        own = stored.axes[axis] if stored is not None and word is None else None
        if own is not None and not own.periodic:
            layout = data.stated.layout[axis]
            length, begin = lengths[axis], begins[axis]
            length = own.length if length is None else length
            begin = own.origin if begin is None else begin
            found[axis] = AxisPoints(begin, length, layout, "as written")
            continue
        one = axis_points(data, axis, word=word, length=lengths[axis], begin=begins[axis])
        one = one or _told_by_values(data, axis, conditions, lengths[axis], begins[axis])
        if one is None:
            raise unknown_sampling(data, axis)
        found[axis] = one
    return found


def _told_by_values(
    data: Trajectories,
    axis: int,
    conditions: Conditions,
    length: float | None,
    begin: float | None,
) -> AxisPoints | None:
    """Points that hold the stated values exactly, in every frame, are the ends."""
    states = sampled(data).frames
    exact = []
    for end in (0, 1):
        for channel, name in enumerate(data.fields):
            one = conditions.get((f"{AXES[axis]}{end}", name))
            if one is not None and one.kind == "value" and not isinstance(one.value, str):
                line = states[:, channel].take([0, 1] if end == 0 else [-1, -2], axis + 1)
                held, beside = np.abs(np.moveaxis(line, axis + 1, 0) - np.float32(one.value))
                exact.append((end, held.max() <= 1e-6 * beside.max() and beside.max() > 0))
    if {end for end, holds in exact if holds} != {0, 1} or not all(holds for _, holds in exact):
        return None
    told = axis_points(data, axis, word="ends", length=length, begin=begin)
    return told and replace(told, why="the ends hold the stated values")


def grid_between(data: Trajectories, points: dict[int, AxisPoints]) -> Grid:
    """The grid of the data with its bounded axes as their points say."""
    old: Any = data.grid
    lengths, origin, layout = (list(part) for part in (old.lengths, old.origin, old.layout))
    for axis, one in points.items():
        lengths[axis], origin[axis], layout[axis] = one.length, one.begin, one.layout
    return Grid(old.points, tuple(lengths), tuple(origin), tuple(layout))

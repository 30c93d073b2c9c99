"""A state in xarray as an array `(C, *N)`, and predicted frames in xarray again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ..errors import SplatopError, unknown_name
from .axes import SPATIAL, check_real, first_coordinate, uniform_spacing
from .complex_fields import whole_names
from .dimensions import LETTERS

Labelled = xr.Dataset | xr.DataArray


@dataclass(frozen=True)
class StateLayout:
    """Where things are in a user's state: its variables, and the letter of each dimension.

    `time` names the dimension that predictions run along; `now` is the state's own moment, if it
    says.
    """

    like: Labelled
    variables: tuple[xr.DataArray, ...]  # of one moment, one per field or one with channels
    axes: str
    order: tuple[int, ...]  # of the channels in the variable, for each field
    time: str
    now: Any  # a number, or of a clock
    sampling: tuple[str, ...]  # where the points of each axis lie, as a grid's layout

    @property
    def batched(self) -> bool:
        return "b" in self.axes

    def begins(self, default: tuple[float, ...]) -> tuple[float, ...]:
        """Where the axes of space begin; the `default` for those without coordinates."""
        first = self.variables[0]
        names = [str(first.dims[self.axes.index(k)]) for k in SPATIAL[: len(default)]]
        found = []
        for name, other, points in zip(names, default, self.sampling, strict=True):
            if name not in first.coords:
                found.append(other)
                continue
            along = first.coords[name].values
            begin = first_coordinate(along, first.sizes[name])
            half = uniform_spacing(along, name, source="the state") / 2 if points == "cells" else 0
            found.append(begin - half)
        return tuple(found)


def is_complex(data: Labelled) -> bool:
    """Whether a variable of the data is complex."""
    variables = [data] if isinstance(data, xr.DataArray) else data.data_vars.values()
    return any(np.issubdtype(variable.dtype, np.complexfloating) for variable in variables)


def read_state(
    data: Labelled,
    *,
    fields: tuple[str, ...],
    lengths: tuple[float, ...],
    sampling: tuple[str, ...] = (),
) -> tuple[np.ndarray, StateLayout]:
    """The state `(C, *N)`, or states `(B, C, *N)`, and the layout to give predictions back in.

    `lengths` are the domain's, `sampling` where the model's points lie ("left" unless told).
    Complex variables stand for two real `fields` each, and the state is then complex: a channel for
    each of `whole_names(fields)`.
    """
    sampling = sampling or ("left",) * len(lengths)
    if is_complex(data) and whole_names(fields) != tuple(fields):
        fields, kind = whole_names(fields), np.complex64
    else:
        kind = np.float32
    variables = _variables(data, fields)
    moments = [_one_moment(variable) for variable in variables]
    time, now = moments[0][1:]
    held = tuple(moment[0] for moment in moments)
    axes = _axes(held[0], len(lengths))
    if kind == np.float32:
        for variable in held:
            check_real(variable.dtype, f"'{variable.name}'", "the state")
    if any(variable.dims != held[0].dims for variable in held):
        raise SplatopError(
            "expected fields over the same dimensions, got "
            + ", ".join(f"{v.name} {tuple(map(str, v.dims))}" for v in held)
        )
    _check_box(held[0], axes, lengths, sampling)
    order = _channel_order(held[0], axes, fields, len(held))
    layout = StateLayout(data, held, axes, order, time, now, sampling)
    parts = [_standard(variable.values, axes) for variable in held]
    states = np.concatenate(parts, axis=-1 - len(lengths))
    return np.take(states, order, axis=-1 - len(lengths)).astype(kind), layout


def labelled_frames(
    frames: np.ndarray,
    layout: StateLayout,
    *,
    dt: float,
    unit: np.timedelta64 | None,
) -> Labelled:
    """Frames `(T, C, *N)`, or `(B, T, C, *N)`, with the state's coordinates and times after it.

    `unit` is what one unit of `dt` is on a clock, for states whose time is one.
    """
    steps = frames.shape[1 if layout.batched else 0]
    times = _times(layout.now, dt, steps, unit)
    back = np.argsort(layout.order)
    channel = 2 if layout.batched else 1
    frames = np.take(frames, back, axis=channel)
    if "c" in layout.axes:
        pieces = [frames]
    else:
        pieces = [np.take(frames, i, axis=channel) for i in range(frames.shape[channel])]
    made = [
        _labelled(piece, variable, layout, times)
        for piece, variable in zip(pieces, layout.variables, strict=True)
    ]
    if isinstance(layout.like, xr.DataArray):
        return made[0]
    return xr.Dataset({one.name: one for one in made}, attrs=layout.like.attrs)


def _variables(data: Labelled, fields: Sequence[str]) -> list[xr.DataArray]:
    if isinstance(data, xr.DataArray):
        return [data]
    names = [str(name) for name in data.data_vars]
    if len(fields) > 1 or fields[0] in names:
        stacked = [
            n for n in names if any(LETTERS.get(str(d).lower()) == "c" for d in data[n].dims)
        ]
        if len(stacked) == 1:
            return [data[stacked[0]]]
        for field in fields:
            if field not in names:
                raise unknown_name("field of the model in this data", field, names)
        return [data[field] for field in fields]
    spatial = [n for n in names if _has(data[n], "x")]
    if len(spatial) != 1:
        raise unknown_name("field of the model in this data", fields[0], names)
    return [data[spatial[0]]]


def _has(variable: xr.DataArray, letter: str) -> bool:
    return any(LETTERS.get(str(dim).lower()) == letter for dim in variable.dims)


def _one_moment(variable: xr.DataArray) -> tuple[xr.DataArray, str, Any]:
    """The variable without its time, the name of that, and its value."""
    names = [str(n) for n in (*variable.dims, *variable.coords)]
    time = next((n for n in names if LETTERS.get(n.lower()) == "t"), "time")
    if time in variable.dims:
        if variable.sizes[time] != 1:
            raise SplatopError(
                f"expected a state of one moment, got {variable.sizes[time]} along '{time}': "
                f"choose one, for example .isel({time}=0)"
            )
        variable = variable.isel({time: 0})
    now = None
    if time in variable.coords:
        now = variable.coords[time].values[()]
        variable = variable.drop_vars(time)
    return variable, time, now


def _axes(variable: xr.DataArray, dims: int) -> str:
    letters = "".join(LETTERS.get(str(dim).lower(), "?") for dim in variable.dims)
    wanted = set(SPATIAL[:dims])
    rest = [letter for letter in letters if letter not in wanted]
    if not wanted <= set(letters) or any(letter not in "bc" for letter in rest):
        raise SplatopError(
            f"expected a state over the dimensions {', '.join(sorted(wanted))} (and trajectory, "
            f"channel), got {', '.join(map(str, variable.dims)) or 'none'}: rename them"
        )
    return letters


def _check_box(
    variable: xr.DataArray, axes: str, lengths: tuple[float, ...], sampling: tuple[str, ...]
) -> None:
    for letter, length, points in zip(SPATIAL, lengths, sampling, strict=False):
        name = str(variable.dims[axes.index(letter)])
        if name not in variable.coords:
            continue
        spacing = uniform_spacing(variable.coords[name].values, name, source="the state")
        found = spacing * (variable.sizes[name] - (points == "ends"))
        if not np.isclose(found, length, rtol=1e-3):
            raise SplatopError(
                f"expected a state on the model's box, of length {length:g} along {name}, got "
                f"{found:g}: use states of the same box"
            )


def _channel_order(
    variable: xr.DataArray, axes: str, fields: tuple[str, ...], count: int
) -> tuple[int, ...]:
    if "c" not in axes:
        if count != len(fields):
            raise SplatopError(
                f"expected the fields {', '.join(fields)}, got one array without a channel "
                "dimension: pass a Dataset of all fields, or add the dimension 'channel'"
            )
        return tuple(range(count))
    name = str(variable.dims[axes.index("c")])
    if variable.sizes[name] != len(fields):
        raise SplatopError(
            f"expected {len(fields)} channel(s) ({', '.join(fields)}) along '{name}', got "
            f"{variable.sizes[name]}"
        )
    if name in variable.coords and variable.coords[name].dtype.kind in "UOST":
        labels = [str(label) for label in variable.coords[name].values]
        for field in fields:
            if field not in labels:
                raise unknown_name(f"field of the model along '{name}'", field, labels)
        return tuple(labels.index(field) for field in fields)
    return tuple(range(len(fields)))


def _standard(values: np.ndarray, axes: str) -> np.ndarray:
    """`([B,] C, *N)`."""
    if "c" not in axes:
        values, axes = values[None], "c" + axes
    wanted = [letter for letter in "bc" + SPATIAL if letter in axes]
    return np.transpose(values, [axes.index(letter) for letter in wanted])


def _times(now: Any, dt: float, steps: int, unit: np.timedelta64 | None) -> np.ndarray:
    ahead = dt * np.arange(1, steps + 1)
    if now is None:
        return ahead
    if isinstance(now, np.datetime64 | np.timedelta64):
        if unit is None:
            raise SplatopError(
                "expected a state at a number of time, as the training data had, got the clock "
                f"time {now}: give its time as a number, or drop it"
            )
        return now + (ahead * (unit / np.timedelta64(1, "ns"))).astype("timedelta64[ns]")
    return float(now) + ahead


def _labelled(
    frames: np.ndarray, variable: xr.DataArray, layout: StateLayout, times: np.ndarray
) -> xr.DataArray:
    """One variable's frames, its dimensions in the order of the state, time before space."""
    given = [
        letter for letter in ("b", "t", "c", *SPATIAL) if letter in layout.axes or letter == "t"
    ]
    lead = "b" if layout.axes.startswith("b") else ""
    wanted = lead + "t" + layout.axes[len(lead) :]
    frames = np.transpose(frames, [given.index(letter) for letter in wanted])
    dims = list(map(str, variable.dims))
    dims.insert(len(lead), layout.time)
    coords = {**variable.coords, layout.time: (layout.time, times)}
    return xr.DataArray(frames, dims=dims, coords=coords, name=variable.name, attrs=variable.attrs)

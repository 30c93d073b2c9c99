"""Reading NetCDF and Zarr through xarray, by the names of their dimensions."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

from ..errors import SplatopError
from ..grid import Grid
from .axes import (
    SPATIAL,
    as_lengths,
    as_origin,
    choose_fields,
    common_shape,
    first_coordinate,
    is_complex,
    name_channels,
    need,
    parse_axes,
    to_standard,
    uniform_spacing,
)
from .stated import Stated
from .times import frame_times
from .trajectories import Trajectories, checked_metadata

# Names that leave no doubt. Others are named by the user, with `axes`.
LETTERS = {
    **dict.fromkeys(("b", "batch", "trajectory", "sample", "member", "ensemble"), "b"),
    **dict.fromkeys(("t", "time"), "t"),
    **dict.fromkeys(("c", "channel", "component"), "c"),
    **{letter: letter for letter in SPATIAL},
}


@dataclass(frozen=True)
class _Variable:
    """A variable over time and space, one letter for each of its dimensions."""

    data: xr.DataArray
    axes: str

    @property
    def shape(self) -> dict[str, int]:
        return dict(zip(self.axes, self.data.shape, strict=True))

    def dimension(self, letter: str) -> str:
        return str(self.data.dims[self.axes.index(letter)])

    def coordinate(self, letter: str) -> xr.DataArray | None:
        """The stored coordinate; xarray itself would make up 0, 1, 2, ... for a missing one."""
        name = self.dimension(letter)
        return self.data.coords[name] if name in self.data.coords else None  # noqa: SIM401


class LabelledTrajectories(Trajectories):
    """Variables of an open xarray data set; a window reads only what it covers."""

    def __init__(
        self,
        data: xr.Dataset,
        *,
        axes: str | None = None,
        fields: Sequence[str] | None = None,
        lengths: float | Sequence[float] | None = None,
        dt: float | None = None,
        origin: float | Sequence[float] | None = None,
        source: str,
    ):
        self._data = data
        states = _states(data, axes, source)
        self._variables, self.fields = _channels(states, fields, source)
        found = [
            is_complex(variable.data.dtype, f"'{variable.data.name}'", source)
            for variable in self._variables
        ]
        self.complex_fields = _complex_fields(self.fields, found)
        first = self._variables[0]
        letters = sorted(first.axes)
        common_shape(
            {str(v.data.name): tuple(v.shape.get(k, 1) for k in letters) for v in self._variables},
            source,
        )
        spatial = [letter for letter in SPATIAL if letter in first.axes]
        points = tuple(first.shape[letter] for letter in spatial)
        self.trajectories, self.frames = first.shape.get("b", 1), first.shape["t"]
        given = as_lengths(lengths, len(spatial))
        self.grid = Grid(
            points,
            given or tuple(_length(first, k, source) for k in spatial),
            as_origin(origin, len(spatial)) or tuple(_origin(first, k) for k in spatial),
        )
        if dt is None:
            stamps = _along(first, "t", "the time step (--dt)", source)
            dt, self.times = frame_times(stamps, source=source, name=first.dimension("t"))
        self.dt, self.fields, self.coefficients = checked_metadata(
            (self.trajectories, self.frames, len(self.fields), *points),
            dt,
            self.fields,
            _coefficients(data, first, self.trajectories),
        )
        self.coordinates = {
            k: along.values for k in spatial if (along := first.coordinate(k)) is not None
        }
        stated = data.attrs.get("boundary_conditions")
        self.stated = Stated(
            text=None if stated is None else str(stated),
            others=tuple(name for name in states if name not in self.fields),
        )
        self.attributes = {"source": source, "format": "xarray"}

    def read(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        parts = []
        for variable in self._variables:
            where: dict[str, int | slice] = {variable.dimension("t"): slice(start, start + frames)}
            if "b" in variable.axes:
                where[variable.dimension("b")] = trajectory
            block = variable.data.isel(where).values
            parts.append(to_standard(block, variable.axes.replace("b", "")))
        return np.concatenate(parts, axis=1)

    def close(self) -> None:
        self._data.close()


def open_labelled(path: Path) -> xr.Dataset:
    """The file with numbers as they are stored: times in the file's own unit."""
    try:
        if path.is_dir():
            return xr.open_zarr(path, chunks=None, decode_times=False, consolidated=False)
        return xr.open_dataset(path, decode_times=False)
    except (ValueError, OSError, KeyError) as error:
        if isinstance(error, PermissionError):
            raise
        raise SplatopError(
            f"expected NetCDF or Zarr that xarray can open, {path} is not ({error}): "
            "copy or write it again"
        ) from error


def _states(data: xr.Dataset, axes: str | None, source: str) -> dict[str, _Variable]:
    found = {}
    for name, variable in data.data_vars.items():
        letters = [LETTERS.get(str(dim).lower(), "?") for dim in variable.dims]
        if axes is not None:
            letters = list(axes) if variable.ndim == len(axes) else []
        if "t" in letters and "x" in letters and "?" not in letters:
            order = parse_axes("".join(letters), variable.ndim, source=source)
            found[str(name)] = _Variable(variable, order)
    if not found:
        listed = ", ".join(f"{name} {tuple(v.dims)}" for name, v in data.data_vars.items())
        raise SplatopError(
            f"{source}: expected variables over the dimensions time and x (and trajectory, "
            f"channel, y, z), got {listed or 'none'}: rename them, or give their order "
            "(--axes btxy)"
        )
    return found


def _channels(
    states: dict[str, _Variable], fields: Sequence[str] | None, source: str
) -> tuple[list[_Variable], tuple[str, ...]]:
    stacked = [name for name, variable in states.items() if "c" in variable.axes]
    if not stacked:
        names = choose_fields(fields, states)
        return [states[name] for name in names], names
    if len(states) > 1:
        raise SplatopError(
            f"{source}: expected one variable with a channel dimension, or several without, "
            f"got {', '.join(states)}: keep one, or split the channels"
        )
    variable = states[stacked[0]]
    labels = variable.coordinate("c")
    if fields is None and labels is not None and labels.dtype.kind in "UOST":
        fields = [str(label) for label in labels.values]
    return [variable], name_channels(fields, variable.shape["c"], source)


def _complex_fields(fields: tuple[str, ...], found: list[bool]) -> tuple[str, ...]:
    """Those of complex variables; one variable may hold all fields."""
    if len(found) == 1:
        return fields if found[0] else ()
    return tuple(name for name, one in zip(fields, found, strict=True) if one)


def _along(variable: _Variable, letter: str, what: str, source: str) -> np.ndarray:
    """The coordinates along an axis, as numbers."""
    name = variable.dimension(letter)
    along = variable.coordinate(letter)
    along = need(along, f"coordinates along '{name}'", f"give {what}", source)
    values = along.values
    if letter == "t" and values.dtype.kind in "mM":  # clock times are in seconds
        values = (values - values[0]) / np.timedelta64(1, "s")
    if not np.issubdtype(values.dtype, np.number):
        raise SplatopError(f"{source}: expected numbers along '{name}', got {along.dtype}")
    return values


def _spacing(variable: _Variable, letter: str, what: str, source: str) -> float:
    values = _along(variable, letter, what, source)
    return uniform_spacing(values, variable.dimension(letter), source=source)


def _origin(variable: _Variable, letter: str) -> float:
    along = variable.coordinate(letter)
    return first_coordinate(None if along is None else along.values, variable.shape[letter])


def _length(variable: _Variable, letter: str, source: str) -> float:
    spacing = _spacing(variable, letter, "the lengths (--lengths)", source)
    return variable.shape[letter] * spacing


def _coefficients(
    data: xr.Dataset, state: _Variable, trajectories: int
) -> dict[str, np.ndarray | float]:
    """Numbers without dimension, or with one value per trajectory."""
    batch = (state.dimension("b"),) if "b" in state.axes else ()
    return {
        str(name): np.broadcast_to(np.asarray(variable.values, float), (trajectories,))
        for name, variable in data.data_vars.items()
        if variable.dims in ((), batch)
        and np.issubdtype(variable.dtype, np.number)
        and not np.issubdtype(variable.dtype, np.complexfloating)
    }

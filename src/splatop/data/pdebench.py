"""Reading PDEBench's HDF5 layouts.

Flat: `tensor` (B,T,X), or `Vx`, `Vy`, `density`, `pressure` (B,T,X[,Y[,Z]]), with `x-coordinate`,
`t-coordinate`, ...; physical parameters are attributes. Grouped: `0000/data` (T,X[,Y[,Z]],C) with
`0000/grid/x`, ... for each trajectory. Other flat files open with their fields and axes named.
"""

import re
from collections.abc import Mapping, Sequence

import h5py
import numpy as np

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
    mean_spacing,
    name_channels,
    need,
    parse_axes,
    to_standard,
)
from .hdf5 import datasets, group, numbers
from .stated import OPEN, Stated, all_periodic
from .times import frame_times
from .trajectories import Trajectories, checked_metadata

_COORDINATE = "-coordinate"


class FlatTrajectories(Trajectories):
    """One dataset per field at the root of an HDF5 file."""

    def __init__(
        self,
        file: h5py.File,
        *,
        axes: str | None = None,
        fields: Sequence[str] | None = None,
        lengths: float | Sequence[float] | None = None,
        dt: float | None = None,
        origin: float | Sequence[float] | None = None,
        source: str,
    ):
        self._file = file
        stored = {k: d for k, d in datasets(file).items() if not k.endswith(_COORDINATE)}
        coordinates = {
            k.removesuffix(_COORDINATE): numbers(d, source=source)
            for k, d in datasets(file).items()
            if k.endswith(_COORDINATE)
        }
        if axes is None:
            axes = "bt" + "".join(name for name in SPATIAL if name in coordinates)
        if set(stored) == {"tensor"}:
            names, keys = name_channels(fields, 1, source), ("tensor",)
        else:
            usable = [k for k, d in stored.items() if d.ndim == len(axes)]
            names = keys = choose_fields(fields, usable or stored)
        self._axes = parse_axes(axes, stored[keys[0]].ndim, source=source)
        if "c" in axes:
            raise SplatopError(f"{source}: expected one dataset per field, got axes '{axes}'")
        sizes = common_shape({k: stored[k].shape for k in keys}, source)
        shape = dict(zip(axes, sizes, strict=True))
        points = [shape[name] for name in SPATIAL if name in axes]
        self._datasets = [stored[key] for key in keys]
        self.complex_fields = tuple(
            name
            for name, key in zip(names, keys, strict=True)
            if is_complex(stored[key].dtype, key, source)
        )
        self.trajectories, self.frames = shape.get("b", 1), shape["t"]
        self.grid = _grid(points, coordinates, lengths, origin, source)
        if dt is None:
            dt, self.times = _times(coordinates.get("t"), self.frames, source)
        self.dt, self.fields, self.coefficients = checked_metadata(
            (self.trajectories, self.frames, len(names), *points),
            dt,
            names,
            _parameters(file),
        )
        self.attributes = {"source": source, "format": "pdebench"}
        self.coordinates, self.stated = coordinates, stated_by_name(source, self.fields, points)

    def read(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        where = {"b": trajectory, "t": slice(start, start + frames)}
        index = tuple(where.get(name, slice(None)) for name in self._axes)
        axes = self._axes.replace("b", "")
        return np.concatenate([to_standard(d[index], axes) for d in self._datasets], axis=1)

    def close(self) -> None:
        self._file.close()


class GroupedTrajectories(Trajectories):
    """One numbered group per trajectory, channels last."""

    def __init__(
        self,
        file: h5py.File,
        *,
        fields: Sequence[str] | None = None,
        lengths: float | Sequence[float] | None = None,
        dt: float | None = None,
        origin: float | Sequence[float] | None = None,
        source: str,
    ):
        self._file = file
        groups = _numbered(file)
        self._data = [datasets(one)["data"] for one in groups.values()]
        shape = common_shape(
            {f"{k}/data": d.shape for k, d in zip(groups, self._data, strict=True)}, source
        )
        found = [
            is_complex(data.dtype, f"{name}/data", source)
            for name, data in zip(groups, self._data, strict=True)
        ]
        grid = group(next(iter(groups.values())), "grid")
        stored = datasets(grid) if grid else {}
        coordinates = {name: numbers(d, source=source) for name, d in stored.items()}
        self._axes = "t" + SPATIAL[: len(shape) - 2] + "c"
        parse_axes(self._axes, len(shape), source=source)
        self.trajectories, (self.frames, *points, channels) = len(groups), shape
        self.grid = _grid(points, coordinates, lengths, origin, source)
        if dt is None:
            dt, self.times = _times(coordinates.get("t"), self.frames, source)
        self.dt, self.fields, self.coefficients = checked_metadata(
            (self.trajectories, self.frames, channels, *points),
            dt,
            name_channels(fields, channels, source),
            {},
        )
        self.complex_fields = self.fields if any(found) else ()
        self.attributes = {"source": source, "format": "pdebench"}
        self.coordinates, self.stated = coordinates, stated_by_name(source, self.fields, points)

    def read(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        return to_standard(self._data[trajectory][start : start + frames], self._axes)

    def close(self) -> None:
        self._file.close()


def stated_by_name(name: str, fields: Sequence[str], points: Sequence[int]) -> Stated:
    """What is known of PDEBench's sets, which the files do not say but their names do.

    Diffusion-reaction and the dam break in 2D have no slope at their walls; compressible flows are
    named after their edges. Others, such as diffusion-sorption with its condition of the third
    kind, have no words here.
    """
    by = "PDEBench's set, by the file's name"
    if ("diff-react" in name.lower() or "_rdb_" in name) and len(points) == 2:
        return Stated(by, text="all: " + ", ".join(f"dn({field}) = 0" for field in fields))
    if "_CFD_" in name and "_periodic_" in name:
        return all_periodic(len(points), by=by)
    if "_CFD_" in name and "_trans_" in name:
        ends = (f"{axis}{end}" for axis in SPATIAL[: len(points)] for end in (0, 1))
        return Stated(by, flags=dict.fromkeys(ends, OPEN))
    return Stated()


def is_grouped(file: h5py.File) -> bool:
    return bool(_numbered(file))


def is_flat(file: h5py.File) -> bool:
    return "x-coordinate" in file and any(not k.endswith(_COORDINATE) for k in datasets(file))


def _numbered(file: h5py.File) -> dict[str, h5py.Group]:
    """The groups `0000`, `0001`, ... that hold `data`, in order."""
    groups = {
        name: item
        for name, item in file.items()
        if re.fullmatch(r"\d+", name) and isinstance(item, h5py.Group) and "data" in item
    }
    return dict(sorted(groups.items(), key=lambda named: int(named[0])))


def _grid(
    points: list[int],
    coordinates: Mapping[str, np.ndarray],
    lengths: float | Sequence[float] | None,
    origin: float | Sequence[float] | None,
    source: str,
) -> Grid:
    begins = as_origin(origin, len(points)) or tuple(
        first_coordinate(coordinates.get(name), count)
        for name, count in zip(SPATIAL, points, strict=False)
    )
    given = as_lengths(lengths, len(points))
    if given is not None:
        return Grid(tuple(points), given, begins)
    found = []
    for name, count in zip(SPATIAL, points, strict=False):
        along = need(coordinates.get(name), f"coordinates along {name}", "give the lengths", source)
        if along.shape != (count,):
            raise SplatopError(
                f"{source}: expected {count} coordinates along {name}, one for each point of the "
                f"fields, got shape {along.shape}"
            )
        found.append(count * mean_spacing(along, name, source=source))
    return Grid(tuple(points), tuple(found), begins)


def _times(times: np.ndarray | None, frames: int, source: str) -> tuple[float, np.ndarray]:
    times = need(times, "a time axis", "give the time step (dt)", source)
    # PDEBench writes the edges of the time bins, one more than there are frames.
    if times.ndim != 1 or len(times) not in (frames, frames + 1):
        raise SplatopError(
            f"{source}: expected {frames} times, one for each frame, got shape {times.shape}"
        )
    return frame_times(times[:frames], source=source)


def _parameters(file: h5py.File) -> dict[str, float]:
    """Physical parameters that PDEBench keeps as attributes: beta, Nu, rho, eta, zeta, M."""
    values = {name: np.asarray(value) for name, value in file.attrs.items()}
    return {
        name: float(value.reshape(()))
        for name, value in values.items()
        if value.size == 1 and np.issubdtype(value.dtype, np.number)
    }

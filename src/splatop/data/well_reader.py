"""Reading HDF5 in the layout of The Well, ours and others'."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import h5py
import numpy as np

from ..domain import Domain
from ..errors import SplatopError
from ..grid import Grid
from ..points import Points, layout_from_json
from .axes import (
    SPATIAL,
    as_lengths,
    as_origin,
    choose_fields,
    common_shape,
    component_names,
    first_coordinate,
    is_complex,
    mean_spacing,
)
from .hdf5 import datasets, group, numbers, strings, text
from .stated import Stated
from .times import frame_times
from .trajectories import Constant, Trajectories, checked_metadata
from .well_edges import read_flags
from .well_writer import OURS


@dataclass(frozen=True)
class _Channel:
    """Where one channel lies: a dataset and the component of its vector or tensor."""

    dataset: h5py.Dataset
    component: int


class WellTrajectories(Trajectories):
    """Trajectories in an open HDF5 file; a window reads only its own chunks."""

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
        ours = _ours(file)
        scattered = (
            _points(ours, source) if text(file.attrs.get("grid_type", "")) == "points" else None
        )
        axes = ["x", "y"] if scattered else _axes(file, source)
        # Axes of a state, of which scattered points are one.
        rank = len(axes) if scattered is None else 1
        channels = _channels(file, len(axes), source, rank)
        names = choose_fields(fields or ours.get("fields"), channels)
        shape = common_shape(
            {name: channels[name].dataset.shape[: 2 + rank] for name in names}, source
        )
        self.trajectories, self.frames, *points = shape
        if scattered is not None:
            if scattered.points != tuple(points):
                raise SplatopError(
                    f"{source}: expected values at {scattered.points[0]} points, got {points[0]}: "
                    "the file was damaged"
                )
            self.grid = scattered
        else:
            given = as_lengths(lengths, len(points))
            self.grid = Grid(
                tuple(points),
                given or _lengths(file, axes, points, ours, source),
                as_origin(origin, len(points)) or _origin(file, axes, points, ours, source),
            )
        if dt is None:
            dt, self.times = _times(file, self.frames, ours, source)
        self.dt, self.fields, self.coefficients = checked_metadata(
            (self.trajectories, self.frames, len(names), *points),
            dt,
            names,
            _coefficients(file, self.trajectories, source),
        )
        self.attributes = {
            **ours.get("attributes", {}),
            "source": source,
            "format": "the_well",
        }
        self.attributes.pop("boundary_conditions", None)
        self.attributes.pop("sampling", None)
        self.attributes.pop("shape", None)
        self.attributes.pop("constant_fields", None)
        if scattered is None:
            self.static = _static(file, len(axes), tuple(points))
        stored = {
            k: _coordinates(file, name, source) for k, name in zip(SPATIAL, axes, strict=False)
        }
        self.coordinates = {k: values for k, values in stored.items() if values is not None}
        if isinstance(self.grid, Points):
            self.stated = Stated(domain=_domain(ours))
        else:
            self.stated = _own(ours, self.grid, self.coordinates) or read_flags(
                file, axes, tuple(names), source
            )
        self.complex_fields = tuple(
            name for name in names if np.iscomplexobj(np.empty(0, channels[name].dataset.dtype))
        )
        # Components of a vector lie together: one read serves all of its channels.
        self._parts: dict[h5py.Dataset, list[tuple[int, int]]] = {}
        for index, name in enumerate(names):
            channel = channels[name]
            self._parts.setdefault(channel.dataset, []).append((index, channel.component))

    def read(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        kind = np.complex64 if self.complex_fields else np.float32
        out = np.empty((frames, *self.shape[2:]), kind)
        for dataset, parts in self._parts.items():
            block = np.asarray(dataset[trajectory, start : start + frames])
            block = block.reshape(*block.shape[: 1 + len(self.grid.points)], -1)
            for index, component in parts:
                out[:, index] = block[..., component]
        return out

    def close(self) -> None:
        self._file.close()


def is_well(file: h5py.File) -> bool:
    return "dimensions" in file and any(f"t{rank}_fields" in file for rank in range(3))


def _ours(file: h5py.File) -> dict[str, Any]:
    """What our own writer added; nothing in files of others."""
    try:
        return json.loads(text(file.attrs.get(OURS, "{}")))
    except ValueError:
        return {}


def _points(ours: dict[str, Any], source: str) -> Points:
    """The points that our own writer stored."""
    try:
        found = layout_from_json(ours["layout"])
    except (KeyError, SplatopError) as error:
        raise SplatopError(f"{source}: expected the points of its values, got {error}") from error
    if not isinstance(found, Points):
        raise SplatopError(f"{source}: expected scattered points, got a grid")
    return found


def _domain(ours: dict[str, Any]) -> Domain | None:
    try:
        return Domain.from_dict(ours["domain"])
    except (KeyError, TypeError, SplatopError):
        return None


def _axes(file: h5py.File, source: str) -> list[str]:
    dimensions = group(file, "dimensions")
    axes = strings(dimensions.attrs.get("spatial_dims", [])) if dimensions else []
    grid_type = text(file.attrs.get("grid_type", "cartesian"))
    if grid_type != "cartesian" and 1 <= len(axes) <= 3:
        raise SplatopError(
            f"{source}: expected a cartesian grid, got grid_type '{grid_type}' with the dimensions "
            f"{', '.join(axes)}: boxes and shapes are flat, and derivatives on a sphere are not "
            "those of a plane; cut out a small part of it, write that as a flat grid "
            "(grid_type 'cartesian') and read that"
        )
    if not 1 <= len(axes) <= 3:
        raise SplatopError(
            f"{source}: expected a cartesian grid in 1 to 3 dimensions, "
            f"got grid_type '{grid_type}' with the dimensions {', '.join(axes) or 'none'}"
        )
    return axes


def _own(ours: dict[str, Any], grid: Grid, coordinates: Mapping[str, np.ndarray]) -> Stated | None:
    """The exact domain that our own writer stored, if it is that of the coordinates."""
    try:
        domain = Domain.from_dict(ours["domain"])
        written = Grid(grid.points, domain.lengths, domain.origin, tuple(ours["layout"]))
    except (KeyError, TypeError, SplatopError):
        return None
    if domain.all_periodic:
        return None  # the flags and the coordinates say all of it
    for axis, (first, step) in enumerate(zip(written.first_point, written.spacing, strict=True)):
        along = coordinates.get(SPATIAL[axis])
        near = along is not None and along.shape == (grid.points[axis],)
        if not near or not np.allclose(
            along,  # type: ignore[arg-type]
            first + step * np.arange(grid.points[axis]),
            rtol=1e-5,
            atol=1e-2 * step,
        ):
            return None
    return Stated(domain=domain, layout=written.layout)


def _channels(file: h5py.File, dims: int, source: str, axes: int) -> dict[str, _Channel]:
    """All channels that vary with trajectory, time and space (so many `axes`), by name."""
    channels: dict[str, _Channel] = {}
    for rank in range(3):
        fields = group(file, f"t{rank}_fields")
        for name, dataset in datasets(fields).items() if fields else ():
            varying = [dataset.attrs.get(f"{what}_varying", True) for what in ("sample", "time")]
            if not (all(varying) and np.all(dataset.attrs.get("dim_varying", True))):
                continue
            components = int(np.prod(dataset.shape[2 + axes :]))
            if dataset.ndim < 2 + axes or components != dims**rank:
                raise SplatopError(
                    f"{source}: expected (trajectory, time, {dims} of space) and {dims**rank} "
                    f"component(s) in t{rank}_fields/{name}, got shape {dataset.shape}"
                )
            is_complex(dataset.dtype, f"t{rank}_fields/{name}", source)
            for index, letters in enumerate(product(SPATIAL[:dims], repeat=rank)):
                full = f"{name}_{''.join(letters)}" if rank else name
                channels[full] = _Channel(dataset, index)
    if not channels:
        raise SplatopError(f"{source}: expected a field that varies in time and space, got none")
    return channels


def _static(file: h5py.File, dims: int, points: tuple[int, ...]) -> dict[str, Constant]:
    """Fields that do not change in time: one for each trajectory, or one for all."""
    found: dict[str, Constant] = {}
    for rank in range(2):
        fields = group(file, f"t{rank}_fields")
        for name, dataset in datasets(fields).items() if fields else ():
            each = bool(dataset.attrs.get("sample_varying", True))
            if dataset.attrs.get("time_varying", True) or dataset.dtype.kind not in "buif":
                continue
            if dataset.shape[each : each + dims] != points:
                continue
            parts = int(np.prod(dataset.shape[each + dims :]))
            for index, full in enumerate(component_names(name, parts, dims)):
                found[full] = _constant(dataset, each, index, points)
    return found


def _constant(
    dataset: h5py.Dataset, each: bool, component: int, points: tuple[int, ...]
) -> Constant:
    def values(trajectory: int) -> np.ndarray:
        whole = np.asarray(dataset[trajectory] if each else dataset[()], np.float32)
        return whole.reshape(*points, -1)[..., component]

    return values


def _lengths(
    file: h5py.File, axes: list[str], points: list[int], ours: dict[str, Any], source: str
) -> tuple[float, ...]:
    lengths = []
    for name, count in zip(axes, points, strict=True):
        coordinates = _axis(file, name, count, "lengths", source)
        lengths.append(count * mean_spacing(coordinates, name, source=source))
    return _exact(tuple(lengths), ours.get("lengths"))


def _origin(
    file: h5py.File, axes: list[str], points: list[int], ours: dict[str, Any], source: str
) -> tuple[float, ...]:
    found = tuple(
        first_coordinate(_coordinates(file, name, source), count)
        for name, count in zip(axes, points, strict=True)
    )
    return _exact(found, ours.get("origin"), rtol=1e-6)


def _times(
    file: h5py.File, frames: int, ours: dict[str, Any], source: str
) -> tuple[float, np.ndarray]:
    """The time between frames, and the time of each."""
    stored = _axis(file, "time", frames, "time step (dt)", source)
    exact, dt = ours.get("times"), ours.get("dt")
    if isinstance(exact, list) and len(exact) == frames and np.allclose(stored, exact, rtol=1e-6):
        stored = np.asarray(exact, float)
    stated = float(dt) if isinstance(dt, int | float) else None
    step, times = frame_times(stored, source=source, stated_dt=stated)
    if isinstance(exact, list) and len(exact) == 1:
        times = times - times[0] + _exact((times[0],), exact, rtol=1e-6)[0]
    return step, times


def _coordinates(file: h5py.File, name: str, source: str) -> np.ndarray | None:
    dimensions = group(file, "dimensions")
    found = datasets(dimensions).get(name) if dimensions else None
    if found is None:
        return None
    values = numbers(found, source=source)
    same_for_all = values.ndim == 2 and (values == values[0]).all()
    return values[0] if same_for_all else values


def _axis(file: h5py.File, name: str, count: int, what: str, source: str) -> np.ndarray:
    values = _coordinates(file, name, source)
    if values is None:
        raise SplatopError(
            f"{source}: expected coordinates in dimensions/{name}, got none: give the {what}"
        )
    if values.shape != (count,):
        raise SplatopError(
            f"{source}: expected {count} values in dimensions/{name}, one for each point of the "
            f"fields and the same for all trajectories, got shape {values.shape}"
        )
    return values


def _exact(
    found: tuple[float, ...], stated: Sequence[Any] | None, *, rtol: float = 1e-4
) -> tuple[float, ...]:
    """Our own double-precision values where they agree with the float32 coordinates."""
    if stated is None or len(stated) != len(found) or None in stated:
        return found
    pairs = zip(found, stated, strict=True)
    return tuple(float(s) if np.isclose(f, s, rtol=rtol) else f for f, s in pairs)


def _coefficients(file: h5py.File, trajectories: int, source: str) -> dict[str, np.ndarray]:
    """The constant parameters of the simulation, and scalars that do not change in time."""
    found: dict[str, np.ndarray] = {}
    for name in strings(file.attrs.get("simulation_parameters", [])):
        value = np.asarray(file.attrs.get(name, ""))
        if value.size == 1 and np.issubdtype(value.dtype, np.number):
            found[name] = value.reshape(()).astype(float)
    scalars = group(file, "scalars")
    stored = datasets(scalars) if scalars else {}
    listed = strings(scalars.attrs.get("field_names", [])) if scalars else []
    for name in dict.fromkeys([*listed, *stored]):
        if name in stored and not stored[name].attrs.get("time_varying", False):
            values = numbers(stored[name], source=source)
            if values.size in (1, trajectories):
                found[name] = values.reshape(() if values.size == 1 else -1)
    return found

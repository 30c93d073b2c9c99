"""Reading HDF5 in the layout of The Well, ours and others'."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import h5py
import numpy as np

from ..errors import SplatopError, unknown_name
from ..grid import Grid
from .axes import as_lengths, uniform_spacing
from .trajectories import Trajectories, checked_metadata
from .well_writer import OURS


@dataclass(frozen=True)
class _Channel:
    """Where one channel lies: a dataset and, for vectors and tensors, a component."""

    dataset: h5py.Dataset
    component: int | None


class WellTrajectories(Trajectories):
    """Trajectories in an open HDF5 file; a window reads only its own chunks."""

    def __init__(
        self,
        file: h5py.File,
        *,
        fields: Sequence[str] | None = None,
        lengths: float | Sequence[float] | None = None,
        dt: float | None = None,
        source: str,
    ):
        self._file = file
        ours = _ours(file)
        self.attributes = {**ours.get("attributes", {}), "source": source, "format": "the_well"}
        axes = _strings(file["dimensions"].attrs.get("spatial_dims", []))
        _check_cartesian(file, axes, source)
        self.attributes["boundary_conditions"] = _boundaries(file, axes, source)
        channels = _channels(file, len(axes), source)
        wanted = tuple(fields) if fields else tuple(ours.get("fields", channels))
        for name in wanted:
            if name not in channels:
                raise unknown_name("field", name, channels)
        self._channels = [channels[name] for name in wanted]
        shapes = {name: channels[name].dataset.shape[: 2 + len(axes)] for name in wanted}
        if len(set(shapes.values())) != 1:
            listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            raise SplatopError(
                f"{source}: expected fields of one shape (trajectory, time, space), got {listed}: "
                "name the fields to read"
            )
        self.trajectories, self.frames, *points = shapes[wanted[0]]
        self.grid = Grid(
            tuple(points),
            as_lengths(lengths, len(axes)) or _lengths(file, axes, points, ours, source),
        )
        shape = (self.trajectories, self.frames, len(wanted), *points)
        dt = dt if dt is not None else _time_step(file, self.frames, ours, source)
        scalars = _coefficients(file, self.trajectories)
        self.dt, self.fields, self.coefficients = checked_metadata(shape, dt, wanted, scalars)

    def read(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        out = np.empty((frames, *self.shape[2:]), np.float32)
        index = 0
        while index < len(self._channels):
            channel = self._channels[index]
            block = channel.dataset[trajectory, start : start + frames]
            if channel.component is None:
                out[:, index] = block
                index += 1
                continue
            # The components of a vector lie together: read once, hand out to their channels.
            block = block.reshape(*block.shape[: 1 + self.grid.dims], -1)
            while index < len(self._channels) and (
                self._channels[index].dataset == channel.dataset
            ):
                out[:, index] = block[..., self._channels[index].component]
                index += 1
        return out

    def close(self) -> None:
        self._file.close()


def is_well(file: h5py.File) -> bool:
    return "dimensions" in file and any(f"t{rank}_fields" in file for rank in range(3))


def _ours(file: h5py.File) -> dict[str, Any]:
    try:
        return json.loads(file.attrs.get(OURS, "{}"))
    except (TypeError, ValueError):
        return {}


def _check_cartesian(file: h5py.File, axes: list[str], source: str) -> None:
    grid_type = file.attrs.get("grid_type", "cartesian")
    if grid_type != "cartesian" or not 1 <= len(axes) <= 3:
        raise SplatopError(
            f"{source}: expected a cartesian grid in 1 to 3 dimensions, "
            f"got grid_type '{grid_type}' with the dimensions {', '.join(axes) or 'none'}"
        )


def _boundaries(file: h5py.File, axes: list[str], source: str) -> str:
    """ "periodic" if the flags say so for every axis, "" if they say nothing."""
    if "boundary_conditions" not in file:
        return ""
    stated = set()
    for name, boundary in file["boundary_conditions"].items():
        kind = str(_text(boundary.attrs.get("bc_type", "")))
        if kind.lower() != "periodic":
            raise SplatopError(
                f"{source}: expected periodic boundaries, got bc_type '{kind}' in "
                f"boundary_conditions/{name}: only periodic boxes are supported"
            )
        stated.update(_strings(boundary.attrs.get("associated_dims", [])))
    return "periodic" if stated >= set(axes) else ""


def _channels(file: h5py.File, dims: int, source: str) -> dict[str, _Channel]:
    """All channels that vary with trajectory, time and space, by name."""
    channels: dict[str, _Channel] = {}
    suffixes = "xyz"[:dims]
    for rank in range(3):
        for name, dataset in file.get(f"t{rank}_fields", {}).items():
            varying = [dataset.attrs.get("sample_varying", True)]
            varying += [dataset.attrs.get("time_varying", True)]
            varying += list(np.atleast_1d(dataset.attrs.get("dim_varying", True)))
            if not all(varying):
                continue
            components = int(np.prod(dataset.shape[2 + dims :]))
            if dataset.ndim < 2 + dims or components != dims**rank:
                raise SplatopError(
                    f"{source}: expected {dims**rank} component(s) per point in t{rank}_fields/"
                    f"{name}, got shape {dataset.shape}"
                )
            if rank == 0:
                channels[name] = _Channel(dataset, None)
                continue
            for index, letters in enumerate(product(suffixes, repeat=rank)):
                channels[f"{name}_{''.join(letters)}"] = _Channel(dataset, index)
    if not channels:
        raise SplatopError(f"{source}: expected a field that varies in time and space, got none")
    return channels


def _lengths(
    file: h5py.File, axes: list[str], points: list[int], ours: dict[str, Any], source: str
) -> tuple[float, ...]:
    lengths = []
    for name, count in zip(axes, points, strict=True):
        coordinates = _axis(file, name, count, source)
        lengths.append(count * uniform_spacing(coordinates, name, source=source))
    return _exact(tuple(lengths), ours.get("lengths"))


def _time_step(file: h5py.File, frames: int, ours: dict[str, Any], source: str) -> float:
    if "time" not in file["dimensions"]:
        raise SplatopError(
            f"{source}: expected a time axis in dimensions/time, got none: give the time step (dt)"
        )
    if frames == 1:
        raise SplatopError(f"{source}: expected at least two frames, got one: nothing evolves")
    times = _axis(file, "time", frames, source)
    return _exact((uniform_spacing(times, "time", source=source),), [ours.get("dt")])[0]


def _axis(file: h5py.File, name: str, count: int, source: str) -> np.ndarray:
    if name not in file["dimensions"]:
        raise SplatopError(
            f"{source}: expected coordinates in dimensions/{name}, got none: give the lengths"
        )
    values = np.asarray(file["dimensions"][name], float)
    if values.ndim == 2 and (values == values[0]).all():
        values = values[0]
    if values.shape != (count,):
        raise SplatopError(
            f"{source}: expected {count} values in dimensions/{name}, one for each point of the "
            f"fields and the same for all trajectories, got shape {values.shape}"
        )
    return values


def _exact(found: tuple[float, ...], stated: Sequence[Any] | None) -> tuple[float, ...]:
    """Our own double-precision values where they agree with the float32 coordinates."""
    if stated is None or len(stated) != len(found) or any(s is None for s in stated):
        return found
    return tuple(float(s) if np.isclose(f, s, rtol=1e-4) else f for f, s in zip(found, stated))


def _coefficients(file: h5py.File, trajectories: int) -> dict[str, np.ndarray]:
    """Scalars that do not change in time, and the constant parameters of the simulation."""
    found: dict[str, np.ndarray] = {}
    for name in _strings(file.attrs.get("simulation_parameters", [])):
        value = np.asarray(file.attrs.get(name, np.nan))
        if value.size == 1 and np.issubdtype(value.dtype, np.number):
            found[name] = value.reshape(()).astype(float)
    for name, dataset in file.get("scalars", {}).items():
        values = np.asarray(dataset, float)
        if dataset.attrs.get("time_varying", False) or values.size not in (1, trajectories):
            continue
        found[name] = values.reshape(()) if values.size == 1 else values.reshape(trajectories)
    return {name: np.broadcast_to(value, (trajectories,)) for name, value in found.items()}


def _strings(values: Any) -> list[str]:
    return [str(_text(value)) for value in np.atleast_1d(values)]


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value

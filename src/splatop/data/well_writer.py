"""Writing our native format: HDF5 in the layout of The Well."""

import contextlib
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from ..domain import Domain
from ..errors import SplatopError
from ..grid import Grid
from ..points import Points, layout_as_json
from .atomic import check_room, complete_or_absent
from .axes import SPATIAL
from .times import is_even
from .trajectories import Trajectories, checked_metadata
from .well_edges import write_flags

Progress = Callable[[int, int], None]
Write = Callable[[int, int, np.ndarray], None]

# The attribute that keeps what The Well has no place for: channel order, exact dt,
# lengths and origin, layout, domain.
OURS = "splatop"
# Windows are read in whole chunks, so a chunk is one frame, or a few small ones. Frames of smooth
# fields in float32 hardly compress (by 16 % with shuffle and lzf), and read ten times slower then.
_CHUNK_BYTES = 64 * 1024
_LARGEST_CHUNK = 2**32 - 1  # in bytes, of HDF5
_SMALLER = "make room there, or write fewer trajectories, steps or points"
# Times and places are written in single precision.
_ROUNDED = 1e-3  # of a step, by which single precision may change it
_LEAST, _MOST = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Layout:
    """What a data set's header says: `shape` is `(B, T, C, *N)`, coefficients are `(B,)` each."""

    shape: tuple[int, ...]
    grid: Grid | Points
    dt: float
    fields: tuple[str, ...]
    coefficients: Mapping[str, np.ndarray]
    attributes: Mapping[str, Any]
    domain: Domain | None = None  # the periodic box of the grid unless told
    times: np.ndarray | None = None  # of the frames: from 0 on, `dt` apart, unless told

    @property
    def edges(self) -> Domain:
        return self.domain or Domain.box(self.grid.lengths, self.grid.origin)

    def __post_init__(self):
        checked_metadata(self.shape, self.dt, self.fields, self.coefficients)
        for name in (*self.fields, *self.coefficients):
            if not name or "/" in name or name == ".":
                raise SplatopError(
                    f"expected names without '/' for fields and coefficients, got '{name}': "
                    "HDF5 cannot hold it, rename it"
                )
        steps = {"time step": (self.dt, self.shape[1])}
        for axis, step, count in zip(SPATIAL, self.grid.spacing, self.grid.points, strict=False):
            steps[f"spacing along {axis}"] = (step, count)
        for what, (step, count) in steps.items():
            if step < _LEAST or step > _MOST / count:
                raise SplatopError(
                    f"expected a {what} whose multiples single precision can hold "
                    f"({_LEAST:.0e} to {_MOST:.0e}), got {step:g}: use other units"
                )
        begins = {"time": (0.0 if self.times is None else float(self.times[0]), self.dt)}
        each = zip(SPATIAL, self.grid.origin, self.grid.spacing, strict=False)
        begins |= {axis: (float(first), step) for axis, first, step in each}
        for axis, (first, step) in begins.items():
            if first + step == first:
                raise SplatopError(
                    f"expected values of {axis} that numbers tell apart, got steps of {step:g} "
                    f"from {first:g} on: begin nearer to 0"
                )


def save_trajectories(
    path: str | Path,
    trajectories: Trajectories,
    *,
    compress: bool = False,
    progress: Progress | None = None,
) -> None:
    """Write any trajectories as our HDF5, block by block; the file appears when complete."""
    layout = Layout(
        trajectories.shape,
        trajectories.grid,
        trajectories.dt,
        trajectories.fields,
        trajectories.coefficients,
        trajectories.attributes,
        trajectories.domain,
        trajectories.times,
    )
    with writing(path, layout, compress=compress) as write:
        for index, start, count in trajectories.blocks():
            write(index, start, trajectories.window(index, start, count))
            if progress:
                progress(index + 1, trajectories.trajectories)


def check_writable_size(path: str | Path, shape: tuple[int, ...]) -> None:
    """Refuse states `(B, T, C, *N)` that the disk cannot hold, before any is computed."""
    folder = Path(path).parent
    if folder.is_dir():
        check_room(Path(path), 4 * math.prod(shape), remedy=_SMALLER)


@contextlib.contextmanager
def writing(path: str | Path, layout: Layout, *, compress: bool = False) -> Iterator[Write]:
    """A function that writes states `(n, C, *N)` of a trajectory from a step on.

    The file appears when all states were written and the block ended.
    """
    expected = 0 if compress else 4 * math.prod(layout.shape)
    with (
        complete_or_absent(path, expected_bytes=expected, remedy=_SMALLER) as partial,
        _Stream(partial, "w+") as stream,
        h5py.File(stream, "w", libver=("v110", "v110")) as file,
    ):
        _write_header(file, layout, name=Path(path).stem)
        vectors = group_vectors(layout.fields, layout.grid.dims)
        datasets = [_create(file, layout, name, compress) for name in vectors]
        written = np.zeros(layout.shape[:2], bool)

        def write(trajectory: int, start: int, states: np.ndarray) -> None:
            if states.shape[1:] != layout.shape[2:]:
                raise SplatopError(
                    f"expected states of shape {layout.shape[2:]}, got {states.shape[1:]}"
                )
            here = (trajectory, slice(start, start + len(states)))
            for channels, dataset in zip(vectors.values(), datasets, strict=True):
                part = np.moveaxis(states[:, list(channels)], 1, -1)
                dataset[here] = part if is_vector(channels) else part[..., 0]
            stream.check()
            written[here] = True

        yield write
        if not written.all():
            raise SplatopError(
                f"expected {written.size} frames, got {written.sum()}: {path} was not written"
            )
        file.close()
        stream.check()


def group_vectors(fields: tuple[str, ...], dims: int) -> dict[str, tuple[int, ...]]:
    """Channels by dataset name: `u_x, u_y` of a 2D state are the vector `u`."""
    groups: dict[str, tuple[int, ...]] = {}
    for index, name in enumerate(fields):
        stem = name[:-2]
        components = [f"{stem}_{axis}" for axis in SPATIAL[:dims]]
        whole = stem not in fields and dims > 1 and all(c in fields for c in components)
        if whole and name in components:
            groups[stem] = tuple(fields.index(c) for c in components)
        else:
            groups[name] = (index,)
    return groups


def is_vector(channels: tuple[int, ...]) -> bool:
    return len(channels) > 1


class _Stream(io.FileIO):
    """The file below HDF5. A failed write is not shown to HDF5, which would crash when it closes,
    but kept for `check` to raise."""

    failure: BaseException | None = None

    def write(self, data: Any) -> int:
        with self._kept():
            view = memoryview(data).cast("B")
            while view:
                view = view[super().write(view) :]
        return len(data)

    def truncate(self, size: int | None = None) -> int:
        with self._kept():
            super().truncate(size)
        return size or 0

    def check(self) -> None:
        if self.failure is not None:
            raise self.failure

    @contextlib.contextmanager
    def _kept(self) -> Iterator[None]:
        try:
            yield
        except BaseException as failure:
            self.failure = self.failure or failure


def _write_header(file: h5py.File, layout: Layout, *, name: str) -> None:
    axes = SPATIAL[: layout.grid.dims]
    _set(
        file,
        dataset_name=str(layout.attributes.get("benchmark", name)),
        grid_type="points" if isinstance(layout.grid, Points) else "cartesian",
        n_spatial_dims=layout.grid.dims,
        n_trajectories=layout.shape[0],
    )
    ours = {
        "fields": layout.fields,
        "dt": layout.dt,
        "lengths": layout.grid.lengths,
        "origin": layout.grid.origin,
        "layout": layout_as_json(layout.grid.layout),
        "domain": layout.edges.as_dict(),
        "attributes": dict(layout.attributes),
    }
    times = np.arange(layout.shape[1]) * layout.dt if layout.times is None else layout.times
    ours["times"] = [float(times[0])] if is_even(times) else times.tolist()
    file.attrs[OURS] = json.dumps(ours, default=str)
    dimensions = file.create_group("dimensions")
    dimensions.attrs["spatial_dims"] = list(axes)
    coordinates = {"time": times}
    coordinates |= {k: c.ravel() for k, c in zip(axes, layout.grid.coordinates(), strict=True)}
    for axis, values in coordinates.items():
        dataset = dimensions.create_dataset(axis, data=_told_apart(values))
        _set(dataset, sample_varying=False, time_varying=False)
    if layout.edges.shape is None:
        write_flags(file, layout.edges, layout.fields, layout.grid.points)
    vectors = group_vectors(layout.fields, layout.grid.dims)
    names = [
        [name for name, channels in vectors.items() if not is_vector(channels)],
        [name for name, channels in vectors.items() if is_vector(channels)],
        [],
    ]
    for rank, stored in enumerate(names):
        file.create_group(f"t{rank}_fields").attrs["field_names"] = _strings(stored)
    _write_coefficients(file, layout.coefficients)


def _told_apart(values: np.ndarray) -> np.ndarray:
    """In single precision, as The Well has them, unless it rounds their steps: seconds since 1970
    or coordinates of a map would be read with other steps, or repeated."""
    single, steps = values.astype(np.float32), np.diff(values)
    rounded = np.abs(np.diff(single.astype(float)) - steps).max(initial=0.0)
    return single if rounded <= _ROUNDED * np.abs(steps).min(initial=np.inf) else values


def _create(file: h5py.File, layout: Layout, name: str, compress: bool) -> h5py.Dataset:
    channels = group_vectors(layout.fields, layout.grid.dims)[name]
    batch, frames, _, *points = layout.shape
    state = (*points, len(channels)) if is_vector(channels) else tuple(points)
    chunk = int(np.clip(_CHUNK_BYTES // (4 * math.prod(state)), 1, frames))
    part = list(state)
    while 4 * math.prod(part) > _LARGEST_CHUNK:
        part[part.index(max(part))] //= 2
    group = file.require_group("t1_fields" if is_vector(channels) else "t0_fields")
    dataset = group.create_dataset(
        name,
        (batch, frames, *state),
        np.float32,
        chunks=(1, chunk, *part),
        compression="lzf" if compress else None,
        shuffle=compress,
    )
    varying = [True] * len(points)
    _set(dataset, dim_varying=varying, sample_varying=True, time_varying=True)
    return dataset


def _write_coefficients(file: h5py.File, coefficients: Mapping[str, np.ndarray]) -> None:
    constant = [name for name, values in coefficients.items() if (values == values[0]).all()]
    file.attrs["simulation_parameters"] = _strings(constant)
    scalars = file.create_group("scalars")
    scalars.attrs["field_names"] = _strings(list(coefficients))
    for name, values in coefficients.items():
        varies = name not in constant
        scalars[name] = values if varies else values[0]
        _set(scalars[name], sample_varying=varies, time_varying=False)
        if not varies and name not in file.attrs:
            file.attrs[name] = values[0]


def _set(item: h5py.HLObject, **attributes: Any) -> None:
    for name, value in attributes.items():
        item.attrs[name] = value


def _strings(values: list[str]) -> np.ndarray:
    return np.array(values, dtype=h5py.string_dtype())

"""Reading plain `.npy` and `.npz` arrays, and APEBench's `.npy` with its `.json`."""

import json
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import SplatopError, check_memory
from ..grid import Grid
from .axes import (
    SPATIAL,
    as_lengths,
    as_origin,
    choose_fields,
    common_shape,
    is_complex,
    name_channels,
    need,
    parse_axes,
    to_standard,
)
from .foreign import what_the_archive_is
from .stated import all_periodic
from .trajectories import Trajectories, checked_metadata

NPY = b"\x93NUMPY"
ZIP = b"PK\x03\x04"
_FEW = 4  # channels at most, where nothing says what an axis is
_SMALL = 2**20  # bytes of an array that is read at once


class AxesTrajectories(Trajectories):
    """Arrays whose axes are named by letters such as "btcxy"; memory-mapped ones stay on disk.

    With a channel axis there is one array, without there is one array per field.
    """

    def __init__(
        self,
        arrays: Sequence[np.ndarray],
        axes: str,
        *,
        fields: Sequence[str] | None,
        lengths: float | Sequence[float] | None,
        dt: float | None,
        origin: float | Sequence[float] | None = None,
        attributes: Mapping[str, Any],
        periodic: bool = False,
    ):
        source = str(attributes["source"])
        self._arrays, self._axes = arrays, parse_axes(axes, arrays[0].ndim, source=source)
        shape = dict(zip(axes, arrays[0].shape, strict=True))
        points = tuple(shape[name] for name in SPATIAL if name in axes)
        channels = shape.get("c", len(arrays))
        self.trajectories, self.frames = shape.get("b", 1), shape["t"]
        given = as_lengths(lengths, len(points))
        given = need(given, "the lengths of the box", "give lengths (--lengths)", source)
        self.grid = Grid(points, given, as_origin(origin, len(points)) or ())
        self.dt, self.fields, self.coefficients = checked_metadata(
            (self.trajectories, self.frames, channels, *points),
            need(dt, "the time step", "give dt (--dt)", source),
            name_channels(fields, channels, source),
            {},
        )
        self.complex_fields = tuple(
            name
            for index, name in enumerate(self.fields)
            if np.iscomplexobj(arrays[0 if "c" in axes else index])
        )
        self.attributes = dict(attributes)
        if periodic:
            self.stated = all_periodic(len(points), by="the file")

    def read(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        where = {"b": trajectory, "t": slice(start, start + frames)}
        index = tuple(where.get(name, slice(None)) for name in self._axes)
        axes = self._axes.replace("b", "")
        return np.concatenate([to_standard(a[index], axes) for a in self._arrays], axis=1)


def open_npy(
    path: Path,
    *,
    axes: str | None,
    fields: Sequence[str] | None,
    lengths: float | Sequence[float] | None,
    dt: float | None,
    origin: float | Sequence[float] | None,
) -> AxesTrajectories:
    """A `.npy`, as `axes` say it or as APEBench writes it with a description beside."""
    array = _load_npy(path)
    attributes: dict[str, Any] = {"source": path.name, "format": "npy"}
    info = _apebench_info(path)
    if info is not None and axes is None:
        axes = _apebench_axes(array, info, path.name)
        lengths = info.get("domain_extent") if lengths is None else lengths
        dt = info.get("dt") if dt is None else dt
        attributes |= {"format": "apebench", "apebench": info}
    axes = need(axes, _axes_wanted(array), _axes_option(array), path.name)
    return AxesTrajectories(
        [array],
        axes,
        fields=fields,
        lengths=lengths,
        dt=dt,
        origin=origin,
        attributes=attributes,
        periodic=attributes["format"] == "apebench",  # all of it is
    )


def open_npz(
    path: Path,
    arrays: Mapping[str, np.ndarray],
    *,
    axes: str | None,
    fields: Sequence[str] | None,
    lengths: float | Sequence[float] | None,
    dt: float | None,
    origin: float | Sequence[float] | None,
) -> AxesTrajectories:
    """Arrays of a `.npz`, which cannot be memory-mapped and are loaded, without coordinates."""
    largest = max(arrays.values(), key=lambda array: array.size)
    axes = need(axes, _axes_wanted(largest), _axes_option(largest), path.name)
    usable = {k: a for k, a in arrays.items() if a.ndim == len(axes)}
    if not usable:
        shapes = ", ".join(f"{k} {a.shape}" for k, a in arrays.items())
        raise SplatopError(f"{path.name}: expected an array with the axes '{axes}', got {shapes}")
    keys: tuple[str, ...] = tuple(usable)
    if len(keys) == 1 and ("c" in axes or fields is None or fields[0] not in usable):
        names = fields
    elif "c" in axes:
        raise SplatopError(
            f"{path.name}: expected one array with a channel axis, got {', '.join(keys)}: "
            "keep one in the file, or give axes without c and name the fields"
        )
    else:
        names = keys = choose_fields(fields, keys)
    common_shape({k: usable[k].shape for k in keys}, path.name)
    return AxesTrajectories(
        [usable[k] for k in keys],
        axes,
        fields=names,
        lengths=lengths,
        dt=dt,
        origin=origin,
        attributes={"source": path.name, "format": "npz"},
    )


def _load_npy(path: Path) -> np.ndarray:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        raise _refused(path, str(error)) from error
    is_complex(array.dtype, "the array", path.name)
    return array


def load_npz(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a file, by name; never objects."""
    with suppress(zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
        other = what_the_archive_is(archive.namelist())
        if other is not None:
            raise SplatopError(f"{path.name}: expected an archive of NumPy arrays, {other}")
    try:
        arrays = dict(_members(path))
    except (ValueError, zipfile.BadZipFile, EOFError) as error:
        raise _refused(path, str(error)) from error
    held = {name: array for name, array in arrays.items() if array.dtype.kind in "buifc"}
    if not held:
        raise SplatopError(
            f"{path.name}: expected at least one array of numbers, got "
            f"{', '.join(arrays) or 'none'}"
        )
    return held


def _members(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays of a `.npz` by name: those that are not compressed stay on disk."""
    with np.load(path, allow_pickle=False) as archive, zipfile.ZipFile(path) as members:
        for info in members.infolist():
            name = info.filename.removesuffix(".npy")
            plain = info.compress_type == zipfile.ZIP_STORED and info.filename.endswith(".npy")
            mapped = _mapped(path, info) if plain and info.file_size > _SMALL else None
            if mapped is None:
                check_memory(info.file_size, f"'{name}' of {path.name}", "save it as .npy or HDF5")
                mapped = archive[name]
            yield name, mapped


def _mapped(path: Path, info: zipfile.ZipInfo) -> np.ndarray | None:
    """An array in an archive, as a view of the file; None if it cannot be one."""
    with path.open("rb") as stream:
        stream.seek(info.header_offset + 26)  # the lengths of name and extra field, before the data
        name, extra = struct.unpack("<HH", stream.read(4))
        stream.seek(info.header_offset + 30 + name + extra)
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            return None
        read = getattr(np.lib.format, f"read_array_header_{version[0]}_0")
        shape, fortran, dtype = read(stream)
        size = int(np.prod(shape, dtype=float)) * dtype.itemsize
        begin = stream.tell()
        if dtype.hasobject or not size or begin + size > path.stat().st_size:
            return None
    order = "F" if fortran else "C"
    return np.memmap(path, dtype, "r", begin, shape, order)


def _refused(path: Path, reason: str) -> SplatopError:
    if "object" in reason.lower() or "pickle" in reason.lower():
        return SplatopError(
            f"{path.name}: expected an array of numbers, got Python objects (a pickle), which are "
            "never loaded because they can run code: if you trust it, save it again as plain "
            "arrays (of a dictionary: np.savez('p.npz', **np.load(F, allow_pickle=True).item()))"
        )
    return SplatopError(
        f"{path.name}: expected a complete NumPy file, it cannot be read ({reason}): "
        "copy or write it again"
    )


def coordinates_beside(path: Path) -> dict[str, np.ndarray]:
    """Vectors in `.npy` files beside `NAME.npy` that are its coordinates by their names: `NAME_x`,
    `NA_x` for `NA_ME`, or `x`, and the same for y, z and t; each as long as one of its axes."""
    sides = _load_npy(path).shape
    words = path.stem.split("_")
    stems = ["_".join([*words[:count], ""]) for count in range(len(words), 0, -1)] + [""]
    found = {}
    for letter in (*SPATIAL, "t"):
        for stem in stems:
            file = path.with_name(f"{stem}{letter}.npy")
            if file == path or not file.is_file():
                continue
            values = _load_npy(file)
            if values.size == max(values.shape, default=0) and values.size in sides:
                found[letter] = np.array(values)
                break
    return found


def _axes_wanted(array: np.ndarray) -> str:
    return f"the meaning of the {array.ndim} axes of its shape {array.shape}"


def _axes_option(array: np.ndarray) -> str:
    """Axes that may be meant, with what else has to be said."""
    return (
        f"name them by letters of b (trajectory) t c (channel) x y z, as in "
        f"{' or '.join(f'--axes {axes}' for axes in _likely(array.shape))}, with --lengths 1 and "
        "--dt 0.1 or what they are, or put vectors of coordinates beside it as x.npy, t.npy"
    )


def _likely(shape: tuple[int, ...]) -> tuple[str, ...]:
    """Readings of a shape; an axis of few is taken for channels, before space or behind it."""
    count = len(shape)
    few = next((axis for axis in range(1, count) if shape[axis] <= _FEW), None)
    if few in (1, 2) and few + 1 < count < 6:
        return (("tc", "btc")[few - 1] + SPATIAL[: count - few - 1],)
    if few is not None and few == count - 1:
        plain = {3: ("tx",), 4: ("txy", "btx"), 5: ("btxy", "txyz")}
        return tuple(f"{one}c" for one in plain.get(count, ("btxyz",)))
    return {2: ("tx", "xt"), 3: ("txy", "tyx", "btx"), 4: ("btxy", "txyz"), 5: ("btxyz",)}.get(
        count, ("btcxyz",)
    )


def _apebench_info(path: Path) -> dict[str, Any] | None:
    """The scenario in the `.json` beside `NAME.npy`, `NAME_train.npy` or `NAME_test.npy`."""
    stem = path.stem.removesuffix("_train").removesuffix("_test")
    for name in dict.fromkeys((path.stem, stem)):
        metadata = path.with_name(f"{name}.json")
        if metadata.is_file():
            try:
                content = json.loads(metadata.read_text())
            except ValueError as error:
                raise SplatopError(f"{metadata.name}: expected JSON, got {error}") from error
            info = content.get("info", content) if isinstance(content, dict) else None
            if isinstance(info, dict) and "num_spatial_dims" in info:
                return info
    return None


def _apebench_axes(array: np.ndarray, info: Mapping[str, Any], source: str) -> str:
    axes = "btc" + SPATIAL[: int(info["num_spatial_dims"])]
    expected = (info.get("num_channels"), *[info.get("num_points")] * (len(axes) - 3))
    agrees = array.ndim == len(axes) and all(
        wanted in (None, got) for wanted, got in zip(expected, array.shape[2:], strict=True)
    )
    if not agrees:
        raise SplatopError(
            f"{source}: expected the shape (B, T, C, *N) with (C, *N) = {expected} of its .json, "
            f"got {array.shape}: give the axes, or the right .json"
        )
    return axes

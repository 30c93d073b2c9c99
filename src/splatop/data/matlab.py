"""Reading MATLAB files: up to version 5 by scipy, version 7.3, which is HDF5, by h5py.

Variables have no named axes. Coordinates are told by their names (x, t, tt, ...), and the axes of a
field by the lengths of these, where that leaves no doubt.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import scipy.io
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

from ..errors import SplatopError, unknown_name
from .axes import SPATIAL, common_shape, parse_axes
from .hdf5 import SIGNATURE, datasets, error_line, open_hdf5, text
from .labelled import LabelledTrajectories
from .scattered import PLACES

# Names of coordinates, without regard to case.
COORDINATES = {
    **{f"{axis}{more}": axis for axis in "txyz" for more in ("", axis, "s", "_star", "grid")},
    **dict.fromkeys(("time", "times", "tspan", "t_span"), "t"),
}
_NUMERIC = (
    "double",
    "single",
    "logical",
    *(f"{u}int{b}" for u in ("", "u") for b in (8, 16, 32, 64)),
)
_COMPLEX = ("real", "imag")  # how 7.3 stores complex numbers


@dataclass(frozen=True)
class _Contents:
    """The variables of a file that are arrays of numbers, and the kinds of the others."""

    arrays: Mapping[str, Any]  # NumPy arrays, or `_Stored` ones
    others: Mapping[str, str]
    source: str

    def one(self, name: str) -> Any:
        if name in self.others:
            raise SplatopError(
                f"{self.source}: expected an array of numbers in '{name}', got a MATLAB "
                f"{self.others[name]}: save what it holds as variables of their own"
            )
        if name not in self.arrays:
            raise unknown_name("variable", name, self.arrays)
        return self.arrays[name]

    def listed(self, names: Sequence[str]) -> str:
        found = [f"{name} {tuple(self.arrays[name].shape)}" for name in names]
        found += [f"{name} (a {kind})" for name, kind in self.others.items()]
        return ", ".join(found) or "nothing"


class _Stored(BackendArray):
    """A variable of a 7.3 file, read when it is asked for, with its axes as MATLAB has them."""

    def __init__(self, dataset: h5py.Dataset):
        self._dataset = dataset
        self.shape = tuple(dataset.shape[::-1])
        self._complex = dataset.dtype.names == _COMPLEX
        self.dtype = (
            np.result_type(dataset.dtype["real"], np.complex64) if self._complex else dataset.dtype
        )

    def __getitem__(self, key: Any) -> np.ndarray:
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.BASIC, self.part
        )

    def part(self, key: tuple[int | slice, ...]) -> np.ndarray:
        block = np.asarray(self._dataset[key[::-1]]).T
        return (block["real"] + 1j * block["imag"]).astype(self.dtype) if self._complex else block


def open_matlab(
    path: Path,
    *,
    axes: str | None,
    fields: Sequence[str] | None,
    dt: float | None,
    **asked: Any,
) -> LabelledTrajectories:
    """The fields named, or all whose axes are clear, with coordinates and scalars beside them."""
    file = open_hdf5(path) if _is_hdf5(path) else None
    try:
        contents = _contents_of_hdf5(file, path.name) if file else _contents(path, fields)
        data = _labelled(contents, axes, fields)
        if file:
            data.set_close(file.close)
        if dt is None and "t" not in data.coords:
            dt = _stored_step(contents)
        opened = LabelledTrajectories(data, fields=fields, dt=dt, **asked, source=path.name)
    except BaseException:
        if file:
            file.close()
        raise
    opened.attributes["format"] = "matlab 7.3" if file else "matlab"
    return opened


def numbers_of(path: Path) -> dict[str, np.ndarray]:
    """All arrays of numbers of a file that holds points `(P, 2)` among them; else nothing."""
    if _is_hdf5(path):
        with open_hdf5(path) as file:
            held = _contents_of_hdf5(file, path.name).arrays
            if not _has_points({name: array.shape for name, array in held.items()}):
                return {}
            every = {k: a.part((slice(None),) * len(a.shape)) for k, a in held.items()}
            return {name: np.asarray(array) for name, array in every.items()}
    try:
        shapes = {n: shape for n, shape, kind in scipy.io.whosmat(path) if kind in _NUMERIC}
    except Exception:  # said by whoever reads it as something else
        return {}
    if not _has_points(shapes):
        return {}
    loaded = scipy.io.loadmat(path, variable_names=list(shapes))
    return {name: np.asarray(loaded[name]) for name in shapes}


def _has_points(shapes: Mapping[str, tuple[int, ...]]) -> bool:
    return any(
        name.lower() in PLACES and len(shape) == 2 and shape[1] == 2 < shape[0]
        for name, shape in shapes.items()
    )


def _is_hdf5(path: Path) -> bool:
    with path.open("rb") as stream:
        head = stream.read(10)
    return head == b"MATLAB 7.3" or head.startswith(SIGNATURE)


def _contents(path: Path, fields: Sequence[str] | None) -> _Contents:
    """Only what is asked for is loaded; structures, cells and objects never are."""
    try:
        found = scipy.io.whosmat(path)
        strange = [name for name, _, _ in found if not name.isidentifier()]
        if strange:
            raise ValueError(f"a variable is named {strange[0][:20]!r}")
    except Exception as error:  # whatever bytes of another kind make it raise
        raise SplatopError(
            f"expected a MATLAB file, {path} cannot be read as one ({error_line(error)}): "
            "copy it again, or save it with save -v7"
        ) from error
    kinds = {name: kind for name, _, kind in found}
    wanted = [
        name
        for name, shape, kind in found
        if kind in _NUMERIC
        and (fields is None or name in fields or _letter(name) or np.prod(shape) == 1)
    ]
    loaded = scipy.io.loadmat(path, variable_names=wanted) if wanted else {}
    return _Contents(
        {name: loaded[name] for name in wanted if loaded[name].size},
        {name: kind for name, kind in kinds.items() if kind not in _NUMERIC},
        path.name,
    )


def _contents_of_hdf5(file: h5py.File, source: str) -> _Contents:
    arrays: dict[str, Any] = {}
    others = {}
    held = datasets(file)
    for name, item in file.items():
        if name.startswith("#"):
            continue  # #refs#, #subsystem#: what cells and objects point to
        kind = "sparse matrix" if "MATLAB_sparse" in item.attrs else None
        kind = kind or text(item.attrs.get("MATLAB_class", "double" if name in held else "struct"))
        if name not in held or kind not in _NUMERIC:
            others[name] = kind
        elif "MATLAB_empty" not in item.attrs and item.size:
            arrays[name] = _Stored(item)
    return _Contents(arrays, others, source)


def _labelled(contents: _Contents, axes: str | None, fields: Sequence[str] | None) -> xr.Dataset:
    """The variables with their axes named and their coordinates beside them."""
    for name in fields or ():
        contents.one(name)
    along = _coordinates(contents, fields or ())
    arrays = contents.arrays
    inputs = [
        name
        for name, array in arrays.items()
        if (name in fields if fields else name not in along.names) and len(_sides(array)) > 1
    ]
    if not inputs:
        raise SplatopError(
            f"{contents.source}: expected an array over time and space, got "
            f"{contents.listed(list(arrays))}: save one with an axis for each, and x and t"
        )
    letters = {name: _axes_of(name, arrays[name], along, axes, contents) for name in inputs}
    if all(found is None for found in letters.values()):
        raise _unclear(inputs, along, axes, contents)
    held = {name: found for name, found in letters.items() if found is not None}
    for name in fields or ():
        if name not in held:
            raise _unclear([name], along, axes, contents)
    sizes = {
        name: dict(zip(found, _shape(arrays[name], found), strict=True))
        for name, found in held.items()
    }
    common_shape(
        {name: tuple(size[k] for k in sorted(size)) for name, size in sizes.items()},
        contents.source,
    )
    variables = {name: _variable(arrays[name], found) for name, found in held.items()}
    variables |= {
        name: xr.Variable((), _values(array).reshape(()))
        for name, array in arrays.items()
        if not _sides(array) and name != "dt"
    }
    size = next(iter(sizes.values()))
    coords = {
        letter: xr.Variable(letter, values)
        for letter, count in size.items()
        if (values := along.of_length(letter, count)) is not None
    }
    return xr.Dataset(variables, coords)


# --- axes --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Coordinates:
    """Evenly or unevenly spaced values by letter: x, y, z, t; a letter may have several."""

    values: Mapping[str, tuple[np.ndarray, ...]]
    names: frozenset[str]

    def of_length(self, letter: str, count: int) -> np.ndarray | None:
        return next((v for v in self.values.get(letter, ()) if len(v) == count), None)

    def letters(self, count: int) -> list[str]:
        return [letter for letter in self.values if self.of_length(letter, count) is not None]

    def listed(self) -> str:
        found = [f"{letter} {len(v)}" for letter, held in self.values.items() for v in held]
        return ", ".join(found) or "none"


def _coordinates(contents: _Contents, fields: Sequence[str]) -> _Coordinates:
    found: dict[str, tuple[np.ndarray, ...]] = {}
    names = set()
    for name, array in contents.arrays.items():
        letter = _letter(name)
        if letter is None or name in fields or not _sides(array):
            continue
        values = _line(array)
        if values is not None:
            found[letter] = (*found.get(letter, ()), values)
            names.add(name)
    return _Coordinates(found, frozenset(names))


def _letter(name: str) -> str | None:
    return COORDINATES.get(name.lower())


def _line(array: Any) -> np.ndarray | None:
    """Coordinates as one line: a vector, or a mesh that varies along one axis only."""
    if len(_sides(array)) > 3:
        return None
    values = _values(array)
    if np.iscomplexobj(values):
        if np.imag(values).any():
            return None
        values = np.real(values)
    values = np.squeeze(values)
    if values.ndim == 1:
        return values
    for axis in range(values.ndim):
        line = values[tuple(slice(None) if a == axis else 0 for a in range(values.ndim))]
        mesh = line.reshape([-1 if a == axis else 1 for a in range(values.ndim)])
        if (values == mesh).all() and line[0] != line[-1]:
            return line
    return None


def _axes_of(
    name: str, array: Any, along: _Coordinates, axes: str | None, contents: _Contents
) -> str | None:
    """The letters that were given, or the only ones that the lengths allow; else None."""
    if axes is not None:
        fits = len(axes) in (len(array.shape), len(_sides(array)))
        return parse_axes(axes, len(axes), source=contents.source) if fits else None
    possible = _possible(_sides(array), along)
    return possible[0] if len(possible) == 1 else None


def _possible(sides: tuple[int, ...], along: _Coordinates) -> list[str]:
    """Every reading of the axes by the lengths of coordinates."""
    choices = [along.letters(count) or ["?"] for count in sides]
    found = []
    for letters in map("".join, itertools.product(*choices)):
        if len(sides) == 2 and letters.count("?") == 1:
            # Two axes, one of them known: the other is what is missing, if nothing else claims it.
            other = {"t": "x", "x": "t"}.get(letters.replace("?", ""), "?")
            letters = letters if other in along.values else letters.replace("?", other)
        spatial = [letter for letter in letters if letter in SPATIAL]
        complete = "?" not in letters and len(set(letters)) == len(letters)
        if complete and "t" in letters and set(spatial) == set(SPATIAL[: len(spatial)]) and spatial:
            found.append(letters)
    return sorted(set(found))


def _unclear(
    names: Sequence[str], along: _Coordinates, axes: str | None, contents: _Contents
) -> SplatopError:
    """What to give where lengths do not tell the axes."""
    source, arrays = contents.source, contents.arrays
    name = max(names, key=lambda one: (np.prod(_sides(arrays[one])), one.startswith("u")))
    sides = _sides(arrays[name])
    if axes is not None:
        return SplatopError(
            f"{source}: expected a variable with the {len(axes)} axes '{axes}', got "
            f"{contents.listed(names)}: give one letter for each axis"
        )
    possible = _possible(sides, along)
    if possible:
        return SplatopError(
            f"{source}: expected axes of {name} {sides} that lengths tell apart, but the "
            f"coordinates ({along.listed()}) fit as {' or '.join(possible)}: give "
            f"{' or '.join(f'--axes {one}' for one in possible)}"
        )
    example = _example(sides, along)
    missing = "" if len(names) == 1 else f" --fields {name}"
    missing += f" --axes {example}"
    missing += "" if all(k in along.values for k in example if k in SPATIAL) else " --lengths 1"
    missing += "" if "t" in along.values else " --dt 0.1"
    found = contents.listed(names)
    if "t" not in along.values:
        return SplatopError(
            f"{source}: expected a time axis, got {found} with the coordinates {along.listed()}: "
            f"if an axis of {name} is time, say which, as in{missing}; pairs of inputs and outputs "
            "are not trajectories"
        )
    return SplatopError(
        f"{source}: expected axes that the lengths of coordinates tell, got {found} with the "
        f"coordinates {along.listed()}: name the axes by letters of b (trajectory) t c (channel) "
        f"x y z, as in{missing}"
    )


def _example(sides: tuple[int, ...], along: _Coordinates) -> str:
    """Letters that may be meant: those that lengths tell, time last, the rest in order."""
    letters = ["?"] * len(sides)
    for axis, count in enumerate(sides):
        found = [k for k in along.letters(count) if k not in letters]
        letters[axis] = found[0] if found else "?"
    if "t" not in letters:
        letters[max(i for i, k in enumerate(letters) if k == "?")] = "t"
    space = [k for k in SPATIAL if k not in letters]
    open_ones = [i for i, k in enumerate(letters) if k == "?"]
    if len(open_ones) > 1 or "x" in letters:
        letters[open_ones.pop(0)] = "b" if open_ones or "x" in letters else "x"
    for axis, letter in zip(open_ones, space, strict=False):
        letters[axis] = letter
    return "".join(letters).replace("?", "c")


# --- values ------------------------------------------------------------------------------------


def _sides(array: Any) -> tuple[int, ...]:
    """The shape without the axes of one that MATLAB adds."""
    return tuple(int(n) for n in array.shape if n != 1)


def _shape(array: Any, letters: str) -> tuple[int, ...]:
    return tuple(array.shape) if len(array.shape) == len(letters) else _sides(array)


def _variable(array: Any, letters: str) -> xr.Variable:
    """The variable with one axis for each letter; what is on disk stays there."""
    rest, every = iter(letters), len(array.shape) == len(letters)
    dims = [next(rest) if every or n != 1 else f"one{i}" for i, n in enumerate(array.shape)]
    lazy = indexing.LazilyIndexedArray(array) if isinstance(array, _Stored) else array
    return xr.Variable(dims, lazy).isel({dim: 0 for dim in dims if dim.startswith("one")})


def _values(array: Any) -> np.ndarray:
    if isinstance(array, _Stored):
        return array.part((slice(None),) * len(array.shape))
    return np.asarray(array)


def _stored_step(contents: _Contents) -> float | None:
    """A time step that the file holds as a number."""
    held = contents.arrays.get("dt")
    return None if held is None or _sides(held) else float(np.real(_values(held)).reshape(()))

"""Reading MATLAB files: up to version 5 by scipy, version 7.3, which is HDF5, by h5py.

A cell of arrays is as many variables, `U{1}` is `U_1`, or `U` if it is the only one. A cell of
vectors as long as the sides of a field, such as `xs = {x, y, t}`, holds its coordinates.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import scipy.io

from ..errors import SplatopError
from .axes import SPATIAL
from .hdf5 import SIGNATURE, datasets, error_line, open_hdf5, text
from .labelled import LabelledTrajectories
from .named_coordinates import letter_of, values_of
from .scattered import PLACES
from .stored import Stored
from .variables import Variables, open_variables

_NUMERIC = (
    "double",
    "single",
    "logical",
    *(f"{u}int{b}" for u in ("", "u") for b in (8, 16, 32, 64)),
)


def open_matlab(
    path: Path,
    *,
    axes: str | None,
    fields: Sequence[str] | None,
    **asked: Any,
) -> LabelledTrajectories:
    """The fields named, or all whose axes are clear, with coordinates and scalars beside them."""
    file = open_hdf5(path) if _is_hdf5(path) else None
    try:
        variables = _variables_of_hdf5(file, path.name) if file else _variables(path, fields)
        opened = open_variables(
            variables, axes=axes, fields=fields, close=file and file.close, **asked
        )
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
            held = _variables_of_hdf5(file, path.name).arrays
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


def _variables(path: Path, fields: Sequence[str] | None) -> Variables:
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
        and (fields is None or name in fields or letter_of(name) or np.prod(shape) == 1)
    ]
    cells = [name for name, _, kind in found if kind == "cell"]
    loaded = scipy.io.loadmat(path, variable_names=[*wanted, *cells]) if wanted or cells else {}
    held = {n: list(loaded[n].ravel()) for n in cells if all(map(_is_numeric, loaded[n].ravel()))}
    return Variables(
        {n: loaded[n] for n in wanted if loaded[n].size} | _unpacked(held),
        {n: kind for n, kind in kinds.items() if kind not in _NUMERIC and n not in held},
        path.name,
    )


def _is_numeric(part: Any) -> bool:
    return isinstance(part, np.ndarray) and part.dtype.kind in "buifc" and part.size > 0


def _unpacked(cells: Mapping[str, list[Any]]) -> dict[str, Any]:
    """The arrays of cells as variables, coordinates by the axis of the fields that they are of."""
    named = {
        (f"{name}_{number}" if len(parts) > 1 else name): part
        for name, parts in cells.items()
        for number, part in enumerate(parts, 1)
    }
    shapes = {tuple(n for n in part.shape if n != 1) for part in named.values()}
    for name, parts in cells.items():
        lengths = tuple(int(np.prod(part.shape)) for part in parts)
        vectors = all(n == max(p.shape) for n, p in zip(lengths, parts, strict=True))
        if not (2 <= len(parts) <= 4 and vectors and lengths in shapes):
            continue
        for number in range(1, len(parts) + 1):
            line = values_of(named.pop(f"{name}_{number}")).reshape(-1)
            letter = "t" if number == len(parts) else SPATIAL[number - 1]
            if len(set(lengths)) < len(lengths):  # only their order tells them apart
                sides = [-1 if axis == number else 1 for axis in range(1, len(parts) + 1)]
                line = np.broadcast_to(line.reshape(sides), lengths)
            named[letter] = line
    return named


def _variables_of_hdf5(file: h5py.File, source: str) -> Variables:
    arrays: dict[str, Any] = {}
    others, cells = {}, {}
    held = datasets(file)
    for name, item in file.items():
        if name.startswith("#"):
            continue  # #refs#, #subsystem#: what cells and objects point to
        kind = "sparse matrix" if "MATLAB_sparse" in item.attrs else None
        kind = kind or text(item.attrs.get("MATLAB_class", "double" if name in held else "struct"))
        if kind == "cell" and (parts := _parts(file, item)):
            cells[name] = parts
        elif name not in held or kind not in _NUMERIC:
            others[name] = kind
        elif "MATLAB_empty" not in item.attrs and item.size:
            arrays[name] = Stored(item, transposed=True)
    return Variables(arrays | _unpacked(cells), others, source)


def _parts(file: h5py.File, cell: Any) -> list[Stored]:
    """The arrays that a cell points to; none if one of them is something else."""
    parts = []
    for reference in np.ravel(cell[()]) if isinstance(cell, h5py.Dataset) else ():
        item = file[reference] if isinstance(reference, h5py.Reference) else None
        if not isinstance(item, h5py.Dataset) or not item.size or "MATLAB_empty" in item.attrs:
            return []
        if text(item.attrs.get("MATLAB_class", "")) not in _NUMERIC:
            return []
        parts.append(Stored(item, transposed=True))
    return parts

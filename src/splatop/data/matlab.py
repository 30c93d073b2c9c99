"""Reading MATLAB files: up to version 5 by scipy, version 7.3, which is HDF5, by h5py."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import scipy.io

from ..errors import SplatopError
from .hdf5 import SIGNATURE, datasets, error_line, open_hdf5, text
from .labelled import LabelledTrajectories
from .scattered import PLACES
from .stored import Stored
from .variables import Variables, letter_of, open_variables

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
    loaded = scipy.io.loadmat(path, variable_names=wanted) if wanted else {}
    return Variables(
        {name: loaded[name] for name in wanted if loaded[name].size},
        {name: kind for name, kind in kinds.items() if kind not in _NUMERIC},
        path.name,
    )


def _variables_of_hdf5(file: h5py.File, source: str) -> Variables:
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
            arrays[name] = Stored(item, transposed=True)
    return Variables(arrays, others, source)

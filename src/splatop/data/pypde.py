"""Files of py-pde's `FileStorage`: `data` (T, [C,] *N), `times`, and the fields and their grid as
JSON. Its points are in the middle of cells."""

import json
from collections.abc import Sequence
from typing import Any

import h5py
import numpy as np
import xarray as xr
from xarray.core import indexing

from ..errors import SplatopError
from .axes import SPATIAL, component_names
from .hdf5 import PYPDE, datasets, text
from .labelled import LabelledTrajectories
from .stated import PERIODIC, WALL, Stated
from .stored import Stored

_GRIDS = ("CartesianGrid", "UnitGrid")
_RANKS = {"ScalarField": 0, "VectorField": 1, "Tensor2Field": 2}


def open_pypde(
    file: h5py.File, *, fields: Sequence[str] | None, source: str, **asked: Any
) -> LabelledTrajectories:
    """The fields under their labels, on the grid that the file states."""
    about, found = _told(file, source), datasets(file)
    if not {"data", "times"} <= set(found):
        raise SplatopError(f"{source}: expected data and times of py-pde, got {', '.join(found)}")
    parts = json.loads(about["fields"]) if "fields" in about else [about]
    kinds = [json.loads(part["class"]) for part in parts]
    grid = json.loads(parts[0].get("grid") or about["grid"])
    if grid.get("class") not in _GRIDS or not set(kinds) <= set(_RANKS):
        raise SplatopError(
            f"{source}: expected fields of py-pde on a Cartesian grid, got {', '.join(kinds)} on a "
            f"{grid.get('class')}: interpolate them to one, or save them as a table of t, x, y "
            "and values for scattered points"
        )
    periodic = grid["periodic"]
    bounds = grid.get("bounds") or [[0, count] for count in grid["shape"]]
    letters = SPATIAL[: len(bounds)]
    coordinates = {
        letter: low + (high - low) * (np.arange(count) + 0.5) / count
        for letter, (low, high), count in zip(letters, bounds, grid["shape"], strict=True)
    }
    names = _names(parts, kinds, len(letters))
    stored, times = (found[name] for name in ("data", "times"))
    values = indexing.LazilyIndexedArray(Stored(stored, transposed=False))
    if len(stored.shape) == 1 + len(letters):
        held, labels = xr.Variable(("time", *letters), values), {}
    else:
        held, labels = xr.Variable(("time", "c", *letters), values), {"c": names} if names else {}
    name = names[0] if names and not labels else "data"
    data = xr.Dataset({name: held}, {"time": times[()], **coordinates, **labels})
    data.set_close(file.close)
    opened = LabelledTrajectories(data, fields=fields, **asked, source=source)
    opened.stated = Stated(
        flags={
            f"{letter}{end}": PERIODIC if ring else WALL
            for letter, ring in zip(letters, periodic, strict=True)
            for end in (0, 1)
        }
    )
    opened.attributes["format"] = "py-pde"
    return opened


def _names(parts: list[dict[str, Any]], kinds: list[str], dims: int) -> list[str]:
    """The fields by their labels, vectors by components; a single one without a label is `u`, of
    several without nothing is known."""
    labels = [json.loads(part.get("label", "null")) for part in parts]
    if None in labels and len(labels) > 1:
        return []
    return [
        name
        for label, kind in zip(labels, kinds, strict=True)
        for name in component_names(label or "u", dims ** _RANKS[kind], dims)
    ]


def _told(file: h5py.File, source: str) -> dict[str, Any]:
    try:
        about = json.loads(text(file.attrs[PYPDE]))
    except ValueError as error:
        raise SplatopError(
            f"{source}: expected JSON in the attribute {PYPDE} of py-pde, got {error}"
        ) from error
    if not isinstance(about, dict):
        raise SplatopError(f"{source}: expected fields of py-pde in the attribute {PYPDE}")
    return about

"""Axes that plain HDF5 names itself: labels and dimension scales, as Dedalus writes them."""

from collections.abc import Mapping
from typing import NamedTuple

import h5py
import numpy as np

from .axes import SPATIAL

# Names under which `variables` takes several coordinates of one letter.
_NAMES = ("", "_points", "_grid", "_values", "_span")
_TIMES = ("sim_time", "time", "t", "times")
_SIDES = ("xyz", "xzy", "xy", "yz", "xz", "x", "y", "z")


class Named(NamedTuple):
    """Fields and coordinates, a letter for each axis of each field, and names that changed."""

    arrays: dict[str, h5py.Dataset]
    letters: dict[str, str]
    renamed: str = ""


def named_axes(found: Mapping[str, h5py.Dataset]) -> Named:
    """What is named among datasets whose dimensions have labels and scales; nothing where there
    are none. Axes are x, y, z in the order of their names: of data over (x, z) z becomes y.
    """
    changed: dict[str, str] = {}
    fields: dict[str, h5py.Dataset] = {}
    letters: dict[str, str] = {}
    coordinates: dict[str, list[h5py.Dataset]] = {}
    for name, item in found.items():
        scales = [_scale(item, axis) for axis in range(item.ndim)]
        labels = [str(item.dims[axis].label).lower() for axis in range(item.ndim)]
        if item.ndim < 2 or scales[0] is None or labels[0] not in _TIMES:
            continue
        space = "".join(label for label in labels if label in SPATIAL)
        if space not in _SIDES or any(
            label not in SPATIAL and item.shape[axis] > 1 and (label or scales[axis] is not None)
            for axis, label in enumerate(labels[1:], 1)
        ):
            continue  # transforms instead of values, or axes of other names
        renamed = dict(zip(sorted(space), SPATIAL, strict=False))
        changed |= {old: new for old, new in renamed.items() if old != new}
        told = ["t", *(renamed.get(label, "c") for label in labels[1:])]
        for letter, scale in zip(told, scales, strict=True):
            known = coordinates.setdefault(letter, [])
            if letter != "c" and scale is not None and scale not in known:
                known.append(scale)
        fields[name], letters[name] = item, "".join(told)
    arrays = {
        f"{letter}{end}": scale
        for letter, known in coordinates.items()
        for end, scale in zip(_NAMES, known, strict=False)
    }
    # A field called as a coordinate is would hide it.
    clash = set(arrays) & set(fields)
    if clash or not fields:
        return Named({}, {})
    words = ", ".join(f"{old} of the file is {new}" for old, new in changed.items())
    return Named({**arrays, **fields}, letters, words)


def _scale(item: h5py.Dataset, axis: int) -> h5py.Dataset | None:
    """The coordinates along an axis: of several for the time those of the simulation."""
    held = {
        str(key): scale
        for key, scale in item.dims[axis].items()
        if scale.shape == (item.shape[axis],) and np.issubdtype(scale.dtype, np.number)
    }
    named = next((held[name] for name in _TIMES if name in held), None)
    if named is not None or not held:
        return named
    return next(iter(held.values()))

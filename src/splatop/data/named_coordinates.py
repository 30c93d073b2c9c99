"""Coordinates among the variables of a file, told by their names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .stored import Stored

# Names of coordinates, without regard to case: x, xx, xs, x_star, x_points, x-coordinate, ...
_ENDINGS = ("grid", "points", "coord", "coords", "coordinate", "coordinates", "values", "span")
COORDINATES = {
    **{f"{axis}{more}": axis for axis in "txyz" for more in ("", axis, "s", "_star")},
    **{f"{axis}{by}{end}": axis for axis in "txyz" for by in ("", "_", "-") for end in _ENDINGS},
    **dict.fromkeys(("time", "times"), "t"),
}


@dataclass(frozen=True)
class Coordinates:
    """Evenly or unevenly spaced values by letter: x, y, z, t; a letter may have several."""

    values: Mapping[str, tuple[np.ndarray, ...]]
    names: frozenset[str]
    meshes: Mapping[str, tuple[tuple[int, ...], int]]  # shape of a mesh, the axis it varies along

    def of_length(self, letter: str, count: int) -> np.ndarray | None:
        return next((v for v in self.values.get(letter, ()) if len(v) == count), None)

    def letters(self, count: int) -> list[str]:
        return [letter for letter in self.values if self.of_length(letter, count) is not None]

    def listed(self) -> str:
        found = [f"{letter} {len(v)}" for letter, held in self.values.items() for v in held]
        return ", ".join(found) or "none"


def coordinates_among(arrays: Mapping[str, Any], fields: Sequence[str]) -> Coordinates:
    found: dict[str, tuple[np.ndarray, ...]] = {}
    names, meshes = set(), {}
    for name, array in arrays.items():
        letter = letter_of(name)
        if letter is None or name in fields or not sides_of(array):
            continue
        values, axis = _line(array)
        if values is not None:
            if axis is not None:
                meshes[letter] = (sides_of(array), axis)
            found[letter] = (*found.get(letter, ()), values)
            names.add(name)
    return Coordinates(found, frozenset(names), meshes)


def letter_of(name: str) -> str | None:
    return COORDINATES.get(name.lower())


def _line(array: Any) -> tuple[np.ndarray | None, int | None]:
    """Coordinates as one line: a vector, or a mesh that varies along one axis only, and which."""
    if len(sides_of(array)) > 3:
        return None, None
    values = values_of(array)
    if np.iscomplexobj(values):
        if np.imag(values).any():
            return None, None
        values = np.real(values)
    values = np.squeeze(values)
    if values.ndim == 1:
        return values, None
    for axis in range(values.ndim):
        line = values[tuple(slice(None) if a == axis else 0 for a in range(values.ndim))]
        mesh = line.reshape([-1 if a == axis else 1 for a in range(values.ndim)])
        if (values == mesh).all() and line[0] != line[-1]:
            return line, axis
    return None, None


def sides_of(array: Any) -> tuple[int, ...]:
    """The shape without the axes of one that MATLAB adds."""
    return tuple(int(n) for n in array.shape if n != 1)


def values_of(array: Any) -> np.ndarray:
    """A variable in memory."""
    if isinstance(array, Stored):
        return array.part((slice(None),) * len(array.shape))
    return np.asarray(array)

"""Coordinates among the variables of a file, told by their names."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np

from .axes import SPATIAL, uneven_gaps
from .hdf5 import attributes_of
from .stored import Stored

# Names of coordinates, without regard to case: x, xx, xs, x_star, x_points, x-coordinate, ...
_ENDINGS = ("grid", "points", "coord", "coords", "coordinate", "coordinates", "values", "span")
COORDINATES = {
    **{f"{axis}{more}": axis for axis in "txyz" for more in ("", axis, "s", "_star")},
    **{f"{axis}{by}{end}": axis for axis in "txyz" for by in ("", "_", "-") for end in _ENDINGS},
    **dict.fromkeys(("time", "times"), "t"),
}
STEPS = {"dt": "t", "dx": "x", "dy": "y", "dz": "z"}  # spacings beside fields, by their names
_DIFFERS = 1e-3  # of a spacing: coordinates in single precision are as even as that


@dataclass(frozen=True)
class Coordinates:
    """Evenly or unevenly spaced values by letter: x, y, z, t; a letter may have several."""

    values: Mapping[str, tuple[np.ndarray, ...]]
    names: frozenset[str]
    meshes: Mapping[str, tuple[tuple[int, ...], int]]  # shape of a mesh, the axis it varies along
    rows: Mapping[str, np.ndarray]  # one row for each trajectory, of letters whose rows differ

    def of_length(self, letter: str, count: int) -> np.ndarray | None:
        return next((v for v in self.values.get(letter, ()) if len(v) == count), None)

    def letters(self, count: int) -> list[str]:
        return [letter for letter in self.values if self.of_length(letter, count) is not None]

    @property
    def trajectories(self) -> int | None:
        """How many trajectories have coordinates of their own, `(B, N)`; None where none do.

        Meshes over two axes have as many rows as the other coordinate has values.
        """
        along = [shape for shape, axis in self.meshes.values() if len(shape) == 2 and axis == 1]
        counts = {shape[0] for shape in (*along, *(held.shape for held in self.rows.values()))}
        lengths = {len(values) for held in self.values.values() for values in held}
        return counts.pop() if len(counts) == 1 and not counts & lengths else None

    def listed(self) -> str:
        found = [f"{letter} {len(v)}" for letter, held in self.values.items() for v in held]
        return ", ".join(found) or "none"


def coordinates_among(arrays: Mapping[str, Any], fields: Sequence[str]) -> Coordinates:
    """Arrays that by name and values are coordinates, by the letter of their axis."""
    found: dict[str, tuple[np.ndarray, ...]] = {}
    names, meshes, own = set(), {}, {}
    for name, array in arrays.items():
        letter = letter_of(name)
        if letter is None or name in fields or not sides_of(array):
            continue
        values, axis = _line(array)
        if values is None and (rows := _rows(array)) is not None:
            own[name] = rows
        if values is not None:
            if axis is not None:
                meshes[letter] = (sides_of(array), axis)
            found[letter] = (*found.get(letter, ()), values)
            names.add(name)
    rows = {}
    for name, values in own.items():  # beside a vector of t an array T is a field
        letter = COORDINATES[name.lower()]
        if letter not in found:
            rows[letter], found[letter] = values, (values[0],)
            names.add(name)
    return Coordinates(found, frozenset(names), meshes, rows)


def told_by_attributes(found: Mapping[str, h5py.Dataset]) -> dict[str, np.ndarray]:
    """Coordinates (`x`, `t`) and steps (`dx`, `dt`) that attributes of fields hold, or those of
    their groups or the file; several of one letter, for fields on several grids, are all kept."""
    if any(letter_of(name) for name in found):
        return {}
    coordinates: dict[str, list[np.ndarray]] = {}
    steps: dict[str, set[float]] = {}
    arrays = (item for item in found.values() if item.ndim > 1)
    for held in attributes_of(arrays, lambda name: letter_of(name) or name in STEPS):
        for name, value in held.items():
            letter = letter_of(name)
            if letter is not None and value.ndim == 1 and value.size > 1:
                known = coordinates.setdefault(letter, [])
                if not any(np.array_equal(value, one) for one in known):
                    known.append(value)
            elif name in STEPS and value.size == 1 and name not in found:
                steps.setdefault(name, set()).add(float(value.reshape(())))
    told = {
        name: value
        for letter, known in coordinates.items()
        for name, value in zip(
            (letter, *(f"{letter}_{end}" for end in _ENDINGS)), known, strict=False
        )
    }
    return told | {name: np.array(one.pop()) for name, one in steps.items() if len(one) == 1}


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


def _rows(array: Any) -> np.ndarray | None:
    """Coordinates `(B, N)` of which each trajectory has a row of its own, evenly spaced."""
    if len(array.shape) != 2 or np.issubdtype(array.dtype, np.complexfloating):
        return None
    values = values_of(array)
    even = all((np.diff(row) > 0).all() and not uneven_gaps(row).any() for row in values)
    return values if even and values.shape[1] > 1 else None


def step_of(arrays: Mapping[str, Any], letter: str) -> float | None:
    """A spacing that stands beside the fields, as one number or the same for each trajectory."""
    name = next(name for name, one in STEPS.items() if one == letter)
    if name not in arrays or len(sides_of(arrays[name])) > 1:
        return None
    values = np.ravel(np.real(values_of(arrays[name]))).astype(float)
    same = np.ptp(values) <= 1e-6 * abs(values[0])
    return float(values[0]) if same and values[0] > 0 else None


def doubt_steps(
    arrays: Mapping[str, Any], coordinates: Mapping[str, np.ndarray], source: str
) -> None:
    """Warn of coordinates that step otherwise than the `dx` or `dt` beside them says, such as those
    of `linspace(0, L, n)` for points that are L / n apart."""
    told, doubted, space = [], [], []
    for letter, along in coordinates.items():
        step, found = step_of(arrays, letter), float(np.ptp(along)) / max(1, len(along) - 1)
        differs = step is not None and abs(found - step) > _DIFFERS * step
        if step is None or not differs or uneven_gaps(along).any():
            space += [found * len(along)] if letter in SPATIAL else []
            continue
        doubted.append(f"{letter} steps by {found:.6g} where d{letter} says {step:.6g}")
        if letter in SPATIAL:
            space.append(step * len(along))
            told.append("--lengths")
        else:
            told.append(f"--dt {step:.6g}")
    if doubted:
        sides = "--lengths " + ",".join(f"{length:.6g}" for length in space)
        told = [sides if option == "--lengths" else option for option in dict.fromkeys(told)]
        warnings.warn(
            f"{source}: {', '.join(doubted)}: the coordinates are taken; if the steps are right, "
            f"give {' '.join(told)}",
            stacklevel=4,
        )


def sides_of(array: Any) -> tuple[int, ...]:
    """The shape without the axes of one that MATLAB adds."""
    return tuple(int(n) for n in array.shape if n != 1)


def values_of(array: Any) -> np.ndarray:
    """A variable in memory."""
    if isinstance(array, Stored):
        return array.part((slice(None),) * len(array.shape))
    return np.asarray(array)

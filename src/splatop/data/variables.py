"""Variables of a file without named axes: MATLAB's, those of a `.npz`, plain datasets of HDF5.

Coordinates are told by their names (x, t, tt, ...), and the axes of a field by the lengths of
these, where that leaves no doubt.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr
from xarray.core import indexing

from ..errors import SplatopError, unknown_name
from .axes import SPATIAL, common_shape, parse_axes
from .folded import how_to_unfold
from .labelled import LabelledTrajectories
from .named_coordinates import (
    STEPS,
    Coordinates,
    coordinates_among,
    doubt_steps,
    sides_of,
    step_of,
    values_of,
)
from .scattered import PLACES
from .stored import Stored
from .times import steady

_FEW = 4  # channels at the end of an axis order


@dataclass(frozen=True)
class Variables:
    """The variables of a file that are arrays of numbers, and the kinds of the others."""

    arrays: Mapping[str, Any]  # NumPy arrays, or what reads them from a file when asked (`part`)
    others: Mapping[str, str]
    source: str
    kind: str = "MATLAB"
    letters: Mapping[str, str] = field(default_factory=dict)  # axes that the file names itself

    def one(self, name: str) -> Any:
        if name in self.others:
            raise SplatopError(
                f"{self.source}: expected an array of numbers in '{name}', got a "
                f"{self.kind} {self.others[name]}: save what it holds as variables of their own"
            )
        if name not in self.arrays:
            raise unknown_name("variable", name, self.arrays)
        return self.arrays[name]

    def listed(self, names: Sequence[str]) -> str:
        found = [f"{name} {tuple(self.arrays[name].shape)}" for name in names]
        found += [f"{name} (a {kind})" for name, kind in self.others.items()]
        return ", ".join(found) or "nothing"


def open_variables(
    variables: Variables,
    *,
    axes: str | None,
    fields: Sequence[str] | None,
    dt: float | None,
    close: Any = None,
    **asked: Any,
) -> LabelledTrajectories:
    """The fields named, or all whose axes are clear, with coordinates and scalars beside them."""
    data = labelled(variables, axes, fields)
    data.set_close(close)
    if dt is None and "t" not in data.coords:
        dt = step_of(variables.arrays, "t")
    along = coordinates_among(variables.arrays, fields or ())
    for letter in data.dims:
        option = "--dt" if letter == "t" else "--lengths"
        if (dt if letter == "t" else asked.get("lengths")) is None:
            _check_lengths(variables, data, along, str(letter), option)
    open_ones = {k for k in data.dims if (dt if k == "t" else asked.get("lengths")) is None}
    held = {str(k): data.coords[k].values for k in data.coords if k in {*open_ones} - {*along.rows}}
    doubt_steps(variables.arrays, held, variables.source)
    opened = LabelledTrajectories(data, fields=fields, dt=dt, **asked, source=variables.source)
    opened.rows = {letter: row for letter, row in along.rows.items() if letter in open_ones}
    return opened


def _check_lengths(
    variables: Variables, data: xr.Dataset, along: Coordinates, letter: str, option: str
) -> None:
    """Refuse an axis with coordinates of its name in the file, but of another length."""
    held = along.values.get(letter, ())
    if held and letter in data.sizes and letter not in data.coords:
        raise SplatopError(
            f"{variables.source}: expected {data.sizes[letter]} values of {letter}, as many as the "
            f"axis named so has points, got {' or '.join(str(len(one)) for one in held)}: name the "
            f"axes in another order (--axes), or give {option}"
        )


def labelled(variables: Variables, axes: str | None, fields: Sequence[str] | None) -> xr.Dataset:
    """The variables with their axes named and their coordinates beside them."""
    for name in fields or ():
        variables.one(name)
    along = coordinates_among(variables.arrays, fields or ())
    arrays = variables.arrays
    inputs = [
        name
        for name, array in arrays.items()
        if (name in fields if fields else name not in along.names) and len(sides_of(array)) > 1
    ]
    if not inputs:
        raise SplatopError(
            f"{variables.source}: expected an array over time and space, got "
            f"{variables.listed(list(arrays))}: save one with an axis for each, and x and t"
            f"{_flat(variables.others)}"
        )
    letters = {name: _axes_of(name, arrays[name], along, axes, variables) for name in inputs}
    if all(found is None for found in letters.values()):
        raise _unclear(inputs, along, axes, variables)
    held = {name: found for name, found in letters.items() if found is not None}
    for name in fields or ():
        if name not in held:
            raise _unclear([name], along, axes, variables)
    sizes = {
        name: dict(zip(found, _shape(arrays[name], found), strict=True))
        for name, found in held.items()
    }
    common_shape(
        {name: tuple(size[k] for k in sorted(size) if k != "c") for name, size in sizes.items()},
        variables.source,
    )
    found_ones = {name: _variable(arrays[name], found) for name, found in held.items()}
    size = max(sizes.values(), key=lambda one: one.get("c", 1))
    letters = next(held[name] for name, one in sizes.items() if one is size)
    found_ones |= _constant_ones(arrays, {*held, *along.names}, letters, size)
    # A vector and a scalar may stand beside each other: one channel is none.
    found_ones = {
        name: one.isel(c=0) if one.sizes.get("c") == 1 and len(held) > 1 else one
        for name, one in found_ones.items()
    }
    common_shape(
        {name: (one.sizes["c"],) for name, one in found_ones.items() if "c" in one.dims}
        or {"": ()},
        variables.source,
    )
    found_ones |= {
        name: xr.Variable((), values_of(array).reshape(()))
        for name, array in arrays.items()
        if not sides_of(array) and name not in STEPS
    }
    if "b" in size and list(size.values()).count(size["b"]) == 1:  # one number for each trajectory
        found_ones |= {
            name: xr.Variable("b", values_of(array).reshape(-1))
            for name, array in arrays.items()
            if sides_of(array) == (size["b"],) and name not in {*STEPS, *along.names, *held}
        }
    coords = {}
    for letter, count in size.items():
        values = along.of_length(letter, count)
        step = step_of(arrays, letter) if letter in SPATIAL and letter not in along.values else None
        if values is not None or step is not None:
            coords[letter] = xr.Variable(letter, np.arange(count) * step if step else values)
    return xr.Dataset(found_ones, coords)


def _flat(others: Mapping[str, str]) -> str:
    """How MATLAB saves what a structure holds as variables of their own."""
    name = next((name for name, kind in others.items() if kind == "struct"), None)
    return f" (of a struct in MATLAB: save('flat.mat', '-struct', '{name}'))" if name else ""


def _constant_ones(
    arrays: Mapping[str, Any], used: set[str], letters: str, size: Mapping[str, int]
) -> dict[str, xr.Variable]:
    """Arrays with the axes of a field but for time, and perhaps for trajectory and channel."""
    orders = {letters.replace("t", "")}
    orders |= {order.replace("b", "") for order in orders}
    orders |= {order.replace("c", "") for order in orders}
    found = {}
    for name, array in arrays.items():
        for order in sorted(orders, key=len, reverse=True):
            if name not in used and tuple(array.shape) == tuple(size[k] for k in order):
                found[name] = _variable(array, order)
                break
    return found


# --- axes --------------------------------------------------------------------------------------


def _axes_of(
    name: str, array: Any, along: Coordinates, axes: str | None, variables: Variables
) -> str | None:
    """The letters that were given, or the only ones that the lengths allow; else None."""
    if axes is not None:
        fits = len(axes) in (len(array.shape), len(sides_of(array)))
        return parse_axes(axes, len(axes), source=variables.source) if fits else None
    if name in variables.letters:
        return variables.letters[name]
    possible = _possible(sides_of(array), along)
    return possible[0] if len(possible) == 1 else None


def _possible(sides: tuple[int, ...], along: Coordinates) -> list[str]:
    """Every reading of the axes by the lengths of coordinates."""
    rows = along.trajectories
    choices = [along.letters(count) or (["?", "b"] if count == rows else ["?"]) for count in sides]
    found = []
    for letters in map("".join, itertools.product(*choices)):
        if len(sides) == 2 and letters.count("?") == 1:
            # Two axes, one of them known: the other is what is missing, if nothing else claims it.
            other = {"t": "x", "x": "t"}.get(letters.replace("?", ""), "?")
            letters = letters if other in along.values else letters.replace("?", other)
        dims = sum(letter in SPATIAL for letter in letters)
        if letters.count("?") == 1 and letters[-1] == "?" and "t" in letters and dims == sides[-1]:
            letters = letters[:-1] + "c"  # the components of a vector
        if "t" not in along.values and any(shape == sides for shape, _ in along.meshes.values()):
            letters = letters.replace("?", "t", 1)  # meshes of space at all times
        spatial = [letter for letter in letters if letter in SPATIAL]
        complete = "?" not in letters and len(set(letters)) == len(letters)
        fits = all(_meshed(letters, sides, *mesh, k) for k, mesh in along.meshes.items())
        if (
            fits
            and complete
            and "t" in letters
            and set(spatial) == set(SPATIAL[: len(spatial)])
            and spatial
        ):
            found.append(letters)
    return sorted(set(found))


def _meshed(
    letters: str, sides: tuple[int, ...], shape: tuple[int, ...], axis: int, letter: str
) -> bool:
    """Whether letters agree with a mesh over all axes of a field, or over those in space, whose
    values vary along one of them."""
    space = [place for place, one in enumerate(letters) if one in SPATIAL]
    if shape == sides:
        return letters[axis] == letter
    if len(space) > 1 and shape == tuple(sides[place] for place in space):
        return letters[space[axis]] == letter
    return True


def _unclear(
    names: Sequence[str], along: Coordinates, axes: str | None, variables: Variables
) -> SplatopError:
    """What to give where lengths do not tell the axes."""
    source, arrays = variables.source, variables.arrays
    name = max(names, key=lambda one: (np.prod(sides_of(arrays[one])), one.startswith("u")))
    sides = sides_of(arrays[name])
    if axes is not None:
        return SplatopError(
            f"{source}: expected a variable with the {len(axes)} axes '{axes}', got "
            f"{variables.listed(names)}: give one letter for each axis"
        )
    for place in (one for one in arrays if one.lower() in PLACES):
        own = sides_of(arrays[place])
        if len(own) == 2 and own[1] == 2 and own[0] in sides:
            return SplatopError(
                f"{source}: expected a grid in this format, got values at the {own[0]} points "
                f"'{place}': write them as .npz with points (P, 2), t and {name}, or give them to "
                "fit with points="
            )
    possible = _possible(sides, along)
    if possible:
        return SplatopError(
            f"{source}: expected axes of {name} {sides} that lengths tell apart, but the "
            f"coordinates ({along.listed()}) fit as {' or '.join(possible)}: give "
            f"{' or '.join(f'--axes {one}' for one in possible)}"
        )
    example = _example(sides, along, last=variables.kind == "MATLAB")
    missing = "" if len(names) == 1 else f" --fields {name}"
    missing += f" --axes {example}"
    if "t" not in example:
        return steady(source)
    told = {*along.values, *(k for k in STEPS.values() if step_of(arrays, k) is not None)}
    missing += "" if all(k in told for k in example if k in SPATIAL) else " --lengths 1"
    missing += "" if "t" in told else " --dt 0.1"
    found = variables.listed(names)
    untimed = "t" not in along.values
    flat = {one: sides_of(arrays[one]) for one in names}
    unfold = how_to_unfold(flat, _scalars(arrays)) if untimed else None
    if unfold or "t" not in told:
        return SplatopError(
            f"{source}: expected a time axis, got {found} with the coordinates {along.listed()}: "
            + (unfold or f"if an axis of {name} is time, say which, as in{missing}; pairs of ")
            + ("" if unfold else "inputs and outputs are not trajectories")
        )
    return SplatopError(
        f"{source}: expected axes that the lengths of coordinates tell, got {found} with the "
        f"coordinates {along.listed()}: name the axes by letters of b (trajectory) t c (channel) "
        f"x y z, as in{missing}"
    )


def _example(sides: tuple[int, ...], along: Coordinates, *, last: bool) -> str:
    """Letters that may be meant: those that lengths tell, time last as in MATLAB's files or before
    space as in others, the rest in order."""
    letters = ["?"] * len(sides)
    for axis, count in enumerate(sides):
        found = [k for k in along.letters(count) if k not in letters]
        letters[axis] = found[0] if found else "?"
    if len(sides) > 3 and sides[-1] <= _FEW and letters[-1] == "?":
        letters[-1] = "c"
    if "t" not in letters and "?" in letters:
        unknown = [i for i, k in enumerate(letters) if k == "?"]
        after = len(unknown) - ("x" not in letters) > 1  # trajectories stand before time
        letters[unknown[-1] if last else unknown[after]] = "t"
    space = [k for k in SPATIAL if k not in letters]
    open_ones = [i for i, k in enumerate(letters) if k == "?"]
    led = letters[0] == "t" and len(open_ones) <= len(space)  # nothing stands before time
    if open_ones and ((len(open_ones) > 1 and not led) or "x" in letters):
        letters[open_ones.pop(0)] = "b" if open_ones or "x" in letters else "x"
    for axis, letter in zip(open_ones, space, strict=False):
        letters[axis] = letter
    return "".join(letters).replace("?", "c")


# --- values --------------------------------------------------------------------------------------


def _shape(array: Any, letters: str) -> tuple[int, ...]:
    return tuple(array.shape) if len(array.shape) == len(letters) else sides_of(array)


def _variable(array: Any, letters: str) -> xr.Variable:
    """The variable with one axis for each letter; what is on disk stays there."""
    rest, every = iter(letters), len(array.shape) == len(letters)
    dims = [next(rest) if every or n != 1 else f"one{i}" for i, n in enumerate(array.shape)]
    lazy = indexing.LazilyIndexedArray(array) if isinstance(array, Stored) else array
    return xr.Variable(dims, lazy).isel({dim: 0 for dim in dims if dim.startswith("one")})


def _scalars(arrays: Mapping[str, Any]) -> dict[str, float]:
    return {k: float(np.real(values_of(a)).item()) for k, a in arrays.items() if not sides_of(a)}

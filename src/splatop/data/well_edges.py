"""The edges of a domain in The Well's group `boundary_conditions`: PERIODIC, WALL and OPEN."""

from collections.abc import Sequence
from typing import Any

import h5py
import numpy as np

from ..domain import AXES, Domain
from .hdf5 import group, strings, text
from .stated import OPEN, PERIODIC, WALL, Stated

_KINDS = {"free": OPEN, "value": WALL, "slope": WALL}


def read_flags(file: h5py.File, axes: Sequence[str], fields: Sequence[str], source: str) -> Stated:
    """The flags by end, and the values of walls that name their fields and hold one number.

    A mask says which of the two ends; without one it is both.
    """
    flags: dict[str, str] = {}
    problem = None
    values: dict[tuple[str, str], float] = {}
    held = group(file, "boundary_conditions")
    for name, item in held.items() if held else ():
        kind = text(item.attrs.get("bc_type", "")).lower()
        if kind not in (PERIODIC, WALL, OPEN):
            problem = problem or (
                f"{source}: expected PERIODIC, WALL or OPEN, got bc_type "
                f"'{text(item.attrs.get('bc_type', ''))}' in boundary_conditions/{name}: give "
                "--boundary"
            )
            continue
        along = [one for one in strings(item.attrs.get("associated_dims", [])) if one in axes]
        if len(along) > 1 and kind != PERIODIC:
            problem = problem or (
                f"{source}: expected walls at the ends of one axis, got {kind.upper()} along "
                f"{', '.join(along)} in boundary_conditions/{name}, an obstacle inside of the box: "
                'say where it is, --shape "box - disk(0.5, 0.5, 0.1)" or --mask with a variable of '
                "the file that is 1 inside of the fluid, and what holds at its edge (--boundary)"
            )
            continue
        for one in along:
            axis = list(axes).index(one)
            for end in _ends(item, kind):
                side = f"{AXES[axis]}{end}"
                if flags.setdefault(side, kind) != kind:
                    flags[side] = WALL  # fields that differ: what holds is said by none of them
                if kind == WALL:
                    values |= {(side, f): v for f, v in _values(item, end, fields).items()}
    return Stated(flags=flags, values=values, problem=problem)


def _ends(item: h5py.Group, kind: str) -> tuple[int, ...]:
    mask = _array(item, "mask")
    if kind == PERIODIC or mask is None or mask.ndim != 1 or not mask.size:
        return (0, 1)
    found = tuple(end for end, place in ((0, 0), (1, -1)) if mask[place])
    return found or (0, 1)


def _values(item: h5py.Group, end: int, fields: Sequence[str]) -> dict[str, float]:
    """By field, where the file sets one number there."""
    named = strings(item.attrs.get("associated_fields", []))
    values, mask = _array(item, "values"), _array(item, "mask")
    if not named or values is None or mask is None or values.ndim != 1 or mask.ndim != 1:
        return {}
    if not len(values) or len(values) not in (len(mask), int(mask.astype(bool).sum())):
        return {}
    here = values[-1 if end else 0]
    if not np.isfinite(here):
        return {}
    number = float(str(here))  # 0.8 in single precision is 0.8
    parts = {f"{name}_{axis}": name for name in named for axis in AXES}
    return {
        field: number
        for field in fields
        if field in named or (field in parts and number == 0)  # a vector that is 0 is so in each
    }


def _array(item: h5py.Group, name: str) -> np.ndarray | None:
    found = item.get(name)
    if not isinstance(found, h5py.Dataset) or found.dtype.kind not in "buif":
        return None
    return np.asarray(found[()])


def write_flags(
    file: h5py.File, domain: Domain, fields: Sequence[str], points: Sequence[int]
) -> None:
    """One group for each periodic axis, and for each field at each end of the others.

    What The Well has no word for, slopes and expressions, is in our own attribute beside.
    """
    for number, (axis, count) in enumerate(zip(AXES, points, strict=False)):
        if domain.axes[number].periodic:
            ends = np.isin(np.arange(count), (0, count - 1))
            _write(file, f"{axis}_periodic", axis, PERIODIC, [], ends, np.zeros(ends.sum()))
            continue
        for end in (0, 1):
            here = np.arange(count) == (count - 1 if end else 0)
            for field in fields:
                one = domain.at(f"{axis}{end}", field)
                set_there = one.kind == "value" and not isinstance(one.value, str)
                values: Any = [one.value] if set_there else [np.nan]
                name = f"{axis}{end}_{field}"
                _write(file, name, axis, _KINDS[one.kind], [field], here, np.array(values))


def _write(
    file: h5py.File,
    name: str,
    axis: str,
    kind: str,
    fields: list[str],
    mask: np.ndarray,
    values: np.ndarray,
) -> None:
    item = file.create_group(f"boundary_conditions/{name}")
    item.attrs["associated_dims"] = [axis]
    item.attrs["associated_fields"] = np.array(fields, dtype=h5py.string_dtype())
    item.attrs["bc_type"] = kind.upper()
    item.attrs["sample_varying"] = False
    item.attrs["time_varying"] = False
    item["mask"] = mask
    item["values"] = values.astype(np.float32)

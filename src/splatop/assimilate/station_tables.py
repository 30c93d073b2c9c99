"""Tables with a column for each station: the places are in a second table, or in the columns' own
names, in rows below these, or in comments above."""

import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..data.table_file import called_as, comments_of, place_and_time
from ..domain import AXES
from ..errors import SplatopError
from .table_sources import VALUE, table_of

SENSOR = "sensor"
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_SAYS = re.compile(rf"(?<![a-z])([xyz])\s*=\s*({_NUMBER})", re.IGNORECASE)
# T@0.5, T (0.1, 0.2); and with a unit of length: 0.5 m, T_5cm.
_AT = re.compile(rf"^.*?[@(\[]\s*({_NUMBER}(?:\s*[,;]\s*{_NUMBER}){{0,2}})\s*[)\]]?$")
_LONG = re.compile(rf"^(?:.*?[^\d.eE+-])?({_NUMBER})\s*(mm|cm|m|km)$")


def with_places(table: Any, places: Any, name: str, file: str | Path | None = None) -> Any:
    """The table with the place of each report, from a second table of stations, a file of one, or a
    mapping `{"A": 0.1}` or `{"A": (0.1, 0.2)}`.

    Stations are found by what they are called: where the table has columns of these names, there
    is a row for each of their values; where a column holds them, each row gets its station's place.
    A file that is called as a station is (46042h2023.txt) is that station's.
    """
    stations, there = _stations(places)
    columns = {_called(column): column for column in table.columns}
    own = [one for one in stations if one in columns]
    if not own and file is not None and _station(Path(file).name, stations):
        table = table.assign(**{SENSOR: Path(file).name})
    holders = {
        column: sum(_station(one, stations) is not None for one in table[column].unique())
        for column in table.columns
        if table[column].dtype.kind not in "fmM"
    }
    best = max(holders, key=lambda column: holders[column], default=None)
    if best is not None and holders[best] > 0 and not own:
        return _each_row(table, best, stations, name, there)
    if not own:
        some = ", ".join(list(stations)[:3])
        listed = ", ".join(map(str, table.columns))
        raise SplatopError(
            f"expected columns, or a column of names, as the stations of {there} are called "
            f"({some}), in {name}, got {listed}: give both the same names"
        )
    absent = [one for one in stations if one not in columns]
    if absent:
        warnings.warn(f"{name} has no column of {_few(absent)}, of {there}", stacklevel=4)
    return _melted(table, {columns[one]: stations[one] for one in own}, name)


def with_told_places(table: Any, source: str | Path | None, name: str) -> Any:
    """The same, where names of columns, rows below them or comments above say the places; the
    table as it is, where they do not."""
    found = called_as(table.columns)
    if not {*AXES}.isdisjoint(found):
        return table
    table, told = _rows_of_places(table)
    if not told and source is not None:
        told = _in_comments(comments_of(Path(source)), list(table.columns))
    if told:
        return _melted(table, told, name)
    free = [column for column in table.columns if column != found.get("t")]
    told, unit = _in_names(free)
    if len(told) < 2:
        return table
    least, most = min(told.values()), max(told.values())
    span = " to ".join(f"({', '.join(f'{v:g}' for v in one)})" for one in (least, most))
    warnings.warn(
        f"{name}: the place of each column is read from its name, {span}{unit}", stacklevel=4
    )
    return _melted(table, told, name)


def _stations(places: Any) -> tuple[dict[str, tuple[float, ...]], str]:
    """The place of each station by its name, and where they are from."""
    if isinstance(places, Mapping):
        held = {_called(k): tuple(np.atleast_1d(v).astype(float)) for k, v in places.items()}
        if not held or len({len(one) for one in held.values()}) != 1:
            raise SplatopError(f"expected as many coordinates for each station, got {places}")
        return held, "the places"
    table, name = table_of(places)
    found = place_and_time(table.columns, name)
    axes = [found[axis] for axis in AXES if axis in found]
    free = [column for column in table.columns if column not in axes]
    if not axes:  # along a line: the one column of numbers
        axes = [c for c in free if table[c].dtype.kind == "f"]
        axes = axes if len(axes) == 1 else []
        free = [column for column in free if column not in axes]
    listed = ", ".join(map(str, table.columns))
    names = [column for column in free if table[column].is_unique]
    if not axes or not names:
        raise SplatopError(
            f"expected a row for each station in {name}, with its name, x[, y, z], got {listed}"
        )
    key = next((c for c in names if table[c].dtype.kind not in "if"), names[0])
    at = table[axes].to_numpy(float)
    if not np.isfinite(at).all():
        raise SplatopError(f"expected the place of every station in {name}, got empty ones")
    return {
        _called(one): tuple(row) for one, row in zip(table[key], at.tolist(), strict=True)
    }, name


def _each_row(table: Any, column: Any, stations: Mapping, name: str, there: str) -> Any:
    called = {one: _station(one, stations) for one in table[column].unique()}
    who = np.array([called[one] or str(one) for one in table[column]])
    known = np.array([called[one] is not None for one in table[column]])
    if not known.all():
        lost = np.unique(who[~known]).tolist()
        warnings.warn(
            f"{name}: {int((~known).sum())} rows of {_few(lost)}, which {there} does not have, are "
            "left out",
            stacklevel=5,
        )
    table, who = table[known].reset_index(drop=True), who[known]
    at = np.array([stations[one] for one in who])
    held = called_as(table.columns)
    table = table.drop(columns=[held[axis] for axis in AXES if axis in held])
    return table.assign(**{SENSOR: who}, **{AXES[i]: at[:, i] for i in range(at.shape[1])})


def _melted(table: Any, places: Mapping[Any, Sequence[float]], name: str) -> Any:
    """A row for each value of the columns that have a place."""
    rest = [column for column in table.columns if column not in places]
    numbers = [c for c in rest if table[c].dtype.kind == "f" and c not in _time(rest)]
    if numbers:
        warnings.warn(f"{name}: {_few(numbers)} have no place and are left out", stacklevel=5)
    kept = _time(rest)
    long = table[[*kept, *places]].melt(kept, var_name=SENSOR, value_name=VALUE)
    at = np.array([tuple(places[one]) for one in long[SENSOR]], float)
    long = long.assign(**{AXES[i]: at[:, i] for i in range(at.shape[1])})
    return long[long[VALUE].notna()].reset_index(drop=True)


def _time(columns: Sequence[Any]) -> list[Any]:
    found = called_as(columns)
    return [found["t"]] if "t" in found else []


def _rows_of_places(table: Any) -> tuple[Any, dict[Any, tuple[float, ...]]]:
    """Without first rows that are called x, y or z in their first column, and what they hold."""
    import pandas as pd

    lead, *others = table.columns
    rows: dict[str, Any] = {}
    for number in range(min(3, len(table))):
        word = table[lead].iloc[number]
        said = called_as([word]) if isinstance(word, str) else {}
        axis = next((axis for axis in AXES if axis in said), None)
        if axis is None:
            break
        rows[axis] = pd.to_numeric(table[others].iloc[number], errors="coerce")
    axes = [axis for axis in AXES if axis in rows]
    if not axes or axes != list(AXES[: len(axes)]):
        return table, {}
    rest = table.iloc[len(rows) :].reset_index(drop=True)
    told = {column: tuple(float(rows[axis][column]) for axis in axes) for column in others}
    return rest, {column: at for column, at in told.items() if np.isfinite(at).all()}


def _in_comments(comments: Sequence[str], columns: Sequence[Any]) -> dict[Any, tuple[float, ...]]:
    """Of lines such as `# T1: x = 0.05, y = 0.2`."""
    told = {}
    for line in comments:
        said = _said(line)
        words = set(re.split(r"[\s:,;(=]+", line.lstrip("#% ")))
        named = [column for column in columns if str(column) in words]
        if said and len(named) == 1:
            told[named[0]] = said
    return told if len({len(one) for one in told.values()}) == 1 else {}


def _in_names(columns: Sequence[Any]) -> tuple[dict[Any, tuple[float, ...]], str]:
    """Places that names of columns say in one way, as most columns do; and their unit."""
    ways: list[dict[Any, tuple[float, ...]]] = [{}, {}, {}]
    units: dict[str, dict[Any, tuple[float, ...]]] = {}
    for column in columns:
        text = str(column).strip()
        said = _said(text)
        if isinstance(column, float):  # labels of a pandas table
            ways[2][column] = (column,)
        elif said:
            ways[0][column] = said
        elif match := _AT.match(text):
            ways[1][column] = tuple(float(v) for v in re.split(r"[,;]", match[1]))
        elif match := _LONG.match(text):
            units.setdefault(match[2], {})[column] = (float(match[1]),)
    every = [("", way) for way in ways] + [(f" {unit}", way) for unit, way in units.items()]
    unit, told = max(every, key=lambda one: len(one[1]))
    distinct = len(set(told.values())) == len(told) and len({len(v) for v in told.values()}) == 1
    return (told, unit) if distinct else ({}, "")


def _said(text: str) -> tuple[float, ...]:
    """`x = 0.1, y = 2` as numbers; none where it does not begin with x, or says one twice."""
    pairs = [(axis.lower(), float(value)) for axis, value in _SAYS.findall(text)]
    said = dict(pairs)
    if len(said) != len(pairs) or [*said] != list(AXES[: len(said)]):
        return ()
    return tuple(said.values())


def _station(one: Any, stations: Mapping) -> str | None:
    """The station of this name, or the only one with whose name it begins, as files do."""
    name = _called(one)
    if name in stations:
        return name
    alike = [own for own in stations if name.startswith(own) and not name[len(own)].isdigit()]
    return alike[0] if len(alike) == 1 else None


def _called(one: Any) -> str:
    """A station's name; the number 46042 in whatever type it was read."""
    if isinstance(one, float) and one.is_integer():
        one = int(one)
    return str(one).strip()


def _few(names: Sequence[Any]) -> str:
    return ", ".join(map(str, names[:3])) + (
        f" and {len(names) - 3} others" if len(names) > 3 else ""
    )

"""Tables as others write them: what stands between columns, comments, names with units, and the
exports of COMSOL and ParaView. Columns of time and place are found by what they are called."""

import csv
import gzip
import re
import warnings
from collections.abc import Iterable, Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import SplatopError, check_memory
from .clocks import is_dated, with_moments
from .crossed import are_coordinates, is_number, uncrossed, without_counters
from .hdf5 import error_line
from .probes import is_probes, read_probes

TABLES = (".csv", ".tsv", ".txt", ".dat", ".parquet", ".pq")
BINARY, GZIP = (".parquet", ".pq"), ".gz"
_COMMENTS = ("#", "%")
# What columns of time and place are called, in lower case and without units. A temperature is
# often T: that is a time only where nothing else is.
_CALLED = {
    "trajectory": (
        "trajectory",
        "trajectory_id",
        "traj",
        "simulation",
        "sim",
        "realization",
        "run",
    ),
    "t": ("time", "datetime", "timestamp", "date", "valid_time", "juld", "t"),
    "x": ("x", "lon", "longitude", "points:0", "points_0", "x-coordinate", "easting"),
    "y": ("y", "lat", "latitude", "points:1", "points_1", "y-coordinate", "northing"),
    "z": ("z", "points:2", "points_2", "z-coordinate"),
}
_DEGREES = ("lon", "longitude", "lat", "latitude")
# Columns that number rows, points or steps.
COUNTERS = (
    *("timestep", "time step", "point id", "pointid", "cell id", "node", "node id", "index", "id"),
    *("unnamed: 0", "block number", "block name", "row id", "vtkoriginalpointids"),
)
# A unit behind a name of time or place, as in `time_s` and `x_m`.
_UNIT_BEHIND = re.compile(
    r"[_ .](s|sec|secs|seconds|ms|min|minutes|h|hr|hours|d|days|utc|m|mm|cm|km|metres|meters|deg|"
    r"degrees)$"
)
_UNIT = re.compile(r"\s*[\(\[][^\)\]]*[\)\]]\s*$")
_AT_TIME = re.compile(r"^(?P<field>.+?)\s*@\s*(?:\d+:\s*)?t\s*=\s*(?P<t>[-+.\deE]+)(?:\s*\w+)?$")
_SPACED_NAME = re.compile(r"\S+(?: [\(\[][^\)\]]*[\)\]])?(?: @ (?:\d+: )?\S+)?")


def is_table(path: Path) -> bool:
    """Whether a file is a table by its name; those of text may be compressed."""
    name = path.with_suffix("") if path.suffix.lower() == GZIP else path
    suffix = name.suffix.lower()
    return suffix in TABLES and (name is path or suffix not in BINARY)


def read_table(path: Path, rows: str | None = None) -> Any:
    """A file as a pandas table with the columns it names; of COMSOL's one row for each time, and of
    values between a row and a column of coordinates one row for each: `rows` is "t" or "x", what
    the column holds, where its name does not say."""
    import pandas as pd

    check_memory(path.stat().st_size, "a table", "write it in a binary format, or fewer rows")
    try:
        if path.suffix.lower() in BINARY:
            table = pd.read_parquet(path)
            named = [name is not None for name in table.index.names]
            return table.reset_index() if all(named) else table
        if is_probes(path):
            return read_probes(path)
        head = _head(path)
        logger = _is_logger(path)  # names in the second line, below them units and what was done
        table = pd.read_csv(
            path,
            comment=head.comment,
            skipinitialspace=True,
            sep=head.separator,
            decimal=head.decimal,
            names=head.names,
            header=None if head.names or not (head.named or head.crossed) else 0,
            encoding_errors="replace",
            skiprows=[0, 2, 3] if logger else None,
        )
    except SplatopError:
        raise
    except Exception as error:  # whatever a damaged table makes its library raise
        cure = "write it again"
        if "Expected" in str(error) and "fields in line" in str(error):
            cure = "its rows differ in length; lines above the names of its columns have to go"
        raise SplatopError(
            f"expected a table with columns t, x, y and fields, {path.name} cannot be read "
            f"({error_line(error)}): {cure}"
        ) from error
    if head.crossed:
        keys = place_and_time(table.columns[:1], path.name)
        told = next((key for key in ("t", "x") if key in keys), rows)
        return uncrossed(table, told, head.decimal, path.name)
    if not head.named:
        raise SplatopError(
            f"{path.name}: expected columns t, x[, y, z] and one for each field, got "
            f"{table.shape[1]} without names: name the columns in the first line, such as t,x,y,u; "
            "if it is an array of rows and columns, give --axes tx (or xt), --lengths and --dt"
        )
    return with_moments(_over_time(_without_units(table, path.name)), path.name)


def _without_units(table: Any, source: str) -> Any:
    """Without a first row that holds no numbers but those of columns that are otherwise numbers:
    their units."""
    import pandas as pd

    def numeric(values: Any) -> Any:
        return pd.to_numeric(values, errors="coerce")

    if len(table) < 2 or numeric(table.iloc[0]).notna().any():
        return table
    rest = table.iloc[1:].reset_index(drop=True)
    numbers = {}
    for column in table.columns[table.iloc[0].notna()]:
        read = numeric(rest[column])
        if read.notna().any() and (read.notna() | rest[column].isna()).all():
            numbers[column] = read
    if not numbers:
        return table
    told = ", ".join(f"{column} {table[column].iloc[0]}" for column in numbers)
    warnings.warn(f"{source}: its first row holds units ({told}) and is left out", stacklevel=4)
    return rest.assign(**numbers)


def columns_as_rows(time: Any) -> str:
    """What is said of a table that has a column for each sensor, and no places."""
    return (
        f"if each column is a sensor, make rows of them: pandas' table.melt('{time}', "
        "var_name='sensor', value_name='u'), with a column x of each sensor's place"
    )


def read_numbers(path: Path) -> np.ndarray:
    """A table without names as the array that it is, rows first."""
    head = _head(path)
    if head.named:
        raise SplatopError(
            f"expected no axes for a table with named columns, {path.name} has some: leave --axes "
            "out"
        )
    check_memory(path.stat().st_size, "a table", "write it in a binary format, or fewer rows")
    import pandas as pd

    try:
        table = pd.read_csv(
            path, comment=head.comment, sep=head.separator, decimal=head.decimal, header=None
        )
        return without_counters(table.to_numpy(float), path.name)
    except Exception as error:  # as above
        raise SplatopError(
            f"expected rows of numbers, {path.name} cannot be read ({error_line(error)})"
        ) from error


def is_crossed(path: Path) -> bool:
    """Whether a table has coordinates in its first row and its first column."""
    return path.suffix.lower() not in BINARY and not is_probes(path) and _head(path).crossed


class _Head(NamedTuple):
    separator: str
    decimal: str
    comment: str | None
    named: bool
    names: list[str] | None  # where a comment holds them
    crossed: bool = False  # the names but the first are coordinates


def _head(path: Path) -> _Head:
    """How a table is written, told by its first lines. Names may stand in the last comment."""
    comments, lines = [], []
    with _text_of(path) as stream:
        for line in stream:
            if line.lstrip().startswith(_COMMENTS):
                if not lines:
                    comments.append(line.strip())
            elif line.strip():
                lines.append(line[:100_000].strip("\r\n"))
            if len(lines) == 2:
                break
    first, second = [*lines, "", ""][:2]
    separator, decimal = _separator(first, second)
    comment = comments[0][0] if comments else "#"
    cells = _cells(first, separator)
    if are_coordinates(cells, decimal):
        return _Head(separator, decimal, comment, named=bool(cells[0]), names=None, crossed=True)
    named = [_cells_of_comment(line, separator, len(cells)) or [] for line in comments[-2:]]
    # Below the names of a buoy's columns are their units; numbers that miss are words.
    dated = next((one for one in named if is_dated(one)), None)
    if dated is not None and cells and is_number(cells[0], decimal):
        return _Head(separator, decimal, comment, True, dated)
    if not cells or not all(is_number(cell, decimal) for cell in cells):
        return _Head(separator, decimal, comment, True, None)
    told = (named[-1] or None) if named else None
    return _Head(separator, decimal, comment, told is not None, told)


def comments_of(path: Path) -> list[str]:
    """The lines above a table of text that begin as comments do."""
    found = []
    if path.suffix.lower() not in BINARY:
        with _text_of(path) as stream:
            for line in stream:
                if not line.lstrip().startswith(_COMMENTS):
                    break
                found.append(line.strip())
    return found


def _is_logger(path: Path) -> bool:
    """Whether a table is of Campbell's loggers, with four lines above the numbers."""
    with _text_of(path) as stream:
        return stream.readline(20).lstrip('"').startswith(("TOA5", "TOACI1"))


def _text_of(path: Path) -> TextIOWrapper:
    """The text of a file, unpacked where it is compressed."""
    if path.suffix.lower() == GZIP:
        return gzip.open(path, "rt", encoding="utf-8-sig", errors="replace")
    return path.open(encoding="utf-8-sig", errors="replace")


def _separator(head: str, row: str) -> tuple[str, str]:
    """What stands between columns, and in numbers before decimals."""
    for separator in (";", "\t", ","):
        if separator in head:
            return separator, "," if separator != "," and "," in row and "." not in row else "."
    return r"\s+", "."


def _cells(line: str, separator: str) -> list[str]:
    if separator == r"\s+":
        return line.split()
    return [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]


def _cells_of_comment(line: str, separator: str, count: int) -> list[str] | None:
    """The names in a comment such as `% x  y  T (K) @ t=0`, as many as there are columns."""
    text = line.lstrip("#% ").strip()
    splits = [_cells(text, separator)]
    if separator == r"\s+":
        splits = [re.split(r"\s{2,}|\t", text), _SPACED_NAME.findall(text), splits[0]]
    return next((names for names in splits if len(names) == count), None)


def _over_time(table: Any) -> Any:
    """COMSOL's columns `T (K) @ t=0.1`, one for each time, as rows with a column `t`."""
    import pandas as pd

    found = {column: _AT_TIME.match(str(column)) for column in table.columns}
    places = [column for column, match in found.items() if match is None]
    by_time: dict[float, dict[Any, str]] = {}
    for column, match in found.items():
        if match is not None:
            at = by_time.setdefault(float(match["t"]), {})
            at[column] = without_unit(match["field"])
    if not by_time or not {without_unit(str(c)).lower() for c in places} <= {"x", "y", "z"}:
        return table
    parts = [
        table[[*places, *names]].rename(columns=names).assign(t=t) for t, names in by_time.items()
    ]
    return pd.concat(parts, ignore_index=True)


def without_unit(name: str) -> str:
    """`T (K)` is T, `Time [s]` is Time."""
    return _UNIT.sub("", name).strip() or name.strip()


def place_and_time(columns: Iterable[Any], source: str) -> dict[str, Any]:
    """The columns of `trajectory`, `t`, `x`, `y` and `z` that there are; degrees are said to be."""
    found = called_as(columns)
    plainly = {c: _UNIT_BEHIND.sub("", without_unit(str(c)).lower()) for c in found.values()}
    degrees = [c for c, name in plainly.items() if name in _DEGREES]
    if degrees:
        warnings.warn(
            f"{source}: {' and '.join(map(str, degrees))} are read as x and y, in degrees as "
            "lengths on a plane: far from the poles and in small parts only",
            stacklevel=4,
        )
    return found


def called_as(columns: Iterable[Any]) -> dict[str, Any]:
    """The columns of `trajectory`, `t`, `x`, `y` and `z` that there are."""
    columns = list(columns)
    plain: dict[str, Any] = {}
    for column in columns:
        plain.setdefault(without_unit(str(column)).lower(), column)
    bare: dict[str, Any] = {}
    for name, column in plain.items():
        bare.setdefault(_UNIT_BEHIND.sub("", name), column)
    found: dict[str, Any] = {}
    for key, called in _CALLED.items():
        exact = next((c for c in columns if without_unit(str(c)) == key), None)
        alike = next((plain[name] for name in called if name in plain), None)
        if alike is None:
            alike = next((bare[name] for name in called if name in bare), None)
        if exact is not None or alike is not None:
            found[key] = alike if exact is None else exact
    return found


def fields_of(table: Any, taken: Mapping[str, Any]) -> dict[str, Any]:
    """The other columns by name: without units, a vector's `v:0`, `v:1` as v_x, v_y."""
    free = [c for c in table.columns if c not in taken.values()]
    names = {c: re.sub(r":([012])$", lambda m: "_" + "xyz"[int(m[1])], str(c)) for c in free}
    short = [without_unit(name) for name in names.values()]
    return {
        (one if short.count(one) == 1 else name.strip()): column
        for (column, name), one in zip(names.items(), short, strict=True)
    }

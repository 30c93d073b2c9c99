"""Observations from CSV, Parquet, NetCDF, pandas, xarray; long or with a column per field."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..data.clocks import moments
from ..data.table_file import place_and_time
from ..domain import AXES
from ..errors import SplatopError, unknown_name
from .missing_codes import without_codes, without_words
from .observations import Observations
from .station_tables import with_places, with_told_places
from .table_sources import FORM, SENSORS, VALUE, table_of

# What columns may be called, beside those of time and place and a field's own name.
_NAMES = {
    "field": ("field", "variable", "parameter"),
    "value": (VALUE,),
    "sigma": ("sigma", "std", "noise"),
    "sensor": SENSORS,
    "wx": ("wx",),
    "wy": ("wy",),
    "wz": ("wz",),
    "x2": ("x2",),
    "y2": ("y2",),
    "z2": ("z2",),
}
_KEYS = ("t", *AXES, *_NAMES)
# What public tables call a column, for the proposal when it is not found.
_LIKE = {
    "t": ("seconds", "hours", "days", "timeutc", "datetimeutc", "utc", "valid"),
    "x": ("long", "pos_x", "position", "coordx", "distance"),
    "y": ("pos_y", "coordy"),
    "z": ("depth", "height", "altitude", "elevation", "level", "pos_z", "coordz"),
}
# Seconds in a unit that moments may be counted in.
UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "day": 86400.0, "year": 365.25 * 86400.0}


def read_observations(
    source: Any,
    *,
    fields: Iterable[str] | None = None,
    columns: Mapping[str, str] | None = None,
    time_unit: str = "s",
    places: Any = None,
    since: str | None = None,
) -> Observations:
    """From a file, a folder of files of one sensor each, a pandas table, or an xarray data set or
    array.

    `columns` says what a column is called in the table, `{"x": "lon", "u": "temperature"}`;
    moments (not numbers) are counted from `since`, or the first, on in `time_unit`. `places` are
    those of the stations, where the table has only their names: another table, or
    `{"A": (0.1, 0.2)}`.

    Columns `wx`, `wy`, `wz` are the sides of the box that a report is the mean over, `x2`, `y2`,
    `z2` the end of a line that begins at the place. In tables with a column for each field, and in
    xarray, NaN is a report that is missing; `u_sigma` is then the noise of the field u.
    """
    if time_unit not in UNITS:
        raise unknown_name("unit of time", time_unit, UNITS)
    if isinstance(source, Observations):
        if columns or places is not None:
            what = "rename columns of" if columns else "add places to"
            raise SplatopError(f"expected a table to {what}, got Observations")
        return source
    wanted = tuple(fields or [key for key in columns or {} if key not in _KEYS]) or None
    table, name = table_of(source, [(columns or {}).get(f, f) for f in wanted or ()])
    table = without_words(_renamed(table, columns or {}, name), name)
    file = source if isinstance(source, str | Path) and Path(source).is_file() else None
    if places is not None:
        table = with_places(table, places, name, file)
    else:
        table = with_told_places(table, file, name)
    own = [column for column in table.columns if not (wanted and column in wanted)]
    known = {str(column).strip().lower(): column for column in own}
    found = {
        **{k: c for k, c in place_and_time(own, name).items() if k != "trajectory"},
        **{
            key: known[alias]
            for key, aliases in _NAMES.items()
            for alias in aliases
            if alias in known
            and (key in ("field", "sensor") or _holds_numbers(table[known[alias]]))
        },
    }
    axes = [axis for axis in AXES if axis in found]
    for column, why in (("t", "the time of each report"), ("x", "the place of each report")):
        if column not in found:
            raise SplatopError(
                f"expected a column {column}, {why}, in {name}, got "
                f"{', '.join(map(str, table.columns))}: {_proposal(table, found, wanted or ())}"
            )
    if axes != list(AXES[: len(axes)]):
        raise SplatopError(f"expected columns x, then y, then z in {name}, got {', '.join(axes)}")
    if len(table) == 0:
        raise SplatopError(f"expected reports in {name}, got a table without rows")
    times, since = _times(table[found["t"]], name, UNITS[time_unit], since)
    shared = {
        "times": times,
        "places": np.stack([_numbers(table[found[axis]], name) for axis in axes], axis=1),
        "sensors": table[found["sensor"]].to_numpy().astype(str) if "sensor" in found else None,
    }
    shared["spans"] = _spans(table, found, axes, shared["places"], name)
    if "wx" not in found and shared["spans"] is not None and "x2" in found:
        shared["places"] = shared["places"] + 0.5 * shared["spans"][:, 0]
    read = _long if "value" in found else _wide
    return replace(read(table, found, shared, wanted, name), since=since)


def read_places(source: Any) -> np.ndarray:
    """The distinct places `(n, d)` of a table, whatever else is in it."""
    table, name = table_of(source)
    columns = place_and_time(table.columns, name)
    axes = [columns[axis] for axis in AXES if axis in columns]
    if not axes:
        listed = ", ".join(map(str, table.columns))
        raise SplatopError(f"expected columns x[, y, z] in {name}, got {listed}")
    return np.unique(np.stack([_numbers(table[a], name) for a in axes], axis=1), axis=0)


def _renamed(table: Any, columns: Mapping[str, str], name: str) -> Any:
    """The table with columns called as we call them; what had such a name before is left out."""
    for here, there in columns.items():
        if there not in table.columns:
            raise unknown_name(f"column for {here} in {name}", there, map(str, table.columns))
    taken = [c for c in table.columns if str(c) in columns and str(c) not in columns.values()]
    return table.drop(columns=taken).rename(columns={v: k for k, v in columns.items()})


def _proposal(table: Any, found: dict, wanted: Iterable[str] = ()) -> str:
    """Which columns to rename, where names tell it."""
    free = {str(c).strip().lower(): str(c) for c in table.columns if c not in found.values()}
    plain = {re.split(r"[ (\[]|_(?:mm|cm|km|m|s|h)$", own)[0]: free[own] for own in free}
    likely = {key: names for key, names in _LIKE.items() if key not in found}
    if "x" not in likely:
        likely.pop("z", None)  # the height of a station
    if "x" in likely and "z" in likely:  # a profile: depth is the only place
        likely["x"] = (*likely["x"], *likely.pop("z"))
    pairs = {
        key: next(plain[own] for own in plain if own in names)
        for key, names in likely.items()
        if any(own in names for own in plain)
    }
    rest = [c for c in table.columns if str(c) in free.values() and str(c) not in pairs.values()]
    rest = [str(c) for c in rest if table[c].dtype.kind in "fiu"]  # names of sensors are no field
    pairs |= dict(zip(wanted, rest, strict=False)) if len(rest) == len(tuple(wanted)) else {}
    words = ",".join(f"{key}={own}" for key, own in pairs.items())
    if not words and "t" in found and "x" not in found:
        return (
            "give --places FILE, a table of where stations are (places= in Python): a name, x[, y, "
            "z]; the names are those of columns, in a column, or of the file"
        )
    if not words and wanted and {"t", "x"} <= {*found} and rest:
        return f'give --columns "{next(iter(wanted))}=NAME", one of {", ".join(rest)}'
    if not words:
        return f"{FORM}; --columns x=NAME says what a column is called"
    return f'rename them, or give --columns "{words}"'


def _long(table: Any, found: dict, shared: dict, wanted: Any, name: str) -> Observations:
    values = _numbers(table[found["value"]], name)
    bad = ~np.isfinite(values)
    if bad.any():
        raise SplatopError(
            f"expected finite values in {name}, got {int(bad.sum())} that are NaN, infinite or "
            f"empty, the first in row {int(np.argmax(bad)) + 1}: leave those rows out"
        )
    if "field" in found:
        names = table[found["field"]].to_numpy().astype(str)
    elif wanted and len(wanted) > 1:
        raise SplatopError(
            f"expected a column field in {name}, which of {', '.join(wanted)} a value is of, got "
            "none"
        )
    else:
        names = np.full(len(values), wanted[0] if wanted else "u")
    sigma = _numbers(table[found["sigma"]], name) if "sigma" in found else None
    values = values.copy()
    for one in np.unique(names):
        values[names == one] = without_codes(values[names == one], str(one), name)
    kept = np.isfinite(values)
    shared = {k: None if v is None else v[kept] for k, v in shared.items()}
    sigma = None if sigma is None else sigma[kept]
    return Observations(**shared, fields=names[kept], values=values[kept], sigma=sigma)


def _wide(table: Any, found: dict, shared: dict, wanted: Any, name: str) -> Observations:
    taken = set(found.values())
    free = [
        column
        for column in table.columns
        if column not in taken and not str(column).endswith("_sigma")
    ]
    if not wanted:  # names of stations and the like are no fields
        free = [column for column in free if table[column].dtype.kind in "fiub"] or free
    chosen = [c for c in free if str(c) in wanted] if wanted else free
    if not chosen:
        raise SplatopError(
            f"expected a column value, or columns named as fields"
            f"{' (' + ', '.join(wanted) + ')' if wanted else ''}, in {name}, got "
            f"{', '.join(map(str, table.columns))}: {_proposal(table, found, wanted or ())}"
        )
    parts = []
    for column in chosen:
        values = without_codes(_numbers(table[column], name), str(column), name)
        kept = np.isfinite(values)
        noise = f"{column}_sigma"
        sigma = (
            _numbers(table[noise], name)
            if noise in table.columns
            else _numbers(table[found["sigma"]], name)
            if "sigma" in found
            else None
        )
        parts.append(
            Observations(
                **{k: None if v is None else v[kept] for k, v in shared.items()},
                fields=np.full(int(kept.sum()), str(column)),
                values=values[kept],
                sigma=None if sigma is None else sigma[kept],
            )
        )
    whole = Observations.joined(parts)
    if len(whole) == 0:
        raise SplatopError(f"expected reports in {name}, got only missing ones")
    return whole


def _holds_numbers(column: Any) -> bool:
    """Whether there is any: `wx` of a station may be its weather in words."""
    import pandas as pd

    numbers: Any = pd.to_numeric(column, errors="coerce")
    return bool(numbers.notna().any())


def _numbers(column: Any, name: str) -> np.ndarray:
    try:
        return column.to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError):
        import pandas as pd

        numbers: Any = pd.to_numeric(column, errors="coerce")
        bad = column[numbers.isna() & column.notna()]
        raise SplatopError(
            f"expected numbers in column {column.name} of {name}, got "
            f"'{bad.iloc[0] if len(bad) else column.dtype}'"
        ) from None


def _times(column: Any, name: str, unit: float, since: str | None) -> tuple[np.ndarray, str | None]:
    """Numbers as they are; moments in units of so many seconds after one, and which that is."""
    import pandas as pd

    kind = np.dtype(column.dtype).kind if isinstance(column.dtype, np.dtype) else "O"
    if kind in "fiu":
        return _numbers(column, name), None
    if kind not in "mM" and not hasattr(column.dtype, "tz"):
        try:
            return _numbers(column, name), None
        except SplatopError:
            column = moments(column, column.name, name)
    if kind == "m":  # already counted from somewhere
        return column.dt.total_seconds().to_numpy(dtype=float) / unit, None
    column = pd.to_datetime(column, utc=True)
    first = column.min() if since is None else pd.Timestamp(since)
    return (column - first).dt.total_seconds().to_numpy(dtype=float) / unit, first.isoformat()


def _spans(
    table: Any, found: dict, axes: list[str], places: np.ndarray, name: str
) -> np.ndarray | None:
    """The vectors of each report's footprint, `(n, k, d)`."""
    wide = [axis for axis in axes if f"w{axis}" in found]
    ends = [axis for axis in axes if f"{axis}2" in found]
    if not wide and not ends:
        return None
    if ends and (wide or ends != axes):
        raise SplatopError(
            f"expected the sides of a box (wx, wy) or the end of a line (x2, y2) in {name}, got "
            "columns of both, or of some axes only"
        )
    if ends:
        end = np.stack([_numbers(table[found[f"{axis}2"]], name) for axis in axes], axis=1)
        return (end - places)[:, None]
    spans = np.zeros((len(places), len(wide), len(axes)))
    for number, axis in enumerate(wide):
        spans[:, number, axes.index(axis)] = _numbers(table[found[f"w{axis}"]], name)
    return spans

"""Dates and clocks in tables: what a text says, and moments whose parts have a column each."""

import re
import warnings
from typing import Any

from ..errors import SplatopError

# What columns of the parts of a moment are called; as NDBC has it, a month is MM and a minute mm.
_PARTS = {
    "year": ("YY", "YYYY", "yr", "year"),
    "month": ("MM", "mo", "month"),
    "day": ("DD", "dy", "day"),
    "hour": ("hh", "HH", "hr", "hour"),
    "minute": ("mm", "mn", "min", "minute"),
    "second": ("ss", "SS", "sec", "second"),
}
_CLOCK = re.compile(r"^\d{1,2}:\d\d(:\d\d(\.\d+)?)?( ?[AaPp][Mm])?$")


def is_dated(names: list[str]) -> bool:
    """Whether these are names of columns that begin with the parts of a date."""
    return len(_parts(names)) >= 3


def with_moments(table: Any, source: str) -> Any:
    """With one column `time` where a table has one for each part of it: year, month, day and so on,
    or a date and a time of the day."""
    import pandas as pd

    parts = _parts([str(column) for column in table.columns])
    if len(parts) >= 3:
        numbers: dict[str, Any] = {
            key: pd.to_numeric(table[c], errors="coerce") for key, c in parts.items()
        }
        year = numbers["year"]
        numbers["year"] = year.where(year >= 100, year + 1900 + 100 * (year < 70))
        made = pd.to_datetime(pd.DataFrame(numbers), errors="coerce")
        if made.isna().any():
            wrong = ", ".join(str(table[c][made.isna()].iloc[0]) for c in parts.values())
            raise SplatopError(
                f"{source}: expected dates in columns {', '.join(parts.values())}, got {wrong}"
            )
        return table.drop(columns=list(parts.values())).assign(time=made)
    called = {str(column).strip().lower(): column for column in table.columns}
    clock = next((called[name] for name in ("time", "hour", "clock") if name in called), None)
    if "date" not in called or clock is None or not len(table):
        return table
    held = table[clock].astype(str).str.strip()
    if not held.str.match(_CLOCK).all():
        return table
    joined = table[called["date"]].astype(str).str.strip() + " " + held
    return table.drop(columns=[called["date"], clock]).assign(time=joined)


def _parts(names: list[str]) -> dict[str, str]:
    """The columns of year, month, day and so on, without gaps, if there are any."""
    found: dict[str, str] = {}
    for part, called in _PARTS.items():
        own = next((n for n in names if n.strip("# ") in called), None)
        own = own or next((n for n in names if n.strip("# ").lower() in called), None)
        if own is None or own in found.values():
            break
        found[part] = own
    return found


def moments(values: Any, column: Any, source: str) -> Any:
    """A column of dates as times of pandas; those that can be read in two ways are refused."""
    import pandas as pd

    found = pd.to_datetime(values, errors="coerce", format="ISO8601", utc=True)
    if not found.isna().any():
        return found
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        month, day = (
            pd.to_datetime(values, errors="coerce", format="mixed", utc=True, dayfirst=first)
            for first in (False, True)
        )
    if month.isna().any() or day.isna().any():
        raise SplatopError(f"{source}: expected numbers in column '{column}', got text")
    if (month != day).any():
        raise SplatopError(
            f"{source}: expected dates that can be read in one way only in column '{column}', got "
            f"'{values[(month != day)].iloc[0]}': write them as 2021-12-31"
        )
    return month

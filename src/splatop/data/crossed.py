"""Tables that are arrays: u(t, x) between a row and a column of coordinates, as spreadsheets hold
it, or with a row and a column that only count, as pandas writes it."""

import warnings
from typing import Any

import numpy as np

from ..errors import SplatopError

_FEWEST = 4  # columns of a table whose first row is coordinates


def uncrossed(table: Any, down: str | None, decimal: str, source: str) -> Any:
    """Values between a row and a column of coordinates, as a spreadsheet holds u(t, x), as one row
    for each of them. `down` is what the first column holds, "t" or "x"."""
    lead, *across = table.columns
    if down is None:
        raise SplatopError(
            f"{source}: expected to be told which way it goes, got coordinates in its first row "
            f"({across[0]} to {across[-1]}) and its first column: give --axes tx if each row is a "
            "time, --axes xt if each column is, or name the first column t or x"
        )
    over = "x" if down == "t" else "t"
    long = table.rename(columns={lead: down}).melt(down, var_name=over, value_name="u")
    return long.assign(**{over: long[over].str.replace(decimal, ".").astype(float)})


def are_coordinates(cells: list[str], decimal: str) -> bool:
    """Whether all cells but the first, which is none or a name, are numbers that rise or fall."""
    if len(cells) < _FEWEST or (cells[0] and is_number(cells[0], decimal)):
        return False
    if not all(cell and is_number(cell, decimal) for cell in cells[1:]):
        return False
    values = np.array([float(cell.replace(decimal, ".")) for cell in cells[1:]])
    steps = np.diff(values)
    return bool(((steps > 0).all() or (steps < 0).all()) and not _counts(values))


def _counts(values: np.ndarray) -> bool:
    """Whether values number columns or rows, from 0 or 1 on."""
    counted = len(values) >= _FEWEST and values[0] in (0, 1)
    return bool(counted and (values == values[0] + np.arange(len(values))).all())


def without_counters(array: np.ndarray, source: str) -> np.ndarray:
    """Without a first row that numbers the columns, and a first column beside it that numbers the
    rows, as pandas writes them."""
    cornered = bool(np.isnan(array[0, 0])) and len(array) > 1
    if not _counts(array[0, 1:] if cornered else array[0]):
        return array
    what = "row and column" if cornered else "row"
    warnings.warn(f"{source}: its first {what} only count, and are left out", stacklevel=4)
    return array[1:, 1:] if cornered else array[1:]


def is_number(text: str, decimal: str) -> bool:
    try:
        float(text.replace(decimal, ".") or "nan")
    except ValueError:
        return False
    return True

"""Tables: CSV, text or Parquet with columns `t, x[, y, z]`, one for each field, and `trajectory`
where there are several. Rows that fill an even grid are one; others are at scattered points."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import SplatopError
from .arrays import AxesTrajectories
from .atomic import complete_or_absent
from .axes import SPATIAL, choose_fields
from .clocks import moments
from .foreign import JOIN
from .in_memory import ArrayTrajectories
from .places import at_places
from .table_file import (
    BINARY,
    COUNTERS,
    columns_as_rows,
    fields_of,
    place_and_time,
    read_numbers,
    read_table,
)
from .trajectories import Trajectories

# Columns of a table without places, from which on they may be sensors.
_COLUMNS = 3


def open_table(
    path: Path,
    *,
    fields: Sequence[str] | None,
    dt: float | None,
    lengths: float | Sequence[float] | None = None,
    origin: float | Sequence[float] | None = None,
    rows: str | None = None,
) -> ArrayTrajectories:
    """A table whose rows are the values at one point and time, in any order, or one of u(t, x)
    between coordinates, of which `rows` are those of each row, "t" or "x"."""
    table, source = read_table(path, rows), path.name
    keys, names = _columns(table, fields, source)
    columns = {
        what: _numbers(table[column], column, source, is_time=what == "t")
        for what, column in names.items()
    }
    space = [axis for axis in SPATIAL if axis in keys]
    if len(space) == 3 and len(np.unique(columns["z"])) == 1:
        space = ["x", "y"]  # a plane
    chosen = tuple(what for what in columns if what not in keys)
    columns = _once(columns, source)
    count = len(columns["t"])
    runs, run = np.unique(columns.get("trajectory", np.zeros(count)), return_inverse=True)
    times, frame = np.unique(columns["t"], return_inverse=True)
    places = np.stack([columns[axis] for axis in space], axis=1)
    points, first, place = np.unique(places, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")  # as the file lists them
    points, place = points[order], np.argsort(order)[place.ravel()]
    tells = None if "trajectory" in keys else _teller(columns, chosen, frame, place)
    _check_rows(run, frame, place, runs, times, points, source, tells)
    array = np.empty((len(runs), len(times), len(chosen), len(points)), np.float32)
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is told so
        for channel, name in enumerate(chosen):
            array[run, frame, channel, place] = columns[name]
    kind = "parquet" if path.suffix.lower() in BINARY else "csv"
    found = at_places(
        array,
        points,
        times,
        fields=chosen,
        dt=dt,
        lengths=lengths,
        origin=origin,
        source=source,
        kind=kind,
    )
    if table[keys["t"]].dtype.kind not in "fiub":
        found.attributes["clock"] = f"seconds from {table[keys['t']].min()} on"
    return found


def open_matrix(path: Path, *, axes: str, **asked: Any) -> AxesTrajectories:
    """A table without names as the array that it is, its rows and columns named by `axes`."""
    about = {"source": path.name, "format": "text"}
    return AxesTrajectories([read_numbers(path)], axes, attributes=about, **asked)


def _once(columns: Mapping[str, np.ndarray], source: str) -> dict[str, np.ndarray]:
    """The columns without rows that are there twice, word for word."""
    rows = np.stack(list(columns.values()), axis=1)
    kept = np.sort(np.unique(rows, axis=0, return_index=True)[1])
    if len(kept) < len(rows):
        warnings.warn(
            f"{source}: {len(rows) - len(kept)} rows repeat another and are left out", stacklevel=3
        )
    return {what: values[kept] for what, values in columns.items()}


def _columns(
    table: Any, fields: Sequence[str] | None, source: str
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The columns of time and place by what they are, and these with those of the fields."""
    keys = place_and_time(table.columns, source)
    missing = [key for key in ("t", "x") if key not in keys]
    if missing:
        cure = "rename columns in the first line (time t, place x and y)"
        if "t" in missing and "x" in keys:
            cure += f"; {JOIN}"
        if str(table.columns[0]).upper() in ("TITLE", "VARIABLES", "ZONE"):
            cure = "it is Tecplot's text: keep its rows, below the names of VARIABLES, and the time"
        if missing == ["x"] and len(table.columns) > _COLUMNS:
            cure += f"; {columns_as_rows(keys['t'])}"
        raise SplatopError(
            f"{source}: expected columns t, x[, y, z], one for each field, and trajectory if there "
            f"are several, got {', '.join(map(str, table.columns[:12]))}: no "
            f"{', '.join(missing)}; {cure}"
        )
    if "z" in keys and "y" not in keys:
        raise SplatopError(f"{source}: expected columns x, y and z, got x and z: call z y")
    by_field = fields_of(table, keys)
    if fields is None:  # whatever else a table holds, such as names of stations, is no field
        numeric = {
            name: column
            for name, column in by_field.items()
            if table[column].dtype.kind in "fiub" and name.lower() not in COUNTERS
        }
        by_field = numeric or by_field
    else:  # a column may be asked for with its unit
        by_field |= {str(column).strip(): column for column in by_field.values()}
    if not by_field:
        raise SplatopError(f"{source}: expected a column for each field beside t, x and y")
    chosen = choose_fields(fields, by_field)
    return keys, {**keys, **{name: by_field[name] for name in chosen}}


def _numbers(values: Any, column: Any, source: str, *, is_time: bool = False) -> np.ndarray:
    """A column as numbers; moments of a time are counted in seconds from the first on."""
    if values.dtype.kind not in "fiubM":
        if not is_time:
            raise SplatopError(f"{source}: expected numbers in column '{column}', got text")
        values = moments(values, column, source)
    if values.dtype.kind == "M" or hasattr(values.dtype, "tz"):
        return (values - values.min()).dt.total_seconds().to_numpy(float)
    found = values.to_numpy(float)
    bad = ~np.isfinite(found)
    if bad.any():
        raise SplatopError(
            f"{source}: expected finite numbers in column '{column}', got {int(bad.sum())} that "
            f"are not, the first in row {int(np.argmax(bad)) + 2}: {_GAPS}"
        )
    return found


_GAPS = (
    "fill them in, leave out those points at all times, or read the table with its gaps as "
    "measurements (splatop reconstruct, splatop assimilate)"
)


def _teller(
    columns: Mapping[str, np.ndarray],
    names: Sequence[str],
    frame: np.ndarray,
    place: np.ndarray,
) -> str | None:
    """A column of whole numbers that has another one for each row of a time and place."""
    for name in names:
        values = columns[name]
        if (values == np.round(values)).all() and len(np.unique(values)) > 1:
            rows = np.stack([values, frame, place])
            if np.unique(rows, axis=1).shape[1] == len(values):
                return name
    return None


def _check_rows(
    run: np.ndarray,
    frame: np.ndarray,
    place: np.ndarray,
    runs: np.ndarray,
    times: np.ndarray,
    points: np.ndarray,
    source: str,
    tells: str | None,
) -> None:
    """One row for each trajectory, time and place; `tells` is a column that would tell several
    trajectories apart."""
    shape = (len(runs), len(times), len(points))
    number = np.ravel_multi_index((run, frame, place), shape)
    every, count = np.unique(number, return_counts=True)
    if len(every) == np.prod(shape) and (count == 1).all():
        return
    several = bool((count > 1).any())
    if several:
        at = int(every[np.argmax(count > 1)])
        what = f"{int(count.max())} with different values"
    else:
        gap = np.flatnonzero(every != np.arange(len(every)))
        at = int(gap[0]) if len(gap) else len(every)
        what = "none"
    b, t, p = np.unravel_index(at, shape)
    where = ", ".join(f"{k} = {v:g}" for k, v in zip(SPATIAL, points[p], strict=False))
    which = f", trajectory {runs[b]:g}" if len(runs) > 1 else ""
    missing = int(np.prod(shape)) - len(every)
    apart = f"the column {tells} tells them apart, call it trajectory" if tells else ""
    cure = (apart or "keep one of them") if several else f"{_GAPS}; points must stay where they are"
    raise SplatopError(
        f"{source}: expected one row for each of the {len(points)} points at each of the "
        f"{len(times)} times{' of each trajectory' if which else ''}, got {what} at "
        f"t = {times[t]:g}, {where}{which}"
        + (f" ({missing} of {int(np.prod(shape))} rows are missing)" if missing else "")
        + f": {cure}"
    )


def save_table(path: str | Path, data: Trajectories) -> None:
    """Write trajectories at points as a table, complete or not at all."""
    import pandas as pd

    path = Path(path)
    x, y = data.grid.coordinates()
    times = data.dt * np.arange(data.frames) if data.times is None else data.times
    parts = []
    for b in range(data.trajectories):
        frames = data.window(b, 0, data.frames)  # (T, C, P)
        shape = (data.frames, frames.shape[2])
        columns = {
            "trajectory": np.full(shape, b),
            "t": np.broadcast_to(times[:, None], shape),
            "x": np.broadcast_to(x, shape),
            "y": np.broadcast_to(y, shape),
        }
        columns |= {name: frames[:, c] for c, name in enumerate(data.fields)}
        parts.append(pd.DataFrame({k: np.ravel(v) for k, v in columns.items()}))
    table = pd.concat(parts, ignore_index=True)
    with complete_or_absent(path) as partial:
        if path.suffix.lower() == ".csv":
            table.to_csv(partial, index=False)
        else:
            table.to_parquet(partial, index=False)

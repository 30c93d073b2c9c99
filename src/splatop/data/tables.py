"""Tables: CSV, text or Parquet with columns `t, x[, y, z]`, one for each field, and `trajectory`
where there are several. Rows that fill an even grid are one; others are at scattered points."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import SplatopError, check_memory
from ..grid import Grid
from .atomic import complete_or_absent
from .axes import SPATIAL, as_lengths, as_origin, choose_fields, uneven_gaps
from .hdf5 import error_line
from .scattered import at_points
from .times import frame_times
from .trajectories import ArrayTrajectories, Trajectories

TABLES = (".csv", ".tsv", ".txt", ".dat", ".parquet", ".pq")
_BINARY = (".parquet", ".pq")
_KEYS = ("trajectory", "t", *SPATIAL)
# What others call a place or a time, for the proposal when ours is not found.
_LIKE = {
    "t": ("datetime", "timestamp", "date", "valid_time", "seconds", "hours", "days"),
    "x": ("lon", "longitude", "points:0", "x-coordinate"),
    "y": ("lat", "latitude", "points:1", "y-coordinate"),
}
_FEWEST = 3  # points along an axis of what is taken for a grid


def open_table(
    path: Path,
    *,
    fields: Sequence[str] | None,
    dt: float | None,
    lengths: float | Sequence[float] | None = None,
    origin: float | Sequence[float] | None = None,
) -> ArrayTrajectories:
    """A table whose rows are the values at one point and time, in any order."""
    table, source = _read(path), path.name
    keys, names = _columns(table, fields, source)
    columns = {what: _numbers(table[column], column, source) for what, column in names.items()}
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
    _check_rows(run, frame, place, runs, times, points, source)
    array = np.empty((len(runs), len(times), len(chosen), len(points)), np.float32)
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is told so
        for channel, name in enumerate(chosen):
            array[run, frame, channel, place] = columns[name]
    kind = "parquet" if path.suffix.lower() in _BINARY else "csv"
    found = _at_places(
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


def _once(columns: Mapping[str, np.ndarray], source: str) -> dict[str, np.ndarray]:
    """The columns without rows that are there twice, word for word."""
    rows = np.stack(list(columns.values()), axis=1)
    kept = np.sort(np.unique(rows, axis=0, return_index=True)[1])
    if len(kept) < len(rows):
        warnings.warn(
            f"{source}: {len(rows) - len(kept)} rows repeat another and are left out", stacklevel=3
        )
    return {what: values[kept] for what, values in columns.items()}


def _at_places(
    array: np.ndarray,
    points: np.ndarray,
    times: np.ndarray,
    *,
    fields: Sequence[str],
    dt: float | None,
    lengths: float | Sequence[float] | None,
    origin: float | Sequence[float] | None,
    source: str,
    kind: str,
) -> ArrayTrajectories:
    """Values `(B, T, C, P)` on the even grid that their places fill, or at points in 2D."""
    on_grid = _grid_of(points)
    if on_grid is None:
        if points.shape[1] != 2:
            raise SplatopError(
                f"{source}: expected rows at the points of an even grid in {points.shape[1]}D, got "
                f"{len(points)} places that fill none: scattered points are for 2D, interpolate "
                "to even ones first"
            )
        return at_points(array, points, dt=dt, fields=fields, source=source, kind=kind, times=times)
    axes, where = on_grid
    sides = tuple(len(along) for along in axes)
    given = as_lengths(lengths, len(axes))
    box = tuple(len(a) * float(a[-1] - a[0]) / (len(a) - 1) for a in axes)
    begins = as_origin(origin, len(axes)) or tuple(float(along[0]) for along in axes)
    stamps = None
    if dt is None:
        dt, stamps = frame_times(times, source=source, name="t")
    found = ArrayTrajectories(
        array[..., where].reshape(*array.shape[:3], *sides),
        Grid(sides, given or box, begins),
        dt=dt,
        fields=tuple(fields),
        attributes={"source": source, "format": kind},
        times=stamps,
    )
    found.coordinates = dict(zip(SPATIAL, axes, strict=False))
    return found


def _columns(
    table: Any, fields: Sequence[str] | None, source: str
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The columns of time and place by what they are, and these with those of the fields."""
    names = {str(c).strip().lower(): c for c in table.columns}
    if "t" not in names and "time" in names:
        names["t"] = names["time"]
    missing = [key for key in ("t", "x") if key not in names]
    if missing:
        like = [f"{n} {key}" for key in ("t", "x", "y") for n in names if n in _LIKE[key]]
        numbered = _is_number(str(table.columns[0]))
        cure = (
            "name the columns in the first line, such as t,x,y,u"
            if numbered
            else (
                f"rename columns in the first line ({', '.join(like) or 'time t, place x and y'})"
            )
        )
        raise SplatopError(
            f"{source}: expected columns t, x[, y, z], one for each field, and trajectory if there "
            f"are several, got {', '.join(map(str, table.columns[:12]))}: no "
            f"{', '.join(missing)}; {cure}"
        )
    if "z" in names and "y" not in names:
        raise SplatopError(f"{source}: expected columns x, y and z, got x and z: call z y")
    keys = {key: names[key] for key in _KEYS if key in names}
    by_field = {str(c).strip(): c for c in table.columns if c not in keys.values()}
    if fields is None:  # whatever else a table holds, such as names of stations, is no field
        numeric = {n: c for n, c in by_field.items() if table[c].dtype.kind in "fiub"}
        by_field = numeric or by_field
    if not by_field:
        raise SplatopError(f"{source}: expected a column for each field beside t, x and y")
    chosen = choose_fields(fields, by_field)
    return keys, {**keys, **{name: by_field[name] for name in chosen}}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(values: Any, column: Any, source: str) -> np.ndarray:
    """A column as numbers; moments are counted in seconds from the first on."""
    if values.dtype.kind not in "fiubM":
        import pandas as pd

        moments = None
        if str(column).strip().lower() in ("t", "time"):
            moments = pd.to_datetime(values, errors="coerce", format="ISO8601", utc=True)
        if moments is None or moments.isna().any():
            raise SplatopError(f"{source}: expected numbers in column '{column}', got text")
        values = moments
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


def _check_rows(
    run: np.ndarray,
    frame: np.ndarray,
    place: np.ndarray,
    runs: np.ndarray,
    times: np.ndarray,
    points: np.ndarray,
    source: str,
) -> None:
    """One row for each trajectory, time and place."""
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
    cure = "keep one of them" if several else f"{_GAPS}; points must stay where they are"
    raise SplatopError(
        f"{source}: expected one row for each of the {len(points)} points at each of the "
        f"{len(times)} times{' of each trajectory' if which else ''}, got {what} at "
        f"t = {times[t]:g}, {where}{which}"
        + (f" ({missing} of {int(np.prod(shape))} rows are missing)" if missing else "")
        + f": {cure}"
    )


def _grid_of(points: np.ndarray) -> tuple[list[np.ndarray], np.ndarray] | None:
    """The even axes that points `(P, d)` fill and the point at each place of them, or None."""
    axes = [np.unique(values) for values in points.T]
    if np.prod([len(along) for along in axes], dtype=float) != len(points):
        return None
    if any(len(along) < _FEWEST or uneven_gaps(along).any() for along in axes):
        return None
    return axes, np.lexsort(points.T[::-1])


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


def _read(path: Path) -> Any:
    import pandas as pd

    check_memory(path.stat().st_size, "a table", "write it in a binary format, or fewer rows")
    try:
        if path.suffix.lower() in _BINARY:
            return pd.read_parquet(path)
        separator, decimal = _separator(path)
        return pd.read_csv(path, comment="#", skipinitialspace=True, sep=separator, decimal=decimal)
    except Exception as error:  # whatever a damaged table makes its library raise
        raise SplatopError(
            f"expected a table with columns t, x, y and fields, {path.name} cannot be read "
            f"({error_line(error)}): write it again"
        ) from error


def _separator(path: Path) -> tuple[str, str]:
    """What stands between columns, told by the first line, and in numbers before decimals."""
    with path.open(encoding="utf-8", errors="replace") as stream:
        lines = (line for line in stream if line.strip() and not line.startswith("#"))
        head, row = next(lines, "")[:10_000], next(lines, "")[:10_000]
    for separator in (";", "\t", ","):
        if separator in head:
            return separator, "," if separator != "," and "," in row and "." not in row else "."
    return r"\s+", "."

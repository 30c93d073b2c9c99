"""Tables of points: CSV and Parquet with columns `t, x, y`, one for each field, and `trajectory`
where there are several."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import SplatopError
from .atomic import complete_or_absent
from .axes import choose_fields, uniform_spacing
from .scattered import at_points
from .trajectories import ArrayTrajectories, Trajectories

TABLES = (".csv", ".parquet", ".pq")
_KEYS = ("trajectory", "t", "x", "y")


def open_table(
    path: Path, *, fields: Sequence[str] | None, dt: float | None, **box: Any
) -> ArrayTrajectories:
    """A table whose rows are the values at one point and time, in any order."""
    table, source = _read(path), path.name
    names = {str(c).strip().lower(): c for c in table.columns}
    names.setdefault("t", names.get("time"))  # type: ignore[arg-type]
    missing = [key for key in ("t", "x", "y") if names.get(key) is None]
    if missing:
        raise SplatopError(
            f"{source}: expected columns t, x, y, one for each field, and trajectory if there are "
            f"several, got {', '.join(map(str, table.columns[:12]))}: no {', '.join(missing)}"
        )
    keys = {key: names[key] for key in _KEYS if names.get(key) is not None}
    own = [c for c in table.columns if c not in keys.values()]
    if not own:
        raise SplatopError(f"{source}: expected a column for each field beside t, x and y")
    chosen = choose_fields(fields, [str(c).strip() for c in own])
    by_field = {str(c).strip(): c for c in own}
    columns = {}
    for what, column in {**keys, **{name: by_field[name] for name in chosen}}.items():
        values = table[column]
        if values.dtype.kind not in "fiub":
            raise SplatopError(f"{source}: expected numbers in column '{column}', got text")
        columns[what] = values.to_numpy(float)
        bad = ~np.isfinite(columns[what])
        if bad.any():
            raise SplatopError(
                f"{source}: expected finite numbers in column '{column}', got none in row "
                f"{int(np.argmax(bad)) + 2}: fill it in, or leave out that point at all times"
            )
    which = columns.get("trajectory", np.zeros(len(table)))
    runs, run = np.unique(which, return_inverse=True)
    times, frame = np.unique(columns["t"], return_inverse=True)
    places = np.stack([columns["x"], columns["y"]], axis=1)
    points, first, place = np.unique(places, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")  # as the file lists them
    points, place = points[order], np.argsort(order)[place.ravel()]
    count = np.zeros((len(runs), len(times), len(points)), int)
    np.add.at(count, (run, frame, place), 1)
    if (count != 1).any():
        b, t, p = np.argwhere(count != 1)[0]
        raise SplatopError(
            f"{source}: expected one row for each of the {len(points)} points at each of the "
            f"{len(times)} times{' of each trajectory' if len(runs) > 1 else ''}, got "
            f"{count[b, t, p]} at t = {times[t]:g}, x = {points[p, 0]:g}, y = {points[p, 1]:g}"
            f"{f', trajectory {runs[b]:g}' if len(runs) > 1 else ''}: points must stay where they "
            "are"
        )
    array = np.empty((len(runs), len(times), len(chosen), len(points)), np.float32)
    for channel, name in enumerate(chosen):
        array[run, frame, channel, place] = columns[name]
    step = uniform_spacing(times, "t", source=source) if dt is None else dt
    kind = "csv" if path.suffix.lower() == ".csv" else "parquet"
    return at_points(array, points, dt=step, fields=chosen, source=source, kind=kind, **box)


def save_table(path: str | Path, data: Trajectories) -> None:
    """Write trajectories at points as a table, complete or not at all."""
    import pandas as pd

    path = Path(path)
    x, y = data.grid.coordinates()
    parts = []
    for b in range(data.trajectories):
        frames = data.window(b, 0, data.frames)  # (T, C, P)
        shape = (data.frames, frames.shape[2])
        columns = {
            "trajectory": np.full(shape, b),
            "t": np.broadcast_to(np.arange(data.frames)[:, None] * data.dt, shape),
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

    try:
        if path.suffix.lower() == ".csv":
            return pd.read_csv(path, comment="#", skipinitialspace=True)
        return pd.read_parquet(path)
    except Exception as error:  # whatever a damaged table makes its library raise
        lines = str(error).splitlines() or [type(error).__name__]
        shown = "".join(c if c.isprintable() else "?" for c in lines[0])[:160]
        raise SplatopError(
            f"expected a table with columns t, x, y and fields, {path.name} cannot be read "
            f"({shown}): write it again"
        ) from error

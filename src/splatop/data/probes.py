"""OpenFOAM's probes: a row for each time, the places of the columns in the comments above."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import SplatopError

BEGIN = b"# Probe "
_PROBE = re.compile(r"#\s*Probe\s+\d+\s+\(([^)]*)\)")
_CELL = re.compile(r"\(([^)]*)\)|(\S+)")


def is_probes(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(BEGIN)) == BEGIN


def read_probes(path: Path) -> Any:
    """A pandas table with a row for each probe and time; the file is called as the field is."""
    import pandas as pd

    lines = path.read_text(errors="replace").splitlines()
    places = [match[1] for line in lines if (match := _PROBE.match(line))]
    rows = [_cells(line) for line in lines if line.strip() and not line.startswith("#")]
    widths = {tuple(len(cell) for cell in row) for row in rows}
    counts = {len(row) - 1 for row in rows}
    if len(widths) != 1 or counts != {len(places)} or not places:
        raise SplatopError(
            f"expected a time and a value of each of the {len(places)} probes in every row, "
            f"{path.name} has rows of {', '.join(map(str, sorted(counts))) or 'no'} values: cut "
            "off the rows that are not whole"
        )
    try:
        at = np.array([[float(number) for number in place.split()] for place in places])
        values = np.array([[list(map(float, cell)) for cell in row[1:]] for row in rows])
        times = np.array([float(row[0][0]) for row in rows])
    except ValueError as error:
        raise SplatopError(f"expected numbers in {path.name}, got {error}") from error
    parts = values.shape[2]
    names = [path.name] if parts == 1 else [f"{path.name}_{axis}" for axis in "xyz"[:parts]]
    if len(names) != parts:
        names = [f"{path.name}_{number}" for number in range(parts)]
    shape = values.shape[:2]
    varies = [axis for axis in range(1, at.shape[1]) if np.ptp(at[:, axis]) > 0]
    kept = range(1 + max(varies, default=0))  # probes in a plane or on a line
    columns = {"t": np.broadcast_to(times[:, None], shape)}
    columns |= {"xyz"[axis]: np.broadcast_to(at[:, axis], shape) for axis in kept}
    columns |= {name: values[..., number] for number, name in enumerate(names)}
    return pd.DataFrame({name: np.ravel(held) for name, held in columns.items()})


def _cells(line: str) -> list[list[str]]:
    """The numbers of each column; a vector stands in parentheses."""
    return [(inner or one).split() for inner, one in _CELL.findall(line)]

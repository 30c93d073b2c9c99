"""Opening a data set: the format is told by the content, the rest is read or asked for."""

from collections.abc import Sequence
from pathlib import Path

import h5py

from ..errors import SplatopError
from .axes import check_seam
from .trajectories import Trajectories
from .well_reader import WellTrajectories, is_well


def open_trajectories(
    path: str | Path,
    *,
    axes: str | None = None,
    fields: Sequence[str] | None = None,
    lengths: float | Sequence[float] | None = None,
    dt: float | None = None,
    periodic: bool | None = None,
) -> Trajectories:
    """Open a file of trajectories; windows are read when asked for.

    What the file does not state has to be given: the order of the `axes` (as in "btcxy"), the names
    of the `fields`, the side `lengths` of the box, the time step `dt`. Given values replace the
    file's. Without a stated boundary condition the data is checked to close periodically, unless
    `periodic` is True.
    """
    path = Path(path)
    if not path.exists():
        raise SplatopError(f"expected a data file, {path} does not exist")
    file = h5py.File(path, "r")
    return WellTrajectories(file, fields=fields, lengths=lengths, dt=dt, source=path.name)

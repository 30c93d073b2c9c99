"""Masks that a file holds: a variable of ones and zeros, or the NaN of the fields."""

from pathlib import Path

import h5py
import numpy as np

from ..errors import SplatopError, unknown_name
from .arrays import load_npz
from .hdf5 import SIGNATURE, datasets
from .trajectories import Trajectories

NAN = "nan"
_UNREAD = np.empty((0, 0))
# Frames that are looked at for NaN that come and go.
_LOOKED_AT = 9


def read_mask(path: Path, name: str, data: Trajectories) -> np.ndarray:
    """True where a point of the grid is inside: from the variable `name`, or where the first frame
    is finite if that is "nan"."""
    if name.lower() == NAN:
        return where_finite(data)
    held = _variables(path, name)
    if name not in held:
        raise unknown_name("variable of the file for --mask", name, (*held, NAN))
    mask = held[name]
    wanted = data.grid.points
    if mask.shape != wanted and mask.T.shape == wanted:
        raise SplatopError(
            f"{data.source}: expected a mask of shape {wanted}, got {mask.shape}, its transpose: "
            "store it with x first, as the fields are read"
        )
    return mask


def where_finite(data: Trajectories) -> np.ndarray:
    """True where a point of the grid has values; refused if that changes in time, as under clouds
    or around a body that moves: a shape stays as it is."""
    every = np.unique(np.linspace(0, data.frames - 1, _LOOKED_AT).astype(int))
    first = None
    for trajectory in sorted({0, data.trajectories - 1}):
        for step in every:
            finite = np.isfinite(data.states(trajectory, int(step), 1)[0]).all(axis=0)
            first = finite if first is None else first
            changed = int((finite != first).sum())
            if changed:
                raise SplatopError(
                    f"{data.source}: expected NaN at the same points in every frame, the outside "
                    f"of a shape that stays, got {changed} others at step {step} of trajectory "
                    f"{trajectory}: if they are gaps in measurements (clouds), give the values "
                    "that are there as a table to splatop reconstruct or assimilate; shapes that "
                    "move are not supported"
                )
    assert first is not None
    return first


def _variables(path: Path, wanted: str) -> dict[str, np.ndarray]:
    """The two-dimensional arrays of numbers in a file; only the one that is wanted is read."""
    if path.is_dir():
        raise SplatopError(f"expected a file that holds the mask, got the folder {path}: use nan")
    with path.open("rb") as stream:
        head = stream.read(8)
    if head == SIGNATURE:
        with h5py.File(path, "r") as file:
            found: dict[str, np.ndarray] = {}

            def look(name: str, item: object) -> None:
                if isinstance(item, h5py.Group):
                    for key, one in datasets(item).items():
                        if one.ndim == 2 and one.dtype.kind in "buif":
                            found[key] = np.asarray(one[()]) if key == wanted else _UNREAD

            look("", file)
            file.visititems(look)
            return found
    if head.startswith(b"PK"):
        return {k: a for k, a in load_npz(path).items() if a.ndim == 2}
    raise SplatopError(
        f"expected a mask in HDF5, NetCDF 4 or .npz, got {path.name}: mark points outside by NaN "
        "and give --mask nan"
    )

"""Opening a data set: the format is told by the content, the rest is read or asked for."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from ..errors import SplatopError
from .arrays import NPY, ZIP, coordinates_beside, load_npz, open_npy, open_npz
from .axes import components_of
from .complex_fields import real_fields
from .edges import Told, settled
from .foreign import of_a_folder, what_to_do
from .hdf5 import (
    PYPDE,
    SIGNATURE,
    all_datasets,
    datasets,
    datasets_of_one_group,
    error_line,
    open_hdf5,
)
from .inputs import check_drop, with_inputs
from .masks import read_mask
from .mesh_series import SERIES, SINGLE, one_mesh, open_series
from .names import Renamed, names_asked
from .only import check_only, on_own_coordinates, only_these
from .pdebench import FlatTrajectories, GroupedTrajectories, is_flat, is_grouped
from .probes import BEGIN as PROBES
from .rates import WithRates, rates_asked
from .scales import Named, named_axes
from .scattered import from_arrays, from_dataset
from .split import from_frame
from .table_file import is_crossed, is_table
from .tables import open_matrix, open_table
from .times import steady, told_times
from .trajectories import Trajectories
from .well_reader import WellTrajectories, is_well

MATLAB = (b"MATLAB 5.0", b"MATLAB 7.3")
NETCDF3 = (b"CDF\x01", b"CDF\x02", b"CDF\x05")
ZARR = ("zarr.json", ".zgroup", ".zmetadata", ".zarray")


def open_trajectories(
    path: str | Path,
    *,
    axes: str | None = None,
    fields: Sequence[str] | None = None,
    lengths: float | Sequence[float] | None = None,
    dt: float | None = None,
    origin: float | Sequence[float] | None = None,
    periodic: bool | None = None,
    drop_end: bool = False,
    boundary: str | None = None,
    sampling: str | Sequence[str] | None = None,
    t0: float | None = None,
    shape: str | None = None,
    mask: str | None = None,
    inputs: Sequence[str] | None = None,
    resample: bool = False,
    start: int = 0,
    only: Sequence[int] | None = None,
) -> Trajectories:
    """Open a file of trajectories; windows are read when they are asked for.

    What the file does not state has to be given: the order of the `axes` (as in "btcxy"), the names
    of the `fields` (`u=usol` reads usol as u, `v=dt(u)` makes a field of the rate of u), the side
    `lengths` of the box, the time step `dt`; and the `origin` that the axes begin at, which is 0
    unless the file has coordinates. Given values replace the file's. `t0` is the time of the first
    frame, which an equation with `t` in it needs; a file with time stamps states it. `inputs` are
    fields that drive the others and are not predicted.

    `boundary` says what holds at the edges, as in "x0: u = 0; x1: dn(u) = 0; y: periodic", and
    `sampling` where the points of bounded axes lie ("ends", "cells" or "left", one for all axes or
    one for each), where coordinates do not tell. If neither the user nor the file states the edges,
    the data is checked to close periodically; `periodic=True` says so instead. `drop_end=True`
    leaves out a last point that repeats the first. A complex field `psi` becomes the two real ones
    `psi_re` and `psi_im`.

    In 2D `shape` is the part of the plane that the data are of, as text ("box - disk(0.4, 0.5,
    0.15)") or the path of a mesh, or `mask` the name of a variable of the file that is 1 inside and
    0 outside, or "nan" where values outside are NaN; `boundary` then names its edges. Data at
    scattered points always need one, unless their file states it.

    `resample=True` interpolates axes with uneven coordinates to even points, and frames at uneven
    times to even ones. `start` leaves out so many frames at the beginning of each trajectory.
    `only` are the numbers of the trajectories to read, from 0.
    """
    path = Path(path)
    if shape is not None and mask is not None:
        raise SplatopError("expected --shape or --mask, got both: leave one out")
    fields, rates = rates_asked(fields)
    files_names, new_names = names_asked(fields)
    asked = {"fields": files_names, "lengths": lengths, "dt": dt, "origin": origin}
    try:
        trajectories = _open_with(path, axes, asked, inputs)
    except (SplatopError, PermissionError):
        raise
    except Exception as error:  # whatever a damaged file makes its library raise
        raise SplatopError(
            f"expected a whole data file, {path} cannot be read ({type(error).__name__}: "
            f"{error_line(error)}): copy or generate it again"
        ) from error
    try:
        if trajectories.frames < 2:
            raise steady(path.name)
        check_only(trajectories, only)
        on_own_coordinates(trajectories, trajectories.rows, only)
        trajectories.times = told_times(
            trajectories.times, t0, dt=trajectories.dt, frames=trajectories.frames
        )
        if new_names:
            trajectories = Renamed(trajectories, new_names)
        trajectories = real_fields(trajectories)
        if rates:
            trajectories = WithRates(trajectories, rates)
        trajectories = only_these(from_frame(trajectories, start), only)
        trajectories = with_inputs(trajectories, inputs)
        check_drop(drop_end, inputs)
        inside = None if mask is None else read_mask(path, mask, trajectories)
        told = Told(
            boundary, sampling, periodic, drop_end, lengths, origin, shape, inside, resample
        )
        trajectories = settled(trajectories, told)
    except BaseException:
        trajectories.close()
        raise
    return trajectories


def _open_with(
    path: Path, axes: str | None, asked: dict[str, Any], inputs: Sequence[str] | None
) -> Trajectories:
    """The fields asked for, and the inputs that are not among them."""
    opened = _open(path, axes, asked)
    known = (*opened.fields, *opened.static)
    missing = [i for i in inputs or () if i not in known and not components_of(i, known)]
    if asked["fields"] is None or not missing:
        return opened
    opened.close()
    return _open(path, axes, {**asked, "fields": [*asked["fields"], *missing]})


def _open(path: Path, axes: str | None, asked: dict[str, Any]) -> Trajectories:
    if not path.exists():
        raise SplatopError(f"expected a data file, {path} does not exist")
    if path.is_dir():
        if not any((path / marker).exists() for marker in ZARR):
            raise SplatopError(
                f"expected a data file or a Zarr store, got the folder {path}, {of_a_folder(path)}"
            )
        return _labelled(path, axes, asked)
    with path.open("rb") as stream:
        start = stream.read(16)
    head = start[:8]
    if is_table(path) or start.startswith(PROBES):
        if axes is None or (axes in ("tx", "xt") and is_crossed(path)):
            return open_table(path, **asked, rows=axes and axes[0])
        return open_matrix(path, axes=axes, **asked)
    if path.suffix.lower() in SERIES:
        return open_series(path, **_of_points(axes, asked))
    if path.suffix.lower() in SINGLE:
        raise one_mesh(path)
    if head == SIGNATURE:
        return _hdf5(path, axes, asked)
    if start.startswith(MATLAB) or path.suffix.lower() == ".mat":
        return _matlab(path, axes, asked)
    if head.startswith(NPY):
        return _npy(path, axes, asked)
    if head.startswith(ZIP):
        return _npz(path, axes, asked)
    if head.startswith(NETCDF3):
        return _labelled(path, axes, asked)
    raise SplatopError(
        "expected HDF5 (The Well, PDEBench, py-pde, NetCDF), NetCDF 3, Zarr, MATLAB, .npy, .npz, a "
        "table (.csv, .txt, .parquet) or a series on a mesh (.xdmf, .pvd), "
        f"{path} is none of them; {what_to_do(start)}"
    )


def _of_points(axes: str | None, asked: dict[str, Any]) -> dict[str, Any]:
    """The arguments that readers of points take: their box comes with the shape."""
    if axes is not None:
        raise SplatopError(f"expected no axes for data at points, got '{axes}': leave it out")
    return {"fields": asked["fields"], "dt": asked["dt"]}


def _hdf5(path: Path, axes: str | None, asked: dict[str, Any]) -> Trajectories:
    file = open_hdf5(path)
    try:
        if any("MATLAB_class" in item.attrs for item in file.values()):
            file.close()
            return _matlab(path, axes, asked)
        if is_well(file) or is_grouped(file):
            if axes is not None:
                raise SplatopError(f"{path.name} states its axes: leave out axes '{axes}'")
            kind = WellTrajectories if is_well(file) else GroupedTrajectories
            return kind(file, **asked, source=path.name)
        if axes is None and PYPDE in file.attrs:
            from .pypde import open_pypde  # with xarray, as above

            return open_pypde(file, **asked, source=path.name)
        if _is_netcdf(file):
            file.close()
            return _labelled(path, axes, asked)
        if is_flat(file) or _named_of_many(file, axes, asked["fields"]):
            return FlatTrajectories(file, axes=axes, **asked, source=path.name)
        return _named_datasets(file, path, axes, asked)
    except BaseException:
        file.close()
        raise


def _labelled(path: Path, axes: str | None, asked: dict[str, Any]) -> Trajectories:
    # xarray brings pandas, a second of import that most commands do without.
    from .labelled import LabelledTrajectories, open_labelled

    data = open_labelled(path)
    try:
        if axes is None:
            points = from_dataset(data, **_of_points(axes, asked), source=path.name)
            if points is not None:
                data.close()
                return points
        return LabelledTrajectories(data, axes=axes, **asked, source=path.name)
    except BaseException:
        data.close()
        raise


def _matlab(path: Path, axes: str | None, asked: dict[str, Any]) -> Trajectories:
    from .matlab import numbers_of, open_matlab  # with xarray, as above

    if axes is None:
        found = from_arrays(numbers_of(path), **asked, source=path.name, kind="matlab")
        if found is not None:
            return found
    return open_matlab(path, axes=axes, **asked)


def _npy(path: Path, axes: str | None, asked: dict[str, Any]) -> Trajectories:
    beside = {} if axes is not None else coordinates_beside(path)
    if "t" not in beside or "x" not in beside:
        return open_npy(path, axes=axes, **asked)
    from .variables import Variables, open_variables  # with xarray, as above

    name = (asked["fields"] or ("u",))[0]
    arrays = {name: np.load(path, mmap_mode="r", allow_pickle=False), **beside}
    opened = open_variables(Variables(arrays, {}, path.name, "NumPy"), axes=axes, **asked)
    opened.attributes["format"] = f"npy, with {', '.join(f'{k}.npy' for k in beside)} beside it"
    return opened


def _npz(path: Path, axes: str | None, asked: dict[str, Any]) -> Trajectories:
    arrays = load_npz(path)
    if axes is None:
        found = from_arrays(arrays, **asked, source=path.name, kind="npz")
        if found is not None:
            return found
    from .named_coordinates import STEPS, letter_of
    from .variables import Variables, open_variables  # with xarray, as above

    named = [name for name, array in arrays.items() if letter_of(name) and array.size > 1]
    if named or set(arrays) & set(STEPS):
        opened = open_variables(Variables(arrays, {}, path.name, "NumPy"), axes=axes, **asked)
        opened.attributes["format"] = "npz"
        return opened
    return open_npz(path, arrays, axes=axes, **asked)


def _named_of_many(file: h5py.File, axes: str | None, fields: Sequence[str] | None) -> bool:
    """Whether fields and axes were given, and neither datasets nor attributes are coordinates."""
    from .named_coordinates import letter_of, told_by_attributes  # with xarray, as above

    if axes is None or fields is None or not all(name in datasets(file) for name in fields):
        return False
    found = all_datasets(file)
    return not any(letter_of(name) for name in found) and not told_by_attributes(found)


def _named_datasets(
    file: h5py.File, path: Path, axes: str | None, asked: dict[str, Any]
) -> Trajectories:
    from .named_coordinates import told_by_attributes  # with xarray, as above
    from .stored import COMPLEX, Stored
    from .variables import Variables, open_variables

    found = {
        name: item
        for name, item in datasets_of_one_group(file, asked["fields"], path.name).items()
        if item.size and (item.dtype.names == COMPLEX or np.issubdtype(item.dtype, np.number))
    }
    named = named_axes(found) if axes is None else Named({}, {})
    found = named.arrays or found
    arrays: dict[str, Any] = {k: Stored(item, transposed=False) for k, item in found.items()}
    arrays |= told_by_attributes(found)
    if not arrays:
        raise SplatopError(
            f"{path.name}: expected datasets of numbers, got an HDF5 file with "
            f"{', '.join(file) or 'nothing'}"
        )
    variables = Variables(arrays, {}, path.name, "HDF5", named.letters)
    paths = {str(item.name).strip("/"): name for name, item in found.items()}
    if asked["fields"]:  # a dataset may be asked for by its path, too
        asked["fields"] = [paths.get(name.strip("/"), name) for name in asked["fields"]]
    opened = open_variables(variables, axes=axes, close=file.close, **asked)
    opened.attributes["format"] = "hdf5"
    if named.renamed:
        opened.attributes["names"] = named.renamed
    return opened


def _is_netcdf(file: h5py.File) -> bool:
    return "_NCProperties" in file.attrs or any(
        "CLASS" in item.attrs and item.attrs["CLASS"] == b"DIMENSION_SCALE"
        for item in file.values()
    )

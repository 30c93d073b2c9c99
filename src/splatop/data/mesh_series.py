"""Values at the vertices of a mesh over time: XDMF, and ParaView's collections of VTK files."""

import contextlib
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from ..errors import SplatopError
from ..shapes.mesh import read_mesh, shape_of_mesh, triangles_of
from .axes import choose_fields
from .hdf5 import error_line
from .in_memory import ArrayTrajectories
from .places import at_points

SERIES = (".xdmf", ".xmf", ".pvd")
SINGLE = (".vtu", ".vtk", ".vtp", ".msh", ".e", ".exo", ".ex2")
_MOST_BYTES = 10_000_000  # of a collection, which is a list of file names

Frame = tuple[float, dict[str, np.ndarray]]


def open_series(path: Path, *, fields: Sequence[str] | None, dt: float | None) -> ArrayTrajectories:
    """A time series on a mesh that meshio reads, at the mesh's vertices; the mesh is the shape."""
    source = path.name
    mesh, frames = _collection(path) if path.suffix.lower() == ".pvd" else _xdmf(path)
    if not frames:
        raise SplatopError(f"{source}: expected frames of a time series, got none")
    places, _ = triangles_of(mesh, source)
    data = [point_data for _, point_data in frames]
    for k, held in enumerate(data):
        if set(held) != set(data[0]) or any(len(v) != len(places) for v in held.values()):
            raise SplatopError(
                f"{source}: expected the same fields at all {len(places)} vertices in each frame, "
                f"got others in frame {k}"
            )
    channels = {}
    for name in data[0]:
        values = np.stack([np.asarray(held[name], float) for held in data])
        if values.ndim == 2:
            channels[name] = values
        else:
            axes = zip("xy", np.moveaxis(values, -1, 0), strict=False)
            channels |= {f"{name}_{axis}": one for axis, one in axes}
    if not channels:
        raise SplatopError(
            f"{source}: expected values at the vertices, got none: values of cells are not read, "
            "write them at the points (ParaView: Cell Data to Point Data)"
        )
    names = choose_fields(fields, channels)
    stacked = np.stack([channels[name] for name in names], axis=1)[None]
    found = at_points(
        stacked,
        places,
        dt=dt,
        fields=names,
        source=source,
        kind="mesh series",
        times=np.array([time for time, _ in frames]),
    )
    found.mesh_shape = shape_of_mesh(mesh, source)
    return found


def one_mesh(path: Path) -> SplatopError:
    """What is said of a file that holds a mesh at one moment."""
    return SplatopError(
        f"expected a series in time, {path.name} is a mesh at one moment: give the collection of "
        "its files (.pvd) or XDMF; as a shape it goes with --shape"
    )


def _xdmf(path: Path) -> tuple[Any, list[Frame]]:
    import meshio

    try:
        with _quiet(), meshio.xdmf.TimeSeriesReader(path) as reader:
            points, cells = reader.read_points_cells()
            read = [reader.read_data(k) for k in range(reader.num_steps)]
    except (SystemExit, Exception) as error:
        raise SplatopError(
            f"expected a time series in XDMF, {path.name} cannot be read ({error_line(error)}): "
            "write it with meshio, or give the values as a table with columns t, x, y"
        ) from error
    return meshio.Mesh(np.asarray(points), cells), [(float(t), held) for t, held, _ in read]


def _collection(path: Path) -> tuple[Any, list[Frame]]:
    """The files that ParaView's list names, in the order of their times."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ValueError("it is too long")
        text = path.read_text()
        if "<!ENTITY" in text:
            raise ValueError("it defines entities")
        listed = ElementTree.fromstring(text).iter("DataSet")
        members = sorted((float(one.attrib["timestep"]), one.attrib["file"]) for one in listed)
    except (ElementTree.ParseError, KeyError, ValueError) as error:
        raise SplatopError(
            f"expected ParaView's collection of files over time, {path.name} cannot be read "
            f"({error_line(error)}): write it again"
        ) from error
    if not members:
        raise SplatopError(f"{path.name}: expected files of a time series, got none")
    frames, first = [], None
    for time, name in members:
        member = path.parent / name
        if not member.exists():
            raise SplatopError(f"{path.name}: expected the file {name} that it names, got none")
        mesh = read_mesh(member)
        first = mesh if first is None else first
        if not np.array_equal(mesh.points, first.points):
            raise SplatopError(
                f"{path.name}: expected the same vertices in each file, got others in {name}: "
                "points must stay where they are"
            )
        frames.append((time, dict(mesh.point_data)))
    return first, frames


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what meshio prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        yield

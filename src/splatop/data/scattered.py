"""Fields at fixed points: arrays and files that hold points `(P, 2)` beside their values."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import SplatopError
from ..points import Points
from .axes import check_real, choose_fields, need, uniform_spacing
from .stated import Stated
from .trajectories import ArrayTrajectories

# What arrays of points and of times are called, without regard to case.
PLACES = ("points", "places", "x_star", "xy", "coordinates", "coords", "vertices", "nodes")
TIMES = ("t", "time", "times", "t_star", "tt")
# Names of the dimension that points have in xarray.
DIMENSIONS = (
    "point",
    "points",
    "p",
    "node",
    "nodes",
    "vertex",
    "ncells",
    "cell",
    "station",
    "site",
)


def at_points(
    array: np.ndarray,
    places: np.ndarray,
    *,
    dt: float | None,
    fields: Sequence[str],
    source: str,
    kind: str,
    lengths: Sequence[float] | None = None,
    origin: Sequence[float] | None = None,
) -> ArrayTrajectories:
    """Trajectories from values `(B, T, C, P)` at places `(P, 2)`."""
    grid = Points.of(places, lengths=lengths, origin=origin)
    repeated = len(places) - len(np.unique(np.round(grid.places, 12), axis=0))
    if repeated:
        raise SplatopError(
            f"{source}: expected points in different places, got {repeated} that repeat another: "
            "keep one of each"
        )
    if array.ndim != 4 or array.shape[3] != len(grid.places):
        raise SplatopError(
            f"{source}: expected values (B, T, C, P) at its P = {len(grid.places)} points, got "
            f"shape {array.shape}"
        )
    step = need(dt, "the time between frames", "give it (--dt)", source)
    about = {"source": source, "format": kind}
    return ArrayTrajectories(array, grid, dt=step, fields=tuple(fields), attributes=about)


def from_arrays(
    arrays: Mapping[str, np.ndarray],
    *,
    fields: Sequence[str] | None,
    dt: float | None,
    source: str,
    kind: str,
    **box: Any,
) -> ArrayTrajectories | None:
    """From named arrays, points among them; None if there are none.

    The axes of values are told by their lengths: that of the points, that of the times; one of
    length 2 beside these is a vector's components, `u` and `v`.
    """
    by_name = {name.lower(): name for name in arrays}
    place = next((by_name[name] for name in PLACES if name in by_name), None)
    if place is None and {"x", "y"} <= set(by_name):
        x, y = (np.squeeze(arrays[by_name[axis]]) for axis in "xy")
        if x.ndim != 1 or x.shape != y.shape:
            return None
        points, used = np.stack([x, y], axis=1), {by_name["x"], by_name["y"]}
        # A grid has the same, of as many points along both of its axes.
        if any(a.ndim >= 2 and list(a.shape).count(len(x)) > 1 for a in arrays.values()):
            return None
    elif place is not None:
        points, used = np.asarray(arrays[place]), {place}
        points = (
            points.T if points.ndim == 2 and points.shape[0] == 2 != points.shape[1] else points
        )
        if points.ndim != 2 or points.shape[1] != 2:
            if place.lower() == "points":
                raise SplatopError(
                    f"{source}: expected points (P, 2) in '{place}', got shape {points.shape}"
                )
            return None
    else:
        return None
    clock = next((by_name[name] for name in TIMES if name in by_name), None)
    times = None if clock is None else np.ravel(arrays[clock])
    if dt is None and times is not None and len(times) > 1:
        dt = uniform_spacing(times, str(clock), source=source)
    if dt is None and "dt" in by_name and np.size(arrays[by_name["dt"]]) == 1:
        dt = float(np.ravel(arrays[by_name["dt"]])[0])
    found: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        if name in used | {clock} or array.ndim < 2 or len(points) not in array.shape:
            continue
        check_real(array.dtype, f"'{name}'", source)
        found |= _channels(name, np.asarray(array), len(points), times, source)
    if not found:
        listed = ", ".join(f"{name} {np.shape(a)}" for name, a in arrays.items())
        raise SplatopError(
            f"{source}: expected values at its {len(points)} points and several times, got {listed}"
        )
    names = _named(fields, found)
    shapes = {found[name].shape for name in names}
    if len(shapes) > 1:
        raise SplatopError(f"{source}: expected fields of one shape, got {sorted(shapes)}")
    stacked = np.stack([found[name] for name in names], axis=2)
    wanted = tuple(fields) if fields is not None and len(fields) == len(names) else names
    return at_points(stacked, points, dt=dt, fields=wanted, source=source, kind=kind, **box)


def _named(fields: Sequence[str] | None, found: Mapping[str, Any]) -> tuple[str, ...]:
    """The channels asked for; names that are none of the file's name all of them, in order."""
    if fields is not None and len(fields) == len(found) and not set(fields) & set(found):
        return tuple(found)
    return choose_fields(fields, found)


def _channels(
    name: str, array: np.ndarray, points: int, times: np.ndarray | None, source: str
) -> dict[str, np.ndarray]:
    """Values `(B, T, P)` by channel."""
    shape = list(array.shape)
    axis = len(shape) - 1 if shape[-1] == points else shape.index(points)
    moved = np.moveaxis(array, axis, -1)
    rest = list(moved.shape[:-1])
    if times is not None and len(times) in rest:
        moved = np.moveaxis(moved, rest.index(len(times)), -2)
        others = list(moved.shape[:-2])
        if not others:
            return {name: moved[None]}
        if len(others) == 1 and axis == 0:  # (P, components, T), as vectors at stations are stored
            stem = name.lower().removesuffix("_star")
            letters = ("u", "v") if stem == "u" and others[0] == 2 else None
            names = letters or [f"{stem}_{k}" for k in range(others[0])]
            return {one: moved[k][None] for k, one in enumerate(names)}
    if len(rest) == 1:
        return {name: moved[None]}
    if len(rest) == 2:
        return {name: moved}
    if len(rest) == 3:
        count = rest[2]
        names = [name] if count == 1 else [f"{name}_{k}" for k in range(count)]
        return {one: moved[:, :, k] for k, one in enumerate(names)}
    raise SplatopError(
        f"{source}: expected '{name}' as (T, P), (B, T, P) or (B, T, C, P), got {array.shape}"
    )


def from_dataset(
    data: Any, *, fields: Sequence[str] | None, dt: float | None, source: str, **box: Any
) -> ArrayTrajectories | None:
    """From xarray with a dimension of points that has coordinates x and y; None without one."""
    dimension = next((str(d) for d in data.dims if str(d).lower() in DIMENSIONS), None)
    if dimension is None:
        return None
    places = []
    for axis in "xy":
        if axis not in data.variables or data[axis].dims != (dimension,):
            raise SplatopError(
                f"{source}: expected coordinates x and y of the dimension '{dimension}', got "
                f"{', '.join(map(str, data.coords)) or 'none'}: name them x and y"
            )
        places.append(np.asarray(data[axis].values, float))
    arrays, letters = {}, {"time": "t", "t": "t"}
    for name, variable in data.data_vars.items():
        if dimension not in variable.dims or str(name) in "xy":
            continue
        order = [
            letters.get(str(d).lower(), "p" if str(d) == dimension else "b") for d in variable.dims
        ]
        if "t" not in order or len(set(order)) != len(order):
            continue
        standard = [order.index(letter) for letter in ("b", "t", "p") if letter in order]
        values = np.transpose(np.asarray(variable.values), standard)
        arrays[str(name)] = values if "b" in order else values[None]
    if not arrays:
        raise SplatopError(f"{source}: expected variables over time and '{dimension}', got none")
    clock = next((str(c) for c in data.coords if str(c).lower() in ("t", "time")), None)
    if dt is None and clock is not None and data[clock].dtype.kind in "fiu":
        dt = uniform_spacing(data[clock].values, clock, source=source)
    names = choose_fields(fields, arrays)
    stacked = np.stack([arrays[name] for name in names], axis=2)
    places_array = np.stack(places, axis=1)
    found = at_points(
        stacked, places_array, dt=dt, fields=names, source=source, kind="xarray points", **box
    )
    text = data.attrs.get("boundary_conditions")
    if isinstance(text, str):
        found.stated = Stated(text=text)
    return found


def open_series(
    path: Path, *, fields: Sequence[str] | None, dt: float | None, **box: Any
) -> ArrayTrajectories:
    """A time series on a mesh that meshio reads (XDMF), at the mesh's vertices."""
    import meshio

    from ..shapes.mesh import shape_of_mesh, triangles_of

    source = path.name
    try:
        with meshio.xdmf.TimeSeriesReader(path) as reader:
            points, cells = reader.read_points_cells()
            frames = [reader.read_data(k) for k in range(reader.num_steps)]
    except (SystemExit, Exception) as error:
        raise SplatopError(
            f"expected a time series in XDMF, {source} cannot be read ({str(error)[:160]}): write "
            "it with meshio, or give the values as a table with columns t, x, y"
        ) from error
    if not frames:
        raise SplatopError(f"{source}: expected frames of a time series, got none")
    mesh = meshio.Mesh(np.asarray(points), cells)
    places, _ = triangles_of(mesh, source)
    times = np.array([float(t) for t, _, _ in frames])
    data = [point_data for _, point_data, _ in frames]
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
    names = choose_fields(fields, channels)
    stacked = np.stack([channels[name] for name in names], axis=1)[None]
    step = uniform_spacing(times, "t", source=source) if dt is None else dt
    found = at_points(
        stacked, places, dt=step, fields=names, source=source, kind="mesh series", **box
    )
    found.mesh_shape = shape_of_mesh(mesh, source)
    return found

"""Fields at fixed points: arrays and files that hold points `(P, 2)` beside their values."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import SplatopError
from .axes import check_real, choose_fields
from .in_memory import ArrayTrajectories
from .places import at_places, at_points
from .stated import Stated

# What arrays of points, of times and of triangles are called, without regard to case.
PLACES = (
    *("points", "places", "x_star", "xy", "coordinates", "coords", "vertices", "nodes"),
    *("mesh_pos", "pos"),
)
TIMES = ("t", "time", "times", "t_star", "tt")
CELLS = ("cells", "triangles", "faces")
_COMPONENTS = 9  # of a tensor, at most
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


def from_arrays(
    arrays: Mapping[str, np.ndarray],
    *,
    fields: Sequence[str] | None,
    dt: float | None,
    lengths: float | Sequence[float] | None,
    origin: float | Sequence[float] | None,
    source: str,
    kind: str,
) -> ArrayTrajectories | None:
    """From named arrays, points among them; None if there are none.

    The axes of values are told by their lengths, that of the points and that of the times, and by
    their order; triangles of the points, if there are some, are the shape. Points without triangles
    that fill an even grid are that grid.
    """
    by_name = {name.lower(): name for name in arrays}
    found_places = _places(arrays, by_name, source)
    if found_places is None:
        return None
    points, used = found_places
    clock = next((by_name[name] for name in TIMES if name in by_name), None)
    times = None if clock is None else np.ravel(arrays[clock])
    times = None if times is None or len(times) < 2 else times
    if dt is None and times is None and "dt" in by_name and np.size(arrays[by_name["dt"]]) == 1:
        dt = float(np.ravel(arrays[by_name["dt"]])[0])
    cells = next((by_name[name] for name in CELLS if name in by_name), None)
    found: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        if name in used | {clock, cells} or array.ndim < 2 or len(points) not in array.shape:
            continue
        # Kinds of nodes and the like are whole numbers.
        if array.dtype.kind in "iub" and name not in (fields or ()):
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
        listed = ", ".join(f"{name} {found[name].shape}" for name in names)
        raise SplatopError(
            f"{source}: expected fields of one shape (trajectories, times, points), got {listed}: "
            f"name the fields to read, such as --fields {names[0]}"
        )
    stacked = np.stack([found[name] for name in names], axis=2)
    wanted = tuple(fields) if fields is not None and len(fields) == len(names) else names
    about: dict[str, Any] = {"dt": dt, "fields": wanted, "source": source}
    if cells is None:
        box = {"lengths": lengths, "origin": origin}
        return at_places(stacked, points, times, **box, kind=kind, **about)
    opened = at_points(stacked, points, times=times, kind=kind, **about)
    opened.mesh_shape = _shape(points, np.asarray(arrays[cells]), str(cells), source)
    return opened


def _places(
    arrays: Mapping[str, np.ndarray], by_name: Mapping[str, str], source: str
) -> tuple[np.ndarray, set[str]] | None:
    """The points `(P, 2)` among named arrays, and the names of these."""
    place = next((by_name[name] for name in PLACES if name in by_name), None)
    if place is None:
        if not {"x", "y"} <= set(by_name):
            return None
        x, y = (np.squeeze(arrays[by_name[axis]]) for axis in "xy")
        if x.ndim != 1 or x.shape != y.shape:
            return None
        # A grid has the same, of as many points along both of its axes.
        if any(a.ndim >= 2 and list(a.shape).count(len(x)) > 1 for a in arrays.values()):
            return None
        return np.stack([x, y], axis=1), {by_name["x"], by_name["y"]}
    points = np.asarray(arrays[place])
    points = _constant(points, place, source) if points.ndim == 3 else points
    points = points.T if points.ndim == 2 and points.shape[0] == 2 != points.shape[1] else points
    if points.ndim != 2 or points.shape[1] != 2:
        if place.lower() in ("points", "mesh_pos"):
            raise SplatopError(
                f"{source}: expected points (P, 2) in '{place}', got shape {points.shape}"
            )
        return None
    return points, {place}


def _constant(array: np.ndarray, name: str, source: str) -> np.ndarray:
    """What is stored again for each time, once."""
    if (array != array[:1]).any():
        raise SplatopError(
            f"{source}: expected '{name}' to be the same at all times, got {name} that changes: "
            "points must stay where they are, interpolate the values to fixed ones"
        )
    return array[0]


def _shape(points: np.ndarray, cells: np.ndarray, name: str, source: str) -> Any:
    """The outline of triangles `(M, 3)` of the points."""
    import meshio

    from ..shapes.mesh import shape_of_mesh

    cells = _constant(cells, name, source) if cells.ndim == 3 else cells
    kinds = {3: "triangle", 4: "quad"}
    if cells.ndim != 2 or cells.shape[1] not in kinds or cells.dtype.kind not in "iu":
        raise SplatopError(
            f"{source}: expected triangles (M, 3), as numbers of points, in '{name}', got "
            f"{cells.dtype} of shape {cells.shape}"
        )
    cells = cells.astype(int)
    if cells.size and cells.min() == 1 and cells.max() == len(points):
        cells = cells - 1  # as MATLAB counts
    mesh = meshio.Mesh(np.asarray(points, float), [(kinds[cells.shape[1]], cells)])
    return shape_of_mesh(mesh, source)


def _named(fields: Sequence[str] | None, found: Mapping[str, Any]) -> tuple[str, ...]:
    """The channels asked for; names that are none of the file's name all of them, in order."""
    if fields is not None and len(fields) == len(found) and not set(fields) & set(found):
        return tuple(found)
    return choose_fields(fields, found)


def _channels(
    name: str, array: np.ndarray, points: int, times: np.ndarray | None, source: str
) -> dict[str, np.ndarray]:
    """Values `(B, T, P)` by channel."""
    letters = _letters(array.shape, points, None if times is None else len(times))
    if letters is None:
        raise SplatopError(
            f"{source}: expected '{name}' as (T, P), (B, T, P), (B, T, C, P), (T, P, C) or "
            f"(P, C, T) at its P = {points} points"
            + (f" and T = {len(times)} times" if times is not None else "")
            + f", got {array.shape}"
        )
    wanted = [letters.index(letter) for letter in "btcp" if letter in letters]
    moved = np.transpose(array, wanted)
    moved = moved if "b" in letters else moved[None]
    stem = name[: -len("_star")] if name.lower().endswith("_star") else name
    if "c" not in letters or moved.shape[2] == 1:
        return {stem: moved[:, :, 0] if "c" in letters else moved}
    count = moved.shape[2]
    if count == 2:
        names = ("u", "v") if stem.lower() == "u" else (f"{stem}_x", f"{stem}_y")
    else:
        names = tuple(f"{stem}_{k}" for k in range(count))
    return {one: moved[:, :, k] for k, one in enumerate(names)}


def _letters(shape: tuple[int, ...], points: int, times: int | None) -> str | None:
    """What the axes of values are: the first usual order that their lengths allow, or None.

    The orders are ours (`btcp` and less), those of meshes (`tpc`) and of stations (`pct`).
    """
    orders = {
        2: ("tp", "pt"),
        3: ("btp", "tpc", "pct", "tcp"),
        4: ("btcp", "btpc"),
    }.get(len(shape), ())
    fitting = (
        order
        for order in orders
        if shape[order.index("p")] == points and times in (None, shape[order.index("t")])
    )
    # Components are few where they could be times or trajectories.
    return next(
        (o for o in fitting if len(o) != 3 or "c" not in o or shape[o.index("c")] <= _COMPONENTS),
        None,
    )


def from_dataset(
    data: Any, *, fields: Sequence[str] | None, dt: float | None, source: str
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
    known = clock is not None and data[clock].dtype.kind in "fiu"
    names = choose_fields(fields, arrays)
    stacked = np.stack([arrays[name] for name in names], axis=2)
    found = at_points(
        stacked,
        np.stack(places, axis=1),
        dt=dt,
        fields=names,
        source=source,
        kind="xarray points",
        times=data[clock].values if known else None,
    )
    text = data.attrs.get("boundary_conditions")
    if isinstance(text, str):
        found.stated = Stated(text=text)
    return found

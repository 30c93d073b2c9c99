"""Data that a user holds in memory, NumPy, JAX or xarray, as trajectories."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ..errors import SplatopError
from ..grid import Grid
from .axes import as_lengths, as_origin, is_complex, need
from .complex_fields import real_array, real_fields, whole_names
from .edges import Told, settled
from .in_memory import ArrayTrajectories, in_memory
from .inputs import check_drop, with_inputs
from .masks import NAN
from .open import open_trajectories
from .places import at_points
from .seam import without_end
from .times import frame_times, told_times
from .trajectories import Trajectories

_SOURCE = "data"


def as_trajectories(
    data: Any,
    *,
    dt: float | None = None,
    lengths: float | Sequence[float] | np.ndarray | None = None,
    origin: float | Sequence[float] | np.ndarray | None = None,
    fields: Sequence[str] | None = None,
    periodic: bool | None = None,
    drop_end: bool = False,
    boundary: str | None = None,
    sampling: str | Sequence[str] | None = None,
    shape: str | None = None,
    mask: Any = None,
    points: Any = None,
    default_fields: Sequence[str] = ("u",),
    t0: float | None = None,
    times: Sequence[float] | np.ndarray | None = None,
    inputs: Sequence[str] | None = None,
) -> Trajectories:
    """Trajectories from an array `([B,] T, C, *N)`, xarray, a path, or trajectories themselves.

    `default_fields` name the channels of arrays that say nothing about them. A complex channel
    `psi` becomes the fields `psi_re` and `psi_im`; `drop_end` leaves out a repeated last point.
    `boundary`, `sampling`, `shape` and `t0` are as in `open_trajectories`; `mask` is an array of
    the grid's points that is True inside, or "nan". With `points` `(P, 2)` arrays are
    `([B,] T, C, P)`. `times` are those of the frames of an array, instead of `dt`.
    """
    if times is not None:
        if dt is not None or t0 is not None or not isinstance(data, np.ndarray | jax.Array):
            raise SplatopError(
                "expected times of the frames of an array, in place of dt and t0, got them beside "
                "these or for data that state their own: leave one out"
            )
        dt, times = frame_times(np.asarray(times, float), source=_SOURCE)
    sides: float | list[float] | None = (
        None if lengths is None else np.asarray(lengths, float).tolist()
    )
    corner = None if origin is None else np.ravel(origin).tolist()
    if isinstance(data, Trajectories):
        told = (dt, lengths, origin, fields, boundary, sampling, t0)
        if any(given is not None for given in told):
            raise SplatopError(
                "expected dt, lengths, origin, fields, boundary, sampling and t0 only for arrays, "
                "got them with trajectories, which state their own: leave them out"
            )
        data = with_inputs(data, inputs)
        check_drop(drop_end, data.inputs)
        rings = tuple(axis for axis, ring in enumerate(data.domain.periodic) if ring)
        return without_end(data, rings, keep_lengths=False) if drop_end else data
    if isinstance(data, str | Path):
        return open_trajectories(
            data,
            dt=dt,
            lengths=sides,
            origin=corner,
            fields=fields,
            periodic=periodic,
            drop_end=drop_end,
            boundary=boundary,
            sampling=sampling,
            t0=t0,
            shape=shape,
            mask=mask,
            inputs=inputs,
        )
    if is_labelled(data):
        trajectories = _from_labelled(data, dt, sides, corner, fields, default_fields)
    elif isinstance(data, np.ndarray | jax.Array):
        names = (*default_fields, *(inputs or ())) if fields is None else fields
        if points is not None:
            values = np.asarray(data)
            trajectories = at_points(
                values[None] if values.ndim == 3 else values,
                np.asarray(points),
                dt=dt,
                fields=names,
                source=_SOURCE,
                kind="array",
            )
        else:
            trajectories = from_array(data, dt=dt, lengths=sides, origin=corner, fields=names)
        if times is not None and len(times) != trajectories.frames:
            raise SplatopError(
                f"expected {trajectories.frames} times, one for each frame, got {len(times)}"
            )
        trajectories.times = times
    else:
        raise SplatopError(
            "expected a NumPy, JAX or xarray array, trajectories or a path, got "
            f"{type(data).__name__}: make an array of it"
        )
    if trajectories.frames < 2:
        raise SplatopError(f"expected at least two frames, got {trajectories.frames}")
    inside = mask
    if isinstance(mask, str):
        if mask.lower() != NAN:
            raise SplatopError(f"expected mask as an array, or 'nan', got '{mask}'")
        inside = np.isfinite(trajectories.states(0, 0, 1)[0]).all(axis=0)
    told = Told(boundary, sampling, periodic or None, drop_end, sides, corner, shape, inside)
    cut = shape is not None or inside is not None  # then NaN outside of the shape is none
    for index in range(0 if cut else trajectories.trajectories):
        trajectories.window(index, 0, trajectories.frames)  # refuses what is not finite
    trajectories = with_inputs(trajectories, inputs)
    check_drop(drop_end, inputs)
    trajectories = settled(trajectories, told)
    trajectories.times = told_times(
        trajectories.times, t0, dt=trajectories.dt, frames=trajectories.frames
    )
    return in_memory(trajectories)


def is_labelled(data: Any) -> bool:
    """Whether this is xarray's, told without importing it."""
    return type(data).__module__.split(".")[0] == "xarray"


def state_time(u: Any) -> float | None:
    """The time of one state in xarray, if it says one that is a number."""
    from .dimensions import LETTERS

    name = next((n for n in u.coords if LETTERS.get(str(n).lower()) == "t"), None)
    if name is None or u[name].size != 1 or u[name].dtype.kind not in "fiu":
        return None
    return float(u[name].values.reshape(()))


def clock_unit(data: Any, dt: float) -> np.timedelta64 | None:
    """How long one unit of `dt` is, if the times of xarray data are a clock's."""
    if not is_labelled(data):
        return None
    from .dimensions import LETTERS

    name = next((n for n in data.coords if LETTERS.get(str(n).lower()) == "t"), None)
    if name is None or data[name].dtype.kind not in "mM" or data[name].size < 2:
        return None
    times = data[name].values
    between = (times[-1] - times[0]) / np.timedelta64(1, "ns") / (len(times) - 1)
    return np.timedelta64(round(between / dt), "ns")


def from_array(
    data: Any,
    *,
    dt: float | None,
    lengths: float | Sequence[float] | None,
    origin: float | Sequence[float] | None = None,
    fields: Sequence[str],
) -> ArrayTrajectories:
    """Trajectories of an array `(B, T, C, *N)` or `(T, C, *N)`; complex fields become two each."""
    array = np.asarray(data)
    parts = is_complex(array.dtype, "the array", _SOURCE)
    fields = whole_names(fields) if parts else tuple(fields)
    dims = _dims(array.shape, lengths, len(fields))
    if not 1 <= dims <= 3 or array.ndim not in (dims + 2, dims + 3):
        raise SplatopError(
            f"expected an array (B, T, C, *N) or (T, C, *N) with {dims} axes of space, got shape "
            f"{array.shape}: add the missing axes, for example u[:, None] for one channel"
        )
    given = need(as_lengths(lengths, dims), "the lengths of the box", "give lengths", _SOURCE)
    step = need(dt, "the time between frames", "give dt", _SOURCE)
    array = array[None] if array.ndim == dims + 2 else array
    if array.shape[2] != len(fields):
        raise SplatopError(
            f"expected {len(fields)} channel(s), {', '.join(fields)}, got {array.shape[2]} in an "
            f"array of shape {np.shape(data)}, read as ([B,] T, C, *N): name the fields in their "
            "order, or move the channel axis"
        )
    if parts:
        array, fields = real_array(array, fields, axis=2, source=_SOURCE)
    grid = Grid(tuple(array.shape[3:]), given, as_origin(origin, dims) or ())
    about = {"source": _SOURCE, "format": "array"}
    return ArrayTrajectories(array, grid, dt=step, fields=fields, attributes=about)


def _dims(shape: tuple[int, ...], lengths: float | Sequence[float] | None, channels: int) -> int:
    """Axes of space: as many as lengths, or what the shape leaves no doubt about: there are as many
    channels as fields, and more than one frame."""
    rank = len(shape)
    if rank < 3:
        raise SplatopError(
            f"expected an array (B, T, C, *N) or (T, C, *N), got shape {shape}: if its axes are "
            "time and x of one field, give data[:, None]"
        )
    if lengths is not None and not isinstance(lengths, int | float):
        return len(lengths)
    if lengths is None or rank in (3, 6):
        return rank - 2 if rank == 3 else rank - 3
    few, many = (shape[2] == channels and shape[1] > 1), (shape[1] == channels and shape[0] > 1)
    if few != many:
        return rank - 3 if few else rank - 2
    sides = [(float(lengths),) * dims for dims in (rank - 3, rank - 2)]
    raise SplatopError(
        f"expected one length for each axis of space, got {lengths:g} for all: the shape {shape} "
        f"can be (B, T, C, *N) or (T, C, *N): give lengths={sides[0]} or {sides[1]}"
    )


def _from_labelled(
    data: Any,
    dt: float | None,
    lengths: float | Sequence[float] | None,
    origin: Sequence[float] | None,
    fields: Sequence[str] | None,
    default_fields: Sequence[str],
) -> Trajectories:
    # xarray brings pandas, a second of import that arrays do without.
    import xarray as xr

    from .dimensions import LETTERS
    from .labelled import LabelledTrajectories

    if isinstance(data, xr.DataArray):
        stacked = any(LETTERS.get(str(dim).lower()) == "c" for dim in data.dims)
        name = data.name or default_fields[0]
        if stacked:
            fields = fields or _unlabelled(data, default_fields)
        elif fields is not None:
            name = fields[0]
        data = data.to_dataset(name=name)
    opened = LabelledTrajectories(
        data, fields=fields, lengths=lengths, dt=dt, origin=origin, source=_SOURCE
    )
    return real_fields(opened)


def _unlabelled(data: Any, names: Sequence[str]) -> Sequence[str] | None:
    """Names for channels that have no labels of their own."""
    from .dimensions import LETTERS

    channel = next(dim for dim in data.dims if LETTERS.get(str(dim).lower()) == "c")
    labelled = channel in data.coords and data.coords[channel].dtype.kind in "UOST"
    return None if labelled or data.sizes[channel] != len(names) else names

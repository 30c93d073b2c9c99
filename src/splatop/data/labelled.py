"""Reading NetCDF and Zarr through xarray, by the names of their dimensions."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

from ..errors import SplatopError
from ..grid import Grid
from .axes import (
    SPATIAL,
    as_lengths,
    as_origin,
    choose_fields,
    common_shape,
    component_names,
    first_coordinate,
    is_complex,
    mean_spacing,
    name_channels,
    need,
    parse_axes,
    to_standard,
)
from .dimensions import LETTERS, check_straight, ended, proposal
from .hdf5 import groups_of
from .stated import Stated
from .times import frame_times
from .trajectories import Constant, Trajectories, checked_metadata

_LISTED = 8  # variables in a message


@dataclass(frozen=True)
class _Variable:
    """A variable over time and space, one letter for each of its dimensions."""

    data: xr.DataArray
    axes: str

    @property
    def shape(self) -> dict[str, int]:
        return dict(zip(self.axes, self.data.shape, strict=True))

    def dimension(self, letter: str) -> str:
        return str(self.data.dims[self.axes.index(letter)])

    def coordinate(self, letter: str) -> xr.DataArray | None:
        """The stored coordinate; xarray itself would make up 0, 1, 2, ... for a missing one."""
        name = self.dimension(letter)
        return self.data.coords[name] if name in self.data.coords else None  # noqa: SIM401


class LabelledTrajectories(Trajectories):
    """Variables of an open xarray data set; a window reads only what it covers."""

    def __init__(
        self,
        data: xr.Dataset,
        *,
        axes: str | None = None,
        fields: Sequence[str] | None = None,
        lengths: float | Sequence[float] | None = None,
        dt: float | None = None,
        origin: float | Sequence[float] | None = None,
        source: str,
    ):
        self._data = data
        states = _states(data, axes, fields, source)
        channels = _channels(states, fields, source)
        self.fields = tuple(channels)
        self._variables = list({id(held): held for held, _ in channels.values()}.values())
        # Where each field lies among all channels of the variables, which are read as they are.
        before = np.cumsum([0, *(held.shape.get("c", 1) for held in self._variables)])
        numbers = {id(held): int(n) for held, n in zip(self._variables, before, strict=False)}
        self._picked = [numbers[id(held)] + index for held, index in channels.values()]
        self.complex_fields = tuple(
            name
            for name, (held, _) in channels.items()
            if is_complex(held.data.dtype, f"'{held.data.name}'", source)
        )
        first = self._variables[0]
        letters = sorted(set(first.axes) - {"c"})
        common_shape(
            {str(v.data.name): tuple(v.shape.get(k, 1) for k in letters) for v in self._variables},
            source,
        )
        spatial = [letter for letter in SPATIAL if letter in first.axes]
        _check_places(self._variables, spatial, source)
        points = tuple(first.shape[letter] for letter in spatial)
        self.trajectories, self.frames = first.shape.get("b", 1), first.shape["t"]
        given = as_lengths(lengths, len(spatial))
        self.grid = Grid(
            points,
            given or tuple(_length(first, k, source) for k in spatial),
            as_origin(origin, len(spatial)) or tuple(_origin(first, k) for k in spatial),
        )
        if dt is None:
            stamps = _along(first, "t", "the time step (--dt)", source)
            dt, self.times = frame_times(stamps, source=source, name=first.dimension("t"))
        self.dt, self.fields, self.coefficients = checked_metadata(
            (self.trajectories, self.frames, len(self.fields), *points),
            dt,
            self.fields,
            _coefficients(data, first, self.trajectories),
        )
        self.coordinates = {
            k: along.values for k in spatial if (along := first.coordinate(k)) is not None
        }
        stated = data.attrs.get("boundary_conditions")
        self.stated = Stated(
            text=None if stated is None else str(stated),
            others=tuple(name for name in states if name not in self.fields),
            ended={k: why for k in self.coordinates if (why := ended(first.dimension(k), k))},
        )
        self.static = _static(data, first)
        self.attributes = {"source": source, "format": "xarray"}
        units = data[first.dimension("t")].attrs.get("units") if self.times is not None else None
        if isinstance(units, str):
            self.attributes["clock"] = units

    def read(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        parts = []
        for variable in self._variables:
            where: dict[str, int | slice] = {variable.dimension("t"): slice(start, start + frames)}
            if "b" in variable.axes:
                where[variable.dimension("b")] = trajectory
            block = variable.data.isel(where).values
            parts.append(to_standard(block, variable.axes.replace("b", "")))
        whole = np.concatenate(parts, axis=1)
        return whole if self._picked == [*range(whole.shape[1])] else whole[:, self._picked]

    def close(self) -> None:
        self._data.close()


def open_labelled(path: Path) -> xr.Dataset:
    """The file with numbers as they are stored: times in the file's own unit."""
    try:
        if path.is_dir():
            return xr.open_zarr(path, chunks=None, decode_times=False, consolidated=False)
        data = xr.open_dataset(path, decode_times=False)
        groups = [] if data.data_vars or path.is_dir() else groups_of(path)
        if len(groups) == 1:
            data = xr.open_dataset(path, decode_times=False, group=groups[0])
        elif groups:
            raise SplatopError(
                f"{path.name}: expected variables, got the groups {', '.join(groups[:6])}: take "
                f"one, in Python xarray.open_dataset(path, group='{groups[0]}').to_netcdf('one.nc')"
            )
        unnamed = "__xarray_dataarray_variable__"  # what xarray calls an array without a name
        return data.rename({unnamed: "u"}) if unnamed in data else data
    except SplatopError:
        raise
    except (ValueError, OSError, KeyError) as error:
        if isinstance(error, PermissionError):
            raise
        raise SplatopError(
            f"expected NetCDF or Zarr that xarray can open, {path} is not ({error}): "
            "copy or write it again"
        ) from error


def _check_places(variables: Sequence[_Variable], spatial: Sequence[str], source: str) -> None:
    """Refuse fields that lie on different points, as those of staggered grids do."""
    first = variables[0]
    for other in variables[1:]:
        for letter in spatial:
            ours, theirs = first.coordinate(letter), other.coordinate(letter)
            if ours is None or theirs is None or ours.shape != theirs.shape:
                continue
            if not np.allclose(ours.values, theirs.values, rtol=1e-5):
                raise SplatopError(
                    f"{source}: expected fields at the same points, got {first.data.name} along "
                    f"{ours.name} from {ours.values[0]:g} and {other.data.name} along "
                    f"{theirs.name} from {theirs.values[0]:g}, a staggered grid: interpolate them "
                    f"to the same points first, or read one of them (--fields {first.data.name})"
                )


def _states(
    data: xr.Dataset, axes: str | None, fields: Sequence[str] | None, source: str
) -> dict[str, _Variable]:
    found = {}
    for name, stored in data.data_vars.items():
        known = {dim: LETTERS.get(str(dim).lower(), "?") for dim in stored.dims}
        single = [d for d, k in known.items() if stored.sizes[d] == 1 and (axes or k == "?")]
        # A dimension of one value, such as a level, is none, unless it was named.
        keep = axes is not None and stored.ndim == len(axes)
        variable = stored if keep else stored.squeeze(single, drop=True)
        letters = [known[dim] for dim in variable.dims]
        if axes is not None:
            letters = list(axes) if variable.ndim == len(axes) else []
        if "t" in letters and "x" in letters and "?" not in letters:
            order = parse_axes("".join(letters), variable.ndim, source=source)
            found[str(name)] = _Variable(variable, order)
    if not found:
        asked = {name: data[name] for name in fields or () if name in data.data_vars}
        if asked:
            data = data[list(asked)]
        held = dict(list(data.data_vars.items())[:_LISTED])
        listed = ", ".join(f"{name} ({', '.join(map(str, v.dims))})" for name, v in held.items())
        raise SplatopError(
            f"{source}: expected variables over the dimensions time and x (and trajectory, "
            f"channel, y, z), got {listed or 'none'}: rename them, or give their order "
            f"({proposal(data)})"
        )
    return found


def _channels(
    states: dict[str, _Variable], fields: Sequence[str] | None, source: str
) -> dict[str, tuple[_Variable, int]]:
    """The variable and the channel of each field.

    The channels of the only variable are chosen by their labels, or named by the user where it has
    no such labels; those of several, or of one that is asked for by its name, are its components.
    """
    (name, only), *others = states.items()
    if "c" in only.axes and not others and list(fields or ()) != [name]:
        along = only.coordinate("c")
        if along is not None and along.dtype.kind in "UOST":
            labels = [str(label) for label in along.values]
            if fields is None or any(one in labels for one in fields):
                return {one: (only, labels.index(one)) for one in choose_fields(fields, labels)}
        names = name_channels(fields, only.shape["c"], source)
        return {one: (only, index) for index, one in enumerate(names)}
    found = {}
    for name, variable in states.items():
        dims = len(set(variable.axes) & set(SPATIAL))
        for index, one in enumerate(component_names(name, variable.shape.get("c", 1), dims)):
            found[one] = (variable, index)
    # A variable with numbered channels is asked for by its name as well.
    numbered = {
        name: [one for one, (held, _) in found.items() if held is variable]
        for name, variable in states.items()
    }
    wanted = [one for name in fields or () for one in numbered.get(name, [name])]
    return {one: found[one] for one in choose_fields(wanted or None, found)}


def _static(data: xr.Dataset, state: _Variable) -> dict[str, Constant]:
    """Variables over the same space that do not change in time."""
    space = [state.dimension(letter) for letter in SPATIAL if letter in state.axes]
    batch = state.dimension("b") if "b" in state.axes else None
    components = state.dimension("c") if "c" in state.axes else None
    allowed = {*space, batch, components}
    found: dict[str, Constant] = {}
    for name, variable in data.data_vars.items():
        dims = list(map(str, variable.dims))
        if not set(space) <= set(dims) <= allowed or variable.dtype.kind not in "buif":
            continue
        count = variable.sizes[components] if components in dims else 1
        for index, one in enumerate(component_names(str(name), count, len(space))):
            found[one] = _constant(variable, space, batch, components, index)
    return found


def _constant(
    variable: xr.DataArray,
    space: list[str],
    batch: str | None,
    components: str | None,
    index: int,
) -> Constant:
    def values(trajectory: int) -> np.ndarray:
        where = {batch: trajectory, components: index}
        where = {dim: at for dim, at in where.items() if dim in variable.dims}
        return variable.isel(where).transpose(*space).values.astype(np.float32)

    return values


def _along(variable: _Variable, letter: str, what: str, source: str) -> np.ndarray:
    """The coordinates along an axis, as numbers."""
    name = variable.dimension(letter)
    along = variable.coordinate(letter)
    if along is None and letter in SPATIAL:
        check_straight(variable.data, letter, name, source)
    along = need(along, f"coordinates along '{name}'", f"give {what}", source)
    values = along.values
    if letter == "t" and values.dtype.kind in "mM":  # clock times are in seconds
        values = (values - values[0]) / np.timedelta64(1, "s")
    if not np.issubdtype(values.dtype, np.number):
        raise SplatopError(f"{source}: expected numbers along '{name}', got {along.dtype}")
    return values


def _origin(variable: _Variable, letter: str) -> float:
    along = variable.coordinate(letter)
    return first_coordinate(None if along is None else along.values, variable.shape[letter])


def _length(variable: _Variable, letter: str, source: str) -> float:
    values = _along(variable, letter, "the lengths (--lengths)", source)
    spacing = mean_spacing(values, variable.dimension(letter), source=source)
    return variable.shape[letter] * spacing


def _coefficients(
    data: xr.Dataset, state: _Variable, trajectories: int
) -> dict[str, np.ndarray | float]:
    """Numbers without dimension, or with one value per trajectory."""
    batch = (state.dimension("b"),) if "b" in state.axes else ()
    return {
        str(name): np.broadcast_to(np.asarray(variable.values, float), (trajectories,))
        for name, variable in data.data_vars.items()
        if variable.dims in ((), batch)
        and np.issubdtype(variable.dtype, np.number)
        and not np.issubdtype(variable.dtype, np.complexfloating)
    }

"""Where tables come from: text, Parquet, NetCDF, folders of these, pandas, xarray."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ..data.clocks import with_moments
from ..data.probes import is_probes
from ..data.table_file import is_crossed, is_table, read_table
from ..errors import SplatopError

# What a column of the names of stations may be called, and that of values which have no name.
SENSORS = (
    *("sensor", "station", "id", "station_id", "sensor_id", "stationid", "channel", "probe"),
    *("sonde", "site", "float", "buoy", "platform", "site_no", "location_id"),
    *("platform_number", "monitoringlocationid", "thermocouple"),
)
VALUE = "value"
FORM = (
    "columns t, x[, y, z], field, value[, sigma, sensor], or t, x[, y, z] and one column for each "
    "field"
)


def table_of(source: Any, names: Iterable[str] = ()) -> tuple[Any, str]:
    """A pandas table, and what to call it; `names` are of fields that are looked for."""
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        if isinstance(source.index, pd.DatetimeIndex) and source.index.name is None:
            source = source.rename_axis("time")
        named = [name for name in source.index.names if name is not None]
        whole = source.reset_index(named) if named else source
        return with_moments(whole.reset_index(drop=True), "the table"), "the table"
    if hasattr(source, "to_dataframe"):  # xarray
        return _labelled(source, names), "the data set"
    if isinstance(source, str | Path):
        path = Path(source)
        return _folder(path, names) if path.is_dir() else _file(path, names)
    raise SplatopError(
        "expected observations as a file, a pandas table, xarray or splatop.Observations, got "
        f"{type(source).__name__}"
    )


def _folder(path: Path, names: Iterable[str]) -> tuple[Any, str]:
    """All tables of a folder, each of the sensor that the file is called after."""
    import pandas as pd

    parts = []
    for one in sorted(path.iterdir()):
        if one.is_file() and not one.name.startswith("."):
            table = _file(one, names)[0]
            known = {str(column).strip().lower() for column in table.columns}
            who = {} if known & {*SENSORS} else {"sensor": one.name.split(".")[0]}
            parts.append(table.assign(**who))
    if not parts:
        raise SplatopError(f"expected tables of observations in {path}, got an empty folder")
    return pd.concat(parts, ignore_index=True), path.name


def _file(path: Path, names: Iterable[str] = ()) -> tuple[Any, str]:
    import pandas as pd

    if not path.is_file():
        raise SplatopError(f"expected a file of observations, got {path}, which is not there")
    kind = path.suffix.lower()
    try:
        if is_table(path) or is_probes(path):
            table = read_table(path)
            crossed = is_table(path) and is_crossed(path)  # whose values have no name
            return table.rename(columns={"u": VALUE} if crossed else {}), path.name
        if kind in (".nc", ".nc4", ".cdf"):
            import xarray as xr

            with xr.open_dataset(path) as opened:
                return _labelled(opened.load(), names), path.name
    except ImportError as error:
        raise SplatopError(
            f"expected pyarrow to read {path.name}, got none ({error}): pip install pyarrow, or "
            "write the table as CSV"
        ) from error
    except (OSError, ValueError, pd.errors.ParserError, csv.Error) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SplatopError(
            f"expected a table of observations in {path}, which cannot be read ({first}): {FORM}"
        ) from error
    raise SplatopError(
        f"expected observations as .csv, .parquet or .nc, got {path.name}: write the table in one "
        "of these"
    )


def _labelled(source: Any, names: Iterable[str] = ()) -> Any:
    """A data set or array as a pandas table; of variables over different dimensions those that are
    called as one of `names`, if any is, and what stands along their dimensions."""
    if not hasattr(source, "data_vars"):
        source = source.to_dataset(name="u" if source.name is None else source.name)
    source = _joined(source)
    source = source.drop_vars([n for n, v in source.data_vars.items() if v.ndim == 0])
    fields = [name for name in source.data_vars if name in set(names)] or [*source.data_vars]
    most = max((source[name].dims for name in fields), key=len, default=())
    other = [n for n in fields if not {*source[n].dims} <= {*most}]
    if other:
        one = next(n for n in fields if source[n].dims == most)
        raise SplatopError(
            f"expected variables over the same dimensions, got {one} over {', '.join(most)} and "
            f"{other[0]} over {', '.join(source[other[0]].dims)}: give one of them, such as "
            f"data[['{one}']], or name it by --columns u={one}"
        )
    away = [name for name, held in source.variables.items() if not {*held.dims} <= {*most}]
    source = source.drop_vars(away)
    counters = [dim for dim in most if dim not in source.coords and dim != "station"]
    return source.to_dataframe().reset_index().drop(columns=counters, errors="ignore")


def _joined(source: Any) -> Any:
    """Ragged arrays of the CF conventions, where each report names its station by number, or each
    station says how many reports follow each other: every report with what its station has."""
    for name, held in source.variables.items():
        along = held.attrs.get("sample_dimension")
        if along in source.dims and held.ndim == 1:
            station = held.dims[0]
            number = np.repeat(np.arange(held.size), np.asarray(held.values, int))
            return _spread(source.drop_vars(name), station, along, number)
        station = held.attrs.get("instance_dimension")
        if station in source.dims and held.ndim == 1:
            number = np.asarray(held.values, int)
            return _spread(source.drop_vars(name), station, held.dims[0], number)
    return source


def _spread(source: Any, station: str, along: str, number: np.ndarray) -> Any:
    if len(number) != source.sizes[along] or number.min() < 0:
        raise SplatopError(
            f"expected a station for each of {source.sizes[along]} reports along {along}, got "
            f"{len(number)}"
        )
    if number.max() >= source.sizes[station]:
        raise SplatopError(
            f"expected numbers of stations below {source.sizes[station]}, got {number.max()}: they "
            "count from 0"
        )
    import xarray as xr

    index = xr.DataArray(number, dims=along)
    made = {n: v.isel({station: index}) for n, v in source.variables.items() if station in v.dims}
    rest = source.drop_dims(station)
    rest = rest.assign({n: (along, np.asarray(v.values)) for n, v in made.items()})
    return rest if "station" in made else rest.assign(station=(along, number))

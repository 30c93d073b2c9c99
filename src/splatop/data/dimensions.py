"""What dimensions of NetCDF and Zarr are called, and what is said where names do not tell."""

import xarray as xr

from ..errors import SplatopError
from .axes import SPATIAL

# Names that leave no doubt. Others are named by the user, with `axes`.
LETTERS = {
    **dict.fromkeys(("b", "batch", "trajectory", "sample", "member", "ensemble"), "b"),
    **dict.fromkeys(("t", "time"), "t"),
    **dict.fromkeys(("c", "channel", "component"), "c"),
    **{letter: letter for letter in SPATIAL},
}
# Names that say what a dimension is, but on a sphere: the user has to say that it is flat.
_LIKE = {
    **dict.fromkeys(("lon", "longitude", "xc", "i", "west_east", "xlon"), "x"),
    **dict.fromkeys(("lat", "latitude", "yc", "j", "south_north", "ylat"), "y"),
    **dict.fromkeys(("level", "lev", "depth", "height", "altitude", "pressure_level"), "z"),
    **dict.fromkeys(
        ("valid_time", "ocean_time", "xtime", "date", "datetime", "step", "frame", "month", "day"),
        "t",
    ),
    **dict.fromkeys(("number", "realization", "run", "sim", "simulation", "case"), "b"),
    **dict.fromkeys(("variable", "var", "field", "quantity", "species"), "c"),
}


# Beginnings of names of axes that have two ends, and what such an axis is.
_ENDED = {
    **dict.fromkeys(("lat", "south_north", "ylat"), "latitude"),
    **dict.fromkeys(("lev", "depth", "height", "altitude", "pressure"), "height or depth"),
}


# What the dimensions of a variable may be, where names do not tell.
_ORDERS = {2: "tx", 3: "tyx", 4: "tzyx"}


def ended(name: str, letter: str) -> str | None:
    """Why an axis of this name is no period."""
    what = next((w for begin, w in _ENDED.items() if name.lower().startswith(begin)), None)
    return None if what is None else f"and {letter} ({name}) is a {what}, which has two ends"


def proposal(data: xr.Dataset) -> str:
    """The axes to give, where names tell what the dimensions are."""
    names = {**LETTERS, **_LIKE}
    rank = 0
    for variable in data.data_vars.values():
        dims = [str(dim).lower() for dim in variable.dims if variable.sizes[dim] > 1]
        # `xh`, `x_c`, `xdim` and `tdim` begin as what they are.
        letters = "".join(names.get(dim, _begins_as(dim)) for dim in dims)
        rank = max(rank, len(dims))
        if "?" in letters or len(set(letters)) < len(letters) or not {"t", "x"} <= set(letters):
            continue
        if "z" in letters and "y" not in letters:
            letters = letters.replace("z", "y")
        round_earth = any(dim.startswith("lat") for dim in dims)
        flat = ", with degrees as lengths on a plane: far from the poles and in small parts only"
        return f"--axes {letters}{flat if round_earth else ''}"
    return f"--axes {_ORDERS.get(rank, 'btxy')}"


def _begins_as(dim: str) -> str:
    """The axis of a dimension called `xh`, `y_c` or `tdim`."""
    rest = dim[1:].removeprefix("_")
    told = dim[0] in ("t", *SPATIAL) and (len(rest) <= 1 or rest in ("dim", "axis", "grid"))
    return dim[0] if told else "?"


def check_straight(data: xr.DataArray, letter: str, name: str, source: str) -> None:
    """Refuse an axis whose places are a table over two dimensions: a grid of bent lines."""
    held = {str(k): v for k, v in data.coords.items() if v.ndim > 1 and name in v.dims}
    if held:
        listed = " and ".join(f"{k} ({', '.join(map(str, v.dims))})" for k, v in held.items())
        raise SplatopError(
            f"{source}: expected one coordinate for each point along '{name}', got {listed}, the "
            "places of a curved grid: interpolate to even points first, as with scipy's griddata; "
            f"or give --lengths to read {letter} as if its lines were straight and even"
        )

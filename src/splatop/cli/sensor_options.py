"""Options that commands on sensors share."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import SplatopError
from .reading import NUMBER, TEXT, numbers, option, with_options

TableArgument = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="CSV, Parquet or NetCDF with t, x[, y, z], field, value[, sigma, sensor], or a column "
        "for each field, or for each station; or a folder of them.",
    ),
]
BoundaryOption = Annotated[
    str | None,
    typer.Option(help='What holds at the edges: "x: u = 0; y: periodic"; else periodic.'),
]
ShapeOption = Annotated[
    str | None,
    typer.Option(
        help='The part of the plane that is looked at: "disk(0.5, 0.5, 0.4)", "box - disk(0.4, '
        '0.5, 0.15)", or a mesh file; --boundary then names its edges.'
    ),
]
LengthsOption = Annotated[str | None, typer.Option(help="Sides of the box: 1 or 1,2.")]
PointsOption = Annotated[
    str | None, typer.Option(help="Grid that states are written on: 64 or 64,32.")
]
OriginOption = Annotated[str | None, typer.Option(help="Where the axes begin, else 0.")]
HoldOutOption = Annotated[
    float, typer.Option(help="Share of sensors to keep back and predict instead.")
]
OutOption = Annotated[
    Path | None, typer.Option(help="The file to write: HDF5, or NetCDF if it ends in .nc.")
]
PriorOption = Annotated[
    str | None,
    typer.Option(
        help="A file of states such as are expected; climate: those that the equation itself ends "
        "in; else a benchmark's own, or smooth ones."
    ),
]

# The options that say how a table is to be read, which a command gets as its argument `how`.
_TABLE: dict[str, tuple[Any, Any]] = {
    "columns": option(
        TEXT, "What columns are called in the table: t=date,x=lon,y=lat,u=temperature."
    ),
    "time_unit": option(
        str, "What moments (dates) are counted in: s, min, h, day or year.", default="s"
    ),
    "places": option(
        Path | None, "A table of where stations are, if TABLE only names them: name,x[,y,z]."
    ),
}
reads_a_table = with_options("how", _TABLE)

# Points along one axis: more are a mistake.
_MOST = 10**6

# The options that state equation, box and grid, which a command gets as its argument `setting`.
Setting = dict[str, Any]
_SETTING: dict[str, tuple[Any, Any]] = {
    "model": option(TEXT, "A shipped model or benchmark, a run folder, or a .safetensors file."),
    "equation": option(TEXT, 'Instead: such as "dt(u) = -v*dx(u) + D*lap(u)".'),
    "boundary": (BoundaryOption, None),
    "coefficients": option(TEXT, "Of the equation: v=0.1,D=1e-3."),
    "lengths": (LengthsOption, None),
    "points": (PointsOption, None),
    "dt": option(NUMBER, "Time between frames."),
    "origin": (OriginOption, None),
    "shape": (ShapeOption, None),
}
takes_a_setting = with_options("setting", _SETTING)


def dynamics_of(setting: Setting) -> str:
    """The one of model and equation that was given."""
    model, equation = setting["model"], setting["equation"]
    if (model is None) == (equation is None):
        raise SplatopError(
            f"expected --model or --equation, got {'neither' if model is None else 'both'}"
        )
    if model is not None and "=" in model:
        raise SplatopError(f"expected the name or path of a model, got '{model}': use --equation")
    if equation is not None and "=" not in equation:
        raise SplatopError(f"expected an equation such as dt(u) = D*lap(u), got '{equation}'")
    return model or equation or ""


def places_of(setting: Setting) -> dict[str, Any]:
    """What says where a state lives, as `assimilate` takes it."""
    from ..equation import parse_coefficients

    coefficients = setting["coefficients"]
    return {
        "coefficients": parse_coefficients(coefficients) if coefficients else None,
        "lengths": numbers(setting["lengths"], "lengths"),
        "points": whole_numbers(setting["points"]),
        "origin": numbers(setting["origin"], "an origin"),
        **{name: setting[name] for name in ("dt", "boundary", "shape")},
    }


def whole_numbers(text: str | None) -> list[int] | None:
    """Numbers of points."""
    given = numbers(text, "points")
    if given is None:
        return None
    if not all(1 <= n < _MOST and n == int(n) for n in given):
        raise SplatopError(f"expected whole numbers of points such as 64 or 64,32, got '{text}'")
    return [int(n) for n in given]


def table_arguments(how: Setting) -> dict[str, Any]:
    """How a table is to be read, as `Observations.read` takes it: what was given."""
    given = {**how, "columns": _columns_of(how["columns"])}
    return {name: value for name, value in given.items() if value is not None}


def _columns_of(text: str | None) -> dict[str, str] | None:
    """What columns are called in a table."""
    if not text:
        return None
    pairs = [part.partition("=") for part in text.split(",")]
    if any(not (here.strip() and sign and there.strip()) for here, sign, there in pairs):
        raise SplatopError(f"expected columns such as t=date,x=lon, got '{text}'")
    return {here.strip(): there.strip() for here, _, there in pairs}


def check_folder(path: Path | None, kinds: tuple[str, ...] = ()) -> None:
    """Refuse what cannot be written before minutes of work, not after: a place that is not there, a
    name that ends in none of `kinds`."""
    if path is not None and not path.parent.is_dir():
        raise SplatopError(f"expected an existing folder, got {path.parent}: make it first")
    if path is not None and (not path.name or path.is_dir()):
        raise SplatopError(f"expected a file to write, got the folder {path}: add a file name")
    if path is not None and kinds and path.suffix.lower() not in kinds:
        raise SplatopError(f"expected a name that ends in {', '.join(kinds)}, got '{path}'")

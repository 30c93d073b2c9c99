"""Options that commands on sensors share."""

from pathlib import Path
from typing import Annotated

import typer

TableArgument = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="CSV, Parquet or NetCDF with t, x[, y, z], field, value[, sigma, sensor], or a column "
        "for each field.",
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option(help="A shipped model or benchmark, a run folder, or a .safetensors file."),
]
EquationOption = Annotated[
    str | None, typer.Option(help='Instead: such as "dt(u) = -v*dx(u) + D*lap(u)".')
]
BoundaryOption = Annotated[
    str | None,
    typer.Option(help='What holds at the edges: "x: u = 0; y: periodic"; else periodic.'),
]
CoefficientsOption = Annotated[str | None, typer.Option(help="Of the equation: v=0.1,D=1e-3.")]
LengthsOption = Annotated[str | None, typer.Option(help="Sides of the box: 1 or 1,2.")]
PointsOption = Annotated[
    str | None, typer.Option(help="Grid that states are written on: 64 or 64,32.")
]
DtOption = Annotated[float | None, typer.Option(help="Time between frames.")]
OriginOption = Annotated[str | None, typer.Option(help="Where the axes begin, else 0.")]
HoldOutOption = Annotated[
    float, typer.Option(help="Share of sensors to keep back and predict instead.")
]
OutOption = Annotated[
    Path | None, typer.Option(help="The file to write: HDF5, or NetCDF if it ends in .nc.")
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(help="What columns are called in the table: t=date,x=lon,y=lat,u=temperature."),
]
TimeUnitOption = Annotated[
    str, typer.Option(help="What moments (dates) are counted in: s, min, h, day or year.")
]
PriorOption = Annotated[
    str | None,
    typer.Option(
        help="A file of states such as are expected; climate: those that the equation itself ends "
        "in; else a benchmark's own, or smooth ones."
    ),
]

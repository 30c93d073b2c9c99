"""The command that compares times."""

from typing import Annotated

import typer
from rich.table import Table

from .app import JsonOption, app, console, print_json


@app.command()
def bench(
    json: JsonOption = False,
    only: Annotated[
        list[str] | None,
        typer.Option(help="One group, such as render, operators or memory; repeatable."),
    ] = None,
) -> None:
    """Compare the speed of the parts with their peers, side by side; only ratios mean anything."""
    from ..bench import measure

    found = measure(only)
    if json:
        print_json(found)
        return
    table = Table()
    table.add_column("what")
    table.add_column("measured", justify="right")
    for name, value in found.items():
        table.add_row(name.replace("_", " "), value if isinstance(value, str) else f"{value:.3g}")
    console.print(table)

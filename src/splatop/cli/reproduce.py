"""The command that makes the paper's tables and figures again."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ..errors import SplatopError
from .app import JsonOption, app, errors, print_json, say
from .compiled import keeps_compiled


@app.command()
@keeps_compiled
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME...", help="From --list; or tables, figures, all."),
    ] = None,
    preset: Annotated[str, typer.Option(help="paper, fast, long or smoke.")] = "fast",
    out: Annotated[Path, typer.Option(help="Folder for results and runs.")] = Path("reproduction"),
    listing: Annotated[
        bool, typer.Option("--list", help="Show every name and what it is in the paper.")
    ] = False,
    trajectories: Annotated[
        int | None, typer.Option(help="To evaluate on; else the preset's.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Of each rollout.")] = None,
    points: Annotated[int | None, typer.Option(help="Per axis of the test data.")] = None,
    json: JsonOption = False,
) -> None:
    """Make tables and figures of the paper again; what is missing is trained and evaluated."""
    if listing:
        _print_list(json)
        return
    if not names:
        raise SplatopError(
            "expected the name of a table or figure, got none: `splatop reproduce --list` shows "
            "them, `splatop reproduce all` makes every one"
        )
    from ..reproduce.making import reproduce as reproduce_items
    from ..reproduce.workshop import Size

    done = reproduce_items(
        names,
        out,
        preset=preset,
        size=Size(trajectories, steps, points),
        say=partial(say, style="dim", to=errors),
    )
    if json:
        files = {name: [str(path) for path in paths] for name, paths in done.files.items()}
        print_json({"files": files, "problems": done.problems})
    for problem in done.problems:
        errors.print(f"left out: {problem}", style="bold red", markup=False, soft_wrap=True)
    if done.problems:
        raise typer.Exit(1)


def _print_list(json: bool) -> None:
    from ..reproduce.catalogue import GROUPS, ITEMS

    if json:
        print_json(
            [
                {"name": item.name, "label": item.label, "caption": item.caption}
                for item in ITEMS.values()
            ]
        )
        return
    lines = [f"{item.name} ({item.label})\n    {item.caption}" for item in ITEMS.values()]
    for name, members in GROUPS.items():
        listed = f"{len(members)} of them" if len(members) > 4 else ", ".join(members)
        lines.append(f"{name}: {listed}")
    say("\n".join(lines))

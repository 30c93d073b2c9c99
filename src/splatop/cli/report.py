"""The command that writes a report."""

from pathlib import Path
from typing import Annotated

import typer

from .app import app, say
from .compiled import keeps_compiled
from .reading import Reading, open_data, reads_a_file


@app.command()
@reads_a_file
@keeps_compiled
def report(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Folders of evaluated runs.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="The page; else report.html in the run, or here for several runs."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Test trajectories to play; else the benchmark's own are solved again."),
    ] = None,
    trajectory: Annotated[
        int | None, typer.Option(help="Which one to play; else the median one.")
    ] = None,
    *,
    reading: Reading,
) -> None:
    """Write one HTML page about runs, complete in itself: open it from the file."""
    from ..report import write_report

    if out is None:
        out = runs[0] / "report.html" if len(runs) == 1 else Path("report.html")
    opened = None
    if data is not None:
        opened = open_data(data, reading)
    written = write_report(
        runs, out, data=opened, trajectory=trajectory, say=lambda text: say(f"{text} ...")
    )
    say(written.verdict.headline)
    say(f"wrote {written.path} ({written.path.stat().st_size / 1e6:.1f} MB)")

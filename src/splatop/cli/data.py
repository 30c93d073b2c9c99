"""Commands on files of trajectories: inspect, convert."""

import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import SplatopError
from .app import JsonOption, app, print_json, say
from .progress import progress_bar
from .reading import FileArgument, Reading, open_data, reads_a_file


@app.command()
@reads_a_file
def inspect(
    file: FileArgument,
    json: JsonOption = False,
    plot: Annotated[Path | None, typer.Option(help="Draw a few frames into this picture.")] = None,
    *,
    reading: Reading,
) -> None:
    """Say what a file holds: fields, grid, ranges, spectrum, frames that are not finite."""
    from ..data.edges import UndecidedEdges

    try:
        summary = _summary(file, reading, plot)
    except UndecidedEdges:
        # What can be said of the data without their edges comes before the question for these.
        if not json:
            with suppress(SplatopError):
                summary = _summary(file, {**reading, "boundary": "all: free"}, plot)
                _print_summary({**summary, "boundary_conditions": "not known, see below"})
        raise
    if json:
        print_json(summary)
    else:
        _print_summary(summary)


def _summary(file: Path, reading: Reading, plot: Path | None) -> dict[str, Any]:
    from .. import data

    with open_data(file, reading) as trajectories:
        with progress_bar("reading") as progress:
            summary = data.summarize(trajectories, progress=progress)
        if plot is not None:
            data.plot(trajectories, plot)
    return summary


@app.command()
@reads_a_file
def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A file of trajectories.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The HDF5 file to write.")],
    compress: Annotated[
        bool, typer.Option("--compress", help="Smaller by a sixth, slower to sample from.")
    ] = False,
    *,
    reading: Reading,
) -> None:
    """Write a file of any format that is read as HDF5 in the layout of The Well."""
    from .. import data

    check_output(out)
    started = time.perf_counter()
    with (
        open_data(source, reading) as trajectories,
        progress_bar("converting") as progress,
    ):
        data.save_trajectories(out, trajectories, compress=compress, progress=progress)
    report_written(out, started)


def check_output(out: Path) -> None:
    """Refuse a name that is not one of HDF5, before anything is computed."""
    if out.suffix.lower() not in (".h5", ".hdf5"):
        raise SplatopError(
            f"expected an output named .h5 or .hdf5, got {out}: it is written as HDF5"
        )


def report_written(out: Path, started: float) -> None:
    """One line about a file that was written since `started`."""
    from .. import data

    with data.open_trajectories(out) as written:
        shape = " x ".join(map(str, written.shape))
    size, seconds = out.stat().st_size / 1e6, time.perf_counter() - started
    say(
        f"wrote {out}: {shape} (trajectories, frames, channels, points), "
        f"{size:.1f} MB in {seconds:.1f} s"
    )


def _times(times: dict[str, Any] | None) -> str:
    if times is None:
        return ""
    words = f", from t = {times['first']:g} to {times['last']:g}"
    if not times["even"]:
        words += f", uneven: {times['shortest']:g} to {times['longest']:g} apart"
    return words


def _print_summary(summary: dict[str, Any]) -> None:
    points = " x ".join(map(str, summary["points"]))
    grid = f"grid {points}" if "shape" not in summary else f"{points} points"
    lines = [
        f"{summary['source']} ({summary['format']}, {summary['gigabytes']:.3g} GB in float32)",
        f"  {summary['trajectories']} trajectories of {summary['frames']} frames, "
        f"dt = {summary['dt']:g}" + _times(summary["times"]),
        f"  {grid}, lengths {', '.join(f'{x:g}' for x in summary['lengths'])}, "
        f"from {', '.join(f'{x:g}' for x in summary['origin'])}, "
        f"boundary {summary['boundary_conditions']}",
    ]
    if "shape" in summary:
        held = summary["shape"]
        lines.append(
            f"  shape {held['text']}, area {held['area']:.4g}, edges {', '.join(held['edges'])}, "
            f"known by {held['known_by']}"
        )
    if summary["sampling"]:
        lines.append(f"  points of bounded axes: {summary['sampling']}")
    for name, values in summary["coefficients"].items():
        lines.append(f"  coefficient {name}: {_interval(values)}")
    for name, values in summary["ranges"].items():
        text = "no finite value"
        if values:
            text = f"{_interval(values)}, mean {values['mean']:.3g}, std {values['std']:.3g}"
        lines.append(f"  field {name}: {text}")
    spectrum = summary["spectrum"]
    holds = ", ".join(f"{float(s):.6g} up to {k}" for s, k in spectrum["holds"].items())
    if holds:
        unit = f" (waves in {spectrum['box']:g}, fields mirrored)" if summary["sampling"] else ""
        lines.append(f"  energy without mean, share up to wavenumber{unit}: {holds}")
    if spectrum["tail"] is not None:
        lines.append(f"  energy at the highest wavenumbers: {spectrum['tail']:.1e} of the largest")
    bad = summary["not_finite"]
    lines.append(f"  NaN or infinite: {bad['frames'] or 'none'}")
    lines += [
        f"    trajectory {w['trajectory']}, step {w['step']}, {w['field']}" for w in bad["first"]
    ]
    lines += [f"  {name}: {value}" for name, value in summary["attributes"].items()]
    say("\n".join(lines))


def _interval(values: dict[str, float | None]) -> str:
    low, high = values["min"], values["max"]
    if low is None or high is None:
        return "not finite"
    return f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"

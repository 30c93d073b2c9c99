"""Commands on sensors: assimilate, reconstruct, place."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import SplatopError
from .app import JsonOption, app, console, numbers_table, print_json, say, show
from .compiled import keeps_compiled
from .progress import progress_bar
from .reading import numbers, unknown_of
from .sensor_options import (
    BoundaryOption,
    HoldOutOption,
    LengthsOption,
    OriginOption,
    OutOption,
    PointsOption,
    PriorOption,
    Setting,
    ShapeOption,
    TableArgument,
    check_folder,
    dynamics_of,
    places_of,
    reads_a_table,
    table_arguments,
    takes_a_setting,
    whole_numbers,
)


@app.command()
@takes_a_setting
@reads_a_table
@keeps_compiled
def assimilate(
    table: TableArgument,
    setting: Setting,
    how: Setting,
    unknown: Annotated[
        str | None,
        typer.Option(help="Coefficients to estimate: D, or from a value on: v=0.5,D=1e-3."),
    ] = None,
    forecast: Annotated[int, typer.Option(help="Frames to predict after the last report.")] = 0,
    window: Annotated[
        int | None,
        typer.Option(help="Frames analysed at a time; else all of up to 60, of more 40 each."),
    ] = None,
    begin: Annotated[
        float | None, typer.Option(help="Time of the first frame; else of the first report.")
    ] = None,
    prior: PriorOption = None,
    model_error: Annotated[
        str | None,
        typer.Option(
            help="How wrong the model is in each frame, as a share of the field's spread: 0.01, or "
            "auto; else it counts as exact."
        ),
    ] = None,
    spread: Annotated[
        str, typer.Option(help="Uncertainty by laplace, ensemble (slower) or none.")
    ] = "laplace",
    samples: Annotated[
        int | None, typer.Option(help="Samples that standard deviations are computed from.")
    ] = None,
    hold_out: HoldOutOption = 0.0,
    seed: Annotated[int, typer.Option(help="Of what is held out, and of samples.")] = 0,
    out: OutOption = None,
    report: Annotated[Path | None, typer.Option(help="An HTML page about it.")] = None,
    json: JsonOption = False,
) -> None:
    """Find the state of a field, now and ahead, from a table of measurements."""
    from ..assimilate import assimilate as find

    if forecast < 0:
        raise SplatopError(f"expected frames to predict, got --forecast {forecast}")
    names, starts = unknown_of(unknown)
    check_folder(out)
    check_folder(report, (".html", ".htm"))
    started = time.perf_counter()
    with progress_bar("assimilating") as bar:
        found = find(
            table,
            dynamics_of(setting),
            **places_of(setting),
            unknown=starts or names,
            begin=begin,
            window=window,
            prior=prior,
            model_error=model_error,
            spread=spread,
            samples=samples,
            hold_out=hold_out,
            **table_arguments(how),
            seed=seed,
            keep=None if out is None else out.with_name(f".{out.name}.unfinished.npz"),
            report=lambda p: bar(p.step, p.step + 3),
            sampled=lambda done, total: bar(done, total),
            say=(lambda _: None) if json else say,
        )
        content: dict[str, Any] = found.as_dict()
        if out is not None:
            found.save(out, forecast=forecast)
            content["out"] = str(out)
        if report is not None:
            from ..report.sensors import write_sensor_report

            write_sensor_report(found, report, forecast=forecast)
            content["report"] = str(report)
    content["seconds"] = time.perf_counter() - started
    if json:
        print_json(content)
    else:
        _show(content)


@app.command()
@reads_a_table
def reconstruct(
    table: TableArgument,
    how: Setting,
    boundary: BoundaryOption = None,
    lengths: LengthsOption = None,
    points: PointsOption = None,
    origin: OriginOption = None,
    shape: ShapeOption = None,
    hold_out: HoldOutOption = 0.0,
    seed: Annotated[int, typer.Option(help="Of what is held out.")] = 0,
    out: OutOption = None,
    json: JsonOption = False,
) -> None:
    """Fields from a table of measurements without an equation, one time at a time."""
    from ..assimilate import reconstruct as find

    check_folder(out)
    found = find(
        table,
        points=whole_numbers(points) or 64,
        lengths=numbers(lengths, "lengths"),
        origin=numbers(origin, "an origin"),
        boundary=boundary,
        shape=shape,
        hold_out=hold_out,
        **table_arguments(how),
        seed=seed,
    )
    content = found.as_dict()
    if out is not None:
        found.frames.save(out)
        content["out"] = str(out)
    if json:
        print_json(content)
        return
    shown = numbers_table("field", "noise", "spread", "length")
    for name, one in found.smoothness.items():
        shown.add_row(name, f"{one.noise:.3g}", f"{one.spread:.3g}", f"{one.length:.3g}")
    show(shown)
    say(f"{content['observations']} reports at {content['times']} times")
    _held_out(content["held_out"])
    for text in content["warnings"]:
        say(f"warning: {text}")
    if out is not None:
        say(f"wrote {out}")


@app.command()
@takes_a_setting
@keeps_compiled
def place(
    sensors: Annotated[int, typer.Option(help="How many to place.")],
    setting: Setting,
    frames: Annotated[int, typer.Option(help="Frames over which they report.")] = 10,
    noise: Annotated[
        float, typer.Option(help="Of a report, as a share of the field's spread.")
    ] = 0.01,
    candidates: Annotated[
        Path | None, typer.Option(help="A table of places x[, y, z]; else the grid's points.")
    ] = None,
    prior: PriorOption = None,
    length: Annotated[
        float | None, typer.Option(help="Correlation length of a smooth prior, without --prior.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="A CSV of the places to write.")] = None,
    picture: Annotated[Path | None, typer.Option(help="A PNG or SVG of the map to write.")] = None,
    json: JsonOption = False,
) -> None:
    """Choose the places of sensors that tell most of the state."""
    from ..assimilate import place as choose

    check_folder(out)
    check_folder(picture, (".png", ".svg", ".pdf"))
    with progress_bar("placing") as bar:
        found = choose(
            dynamics_of(setting),
            sensors=sensors,
            frames=frames,
            noise=noise,
            candidates=candidates,
            prior=prior,
            length=length,
            progress=bar,
            **places_of(setting),
        )
    if out is not None:
        from ..data.atomic import write_whole

        names = "xyz"[: found.places.shape[1]]
        rows = [",".join(names), *(",".join(f"{v:.9g}" for v in p) for p in found.places)]
        write_whole(out, "\n".join(rows) + "\n")
    if picture is not None:
        from ..report.sensor_pictures import write_placement_picture

        write_placement_picture(found, picture)
    if json:
        print_json(found.as_dict())
        return
    shown = numbers_table("sensor", *"xyz"[: found.places.shape[1]], "expected std")
    shown.add_row("none", *[""] * found.places.shape[1], f"{found.expected[0]:.4g}")
    for number, (where, std) in enumerate(zip(found.places, found.expected[1:], strict=True)):
        shown.add_row(str(number + 1), *(f"{v:.4g}" for v in where), f"{std:.4g}")
    show(shown)
    say(f"expected before measuring: {found.prior}")
    for path in (out, picture):
        if path is not None:
            say(f"wrote {path}")


def _show(content: dict[str, Any]) -> None:
    if not content["trusted"]:
        console.print("not trusted: read the warnings before you use this state")
    ratio = content["twice_cost_over_observations"]
    say(
        f"{content['observations']} reports of {content['sensors']} sensors over "
        f"{content['frames']} frames from t = {content['begin']:.12g} to {content['end']:.12g}: "
        f"{content['unknowns']} unknowns in {content['steps']} steps, {content['seconds']:.1f} s"
    )
    shown_ratio = "not finite" if ratio is None else f"{ratio:.3g}"
    say(f"twice the cost over the reports: {shown_ratio} (expected: 1)")
    if content["model_error"] is not None:
        say(f"model error: {content['model_error']:.2g} of the field's spread in each frame")
    for name, value in content["noise"].items():
        say(f"noise of {name}, estimated: {value:.3g}")
    if content["estimates"]:
        shown = numbers_table("coefficient", "value", "std", "low", "high")
        for name, one in content["estimates"].items():
            told = (one[key] for key in ("value", "std", "low", "high"))
            shown.add_row(name, *("not known" if v is None else f"{v:.6g}" for v in told))
        show(shown)
    _held_out(content["held_out"])
    for text in content["warnings"]:
        say(f"warning: {text}")
    for key in ("out", "report"):
        if key in content:
            say(f"wrote {content[key]}")


def _held_out(score: dict[str, Any] | None) -> None:
    if score is None:
        return
    covered = score["covered"]
    say(
        f"held out: {score['reports']} reports, error {score['error']:.3g} of their spread"
        + ("" if covered is None else f", {100 * covered:.0f} % within two standard deviations")
    )

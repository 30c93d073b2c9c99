"""`splatop identify`: coefficients of an equation from a file of trajectories."""

import math
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from ..errors import SplatopError, finite, unknown_name
from .app import JsonOption, app, console, print_json, say, show
from .compiled import keeps_compiled
from .progress import progress_bar
from .reading import (
    FileArgument,
    FirstTrajectoriesOption,
    NoiseOption,
    NoiseSeedOption,
    Reading,
    open_data,
    reads_a_file,
    unknown_of,
)

if TYPE_CHECKING:
    from ..data import Trajectories
    from ..equation import Equation
else:
    Trajectories = Equation = Any

_ROWS = 30


@app.command()
@reads_a_file
@keeps_compiled
def identify(
    file: FileArgument,
    equation: Annotated[
        str | None,
        typer.Option(
            metavar="EQUATION|BENCHMARK",
            help='Such as "dt(u) = -v*dx(u) + D*lap(u)", or a benchmark; else the file\'s own.',
        ),
    ] = None,
    unknown: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Coefficients to identify: v,D, or with values to start from: v=0.5,D=1e-3; "
            "else all not known.",
        ),
    ] = None,
    known: Annotated[str | None, typer.Option(help="Values that are known: D=2e-6,r=1.")] = None,
    frames: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|all",
            help="So many successive frames of each trajectory, or all; else frames spread over "
            "it, as many as the budget allows.",
        ),
    ] = None,
    budget: Annotated[
        float, typer.Option(help="About so many seconds, on two cores, for all trajectories.")
    ] = 30.0,
    method: Annotated[str, typer.Option(help="auto, paper, flow, weak or trajectory.")] = "auto",
    trajectories: FirstTrajectoriesOption = None,
    noise: NoiseOption = 0.0,
    seed: NoiseSeedOption = 0,
    json: JsonOption = False,
    *,
    reading: Reading,
) -> None:
    """Identify coefficients from frames, with 95 % intervals and whether to trust them."""
    from ..equation import has_unknown, parse_coefficients
    from ..identify import chosen_frames, identify_trajectories, told_once

    with open_data(file, reading) as opened:
        wanted, starts = unknown_of(unknown)
        names = wanted if unknown else None
        count = frames_option(frames)
        data = selected(opened, trajectories, noise=(noise, seed))
        given: dict[str, Any] = dict(parse_coefficients(known)) if known else {}
        if equation is not None and has_unknown(equation):
            equation = _found(equation, data, given, quiet=json)
        chosen = _equation(equation, opened, names or ())
        if names is not None:
            rest = (n for n in chosen.coefficient_names if n not in names and n not in given)
            given.update({n: data.coefficients[n] for n in rest if n in data.coefficients})
        begin, length = chosen_frames(data, count, budget=budget, method=method)
        used = len(begin) * length
        if not json:
            # Pieces of equal length may leave a frame each.
            some = used + len(begin) <= data.frames
            spread = f", spread over it (a budget of {budget:g} s; --frames all takes them all)"
            say(
                f"using {used} of {data.frames} frames of each trajectory"
                + (spread if some and count is None else "")
            )
        started = time.perf_counter()
        with progress_bar("identifying") as progress:
            found = identify_trajectories(
                chosen,
                None,
                data,
                frames=count,
                budget=budget,
                unknown=starts or names,
                known=given,
                method=method,
                progress=progress,
            )
        seconds = time.perf_counter() - started
    summary = _summary(found, data)
    if json:
        about = {"file": file.name, "frames": used, "start": reading["start"] or 0, "dt": data.dt}
        print_json({**about, "noise": noise, "seconds": seconds, **summary})
    else:
        _print(summary, seconds, told_once(found))


def _found(text: str, data: Trajectories, known: dict[str, Any], *, quiet: bool) -> str:
    """The equation with what `?` stands for, which is looked for first."""
    from ..discover import discover

    with progress_bar("looking for terms") as progress:
        found = discover(data, text, known=known, progress=progress)
    if not found.coefficients and not known:
        raise SplatopError(
            "expected the name of a coefficient in the equation besides ?, got none: `splatop "
            f"discover` finds all of it, here {found.equation}"
        )
    if not quiet:
        lines = [f"? stands for: {found.named}"]
        if not found.trusted:
            lines.append("which is not trusted: run `splatop discover` and read its warnings")
        say("\n".join(lines))
    return found.named


def frames_option(text: str | None) -> int | str | None:
    """A number of frames, "all", or nothing."""
    if text is None or text == "all":
        return text
    try:
        return int(text)
    except ValueError:
        raise SplatopError(f"expected a number of frames or 'all', got {text!r}") from None


def _equation(text: str | None, data: Trajectories, unknown: tuple[str, ...]) -> Equation:
    from ..benchmarks import BENCHMARKS
    from ..equation import parse_equation

    if text is None:
        text = str(data.attributes.get("benchmark", "") or data.attributes.get("equation", ""))
        if not text:
            raise SplatopError(
                f"expected an equation, {data.source} does not name one: give --equation"
            )
    if text in BENCHMARKS:
        equation, dims = BENCHMARKS[text].equation, len(BENCHMARKS[text].lengths)
        if (dims, len(equation.fields)) != (data.grid.dims, len(data.fields)):
            raise SplatopError(
                f"expected data of {text}, {dims}D with {', '.join(equation.fields)}, got "
                f"{data.grid.dims}D with {', '.join(data.fields)} in {data.source}: give the "
                "equation of these (--equation)"
            )
        return equation
    if "=" not in text:
        raise unknown_name("benchmark", text, BENCHMARKS)
    return parse_equation(
        text, dims=data.grid.dims, fields=data.fields, unknown=unknown, inputs=data.inputs
    )


def selected(data: Trajectories, count: int | None, *, noise: tuple[float, int]) -> Trajectories:
    """The data itself, or a copy of some trajectories with noise added."""
    import numpy as np

    from ..data import ArrayTrajectories
    from ..data.split import part
    from ..identify import add_noise

    level, seed = noise
    if not 0 <= level < math.inf:
        raise SplatopError(f"expected a noise level of 0 or more, got {level:g}")
    if not level and count is None:
        return data
    count = data.trajectories if count is None else count
    if not 1 <= count <= data.trajectories:
        raise SplatopError(
            f"expected 1 to {data.trajectories} trajectories, which {data.source} has, got {count}"
        )
    chosen = part(
        data, slice(count), which=f"the first {count} of {data.trajectories} trajectories"
    )
    if not level:
        return chosen

    def noisy(whole: Trajectories) -> Trajectories:
        windows = (whole.window(i, 0, whole.frames) for i in range(count))
        frames = [add_noise(w, level, (seed, i)) for i, w in enumerate(windows)]
        return ArrayTrajectories.of(whole, np.stack(frames))

    return chosen.made_of(noisy)


def _summary(found: list, data: Trajectories) -> dict[str, Any]:
    """Estimates, intervals and errors, in the form of the JSON."""
    import numpy as np

    rows, diagnostics = [], []
    for index, one in enumerate(found):
        true = data.trajectory_coefficients(index)
        rows.append(
            {
                name: {
                    "estimate": finite(value),
                    "low": finite(one.intervals[name][0]),
                    "high": finite(one.intervals[name][1]),
                    "standard_error": finite(one.standard_errors[name]),
                    "true": true.get(name),
                }
                for name, value in one.estimates.items()
            }
        )
        diagnostics.append(
            {
                "method": one.method,
                "trusted": one.trusted,
                "frames": one.frames,
                "relative_residual": finite(one.relative_residual),
                "noise_level": finite(one.noise_level),
                "condition_number": finite(one.condition_number),
                "warnings": list(one.warnings),
            }
        )
    summary: dict[str, Any] = {
        "trusted": all(one.trusted for one in found),
        "trajectories": rows,
        "mean_relative_error": {},
        "coverage": {},
    }
    for name in found[0].estimates:
        if name in data.coefficients:
            truths = [data.trajectory_coefficients(i) for i in range(len(found))]
            errors = [one.relative_errors(t) for one, t in zip(found, truths, strict=True)]
            if all(name in e for e in errors):
                summary["mean_relative_error"][name] = float(np.mean([e[name] for e in errors]))
            covered = [one.covers(t)[name] for one, t in zip(found, truths, strict=True)]
            summary["coverage"][name] = float(np.mean(covered))
    return {**summary, "diagnostics": diagnostics}


def _print(summary: dict[str, Any], seconds: float, warnings: list[str]) -> None:
    rows = summary["trajectories"]
    table = Table("no.", "name", title="95 % intervals", box=None)
    for title in ("estimate", "low", "high", "true", "error"):
        table.add_column(title, justify="right", no_wrap=True)
    for index, row in enumerate(rows[:_ROWS]):
        for name, cell in row.items():
            values = (cell[key] for key in ("estimate", "low", "high", "true"))
            shown = ("" if v is None else f"{v:.6g}" for v in values)
            error = abs(cell["estimate"] / cell["true"] - 1) if cell["true"] else None
            table.add_row(str(index), name, *shown, "" if error is None else f"{100 * error:.3g} %")
    show(table)
    if len(rows) > _ROWS:
        console.print(f"... and {len(rows) - _ROWS} more (all of them with --json)")
    methods = ", ".join(sorted({d["method"] for d in summary["diagnostics"]}))
    many = "1 trajectory" if len(rows) == 1 else f"{len(rows)} trajectories"
    lines = [f"{many} by the {methods} method in {seconds:.1f} s"]
    for name, error in summary["mean_relative_error"].items():
        cover = summary["coverage"][name]
        lines.append(
            f"{name}: mean error {100 * error:.3g} %, {100 * cover:.0f} % of intervals cover"
        )
    doubted = sum(not d["trusted"] for d in summary["diagnostics"])
    if doubted:
        which = "" if doubted == len(rows) == 1 else f" ({doubted} of {len(rows)} trajectories)"
        lines.insert(0, f"not trusted{which}: read the warnings before you use these numbers")
    lines += [f"warning {text}" for text in warnings]
    say("\n".join(lines))

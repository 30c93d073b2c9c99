"""`splatop discover`: the terms of an equation from a file of trajectories."""

import time
from typing import Annotated, Any

import typer
from rich.table import Table

from .app import JsonOption, app, console, print_json, say, show
from .identify import frames_option, selected
from .progress import progress_bar
from .reading import (
    FileArgument,
    FirstTrajectoriesOption,
    NoiseOption,
    NoiseSeedOption,
    Reading,
    open_data,
    reads_a_file,
)


@app.command()
@reads_a_file
def discover(
    file: FileArgument,
    equation: Annotated[
        str | None,
        typer.Option(
            help='With ? for what is not known: "dt(u) = ?", "dt(u) = D*lap(u) + ?(u)"; else '
            "nothing is known of any field.",
        ),
    ] = None,
    terms: Annotated[
        str | None,
        typer.Option(help='Candidates: "u, u^2, u*dx(u)"; else products up to --degree.'),
    ] = None,
    symmetry: Annotated[
        str,
        typer.Option(help="What terms must respect: rotation, mirror, galilei, conservation."),
    ] = "",
    velocity: Annotated[
        str | None,
        typer.Option(
            help="Fields that are the components of a velocity: u,v; they turn with axes."
        ),
    ] = None,
    degree: Annotated[int, typer.Option(help="Factors of a product, at most.")] = 3,
    order: Annotated[
        int | None, typer.Option(help="Derivatives in a product, at most; else 4, on a shape 2.")
    ] = None,
    known: Annotated[str | None, typer.Option(help="Values that are known: D=2e-6,r=1.")] = None,
    frames: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|all",
            help="So many successive frames of each trajectory, or all; else spread over it, as "
            "many as needed.",
        ),
    ] = None,
    budget: Annotated[
        float,
        typer.Option(help="About so many seconds, on two cores, to refine coefficients; 0: not."),
    ] = 10.0,
    trajectories: FirstTrajectoriesOption = None,
    noise: NoiseOption = 0.0,
    seed: NoiseSeedOption = 0,
    json: JsonOption = False,
    *,
    reading: Reading,
) -> None:
    """Find the terms of an equation, with coefficients, evidence and whether to trust them."""
    from ..discover import discover as find
    from ..equation import parse_coefficients

    with open_data(file, reading) as opened:
        data = selected(opened, trajectories, noise=(noise, seed))
        text = equation or "; ".join(f"dt({field}) = ?" for field in data.fields)
        started = time.perf_counter()
        with progress_bar("looking for terms") as progress:
            found = find(
                data,
                text,
                known=parse_coefficients(known) if known else None,
                terms=terms,
                symmetry=symmetry,
                velocity=None if velocity is None else [v.strip() for v in velocity.split(",")],
                degree=degree,
                order=order,
                frames=frames_option(frames),
                budget=budget,
                progress=progress,
            )
        seconds = time.perf_counter() - started
    if json:
        about = {"file": file.name, "question": text, "dt": data.dt, "noise": noise}
        print_json({**about, "seconds": seconds, **found.as_dict()})
    else:
        _print(found, seconds)


def _print(found: Any, seconds: float) -> None:
    from ..discover.discovered import SHOWN

    if not found.trusted:
        console.print("not trusted: read the warnings before you use this equation")
    say(found.equation)
    table = Table("term", title="95 % intervals", box=None)
    for title in ("coefficient", "low", "high", "error without it", "chosen"):
        table.add_column(title, justify="right", no_wrap=True)
    for term in found.terms:
        numbers = (f"{value:.6g}" for value in (term.coefficient, term.low, term.high))
        name = term.text if term.name is None else f"{term.name}: {term.text}"
        table.add_row(name, *numbers, f"{term.without:.2g}", f"{100 * term.support:.0f} %")
    show(table)
    lines = [
        f"{len(found.terms)} of {found.candidates} candidates, {found.frames} frames, by the "
        f"{found.method} method in {seconds:.1f} s; the equation leaves "
        f"{found.relative_residual:.2g} of the change, noise is {found.noise_level:.2g} of the "
        "fields"
    ]
    lines += [f"left out: {one}" for one in found.left_out[:SHOWN]]
    lines += [f"not excluded: {text}" for text in found.alternatives]
    lines += [f"warning: {text}" for text in found.warnings]
    say("\n".join(lines))

"""The command that says what a model will cost, before anything is run."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ..errors import SplatopError
from .app import JsonOption, app, console, print_json

_MOST = 1_000_000  # of anything that is counted


@app.command()
def estimate(
    what: Annotated[str, typer.Argument(help="A run folder, a model, or a benchmark.")],
    points: Annotated[
        list[int] | None, typer.Option(help="Per axis; repeatable, for one row each.")
    ] = None,
    anchors: Annotated[int | None, typer.Option(help="Gaussians per axis.")] = None,
    substeps: Annotated[int | None, typer.Option(help="Of the physics, per frame.")] = None,
    hidden: Annotated[int | None, typer.Option(help="Hidden channels of the operator.")] = None,
    modes: Annotated[int | None, typer.Option(help="Modes per axis of the operator.")] = None,
    batch: Annotated[int, typer.Option(help="Windows in a training step.")] = 20,
    horizon: Annotated[int, typer.Option(help="Steps of each window's rollout.")] = 5,
    devices: Annotated[int, typer.Option(help="That share a training step.")] = 1,
    seeds: Annotated[int | None, typer.Option(help="Members of an ensemble.")] = None,
    json: JsonOption = False,
) -> None:
    """Estimate operations and memory of a step and of a training step (docs/scaling.md)."""
    from ..estimate import estimate as estimated
    from ..numerics import with_anchors

    numbers = {"anchors": anchors, "substeps": substeps, "hidden": hidden, "modes": modes}
    numbers |= {"batch": batch, "horizon": horizon, "devices": devices, "seeds": seeds}
    for name, value in numbers.items():
        if value is not None and not 1 <= value <= _MOST:
            raise SplatopError(f"expected --{name} from 1 to {_MOST:,}, got {value}")
    spec, own = _spec(what)
    if anchors is not None and spec.numerics is not None:
        spec = replace(spec, numerics=with_anchors(spec.numerics, anchors))
    if substeps is not None and spec.numerics is not None:
        spec = replace(spec, numerics=replace(spec.numerics, substeps=substeps))
    spec = replace(
        spec,
        hidden=hidden or spec.hidden,
        modes=modes or spec.modes,
        members=spec.members if seeds is None else seeds,
    )
    grids = [(n,) * spec.dims for n in points] if points else [own]
    rows = [
        {
            "points": list(grid),
            **estimated(spec, grid, batch=batch, horizon=horizon, devices=devices).as_dict(),
        }
        for grid in grids
    ]
    if json:
        print_json(rows if len(rows) > 1 else rows[0])
        return
    table = Table(title=f"{what}: one step, and a training step of {batch} x {horizon}")
    for column in ("points", "GFLOP physics", "GFLOP operator", "MB", "GFLOP training"):
        table.add_column(column, justify="right")
    table.add_column("MB training, per device", justify="right")
    for row in rows:
        table.add_row(
            " x ".join(map(str, row["points"])),
            *(f"{row[k] / 1e9:.3g}" for k in ("physics_flops", "operator_flops")),
            f"{row['inference_bytes'] / 1e6:.3g}",
            f"{row['training_flops'] / 1e9:.3g}",
            f"{row['training_bytes_total'] / 1e6:.3g}",
        )
    console.print(table)


def _spec(what: str):
    """The description of a model, or of the one that would be trained on a benchmark."""
    from ..benchmarks import BENCHMARKS
    from ..export import grid_of
    from ..model import ModelSpec, load_model, shipped_models

    if what not in BENCHMARKS or what in shipped_models() or Path(what).exists():
        model = load_model(what)
        return model.spec, grid_of(model, None)
    import tempfile

    from ..training import PRESETS, Problem
    from ..tune import choose_numerics

    benchmark = BENCHMARKS[what]
    with tempfile.TemporaryDirectory() as scratch:
        loaded = Problem(benchmark=what).load(PRESETS["fast"], Path(scratch))
        tuned = choose_numerics(
            benchmark.equation,
            benchmark.typical_coefficients(),
            loaded.sample_frames(),
            lengths=benchmark.lengths,
            dt=benchmark.dt,
            domain=benchmark.domain,
            layout=benchmark.grid.layout,
        )
    unknown = tuple(benchmark.coefficient_ranges)
    spec = ModelSpec(
        kind="surrogate",
        equation=benchmark.equation_text,
        fields=benchmark.fields,
        lengths=benchmark.lengths,
        dt=benchmark.dt,
        numerics=tuned.numerics,
        benchmark=what,
        coefficients=dict(benchmark.coefficients),
        unknown=unknown,
        conditioned=bool(unknown),
    )
    return spec, benchmark.grid.points

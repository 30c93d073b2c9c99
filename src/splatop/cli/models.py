"""Commands on trained models: what ships with splatop, what a file holds, files for others."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from .app import JsonOption, app, console, numbers_table, print_json, say, show
from .sensor_options import whole_numbers


@app.command()
def models(json: JsonOption = False) -> None:
    """List the trained models inside the package with their scores."""
    from ..model import bounded_models, load_model, shipped_models
    from ..training.run_folder import read_json

    rows = []
    for name, path in (*shipped_models().items(), *bounded_models().items()):
        loaded = load_model(path)
        metrics = read_json(path.with_suffix(".metrics.json"))
        rows.append(
            {
                "name": name,
                **{k: metrics[k] for k in ("rl2_mean", "rl2_std", "psnr_mean", "spectral_error")},
                "params": loaded.parameters,
                "train_minutes": loaded.record.get("train_minutes"),
                "rollouts": metrics["trajectories"],
                "steps": metrics["steps"],
            }
        )
    if json:
        print_json(rows)
        return
    if not rows:
        console.print("this installation carries no trained models: train one with splatop train")
        return
    table = numbers_table("name", "rL2", "tests", "PSNR", "params", "minutes")
    for row in rows:
        table.add_row(
            row["name"],
            f"{row['rl2_mean']:.1e} ± {row['rl2_std']:.0e}",
            f"{row['rollouts']}x{row['steps']}",
            f"{row['psnr_mean']:.1f}",
            f"{row['params']:,}" if row["params"] else "physics",
            f"{row['train_minutes']:.1f}",
        )
    show(table)
    say(
        "rL2: relative error, mean and deviation over the tests (held-out rollouts x steps); "
        "PSNR in dB; params: of the operator (physics: a model without one); minutes: of training "
        "on two CPU cores.\n"
        "To use one: splatop rollout NAME --data FILE --out FILE",
        style="dim",
    )


@app.command()
def info(
    model: Annotated[
        str, typer.Argument(help="A run folder, a .safetensors file, a name, or an export.")
    ],
    json: JsonOption = False,
) -> None:
    """Show what a file holds: a model, or a function that was exported from one."""
    from ..export import is_export, read_export
    from ..model import load_model

    if is_export(model):
        export = read_export(model)
        content: dict[str, Any] = {
            "export": export.description,
            "bytes": len(export.function),
        }
    else:
        loaded = load_model(model)
        content = {
            "spec": loaded.spec.as_dict(),
            "record": dict(loaded.record),
            "parameters": loaded.parameters,
        }
    if json:
        print_json(content)
        return
    table = Table(show_header=False)
    for name, value in content.items():
        if isinstance(value, dict):
            for key, held in value.items():
                table.add_row(key, str(held))
        else:
            table.add_row(name, f"{value:,}")
    console.print(table)


@app.command()
def export(
    model: Annotated[str, typer.Argument(help="A run folder, a .safetensors file or a name.")],
    *,
    out: Annotated[Path, typer.Option("--out", help="The file to write.")],
    format: Annotated[
        str, typer.Option(help="stablehlo (jax.export's bytes) or saved (an archive with all).")
    ] = "stablehlo",
    steps: Annotated[int, typer.Option(help="Frames that one call predicts.")] = 1,
    points: Annotated[
        str | None, typer.Option(help="Per axis, 64 or 64,32; else those of the training.")
    ] = None,
    platforms: Annotated[
        str, typer.Option(help="What it shall run on: cpu, cuda, rocm, tpu.")
    ] = "cpu,cuda,tpu",
) -> None:
    """Write a model as a function of a batch of states that needs JAX and flatbuffers alone."""
    from ..export import export_model, save_export
    from ..model import load_model

    loaded = load_model(model)
    grid = whole_numbers(points)
    exported = export_model(
        loaded,
        points=grid[0] if grid and len(grid) == 1 else grid,
        steps=steps,
        platforms=[part.strip() for part in platforms.split(",") if part.strip()],
    )
    written = save_export(out, exported, loaded, format=format)
    shape = " x ".join(map(str, exported.description["output"]["shape"]))
    say(
        f"wrote {' and '.join(map(str, written))} ({out.stat().st_size / 1e6:.2f} MB): "
        f"returns {shape}"
    )

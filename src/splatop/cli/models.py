"""Commands on trained models: what ships with splatop, and what a file holds."""

from typing import Annotated

import typer
from rich.table import Table

from .app import JsonOption, app, console, print_json


@app.command()
def models(json: JsonOption = False) -> None:
    """List the trained models inside the package with their scores."""
    from ..model import load_model, shipped_models
    from ..training.run_folder import read_json

    rows = []
    for name, path in shipped_models().items():
        loaded = load_model(path)
        metrics = read_json(path.with_suffix(".metrics.json"))
        rows.append(
            {
                "name": name,
                **{k: metrics[k] for k in ("rl2_mean", "rl2_std", "psnr_mean", "spectral_error")},
                "params": loaded.parameters,
                "train_minutes": loaded.record.get("train_minutes"),
            }
        )
    if json:
        print_json(rows)
        return
    if not rows:
        console.print("this installation carries no trained models: train one with splatop train")
        return
    table = Table(title="Trained models (splatop rollout NAME --data FILE --out FILE)")
    for column in ("name", "rL2", "PSNR dB", "spectral error", "parameters", "minutes to train"):
        table.add_column(column, justify="left" if column == "name" else "right")
    for row in rows:
        table.add_row(
            row["name"],
            f"{row['rl2_mean']:.2e} ± {row['rl2_std']:.0e}",
            f"{row['psnr_mean']:.1f}",
            f"{row['spectral_error']:.1e}",
            f"{row['params']:,}",
            f"{row['train_minutes']:.1f}",
        )
    console.print(table)


@app.command()
def info(
    model: Annotated[str, typer.Argument(help="A run folder, a .safetensors file or a name.")],
    json: JsonOption = False,
) -> None:
    """Show what a model file holds."""
    from ..model import load_model

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
    for part in ("spec", "record"):
        for key, value in content[part].items():
            table.add_row(key, str(value))
    table.add_row("parameters", f"{loaded.parameters:,}")
    console.print(table)

"""The main job in a few minutes: data, a surrogate and an FNO, held-out rollouts, a report."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from .app import app, console
from .compiled import keeps_compiled

BENCHMARK = "burgers2d"
# Reduced Burgers: 64² points, 32 trajectories; the same data, loss, batch and about as many
# minutes. The FNO has everything to learn: more steps than a tiny residual asks for.
SIZE = {"points": 64, "trajectories": 32, "batch": 10}
STEPS = {"surrogate": 100, "fno": 1000}
TEST_TRAJECTORIES = 6
TEST_STEPS = 200


@app.command()
@keeps_compiled
def demo(
    out: Annotated[Path, typer.Option(help="The folder to write.")] = Path("demo"),
) -> None:
    """Train a surrogate and an FNO on reduced Burgers, compare them over 200 steps, report."""
    from ..benchmarks import get_benchmark
    from ..evaluate import ReferenceTrajectories, evaluate_all, save_metrics
    from ..model import load_model
    from ..report import write_report
    from ..training import Problem, preset, train
    from .data import progress_bar
    from .evaluate import print_metrics
    from .train import TrainingProgress

    base = replace(preset("smoke", BENCHMARK), data_steps=None, **SIZE)
    runs = {name: out / name for name in STEPS}
    for name, folder in runs.items():
        if (folder / "model.safetensors").exists():
            console.print(f"{name}: trained before, in {folder}", highlight=False)
            continue
        console.rule(f"training: {name}")
        steps = STEPS[name]
        settings = replace(base, model=name, phases=((0, steps),), warmup=steps // 8)
        with TrainingProgress() as progress:
            trained = train(
                folder,
                Problem(benchmark=BENCHMARK),
                settings,
                resume=(folder / "config.json").exists(),
                report=progress,
                say=progress.say,
            )
        console.print(trained.record["summary"], markup=False, highlight=False, soft_wrap=True)
    console.rule(f"{TEST_TRAJECTORIES} held-out trajectories, {TEST_STEPS} steps")
    models = {name: load_model(folder) for name, folder in runs.items()}
    tests = ReferenceTrajectories(
        get_benchmark(BENCHMARK),
        trajectories=TEST_TRAJECTORIES,
        steps=TEST_STEPS,
        points=SIZE["points"],
    )
    with progress_bar("evaluating") as progress:
        found = evaluate_all(
            models, tests, steps=TEST_STEPS, also=("cost", "physics alone"), progress=progress
        )
    for name, metrics in found.items():
        save_metrics(runs[name] / "metrics.json", metrics)
    print_metrics(list(found.values()))
    written = write_report(list(runs.values()), out / "report.html")
    console.print(written.verdict.headline, highlight=False, markup=False)
    console.print(f"report: {written.path}", highlight=False)

"""The command that measures models: evaluate, with ablations that need no training."""

import json as json_module
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import SplatopError
from .app import JsonOption, app, errors, numbers_table, print_json, say, show
from .compiled import keeps_compiled
from .progress import progress_bar
from .reading import Reading, open_data, reads_a_file


@app.command()
@reads_a_file
@keeps_compiled
def evaluate(
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="MODEL...", help="Run folders, .safetensors files or names."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Trajectories to test on; else the benchmark's test split, or what the run held "
            "out of its own data."
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Of each rollout; else 200, or as many as the data have.")
    ] = None,
    trajectories: Annotated[int | None, typer.Option(help="How many; else all.")] = None,
    points: Annotated[
        int | None, typer.Option(help="Per axis of the generated test split; else the paper's.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the generated test split.")] = 0,
    without: Annotated[
        str | None, typer.Option(help="Ablation: operator, physics or filter.")
    ] = None,
    jets: Annotated[
        str | None, typer.Option(help="Derivatives from: splat, spectral or finite-difference.")
    ] = None,
    anchors: Annotated[int | None, typer.Option(help="Gaussians per axis.")] = None,
    window: Annotated[
        int | None, typer.Option(help="Render locally, in cells to each side.")
    ] = None,
    cutoff: Annotated[float | None, typer.Option(help="Of the filter, cycles per length.")] = None,
    coupling: Annotated[
        str | None, typer.Option(help="Of physics and operator: parallel, sequential or rhs.")
    ] = None,
    substeps: Annotated[int | None, typer.Option(help="Of the physics, per frame.")] = None,
    physics: Annotated[bool, typer.Option(help="Measure the physics alone beside.")] = True,
    representation: Annotated[
        bool, typer.Option("--representation", help="Measure the Gaussians, too.")
    ] = False,
    solvers: Annotated[
        bool | None,
        typer.Option(
            help="Compare accuracy and cost with solvers of the equation on several grids; else "
            "for coarse models on boxes."
        ),
    ] = None,
    shipped: Annotated[
        bool,
        typer.Option("--shipped", help="Every model of the package, beside what was recorded."),
    ] = False,
    json: JsonOption = False,
    out: Annotated[Path | None, typer.Option(help="Write the metrics here as well.")] = None,
    *,
    reading: Reading,
) -> None:
    """Roll models out over held-out trajectories and compare them with the reference.

    Each run folder gets a metrics.json; an ablation gets a file of its own beside it.
    """
    from ..evaluate import check_comparable, evaluate_all, save_metrics
    from ..evaluate.ablations import Ablation, ablate
    from ..evaluate.evaluation import STEPS, seen_by
    from ..evaluate.test_set import load_models, test_set

    if shipped == bool(models):
        raise SplatopError(
            "expected models to evaluate, or --shipped for all that come with splatop, got "
            + ("both" if shipped else "neither")
        )
    if shipped:
        _evaluate_shipped(trajectories, json=json, out=out)
        return
    assert models
    ablation = Ablation(without, jets, anchors, window, cutoff, coupling, substeps)
    loaded = {name: ablate(m, ablation) for name, m in load_models(models).items()}
    also = ["cost", *(["physics alone"] if physics else [])]
    also += ["representation"] if representation else []
    if solvers is None:
        solvers = any(m.spec.coarse and m.spec.answers == "given" for m in loaded.values())
    also += ["solvers"] if solvers else []
    source = None
    if data is not None:
        opened = open_data(data, reading)
        source = data, opened
    with (
        test_set(
            models,
            loaded,
            source,
            steps=steps,
            trajectories=trajectories,
            points=points,
            seed=seed,
            warn=lambda text: say(text, style="yellow", to=errors),
        ) as tests,
        progress_bar("evaluating") as progress,
    ):
        tests = seen_by(loaded, tests)
        steps = min(STEPS, tests.frames - 1) if steps is None else steps
        found = evaluate_all(loaded, tests, steps=steps, also=also, progress=progress)
    if ablation.label is not None:
        found = {
            name: replace(m, model={**m.model, "ablation": ablation.label})
            for name, m in found.items()
        }
    results = list(found.values())
    check_comparable(results)
    for path, metrics in zip(models, results, strict=True):
        if Path(path).is_dir():
            save_metrics(Path(path) / ablation.metrics_file, metrics)
    content = [metrics.as_dict() for metrics in results]
    shown = content[0] if len(content) == 1 else content
    _write(out, shown)
    if json:
        print_json(shown)
    else:
        print_metrics(results)


def _write(out: Path | None, shown: Any) -> None:
    from ..data.atomic import write_whole

    if out is not None:
        write_whole(out, json_module.dumps(shown, indent=1, allow_nan=False) + "\n")


def _evaluate_shipped(trajectories: int | None, *, json: bool, out: Path | None) -> None:
    """Freshly generated test data for every shipped model: measured now, recorded, published."""
    from ..evaluate.published import published_rollout
    from ..evaluate.shipped import remeasure
    from ..evaluate.written import plain
    from ..model import bounded_models, shipped_models

    several = []
    for name in (*shipped_models(), *bounded_models()):
        with progress_bar(name) as progress:
            several.append(remeasure(name, trajectories=trajectories, progress=progress))
    content = [one.found.as_dict() for one in several]
    _write(out, content)
    if json:
        print_json(content)
        return
    table = numbers_table(
        "model", "rL2, now", "rL2, recorded", "physics alone, now", "paper, published"
    )
    for one in several:
        paper = published_rollout(one.name).get("surrogate")
        alone = one.found.physics_alone
        table.add_row(
            one.name,
            plain(one.found.rl2_mean),
            plain(one.recorded_rl2),
            plain(alone.rl2_mean) if alone else "",
            plain(paper.rl2[0]) if paper else "",
        )
    show(table)


def print_metrics(several: list) -> None:
    """A table of the measured models (`Metrics`), each surrogate with its physics, and the
    published ones."""
    from ..evaluate.metrics_tables import (
        PUBLISHED,
        ROLLOUT_COLUMNS,
        protocol_note,
        published_row,
        rollout_row,
        with_physics_alone,
    )
    from ..evaluate.published import published_rollout

    table = numbers_table(*ROLLOUT_COLUMNS)
    for metrics in with_physics_alone(several):
        table.add_row(*rollout_row(metrics), style=None if metrics in several else "dim")
    published = published_rollout(several[0].benchmark)
    if published:
        table.add_section()
    for row in published.values():
        table.add_row(*published_row(row), style="italic cyan")
    show(table)
    say(protocol_note(several), style="dim")
    if published:
        say(PUBLISHED, style="dim")
    print_tradeoff(several[0])
    for metrics in several:
        if metrics.horizon is not None and metrics.horizon < metrics.steps:
            step = metrics.data["dt"]
            say(
                f"{metrics.name}: the error passes 0.3 standard deviations after "
                f"{metrics.horizon} steps (a time of {metrics.horizon * step:g})"
            )
        errors = metrics.coefficients.get("relative_error", {})
        if errors:
            listed = ", ".join(f"{name} {error:.3%}" for name, error in errors.items())
            say(f"{metrics.name}: identified coefficients, mean relative error {listed}")


def print_tradeoff(metrics: Any) -> None:
    """Accuracy and cost of all contestants, the cheapest first, and how each model stands."""
    from ..evaluate.tradeoff import from_json, verdicts
    from ..evaluate.written import plain

    if not metrics.tradeoff:
        return
    rows = from_json(metrics.tradeoff)
    table = numbers_table("Accuracy and cost", "ms", "rL2", "holds", "correlated")
    for one in sorted(rows, key=lambda one: one.cost):
        ends = [
            f"{time:.3g}" if time < one.length else "to the end"
            for time in (one.horizon, one.correlation)
        ]
        style = None if one.role == "model" else "dim"
        rl2 = "diverged" if one.rl2 is None else plain(one.rl2)
        table.add_row(one.name, f"{one.cost:.3g}", rl2, *ends, style=style)
    show(table)
    say(
        "ms: for a unit of simulated time. holds: the time until the error passes 0.3 standard "
        "deviations. correlated: the time until the correlation falls below 0.9.",
        style="dim",
    )
    for verdict in verdicts(rows):
        say(str(verdict))

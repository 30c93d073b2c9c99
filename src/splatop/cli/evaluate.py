"""The command that measures models: evaluate, with ablations that need no training."""

import contextlib
import json as json_module
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ..benchmarks import get_benchmark
from ..data import Trajectories
from ..data.atomic import write_whole
from ..errors import SplatopError
from ..evaluate import Metrics, ReferenceTrajectories, check_comparable, evaluate_all, save_metrics
from ..evaluate.ablations import Ablation, ablate
from ..evaluate.evaluation import STEPS
from ..evaluate.published import published_rollout
from ..evaluate.reference import SomeTrajectories
from ..evaluate.shipped import remeasure
from ..evaluate.tables import (
    PUBLISHED,
    ROLLOUT_COLUMNS,
    number,
    protocol_note,
    published_row,
    rollout_row,
    with_physics_alone,
)
from ..model import Model, load_model, shipped_models
from ..training.problem import reported_data
from ..training.run_folder import CONFIG, read_json
from .app import JsonOption, app, console, errors, numbers_table, print_json
from .data import progress_bar
from .reading import Reading, open_data, reads_a_file


@app.command()
@reads_a_file
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
    loaded = {name: ablate(m, ablation) for name, m in _load(models).items()}
    also = ["cost", *(["physics alone"] if physics else [])]
    also += ["representation"] if representation else []
    source = None
    if data is not None:
        opened = open_data(data, reading)
        source = data, opened
    with (
        _test_set(models, loaded, source, steps, trajectories, points, seed) as test_set,
        progress_bar("evaluating") as progress,
    ):
        steps = min(STEPS, test_set.frames - 1) if steps is None else steps
        found = evaluate_all(loaded, test_set, steps=steps, also=also, progress=progress)
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
    if out is not None:
        write_whole(out, json_module.dumps(shown, indent=1, allow_nan=False) + "\n")


def _evaluate_shipped(trajectories: int | None, *, json: bool, out: Path | None) -> None:
    """Freshly generated test data for every shipped model: measured now, recorded, published."""
    several = []
    for name in shipped_models():
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
            number(one.found.rl2_mean),
            number(one.recorded_rl2),
            number(alone.rl2_mean) if alone else "",
            number(paper.rl2[0]) if paper else "",
        )
    console.print(table)


def _load(paths: list[str]) -> dict[str, Model]:
    """Models by a name of their own; refused together if their benchmarks differ."""
    resolved = [Path(path).resolve() for path in paths]
    twice = [path for index, path in enumerate(paths) if resolved[index] in resolved[:index]]
    if twice:
        raise SplatopError(f"expected each model once, got '{twice[0]}' twice")
    loaded: dict[str, Model] = {}
    for path in paths:
        name = Path(path).resolve().name.removesuffix(".safetensors")
        loaded[path if name in loaded else name] = load_model(path)
    benchmarks = {name: model.spec.benchmark or "own data" for name, model in loaded.items()}
    if len(set(benchmarks.values())) > 1:
        listed = ", ".join(f"{name}: {benchmark}" for name, benchmark in benchmarks.items())
        raise SplatopError(
            f"expected models of one benchmark in one comparison, got {listed}: "
            "evaluate each benchmark by itself"
        )
    return loaded


@contextlib.contextmanager
def _test_set(
    paths: list[str],
    models: dict[str, Model],
    source: tuple[Path, Trajectories] | None,
    steps: int | None,
    trajectories: int | None,
    points: int | None,
    seed: int,
) -> Iterator[Trajectories]:
    if source is not None:
        if points is not None:
            raise SplatopError(
                "expected --points only for a generated test split, got it with --data: "
                "a file has the points it has"
            )
        file, data = source
        with data as opened:
            seen = any(_is_training_file(path, file) for path in paths)
            if seen:
                errors.print(
                    f"{file} is what the model was trained on: leave --data out to "
                    "evaluate on what was held out of it",
                    style="yellow",
                    highlight=False,
                    soft_wrap=True,
                )
            yield _first(opened, trajectories, held_out=False if seen else None)
        return
    benchmark = next(iter(models.values())).spec.benchmark
    if benchmark is None:
        if points is not None:
            raise SplatopError(
                "expected --points only for a generated test split, got it for data of your own: "
                "they have the points they have"
            )
        with _own_data(paths) as held:
            yield _first(held, trajectories, held_out=held.attributes.get("held_out"))
        return
    yield ReferenceTrajectories(
        get_benchmark(benchmark),
        trajectories=trajectories,
        steps=STEPS if steps is None else steps,
        points=points,
        seed=seed,
    )


def _own_data(paths: list[str]) -> Trajectories:
    """What the runs held out of the file that they were trained on, which must be one."""
    configs = [_config(path) for path in paths]
    found = reported_data(configs[0])
    if found is None:
        raise SplatopError(
            "expected --data for a model that was trained on data of your own, got none: "
            "give a file of test trajectories"
        )
    asked = [{k: c["problem"].get(k) for k in ("data", "hold_out")} for c in configs if c]
    if any(other != asked[0] for other in asked) or len(asked) < len(paths):
        raise SplatopError(
            "expected runs that hold out the same part of the same file, got different ones: "
            "give --data, a file that none of them was trained on"
        )
    return found


def _config(path: str) -> dict[str, Any]:
    """The configuration of a run folder; empty for a file."""
    config = Path(path) / CONFIG
    held = read_json(config) if config.exists() else {}
    return held if isinstance(held, dict) and isinstance(held.get("problem"), dict) else {}


def _is_training_file(path: str, data: Path) -> bool:
    trained_on = _config(path).get("problem", {}).get("data")
    return isinstance(trained_on, str) and Path(trained_on).resolve() == data.resolve()


def _first(data: Trajectories, count: int | None, *, held_out: bool | None) -> Trajectories:
    """The first `count` trajectories; `held_out` is whether training has not seen them."""
    some = SomeTrajectories(data, range(data.trajectories if count is None else count))
    some.attributes = {**data.attributes, "held_out": held_out}
    return some


def print_metrics(several: list[Metrics]) -> None:
    """A table of the measured models, each surrogate with its physics, and the published ones."""
    table = numbers_table(*ROLLOUT_COLUMNS)
    for metrics in with_physics_alone(several):
        table.add_row(*rollout_row(metrics), style=None if metrics in several else "dim")
    published = published_rollout(several[0].benchmark)
    if published:
        table.add_section()
    for row in published.values():
        table.add_row(*published_row(row), style="italic cyan")
    console.print(table)
    console.print(protocol_note(several), style="dim", highlight=False, soft_wrap=True)
    if published:
        console.print(PUBLISHED, style="dim", highlight=False, soft_wrap=True)
    for metrics in several:
        errors = metrics.coefficients.get("relative_error", {})
        if errors:
            listed = ", ".join(f"{name} {error:.3%}" for name, error in errors.items())
            console.print(
                f"{metrics.name}: identified coefficients, mean relative error {listed}",
                highlight=False,
                markup=False,
            )

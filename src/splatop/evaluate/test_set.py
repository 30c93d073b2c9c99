"""The trajectories that models are measured on: given, generated, or held out by the run."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..benchmarks import get_benchmark
from ..data import Trajectories
from ..errors import SplatopError
from ..model import Model, load_model
from ..training.problem import reported_data
from ..training.run_folder import CONFIG, read_json
from .evaluation import STEPS
from .on_demand import ReferenceTrajectories, SomeTrajectories


def load_models(paths: list[str]) -> dict[str, Model]:
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
def test_set(
    paths: list[str],
    models: dict[str, Model],
    source: tuple[Path, Trajectories] | None,
    *,
    steps: int | None,
    trajectories: int | None,
    points: int | None,
    seed: int,
    warn: Callable[[str], None],
) -> Iterator[Trajectories]:
    """What models are measured on: `source`, a file and what it holds; else the benchmark's test
    split, else what the runs at `paths` held out of their own data.

    `points` per axis and `seed` are those of a generated split. `warn` is told if the models were
    trained on that file.
    """
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
                warn(
                    f"{file} is what the model was trained on: leave --data out to "
                    "evaluate on what was held out of it"
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

"""Run folders as the report reads them: model, metrics, settings and history, checked."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import SplatopError
from ..evaluate.results import Metrics, check_comparable, load_metrics
from ..model import Model, load_model
from ..training.history import StageHistory, read_history
from ..training.run_folder import CONFIG, HISTORY, read_json


@dataclass(frozen=True)
class EvaluatedRun:
    """A finished and evaluated run. `label` tells it from the other runs of a report."""

    label: str
    folder: Path
    model: Model
    metrics: Metrics
    config: dict[str, Any]
    history: tuple[StageHistory, ...]

    @property
    def is_surrogate(self) -> bool:
        """Also one whose operator was left out, so that its physics is all of it."""
        left_out = self.model.record.get("operator_earned_its_place") is False
        return self.model.spec.kind == "surrogate" or left_out


@dataclass(frozen=True)
class Entry:
    """What gets a curve, a row and a picture: a run, or the physics of a surrogate alone."""

    label: str
    style: str
    model: Model
    metrics: Metrics
    run: EvaluatedRun

    @property
    def is_physics_alone(self) -> bool:
        """Whether this is a surrogate's physics without its operator."""
        return self.model is not self.run.model


def entries(runs: Sequence[EvaluatedRun]) -> list[Entry]:
    """The runs, then the physics alone of each surrogate, once where several share it."""
    found = [
        Entry(run.label, f"s{index % 6}", run.model, run.metrics, run)
        for index, run in enumerate(runs)
    ]
    apart: list[Entry] = []
    for run in runs:
        alone = run.metrics.physics_alone
        if alone is None or run.model.physics is None:
            continue
        known = [entry.metrics.rl2_curve for entry in (*found, *apart)]
        if alone.rl2_curve not in known:
            style = f"p{len(apart) % 3}"
            label = f"physics alone ({run.label})"
            apart.append(Entry(label, style, run.model.physics_only(), alone, run))
    if len(apart) == 1:
        apart = [replace(apart[0], label="physics alone")]
    return [*found, *apart]


def read_runs(folders: Sequence[str | Path | EvaluatedRun]) -> list[EvaluatedRun]:
    """Every run, refused with a reason if it is unfinished or does not belong with the others.

    A run that is at hand already stands alone.
    """
    if not folders:
        raise SplatopError("expected at least one run folder to report on, got none")
    if len(folders) == 1 and isinstance(folders[0], EvaluatedRun):
        return [folders[0]]
    paths = [Path(folder) for folder in folders]  # type: ignore[arg-type]
    twice = [str(p) for i, p in enumerate(paths) if p.resolve() in [q.resolve() for q in paths[:i]]]
    if twice:
        raise SplatopError(f"expected each run once, got {', '.join(twice)} twice")
    runs = [_read_run(path, label) for path, label in zip(paths, _labels(paths), strict=True)]
    _check_same_problem(runs)
    check_comparable(run.metrics for run in runs)
    return runs


def _read_run(folder: Path, label: str) -> EvaluatedRun:
    if not folder.exists():
        raise SplatopError(f"expected a run folder, '{folder}' does not exist")
    if not folder.is_dir():
        raise SplatopError(
            f"expected a run folder, got the file '{folder}': give the folder that it is in"
        )
    if not any(not p.name.startswith(".") for p in folder.iterdir()):
        raise SplatopError(f"expected a run in '{folder}', the folder is empty: train one first")
    model = load_model(folder)
    return EvaluatedRun(
        label=label,
        folder=folder,
        model=model,
        metrics=load_metrics(folder),
        config=_read_config(folder / CONFIG),
        history=read_history(folder / HISTORY),
    )


def _labels(paths: Sequence[Path]) -> list[str]:
    """The folders' names, with as much of the path before them as tells them apart."""
    parts = [p.resolve().parts for p in paths]
    depth = 1
    while len({p[-depth:] for p in parts}) < len(parts) and depth < max(map(len, parts)):
        depth += 1
    return ["/".join(p[-depth:]) for p in parts]


def _check_same_problem(runs: Sequence[EvaluatedRun]) -> None:
    """Models of different problems have no common picture, whatever their metrics say."""
    first = runs[0]
    for other in runs[1:]:
        a, b = first.model.spec, other.model.spec
        for what, one, two in (
            ("benchmark", a.benchmark or "a data file", b.benchmark or "a data file"),
            ("fields", a.fields, b.fields),
            ("box", a.lengths, b.lengths),
            ("time step", a.dt, b.dt),
        ):
            if one != two:
                raise SplatopError(
                    f"expected runs of the same problem in one report, got {what} {one} in "
                    f"'{first.folder}' and {two} in '{other.folder}': write one report for each"
                )


def _read_config(path: Path) -> dict[str, Any]:
    """The settings, if the run has them: a model that was copied alone has none."""
    if not path.exists():
        return {}
    config = read_json(path)
    if not isinstance(config, dict):
        raise SplatopError(
            f"expected the settings of a run in '{path}', got {type(config).__name__}"
        )
    return config

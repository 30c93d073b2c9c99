"""Metrics of one model on one test set: the value, and the `metrics.json` that holds it.

The schema is described in docs/evaluation.md. Tables, figures and the report read nothing else.
"""

import json
import math
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from .._version import __version__
from ..annotations import fits
from ..data.atomic import write_whole
from ..errors import SplatopError
from ..training.run_folder import read_json

METRICS_VERSION = 1
METRICS_FILE = "metrics.json"
# JSON names that are no names in Python.
_RENAMED = {"step_above": "step_above_0.1"}
# Fields that older files of this version do not have.
_ADDED = {"ensemble", "horizon", "tradeoff"}


@dataclass(frozen=True)
class Metrics:
    """Averages over trajectories, with what they were averaged from.

    A mean that includes a diverged rollout does not exist and is None; `diverged` says which
    trajectories and at which step. Curves run over the steps 1 to `steps`.
    """

    rl2_mean: float | None
    rl2_std: float | None
    psnr_mean: float | None
    psnr_std: float | None
    spectral_error: float | None
    rl2_curve: list[float | None]
    rl2_band: dict[str, list[float | None]]
    steps: int
    trajectories: int
    model: dict[str, Any]
    data: dict[str, Any]
    per_trajectory: dict[str, list[Any]]
    spectrum: dict[str, Any]
    correlation_time: dict[str, int | None]
    energy_drift: float | None
    step_above: int | None
    diverged: list[dict[str, int]] = field(default_factory=list)
    cost_ms_per_step: float | None = None
    coefficients: dict[str, Any] = field(default_factory=dict)
    representation: dict[str, Any] | None = None
    physics_alone: "Metrics | None" = None
    ensemble: dict[str, Any] | None = None  # its members' errors and spread
    horizon: int | None = None  # steps until the mean error passes 0.3 standard deviations
    tradeoff: list[dict[str, Any]] | None = None  # rows of `evaluate.tradeoff`
    version: int = METRICS_VERSION
    splatop_version: str = __version__

    @property
    def name(self) -> str:
        """What tables and legends call the model."""
        return str(self.model["name"])

    @property
    def benchmark(self) -> str | None:
        """The benchmark of the model; None for data of one's own."""
        return self.model.get("benchmark")

    def as_dict(self) -> dict[str, Any]:
        """The content of `metrics.json`: numbers, strings, lists and null, never NaN."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        if self.physics_alone is not None:
            values["physics_alone"] = self.physics_alone.as_dict()
        return {_RENAMED.get(name, name): _plain(value) for name, value in values.items()}

    @classmethod
    def from_dict(cls, values: Any, *, source: str = "the metrics") -> "Metrics":
        """Metrics from the content of `metrics.json`, checked field by field."""
        if not isinstance(values, Mapping) or "rl2_mean" not in values:
            raise SplatopError(
                f"expected metrics of `splatop evaluate` in {source}, got something else: "
                "evaluate the run again"
            )
        if values.get("version") != METRICS_VERSION:
            raise SplatopError(
                f"expected metrics of version {METRICS_VERSION}, got version "
                f"{values.get('version')} in {source}: evaluate the run again"
            )
        names = {_RENAMED.get(f.name, f.name): f.name for f in fields(cls)}
        wrong = sorted((set(values) ^ set(names)) - _ADDED)
        if wrong:
            raise SplatopError(
                f"expected the fields of metrics version {METRICS_VERSION} in {source}, "
                f"missing or unknown: {', '.join(wrong)}: evaluate the run again"
            )
        known = {names[key]: value for key, value in values.items()}
        if known["physics_alone"] is not None:
            known["physics_alone"] = cls.from_dict(known["physics_alone"], source=source)
        for name, kind in typing.get_type_hints(cls).items():
            if name in known and not fits(known[name], cls, name):
                raise SplatopError(
                    f"expected {kind} for {name} in {source}, got {type(known[name]).__name__}: "
                    "evaluate the run again"
                )
        return cls(**known)


def save_metrics(path: str | Path, metrics: Metrics) -> Path:
    """Write the JSON file, complete or not at all."""
    path = Path(path)
    write_whole(path, json.dumps(metrics.as_dict(), indent=1, allow_nan=False) + "\n")
    return path


def load_metrics(path: str | Path) -> Metrics:
    """Metrics from a `metrics.json`, or from the run folder that holds it."""
    path = Path(path)
    if path.is_dir():
        if not (path / METRICS_FILE).exists():
            raise SplatopError(
                f"expected an evaluated run in '{path}', got a folder without {METRICS_FILE}: "
                f"run `splatop evaluate {path}`"
            )
        path = path / METRICS_FILE
    if not path.exists():
        raise SplatopError(f"expected a run folder or a {METRICS_FILE}, got '{path}': not there")
    return Metrics.from_dict(read_json(path, ": evaluate the run again"), source=f"'{path}'")


def check_comparable(several: Iterable[Metrics]) -> None:
    """Refuse to compare metrics of different benchmarks, test sets or lengths."""
    several = list(several)
    for other in several[1:]:
        first = several[0]
        for what, a, b in (
            ("benchmark", first.benchmark, other.benchmark),
            ("number of steps", first.steps, other.steps),
            ("number of trajectories", first.trajectories, other.trajectories),
            *(
                (f"{key} of the test data", first.data.get(key), other.data.get(key))
                for key in ("points", "dt", "seed", "split", "source")
            ),
        ):
            if a != b:
                raise SplatopError(
                    f"expected runs evaluated on the same data, got {what} {_text(a)} for "
                    f"'{first.name}' and {_text(b)} for '{other.name}': compare runs of one "
                    "benchmark, evaluated with the same --data, --steps, --trajectories, --points"
                )


def measured_on(metrics: Metrics) -> str:
    """How many trajectories, and whether training has not seen them, as far as that is known."""
    count = metrics.trajectories
    many = "trajectory" if count == 1 else "trajectories"
    data = metrics.data
    held_out = data.get("held_out")
    if held_out is None and data.get("benchmark") is not None and data.get("split") == "test":
        held_out = True
    if held_out and "frames" in str(data.get("part") or ""):
        return f"{count} {many}, of which {data['part']} were held out"
    if held_out:
        return f"{count} held-out {many}"
    return f"{count} {many}" + (" that it was trained on" if held_out is False else "")


def divergence_text(metrics: Metrics) -> str:
    """What a table says in place of a mean that does not exist."""
    first = min(entry["step"] for entry in metrics.diverged)
    count, total = len(metrics.diverged), metrics.trajectories
    share = "" if total == 1 else f"{count} of {total}, "
    return f"diverged ({share}step {first})"


def _text(value: Any) -> str:
    return "unknown" if value is None else str(value)


def _plain(value: Any) -> Any:
    """The same value in types that JSON has; NaN and infinity become null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value

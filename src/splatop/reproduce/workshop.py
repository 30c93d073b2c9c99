"""The runs behind the paper's results: trained if missing, evaluated, their files kept beside."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import jax
import numpy as np

from ..benchmarks import get_benchmark
from ..errors import SplatopError
from ..evaluate.evaluation import evaluate
from ..evaluate.labels import default_name
from ..evaluate.on_demand import ReferenceTrajectories
from ..evaluate.results import Metrics, load_metrics, save_metrics
from ..model import Model, load_model
from ..training import Problem, preset, train
from ..training.run_folder import CONFIG, MODEL
from .encoding import ENCODING_FILE, Encoding, encode_frame
from .rollout_frames import FRAMES_FILE, RolloutFrames, rollout_frames

Say = Callable[[str], None]
Found = TypeVar("Found")
TRAIN_METRICS = "metrics.train.json"


@dataclass(frozen=True)
class PlannedRun:
    """A model to train on a benchmark; `settings` are those that differ from the preset."""

    benchmark: str
    kind: str = "surrogate"
    settings: Mapping[str, str] = field(default_factory=dict)
    label: str | None = None

    @property
    def name(self) -> str:
        """What tables and legends call it."""
        tenfold = self.settings.get("tenfold") == "true"
        return self.label or default_name({"kind": self.kind, "tenfold": tenfold})

    @property
    def folder(self) -> str:
        """The name of its run folder."""
        changed = [f"{key}-{value}" for key, value in sorted(self.settings.items())]
        return "-".join([self.benchmark, self.kind, *changed])


@dataclass(frozen=True)
class Size:
    """How much to evaluate; None is the benchmark's own."""

    trajectories: int | None = None
    steps: int | None = None
    points: int | None = None

    def on(self, benchmark: str) -> "Size":
        """The size for a benchmark, with nothing left open."""
        own = get_benchmark(benchmark)
        trajectories, steps = own.size("test")
        return Size(
            self.trajectories or trajectories, self.steps or steps, self.points or own.points
        )


# Smoke tests go through everything in minutes; the others follow the paper's protocol.
# In 3D a step of the paper's ResNet has to compute some ten thousand million products.
SMOKE = {2: Size(3, 24, 32), 3: Size(1, 4, 20)}
_SMOKE_SETTINGS = {
    2: {"trajectories": "4", "data_steps": "12", "phases": "0:12", "batch": "4"},
    3: {"points": "20", "data_steps": "8", "phases": "0:2", "horizon": "2"},
}


@dataclass(frozen=True)
class Workshop:
    """A folder of runs made with one preset, and how much of each is evaluated."""

    folder: Path
    preset: str
    size: Size = Size()
    say: Say = lambda _: None

    def size_of(self, benchmark: str) -> Size:
        """How much to evaluate on a benchmark."""
        if self.preset != "smoke":
            return self.size.on(benchmark)
        least = SMOKE[get_benchmark(benchmark).dims]
        chosen = Size(
            self.size.trajectories or least.trajectories,
            self.size.steps or least.steps,
            self.size.points or least.points,
        )
        return chosen.on(benchmark)

    def path(self, run: PlannedRun) -> Path:
        """The run folder of a run."""
        return self.folder / run.folder

    def model(self, run: PlannedRun) -> Model:
        """The trained model; trained now, or continued, if it is missing."""
        path = self.path(run)
        if not (path / MODEL).exists():
            settings = replace(preset(self.preset, run.benchmark), model=run.kind)
            if self.preset == "smoke":
                dims = get_benchmark(run.benchmark).dims
                settings = settings.with_overrides(_SMOKE_SETTINGS[dims])
            settings = settings.with_overrides(run.settings)
            self.say(f"training {run.name} on {run.benchmark} ({self.preset})")
            path.mkdir(parents=True, exist_ok=True)
            problem = Problem(benchmark=run.benchmark)
            train(path, problem, settings, resume=(path / CONFIG).exists())
            jax.clear_caches()  # dozens of trainings would pile up their compiled programs
        return load_model(path)

    def metrics(self, run: PlannedRun, *, split: str = "test") -> Metrics:
        """Metrics of a run, measured now if they are missing or of another size."""
        file = self.path(run) / ("metrics.json" if split == "test" else TRAIN_METRICS)
        size = self.size_of(run.benchmark)
        held = _held(file)
        if held is not None and self._fits(held, size):
            return held
        model = self.model(run)
        self.say(f"evaluating {run.name} on {run.benchmark}, {split} split")
        also = (
            ("physics alone", "cost", "representation") if split == "test" else ("physics alone",)
        )
        metrics = evaluate(
            model, self._data(run.benchmark, split), steps=size.steps or 1, name=run.name, also=also
        )
        save_metrics(file, metrics)
        return metrics

    def frames(self, run: PlannedRun, steps: Sequence[int]) -> RolloutFrames:
        """States of one test rollout at some of its steps."""
        file = self.path(run) / FRAMES_FILE
        points = self.size_of(run.benchmark).points
        if file.exists():
            held = RolloutFrames.load(file)
            if tuple(held.steps) == tuple(steps) and held.prediction.shape[2] == points:
                return held
        model = self.model(run)
        self.say(f"rolling out {run.name} on {run.benchmark}")
        frames = rollout_frames(
            model, self._data(run.benchmark, "test"), steps=steps, name=run.name
        )
        frames.save(file)
        return frames

    def encoding(self, run: PlannedRun) -> Encoding:
        """One test frame as the run's Gaussians."""
        file = self.path(run) / ENCODING_FILE
        if not file.exists():
            data = self._data(run.benchmark, "test")
            encode_frame(self.model(run), data.window(0, 3, 1)[0]).save(file)
        return Encoding.load(file)

    def steps_at(self, benchmark: str, fractions: Sequence[float]) -> list[int]:
        """Steps at fractions of the rollout, the first and last one exactly."""
        steps = self.size_of(benchmark).steps or 1
        return [int(step) for step in np.unique([round(f * steps) for f in fractions])]

    def _data(self, benchmark: str, split: str) -> ReferenceTrajectories:
        size = self.size_of(benchmark)
        return ReferenceTrajectories(
            get_benchmark(benchmark),
            split=split,
            trajectories=size.trajectories,
            steps=size.steps,
            points=size.points,
        )

    @staticmethod
    def _fits(metrics: Metrics, size: Size) -> bool:
        held = (metrics.trajectories, metrics.steps, metrics.data["points"][0])
        return held == (size.trajectories, size.steps, size.points)


def _held(file: Path) -> Metrics | None:
    with contextlib.suppress(SplatopError):
        return load_metrics(file) if file.exists() else None
    return None


def keep_going(
    runs: Sequence[PlannedRun], get: Callable[[PlannedRun], Found], failed: list[str]
) -> Iterator[Found]:
    """What could be had of several runs; a run that cannot is reported and left out."""
    for run in runs:
        try:
            yield get(run)
        except SplatopError as error:
            message = f"{run.name} on {run.benchmark}: {error}"
            if message not in failed:
                failed.append(message)

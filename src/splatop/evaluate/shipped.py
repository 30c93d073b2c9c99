"""The models inside the package, measured again beside what was recorded of them."""

from dataclasses import dataclass

import numpy as np

from ..benchmarks import get_benchmark
from ..data import Progress
from ..model import bounded_models, load_model, shipped_models
from .evaluation import evaluate
from .on_demand import ReferenceTrajectories
from .results import Metrics, load_metrics


@dataclass(frozen=True)
class Remeasured:
    """A shipped model's metrics on freshly generated test data, and the recorded ones."""

    name: str
    recorded: Metrics
    found: Metrics

    @property
    def recorded_rl2(self) -> float:
        """The recorded rL2 of the same trajectories: the first ones of the test split."""
        return float(np.mean(self.recorded.per_trajectory["rl2"][: self.found.trajectories]))


def remeasure(
    name: str, *, trajectories: int | None = None, progress: Progress | None = None
) -> Remeasured:
    """A shipped model on the paper's protocol, or on the first few of its trajectories."""
    path = {**shipped_models(), **bounded_models()}[name]
    recorded = load_metrics(path.with_suffix(".metrics.json"))
    tests = ReferenceTrajectories(
        get_benchmark(name), trajectories=trajectories, steps=recorded.steps
    )
    found = evaluate(
        load_model(path),
        tests,
        steps=recorded.steps,
        name=name,
        also=("physics alone",),
        progress=progress,
    )
    return Remeasured(name, recorded, found)

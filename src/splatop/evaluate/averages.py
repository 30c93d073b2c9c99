"""From the statistics of every frame to the averages that are reported."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..benchmarks import BENCHMARKS
from ..coarse.chaos import horizon
from ..data import Trajectories
from ..errors import finite
from ..model import Model
from ..training.loaded import MEAN_MOVES
from .coefficients import identification_errors
from .metrics import (
    FrameStatistics,
    correlation,
    energy_error,
    first_divergence,
    first_step_above,
    first_step_below,
    psnr,
    relative_l2,
    spectral_error,
)
from .results import Metrics
from .spread import SpreadRecord

THRESHOLD = 0.1
CORRELATIONS = (0.9, 0.8)
QUANTILES = {"low": 0.1, "high": 0.9}


@dataclass
class RolloutRecord:
    """What is kept of each trajectory's rollout: one value for each step, NaN once it diverged.

    `estimated` are the coefficients of every trajectory that were identified beforehand.
    """

    estimated: list[dict[str, float]]
    rl2: list[np.ndarray] = field(default_factory=list)
    error: list[np.ndarray] = field(default_factory=list)
    correlation: list[np.ndarray] = field(default_factory=list)
    energy: list[np.ndarray] = field(default_factory=list)
    spectrum: list[np.ndarray] = field(default_factory=list)
    reference_spectrum: list[np.ndarray] = field(default_factory=list)
    divergence: list[int | None] = field(default_factory=list)
    variance: list[float] = field(default_factory=list)  # of the reference, mean over its frames
    mean_moves: bool = False
    spread: SpreadRecord = field(default_factory=SpreadRecord)

    def add(self, first: np.ndarray, statistics: FrameStatistics) -> None:
        """A rollout from the state `first`."""
        initial = float(np.mean(first.astype(float) ** 2))
        step = first_divergence(statistics, initial)
        lost = np.arange(len(statistics.error)) >= (math.inf if step is None else step - 1)
        for kept, values in (
            (self.rl2, relative_l2(statistics)),
            (self.error, np.asarray(statistics.error, float)),
            (self.correlation, correlation(statistics)),
            (self.energy, energy_error(statistics)),
        ):
            kept.append(np.where(lost, np.nan, values))
        self.divergence.append(step)
        self.variance.append(float(np.mean(statistics.reference_variance, dtype=float)))
        self.spectrum.append(np.mean(statistics.prediction_spectrum, axis=0, dtype=float))
        self.reference_spectrum.append(np.mean(statistics.reference_spectrum, axis=0, dtype=float))
        start = first.reshape(len(first), -1).mean(axis=1, dtype=float)
        moved = float(np.abs(np.asarray(statistics.reference_mean, float) - start).max())
        size = math.sqrt(max(initial, float(np.max(statistics.reference))))
        self.mean_moves |= moved > MEAN_MOVES * size


class ReferenceRange:
    """Least and greatest value of all reference frames, over all channels."""

    def __init__(self):
        self.least, self.greatest = math.inf, -math.inf

    def add(self, states: np.ndarray) -> None:
        """Count in frames of any shape."""
        self.least = min(self.least, float(states.min()))
        self.greatest = max(self.greatest, float(states.max()))

    @property
    def size(self) -> float:
        """Greatest minus least value, which PSNR is relative to."""
        return self.greatest - self.least


def summarise(
    name: str,
    model: Model,
    trajectories: Trajectories,
    record: RolloutRecord,
    reference: ReferenceRange,
) -> Metrics:
    """The metrics of a model from the records of all its rollouts."""
    rl2, energy = np.stack(record.rl2), np.stack(record.energy)
    decibels = psnr(np.stack(record.error), reference.size)
    correlations = np.stack(record.correlation)
    benchmark = BENCHMARKS.get(model.spec.benchmark or "")
    mean_evolves = record.mean_moves if benchmark is None else benchmark.mean_evolves
    prediction, truth = (np.mean(s, axis=0) for s in (record.spectrum, record.reference_spectrum))
    diverged = [
        {"trajectory": index, "step": step}
        for index, step in enumerate(record.divergence)
        if step is not None
    ]
    curve = rl2.mean(axis=0)
    with np.errstate(all="ignore"):
        parted = np.sqrt(np.stack(record.error).mean(axis=0))
    return Metrics(
        rl2_mean=_mean(rl2),
        rl2_std=_deviation(rl2),
        psnr_mean=_mean(decibels),
        psnr_std=_deviation(decibels),
        spectral_error=None
        if diverged
        else spectral_error(prediction, truth, mean_evolves=mean_evolves),
        rl2_curve=_listed(curve),
        rl2_band={key: _listed(np.quantile(rl2, q, axis=0)) for key, q in QUANTILES.items()},
        steps=rl2.shape[1],
        trajectories=rl2.shape[0],
        model=describe_model(name, model),
        data=describe_data(trajectories, reference.size),
        per_trajectory={
            "rl2": _listed(rl2.mean(axis=1)),
            "psnr": _listed(decibels.mean(axis=1)),
            "rl2_last": _listed(rl2[:, -1]),
            "energy_drift": _listed(energy[:, -1]),
            "step_above_0.1": [first_step_above(row, THRESHOLD) for row in rl2],
            **{
                f"correlation_time_{level:g}": [
                    first_step_below(row, level) for row in correlations
                ]
                for level in CORRELATIONS
            },
            "diverged_step": list(record.divergence),
        },
        spectrum={
            "wavenumber": _listed(np.arange(len(truth)) / max(trajectories.grid.lengths)),
            "prediction": None if diverged else _listed(prediction),
            "reference": _listed(truth),
            "mean_evolves": mean_evolves,
        },
        correlation_time={
            f"{level:g}": first_step_below(correlations.mean(axis=0), level)
            for level in CORRELATIONS
        },
        energy_drift=_mean(energy[:, -1:]),
        step_above=first_step_above(curve, THRESHOLD),
        horizon=horizon(parted, math.sqrt(float(np.mean(record.variance)))),
        diverged=diverged,
        coefficients=identification_errors(record.estimated, trajectories.coefficients),
        ensemble=record.spread.summary(),
    )


def describe_model(name: str, model: Model) -> dict[str, Any]:
    """The facts about a model that tables and the report show."""
    spec = model.spec
    return {
        "name": name,
        "kind": spec.kind,
        "benchmark": spec.benchmark,
        "equation": spec.equation,
        "parameters": model.parameters,
        "tenfold": spec.tenfold,
        "conditioned": spec.conditioned,
        "coupling": spec.coupling if spec.kind == "surrogate" else None,
        "dropped_terms": list(spec.dropped_terms),
        "numerics": None if spec.numerics is None else spec.numerics.as_dict(),
        "ablation": None,
        "train_minutes": model.record.get("train_minutes"),
    }


def describe_data(trajectories: Trajectories, value_range: float) -> dict[str, Any]:
    """The facts about a test set that make two evaluations comparable."""
    attributes = trajectories.attributes
    return {
        "source": trajectories.source,
        **{key: attributes.get(key) for key in ("benchmark", "split", "seed", "part")},
        "held_out": attributes.get("held_out"),
        "points": list(trajectories.grid.points),
        "lengths": list(trajectories.grid.lengths),
        "origin": list(trajectories.grid.origin),
        "dt": trajectories.dt,
        "fields": list(trajectories.fields),
        "range": value_range,
        "coefficients": {k: [float(x) for x in v] for k, v in trajectories.coefficients.items()},
    }


def _listed(values: np.ndarray) -> list[float | None]:
    """Numbers for JSON, where those that do not exist are None."""
    return [finite(value) for value in values]


def _mean(values: np.ndarray) -> float | None:
    """Over steps, then over trajectories; None if one of them diverged."""
    return _listed(values.mean(axis=1).mean(keepdims=True))[0]


def _deviation(values: np.ndarray) -> float | None:
    """The standard deviation over trajectories of their averages over steps."""
    return _listed(values.mean(axis=1).std(keepdims=True))[0]

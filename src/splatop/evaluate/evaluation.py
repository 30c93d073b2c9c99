"""Rollouts against reference trajectories, streamed: one trajectory and a few frames at a time."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..benchmarks import BENCHMARKS
from ..data import Progress, Trajectories
from ..errors import SplatopError
from ..model import Model
from ..spectral import Field
from ..stepper import Coefficients, Stepper
from .coefficients import identified_coefficients, identification_errors
from .cost import step_cost
from .metrics import (
    FrameStatistics,
    correlation,
    energy_error,
    first_divergence,
    first_step_above,
    first_step_below,
    frame_statistics,
    psnr,
    relative_l2,
    spectral_error,
)
from .results import Metrics

STEPS = 200
THRESHOLD = 0.1
CORRELATIONS = (0.9, 0.8)
# Reference frames on the device at a time; the rollout itself is never stored.
_CHUNK_BYTES = 2**26


def evaluate(
    model: Model,
    trajectories: Trajectories,
    *,
    steps: int = STEPS,
    name: str | None = None,
    physics_alone: bool = True,
    cost: bool = True,
    progress: Progress | None = None,
) -> Metrics:
    """Roll a model out along every trajectory and measure (docs/evaluation.md has the formulas).

    `physics_alone` evaluates a surrogate's physics beside it. `progress` is called with the
    trajectories done and their total.
    """
    name = name or model.spec.kind
    models = {name: model}
    if physics_alone and model.spec.kind == "surrogate":
        models["physics alone"] = model.physics_only()
    found = evaluate_all(models, trajectories, steps=steps, cost=cost, progress=progress)
    return replace(found[name], physics_alone=found.get("physics alone"))


def evaluate_all(
    models: Mapping[str, Model],
    trajectories: Trajectories,
    *,
    steps: int = STEPS,
    cost: bool = True,
    progress: Progress | None = None,
) -> dict[str, Metrics]:
    """Metrics of several models by name; the reference is read, or solved, once for all."""
    if steps < 1 or steps >= trajectories.frames:
        raise SplatopError(
            f"expected 1 to {trajectories.frames - 1} steps, which is what {trajectories.source} "
            f"has beyond its first frame, got {steps}"
        )
    for model in models.values():
        check_model_fits(model, trajectories)
    reference = _Reference()
    records = {name: _Record() for name in models}
    for index in range(trajectories.trajectories):
        for name, model in models.items():
            _measure(model, trajectories, index, steps, records[name])
        reference.add(trajectories, index, steps)
        if progress:
            progress(index + 1, trajectories.trajectories)
    out = {}
    for name, model in models.items():
        milliseconds = _cost(model, trajectories, records[name]) if cost else None
        out[name] = _summary(name, model, trajectories, records[name], reference, milliseconds)
    return out


def check_model_fits(model: Model, trajectories: Trajectories) -> None:
    """Refuse data that the model was not made for."""
    spec, grid = model.spec, trajectories.grid
    for what, expected, got in (
        ("dimensions", spec.dims, grid.dims),
        ("fields", spec.fields, trajectories.fields),
        ("side lengths", spec.lengths, grid.lengths),
        ("time step", spec.dt, trajectories.dt),
    ):
        same = (
            np.allclose(expected, got)
            if what in ("side lengths", "time step")
            else (len(expected) == len(got) if what == "fields" else expected == got)
        )
        if not same:
            raise SplatopError(
                f"expected data with the {what} of the model, {expected}, got {got} in "
                f"{trajectories.source}: evaluate on data of the same problem"
            )
    benchmark = trajectories.attributes.get("benchmark")
    if benchmark and spec.benchmark and benchmark != spec.benchmark:
        raise SplatopError(
            f"expected data of {spec.benchmark}, which the model was trained on, got {benchmark} "
            f"in {trajectories.source}"
        )


@dataclass
class _Record:
    """What is kept of each trajectory's rollout, for one model."""

    rl2: list[np.ndarray] = field(default_factory=list)
    error: list[np.ndarray] = field(default_factory=list)
    correlation: list[np.ndarray] = field(default_factory=list)
    energy: list[np.ndarray] = field(default_factory=list)
    spectrum: list[np.ndarray] = field(default_factory=list)
    reference_spectrum: list[np.ndarray] = field(default_factory=list)
    divergence: list[int | None] = field(default_factory=list)
    estimated: list[dict[str, float]] = field(default_factory=list)
    mean_moves: bool = False


class _Reference:
    """The range of all reference frames, over all channels."""

    def __init__(self):
        self.least, self.greatest = math.inf, -math.inf

    def add(self, trajectories: Trajectories, index: int, steps: int) -> None:
        size = _chunk(trajectories, steps + 1)
        for start in range(0, steps + 1, size):
            states = trajectories.window(index, start, min(size, steps + 1 - start))
            self.least = min(self.least, float(states.min()))
            self.greatest = max(self.greatest, float(states.max()))

    @property
    def range(self) -> float:
        return self.greatest - self.least


def _measure(
    model: Model, trajectories: Trajectories, index: int, steps: int, record: _Record
) -> None:
    own = identified_coefficients(model, trajectories, index)
    record.estimated.append(own)
    coefficients = model.complete({k: jnp.asarray(v, jnp.float32) for k, v in own.items()})
    first = trajectories.window(index, 0, 1)[0]
    u, parts = jnp.asarray(first), []
    size = _chunk(trajectories, steps)
    for start in range(1, steps + 1, size):
        states = trajectories.window(index, start, min(size, steps + 1 - start))
        u, statistics = _advance(model.stepper, u, states, coefficients, trajectories.grid.lengths)
        parts.append(jax.tree.map(np.asarray, statistics))
    statistics = jax.tree.map(lambda *a: np.concatenate(a), *parts)
    zero = np.argwhere(statistics.reference == 0)
    if len(zero):
        raise SplatopError(
            f"expected reference frames that are not zero, got one at step {int(zero[0, 0]) + 1} "
            f"of trajectory {index} in {trajectories.source}: a relative error needs a size"
        )
    _keep(record, statistics, float(np.mean(first.astype(float) ** 2)), first)


def _keep(record: _Record, statistics: FrameStatistics, initial: float, first: np.ndarray) -> None:
    step = first_divergence(statistics, initial)
    lost = np.arange(len(statistics.error)) >= (math.inf if step is None else step - 1)
    for name, values in (
        ("rl2", relative_l2(statistics)),
        ("error", np.asarray(statistics.error, float)),
        ("correlation", correlation(statistics)),
        ("energy", energy_error(statistics)),
    ):
        getattr(record, name).append(np.where(lost, np.nan, values))
    record.divergence.append(step)
    record.spectrum.append(np.mean(statistics.prediction_spectrum, axis=0, dtype=float))
    record.reference_spectrum.append(np.mean(statistics.reference_spectrum, axis=0, dtype=float))
    start = first.reshape(len(first), -1).mean(axis=1, dtype=float)
    moved = np.abs(np.asarray(statistics.reference_mean, float) - start).max()
    # Rounding moves the mean of float32 states by 1e-6 of their size; evolution by far more.
    record.mean_moves |= bool(moved > 1e-4 * math.sqrt(max(initial, statistics.reference.max())))


@eqx.filter_jit
def _advance(
    stepper: Stepper,
    u: Field,
    reference: np.ndarray,
    coefficients: Coefficients,
    lengths: tuple[float, ...],
) -> tuple[Field, FrameStatistics]:
    def step(u, truth):
        u = stepper(u, coefficients)
        return u, frame_statistics(u, truth, lengths=lengths)

    return jax.lax.scan(step, u, reference)


def _chunk(trajectories: Trajectories, steps: int) -> int:
    """Steps per compiled piece: equal pieces, so that one compilation serves all but the last."""
    frame_bytes = 4 * int(np.prod(trajectories.shape[2:]))
    pieces = math.ceil(steps * frame_bytes / _CHUNK_BYTES)
    return math.ceil(steps / pieces)


def _cost(model: Model, trajectories: Trajectories, record: _Record) -> float:
    own = {k: jnp.asarray(v, jnp.float32) for k, v in record.estimated[0].items()}
    first = jnp.asarray(trajectories.window(0, 0, 1)[0])
    return step_cost(model.stepper, first, model.complete(own))


def _summary(
    name: str,
    model: Model,
    trajectories: Trajectories,
    record: _Record,
    reference: _Reference,
    milliseconds: float | None,
) -> Metrics:
    rl2 = np.stack(record.rl2)
    decibels = psnr(np.stack(record.error), reference.range)
    correlations, energy = np.stack(record.correlation), np.stack(record.energy)
    benchmark = BENCHMARKS.get(model.spec.benchmark or "")
    mean_evolves = record.mean_moves if benchmark is None else benchmark.mean_evolves
    spectra = [np.mean(s, axis=0) for s in (record.spectrum, record.reference_spectrum)]
    diverged = [
        {"trajectory": index, "step": step}
        for index, step in enumerate(record.divergence)
        if step is not None
    ]
    curve = rl2.mean(axis=0)
    return Metrics(
        rl2_mean=float(rl2.mean()),
        rl2_std=float(rl2.mean(axis=1).std()),
        psnr_mean=float(decibels.mean()),
        psnr_std=float(decibels.mean(axis=1).std()),
        spectral_error=None if diverged else spectral_error(*spectra, mean_evolves=mean_evolves),
        rl2_curve=curve.tolist(),
        rl2_band={
            key: np.quantile(rl2, q, axis=0).tolist() for key, q in (("low", 0.1), ("high", 0.9))
        },
        steps=rl2.shape[1],
        trajectories=rl2.shape[0],
        model=describe_model(name, model),
        data=describe_data(trajectories, reference.range),
        per_trajectory={
            "rl2": rl2.mean(axis=1).tolist(),
            "psnr": decibels.mean(axis=1).tolist(),
            "rl2_last": rl2[:, -1].tolist(),
            "energy_drift": energy[:, -1].tolist(),
            "step_above_0.1": [first_step_above(row, THRESHOLD) for row in rl2],
            **{
                f"correlation_time_{level:g}": [first_step_below(c, level) for c in correlations]
                for level in CORRELATIONS
            },
            "diverged_step": list(record.divergence),
        },
        spectrum={
            "wavenumber": (np.arange(len(spectra[0])) / max(trajectories.grid.lengths)).tolist(),
            "prediction": None if diverged else spectra[0].tolist(),
            "reference": spectra[1].tolist(),
            "mean_evolves": mean_evolves,
        },
        correlation_time={
            f"{level:g}": first_step_below(correlations.mean(axis=0), level)
            for level in CORRELATIONS
        },
        energy_drift=float(energy[:, -1].mean()),
        step_above=first_step_above(curve, THRESHOLD),
        diverged=diverged,
        cost_ms_per_step=milliseconds,
        coefficients=identification_errors(record.estimated, trajectories.coefficients),
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
    }


def describe_data(trajectories: Trajectories, value_range: float) -> dict[str, Any]:
    """The facts about a test set that make two evaluations comparable."""
    attributes = trajectories.attributes
    return {
        "source": trajectories.source,
        **{key: attributes.get(key) for key in ("benchmark", "split", "seed")},
        "points": list(trajectories.grid.points),
        "lengths": list(trajectories.grid.lengths),
        "dt": trajectories.dt,
        "fields": list(trajectories.fields),
        "range": value_range,
        "coefficients": {k: [float(x) for x in v] for k, v in trajectories.coefficients.items()},
    }

"""Rollouts against reference trajectories, streamed: one trajectory and a few frames at a time."""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..data import Progress, Trajectories
from ..domain import Domain
from ..ensemble import Ensemble
from ..errors import SplatopError, unknown_name
from ..model import Model
from ..points import Layout
from ..spectral import Field
from ..stepper import INTERVAL, Coefficients, Stepper, at_step, course, on_device
from ..threads import one_blas_thread
from .averages import ReferenceRange, RolloutRecord, summarise
from .coefficients import all_identified_coefficients
from .cost import step_cost
from .labels import LABELS, default_name
from .metrics import FrameStatistics, frame_statistics
from .representation import describe_representation
from .results import Metrics
from .spread import SpreadRecord, advance_members
from .tradeoff import Row, as_json, row, solvers

STEPS = 200
EXTRAS = ("physics alone", "cost", "representation", "solvers")
# Reference frames on the device at a time; the rollout itself is never stored.
_CHUNK_BYTES = 2**26


def evaluate(
    model: Model,
    trajectories: Trajectories,
    *,
    steps: int = STEPS,
    name: str | None = None,
    also: Collection[str] = ("physics alone", "cost"),
    progress: Progress | None = None,
) -> Metrics:
    """Roll a model out for `steps` frames from the first one of every trajectory, and compare with
    the frames that follow (docs/evaluation.md has the formulas).

    `also` names what to add: "physics alone" evaluates a surrogate's physics beside it, "cost"
    times a step, "representation" measures the Gaussians, "solvers" compares accuracy and cost with
    solvers of the model's equation on several grids (`evaluate.tradeoff`). `progress` is called
    with the trajectories done and their total.
    """
    name = name or default_name({"kind": model.spec.kind, "tenfold": model.spec.tenfold})
    found = evaluate_all({name: model}, trajectories, steps=steps, also=also, progress=progress)
    return found[name]


@one_blas_thread()
def evaluate_all(
    models: Mapping[str, Model],
    trajectories: Trajectories,
    *,
    steps: int = STEPS,
    also: Collection[str] = ("physics alone", "cost"),
    progress: Progress | None = None,
) -> dict[str, Metrics]:
    """Like `evaluate` for several models, by name; the test frames are read or solved once."""
    for extra in also:
        if extra not in EXTRAS:
            raise unknown_name("further measurement", extra, EXTRAS)
    trajectories = seen_by(models, trajectories)
    if steps < 1 or steps >= trajectories.frames:
        raise SplatopError(
            f"expected 1 to {trajectories.frames - 1} steps, which is what {trajectories.source} "
            f"has beyond its first frame, got {steps}"
        )
    every = {}
    for name, given in models.items():
        check_model_fits(given, trajectories)
        model = every[name] = given.for_data(trajectories.grid)
        if "physics alone" in also and model.spec.kind == "surrogate" and model.physics:
            every[_alone(name)] = model.physics_only()
    reference = ReferenceRange()
    records = {
        name: RolloutRecord(estimates) for name, estimates in _estimates(every, trajectories)
    }
    rivals = _rivals(models, trajectories, records) if "solvers" in also else {}
    every |= rivals
    records |= {
        name: RolloutRecord(estimates) for name, estimates in _estimates(rivals, trajectories)
    }
    for index in range(trajectories.trajectories):
        for name, model in every.items():
            _roll_out(model, trajectories, index, steps, records[name])
        for start, count in _chunks(trajectories, 0, steps + 1):
            reference.add(trajectories.window(index, start, count))
        if progress:
            progress(index + 1, trajectories.trajectories)
    found = {
        name: _measured(name, model, trajectories, records[name], reference, also)
        for name, model in every.items()
    }
    if rivals:
        rows = _rows(models, every, found, trajectories, records)
        found = {name: replace(one, tradeoff=as_json(rows)) for name, one in found.items()}
    return {name: _with_physics_alone(found, name) for name in models}


def _rivals(
    models: Mapping[str, Model], trajectories: Trajectories, records: Mapping[str, RolloutRecord]
) -> dict[str, Model]:
    """Solvers of the equation of the first model that has one."""
    name = next((name for name, m in models.items() if m.physics is not None), next(iter(models)))
    model = models[name]
    return dict(solvers(model, trajectories, _now(model, trajectories, records[name])))


def _rows(
    models: Mapping[str, Model],
    every: Mapping[str, Model],
    found: Mapping[str, Metrics],
    trajectories: Trajectories,
    records: Mapping[str, RolloutRecord],
) -> list[Row]:
    first, rows = trajectories.window(0, 0, 1)[0], []
    alone = {_alone(name) for name in models}
    for name, model in every.items():
        role = "model" if name in models else "physics" if name in alone else "solver"
        now = _now(model, trajectories, records[name])
        rows.append(row(name, role, model, found[name], first, now))
    return rows


def _now(model: Model, trajectories: Trajectories, record: RolloutRecord) -> Coefficients:
    """The coefficients of the first step of the first trajectory."""
    now = model.complete(_complete(model, record.estimated[0]))
    return now | {**on_device(trajectories.signals(0)), **at_step(trajectories.when(), 0)}


def seen_by(models: Mapping[str, Model], trajectories: Trajectories) -> Trajectories:
    """Trajectories as models step through them, which must be the same way for all of them."""
    ways = {(m.spec.stride, m.spec.answers == "coarse" and m.spec.coarse) for m in models.values()}
    if len(ways) > 1:
        listed = ", ".join(
            f"{name}: {m.spec.stride} frames in one step, states on the {m.spec.answers} grid"
            for name, m in models.items()
        )
        raise SplatopError(
            f"expected models with steps of one length in one comparison, got {listed}: evaluate "
            "each by itself"
        )
    return next(iter(models.values())).spec.view(trajectories)


def _estimates(
    models: Mapping[str, Model], trajectories: Trajectories
) -> Iterator[tuple[str, list[dict[str, float]]]]:
    """Each model's identified coefficients, the same ones identified once."""
    known: dict[tuple, list[dict[str, float]]] = {}
    for name, model in models.items():
        spec = model.spec
        question = (
            spec.unknown,
            spec.dropped_terms,
            tuple(spec.coefficients.items()),
            model.record.get("calibration_frames"),
            spec.conditioned or model.physics is not None,
        )
        if question not in known:
            known[question] = all_identified_coefficients(model, trajectories)
        yield name, known[question]


def _alone(name: str) -> str:
    return f"physics alone of {name}"


def _with_physics_alone(found: Mapping[str, Metrics], name: str) -> Metrics:
    alone = found.get(_alone(name))
    if alone is not None:
        alone = replace(alone, model={**alone.model, "name": LABELS["physics"]})
    return replace(found[name], physics_alone=alone)


def check_model_fits(model: Model, trajectories: Trajectories) -> None:
    """Refuse data that the model was not made for."""
    spec, grid = model.spec, trajectories.grid
    wanted: dict[str, Any] = {"dimensions": spec.dims, "channels": len(spec.fields)}
    held: dict[str, Any] = {"dimensions": grid.dims, "channels": len(trajectories.fields)}
    if wanted == held:
        wanted = {"side lengths": spec.lengths}
        held = {"side lengths": grid.lengths, "time step": trajectories.dt}
        if not spec.intervals:
            wanted["time step"] = spec.dt
            _check_even(model, trajectories)
    for what, expected in wanted.items():
        if not np.allclose(expected, held[what]):
            raise SplatopError(
                f"expected data with the {what} of the model, {expected}, got {held[what]} in "
                f"{trajectories.source}: evaluate on data of the same problem"
            )
    if model.physics is not None:
        trajectories.check_clock(model.physics.equation)
    if spec.inputs != trajectories.inputs:
        raise SplatopError(
            f"expected data with the inputs {', '.join(spec.inputs) or 'none'}, as where the model "
            f"was trained, got {', '.join(trajectories.inputs) or 'none'} in "
            f"{trajectories.source}: give --inputs (inputs= in Python)"
        )
    spec.check_edges(trajectories)
    spec.check_origin(grid, trajectories.source)
    benchmark = trajectories.attributes.get("benchmark")
    if benchmark and spec.benchmark and benchmark != spec.benchmark:
        raise SplatopError(
            f"expected data of {spec.benchmark}, which the model was trained on, got {benchmark} "
            f"in {trajectories.source}"
        )


def _check_even(model: Model, trajectories: Trajectories) -> None:
    if not trajectories.even and model.spec.kind != "physics":
        raise SplatopError(
            f"expected frames {model.spec.dt:g} apart, which is what the operator was trained for, "
            f"got uneven ones in {trajectories.source}: train on uneven frames, or evaluate the "
            "physics alone"
        )


def _roll_out(
    model: Model, trajectories: Trajectories, index: int, steps: int, record: RolloutRecord
) -> None:
    coefficients = _complete(model, record.estimated[index])
    if model.spec.intervals:
        coefficients = {INTERVAL: trajectories.dt, **coefficients}
    coefficients = {**coefficients, **on_device(trajectories.signals(index, 0, steps + 1))}
    times = trajectories.when(0, steps + 1)
    first = trajectories.window(index, 0, 1)[0]
    u, parts = jnp.asarray(first), []
    for start, count in _chunks(trajectories, 1, steps + 1):
        states = jnp.asarray(trajectories.window(index, start, count))
        own = {**coefficients, **_part_of(times, start - 1, count)}
        place = trajectories.domain, trajectories.grid.layout
        u, statistics = _advance(model.stepper, u, states, own, place)
        parts.append(jax.tree.map(np.asarray, statistics))
    if isinstance(model.stepper, Ensemble):
        own = {**coefficients, **times}
        _roll_out_members(model.stepper, trajectories, index, steps, own, record.spread)
    statistics = jax.tree.map(lambda *a: np.concatenate(a), *parts)
    zero = np.flatnonzero(statistics.reference == 0)
    if len(zero):
        raise SplatopError(
            f"expected reference frames that are not zero, got one at step {int(zero[0]) + 1} "
            f"of trajectory {index} in {trajectories.source}: a relative error needs a size"
        )
    record.add(first, statistics)


def _roll_out_members(
    stepper: Ensemble,
    trajectories: Trajectories,
    index: int,
    steps: int,
    coefficients: Coefficients,
    spread: SpreadRecord,
) -> None:
    """Every member by itself, from the same state."""
    first = jnp.asarray(trajectories.window(index, 0, 1)[0])
    states, errors, spreads = jnp.broadcast_to(first, (stepper.count, *first.shape)), [], []
    for start, count in _chunks(trajectories, 1, steps + 1):
        truth = jnp.asarray(trajectories.window(index, start, count))
        changing = course(stepper, coefficients, count, first=start - 1)
        states, error, apart = advance_members(stepper, states, truth, coefficients, changing)
        errors.append(error)
        spreads.append(apart)
    spread.add(np.concatenate(errors), np.concatenate(spreads))


def _advance(
    stepper: Stepper,
    u: Field,
    reference: Float[Array, "T C *N"],
    coefficients: Coefficients,
    place: tuple[Domain, Layout],
) -> tuple[Field, FrameStatistics]:
    """One call for each step: in a compiled loop XLA's convolutions are far slower on CPUs."""
    every = []
    changing = course(stepper, coefficients, len(reference))
    for n, truth in enumerate(reference):
        now = {**coefficients, **at_step(changing, n)}
        u, statistics = _step(stepper, u, truth, now, place)
        every.append(statistics)
    return u, jax.tree.map(lambda *values: np.stack(values), *every)


@eqx.filter_jit
def _step(
    stepper: Stepper,
    u: Field,
    truth: Field,
    coefficients: Coefficients,
    place: tuple[Domain, Layout],
) -> tuple[Field, FrameStatistics]:
    u = stepper(u, coefficients)
    domain, layout = place
    return u, frame_statistics(u, truth, domain=domain, layout=layout)


def _chunks(trajectories: Trajectories, first: int, stop: int) -> list[tuple[int, int]]:
    """(start, frames) of pieces that are alike, so that one compilation serves all but the last."""
    frame_bytes = 4 * int(np.prod(trajectories.shape[2:]))
    pieces = math.ceil((stop - first) * frame_bytes / _CHUNK_BYTES)
    size = math.ceil((stop - first) / pieces)
    return [(start, min(size, stop - start)) for start in range(first, stop, size)]


def _complete(model: Model, own: Mapping[str, float]) -> Coefficients:
    """Fixed coefficients with a trajectory's own, which are arrays: one compilation serves all."""
    return {**model.spec.coefficients, **{k: jnp.asarray(v, jnp.float32) for k, v in own.items()}}


def _part_of(times: Mapping[str, np.ndarray], first: int, count: int) -> dict[str, np.ndarray]:
    return {name: values[first : first + count] for name, values in times.items()}


def _measured(
    name: str,
    model: Model,
    trajectories: Trajectories,
    record: RolloutRecord,
    reference: ReferenceRange,
    also: Collection[str],
) -> Metrics:
    metrics = summarise(name, model, trajectories, record, reference)
    if "cost" in also:
        first = jnp.asarray(trajectories.window(0, 0, 1)[0])
        cost = step_cost(model.stepper, first, _now(model, trajectories, record))
        metrics = replace(metrics, cost_ms_per_step=cost)
    if "representation" in also and model.physics is not None and model.spec.numerics is not None:
        found = describe_representation(
            model.physics.jet_provider, trajectories, window=model.spec.numerics.window
        )
        metrics = replace(metrics, representation=found)
    return metrics

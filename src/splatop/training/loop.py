"""One training loop for both stages and every baseline."""

import csv
import io
import math
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from ..data.atomic import write_whole
from ..ensemble import member
from ..errors import SplatopError
from ..precomputed import is_precomputed
from .checkpoints import Checkpoints
from .devices import (
    OnDevices,
    any_process,
    arrays_from_writer,
    from_writer,
    is_writer,
    single_device,
)

COLUMNS = ("stage", "step", "loss", "learning_rate", "gradient_norm")
# Training stops at a loss this many times its first value, or the typical one.
EXPLODED = 1e8


class Interrupted(KeyboardInterrupt):
    """Training was asked to stop; a checkpoint holds everything so far."""


# Told how training goes: stage, steps done, steps in all, loss, learning rate.
Reporter = Callable[[str, int, int, float, float], None]


def silent(stage: str, step: int, steps: int, loss: float, rate: float) -> None:
    """A reporter that says nothing."""


@dataclass(frozen=True)
class Stage:
    """What to optimise and how.

    `loss(model, batch)` returns the value to minimise and the one to report; `trainable` marks the
    arrays of the model that the optimiser may touch, the others stay outside of it. For a
    diagnosis, `describe(step)` says where a batch came from and `examine(model, batch)` what is
    wrong with it. With several `members`, every array of model and batches has the member as its
    first axis, and each member is trained as if it were alone. `typical_loss` is a
    loss that training may begin with: the first batch's own may be far smaller, if nothing happens
    in it.
    """

    name: str
    steps: int
    loss: Callable[[Any, Any], tuple[Float[Array, ""], Float[Array, ""]]]
    batches: Callable[[int, int], Iterator[Any]]
    trainable: Any
    optimiser: optax.GradientTransformation
    schedule: Callable[[Any], Any]
    describe: Callable[[int], str] = lambda step: ""
    examine: Callable[[Any, Any], str] = lambda model, batch: ""
    placement: OnDevices = field(default_factory=single_device)
    members: int = 1
    typical_loss: float = 0.0


def run_stage(
    stage: Stage,
    model: Any,
    *,
    checkpoints: Checkpoints,
    history: Path,
    checkpoint_every: int,
    checkpoint_minutes: float = math.inf,
    report: Reporter = silent,
) -> Any:
    """Train from the newest checkpoint, or from the start, to the last step; return the model.

    A step depends on the seed and its number alone, so a run that was interrupted anywhere ends
    with the same weights and the same history.
    """
    parameters, rest = eqx.partition(model, stage.trainable)
    # A copy, because the update reuses the memory of the state that it is given.
    parameters = jax.tree.map(jnp.copy, parameters)
    begin = stage.optimiser.init if stage.members == 1 else jax.vmap(stage.optimiser.init)
    state = {"parameters": parameters, "optimiser": begin(parameters)}
    first, state = _latest(checkpoints, state)
    if is_writer():
        _cut_history(history, stage.name, first)
    rest, state = stage.placement.replicate(rest), stage.placement.replicate(state)
    update = _make_update(stage)

    start_loss, saved_at, rows = None, time.monotonic(), []

    def save(step: int) -> None:
        nonlocal saved_at
        whole = stage.placement.collect(state)

        def write() -> None:
            _append_history(history, rows)
            checkpoints.save(step, whole)

        from_writer(write)  # a full disk ends all processes
        rows.clear()
        saved_at = time.monotonic()

    with _stop_requests() as stopping:
        batches = stage.batches(first, stage.steps)
        for step, batch in zip(range(first, stage.steps), batches, strict=False):
            state, loss, norm = update(rest, state, stage.placement.split(batch))
            losses, norms = _by_member(stage, loss), _by_member(stage, norm)
            start_loss = (
                np.maximum(losses, stage.typical_loss) if start_loss is None else start_loss
            )
            loss, norm = float(losses.mean()), float(norms.mean())
            finite = math.isfinite(loss) and math.isfinite(norm)
            if not finite or (losses > EXPLODED * start_loss).any():
                if finite:
                    rows.append(_row(stage, step, loss, norm))
                    if is_writer():
                        _append_history(history, rows)
                elif step > first:
                    save(step)  # a step that is not finite leaves the state as it was
                model = stage.placement.collect(eqx.combine(state["parameters"], rest))
                worst = int(np.argmax(np.where(np.isfinite(losses + norms), losses, np.inf)))
                found = _examined(stage, model, jax.tree.map(jnp.asarray, batch), worst)
                raise SplatopError(_diagnosis(stage, step, loss, norm, found, checkpoints))
            rows.append(_row(stage, step, loss, norm))
            report(stage.name, step + 1, stage.steps, loss, float(stage.schedule(step)))
            done = step + 1 == stage.steps
            due = (step + 1) % checkpoint_every == 0 or (
                time.monotonic() - saved_at > 60 * checkpoint_minutes
            )
            stop = any_process(stopping.is_set())
            if due or done or stop:
                save(step + 1)
            if stop and not done:
                raise Interrupted(f"stopped after step {step + 1} of stage {stage.name}")
    return stage.placement.collect(eqx.combine(state["parameters"], rest))


def _latest(checkpoints: Checkpoints, state: Any) -> tuple[int, Any]:
    """Step and state of the newest checkpoint, as the writing process reads it, or of a start."""
    restored = checkpoints.restore(state) if is_writer() else None
    first, state = (0, state) if restored is None else restored
    return from_writer(lambda: first), arrays_from_writer(state)


def _make_update(stage: Stage) -> Callable[[Any, Any, Any], tuple[Any, Array, Array]]:
    def differentiate(model, batch):
        parameters, rest = model
        (_, reported), gradient = jax.value_and_grad(
            lambda p: stage.loss(eqx.combine(p, rest), batch), has_aux=True
        )(parameters)
        return reported, gradient

    def one(rest, state, batch):
        reported, gradient = stage.placement.average(differentiate)(
            (state["parameters"], rest), batch
        )
        norm = jnp.sqrt(sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(gradient)))
        changes, optimiser = stage.optimiser.update(
            gradient, state["optimiser"], state["parameters"]
        )
        parameters = optax.apply_updates(state["parameters"], changes)
        after = {"parameters": parameters, "optimiser": optimiser}
        finite = jnp.isfinite(reported) & jnp.isfinite(norm)
        after = jax.tree.map(lambda new, old: jnp.where(finite, new, old), after, state)
        return after, reported, norm

    @eqx.filter_jit(donate="all-except-first")
    def update(rest, state, batch):
        if stage.members == 1:
            return one(rest, state, batch)
        arrays, static = eqx.partition(rest, eqx.is_array, is_leaf=is_precomputed)
        each = jax.vmap(lambda own, *given: one(eqx.combine(own, static), *given))
        return stage.placement.each(each)(arrays, state, batch)

    return update


def _by_member(stage: Stage, value: Array) -> np.ndarray:
    """One number of each member, in double precision."""
    value = stage.placement.collect(value) if stage.members > 1 else value
    return np.atleast_1d(np.asarray(value, float))


def _examined(stage: Stage, model: Any, batch: Any, index: int) -> str:
    if stage.members > 1:
        model, batch = member(model, index), jax.tree.map(lambda a: a[index], batch)
    return stage.examine(model, batch)


def _row(stage: Stage, step: int, loss: float, norm: float) -> tuple[str, int, str, str, str]:
    return stage.name, step + 1, repr(loss), repr(float(stage.schedule(step))), repr(norm)


def _diagnosis(
    stage: Stage, step: int, loss: float, norm: float, found: str, checkpoints: Checkpoints
) -> str:
    good = checkpoints.steps()
    kept = f"the checkpoint of step {good[-1]} is kept" if good else "no checkpoint was written yet"
    return (
        f"training stopped at step {step + 1} of stage {stage.name}: the loss is {loss:g} and the "
        f"gradient norm {norm:g} on the batch {stage.describe(step)}; "
        + (f"{found}; " if found else "")
        + f"{kept}. Likely causes: a learning rate that is too high (lower `rate`), unstable "
        "physics (more `substeps`, a lower `cutoff`), or values in the data that are not finite "
        "(splatop inspect)"
    )


@contextmanager
def _stop_requests() -> Iterator[threading.Event]:
    """Ctrl-C and SIGTERM ask for a checkpoint and an orderly end; a second Ctrl-C does not wait."""
    stopping = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopping
        return

    def ask(number, frame):
        if stopping.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        stopping.set()

    previous = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopping
    finally:
        for number, handler in previous.items():
            # None is a handler that was not set from Python: it cannot be put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _append_history(path: Path, rows: list[tuple]) -> None:
    before = path.read_bytes().decode() if path.exists() else _csv([COLUMNS])
    write_whole(path, before + _csv(rows), remedy="make room there and continue with --resume")


def _csv(rows: Iterable[Iterable[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _cut_history(path: Path, stage: str, step: int) -> None:
    """Drop the rows of this stage after `step`, which will be computed again.

    Those of other stages come first: an earlier stage may have lost a checkpoint and run again.
    """
    if not path.exists():
        return
    with path.open(newline="") as file:
        header, *rows = list(csv.reader(file)) or [list(COLUMNS)]
    rows = [row for row in rows if len(row) == len(COLUMNS)]
    others = [row for row in rows if row[0] != stage]
    kept = [row for row in rows if row[0] == stage and int(row[1]) <= step]
    write_whole(path, _csv([header, *others, *kept]))


def warmup_cosine(peak: float, *, warmup: int, steps: int, final: float = 0.0) -> optax.Schedule:
    """Linear warm-up from zero, then a cosine to `final` at the last step."""
    return optax.warmup_cosine_decay_schedule(
        init_value=0.0 if warmup else peak,
        peak_value=peak,
        warmup_steps=min(warmup, max(steps - 1, 0)),
        decay_steps=max(steps, 1),
        end_value=final,
    )


def all_arrays(model: Any) -> Any:
    """Marks every floating-point array but those that are precomputed."""

    def mark(node):
        if is_precomputed(node):
            return jax.tree.map(lambda _: False, node)
        return eqx.is_inexact_array(node)

    return jax.tree.map(mark, model, is_leaf=is_precomputed)


def only(model: Any, *where: Callable[[Any], Any]) -> Any:
    """Marks the floating-point arrays of the parts that `where` selects, and nothing else."""
    marks = jax.tree.map(lambda _: False, model)
    for part in where:
        marks = eqx.tree_at(part, marks, replace=all_arrays(part(model)))
    return marks

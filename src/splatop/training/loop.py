"""One training loop for both stages and every baseline."""

import csv
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import equinox as eqx
import jax
import optax
from jaxtyping import Array, Float

from ..errors import SplatopError
from .checkpoints import Checkpoints

COLUMNS = ("stage", "step", "loss", "learning_rate", "gradient_norm")
# A loss this many times its first value will not come back.
EXPLODED = 1e8


class Interrupted(KeyboardInterrupt):
    """Training was asked to stop; a checkpoint holds everything so far."""


class Reporter(Protocol):
    """Who is told how training goes."""

    def __call__(self, stage: str, step: int, steps: int, loss: float, rate: float) -> None: ...


def silent(stage: str, step: int, steps: int, loss: float, rate: float) -> None:
    """A reporter that says nothing."""


@dataclass(frozen=True)
class Stage:
    """What to optimise and how.

    `loss(model, batch)` returns the value to minimise and the one to report; `trainable` marks the
    arrays of the model that the optimiser may touch, the others stay outside of it. `describe`
    says where a batch came from, for diagnosis.
    """

    name: str
    steps: int
    loss: Callable[[Any, Any], tuple[Float[Array, ""], Float[Array, ""]]]
    batches: Callable[[int, int], Iterator[Any]]
    trainable: Any
    optimiser: optax.GradientTransformation
    schedule: Callable[[Any], Any]
    describe: Callable[[int], str] = lambda step: ""
    place: Callable[[Any], Any] = lambda batch: batch
    replicate: Callable[[Any], Any] = lambda tree: tree
    is_writer: bool = True


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
    state = {"parameters": parameters, "optimiser": stage.optimiser.init(parameters)}
    first = 0
    restored = checkpoints.restore(state)
    if restored is not None:
        first, state = restored
    rest, state = stage.replicate(rest), stage.replicate(state)
    if stage.is_writer:
        _cut_history(history, stage.name, first)

    @eqx.filter_jit(donate="all-except-first")
    def update(rest, state, batch):
        def objective(parameters):
            return stage.loss(eqx.combine(parameters, rest), batch)

        (_, reported), gradient = jax.value_and_grad(objective, has_aux=True)(state["parameters"])
        changes, optimiser = stage.optimiser.update(
            gradient, state["optimiser"], state["parameters"]
        )
        parameters = optax.apply_updates(state["parameters"], changes)
        norm = optax.global_norm(gradient)
        return {"parameters": parameters, "optimiser": optimiser}, reported, norm

    start_loss, saved_at, rows = None, time.monotonic(), []
    with _stop_requests() as stopping:
        batches = stage.batches(first, stage.steps)
        for step, batch in zip(range(first, stage.steps), batches, strict=False):
            state, loss, norm = update(rest, state, stage.place(batch))
            loss, norm = float(loss), float(norm)
            start_loss = loss if start_loss is None else start_loss
            if not (math.isfinite(loss) and math.isfinite(norm)) or loss > EXPLODED * start_loss:
                raise SplatopError(_diagnosis(stage, step, loss, norm, checkpoints))
            rate = float(stage.schedule(step))
            rows.append((stage.name, step + 1, repr(loss), repr(rate), repr(norm)))
            report(stage.name, step + 1, stage.steps, loss, rate)
            done = step + 1 == stage.steps
            due = (step + 1) % checkpoint_every == 0 or (
                time.monotonic() - saved_at > 60 * checkpoint_minutes
            )
            if (due or done or stopping.is_set()) and stage.is_writer:
                _append_history(history, rows)
                checkpoints.save(step + 1, state)
                rows, saved_at = [], time.monotonic()
            if stopping.is_set() and not done:
                raise Interrupted(f"stopped after step {step + 1} of stage {stage.name}")
    return eqx.combine(state["parameters"], rest)


def _diagnosis(stage: Stage, step: int, loss: float, norm: float, checkpoints: Checkpoints) -> str:
    good = checkpoints.steps()
    kept = f"the checkpoint of step {good[-1]} is kept" if good else "no checkpoint was written yet"
    return (
        f"training stopped at step {step + 1} of stage {stage.name}: the loss is {loss:g} and the "
        f"gradient norm {norm:g} on the batch {stage.describe(step)}; {kept}. Likely causes: a "
        "learning rate that is too high (lower `rate`), unstable physics (more `substeps`, a lower "
        "`cutoff`), or values in the data that are not finite (splatop inspect)"
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
            signal.signal(number, handler)


def _append_history(path: Path, rows: list[tuple]) -> None:
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(COLUMNS)
        writer.writerows(rows)


def _cut_history(path: Path, stage: str, step: int) -> None:
    """Drop the rows of this stage after `step`: they will be computed again."""
    if not path.exists():
        return
    with path.open(newline="") as file:
        header, *rows = list(csv.reader(file)) or [list(COLUMNS)]
    kept = [row for row in rows if len(row) == len(COLUMNS)
            and (row[0] != stage or int(row[1]) <= step)]
    temporary = path.with_suffix(".partial")
    with temporary.open("w", newline="") as file:
        csv.writer(file).writerows([header, *kept])
    temporary.replace(path)


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
    """Marks every floating-point array."""
    return jax.tree.map(eqx.is_inexact_array, model)


def only(model: Any, *where: Callable[[Any], Any]) -> Any:
    """Marks the floating-point arrays of the parts that `where` selects, and nothing else."""
    marks = jax.tree.map(lambda _: False, model)
    for part in where:
        marks = eqx.tree_at(part, marks, replace=all_arrays(part(model)))
    return marks



"""Rollouts written to a file: what a model predicts from the first state of each trajectory."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from .._version import __version__
from ..data import Trajectories, open_trajectories
from ..data.inputs import check_cover
from ..data.well_writer import Layout, writing
from ..errors import SplatopError
from ..model import Model
from ..model.timetable import Timetable
from ..stepper import Coefficients, on_device
from ..threads import one_blas_thread
from .coefficients import identified_coefficients
from .evaluation import check_model_fits

# Frames computed in one compiled call; the file holds the rest.
_CHUNK = 50
# Frames that are predicted at once.
MOST_STEPS = 10_000_000


@one_blas_thread()
def forecast(
    model: Model,
    data: str | Path | Trajectories,
    out: str | Path,
    *,
    steps: int | None = None,
    times: Sequence[float] | None = None,
    trajectories: int | None = None,
    inputs: Trajectories | None = None,
    hold_inputs: bool = False,
    progress: Callable[[Iterable[int]], Iterable[int]] = lambda items: items,
) -> int:
    """Write the start and the `steps` predicted frames of each trajectory, or those at `times`;
    return how many.

    What drives the model is taken from `inputs`, trajectories of the input fields, else from the
    data themselves; beyond their end it stays what it is only with `hold_inputs`.
    """
    if (steps is None) == (times is None):
        raise SplatopError("expected either a number of steps or times to predict, got not one")
    if steps is not None and steps < 1:
        raise SplatopError(f"expected at least one step, got {steps}")
    if steps is not None and steps > MOST_STEPS:
        raise SplatopError(f"expected at most {MOST_STEPS:,} steps, got {steps}: predict in parts")
    if trajectories is not None and trajectories < 1:
        raise SplatopError(f"expected at least one trajectory, got {trajectories}")
    with data if isinstance(data, Trajectories) else open_trajectories(data) as given:
        source = model.spec.view(given)
        check_model_fits(model, source)
        model = model.for_data(source.grid)
        begins = 0.0 if source.times is None else float(source.times[0])
        if times is None:
            asked = begins + model.spec.dt * np.arange(1, (steps or 0) + 1)
        else:
            asked = np.asarray(times, float)
        plan = model.timetable(asked, t0=begins)
        count = min(trajectories or source.trajectories, source.trajectories)
        own = [identified_coefficients(model, source, b) for b in range(count)]
        names = own[0] if own else {}
        layout = Layout(
            (count, len(asked) + 1, *source.shape[2:]),
            source.grid,
            model.spec.dt,
            source.fields,
            {
                **{k: np.full(count, v) for k, v in model.spec.coefficients.items()},
                **{k: np.asarray([one[k] for one in own]) for k in names},
            },
            {
                "predicted_by": model.spec.kind,
                "splatop_version": __version__,
                **_beyond(model),
            },
            source.domain,
            np.concatenate([[begins], asked]),
        )
        given = inputs or source
        for b in range(count if model.spec.inputs else 0):
            signals = given.signals(_known(given, b))
            last = float(asked[-1])
            check_cover(signals, model.spec.inputs, begin=begins, until=last, hold=hold_inputs)
        with writing(out, layout) as write:
            for b in progress(range(count)):
                write(b, 0, source.window(b, 0, 1))
                signals = given.signals(_known(given, b)) if model.spec.inputs else {}
                every = {**own[b], **on_device(signals)}
                _predict(model, source.window(b, 0, 1)[0], every, plan, partial(write, b), b)
    return count


def _beyond(model: Model) -> dict[str, str]:
    """What a file says of the scales that a coarse model does not compute."""
    if not model.spec.coarse:
        return {}
    held = " x ".join(map(str, model.spec.coarse))
    guess = "a learned guess" if model.spec.refined else "none"
    return {"computed_on": f"{held} points", "smaller_scales": guess}


def _known(inputs: Trajectories, trajectory: int) -> int:
    """Whose inputs a trajectory has: its own, or those of the only one there are."""
    if trajectory < inputs.trajectories:
        return trajectory
    if inputs.trajectories > 1:
        raise SplatopError(
            f"{inputs.source}: expected inputs of each trajectory, or of one for all, got "
            f"{inputs.trajectories}"
        )
    return 0


def _predict(
    model: Model,
    state: np.ndarray,
    own: Coefficients,
    plan: Timetable,
    write: Callable[[int, np.ndarray], None],
    trajectory: int,
) -> None:
    """Write the frames that are asked for, chunk by chunk."""
    for begin in range(0, plan.steps, _CHUNK):
        ahead = min(_CHUNK, plan.steps - begin)
        when = {name: jnp.asarray(v[begin : begin + ahead]) for name, v in plan.when.items()}
        frames = np.asarray(
            model.rollout(jnp.asarray(state), steps=ahead, coefficients={**own, **when})
        )
        finite = np.isfinite(frames).reshape(ahead, -1).all(axis=1)
        if not finite.all():
            raise SplatopError(
                f"the rollout of trajectory {trajectory} diverged at step "
                f"{begin + 1 + int(np.argmin(finite))}: ask for fewer steps, or train with more "
                "substeps"
            )
        inside = (plan.asked >= begin) & (plan.asked < begin + ahead)
        if inside.any():
            write(1 + int(np.argmax(inside)), frames[plan.asked[inside] - begin])
        state = frames[-1]

"""A few frames of one rollout beside the reference, saved for figures that show fields."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from ..data import Trajectories
from ..errors import SplatopError
from ..evaluate.coefficients import identified_coefficients
from ..evaluate.cost import advance
from ..evaluate.evaluation import check_model_fits
from ..model import Model
from .saved import SavedArrays

FRAMES_FILE = "frames.npz"


@dataclass(frozen=True)
class RolloutFrames(SavedArrays):
    """States `(n, C, *N)` at `steps` of a rollout that starts at step 0, predicted and true."""

    what: ClassVar[str] = "frames of a rollout"
    steps: tuple[int, ...]
    prediction: np.ndarray
    reference: np.ndarray
    name: str
    kind: str
    benchmark: str | None
    lengths: tuple[float, ...]
    dt: float


def rollout_frames(
    model: Model,
    trajectories: Trajectories,
    *,
    steps: Sequence[int],
    trajectory: int = 0,
    name: str | None = None,
) -> RolloutFrames:
    """The states at chosen steps of one rollout; frames in between are not kept."""
    check_model_fits(model, trajectories)
    wanted = sorted(set(steps))
    if not wanted or wanted[0] < 0 or wanted[-1] >= trajectories.frames:
        raise SplatopError(
            f"expected steps from 0 to {trajectories.frames - 1}, got "
            f"{', '.join(map(str, wanted)) or 'none'}"
        )
    own = identified_coefficients(model, trajectories, trajectory)
    coefficients = {**model.spec.coefficients, **own}
    state, at, states = jnp.asarray(trajectories.window(trajectory, 0, 1)[0]), 0, []
    for step in wanted:
        if step > at:
            state, at = advance(model.stepper, state, coefficients, step - at), step
        states.append(np.asarray(state))
    return RolloutFrames(
        tuple(wanted),
        np.stack(states),
        np.concatenate([trajectories.window(trajectory, step, 1) for step in wanted]),
        name or model.spec.kind,
        model.spec.kind,
        model.spec.benchmark,
        tuple(model.spec.lengths),
        model.spec.dt,
    )

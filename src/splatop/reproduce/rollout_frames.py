"""A few frames of one rollout beside the reference, saved for figures that show fields."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from ..data import Trajectories
from ..data.atomic import complete_or_absent
from ..errors import SplatopError
from ..evaluate.coefficients import identified_coefficients
from ..evaluate.cost import advance
from ..evaluate.evaluation import check_model_fits
from ..model import Model

FRAMES_FILE = "frames.npz"


@dataclass(frozen=True)
class RolloutFrames:
    """States `(n, C, *N)` at `steps` of a rollout that starts at step 0, predicted and true."""

    steps: tuple[int, ...]
    prediction: np.ndarray
    reference: np.ndarray
    name: str
    kind: str
    benchmark: str | None
    lengths: tuple[float, ...]
    dt: float

    def save(self, path: Path) -> Path:
        """Write a `.npz` file, complete or not at all."""
        about = {
            "name": self.name,
            "kind": self.kind,
            "benchmark": self.benchmark,
            "lengths": self.lengths,
            "dt": self.dt,
        }
        with complete_or_absent(path) as partial, partial.open("wb") as file:
            np.savez(
                file,
                steps=np.array(self.steps),
                prediction=self.prediction,
                reference=self.reference,
                about=np.array(json.dumps(about)),
            )
        return path

    @classmethod
    def load(cls, path: Path) -> "RolloutFrames":
        """Read what `save` wrote."""
        try:
            with np.load(path, allow_pickle=False) as held:
                about = json.loads(str(held["about"]))
                return cls(
                    tuple(int(step) for step in held["steps"]),
                    held["prediction"],
                    held["reference"],
                    about["name"],
                    about["kind"],
                    about["benchmark"],
                    tuple(about["lengths"]),
                    about["dt"],
                )
        except (OSError, KeyError, ValueError) as error:
            raise SplatopError(
                f"expected frames of a rollout in '{path}', got something else ({error}): "
                "delete it and reproduce again"
            ) from error


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

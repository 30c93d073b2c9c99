"""Coefficients of a trajectory: identified from its first frames, compared with the truth."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..data import Trajectories
from ..errors import SplatopError
from ..identify import Identified, identify_trajectories
from ..model import Model
from .on_demand import SomeTrajectories

# The paper observes seven frames of each trajectory before it predicts (appendix D).
CALIBRATION_FRAMES = 7


def identified_coefficients(
    model: Model, trajectories: Trajectories, index: int
) -> dict[str, float]:
    """Estimates of the model's unknown coefficients for one trajectory; empty if it uses none."""
    return all_identified_coefficients(model, SomeTrajectories(trajectories, [index]))[0]


def all_identified_coefficients(model: Model, trajectories: Trajectories) -> list[dict[str, float]]:
    """The same for every trajectory, each by itself."""
    found = identified(model, trajectories)
    if not found:
        return [{} for _ in range(trajectories.trajectories)]
    return [{name: float(one.estimates[name]) for name in model.spec.unknown} for one in found]


def identified(model: Model, trajectories: Trajectories) -> list[Identified]:
    """Estimates with their intervals, one of each trajectory; empty if the model uses none.

    The true values that the data may hold are never looked at.
    """
    spec = model.spec
    if not spec.unknown or not (spec.conditioned or model.physics):
        return []
    trajectories = trajectories.observed
    frames = int(model.record.get("calibration_frames") or CALIBRATION_FRAMES)
    if trajectories.frames < frames:
        raise SplatopError(
            f"expected at least {frames} frames of each trajectory to identify "
            f"{', '.join(spec.unknown)} from, got {trajectories.frames} in {trajectories.source}"
        )
    return identify_trajectories(
        spec.known_equation,
        None,  # the lattice that training identified with
        trajectories,
        frames=frames,
        unknown=spec.unknown,
        known=dict(spec.coefficients),
    )


def identification_errors(
    estimated: Sequence[Mapping[str, float]], true: Mapping[str, np.ndarray]
) -> dict[str, Any]:
    """Estimates of each trajectory and, where the truth is known, their relative errors."""
    names = list(estimated[0]) if estimated else []
    if not names:
        return {}
    values = {name: np.array([one[name] for one in estimated]) for name in names}
    known = {name: true[name][: len(estimated)] for name in names if name in true}
    errors = {name: np.abs(values[name] / known[name] - 1) for name in known}
    return {
        "estimated": {name: list(map(float, v)) for name, v in values.items()},
        "true": {name: list(map(float, v)) for name, v in known.items()},
        "relative_error": {name: float(np.mean(v)) for name, v in errors.items()},
        "relative_error_max": {name: float(np.max(v)) for name, v in errors.items()},
    }

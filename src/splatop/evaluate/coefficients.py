"""Coefficients of a trajectory: identified from its first frames, compared with the truth."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..data import Trajectories
from ..errors import SplatopError
from ..jets import JetProvider, SpectralJets
from ..model import Model
from ..spectral import PassThrough

# The paper observes seven frames of each trajectory before it predicts (appendix D).
CALIBRATION_FRAMES = 7


def identified_coefficients(
    model: Model, trajectories: Trajectories, index: int
) -> dict[str, float]:
    """Estimates of the model's unknown coefficients for one trajectory; empty if it uses none.

    The true values that the data may hold are never looked at.
    """
    if not model.spec.unknown or not (model.spec.conditioned or model.physics):
        return {}
    frames = int(model.record.get("calibration_frames", CALIBRATION_FRAMES))
    if trajectories.frames < frames:
        raise SplatopError(
            f"expected at least {frames} frames of each trajectory to identify "
            f"{', '.join(model.spec.unknown)} from, got {trajectories.frames} in "
            f"{trajectories.source}"
        )
    from ..identify import identify

    spec = model.spec
    found = identify(
        spec.known_equation,
        _jets(model),
        trajectories.window(index, 0, frames),
        trajectories.dt,
        unknown=spec.unknown,
        known=dict(spec.coefficients),
    )
    return {name: float(found.coefficients[name]) for name in spec.unknown}


def _jets(model: Model) -> JetProvider:
    """The model's own derivatives; a network without physics gets exact ones."""
    if model.physics is not None:
        return model.physics.jets
    return SpectralJets(model.spec.lengths, PassThrough())


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

"""How far rollouts go astray: what decides between models while training."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..data import Trajectories
from ..stepper import Coefficients, Stepper, at_step, on_device

# Relative errors count as at most this, so that one diverged rollout does not hide the others.
LOST = 10.0


def rollout_errors(
    stepper: Stepper, data: Trajectories, own: Sequence[Coefficients], steps: int
) -> np.ndarray:
    """Relative errors `(n, steps)`, at most `LOST`, of rollouts from the first frame of each of the
    first n trajectories, with its `own` coefficients."""
    found = []
    for b, coefficients in enumerate(own):
        frames = data.window(b, 0, steps + 1)
        u, errors = jnp.asarray(frames[0]), []
        times = data.when(0, len(frames))
        coefficients = {**coefficients, **on_device(data.signals(b, 0, len(frames)))}
        for n, truth in enumerate(frames[1:]):  # one call each: convolutions are slow in a loop
            u, error = _step(stepper, u, truth, {**coefficients, **at_step(times, n)})
            errors.append(error)
        found.append(np.asarray(errors, float))
    return np.minimum(np.nan_to_num(np.stack(found), nan=LOST, posinf=LOST), LOST)


def still_errors(data: Trajectories, count: int, steps: int) -> np.ndarray:
    """Relative errors `(count, steps)` of first frames taken for all that follow: what any model
    has to be better than."""
    found = []
    for b in range(count):
        frames = np.asarray(data.window(b, 0, steps + 1), float)
        errors = np.linalg.norm((frames[1:] - frames[0]).reshape(steps, -1), axis=1)
        found.append(errors / np.maximum(_sizes(frames[1:]), np.finfo(np.float32).tiny))
    return np.minimum(np.stack(found), LOST)


def share_that_varies(data: Trajectories, count: int, steps: int) -> float:
    """How large fields are about their mean in space and time, relative to their size: 1 without a
    mean, 0.02 for temperatures of 300 K that vary by 6 K. Errors are relative to the size."""
    frames = np.stack([np.asarray(data.window(b, 0, steps + 1), float) for b in range(count)])
    axes = (0, 1, *range(3, frames.ndim))
    size = float(np.linalg.norm(frames))
    return float(np.linalg.norm(frames - frames.mean(axes, keepdims=True))) / size if size else 0.0


def _sizes(frames: np.ndarray) -> np.ndarray:
    return np.linalg.norm(frames.reshape(len(frames), -1), axis=1)


@eqx.filter_jit
def _step(stepper, u, truth, coefficients):
    u = stepper(u, coefficients)
    size = jnp.maximum(jnp.linalg.norm(truth), jnp.finfo(truth.dtype).tiny)
    return u, jnp.linalg.norm(u - truth) / size

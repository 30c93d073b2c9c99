"""How far rollouts go astray: what decides between models while training."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..data import Trajectories
from ..stepper import Coefficients, Stepper, at_step, on_device

# An error of ten times the state is lost, however much larger it gets.
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


@eqx.filter_jit
def _step(stepper, u, truth, coefficients):
    u = stepper(u, coefficients)
    size = jnp.maximum(jnp.linalg.norm(truth), jnp.finfo(truth.dtype).tiny)
    return u, jnp.linalg.norm(u - truth) / size

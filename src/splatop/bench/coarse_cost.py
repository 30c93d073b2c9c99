"""What coarse models cost beside a solver that is as good: exponax's ETDRK4 on the coarsest grid,
with the longest step, that holds as long or is as accurate."""

import time
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from ..coarse import truncate
from ..model import coarse_models, load_model
from .coarse_cases import CoarseCase, Rollout, cases, of_stepper
from .timing import Measured, measured_times

# Trajectories that models and solvers are judged on, none of which any model was trained on, and
# the frames of a chaotic one.
JUDGES, SEED, LONG = 16, 7, 401
# Units of simulated time of a timed rollout: those of so many steps of the model.
TIMED_STEPS = 50
NO_MODEL = "no model ships"


def coarse(repeats: int = 7) -> Measured:
    """Time per unit of simulated time of each shipped model over that of the solver as good."""
    found: Measured = {}
    for short in cases():
        key = f"coarse_{short}_over_solver"
        path = coarse_models().get(f"coarse_{short}")
        if path is None:
            found[key] = NO_MODEL
            continue
        case, model = cases()[short], load_model(path)
        roll = of_stepper(model.stepper, model.complete(None), model.spec.coarse, model.spec.stride)
        truth = judges(case)
        solver = case.matching_solver(case.score(roll, truth), truth)
        if solver is None:
            found[key] = "no solver that was tried is as good"
            continue
        times = cost_per_frame({"model": roll, "solver": solver}, truth, repeats)
        found[key] = times["model"] / times["solver"]
    return found


def judges(case: CoarseCase, count: int = JUDGES) -> np.ndarray:
    """Fresh trajectories to judge by."""
    frames = LONG if case.chaotic else case.judged + 1
    return case.reference(count if case.dims == 1 else 4, seed=SEED, frames=frames)


def cost_per_frame(
    rollouts: dict[str, Rollout],
    truth: np.ndarray,
    repeats: int,
    *,
    batch: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Seconds for the time of one frame of the data, of one state or of each in a batch, in one
    compiled loop on the rollout's own grid; timed in turns."""
    import jax

    contenders, frames = {}, {}
    longest = max(roll.stride for roll in rollouts.values())
    for name, roll in rollouts.items():
        steps = TIMED_STEPS * longest // roll.stride
        frames[name] = steps * roll.stride * batch
        states = jnp.stack([truncate(jnp.asarray(t[0]), roll.points) for t in truth[:batch]])

        def run(u, roll=roll, steps=steps):
            if u.shape[0] == 1:
                return roll.states(u[0], steps)[-1]
            return jax.vmap(lambda v: roll.states(v, steps)[-1])(u)

        contenders[name] = (run, (states,))
    times = measured_times(contenders, repeats, clock=clock)
    return {name: seconds / frames[name] for name, seconds in times.items()}

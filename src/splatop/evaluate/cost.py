"""Wall-clock time of one autoregressive step (paper, section "Inference cost")."""

import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..spectral import Field
from ..stepper import Coefficients, Stepper

TIMED_RUNS = 5
# Long enough that dispatch does not count, short enough for a U-Net at 64³.
TIMED_STEPS = 10
LOOPED_STEPS = 20


def step_cost(stepper: Stepper, u0: Field, coefficients: Coefficients) -> float:
    """Milliseconds per step: the minimum over timed rollouts after one to warm up."""
    u0 = jnp.asarray(u0)
    return 1e3 * quickest(lambda: advance(stepper, u0, coefficients, TIMED_STEPS)) / TIMED_STEPS


def rollout_cost(stepper: Stepper, u0: Field, coefficients: Coefficients) -> float:
    """Milliseconds per step of a long rollout: in the form that the stepper carries a state in, and
    in one compiled loop where it may run in one."""
    carried, state = stepper.carried, stepper.enter(jnp.asarray(u0))
    if not stepper.scannable:
        return step_cost(carried, state, coefficients)
    looped = quickest(lambda: _looped(carried, state, coefficients, LOOPED_STEPS))
    return 1e3 * looped / LOOPED_STEPS


def quickest(run: Callable[[], Any]) -> float:
    """Seconds of the quickest of several runs, after one to warm up."""

    def timed() -> float:
        started = time.perf_counter()
        jax.block_until_ready(run())
        return time.perf_counter() - started

    timed()
    return min(timed() for _ in range(TIMED_RUNS))


@eqx.filter_jit
def _looped(stepper: Stepper, u: Field, coefficients: Coefficients, steps: int) -> Field:
    return jax.lax.scan(lambda v, _: (stepper(v, coefficients), None), u, length=steps)[0]


def advance(stepper: Stepper, u0: Field, coefficients: Coefficients, steps: int) -> Field:
    """The state after `steps` steps; those in between are not kept.

    One call each: XLA's convolutions are ten times slower in a compiled loop on CPUs, which would
    not be fair to the baselines that are made of them.
    """
    for _ in range(steps):
        u0 = _step(stepper, u0, coefficients)
    return u0


@eqx.filter_jit
def _step(stepper: Stepper, u: Field, coefficients: Coefficients) -> Field:
    return stepper(u, coefficients)

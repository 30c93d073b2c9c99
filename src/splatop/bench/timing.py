"""Contenders timed in turns, and errors beside the speed that they pay for."""

import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

# Results by name: a ratio, an error or a size, or words that say why there is none.
Measured = dict[str, Any]

# A contender is called again for this many seconds before the next one has its turn.
TURN = 0.02


def measured_times(
    contenders: dict[str, tuple[Callable, tuple]],
    repeats: int,
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Median seconds of each, called in turns so that a busy machine slows all alike.

    A turn repeats short calls, or each would find the cache as a longer contender left it. On a
    machine that others use as well, `time.process_time` is the fairer clock.
    """
    compiled = {name: (eqx.filter_jit(f), args) for name, (f, args) in contenders.items()}
    for function, args in compiled.values():
        jax.block_until_ready(function(*args))
    seconds: dict[str, list[float]] = {name: [] for name in compiled}
    for _ in range(repeats):
        for name, (function, args) in compiled.items():
            turn = 0.0
            while turn < TURN:
                start = clock()
                jax.block_until_ready(function(*args))
                seconds[name].append(clock() - start)
                turn += seconds[name][-1]
    return {name: float(np.median(values)) for name, values in seconds.items()}


def relative_error(found: jax.Array, truth: jax.Array) -> float:
    """The norm of what is off over the norm of the truth."""
    return float(jnp.linalg.norm(found - truth) / jnp.linalg.norm(truth))

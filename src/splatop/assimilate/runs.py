"""What follows from given unknowns: the states of a rollout, and what sensors see of it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..stepper import course, rollout
from .minimise import Forward
from .observe import Taps


@eqx.filter_jit
def seen(forward: Forward, x: Array, taps: Taps, later: Array | None = None) -> Array:
    """What sensors see, `(n,)`, in the units of the fields; `later` are whitened increments of
    steps after the window."""
    return forward(x, taps, later)


@eqx.filter_jit
def rolled(forward: Forward, x: Array, steps: int, later: Array | None = None) -> Array:
    """The states from the first frame on, `(steps + 1, C, *N)`."""
    unknowns = forward.unknowns
    u0, coefficients = unknowns.state(x), unknowns.coefficients(x)
    if steps == 0:
        return u0[None]
    increments = unknowns.increments(x, steps, later)
    if increments is None:
        states = rollout(forward.stepper, u0, coefficients, steps=steps)
        return jnp.concatenate([u0[None], states])

    def advance(u, given):
        increment, now = given
        u = forward.stepper(u, {**coefficients, **now}) + unknowns.added(increment)
        return u, u

    changing = course(forward.stepper, coefficients, steps)
    if forward.stepper.scannable:
        return jnp.concatenate([u0[None], jax.lax.scan(advance, u0, (increments, changing))[1]])
    states = [u0]
    for step in range(steps):
        given = jax.tree.map(lambda a, n=step: a[n], (increments, changing))
        states.append(advance(states[-1], given)[0])
    return jnp.stack(states)


def random_increments(forward: Forward, steps: int, seed: int) -> Array | None:
    """Whitened increments for so many steps in all, of those after the window; None if there are
    none."""
    errors = forward.unknowns.errors
    if errors is None or steps <= errors.steps:
        return None
    drawn = np.random.default_rng(seed).normal(size=(steps - errors.steps, len(errors.std)))
    return jnp.asarray(drawn, jnp.float32)

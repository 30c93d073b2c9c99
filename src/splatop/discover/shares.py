"""What share of the change in the data each part of an equation makes."""

from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..data import Trajectories
from ..equation import Equation
from .samples import BELL, SLOPE, gathered

_WINDOWS = 24

# An equation with values for its coefficients.
Valued = tuple[Equation, Mapping[str, float]]


def shares_of_change(whole: Valued, known: Valued | None, data: Trajectories) -> dict[str, float]:
    """Of the terms that were `known`, of the others (`found`), and what is `left`.

    A share is the inner product of a part with the change, over the square of the change: together
    they make 1. A part that works against the others can have one below 0. Fields have units of
    their own, so each counts by its own change.
    """
    origin = data.grid.origin
    given = [
        (equation.placed_at(origin), values)
        for equation, values in ((whole,) if known is None else (whole, known))
    ]
    with jax.enable_x64(True):
        dims = data.grid.dims
        wanted = sorted(set().union(*(equation.derivatives(dims) for equation, _ in given)))
        numbers = {name: value for _, values in given for name, value in values.items()}
        held = gathered(data, _WINDOWS, numbers, wanted)

        @eqx.filter_jit
        def window(states: Array) -> tuple[Array, Array]:
            """The square of the change, and its products with each equation, for each field."""

            def one(state: Array) -> tuple[Array, Array]:
                jet = held.modes.jet(state, wanted)
                return jet.state, jnp.stack([equation(jet, at) for equation, at in given])

            values, made = jax.lax.map(one, states)
            change = jnp.tensordot(jnp.asarray(SLOPE) / held.dt, values, 1)
            made = jnp.tensordot(jnp.asarray(BELL), made, 1)
            points = tuple(range(2, made.ndim))
            return jnp.sum(change**2, axis=tuple(range(1, change.ndim))), jnp.sum(
                made * change, axis=points
            )

        order = np.random.default_rng(0).permutation(len(held.states))[:_WINDOWS]
        parts = [window(jnp.asarray(held.states[i])) for i in order]
    energy = np.sum([np.asarray(square) for square, _ in parts], axis=0)
    made = np.sum([np.asarray(product) for _, product in parts], axis=0)
    moving = energy > 0
    all_of_it, *told = np.mean(made[:, moving] / energy[moving], axis=1)
    before = float(told[0]) if told else 0.0
    return {"known": before, "found": float(all_of_it) - before, "left": 1.0 - float(all_of_it)}

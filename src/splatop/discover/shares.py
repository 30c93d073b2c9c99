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

    The share of a part is its inner product with the change, over the square of the change; a part
    that works against the others can have one below 0. What is left is the square of the rest over
    that of the change. Fields have units of their own, so each counts by its own change. What noise
    adds to these squares is drawn, and taken out. Without such a change
    there are none.
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
        held = gathered(data.together, _WINDOWS, numbers, wanted)
        channels = len(data.fields)  # inputs of the data are behind them

        @eqx.filter_jit
        def window(states: Array) -> tuple[Array, Array, Array]:
            """The squares of the change and of what the whole equation leaves of it, and products
            of the change with each equation, for each field."""

            def one(state: Array) -> tuple[Array, Array]:
                jet = held.modes.jet(state, wanted)
                return jet.state[:channels], jnp.stack(
                    [equation(jet, at) for equation, at in given]
                )

            values, made = jax.lax.map(one, states)
            change = jnp.tensordot(jnp.asarray(SLOPE) / held.dt, values, 1)
            made = jnp.tensordot(jnp.asarray(BELL), made, 1)
            points = tuple(range(2, made.ndim))
            own = tuple(range(1, change.ndim))
            rest = jnp.sum((change - made[0]) ** 2, axis=own)
            return jnp.sum(change**2, axis=own), rest, jnp.sum(made * change, axis=points)

        generator = np.random.default_rng(0)
        order = generator.permutation(len(held.states))[:_WINDOWS]
        parts = []
        for i in order:
            states = np.asarray(held.states[i])
            noise = held.noise(generator)
            seen, more, less = (
                window(jnp.asarray(u)) for u in (states, states + noise, states - noise)
            )
            # Of opposite draws what is of first order in the noise cancels.
            parts.append([2 * s - (m + n) / 2 for s, m, n in zip(seen, more, less, strict=True)])
    energy, rest, made = (
        np.sum([np.asarray(p) for p in part], axis=0) for part in zip(*parts, strict=True)
    )
    moving = energy > 0
    if not moving.any():
        return {}
    all_of_it, *told = np.mean(made[:, moving] / energy[moving], axis=1)
    before = float(told[0]) if told else 0.0
    left = float(np.mean(np.maximum(rest[moving], 0) / energy[moving]))
    return {"known": before, "found": float(all_of_it) - before, "left": left}

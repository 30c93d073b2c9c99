"""A field that is known at some times and wanted at others: what drives the rest."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

# Frames that a value between two is interpolated from: cubic, as accurate as the schemes in time.
KNOTS = 4


class Signal(eqx.Module):
    """Values `(T, *N)` at the `times` `(T,)`, which increase; between them it is the cubic through
    the four frames around.

    Beyond the first and the last time it stays what it is there. A batch has a further axis before
    both, as `vmap` takes it.
    """

    values: Float[Array | np.ndarray, "..."]
    times: Float[Array | np.ndarray, "..."]

    def near(self, t: Any) -> "Signal":
        """The frames around a time, which are all that a step there needs."""
        count = len(self.times)
        if count <= KNOTS:
            return self
        times = jnp.asarray(self.times)
        after = jnp.searchsorted(times, t, side="right")
        first = jnp.clip(after - KNOTS // 2, 0, count - KNOTS)
        return Signal(
            jax.lax.dynamic_slice_in_dim(jnp.asarray(self.values), first, KNOTS),
            jax.lax.dynamic_slice_in_dim(times, first, KNOTS),
        )

    def map(self, change: Callable[[Array], Array]) -> "Signal":
        """With another form of each of its frames."""
        return Signal(jax.vmap(change)(jnp.asarray(self.values)), self.times)

    def __call__(self, t: Any) -> Float[Array, "*N"]:
        """The value at a time."""
        near = self.near(t)
        times, values = jnp.asarray(near.times), jnp.asarray(near.values)
        t = jnp.clip(jnp.asarray(t, times.dtype), times[0], times[-1])
        count = len(times)
        weights = [
            jnp.prod(
                jnp.stack(
                    [(t - times[m]) / (times[n] - times[m]) for m in range(count) if m != n]
                    or [jnp.ones_like(t)]
                )
            )
            for n in range(count)
        ]
        return jnp.tensordot(jnp.stack(weights).astype(values.dtype), values, axes=1)


def held(value: Float[Array | np.ndarray, "*N"], t: Any) -> Signal:
    """A signal that stays what it is."""
    return Signal(jnp.asarray(value)[None], jnp.reshape(jnp.asarray(t, float), (1,)))

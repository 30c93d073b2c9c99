"""How far the members of an ensemble drift apart, each on a rollout of its own."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..ensemble import Ensemble
from ..stepper import Coefficients


@dataclass
class SpreadRecord:
    """Of each trajectory: every member's relative error and their relative spread, by step."""

    errors: list[np.ndarray] = field(default_factory=list)  # (T, K) each
    spreads: list[np.ndarray] = field(default_factory=list)  # (T,) each

    def add(self, errors: np.ndarray, spread: np.ndarray) -> None:
        """One trajectory: the errors `(T, K)` of K members at T steps, and their spread `(T,)`."""
        self.errors.append(np.asarray(errors, float))
        self.spreads.append(np.asarray(spread, float))

    def summary(self) -> dict[str, Any] | None:
        """Means over trajectories for `metrics.json`; None if there is no ensemble."""
        if not self.errors:
            return None
        curves, spread = np.mean(self.errors, axis=0).T, np.mean(self.spreads, axis=0)
        return {
            "members": len(curves),
            "rl2_curves": curves.tolist(),
            "rl2_mean": curves.mean(axis=1).tolist(),
            "spread_curve": spread.tolist(),
            "spread_mean": float(spread.mean()),
        }


@eqx.filter_jit
def advance_members(
    stepper: Ensemble,
    states: Float[Array, "K C *N"],
    reference: Float[Array, "T C *N"],
    coefficients: Coefficients,
    changing: Mapping[str, Array],
) -> tuple[Float[Array, "K C *N"], Float[Array, "T K"], Float[Array, " T"]]:
    """Members after the reference's frames; their errors and their spread at each of them.

    `changing` are the coefficients that differ from step to step, as `stepper.course` has them.
    The spread is the deviation over members, root mean square over the frame; both are relative to
    the reference.
    """

    def step(states, at):
        truth, now = at
        states = stepper.each(states, {**coefficients, **now})
        size = jnp.sqrt(jnp.mean(truth**2))
        space = tuple(range(1, states.ndim))
        errors = jnp.sqrt(jnp.mean((states - truth) ** 2, axis=space)) / size
        spread = jnp.sqrt(jnp.mean(jnp.var(states, axis=0))) / size
        return states, (errors, spread)

    states, (errors, spread) = jax.lax.scan(step, states, (reference, dict(changing)))
    return states, errors, spread

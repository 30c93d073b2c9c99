"""Several models of one description, trained from different seeds: their mean, and their spread."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .precomputed import weights_and_rest
from .spectral import Field, Other
from .stepper import Coefficients, Stepper, StepperAround


class Ensemble(StepperAround):
    """Several trained models of one kind as one stepper: a step is the mean of their steps.

    Every array of `members` has the member as its first axis. What has no arrays, such as a physics
    with a lattice encoder, is computed once for all.
    """

    members: Stepper
    count: int = eqx.field(static=True)

    def __call__(self, u: Field, coefficients: Coefficients) -> Other:
        arrays, rest = weights_and_rest(self.members)
        steps = jax.vmap(lambda own: eqx.combine(own, rest)(u, coefficients), axis_size=self.count)(
            arrays
        )
        return jnp.mean(steps, axis=0)

    def each(
        self, states: Float[Array, "K C *N"], coefficients: Coefficients
    ) -> Float[Array, "K C *N"]:
        """Each member's step from a state of its own."""
        arrays, rest = weights_and_rest(self.members)
        return jax.vmap(lambda own, u: eqx.combine(own, rest)(u, coefficients))(arrays, states)

    def member(self, index: int) -> Stepper:
        return member(self.members, index)

    @property
    def inside(self) -> Stepper:
        return self.members

    @property
    def embedded(self) -> Any:
        """The first member's; all have the same equation."""
        return self.member(0).embedded

    @property
    def physics_alone(self) -> Stepper | None:
        return self.member(0).physics_alone

    @property
    def carried(self) -> Stepper:
        inner = self.members.carried
        return self if inner is self.members else Ensemble(inner, self.count)

    def enter(self, u: Field) -> Other:
        return self.member(0).enter(u)

    def leave(self, state: Field, points: tuple[int, ...]) -> Other:
        return self.member(0).leave(state, points)

    @property
    def alone(self) -> tuple[Stepper, ...]:
        return tuple(self.member(k) for k in range(self.count))


def stack(trees: Sequence[Any]) -> Any:
    """Modules of one structure as one, whose arrays have the module as their first axis."""
    rest = weights_and_rest(trees[0])[1]
    arrays = jax.tree.map(
        lambda *own: jnp.stack(own), *(weights_and_rest(tree)[0] for tree in trees)
    )
    return eqx.combine(arrays, rest)


def repeat(tree: Any, count: int) -> Any:
    """The same module `count` times."""
    arrays, rest = weights_and_rest(tree)
    return eqx.combine(jax.tree.map(lambda a: jnp.broadcast_to(a, (count, *a.shape)), arrays), rest)


def member(stacked: Any, index: int) -> Any:
    """One of the modules that were stacked."""
    arrays, rest = weights_and_rest(stacked)
    return eqx.combine(jax.tree.map(lambda a: a[index], arrays), rest)

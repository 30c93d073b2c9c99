"""A stepper advances a state by one frame; a rollout applies it again and again."""

import abc
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .spectral import Field

Scalar = float | Float[Array, ""]
Coefficients = Mapping[str, Scalar]


class Stepper(eqx.Module):
    """`(u, coefficients) -> u_next`: reference solver, physics, operator and surrogate alike.

    What callers need to know of a particular stepper they ask it, by the properties below.
    """

    @abc.abstractmethod
    def __call__(self, u: Field, coefficients: Coefficients) -> Field: ...

    def in_loss(self, u: Field, coefficients: Coefficients) -> Field:
        """The same step as a training loss takes it, which may stop gradients that nobody needs."""
        return self(u, coefficients)

    @property
    def scannable(self) -> bool:
        """Whether steps may run in one compiled loop (`jax.lax.scan`).

        XLA's convolutions are ten times slower there on CPUs, so that a network has to say that it
        is: by an attribute `scannable` of its own.
        """
        return True

    @property
    def light_gradient(self) -> bool:
        """Whether the gradient of a step keeps little more than the state itself, so that a loss
        over several steps need not compute them again on its way back."""
        return False

    @property
    def embedded(self) -> Any:
        """The physics Φ inside, an `EmbeddedPhysics`, or None where there is none."""
        return None

    @property
    def physics_alone(self) -> "Stepper | None":
        """The same without its operator: Φ as this stepper takes states and gives them."""
        return self.embedded

    @property
    def carried(self) -> "Stepper":
        """What a rollout steps with: a stepper of states in its own form, which `enter` makes of a
        field, and `leave` a field of."""
        return self

    def enter(self, u: Field) -> Field:
        """A field in the form that `carried` steps."""
        return u

    def leave(self, state: Field, points: tuple[int, ...]) -> Field:
        """A state of `carried` as a field on a grid of `points`."""
        return state

    @property
    def alone(self) -> "tuple[Stepper, ...]":
        """The members of an ensemble, one by one; any other stepper is the only one."""
        return (self,)


def network_says(network: Any, what: str) -> bool:
    """A network's answer to `scannable` or `light_gradient`: no, unless it says yes."""
    return bool(getattr(network, what, False))


def rollout(
    stepper: Stepper, u0: Field, coefficients: Coefficients, *, steps: int, loop: bool | None = None
) -> Float[Array, "T C *M"]:
    """The `steps` states that follow `u0`, each computed from the one before.

    In a compiled loop, or one after the other, as the stepper says; `loop` decides otherwise.
    """

    carried, points = stepper.carried, tuple(u0.shape[1:])

    def advance(u, _):
        u = carried(u, coefficients)
        return u, u

    if stepper.scannable if loop is None else loop:
        states = jax.lax.scan(advance, stepper.enter(u0), length=steps)[1]
    else:
        several, u = [], stepper.enter(u0)
        for _ in range(steps):
            u = carried(u, coefficients)
            several.append(u)
        states = jnp.stack(several)
    return jax.vmap(lambda state: stepper.leave(state, points))(states)

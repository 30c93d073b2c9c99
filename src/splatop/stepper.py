"""A stepper advances a state by one frame; a rollout applies it again and again."""

import abc
from collections.abc import Mapping

import equinox as eqx
import jax
from jaxtyping import Array, Float

from .spectral import Field

Scalar = float | Float[Array, ""]
Coefficients = Mapping[str, Scalar]


class Stepper(eqx.Module):
    """`(u, coefficients) -> u_next`: reference solver, physics, operator and surrogate alike."""

    @abc.abstractmethod
    def __call__(self, u: Field, coefficients: Coefficients) -> Field: ...

    def in_loss(self, u: Field, coefficients: Coefficients) -> Field:
        """The same step as a training loss takes it, which may stop gradients that nobody needs."""
        return self(u, coefficients)


def rollout(
    stepper: Stepper, u0: Field, coefficients: Coefficients, *, steps: int
) -> Float[Array, "T C *N"]:
    """The `steps` states that follow `u0`, each computed from the one before."""

    def advance(u, _):
        u = stepper(u, coefficients)
        return u, u

    return jax.lax.scan(advance, u0, length=steps)[1]

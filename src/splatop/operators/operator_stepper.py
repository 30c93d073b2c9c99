"""Any network `u -> u` as a stepper, so that it can be rolled out and compared."""

from collections.abc import Callable

import jax
from jaxtyping import Array, Float

from ..errors import SplatopError
from ..spectral import Field
from ..stepper import Coefficients, Stepper
from .conditioning import Conditioning


class OperatorStepper(Stepper):
    """`u_next = network(u)`, or `network(u, condition)` if it is conditioned on coefficients."""

    network: Callable[..., Field]
    conditioning: Conditioning | None = None

    def __call__(self, u: Field, coefficients: Coefficients) -> Field:
        return apply_network(self.network, u, self.condition(coefficients))

    def condition(self, coefficients: Coefficients) -> Float[Array, " P"] | None:
        return None if self.conditioning is None else self.conditioning(coefficients)

    @property
    def coefficient_names(self) -> tuple[str, ...]:
        return () if self.conditioning is None else self.conditioning.names


def apply_network(
    network: Callable[..., Field], u: Field, condition: Float[Array, " P"] | None
) -> Field:
    """The network's output, refused unless it has the shape of its input."""
    out = network(u) if condition is None else network(u, condition)
    if not isinstance(out, jax.Array) or out.shape != u.shape:
        raise SplatopError(
            f"expected a network that returns a field of its input's shape {u.shape}, got "
            f"{getattr(out, 'shape', type(out).__name__)}: match its channels, or use a grid "
            "that it does not crop"
        )
    return out

"""From named coefficients to the standardised vector that a network is conditioned on."""

from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import SplatopError, check_finite, is_concrete
from ..stepper import Coefficients


class Conditioning(eqx.Module):
    """`(λ - mean) / std` of the named coefficients, in the order of `names`.

    Mean and deviation are statistics of the training coefficients: no gradient reaches them.
    """

    names: tuple[str, ...] = eqx.field(static=True)
    mean: Float[Array, " P"]
    std: Float[Array, " P"]

    def __init__(self, names: tuple[str, ...], mean, std):
        self.names = tuple(names)
        self.mean, self.std = jnp.asarray(mean, float), jnp.asarray(std, float)
        shape = (len(self.names),)
        if self.mean.shape != shape or self.std.shape != shape:
            raise SplatopError(
                f"expected one mean and one deviation for each of the coefficients {self.names}, "
                f"got shapes {self.mean.shape} and {self.std.shape}"
            )
        if is_concrete(self.std) and not bool(jnp.all(self.std > 0)):
            raise SplatopError(
                f"expected positive deviations of the coefficients {self.names}, got {self.std}: "
                "use 1 for a coefficient that does not vary"
            )

    @classmethod
    def fit(cls, coefficients: Mapping[str, Float[Array | np.ndarray, " B"]]) -> "Conditioning":
        """Statistics over the training trajectories; one that does not vary gets deviation 1."""
        values = {name: np.asarray(column, float) for name, column in coefficients.items()}
        for name, column in values.items():
            check_finite(column, name)
        mean = np.array([column.mean() for column in values.values()])
        std = np.array([column.std() for column in values.values()])
        # A constant column of float32 values still has a deviation of rounding size.
        constant = std <= 1e-6 * np.abs(mean)
        return cls(tuple(values), mean, np.where(constant, 1.0, std))

    def __call__(self, coefficients: Coefficients) -> Float[Array, " P"]:
        missing = [name for name in self.names if name not in coefficients]
        if missing:
            raise SplatopError(
                f"expected the coefficients {', '.join(self.names)} that the network is "
                f"conditioned on, got {', '.join(coefficients) or 'none'}: "
                f"give a value for {', '.join(missing)}"
            )
        values = jnp.array([coefficients[name] for name in self.names], self.mean.dtype)
        return (values - jax.lax.stop_gradient(self.mean)) / jax.lax.stop_gradient(self.std)

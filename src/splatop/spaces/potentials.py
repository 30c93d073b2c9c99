"""Inverse Laplacians: the numbers of what has given values as its Laplacian."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..derivative import laplacian


def inverse_rates(space: Any, power: int = 1) -> np.ndarray:
    """What `Δ^-power` multiplies each number of a space by. A harmonic whose Laplacian is 0, the
    constant, is left out."""
    rates = space.diagonal(laplacian(space.dims))
    constant = np.abs(rates) < 1e-9 * np.abs(rates).max()
    return np.where(constant, 0.0, 1 / np.where(constant, 1.0, rates)) ** power


def inverse_numbers(space: Any, values: Float[Array, "C *Q"], power: int = 1) -> Any:
    """The numbers, in a space that obeys the conditions of inverse Laplacians, of those of values
    at its working points."""
    return space.project(values) * jnp.asarray(inverse_rates(space, power), values.dtype)

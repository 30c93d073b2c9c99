"""Inverse Laplacians: the numbers of what has given values as its Laplacian."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..derivative import laplacian


def inverse_numbers(space: Any, values: Float[Array, "C *Q"], power: int = 1) -> Any:
    """The numbers, in a space that obeys the conditions of inverse Laplacians, of those of values
    at its working points. A harmonic whose Laplacian is 0, the constant, is left out."""
    rates = space.diagonal(laplacian(space.dims))
    constant = np.abs(rates) < 1e-9 * np.abs(rates).max()
    factor = np.where(constant, 0.0, 1 / np.where(constant, 1.0, rates))
    return space.project(values) * jnp.asarray(factor**power, values.dtype)

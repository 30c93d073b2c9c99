"""The FNO between walls: its box continued by zeros beyond the far ends."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..errors import check_field
from ..spectral import Field
from .fno import FNO

# One point beyond the far end of an axis for so many inside.
_SHARE = 8


class PaddedFNO(eqx.Module):
    """An FNO on a box with zeros beyond the far ends of the axes that are not `closed`, which are
    cut off again behind it.

    Its waves go around the longer box. They have phases, so that a term with a slope can be
    learned, which no multiplier of cosines does (docs/walls.md has the comparison).
    """

    network: FNO
    closed: tuple[bool, ...] = eqx.field(static=True)

    scannable: ClassVar[bool] = True
    light_gradient: ClassVar[bool] = True

    def __call__(self, u: Field, condition: Float[Array, " P"] | None = None) -> Field:
        check_field(u, dims=len(self.closed), channels=len(self.network.projection_bias))
        points = u.shape[1:]
        beyond = [
            (0, 0 if ring else -(-n // _SHARE)) for n, ring in zip(points, self.closed, strict=True)
        ]
        out = self.network(jnp.pad(u, [(0, 0), *beyond]), condition)
        return out[(slice(None), *(slice(0, n) for n in points))]

"""A learned guess of the scales that a coarse space leaves out."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..operators import Convolutions
from ..spectral import Field, resample
from .projection import Other, truncate

HIDDEN, LAYERS = 24, 4


class Refiner(eqx.Module):
    """What a field most likely has beyond the modes of its coarse grid, from these alone.

    A network answers at each coarse point with the values at the `factor` points along each axis
    that a finer grid has there. What of its answer lies in the coarse space is taken off, so that
    the projection of a refined state is the state itself.
    """

    network: Convolutions
    center: Float[Array, " C"]
    spread: Float[Array, " C"]
    scale: Float[Array, " C"]
    factor: int = eqx.field(static=True)

    def __call__(self, state: Field, points: tuple[int, ...]) -> Other:
        """The guess on a grid of `points`, for a state on the coarse one."""
        coarse = tuple(state.shape[1:])
        place = (-1,) + (1,) * len(coarse)
        center, spread, scale = (a.reshape(place) for a in (self.center, self.spread, self.scale))
        answer = self.network((state - center) / spread)
        fine = scale * _spread_out(answer, len(state), self.factor)
        beyond = fine - resample(truncate(fine, coarse), tuple(fine.shape[1:]))
        shorter = tuple(min(n, m) for n, m in zip(points, beyond.shape[1:], strict=True))
        return resample(truncate(beyond, shorter), points)


def fresh_refiner(
    coarse: tuple[int, ...],
    fine: tuple[int, ...],
    *,
    center: Float[Array, " C"],
    spread: Float[Array, " C"],
    scale: Float[Array, " C"],
    key: PRNGKeyArray,
) -> Refiner:
    """One that guesses nothing yet."""
    factor = max(math.ceil(n / m) for n, m in zip(fine, coarse, strict=True))
    channels = len(center)
    network = Convolutions(
        len(coarse),
        channels,
        hidden=HIDDEN,
        blocks=LAYERS,
        answers=channels * factor ** len(coarse),
        key=key,
    )
    return Refiner(network, center, spread, scale, factor)


def _spread_out(answer: Float[Array, "A *M"], channels: int, factor: int) -> Float[Array, "C *N"]:
    """Channels that stand for the points around each coarse one, at these points."""
    coarse = answer.shape[1:]
    dims = len(coarse)
    apart = answer.reshape(channels, *(factor,) * dims, *coarse)
    order = [0] + [axis for d in range(dims) for axis in (1 + dims + d, 1 + d)]
    return jnp.transpose(apart, order).reshape(channels, *(factor * m for m in coarse))


def refinement_loss(
    refiner: Refiner, frames: Float[Array, "B C *N"], coarse: tuple[int, ...]
) -> Float[Array, ""]:
    """The mean square of what is left beyond the coarse space, in units of what there was."""
    place = (-1,) + (1,) * len(coarse)

    def one(u: Field) -> Float[Array, ""]:
        state, points = truncate(u, coarse), tuple(u.shape[1:])
        left = u - resample(state, points) - refiner(state, points)
        return jnp.mean((left / refiner.scale.reshape(place)) ** 2)

    return jnp.mean(jax.vmap(one)(frames))

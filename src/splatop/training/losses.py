"""What the two stages minimise."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..derivative import gradient, value
from ..encoders import UNetEncoder
from ..encoders.encoder import normalise
from ..encoders.solve import least_squares
from ..grid import Grid
from ..render.renderer import grid_positions
from ..spectral import Field, differentiate, resample
from ..stepper import Coefficients, Stepper


def rollout_loss(
    stepper: Stepper,
    window: Float[Array, "F C *N"],
    coefficients: Coefficients,
    *,
    scale: Float[Array, " C"],
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Mean over H steps of the mean squared error (Eq. 12): in units of `scale`, and as it is.

    The first drives the optimiser: when Φ is nearly exact the plain error is so small that Adam's
    epsilon would swallow its gradient.
    """
    unit = scale.reshape((-1,) + (1,) * (window.ndim - 2))

    @jax.checkpoint
    def advance(u, target):
        u = stepper(u, coefficients)
        error = u - target
        return u, (jnp.mean((error / unit) ** 2), jnp.mean(error**2))

    _, (scaled, plain) = jax.lax.scan(advance, window[0], window[1:])
    return jnp.mean(scaled), jnp.mean(plain)


def batch_rollout_loss(
    stepper: Stepper,
    windows: Float[Array, "B F C *N"],
    coefficients: Mapping[str, Float[Array, " B"]],
    *,
    scale: Float[Array, " C"],
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    scaled, plain = jax.vmap(
        lambda window, own: rollout_loss(stepper, window, own, scale=scale)
    )(windows, coefficients)
    return jnp.mean(scaled), jnp.mean(plain)


def reconstruction_loss(
    encoder: UNetEncoder, u: Field, shift: Float[Array, " d"], *, sobolev: float = 0.0
) -> Float[Array, ""]:
    """Mean squared reconstruction error of one normalised frame (Eq. 9), plus `sobolev` times the
    relative error of its gradient.

    The frame is compared on a grid of two points per anchor; `shift`, a fraction of that grid's
    spacing per axis, moves the frame under the lattice so that all sub-cell positions are seen.
    """
    normalised, _, _ = normalise(_shifted(u, shift, encoder.anchors))
    geometry = encoder.predict(normalised)
    points = tuple(2 * a for a in encoder.anchors)
    grid = Grid(points, (1.0,) * len(points))
    positions = jnp.asarray(grid_positions(grid), u.dtype)
    values = resample(normalised, points).reshape(u.shape[0], -1).T
    if encoder.amplitudes == "solved":
        basis = encoder.renderer.basis(geometry, positions)
        # At the optimum the amplitudes contribute no gradient (variable projection).
        amplitude = jax.lax.stop_gradient(least_squares(basis, values))
        geometry = geometry.with_amplitude(amplitude, geometry.offset)
        rendered = basis @ amplitude
    else:
        which = value(len(points))
        rendered = encoder.renderer(geometry, [which], grid)[which].reshape(u.shape[0], -1).T
    loss = jnp.mean((rendered - values) ** 2)
    if sobolev:
        slopes = gradient(len(points))
        found = encoder.renderer.at(geometry, slopes, positions, grid.lengths)
        for slope in slopes:
            truth = resample(differentiate(normalised, slope, grid.lengths), points)
            truth = truth.reshape(u.shape[0], -1)
            loss = loss + sobolev * jnp.mean((found[slope] - truth) ** 2) / jnp.mean(truth**2)
    return loss


def _shifted(u: Field, shift: Float[Array, " d"], anchors: tuple[int, ...]) -> Field:
    """The periodic field moved by fractions of half an anchor cell, exactly."""
    grid = Grid(tuple(u.shape[1:]), (1.0,) * len(anchors))
    modes = jnp.fft.rfftn(u, axes=range(1, u.ndim))
    for axis, k in enumerate(grid.modes()):
        distance = shift[axis] * 0.5 / anchors[axis]
        modes = modes * jnp.exp(-2j * np.pi * jnp.asarray(k, u.dtype) * distance)
    return jnp.fft.irfftn(modes, s=grid.points, axes=range(1, u.ndim)).astype(u.dtype)

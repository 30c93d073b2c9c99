"""What the U-Net encoder is trained on: how well its Gaussians reconstruct frames (Eq. 9)."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..derivative import gradient, value
from ..gaussians import Gaussians
from ..grid import Grid
from ..render.renderer import grid_positions
from ..spectral import Field, differentiate, resample
from .amplitudes import least_squares, solve_amplitudes
from .encoder import normalise

# The U-Net encoder itself, which imports this module.
UNet = Any


def reconstruction_loss(
    encoder: UNet,
    u: Field,
    shift: Float[Array, " d"],
    *,
    sobolev: float = 0.0,
    reconstruction: str = "shifted",
) -> Float[Array, ""]:
    """Mean squared reconstruction error of one frame, plus `sobolev` times the relative error of
    its gradient.

    "observed" is the paper's Eq. 9: the frame as it is, on its own grid. "shifted" compares the
    normalised frame on a grid of two points per anchor, where `shift`, a fraction of that grid's
    spacing per axis, moves the frame under the lattice so that all sub-cell positions are seen.
    """
    normalised, std, geometry = _predicted(encoder, u, shift, reconstruction)
    return _mismatch(encoder, normalised, std, geometry, sobolev, reconstruction)


def _predicted(
    encoder: UNet, u: Field, shift: Float[Array, " d"], reconstruction: str
) -> tuple[Field, Float[Array, " C"], Gaussians]:
    """The normalised frame, its deviation, and the geometry that the network gives it."""
    frame = u if reconstruction == "observed" else _shifted(u, shift, encoder.anchors)
    normalised, _, std = normalise(frame)
    return normalised, std, encoder.predict(normalised)


def _mismatch(
    encoder: UNet,
    normalised: Field,
    std: Float[Array, " C"],
    geometry: Gaussians,
    sobolev: float,
    reconstruction: str,
) -> Float[Array, ""]:
    observed = reconstruction == "observed"
    points = tuple(normalised.shape[1:]) if observed else tuple(2 * a for a in encoder.anchors)
    grid = Grid(points, (1.0,) * len(points))
    positions = jnp.asarray(grid_positions(grid), normalised.dtype)
    values = resample(normalised, points).reshape(normalised.shape[0], -1).T
    if encoder.solves_directly:
        basis = encoder.renderer.basis(geometry, positions)
        # At the optimum the amplitudes contribute no gradient (variable projection).
        amplitude = jax.lax.stop_gradient(least_squares(basis, values))
        geometry = geometry.with_amplitude(amplitude, geometry.offset)
        rendered = basis @ amplitude
    else:
        if encoder.amplitudes == "solved":
            fixed, frame = jax.lax.stop_gradient((geometry, normalised))
            solved = solve_amplitudes(fixed, frame, points=points, renderer=encoder.renderer)
            geometry = geometry.with_amplitude(solved.amplitude, geometry.offset)
        which = value(len(points))
        rendered = encoder.renderer(geometry, [which], grid)[which].reshape(values.shape[1], -1).T
    unit = std if observed else jnp.ones_like(std)
    loss = jnp.mean(((rendered - values) * unit) ** 2)
    if sobolev:
        slopes = gradient(len(points))
        found = encoder.renderer.at(geometry, slopes, positions, grid.lengths)
        for slope in slopes:
            truth = resample(differentiate(normalised, slope, grid.lengths), points)
            truth = truth.reshape(values.shape[1], -1)
            loss = loss + sobolev * jnp.mean((found[slope] - truth) ** 2) / jnp.mean(truth**2)
    return loss


def batch_reconstruction_loss(
    encoder: UNet,
    frames: Float[Array, "B C *N"],
    shifts: Float[Array, "B d"],
    *,
    sobolev: float = 0.0,
    reconstruction: str = "shifted",
) -> Float[Array, ""]:
    """The mean over a batch: the network on all frames at once, then the renders one after the
    other, because a batch of them falls out of cache."""
    predicted = jax.vmap(lambda u, shift: _predicted(encoder, u, shift, reconstruction))(
        frames, shifts
    )

    @jax.checkpoint
    def one(predicted):
        normalised, std, geometry = predicted
        return _mismatch(encoder, normalised, std, geometry, sobolev, reconstruction)

    return jnp.mean(jax.lax.map(one, predicted))


def _shifted(u: Field, shift: Float[Array, " d"], anchors: tuple[int, ...]) -> Field:
    """The periodic field moved by fractions of half an anchor cell, exactly."""
    grid = Grid(tuple(u.shape[1:]), (1.0,) * len(anchors))
    modes = jnp.fft.rfftn(u, axes=range(1, u.ndim))
    for axis, k in enumerate(grid.modes()):
        distance = shift[axis] * 0.5 / anchors[axis]
        modes = modes * jnp.exp(-2j * np.pi * jnp.asarray(k, u.dtype) * distance)
    return jnp.fft.irfftn(modes, s=grid.points, axes=range(1, u.ndim)).astype(u.dtype)

"""What the two stages minimise, and what can be said of a batch on which they failed."""

from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..derivative import gradient, value
from ..encoders import UNetEncoder
from ..encoders.encoder import normalise
from ..encoders.solve import least_squares, solve_amplitudes
from ..gaussians import Gaussians
from ..grid import Grid
from ..operators import FNO
from ..render.renderer import grid_positions
from ..spectral import Field, differentiate, resample
from ..stepper import Coefficients, Stepper, rollout

RECONSTRUCTIONS = ("shifted", "observed")


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

    def advance(u, target):
        u = stepper.in_loss(u, coefficients)
        error = u - target
        return u, (jnp.mean((error / unit) ** 2), jnp.mean(error**2))

    ours = _remembers_little(stepper)
    # Written out for other networks: XLA's convolutions are ten times slower in a loop on CPUs.
    _, (scaled, plain) = jax.lax.scan(
        advance if ours else jax.checkpoint(advance), window[0], window[1:], unroll=not ours
    )
    return jnp.mean(scaled), jnp.mean(plain)


def _remembers_little(stepper: Stepper) -> bool:
    """Whether a step keeps no hidden fields for its gradient, so that nothing need be recomputed.

    Our FNO keeps its input alone and no gradient enters Φ, which would only be computed twice.
    """
    return isinstance(getattr(stepper, "network", None), FNO)


def batch_rollout_loss(
    stepper: Stepper,
    windows: Float[Array, "B F C *N"],
    coefficients: Mapping[str, Float[Array, " B"]],
    *,
    scale: Float[Array, " C"],
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The mean of `rollout_loss` over a batch with one set of coefficients for each window."""
    scaled, plain = jax.vmap(lambda window, own: rollout_loss(stepper, window, own, scale=scale))(
        windows, coefficients
    )
    return jnp.mean(scaled), jnp.mean(plain)


def reconstruction_loss(
    encoder: UNetEncoder,
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
    encoder: UNetEncoder, u: Field, shift: Float[Array, " d"], reconstruction: str
) -> tuple[Field, Float[Array, " C"], Gaussians]:
    """The normalised frame, its deviation, and the geometry that the network gives it."""
    frame = u if reconstruction == "observed" else _shifted(u, shift, encoder.anchors)
    normalised, _, std = normalise(frame)
    return normalised, std, encoder.predict(normalised)


def _mismatch(
    encoder: UNetEncoder,
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
    encoder: UNetEncoder,
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


def worst_frame(
    encoder: UNetEncoder,
    frames: Float[Array, "B C *N"],
    shifts: Float[Array, "B d"],
    *,
    fields: tuple[str, ...],
) -> str:
    """In words, which field of a batch of frames is not finite or largest."""
    return _in_words(_largest(frames[:, None]), fields, "frame", "reaches")


def worst_prediction(
    stepper: Stepper,
    windows: Float[Array, "B F C *N"],
    coefficients: Mapping[str, Float[Array, " B"]],
    *,
    fields: tuple[str, ...],
) -> str:
    """In words, which field of which prediction left the finite numbers first or is worst."""

    @eqx.filter_jit
    def errors(stepper, windows, coefficients):
        def one(window, own):
            return rollout(stepper, window[0], own, steps=len(window) - 1) - window[1:]

        return jax.vmap(one)(windows, coefficients)

    held = _largest(windows)
    if not np.isfinite(held).all():
        return "the data themselves: " + _in_words(held, fields, "frame", "reaches")
    found = _largest(errors(stepper, windows, coefficients))
    return _in_words(found, fields, "predicted step", "is off by")


def _largest(values: Float[Array, "B T C *N"]) -> np.ndarray:
    """Largest absolute value of each field of each frame, infinite where any is not finite."""
    sizes = np.abs(np.asarray(values))
    sizes = np.where(np.isfinite(sizes), sizes, np.inf)
    return sizes.max(axis=tuple(range(3, sizes.ndim)))


def _in_words(sizes: np.ndarray, fields: tuple[str, ...], what: str, verb: str) -> str:
    bad = ~np.isfinite(sizes)
    if bad.any():
        first = int(np.argmax(bad.any(axis=(0, 2))))
        sample, channel = (int(i[0]) for i in np.nonzero(bad[:, first]))
        finding = "is not finite"
    else:
        sample, first, channel = (int(i) for i in np.unravel_index(sizes.argmax(), sizes.shape))
        finding = f"{verb} {sizes[sample, first, channel]:g}"
    return f"field {fields[channel]} in sample {sample} of the batch, {what} {first + 1}, {finding}"

"""What the two stages minimise, and what can be said of a batch on which they failed."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..stepper import Coefficients, Stepper, course, rollout

RECONSTRUCTIONS = ("shifted", "observed")
# Windows of which Φ leaves less than this part of the energy that it typically leaves count alike.
_LEAST_LEFT = 1e-4


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

    changing = course(stepper, coefficients, len(window) - 1)

    def advance(u, step):
        target, now = step
        u = stepper.in_loss(u, {**coefficients, **now})
        error = u - target
        return u, (jnp.mean((error / unit) ** 2), jnp.mean(error**2))

    # No gradient enters Φ, so that computing a step again would compute Φ twice for nothing.
    _, (scaled, plain) = jax.lax.scan(
        advance if stepper.light_gradient else jax.checkpoint(advance),
        window[0],
        (window[1:], changing),
        unroll=not stepper.scannable,
    )
    return jnp.mean(scaled), jnp.mean(plain)


def batch_rollout_loss(
    stepper: Stepper,
    windows: Float[Array, "B F C *N"],
    coefficients: Mapping[str, Any],  # one for each window: numbers, times, signals
    *,
    scale: Float[Array, " C"],
    alike: bool = False,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The mean of `rollout_loss` over a batch with one set of coefficients for each window. Those
    that count `alike` are in units of what Φ leaves of their own first step."""

    def one(window: Float[Array, "F C *N"], own: Coefficients):
        scaled, plain = rollout_loss(stepper, window, own, scale=scale)
        return (scaled / _left(stepper, window, own, scale=scale) if alike else scaled), plain

    scaled, plain = jax.vmap(one)(windows, coefficients)
    return jnp.mean(scaled), jnp.mean(plain)


def _left(
    stepper: Stepper,
    window: Float[Array, "F C *N"],
    coefficients: Coefficients,
    *,
    scale: Float[Array, " C"],
) -> Float[Array, ""]:
    """The mean squared error of the physics alone after one step, in units of `scale`; of a bare
    network's window, of no change at all."""
    changing = course(stepper, coefficients, len(window) - 1)
    first = {**coefficients, **jax.tree.map(lambda values: values[0], changing)}
    physics = stepper.physics_alone
    made = window[0] if physics is None else physics(window[0], first)
    unit = scale.reshape((-1,) + (1,) * (window.ndim - 2))
    left = jnp.mean(((made - window[1]) / unit) ** 2)
    return jax.lax.stop_gradient(left) + _LEAST_LEFT


def worst_frame(frames: Float[Array, "B C *N"], fields: tuple[str, ...]) -> str:
    """In words, which field of a batch of frames is not finite or largest."""
    return _in_words(_largest(frames[:, None]), fields, "frame", "reaches")


def worst_prediction(
    stepper: Stepper,
    windows: Float[Array, "B F C *N"],
    coefficients: Mapping[str, Any],  # one for each window: numbers, times, signals
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

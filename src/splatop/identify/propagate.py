"""One frame ahead in a space, in as many substeps as the accuracy needs."""

import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..equation import Equation
from ..errors import SplatopError
from ..stepper import Coefficients
from .followed import Followed
from .inverse import InverseProblem

# Error in time over one frame, relative to the change; and the most substeps spent on it.
_TIME_TOLERANCE = 1e-6
MOST_SUBSTEPS = 256
# Frames on which it is measured.
_SAMPLED = 8


class Steps(NamedTuple):
    """How frames are advanced: what compiled code depends on besides shapes. Of each piece the
    first `frames` are followed, all without. A tangent may begin with the `rough` substeps."""

    unknown: tuple[str, ...]
    dt: float
    substeps: int | Array
    frames: int | Array | None = None
    rough: int | Array = 1


# Steps for coefficients: a search may find others than those that it begins with.
Pace = Callable[[np.ndarray], Steps | None]


class Lost(SplatopError):
    """The equation cannot be followed from where a search begins."""


def paced(pace: Pace, x: np.ndarray) -> Steps:
    steps = pace(x)
    if steps is None:
        raise Lost("expected values at which the equation can be followed for a frame")
    return steps


def finer_of(steps: Steps, needed: Steps | None) -> Steps:
    """These steps, in as many more substeps as other coefficients need."""
    return steps if needed is None or needed.substeps <= steps.substeps else needed


def steps_for(
    problem: InverseProblem, reduced: Followed, x: np.ndarray, *, most: int = MOST_SUBSTEPS
) -> Steps | None:
    """Enough substeps that their error does not count beside that of the data.

    None if the frame stays infinite, or inexact, with the `most` of them.
    """
    pieces = reduced.states[:, : max(1, reduced.states.shape[1] - 1)]
    flat = pieces.reshape(-1, *pieces.shape[2:])
    which = np.unique(np.linspace(0, len(flat) - 1, _SAMPLED).astype(int))
    if reduced.intervals is not None:  # the longest decides
        which = np.unique([*which, int(np.argmax(reduced.intervals))])
    when = {name: values.reshape(-1)[which] for name, values in reduced.when.items()}
    when |= jax.tree.map(lambda own: own[which // max(1, pieces.shape[1])], reduced.drive)
    tolerance = max(_TIME_TOLERANCE, 0.01 * problem.spectrum.relative_noise)

    def frame(substeps: int) -> np.ndarray:
        return np.asarray(
            _one_frame(
                problem.equation,
                reduced,
                jnp.asarray(x),
                problem.given,
                (problem.unknown, problem.dt, flat[which], when, jnp.asarray(substeps)),
            )
        )

    substeps, coarse = 1, frame(1)
    while 2 * substeps <= most:
        fine = frame(2 * substeps)
        with np.errstate(over="ignore", invalid="ignore"):  # too few of them end anywhere
            change = np.linalg.norm((fine - flat[which]).reshape(len(which), -1), axis=1)
            off = np.linalg.norm((fine - coarse).reshape(len(which), -1), axis=1)
        if np.isfinite(off).all():
            error = float(np.max(off / np.maximum(change, 1e-12 * np.linalg.norm(flat[which]))))
            # Fourth order: the error of n substeps is that of 2n times 16.
            if error / 16 <= tolerance:
                enough = error <= tolerance
                return Steps(problem.unknown, problem.dt, substeps if enough else 2 * substeps)
        substeps, coarse = 2 * substeps, fine
    return None


def named(names: tuple[str, ...], x: Float[Array, " p"], known: Coefficients) -> Coefficients:
    return {**known, **{name: x[i] for i, name in enumerate(names)}}


@eqx.filter_jit
def _one_frame(
    equation: Equation, reduced: Followed, x: Float[Array, " p"], known: Coefficients, at
) -> Array:
    unknown, dt, states, when, substeps = at
    advance = reduced.propagator(equation, named(unknown, x, known), dt, substeps)
    return jax.vmap(advance)(jnp.asarray(states), when)


def described(problem: InverseProblem, x: np.ndarray) -> str:
    """The values at which something happened, for messages."""
    return ", ".join(
        f"{name} = {value:.3g}" if math.isfinite(value) else f"{name} not finite"
        for name, value in zip(problem.unknown, x, strict=True)
    )

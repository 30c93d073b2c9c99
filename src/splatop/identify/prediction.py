"""Trajectories from initial states, as frames to compare, and their derivatives by coefficients."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..equation import Equation
from ..stepper import Coefficients
from .followed import Followed
from .inverse import InverseProblem
from .propagate import Steps, named


def predicted(
    problem: InverseProblem, reduced: Followed, x: np.ndarray, states: np.ndarray, steps: Steps
) -> np.ndarray:
    """Weighted frames `(S, 1 + L, C, *M)`, the first of them what restrains the states."""
    point = jnp.asarray(x), jnp.asarray(states)
    return np.asarray(_run(problem.equation, reduced, *point, problem.given, traced(steps)))


def trajectories_of(
    problem: InverseProblem, reduced: Followed, x: np.ndarray, states: np.ndarray, steps: Steps
) -> np.ndarray:
    """Frames `(S, L, C, *M)` of the trajectories from these states; zeros beyond those followed."""
    point = jnp.asarray(x), jnp.asarray(states)
    how = problem.given, traced(steps), _frames
    return np.asarray(_run(problem.equation, reduced, *point, *how))


def columns(
    problem: InverseProblem, reduced: Followed, x: np.ndarray, states: np.ndarray, steps: Steps
) -> np.ndarray:
    """Derivatives `(p, S, 1 + L, C, *M)` of the prediction by the unknown coefficients."""
    point = jnp.asarray(x), jnp.asarray(states)
    return np.asarray(_columns(problem.equation, reduced, *point, problem.given, traced(steps)))


def known_columns(
    problem: InverseProblem, reduced: Followed, x: np.ndarray, states: np.ndarray, steps: Steps
) -> np.ndarray:
    """Derivatives `(k, S, 1 + L, C, *M)` of the prediction by the known coefficients."""
    if not problem.known:
        return np.empty((0, *states.shape))
    swapped = traced(steps)._replace(unknown=tuple(problem.known))
    values = jnp.asarray(list(problem.known.values()))
    found = {name: jnp.asarray(v) for name, v in zip(problem.unknown, x, strict=True)}
    return np.asarray(
        _columns(problem.equation, reduced, values, jnp.asarray(states), found, swapped)
    )


def traced(steps: Steps) -> Steps:
    """The same for code that is not compiled anew for another number of substeps; what is
    differentiated backwards needs to know it."""
    substeps = jnp.asarray(steps.substeps)
    return counted(steps)._replace(substeps=substeps)


def counted(steps: Steps) -> Steps:
    """The same for code that is not compiled anew for another number of frames."""
    every = np.iinfo(np.int64).max if steps.frames is None else steps.frames
    return steps._replace(frames=jnp.asarray(every), rough=1)


def _frames(
    equation: Equation,
    reduced: Followed,
    known: Coefficients,
    steps: Steps,
    along: Array | None = None,
):
    """Initial states `(S, C, *M)` and coefficients to frames `(S, L, C, *M)`.

    With frames `along` which they go each begins from the one before of these: derivatives are
    those along them, whatever errors of time the substeps make.
    """
    later_frames = reduced.states.shape[1] - 1

    def follow(states, x):
        coefficients = named(steps.unknown, x, known)
        one = reduced.propagator(equation, coefficients, steps.dt, steps.substeps)
        drive = jax.tree.map(jnp.asarray, reduced.drive)
        advance = jax.vmap(lambda u, now, drive: one(u, {**now, **drive}))

        def step(u, at):
            n, now, known = at
            followed = n < steps.frames
            u = jax.lax.cond(followed, lambda: advance(u, now, drive), lambda: jnp.zeros_like(u))
            if along is not None:
                u = u + jax.lax.stop_gradient(known - u)
            return u, u

        first = reduced.confined(states)
        when = {name: jnp.asarray(values).T for name, values in reduced.when.items()}
        led = None if along is None else jnp.moveaxis(along[:, 1:], 1, 0).astype(first.dtype)
        later = jax.lax.scan(step, first, (jnp.arange(1, 1 + later_frames), when, led))[1]
        return jnp.moveaxis(jnp.concatenate([first[None], later]), 0, 1)

    return follow


def prediction(
    equation: Equation,
    reduced: Followed,
    known: Coefficients,
    steps: Steps,
    along: Array | None = None,
):
    """The same to weighted frames `(S, 1 + L, C, *M)`, the first of them what restrains the
    states."""
    follow = _frames(equation, reduced, known, steps, along)

    def predict(states, x):
        frames = follow(states, x)
        held = reduced.held(frames[:, 0])
        return jnp.concatenate([held[:, None], reduced.weigh(frames)], axis=1)

    return predict


@eqx.filter_jit
def _run(
    equation: Equation,
    reduced: Followed,
    x: Float[Array, " p"],
    states: Array,
    known: Coefficients,
    steps: Steps,
    what: Callable = prediction,
) -> Array:
    return what(equation, reduced, known, steps)(states, x)


@eqx.filter_jit
def _columns(
    equation: Equation,
    reduced: Followed,
    x: Float[Array, " p"],
    states: Array,
    known: Coefficients,
    steps: Steps,
) -> Array:
    predict = prediction(equation, reduced, known, steps)
    return jax.vmap(lambda e: jax.jvp(lambda x: predict(states, x), (x,), (e,))[1])(jnp.eye(len(x)))

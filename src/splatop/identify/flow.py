"""Identification by matching the flow: Gauss-Newton on the coefficients of Φ, frame to frame.

Nothing is differenced in time, so what is left is Φ's own error: substeps make that small, and the
comparison never leaves the band of the data.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..equation import Equation
from ..stepper import Coefficients
from .followed import Followed
from .inverse import InverseProblem
from .propagate import Pace, Steps, finer_of, named, paced
from .uncertainty import (
    CONTRADICTED,
    Fit,
    beyond_noise,
    contradictions,
    levenberg_marquardt,
    spread,
)

# The share of a residual along one direction that no rounding has.
_MOST = 0.67


def match(problem: InverseProblem, reduced: Followed, start: np.ndarray, pace: Pace) -> Fit:
    """The coefficients for which `u_{n+1} = Φ(u_n)` comes closest over all frames."""

    def linearise(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        residual, columns = _linearise(
            problem.equation, reduced, jnp.asarray(x), problem.given, steps
        )
        return np.asarray(residual).ravel(), np.asarray(columns).reshape(len(x), -1)

    steps = paced(pace, start)
    x, residual, columns = levenberg_marquardt(linearise, start)
    # What is found may move faster than what the search began with.
    while (finer := finer_of(steps, paced(pace, x))) != steps:
        steps = finer
        x, residual, columns = levenberg_marquardt(linearise, x)
    pairs = problem.pieces * (problem.length - 1)
    shape = (pairs, *reduced.states.shape[2:])
    change = max(reduced.change, 1e-300)
    noise = np.sqrt(2 * pairs) * reduced.noise(problem.spectrum)
    found = spread(
        columns.reshape(-1, *shape),
        residual.reshape(shape),
        freedom=pairs * reduced.freedom - len(x),
        dims=reduced.waves,
        rounding=problem.precision * reduced.size,
        unseen=beyond_noise(residual, noise),
    )
    against = _contradicted(problem, reduced, x, residual, columns, steps)
    left = float(np.linalg.norm(residual)) / change
    return Fit(x, found, left, noise / change, contradicted=against)


def _contradicted(
    problem: InverseProblem,
    reduced: Followed,
    x: np.ndarray,
    residual: np.ndarray,
    columns: np.ndarray,
    steps: Steps,
) -> dict[str, tuple[float, float]]:
    """Known values that most of the residual speaks against, beyond rounding."""
    if not problem.known:
        return {}
    swapped = steps._replace(unknown=tuple(problem.known))
    values = jnp.asarray(list(problem.known.values()))
    unknown = {name: jnp.asarray(v) for name, v in zip(problem.unknown, x, strict=True)}
    known = np.asarray(_linearise(problem.equation, reduced, values, unknown, swapped)[1])
    large = _MOST * float(np.linalg.norm(residual)) / CONTRADICTED
    deviation = max(problem.precision * reduced.size, large)
    return contradictions(
        problem.known, columns, known.reshape(len(known), -1), residual, deviation
    )


@eqx.filter_jit
def _linearise(
    equation: Equation,
    reduced: Followed,
    x: Float[Array, " p"],
    known: Coefficients,
    steps: Steps,
) -> tuple[Array, Array]:
    """Residual `(S (L - 1), C, *M)` and columns `(p, S (L - 1), C, *M)`."""
    before, after = (jnp.asarray(s) for s in (reduced.states[:, :-1], reduced.states[:, 1:]))
    after = after.reshape(-1, *after.shape[2:])

    when, drive = jax.tree.map(jnp.asarray, (reduced.when, reduced.drive))

    def predict(x):
        coefficients = named(steps.unknown, x, known)
        advance = reduced.propagator(equation, coefficients, steps.dt, steps.substeps)

        def of_piece(states, when, drive):
            return jax.vmap(lambda u, now: advance(u, {**now, **drive}))(states, when)

        ahead = jax.vmap(of_piece)(before, when, drive)
        return reduced.weigh(ahead.reshape(after.shape))

    predicted = predict(x)
    columns = jax.vmap(lambda direction: jax.jvp(predict, (x,), (direction,))[1])(jnp.eye(len(x)))
    return reduced.weigh(after) - predicted, columns

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
from .problem import Problem, Reduced
from .propagate import Settings, check_reached, named, propagator, settings_for
from .uncertainty import Fit, levenberg_marquardt, spread


def match(problem: Problem, reduced: Reduced, start: np.ndarray) -> Fit:
    """The coefficients for which `u_{n+1} = Φ(u_n)` comes closest over all frames."""
    settings = settings_for(problem, reduced, start)

    def linearise(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        residual, columns = _linearise(
            problem.equation, reduced, jnp.asarray(x), problem.given, settings
        )
        return np.asarray(residual).ravel(), np.asarray(columns).reshape(len(x), -1)

    x, residual, columns = levenberg_marquardt(linearise, start)
    check_reached(problem, residual, x)
    shape = (len(reduced.states) - 1, *reduced.states.shape[1:])
    found = spread(
        columns.reshape(-1, *shape),
        residual.reshape(shape),
        freedom=shape[0] * reduced.freedom - len(x),
        dims=problem.grid.dims,
        rounding=problem.precision * reduced.size,
    )
    change = max(reduced.change, 1e-300)
    noise = np.sqrt(2 * shape[0]) * reduced.noise(problem.spectrum)
    return Fit(x, found, float(np.linalg.norm(residual)) / change, noise / change)


@eqx.filter_jit
def _linearise(
    equation: Equation,
    reduced: Reduced,
    x: Float[Array, " p"],
    known: Coefficients,
    settings: Settings,
) -> tuple[Array, Array]:
    """Residual `(T - 1, C, *M)` and columns `(p, T - 1, C, *M)`."""

    def predict(x):
        advance = propagator(equation, reduced, named(settings.unknown, x, known), settings)
        return reduced.weigh(jax.vmap(advance)(jnp.asarray(reduced.states[:-1])))

    predicted = predict(x)
    columns = jax.vmap(lambda direction: jax.jvp(predict, (x,), (direction,))[1])(jnp.eye(len(x)))
    return jnp.asarray(reduced.weigh(reduced.states[1:])) - predicted, columns

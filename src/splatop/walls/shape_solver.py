"""Reference solutions on a shape: the embedded physics' own space with more anchors, in double
precision. Affine equations are solved exactly in time, the others by ETDRK4 with a time step that
is halved until nothing changes.

Not independent of Φ, as the reference between walls is: there is no second basis for a shape. What
it leaves is measured against analytic solutions where there are some, and by doubling the anchors.
"""

from collections.abc import Iterable, Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..domain import Domain
from ..equation import Equation
from ..equation.expansion import is_affine
from ..points import Points
from ..spaces import ShapeSpace
from ..threads import one_blas_thread
from .converged import solve_in_space
from .galerkin import Galerkin, Lifted
from .resolution import wall_space
from .shape_resolution import shape_anchors

# Anchors across the shape, where nobody says.
ANCHORS = 28
# Harmonics in random initial states: as many as products of five along two axes.
BAND = 25
# Columns of a matrix that are made at a time.
_TOGETHER = 128


def solve_on_shape(
    equation: Equation,
    coefficients: Mapping[str, float],
    start: Float[np.ndarray, "B C R"],
    *,
    domain: Domain,
    at: Points,
    dt: float,
    steps: int,
    anchors: int = ANCHORS,
    tolerance: float = 1e-7,
    t0: float = 0.0,
) -> tuple[Float[np.ndarray, "B T C P"], float]:
    """Trajectories from numbers of the space (`random_starts`), all at once, and the
    largest error of a frame: the difference between n and 2n substeps. The time of `start` is
    `t0`."""
    with jax.enable_x64(True):
        scheme = Galerkin(equation, wall_space(equation, domain, shape_anchors(domain, anchors)))
        space = scheme.space
        assert isinstance(space, ShapeSpace)
        matrix = space.sample_matrix(at)

        def sampled(c: Array | np.ndarray, lifted: Lifted | None) -> np.ndarray:
            own = np.matmul(matrix, np.asarray(c)[..., None])[..., 0]
            return own if lifted is None else own + np.asarray(space.lift_evaluate(lifted, at))

        c = jnp.asarray(start, jnp.float64)
        if is_affine(equation, 2) and not scheme.moving:
            lifted = scheme.lifted(coefficients)
            states = _exactly(scheme, coefficients, lifted, np.asarray(c), dt=dt, steps=steps)
            return np.stack([sampled(one, lifted) for one in states], axis=1), 0.0
        frames, worst, _ = solve_in_space(
            scheme, coefficients, c, sampled, dt=dt, steps=steps, tolerance=tolerance, t0=t0
        )
    return np.stack(frames, axis=1), worst


def _exactly(
    scheme: Galerkin,
    coefficients: Mapping[str, float],
    lifted: Lifted | None,
    start: np.ndarray,
    *,
    dt: float,
    steps: int,
) -> list[np.ndarray]:
    """All states of an affine equation, by the exponential of what advances a frame."""
    from scipy.linalg import expm

    fixed, slopes = _linearised(scheme, coefficients, lifted, jnp.zeros_like(start[0]))
    size = fixed.size
    # The constant part as the rate of one more number, which is 1.
    whole = np.zeros((size + 1, size + 1))
    whole[:size, :size], whole[:size, size] = np.reshape(slopes, (size, size)).T, np.ravel(fixed)
    whole[range(size), range(size)] += np.ravel(scheme.diagonal(coefficients))
    with one_blas_thread():
        advance = expm(dt * whole)
    states = [start]
    for _ in range(steps):
        flat = states[-1].reshape(len(start), size)
        states.append((flat @ advance[:size, :size].T + advance[:size, size]).reshape(start.shape))
    return states


@eqx.filter_jit
def _linearised(
    scheme: Galerkin, coefficients: Mapping[str, float], lifted: Lifted | None, at: Array
) -> tuple[Array, Array]:
    """The rate without its diagonal part, and its derivatives by each number `(n, *at)`."""

    def rate(c: Array) -> Array:
        return scheme.remainder(c, coefficients, lifted)

    value, along = jax.linearize(rate, at)
    directions = jnp.eye(at.size).reshape(-1, *at.shape)
    return value, jax.lax.map(along, directions, batch_size=min(_TOGETHER, at.size))


def random_starts(
    equation: Equation, *, domain: Domain, keys: Iterable[Array], anchors: int = ANCHORS
) -> Float[np.ndarray, "B C R"]:
    """Random states of the lowest harmonics that obey the conditions, largest value about 1, as
    numbers of the space that the reference computes in."""
    space = wall_space(equation, domain, shape_anchors(domain, anchors))
    (width,) = space.shape
    shape = (len(equation.fields), min(BAND, width))
    drawn = [np.asarray(jax.random.normal(key, shape, np.float32), float) for key in keys]
    padded = np.pad(np.stack(drawn), ((0, 0), (0, 0), (0, width - shape[1])))
    assert isinstance(space, ShapeSpace)
    at = Points.of(space.nodes.places, lengths=domain.lengths, origin=domain.origin)
    values = np.matmul(space.sample_matrix(at), padded[..., None])[..., 0]
    return padded / np.abs(values).max(axis=-1, keepdims=True)

"""Reference solutions on a shape: the embedded physics' own space with more anchors, ETDRK4 in
double precision, and a time step that is halved until nothing changes.

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
from ..errors import SplatopError
from ..points import Points
from ..spaces import Sampling
from .converged import converged_frames
from .galerkin import Galerkin
from .on_shape import shape_anchors
from .resolution import wall_space

# Anchors across the shape, where nobody says.
ANCHORS = 28
# Harmonics in random initial states: as many as products of five along two axes.
BAND = 25


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
) -> tuple[Float[np.ndarray, "B T C P"], float]:
    """Trajectories from numbers of the space (`random_starts`, `starts_from`), all at once, and the
    largest error of a frame: the difference between n and 2n substeps."""
    with jax.enable_x64(True):
        scheme = Galerkin(equation, wall_space(equation, domain, shape_anchors(domain, anchors)))
        if equation.uses_time or scheme.moving:
            raise SplatopError(
                "expected no t in the equation or at the edges for the reference on a shape, got "
                "one: solve on a box, or bring your own data"
            )
        lifted = scheme.lifted(coefficients)
        values = {name: jnp.asarray(float(value)) for name, value in coefficients.items()}
        matrix = scheme.space.sample_matrix(at)  # type: ignore[union-attr]
        background = 0.0
        if lifted is not None:
            where: Sampling = at
            background = np.asarray(scheme.space.lift_evaluate(lifted, where))
        tables: dict[int, object] = {}

        def one_frame(c: Array, substeps: int) -> Array:
            if substeps not in tables:
                tables[substeps] = scheme.tables(dt / substeps, coefficients)
            count = jnp.asarray(substeps)
            return _advance(scheme, c, tables[substeps], values, lifted, count, dt / count)

        def sampled(c: Array) -> np.ndarray:
            return np.matmul(matrix, np.asarray(c)[..., None])[..., 0] + background

        c = jnp.asarray(start, jnp.float64)
        frames, worst = [sampled(c)], 0.0
        states = converged_frames(c, one_frame, _relative, steps=steps, dt=dt, tolerance=tolerance)
        for state, error in states:
            frames.append(sampled(state))
            worst = max(worst, error)
    return np.stack(frames, axis=1), worst


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
    nodes = space.nodes.places  # type: ignore[union-attr]
    at = Points.of(nodes, lengths=domain.lengths, origin=domain.origin)
    values = np.matmul(space.sample_matrix(at), padded[..., None])[..., 0]  # type: ignore[union-attr]
    return padded / np.abs(values).max(axis=-1, keepdims=True)


def starts_from(
    equation: Equation,
    coefficients: Mapping[str, float],
    frames: Float[np.ndarray, "B C P"],
    *,
    domain: Domain,
    at: Points,
    anchors: int = ANCHORS,
) -> Float[np.ndarray, "B C R"]:
    """The numbers of states that are known at points."""
    with jax.enable_x64(True):
        scheme = Galerkin(equation, wall_space(equation, domain, shape_anchors(domain, anchors)))
        lifted = scheme.lifted(coefficients)
        enter = jax.vmap(lambda u: scheme.enter(u, at, lifted))
        return np.asarray(enter(jnp.asarray(frames, jnp.float64)))


@eqx.filter_jit
def _advance(scheme: Galerkin, c, tables, coefficients, lifted, substeps, length):
    def step(_, c):
        def one(own):
            return scheme.exponential_step(own, tables, coefficients, lifted, length)

        return jax.vmap(one)(c)

    return jax.lax.fori_loop(0, substeps, step, c)


def _relative(one: Array, other: Array) -> float:
    """The largest of all trajectories."""
    size = jnp.maximum(jnp.linalg.norm(other, axis=(1, 2)), 1e-300)
    difference = float(jnp.max(jnp.linalg.norm(one - other, axis=(1, 2)) / size))
    return difference if np.isfinite(difference) else np.inf

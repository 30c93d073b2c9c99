"""How fast is the fastest mode? The spectrum of the linearised physics, by Arnoldi iteration."""

import jax
import jax.numpy as jnp
import numpy as np

from .errors import SplatopError
from .physics import Physics
from .spectral import Field
from .stepper import Coefficients

# RK4's stability region reaches 2.785 along the negative real axis, 2.828 along the imaginary.
RK4_REACH = 2.785
KRYLOV_SIZE = 32


def spectral_radius(
    physics: Physics, u: Field, coefficients: Coefficients, *, rest: bool = False
) -> float:
    """The fastest rate of the linearised right-hand side; with `rest`, of what an exponential
    integrator does not solve exactly."""
    return float(np.abs(extremal_eigenvalues(physics, u, coefficients, rest=rest)).max())


def extremal_eigenvalues(
    physics: Physics, u: Field, coefficients: Coefficients, *, rest: bool = False
) -> np.ndarray:
    """The outermost eigenvalues of the physics linearised at `u`, in 1 / time."""
    state, rate = physics.motion(jnp.asarray(u), coefficients, rest=rest)
    return _extremal_eigenvalues(jax.jit(lambda v: jax.jvp(rate, (state,), (v,))[1]), state)


def _extremal_eigenvalues(apply, like: Field) -> np.ndarray:
    """Ritz values of a linear map on fields from a Krylov space of random start."""
    rng = np.random.default_rng(0)
    shape, size = like.shape, like.size
    steps = min(KRYLOV_SIZE, size - 1)
    basis = np.zeros((steps + 1, size))
    hessenberg = np.zeros((steps + 1, steps))
    start = rng.standard_normal(size)
    basis[0] = start / np.linalg.norm(start)
    for j in range(steps):
        image = np.asarray(apply(jnp.asarray(basis[j].reshape(shape), like.dtype)), float).ravel()
        if not np.isfinite(image).all():
            raise SplatopError(
                "expected a right-hand side that single precision can hold, got one that is not "
                "finite: check the sizes of the coefficients and of the data"
            )
        for _ in range(2):  # orthogonalising twice is enough
            overlap = basis[: j + 1] @ image
            hessenberg[: j + 1, j] += overlap
            image = image - basis[: j + 1].T @ overlap
        norm = np.linalg.norm(image)
        hessenberg[j + 1, j] = norm
        if norm < 1e-10 * max(1e-300, np.abs(hessenberg[: j + 1, j]).max()):
            steps = j + 1
            break
        basis[j + 1] = image / norm
    return np.linalg.eigvals(hessenberg[:steps, :steps])

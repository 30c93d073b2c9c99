"""Will RK4 be stable? The spectrum of the linearised physics against RK4's stability region."""

import math
import warnings
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Stability:
    """What RK4 does to the fastest modes of the linearised equation in one substep."""

    spectral_radius: float  # of the linearised right-hand side, per unit time
    reach: float  # |λ| dt / substeps; RK4 allows 2.8
    amplification: float  # largest |R(z)| beyond what the equation itself grows by
    substeps: int
    needed_substeps: int  # the least that keeps `reach` within RK4's region

    @property
    def stable(self) -> bool:
        return self.amplification <= 1 + 1e-3


def stability(physics: Physics, u: Field, coefficients: Coefficients) -> Stability:
    """Extremal eigenvalues of the right-hand side linearised at `u`, by Arnoldi iteration."""
    eigenvalues = extremal_eigenvalues(physics, u, coefficients)
    h = physics.dt / physics.substeps
    z = eigenvalues * h
    growth = np.abs(1 + z + z**2 / 2 + z**3 / 6 + z**4 / 24)
    own_growth = np.maximum(1.0, np.exp(np.minimum(z.real, 50.0)))
    radius = float(np.abs(eigenvalues).max())
    return Stability(
        spectral_radius=radius,
        reach=radius * h,
        amplification=float(np.max(growth / own_growth)),
        substeps=physics.substeps,
        needed_substeps=max(1, math.ceil(radius * physics.dt / RK4_REACH)),
    )


def spectral_radius(
    physics: Physics, u: Field, coefficients: Coefficients, *, rest: bool = False
) -> float:
    """The fastest rate of the linearised right-hand side; with `rest`, of what an exponential
    integrator does not solve exactly."""
    return float(np.abs(extremal_eigenvalues(physics, u, coefficients, rest=rest)).max())


def extremal_eigenvalues(
    physics: Physics, u: Field, coefficients: Coefficients, *, rest: bool = False
) -> np.ndarray:
    state, rate = physics.motion(jnp.asarray(u), coefficients, rest=rest)
    return _extremal_eigenvalues(jax.jit(lambda v: jax.jvp(rate, (state,), (v,))[1]), state)


def check_stability(physics: Physics, u: Field, coefficients: Coefficients) -> Stability:
    """Refuse a step that RK4 would blow up, warn of one close to it; say what to change."""
    found = stability(physics, u, coefficients)
    advice = (
        f"use at least {found.needed_substeps} substeps, a smaller time step, or a lower cutoff"
    )
    numbers = (
        f"|λ| dt = {found.reach:.3g} per substep (spectral radius {found.spectral_radius:.4g}, "
        f"dt {physics.dt:g}, {physics.substeps} substep(s)); RK4 allows about {RK4_REACH}"
    )
    if not found.stable:
        raise SplatopError(
            f"RK4 is unstable at this cutoff and time step: {numbers}; the fastest mode grows "
            f"{found.amplification:.3g}-fold per substep: {advice}"
        )
    if found.reach > 0.9 * RK4_REACH:
        warnings.warn(f"RK4 is close to its stability limit: {numbers}: {advice}", stacklevel=2)
    return found


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

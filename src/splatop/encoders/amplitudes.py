"""Amplitudes by least squares for a given geometry (variable projection).

The field is linear in the amplitudes, so a network need only predict where primitives sit and how
wide they are. The solve is differentiable; a loss that is at its optimum in the amplitudes needs no
derivative of it, and stops it itself.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import SplatopError
from ..gaussians import Gaussians
from ..grid import Grid
from ..render import DenseRenderer, LocalRenderer, PointRenderer
from ..render.fourier import fourier_basis
from ..render.renderer import grid_positions
from ..spectral import Field, resample

# Tikhonov weight relative to the mean diagonal of the normal matrix: the float32 normal matrix
# has a relative rounding error of 1e-7 times its condition number.
RIDGE = 1e-5


# Above this many primitives (all of 3D) the normal matrix is not formed.
LARGEST_DIRECT_SOLVE = 2500
CG_ITERATIONS = 20
PRECONDITIONER_FLOOR = 0.1


def least_squares(
    basis: Float[Array, "Q G"], values: Float[Array, "Q C"], ridge: float = RIDGE
) -> Float[Array, "G C"]:
    """`argmin |basis α - values|² + ridge <diag> |α|²` by Cholesky on the normal equations."""
    return jax.scipy.linalg.cho_solve(_normal_factor(basis, ridge), basis.T @ values)


def _normal_factor(basis: Float[Array, "Q G"], ridge: float):
    normal = basis.T @ basis
    weight = ridge * jnp.trace(normal) / normal.shape[0]
    return jax.scipy.linalg.cho_factor(normal + weight * jnp.eye(len(normal), dtype=normal.dtype))


def solve_amplitudes(
    gaussians: Gaussians,
    u: Field,
    *,
    points: tuple[int, ...] | None = None,
    renderer: PointRenderer = DenseRenderer(),
    ridge: float = RIDGE,
) -> Gaussians:
    """The same primitives with amplitudes that fit the zero-mean field `u` best on `points`.

    Without `points`, two per anchor along each axis. The renderer must be the one used afterwards:
    a window leaves out tails that the solution would otherwise count on.
    """
    points = sample_points(gaussians, tuple(u.shape[1:]), points)
    target = resample(u, points)
    if len(gaussians.center) > LARGEST_DIRECT_SOLVE:
        local = renderer if isinstance(renderer, LocalRenderer) else LocalRenderer()
        amplitude = _solve_iteratively(gaussians, target, local, ridge)
    else:
        values = target.reshape(u.shape[0], -1).T
        amplitude = least_squares(_sampled(gaussians, points, renderer), values, ridge)
    return gaussians.with_amplitude(amplitude, gaussians.offset)


def sample_points(
    gaussians: Gaussians, grid: tuple[int, ...], points: tuple[int, ...] | None = None
) -> tuple[int, ...]:
    """The grid on which amplitudes are fitted, for a field on the grid given."""
    if points is None:
        if gaussians.anchors is None:
            raise SplatopError("expected `points` for Gaussians that have no anchor lattice")
        points = tuple(2 * a for a in gaussians.anchors)
    return tuple(min(p, n) for p, n in zip(points, grid, strict=True))


def _sampled(gaussians: Gaussians, points: tuple[int, ...], renderer: PointRenderer):
    """Each primitive on the grid of `points`, `(Q, G)`."""
    positions = grid_positions(Grid(points, (1.0,) * len(points)))
    return renderer.basis(gaussians, jnp.asarray(positions, gaussians.center.dtype))


def modes_of_samples(
    gaussians: Gaussians,
    points: tuple[int, ...],
    band: tuple[int, ...],
    *,
    renderer: PointRenderer = DenseRenderer(),
    ridge: float = RIDGE,
) -> Float[Array, "Q two_K"]:
    """The matrix from a zero-mean field on `points` to the modes in `band`, real parts before
    imaginary ones, of the Gaussians that fit it best: least squares and rendering at once."""
    basis = _sampled(gaussians, points, renderer)
    modes = jnp.concatenate(list(fourier_basis(gaussians, band)), axis=1)
    return basis @ jax.scipy.linalg.cho_solve(_normal_factor(basis, ridge), modes)


def _solve_iteratively(
    gaussians: Gaussians, target: Field, renderer: LocalRenderer, ridge: float
) -> Float[Array, "G C"]:
    """Conjugate gradients on the normal equations."""
    render = renderer.kernels(gaussians, tuple(target.shape[1:]))
    amplitudes = jax.ShapeDtypeStruct((len(gaussians.center), len(target)), target.dtype)
    project = jax.linear_transpose(render, amplitudes)
    # The diagonal of the normal matrix is the sum of squares of one kernel, π^{d/2} Π σ_i N.
    volume = jnp.pi ** (gaussians.dims / 2) * jnp.prod(gaussians.scale, axis=-1, keepdims=True)
    diagonal = volume * float(np.prod(target.shape[1:]))
    weight = ridge * jnp.mean(diagonal)
    precondition = _lattice_preconditioner(gaussians, diagonal)
    (projected,) = project(target)
    solution, _ = jax.scipy.sparse.linalg.cg(
        lambda a: project(render(a))[0] + weight * a,
        projected,
        x0=precondition(projected),
        M=precondition,
        maxiter=CG_ITERATIONS,
    )
    return solution


def _lattice_preconditioner(
    gaussians: Gaussians, diagonal: Float[Array, "G 1"]
) -> Callable[[Array], Array]:
    """The inverse of the normal matrix of a lattice of kernels that are as wide on average, which
    is a convolution, between scalings to the actual diagonal."""
    anchors = gaussians.anchors
    assert anchors is not None
    axes = range(gaussians.dims)
    eigenvalues = jnp.ones(())
    for axis, a in enumerate(anchors):
        width = a * jnp.exp(jnp.mean(jnp.log(gaussians.scale[:, axis])))
        apart = np.minimum(np.arange(a), a - np.arange(a))
        along = jnp.fft.fft(jnp.exp(-0.25 * (apart / width) ** 2)).real
        eigenvalues = eigenvalues[..., None] * along
    # What an uneven lattice has in its weakest modes is far from what an even one has.
    eigenvalues = eigenvalues + PRECONDITIONER_FLOOR
    scaling = diagonal**-0.5

    def precondition(a: Float[Array, "G C"]) -> Float[Array, "G C"]:
        modes = jnp.fft.fftn((a * scaling).reshape(*anchors, -1), axes=axes)
        smooth = jnp.fft.ifftn(modes / eigenvalues[..., None], axes=axes).real
        return smooth.reshape(a.shape) * scaling

    return precondition

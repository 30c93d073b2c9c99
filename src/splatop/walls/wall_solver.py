"""Reference solutions on a box with walls: Chebyshev nodes, ETDRK4, extrapolation, in double
precision.

Independent of the embedded physics: polynomials instead of Gaussians, collocation instead of
projection, several times its resolution, and a time step that is halved until nothing changes.
"""

import warnings
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..domain import Domain
from ..equation import Equation
from ..grid import Grid
from ..initial import harmonic_condition
from ..spaces import BoxSpace, Sampling
from ..stepper import TIME
from .conditions import check_solvable
from .converged import solve_in_space
from .galerkin import Galerkin

LEAST_NODES, MOST_NODES = 48, 160
# Share of the amplitude in the upper third of the numbers from which a run counts as coarse.
UNRESOLVED = 1e-3


def solve_between_walls(
    equation: Equation,
    coefficients: Mapping[str, float],
    u0: Float[Array | np.ndarray, "C *N"],
    *,
    domain: Domain,
    grid: Grid,
    dt: float,
    steps: int,
    tolerance: float = 1e-7,
    t0: float = 0.0,
) -> tuple[Float[np.ndarray, "T C *N"], float]:
    """The trajectory `u0, u(dt), ..., u(steps dt)` on the grid, and the largest error of a frame.

    Each frame is computed with n and with 2n substeps, n doubled until the two differ by less than
    the tolerance; the frame kept is what fourth order extrapolates from the two. The time of `u0`
    is `t0`.
    """
    check_solvable(equation, domain, coefficients)
    along = grid.fractions()
    with jax.enable_x64(True):
        scheme = Galerkin(equation, reference_space(domain, equation.fields, grid.points))
        smooth = Galerkin(equation, starting_space(domain, equation.fields, grid.points))
        fitted = smooth.enter(
            jnp.asarray(u0, jnp.float64), along, smooth.lifted({**coefficients, TIME: t0})
        )
        where: Sampling = scheme.space.fractions()
        start = scheme.space.project(smooth.space.evaluate(fitted, where))
        frames, worst, last = solve_in_space(
            scheme,
            coefficients,
            start[None],
            lambda c, lifted: np.asarray(scheme.leave(c[0], along, lifted)),
            dt=dt,
            steps=steps,
            tolerance=tolerance,
            t0=t0,
        )
        frames[0] = np.asarray(u0, float)
        assert isinstance(scheme.space, BoxSpace)
        _warn_if_unresolved(scheme.space, np.asarray(last[0]))
    return np.stack(frames), worst


def random_state(
    equation: Equation,
    coefficients: Mapping[str, float],
    *,
    domain: Domain,
    grid: Grid,
    key: Array,
    t0: float = 0.0,
) -> Float[np.ndarray, "C *N"]:
    """A state of random harmonics that takes the values set at the edges at the time `t0`."""
    drawn = harmonic_condition(domain, equation.fields, grid, key=key)
    with jax.enable_x64(True):
        scheme = Galerkin(equation, starting_space(domain, equation.fields, grid.points))
        lifted = scheme.lifted({**coefficients, TIME: t0})
        if lifted is None:
            return drawn
        zero = jnp.zeros((len(equation.fields), *scheme.space.shape))
        return drawn + np.asarray(scheme.leave(zero, grid.fractions(), lifted))


def reference_space(domain: Domain, fields: tuple[str, ...], points: tuple[int, ...]) -> BoxSpace:
    """Chebyshev nodes between walls, and all that the points hold around a ring."""
    sizes = tuple(
        min((n - 1) // 2, 64) if axis.periodic else min(max(n, LEAST_NODES), MOST_NODES)
        for n, axis in zip(points, domain.axes, strict=True)
    )
    return BoxSpace(domain, fields, sizes, degree=3, between="chebyshev")


def starting_space(domain: Domain, fields: tuple[str, ...], points: tuple[int, ...]) -> BoxSpace:
    """What samples on a uniform grid are carried to the nodes with."""
    sizes = tuple(
        min((n - 1) // 2, 64) if axis.periodic else min(max(n // 2, 6), 80)
        for n, axis in zip(points, domain.axes, strict=True)
    )
    return BoxSpace(domain, fields, sizes)


def _warn_if_unresolved(space: BoxSpace, c: np.ndarray) -> None:
    whole = float(np.square(c).sum())
    beyond = np.zeros(c.shape[1:], bool)
    for axis, r in enumerate(space.shape):
        place = [1] * space.dims
        place[axis] = r
        beyond = beyond | (np.arange(r) > 2 * r / 3).reshape(place)
    share = np.sqrt(float(np.square(c[:, beyond]).sum()) / max(whole, 1e-300))
    if share > UNRESOLVED:
        warnings.warn(
            f"{'x'.join(map(str, space.shape))} nodes are coarse for this solution: {share:.1%} of "
            "its amplitude lies in the upper third of its harmonics. Take more points, or more "
            "diffusion",
            stacklevel=3,
        )

"""exponax's ETDRK4 for the stiff problems that it has, on the grid that costs it least."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..coarse import truncate
from ..jets import fast_size
from ..spectral import resample
from .timing import relative_error

Step = Callable[[Array], Array]
# Substeps of a frame that are tried, and grids between a quarter of the data's points and half as
# many again, which products of a band that fills them need.
_SUBSTEPS = (1, 2, 3, 4, 5, 6, 8, 12, 16, 32, 64, 128, 256)
_GRIDS = 8


@dataclass(frozen=True)
class Solver:
    """exponax on `points` with so many steps to a frame, from and to states on its own grid."""

    step: Step
    points: tuple[int, ...]
    substeps: int
    error: float

    def __call__(self, u: Array) -> Array:
        if self.substeps == 1:
            return self.step(u)
        return jax.lax.fori_loop(0, self.substeps, lambda _, v: self.step(v), u)


def made_by_exponax(
    name: str, coefficients: Mapping[str, float], length: float, dims: int
) -> Callable[[int, float], Step]:
    """`(points, dt)` to a step of fourth order."""
    import exponax

    c = dict(coefficients)

    def ks(points: int, dt: float) -> Step:
        return exponax.stepper.KuramotoSivashinskyConservative(
            dims,
            length,
            points,
            dt,
            convection_scale=c["c"],
            second_order_scale=c["a"],
            fourth_order_scale=c["b"],
            order=4,
        )

    def kdv(points: int, dt: float) -> Step:
        return exponax.stepper.KortewegDeVries(
            dims,
            length,
            points,
            dt,
            convection_scale=c["c"],
            dispersivity=c["b"],
            hyper_diffusivity=0.0,
            single_channel=True,
            conservative=True,
            order=4,
        )

    def gray_scott(points: int, dt: float) -> Step:
        return exponax.stepper.reaction.GrayScott(
            dims,
            length,
            points,
            dt,
            diffusivity_1=c["Da"],
            diffusivity_2=c["Db"],
            feed_rate=c["F"],
            kill_rate=c["k"],
            order=4,
        )

    def fitzhugh_nagumo(points: int, dt: float) -> Step:
        return _fitzhugh_nagumo(dims, length, points, dt, c)

    return {
        "kuramoto_sivashinsky": ks,
        "kdv": kdv,
        "gray_scott": gray_scott,
        "reaction_diffusion2d": fitzhugh_nagumo,
    }[name]


def _fitzhugh_nagumo(
    dims: int, length: float, points: int, dt: float, c: Mapping[str, float]
) -> Step:
    """By exponax's own parts: it does not come with this equation."""
    from exponax import BaseStepper
    from exponax.nonlin_fun import BaseNonlinearFun

    class Reaction(BaseNonlinearFun):
        def __call__(self, u_hat: Array) -> Array:
            u, v = self.ifft(self.dealias(u_hat))
            return self.fft(jnp.stack([u - u**3 - c["k"] - v, u - v]))

    class Stepper(BaseStepper):
        def _build_linear_operator(self, derivative_operator: Array) -> Array:
            laplacian = jnp.sum(derivative_operator**2, axis=0)
            return jnp.stack([c["Du"] * laplacian, c["Dv"] * laplacian])

        def _build_nonlinear_fun(self, derivative_operator: Array) -> BaseNonlinearFun:
            return Reaction(dims, points, dealiasing_fraction=0.5)  # pyright: ignore[reportCallIssue]

    return Stepper(  # pyright: ignore[reportCallIssue]
        num_spatial_dims=dims,
        domain_extent=length,
        num_points=points,
        dt=dt,
        num_channels=2,
        order=4,  # pyright: ignore[reportCallIssue]
    )


def as_good(
    make: Callable[[int, float], Step],
    before: Array,
    after: Array,
    *,
    dt: float,
    error: float,
) -> list[Solver]:
    """For each grid the fewest steps a frame that are no less accurate than `error`: those that may
    be the cheapest, the coarsest grid first. A grid that costs more by both is left out."""
    found: list[Solver] = []
    for points in _grids(tuple(before.shape[1:])):
        start = on_grid(before, points)
        most = found[-1].substeps - 1 if found else _SUBSTEPS[-1]
        last = math.inf
        for count in (n for n in _SUBSTEPS if n <= most):
            solver = Solver(make(points[0], dt / count), points, count, 0.0)
            reached = _error(solver, start, after)
            if reached <= error:
                found.append(replace(solver, error=reached))
                break
            if 0.9 * last < reached < math.inf:
                break  # shorter steps help no more: the grid is too coarse
            last = reached
        if found and found[-1].substeps == 1:
            break
    return found


def _error(solver: Solver, start: Array, after: Array) -> float:
    made = jax.jit(lambda u: solver(u))(start)
    found = relative_error(resample(made, tuple(after.shape[1:])), after)
    return found if np.isfinite(found) else float("inf")


def _grids(fine: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Even sizes with small prime factors, each once."""
    sizes = np.geomspace(fine[0] / 4, 1.5 * fine[0], _GRIDS)
    for size in sorted({fast_size(int(np.ceil(n))) for n in sizes} | {fine[0]}):
        yield (size,) * len(fine)


def doubled(u: Array) -> Array:
    """A field between insulated walls, sampled in the middle of cells, on the periodic box that
    even reflection makes of it."""
    for axis in range(1, u.ndim):
        u = jnp.concatenate([u, jnp.flip(u, axis)], axis)
    return u


def looped(step: Step, count: int) -> Step:
    """So many steps in one compiled loop, so that calls cost nothing beside them."""

    return lambda u: jax.lax.scan(lambda v, _: (step(v), None), u, length=count)[0]


def on_grid(u: Array, points: tuple[int, ...]) -> Array:
    """A field on other points, without what they do not tell apart."""
    return truncate(u, points) if points[0] < u.shape[1] else resample(u, points)

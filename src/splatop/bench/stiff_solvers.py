"""exponax's ETDRK4 for the stiff problems that it has, on the grid that costs it least."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..coarse import truncate
from ..jets import fast_size
from ..spectral import resample
from .timing import relative_error

Step = Callable[[Array], Array]
# Substeps of a frame that are tried, and grids between a quarter of the data's points and all.
_SUBSTEPS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
_GRIDS = 10


@dataclass(frozen=True)
class Solver:
    """exponax on `points` with so many steps to a frame, from and to states on its own grid."""

    step: Step
    points: tuple[int, ...]
    substeps: int
    error: float

    def __call__(self, u: Array) -> Array:
        for _ in range(self.substeps):
            u = self.step(u)
        return u


def made_by_exponax(
    name: str, coefficients: Mapping[str, float], length: float, dims: int
) -> Callable[[int, float], Step] | None:
    """`(points, dt)` to a step of fourth order; None where exponax does not have the equation."""
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

    return {"kuramoto_sivashinsky": ks, "kdv": kdv, "gray_scott": gray_scott}.get(name)


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
        start = before if points == before.shape[1:] else truncate(before, points)
        most = found[-1].substeps - 1 if found else _SUBSTEPS[-1]
        for count in (n for n in _SUBSTEPS if n <= most):
            candidate = Solver(make(points[0], dt / count), points, count, 0.0)
            reached = _error(candidate, start, after)
            if reached <= error:
                found.append(Solver(candidate.step, points, count, reached))
                break
        if found and found[-1].substeps == 1:
            break
    return found


def _error(solver: Solver, start: Array, after: Array) -> float:
    made = jax.jit(lambda u: solver(u))(start)
    found = relative_error(resample(made, tuple(after.shape[1:])), after)
    return found if np.isfinite(found) else float("inf")


def _grids(fine: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Even sizes with small prime factors, each once."""
    sizes = np.geomspace(fine[0] / 4, fine[0], _GRIDS)
    for size in sorted({fast_size(int(np.ceil(n))) for n in sizes} | {fine[0]}):
        if size <= fine[0]:
            yield (size,) * len(fine)


def looped(step: Step, count: int) -> Step:
    """So many steps in one compiled loop, so that calls cost nothing beside them."""

    return lambda u: jax.lax.scan(lambda v, _: (step(v), None), u, length=count)[0]


def on_grid(u: Array, points: tuple[int, ...]) -> Array:
    return jnp.asarray(u if tuple(u.shape[1:]) == points else truncate(u, points))

"""Reference solutions in double precision: ETDRK4 in a space, and frames that each take as many
substeps as they need to converge."""

from collections.abc import Callable, Iterator, Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import SplatopError
from ..stepper import TIME, later
from .galerkin import Galerkin, Lifted

MAX_SUBSTEPS = 4096


def converged_frames(
    c: Array,
    one_frame: Callable[[Array, int, int], Array],
    *,
    steps: int,
    dt: float,
    tolerance: float,
) -> Iterator[tuple[Array, float]]:
    """The states of trajectories that follow `c` `(B, ...)`, each with its error: how far n and 2n
    substeps are apart, relative to the state, at most among the trajectories.

    `one_frame(c, number, substeps)` advances them over the frame of that number, from 0, in so many
    substeps of a scheme of fourth order.
    """
    substeps = 1
    for frame in range(1, steps + 1):
        coarse = one_frame(c, frame - 1, substeps)
        while True:
            fine = one_frame(c, frame - 1, 2 * substeps)
            difference = _apart(coarse, fine)
            if difference <= tolerance:
                break
            substeps, coarse = 2 * substeps, fine
            if substeps > MAX_SUBSTEPS:
                raise _not_converged(difference, tolerance, frame=frame, dt=dt)
        c = fine + (fine - coarse) / 15  # what is left of fourth order
        yield c, difference
        # Half the substeps make 16 times the difference, with a margin of 4.
        if substeps > 1 and difference < tolerance / 64:
            substeps //= 2


def solve_in_space(
    scheme: Galerkin,
    coefficients: Mapping[str, float],
    start: Float[Array, "B C *R"],
    sampled: Callable[[Array, Lifted | None], np.ndarray],
    *,
    dt: float,
    steps: int,
    tolerance: float,
    t0: float,
) -> tuple[list[np.ndarray], float, Array]:
    """All frames as `sampled` reads them off the numbers, from the first on, the largest error of a
    frame, and the last numbers."""
    lifted = scheme.lifted({**coefficients, TIME: t0})
    values = {name: jnp.asarray(float(value)) for name, value in coefficients.items()}
    tables: dict[int, object] = {}

    def one_frame(c: Array, number: int, substeps: int) -> Array:
        if substeps not in tables:
            tables[substeps] = scheme.tables(dt / substeps, {**coefficients, TIME: t0})
        now = {**values, TIME: jnp.asarray(t0 + number * dt)}
        count = jnp.asarray(substeps)
        return _advance(scheme, c, tables[substeps], now, lifted, count, dt / count)

    c, held = start, lifted
    frames, worst = [sampled(c, held)], 0.0
    states = converged_frames(c, one_frame, steps=steps, dt=dt, tolerance=tolerance)
    for frame, (c, error) in enumerate(states, start=1):
        if scheme.moving:
            held = scheme.lifted({**coefficients, TIME: t0 + frame * dt})
        frames.append(sampled(c, held))
        worst = max(worst, error)
    return frames, worst, c


@eqx.filter_jit
def _advance(scheme: Galerkin, c, tables, coefficients, lifted, substeps, length):
    def step(n, c):
        now = later(coefficients, n * length)
        return jax.vmap(lambda own: scheme.exponential_step(own, tables, now, lifted, length))(c)

    return jax.lax.fori_loop(0, substeps, step, c)


def _apart(coarse: Array, fine: Array) -> float:
    axes = tuple(range(1, fine.ndim))

    def size(c: Array) -> Array:
        return jnp.sqrt(jnp.sum(jnp.square(c), axis=axes))

    difference = float(jnp.max(size(fine - coarse) / jnp.maximum(size(fine), 1e-300)))
    return difference if np.isfinite(difference) else np.inf


def _not_converged(difference: float, tolerance: float, *, frame: int, dt: float) -> SplatopError:
    found, why = "no finite value", "the solution grows without bound, or the equation is ill-posed"
    if np.isfinite(difference):
        found, why = f"still {difference:.1e}", "the equation is too stiff for this time step"
    return SplatopError(
        f"expected {MAX_SUBSTEPS} and {2 * MAX_SUBSTEPS} substeps of dt={dt:g} to agree to "
        f"{tolerance:g} in frame {frame}, got {found}: {why}, or needs other conditions at the "
        "edges; check the signs and sizes of the coefficients, or take a smaller dt"
    )

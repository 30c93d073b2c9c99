"""Gauss-Newton on whitened unknowns: the rollout is linearised once for each step, and the normal
equations are solved by conjugate gradients, without any matrix.

Half the squared misfit in units of the noise, plus half the squared unknowns: the prior is the unit
matrix, which is also what preconditions. Windows grow: over a long one a chaotic system has many
minima, and the last, shorter window's analysis starts the next in the right one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..stepper import Stepper
from .observe import Taps, observed_rollout
from .resume import Entry
from .unknowns import Unknowns

# Computes a result, or knows it from an interrupted run.
Once = Callable[[Callable[[], Entry]], Entry]

# Frames of the windows that grow; beyond the last by this factor.
LENGTHS = (3, 6, 10, 15, 20, 25, 30, 40)
_FURTHER = 1.35
# Relative decrease of the cost below which a window is done: the last one, and those before.
_DONE, _DONE_BEFORE = 2e-4, 2e-2
# Damping at first, and again after a step too far; 1 is as much as the prior itself. A chaotic
# window whose first steps are longer ends in a wrong minimum.
_DAMPING, _LESS, _MORE, _MOST_DAMPING = 1.0, 3.0, 5.0, 1e6
# Reports of windows before the last count as so many times as noisy, the shortest most: they lead
# the way only, and a rough fit has fewer wrong minima.
_WIDER = (8.0, 8.0, 4.0, 4.0, 2.0)
# Squared misfits over the reports, in units of their own noise, from which such a window is done.
_EXPLAINED = 1.2
# Twice the cost over the reports, above which a window before the last is in a wrong minimum.
STUCK = 1.6
# Of the normal equations of a linear problem, which are solved once: relative, in single precision.
_EXACT = 1e-5


class Forward(eqx.Module):
    """From unknowns to what sensors see, in the units of the fields."""

    stepper: Stepper
    unknowns: Unknowns

    def __call__(self, x: Array, taps: Taps, later: Array | None = None) -> Float[Array, " n"]:
        u0, coefficients = self.unknowns.state(x), self.unknowns.coefficients(x)
        increments = self.unknowns.increments(x, taps.frames, later)
        return observed_rollout(
            self.stepper,
            u0,
            coefficients,
            taps,
            forcing=None if increments is None else self.unknowns.added,
            increments=increments,
        )


class Data(eqx.Module):
    """Values and noise of the observations, and which of them count, `(n,)` each."""

    values: Float[Array, " n"]
    sigma: Float[Array, " n"]
    used: Float[Array, " n"]


@dataclass(frozen=True)
class Progress:
    """Where the minimiser stands: frames of the window, steps taken, cost of the observations."""

    frames: int
    step: int
    cost: float
    count: int


@dataclass(frozen=True, eq=False)
class Minimum:
    """The best unknowns, twice the cost there in its two parts, and how it went."""

    x: np.ndarray
    misfit: float  # sum of squares in units of the noise
    prior: float  # sum of squares of the unknowns
    count: int
    steps: int
    converged: bool
    diagonal: np.ndarray  # about that of JᵀJ there
    explained: int = 0  # windows on the way whose reports were

    @property
    def ratio(self) -> float:
        """Twice the cost over the number of observations: about 1 where all is as assumed."""
        return (self.misfit + self.prior) / max(self.count, 1)


def residual(forward: Forward, taps: Taps, data: Data, x: Array) -> Float[Array, " n"]:
    return data.used * (forward(x, taps) - data.values) / data.sigma


class Step(eqx.Module):
    """At some unknowns: the sum of squared misfits and of squared unknowns, `(2,)`, the solution of
    the normal equations, by how much the linearised sum of both falls, about the diagonal of `JᵀJ`,
    and the iterations taken."""

    sums: Float[Array, " 2"]
    step: Array
    fall: Array
    diagonal: Array
    iterations: Array


class Right(eqx.Module):
    """The right-hand side of the normal equations: `gradient` times minus the cost's gradient, plus
    `Jᵀ(noise - J start)`, plus `direct`. Gauss-Newton takes the first, samples of the posterior the
    second, variances of single unknowns the third."""

    gradient: Array
    noise: Float[Array, " n"]
    start: Float[Array, " s"]
    direct: Float[Array, " s"]


@eqx.filter_jit
def normal_equations(
    forward: Forward,
    taps: Taps,
    data: Data,
    x: Array,
    right: Right,
    diagonal: Array,
    damping: Array,
    tolerance: Array,
    iterations: Array,
) -> Step:
    """One linearisation of the rollout at `x`, and one system solved with it.

    `diagonal` is what an earlier call returned, or zeros. One program serves the minimiser and the
    posterior, because compiling it takes longer than running it.
    """
    r, tangent = jax.linearize(lambda x: residual(forward, taps, data, x), x)
    transpose = jax.linear_transpose(tangent, x)
    gradient = transpose(r)[0] + x

    def normal(p):
        return transpose(tangent(p))[0] + (1 + damping) * p

    diagonal = jax.lax.cond(
        jnp.any(diagonal > 0), lambda: diagonal, lambda: forward.unknowns.sensitivity(tangent)
    )
    sampled = transpose(data.used * right.noise - tangent(right.start))[0]
    b = -right.gradient * gradient + sampled + right.direct
    step, taken = conjugate_gradients(normal, b, 1 + damping + diagonal, tolerance, iterations)
    sums = jnp.stack([jnp.sum(r**2), jnp.sum(x**2)])
    return Step(sums, step, -jnp.vdot(gradient, step), diagonal, taken)


def linear_step(
    forward: Forward, window: tuple[Taps, Data], x: np.ndarray, *, exact: bool, iterations: int = 60
) -> Step:
    """One step from `x`: to the minimum of a linear problem, or a damped one towards it."""
    taps, data = window
    nothing = jnp.zeros(len(x), jnp.float32)
    return normal_equations(
        forward,
        taps,
        data,
        jnp.asarray(x),
        Right(jnp.ones(()), jnp.zeros(taps.count), nothing, nothing),
        nothing,
        jnp.asarray(0.0 if exact else _DAMPING, jnp.float32),
        jnp.asarray(_EXACT if exact else 0.05, jnp.float32),
        jnp.asarray(6 * iterations if exact else iterations),
    )


def conjugate_gradients(
    apply: Callable[[Array], Array], b: Array, diagonal: Array, tolerance: Array, iterations: Array
) -> tuple[Array, Array]:
    """The solution of a positive definite system whose diagonal is about `diagonal`, to a relative
    residual (in the norm of the diagonal's inverse); and iterations taken."""

    def going(state):
        _, _, _, size, k = state
        return (size > tolerance**2 * whole) & (k < iterations)

    def step(state):
        x, r, p, size, k = state
        image = apply(p)
        length = size / jnp.vdot(p, image)
        x, r = x + length * p, r - length * image
        scaled = r / diagonal
        new = jnp.vdot(r, scaled)
        return x, r, scaled + new / size * p, new, k + 1

    scaled = b / diagonal
    whole = jnp.vdot(b, scaled)
    start = (jnp.zeros_like(b), b, scaled, whole, jnp.asarray(0))
    x, *_, k = jax.lax.while_loop(going, step, start)
    return x, k


def growing(frames: int) -> list[int]:
    """The windows that lead to one of so many frames."""
    lengths = [n for n in LENGTHS if n < 0.85 * frames]
    while lengths and lengths[-1] * _FURTHER < 0.85 * frames and lengths[-1] >= LENGTHS[-1]:
        lengths.append(round(lengths[-1] * _FURTHER))
    return [*lengths, frames]


def minimise(
    forward: Forward,
    windows: list[tuple[Taps, Data]],
    x: np.ndarray,
    *,
    most_steps: int = 12,
    iterations: int = 60,
    linear: bool = False,
    leading: bool = False,
    report: Callable[[Progress], None] = lambda _: None,
    once: Once = lambda compute: compute(),
) -> Minimum:
    """The minimum over the last of the windows, by way of the others.

    Windows that are only `leading` to a longer one end at the first that is not explained: from a
    wrong minimum the longer ones are not reached, and another start is cheaper.

    What a window gives may be known from an interrupted run: `once` is asked.
    """
    best, total = np.asarray(x, np.float32), 0
    sums, done, diagonal = np.full(2, np.inf), False, np.zeros(len(best), np.float32)
    explained = 0
    for number, (taps, data) in enumerate(windows):
        last = number == len(windows) - 1 and not leading
        wide = 1.0 if last else _WIDER[min(number, len(_WIDER) - 1)]
        count = int(np.sum(np.asarray(data.used)))
        before = total

        def counted(p: Progress, before: int = before) -> None:
            report(Progress(p.frames, before + p.step, p.cost, p.count))

        found = once(
            partial(
                _descent,
                forward,
                taps,
                data,
                best,
                last=last,
                wide=wide,
                most_steps=most_steps if last else max(4, 4 * most_steps // 3),
                iterations=iterations,
                linear=linear,
                report=counted,
            )
        )
        best, sums, diagonal = found["best"], found["sums"], found["diagonal"]
        done, total = bool(found["done"]), total + int(found["steps"])
        if leading and not sums.sum() <= STUCK * count:
            sums, done = np.full(2, np.inf), False
            break
        explained += 1
    taps, data = windows[-1]
    return Minimum(
        x=best,
        misfit=float(sums[0]),
        prior=float(sums[1]),
        count=int(np.sum(np.asarray(data.used))),
        steps=total,
        converged=done,
        diagonal=diagonal,
        explained=explained,
    )


def _descent(
    forward: Forward,
    taps: Taps,
    data: Data,
    best: np.ndarray,
    *,
    last: bool,
    wide: float,
    most_steps: int,
    iterations: int,
    linear: bool,
    report: Callable[[Progress], None],
) -> dict[str, Any]:
    """Damped Gauss-Newton steps over one window: the best unknowns, the sums of squares there,
    about the diagonal of `JᵀJ`, whether it is done, and the steps taken. Reports count as `wide`
    times as noisy."""
    count = int(np.sum(np.asarray(data.used)))
    data = eqx.tree_at(lambda d: d.sigma, data, wide * data.sigma)
    enough = _DONE if last else _DONE_BEFORE
    nothing = jnp.zeros(len(best), jnp.float32)
    right = Right(jnp.ones(()), jnp.zeros(taps.count), nothing, nothing)

    def solve(x: np.ndarray, damping: float, diagonal: Array) -> Step:
        # A linear problem is solved by its first step; what follows only confirms it.
        exact = linear and total == 0
        tolerance = _EXACT if exact else 0.02 if last else 0.05
        most = 6 * iterations if exact else iterations
        return normal_equations(
            forward,
            taps,
            data,
            jnp.asarray(x),
            right,
            diagonal,
            jnp.asarray(damping, jnp.float32),
            jnp.asarray(tolerance, jnp.float32),
            jnp.asarray(most),
        )

    damping, done, tried, total = 0.0 if linear else _DAMPING, False, best, 0
    sums, step, diagonal = np.full(2, np.inf), np.zeros_like(best), nothing
    while total < most_steps and not done:
        found = solve(tried, damping, diagonal)
        now = np.asarray(found.sums, float)
        total += 1
        if np.isfinite(now).all() and now.sum() <= sums.sum() * (1 + 1e-6):
            best, sums, step = tried, now, np.asarray(found.step)
            diagonal = found.diagonal
            damping = damping / _LESS if damping > 1e-3 else 0.0
            done = float(found.fall) <= enough * now.sum()
            done = done or (not last and now[0] <= _EXPLAINED / wide**2 * count)
        elif damping > _MOST_DAMPING or not np.isfinite(sums).all():
            break
        else:  # too far: from where it was best, shorter
            damping = max(_DAMPING, _MORE * damping)
            step = np.asarray(solve(best, damping, diagonal).step)
            total += 1
            done = float(np.abs(step).max()) < 1e-6
        report(Progress(taps.frames, total, wide**2 * float(sums[0]), count))
        tried = best + step
    return {
        "best": best,
        "sums": sums,
        "diagonal": np.asarray(diagonal),
        "done": np.array(done),
        "steps": np.array(total),
    }

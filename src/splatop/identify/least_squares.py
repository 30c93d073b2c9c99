"""The least-squares fit of coefficients and states together."""

from dataclasses import dataclass

import numpy as np

from .followed import Followed
from .inverse import InverseProblem
from .prediction import columns, predicted
from .propagate import Lost, Steps
from .tangent import Tangent, tangent
from .uncertainty import solve

_ITERATIONS = 40
_LEAST_STEP = 1e-3
# A step may be so many times as long as that of Gauss-Newton.
_SHORTEST, _LONGEST = 0.25, 4.0
# A search whose next step moves coefficients by so much (in squared standard errors), or gains so
# much (in units of the noise), has not settled.
_UNSETTLED, _GAINING = 0.25, 1.0
# Residuals are in units of the noise, or of 1e-7 of the field: a variance below this is rounding.
_ROUNDING = 1e-2
# A step that gains more than this share of what the last one gained calls for a new tangent.
_SLOW = 0.5


@dataclass(frozen=True)
class Optimum:
    """Where a search ended: coefficients, states, the residual `(S, 1 + L, C, *M)`, the variance of
    a number in it, the tangent, whether it settled, and how many frames of each piece it followed.
    """

    x: np.ndarray
    states: np.ndarray
    residual: np.ndarray
    variance: float
    tangent: Tangent
    settled: bool
    frames: int

    @property
    def per_frame(self) -> float:
        """What is left, over the frames."""
        return float(np.sum(self.residual**2)) / self.frames


def minimise(
    problem: InverseProblem,
    reduced: Followed,
    x: np.ndarray,
    states: np.ndarray,
    steps: Steps,
    *,
    settled: float,
    at: Tangent | None = None,
) -> Optimum:
    """Gauss-Newton over coefficients and states `(S, C, *M)`, along parabolas. A tangent costs
    most, so one that an earlier search ended with is welcome (`at`), and kept while steps gain
    quickly. The search ends where the next step would gain next to nothing, in units of the noise,
    and move coefficients by less than the root of `settled`, in standard errors. Only a tangent
    that still holds can tell."""
    observed = reduced.weigh(reduced.states)
    followed = observed.shape[1] if steps.frames is None else int(steps.frames)
    rows = reduced.freedom * observed.shape[0] * (1 + followed)
    observed = np.concatenate([np.zeros_like(observed[:, :1]), observed], axis=1)
    observed[:, 1 + followed :] = 0.0

    def residual_at(x: np.ndarray, states: np.ndarray) -> np.ndarray:
        return observed - predicted(problem, reduced, x, states, steps)

    residual = residual_at(x, states)
    if not np.isfinite(residual).all():
        raise Lost("expected values at which the equation stays finite over the frames of a piece")
    fresh = at is None
    at = at or tangent(problem, reduced, x, states, steps)
    before, left, moved = np.inf, np.inf, np.inf
    for _ in range(_ITERATIONS):
        remainder, change = at.eliminate(residual)
        step = solve(at.columns, remainder)
        change = change - np.tensordot(step, at.changes, axes=1)
        cost = float(np.sum(residual**2))
        gain = cost - float(np.sum((remainder - np.tensordot(step, at.columns, axes=1)) ** 2))
        variance = max(cost / rows, _ROUNDING)
        left, moved = gain / variance, at.explained(remainder) / variance
        factor, found = 1.0, residual_at(x + step, states + change)
        with np.errstate(over="ignore"):  # what grows beyond all numbers is no lower
            while factor > _LEAST_STEP and not np.sum(found**2) <= cost * (1 + 1e-9):
                factor /= 2
                found = residual_at(x + factor * step, states + factor * change)
        if factor == 1:
            better = _lowest(cost, gain, float(np.sum(found**2)))
            tried = residual_at(x + better * step, states + better * change)
            if np.sum(tried**2) < np.sum(found**2):
                factor, found = better, tried
        if factor > _LEAST_STEP:
            x, states, residual = x + factor * step, states + factor * change, found
        # What states could still gain moves coefficients less: their own step is what counts.
        near = left <= max(settled, _GAINING) and moved <= settled
        done = near or factor <= _LEAST_STEP
        # A tangent in too few substeps may lead nowhere, or end where it would have no more to gain
        # and the whole one has. Where a search goes on after this one it need not know.
        rough, exact = at.rough, bool(at.rough >= steps.substeps)
        if done and (
            settled > _UNSETTLED
            or (exact and (fresh or at.holds(columns(problem, reduced, x, states, steps))))
        ):
            break
        if fresh and not exact and (done or factor < _SHORTEST):
            rough = 2 * rough
        fresh = done or factor < _SHORTEST or gain > _SLOW * before
        if fresh:
            at = tangent(problem, reduced, x, states, steps._replace(rough=rough))
        before = np.inf if fresh else gain
    variance = max(float(np.sum(residual**2)) / rows, _ROUNDING)
    ended = left <= max(settled, _GAINING) and moved <= max(settled, _UNSETTLED)
    return Optimum(x, states, residual, variance, at, ended, followed)


def _lowest(cost: float, gain: float, found: float) -> float:
    """Where a parabola along a step is lowest, from its cost and slope before and cost after.

    Where noise bends the cost, a step of Gauss-Newton is too long or too short by that.
    """
    bend = found - cost + 2 * gain
    return float(np.clip(gain / bend, _SHORTEST, _LONGEST)) if bend > 0 else _LONGEST

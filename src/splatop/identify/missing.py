"""Does what is left of noisy frames lie along a term that the equation does not have?

A missing or wrong term leaves little, spread over all frames, where noise is large. But it leaves
it along a direction of its own, which is what a score test looks at: a fit of the coefficient is
not needed for it.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..domain import AXES
from .followed import Derived, Followed
from .problem import Problem
from .propagate import Steps
from .tangent import Tangent, trajectories_of
from .uncertainty import contradictions


def _orders(dims: int) -> tuple[int, ...]:
    """Derivatives that terms are made of; in more dimensions the second ones are Laplacians."""
    return (1, 2, 3, 4) if dims == 1 else (1, 2)


def missing_terms(
    problem: Problem,
    reduced: Followed,
    x: np.ndarray,
    states: np.ndarray,
    steps: Steps,
    tangent: Tangent,
    residual: np.ndarray,
    deviation: float,
) -> dict[str, tuple[float, float]]:
    """Terms that the residual `(S, 1 + L, C, *M)` calls for: by how many deviations, and about
    with which coefficient.

    A term acts on the frames by its integral along the trajectory that was found. That neglects
    how the equation carries its effect on, which makes the test weaker, but no less valid.
    """
    clean = trajectories_of(problem, reduced, x, states, steps)
    values = {**problem.known, **dict(zip(steps.unknown, map(float, x), strict=True))}
    gaps = np.diff(reduced.times, axis=1)
    gaps = gaps.reshape(*gaps.shape, *(1,) * (clean.ndim - 2))
    found = {}
    orders = {(a, k) for a in range(reduced.dims) for k in (0, *_orders(reduced.dims))}
    derived = reduced.derived(clean, values, orders)
    for name, channel, term in _candidates(problem.equation.fields, reduced.dims):
        own = np.zeros_like(derived[0, 0])
        own[:, :, channel] = term({one: d[:, :, channel] for one, d in derived.items()})
        rate = reduced.project(own)
        steps_made = gaps * (rate[:, 1:] + rate[:, :-1]) / 2
        effect = np.zeros_like(residual)
        effect[:, 2:] = reduced.weigh(np.cumsum(steps_made, axis=1))
        column = tangent.eliminate(effect)[0]
        found |= contradictions({name: 0.0}, tangent.columns, column[None], residual, deviation)
    return found


def _candidates(
    fields: tuple[str, ...], dims: int
) -> Iterator[tuple[str, int, Callable[[Derived], Any]]]:
    """Plain terms of each field in its own equation: a name, the channel, and what to make of its
    derivatives."""
    for channel, name in enumerate(fields):
        end = f" in dt({name})"
        for power in (1, 2, 3):
            text = name if power == 1 else f"{name}^{power}"
            yield text + end, channel, lambda d, p=power: d[0, 0] ** p
        for axis in range(dims):
            for order in _orders(dims) if dims == 1 else (1,):
                text = f"d{'' if order == 1 else order}{AXES[axis]}({name})"
                yield text + end, channel, lambda d, a=axis, k=order: d[a, k]
            text = f"{name}*d{AXES[axis]}({name})"
            yield text + end, channel, lambda d, a=axis: d[0, 0] * d[a, 1]
        if dims > 1:
            yield f"lap({name})" + end, channel, lambda d: sum(d[a, 2] for a in range(dims))

"""Does what is left of noisy frames lie along a term that the equation does not have?

A missing or wrong term leaves little, spread over all frames, where noise is large. But it leaves
it along a direction of its own, which is what a score test looks at: a fit of the coefficient is
not needed for it.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..domain import AXES
from ..equation import Equation
from ..equation.expansion import expand
from ..equation.expression import FieldDerivative
from .followed import Derived, Followed
from .inverse import InverseProblem
from .prediction import trajectories_of
from .propagate import Steps
from .tangent import Tangent
from .uncertainty import contradictions


def _orders(dims: int) -> tuple[int, ...]:
    """Derivatives that terms are made of; in more dimensions the second ones are Laplacians."""
    return (1, 2, 3, 4) if dims == 1 else (1, 2)


def missing_terms(
    problem: InverseProblem,
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
    for name, channel, term in _candidates(problem.equation, reduced.dims):
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
    equation: Equation, dims: int
) -> Iterator[tuple[str, int, Callable[[Derived], Any]]]:
    """Plain terms of each field in its own equation that are not there yet, whose coefficients the
    fit or the test of known values has judged: a name, the channel, and what to make of its
    derivatives."""
    there = _terms_of(equation, dims)
    for channel, name in enumerate(equation.fields):
        for text, factors, term in _plain(name, dims):
            if (channel, frozenset({frozenset(factors)})) not in there:
                yield f"{text} in dt({name})", channel, term


def _terms_of(equation: Equation, dims: int) -> set[tuple[int, frozenset]]:
    """What each term of an equation consists of: the field that it is for, and its products."""
    return {
        (channel, frozenset(frozenset(factors) for factors, _ in side.monomials))
        for term in equation.terms
        for channel, side in enumerate(expand(term, equation.fields, dims) or ())
    }


def _plain(name: str, dims: int) -> Iterator[tuple[str, list, Callable[[Derived], Any]]]:
    """Names, factors with their powers, and values of the terms of one field."""

    def along(axis: int, order: int) -> FieldDerivative:
        return FieldDerivative(name, tuple(order * (a == axis) for a in range(dims)))

    own = along(0, 0)
    for power in (1, 2, 3):
        text = name if power == 1 else f"{name}^{power}"
        yield text, [(own, power)], lambda d, p=power: d[0, 0] ** p
    for axis in range(dims):
        for order in _orders(dims) if dims == 1 else (1,):
            text = f"d{'' if order == 1 else order}{AXES[axis]}({name})"
            yield text, [(along(axis, order), 1)], lambda d, a=axis, k=order: d[a, k]
        text = f"{name}*d{AXES[axis]}({name})"
        yield text, [(own, 1), (along(axis, 1), 1)], lambda d, a=axis: d[0, 0] * d[a, 1]
    if dims > 1:
        lap = FieldDerivative(name, (0,) * dims, laplacians=1)
        yield f"lap({name})", [(lap, 1)], lambda d: sum(d[a, 2] for a in range(dims))

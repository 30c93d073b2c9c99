"""Does what is left of noisy frames lie along a term that the equation does not have?

A missing or wrong term leaves little, spread over all frames, where noise is large. But it leaves
it along a direction of its own, which is what a score test looks at: a fit of the coefficient is
not needed for it.
"""

from collections.abc import Callable, Iterator

import numpy as np

from ..domain import AXES
from .problem import Problem, Reduced
from .propagate import Steps
from .tangent import Tangent, predicted
from .uncertainty import contradictions

_ORDERS = (1, 2, 3, 4)


def missing_terms(
    problem: Problem,
    reduced: Reduced,
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
    clean = predicted(problem, reduced, x, states, steps)[:, 1:]
    clean = clean / reduced.weights.reshape(-1, *(1,) * problem.grid.dims)
    gaps = np.diff(reduced.times, axis=1)
    gaps = gaps.reshape(*gaps.shape, *(1,) * (clean.ndim - 2))
    found = {}
    for name, term in _candidates(problem):
        rate = term(clean)
        steps_made = gaps * (rate[:, 1:] + rate[:, :-1]) / 2
        effect = np.zeros_like(residual)
        np.cumsum(steps_made, axis=1, out=effect[:, 2:])
        column = tangent.eliminate(reduced.weigh(effect))[0]
        found |= contradictions({name: 0.0}, tangent.columns, column[None], residual, deviation)
    return found


def _candidates(problem: Problem) -> Iterator[tuple[str, Callable[[np.ndarray], np.ndarray]]]:
    """Plain terms of each field in its own equation; of frames `(S, L, C, *M)`."""
    dims, lengths = problem.grid.dims, problem.grid.lengths

    def derived(values: np.ndarray, symbol: Callable[[list[np.ndarray]], np.ndarray]) -> np.ndarray:
        axes = tuple(range(-dims, 0))
        waves = [
            2j * np.pi * np.fft.fftfreq(n, length / n).reshape([-1 if i == a else 1 for i in axes])
            for a, n, length in zip(axes, values.shape[-dims:], lengths, strict=True)
        ]
        return np.fft.ifftn(np.fft.fftn(values, axes=axes) * symbol(waves), axes=axes).real

    def of(channel: int, make: Callable[[np.ndarray], np.ndarray]):
        def term(frames: np.ndarray) -> np.ndarray:
            only = np.zeros_like(frames)
            only[:, :, channel] = make(frames[:, :, channel])
            return only

        return term

    for channel, name in enumerate(problem.equation.fields):
        end = f" in dt({name})"
        for power in (1, 2, 3):
            text = name if power == 1 else f"{name}^{power}"
            yield text + end, of(channel, lambda u, p=power: u**p)
        for axis in range(dims):
            for order in _ORDERS if dims == 1 else (1,):
                text = f"d{'' if order == 1 else order}{AXES[axis]}({name})"
                yield (
                    text + end,
                    of(channel, lambda u, a=axis, k=order: derived(u, lambda w: w[a] ** k)),
                )
            text = f"{name}*d{AXES[axis]}({name})"
            yield text + end, of(channel, lambda u, a=axis: u * derived(u, lambda w: w[a]))
        if dims > 1:
            squares = of(channel, lambda u: derived(u, lambda w: np.asarray(sum(k**2 for k in w))))
            yield f"lap({name})" + end, squares

"""Identification as in the paper (appendix E): a time difference regressed on derivatives."""

from functools import lru_cache
from math import factorial

import jax.numpy as jnp
import numpy as np

from ..errors import SplatopError
from ..spectral import PassThrough
from .columns import columns_of
from .inverse import InverseProblem
from .uncertainty import Fit, solve, spread

PAPER_FRAMES = 7


@lru_cache(maxsize=32)
def central_difference(frames: int) -> np.ndarray:
    """Weights of the first derivative at the middle of an odd number of frames, times dt.

    Order of accuracy is `frames - 1`: seven frames give (-1, 9, -45, 0, 45, -9, 1)/60.
    """
    if frames < 3 or frames % 2 == 0:
        raise SplatopError(f"expected an odd number of at least 3 frames, got {frames}")
    m = frames // 2
    weights = np.zeros(frames)
    for j in range(1, m + 1):
        w = (-1) ** (j + 1) * factorial(m) ** 2 / (j * factorial(m - j) * factorial(m + j))
        weights[m + j], weights[m - j] = w, -w
    return weights


def regress(problem: InverseProblem, acting: dict[str, np.ndarray]) -> Fit:
    """The coefficients by the paper's method, from the parts of each that act on the data.

    An even number of frames leaves out the last one. Directions of a velocity are estimated
    separately, then averaged.
    """
    frames = problem.frames[0, : problem.length - 1 + problem.length % 2]
    weights = central_difference(len(frames)) / problem.dt
    jets = problem.periodic_jets.with_filter(PassThrough())
    centre = jnp.asarray(frames[len(frames) // 2], jnp.float32)
    given = {**problem.given, **problem.moment(0, len(frames) // 2)}
    columns = columns_of(problem.equation, jets, centre, problem.unknown, given)
    parts = {
        name: np.asarray(columns.parts[name], np.float64)[acting[name]] for name in problem.unknown
    }
    matrix = np.concatenate(list(parts.values()))
    offset = np.asarray(columns.offset, np.float64)
    target = np.tensordot(weights, frames, axes=1) - offset
    # Each row of `tie` averages the parts of one coefficient.
    tie = np.zeros((len(parts), len(matrix)))
    first = 0
    for row, own in zip(tie, parts.values(), strict=True):
        row[first : first + len(own)] = 1 / len(own)
        first += len(own)
    beta = solve(matrix, target)
    residual = target - np.tensordot(beta, matrix, axes=1)
    found = spread(
        matrix[:, None],
        residual[None],
        freedom=residual.size - len(beta),
        dims=problem.grid.dims,
        rounding=0.0,
        unseen=0.0,
    )
    found = found.tied(tie, _stencil_error(problem, frames, matrix, tie))
    whole = max(float(np.linalg.norm(target + offset)), 1e-300)
    noise = np.linalg.norm(problem.spectrum.noise) * np.sqrt(problem.spectrum.points)
    noise = float(noise * np.linalg.norm(weights))
    return Fit(tie @ beta, found, float(np.linalg.norm(residual)) / whole, noise / whole)


def _stencil_error(
    problem: InverseProblem, frames: np.ndarray, matrix: np.ndarray, tie: np.ndarray
) -> np.ndarray:
    """The error of the time difference, which the residual does not show.

    It shrinks about geometrically with the order, so the estimates of the two next lower orders
    tell its size: for a mode that turns by θ per frame the errors are θ²/6, θ⁴/30 and θ⁶/140. In
    random fields of many modes it is 1.1 to 2.3 times that; two deviations of 1.2 cover it.
    """
    half = len(frames) // 2
    orders = []
    for reach in range(max(1, half - 2), half + 1):
        window = frames[half - reach : half + reach + 1]
        slope = np.tensordot(central_difference(len(window)) / problem.dt, window, axes=1)
        orders.append(tie @ solve(matrix, slope))
    if len(orders) == 1:
        return np.abs(orders[0]) / 6
    last = np.abs(orders[-1] - orders[-2])
    if len(orders) == 2:
        return last
    before = np.maximum(np.abs(orders[-2] - orders[-3]), 1e-300)
    return 1.2 * last * np.minimum(1.0, last / before)

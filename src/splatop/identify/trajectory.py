"""Identification from noisy frames: initial states are estimated along with the coefficients.

Matching noisy frame to noisy frame takes the noise in the input for signal that decays, which
biases damping upward. Here one clean trajectory is matched to all frames of a piece. For white
noise this is the maximum-likelihood estimate, given what can be expected of the states.
"""

from dataclasses import replace

import equinox as eqx
import numpy as np

from .followed import Followed
from .frame_pieces import SHORTEST, cut
from .inverse import InverseProblem
from .least_squares import Optimum, minimise
from .missing import missing_terms
from .prediction import known_columns, predicted
from .propagate import MOST_SUBSTEPS, Pace, Steps, finer_of, paced
from .restraint import determined, first_restraint, free_numbers, next_restraint, smoothed, without
from .uncertainty import LASTING, SLACK, Fit, beyond_noise, contradictions, spread

# A prediction that is off by this share of the field has lost the data.
_LOST = 0.3
# The square of the move, in standard errors, at which a search ends; and at which those before do.
_SETTLED = 0.1
_ROUGHLY, _NEARLY = 20.0, 2.0
# By how much a second restraint may raise what is left.
_WORSE = 1.5


def fit(problem: InverseProblem, reduced: Followed, start: np.ndarray, pace: Pace) -> Fit:
    """The coefficients of the trajectories, one for each piece, that come closest to all frames."""
    reduced = replace(noise_weighted(problem, reduced), restraint=without(reduced))
    steps = paced(pace, start)
    length = _followed(problem, reduced, start, steps)
    reduced = reduced.of(lambda pieces: cut(pieces, length))
    problem = problem.of(lambda pieces: cut(pieces, length))
    x, states = start, reduced.states[:, 0]
    seen = np.full((), float(problem.length))
    if problem.noisy:
        reduced = replace(reduced, restraint=first_restraint(problem, reduced))
        states = smoothed(reduced, states)
        reduced, least, seen, steps = _in_noise(problem, reduced, x, states, steps, pace)
    else:
        least = minimise(problem, reduced, x, states, steps, settled=_SETTLED)
    least, steps = _converged_in_time(problem, reduced, least, steps)
    x, tangent = least.x, least.tangent
    residual, whole = least.residual[:, 1:], least.residual
    rows = problem.pieces * problem.length * reduced.freedom
    free = rows - problem.pieces * determined(reduced, seen)
    rows = rows - problem.pieces * free_numbers(reduced)
    expected = np.sqrt(free / reduced.freedom) * reduced.noise(problem.spectrum)
    alike, lasting = _alike(problem, reduced, residual) if problem.noisy else (0.0, 0.0)
    noisy = lasting <= LASTING and bool(np.sum(residual**2) <= (SLACK * expected) ** 2)
    ages = np.arange(problem.length) - (problem.length - 1) / 2
    aged = reduced.weigh(reduced.states) * ages.reshape(1, -1, *(1,) * (residual.ndim - 2))
    flat = problem.pieces * (problem.length + 1)
    found = spread(
        tangent.columns.reshape(len(x), flat, *residual.shape[2:]),
        whole.reshape(flat, *residual.shape[2:]),
        freedom=rows - len(x),
        dims=reduced.waves,
        rounding=problem.precision * float(np.linalg.norm(aged)),
        unseen=0.0 if noisy else max(beyond_noise(residual, expected), np.sqrt(max(alike, 0.0))),
        white=noisy,
    )
    # Of white noise in one direction; without noise what is left is no draw of anything.
    deviation = float(np.sqrt(np.sum(whole**2) / rows)) if problem.noisy else np.inf
    known = known_columns(problem, reduced, x, least.states, steps)
    against = contradictions(
        problem.known,
        tangent.columns,
        np.stack([tangent.eliminate(column)[0] for column in known]) if len(known) else known,
        whole,
        deviation,
    )
    missing = {}
    if problem.noisy:
        missing = missing_terms(problem, reduced, x, least.states, steps, tangent, whole, deviation)
    change = max(reduced.change, 1e-300)
    left = float(np.linalg.norm(residual)) / change
    return Fit(x, found, left, expected / change, lasting, least.settled, against, missing)


def _in_noise(
    problem: InverseProblem,
    reduced: Followed,
    x: np.ndarray,
    states: np.ndarray,
    steps: Steps,
    pace: Pace,
) -> tuple[Followed, Optimum, np.ndarray, Steps]:
    """The fit of noisy frames from a first guess of coefficients and states: the restraint that it
    ends with, the fit, in how many frames each mode is seen, and the substeps.

    Over few frames the search is nearly linear, and a tangent costs less. The restraint is drawn
    anew from what each search finds: modes that noise hides would turn the next one aside. So are
    the substeps: a first guess may be far too slow.
    """
    lengths = [problem.length, problem.length]
    while lengths[0] >= 2 * SHORTEST:
        lengths.insert(0, lengths[0] // 2)
    lengths.insert(0, lengths[0])
    goals = [*[_ROUGHLY] * (len(lengths) - 2), _NEARLY, _SETTLED]

    def search(reduced: Followed, frames: int, goal: float) -> Optimum:
        at = least.tangent if least is not None and least.frames == frames else None
        at = at.restrained(reduced) if at is not None and at.restrained is not None else None
        own = steps._replace(frames=frames, rough=least.tangent.rough if least else 1)
        return minimise(problem, reduced, x, states, own, settled=goal, at=at)

    least: Optimum | None = None
    seen = np.full((), 1.0)
    for frames, goal in zip(lengths, goals, strict=True):
        if least is None:
            least = search(reduced, frames, goal)
        else:
            second = replace(reduced, restraint=next_restraint(problem, reduced, states, seen))
            found = search(second, frames, goal)
            # A restraint that the states contradict was drawn from too few modes: keep the last.
            if found.settled and found.per_frame <= _WORSE * least.per_frame:
                reduced, least = second, found
            else:
                least = search(reduced, frames, goal)
        x, states = least.x, least.states
        values = {**problem.known, **dict(zip(steps.unknown, map(float, x), strict=True))}
        seen = reduced.of(lambda pieces, n=frames: pieces[:, :n]).frames_seen(values, steps.dt)
        steps = finer_of(steps, pace(x))
    assert least is not None
    return reduced, least, seen, steps


def _converged_in_time(
    problem: InverseProblem, reduced: Followed, least: Optimum, steps: Steps
) -> tuple[Optimum, Steps]:
    """The fit with so many substeps that twice as many would move no estimate by more than what
    a search leaves open. What is enough for a frame may add up over many, and noise averages out.
    """
    while True:
        finer = steps._replace(substeps=2 * steps.substeps)
        coarse, fine = (
            predicted(problem, reduced, least.x, least.states, one) for one in (steps, finer)
        )
        off = least.tangent.eliminate(fine - coarse)[0] if np.isfinite(fine).all() else fine
        moved = least.tangent.explained(off)
        if moved <= _SETTLED * least.variance:
            return least, steps
        if finer.substeps > MOST_SUBSTEPS or not np.isfinite(moved):
            return replace(least, settled=False), steps
        # What moves is mostly what turns fast, of which a tangent in fewer substeps knows nothing.
        steps = finer._replace(rough=finer.substeps)
        least = minimise(problem, reduced, least.x, least.states, steps, settled=_SETTLED)


def _alike(problem: InverseProblem, reduced: Followed, residual: np.ndarray) -> tuple[float, float]:
    """What successive frames of the residual have in common: its energy, and by how many standard
    deviations of white noise that is.

    A missing term leaves a pattern that lasts, in the modes that carry the field; noise does not.
    """
    field, left = (reduced.rows(part) for part in (reduced.weigh(reduced.states), residual))
    noise = np.maximum(reduced.noise_energy(problem.spectrum), 1e-300)
    noise = noise.reshape(-1, *(1,) * (left.ndim - 3))
    power = np.mean(np.abs(field) ** 2, axis=(0, 1))
    weights = np.maximum(1 - noise / np.maximum(power, 1e-300), 0.0)
    share = reduced.multiplicity * weights
    products = np.real(left[:, 1:] * np.conj(left[:, :-1]))
    alike = float(np.sum(share * products))
    pairs = products.shape[0] * products.shape[1]
    # The real part of a product of two complex modes of variance v has a variance of v²/2, and
    # stands for two such modes.
    deviation = float(np.sqrt(pairs * np.sum(share * weights * noise**2)))
    return alike, alike / max(deviation, 1e-300)


def _followed(problem: InverseProblem, reduced: Followed, x: np.ndarray, steps: Steps) -> int:
    """How many frames the equation follows the data from a noisy first frame.

    Beyond that a search for the first state could end in another minimum. Chaotic trajectories
    part soon, from whatever they begin.
    """
    ahead = predicted(problem, reduced, x, reduced.states[:, 0], steps)[:, 1:]
    axes = tuple(range(2, reduced.states.ndim))
    off = np.sum((ahead - reduced.weigh(reduced.states)) ** 2, axis=axes)
    size = np.sum(np.mean(reduced.weigh(reduced.states) ** 2, axis=(0, 1)))
    lost = ~(off <= _LOST**2 * size).all(axis=0)
    first = int(np.argmax(lost)) if lost.any() else problem.length
    return max(SHORTEST, first)


def noise_weighted(problem: InverseProblem, reduced: Followed) -> Followed:
    """Channels weighted by their noise, or by their size where there is none to speak of."""
    noise = np.maximum(problem.spectrum.noise, 1e-7 * problem.spectrum.scale)
    return eqx.tree_at(lambda r: r.weights, reduced, 1 / np.where(noise > 0, noise, 1.0))

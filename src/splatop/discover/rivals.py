"""Other sets of terms that the data cannot exclude."""

import numpy as np

from .candidates import Candidate
from .question import FieldGroup
from .search import substitutes
from .select import Selection, uncertain
from .task import Task

# A set whose criterion is this close to the best one's cannot be excluded.
CLOSE = 10.0
# Other sets that are listed.
LISTED = 5
# Terms that could stand for one that makes such a share of the change, in amplitude.
_SUBSTITUTES = 3
_STRONG = 0.05
# A share of the change that a set may leave and still be one that fits.
ADEQUATE = 0.02


def alternatives(
    task: Task, chosen: Selection, group: FieldGroup, matrix: np.ndarray
) -> tuple[tuple[Candidate, ...], ...]:
    """Other sets of at most as many terms whose criterion is close to the best, without those that
    hold all terms found (`matrix`) and more."""
    found_in = set(np.flatnonzero(matrix.any(axis=0)))
    normal = task.normal(chosen.weights, lenient=True)
    own = list(chosen.chosen)
    best = chosen.criterion(normal.solve(own)[1], len(own))
    found: dict[tuple[int, ...], float] = {}
    for other in chosen.path.values():
        if other != chosen.chosen and len(other) <= len(own):
            found[other] = chosen.criterion(normal.solve(other)[1], len(other))
    for position, one in enumerate(own):
        if one in normal.forced:
            continue
        rest = own[:position] + own[position + 1 :]
        left = normal.with_each(rest)
        left[own] = np.inf
        for other in np.argsort(left)[:3]:
            trial = tuple(sorted([*rest, int(other)]))
            found[trial] = chosen.criterion(normal.solve(trial)[1], len(trial))
    close = sorted(
        (value, s) for s, value in found.items() if value - best < CLOSE and not found_in <= set(s)
    )
    return tuple(tuple(group.candidates[i] for i in s) for _, s in close[:LISTED])


def identities(
    task: Task, chosen: Selection, group: FieldGroup, matrix: np.ndarray, without: tuple[float, ...]
) -> tuple[tuple[Candidate, ...], ...]:
    """Sets of more terms that fit as well, without one that makes much of the change: in these data
    it is the same as others. A single wave that travels is advected, or obeys KdV."""
    normal = task.normal(chosen.weights)
    own = tuple(int(i) for i in np.flatnonzero(matrix.any(axis=0)))
    found = []
    for row, share in zip(matrix, without, strict=True):
        (places,) = np.nonzero(row)
        if len(places) > 1 or share < _STRONG or places[0] in normal.forced:
            continue
        for other in substitutes(normal, own, int(places[0]), most=_SUBSTITUTES):
            if _as_good(task, chosen.weights, other, own):
                found.append(tuple(group.candidates[i] for i in other))
                break
    return tuple(found)


def _as_good(task: Task, weights: np.ndarray, other: tuple[int, ...], own: tuple[int, ...]) -> bool:
    """Whether a set explains what another one does, within the errors that it has itself: noise in
    its own terms may be larger."""
    rows = task.rows.sum(axis=0)
    for _ in range(3):
        c = task.normal(weights).solve(other)[0]
        error = task.error(other, c)
        weights = np.where(rows > 0, rows / error, 0.0)
    if not c.any():
        return False
    left = task.left(other, c)
    best = task.left(own, task.normal(weights).solve(own)[0])
    whole = task.whole
    # In clean data what a set is uncertain by is what it leaves: that makes it no better.
    unsure = 0.0 if task.clean else uncertain(error, rows)
    if np.sum(left) - unsure >= ADEQUATE**2 * whole:
        return False
    # A single term is what any wave that keeps its shape obeys exactly: that others fit it less
    # closely, as far as noise lets one see, speaks for it only where they do not fit the data.
    return len(own) == 1 or bool(weights @ (left - best) < CLOSE)

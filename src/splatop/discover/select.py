"""Which candidates an equation needs: sets of each size, weighed by what error explains."""

from dataclasses import dataclass, replace

import numpy as np

from .search import LARGEST, best_sets
from .task import DEVIATIONS, FLOOR, Task

# What a term must explain of what no known error does, and in units of log n beside errors.
_SHARE = 0.1
_PENALTY = 2.0
_ROUNDS = 5
# Other weights count if so small a part of what no known error explains remains with them.
_LESS = 0.25


@dataclass(frozen=True)
class Selection:
    """The set chosen: its coefficients and their covariance, and the criterion of other sets.

    `weights` are those of the shells; `excess` is what the richest set leaves beside known errors,
    in energy (below 1, all is explained); `penalty` what a term must gain.
    """

    chosen: tuple[int, ...]
    c: np.ndarray
    covariance: np.ndarray
    weights: np.ndarray
    n: float
    excess: float
    penalty: float
    path: dict[int, tuple[int, ...]]

    @property
    def errors(self) -> np.ndarray:
        return np.sqrt(np.diag(self.covariance))

    def criterion(self, left: float, terms: int) -> float:
        return self.n * np.log1p(max(left, 0.0) / self.n) + terms * self.penalty


def select(task: Task) -> Selection:
    """The candidates that the data ask for.

    Shells are weighed by their error, which depends on the coefficients. So several sets may have
    weights that call for them; the smallest counts whose rest known errors explain. (Terms that
    make coefficients too small and their noise with them call for themselves.) In clean data it
    counts whatever its own weights call for, if it leaves less of the change than the weak form is
    wrong by: what is left then is in shells that hold next to nothing, and any term fits some.
    """
    rows = task.rows.sum(axis=0)
    seen: set[tuple[int, ...]] = set()
    at_first = task.error((), np.zeros(0)) + 1e-4 * _share(task.energy, rows)
    found = _settled(task, at_first, seen)
    if not task.clean and (more := _unexplained(task, found)) > 0:
        # Terms that nearly balance need weights that know of the noise in them to be told at all.
        other = _settled(task, at_first + _noise_of_candidates(task), seen)
        if _unexplained(task, other) < _LESS * more:
            found = other
    for fewer in sorted(seen, key=len):
        if not 0 < len(fewer) < len(found.chosen):
            continue
        error, left = _error(task, fewer, found.weights)
        if np.sum(left) <= uncertain(error, rows):
            other = _settled(task, error + np.maximum(left, 0.0))
            if other.chosen == fewer:
                return other
            if _leaves_nothing(task, left):
                return _chosen(task, found, fewer, rows / (error + np.maximum(left, 0.0)))
    return found


def _unexplained(task: Task, found: Selection) -> float:
    """Energy of what a choice leaves beside known errors."""
    error, left = task.error(found.chosen, found.c), task.left(found.chosen, found.c)
    return max(float(np.sum(left)) - uncertain(error, task.rows.sum(axis=0)), 0.0)


def _noise_of_candidates(task: Task) -> np.ndarray:
    """Energy of noise in each shell, of a candidate that makes all of the change: the largest."""
    own = np.diagonal(task.total.sum(axis=0))[:-1]
    noise = np.diagonal(task.noise, axis1=1, axis2=2)[:, :-1]
    told = own > 0
    share = np.where(told, noise / np.where(told, own, 1.0), 0.0)
    return task.whole * np.maximum(share.max(axis=1), 0.0)


def uncertain(error: np.ndarray, rows: np.ndarray) -> float:
    """What the energy of noise in all shells may be off by: in one of n numbers it varies by
    sqrt(2/n), its estimate as much."""
    return DEVIATIONS * float(np.sqrt(np.sum(2 * error**2 / np.maximum(rows, 1.0))))


def _error(
    task: Task, chosen: tuple[int, ...], weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Energy of known errors in each shell, which grows with the noise of a set's terms, and what
    they leave, with the weights that follow from both."""
    rows = task.rows.sum(axis=0)
    error, left = np.ones((2, len(rows)))
    for _ in range(_ROUNDS):
        c = task.normal(weights).solve(chosen)[0]
        error, left = task.error(chosen, c), task.left(chosen, c)
        weights = np.where(rows > 0, rows / (error + np.maximum(left, 0.0)), 0.0)
    return error, left


def fitting(task: Task, chosen: tuple[int, ...], weights: np.ndarray) -> np.ndarray:
    """Weights of the shells that follow from what these candidates leave, beginning with some."""
    error, left = _error(task, chosen, weights)
    rows = task.rows.sum(axis=0)
    return np.where(rows > 0, rows / (error + np.maximum(left, 0.0)), 0.0)


def _settled(
    task: Task, error: np.ndarray | None, seen: set[tuple[int, ...]] | None = None
) -> Selection:
    """The choice whose weights are those that follow from it; a few rounds from these errors. The
    best sets of each size and round join those `seen`."""
    rows = task.rows.sum(axis=0)
    found: Selection | None = None
    for _ in range(_ROUNDS):
        if error is None:
            break
        found, error = _round(task, np.where(rows > 0, rows / error, 0.0), found)
        if seen is not None:
            seen.update(found.path.values())
    assert found is not None
    return found


def reselect(task: Task, weights: np.ndarray, *, largest: int) -> tuple[int, ...]:
    """The candidates chosen with weights of the shells that are known already."""
    found = _weighed(task, weights, largest)
    for fewer in sorted(found.path.values(), key=len):
        if len(fewer) >= len(found.chosen):
            break
        if _leaves_nothing(task, task.left(fewer, task.normal(weights).solve(fewer)[0])):
            return fewer
    return found.chosen


def _leaves_nothing(task: Task, left: np.ndarray) -> bool:
    """Whether the data are clean, and less is left of the change than the weak form is wrong by."""
    return task.clean and bool(np.sum(left) <= FLOOR**2 * np.sum(task.energy))


def _round(
    task: Task, weights: np.ndarray, before: Selection | None
) -> tuple[Selection, np.ndarray | None]:
    """The choice with these weights, and the error of each shell that follows from it; None if
    the choice is that of before."""
    found = _weighed(task, weights, LARGEST)
    if before is not None and before.chosen == found.chosen:
        return found, None
    normal = task.normal(weights)
    richest = min(found.path.values(), key=lambda s: normal.solve(s)[1])
    left = task.left(richest, normal.solve(richest)[0])
    return found, task.error(found.chosen, found.c) + np.maximum(left, 0.0)


def _weighed(task: Task, weights: np.ndarray, largest: int) -> Selection:
    n = float(task.rows.sum())
    normal = task.normal(weights)
    path = best_sets(normal, largest=largest)
    lefts = {size: normal.solve(chosen)[1] for size, chosen in path.items()}
    excess = max(min(lefts.values()), 0.0) / n
    penalty = _PENALTY * np.log(max(n, 3.0)) + _SHARE * n * excess / (1 + excess)
    none = np.zeros(0)
    trial = Selection((), none, np.zeros((0, 0)), weights, n, excess, penalty, path)
    size = min(lefts, key=lambda size: trial.criterion(lefts[size], size))
    return _chosen(task, trial, path[size], weights)


def _chosen(
    task: Task, among: Selection, chosen: tuple[int, ...], weights: np.ndarray
) -> Selection:
    """The same choice among sets with this one chosen."""
    c = task.normal(weights).solve(chosen)[0]
    covariance = task.covariance(chosen, c, weights)
    return replace(among, chosen=chosen, c=c, covariance=covariance, weights=weights)


def _share(energy: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """All energy, spread over shells as their rows are."""
    return energy.sum() * rows / max(float(rows.sum()), 1e-300)

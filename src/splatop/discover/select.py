"""Which candidates an equation needs: sets of each size, weighed by what error explains."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .moments import Moments
from .search import LARGEST, Normal, best_sets

# Error of the weak form itself, relative to what acts in a shell: rounding and time integrals.
_FLOOR = 1e-4
# What a term must explain of what no known error does, and in units of log n beside errors.
_SHARE = 0.1
_PENALTY = 2.0
_ROUNDS = 5
# Standard deviations by which the energy of noise may be off.
DEVIATIONS = 6.0


@dataclass(frozen=True)
class Task:
    """Candidates of one field's equation, or of several that share their coefficients.

    `gram` `(B, K, n, n)`, `moment` `(B, K, n)` and `energy` `(B, K)`, those of noise without the
    first axis, `rows` `(B, K)`. Shells of several fields follow one another. `fast` `(K,)` is the
    share of each shell in which the bells' integrals in time are wrong. `change` is the energy of
    all of the change, that of the known terms with it.
    """

    gram: np.ndarray
    moment: np.ndarray
    energy: np.ndarray
    noise_gram: np.ndarray
    noise_moment: np.ndarray
    noise_energy: np.ndarray
    rows: np.ndarray
    forced: tuple[int, ...] = ()
    fast: np.ndarray | float = 0.0
    change: float = 0.0

    @classmethod
    def of(
        cls,
        moments: Moments,
        weights: list[np.ndarray],
        targets: list[np.ndarray],
        rates: list[np.ndarray],
        forced: tuple[int, ...] = (),
    ) -> "Task":
        """`weights` `(n, q)` are the candidates in each field's equation, in terms of the columns
        of the moments; `targets` `(q,)` what they add up to, `rates` `(q,)` the whole change."""
        gram, moment, energy, rows = [], [], [], []
        noisy: list[list[np.ndarray]] = [[], [], []]
        for own, target in zip(weights, targets, strict=True):
            both = np.vstack([own, target])
            full = np.einsum("iq,bkqr,jr->bkij", both, moments.gram, both, optimize=True)
            share = np.einsum("iq,kqr,jr->kij", both, moments.noise, both, optimize=True)
            gram.append(full[..., :-1, :-1])
            moment.append(full[..., :-1, -1])
            energy.append(full[..., -1, -1])
            noisy[0].append(share[:, :-1, :-1])
            noisy[1].append(share[:, :-1, -1])
            noisy[2].append(share[:, -1, -1])
            rows.append(moments.rows)
        return cls(
            gram=np.concatenate(gram, axis=1),
            moment=np.concatenate(moment, axis=1),
            energy=np.concatenate(energy, axis=1),
            noise_gram=np.concatenate(noisy[0]),
            noise_moment=np.concatenate(noisy[1]),
            noise_energy=np.concatenate(noisy[2]),
            rows=np.concatenate(rows, axis=1),
            forced=forced,
            fast=np.tile(moments.fast, len(targets)),
            change=float(
                sum(
                    np.einsum("q,bkqr,r->", rate, moments.gram, rate, optimize=True)
                    for rate in rates
                )
            ),
        )

    def narrowed(self, chosen: list[int]) -> "Task":
        """The same with these candidates alone."""
        at = np.ix_(chosen, chosen)
        return replace(
            self,
            gram=self.gram[:, :, at[0], at[1]],
            moment=self.moment[:, :, chosen],
            noise_gram=self.noise_gram[:, at[0], at[1]],
            noise_moment=self.noise_moment[:, chosen],
            forced=tuple(chosen.index(i) for i in self.forced if i in chosen),
        )

    def mapped(self, matrix: np.ndarray, forced: tuple[int, ...] = ()) -> "Task":
        """The same with candidates that are sums of these, `(m, n)`."""
        return replace(
            self,
            gram=np.einsum("in,bknm,jm->bkij", matrix, self.gram, matrix, optimize=True),
            moment=self.moment @ matrix.T,
            noise_gram=np.einsum("in,knm,jm->kij", matrix, self.noise_gram, matrix, optimize=True),
            noise_moment=self.noise_moment @ matrix.T,
            forced=forced,
        )

    def counted(self, blocks: np.ndarray) -> "Task":
        """The blocks counted so many times each."""
        share = float(blocks @ self.rows.sum(axis=1) / self.rows.sum())
        return replace(
            self,
            gram=self.gram * blocks[:, None, None, None],
            moment=self.moment * blocks[:, None, None],
            energy=self.energy * blocks[:, None],
            rows=self.rows * blocks[:, None],
            noise_gram=self.noise_gram * share,
            noise_moment=self.noise_moment * share,
            noise_energy=self.noise_energy * share,
        )

    @cached_property
    def totals(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Gram, moment and energy of each shell, over all blocks."""
        return self.gram.sum(axis=0), self.moment.sum(axis=0), self.energy.sum(axis=0)

    @cached_property
    def clean(self) -> bool:
        """Whether noise is less of the change than the weak form is wrong by."""
        return bool(np.sum(self.noise_energy) <= _FLOOR**2 * np.sum(self.energy))

    def error(self, chosen: tuple[int, ...], c: np.ndarray) -> np.ndarray:
        """Energy of known errors in each shell at these coefficients: noise, and the weak form's
        own."""
        at = list(chosen)
        noise = (
            self.noise_energy
            - 2 * self.noise_moment[:, at] @ c
            + np.einsum("i,kij,j->k", c, self.noise_gram[:, at][:, :, at], c)
        )
        whole_gram, _, energy = self.totals
        own = whole_gram[:, at, at] @ c**2 if at else 0.0
        return np.maximum(noise, 0.0) + (_FLOOR**2 + self.fast) * (energy + own) + 1e-300

    def left(self, chosen: tuple[int, ...], c: np.ndarray) -> np.ndarray:
        """Energy in each shell that these leave, with the share of noise taken out."""
        at = list(chosen)
        gram, moment, energy = self.totals
        gram = gram[:, at][:, :, at] - self.noise_gram[:, at][:, :, at]
        moment = moment[:, at] - self.noise_moment[:, at]
        energy = energy - self.noise_energy
        return energy - 2 * moment @ c + np.einsum("i,kij,j->k", c, gram, c)

    def normal(self, weights: np.ndarray, *, lenient: bool = False) -> Normal:
        """The normal equations with these weights of the shells; `lenient` about what noise may be
        taken out twice in clean data, where it is rounding, whose size is known roughly."""
        whole_gram, moment, energy = self.totals
        raw = np.tensordot(weights, whole_gram, 1)
        gram = raw - np.tensordot(weights, self.noise_gram, 1)
        moment = weights @ (moment - self.noise_moment)
        energy = float(weights @ (energy - self.noise_energy))
        n = float(self.rows.sum())
        slack = n if lenient and self.clean else DEVIATIONS * np.sqrt(2 * n)
        return Normal(gram, moment, energy, raw, slack, self.forced)

    def covariance(self, chosen: tuple[int, ...], c: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Of the coefficients: a sandwich with shells of blocks as clusters."""
        at = list(chosen)
        share = self.rows / np.maximum(self.rows.sum(axis=0), 1e-300)
        moment = self.moment[..., at] - share[..., None] * self.noise_moment[:, at]
        gram = self.gram[:, :, at][..., at]
        gram = gram - share[..., None, None] * self.noise_gram[:, at][:, :, at]
        scores = weights[:, None] * (moment - gram @ c)
        scores = scores.reshape(weights.size * len(self.rows), len(at))
        whole = np.einsum("k,bkij->ij", weights, gram)
        # A column that is no more than its noise has no scale, and no say.
        own = np.diag(whole)
        scale = np.where(own > 0, 1 / np.sqrt(np.where(own > 0, own, 1.0)), 0.0)
        inverse = np.linalg.pinv(whole * np.outer(scale, scale), hermitian=True)
        inverse = inverse * np.outer(scale, scale)
        clusters = np.count_nonzero(np.abs(scores).sum(axis=1))
        factor = clusters / max(clusters - len(at), 1)
        return inverse @ (scores.T @ scores) @ inverse * factor


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
    at_first = task.error((), np.zeros(0)) + 1e-4 * _share(task.energy.sum(axis=0), rows)
    found = _settled(task, at_first, seen)
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
    return task.clean and bool(np.sum(left) <= _FLOOR**2 * np.sum(task.energy))


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

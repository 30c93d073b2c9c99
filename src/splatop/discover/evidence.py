"""How sure a choice of terms is: other sets, other blocks, other widths, terms that merge."""

from dataclasses import dataclass, replace

import numpy as np

from ..identify.inverse import NOISY
from .candidates import Basis, Candidate, independent
from .detect import LeftOut, left_out, sizes
from .question import FieldGroup, Question
from .rivals import LISTED, alternatives, identities
from .select import Selection, fitting, reselect, select, uncertain
from .symmetry import Setting, isotropic
from .task import DEVIATIONS, Task

REPLICATES = 20
# Terms chosen in fewer of the replicates may be chance.
_CHANCE = 0.5
# A share of the change, in amplitude, that no term is needed for in clean data.
NEGLIGIBLE = 2e-4
# Standard errors beyond which a coefficient is sure, and the share of the noise that the change may
# be left without it then.
_SURE = 10.0
_SURE_SHARE = 0.5


@dataclass(frozen=True)
class Choice:
    """The terms of a group: candidates, their coefficients with covariance, and the evidence.

    `left` is the share of the change, in amplitude, that they leave beside noise (without any
    candidates of all the change, else of what known terms leave), `without` the
    same for each term if it is taken away. `support` is the share of replicates of the data's
    blocks that choose the term, `drift` by what share its coefficient differs between halves of
    the data, beyond its errors. `alternatives` are other sets that the data cannot exclude.
    `sizes` are the shares of the change that a coefficient of 1 makes, `left_out` what could stand
    beside the terms unseen.
    """

    candidates: tuple[Candidate, ...]
    names: tuple[str, ...]
    c: np.ndarray
    covariance: np.ndarray
    left: float
    without: tuple[float, ...]
    support: tuple[float, ...]
    drift: tuple[float, ...]
    agreement: float
    alternatives: tuple[tuple[Candidate, ...], ...]
    unexplained: float
    sizes: tuple[float, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    def dropped(self, index: int) -> "Choice":
        """Without one of the terms; what it leaves then was measured."""
        keep = [i for i in range(len(self.candidates)) if i != index]
        error = float(np.sqrt(self.covariance[index, index]))
        gone = LeftOut.of(self.candidates[index], self.c[index], error, self.sizes[index])
        return replace(
            self,
            candidates=tuple(self.candidates[i] for i in keep),
            c=self.c[keep],
            covariance=self.covariance[np.ix_(keep, keep)],
            left=self.without[index],
            without=tuple(self.without[i] for i in keep),
            support=tuple(self.support[i] for i in keep),
            drift=tuple(self.drift[i] for i in keep),
            sizes=tuple(self.sizes[i] for i in keep),
            left_out=tuple(sorted([*self.left_out, gone], key=lambda one: -one.share)),
        )


def choose(question: Question, group: FieldGroup, tasks: list[Task], *, noise: float) -> Choice:
    """The best set over all widths of the bells, with the evidence for it.

    A term counts as one only if it explains more of the change than `noise` is of the fields, or is
    sure: what is less may come from modes that noise hides.
    """
    found = [select(task) for task in tasks]
    votes: dict[tuple[int, ...], list[int]] = {}
    for width, one in enumerate(found):
        votes.setdefault(one.chosen, []).append(width)

    def score(width: int) -> float:
        one = found[width]
        if not one.chosen:
            return np.inf
        return float(np.max(one.errors / np.maximum(np.abs(one.c), 1e-300)))

    best = min(votes, key=lambda s: (-len(votes[s]), min(score(w) for w in votes[s])))
    if noise >= NOISY:
        # Narrow bells see less through noise: what any width cannot do without must stay.
        best = min(votes, key=lambda s: _loss(tasks, found, s))
    width = min(votes[best], key=score)
    agreement = len(votes[best]) / len(found)
    task, chosen = tasks[width], found[width]
    candidates = [group.candidates[i] for i in chosen.chosen]
    matrix = np.eye(len(group.candidates))[list(chosen.chosen)]
    kept = _relevant(task, chosen, noise)
    matrix, candidates = matrix[kept], [candidates[i] for i in kept]
    matrix, candidates = _merged(question.setting, group, task, chosen, matrix, candidates)
    found_terms = _evidence(group, task, chosen, matrix, candidates, agreement)
    forced = len(group.names)
    sure = [i for i, s in enumerate(found_terms.support) if i < forced or s >= _CHANCE]
    if 0 < len(sure) < len(candidates):
        # Terms that most selections of the data do without go, if what is left stays negligible.
        fewer = [candidates[i] for i in sure]
        less = _evidence(group, task, chosen, matrix[sure], fewer, agreement)
        if less.left <= max(noise, NEGLIGIBLE):
            matrix, found_terms = matrix[sure], less
    weighed = [(task, one.weights) for task, one in zip(tasks, found, strict=True)]
    return replace(
        found_terms,
        covariance=found_terms.covariance + np.diag(_apart(weighed, width, matrix, found_terms.c)),
        left_out=left_out(group, weighed, matrix, also=chosen.chosen),
    )


def _apart(
    weighed: list[tuple[Task, np.ndarray]], width: int, matrix: np.ndarray, c: np.ndarray
) -> np.ndarray:
    """Variance of clean data's coefficients: their integrals in time are off by something else for
    each width of the bells, so by about what most others make of them."""
    others = [pair for place, pair in enumerate(weighed) if place != width]
    if not others or not len(c) or not weighed[width][0].clean:
        return np.zeros(len(c))
    every, found = tuple(range(len(c))), []
    for task, weights in others:
        own = task.mapped(matrix)
        found.append(own.normal(fitting(own, every, weights)).solve(every)[0])
    return np.median(np.abs(np.array(found) - c), axis=0) ** 2


def _loss(tasks: list[Task], found: list[Selection], which: tuple[int, ...]) -> float:
    """By how much a set's criterion is above that of the set which each width chooses, in all."""
    total = 0.0
    for task, one in zip(tasks, found, strict=True):
        normal = task.normal(one.weights)
        value, least = (
            one.criterion(normal.solve(some)[1], len(some)) for some in (which, one.chosen)
        )
        total += value - least
    return total


def _relevant(task: Task, chosen: Selection, noise: float) -> list[int]:
    """The terms, as places in the set chosen, without which more of the change is left than noise
    is of the fields, or than a share of that if the coefficient is sure."""
    sure = np.abs(chosen.c) > _SURE * chosen.errors
    limits = np.maximum(np.where(sure, _SURE_SHARE, 1.0) * noise, NEGLIGIBLE)
    whole = task.whole
    normal = task.normal(chosen.weights)
    kept = list(range(len(chosen.chosen)))

    def left(which: list[int]) -> float:
        some = tuple(chosen.chosen[i] for i in which)
        c, rest = normal.solve(some)
        return float(np.sum(task.left(some, c))) / whole if np.isfinite(rest) else np.inf

    while len(kept) > 1:
        forced = [i for i in kept if chosen.chosen[i] in task.forced]
        trials = {i: left([j for j in kept if j != i]) for i in kept if i not in forced}
        weakest = min(trials, key=lambda i: trials[i], default=None)
        if weakest is None or trials[weakest] > limits[weakest] ** 2:
            break
        kept.remove(weakest)
    return kept


def _evidence(
    group: FieldGroup,
    task: Task,
    chosen: Selection,
    matrix: np.ndarray,
    candidates: list[Candidate],
    agreement: float,
) -> Choice:
    """`matrix` `(terms, candidates)` are the terms as sums of the group's candidates."""
    own = task.mapped(matrix, group.forced)
    every = tuple(range(len(candidates)))
    weights = fitting(own, every, chosen.weights)
    normal = own.normal(weights)
    c, left = normal.solve(every)
    covariance = own.covariance(every, c, weights) if every else np.zeros((0, 0))
    error, change = own.error(every, c), own.total[:, -1, -1]
    rows = own.rows.sum(axis=0)
    # All shells together, and those in which noise is less than the change: terms that nearly
    # balance would be lost in the noise of the others.
    parts = [np.ones_like(change, bool), error < change]
    kept = [(part, uncertain(error[part], rows[part])) for part in parts if change[part].sum() > 0]

    def share(which: list[int]) -> float:
        """Of the change, in amplitude, unweighted: what people see."""
        if not every:  # the known terms alone
            left = own.left((), c).sum() - uncertain(error, rows)
            return float(np.sqrt(max(float(left), 0.0) / own.change))
        some = own.narrowed(which) if which else own
        values = some.normal(weights).solve(range(len(which)))[0] if which else np.zeros(0)
        left = some.left(tuple(range(len(which))), values)
        shares = [(left[part].sum() - unsure) / change[part].sum() for part, unsure in kept]
        return float(np.sqrt(max(0.0, *shares)))

    without = tuple(share([j for j in every if j != i]) for i in every)
    unexplained = max(left, 0.0) / max(chosen.n, 1.0)
    others = alternatives(task, chosen, group, matrix)
    others += identities(task, chosen, group, matrix, without)
    return Choice(
        tuple(candidates),
        group.names,
        c,
        covariance,
        share(list(every)),
        without,
        _support(task, chosen, matrix, group),
        _drift(own, c, weights),
        agreement,
        tuple(dict.fromkeys(others))[:LISTED],
        unexplained,
        tuple(sizes(own)),
    )


def _merged(
    setting: Setting,
    group: FieldGroup,
    task: Task,
    chosen: Selection,
    matrix: np.ndarray,
    current: list[Candidate],
) -> tuple[np.ndarray, list[Candidate]]:
    """Terms that together look the same along all axes, as one: d2x(u) and d2y(u) are lap(u)."""
    if setting.dims == 1 or len(group.fields) != 1 or "rotation" in setting.symmetries:
        return matrix, current
    (field,) = group.fields
    plain = replace(setting, symmetries=frozenset({"rotation"}), velocity=())
    places = {c: i for i, c in enumerate(group.candidates)}
    sums: list[tuple[Candidate, np.ndarray]] = []
    for composite in independent(isotropic(plain, field)):
        row = _row(composite, field, places)
        if row is not None and np.count_nonzero(row) > 1:
            sums.append((composite, row))
    sums.sort(key=lambda pair: -np.count_nonzero(pair[1]))
    forced = len(group.forced)

    def criterion(rows: np.ndarray) -> float:
        normal = task.mapped(rows).normal(chosen.weights)
        return chosen.criterion(normal.solve(range(len(rows)))[1], len(rows))

    value = criterion(matrix)
    for composite, row in sums:
        single = np.count_nonzero(matrix, axis=1) == 1
        inside = single & (np.abs(matrix) @ np.abs(row) > 0)
        inside[:forced] = False
        if inside.sum() < 2:
            continue
        tried = np.vstack([matrix[~inside], row])
        other = criterion(tried)
        if other <= value:
            current = [c for c, gone in zip(current, inside, strict=True) if not gone] + [composite]
            matrix, value = tried, other
    return matrix, current


def _row(composite: Candidate, field: str, places: dict[Candidate, int]) -> np.ndarray | None:
    """A candidate as a sum of others that are single products, if all of them are there."""
    basis = Basis()
    weights = basis.row(composite.side(field))
    row = np.zeros(len(places))
    for place, side in enumerate(basis.expressions()):
        if place in weights:
            at = places.get(Candidate.of(field, side))
            if at is None:
                return None
            row[at] = weights[place]
    return row


def _support(
    task: Task, chosen: Selection, matrix: np.ndarray, group: FieldGroup
) -> tuple[float, ...]:
    """How often each term is chosen if blocks of the data are drawn anew."""
    blocks, terms = len(task.rows), len(matrix)
    if blocks < 3 or not terms:
        return (1.0,) * terms
    near = {i for s in chosen.path.values() if len(s) <= len(chosen.chosen) + 3 for i in s}
    rivals = sorted(near - set(chosen.chosen))
    joint = task.mapped(np.vstack([matrix, np.eye(len(group.candidates))[rivals]]), group.forced)
    generator = np.random.default_rng(0)
    counts = np.zeros(terms)
    for _ in range(REPLICATES):
        drawn = np.bincount(generator.integers(0, blocks, blocks), minlength=blocks)
        some = joint.counted(drawn.astype(float))
        picked = reselect(some, chosen.weights, largest=terms + 3)
        counts += [i in picked for i in range(terms)]
    return tuple(counts / REPLICATES)


def _drift(own: Task, c: np.ndarray, weights: np.ndarray) -> tuple[float, ...]:
    """The difference of each coefficient between halves of the blocks, over itself; 0 where it is
    no more than their errors can make it."""
    blocks = len(own.rows)
    if blocks < 2 or not len(c):
        return tuple(0.0 for _ in c)
    every = tuple(range(len(c)))
    halves, variances = [], []
    for part in (np.arange(blocks) < blocks // 2, np.arange(blocks) >= blocks // 2):
        some = own.counted(part.astype(float))
        halves.append(some.normal(weights).solve(every)[0])
        variances.append(np.diag(some.covariance(every, halves[-1], weights)))
    apart = np.abs(halves[0] - halves[1])
    told = apart > DEVIATIONS * np.sqrt(np.sum(variances, axis=0))
    return tuple(np.where(told, apart / np.maximum(np.abs(c), 1e-300), 0.0))

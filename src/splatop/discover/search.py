"""The best set of candidates of each size, on normal equations alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

# Terms of the largest sets that are looked at.
LARGEST = 12
# A direction of the normalised candidates weaker than this is not determined.
_SINGULAR = 1e-11
# The share of a direction that must be more than noise for it to be used.
_SIGNAL = 0.1
# Candidates of which backward elimination begins with the uncorrected normal equations.
_MANY = 30


@dataclass(frozen=True)
class Normal:
    """Normal equations of n candidates: `gram @ c = moment`, of a target of energy `energy`.

    `raw` is the Gram matrix from which the share of noise was not taken. No set can leave less
    than `-slack`: that is noise taken out twice. `forced` candidates are part of every set.
    """

    gram: np.ndarray
    moment: np.ndarray
    energy: float
    raw: np.ndarray
    slack: float
    forced: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        return len(self.moment)

    @cached_property
    def scale(self) -> np.ndarray:
        """To columns of norm 1; 0 for those of which nothing is left (of blocks drawn anew, more
        noise may be taken out than they hold)."""
        own = np.diag(self.raw)
        return np.where(own > 0, 1 / np.sqrt(np.where(own > 0, own, 1.0)), 0.0)

    @cached_property
    def scaled(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Gram, moment and raw Gram for columns of norm 1."""
        both = np.outer(self.scale, self.scale)
        return self.gram * both, self.moment * self.scale, self.raw * both

    def solve(self, chosen: Sequence[int]) -> tuple[np.ndarray, float]:
        """The coefficients of a set, and the energy that it leaves; infinite if the data do not
        determine them."""
        which = list(chosen)
        if not which:
            return np.zeros(0), self.energy
        gram, moment, raw = self.scaled
        at = np.ix_(which, which)
        values, vectors = np.linalg.eigh(raw[at])
        if values[0] < _SINGULAR:
            return np.zeros(len(which)), np.inf
        white = vectors / np.sqrt(values)
        values, turned = np.linalg.eigh(white.T @ gram[at] @ white)
        if values[0] < _SIGNAL:
            return np.zeros(len(which)), np.inf
        white = white @ turned
        c = white @ ((white.T @ moment[which]) / values)
        left = float(self.energy - moment[which] @ c)
        return c * self.scale[which], left if left >= -self.slack else np.inf

    def without_each(self, chosen: list[int]) -> np.ndarray:
        """The energy that is left if one of the set is taken away, for each of it."""
        gram, moment, _ = self.scaled
        inverse = _inverse(gram[np.ix_(chosen, chosen)])
        c = inverse @ moment[chosen]
        left = self.energy - moment[chosen] @ c
        own = np.diag(inverse)
        with np.errstate(over="ignore"):  # as infinite as where nothing of its own is left
            gain = np.where(own > 0, c**2 / np.where(own > 0, own, 1.0), np.inf)
        return left + np.where(self.scale[chosen] > 0, gain, 0.0)

    def with_each(self, chosen: list[int]) -> np.ndarray:
        """The energy that is left if one more joins the set, for each candidate."""
        gram, moment, raw = self.scaled
        left = self.energy
        own, all_own, rest = np.diag(gram), np.diag(raw), moment
        if chosen:
            cross, all_cross = gram[:, chosen], raw[:, chosen]
            inverse = _inverse(gram[np.ix_(chosen, chosen)])
            solved = cross @ inverse
            c = inverse @ moment[chosen]
            left = left - moment[chosen] @ c
            rest = moment - cross @ c
            own = own - np.sum(solved * cross, axis=1)
            all_solved = all_cross @ _inverse(raw[np.ix_(chosen, chosen)])
            all_own = all_own - np.sum(all_solved * all_cross, axis=1)
        usable = (all_own > _SINGULAR) & (own > _SIGNAL * all_own)
        gain = np.where(usable, rest**2 / np.where(usable, own, 1.0), 0.0)
        gain[chosen] = 0.0
        found = left - gain
        found[found < -self.slack] = np.inf
        return found


def _inverse(matrix: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return np.linalg.pinv(matrix, hermitian=True)


def best_sets(normal: Normal, *, largest: int = LARGEST) -> dict[int, tuple[int, ...]]:
    """For each size the set of candidates that leaves least, as far as a search finds it.

    Forward selection and backward elimination, then exchanges of one candidate for another.
    """
    best: dict[int, tuple[float, tuple[int, ...]]] = {}

    def offer(chosen: list[int]) -> bool:
        left = normal.solve(chosen)[1]
        size = len(chosen)
        if np.isfinite(left) and (size not in best or left < best[size][0]):
            best[size] = left, tuple(sorted(chosen))
            return True
        return False

    forced = list(normal.forced)
    largest = min(largest + len(forced), normal.size)
    chosen = list(forced)
    best[len(forced)] = normal.solve(chosen)[1], tuple(sorted(chosen))
    while len(chosen) < largest:
        left = normal.with_each(chosen)
        left[chosen] = np.inf
        if not np.isfinite(left).any():
            break
        chosen = _exchanged(normal, [*chosen, int(np.argmin(left))])
        offer(chosen)
    for path in _eliminations(normal, largest):
        if offer(path) and len(path) <= largest:
            offer(_exchanged(normal, path))
    for size in sorted(best, reverse=True):
        if size > max(1, len(forced)):
            offer(_dropped(normal, list(best[size][1])))
    return {size: chosen for size, (_, chosen) in sorted(best.items())}


def substitutes(
    normal: Normal, chosen: Sequence[int], gone: int, *, most: int
) -> Iterator[tuple[int, ...]]:
    """Sets without one of those chosen, and with one, two, up to so many others in its place."""
    rest = tuple(i for i in chosen if i != gone)
    others = [i for i in range(normal.size) if i != gone]
    at = np.ix_(others, others)
    fewer = Normal(
        normal.gram[at],
        normal.moment[others],
        normal.energy,
        normal.raw[at],
        normal.slack,
        tuple(others.index(i) for i in rest),
    )
    current = list(fewer.forced)
    for _ in range(most):
        left = fewer.with_each(current)
        left[current] = np.inf
        if not np.isfinite(left).any():
            return
        current = _exchanged(fewer, [*current, int(np.argmin(left))])
        yield tuple(sorted(others[i] for i in current))


def _exchanged(normal: Normal, chosen: list[int]) -> list[int]:
    """Single exchanges while one of them leaves less."""
    current = normal.solve(chosen)[1]
    for _ in range(len(chosen)):
        found: tuple[float, list[int]] | None = None
        for position, own in enumerate(chosen):
            if own in normal.forced:
                continue
            rest = chosen[:position] + chosen[position + 1 :]
            left = normal.with_each(rest)
            left[chosen] = np.inf
            other = int(np.argmin(left))
            if left[other] < current and (found is None or left[other] < found[0]):
                found = float(left[other]), [*rest, other]
        if found is None:
            break
        left = normal.solve(found[1])[1]
        if not left < current - 1e-9 * abs(current):
            break
        current, chosen = left, found[1]
    return chosen


def _dropped(normal: Normal, chosen: list[int]) -> list[int]:
    left = normal.without_each(chosen)
    left[[i for i, one in enumerate(chosen) if one in normal.forced]] = np.inf
    weakest = int(np.argmin(left))
    return chosen[:weakest] + chosen[weakest + 1 :]


def _eliminations(normal: Normal, largest: int) -> Iterator[list[int]]:
    """Sets from backward elimination, those that are small enough.

    While they are many, with the uncorrected normal equations, whose inverse is kept up to date.
    """
    chosen = list(range(normal.size))
    _, moment, raw = normal.scaled
    if len(chosen) > _MANY:
        inverse = np.linalg.inv(raw + _SINGULAR * np.eye(len(raw)))
        while len(chosen) > _MANY:
            c = inverse @ moment[chosen]
            with np.errstate(over="ignore"):  # what is singular counts as needed
                gain = c**2 / np.maximum(np.diag(inverse), 1e-300)
            gain[[i for i, one in enumerate(chosen) if one in normal.forced]] = np.inf
            weakest = int(np.argmin(gain))
            rest = [i for i in range(len(chosen)) if i != weakest]
            column = inverse[rest, weakest]
            inverse = (
                inverse[np.ix_(rest, rest)] - np.outer(column, column) / inverse[weakest, weakest]
            )
            chosen = [chosen[i] for i in rest]
    while len(chosen) > max(1, len(normal.forced)):
        chosen = _dropped(normal, chosen)
        if len(chosen) <= largest:
            yield chosen

"""Normal equations of candidates, shell by shell and block by block, and what is known of their
errors."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.stats import t as student

from .moments import Moments
from .search import Normal

# Error of the weak form itself, relative to what acts in a shell: rounding and time integrals.
FLOOR = 1e-4
# Standard deviations by which the energy of noise may be off.
DEVIATIONS = 6.0
# Standard errors on either side of an estimate: its 95 % interval.
WIDTH = 2.0
# Blocks of time from which a coefficient's error can be told.
_FEWEST_BLOCKS = 3


@dataclass(frozen=True)
class Task:
    """Candidates of one field's equation, or of several that share their coefficients.

    Matrices are of the n candidates and of what they add up to, which comes last: `full`
    `(B, K, n+1, n+1)`, the share of noise that was taken out of it `noise` `(K, n+1, n+1)`, and
    what modes beyond the band change, as in `Moments`: `hidden` and `lean`. `rows` is `(B, K)`.
    Shells of several fields follow one another. `fast` `(K,)` is the share of each shell in which
    the bells' integrals in time are wrong, `touching` the variance that neighbouring blocks have in
    common. `change` is the energy of all of the change, that of the known terms with it.
    """

    full: np.ndarray
    noise: np.ndarray
    rows: np.ndarray
    hidden: np.ndarray
    lean: np.ndarray
    forced: tuple[int, ...] = ()
    fast: np.ndarray | float = 0.0
    change: float = 0.0
    touching: float = 1.0

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
        both = [np.vstack(pair) for pair in zip(weights, targets, strict=True)]
        shares = [
            np.concatenate([_mapped(rows, whole) for rows in both])
            for whole in (moments.noise, moments.hidden, moments.lean)
        ]
        return cls(
            np.concatenate([_mapped(rows, moments.gram) for rows in both], axis=1),
            shares[0],
            np.concatenate([moments.rows] * len(both), axis=1),
            shares[1],
            shares[2],
            forced,
            np.tile(moments.fast, len(targets)),
            float(sum(np.sum(_mapped(rate[None], moments.gram)) for rate in rates)),
            moments.touching,
        )

    @property
    def size(self) -> int:
        return self.full.shape[-1] - 1

    def narrowed(self, chosen: list[int]) -> "Task":
        """The same with these candidates alone."""
        forced = tuple(chosen.index(i) for i in self.forced if i in chosen)
        return self.mapped(np.eye(self.size)[chosen], forced)

    def mapped(self, matrix: np.ndarray, forced: tuple[int, ...] = ()) -> "Task":
        """The same with candidates that are sums of these, `(m, n)`."""
        rows = np.zeros((len(matrix) + 1, self.size + 1))
        rows[:-1, :-1], rows[-1, -1] = matrix, 1.0
        return replace(
            self,
            full=_mapped(rows, self.full),
            noise=_mapped(rows, self.noise),
            hidden=_mapped(rows, self.hidden),
            lean=_mapped(rows, self.lean),
            forced=forced,
        )

    def counted(self, blocks: np.ndarray) -> "Task":
        """The blocks counted so many times each."""
        share = float(blocks @ self.rows.sum(axis=1) / self.rows.sum())
        return replace(
            self,
            full=self.full * blocks[:, None, None, None],
            rows=self.rows * blocks[:, None],
            noise=self.noise * share,
            hidden=self.hidden * share,
            lean=self.lean * share,
        )

    @cached_property
    def total(self) -> np.ndarray:
        """`(K, n+1, n+1)`, over all blocks, without the share of noise."""
        return self.full.sum(axis=0)

    @property
    def energy(self) -> np.ndarray:
        """Of what is to be explained, in each shell, with its noise."""
        return (self.total + self.noise)[:, -1, -1]

    @property
    def whole(self) -> float:
        """Energy of what is to be explained, without its noise."""
        return max(float(np.sum(self.total[:, -1, -1])), 1e-300)

    @cached_property
    def clean(self) -> bool:
        """Whether noise is less of the change than the weak form is wrong by."""
        return bool(np.sum(self.noise[:, -1, -1]) <= FLOOR**2 * np.sum(self.energy))

    def error(self, chosen: tuple[int, ...], c: np.ndarray) -> np.ndarray:
        """Energy of known errors in each shell at these coefficients: noise, modes beyond the band,
        and the weak form's own."""
        known, beyond = self._errors(self._rest(chosen, c))
        return known + beyond

    def _errors(self, rest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Energy in each shell of noise and the weak form's own error; and of modes beyond the
        band, which is no more than what is left, as far as that is known."""
        own = np.diagonal(self.total + self.noise, axis1=1, axis2=2) @ rest**2
        known = np.maximum(_energy(self.noise, rest), 0.0) + (FLOOR**2 + self.fast) * own + 1e-300
        unsure = DEVIATIONS * np.sqrt(2 / np.maximum(self.rows.sum(axis=0), 1.0)) * known
        left = np.maximum(_energy(self.total, rest), 0.0) + unsure
        return known, np.minimum(_energy(self.hidden, rest), left)

    def left(self, chosen: tuple[int, ...], c: np.ndarray) -> np.ndarray:
        """Energy in each shell that these leave, with the share of noise taken out."""
        return _energy(self.total, self._rest(chosen, c))

    def _rest(self, chosen: tuple[int, ...], c: np.ndarray) -> np.ndarray:
        """What is to be explained less what these explain, in terms of the columns."""
        rest = np.zeros(self.size + 1)
        rest[list(chosen)] = -c
        rest[-1] = 1.0
        return rest

    def normal(self, weights: np.ndarray, *, lenient: bool = False) -> Normal:
        """The normal equations with these weights of the shells; `lenient` about what noise may be
        taken out twice in clean data, where it is rounding, whose size is known roughly."""
        full = np.tensordot(weights, self.total, 1)
        raw = full + np.tensordot(weights, self.noise, 1)
        n = float(self.rows.sum())
        slack = n if lenient and self.clean else DEVIATIONS * np.sqrt(2 * n)
        return Normal(
            full[:-1, :-1], full[:-1, -1], float(full[-1, -1]), raw[:-1, :-1], slack, self.forced
        )

    def covariance(self, chosen: tuple[int, ...], c: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Of the coefficients, so that two deviations on either side are their 95 % interval.

        Noise in one mode is in the products of all others, so the shells of a block err together:
        what remains is how the blocks of time differ, each left out in turn. What modes beyond the
        band may do comes on top: it is the same in all blocks.
        """
        at = list(chosen)
        blocks = self.rows.sum(axis=1) / max(float(self.rows.sum()), 1e-300)
        several = np.count_nonzero(blocks) >= _FEWEST_BLOCKS
        full = self.full
        clusters = (
            np.einsum("k,bkij->bij", weights, full)
            if several
            else (weights[:, None, None] * full).reshape(-1, *full.shape[2:])
        )
        clusters = clusters[np.abs(clusters).sum(axis=(1, 2)) > 0][:, [*at, -1]][:, :, [*at, -1]]
        rest = np.concatenate([-c, [1.0]])
        whole = clusters.sum(axis=0)[:-1, :-1]
        own = np.diag(whole)
        # A column that is no more than its noise has no scale, and no say.
        scale = np.where(own > 0, 1 / np.sqrt(np.where(own > 0, own, 1.0)), 0.0)
        both = np.outer(scale, scale)
        half = _root(whole * both)
        # Each block has a share H in the fit, which makes its own rest smaller: (I - H)^-1/2 undoes
        # that (Bell and McCaffrey 2002).
        shares = half @ (clusters[:, :-1, :-1] * both) @ half
        scores = ((clusters @ rest)[:, :-1] * scale) @ half
        scores = np.stack(
            [_root(np.eye(len(at)) - h) @ s for h, s in zip(shares, scores, strict=True)]
        )
        away = scores @ half * scale
        found = away.T @ away
        count = len(clusters)
        if several:
            found = found * self.touching * (student.ppf(0.975, count - 1) / WIDTH) ** 2
        rest = self._rest(chosen, c)
        expected = np.maximum(_energy(self.hidden, rest), 1e-300)
        seen = np.sqrt(self._errors(rest)[1] / expected)
        lean = np.tensordot(weights * seen, self.lean @ rest, 1)[at]
        aside = scale * (half @ half @ (scale * lean))
        return found + np.outer(aside, aside)


def _mapped(rows: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    return rows @ matrices @ rows.T


def _root(matrix: np.ndarray) -> np.ndarray:
    """The inverse of the square root, of what is positive."""
    values, vectors = np.linalg.eigh(matrix)
    told = values > 1e-12 * max(float(np.max(values, initial=0.0)), 1e-300)
    return vectors * np.where(told, 1 / np.sqrt(np.where(told, values, 1.0)), 0.0) @ vectors.T


def _energy(matrices: np.ndarray, rest: np.ndarray) -> np.ndarray:
    return matrices @ rest @ rest

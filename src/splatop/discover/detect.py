"""How large a term that was left out could be: what the data cannot see.

That a term was not chosen says little if the data would not show it. Each plain candidate (a field
or one of its derivatives, and its Laplacian) joins the terms found for a moment: the interval of
the coefficient that it would get, times the size of its column, is the share of the change that it
could make.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..equation.expression import FieldDerivative
from ..errors import in_percent
from .candidates import Candidate, Expression
from .question import FieldGroup
from .task import Task

# Standard errors on either side of an estimate: its 95 % interval.
_WIDTH = 2.0


@dataclass(frozen=True)
class LeftOut:
    """A candidate that is not among the terms found.

    `low` and `high` are the 95 % interval of the coefficient that it could have, `share` the
    largest part of the change (in amplitude, 1 is all of it) that such a coefficient would make.
    All are infinite where noise leaves nothing to tell it by.
    """

    candidate: Candidate
    low: float
    high: float
    share: float

    @classmethod
    def of(cls, candidate: Candidate, c: float, error: float, size: float) -> "LeftOut":
        """`size` is the share of the change that a coefficient of 1 makes."""
        low, high = c - _WIDTH * error, c + _WIDTH * error
        return cls(candidate, float(low), float(high), float(max(abs(low), abs(high)) * size))

    @property
    def seen(self) -> bool:
        """Whether its interval excludes zero."""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        fields = ", ".join(self.candidate.fields)
        if not math.isfinite(self.share):
            return f"{self.candidate} in dt({fields}) cannot be told from noise at any size"
        return (
            f"{self.candidate} in dt({fields}) could have a coefficient from {self.low:.3g} to "
            f"{self.high:.3g}, up to {in_percent(self.share)} of the change"
        )

    def as_dict(self) -> dict[str, Any]:
        def finite(value: float) -> float | None:
            return value if math.isfinite(value) else None

        return {
            "fields": list(self.candidate.fields),
            "term": str(self.candidate),
            "low": finite(self.low),
            "high": finite(self.high),
            "share": finite(self.share),
        }


def sizes(own: Task) -> np.ndarray:
    """The share of the change, in amplitude, that each candidate makes with a coefficient of 1."""
    whole = own.whole
    columns = np.sum(own.total, axis=0)[:-1, :-1]
    return np.sqrt(np.maximum(np.diag(columns), 0.0) / whole)


def left_out(
    group: FieldGroup,
    weighed: Sequence[tuple[Task, np.ndarray]],
    matrix: np.ndarray,
    also: Iterable[int] = (),
) -> tuple[LeftOut, ...]:
    """What could stand beside the terms `matrix` `(terms, candidates)`, largest share first: the
    plain candidates, and those in the places `also`.

    `weighed` are tasks of several widths of the bells, with weights of their shells: that one
    counts which tells the coefficient best.
    """
    found = []
    count = len(group.candidates)
    tried = {**_plain(group), **{group.candidates[i]: np.eye(count)[i] for i in also}}
    for candidate, row in tried.items():
        joint = np.vstack([matrix, row])
        if np.linalg.matrix_rank(joint) < len(joint):
            continue
        trials = [_joined(task, weights, joint) for task, weights in weighed]
        told = [trial for trial in trials if trial is not None]
        if told:
            c, error, size = min(told, key=lambda trial: trial[1] * trial[2])
            found.append(LeftOut.of(candidate, c, error, size))
        else:
            found.append(LeftOut(candidate, -np.inf, np.inf, np.inf))
    return tuple(sorted(found, key=lambda one: -one.share))


def _joined(
    task: Task, weights: np.ndarray, joint: np.ndarray
) -> tuple[float, float, float] | None:
    """The last coefficient of a set, its standard error and the size of its column; None if the
    data do not determine it."""
    own = task.mapped(joint)
    every = tuple(range(len(joint)))
    c, left = own.normal(weights, lenient=True).solve(every)
    if not np.isfinite(left):
        return None
    error = math.sqrt(max(own.covariance(every, c, weights)[-1, -1], 0.0))
    return float(c[-1]), error, float(sizes(own)[-1])


def _plain(group: FieldGroup) -> dict[Candidate, np.ndarray]:
    """Candidates that are linear, and the Laplacian of each field, as sums of the group's."""
    count = len(group.candidates)
    places = {candidate: i for i, candidate in enumerate(group.candidates)}
    found = {
        candidate: np.eye(count)[i]
        for candidate, i in places.items()
        if all(_linear(side) for _, side in candidate.sides)
    }
    for candidate in [c for c in found if len(c.sides) == 1]:
        ((field, side),) = candidate.sides
        ((atom, _),) = side.monomials[0][0]
        if not isinstance(atom, FieldDerivative) or len(side.monomials) > 1:
            continue
        if atom.order or len(atom.index) == 1:
            continue
        parts = [
            Candidate.of(field, Expression.atom(atom.along(axis).along(axis)))
            for axis in range(len(atom.index))
        ]
        if all(part in places for part in parts):
            laplacian = Candidate.of(field, Expression.atom(atom.laplacian()))
            found[laplacian] = sum(found[part] for part in parts)
    return found


def _linear(side: Expression) -> bool:
    return all(
        len(monomial) == 1
        and isinstance(monomial[0][0], FieldDerivative)
        and monomial[0][1] == 1
        and not monomial[0][0].inverses
        for monomial, _ in side.monomials
    )

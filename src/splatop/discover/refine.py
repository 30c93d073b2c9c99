"""The coefficients of the terms found, by following the equation in time."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..data import Trajectories, part
from ..equation import Equation
from ..equation.expression import FieldDerivative, atoms
from ..equation.grouping import ExpressionTerm
from ..errors import SplatopError
from ..identify import Identified, identify_trajectories
from ..identify.frame_pieces import SHORTEST, frames_within, seconds_of_a_frame
from .candidates import Candidate
from .question import Question

# Trajectories differ in a coefficient if it is apart by so many standard errors, and so much.
_APART = 6.0
_APART_SHARE = 0.01
# Noisy frames are followed in a band so much wider than theirs; seconds on paper are those of
# waves that turn by so much from frame to frame there.
_WIDER = 1.5
_TURN = 5.0
# A number that is no part of a name or a power.
_NUMBER = re.compile(r"(?<![\w^])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")


@dataclass(frozen=True)
class Refined:
    """Estimates of the terms, with standard errors and half widths of 95 % intervals.

    `surer` says whether they are better than those of the weak form that terms are chosen by;
    `vague` are those that cannot be told from zero, `doubts` what else speaks against them.
    """

    values: np.ndarray
    errors: np.ndarray
    half_widths: np.ndarray
    residual: float
    noise: float
    method: str
    surer: bool
    frames: int
    vague: tuple[int, ...]
    doubts: tuple[str, ...]
    warnings: tuple[str, ...]


def equation_of(question: Question, terms: tuple[tuple[str, Candidate], ...]) -> Equation:
    """The known terms, and the found ones each with a coefficient of its own."""
    fields = question.fields

    def reads(candidate: Candidate) -> bool:
        used = (atom for _, side in candidate.sides for atom in atoms(side))
        return any(isinstance(a, FieldDerivative) and a.field in question.inputs for a in used)

    found = [
        ExpressionTerm(
            (tuple(candidate.side(field) for field in fields),),
            fields=fields,
            dims=question.setting.dims,
            coefficient=name,
            name=f"found_{name}",
            inputs=question.inputs if reads(candidate) else (),
        )
        for name, candidate in terms
    ]
    told = () if question.known is None else question.known.terms
    return Equation((*told, *found), fields)


def refine(
    question: Question,
    terms: tuple[tuple[str, Candidate], ...],
    start: np.ndarray,
    data: Trajectories,
    *,
    budget: float,
    window: tuple[int, int | None],
) -> Refined | None:
    """What `identify` makes of the equation, or None if it can make nothing of it."""
    equation = equation_of(question, terms)
    data = _some(data, budget)
    first, frames = window
    try:
        found = identify_trajectories(
            equation,
            None,
            data,
            frames=frames,
            start=first,
            budget=budget,
            unknown={name: float(c) for (name, _), c in zip(terms, start, strict=True)},
            known=question.values,
        )
    except SplatopError:
        return None
    # Between walls the weak form takes out what noise adds; around a ring it is the last resort.
    between_walls = not data.domain.all_periodic
    return _pooled(terms, found, between_walls)


def seconds_for_noisy(data: Trajectories, slow: float = 1.0) -> float:
    """About so long would following noisy frames in time take at least, so many times `slow` as on
    paper. States are estimated along then: in 2D and 3D that costs minutes, and tells little that
    the weak form does not."""
    if not data.domain.all_periodic:
        return 0.0
    return slow * SHORTEST * seconds_of_a_frame(data.grid, len(data.fields))


def slowness(
    terms: Iterable[tuple[Candidate, float]], data: Trajectories, band: tuple[int, ...]
) -> float:
    """How many times longer than on paper it takes to follow these terms with coefficients in
    noise: waves of a band wider than that of the data turn by so much from frame to frame, which
    takes as many more steps, and steps of as many more waves."""
    if not data.domain.all_periodic:
        return 1.0
    k = 2 * np.pi * _WIDER * np.array(band) / np.array(data.grid.lengths)
    rate = 0.0
    for candidate, c in terms:
        for field, side in candidate.sides:
            for monomial, weight in side.monomials:
                atom, power = monomial[0] if monomial else (None, 0)
                if len(monomial) > 1 or power != 1 or not isinstance(atom, FieldDerivative):
                    continue
                # What damps is exact, however fast.
                if not atom.inverses and (atom.order % 2 or atom.field != field):
                    rate += abs(c * weight) * float(np.prod(k ** np.array(atom.index)))
    return max(1.0, rate * data.dt / _TURN) ** 2


def _some(data: Trajectories, budget: float) -> Trajectories:
    """As many trajectories as the budget allows for, each with the fewest frames."""
    count = data.trajectories
    while count > 1 and _enough(data, budget, count) == SHORTEST:
        count = count // 2
    if count == data.trajectories:
        return data
    return part(data, slice(count), which=f"the first {count} of {data.trajectories} trajectories")


def _enough(data: Trajectories, budget: float, count: int) -> int:
    return frames_within(budget, data.grid, channels=len(data.fields), trajectories=count)


def _pooled(
    terms: tuple[tuple[str, Candidate], ...], found: list[Identified], between_walls: bool
) -> Refined:
    """Over trajectories: weighted by how sure each is, no surer than they agree."""
    names = [name for name, _ in terms]
    values = np.array([[one.estimates[n] for n in names] for one in found])
    errors = np.array([[one.standard_errors[n] for n in names] for one in found])
    half = np.array(
        [[(one.intervals[n][1] - one.intervals[n][0]) / 2 for n in names] for one in found]
    )
    weights = 1 / np.maximum(errors, 1e-12 * np.abs(values) + 1e-300) ** 2
    weights = weights / np.maximum(weights.sum(axis=0), 1e-300)
    mean = np.sum(weights * values, axis=0)
    error = np.sqrt(np.sum((weights * errors) ** 2, axis=0))
    width = np.sqrt(np.sum((weights * half) ** 2, axis=0))
    doubts = together(
        [
            _named(text, terms)
            for one in found
            for text in one.warnings
            if not one.trusted and "told from zero" not in text
        ]
    )
    if len(found) > 1:
        apart = np.abs(values - mean)
        spread = np.sqrt(np.sum(weights * (values - mean) ** 2, axis=0) / (len(found) - 1))
        width = np.maximum(width, 2 * spread)
        far = (apart > _APART * errors) & (apart > _APART_SHARE * np.abs(mean))
        for index in np.nonzero(far.any(axis=0))[0]:
            low, high = values[:, index].min(), values[:, index].max()
            doubts.append(
                f"the coefficient of {terms[index][1]} differs between trajectories, from "
                f"{low:.4g} to {high:.4g}: it is no constant, or these are different equations"
            )
    # What cannot be told from zero is what all trajectories together cannot.
    vague = [str(terms[i][1]) for i in np.nonzero(~(width < np.abs(mean)))[0]]
    warnings = together(
        [
            said
            for one in found
            for text in one.warnings
            if "told from zero" not in (said := _named(text, terms))
            or any(f"'{name}'" in said for name in vague)
        ]
    )
    return Refined(
        mean,
        error,
        width,
        float(np.mean([one.relative_residual for one in found])),
        float(np.max([one.noise_level for one in found])),
        "/".join(sorted({one.method for one in found})),
        between_walls or all(one.method != "weak" for one in found),
        sum(one.frames for one in found),
        tuple(int(i) for i in np.nonzero(~(width < np.abs(mean)))[0]),
        tuple(doubts),
        tuple(w for w in warnings if w not in doubts),
    )


def together(texts: Iterable[str]) -> list[str]:
    """Sentences that differ by their numbers alone as one: the first, and how many are like it."""
    alike: dict[str, list[str]] = {}
    for text in dict.fromkeys(texts):
        alike.setdefault(_NUMBER.sub("#", text), []).append(text)
    return [
        one[0] if len(one) == 1 else f"{one[0]} (so in {len(one)} trajectories)"
        for one in alike.values()
    ]


def _named(text: str, terms: tuple[tuple[str, Candidate], ...]) -> str:
    for name, candidate in terms:
        text = text.replace(f"'{name}'", f"'{candidate}'")
    return text

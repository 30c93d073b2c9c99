"""What is asked: candidates for each unknown part, and terms whose coefficients are unknown."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..derivative import Derivative
from ..equation import Equation, PartialEquation
from ..equation.expansion import expand
from ..equation.expression import FieldDerivative, atoms, degree
from ..equation.text import check_number
from ..errors import SplatopError, unknown_name
from .candidates import Basis, Candidate, check_independent, independent, parse_terms
from .library import library, products_of
from .moments import Moments
from .symmetry import Setting, keeps
from .task import Task


@dataclass(frozen=True)
class FieldGroup:
    """Fields whose equations share coefficients, and the candidates of these.

    The first `forced` candidates are terms that the user wrote, with the names of their
    coefficients.
    """

    fields: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    names: tuple[str, ...]

    @property
    def forced(self) -> tuple[int, ...]:
        return tuple(range(len(self.names)))


@dataclass(frozen=True)
class Question:
    """An equation known in part: `known` has values for all of its coefficients."""

    partial: PartialEquation
    setting: Setting
    known: Equation | None
    values: dict[str, float]
    groups: tuple[FieldGroup, ...]

    @property
    def fields(self) -> tuple[str, ...]:
        return self.partial.fields

    @property
    def channels(self) -> tuple[str, ...]:
        """The fields, and the inputs behind them."""
        return self.setting.fields

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.channels[len(self.fields) :]

    @property
    def degree(self) -> int:
        """Of the products; functions are taken to be as wide as cubic ones."""
        found = [degree(m) for side in self.basis[0].expressions() for m, _ in side.monomials]
        found.append(1.0 if self.known is None else self.known.degree)
        return int(max(1.0, *(d if math.isfinite(d) else 3.0 for d in found)))

    @property
    def derivatives(self) -> frozenset[Derivative]:
        """All that candidates and known terms take of the fields."""
        own = {
            atom.operator
            for side in self.basis[0].expressions()
            for atom in atoms(side)
            if isinstance(atom, FieldDerivative) and not atom.is_value
        }
        told = frozenset() if self.known is None else self.known.derivatives(self.setting.dims)
        return frozenset(own | told)

    @cached_property
    def basis(self) -> tuple[Basis, dict[FieldGroup, list[dict[str, dict[int, float]]]]]:
        """The products of all candidates, and each candidate in terms of them, by field."""
        basis = Basis()
        rows = {
            group: [{f: basis.row(side) for f, side in c.sides} for c in group.candidates]
            for group in self.groups
        }
        return basis, rows

    def task(self, group: FieldGroup, moments: Moments) -> Task:
        basis, rows = self.basis
        p, channels = len(basis), len(self.channels)
        weights, targets, rates = [], [], []
        for field in group.fields:
            own = np.zeros((len(group.candidates), p + 2 * channels))
            for row, sides in zip(own, rows[group], strict=True):
                for place, weight in sides.get(field, {}).items():
                    row[place] = weight
            columns = np.eye(p + 2 * channels)
            channel = self.fields.index(field)
            rate, known = columns[p + channel], columns[p + channels + channel]
            weights.append(own)
            targets.append(rate - known)
            rates.append(rate)
        return Task.of(moments, weights, targets, rates, group.forced)


def ask(
    partial: PartialEquation,
    setting: Setting,
    *,
    known: Mapping[str, float],
    terms: str | Sequence[str] | None = None,
) -> Question:
    """The question, or an error that says what is wrong with it."""
    if not partial.unknown:
        raise SplatopError(
            "expected an equation with ? for what is not known, as in 'dt(u) = ?' or "
            "'dt(u) = D*lap(u) + ?', got none: use `splatop identify` for coefficients alone"
        )
    for name, value in known.items():
        if name not in partial.coefficient_names:
            raise unknown_name("coefficient", name, partial.coefficient_names)
        check_number(name, value)
    told, named = _split(partial.known, known, setting)
    candidates: list[tuple[str, list[Candidate]]] = []
    given = None if terms is None else _given(terms, setting)
    for field, arguments in partial.unknown.items():
        if given is not None:
            own = [Candidate.of(field, side) for side in given]
            check_independent([c for _, c in named if field in c.fields] + own)
        elif arguments is not None:
            sides = products_of(arguments, setting.degree)
            own = [c for c in (Candidate.of(field, s) for s in sides) if keeps(setting, c)]
        else:
            own = library(setting, field)
        candidates.append((field, own))
    return Question(partial, setting, told, dict(known), _groups(partial.fields, named, candidates))


def _given(terms: str | Sequence[str], setting: Setting):
    text = terms if isinstance(terms, str) else ", ".join(terms)
    return parse_terms(text, dims=setting.dims, fields=setting.fields)


def _split(
    equation: Equation | None, known: Mapping[str, float], setting: Setting
) -> tuple[Equation | None, list[tuple[str, Candidate]]]:
    """Terms with values, and those whose coefficient is to be found."""
    told, named = [], []
    for term in () if equation is None else equation.terms:
        missing = [n for n in term.inner_coefficients if n not in known]
        if missing:
            raise SplatopError(
                f"expected a value for {', '.join(missing)}, in which the equation is not linear: "
                f"give --known {missing[0]}=..."
            )
        if term.coefficient is None or term.coefficient in known:
            told.append(term)
            continue
        assert equation is not None
        sides = expand(term, equation.fields, setting.dims)
        if sides is None:
            raise SplatopError(
                f"expected a value for {term.coefficient}: its term has no text to be found by"
            )
        pairs = zip(equation.fields, sides, strict=True)
        named.append((term.coefficient, Candidate(tuple((f, s) for f, s in pairs if s))))
    merged: dict[str, Candidate] = {}
    for name, candidate in named:
        sides = dict(merged[name].sides) if name in merged else {}
        for field, side in candidate.sides:
            sides[field] = sides[field] + side if field in sides else side
        merged[name] = Candidate(tuple(sides.items()))
    fields = () if equation is None else equation.fields
    return (Equation(tuple(told), fields) if told else None), list(merged.items())


def _groups(
    fields: tuple[str, ...],
    named: list[tuple[str, Candidate]],
    candidates: list[tuple[str, list[Candidate]]],
) -> tuple[FieldGroup, ...]:
    """Fields that share a coefficient are looked at together."""
    every = [c for _, c in named] + [c for _, own in candidates for c in own]
    owner = {field: {field} for field in fields}
    for candidate in every:
        joined = set().union(*(owner[field] for field in candidate.fields))
        for field in joined:
            owner[field] = joined
    found = []
    for together in {frozenset(group): group for group in owner.values()}.values():
        own = [(n, c) for n, c in named if together & set(c.fields)]
        rest = [c for _, some in candidates for c in some if together & set(c.fields)]
        both = independent([*(c for _, c in own), *rest])
        if both:
            ordered = tuple(field for field in fields if field in together)
            found.append(FieldGroup(ordered, tuple(both), tuple(n for n, _ in own)))
    return tuple(sorted(found, key=lambda group: fields.index(group.fields[0])))

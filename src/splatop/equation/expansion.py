"""Terms as expressions, also the built-in ones: what printing and the reference solver work on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..derivative import Derivative
from ..errors import is_concrete
from .equation import Equation
from .expression import (
    Coefficient,
    Expression,
    FieldDerivative,
    Monomial,
    Time,
    atoms,
    monomial_atoms,
)
from .grouping import ExpressionTerm
from .questions import coefficient_names, linear_operand
from .terms import (
    Advection,
    ConservativeSelfAdvection,
    Diffusion,
    Reaction,
    SelfAdvection,
    Term,
)
from .values import evaluate


def expand(term: Term, fields: tuple[str, ...], dims: int) -> tuple[Expression, ...] | None:
    """The sum of a term's parts for each field, without its coefficient.

    None if there is no text for it: a user's own function, a velocity known by its samples.
    """

    def u(field: str) -> FieldDerivative:
        return FieldDerivative(field, (0,) * dims)

    def slope(field: str, axis: int) -> Expression:
        return Expression.atom(u(field).along(axis))

    def convection(field: str) -> Expression:
        return _sum(Expression.atom(u(w)) * slope(field, axis) for axis, w in enumerate(fields))

    match term:
        case ExpressionTerm():
            return term.sides
        case Advection():
            if term.velocity is not None and (
                np.shape(term.velocity) != (dims,) or not is_concrete(term.velocity)
            ):
                return None
            velocity = np.ones(dims) if term.velocity is None else np.asarray(term.velocity)
            sides = [
                _sum(Expression.number(-w) * slope(field, axis) for axis, w in enumerate(velocity))
                for field in fields
            ]
        case Diffusion():
            sides = [Expression.atom(u(field).laplacian()) for field in fields]
        case SelfAdvection() if len(fields) == dims:
            sides = [-convection(field) for field in fields]
        case ConservativeSelfAdvection() if len(fields) == dims:
            divergence = _sum(slope(field, axis) for axis, field in enumerate(fields))
            half = Expression.number(-0.5)
            sides = [
                half * (convection(field) + Expression.atom(u(field)) * divergence)
                for field in fields
            ]
        case Reaction():
            sides = [
                _sum(
                    Expression.number(a) * Expression.atom(u(field)) ** p
                    for p, a in enumerate(term.polynomial)
                )
                for field in fields
            ]
        case _:
            return None
    return tuple(side.canonical() for side in sides)


def _sum(expressions) -> Expression:
    return sum(expressions, start=Expression())


@dataclass(frozen=True)
class LinearPart:
    """`du_channel/dt = factor * operator(u_source)`; the factor holds numbers and coefficients."""

    channel: int
    source: int
    factor: Expression
    operator: Derivative

    @property
    def names(self) -> tuple[str, ...]:
        """The coefficients in the factor."""
        return coefficient_names(atoms(self.factor))

    def rate(self, coefficients: Mapping[str, Any]) -> Any:
        """The factor's value, a plain number unless a coefficient is traced."""

        def known(atom: Any) -> Any:
            assert isinstance(atom, Coefficient)
            value = coefficients[atom.name]
            return float(value) if is_concrete(value) else value

        return evaluate(self.factor, known)


def split_linear(equation: Equation, dims: int) -> tuple[tuple[LinearPart, ...], tuple[Term, ...]]:
    """The parts that act on each Fourier mode alone and always alike, and terms for all the rest.

    What couples channels belongs to them if it differentiates, as in Schrödinger's equation for
    two real fields. Without derivatives it is not stiff, and cheaper among the rest. So is what
    multiplies a field itself beside products: growth and decay that these balance, as in
    Gray-Scott, leave a tenth of the error if one scheme integrates both.
    """
    linear, rest = _split(equation, dims, multiples=True)
    if any(term.degree > 1 for term in rest):
        return _split(equation, dims, multiples=False)
    return linear, rest


def is_affine(equation: Equation, dims: int) -> bool:
    """Whether the rate is a linear map of the fields, and what does not depend on them, at all
    times alike. Factors may vary in space."""
    sides = [expand(term, equation.fields, dims) for term in equation.terms]
    monomials = [m for own in sides for side in own or () for m, _ in side.monomials]
    return not equation.uses_time and None not in sides and all(map(_is_affine, monomials))


def _is_affine(monomial: Monomial) -> bool:
    of_fields = [
        atom if exponent == 1 else None
        for atom, exponent in monomial
        if any(isinstance(one, FieldDerivative) for one in monomial_atoms(((atom, exponent),)))
    ]
    return not of_fields or (len(of_fields) == 1 and isinstance(of_fields[0], FieldDerivative))


def _split(
    equation: Equation, dims: int, *, multiples: bool
) -> tuple[tuple[LinearPart, ...], tuple[Term, ...]]:
    """With or without multiples of a field itself among the parts that are linear."""
    linear: list[LinearPart] = []
    rest: list[Term] = []
    for term in equation.terms:
        sides = expand(term, equation.fields, dims)
        if sides is None:
            rest.append(term)
            continue
        kept = []
        for channel, (field, side) in enumerate(zip(equation.fields, sides, strict=True)):
            others = []
            for monomial, number in side.monomials:
                found = linear_operand(monomial)
                changes = any(isinstance(atom, Time) for atom in monomial_atoms(monomial))
                changes |= found is not None and found[1].field not in equation.fields
                if (
                    found is None
                    or changes
                    or not (found[1].operator.order or (multiples and found[1].field == field))
                ):
                    others.append((monomial, number))
                    continue
                source = equation.fields.index(found[1].field)
                factor = Expression(((found[0], number),))
                if term.coefficient is not None:
                    factor = factor * Expression.atom(Coefficient(term.coefficient))
                linear.append(LinearPart(channel, source, factor, found[1].operator))
            kept.append(Expression(tuple(others)))
        if any(kept):
            rest.append(
                ExpressionTerm(
                    (tuple(kept),),
                    fields=equation.fields,
                    dims=dims,
                    coefficient=term.coefficient,
                    name=term.name,
                    origin=getattr(term, "origin", ()),
                    inputs=term.reads,
                )
            )
    return tuple(linear), tuple(rest)

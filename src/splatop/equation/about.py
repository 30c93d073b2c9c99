"""An equation about a constant state: what a small signal on a large offset obeys."""

from collections.abc import Sequence

from ..errors import SplatopError
from .equation import Equation
from .expression import Expression, FieldDerivative, Function, Group, Monomial, uses_fields
from .grouping import ExpressionTerm
from .terms import Advection, Diffusion, Term


def about(equation: Equation, constants: Sequence[float]) -> Equation | None:
    """The equation of `w` where `u = constants + w`, one constant for each field.

    Its transport by the constant is a linear part, which is integrated exactly. None where a term
    is no polynomial in the fields, or has no text.
    """
    offsets = dict(zip(equation.fields, map(float, constants), strict=True))
    terms = [_term(term, offsets) for term in equation.terms]
    kept = tuple(term for term in terms if term is not None)
    return Equation(kept, equation.fields) if len(kept) == len(terms) else None


def _term(term: Term, offsets: dict[str, float]) -> Term | None:
    if isinstance(term, Advection | Diffusion):  # of slopes alone
        return term
    if not isinstance(term, ExpressionTerm):
        return None
    try:
        sides = [[_expression(side, offsets) for side in piece] for piece in term.pieces]
    except SplatopError:  # longer than an expression may be
        return None
    pieces = tuple(tuple(side for side in piece if side is not None) for piece in sides)
    if any(len(piece) != len(term.fields) for piece in pieces):
        return None
    return ExpressionTerm(
        pieces,
        fields=term.fields,
        dims=term.dims,
        coefficient=term.coefficient,
        name=term.name,
        origin=term.origin,
        inputs=term.inputs,
    )


def _expression(expression: Expression, offsets: dict[str, float]) -> Expression | None:
    sides = [_product(monomial, offsets) for monomial, _ in expression.monomials]
    numbers = [Expression.number(number) for _, number in expression.monomials]
    if any(side is None for side in sides):
        return None
    return Expression.sum(
        number * side for number, side in zip(numbers, sides, strict=True) if side is not None
    )


def _product(monomial: Monomial, offsets: dict[str, float]) -> Expression | None:
    result = Expression.number(1)
    for atom, exponent in monomial:
        if isinstance(atom, Function | Group) and uses_fields(atom.argument):
            return None
        factor = Expression.product([(atom, exponent)])
        if isinstance(atom, FieldDerivative) and atom.is_value and atom.field in offsets:
            if not isinstance(exponent, int) or exponent < 0:
                return None
            factor = (Expression.atom(atom) + Expression.number(offsets[atom.field])) ** exponent
        result = result * factor
    return result

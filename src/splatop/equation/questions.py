"""Questions to expressions: what of them is complex, linear, or changes in time."""

from collections.abc import Iterable

from .expression import (
    Atom,
    Coefficient,
    Coordinate,
    Expression,
    FieldDerivative,
    Imaginary,
    Monomial,
    Time,
    atoms,
    monomial_atoms,
)


def conjugate(expression: Expression) -> Expression:
    """With -i for i: all names stand for real numbers."""
    return Expression(
        tuple((m, -number if _is_imaginary(m) else number) for m, number in expression.monomials)
    )


def split(expression: Expression) -> tuple[Expression, Expression]:
    """The real and the imaginary part, both without the imaginary unit."""
    real, imaginary = [], []
    for monomial, number in expression.monomials:
        if _is_imaginary(monomial):
            rest = tuple(factor for factor in monomial if not isinstance(factor[0], Imaginary))
            imaginary.append((rest, number))
        else:
            real.append((monomial, number))
    return Expression(tuple(real)), Expression(tuple(imaginary))


def is_complex(expression: Expression) -> bool:
    return any(_is_imaginary(monomial) for monomial, _ in expression.monomials)


def _is_imaginary(monomial: Monomial) -> bool:
    return any(isinstance(atom, Imaginary) for atom, _ in monomial)


def uses_time(expression: Expression) -> bool:
    return any(isinstance(atom, Time) for atom in atoms(expression))


def coefficient_names(items: Iterable[Atom]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(atom.name for atom in items if isinstance(atom, Coefficient)))


def linear_operand(monomial: Monomial) -> tuple[Monomial, FieldDerivative] | None:
    """`(factor, operand)` of a monomial that is a constant times one derivative of a field."""
    operands = [(a, e) for a, e in monomial if isinstance(a, FieldDerivative)]
    if len(operands) != 1 or operands[0][1] != 1:
        return None
    factor = tuple(pair for pair in monomial if pair != operands[0])
    if any(isinstance(atom, Coordinate | FieldDerivative) for atom in monomial_atoms(factor)):
        return None
    return factor, operands[0][0]

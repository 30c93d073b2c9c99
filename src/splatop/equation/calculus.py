"""Powers, quotients and spatial derivatives of expressions, down to derivatives of bare fields."""

from collections.abc import Iterable
from fractions import Fraction

from .expression import (
    Atom,
    Coordinate,
    Exponent,
    Expression,
    FieldDerivative,
    Function,
    Group,
    Imaginary,
    Monomial,
    check_exponent,
    opened,
    operator,
    simplest,
    uses_fields,
)
from .limits import ExpressionError
from .questions import conjugate, is_complex, linear_operand, split
from .values import constant_value

MAX_NESTED = 6

Polynomial = dict[tuple[int, ...], float]  # in the partial derivatives


def power(base: Expression, exponent: Exponent) -> Expression:
    """Whole powers of anything, fractions of what holds no field."""
    check_exponent(exponent)
    if isinstance(exponent, int) and exponent >= 0:
        return base**exponent
    if is_complex(base):
        if not isinstance(exponent, int):
            raise ExpressionError("expected a real number for a root, got a complex one")
        return power(conjugate(base) * power(abs2(base), -1), -exponent)
    if uses_fields(base):
        if not isinstance(exponent, int):
            raise ExpressionError(
                "a fractional power of a field is not possible: write sqrt(...), or "
                "exp(p*log(...)) for the power p of what is positive"
            )
        return _over_fields(base) ** -exponent
    constant = constant_value(base)
    if constant == 0:
        raise ExpressionError("division by zero" if exponent < 0 else "expected a root of non-zero")
    if constant is not None and constant < 0 and isinstance(exponent, Fraction):
        raise ExpressionError(f"expected a positive number for a root, got {constant:g}")
    if len(base.monomials) == 1:
        monomial, number = base.monomials[0]
        if isinstance(exponent, int):
            return opened({a: e * exponent for a, e in monomial}) * Expression.number(
                _number_power(number, exponent)
            )
        if not monomial:
            return Expression.number(_number_power(number, float(exponent)))
        if number == 1 and len(monomial) == 1 and monomial[0][1] == 1:
            return Expression.product([(monomial[0][0], exponent)])
    return Expression.product([(Group(base.canonical()), exponent)])


def _over_fields(base: Expression) -> Expression:
    """One over what holds fields; factors without any, as in `2*D*u`, stay outside."""
    if len(base.monomials) != 1:
        return apply("recip", base)
    monomial, number = next(iter(base.monomials))
    outside = [(a, e) for a, e in monomial if not uses_fields(Expression.atom(a))]
    inside = [(a, e) for a, e in monomial if uses_fields(Expression.atom(a))]
    factor = power(Expression.product(outside, number), -1)
    return factor * apply("recip", Expression.product(inside))


def _number_power(number: float, exponent: float | int) -> float:
    try:
        return number**exponent
    except OverflowError:
        raise ExpressionError(f"expected finite numbers, got {number:g}^{exponent}") from None


def abs2(expression: Expression) -> Expression:
    """The square of the absolute value, which is real."""
    return split(expression * conjugate(expression))[0]


def apply(name: str, argument: Expression) -> Expression:
    """A function of an expression; of plain numbers it must be finite."""
    if is_complex(argument):
        return _apply_complex(name, argument)
    if _nested(argument) >= MAX_NESTED:
        raise ExpressionError(f"expected at most {MAX_NESTED} functions within one another")
    result = Expression.atom(Function(name, argument.canonical()))
    constant = constant_value(result)
    if constant is not None and not abs(constant) < float("inf"):
        raise ExpressionError(f"expected a finite value of {name}(...), got {constant}")
    return Expression() if constant == 0 else result


def _apply_complex(name: str, argument: Expression) -> Expression:
    if name == "abs":
        return apply("sqrt", abs2(argument))
    if name != "exp":
        raise ExpressionError(
            f"expected a real argument of {name}(...), got a complex one: take re(...), im(...) or "
            "abs2(...) of it, or its exp or abs"
        )
    real, phase = split(argument)
    size = apply("exp", real) if real else Expression.number(1)
    turned = apply("sin", phase) * Expression.atom(Imaginary())
    return size * (apply("cos", phase) + turned)


def _nested(expression: Expression) -> int:
    held = [a.argument for m, _ in expression.monomials for a, _ in m if isinstance(a, Function)]
    return max((1 + _nested(argument) for argument in held), default=0)


def differentiate(expression: Expression, axis: int) -> Expression:
    """The derivative along an axis by the product and chain rules."""
    return Expression.sum(
        _lowered(monomial, position) * Expression.number(number) * inner
        for monomial, number in expression.monomials
        for position, (atom, _) in enumerate(monomial)
        if (inner := _atom_derivative(atom, axis))
    )


def _lowered(monomial: Monomial, position: int) -> Expression:
    """The derivative of a product by one of its atoms."""
    atom, exponent = monomial[position]
    kept = [*monomial[:position], *monomial[position + 1 :]]
    if exponent != 1:
        kept.append((atom, simplest(exponent - 1)))
    return Expression.product(kept, float(exponent))


def _atom_derivative(atom: Atom, axis: int) -> Expression:
    match atom:
        case Coordinate(own) if own == axis:
            return Expression.number(1)
        case FieldDerivative():
            return Expression.atom(atom.along(axis))
        case Group(argument):
            return differentiate(argument, axis)
        case Function(name, argument):
            inner = differentiate(argument, axis)
            return _outer_derivative(name, argument) * inner if inner else inner
    return Expression()


def _outer_derivative(name: str, argument: Expression) -> Expression:
    def f(name: str) -> Expression:
        return Expression.atom(Function(name, argument))

    half = Expression.number(0.5)
    match name:
        case "sin":
            return f("cos")
        case "cos":
            return -f("sin")
        case "exp":
            return f("exp")
        case "log":
            return apply("recip", argument)
        case "tanh":
            return Expression.number(1) - f("tanh") ** 2
        case "sqrt":
            return half * f("rsqrt")
        case "rsqrt":
            return -half * f("rsqrt") ** 3
        case "recip":
            return -(f("recip") ** 2)
        case "abs":
            return f("sign")
    return Expression()  # sign


def laplace(expression: Expression, dims: int) -> Expression:
    """The Laplacian; of a constant times a derivative it stays one derivative."""
    parts = []
    for monomial, number in expression.monomials:
        linear = linear_operand(monomial)
        if linear is None:
            one = Expression(((monomial, number),))
            parts += [differentiate(differentiate(one, axis), axis) for axis in range(dims)]
        else:
            factor, operand = linear
            parts.append(Expression.product([*factor, (operand.laplacian(), 1)], number))
    return collect_laplacians(Expression.sum(parts))


def inverse_laplace(expression: Expression) -> Expression:
    """`invlap` of an expression that is linear in fields."""
    parts = []
    for monomial, number in expression.monomials:
        linear = linear_operand(monomial)
        if linear is None:
            raise ExpressionError(
                "expected fields times constants inside invlap(...): only the inverse Laplacian "
                "of a field or of its derivatives can be taken"
            )
        factor, operand = linear
        parts.append(Expression.product([*factor, (operand.inverse_laplacian(), 1)], number))
    return Expression.sum(parts)


def collect_laplacians(expression: Expression) -> Expression:
    """`c*d2x(u) + c*d2y(u)` becomes `c*lap(u)`: one derivative to compute instead of two.

    Among monomials that differ in their highest derivative only, the polynomial in the partial
    derivatives is divided by the Laplacian's as often as that leaves no remainder.
    """
    for _ in range(4):  # a merged monomial may meet others: repeat, in practice once
        collected = _collect_once(expression)
        if collected == expression:
            break
        expression = collected
    return expression


def _collect_once(expression: Expression) -> Expression:
    groups: dict[tuple, list[tuple[FieldDerivative | None, float]]] = {}
    for monomial, number in expression.monomials:
        operand = _highest(monomial)
        rest = tuple(factor for factor in monomial if factor[0] is not operand)
        which = operand and (operand.field, operand.inverses, operand.order)
        groups.setdefault((rest, which), []).append((operand, number))
    parts = []
    for (rest, _), members in groups.items():
        for operand, number in _merged(members):
            one = Expression(((rest, number),))
            parts.append(one if operand is None else one * Expression.atom(operand))
    return Expression.sum(parts)


def _highest(monomial: Monomial) -> FieldDerivative | None:
    """The factor that may be part of a Laplacian: the derivative of highest order, at least 2."""
    found = None
    for atom, exponent in monomial:
        if isinstance(atom, FieldDerivative) and exponent == 1 and len(atom.index) > 1:
            found = atom if atom.order >= 2 and (not found or atom.order > found.order) else found
    return found


def _merged(
    members: list[tuple[FieldDerivative | None, float]],
) -> Iterable[tuple[FieldDerivative | None, float]]:
    first = members[0][0]
    if len(members) == 1 or first is None:
        return members
    polynomial: Polynomial = {}
    for operand, number in members:
        assert operand is not None
        for index, weight in operator(operand.index, operand.laplacians, 0).terms:
            polynomial[index] = polynomial.get(index, 0.0) + number * weight
    # Weights are sums of a few written numbers: beyond 12 digits they are rounding.
    negligible = 1e-12 * max(abs(number) for _, number in members)
    laplacians = 0
    while quotient := _divide_by_laplacian(polynomial, negligible):
        polynomial, laplacians = quotient, laplacians + 1
    return [
        (FieldDerivative(first.field, index, laplacians, first.inverses), weight)
        for index, weight in sorted(polynomial.items(), reverse=True)
        if abs(weight) > negligible
    ]


def _divide_by_laplacian(polynomial: Polynomial, negligible: float) -> Polynomial | None:
    """The exact quotient, or None where there is none."""
    rest = {index: weight for index, weight in polynomial.items() if abs(weight) > negligible}
    quotient: Polynomial = {}
    while rest:
        lead = max(rest)  # the highest power of the first axis
        if lead[0] < 2:
            return None
        weight = rest[lead]
        lowered = (lead[0] - 2, *lead[1:])
        quotient[lowered] = weight
        for axis in range(len(lead)):
            index = tuple(p + 2 * (i == axis) for i, p in enumerate(lowered))
            rest[index] = rest.get(index, 0.0) - weight
            if abs(rest[index]) <= negligible:
                del rest[index]
    return quotient

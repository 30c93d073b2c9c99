"""The grammar of an equation: a recursive-descent parser that builds expressions.

Nothing is ever evaluated as Python, and every error points at its place in the text.
"""

import re
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

from ..domain import AXES
from ..errors import SplatopError, unknown_name
from .calculus import abs2, apply, collect_laplacians, differentiate, inverse_laplace, laplace
from .expression import (
    FUNCTIONS,
    MAX_ORDER,
    Coefficient,
    Coordinate,
    Exponent,
    Expression,
    FieldDerivative,
    Imaginary,
    Pi,
    Time,
    atoms,
    simplest,
)
from .limits import ExpressionError
from .questions import conjugate, split
from .tokens import Source, Token
from .unknown import UnknownPart, read_unknown
from .vectors import Value, Vector, add, divide, dot, multiply, negative, raise_to, scalar, vector

MAX_DEPTH = 40
MAX_DENOMINATOR = 12
_OPERATORS = ("lap", "bilap", "invlap", "grad", "div", "dot", "vec")
# Of complex values. As names without arguments these are free.
COMPLEX_FUNCTIONS = ("abs2", "conj", "re", "im", "real", "imag")
RE, IM = "_re", "_im"  # the parts of a complex field are fields of these names
_PARTIAL = re.compile(r"d([0-9]*)([xyz])")


def meaning(name: str) -> str | None:
    """What a name stands for already, or None if it is free for a field or a coefficient."""
    if name in ("x", "y", "z"):
        return "a coordinate"
    if name in ("t", "pi"):
        return {"t": "the time", "pi": "the number"}[name]
    if name in ("dt", *FUNCTIONS, *_OPERATORS) or _PARTIAL.fullmatch(name):
        return "a function"
    return None


class Parser:
    """One right-hand side: sums of products of powers, function calls, parentheses."""

    def __init__(
        self,
        source: Source,
        tokens: list[Token],
        *,
        dims: int,
        fields: tuple[str, ...],
        coefficients: tuple[str, ...] | None,
        complex_fields: frozenset[str] = frozenset(),
        unit: bool = False,
        inputs: tuple[str, ...] = (),
    ):
        """`inputs` are known fields without an equation. `unit` says that `i` is the imaginary
        unit; `complex_fields` are some of the `fields`."""
        self.source, self.tokens, self.dims = source, tokens, dims
        self.fields, self.coefficients = (*fields, *inputs), coefficients
        self.complex_fields, self.unit = complex_fields, unit
        self.parts = {name + part for name in complex_fields for part in (RE, IM)}
        self.position, self.depth = 0, 0
        self.unknown: UnknownPart | None = None

    @property
    def next(self) -> Token:
        return self.tokens[self.position]

    def take(self) -> Token:
        self.position += 1
        return self.tokens[self.position - 1]

    def error(self, message: object, token: Token) -> SplatopError:
        return self.source.error(str(message), token.at)

    def compute(self, token: Token, operation: Callable[..., Any], *operands: Any) -> Any:
        """The algebra's own errors, with the place they come from."""
        try:
            return operation(*operands)
        except ExpressionError as error:
            raise self.error(error, token) from None

    def right_side(self) -> Expression:
        start = self.next
        value = self.sum()
        if self.next.kind != "end":
            raise self.error(self.unexpected(self.next), self.next)
        return self.compute(start, lambda: collect_laplacians(scalar(value, "one field")))

    def unexpected(self, token: Token) -> str:
        match token.text:
            case ")":
                return "unbalanced parenthesis: nothing is open here"
            case "=":
                return "expected one '=' per equation: separate equations with ';'"
            case ",":
                return "unexpected ',': arguments belong inside a function's parentheses"
        return f"expected an operator before {token.text!r}: a product is written with *"

    # --- the grammar, from the loosest binding to the tightest ---

    def sum(self) -> Value:
        total = self.product()
        while self.next.text in ("+", "-"):
            sign = self.take()
            other = self.product()
            total = self.compute(sign, add, total, negative(other) if sign.text == "-" else other)
        return total

    def product(self) -> Value:
        result = self.signed()
        while self.next.text in ("*", "/"):
            sign = self.take()
            operation = multiply if sign.text == "*" else divide
            result = self.compute(sign, operation, result, self.signed())
        return result

    def signed(self) -> Value:
        minus = False
        while self.next.text in ("+", "-"):
            minus ^= self.take().text == "-"
        value = self.powered()
        return negative(value) if minus else value

    def powered(self) -> Value:
        base = self.atom()
        if self.next.text not in ("^", "**"):
            return base
        sign = self.take()
        self.enter(sign)
        place = self.next
        exponent = self.exponent(self.signed(), place)  # takes further powers: right associative
        self.depth -= 1
        return self.compute(sign, raise_to, base, exponent)

    def exponent(self, value: Value, place: Token) -> Exponent:
        if not isinstance(value, Expression) or any(m for m, _ in value.monomials):
            raise self.error("expected a number as exponent", place)
        number = value.monomials[0][1] if value else 0.0
        fraction = Fraction(number).limit_denominator(MAX_DENOMINATOR)
        if abs(fraction - Fraction(number)) > 1e-12:
            raise self.error(
                "expected a whole number as exponent, or a fraction with a denominator up to "
                f"{MAX_DENOMINATOR}, got {number:g}",
                place,
            )
        return simplest(fraction)

    def atom(self) -> Value:
        token = self.take()
        if token.kind == "number":
            return self.compute(token, Expression.number, float(token.text))
        if token.kind == "imaginary":
            number = self.compute(token, Expression.number, float(token.text[:-1]))
            return self.compute(token, multiply, Expression.atom(Imaginary()), number)
        if token.kind == "name":
            return self.call(token) if self.next.text == "(" else self.name(token)
        if token.text == "(":
            self.enter(token)
            value = self.sum()
            self.close(token)
            return value
        if token.text == "?":
            return read_unknown(self, token)
        if token.kind == "end":
            raise self.error("expected a term here, got the end of the equation", token)
        raise self.error(f"expected a name, a number or '(', got {token.text!r}", token)

    def enter(self, token: Token) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error(f"expected at most {MAX_DEPTH} levels of nesting, got more", token)

    def close(self, opening: Token) -> None:
        self.depth -= 1
        if self.next.kind == "end":
            raise self.error("unbalanced parenthesis: this one is never closed", opening)
        if self.next.text != ")":
            raise self.error(self.unexpected(self.next), self.next)
        self.take()

    # --- names and functions ---

    def name(self, token: Token) -> Expression:
        name, none = token.text, (0,) * self.dims
        if name in self.complex_fields:
            real, imaginary = (FieldDerivative(name + part, none) for part in (RE, IM))
            unit, turned = Expression.atom(Imaginary()), Expression.atom(imaginary)
            return Expression.atom(real) + self.compute(token, multiply, unit, turned)
        if name in self.fields or name in self.parts:
            return Expression.atom(FieldDerivative(name, none))
        if name == "i" and self.unit:
            return Expression.atom(Imaginary())
        if name == "pi":
            return Expression.atom(Pi())
        if meaning(name) == "a coordinate":
            return Expression.atom(Coordinate(self.axis(name, token)))
        if name == "t":
            return Expression.atom(Time())
        if meaning(name):
            raise self.error(f"{name} is a function, expected its arguments: {name}(...)", token)
        if self.coefficients is not None and name not in self.coefficients:
            valid = (*self.coefficients, *self.fields, *AXES[: self.dims], "t", "pi")
            raise self.error(unknown_name("name", name, valid), token)
        return Expression.atom(Coefficient(name))

    def axis(self, letter: str, token: Token) -> int:
        axis = AXES.index(letter)
        if axis >= self.dims:
            raise self.error(
                f"expected the axes {', '.join(AXES[: self.dims])} of a {self.dims}D equation, "
                f"got {token.text}",
                token,
            )
        return axis

    def call(self, token: Token) -> Value:
        function = self.function(token)
        opening = self.take()
        self.enter(opening)
        arguments = [] if self.next.text == ")" else [self.sum()]
        while self.next.text == ",":
            self.take()
            arguments.append(self.sum())
        self.close(opening)
        wanted = {"dot": 2, "vec": max(1, len(arguments))}.get(token.text, 1)
        if len(arguments) != wanted:
            raise self.error(
                f"expected {wanted} argument(s) of {token.text}, got {len(arguments)}", token
            )
        return self.compute(token, function, *arguments)

    def function(self, token: Token) -> Callable[..., Value]:
        name, dims = token.text, self.dims
        found = _PARTIAL.fullmatch(name)
        if found:
            order = int(found[1][:4] or 1)
            return self.derivative(name, partial(_along, self.axis(found[2], token), order))
        if name in FUNCTIONS:
            return lambda value: apply(name, scalar(value, name))
        if name in COMPLEX_FUNCTIONS and name not in self.fields:
            one = _COMPLEX[name]
            return lambda value: value.map(one) if isinstance(value, Vector) else one(value)
        match name:
            case "lap":
                return self.derivative(name, lambda one: laplace(one, dims))
            case "bilap":
                return self.derivative(name, lambda one: laplace(laplace(one, dims), dims))
            case "invlap":
                return self.derivative(name, inverse_laplace)
            case "grad":
                return self.gradient
            case "div":
                return self.divergence
            case "dot":
                return dot
            case "vec":
                return vector
            case "dt":
                raise self.error("expected dt(...) on the left-hand side only", token)
        if name in self.fields or meaning(name):
            raise self.error(f"{name} is not a function: a product is written with *", token)
        partials = [f"d{order}{axis}" for order in ("", 2, 3, 4) for axis in AXES[:dims]]
        valid = (*FUNCTIONS, *COMPLEX_FUNCTIONS, *_OPERATORS, *partials)
        raise self.error(unknown_name("function", name, valid), token)

    def derivative(
        self, name: str, one: Callable[[Expression], Expression]
    ) -> Callable[[Value], Value]:
        def checked(argument: Expression) -> Expression:
            self.check_varies(argument, name)
            return one(argument)

        return lambda value: value.map(checked) if isinstance(value, Vector) else checked(value)

    def check_varies(self, argument: Expression, name: str) -> None:
        """`lap(v)` where v has no equation is a slip of the pen, not zero."""
        held = list(atoms(argument))
        if argument and not any(isinstance(a, FieldDerivative | Coordinate) for a in held):
            names = [a.name for a in held if isinstance(a, Coefficient)]
            raise ExpressionError(
                f"expected a field inside {name}(...), the fields here are "
                f"{', '.join(self.fields)}"
                + (f": {names[0]} has no equation dt({names[0]}) = ..." if names else "")
            )

    def gradient(self, value: Value) -> Vector:
        argument = scalar(value, "grad")
        self.check_varies(argument, "grad")
        return Vector(tuple(differentiate(argument, axis) for axis in range(self.dims)))

    def divergence(self, value: Value) -> Expression:
        if not isinstance(value, Vector) or len(value.components) != self.dims:
            got = len(value.components) if isinstance(value, Vector) else "a scalar"
            raise ExpressionError(
                f"expected a vector of {self.dims} component(s) inside div(...), got {got}: "
                "write vec(a, b) or grad(u)"
            )
        return Expression.sum(
            differentiate(component, axis) for axis, component in enumerate(value.components)
        )


_COMPLEX: dict[str, Callable[[Expression], Expression]] = {
    "abs2": abs2,
    "conj": conjugate,
    **dict.fromkeys(("re", "real"), lambda value: split(value)[0]),
    **dict.fromkeys(("im", "imag"), lambda value: split(value)[1]),
}


def _along(axis: int, order: int, expression: Expression) -> Expression:
    if not 1 <= order <= MAX_ORDER:
        raise ExpressionError(f"expected a derivative of order 1 to {MAX_ORDER}, got {order}")
    for _ in range(order):
        expression = differentiate(expression, axis)
    return expression

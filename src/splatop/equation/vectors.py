"""Vectors of expressions while an equation is read: `vec(u, v)`, `grad(u)`, `dot(a, b)`."""

from collections.abc import Callable
from dataclasses import dataclass

from .calculus import power
from .expression import Exponent, Expression
from .limits import ExpressionError


@dataclass(frozen=True)
class Vector:
    """Components that belong together."""

    components: tuple[Expression, ...]

    def map(self, function: Callable[[Expression], Expression]) -> "Vector":
        return Vector(tuple(function(one) for one in self.components))


Value = Expression | Vector


def scalar(value: Value, what: str) -> Expression:
    if isinstance(value, Vector):
        raise ExpressionError(f"expected a scalar for {what}, got a vector: use dot or div")
    return value


def negative(value: Value) -> Value:
    return value.map(lambda one: -one) if isinstance(value, Vector) else -value


def add(left: Value, right: Value) -> Value:
    if isinstance(left, Vector) and isinstance(right, Vector):
        _check_lengths(left, right)
        pairs = zip(left.components, right.components, strict=True)
        return Vector(tuple(a + b for a, b in pairs))
    return scalar(left, "this sum") + scalar(right, "this sum")


def multiply(left: Value, right: Value) -> Value:
    """A product of which at most one factor is a vector."""
    if isinstance(left, Vector):
        factor = scalar(right, "one factor")
        return left.map(lambda one: one * factor)
    if isinstance(right, Vector):
        return right.map(lambda one: left * one)
    return left * right


def divide(left: Value, right: Value) -> Value:
    return multiply(left, power(scalar(right, "a divisor"), -1))


def raise_to(base: Value, exponent: Exponent) -> Value:
    return power(scalar(base, "a power"), exponent)


def vector(*values: Value) -> Vector:
    return Vector(tuple(scalar(value, "a component") for value in values))


def dot(left: Value, right: Value) -> Expression:
    if not isinstance(left, Vector) or not isinstance(right, Vector):
        raise ExpressionError("expected two vectors inside dot(...): write vec(a, b) or grad(u)")
    _check_lengths(left, right)
    pairs = zip(left.components, right.components, strict=True)
    return Expression.sum(a * b for a, b in pairs)


def _check_lengths(left: Vector, right: Vector) -> None:
    if len(left.components) != len(right.components):
        raise ExpressionError(
            f"expected vectors of one length, got {len(left.components)} and "
            f"{len(right.components)} components"
        )

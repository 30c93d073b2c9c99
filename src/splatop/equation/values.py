"""Expressions to numbers and fields."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import SplatopError
from ..jets import Jet
from ..stepper import TIME, Coefficients
from .expression import (
    Atom,
    Coefficient,
    Coordinate,
    Exponent,
    Expression,
    FieldDerivative,
    Function,
    Group,
    Monomial,
    Pi,
    Time,
    atoms,
)

Lookup = Callable[[Atom], Any]


def evaluate(expression: Expression, lookup: Lookup) -> Any:
    """The value, where `lookup` gives those of coefficients, coordinates and derivatives.

    What depends on neither the state nor JAX values stays in float64 on the host.
    """
    return sum((number * _product(m, lookup) for m, number in expression.monomials), start=0.0)


def _product(monomial: Monomial, lookup: Lookup) -> Any:
    host: Any = 1.0
    device: Any = None
    for atom, exponent in monomial:
        factor = _raise(_value(atom, lookup), exponent)
        if _on_host(factor):
            host = host * factor
        else:
            device = factor if device is None else device * factor
    if device is None:
        return host
    if isinstance(host, np.ndarray):
        host = jnp.asarray(host, device.dtype)
    return host * device


def _value(atom: Atom, lookup: Lookup) -> Any:
    match atom:
        case Pi():
            return np.pi
        case Group(argument):
            return evaluate(argument, lookup)
        case Function(name, argument):
            return _apply(name, evaluate(argument, lookup))
        case _:
            return lookup(atom)


def _apply(name: str, value: Any) -> Any:
    library: Any = np if _on_host(value) else jnp
    with np.errstate(all="ignore"):
        match name:
            case "recip":
                result = 1 / np.asarray(value) if library is np else 1 / value
            case "rsqrt":
                result = 1 / library.sqrt(value)
            case _:
                result = getattr(library, name)(value)
    return float(result) if np.ndim(result) == 0 and library is np else result


def _raise(value: Any, exponent: Exponent) -> Any:
    if exponent == 1:
        return value
    with np.errstate(all="ignore"):
        try:
            return value ** (float(exponent) if isinstance(exponent, Fraction) else exponent)
        except ZeroDivisionError:
            return np.inf


def _on_host(value: Any) -> bool:
    return isinstance(value, int | float | np.ndarray)


def constant_value(expression: Expression) -> float | None:
    """The number that an expression of numbers and pi stands for; None if it holds names."""
    if any(
        isinstance(a, Coefficient | Coordinate | Time | FieldDerivative) for a in atoms(expression)
    ):
        return None
    try:
        return float(np.real(evaluate(expression, lambda atom: np.nan)))
    except OverflowError:
        return np.inf


def field_value(
    expression: Expression, jet: Jet, *, fields: tuple[str, ...], coefficients: Coefficients
) -> Float[Array, "*N"]:
    """The value on the jet's grid. Fields themselves are the state, derivatives the jet's."""
    dtype = jet.state.dtype
    coordinates = jet.coordinates()

    def lookup(atom: Atom) -> Any:
        match atom:
            case Coefficient(name):
                return jnp.asarray(coefficient(coefficients, name), dtype)
            case Time():
                return jnp.asarray(time(coefficients), dtype)
            case Coordinate(axis):
                return coordinates[axis]
            case FieldDerivative(field):
                values = jet.state if atom.is_value else jet[atom.operator]
                return values[fields.index(field)]
        raise AssertionError(atom)

    value = jnp.asarray(evaluate(expression, lookup), dtype)
    return jnp.broadcast_to(value, jet.state.shape[1:])


def coefficient(coefficients: Coefficients, name: str) -> Any:
    if name not in coefficients:
        raise SplatopError(
            f"expected a value of the coefficient {name}, got {', '.join(coefficients) or 'none'}"
            f": give {name}, or identify it from data"
        )
    return coefficients[name]


def time(coefficients: Coefficients) -> Any:
    """What time it is, which steppers find among the coefficients."""
    if TIME not in coefficients:
        raise SplatopError(
            "expected to know the time, because t stands in the equation or at an edge, got "
            f"{', '.join(coefficients) or 'no values'}: give the time at which the first state is "
            "(t0, --t0)"
        )
    return coefficients[TIME]

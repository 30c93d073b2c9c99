"""The values that conditions set at the points of a side."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ..domain import AXES, Condition
from ..errors import SplatopError
from .expression import Atom, Coefficient, Coordinate, Expression, Time, atoms
from .limits import bounded_work
from .parser import Parser
from .questions import coefficient_names, is_complex, uses_time
from .tokens import Source
from .values import coefficient, evaluate, time


def edge_values(
    condition: Condition,
    coordinates: Mapping[str, Any],
    coefficients: Mapping[str, Any] | None = None,
) -> Any:
    """What is set at the points of a side, in the common shape of their `coordinates`.

    These are arrays by the axes along the side, such as `{"y": y}` at x0. Numbers give NumPy's
    float64; JAX values of coefficients or coordinates give JAX's.
    """
    shape = np.broadcast_shapes(*(np.shape(along) for along in coordinates.values()))
    if not isinstance(condition.value, str):
        return np.full(shape, float(condition.value))

    def lookup(atom: Atom) -> Any:
        match atom:
            case Coefficient(name):
                return coefficient(coefficients or {}, name)
            case Time():
                return time(coefficients or {})
            case Coordinate(axis) if AXES[axis] in coordinates:
                return coordinates[AXES[axis]]
        known = ", ".join(coordinates) or "none"
        raise SplatopError(
            f"expected coordinates along the side ({known}) in the value at an edge, got "
            f"'{condition.value}'"
        )

    value = evaluate(_value(condition.value), lookup)
    if hasattr(value, "at"):  # JAX's
        return value + np.zeros(shape, value.dtype)
    return np.broadcast_to(np.asarray(value, float), shape)


def value_names(condition: Condition) -> tuple[str, ...]:
    """The coefficients that the value of a condition holds."""
    if not isinstance(condition.value, str):
        return ()
    return coefficient_names(atoms(_value(condition.value)))


def moves(condition: Condition) -> bool:
    """Whether the value of a condition changes in time."""
    return isinstance(condition.value, str) and uses_time(_value(condition.value))


@lru_cache(maxsize=256)
def _value(text: str) -> Expression:
    """Of a condition that was parsed before."""
    source = Source(text, what="the value at an edge")
    with bounded_work():
        parser = Parser(source, source.tokens(), dims=len(AXES), fields=(), coefficients=None)
        value = parser.right_side()
    if is_complex(value):
        raise source.error("expected a real value", 0)
    return value

"""A smooth field that takes the values and slopes set at the edges of a box.

What is left of a state after it is subtracted obeys homogeneous conditions, which is what the
functions of a `BoxSpace` do.
"""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..domain import AXES, Condition
from ..errors import SplatopError
from .box import BoxSpace

# What is set at an edge, `(side, field)` to a number or values at the side's working points, in the
# order of the other axes.
Edges = Mapping[tuple[str, str], Any]

# Conditions that meet in a corner agree to this share of their size.
_CORNER = 1e-5


def unconstrained(space: BoxSpace) -> BoxSpace:
    """The same Gaussians without conditions: where a lift lives."""
    return BoxSpace(
        space.domain.with_conditions({}),
        space.fields,
        space.sizes,
        degree=space.degree,
        between=space.between,
    )


def lift(space: BoxSpace, edges: Edges) -> Any:
    """Coefficients `(C, *R)` in the unconstrained space of a field with these values at the edges.

    In double precision on the host, unless a value is traced.
    """
    xp = jnp if any(isinstance(value, jax.Array) for value in edges.values()) else np
    full = unconstrained(space)
    points = tuple(len(x) for x in space.working_points())
    parts = []
    for name in space.fields:
        values = xp.zeros(points)
        for axis in range(space.dims):
            if space.domain.axes[axis].periodic:
                continue
            missing = [
                _target(space, edges, end, axis, name, points)
                - _trace(full, values, end, axis, one)
                if one.kind != "free"
                else None
                for end, one in enumerate(space.domain.ends(axis, name))
            ]
            for shape, rest in zip(_shapes(space, axis, name), missing, strict=True):
                if rest is not None:
                    place = [1] * space.dims
                    place[axis] = -1
                    values = values + shape.reshape(place) * xp.expand_dims(rest, axis)
        if xp is np:
            _check_corners(space, full, edges, name, np.asarray(values), points)
        parts.append(values)
    stacked: Any = xp.stack(parts)
    for axis in range(space.dims):
        matrix = full._projection(axis)
        contracted: Any = xp.tensordot(matrix, stacked, axes=(1, axis + 1))
        stacked = xp.moveaxis(contracted, 0, axis + 1)
    return stacked


def _target(
    space: BoxSpace, edges: Edges, end: int, axis: int, name: str, points: tuple[int, ...]
) -> Any:
    """What is set at an end, at the working points of the side."""
    value = edges.get((f"{AXES[axis]}{end}", name), 0.0)
    side = points[:axis] + points[axis + 1 :]
    return value * np.ones(side) if np.ndim(value) == 0 else value


def _trace(full: BoxSpace, values: Any, end: int, axis: int, condition: Condition) -> Any:
    """The value, or the slope along the outward normal, that a field has at an end."""
    row = full._matrix(axis, np.array([float(end)]), condition.order)[0] @ full._projection(axis)
    sign = -1.0 if condition.order and end == 0 else 1.0
    xp = np if isinstance(values, np.ndarray) else jnp
    return sign * xp.tensordot(values, row, axes=(axis, 0))


def _shapes(space: BoxSpace, axis: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    """For each end the polynomial at the working points that has 1 there and 0 at the other."""
    low, high = (one.kind for one in space.domain.ends(axis, name))
    length = space.domain.axes[axis].length
    s = space._points(axis)
    one = np.ones_like(s)
    first = {
        ("value", "value"): 1 - s,
        ("value", "slope"): one,
        ("value", "free"): one,
        ("slope", "value"): length * (1 - s),
        ("slope", "slope"): length * (s**2 / 2 - s),
        ("slope", "free"): -length * s,
    }.get((low, high), 0 * s)
    second = {
        ("value", "value"): s,
        ("slope", "value"): one,
        ("free", "value"): one,
        ("value", "slope"): length * s,
        ("slope", "slope"): length * s**2 / 2,
        ("free", "slope"): length * s,
    }.get((low, high), 0 * s)
    return first, second


def _check_corners(
    space: BoxSpace,
    full: BoxSpace,
    edges: Edges,
    name: str,
    values: np.ndarray,
    points: tuple[int, ...],
) -> None:
    """Refuse conditions on two sides that contradict each other where the sides meet."""
    size = max((float(np.max(np.abs(v))) for (_, f), v in edges.items() if f == name), default=0.0)
    for axis in range(space.dims):
        if space.domain.axes[axis].periodic:
            continue
        for end, one in enumerate(space.domain.ends(axis, name)):
            if one.kind == "free":
                continue
            found = _trace(full, values, end, axis, one)
            wrong = np.abs(found - _target(space, edges, end, axis, name, points)).max()
            if wrong > _CORNER * max(size, 1e-300):
                raise SplatopError(
                    f"expected conditions for {name} that agree where two sides meet, got "
                    f"'{one.text(name)}' at {AXES[axis]}{end} and another beside it that differ by "
                    f"{wrong:.2g} in the corner: let them agree there (a value that is an "
                    "expression in the coordinates along the side can)"
                )

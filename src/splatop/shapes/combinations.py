"""Shapes made of others, and every shape as a tree that JSON holds."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..errors import SplatopError
from .primitives import Box, Disk, Outline, Polygon
from .shape import Primitive, Shape


@dataclass(frozen=True)
class _Pair(Shape):
    first: Shape
    second: Shape

    symbol = ""

    def primitives(self) -> Iterator[Primitive]:
        yield from self.first.primitives()
        yield from self.second.primitives()

    def text(self) -> str:
        second = self.second.text()
        if isinstance(self.second, _Pair):
            second = f"({second})"
        first = self.first.text()
        if isinstance(self.first, _Pair) and self.symbol == "&":
            first = f"({first})"
        return f"{first} {self.symbol} {second}"


class Union(_Pair):
    """What lies in one of two shapes."""

    symbol = "+"

    def inside(self, places: np.ndarray) -> np.ndarray:
        return self.first.inside(places) | self.second.inside(places)


class Difference(_Pair):
    """What lies in the first of two shapes but not in the second."""

    symbol = "-"

    def inside(self, places: np.ndarray) -> np.ndarray:
        return self.first.inside(places) & ~self.second.inside(places)


class Intersection(_Pair):
    """What lies in both of two shapes."""

    symbol = "&"

    def inside(self, places: np.ndarray) -> np.ndarray:
        return self.first.inside(places) & self.second.inside(places)


KINDS: dict[str, type[Any]] = {
    "disk": Disk,
    "box": Box,
    "polygon": Polygon,
    "outline": Outline,
    "union": Union,
    "difference": Difference,
    "intersection": Intersection,
}


def shape_as_dict(shape: Shape) -> dict[str, Any]:
    """A tree that JSON holds."""
    kind = next(name for name, cls in KINDS.items() if type(shape) is cls)
    values = {f.name: getattr(shape, f.name) for f in fields(shape)}  # type: ignore[arg-type]
    plain = {k: shape_as_dict(v) if isinstance(v, Shape) else v for k, v in values.items()}
    return {"kind": kind, **plain}


def shape_from_dict(values: Any) -> Shape:
    """The shape that `shape_as_dict` described."""
    try:
        own = dict(values)
        cls = KINDS[own.pop("kind")]
        return cls(**{k: _read(v) for k, v in own.items()})
    except SplatopError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise SplatopError(f"expected the description of a shape, got {error}") from error


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        return shape_from_dict(value)
    return tuple(_read(one) for one in value) if isinstance(value, list | tuple) else value

"""Whether a value read from a file is what a field's annotation asks for."""

import collections.abc
import inspect
import types
import typing
from functools import lru_cache
from typing import Any

import jax
import numpy as np
from jaxtyping import AbstractArray


@lru_cache(maxsize=256)
def _hints(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except Exception:  # a user's annotations may name what only a type checker sees
        return {}


def fits(value: Any, cls: type, field: str) -> bool:
    """Whether `value` may stand in this field. An annotation that is not understood allows all."""
    return _fits(value, _hints(cls).get(field, Any))


def _fits(value: Any, kind: Any) -> bool:
    if kind is Any or isinstance(kind, typing.TypeVar):
        return True
    if kind is None or kind is type(None):
        return value is None
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is typing.Literal:
        return value in inner
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if len(inner) == 2 and inner[1] is Ellipsis:
            return all(_fits(item, inner[0]) for item in value)
        return len(value) == len(inner) and all(map(_fits, value, inner))
    if origin in (list, frozenset):
        return isinstance(value, origin) and all(_fits(item, inner[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(_fits(item, inner[1]) for item in value.values())
    if origin is collections.abc.Callable:
        return callable(value)
    if not inspect.isclass(kind):
        return True
    if issubclass(kind, AbstractArray):
        return isinstance(value, jax.Array | np.ndarray)
    if kind in (bool, str):
        return isinstance(value, kind)
    if kind in (int, float):
        return isinstance(value, (int, kind)) and not isinstance(value, bool)
    return isinstance(value, kind)

"""A module as a tree that JSON holds, and back.

The tree has the registered names of classes, their static fields, and the shapes of arrays, which
are stored apart. It only ever chooses among registered classes and functions: nothing in it is
imported or executed.
"""

import dataclasses
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .annotations import fits
from .errors import SplatopError
from .precomputed import is_precomputed
from .registry import is_shipped, name_of, named, where

Tree = Any  # what JSON holds

# Deeper than any model of ours, and shallow enough for Python's stack.
DEEPEST = 60


def describe(value: Any, *, strict: bool = True, inline: bool = False) -> Tree:
    """The tree that stands for a module: names, static fields, shapes of arrays.

    Tuples are JSON's lists; everything else that JSON lacks is an object with a key that says what
    it is. A module whose class has no name is refused, or without `strict` only mentioned: it then
    has to be passed to `build`. With `inline` the tree holds the arrays' values as well.
    """

    def inner(item: Any) -> Tree:
        return describe(item, strict=strict, inline=inline)

    if value is None or isinstance(value, bool | int | str):
        return value
    if is_precomputed(value):
        return None  # whoever holds it makes it again
    if isinstance(value, float | np.floating):
        value = float(value)
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, Fraction):
        return {"fraction": [value.numerator, value.denominator]}
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, jax.Array | np.ndarray | jax.ShapeDtypeStruct):
        described = {"array": list(value.shape), "dtype": str(value.dtype)}
        return {**described, "values": np.asarray(value).tolist()} if inline else described
    if isinstance(value, tuple):
        return [inner(item) for item in value]
    if isinstance(value, list):
        return {"list": [inner(item) for item in value]}
    if isinstance(value, frozenset):
        return {"set": [inner(item) for item in sorted(value)]}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {"dict": {key: inner(item) for key, item in value.items()}}
    return _describe_part(value, strict, inner)


def _describe_part(value: Any, strict: bool, inner: Callable[[Any], Tree]) -> Tree:
    cls: Any = type(value)
    module = isinstance(value, eqx.Module) or dataclasses.is_dataclass(cls)
    part = cls if module else value
    name = name_of(part)
    if name is None:
        if module and not strict:
            return {"unregistered": where(cls)}
        raise SplatopError(
            f"expected parts that have a name, got {where(part)}: register it once, "
            f'splatop.register({getattr(part, "__name__", "...")}, name="...")'
        )
    hint = {} if is_shipped(part) else {"from": where(part)}
    if not module:
        return {"function": name, **hint}
    fields = {
        f.name: inner(getattr(value, f.name))
        for f in dataclasses.fields(value)
        if hasattr(value, f.name)
    }
    return {"type": name, **hint, "fields": fields}


def arrays_of(tree: Tree, path: str = "") -> Iterator[tuple[str, tuple[int, ...], str]]:
    """Path, shape and type of each array of a tree, named as `jax.tree_util.keystr` does."""
    if isinstance(tree, list):
        for i, item in enumerate(tree):
            yield from arrays_of(item, f"{path}[{i}]")
    elif isinstance(tree, dict):
        if "values" in tree:
            return
        if "array" in tree:
            yield path.lstrip("."), tuple(tree["array"]), str(tree.get("dtype"))
        elif "list" in tree:
            yield from arrays_of(tree["list"], path)
        elif "dict" in tree:
            for key, item in tree["dict"].items():
                yield from arrays_of(item, f"{path}['{key}']")
        elif "fields" in tree:
            for key, item in tree["fields"].items():
                yield from arrays_of(item, f"{path}.{key}")


def unregistered_in(tree: Tree, path: str = "") -> Iterator[tuple[str, str]]:
    """Path and class of each part that the tree only mentions."""
    if isinstance(tree, list):
        for i, item in enumerate(tree):
            yield from unregistered_in(item, f"{path}[{i}]")
    elif isinstance(tree, dict):
        if "unregistered" in tree:
            yield path.lstrip("."), str(tree["unregistered"])
        for key, item in tree.items():
            if key == "fields" and isinstance(item, dict):
                for name, value in item.items():
                    yield from unregistered_in(value, f"{path}.{name}")
            elif key in ("list", "dict"):
                yield from unregistered_in(item, path)


# --- from a tree -------------------------------------------------------------------------------


def build(tree: Tree, arrays: Mapping[str, Any], *, given: Mapping[str, Any] | None = None) -> Any:
    """The module that a tree stands for, with these arrays by their paths.

    `given` are the parts that the tree only mentions, by their paths.
    """
    return _build(tree, "", arrays, given or {}, 0)


def _build(
    tree: Tree, path: str, arrays: Mapping[str, Any], given: Mapping[str, Any], depth: int
) -> Any:
    if depth > DEEPEST:
        raise SplatopError(f"expected parts nested at most {DEEPEST} deep, got more in '{path}'")

    def inner(item: Tree, place: str) -> Any:
        return _build(item, place, arrays, given, depth + 1)

    match tree:
        case None | bool() | int() | float() | str():
            return tree
        case list():
            return tuple(inner(item, f"{path}[{i}]") for i, item in enumerate(tree))
        case {"type": str(name), "fields": dict(fields)}:
            cls = named(name, tree.get("from"))
            values = {key: inner(item, f"{path}.{key}") for key, item in fields.items()}
            return _instance(cls, name, values)
        case {"function": str(name)}:
            part = named(name, tree.get("from"))
            if inspect.isclass(part):
                raise SplatopError(f"expected a function in '{path}', got the class '{name}'")
            return part
        case {"values": values, "array": list(shape), "dtype": str(dtype)}:
            return jnp.asarray(np.asarray(values, np.dtype(dtype)).reshape(shape))
        case {"array": list()}:
            return arrays[path.lstrip(".")]
        case {"list": list(items)}:
            return [inner(item, f"{path}[{i}]") for i, item in enumerate(items)]
        case {"set": list(items)}:
            return frozenset(inner(item, path) for item in items)
        case {"dict": dict(items)}:
            return {key: inner(item, f"{path}['{key}']") for key, item in items.items()}
        case {"float": str(text)} if text in ("inf", "-inf", "nan"):
            return float(text)
        case {"fraction": [int(top), int(bottom)]} if bottom:
            return Fraction(top, bottom)
        case {"unregistered": str(where)}:
            if path.lstrip(".") in given:
                return given[path.lstrip(".")]
            raise SplatopError(
                f"expected the part '{path.lstrip('.')}', which was of the class {where} and has "
                f"no name: pass it, or register the class and save the model again"
            )
    raise SplatopError(f"expected a description in '{path.lstrip('.')}', got {str(tree)[:60]!r}")


def _instance(cls: Any, name: str, values: Mapping[str, Any]) -> Any:
    """An instance with these fields; `__init__`, which would draw new weights, is not run."""
    if not inspect.isclass(cls):
        raise SplatopError(f"expected a class, got the function '{name}'")
    wanted = {f.name: f for f in dataclasses.fields(cls)}  # pyright: ignore[reportArgumentType]
    if extra := sorted(set(values) - set(wanted)):
        raise SplatopError(
            f"unknown fields {', '.join(extra)} of '{name}': the file was made by another version"
        )
    instance: Any = object.__new__(cls)
    for key, held in wanted.items():
        value = values[key] if key in values else _default(held, name)
        # Annotations of a user's own classes are not checked: they may not be meant so strictly.
        if cls.__module__.startswith("splatop.") and not fits(value, cls, key):
            raise SplatopError(
                f"expected {held.type} for '{key}' of '{name}', got {type(value).__name__}"
            )
        object.__setattr__(instance, key, value)
    if issubclass(cls, eqx.Module):
        for base in cls.__mro__:
            if "__check_init__" in vars(base):
                vars(base)["__check_init__"](instance)
    elif hasattr(instance, "__post_init__"):
        instance.__post_init__()
    return instance


def _default(held: dataclasses.Field, name: str) -> Any:
    """What a field is that the file, of an earlier version, does not have."""
    if held.default is not dataclasses.MISSING:
        return held.default
    if held.default_factory is not dataclasses.MISSING:
        return held.default_factory()
    raise SplatopError(f"expected the field '{held.name}' of '{name}', got none")


def own_parts(tree: Tree, path: str = "") -> dict[str, str]:
    """The parts of a tree that splatop does not ship, by their path: name, class, plain fields."""
    found: dict[str, str] = {}
    if isinstance(tree, list):
        for i, item in enumerate(tree):
            found |= own_parts(item, f"{path}[{i}]")
    elif isinstance(tree, dict):
        fields = tree.get("fields", {})
        if "unregistered" in tree:
            found[path.lstrip(".")] = f"{tree['unregistered']}, without a registered name"
        elif "from" in tree:
            plain = [f"{k} = {v}" for k, v in fields.items() if isinstance(v, int | float | str)]
            name = tree.get("type", tree.get("function"))
            found[path.lstrip(".")] = ", ".join([f"{name} ({tree['from']})", *plain])
        for key, item in fields.items():
            found |= own_parts(item, f"{path}.{key}")
        for key in ("list", "dict"):
            inner = tree.get(key, {})
            pairs = inner.items() if isinstance(inner, dict) else enumerate(inner)
            for at, item in pairs:
                found |= own_parts(item, f"{path}[{at!r}]")
    return found

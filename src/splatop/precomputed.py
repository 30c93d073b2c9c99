"""Arrays that follow from what a module says of itself: passed to compiled functions like weights,
but neither trained, nor counted, nor repeated for the members of an ensemble, nor stored."""

import dataclasses
from typing import Any

import equinox as eqx
from jaxtyping import Array


class Precomputed(eqx.Module):
    """Arrays by name, which whoever holds them makes again when it is loaded."""

    arrays: dict[str, Array]

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def __contains__(self, name: str) -> bool:
        return name in self.arrays


def with_fields(module: Any, **changes: Any) -> Any:
    """The same module with other fields; what it precomputes is made again, weights stay."""
    new = object.__new__(type(module))
    for held in dataclasses.fields(module):
        value = changes.get(held.name, getattr(module, held.name))
        object.__setattr__(new, held.name, None if is_precomputed(value) else value)
    check = getattr(type(module), "__check_init__", None)
    if check is not None:
        check(new)
    return new


def is_precomputed(node: Any) -> bool:
    return isinstance(node, Precomputed)


def weights_and_rest(tree: Any) -> tuple[Any, Any]:
    """The arrays of a tree that training may change, and everything else."""
    return eqx.partition(tree, eqx.is_inexact_array, is_leaf=is_precomputed)

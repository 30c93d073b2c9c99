"""Linear maps that know their own transpose, for derivatives in both modes.

`jax.custom_vjp` allows reverse mode alone. A `custom_jvp` rule whose tangent is one of these maps
allows both: forward mode evaluates the map, reverse mode its transpose. `jax.vmap` keeps it one map
over the batch, so that forward map and transpose may each run their batch as they like.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir


@dataclass(frozen=True)
class LinearMap:
    """`forward(*known, *x) -> list` is linear in the arrays x; `transpose(*known, *y) -> list` is
    its transpose. Equal if the functions are."""

    forward: Callable[..., Sequence[Any]]
    transpose: Callable[..., Sequence[Any]]


@dataclass(frozen=True)
class _Batch:
    """One `vmap` around a map: its size, and which operands have it as their first axis."""

    size: Any  # symbolic where a function with an open batch is exported
    batched: tuple[bool, ...]


def apply(linear: LinearMap, known: Sequence[Any], x: Sequence[Any]) -> list[Any]:
    """`linear.forward(*known, *x)`, whose derivative in x is the map itself."""
    return _map_p.bind(*known, *x, linear=linear, known=len(known), batches=())


_map_p = Primitive("linear_map")
_map_p.multiple_results = True


def _evaluate(*operands, linear: LinearMap, known: int, batches: tuple[_Batch, ...]):
    function = linear.forward
    for batch in batches:
        axes = tuple(0 if one else None for one in batch.batched)
        function = jax.vmap(function, in_axes=axes, axis_size=batch.size)
    return list(function(*operands))


def _abstract(*operands, **params):
    shapes = [_shape(one) for one in operands]
    found = jax.eval_shape(lambda *own: _evaluate(*own, **params), *shapes)
    return [ShapedArray(one.shape, one.dtype, sharding=one.sharding) for one in found]


def _transpose(cotangents, *operands, linear: LinearMap, known: int, batches: tuple[_Batch, ...]):
    held = operands[:known]
    outputs = _abstract(
        *(one.aval if ad.is_undefined_primal(one) else jax.typeof(one) for one in operands),
        linear=linear,
        known=known,
        batches=batches,
    )
    y = [
        jnp.zeros(aval.shape, aval.dtype) if isinstance(ct, ad.Zero) else ct
        for ct, aval in zip(cotangents, outputs, strict=True)
    ]
    function = linear.transpose
    for batch in batches:
        function = _batched_transpose(function, batch, known)
    return [None] * known + list(function(*held, *y))


def _batched_transpose(function: Callable, batch: _Batch, known: int) -> Callable:
    """The transpose of a batched map: what all samples share is the sum over them."""

    def transposed(*operands):
        held, y = operands[:known], operands[known:]
        axes = (*(0 if one else None for one in batch.batched[:known]), *(0 for _ in y))
        found = jax.vmap(function, in_axes=axes, axis_size=batch.size)(*held, *y)
        return [
            one if own else jnp.sum(one, axis=0)
            for one, own in zip(found, batch.batched[known:], strict=True)
        ]

    return transposed


def _shape(aval: Any) -> jax.ShapeDtypeStruct:
    """With the sharding, where that is a part of types."""
    sharding = getattr(aval, "sharding", None)
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, sharding=sharding)


def _jvp(primals, tangents, *, linear: LinearMap, known: int, batches: tuple[_Batch, ...]):
    params = {"linear": linear, "known": known, "batches": batches}
    out = _map_p.bind(*primals, **params)
    if all(isinstance(t, ad.Zero) for t in tangents[:known]):
        tangents = [ad.instantiate_zeros(t) for t in tangents[known:]]
        return out, _map_p.bind(*primals[:known], *tangents, **params)
    # For second derivatives, in forward mode only: the map depends on what is differentiated.
    tangents = [ad.instantiate_zeros(t) for t in tangents]
    return out, jax.jvp(lambda *own: _evaluate(*own, **params), tuple(primals), tuple(tangents))[1]


def _batch(operands, dims, *, linear: LinearMap, known: int, batches: tuple[_Batch, ...]):
    size = next(x.shape[d] for x, d in zip(operands, dims, strict=True) if d is not None)
    operands = [
        x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(operands, dims, strict=True)
    ]
    level = _Batch(size, tuple(d is not None for d in dims))
    out = _map_p.bind(*operands, linear=linear, known=known, batches=(*batches, level))
    return out, [0] * len(out)


_map_p.def_impl(jax.jit(_evaluate, static_argnames=("linear", "known", "batches")))
_map_p.def_abstract_eval(_abstract)
ad.primitive_jvps[_map_p] = _jvp
ad.primitive_transposes[_map_p] = _transpose
batching.primitive_batchers[_map_p] = _batch
mlir.register_lowering(_map_p, mlir.lower_fun(_evaluate, multiple_results=True))

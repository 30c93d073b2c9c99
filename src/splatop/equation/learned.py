"""A term that is a small network of the jet at each point: what is not known, learned."""

from collections.abc import Iterable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..derivative import Derivative, gradient, laplacian
from ..errors import SplatopError
from ..jets import Jet
from ..spectral import Field, differentiate
from .expression import Expression, FieldDerivative
from .printing import format_expression
from .terms import Term


class LearnedTerm(Term):
    """`g(arguments)` at each point, in the equations of the fields `targets`.

    Arguments are normalised by `centre` and `spread`, and kept inside `low` and `high`, which are
    the range of the data that it was learned from: outside the term is what it is at the edge, so
    it never grows. Outputs are in units of `size`. With `invariant` the arguments are those
    combinations of values, gradients and Laplacians of all fields that do not change when the axes
    turn. A `conservative` term is the divergence of a learned flux, so the mean of a field stays
    what it is. It knows no grid: whatever jets provide, it takes.
    """

    network: eqx.nn.MLP
    centre: Float[Array, " F"]
    spread: Float[Array, " F"]
    low: Float[Array, " F"]
    high: Float[Array, " F"]
    size: Float[Array, " O"]
    fields: tuple[str, ...] = eqx.field(static=True)
    targets: tuple[str, ...] = eqx.field(static=True)
    arguments: tuple[FieldDerivative, ...] = eqx.field(static=True)
    invariant: bool = eqx.field(static=True, default=False)
    conservative: bool = eqx.field(static=True, default=False)
    name: str = eqx.field(static=True, default="learned")
    coefficient: str | None = eqx.field(static=True, default=None)
    degree: float = eqx.field(static=True, default=3.0)

    def derivatives(self, dims: int) -> frozenset[Derivative]:
        if self.invariant:
            return frozenset((*gradient(dims), laplacian(dims)))
        return frozenset(a.operator for a in self.arguments if not a.is_value)

    def features(self, jet: Jet) -> Float[Array, "F *N"]:
        """The arguments at each point, as they are."""
        return features(jet, self.fields, self.arguments, invariant=self.invariant)

    def __check_init__(self):
        for name in self.targets:
            if name not in self.fields:
                raise SplatopError(
                    f"expected a learned term for one of {', '.join(self.fields)}, got {name}"
                )

    def values(self, arguments: Float[Array, "F n"]) -> Float[Array, "O n"]:
        """The network at arguments as they are, one column for each point."""
        dtype = arguments.dtype
        scaled = (arguments.T - self.centre.astype(dtype)) / self.spread.astype(dtype)
        inside = jnp.clip(scaled, self.low.astype(dtype), self.high.astype(dtype))
        network = jax.tree.map(
            lambda leaf: leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf, self.network
        )
        return (jax.vmap(network)(inside) * self.size.astype(dtype)).T

    def parts(self, jet: Jet, coefficients) -> tuple[Field, ...]:
        found = self.features(jet)
        points = jet.state.shape[1:]
        outputs = self.values(found.reshape(len(found), -1)).reshape(-1, *points)
        return (self.placed(outputs, jet),)

    def placed(self, outputs: Float[Array, "O *N"], jet: Jet) -> Field:
        """Outputs of the network in the channels of the fields that they are for."""
        if self.conservative:
            outputs = divergence(outputs, len(self.targets), jet)
        places = np.array([self.fields.index(name) for name in self.targets])
        return jnp.zeros_like(jet.state).at[places].set(outputs)


def divergence(fluxes: Float[Array, "O *N"], count: int, jet: Jet) -> Float[Array, "T *N"]:
    """Of `count` fluxes with a component for each axis, one flux after the other."""
    dims = jet.dims
    parts = fluxes.reshape(count, dims, *fluxes.shape[1:])
    return sum(
        (differentiate(parts[:, axis], d, jet.lengths) for axis, d in enumerate(gradient(dims))),
        start=jnp.zeros_like(parts[:, 0]),
    )


def features(
    jet: Jet, fields: tuple[str, ...], arguments: Iterable[FieldDerivative], *, invariant: bool
) -> Float[Array, "F *N"]:
    """The named arguments, or all invariants of values, gradients and Laplacians."""
    if not invariant:
        return jnp.stack(
            [
                (jet.state if a.is_value else jet[a.operator])[fields.index(a.field)]
                for a in arguments
            ]
        )
    slopes = jnp.stack([jet[d] for d in gradient(jet.dims)])  # (d, C, *N)
    count = len(fields)
    products = [
        jnp.sum(slopes[:, i] * slopes[:, j], axis=0) for i in range(count) for j in range(i, count)
    ]
    return jnp.concatenate([jet.state, jnp.stack(products), jet[laplacian(jet.dims)]])


def usual_arguments(fields: tuple[str, ...], dims: int) -> tuple[FieldDerivative, ...]:
    """Values, gradients and Laplacians of all fields."""
    found = []
    for field in fields:
        value = FieldDerivative(field, (0,) * dims)
        found += [value, *(value.along(axis) for axis in range(dims)), value.laplacian()]
    return tuple(found)


def feature_names(
    fields: tuple[str, ...], arguments: Iterable[FieldDerivative], *, invariant: bool
) -> tuple[str, ...]:
    """What the arguments are called, in their order."""
    if not invariant:
        return tuple(format_expression(Expression.atom(a)) for a in arguments)
    pairs = [(a, b) for i, a in enumerate(fields) for b in fields[i:]]
    return (
        *fields,
        *(f"dot(grad({a}), grad({b}))" for a, b in pairs),
        *(f"lap({field})" for field in fields),
    )

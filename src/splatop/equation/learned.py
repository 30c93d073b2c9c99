"""A term that is a small network of the jet at each point: what is not known, learned."""

from collections.abc import Iterable
from itertools import combinations_with_replacement
from typing import Any

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
    it never grows. Outputs are in units of `size`: those of a network, and `direct` weights of the
    arguments, of their products in pairs and, if `cubic`, of three values of fields, which are then
    exact. With `invariant` the arguments
    are those combinations of values, gradients and Laplacians of all fields that do not change when
    the axes turn. A `conservative` term is the divergence of a learned flux, so the mean of a field
    stays what it is; an invariant flux is along the gradients. It knows no grid: whatever jets
    provide, it takes. The `inputs` that it sees are channels of the jet behind the `fields`.
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
    direct: Float[Array, "O D"] | None = None
    cubic: bool = eqx.field(static=True, default=False)
    name: str = eqx.field(static=True, default="learned")
    coefficient: str | None = eqx.field(static=True, default=None)
    degree: float = eqx.field(static=True, default=3.0)
    inputs: tuple[str, ...] = eqx.field(static=True, default=())

    @property
    def homogeneous(self) -> bool:
        return True

    @property
    def reads(self) -> tuple[str, ...]:
        return self.inputs

    def derivatives(self, dims: int) -> frozenset[Derivative]:
        if self.invariant:
            return frozenset((*gradient(dims), laplacian(dims)))
        return frozenset(a.operator for a in self.arguments if not a.is_value)

    @property
    def learned_parameters(self) -> int:
        """The weights of the network, and of the arguments and their products."""
        return sum(
            leaf.size
            for leaf in jax.tree.leaves((self.network, self.direct))
            if eqx.is_inexact_array(leaf)
        )

    def features(self, jet: Jet) -> Float[Array, "F *N"]:
        """The arguments at each point, as they are."""
        channels = (*self.fields, *self.inputs)
        return features(jet, channels, self.arguments, invariant=self.invariant)

    def __check_init__(self):
        for name in self.targets:
            if name not in self.fields:
                raise SplatopError(
                    f"expected a learned term for one of {', '.join(self.fields)}, got {name}"
                )

    def values(self, arguments: Float[Array, "F n"]) -> Float[Array, "O n"]:
        """The term at arguments as they are, one column for each point."""
        own = self.of_type(arguments.dtype)
        outputs = own.weights @ own.units(arguments)
        return outputs * own.size[:, None]

    def units(self, arguments: Float[Array, "F n"]) -> Float[Array, "U n"]:
        """What outputs are sums of at arguments as they are: the last hidden layer of the network,
        1, and with `direct` weights the scaled arguments and their products."""
        scaled = (arguments.T - self.centre) / self.spread
        inside = jnp.clip(scaled, self.low, self.high)
        hidden = inside
        for layer in self.network.layers[:-1]:
            hidden = self.network.activation(jax.vmap(layer)(hidden))
        parts = [hidden, jnp.ones_like(hidden[:, :1])]
        if self.direct is not None:
            parts += [inside, *(jnp.prod(inside[:, own], axis=2) for own in self.products)]
        return jnp.concatenate(parts, axis=1).T

    @property
    def products(self) -> list[np.ndarray]:
        """Which arguments products are of: `(n, 2)` of pairs, and `(m, 3)` of values of fields."""
        count = self.centre.size
        found = [np.stack(np.triu_indices(count), axis=1)]
        if self.cubic:
            values = (
                range(len(self.fields))
                if self.invariant
                else [i for i, a in enumerate(self.arguments) if a.is_value]
            )
            triples = list(combinations_with_replacement(values, 3))
            found.append(np.array(triples, int).reshape(-1, 3))
        return found

    @property
    def weights(self) -> Float[Array, "O U"]:
        """Of the units, in units of `size`."""
        last = self.network.layers[-1]
        own = [] if self.direct is None else [self.direct]
        assert last.bias is not None
        return jnp.concatenate([last.weight, last.bias[:, None], *own], axis=1)

    def with_weights(self, weights: Float[Array, "O U"]) -> "LearnedTerm":
        hidden = self.network.layers[-1].weight.shape[1]
        return eqx.tree_at(
            lambda term: (
                term.network.layers[-1].weight,
                term.network.layers[-1].bias,
                term.direct,
            ),
            self,
            (
                weights[:, :hidden],
                weights[:, hidden],
                None if self.direct is None else weights[:, hidden + 1 :],
            ),
            is_leaf=lambda leaf: leaf is None,
        )

    def of_type(self, dtype: Any) -> "LearnedTerm":
        """With arrays of a type, in which it then computes."""
        return jax.tree.map(
            lambda leaf: leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf, self
        )

    def parts(self, jet: Jet, coefficients) -> tuple[Field, ...]:
        found = self.features(jet)
        points = jet.state.shape[1:]
        outputs = self.values(found.reshape(len(found), -1)).reshape(-1, *points)
        return (self.placed(outputs, jet),)

    def placed(self, outputs: Float[Array, "O *N"], jet: Jet) -> Field:
        """Outputs of the network in the channels of the fields that they are for."""
        if self.conservative:
            slopes = None
            if self.invariant:
                slopes = jnp.stack([jet[d] for d in gradient(jet.dims)], axis=1)
            flux = fluxes(outputs, len(self.targets), slopes)
            outputs = divergence(flux, jet.lengths)
        places = np.array([self.fields.index(name) for name in self.targets])
        return jnp.zeros_like(jet.state[: len(self.fields)]).at[places].set(outputs)


def fluxes(
    outputs: Float[Array, "O *N"],
    targets: int,
    slopes: Float[Array, "C d *N"] | None,
) -> Float[Array, "T d *N"]:
    """Outputs as components of fluxes, one flux after the other, or as what multiplies gradients
    `slopes` of all fields in them."""
    parts = outputs.reshape(targets, -1, *outputs.shape[1:])
    if slopes is None:
        return parts
    return jnp.einsum("tc...,cd...->td...", parts, slopes)


def divergence(flux: Float[Array, "T d *N"], lengths: tuple[float, ...]) -> Float[Array, "T *N"]:
    return sum(
        (differentiate(flux[:, i], d, lengths) for i, d in enumerate(gradient(len(lengths)))),
        start=jnp.zeros_like(flux[:, 0]),
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


def usual_arguments(
    fields: tuple[str, ...], dims: int, *, order: int = 2
) -> tuple[FieldDerivative, ...]:
    """Values, gradients and Laplacians of all fields, up to order 4 those of the Laplacians too."""
    found = []
    for field in fields:
        value = FieldDerivative(field, (0,) * dims)
        for _ in range(order // 2):
            found += [value, *(value.along(axis) for axis in range(dims))]
            value = value.laplacian()
        found.append(value)
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

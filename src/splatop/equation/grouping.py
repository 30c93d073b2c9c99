"""Right-hand sides to named terms, each with at most one coefficient in front."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp

from ..errors import SplatopError
from .expression import (
    Coefficient,
    Coordinate,
    Expression,
    FieldDerivative,
    Function,
    Monomial,
    Time,
    atoms,
    check_exponent,
    degree,
    monomial_atoms,
)
from .kinds import joint_kind, kind
from .questions import coefficient_names, uses_time
from .terms import Term
from .values import field_value


class ExpressionTerm(Term):
    """A term given by expressions: for each part one expression per field.

    `origin` is where its coordinates begin. A jet that it is evaluated on has the `inputs` as
    further channels behind the fields.
    """

    pieces: tuple[tuple[Expression, ...], ...] = eqx.field(static=True)
    fields: tuple[str, ...] = eqx.field(static=True)
    dims: int = eqx.field(static=True)
    coefficient: str | None = eqx.field(static=True)
    name: str = eqx.field(static=True)
    degree: float = eqx.field(static=True)
    origin: tuple[float, ...] = eqx.field(static=True)
    inputs: tuple[str, ...] = eqx.field(static=True, default=())

    def __init__(
        self,
        pieces: tuple[tuple[Expression, ...], ...],
        *,
        fields: tuple[str, ...],
        dims: int,
        coefficient: str | None,
        name: str,
        origin: tuple[float, ...] = (),
        inputs: tuple[str, ...] = (),
    ):
        self.pieces, self.fields, self.dims, self.inputs = pieces, fields, dims, tuple(inputs)
        self.coefficient, self.name, self.origin = coefficient, name, tuple(origin)
        self.degree = max(
            (_products(m) for piece in pieces for side in piece for m, _ in side.monomials),
            default=0.0,
        )

    def __check_init__(self):
        # Parsing has bounded these already; a file may hold anything.
        for piece in self.pieces:
            if len(piece) != len(self.fields):
                raise SplatopError(f"expected one expression per field in the term {self.name}")
            for side in piece:
                for monomial, _ in side.monomials:
                    for _, exponent in monomial:
                        check_exponent(exponent)

    @property
    def inner_coefficients(self) -> tuple[str, ...]:
        return coefficient_names(a for piece in self.pieces for side in piece for a in atoms(side))

    @property
    def uses_coordinates(self) -> bool:
        return any(
            isinstance(atom, Coordinate)
            for piece in self.pieces
            for side in piece
            for atom in atoms(side)
        )

    @property
    def homogeneous(self) -> bool:
        return not self.uses_coordinates

    @property
    def uses_time(self) -> bool:
        return any(uses_time(side) for piece in self.pieces for side in piece)

    @property
    def reads(self) -> tuple[str, ...]:
        return self.inputs

    @property
    def rates(self) -> frozenset[str]:
        return frozenset(
            atom.name
            for piece in self.pieces
            for side in piece
            for function in atoms(side)
            if isinstance(function, Function)
            for monomial, _ in function.argument.monomials
            if any(isinstance(factor, Time) for factor, _ in monomial)
            for atom, _ in monomial
            if isinstance(atom, Coefficient)
        )

    def placed_at(self, origin):
        if not self.uses_coordinates:
            return self
        return ExpressionTerm(
            self.pieces,
            fields=self.fields,
            dims=self.dims,
            coefficient=self.coefficient,
            name=self.name,
            origin=origin,
            inputs=self.inputs,
        )

    @property
    def sides(self) -> tuple[Expression, ...]:
        """The sum of the parts, one expression per field, without the coefficient."""
        return tuple(
            sum((piece[channel] for piece in self.pieces), start=Expression()).canonical()
            for channel in range(len(self.fields))
        )

    def derivatives(self, dims):
        if dims != self.dims:
            raise SplatopError(
                f"expected a {self.dims}D field for the term {self.name}, got {dims}D: "
                f"write the equation for {dims} dimension(s)"
            )
        return frozenset(
            atom.operator
            for piece in self.pieces
            for side in piece
            for atom in atoms(side)
            if isinstance(atom, FieldDerivative) and not atom.is_value
        )

    def parts(self, jet, coefficients):
        channels = (*self.fields, *self.inputs)
        if jet.dims != self.dims or jet.state.shape[0] != len(channels):
            raise SplatopError(
                f"the term {self.name} expected a {self.dims}D state with the channels "
                f"{', '.join(channels)}, got shape {jet.state.shape}"
            )
        jet = replace(jet, origin=self.origin)
        return tuple(
            jnp.stack(
                [
                    field_value(side, jet, fields=channels, coefficients=coefficients)
                    for side in piece
                ]
            )
            for piece in self.pieces
        )


def group_terms(
    sides: Mapping[str, Expression],
    *,
    dims: int,
    preferred: tuple[str, ...] = (),
    inputs: tuple[str, ...] = (),
) -> tuple[ExpressionTerm, ...]:
    """Named terms, in the order in which the text first mentions them.

    All that shares a coefficient is one term. Of several coefficients in one product the term's
    is one that `preferred` names, then the one in most products, then the first by alphabet; the
    others are inner ones. What has no coefficient in front is one term for each kind.
    """
    count = Counter(
        name
        for side in sides.values()
        for monomial, _ in side.monomials
        for name in _linear_names(monomial)
    )

    def rank(name: str) -> tuple:
        return name not in preferred, -count[name], name

    grouped: dict[tuple[str | None, str], dict[str, dict[Monomial, float]]] = {}
    kinds = _without_coefficient_kinds(sides, inputs)
    for field, side in sides.items():
        for monomial, number in side.monomials:
            name = min(_linear_names(monomial), key=rank, default=None)
            key = (name, "") if name else (None, kinds[monomial])
            rest = tuple(factor for factor in monomial if factor != (Coefficient(name or ""), 1))
            grouped.setdefault(key, {}).setdefault(field, {})[rest] = number
    names = _names(grouped, inputs)
    fields = tuple(sides)
    return tuple(
        ExpressionTerm(
            _pieces([Expression.of(by_field.get(field, {})).canonical() for field in fields], dims),
            fields=fields,
            dims=dims,
            coefficient=key[0],
            name=names[key],
            inputs=inputs,
        )
        for key, by_field in grouped.items()
    )


def _linear_names(monomial: Monomial) -> list[str]:
    """Coefficients that the monomial is proportional to and does not depend on otherwise."""
    return [
        atom.name
        for atom, exponent in monomial
        if isinstance(atom, Coefficient)
        and exponent == 1
        and sum(other == atom for other in monomial_atoms(monomial)) == 1
    ]


def _pieces(sides: list[Expression], dims: int) -> tuple[tuple[Expression, ...], ...]:
    """One part per direction for transport, whose velocity the identification ties; else one."""
    axes = [[_transport_axis(m) for m, _ in side.monomials] for side in sides]
    used = sorted({axis for side in axes for axis in side})
    if len(used) < 2 or -1 in used:
        return (tuple(sides),)
    return tuple(
        tuple(
            Expression(
                tuple(i for i, own in zip(side.monomials, found, strict=True) if own == axis)
            )
            for side, found in zip(sides, axes, strict=True)
        )
        for axis in used
    )


def _transport_axis(monomial: Monomial) -> int:
    if kind(monomial) != "advection":
        return -1
    (operand,) = (atom for atom, _ in monomial if isinstance(atom, FieldDerivative))
    return operand.index.index(1)


def _products(monomial: Monomial) -> float:
    """The degree, where a factor that varies in space counts as one more field.

    It carries what it multiplies out of a filter's band as another field would.
    """
    varies = any(isinstance(atom, Coordinate) for atom in monomial_atoms(monomial))
    own = degree(monomial)
    return own + 1 if varies and own else own


# --- names -------------------------------------------------------------------------------------


def _without_coefficient_kinds(
    sides: Mapping[str, Expression], inputs: tuple[str, ...]
) -> dict[Monomial, str]:
    """The kind of each monomial without a coefficient, where some kinds are only whole together.

    The product rule turns `div(u*grad(u))` into `u*lap(u)` and squares of slopes; a constant
    belongs to the reaction beside it.
    """
    kinds = {
        monomial: kind(monomial, inputs)
        for side in sides.values()
        for monomial, _ in side.monomials
        if not _linear_names(monomial)
    }
    merged = dict(zip(kinds.values(), kinds.values(), strict=True))
    for pair in (
        {"nonlinear_diffusion", "gradient_nonlinearity"},
        {"reaction", "constant"},
        {"forcing", "constant"},
    ):
        joint = joint_kind(pair)
        if pair <= set(merged) and joint:
            merged.update({one: joint for one in pair if merged[one] == one})
    return {monomial: merged[own] for monomial, own in kinds.items()}


def _names(
    grouped: Mapping[tuple[str | None, str], Mapping[str, Mapping[Monomial, float]]],
    inputs: tuple[str, ...],
):
    base = {}
    for key, by_field in grouped.items():
        kinds = {kind(monomial, inputs) for items in by_field.values() for monomial in items}
        joint = key[1].replace("constant", "forcing") if key[0] is None else joint_kind(kinds)
        base[key] = joint or key[0] or "nonlinear"
    often = Counter(base.values())
    names: dict[tuple[str | None, str], str] = {}
    for key, name in base.items():
        if often[name] > 1 and key[0] and name != key[0]:
            name = f"{name}_{key[0]}"
        names[key] = _unused(name, names.values())
    return names


def _unused(name: str, taken: Iterable[str]) -> str:
    taken = set(taken)
    number = 2
    unique = name
    while unique in taken:
        unique, number = f"{name}_{number}", number + 1
    return unique

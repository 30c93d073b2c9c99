"""Sums of products, kept multiplied out: the algebra behind an equation written as text.

An `Expression` is a sum of numbers times monomials, a monomial a product of powers of atoms, and
an atom a coefficient, a coordinate, the time, a derivative of one field, or a function of an
expression. Everything is bounded, so that no text can make it run away.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

from ..derivative import Derivative, inverse_laplacian, laplacian, partial
from .limits import ExpressionError, work

MAX_MONOMIALS = 500
MAX_PRODUCTS = 20_000
MAX_EXPONENT = 16
MAX_ORDER = 12
MAX_INVERSES = 4

FUNCTIONS = ("sin", "cos", "exp", "log", "tanh", "sqrt", "abs", "rsqrt", "recip", "sign")

Exponent = int | Fraction


@dataclass(frozen=True)
class Pi:
    pass


@dataclass(frozen=True)
class Imaginary:
    """The unit i while a complex equation is read; `split` takes it apart into real ones."""


@dataclass(frozen=True)
class Coefficient:
    name: str


@dataclass(frozen=True)
class Coordinate:
    axis: int


@dataclass(frozen=True)
class Time:
    """The time t."""


@dataclass(frozen=True)
class FieldDerivative:
    """`∂^index Δ^laplacians Δ^-inverses field`; all zero is the field itself."""

    field: str
    index: tuple[int, ...]
    laplacians: int = 0
    inverses: int = 0

    def __post_init__(self):
        if self.order > MAX_ORDER or self.inverses > MAX_INVERSES:
            raise ExpressionError(
                f"expected derivatives of order up to {MAX_ORDER} and up to {MAX_INVERSES} "
                f"inverse Laplacians, got order {self.order} and {self.inverses}"
            )

    @property
    def order(self) -> int:
        return sum(self.index) + 2 * self.laplacians

    @property
    def is_value(self) -> bool:
        return self.order == 0 and self.inverses == 0

    def along(self, axis: int) -> "FieldDerivative":
        return replace(self, index=tuple(p + (i == axis) for i, p in enumerate(self.index)))

    def laplacian(self) -> "FieldDerivative":
        if len(self.index) == 1:
            return self.along(0).along(0)
        return replace(self, laplacians=self.laplacians + 1)

    def inverse_laplacian(self) -> "FieldDerivative":
        return replace(self, inverses=self.inverses + 1)

    @property
    def operator(self) -> Derivative:
        return operator(self.index, self.laplacians, self.inverses)


@lru_cache(maxsize=1024)
def operator(index: tuple[int, ...], laplacians: int, inverses: int) -> Derivative:
    result = partial(*index)
    for _ in range(laplacians):
        result = result @ laplacian(len(index))
    for _ in range(inverses):
        result = result @ inverse_laplacian(len(index))
    return result


@dataclass(frozen=True)
class Function:
    name: str
    argument: "Expression"

    def __post_init__(self):
        if self.name not in FUNCTIONS:
            raise ExpressionError(
                f"expected one of the functions {', '.join(FUNCTIONS)}, got {self.name!r}"
            )


@dataclass(frozen=True)
class Group:
    """A sum without fields that stays together, because its power is negative or a fraction."""

    argument: "Expression"

    @property
    def is_product(self) -> bool:
        return len(self.argument.monomials) == 1


Atom = Pi | Imaginary | Coefficient | Coordinate | Time | FieldDerivative | Function | Group
Monomial = tuple[tuple[Atom, Exponent], ...]


@dataclass(frozen=True)
class Expression:
    """`Σ number * monomial`, in the order of writing until `canonical()` sorts it."""

    monomials: tuple[tuple[Monomial, float], ...] = ()

    @cached_property
    def _hash(self) -> int:
        return hash(self.monomials)

    def __hash__(self) -> int:  # functions nest: without the cache each look-up walks all of it
        return self._hash

    @classmethod
    def of(cls, items: Mapping[Monomial, float]) -> "Expression":
        if not all(math.isfinite(number) for number in items.values()):
            raise ExpressionError("expected finite numbers, got one that overflows")
        kept = tuple((monomial, number) for monomial, number in items.items() if number)
        if len(kept) > MAX_MONOMIALS:
            raise ExpressionError(
                f"expected at most {MAX_MONOMIALS} terms when multiplied out, got {len(kept)}: "
                "write a simpler expression"
            )
        return cls(kept)

    @classmethod
    def number(cls, number: float | int) -> "Expression":
        return cls.of({(): float(number)})

    @classmethod
    def product(cls, factors: Iterable[tuple[Atom, Exponent]], number: float = 1.0) -> "Expression":
        """One monomial, its factors in any order, each atom once."""
        return cls.of({_in_order(factors): number})

    @classmethod
    def atom(cls, atom: Atom) -> "Expression":
        return cls.product([(atom, 1)])

    def canonical(self) -> "Expression":
        return Expression(tuple(sorted(self.monomials, key=lambda item: _monomial_key(item[0]))))

    def __bool__(self) -> bool:
        return bool(self.monomials)

    @classmethod
    def sum(cls, expressions: Iterable["Expression"]) -> "Expression":
        total: dict[Monomial, float] = {}
        for expression in expressions:
            for monomial, number in expression.monomials:
                total[monomial] = total.get(monomial, 0.0) + number
            if len(total) > 2 * MAX_MONOMIALS:
                break  # far too many, even if some cancel: `of` refuses them
        return cls.of(total)

    def __add__(self, other: "Expression") -> "Expression":
        return Expression.sum((self, other))

    def __neg__(self) -> "Expression":
        return Expression(tuple((monomial, -number) for monomial, number in self.monomials))

    def __sub__(self, other: "Expression") -> "Expression":
        return self + (-other)

    def __mul__(self, other: "Expression") -> "Expression":
        if len(self.monomials) * len(other.monomials) > MAX_PRODUCTS:
            raise ExpressionError(
                f"expected a product of at most {MAX_PRODUCTS} pairs of terms, got "
                f"{len(self.monomials)} times {len(other.monomials)}: write a simpler expression"
            )
        total: dict[Monomial, float] = {}
        for left, a in self.monomials:
            for right, b in other.monomials:
                for monomial, number in _join(left, right).monomials:
                    total[monomial] = total.get(monomial, 0.0) + a * b * number
        return Expression.of(total)

    def __pow__(self, exponent: int) -> "Expression":
        """A natural power; `calculus.power` takes the others."""
        check_exponent(exponent)
        result = Expression.number(1)
        for _ in range(exponent):
            result = result * self
        return result


def _join(left: Monomial, right: Monomial) -> Expression:
    """The product of two monomials; a group whose power became a natural number opens up."""
    work(1 + len(left) + len(right))
    if not left or not right:
        return Expression(((left or right, 1.0),))
    powers = dict(left)
    for atom, exponent in right:
        powers[atom] = powers[atom] + exponent if atom in powers else exponent
    return opened(powers)


def opened(powers: Mapping[Atom, Exponent]) -> Expression:
    """The product of these powers, with groups of natural power multiplied out."""
    kept: list[tuple[Atom, Exponent]] = []
    groups: list[Expression] = []
    sign = 1.0
    for atom, exponent in powers.items():
        if exponent == 0:
            continue
        if abs(exponent) > MAX_EXPONENT:
            check_exponent(exponent)
        if isinstance(exponent, Fraction):
            exponent = simplest(exponent)
        if isinstance(atom, Imaginary) and isinstance(exponent, int):
            sign = -1.0 if exponent % 4 in (2, 3) else 1.0  # 1, i, -1, -i
            kept += [(atom, 1)] * (exponent % 2)
        elif isinstance(atom, Group) and isinstance(exponent, int) and exponent > 0:
            groups.append(atom.argument**exponent)
        elif isinstance(atom, Group) and isinstance(exponent, int) and atom.is_product:
            ((monomial, number),) = atom.argument.monomials
            groups.append(opened({a: e * exponent for a, e in monomial}))
            groups.append(Expression.number(number**exponent))
        else:
            kept.append((atom, exponent))
    result = Expression(((_in_order(kept), sign),))
    for group in groups:
        result = result * group
    return result


def simplest(exponent: Exponent) -> Exponent:
    return int(exponent) if exponent == int(exponent) else exponent


def check_exponent(exponent: Exponent) -> None:
    if abs(exponent) > MAX_EXPONENT:
        raise ExpressionError(f"expected exponents up to {MAX_EXPONENT}, got {exponent}")


# --- order -------------------------------------------------------------------------------------


def _in_order(factors: Iterable[tuple[Atom, Exponent]]) -> Monomial:
    return tuple(sorted(factors, key=lambda factor: _atom_key(factor[0])))


@lru_cache(maxsize=4096)
def _atom_key(atom: Atom) -> tuple:
    match atom:
        case Pi():
            return (0,)
        case Imaginary():
            return (0, 1)
        case Coefficient(name):
            return (1, name)
        case Coordinate(axis):
            return (2, axis)
        case Time():
            return (2, len("xyz"))
        case Group(argument):
            return (3, _expression_key(argument))
        case FieldDerivative(field, index, laplacians, inverses):
            rank = 5 if atom.is_value else 6
            return (rank, field, inverses, atom.order, laplacians, tuple(-p for p in index))
        case Function(name, argument):
            return (7 if uses_fields(argument) else 4, name, _expression_key(argument))


def _expression_key(expression: Expression) -> tuple:
    return tuple((_monomial_key(m), number) for m, number in expression.monomials)


@lru_cache(maxsize=4096)
def _monomial_key(monomial: Monomial) -> tuple:
    orders = sum(atom.order for atom, _ in monomial if isinstance(atom, FieldDerivative))
    factors = tuple((_atom_key(atom), float(exponent)) for atom, exponent in reversed(monomial))
    return degree(monomial), orders, factors


# --- questions ---------------------------------------------------------------------------------


def atoms(expression: Expression) -> Iterable[Atom]:
    """Every atom, also those inside functions and groups."""
    for monomial, _ in expression.monomials:
        yield from monomial_atoms(monomial)


def monomial_atoms(monomial: Monomial) -> Iterable[Atom]:
    for atom, _ in monomial:
        yield atom
        if isinstance(atom, Function | Group):
            yield from atoms(atom.argument)


@lru_cache(maxsize=4096)
def uses_fields(expression: Expression) -> bool:
    return any(isinstance(atom, FieldDerivative) for atom in atoms(expression))


def degree(monomial: Monomial) -> float:
    """Polynomial degree in the state; infinite for a function of the state."""
    total = 0.0
    for atom, exponent in monomial:
        if isinstance(atom, FieldDerivative):
            total += float(exponent)
        elif isinstance(atom, Function) and uses_fields(atom.argument):
            return math.inf
    return total

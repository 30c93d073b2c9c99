"""The default candidates: products of fields and derivatives, by degree and order."""

import itertools
import math
from collections.abc import Iterable

from ..equation.expression import Expression, FieldDerivative
from ..errors import SplatopError
from .candidates import Candidate, independent
from .symmetry import Setting, conserved, isotropic, keeps

# The most candidates of one field's equation. Beyond, products of high order are left out.
MOST = 160
ORDER = 4
# Total orders of derivatives in products of one, two and three factors, most to least.
_TIERS = ((4, 4, 4), (4, 4, 2), (4, 3, 2), (4, 2, 2), (4, 2, 1), (4, 2, 0), (2, 2, 0), (2, 1, 0))


def library(setting: Setting, field: str) -> list[Candidate]:
    """Candidates of one scalar field's equation, or those shared by a vector's components."""
    if "rotation" in setting.symmetries and setting.dims > 1:
        found = isotropic(setting, field)
    elif "conservation" in setting.symmetries:
        found = [Candidate.of(field, side) for side in conserved(setting, products(setting))]
    else:
        found = [Candidate.of(field, side) for side in products(setting)]
    return independent(c for c in found if keeps(setting, c))


def products(setting: Setting) -> list[Expression]:
    """1, and products up to cubic in which no more than so many derivatives are taken."""
    for tier in _TIERS:
        # Higher orders than usual are those of linear terms.
        linear = max(tier[0], setting.order) if tier[0] == ORDER else tier[0]
        orders = [min(order, setting.order) for order in (linear, *tier[1 : setting.degree])]
        if _count(setting, orders) <= MOST:
            break
    found = [Expression.number(1)]
    atoms = _atoms(setting, max(orders))
    for degree, order in enumerate(orders, start=1):
        every = itertools.combinations_with_replacement(atoms, degree)
        found += [_product(some) for some in every if sum(a.order for a in some) <= order]
    found += _streams(setting)
    return found


def products_of(arguments: Iterable[FieldDerivative], degree: int) -> list[Expression]:
    """1 and the products of these alone."""
    found = [Expression.number(1)]
    arguments = list(arguments)
    if math.comb(len(arguments) + degree, degree) > 2 * MOST:
        raise SplatopError(
            f"expected fewer arguments of ?(...), got {len(arguments)}, which make more than "
            f"{2 * MOST} products: give fewer, or a lower --degree"
        )
    for power in range(1, degree + 1):
        found += map(_product, itertools.combinations_with_replacement(arguments, power))
    return found


def _count(setting: Setting, orders: list[int]) -> int:
    atoms = _atoms(setting, max(orders))
    total = 1
    for degree, order in enumerate(orders, start=1):
        if math.comb(len(atoms) + degree - 1, degree) > 50_000:
            atoms = [atom for atom in atoms if atom.order <= order]
        if math.comb(len(atoms) + degree - 1, degree) > 500_000:
            return 500_000
        total += sum(
            sum(atom.order for atom in factors) <= order
            for factors in itertools.combinations_with_replacement(atoms, degree)
        )
    return total


def _atoms(setting: Setting, order: int) -> list[FieldDerivative]:
    indices = [
        index
        for index in itertools.product(range(order + 1), repeat=setting.dims)
        if sum(index) <= order
    ]
    indices.sort(key=lambda index: (sum(index), tuple(-i for i in index)))
    return [FieldDerivative(field, index) for index in indices for field in setting.fields]


def _product(factors: Iterable[FieldDerivative]) -> Expression:
    result = Expression.number(1)
    for atom in factors:
        result = result * Expression.atom(atom)
    return result


def _streams(setting: Setting) -> list[Expression]:
    """In 2D: the stream function of each field as a vorticity, and transport by its velocity."""
    if setting.dims != 2 or len(setting.fields) > 2 or not setting.streams:
        return []
    found = []
    none = (0, 0)
    for field in setting.fields:
        stream = FieldDerivative(field, none).inverse_laplacian()
        found.append(_product([stream]))
        for velocity in (stream.along(0), stream.along(1)):
            found.append(_product([velocity]))
            for other in setting.fields:
                value = FieldDerivative(other, none)
                found += [_product([velocity, a]) for a in (value, value.along(0), value.along(1))]
    return found

"""The lowest harmonics of an insulated shape: what a neural operator and a spectrum are made of."""

import numpy as np
from jaxtyping import Float

from ..derivative import value
from ..domain import Domain
from ..errors import SplatopError
from ..points import random_points
from .kept import shape_basis_of
from .shape_basis import Kinds, ShapeBasis

# Places at which harmonics of one wavenumber are told apart, and by how much wavenumbers of
# different ones differ at least, relative to their squares.
_MARKS, _ALIKE = 64, 1e-6


def shape_harmonics(domain: Domain, places: np.ndarray, count: int) -> Float[np.ndarray, "P M"]:
    """The lowest eigenfunctions of the Laplacian with insulated edges, at places `(P, 2)`, in units
    in which their mean square is 1."""
    shape = domain.shape
    assert shape is not None
    basis = insulated(domain, count)
    if basis.size < count:
        raise SplatopError(
            f"expected at most {basis.size} harmonics on the shape, got {count}: use fewer modes"
        )
    settled = _settled(basis, random_points(shape, _MARKS, 0, **_box(domain)).places)
    rows = basis.evaluate(places, value(2)) @ settled
    return rows[:, :count] * np.sqrt(shape.area)


def _settled(basis: ShapeBasis, marks: np.ndarray) -> np.ndarray:
    """The turn `(r, r)` that makes harmonics of one wavenumber the same wherever they are computed.

    On a disk they come in pairs, which rounding turns: what an operator has learned of one would
    act on another. At the mark where a group of them is largest all but the first are 0, at the
    next mark of what is left all but the second, and so on; the first is positive there.
    """
    turn = np.eye(basis.size)
    apart = np.diff(basis.energies) > _ALIKE * np.maximum(basis.energies[1:], basis.energies[1])
    values = basis.evaluate(marks, value(2))
    for group in np.split(np.arange(basis.size), np.flatnonzero(apart) + 1):
        rest, own = values[:, group], np.eye(len(group))
        for n in range(len(group)):
            row = rest[np.argmax(np.sum(rest[:, n:] ** 2, axis=1)), n:]
            # A reflection that leaves the first of the rest, and its sign.
            first, *_ = np.linalg.svd(row[:, None])
            first[:, 0] *= np.sign(first[:, 0] @ row)
            own[:, n:] = own[:, n:] @ first
            rest = values[:, group] @ own
        turn[np.ix_(group, group)] = own
    return turn


def _box(domain: Domain) -> dict[str, tuple[float, ...]]:
    return {"lengths": domain.lengths, "origin": domain.origin}


def insulated(domain: Domain, count: int) -> ShapeBasis:
    """A basis of which the lowest `count` functions are well resolved."""
    shape = domain.shape
    assert shape is not None
    # Four functions for each harmonic: the lowest quarter is right to many digits.
    spacing = np.sqrt(shape.area / (4 * count))
    anchors = tuple(max(12, int(np.ceil(length / spacing)) + 1) for length in domain.lengths)
    kinds: Kinds = tuple((side, "slope") for side in domain.sides)
    return shape_basis_of(domain.with_conditions({}), anchors, kinds)

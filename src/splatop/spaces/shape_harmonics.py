"""The lowest harmonics of an insulated shape: what a neural operator and a spectrum are made of."""

import numpy as np
from jaxtyping import Float

from ..derivative import value
from ..domain import Domain
from ..errors import SplatopError
from .kept import shape_basis_of
from .shape_basis import Kinds, ShapeBasis


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
    rows = basis.evaluate(places, value(2))[:, :count]
    return rows * np.sqrt(shape.area)


def insulated(domain: Domain, count: int) -> ShapeBasis:
    """A basis of which the lowest `count` functions are well resolved."""
    shape = domain.shape
    assert shape is not None
    # Four functions for each harmonic: the lowest quarter is right to many digits.
    spacing = np.sqrt(shape.area / (4 * count))
    anchors = tuple(max(12, int(np.ceil(length / spacing)) + 1) for length in domain.lengths)
    kinds: Kinds = tuple((side, "slope") for side in domain.sides)
    return shape_basis_of(domain.with_conditions({}), anchors, kinds)

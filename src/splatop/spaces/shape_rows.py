"""Matrices of functions on a shape: rows at places, one matrix for each field, fits to samples."""

from functools import lru_cache

import numpy as np

from ..derivative import Derivative, laplacian, value
from ..domain import Domain
from ..points import Points
from ..shapes import Quadrature
from .axis import stacked
from .kept import shape_basis_of
from .shape_basis import Kinds, ShapeBasis

# The least singular value of a fit that counts, relative to the largest, as on a box.
_RCOND = 1e-6


def laplacian_power(derivative: Derivative) -> tuple[int, float] | None:
    """The power of the Laplacian and the factor that a derivative is; None if it is none."""
    terms = dict(derivative.terms)
    if set(terms) == {(0, 0)}:
        return 0, float(terms[0, 0])
    for weight, power in ((terms.get((2, 0)), 1), (terms.get((4, 0)), 2)):
        if weight is None:
            continue
        one = dict(laplacian(2).terms)
        wanted = one if power == 1 else {(4, 0): 1.0, (2, 2): 2.0, (0, 4): 1.0}
        if terms == {index: weight * factor for index, factor in wanted.items()}:
            return power, float(weight)
    return None


def rows_of(
    basis: ShapeBasis,
    inverse: ShapeBasis | None,
    nodes: Quadrature,
    places: np.ndarray,
    derivative: Derivative,
) -> np.ndarray:
    """A derivative of each function at places, `(P, r)`; `inverse` Laplacians are combinations of
    these functions, harmonics of conditions of their own. One without a condition has no mean."""
    if inverse is None:
        return basis.evaluate(places, derivative)
    assert inverse.laplacian is not None
    root = np.sqrt(nodes.weights)[:, None]
    own, there = (root * one.evaluate(nodes.places, value(2)) for one in (basis, inverse))
    constant = np.abs(inverse.laplacian) < 1e-7 * np.abs(inverse.laplacian[-1])
    rates = np.where(constant, np.inf, inverse.laplacian) ** derivative.inverse_laplacians
    numbers = np.linalg.solve(there.T @ there, there.T @ own) / rates[:, None]
    return inverse.evaluate(places, derivative.forward) @ numbers


@lru_cache(maxsize=16)
def fitting(
    domain: Domain, sizes: tuple[int, ...], kinds: tuple[Kinds, ...], at: Points
) -> np.ndarray:
    """From samples at points to numbers of the space, one matrix or one for each field."""
    found = {}
    for one in set(kinds):
        rows = shape_basis_of(domain, sizes, one).evaluate(at.places, value(2))
        found[one] = np.linalg.pinv(rows, rcond=_RCOND).T
    return np.swapaxes(stacked(found, kinds), -1, -2)

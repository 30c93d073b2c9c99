"""A smooth field on a shape that takes what is set at its edges: what a lift is on a box.

It is the harmonic one, whose Laplacian is 0 but for rounding, wherever every edge sets something:
what diffusion settles to. Any other would have its Laplacian at the working points taken back by
the functions that obey the conditions, which the points integrate to a part in a thousand only.
"""

from functools import lru_cache

import numpy as np

from ..derivative import laplacian, value
from ..domain import Domain
from ..errors import SplatopError
from .kept import shape_basis_of
from .shape_basis import Kinds, ShapeBasis, edge_points, edge_rows, fine_nodes, spacing_of

# Where two edges meet, their values may differ by this share of their size.
_CONTRADICTION = 1e-4
# The least singular value of the edge rows that a lift follows, relative to the largest.
_RCOND = 1e-10
# A lift is penalised by this power of the energy of each function: flat ones are almost free.
_SMOOTH, _FLAT = 2, 1e-3


@lru_cache(maxsize=32)
def lifting(domain: Domain, sizes: tuple[int, ...], kinds: Kinds) -> np.ndarray:
    """From what is set at all points of the edges to the field that takes it, in the functions
    without conditions: `(r, E)`."""
    assert domain.shape is not None
    free, rows, unit, held = _edge_system(domain, sizes, kinds)
    # Smooth: functions of high energy are dear.
    reference = free.energies[min(8, free.size - 1)]
    price = 1 / (_FLAT + np.abs(free.energies) / reference) ** _SMOOTH
    solve = price[:, None] * np.linalg.pinv(rows * price, rcond=_RCOND)
    found = np.zeros((free.size, len(held)))
    found[:, held] = solve * unit
    return found - _bent(domain, sizes, kinds, free, found)


def free_basis(domain: Domain, sizes: tuple[int, ...], kinds: Kinds) -> ShapeBasis:
    """What lifts are made of: functions that need not obey the conditions."""
    return shape_basis_of(domain, sizes, kinds, held=False)


def _bent(
    domain: Domain, sizes: tuple[int, ...], kinds: Kinds, free: ShapeBasis, lifts: np.ndarray
) -> np.ndarray:
    """What has the Laplacian of lifts, and nothing at the edges. Where slopes alone are set, it
    keeps the mean."""
    assert domain.shape is not None
    own = shape_basis_of(domain, sizes, kinds)
    if own.laplacian is None:
        return np.zeros_like(lifts)
    spacing = max(spacing_of(domain.lengths, sizes))
    nodes = fine_nodes(domain.shape, spacing, own.gaussians.singular)
    weighted = nodes.weights[:, None] * own.evaluate(nodes.places, value(2))
    curves = weighted.T @ (free.evaluate(nodes.places, laplacian(2)) @ lifts)
    constant = np.abs(own.laplacian) < 1e-7 * np.abs(own.laplacian[-1])
    numbers = curves / np.where(constant, np.inf, own.laplacian)[:, None]
    return (free.evaluate(nodes.places, value(2)).T @ weighted) @ numbers


def _edge_system(
    domain: Domain, sizes: tuple[int, ...], kinds: Kinds
) -> tuple[ShapeBasis, np.ndarray, np.ndarray, np.ndarray]:
    """The functions without conditions, what they have where something is set, the rows' units,
    and which points of the edges these are."""
    assert domain.shape is not None
    spacing = max(spacing_of(domain.lengths, sizes))
    free = free_basis(domain, sizes, kinds)
    rows, _, unit = edge_rows(free.gaussians, domain.shape, kinds, spacing)
    stated = dict(kinds)
    names = edge_points(domain.shape, spacing)[0]
    held = np.array([stated.get(name, "free") != "free" for name in names])
    return free, rows @ free.combine, unit, held


def _missed(
    domain: Domain, sizes: tuple[int, ...], kinds: Kinds, given: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """By how much a lift misses what is set, and where."""
    assert domain.shape is not None
    _, rows, unit, held = _edge_system(domain, sizes, kinds)
    found = rows @ (lifting(domain, sizes, kinds) @ given)
    spacing = max(spacing_of(domain.lengths, sizes))
    places = edge_points(domain.shape, spacing)[1]
    return np.abs(found - unit * given[held]), places[held]


def check_lift(
    domain: Domain, sizes: tuple[int, ...], kinds: Kinds, name: str, given: np.ndarray
) -> None:
    """Refuse what edges set for a field, `(E,)`, where it contradicts itself."""
    size = np.abs(given).max()
    if size == 0:
        return
    wrong, places = _missed(domain, sizes, kinds, given)
    if wrong.max() > _CONTRADICTION * size:
        x, y = places[int(np.argmax(wrong))]
        raise SplatopError(
            f"expected conditions for {name} that agree where two edges meet, got some that differ "
            f"by {wrong.max():.2g} near ({x:.4g}, {y:.4g}): let them agree there (a value that is "
            "an expression in x and y can), or take more anchors"
        )

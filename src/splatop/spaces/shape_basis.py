"""Gaussians on a shape: all combinations that obey homogeneous conditions at its edges.

Set-up in double precision, once for a shape; it is kept by value in memory and in the user's cache
folder. Any list of functions can span a space; the one that is taken here is a lattice of Gaussians
that reaches a few spacings beyond the edge, and what singular corners need beside them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.polynomial import hermite_e

from ..derivative import Derivative
from ..domain import Kind
from ..errors import SplatopError
from ..shapes import Place, Quadrature, Shape, quadrature
from .corners import Corner, corners_of
from .holes import WAVES, Hole, hole_of, holes_of

# Gaussians lie up to so many spacings outside of the shape.
BEYOND = 5.0
# σ over the spacing of the anchors.
WIDTH = 1.4
# Eigenvalues of the Gram matrix below this share of the largest are not told from rounding.
NEGLIGIBLE = 1e-13
# Singular values of the conditions below this share of the largest set nothing more.
_REDUNDANT = 1e-7
# Points along the edge, for each spacing of the anchors: between corners, and around a closed
# curve. Fewer leave functions that break the conditions between the points (on a disk of 8 anchors
# modes that diffusion makes grow).
PER_SPACING, AROUND = 2.0, 1.6
# Side of a triangle over the spacing, Gauss points along it, and how often triangles are cut
# towards a singular corner: for the set-up, and for products.
FINE, WORKING = (2.0, 9, 5), (2.5, 6, 2)
MOST_FUNCTIONS = 2000
LEAST_ANCHORS = 6

# Nodes at which functions are evaluated at once.
_BLOCK = 4096

# The conditions of one field: what holds at each edge, by the edge's name.
Kinds = tuple[tuple[str, Kind], ...]
# Functions that a space has in addition to the Gaussians of its lattice.
Beside = tuple[Corner | Hole, ...]
# Indices of partial derivatives that are to be added up.
Indices = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class ShapeGaussians:
    """Centres `(G, 2)` and the two standard deviations that all have; behind them the functions of
    singular corners and of small round holes."""

    centres: np.ndarray
    width: tuple[float, float]
    beside: Beside = ()

    @property
    def count(self) -> int:
        return len(self.centres) + sum(one.size for one in self.beside)

    @property
    def singular(self) -> tuple[Place, ...]:
        """Where integrals need finer triangles."""
        return tuple(place for one in self.beside for place in one.singular)

    def at(self, places: np.ndarray, index: tuple[int, ...]) -> np.ndarray:
        """A partial derivative of each function at places `(P, 2)`: `(P, G)`."""
        factors = []
        for axis, (order, width) in enumerate(zip(index, self.width, strict=True)):
            # Centres on a lattice share their coordinates.
            unique, which = np.unique(self.centres[:, axis], return_inverse=True)
            z = (places[:, axis, None] - unique) / width
            hermite = hermite_e.hermeval(z, [0] * order + [1])
            factors.append(((-1 / width) ** order * hermite * np.exp(-z * z / 2))[:, which])
        own = factors[0] * factors[1]
        return np.hstack([own, *(one.at(places, index) for one in self.beside)])


def lattice(
    shape: Shape,
    low: Iterable[float],
    lengths: Iterable[float],
    anchors: tuple[int, ...],
    kinds: Kinds = (),
) -> ShapeGaussians:
    """Those Gaussians of a box's lattice whose centres lie in the shape or close to it, and what
    its corners need where these conditions hold, and its holes."""
    if min(anchors) < LEAST_ANCHORS:
        raise SplatopError(
            f"expected at least {LEAST_ANCHORS} anchors along each axis of a shape, got {anchors}"
        )
    spacing = spacing_of(tuple(lengths), anchors)
    (x0, y0), (x1, y1) = shape.bounds
    axes = []
    for begin, step, first, last in zip(low, spacing, (x0, y0), (x1, y1), strict=True):
        numbers = np.arange(
            np.floor((first - begin) / step - BEYOND), np.ceil((last - begin) / step + BEYOND) + 1
        )
        axes.append(begin + step * numbers)
    centres = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    near = shape.distance(centres) < BEYOND * max(spacing)
    width = (WIDTH * spacing[0], WIDTH * spacing[1])
    beside = (*corners_of(shape, kinds, max(spacing)), *holes_of(shape, max(spacing)))
    return ShapeGaussians(centres[near], width, beside)


def spacing_of(lengths: tuple[float, ...], anchors: tuple[int, ...]) -> tuple[float, float]:
    x, y = (length / (n - 1) for length, n in zip(lengths, anchors, strict=True))
    return x, y


@dataclass(frozen=True)
class ShapeBasis:
    """Amplitudes `(G, r)` of functions that are orthonormal on the shape.

    In the order of their wavenumbers: the eigenfunctions of the Laplacian where every edge sets a
    value or a slope (`laplacian` holds the eigenvalues), else those of the form `∫ ∇φ·∇ψ`.
    """

    gaussians: ShapeGaussians
    combine: np.ndarray = field(repr=False)
    laplacian: np.ndarray | None = field(repr=False)
    energies: np.ndarray = field(repr=False)
    asymmetry: float = 0.0

    @property
    def size(self) -> int:
        return self.combine.shape[1]

    def evaluate(self, places: np.ndarray, derivative: Derivative) -> np.ndarray:
        """A derivative of each function at places `(P, 2)`: `(P, r)`."""
        total = np.zeros((len(places), self.gaussians.count))
        for index, weight in derivative.terms:
            total += weight * self.gaussians.at(places, index)
        return total @ self.combine


def edge_points(
    shape: Shape, spacing: float, per_spacing: float | None = None
) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Names, places `(E, 2)` and outward normals of points along the edges."""
    found: list[tuple[str, np.ndarray, np.ndarray]] = []
    for run in shape.runs:
        lengths = np.array([edge.piece.length for edge in run.edges])
        per = per_spacing or (AROUND if run.closed else PER_SPACING)
        # Around a hole its own waves are told apart as well.
        own = 2 * WAVES if hole_of(run, shape) in holes_of(shape, spacing) else 0
        count = max(2, int(np.ceil(per * (lengths.sum() / spacing + own))))
        along = (np.arange(count) + 0.5) / count * lengths.sum()
        if not run.closed:  # both ends belong to it as well, where it turns
            along = np.concatenate([[0.0], along, [lengths.sum()]])
        ends = np.cumsum(lengths)
        which = np.minimum(np.searchsorted(ends, along), len(lengths) - 1)
        t = (along - ends[which] + lengths[which]) / lengths[which]
        # An edge on which no point lies gets one in its middle, unless the anchors do not see it.
        missed = [n for n in range(len(lengths)) if n not in which and 2 * lengths[n] > spacing]
        which, t = np.append(which, missed).astype(int), np.append(t, np.full(len(missed), 0.5))
        for number, one in zip(which, t, strict=True):
            edge, here = run.edges[number], np.array([one])
            found.append((edge.name, edge.piece.at(here)[0], edge.piece.normal(here)[0]))
    return (
        tuple(name for name, _, _ in found),
        np.stack([place for _, place, _ in found]),
        np.stack([normal for _, _, normal in found]),
    )


def edge_rows(
    gaussians: ShapeGaussians, shape: Shape, kinds: Kinds, spacing: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is set at points of the edges, of each Gaussian: `(E, G)`, slopes in units of the
    spacing; the places `(E, 2)`, and the unit of each row."""
    held = dict(kinds)
    names, places, normals = edge_points(shape, spacing)
    kind = np.array([held.get(name, "free") for name in names])
    values = gaussians.at(places, (0, 0))
    slopes = sum(
        normals[:, axis, None] * gaussians.at(places, index)
        for axis, index in enumerate(((1, 0), (0, 1)))
    )
    unit = np.where(kind == "slope", spacing, 1.0)
    rows = np.where((kind == "slope")[:, None], spacing * slopes, values)
    return rows[kind != "free"], places[kind != "free"], unit[kind != "free"]


def build_basis(
    gaussians: ShapeGaussians,
    shape: Shape,
    kinds: Kinds,
    spacing: float,
    free: np.ndarray | None = None,
) -> ShapeBasis:
    """The functions of these Gaussians on a shape with these conditions at its edges. `free` are
    those that need not obey any (`orthonormal`), where they are known already."""
    nodes = fine_nodes(shape, spacing, gaussians.singular)
    own = free = orthonormal(gaussians, nodes) if free is None else free
    rows, _, _ = edge_rows(gaussians, shape, kinds, spacing)
    if len(rows):
        _, singular, right = np.linalg.svd(rows @ free, full_matrices=True)
        rank = int((singular > _REDUNDANT * singular[0]).sum())
        own = free @ right[rank:].T
    if own.shape[1] < 2:
        raise SplatopError(
            "expected fields that the conditions at the edges leave free, got none: take more "
            "anchors"
        )
    stated = dict(kinds)
    if any(stated.get(name, "free") == "free" for name in shape.edge_names):
        slopes = sum(_products(gaussians, nodes, own, (index,)) for index in ((1, 0), (0, 1)))
        energies, turn = np.linalg.eigh(slopes)
        return ShapeBasis(gaussians, own @ turn, None, np.maximum(energies, 0.0))
    second = _products(gaussians, nodes, own, ((2, 0), (0, 2)), ((0, 0),))
    asymmetry = float(np.linalg.norm(second - second.T) / np.linalg.norm(second))
    laplacian, turn = np.linalg.eigh((second + second.T) / 2)
    laplacian, own = laplacian[::-1], (own @ turn)[:, ::-1]
    return ShapeBasis(gaussians, own, laplacian, np.maximum(-laplacian, 0.0), asymmetry)


def _products(
    gaussians: ShapeGaussians,
    nodes: Quadrature,
    combine: np.ndarray | None,
    right: Indices,
    left: Indices | None = None,
) -> np.ndarray:
    """Integrals of products of two sums of partial derivatives of functions, the second one that of
    `right` if nobody says, over some thousand nodes at a time."""
    total = np.zeros(())
    for start in range(0, len(nodes.weights), _BLOCK):
        part = slice(start, start + _BLOCK)
        root = np.sqrt(nodes.weights[part])[:, None]

        def of(indices: Indices, part: slice = part, root: np.ndarray = root) -> np.ndarray:
            rows = root * sum(gaussians.at(nodes.places[part], index) for index in indices)
            return rows if combine is None else rows @ combine

        one = of(right)
        total = total + (one if left is None else of(left)).T @ one
    return total


def fine_nodes(shape: Shape, spacing: float, singular: tuple[Place, ...] = ()) -> Quadrature:
    side, order, cuts = FINE
    return quadrature(shape, side * spacing, order, singular, cuts)


def working_nodes(shape: Shape, spacing: float, singular: tuple[Place, ...] = ()) -> Quadrature:
    side, order, cuts = WORKING
    return quadrature(shape, side * spacing, order, singular, cuts)


def orthonormal(gaussians: ShapeGaussians, nodes: Quadrature) -> np.ndarray:
    """Amplitudes of all combinations of the Gaussians that can be told apart, orthonormal."""
    itself = ((0, 0),)
    sizes, turn = np.linalg.eigh(_products(gaussians, nodes, None, itself))
    kept = sizes > NEGLIGIBLE * sizes[-1]
    if kept.sum() > MOST_FUNCTIONS:
        raise SplatopError(
            f"expected at most {MOST_FUNCTIONS} functions on a shape, got {kept.sum()} of "
            f"{gaussians.count} Gaussians: take fewer anchors (--set anchors=..., anchors= in "
            "Python)"
        )
    combine = turn[:, kept] / np.sqrt(sizes[kept])
    for _ in range(2):  # division by the smallest ones has left them orthonormal to 1e-3 only
        lower = np.linalg.cholesky(_products(gaussians, nodes, combine, itself))
        combine = np.linalg.solve(lower, combine.T).T
    return combine

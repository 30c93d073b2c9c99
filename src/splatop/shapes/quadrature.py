"""Integrals over a shape: triangles of one size, curved where an edge is an arc, with Gauss points
in each.

The triangulation is Delaunay's of points along the edges and of a lattice inside, refined until
every part of an edge is a side of a triangle.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..errors import SplatopError
from .pieces import Arc, Piece, Place
from .shape import Shape

# Points inside keep this share of a triangle's side away from the edge.
_AWAY = 0.6
# An arc turns by at most this angle (radians) within one triangle.
_TURN = 0.5
_REFINEMENTS = 12
# Of parts towards a singular corner, each is so much smaller than the one before.
_NEARER = 0.2
_MOST_TRIANGLES = 200_000


@dataclass(frozen=True)
class Quadrature:
    """Places `(Q, 2)` inside a shape and positive weights `(Q,)` that sum to its area."""

    places: np.ndarray
    weights: np.ndarray


@lru_cache(maxsize=16)
def quadrature(
    shape: Shape, side: float, order: int, singular: tuple[Place, ...] = (), cuts: int = 0
) -> Quadrature:
    """Gauss points in triangles of this side at most: exact for polynomials of degree
    `2 order - 1` on straight ones. Triangles that touch a singular place are cut so often towards
    it."""
    mesh = [
        part
        for piece, corners in _triangulate(shape, side)
        for part in _towards(piece, corners, singular, cuts)
    ]
    r, s, w = _conical(order)
    places, weights = [], []
    for piece, corners in mesh:
        at, jacobian = _mapped(piece, corners, r, s)
        places.append(at)
        weights.append(w * jacobian)
    found = Quadrature(np.concatenate(places), np.concatenate(weights))
    if found.weights.min() <= 0:
        raise SplatopError(
            "expected edges that triangles can follow, got one that bends too sharply for its size "
            f"at ({', '.join(f'{v:.4g}' for v in found.places[np.argmin(found.weights)])}): leave "
            "out details that are smaller than the spacing of the anchors, or take more anchors"
        )
    return found


def _conical(order: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points (r, s) with r, s >= 0 and r + s <= 1, and weights that sum to 1/2."""
    from scipy.special import roots_jacobi  # slow to import, and only set-up needs it

    x, wx = roots_jacobi(order, 1.0, 0.0)
    y, wy = np.polynomial.legendre.leggauss(order)
    s = np.repeat((x + 1) / 2, order)
    r = np.tile((y + 1) / 2, order) * (1 - s)
    return r, s, np.repeat(wx / 4, order) * np.tile(wy / 2, order)


def _towards(
    piece: Piece | None, corners: np.ndarray, singular: tuple[Place, ...], cuts: int
) -> list[tuple[Piece | None, np.ndarray]]:
    """A triangle in parts that become smaller towards the one of its corners that is singular. The
    last has it as its third corner, where Gauss points crowd."""
    scale = np.linalg.norm(corners[1] - corners[0])
    hit = [
        k for k in range(3) for one in singular if np.linalg.norm(corners[k] - one) < 1e-7 * scale
    ]
    if piece is not None or not hit:
        return [(piece, corners)]
    tip, a, b = np.roll(corners, -hit[0], axis=0)
    found: list[tuple[Piece | None, np.ndarray]] = []
    for _ in range(cuts):
        nearer_a, nearer_b = tip + _NEARER * (a - tip), tip + _NEARER * (b - tip)
        found += [(None, np.stack([nearer_a, a, b])), (None, np.stack([nearer_a, b, nearer_b]))]
        a, b = nearer_a, nearer_b
    return [*found, (None, np.stack([a, b, tip]))]


def _mapped(
    piece: Piece | None, corners: np.ndarray, r: np.ndarray, s: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Reference points in a triangle whose side from the first to the second corner may be a piece
    of an edge, and the Jacobian there.

    The side's way is blended into the triangle: `(1-s)` times the curve at `r/(1-s)`.
    """
    a, b, c = corners
    straight = a + r[:, None] * (b - a) + s[:, None] * (c - a)
    if piece is None:
        size = (b - a)[0] * (c - a)[1] - (b - a)[1] * (c - a)[0]
        return straight, np.full(len(r), size)
    assert isinstance(piece, Arc)
    t = r / (1 - s)
    curve = piece.at(t)
    turn = piece.sweep
    left = np.stack([-(curve[:, 1] - piece.centre[1]), curve[:, 0] - piece.centre[0]], axis=1)
    slope = turn * left  # d curve / dt
    bent = curve - (a + t[:, None] * (b - a))
    # place = straight + (1 - s) bent(t), t = r / (1 - s)
    bent_slope = slope - (b - a)
    by_r = (b - a) + bent_slope
    by_s = (c - a) - bent + t[:, None] * bent_slope
    at = straight + (1 - s)[:, None] * bent
    return at, by_r[:, 0] * by_s[:, 1] - by_r[:, 1] * by_s[:, 0]


def _triangulate(shape: Shape, side: float) -> list[tuple[Piece | None, np.ndarray]]:
    """Triangles, anticlockwise; with the arc that their first side is part of, if it is."""
    from scipy.spatial import Delaunay, KDTree

    if shape.area / side**2 > _MOST_TRIANGLES / 2:
        raise SplatopError(
            f"expected at most {_MOST_TRIANGLES} triangles, got a shape that needs more for a side "
            f"of {side:.3g}: take fewer anchors"
        )
    parts = [part for edge in shape.edges for part in _pieces(edge.piece, side)]
    inner = _lattice(shape, side)
    for _ in range(_REFINEMENTS):
        begins = np.array([part.at(np.array([0.0]))[0] for part in parts])
        ends = np.array([part.at(np.array([1.0]))[0] for part in parts])
        boundary, inverse = _merged(np.concatenate([begins, ends]), 1e-7 * side)
        numbers = inverse.reshape(2, -1).T  # (parts, 2)
        kept = inner
        if len(inner):
            middles = np.array([part.at(np.array([0.5]))[0] for part in parts])
            half = np.array([part.length / 2 for part in parts])
            near, which = KDTree(middles).query(inner)
            kept = inner[near > 1.05 * half[which]]
        every = np.concatenate([boundary, kept])
        triangles = Delaunay(every).simplices
        sides = {
            tuple(sorted(pair))
            for pair in np.concatenate(
                [triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]
            ).tolist()
        }
        missing = [tuple(sorted(pair)) not in sides for pair in numbers.tolist()]
        if not any(missing):
            return _inside(triangles, every, parts, numbers)
        parts = [
            half
            for part, lost in zip(parts, missing, strict=True)
            for half in ((part.part(0, 0.5), part.part(0.5, 1)) if lost else (part,))
        ]
    raise SplatopError(
        "expected edges that do not come too close to each other, got some that triangles of "
        f"{side:.3g} cannot separate: leave out such details, or take more anchors"
    )


def _pieces(piece: Piece, side: float) -> list[Piece]:
    count = int(np.ceil(piece.length / side - 1e-9))
    if isinstance(piece, Arc):
        count = max(count, int(np.ceil(abs(piece.sweep) / _TURN)))
    count = max(count, 1)
    return [piece.part(k / count, (k + 1) / count) for k in range(count)]


def _lattice(shape: Shape, side: float) -> np.ndarray:
    """Points of a triangular lattice inside, away from the edge."""
    (x0, y0), (x1, y1) = shape.bounds
    rise = side * np.sqrt(3) / 2
    rows = np.arange(y0 + rise / 2, y1, rise)
    points = [
        np.stack(
            np.broadcast_arrays(np.arange(x0 + (0.25 + 0.5 * (k % 2)) * side, x1, side), y), axis=1
        )
        for k, y in enumerate(rows)
    ]
    every = np.concatenate(points) if points else np.empty((0, 2))
    return every[shape.distance(every) < -_AWAY * side] if len(every) else every


def _merged(points: np.ndarray, tiny: float) -> tuple[np.ndarray, np.ndarray]:
    """Points that are the same but for rounding, once, and which one each became."""
    from scipy.spatial import KDTree

    tree = KDTree(points)
    first = np.array([min(group) for group in tree.query_ball_point(points, tiny)])
    kept, inverse = np.unique(first, return_inverse=True)
    return points[kept], inverse


def _inside(
    triangles: np.ndarray, points: np.ndarray, parts: list[Piece], numbers: np.ndarray
) -> list[tuple[Piece | None, np.ndarray]]:
    """The triangles of the shape: those that its edges, which have it on their left, enclose."""
    on_edge = {(int(a), int(b)): part for (a, b), part in zip(numbers, parts, strict=True)}
    a, b, c = (points[triangles[:, k]] for k in range(3))
    size = (b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]
    triangles = np.where((size < 0)[:, None], triangles[:, [0, 2, 1]], triangles)
    scale = np.median(np.abs(size))
    owner = {(int(t[k]), int(t[(k + 1) % 3])): n for n, t in enumerate(triangles) for k in range(3)}
    # From the triangles left of an edge, across all sides that are no edges.
    inside, waiting = set(), [owner[pair] for pair in on_edge if pair in owner]
    while waiting:
        n = waiting.pop()
        if n in inside:
            continue
        inside.add(n)
        for k in range(3):
            pair = (int(triangles[n][k]), int(triangles[n][(k + 1) % 3]))
            across = owner.get((pair[1], pair[0]))
            if pair not in on_edge and across is not None:
                waiting.append(across)
    found: list[tuple[Piece | None, np.ndarray]] = []
    for n in sorted(inside):
        t = triangles[n]
        if abs(size[n]) < 1e-12 * scale:
            continue
        found += _curved(t, points, on_edge)
    return found


def _curved(
    triangle: np.ndarray, points: np.ndarray, on_edge: dict[tuple[int, int], Piece]
) -> list[tuple[Piece | None, np.ndarray]]:
    """A triangle turned so that the arc among its sides comes first; cut into several where it has
    two."""
    arcs = [
        k
        for k in range(3)
        if isinstance(on_edge.get((int(triangle[k]), int(triangle[(k + 1) % 3]))), Arc)
    ]
    corners = points[triangle]
    if not arcs:
        return [(None, corners)]
    turned = [np.roll(corners, -k, axis=0) for k in range(3)]
    pieces = [on_edge.get((int(triangle[k]), int(triangle[(k + 1) % 3]))) for k in range(3)]
    if len(arcs) == 1:
        return [(pieces[arcs[0]], turned[arcs[0]])]
    middle = corners.mean(0)
    return [
        (pieces[k] if k in arcs else None, np.stack([turned[k][0], turned[k][1], middle]))
        for k in range(3)
    ]

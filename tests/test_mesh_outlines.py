"""Outlines of meshes: straight edges are one side, and those that follow a curve are arcs."""

import meshio
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import jvp, yvp

from splatop.domain import Condition, Domain
from splatop.shapes.mesh import shape_of_mesh
from splatop.shapes.pieces import Segment
from splatop.spaces import ShapeSpace


def fan(turns: np.ndarray, radius: float = 1.0, straight: int = 0) -> meshio.Mesh:
    """Triangles from the middle to places on a circle, and where asked on a wall below."""
    ring = radius * np.stack([np.cos(turns), np.sin(turns)], axis=1)
    wall = np.linspace(ring[-1], ring[0], straight + 1)[1:-1] if straight else ring[:0]
    edge = np.concatenate([ring, wall])
    places = np.concatenate([edge, [[0.0, 0.3]]])
    numbers = np.arange(len(edge))
    cells = np.stack([numbers, np.roll(numbers, -1), np.full_like(numbers, len(edge))], axis=1)
    return meshio.Mesh(np.c_[places, 0 * places[:, 0]], [("triangle", cells)])


@pytest.mark.parametrize("uneven", [False, True])
def test_a_circle_of_a_mesh_is_that_circle(uneven):
    turns = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    turns = turns + 0.05 * np.sin(5 * turns) * uneven
    shape = shape_of_mesh(fan(turns), "a.vtu")
    assert shape.area == pytest.approx(np.pi, rel=1e-9)  # the polygon's is 0.4 % smaller
    rng = np.random.default_rng(0)
    places = rng.uniform(-1.1, 1.1, (4000, 2))
    radius = np.hypot(*places.T)
    assert np.array_equal(shape.inside(places), radius <= 1)
    assert len(shape.edges) < 40  # arcs of one circle are one


def test_straight_sides_of_a_mesh_stay_straight_beside_an_arc():
    shape = shape_of_mesh(fan(np.linspace(0, np.pi, 21), straight=20), "a.vtu")
    assert shape.area == pytest.approx(np.pi / 2, rel=1e-9)
    lengths = [e.piece.length for e in shape.edges if isinstance(e.piece, Segment)]
    assert lengths == pytest.approx([2.0])


def test_slopes_at_a_round_hole_of_a_mesh():
    """The first tones of an insulated annulus, whose mesh has 48 and 24 sides around it."""
    inner, outer = (
        r * np.stack([np.cos(t), np.sin(t)], axis=1)
        for r, t in ((1.0, np.arange(48) * np.pi / 24), (0.4, np.arange(24) * np.pi / 12))
    )
    places = np.concatenate([inner, outer])
    k = np.arange(24)
    a, b, c = 2 * k, (2 * k + 1) % 48, (2 * k + 2) % 48
    d, e = 48 + k, 48 + (k + 1) % 24
    cells = np.concatenate([np.stack(t, axis=1) for t in ((a, b, d), (b, c, e), (b, e, d))])
    shape = shape_of_mesh(meshio.Mesh(np.c_[places, 0 * places[:, 0]], [("triangle", cells)]), "a")
    (x0, y0), (x1, y1) = shape.bounds
    axes = Domain.box((x1 - x0, y1 - y0), (x0, y0), periodic=(False, False)).axes
    domain = Domain(axes, shape=shape).with_conditions(
        {(edge, "u"): Condition("slope") for edge in shape.edge_names}
    )
    tones = np.sqrt(np.sort(ShapeSpace(domain, ("u",), (14, 14)).energies().ravel()))

    def slopes(k):  # of both kinds of waves once around, at both edges
        return jvp(1, k) * yvp(1, 0.4 * k) - jvp(1, 0.4 * k) * yvp(1, k)

    assert tones[1:3] == pytest.approx([brentq(slopes, 1.0, 2.0)] * 2, rel=1e-5)

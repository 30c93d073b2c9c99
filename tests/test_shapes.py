"""Shapes: their edges and areas, integrals over them, and Gaussians on them beside Bessel's and
other formulas."""

import dataclasses
import importlib
import json
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import jn_zeros, jnp_zeros, jv, jvp, yv, yvp

from splatop import SplatopError
from splatop.derivative import gradient, laplacian, value
from splatop.domain import Condition, Domain
from splatop.equation import domain_from_text, parse_boundary
from splatop.equation.shape_text import parse_shape
from splatop.grid import Grid
from splatop.points import Points, layout_as_json, layout_from_json, points_inside
from splatop.shapes import (
    Box,
    Difference,
    Disk,
    Polygon,
    quadrature,
    shape_as_dict,
    shape_from_dict,
    shape_of_mask,
)
from splatop.spaces import ShapeSpace
from splatop.spaces.corners import Corner
from splatop.spaces.holes import Hole
from splatop.spaces.kept import shape_basis_of
from splatop.spaces.shape_basis import build_basis, edge_points, lattice
from splatop.spaces.shape_lift import free_basis, lifting

UNIT = ((0.0, 0.0), (1.0, 1.0))
DISK = Disk(0.5, 0.5, 0.4)


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch):
    monkeypatch.setenv("SPLATOP_CACHE", "off")


def bessel_roots(kind, count):
    """Wavenumbers of a disk of radius 1 with values (zeros of J) or slopes (of J') set."""
    zeros = jn_zeros if kind == "value" else jnp_zeros
    every = [zeros(0, 4), *(np.repeat(zeros(m, 3), 2) for m in range(1, 8))]
    every = np.concatenate([[0.0] if kind == "slope" else [], *every])
    return np.sort(every)[:count]


def wavenumbers(shape, kind, anchors, count=12):
    """Of the lowest harmonics, by Gaussians of the unit box's lattice."""
    kinds = tuple((name, kind) for name in shape.edge_names)
    gaussians = lattice(shape, (0.0, 0.0), (1.0, 1.0), (anchors, anchors), kinds)
    basis = build_basis(gaussians, shape, kinds, 1 / (anchors - 1))
    assert basis.laplacian is not None
    return np.sqrt(np.abs(basis.laplacian[:count]))


# --- values, text, edges -------------------------------------------------------------------------


def test_text_gives_shapes_with_named_edges():
    hole = parse_shape("box - disk(0.4, 0.5, 0.15)", box=UNIT)
    assert hole == Difference(Box(*UNIT), Disk(0.4, 0.5, 0.15))
    assert set(hole.edge_names) == {"x0", "x1", "y0", "y1", "disk1"}
    assert hole.sides("outer") == tuple(e for e in hole.edge_names if e != "disk1")
    corner = parse_shape("polygon(0 0, 1 0, 1 0.5, 0.5 0.5, 0.5 1, 0 1)")
    assert corner.sides("polygon1") == tuple(f"polygon1.{k}" for k in range(1, 7))
    # & binds more tightly than -: the second disk is cut off before it is taken away.
    cut = parse_shape("box - disk(0, 0, 0.5) & disk(0.5, 0, 0.5)", box=UNIT)
    assert cut.inside(np.array([[0.1, 0.4], [0.25, 0.2]])).tolist() == [True, False]


def test_text_gives_the_same_shape_again():
    for text in (
        "(disk(0, 0, 1) + box(0, -1, 2, 1)) & disk(1, 0, 1.2) - polygon(0 0, 1e-1 0, 0 .1)",
        "box - (disk(0.4, 0.5, 0.15) + disk(0.6, 0.5, 0.1))",
    ):
        shape = parse_shape(text, box=UNIT)
        assert parse_shape(shape.text()) == shape
        assert shape_from_dict(json.loads(json.dumps(shape_as_dict(shape)))) == shape


@pytest.mark.parametrize(
    ("text", "column", "why"),
    [
        ("disk(0, 0, -1)", 1, "positive radius"),
        ("box - dsk(0, 0, 1)", 7, "did you mean 'disk'"),
        ("disk(0, 0", 10, "','"),
        ("polygon(0 0, 1 1, 1 0, 0 1)", 1, r"sides 1 and 3 that meet at \(0.5, 0.5\)"),
        ("disk(0, 0, 1) disk(1, 1, 1)", 15, "between two shapes"),
        ("disk(__import__, 0, 1)", 6, "a number"),
        ("(disk(0, 0, 1)", 15, "closes"),
        ("", 1, "expected a shape"),
    ],
)
def test_errors_point_at_their_column(text, column, why):
    with pytest.raises(SplatopError, match=f"column {column}: .*{why}"):
        parse_shape(text, box=UNIT)


def test_an_empty_shape_is_refused():
    with pytest.raises(SplatopError, match="it is empty"):
        parse_shape("disk(0, 0, 1) - disk(0, 0, 2)")


def test_conditions_are_said_by_edge():
    shape = parse_shape("box - polygon(0.4 0.4, 0.6 0.4, 0.5 0.6)", box=UNIT)
    periodic, found = parse_boundary(
        "outer: dn(u) = 0; polygon1.1: u = 1; polygon1.2: u = x; polygon1.3: free",
        fields=("u",),
        dims=2,
        shape=shape,
    )
    assert periodic == (False, False)
    assert found["x0", "u"] == Condition("slope")
    assert found["polygon1.1", "u"].value == 1.0
    assert found["polygon1.2", "u"].value == "x"
    with pytest.raises(SplatopError, match=r"none for u at polygon1\.1 \(and 2 more\)"):
        parse_boundary("outer: u = 0", fields=("u",), dims=2, shape=shape)
    domain = domain_from_text("all: u = 0", lengths=(1.0, 1.0), fields=("u",), shape=shape)
    assert Domain.from_dict(json.loads(json.dumps(domain.as_dict()))) == domain
    assert domain.describe(("u",)) == "all: u = 0"


def test_shapes_are_for_two_dimensions():
    with pytest.raises(SplatopError, match="shapes are for 2D data"):
        dataclasses.replace(Domain.box((1.0,) * 3, periodic=(False,) * 3), shape=DISK)
    with pytest.raises(SplatopError, match="periodic axis"):
        dataclasses.replace(Domain.box((1.0, 1.0)), shape=DISK)


@pytest.mark.parametrize(
    ("text", "area"),
    [
        ("disk(0.5, 0.5, 0.4)", np.pi * 0.16),
        ("box - disk(0.4, 0.5, 0.15)", 1 - np.pi * 0.15**2),
        # Two unit disks a unit apart meet in a lens of 2π/3 - √3/2.
        ("disk(0, 0, 1) & disk(1, 0, 1)", 2 * np.pi / 3 - np.sqrt(3) / 2),
        ("disk(0, 0, 1) + box(0, -1, 2, 1)", np.pi / 2 + 4),
        ("box(0, 0, 1, 1) + box(1, 0, 2, 1)", 2.0),  # a shared side is no edge
    ],
)
def test_gauss_points_give_areas_and_moments(text, area):
    shape = parse_shape(text, box=UNIT)
    nodes = quadrature(shape, 0.2, 6)
    assert shape.area == pytest.approx(area, rel=1e-13)
    # Arcs turn by half a radian in a triangle: the map is rational, and Gauss points of degree 11
    # leave its series at 0.5^11 / 11! of the sliver between arc and chord.
    assert nodes.weights.sum() == pytest.approx(area, rel=1e-10)
    assert nodes.weights.min() > 0
    assert shape.inside(nodes.places).all()
    # Gauss: ∮ x² n_x ds / 2 = ∫ x dA, with the edge's own points and normals.
    _, places, normals = edge_points(shape, 0.02, 1.0)
    lengths = sum(edge.piece.length for edge in shape.edges)
    assert np.abs(np.linalg.norm(normals, axis=1) - 1).max() < 1e-12
    outside = places + 1e-4 * normals
    assert shape.inside(outside).mean() < 0.02 + 8 / (lengths / 0.02)  # corners alone


def test_triangles_of_half_the_size_change_eigenvalues_by_less_than_1e_6(monkeypatch):
    from splatop.spaces import shape_basis

    shape = parse_shape("box - disk(0.5, 0.45, 0.2)", box=UNIT)
    coarse = wavenumbers(shape, "value", 12)
    monkeypatch.setattr(shape_basis, "FINE", (1.0, 8, 5))
    assert np.abs(wavenumbers(shape, "value", 12) / coarse - 1).max() < 1e-6


# --- the numbers -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["value", "slope"])
def test_harmonics_of_a_disk_are_bessels(kind):
    exact = bessel_roots(kind, 12) / 0.4
    found = wavenumbers(DISK, kind, 24)
    held = exact > 0
    assert np.abs(found - exact)[held].max() < 1e-7 * exact.max()
    assert np.abs(found[~held]).max(initial=0.0) < 1e-3  # the root of rounding, 1e-9 of 1e3


@pytest.mark.parametrize(
    ("kind", "exact"),
    [
        # Of the L of three unit squares, as published: Betcke and Trefethen 2005; Dauge.
        ("value", [9.6397238440, 15.1972519265, 19.7392088022]),
        ("slope", [1.47562182408, 3.53403136678, 9.86960440109]),
    ],
)
def test_tones_of_an_l_are_those_of_its_singular_corner(kind, exact):
    """7 % and 27 % off without the functions of the corner, at any number of anchors the first."""
    shape = parse_shape("polygon(0 0, 1 0, 1 0.5, 0.5 0.5, 0.5 1, 0 1)", box=UNIT)
    found = wavenumbers(shape, kind, 8, 4)[int(kind == "slope") :][:3] ** 2 / 4
    assert np.abs(found / exact - 1).max() < 2e-6


@pytest.mark.parametrize("kinds", [("value", "value"), ("slope", "value"), ("slope", "slope")])
def test_functions_of_a_corner_obey_its_sides_and_have_their_derivatives(kinds):
    corner = Corner((1.0, 1.0), np.pi / 2, 1.5 * np.pi, kinds, 0.3)
    along, ends = np.linspace(0.05, 0.9, 7), np.ones(7)
    sides = np.stack([ends, 1 + along], axis=1), np.stack([1 + along, ends], axis=1)
    for side, kind, across in zip(sides, kinds, ((1, 0), (0, 1)), strict=True):
        assert np.abs(corner.at(side, (0, 0) if kind == "value" else across)).max() < 1e-12
    places, step = np.random.default_rng(0).uniform(0, 0.9, (5, 2)), 1e-5
    for index, of, way in (((1, 0), (0, 0), 0), ((1, 1), (1, 0), 1), ((0, 2), (0, 1), 1)):
        d = step * np.eye(2)[way]
        differences = (corner.at(places + d, of) - corner.at(places - d, of)) / (2 * step)
        assert np.allclose(corner.at(places, index), differences, rtol=0, atol=1e-6)


def test_functions_of_a_hole_have_their_derivatives():
    hole = Hole((0.6, 0.5), 0.15, 1.5)
    angle = np.linspace(0.1, 6.0, 7)
    places = np.array([0.6, 0.5]) + 0.2 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    step = 1e-4
    for index, below in (((1, 0), (0, 0)), ((0, 1), (0, 0)), ((2, 1), (1, 1)), ((0, 2), (0, 1))):
        ahead = np.array([step if i > j else 0.0 for i, j in zip(index, below, strict=True)])
        slope = (hole.at(places + ahead, below) - hole.at(places - ahead, below)) / (2 * step)
        # Of second order: (n step / r)²/6 of waves and powers up to n = 8.
        assert np.abs(slope - hole.at(places, index)).max() < 1e-5 * np.abs(slope).max()


@pytest.mark.parametrize("kind", ["value", "slope"])
def test_tones_around_a_small_hole_are_bessels(kind):
    """A ring between a disk and a hole of two spacings: J Y' - J' Y vanishes."""
    shape = Difference(Disk(0.5, 0.5, 0.45), Disk(0.5, 0.5, 0.12))
    first, second = (jv, yv) if kind == "value" else (jvp, yvp)

    def misses(k, m):
        return first(m, 0.45 * k) * second(m, 0.12 * k) - first(m, 0.12 * k) * second(m, 0.45 * k)

    grid = np.linspace(0.5, 40.0, 4000)
    exact = [0.0] if kind == "slope" else []
    for m in range(12):
        values = misses(grid, m)
        turns = np.flatnonzero(np.sign(values[1:]) != np.sign(values[:-1]))
        tones = [brentq(misses, grid[n], grid[n + 1], args=(m,)) for n in turns]
        exact += tones * (2 if m else 1)
    exact = np.sort(exact)[:12]
    # Without functions of the hole 16 anchors leave 5e-4 and 2e-3.
    assert np.abs(wavenumbers(shape, kind, 16) - exact).max() < 1e-5 * exact.max()


def test_harmonics_of_one_wavenumber_are_told_apart_alike_everywhere(monkeypatch):
    """What rounding turns on another machine: pairs on a disk, and signs."""
    module = importlib.import_module("splatop.spaces.shape_harmonics")
    domain = Domain(Domain.box((1.0, 1.0), periodic=(False, False)).axes, shape=DISK)
    places = points_inside(DISK, Grid((9, 9), (1.0, 1.0), (0.0, 0.0), ("ends", "ends"))).places
    found, own = module.shape_harmonics(domain, places, 20), module.insulated(domain, 20)
    turned, rng, n = own.combine.copy(), np.random.default_rng(0), 1
    while n < 30:
        pair = own.energies[n + 1] - own.energies[n] < 1e-6 * own.energies[n]
        c, s = np.cos(angle := rng.uniform(0, 6)), np.sin(angle)
        size = 2 if pair else 1
        turned[:, n : n + size] @= np.array([[c, -s], [s, c]]) if pair else -np.eye(1)
        n += size
    monkeypatch.setattr(module, "insulated", lambda *_: replace(own, combine=turned))
    assert np.abs(module.shape_harmonics(domain, places, 20) - found).max() < 1e-9


def test_motz_problem_has_its_published_coefficients():
    """A wall that is held at 0 up to the middle and insulated beyond: slopes grow as r^(-1/2)."""
    shape = parse_shape("polygon(-1 0, 0 0, 1 0, 1 1, -1 1)", box=((-1.0, 0.0), (2.0, 1.0)))
    domain = dataclasses.replace(
        Domain.box((2.0, 1.0), (-1.0, 0.0), periodic=(False, False)), shape=shape
    )
    kinds = tuple(zip(shape.edge_names, ("value", "slope", "value", "slope", "slope"), strict=True))
    sizes = (13, 7)
    names = np.array(edge_points(shape, 1 / 6)[0])
    numbers = lifting(domain, sizes, kinds) @ np.where(names == "polygon1.3", 500.0, 0.0)
    r, angle = np.array([0.02, 0.1, 0.3, 0.3]), np.array([0.3, 2.0, 1.0, 2.8])
    places = np.stack([r * np.cos(angle), r * np.sin(angle)], axis=1)
    found = free_basis(domain, sizes, kinds).evaluate(places, value(2)) @ numbers
    known = (401.1624537452, 87.6559201951, 17.2379150794, -8.0712152597, 1.4402727170)
    exact = sum(a * r ** (k + 0.5) * np.cos((k + 0.5) * angle) for k, a in enumerate(known))
    # Of 500, with 7 anchors across: 0.08.
    assert np.abs(found - exact).max() < 0.2


@pytest.mark.parametrize("kind", ["value", "slope"])
@pytest.mark.parametrize("anchors", [8, 9])
def test_few_anchors_on_a_disk_have_no_mode_that_grows(kind, anchors):
    """With too few points along the edge functions break the conditions between them: the
    Laplacian was then 40 % asymmetric and had eigenvalues up to +290."""
    spacing = 1 / (anchors - 1)
    gaussians = lattice(DISK, (0.0, 0.0), (1.0, 1.0), (anchors, anchors))
    basis = build_basis(gaussians, DISK, (("disk1", kind),), spacing)
    assert basis.asymmetry < 1e-3
    assert basis.laplacian.max() < 1e-6


@pytest.mark.slow
def test_harmonics_of_a_fine_polygon_and_of_a_mask():
    angle = 2 * np.pi * np.arange(100) / 100
    corners = np.stack([0.5 + 0.4 * np.cos(angle), 0.5 + 0.4 * np.sin(angle)], axis=1)
    exact = bessel_roots("value", 12) / 0.4
    # Its area is sin(2π/n) / (2π/n) of the disk's, 6.6e-4 less; wavenumbers are half as much off.
    polygon = Polygon(tuple((float(x), float(y)) for x, y in corners))
    assert np.abs(wavenumbers(polygon, "value", 16) / exact - 1).max() < 1e-3
    shape = disk_of_mask(80, 0.5)
    assert not shape.is_exact
    # A fifth of a cell of the radius, 32 cells.
    assert np.abs(wavenumbers(shape, "value", 16) / exact - 1).max() < 6e-3


def disk_of_mask(n: int, middle: float):
    x = (np.arange(n) + 0.5) / n
    mask = np.hypot(x[:, None] - middle, x - 0.5) <= 0.4
    return shape_of_mask(mask, (float(x[0]),) * 2, (1 / n, 1 / n), *UNIT)


@pytest.mark.slow
def test_the_contour_of_a_mask_comes_closer_with_its_grid():
    """To the disk that it was drawn from, wherever the disk lies between the points."""
    wrong = []
    for n in (40, 80, 160):
        off = []
        for middle in (0.5, 0.507, 0.513):
            edges = [edge for run in disk_of_mask(n, middle).runs for edge in run.edges]
            corners = np.concatenate([edge.piece.at(np.zeros(1)) for edge in edges])
            off.append(np.hypot(*(corners - [middle, 0.5]).T) / 0.4 - 1)
        wrong.append(np.sqrt(np.mean(np.concatenate(off) ** 2)))
    # Steps of a cell, uniform within it, are off by 1/sqrt(12); a kernel of σ cells averages about
    # 3.5 σ of them: 0.1 cells of 16, 32 and 64.
    assert wrong[0] < 1e-2
    assert wrong[1] < 0.6 * wrong[0]
    assert wrong[2] < 0.6 * wrong[1]


def test_a_mask_that_reaches_the_box_ends_at_its_sides():
    n = 40
    x = np.linspace(0, 1, n)
    mask = np.hypot(x[:, None] - 0.5, x - 0.5) > 0.2
    shape = shape_of_mask(mask, (0.0, 0.0), (1 / (n - 1),) * 2, *UNIT)
    assert {"x0", "x1", "y0", "y1"} < set(shape.edge_names)
    assert shape.area == pytest.approx(1 - np.pi * 0.04, abs=5e-3)


@pytest.mark.slow
def test_waves_around_a_hole_from_scattered_points():
    """2,254 random points, waves up to three across: u and u_x at the walls and inside."""
    shape = Difference(Box(*UNIT), Disk(0.5, 0.5, 0.2))
    rng = np.random.default_rng(0)
    drawn = rng.random((4000, 2))
    places = drawn[shape.inside(drawn)][:2254]
    at = Points.of(places, lengths=(1.0, 1.0), origin=(0.0, 0.0))
    domain = Domain(Domain.box((1.0, 1.0), periodic=(False, False)).axes, shape=shape)
    waves = rng.uniform(-2 * np.pi * 1.5, 2 * np.pi * 1.5, (8, 2))
    phase, size = rng.uniform(0, 2 * np.pi, 8), rng.normal(size=8)

    def u(p):
        return np.sin(p @ waves.T + phase) @ size

    def u_x(p):
        return (np.cos(p @ waves.T + phase) * waves[:, 0]) @ size

    basis = shape_basis_of(domain, (20, 20), ())
    rows = basis.evaluate(places, value(2))
    c = np.linalg.pinv(rows, rcond=1e-10) @ u(places)
    _, walls, _ = edge_points(shape, 0.01)
    inside = drawn[shape.distance(drawn) < -0.1][:500]
    dx, _ = gradient(2)
    for where, tolerances in ((walls, (1e-4, 1e-3)), (inside, (1e-6, 1e-5))):
        errors = [
            np.abs(basis.evaluate(where, d) @ c - exact(where)).max() / np.abs(exact(where)).max()
            for d, exact in ((value(2), u), (dx, u_x))
        ]
        assert errors[0] < tolerances[0]
        assert errors[1] < tolerances[1]
    assert len(at.places) == 2254


# --- the space -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def heated():
    """A disk whose two fields have different conditions, one of them not 0."""
    conditions = {
        ("disk1", "u"): Condition("value", "1 + x"),
        ("disk1", "v"): Condition("slope", 0.0),
    }
    domain = Domain(Domain.box((1.0, 1.0), periodic=(False, False)).axes, shape=DISK)
    return ShapeSpace(
        domain.with_conditions(conditions), ("u", "v"), (14, 14), (value(2), laplacian(2))
    )


def test_fields_obey_their_own_conditions(heated):
    _, places, normals = edge_points(DISK, 0.05)
    c = jnp.asarray(np.random.default_rng(0).normal(size=(2, *heated.shape)), jnp.float32)
    c = c.at[:, 20:].set(0.0)
    edge = heated.at(c, places, value(2))
    dx, dy = (heated.at(c, places, d) for d in gradient(2))
    slope = dx * normals[:, 0] + dy * normals[:, 1]
    size, steep = float(jnp.abs(c).max()) / 0.4, float(jnp.abs(dx).max())
    # Between the points at which they are set, conditions hold to the anchors' accuracy.
    assert np.abs(edge[0]).max() < 1e-3 * size < np.abs(edge[1]).max()
    assert np.abs(slope[1]).max() < 1e-2 * steep < np.abs(slope[0]).max()


def test_a_lift_takes_what_is_set(heated):
    names = heated.edge_coordinates("disk1")
    lifted = jnp.asarray(heated.lift({("disk1", "u"): 1 + names["x"]}), jnp.float32)
    _, places, _ = edge_points(DISK, 0.013)
    at = Points.of(places)
    found = np.asarray(heated.lift_evaluate(lifted, at))
    assert np.abs(found[0] - 1 - places[:, 0]).max() < 1e-4
    assert np.abs(found[1]).max() < 1e-6


def test_products_are_projected_onto_the_space(heated):
    """What lies in the space stays as it is."""
    rng = np.random.default_rng(1)
    c = jnp.asarray(rng.normal(size=(2, *heated.shape)), jnp.float32) * 0.9 ** jnp.arange(
        heated.shape[0]
    )
    there = heated.derivatives(c, [value(2)])[value(2)]
    again = heated.project(there)
    width = min(basis.size for basis in heated.bases)
    assert np.abs(again - c)[:, :width].max() < 1e-4 * np.abs(c).max()


def test_the_laplacian_is_a_diagonal(heated):
    rates = heated.diagonal(laplacian(2))
    assert rates is not None
    assert rates.shape == (2, *heated.shape)
    c = jnp.zeros((2, *heated.shape)).at[:, 5].set(1.0)
    found = heated.derivatives(c, [laplacian(2), value(2)])
    for field in (0, 1):
        ratio = np.asarray(found[laplacian(2)][field]), np.asarray(found[value(2)][field])
        assert np.abs(ratio[0] - rates[field, 5] * ratio[1]).max() < 1e-3 * np.abs(ratio[0]).max()
    dx, _ = gradient(2)
    assert heated.diagonal(dx) is None


def test_contradicting_values_are_refused():
    axes = Domain.box((1.0, 1.0), periodic=(False, False)).axes
    domain = Domain(axes, shape=Box(*UNIT)).with_conditions(
        {(f"{a}{k}", "u"): Condition("value", float(a == "x")) for a in "xy" for k in (0, 1)}
    )
    space = ShapeSpace(domain, ("u",), (10, 10))
    edges = {
        (side, "u"): np.full(len(space.edge_coordinates(side)["x"]), float(side[0] == "x"))
        for side in domain.sides
    }
    with pytest.raises(SplatopError, match="agree where two edges meet"):
        space.lift(edges)


def test_too_many_functions_are_refused_with_a_cure(monkeypatch):
    from splatop.spaces import shape_basis

    monkeypatch.setattr(shape_basis, "MOST_FUNCTIONS", 50)
    with pytest.raises(SplatopError, match=r"at most 50 functions .* take fewer anchors"):
        wavenumbers(DISK, "value", 12)


def test_a_basis_is_kept_and_a_damaged_file_made_again(tmp_path, monkeypatch):
    monkeypatch.setenv("SPLATOP_CACHE", str(tmp_path))
    domain = Domain(Domain.box((1.0, 1.0), periodic=(False, False)).axes, shape=Disk(0.5, 0.5, 0.3))
    made = shape_basis_of.__wrapped__(domain, (8, 8), (("disk1", "value"),))
    (file,) = (tmp_path / "shapes").glob("*.npz")
    again = shape_basis_of.__wrapped__(domain, (8, 8), (("disk1", "value"),))
    assert (again.combine == made.combine).all()
    file.write_bytes(file.read_bytes()[:500])
    mended = shape_basis_of.__wrapped__(domain, (8, 8), (("disk1", "value"),))
    assert np.allclose(mended.laplacian, made.laplacian)


# --- points --------------------------------------------------------------------------------------


def test_points_are_a_value_and_know_their_areas():
    rng = np.random.default_rng(0)
    drawn = rng.random((3000, 2)) ** [1.0, 2.0]  # denser near y = 0
    places = drawn[DISK.inside(drawn)]
    at = Points.of(places, lengths=(1.0, 1.0), origin=(0.0, 0.0))
    assert layout_from_json(json.loads(json.dumps(layout_as_json(at)))) == at
    assert (at.places == places).all()
    weights = at.weights(DISK)
    # The mean of y over the disk is 0.5; over the points it is not. Voronoi's cells integrate a
    # linear field to second order in their size, 1/40 of the disk.
    assert abs(places[:, 1].mean() - 0.5) > 0.02
    assert weights @ places[:, 1] == pytest.approx(0.5, abs=2e-3)

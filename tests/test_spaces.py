"""Fields between walls: Gaussians that obey conditions, their harmonics, and equations on them."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from splatop.derivative import along, laplacian, partial, value
from splatop.equation import Advection, Equation, parse_equation
from splatop.equation.boundary import domain_from_text
from splatop.errors import SplatopError
from splatop.exponential import etdrk4_tables
from splatop.grid import Grid
from splatop.solver import solve
from splatop.spaces import BoxSpace, lift, resampled_between, unconstrained
from splatop.spaces.axis import ring, walls
from splatop.spaces.chebyshev import chebyshev
from splatop.walls import Galerkin, solve_between_walls

SET = ("value", "slope")


def harmonics_of_an_interval(ends, count):
    """Square roots of the exact eigenvalues of -d²/dx² on [0, 1]."""
    k = np.arange(1, count + 1)
    shift = {("value", "value"): 0.0, ("slope", "slope"): 1.0}.get(ends, 0.5)
    return (k - shift) * np.pi


@pytest.mark.parametrize("ends", list(itertools.product(SET, SET)))
@pytest.mark.parametrize("anchors", [12, 40, 96])
def test_harmonics_are_those_of_the_interval(ends, anchors):
    found = walls(anchors, ends).laplacian
    assert found is not None
    exact = harmonics_of_an_interval(ends, 8) ** 2
    # Relative to the largest of the eight. Twelve anchors hardly resolve the eighth harmonic.
    allowed = 1e-8 if anchors > 12 else 1e-4
    assert np.abs(-found[:8] - exact).max() < allowed * exact[-1]
    assert found.max() < 1e-7


@pytest.mark.parametrize("ends", list(itertools.product(SET, SET)))
def test_chebyshev_nodes_have_the_same_harmonics(ends):
    found = chebyshev(64, ends).laplacian
    assert found is not None
    exact = harmonics_of_an_interval(ends, 8) ** 2
    assert np.abs(-found[:8] - exact).max() < 1e-9 * exact[-1]


@pytest.mark.parametrize("anchors", [16, 40, 96])
@pytest.mark.parametrize("inflow", [0, 1])
def test_advection_from_an_inflow_is_stable(anchors, inflow):
    ends = ("value", "free") if inflow == 0 else ("free", "value")
    basis = walls(anchors, ends)
    x = basis.points(2)
    sign = -1.0 if inflow == 0 else 1.0
    rates = np.linalg.eigvals(sign * basis.analysis(2) @ basis.evaluate(x, 1))
    # Rounding of the fastest rate, 2 πA.
    assert rates.real.max() < 1e-10 * np.abs(rates).max()
    # The other way round, a value set where the field flows out, is not.
    assert np.linalg.eigvals(-sign * basis.analysis(2) @ basis.evaluate(x, 1)).real.max() > 0


def test_derivatives_up_to_the_wall_from_ordinary_samples():
    rng = np.random.default_rng(0)
    k, a, b = np.linspace(0.5, 10, 10) * np.pi, *rng.normal(size=(2, 10))
    x = np.linspace(0, 1, 161)
    truth = [(a * k**o * np.sin(k * x[:, None] + b + o * np.pi / 2)).sum(1) for o in (0, 1, 2)]
    basis = walls(32, ("free", "free"))
    c = np.linalg.pinv(basis.evaluate(x), rcond=1e-10) @ truth[0]
    for order, allowed in enumerate((1e-8, 1e-6, 1e-5)):
        wrong = np.abs(basis.evaluate(x, order) @ c - truth[order]).max()
        assert wrong < allowed * np.abs(truth[order]).max()


@pytest.mark.parametrize("ends", ["value", "slope"])
def test_few_samples_are_met_by_the_smoothest_field(ends):
    """11 points, 16 functions: of the fields through them one is a sine (a cosine), and the others
    have more energy. Its curvature is right to 1e-4 of 2π² once more than 2π (a wave) is resolved;
    by the least numbers it was off by 200 times itself."""
    domain = domain_from_text(
        "x: u = 0" if ends == "value" else "x: dn(u) = 0", lengths=(1.0,), fields=("u",)
    )
    space = BoxSpace(domain, ("u",), (8,))
    assert space.energies().min() >= 0
    x = np.linspace(0, 1, 11)
    wave = np.sin if ends == "value" else np.cos
    twice = partial(2)
    with jax.enable_x64(True):
        c = space.fit(jnp.asarray(wave(2 * np.pi * x)[None]), space.sampled((11,), ("ends",)))
        curve = np.asarray(space.derivatives(c, [twice])[twice][0])
    at = np.asarray(space.fractions()[0])
    exact = -((2 * np.pi) ** 2) * wave(2 * np.pi * at)
    assert np.abs(curve - exact).max() < 1e-3 * (2 * np.pi) ** 2


def test_ring_functions_are_orthonormal_waves():
    basis = ring(4)
    x = basis.points(2)
    assert np.allclose(basis.analysis(2) @ basis.evaluate(x), np.eye(9), atol=1e-13)
    slopes = basis.evaluate(x, 1)
    assert np.allclose(
        basis.analysis(2) @ basis.evaluate(x, 2), np.diag(basis.laplacian), atol=1e-9
    )
    # d/dx cos = -k sin, d/dx sin = k cos.
    assert np.allclose(slopes[:, 1], -2 * np.pi * basis.evaluate(x)[:, 2])


MIXED = domain_from_text(
    "x0: u = 0, v = 0; x1: dn(u) = 0, v = 0; y: periodic",
    lengths=(2.0, 3.0),
    origin=(1.0, -1.0),
    fields=("u", "v"),
)


def mixed_fields(x, y, dx=0, dy=0):
    """Two fields that obey `MIXED`, and their derivatives."""
    kx, ky = 2.5 * np.pi / 2, 2 * np.pi / 3
    qx = 3 * np.pi / 2
    u = kx**dx * np.sin(kx * (x - 1) + dx * np.pi / 2) * ky**dy * np.cos(ky * y + dy * np.pi / 2)
    v = qx**dx * np.sin(qx * (x - 1) + dx * np.pi / 2) * ky**dy * np.sin(ky * y + dy * np.pi / 2)
    return np.stack([u, v])


@pytest.mark.parametrize("layout", ["ends", "cells", "left"])
def test_a_box_with_a_ring_and_fields_of_different_conditions(layout, x64):
    space = BoxSpace(MIXED, ("u", "v"), (20, 4))
    grid = Grid((50, 12), MIXED.lengths, MIXED.origin, (layout, "left"))
    u = jnp.asarray(mixed_fields(*grid.coordinates()))
    c = space.fit(u, grid.fractions())
    assert np.allclose(space.evaluate(c, grid.fractions()), u, atol=1e-9)
    x, y = space.working_points()
    wanted = [value(2), partial(1, 0), partial(0, 1), partial(1, 1), laplacian(2)]
    found = space.derivatives(c, wanted)
    for d in wanted:
        truth = sum(w * mixed_fields(x[:, None], y, *index) for index, w in d.terms)
        assert np.abs(found[d] - truth).max() < 1e-5 * np.abs(truth).max(), d
    # Projection is the inverse of evaluation, and the Laplacian is a diagonal.
    assert np.allclose(space.project(found[value(2)]), c, atol=1e-9)
    rates = space.diagonal(laplacian(2))
    assert np.allclose(space.project(found[laplacian(2)]), rates * c, atol=1e-6)
    assert space.diagonal(along(0, 2)) is None
    places = np.array([[1.0, 0.3], [3.0, -1.0], [2.2, 1.7]])
    at = space.at(c, places, partial(1, 0))
    assert np.allclose(at, mixed_fields(*places.T, 1, 0), atol=1e-5)


def test_a_lift_takes_what_is_set_at_the_edges():
    domain = domain_from_text(
        "x0: u = sin(pi*y); x1: dn(u) = 0; y: u = 0", lengths=(2.0, 1.0), fields=("u",)
    )
    space = BoxSpace(domain, ("u",), (16, 20))
    y = space.working_points()[1]
    lifted = lift(space, {("x0", "u"): np.sin(np.pi * y)})
    full = unconstrained(space)
    ends = (np.array([0.0, 1.0]), np.linspace(0, 1, 7))
    u = np.asarray(full.evaluate(jnp.asarray(lifted), ends))[0]
    assert np.allclose(u[0], np.sin(np.pi * ends[1]), atol=1e-6)
    slope = full.at(jnp.asarray(lifted), np.array([[2.0, 0.4]]), partial(1, 0))
    assert abs(float(slope[0, 0])) < 1e-4
    with pytest.raises(SplatopError, match="agree where two sides meet"):
        lift(space, {("x0", "u"): np.ones_like(y)})


def test_a_lift_takes_a_slope_beside_values_that_have_one():
    """Where u = sin(x + 0.3) (1 + y) is set at three sides and its slope at the fourth."""
    domain = domain_from_text(
        "x: u = 1; y0: dn(u) = 1; y1: u = 1", lengths=(2.0, 1.0), fields=("u",)
    )
    space = BoxSpace(domain, ("u",), (16, 16))
    x, y = space.working_points()
    lifted = lift(
        space,
        {
            ("x0", "u"): np.sin(0.3) * (1 + y),
            ("x1", "u"): np.sin(2.3) * (1 + y),
            ("y0", "u"): -np.sin(x + 0.3),  # outwards
            ("y1", "u"): 2 * np.sin(x + 0.3),
        },
    )
    at = np.array([0.2, 0.9, 1.6])
    places = np.stack([at, np.zeros(3)], axis=1)
    slope = unconstrained(space).at(jnp.asarray(lifted), places, partial(0, 1))[0]
    # Gaussians hold sines to 1e-6; a slope over a spacing of 1/15, in single precision, to 1e-4.
    assert np.allclose(slope, np.sin(at + 0.3), atol=1e-3)


HEAT = parse_equation("dt(u) = D*lap(u)", dims=1)


def steps_of_phi(scheme, u0, along, *, dt, frames, coefficients, substeps=1):
    """Frames by exponential steps in the space."""
    lifted = scheme.lifted(coefficients)
    c = scheme.enter(jnp.asarray(u0), along, lifted)
    tables = scheme.tables(dt / substeps, coefficients)
    step = jax.jit(
        lambda c: scheme.exponential_step(c, tables, coefficients, lifted, dt / substeps)
    )
    found = []
    for _ in range(frames):
        for _ in range(substeps):
            c = step(c)
        found.append(np.asarray(scheme.leave(c, along, lifted)))
    return np.stack(found)


def test_heat_between_a_given_value_and_a_given_slope(x64):
    domain = domain_from_text(
        "x0: u = 1; x1: dn(u) = q", lengths=(2.0,), origin=(1.0,), fields=("u",)
    )
    grid = Grid((41,), (2.0,), (1.0,), ("ends",))
    (x,) = grid.coordinates()

    def exact(t):
        k = 2.5 * np.pi / 2
        return (1 + 0.5 * (x - 1) + 0.7 * np.exp(-0.1 * k**2 * t) * np.sin(k * (x - 1)))[None]

    numbers = {"D": 0.1, "q": 0.5}
    scheme = Galerkin(HEAT, BoxSpace(domain, ("u",), (16,)))
    found = steps_of_phi(
        scheme, exact(0), grid.fractions(), dt=0.05, frames=20, coefficients=numbers
    )
    frames, _ = solve_between_walls(
        HEAT, numbers, exact(0), domain=domain, grid=grid, dt=0.05, steps=20
    )
    for n in (1, 20):
        assert np.abs(found[n - 1] - exact(0.05 * n)).max() < 1e-6
        assert np.abs(frames[n] - exact(0.05 * n)).max() < 1e-8


def test_burgers_between_walls_is_half_of_an_odd_periodic_one(x64):
    equation = parse_equation("dt(u) = -u*dx(u) + nu*d2x(u)", dims=1)
    domain = domain_from_text("x: u = 0", lengths=(1.0,), fields=("u",))
    grid = Grid((101,), (1.0,), layout=("ends",))
    (x,) = grid.coordinates()
    u0 = np.sin(2 * np.pi * x) + 0.5 * np.sin(np.pi * x)
    whole = np.concatenate([u0, -u0[-2:0:-1]])[None]
    truth, _ = solve(equation, {"nu": 0.02}, whole, lengths=(2.0,), dt=0.02, steps=10)
    frames, _ = solve_between_walls(
        equation, {"nu": 0.02}, u0[None], domain=domain, grid=grid, dt=0.02, steps=10
    )
    scheme = Galerkin(equation, BoxSpace(domain, ("u",), (40,)))
    found = steps_of_phi(
        scheme,
        u0[None],
        grid.fractions(),
        dt=0.02,
        frames=10,
        coefficients={"nu": 0.02},
        substeps=4,
    )
    size = np.linalg.norm(truth[10, 0, :101])
    assert np.linalg.norm(frames[10, 0] - truth[10, 0, :101]) < 1e-6 * size
    assert np.linalg.norm(found[9, 0] - truth[10, 0, :101]) < 1e-4 * size


def test_nothing_comes_back_when_a_pulse_leaves(x64):
    equation = parse_equation("dt(u) = -v*dx(u)", dims=1)
    domain = domain_from_text("x0: u = 0; x1: free", lengths=(1.0,), fields=("u",))
    grid = Grid((160,), (1.0,), layout=("ends",))
    (x,) = grid.coordinates()
    u0 = np.exp(-((x - 0.35) ** 2) / 2 / 0.06**2)[None]
    scheme = Galerkin(equation, BoxSpace(domain, ("u",), (40,)))
    found = steps_of_phi(
        scheme, u0, grid.fractions(), dt=0.02, frames=100, coefficients={"v": 1.0}, substeps=4
    )
    inside = np.exp(-((x - 0.35 - 0.4) ** 2) / 2 / 0.06**2)
    assert np.abs(found[19, 0] - inside).max() < 1e-4
    assert np.sum(found[-1] ** 2) < 1e-10 * np.sum(u0**2)


def test_tables_of_traced_rates_are_those_of_known_ones():
    rates = -np.array([0.0, 1e-3, 0.5, 7.0, 300.0])
    known = etdrk4_tables(rates, 1.0)
    traced = jax.jit(lambda z: etdrk4_tables(z, 1.0))(jnp.asarray(rates, jnp.float32))
    for a, b in zip(known, traced, strict=True):
        # Contour sums in single precision: 32 points of size up to e^1.
        assert np.allclose(np.real(a), np.real(b), atol=3e-6)


@pytest.mark.parametrize("layout", [("ends", "left"), ("cells", "left")])
def test_a_sampled_velocity_between_walls_is_the_one_in_coordinates(layout, x64):
    domain = domain_from_text("x0: u = 0; x1: free; y: periodic", lengths=(2.0, 1.0), fields=("u",))
    space = BoxSpace(domain, ("u",), (16, 6))
    c = jnp.asarray(np.random.default_rng(0).standard_normal((1, *space.shape)))
    x, y = Grid((40, 24), (2.0, 1.0), layout=layout).coordinates()
    given = jnp.asarray(np.stack([1 + x * np.cos(2 * np.pi * y), -(x**2) + 0 * y]))
    written = parse_equation(
        "dt(u) = -v*((1 + x*cos(2*pi*y))*dx(u) - x^2*dy(u))", dims=2, fields=("u",)
    )
    sampled = Equation((Advection(given, layout=layout),))
    one, other = (
        Galerkin(equation, space).tendency(c, {"v": 0.3}) for equation in (written, sampled)
    )
    # 20 Gaussians through 40 samples hold a parabola to 1e-7.
    assert np.abs(one - other).max() < 1e-5 * np.abs(one).max()
    with pytest.raises(SplatopError, match="where the samples of a velocity lie"):
        Galerkin(Equation((Advection(given),)), space).tendency(c, {"v": 0.3})


def test_samples_at_scattered_points_are_those_of_the_grid():
    x, y = Grid((30, 20), (1.0, 1.0), layout=("ends", "cells")).coordinates()
    places = np.random.default_rng(1).random((2, 9))
    found = resampled_between(
        jnp.asarray(np.sin(2 * x) * y)[None],
        ("ends", "cells"),
        tuple(map(tuple, places.tolist())),
        scattered=True,
    )
    assert np.abs(found[0] - np.sin(2 * places[0]) * places[1]).max() < 1e-5

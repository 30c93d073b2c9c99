"""Inverse Laplacians with conditions of their own: stream functions between walls and on a disk."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from splatop import Domain, SplatopError, parse_equation, rollout
from splatop.derivative import inverse_laplacian, partial, value
from splatop.equation import domain_from_text
from splatop.grid import Grid
from splatop.integrators import ETDRK4
from splatop.shapes import Disk
from splatop.solver import solve
from splatop.spaces import BoxSpace, ShapeSpace
from splatop.walls import Galerkin, WallPhysics, check_conditions, solve_between_walls

INVERSE = inverse_laplacian(2)
SLOPE = partial(1, 0) @ INVERSE
VORTICITY = parse_equation(
    "dt(w) = dy(invlap(w))*dx(w) - dx(invlap(w))*dy(w) + nu*lap(w)", dims=2, fields=("w",)
)


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield


def box(text: str, lengths=(1.0, 1.0)) -> Domain:
    return domain_from_text(text, lengths=lengths, fields=("w",))


@pytest.mark.parametrize("between", ["gaussians", "chebyshev"])
def test_a_stream_function_between_walls(between, x64):
    """ψ = sin(πx/2) (y² - 2y) is 0 at three sides and flat at the fourth."""
    domain = box(
        "all: free; x: invlap(w) = 0; y0: invlap(w) = 0; y1: dn(invlap(w)) = 0", (2.0, 1.0)
    )
    space = BoxSpace(domain, ("w",), (24, 24), between=between)
    x, y = np.meshgrid(*space.working_points(), indexing="ij")
    wave, across = np.sin(np.pi * x / 2), y**2 - 2 * y
    c = space.project(jnp.asarray(-((np.pi / 2) ** 2) * wave * across + 2 * wave)[None])
    found = space.derivatives(c, [INVERSE, SLOPE])
    # 24 Gaussians hold half a wave to 1e-9; a slope is less by the wavenumber of the spacing, 24 π.
    assert np.abs(found[INVERSE][0] - wave * across).max() < 1e-8
    slope = np.pi / 2 * np.cos(np.pi * x / 2) * across
    assert np.abs(found[SLOPE][0] - slope).max() < 1e-6


def test_what_is_set_for_a_stream_function_is_where_it_ends(x64):
    """Without vorticity it is the harmonic x² - y², whatever coefficient says so."""
    text = "all: free; x0: invlap(w) = -y^2; x1: invlap(w) = nu - y^2; y0: invlap(w) = x^2; "
    scheme = Galerkin(VORTICITY, BoxSpace(box(text + "y1: dn(invlap(w)) = -2"), ("w",), (20, 20)))
    x, y = np.meshgrid(*scheme.space.working_points(), indexing="ij")
    jet = scheme.jet(jnp.zeros((1, *scheme.space.shape)), [INVERSE, SLOPE], None, {"nu": 1.0})
    # Polynomials are no combination of 20 Gaussians, but for 1e-6.
    assert np.abs(jet[INVERSE][0] - x**2 + y**2).max() < 1e-5
    assert np.abs(jet[SLOPE][0] - 2 * x).max() < 1e-4


def test_a_stream_function_on_a_disk(x64):
    """Of w = R² - r², with x at the edge: ψ = (4 R² r² - r⁴ - 3 R⁴) / 16 + x."""
    domain = domain_from_text(
        "disk1: w = 0, invlap(w) = x",
        lengths=(1.0, 1.0),
        origin=(-0.5, -0.5),
        fields=("w",),
        shape=Disk(0.0, 0.0, 0.4),
    )
    space = ShapeSpace(domain, ("w",), (12, 12), (value(2), INVERSE, SLOPE))
    x, y = space.working_points()
    square = x**2 + y**2
    jet = Galerkin(VORTICITY, space).jet(
        space.project(jnp.asarray(0.16 - square)[None]), [INVERSE, SLOPE], None, {}
    )
    exact = (0.64 * square - square**2 - 3 * 0.16**2) / 16 + x
    # 12 anchors, 3 of them across the radius, leave 1e-6 of such fields at the edge.
    assert np.abs(jet[INVERSE][0] - exact).max() < 1e-5
    assert np.abs(jet[SLOPE][0] - x * (0.08 - square / 4) - 1).max() < 1e-3


def test_vorticity_between_slippery_walls_is_a_quarter_of_an_odd_periodic_one(x64):
    n, nu, dt = 24, 0.005, 0.05
    grid = Grid((n + 1, n + 1), (1.0, 1.0), layout=("ends", "ends"))
    x, y = grid.coordinates()
    # Harmonics of different eigenvalues: of one, ψ would be as w, and nothing carried.
    w0 = np.sin(np.pi * x) * (12 * np.sin(np.pi * y) - 16 * np.cos(np.pi * x) * np.sin(np.pi * y))
    odd = np.concatenate([w0, -w0[-2:0:-1]])
    odd = np.concatenate([odd, -odd[:, -2:0:-1]], axis=1)
    truth, _ = solve(VORTICITY, {"nu": nu}, odd[None], lengths=(2.0, 2.0), dt=dt, steps=6)
    truth = truth[6, 0, : n + 1, : n + 1]
    domain = box("all: w = 0, invlap(w) = 0")
    frames, _ = solve_between_walls(
        VORTICITY, {"nu": nu}, w0[None], domain=domain, grid=grid, dt=dt, steps=6
    )
    space = BoxSpace(domain, ("w",), (12, 12))
    physics = WallPhysics(VORTICITY, space, ("ends", "ends"), dt, ETDRK4(2))
    states = rollout(physics, jnp.asarray(w0)[None], {"nu": nu}, steps=6)
    moved = np.linalg.norm(truth - w0)
    assert moved > 0.1 * np.linalg.norm(w0)  # decay alone takes 1 - exp(-5 π² nu 6 dt) = 7 %
    # 48 points around the ring hold the third power of two waves to 3e-5.
    assert np.linalg.norm(frames[6, 0] - truth) < 1e-4 * moved
    assert np.linalg.norm(np.asarray(states[5, 0]) - truth) < 1e-4 * moved


@pytest.mark.parametrize(
    ("boundary", "says"),
    [
        ("all: w = 0", r"condition for invlap\(w\) at each edge.*none at x0"),
        ("all: w = 0; x: invlap(w) = 0", "none at y0"),
    ],
)
def test_an_inverse_laplacian_needs_its_own_conditions(boundary, says):
    with pytest.raises(SplatopError, match=says):
        check_conditions(VORTICITY, box(boundary))
    with pytest.raises(SplatopError, match=says):  # also the reference solver, with all its spaces
        Galerkin(VORTICITY, BoxSpace(box(boundary), ("w",), (8, 8)))


def test_conditions_of_an_inverse_laplacian_that_no_term_has():
    heat = parse_equation("dt(w) = nu*lap(w)", dims=2, fields=("w",))
    with pytest.raises(SplatopError, match=r"expected conditions for w.*got 'x0: invlap\(w\) = 0'"):
        check_conditions(heat, box("all: w = 0, invlap(w) = 0"))

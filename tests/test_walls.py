"""From data between walls to a surrogate: what holds on a periodic box holds there too."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import splatop
from splatop.benchmarks import BENCHMARKS
from splatop.data import ArrayTrajectories, generate
from splatop.equation import parse_equation
from splatop.equation.boundary import domain_from_text
from splatop.errors import SplatopError
from splatop.grid import Grid
from splatop.identify import identify_trajectories
from splatop.integrators import ETDRK4, RK4
from splatop.model import build_model
from splatop.numerics import build_physics
from splatop.operators import FNO
from splatop.operators.harmonic import HarmonicOperator
from splatop.operators.padded import PaddedFNO
from splatop.spaces import energy_spectrum
from splatop.tune import choose_numerics
from splatop.walls import check_conditions, check_flow, solve_between_walls

WALLED = [
    name for name, benchmark in BENCHMARKS.items() if benchmark.boundary and not benchmark.shape
]
D = 0.05


def heat(x, y, t):
    """Cold walls in x, insulated ones in y, on [0, 2] x [1, 2]: two modes that decay."""
    one = np.sin(np.pi * x / 2) * np.cos(np.pi * (y - 1)) * np.exp(-D * 1.25 * np.pi**2 * t)
    two = np.sin(np.pi * x) * np.exp(-D * np.pi**2 * t)
    return one + 0.5 * two


def heat_frames(layout, *, points=(40, 32), frames=12, dt=0.05, noise=0.0):
    grid = Grid(points, (2.0, 1.0), (0.0, 1.0), layout)
    x, y = grid.coordinates()
    array = np.stack([heat(x, y, dt * n) for n in range(frames)])[None, :, None]
    array = array + noise * np.random.default_rng(0).normal(size=array.shape)
    data = ArrayTrajectories(array, grid, dt=dt, fields=("u",))
    data.domain = domain_from_text(
        "x: u = 0; y: dn(u) = 0", lengths=grid.lengths, origin=grid.origin, fields=("u",)
    )
    return data


HEAT = parse_equation("dt(u) = D*lap(u)", dims=2)


@pytest.mark.parametrize("layout", [("ends", "cells"), ("cells", "ends"), ("left", "left")])
def test_chosen_numerics_follow_an_analytic_solution(layout):
    data = heat_frames(layout)
    tuned = choose_numerics(
        HEAT,
        {"D": D},
        data.array[0],
        lengths=data.grid.lengths,
        dt=data.dt,
        domain=data.domain,
        layout=layout,
    )
    physics = build_physics(HEAT, tuned.numerics, domain=data.domain, layout=layout, dt=data.dt)
    states = splatop.rollout(physics, jnp.asarray(data.array[0, 0]), {"D": D}, steps=11)
    wrong = np.linalg.norm(states[-1] - data.array[0, -1]) / np.linalg.norm(data.array[0, -1])
    assert wrong < 1e-5  # a few rounding errors of float32, eleven times over


@pytest.mark.slow
@pytest.mark.parametrize("integrator", [RK4(8), ETDRK4(1)])
def test_both_integrators_agree_and_are_differentiable(integrator):
    data = heat_frames(("ends", "ends"))
    equation = parse_equation("dt(u) = D*lap(u) - r*u^3", dims=2)
    tuned = choose_numerics(
        equation,
        {"D": D, "r": 1.0},
        data.array[0],
        lengths=data.grid.lengths,
        dt=data.dt,
        domain=data.domain,
        layout=("ends", "ends"),
    )
    physics = build_physics(
        equation, tuned.numerics, domain=data.domain, layout=("ends", "ends"), dt=data.dt
    )
    fine = eqx.tree_at(lambda p: p.integrator, physics, RK4(40), is_leaf=lambda x: x is None)
    own = eqx.tree_at(lambda p: p.integrator, physics, integrator, is_leaf=lambda x: x is None)
    u = jnp.asarray(data.array[0, 0])
    assert np.allclose(own(u, {"D": D, "r": 1.0}), fine(u, {"D": D, "r": 1.0}), atol=2e-6)

    def size(d):
        return jnp.sum(own(u, {"D": d, "r": 1.0}) ** 2)

    slope = float(jax.grad(size)(jnp.asarray(D)))
    step = 1e-3
    about = float(size(jnp.asarray(D + step)) - size(jnp.asarray(D - step))) / (2 * step)
    assert slope == pytest.approx(about, rel=2e-3)
    assert slope < 0  # more diffusion, less energy


def test_the_mean_is_kept_between_insulated_walls():
    benchmark = BENCHMARKS["allen_cahn2d_insulated"]
    equation = parse_equation("dt(u) = nu*lap(u)", dims=2)
    grid = Grid((40, 40), (1.0, 1.0), layout=("cells", "cells"))
    x, y = grid.coordinates()
    u0 = 1 + np.cos(np.pi * x) * np.cos(2 * np.pi * y) + 0.3 * np.cos(3 * np.pi * x)
    physics = build_physics(
        equation,
        splatop.Numerics("none", (), 0.0, (16, 16), 1, integrator="etdrk4"),
        domain=benchmark.domain,
        layout=grid.layout,
        dt=0.1,
    )
    states = splatop.rollout(physics, jnp.asarray(u0[None], jnp.float32), {"nu": 1e-2}, steps=200)
    # 200 frames of float32 rounding: measured 2e-6.
    assert abs(float(jnp.mean(states[-1])) - u0.mean()) < 1e-5


@pytest.mark.parametrize(
    ("text", "boundary", "says"),
    [
        ("dt(u) = D*lap(u)", "x0: u = 0; x1: free; y: u = 0", "x1: dn(u) = 0"),
        ("dt(u) = D*lap(u)", "all: free", "window cut out of something larger"),
        ("dt(u) = -v*dx(u) + 0*u", "x: u = 0; y: free", "one end of x"),
        ("dt(u) = D*lap(u)", "x: u = hot; y: u = 0", "write its number"),
    ],
)
def test_conditions_that_an_equation_cannot_bear(text, boundary, says):
    domain = domain_from_text(boundary, lengths=(1.0, 1.0), fields=("u",))
    with pytest.raises(SplatopError, match=says.replace("(", r"\(").replace(")", r"\)")):
        check_conditions(parse_equation(text, dims=2), domain)


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_the_coefficient_behind_frames(noise):
    data = heat_frames(("cells", "ends"), frames=40, noise=noise)
    (found,) = identify_trajectories(HEAT, None, data)
    assert found.trusted, found.warnings
    assert found.estimates["D"] == pytest.approx(D, rel=1e-4 if noise == 0 else 0.02)
    low, high = found.intervals["D"]
    assert low <= D <= high
    # Neither is it vague.
    assert high - low < (1e-3 if noise == 0 else 0.1) * D


def test_a_wrong_equation_between_walls_is_not_trusted():
    data = heat_frames(("cells", "ends"), frames=40)
    wrong = parse_equation("dt(u) = -c*u*dx(u)  - r*u", dims=2)
    domain = domain_from_text(
        "x0: u = 0; x1: free; y: free", lengths=(2.0, 1.0), origin=(0.0, 1.0), fields=("u",)
    )
    data.domain = domain
    (found,) = identify_trajectories(wrong, None, data)
    assert not found.trusted


def test_energy_by_harmonic_between_walls():
    grid = Grid((33, 20), (1.0, 2.0), layout=("ends", "left"))
    x, y = grid.coordinates()
    domain = domain_from_text("x: dn(u) = 0; y: periodic", lengths=(1.0, 2.0), fields=("u",))
    u = jnp.asarray((np.cos(3 * np.pi * x) * np.cos(2 * np.pi * 2 * y / 2))[None])
    energy = np.asarray(energy_spectrum(u, domain, grid.layout))
    # 1.5 cycles per unit and 1 cycle per unit: 3 and 2 per longest side, |q| = 3.6.
    assert energy.argmax() == 4
    assert energy[4] == pytest.approx(0.25, rel=1e-3)
    assert energy.sum() == pytest.approx(0.25, rel=1e-3)


@pytest.mark.parametrize("layout", ["ends", "cells"])
def test_the_harmonic_operator_is_the_same_function_on_finer_grids(layout):
    network = HarmonicOperator(
        1,
        closed=(False, True),
        layout=(layout, "left"),
        hidden=4,
        modes=4,
        blocks=2,
        key=jax.random.key(0),
        zero_projection=False,
    )

    def at(points):
        grid = Grid(points, (1.0, 1.0), layout=(layout, "left"))
        x, y = grid.coordinates()
        u = np.cos(np.pi * x) * np.cos(2 * np.pi * y) + 0 * y
        return np.asarray(network(jnp.asarray(u[None], jnp.float32)))[0]

    coarse, fine = at((33, 16)), at((65, 32))
    if layout == "ends":
        assert np.abs(coarse - fine[::2, ::2]).max() < 0.02 * np.abs(fine).max()
    assert np.isfinite(coarse).all()
    with pytest.raises(SplatopError, match="coarser than the model's modes"):
        at((3, 16))


@pytest.mark.parametrize("name", WALLED)
def test_every_benchmark_between_walls_can_be_built(name):
    benchmark = BENCHMARKS[name]
    check_conditions(benchmark.equation, benchmark.domain)
    assert benchmark.grid.layout == benchmark.layout
    assert parse_equation(benchmark.equation_text, dims=benchmark.dims).fields == benchmark.fields


def test_fit_save_load_and_export_between_walls(tmp_path):
    data = heat_frames(("cells", "ends"), points=(24, 24), frames=20)
    fitted = splatop.fit(
        data,
        "dt(u) = D*lap(u)",
        preset="smoke",
        settings={"phases": "0:3", "modes": 4, "batch": 2},
    )
    assert fitted.coefficients["D"] == pytest.approx(D, rel=1e-3)
    metrics = fitted.evaluate()
    assert metrics.rl2_mean < 1e-4
    path = fitted.save(tmp_path / "model.safetensors")
    loaded = splatop.load(path)
    assert loaded.spec.domain == data.domain
    assert loaded.spec.layout == ("cells", "ends")
    u = jnp.asarray(data.array[0, 0])
    assert np.array_equal(loaded.step(u), fitted.model.step(u))
    other = heat_frames(("ends", "ends"), points=(24, 24), frames=20)
    with pytest.raises(SplatopError, match="points that lie"):
        fitted.evaluate(other)


def test_the_operator_between_walls_sees_slopes_and_no_wall_beyond():
    """Zeros beyond the far end: the answer there does not depend on what lies at the near one
    around the corner, as it would on a ring."""
    fno = FNO(1, 1, hidden=6, modes=8, blocks=2, key=jax.random.key(0), zero_projection=False)
    network = PaddedFNO(fno, (False,))
    u = jnp.sin(3 * jnp.linspace(0, 1, 32))[None]
    out = network(u)
    assert out.shape == u.shape
    assert np.allclose(out, fno(jnp.pad(u, ((0, 0), (0, 4))))[:, :32])
    assert not np.allclose(out, fno(u), atol=1e-3)
    assert np.array_equal(PaddedFNO(fno, (True,))(u), fno(u))
    # What mirrors the field does not mirror the answer, which multipliers of cosines do.
    assert not np.allclose(network(u[:, ::-1])[:, ::-1], out, atol=1e-3)


@pytest.mark.parametrize(
    ("boundary", "kind"),
    [("x: u = 0; y: dn(u) = 0", PaddedFNO), ("all: dn(u) = 0", HarmonicOperator)],
)
def test_a_walled_surrogate_has_cosines_between_insulated_walls_else_a_padded_box(boundary, kind):
    data = heat_frames(("ends", "ends"))
    grid = data.grid
    place = {"lengths": grid.lengths, "origin": grid.origin, "fields": ("u",)}
    spec = splatop.model.ModelSpec(
        kind="surrogate",
        equation="dt(u) = D*lap(u)",
        fields=("u",),
        lengths=(2.0, 1.0),
        dt=0.05,
        numerics=splatop.Numerics("none", (), 0.0, (12, 12), 1),
        coefficients={"D": D},
        modes=4,
        domain=domain_from_text(boundary, **place),
        layout=("ends", "ends"),
    )
    stepper = build_model(spec)
    assert isinstance(stepper.network, kind)
    u = jnp.asarray(data.array[0, 0])
    # Its projection starts at zero: an untrained one is its physics.
    assert np.array_equal(stepper(u, {"D": D}), stepper.physics(u, {"D": D}))


@pytest.mark.slow
@pytest.mark.parametrize("name", WALLED)
def test_physics_alone_follows_the_reference(name):
    """Published figures are in docs/walls.md; here a bound for a short rollout of each."""
    benchmark = BENCHMARKS[name]
    data = generate(benchmark, split="test", trajectories=1, steps=20)
    frames = data.array[0, ::4]
    tuned = choose_numerics(
        benchmark.equation,
        benchmark.coefficients,
        frames,
        lengths=benchmark.lengths,
        dt=benchmark.dt,
        domain=benchmark.domain,
        layout=benchmark.layout,
    )
    physics = build_physics(
        benchmark.equation,
        tuned.numerics,
        domain=benchmark.domain,
        layout=benchmark.layout,
        dt=benchmark.dt,
    )
    states = splatop.rollout(
        physics, jnp.asarray(data.array[0, 0]), benchmark.coefficients, steps=20
    )
    wrong = np.linalg.norm(states[-1] - data.array[0, -1]) / np.linalg.norm(data.array[0, -1])
    assert wrong < 1e-4


@pytest.mark.slow
def test_py_pde_agrees_between_walls():
    """A peer's finite volumes of second order: the error is theirs, and falls as they refine."""
    pde = pytest.importorskip("pde")
    errors = []
    for n in (32, 64):
        grid = pde.CartesianGrid([[0, 1]], [n])
        x = grid.axes_coords[0]
        start = np.sin(np.pi * x) + 0.5 * np.sin(2 * np.pi * x)
        field = pde.ScalarField(grid, start)
        equation = pde.PDE({"u": "0.02 * laplace(u) - u * d_dx(u)"}, bc={"value": 0})
        theirs = equation.solve(field, t_range=0.2, dt=2e-4, tracker=None, backend="numpy").data
        own = parse_equation("dt(u) = D*d2x(u) - u*dx(u)", dims=1)
        domain = domain_from_text("x: u = 0", lengths=(1.0,), fields=("u",))
        physics = build_physics(
            own,
            splatop.Numerics("none", (), 0.0, (16,), 4, integrator="etdrk4"),
            domain=domain,
            layout=("cells",),
            dt=0.05,
        )
        states = splatop.rollout(
            physics, jnp.asarray(start[None], jnp.float32), {"D": 0.02}, steps=4
        )
        errors.append(np.linalg.norm(states[-1, 0] - theirs) / np.linalg.norm(theirs))
    assert errors[1] < 5e-3
    assert errors[1] < errors[0] / 2.5  # second order: a factor of 4


@pytest.mark.slow
def test_conditions_differ_by_field():
    domain = domain_from_text(
        "x0: u = 0, v = 1; x1: dn(u) = 0, v = 0", lengths=(1.0,), fields=("u", "v")
    )
    equation = parse_equation("dt(u) = d2x(u) + v; dt(v) = d2x(v)", dims=1)
    physics = build_physics(
        equation,
        splatop.Numerics("none", (), 0.0, (16,), 1, integrator="etdrk4"),
        domain=domain,
        layout=("ends",),
        dt=1.0,
    )
    x = np.linspace(0, 1, 33)
    u = jnp.asarray(np.stack([0 * x, 1 - x]), jnp.float32)
    for _ in range(20):
        u = physics(u, {})
    # v stays 1 - x; u'' = x - 1 with u(0) = 0, u'(1) = 0 gives u = x/2 - x²/2 + x³/6.
    assert np.allclose(u[1], 1 - x, atol=1e-4)
    assert np.allclose(u[0], x / 2 - x**2 / 2 + x**3 / 6, atol=1e-4)


def test_pairs_of_conditions_all_build():
    for low, high in itertools.product(("u = 0", "dn(u) = 0"), repeat=2):
        domain = domain_from_text(f"x0: {low}; x1: {high}", lengths=(1.0,), fields=("u",))
        check_conditions(parse_equation("dt(u) = d2x(u)", dims=1), domain)


def test_terms_are_found_between_walls():
    """Heat between cold walls and with one insulated, exactly: of 8 candidates the right one."""
    x, t = np.linspace(0, 1, 65), 0.02 * np.arange(25)
    for boundary, waves in (("x: u = 0", (1, 2, 3)), ("x0: u = 0; x1: dn(u) = 0", (0.5, 1.5, 2.5))):
        u = sum(
            np.exp(-0.05 * (k * np.pi) ** 2 * t)[:, None] * np.sin(k * np.pi * x) / k for k in waves
        )
        found = splatop.discover(
            u[:, None].astype(np.float32),
            "dt(u) = ?",
            terms="u, u^2, u^3, dx(u), d2x(u), d3x(u), u*dx(u), d4x(u)",
            dt=0.02,
            lengths=(1.0,),
            boundary=boundary,
            sampling="ends",
        )
        assert [one.sides for one in found.terms] == [(("u", "d2x(u)"),)]
        assert found.trusted, found.warnings
        assert abs(found.terms[0].coefficient / 0.05 - 1) < 1e-4


@pytest.mark.parametrize(
    ("text", "boundary", "says"),
    [
        ("dt(u) = -v*dx(u)", "x0: free; x1: u = 0", "condition for u at x0, where it flows in"),
        ("dt(u) = v*dx(u)", "x0: u = 0; x1: free", "condition for u at x1, where it flows in"),
        ("dt(u) = -v*dx(u)", "x: free", "condition for u at x0, where it flows in"),
        ("dt(u) = -v*dx(u)", "x: u = 0", "at one end of x alone"),
        ("dt(u) = v*lap(u)", "x0: free; x1: u = 0", "condition for u at x0, because"),
        ("dt(u) = -v*bilap(u)", "x: u = 0", "up to the second between two ends, got order 4"),
    ],
)
def test_what_has_no_one_solution_is_not_solved(text, boundary, says):
    """The reference solver made data of all of these."""
    domain = domain_from_text(boundary, lengths=(1.0,), fields=("u",))
    grid = Grid((17,), (1.0,), layout=("ends",))
    with pytest.raises(SplatopError, match=says):
        solve_between_walls(
            parse_equation(text, dims=1),
            {"v": 0.3},
            np.zeros((1, 17)),
            domain=domain,
            grid=grid,
            dt=0.1,
            steps=1,
        )


def test_transport_is_asked_where_it_flows_in():
    """By the choice of numerics as well, which knows the speed; a product tells nothing."""
    domain = domain_from_text("x0: u = 0; x1: free", lengths=(1.0,), fields=("u",))
    check_flow(parse_equation("dt(u) = -v*dx(u)", dims=1), domain, {"v": 0.3})
    check_flow(parse_equation("dt(u) = v*dx(u)", dims=1), domain, {})
    check_flow(parse_equation("dt(u) = v*dx(u) - u*dx(u)", dims=1), domain, {"v": 0.3})
    with pytest.raises(SplatopError, match=r"speed of -0.3 along x"):
        check_flow(parse_equation("dt(u) = v*dx(u)", dims=1), domain, {"v": 0.3})

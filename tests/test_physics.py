"""The embedded physics Φ against exact solutions, exponax, and itself on other grids."""

import math

import equinox as eqx
import exponax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from oracles import random_field, relative, wave
from splatop.benchmarks import BENCHMARKS
from splatop.data.reference import reference_stepper
from splatop.derivative import bilaplacian, gradient, laplacian, partial
from splatop.encoders import LatticeEncoder
from splatop.equation import (
    Advection,
    ConservativeSelfAdvection,
    CustomTerm,
    Diffusion,
    Equation,
    Reaction,
    SelfAdvection,
    parse_equation,
)
from splatop.errors import SplatopError
from splatop.finite_differences import FiniteDifferenceJets
from splatop.grid import Grid
from splatop.integrators import ETDRK4, RK4
from splatop.jets import SpectralJets, SplatJets
from splatop.physics import EmbeddedPhysics
from splatop.render import LocalRenderer
from splatop.spectral import PassThrough, SharpFilter, SmoothFilter, resample, to_modes
from splatop.stability import RK4_REACH, spectral_radius
from splatop.stepper import rollout

UNIT = (1.0, 1.0)
ADVECTION = Equation((Advection(),))
DIFFUSION = Equation((Diffusion(),))
BURGERS = Equation((SelfAdvection(), Diffusion(coefficient="nu")), ("u", "v"))
ALLEN_CAHN = Equation((Advection(), Diffusion(), Reaction((0.0, 1.0, 0.0, -1.0))))


def step(physics, u, coefficients):
    return eqx.filter_jit(physics)(jnp.asarray(u), coefficients)


def lattice_jets(anchors, filter, lengths=UNIT, **settings):
    return SplatJets(LatticeEncoder(anchors), lengths, filter, **settings)


PROVIDERS = {
    "spectral": lambda filter, lengths: (SpectralJets(lengths, filter), 1e-9),
    # 20 anchors and modes up to 3: the lattice errs by exp(-2π² 1.44 (1 - 6/20)) = 2e-9, and the
    # Laplacian of its alias at mode 17 is (17/3)² = 32 times more.
    "lattice": lambda filter, lengths: (lattice_jets((20, 20), filter, lengths), 1e-6),
}


@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=PROVIDERS)
@pytest.mark.parametrize("working_grid", [True, False], ids=["working", "full"])
@pytest.mark.usefixtures("x64")
def test_a_travelling_sine(provider, working_grid):
    grid, v, dt = Grid((40, 45), (1.0, 2.0)), 0.05, 1.0
    jets, tolerance = provider(SharpFilter(4.0), grid.lengths)
    physics = EmbeddedPhysics(ADVECTION, jets, dt, integrator=RK4(16), working_grid=working_grid)
    found = step(physics, wave(grid, (3, -2)), {"v": v})
    # cos(2π k·(x - v t)) with v along both axes; RK4 leaves z⁵/120 per substep at z = ω dt/16.
    turn = 2 * np.pi * (3 / 1.0 - 2 / 2.0) * v * dt
    assert (
        relative(found, wave(grid, (3, -2), phase=0.3 - turn)) < tolerance + 16 * (turn / 16) ** 5
    )


@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=PROVIDERS)
@pytest.mark.usefixtures("x64")
def test_a_decaying_mode(provider):
    grid, diffusivity, dt = Grid((40, 45), (1.0, 2.0)), 2e-3, 1.0
    jets, tolerance = provider(SharpFilter(4.0), grid.lengths)
    physics = EmbeddedPhysics(DIFFUSION, jets, dt, integrator=RK4(16))
    u = wave(grid, (2, 3))
    rate = diffusivity * 4 * np.pi**2 * ((2 / 1.0) ** 2 + (3 / 2.0) ** 2)
    found = step(physics, u, {"D": diffusivity})
    assert relative(found, np.exp(-rate * dt) * u) < tolerance + 16 * (rate / 16) ** 5


@pytest.mark.parametrize(
    "name",
    [
        "advection2d",
        "advection_diffusion2d",
        "burgers2d",
        "burgers2d_conservative",
        "advection_allen_cahn2d",
    ],
)
@pytest.mark.usefixtures("x64")
def test_one_frame_of_each_benchmark_against_its_reference(name):
    # Bands are wide enough for what one frame creates from modes up to 3: products of 3 and 4
    # harmonics. exponax advances in time to fourth order, and so does Φ.
    benchmark = BENCHMARKS[name].with_points(64)
    u = jnp.asarray(random_field(benchmark.grid, 3, channels=benchmark.channels))
    coefficients = benchmark.typical_coefficients()
    physics = EmbeddedPhysics(
        benchmark.equation, SpectralJets(UNIT, SharpFilter(20.0)), benchmark.dt, 8
    )
    truth = eqx.filter_jit(reference_stepper(benchmark))(u, coefficients)
    found = step(physics, u, coefficients)
    change = float(jnp.linalg.norm(truth - u))
    # The change over one frame is 1e-2 to 1 of the field; it must be right to four digits, so that
    # no term, however small its coefficient, can have the wrong sign.
    assert float(jnp.linalg.norm(found - truth)) < 1e-4 * change


@pytest.mark.usefixtures("x64")
def test_burgers_against_exponax():
    grid = Grid.unit(64, 2)
    u = jnp.asarray(random_field(grid, 3, channels=2))
    peer = exponax.stepper.Burgers(
        2, 1.0, 64, 0.1 / 8, diffusivity=2e-3, convection_scale=0.1, conservative=False, order=4
    )
    physics = EmbeddedPhysics(BURGERS, SpectralJets(UNIT, SharpFilter(21.0)), 0.1, 8)
    found = step(physics, u, {"c": 0.1, "nu": 2e-3})
    # 8 steps leave 4e-7 of exponax's time error. Both cut off at mode 21 (exponax by axis), where
    # 1e-6 of the field has arrived.
    assert relative(found, exponax.repeat(peer, 8)(u)) < 5e-6
    assert relative(found, u) > 0.1


@pytest.mark.usefixtures("x64")
def test_a_fourth_order_equation_of_ones_own_against_exponax():
    # Kuramoto-Sivashinsky in 1D, u_t = -u_x²/2 - u_xx - u_xxxx, on a box of 20.
    lengths, dims = (20.0,), 1
    term = CustomTerm(
        lambda jet, _: -(jet[partial(1)] ** 2) / 2 - jet[laplacian(1)] - jet[bilaplacian(1)],
        needs=frozenset({*gradient(dims), laplacian(dims), bilaplacian(dims)}),
        name="ks",
        degree=2.0,
    )
    grid = Grid((64,), lengths)
    u = jnp.asarray(random_field(grid, 4))
    peer = exponax.stepper.KuramotoSivashinsky(1, 20.0, 64, 0.05)
    # Cutoff 0.8 is mode 16 of 20: λ = (2π 0.8)⁴ = 640, so RK4 needs 640 * 0.05/2.8 = 12 substeps.
    physics = EmbeddedPhysics(Equation((term,)), SpectralJets(lengths, SharpFilter(0.8)), 0.05, 40)
    found = step(physics, u, {})
    truth = peer(u)
    # exponax keeps the mean where it was; it plays no part in the rest.
    found, truth = found - found.mean(), truth - truth.mean()
    # exponax takes second order in time here, (λ dt)² = 1e-4 of the slow modes' change.
    assert relative(found, truth) < 1e-4


@pytest.mark.usefixtures("x64")
def test_fourth_order_in_time():
    grid, coefficients = Grid.unit(32, 2), {"c": 0.3, "nu": 1e-3}
    u = jnp.asarray(random_field(grid, 3, channels=2))

    def advanced(substeps):
        jets = SpectralJets(UNIT, SmoothFilter(6.0, 1.0))
        return step(EmbeddedPhysics(BURGERS, jets, 0.4, substeps), u, coefficients)

    truth = advanced(128)
    errors = [relative(advanced(n), truth) for n in (4, 8, 16)]
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    # The next order in dt takes up to a tenth of the slope at the coarsest.
    np.testing.assert_allclose(slopes, 4, atol=0.12)


@pytest.mark.usefixtures("x64")
def test_lattice_jets_give_the_physics_of_spectral_ones():
    grid, coefficients, dt = Grid.unit(64, 2), {"c": 0.1, "nu": 1e-3}, 0.5
    filter = SharpFilter(8.0)
    u = filter(jnp.asarray(random_field(grid, 8, channels=2)), UNIT)  # modes up to the cutoff
    spectral = EmbeddedPhysics(BURGERS, SpectralJets(UNIT, filter), dt, working_grid=False)
    lattice = EmbeddedPhysics(BURGERS, lattice_jets((20, 20), filter), dt, working_grid=False)
    slope_error = eqx.filter_jit(
        lambda u: lattice.tendency(u, coefficients) - spectral.tendency(u, coefficients)
    )(u)
    difference = step(lattice, u, coefficients) - step(spectral, u, coefficients)
    # Four stages average the error of du/dt; errors of earlier stages feed into later ones, which
    # Lipschitz growth over one step, below exp(1), bounds.
    assert 0 < float(jnp.linalg.norm(difference)) < 3 * dt * float(jnp.linalg.norm(slope_error))


CASES = {
    "advection": (ADVECTION, {"v": 0.02}, 1),
    "burgers": (BURGERS, {"c": 0.05, "nu": 1e-3}, 2),
    "allen-cahn": (ALLEN_CAHN, {"v": 0.05, "D": 1e-3, "r": 1.0}, 1),
}


@pytest.mark.parametrize(("equation", "coefficients", "channels"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("points", [(64, 64), (63, 80)], ids=str)
@pytest.mark.usefixtures("x64")
def test_working_grid_against_full_grid(equation, coefficients, channels, points):
    # A state inside the band: everything Φ computes on the small grid is what the large one holds.
    filter = SharpFilter(6.0)
    u = filter(jnp.asarray(random_field(Grid(points, UNIT), 6, channels=channels)), UNIT)
    small, full = (
        EmbeddedPhysics(equation, SpectralJets(UNIT, filter), 0.2, working_grid=working)
        for working in (True, False)
    )
    assert max(small.working_points(points)) < min(points) / 2
    assert relative(step(small, u, coefficients), step(full, u, coefficients)) < 1e-12


@pytest.mark.usefixtures("x64")
def test_working_grid_with_gaussians():
    filter, u = SmoothFilter(4.0, 1.0), jnp.asarray(random_field(Grid.unit(64, 2), 4, channels=2))
    small, full = (
        EmbeddedPhysics(BURGERS, lattice_jets((24, 24), filter), 0.2, working_grid=working)
        for working in (True, False)
    )
    coefficients = {"c": 0.05, "nu": 1e-3}
    # Least squares on another grid: the difference is the lattice's own error, 1e-6 in slopes,
    # times what one step changes.
    assert relative(step(small, u, coefficients), step(full, u, coefficients)) < 1e-7


@pytest.mark.parametrize("dims", [1, 3])
@pytest.mark.usefixtures("x64")
def test_any_dimension(dims):
    grid = Grid((24, 26, 28)[:dims], (1.0, 2.0, 0.5)[:dims])
    equation, k = Equation((Advection(), Diffusion())), (2, 3, 1)[:dims]
    filter = SharpFilter(4.0)
    physics = EmbeddedPhysics(
        equation, SplatJets(LatticeEncoder((16,) * dims), grid.lengths, filter), 0.5, 8
    )
    found = step(physics, wave(grid, k), {"v": 0.05, "D": 1e-3})
    q = [m / length for m, length in zip(k, grid.lengths, strict=True)]
    turn, decay = 2 * np.pi * 0.05 * 0.5 * sum(q), 1e-3 * 0.5 * 4 * np.pi**2 * sum(x * x for x in q)
    # RK4 in 8 substeps leaves 8 (turn/8)⁵/120 = 1e-6.
    assert relative(found, np.exp(-decay) * wave(grid, k, phase=0.3 - turn)) < 3e-6


def test_one_physics_at_any_resolution():
    filter = SharpFilter(6.0)
    physics = EmbeddedPhysics(BURGERS, lattice_jets((20, 20), filter), 0.2)
    fine = jnp.asarray(random_field(Grid.unit(96, 2), 4, channels=2), jnp.float32)
    coefficients = {"c": 0.05, "nu": 1e-3}
    on_fine = step(physics, fine, coefficients)
    on_coarse = step(physics, resample(fine, (48, 48)), coefficients)
    # float32: rounding of a wide kernel's amplitudes.
    assert relative(on_coarse, resample(on_fine, (48, 48))) < 2e-5


@pytest.mark.parametrize("renderer", ["fourier", "local"])
@pytest.mark.usefixtures("x64")
def test_equivariance_to_shifts_by_one_anchor_cell(renderer):
    filter = SharpFilter(5.0)
    settings = {"renderer": LocalRenderer()} if renderer == "local" else {}
    jets = SplatJets(LatticeEncoder((16, 16), 0.7), UNIT, filter, **settings)
    physics = EmbeddedPhysics(BURGERS, jets, 0.2, working_grid=False)
    u = jnp.asarray(random_field(Grid.unit(48, 2), 4, channels=2))
    coefficients = {"c": 0.1, "nu": 1e-3}
    shifted = step(physics, jnp.roll(u, (3, -6), axis=(1, 2)), coefficients)
    assert relative(shifted, jnp.roll(step(physics, u, coefficients), (3, -6), axis=(1, 2))) < 1e-9


@pytest.mark.usefixtures("x64")
def test_what_comes_out_lies_inside_the_band():
    filter, u = SharpFilter(5.0), jnp.asarray(random_field(Grid.unit(40, 2), 12, channels=2))
    physics = EmbeddedPhysics(BURGERS, SpectralJets(UNIT, filter), 0.1)
    modes = np.abs(to_modes(step(physics, u, {"c": 0.1, "nu": 1e-3})))
    outside = filter.weights(Grid.unit(40, 2).wavenumbers()) == 0
    assert modes[:, outside].max() < 1e-14 < modes[:, ~outside].max()


@pytest.mark.usefixtures("x64")
def test_nonlinear_tendencies_are_filtered_and_linear_ones_need_not_be():
    filter, u = SharpFilter(5.0), jnp.asarray(random_field(Grid.unit(40, 2), 4, channels=2))
    outside = filter.weights(Grid.unit(40, 2).wavenumbers()) == 0
    for equation in (BURGERS, Equation((Advection(),), ("u", "v"))):
        physics = EmbeddedPhysics(equation, SpectralJets(UNIT, filter), 0.1)
        tendency = physics.tendency(u, {"c": 0.1, "nu": 1e-3, "v": 1.0})
        assert np.abs(to_modes(tendency))[:, outside].max() < 1e-13


@pytest.mark.usefixtures("x64")
def test_substeps_are_steps():
    jets = SpectralJets(UNIT, SharpFilter(6.0))
    u = jnp.asarray(random_field(Grid.unit(32, 2), 3, channels=2))
    coefficients = {"c": 0.1, "nu": 1e-3}
    at_once = step(EmbeddedPhysics(BURGERS, jets, 0.3, 3), u, coefficients)
    one_by_one = rollout(EmbeddedPhysics(BURGERS, jets, 0.1), u, coefficients, steps=3)[-1]
    assert relative(at_once, one_by_one) < 1e-13


def test_a_rollout_is_repeated_steps():
    physics = EmbeddedPhysics(ADVECTION, lattice_jets((16, 16), SharpFilter(5.0)), 0.5)
    u = jnp.asarray(random_field(Grid.unit(32, 2), 3), jnp.float32)
    frames = rollout(physics, u, {"v": 0.1}, steps=3)
    assert frames.shape == (3, 1, 32, 32)
    for frame in frames:
        u = step(physics, u, {"v": 0.1})
        assert relative(frame, u) < 1e-5


@pytest.mark.usefixtures("x64")
def test_gradients_with_respect_to_state_and_coefficients():
    physics = EmbeddedPhysics(BURGERS, lattice_jets((14, 14), SharpFilter(4.0)), 0.2)
    u = jnp.asarray(random_field(Grid.unit(24, 2), 3, channels=2))
    direction = jnp.asarray(random_field(Grid.unit(24, 2), 3, channels=2, seed=1))

    @jax.jit
    def energy(u, c):
        return jnp.sum(physics(u, {"c": c, "nu": 1e-3}) ** 2)

    slope, slope_c = jax.grad(energy, argnums=(0, 1))(u, 0.1)
    h = 1e-5  # central differences: h² = 1e-10 of curvature, 1e-16/h of rounding
    finite = (energy(u + h * direction, 0.1) - energy(u - h * direction, 0.1)) / (2 * h)
    assert float(jnp.vdot(slope, direction)) == pytest.approx(float(finite), rel=1e-6)
    finite = (energy(u, 0.1 + h) - energy(u, 0.1 - h)) / (2 * h)
    assert float(slope_c) == pytest.approx(float(finite), rel=1e-6)


# --- stability


@pytest.mark.usefixtures("x64")
def test_the_spectral_radius_is_that_of_the_fastest_mode():
    grid = Grid.unit(32, 2)
    u = jnp.asarray(random_field(grid, 3))
    # Advection: 2π v (k_x + k_y), largest at (4, 4) inside the disc of 6. Diffusion: 4π² D 36.
    for equation, coefficients, truth in (
        (ADVECTION, {"v": 0.1}, 2 * np.pi * 0.1 * 8),
        (DIFFUSION, {"D": 0.01}, 4 * np.pi**2 * 0.01 * 36),
    ):
        physics = EmbeddedPhysics(equation, SpectralJets(UNIT, SharpFilter(6.0)), 0.1)
        assert spectral_radius(physics, u, coefficients) == pytest.approx(truth, rel=0.02)


@pytest.mark.usefixtures("x64")
def test_rk4_blows_up_beyond_its_reach_and_not_within():
    jets, u = SpectralJets(UNIT, SharpFilter(6.0)), jnp.asarray(random_field(Grid.unit(32, 2), 3))
    coefficients, dt = {"D": 0.01}, 0.5
    physics = EmbeddedPhysics(DIFFUSION, jets, dt)
    needed = math.ceil(spectral_radius(physics, u, coefficients) * dt / RK4_REACH)
    assert needed == 3  # |λ| dt = 14.2 * 0.5 = 7.1
    noise = 1e-6 * jnp.asarray(np.random.default_rng(0).normal(size=(1, 32, 32)))
    grown = rollout(physics, u + noise, coefficients, steps=40)[-1]
    assert float(jnp.abs(grown).max()) > 1e3
    better = EmbeddedPhysics(DIFFUSION, jets, dt, needed)
    decayed = rollout(better, u + noise, coefficients, steps=40)[-1]
    assert float(jnp.abs(decayed).max()) < float(jnp.abs(u).max())


# --- bad input


def burgers():
    return EmbeddedPhysics(BURGERS, lattice_jets((16, 16), SharpFilter(5.0)), 0.1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda u: u[0], "add a channel axis, or vmap over a batch"),
        (lambda u: u[:1], r"expected u with 2 channel\(s\) first, got shape \(1, 32, 32\)"),
        (lambda u: u[None], "expected u of shape"),
        (
            lambda u: u.at[1, 2, 3].set(jnp.nan),
            r"1 NaN or infinite \(the first at index \(1, 2, 3\)",
        ),
        (lambda u: u.at[0, 0, 0].set(-jnp.inf), "remove or repair"),
    ],
)
def test_fields_that_cannot_be_advanced(change, message):
    u = jnp.asarray(random_field(Grid.unit(32, 2), 3, channels=2), jnp.float32)
    with pytest.raises(SplatopError, match=message):
        burgers()(change(u), {"c": 0.1, "nu": 1e-3})


def test_a_constant_field_has_nothing_to_encode():
    with pytest.raises(SplatopError, match=r"constant one \(std 0\)"):
        burgers()(jnp.ones((2, 32, 32)), {"c": 0.1, "nu": 1e-3})


def test_a_forgotten_coefficient():
    u = jnp.asarray(random_field(Grid.unit(32, 2), 3, channels=2), jnp.float32)
    with pytest.raises(SplatopError, match="expected coefficients c, nu, got c: give nu"):
        burgers()(u, {"c": 0.1})


def test_a_derivative_that_the_provider_cannot_give():
    term = CustomTerm(lambda jet, _: jet[partial(5)], needs=frozenset({partial(5)}), name="fifth")
    physics = EmbeddedPhysics(Equation((term,)), FiniteDifferenceJets((1.0,), PassThrough()), 0.1)
    with pytest.raises(SplatopError, match="up to fourth order, got d5x: use SplatJets"):
        physics(jnp.asarray(wave(Grid((16,), (1.0,)), (2,))), {})


@pytest.mark.parametrize(("dt", "substeps"), [(0.0, 1), (-0.1, 1), (0.1, 0)])
def test_impossible_steps(dt, substeps):
    with pytest.raises(SplatopError, match=r"positive time step|at least one substep"):
        EmbeddedPhysics(ADVECTION, SpectralJets(UNIT, PassThrough()), dt, substeps)


def test_the_conservative_form_conserves_the_mean():
    equation = Equation((ConservativeSelfAdvection(),), ("u", "v"))
    physics = EmbeddedPhysics(equation, SpectralJets(UNIT, SharpFilter(8.0)), 0.1)
    u = jnp.asarray(random_field(Grid.unit(32, 2), 3, channels=2), jnp.float32)
    found = step(physics, u, {"c": 0.5})
    np.testing.assert_allclose(found.mean(axis=(1, 2)), u.mean(axis=(1, 2)), atol=2e-6)


@pytest.mark.parametrize("velocity", ["text", "samples"])
@pytest.mark.usefixtures("x64")
def test_a_velocity_that_varies_in_space_does_not_alias(velocity):
    """Mode 5 times the velocity's mode 2 leaves a band of 5: on a grid that just holds the band it
    would come back as mode 4. The working grid agrees with a full one."""
    grid = Grid((64,), (1.0,))
    equation = {
        "text": parse_equation("dt(u) = -v*sin(4*pi*x)*dx(u)", dims=1),
        "samples": Equation((Advection(jnp.sin(4 * jnp.pi * grid.coordinates()[0])[None]),)),
    }[velocity]
    u = random_field(grid, 5)
    jets = SpectralJets((1.0,), SharpFilter(5.5))
    small, full = (EmbeddedPhysics(equation, jets, 0.1, 4, working) for working in (True, False))
    assert small.working_points((64,))[0] < 32
    found, truth = (step(physics, u, {"v": 0.3}) for physics in (small, full))
    assert relative(found, truth) < 1e-12
    tendency = np.abs(to_modes(full.tendency(jnp.asarray(u), {"v": 0.3})))[0]
    assert tendency[6:].max() < 1e-12 * tendency.max()


# What is forced differently from place to place is not followed along its way, on no grid.
STIFF = {
    "ring": (
        "dt(u) = -c*u*dx(u) - 1e-4*d3x(u) - 1e-6*bilap(u) + sin(t)*cos(2*pi*x)",
        (48,),
    ),
    "coupled": (
        "dt(u) = 1e-3*lap(u) + u - u^3 - v; dt(v) = 0.05*dx(u) + c*u*dy(v) - v + cos(2*pi*x)/100",
        (36, 40),
    ),
}


@pytest.mark.parametrize(("text", "points"), STIFF.values(), ids=STIFF)
@pytest.mark.parametrize(
    "filter", [SharpFilter(7.0), SmoothFilter(4.0, 0.7)], ids=["sharp", "smooth"]
)
@pytest.mark.usefixtures("x64")
def test_exponential_steps_in_modes_are_those_on_a_grid(text, points, filter):
    """In the modes of the band, and stage by stage on the full grid, which is the slow twin: with
    exact derivatives equal, with Gaussians as far as these are exact."""
    dims = len(points)
    equation, lengths = parse_equation(text, dims=dims), (1.0,) * dims
    grid = Grid(points, lengths)
    u = jnp.asarray(random_field(grid, 4, channels=len(equation.fields)))
    exact, gaussians = SpectralJets(lengths, filter), lattice_jets((24,) * dims, filter, lengths)
    # 24 anchors err by exp(-2π² 1.44 (1 - 14/24)) = 7e-6 at mode 7, which rates carry into a step.
    for jets, tolerance in ((exact, 1e-12), (gaussians, 1e-5)):
        quick, slow = (
            EmbeddedPhysics(equation, jets, 0.2, ETDRK4(2), working_grid=working)
            for working in (True, False)
        )
        numbers = {"c": 0.05, "t": 0.3}
        found = step(quick, u, numbers)
        assert relative(found, step(slow, u, numbers)) < tolerance
        # As of states on another grid, where a rollout keeps them.
        finer = step(quick, resample(u, tuple(2 * n for n in points)), numbers)
        assert relative(resample(finer, points), found) < 1e-12

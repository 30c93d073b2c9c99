"""The reference solver against analytic solutions, exponax, and itself."""

import warnings

import exponax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from oracles import relative
from splatop.equation import (
    EXAMPLES,
    Advection,
    CustomTerm,
    Diffusion,
    Equation,
    Reaction,
    SelfAdvection,
    parse_equation,
)
from splatop.errors import SplatopError
from splatop.etdrk4 import Scheme
from splatop.grid import Grid
from splatop.initial import INITIAL_CONDITIONS
from splatop.solver import ReferenceSolver, initial_condition, solve, solve_trajectories
from splatop.stepper import rollout

TAU = 2 * np.pi


@pytest.fixture(autouse=True)
def warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield


def advance(equation, coefficients, u0, *, lengths, dt, steps=1, substeps=1):
    """The last frame in double precision with a fixed number of substeps."""
    solver = ReferenceSolver(equation, lengths, dt, substeps)
    with jax.enable_x64(True):
        states = jax.jit(lambda u: rollout(solver, u, coefficients, steps=steps))(jnp.asarray(u0))
        return np.asarray(states[-1])


# --- exact solutions ---------------------------------------------------------------------------


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_linear_equations_are_exact_in_one_step(dims):
    """A plane wave travels, disperses and decays with its symbol, whatever the time step."""
    axes = "xyz"[:dims]
    transport = "+".join(f"w{axis}*d{axis}(u) + d3{axis}(u)/500" for axis in axes)
    text = f"dt(u) = -({transport}) + D*lap(u) - bilap(u)/1e5"
    equation = parse_equation(text, dims=dims)
    lengths, points = (1.0, 2.0, 1.5)[:dims], (16, 11, 12)[:dims]
    k = TAU * np.array([2, -1, 1][:dims]) / np.array(lengths)
    coefficients = {"D": 0.01} | {f"w{a}": 0.3 + i for i, a in enumerate(axes)}
    phase = sum(p * x for p, x in zip(k, Grid(points, lengths).coordinates(), strict=True))
    t = 1.7
    speed = sum((0.3 + i) * p - p**3 / 500 for i, p in enumerate(k))
    decay = 0.01 * np.sum(k**2) + np.sum(k**2) ** 2 / 1e5
    found = advance(equation, coefficients, np.sin(phase)[None], lengths=lengths, dt=t)
    truth = np.exp(-decay * t) * np.sin(phase - speed * t)
    assert relative(found[0], truth) < 1e-12


def test_burgers_by_cole_hopf():
    """u = -2 nu (log phi)_x, phi = 1 + a exp(-nu k² t) cos(k x), solves u_t + u u_x = nu u_xx."""
    nu, a, k, n = 0.05, 0.7, TAU, 64
    x = np.arange(n) / n

    def exact(t):
        wave = a * np.exp(-nu * k**2 * t)
        return 2 * nu * k * wave * np.sin(k * x) / (1 + wave * np.cos(k * x))

    equation = parse_equation("dt(u) = -u*dx(u) + nu*lap(u)", dims=1)
    frames, error = solve(
        equation, {"nu": nu}, exact(0.0)[None], lengths=(1.0,), dt=0.1, steps=5, tolerance=1e-9
    )
    assert error <= 1e-9
    for i, frame in enumerate(frames):
        # five frames of 1e-9; the tail of phi's reciprocal at mode 32 is 0.4^32 = 2e-13
        assert relative(frame[0], exact(0.1 * i)) < 5e-9


def test_kdv_soliton_travels():
    """u = c/2 sech²(√c/2 (x - c t)); its periodic images overlap by exp(-√c L/2) = 2e-9."""
    c, length, n = 4.0, 20.0, 128
    x = np.arange(n) * length / n

    def exact(t):
        away = (x - c * t) % length - length / 2
        return c / 2 / np.cosh(np.sqrt(c) / 2 * away) ** 2

    equation = parse_equation("dt(u) = -6*u*dx(u) - d3x(u)", dims=1)
    frames, error = solve(
        equation, {}, exact(0.0)[None], lengths=(length,), dt=0.25, steps=4, tolerance=1e-8
    )
    assert relative(frames[-1, 0], exact(1.0)) < 1e-6
    assert error <= 1e-8
    # Mass and energy are conserved to the same accuracy.
    np.testing.assert_allclose(frames.sum(-1), frames[0].sum(), rtol=1e-10)
    np.testing.assert_allclose((frames**2).sum(-1), (frames[0] ** 2).sum(), rtol=1e-6)


def test_fields_that_couple_linearly_rotate():
    equation = parse_equation("dt(a) = w*b; dt(b) = -w*a", dims=1)
    u0 = np.stack([np.sin(TAU * np.arange(8) / 8), np.zeros(8)])
    frames, _ = solve(equation, {"w": 2.0}, u0, lengths=(1.0,), dt=0.5, steps=2, tolerance=1e-9)
    np.testing.assert_allclose(frames[-1, 0], np.cos(2.0) * u0[0], atol=1e-8)
    np.testing.assert_allclose(frames[-1, 1], -np.sin(2.0) * u0[0], atol=1e-8)


def test_forcing_and_velocity_that_vary_in_space():
    """In 1D u_t = -w(x) u_x with w = 1/(1 + a cos x) is rigid transport in X = x + a sin x."""
    a, n = 0.3, 64
    x = np.arange(n) * TAU / n
    equation = parse_equation("dt(u) = -dx(u)/(1 + a*cos(x))", dims=1)
    u0 = np.sin(x + a * np.sin(x))
    frames, _ = solve(equation, {"a": a}, u0[None], lengths=(TAU,), dt=0.5, steps=2, tolerance=1e-8)
    assert relative(frames[-1, 0], np.sin(x + a * np.sin(x) - 1.0)) < 1e-7

    forced = parse_equation("dt(u) = D*lap(u) + sin(x)", dims=1)
    frames, _ = solve(forced, {"D": 0.5}, 0 * u0[None], lengths=(TAU,), dt=1.0, steps=1)
    assert relative(frames[-1, 0], (1 - np.exp(-0.5)) / 0.5 * np.sin(x)) < 1e-6


def test_vorticity_of_a_carried_vortex():
    """A Taylor-Green vortex in a mean flow cannot be (invlap drops the mean), but a shear flow
    w = cos(y) carries a weak wave: compare with the linearised operator by a matrix exponential."""
    n, nu, small = 16, 0.05, 1e-6
    grid = Grid((n, n), (TAU, TAU))
    x, y = grid.coordinates()
    equation = EXAMPLES["navier_stokes_vorticity"].equation
    base = np.cos(y) + 0 * x
    wave = np.sin(x + 2 * y)
    args = {"lengths": (TAU, TAU), "dt": 0.5, "steps": 1, "tolerance": 1e-10}
    plus, _ = solve(equation, {"nu": nu}, (base + small * wave)[None], **args)
    minus, _ = solve(equation, {"nu": nu}, (base - small * wave)[None], **args)
    # Linear theory on modes exp(i(x + m y)): psi'' = w gives psi = -cos(y) e^(-nu t), velocity
    # (-psi_y, psi_x) = (-sin(y), 0); w_t = sin(y) w_x - psi'_x (-sin(y)) + nu lap(w).
    m = np.arange(-8, 9)
    k2 = 1 + m**2
    shift = (np.eye(17, k=-1) - np.eye(17, k=1)) / 2j  # sin(y) as a matrix on modes

    def rate(t):
        flow = shift @ np.diag(1j * (1 - 1 / k2)) * np.exp(-nu * t)
        return flow - nu * np.diag(k2)

    v = np.where(m == 2, 1 / 2j, 0).astype(complex)
    h = 0.5 / 400
    for i in range(400):  # RK4 in 17 modes: error 1e-12
        t = i * h
        k1 = rate(t) @ v
        s2 = rate(t + h / 2) @ (v + h / 2 * k1)
        s3 = rate(t + h / 2) @ (v + h / 2 * s2)
        v = v + h / 6 * (k1 + 2 * s2 + 2 * s3 + rate(t + h) @ (v + h * s3))
    truth = 2 * np.real(sum(a * np.exp(1j * (x + p * y)) for a, p in zip(v, m, strict=True)))
    # Differences of order small² = 1e-12 over small, and the solver's 1e-10 / small = 1e-4.
    assert relative((plus[-1, 0] - minus[-1, 0]) / (2 * small), truth) < 3e-4


# --- against exponax ---------------------------------------------------------------------------


def by_exponax(stepper, u0, steps):
    with jax.enable_x64(True):
        return np.asarray(exponax.rollout(stepper, steps, include_init=True)(jnp.asarray(u0)))


def test_kuramoto_sivashinsky_as_exponax():
    example = EXAMPLES["kuramoto_sivashinsky"]
    grid = Grid(example.points, example.lengths)
    u0 = initial_condition("fourier", grid, channels=1, key=jax.random.key(0))
    with jax.enable_x64(True):
        stepper = exponax.RepeatedStepper(
            exponax.stepper.KuramotoSivashinskyConservative(1, 60.0, 128, 0.2 / 8, order=4), 8
        )
    frames, _ = solve(example.equation, example.coefficients, u0, lengths=(60.0,), dt=0.2, steps=40)
    # T = 8, before chaos amplifies (rate about 0.1) the 1e-6 per frame of either.
    assert relative(frames, by_exponax(stepper, u0, 40)) < 1e-5


@pytest.mark.slow
def test_fisher_kpp_as_exponax():
    example = EXAMPLES["fisher_kpp"]
    u0 = initial_condition("positive", Grid.unit(48, 2), channels=1, key=jax.random.key(0))
    with jax.enable_x64(True):
        stepper = exponax.stepper.reaction.FisherKPP(
            2, 1.0, 48, 0.1, diffusivity=1e-3, reactivity=0.5, order=4
        )
    frames, _ = solve(
        example.equation, example.coefficients, u0, lengths=(1.0, 1.0), dt=0.1, steps=10
    )
    assert relative(frames, by_exponax(stepper, u0, 10)) < 1e-6


def test_burgers_as_exponax():
    equation = EXAMPLES["burgers"].equation
    u0 = initial_condition("fourier", Grid.unit(48, 2), channels=2, key=jax.random.key(0))
    with jax.enable_x64(True):
        stepper = exponax.RepeatedStepper(
            exponax.stepper.Burgers(
                2, 1.0, 48, 0.1 / 4, diffusivity=4e-3, convection_scale=0.05, order=4
            ),
            4,
        )
    values = {"c": 0.05, "D": 4e-3}
    frames, _ = solve(equation, values, u0, lengths=(1.0, 1.0), dt=0.1, steps=5)
    # Ten times the tolerance: exponax drops the modes beyond two thirds, which hold little here.
    assert relative(frames, by_exponax(stepper, u0, 5)) < 1e-5


# --- order, precision, forms -------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "dt(u) = -u*dx(u) - d3x(u)/100",  # imaginary symbol
        "dt(u) = -3*dx(u) - u*dx(u) + lap(u)/50 + u - u^3",  # complex symbol
        "dt(u) = -(2 + sin(x))*dx(u)/4 - u^2",  # no diagonal part at all
    ],
)
def test_fourth_order_in_time(text):
    equation = parse_equation(text, dims=1)
    x = np.arange(32) * TAU / 32
    u0 = (np.sin(x) + 0.3 * np.cos(2 * x))[None]
    scheme = Scheme(equation, Grid((32,), (TAU,)))
    with jax.enable_x64(True):
        step = jax.jit(lambda tables, n: scheme.advance(jnp.asarray(u0), tables, {}, n, 0.4 / n))
        runs = [np.asarray(step(scheme.tables(0.4 / n, {}), n)) for n in (8, 16, 32, 256)]
    errors = [relative(run, runs[-1]) for run in runs[:-1]]
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    # 2^4, approached from either side; a lost order would be 3, a real part only would be 1.
    assert np.all((slopes > 3.7) & (slopes < 4.6)), (slopes, errors)


@pytest.mark.parametrize(("degree", "mean"), [(2, 1 / 2), (3, 0.0), (4, 3 / 8)])
def test_products_do_not_alias(degree, mean):
    """cos(7x)^p on 16 points: modes 14, 21 and 28 must vanish, not fold into the band."""
    equation = parse_equation(f"dt(u) = u^{degree}", dims=1)
    u0 = np.cos(TAU * 7 * np.arange(16) / 16)[None]
    change = advance(equation, {}, u0, lengths=(1.0,), dt=1e-4) - u0
    modes = np.abs(np.fft.rfft(change[0], norm="forward"))
    assert modes[0] == pytest.approx(mean * 1e-4, rel=1e-3, abs=1e-12)
    assert modes[1:7].max() < 1e-7 * 1e-4  # the second order in time is 1e-8, at modes 0 and 7


def test_built_in_terms_take_the_same_path():
    grid = Grid.unit(24, 2)
    u0 = initial_condition("fourier", grid, channels=2, key=jax.random.key(0))
    values = {"v": 0.1, "D": 1e-3, "c": 0.05, "r": 0.3}
    built_in = Equation(
        (Advection(), Diffusion(), SelfAdvection(), Reaction((0.0, 1.0, 0.0, -1.0))), ("u", "w")
    )
    sides = "-v*(dx({0})+dy({0})) + D*lap({0}) - c*dot(vec(u, w), grad({0})) + r*({0}-{0}^3)"
    text = f"dt(u) = {sides.format('u')}; dt(w) = {sides.format('w')}"
    args = {"lengths": (1.0, 1.0), "dt": 0.2}
    one = advance(built_in, values, u0, **args)
    two = advance(parse_equation(text, dims=2), values, u0, **args)
    np.testing.assert_allclose(one, two, atol=1e-13)


def test_terms_without_text_are_integrated_too():
    """A velocity known by its samples and a user's own function go to the nonlinear part."""
    grid = Grid.unit(16, 2)
    x, y = grid.coordinates()
    u0 = np.sin(TAU * x)[None] * np.cos(TAU * y)
    with jax.enable_x64(True):
        velocity = jnp.stack([jnp.asarray(np.sin(TAU * y) + 0 * x), jnp.zeros((16, 16))])
        own = Equation(
            (
                Advection(velocity),
                CustomTerm(lambda jet, c: -(jet.state**3), frozenset(), name="decay"),
            )
        )
        found = advance(own, {"v": 0.3}, u0, lengths=(1.0, 1.0), dt=0.1)
    text = parse_equation("dt(u) = -v*sin(2*pi*y)*dx(u) - u^3", dims=2)
    truth = advance(text, {"v": 0.3}, u0, lengths=(1.0, 1.0), dt=0.1)
    # A user's function has no known degree: products alias at the level of the tail.
    assert relative(found, truth) < 1e-9


@pytest.mark.slow
def test_single_precision_and_traced_coefficients():
    equation = EXAMPLES["kdv"].equation
    grid = Grid((64,), (40.0,))
    u0 = initial_condition("solitons", grid, channels=1, key=jax.random.key(1))
    solver = ReferenceSolver(equation, grid.lengths, 0.05)
    truth = advance(equation, {"c": 6.0, "b": 1.0}, u0, lengths=grid.lengths, dt=0.05)
    u = jnp.asarray(u0, jnp.float32)
    known = jax.jit(lambda u: solver(u, {"c": 6.0, "b": 1.0}))(u)
    traced = jax.jit(lambda u, b: solver(u, {"c": 6.0, "b": b}))(u, jnp.asarray(1.0))
    assert known.dtype == traced.dtype == jnp.float32
    # Float32 rounding; for a traced coefficient also 1e-6 of the contour sums in single precision.
    assert relative(known, truth) < 1e-6
    assert relative(traced, truth) < 1e-5
    with jax.enable_x64(True):

        def total(b):
            return jnp.sum(solver(jnp.asarray(u0), {"c": 6.0, "b": b}) ** 4)

        value = jax.jit(total)
        slope = (value(jnp.asarray(1.001)) - value(jnp.asarray(0.999))) / 0.002
        # central difference: relative error of order 0.001²
        np.testing.assert_allclose(jax.jit(jax.grad(total))(jnp.asarray(1.0)), slope, rtol=1e-4)


# --- self-check --------------------------------------------------------------------------------


def test_substeps_are_chosen_by_halving():
    """The estimate bounds the true error of a frame, and a stricter tolerance lowers both."""
    equation = parse_equation("dt(u) = u - u^3", dims=1)
    u0 = np.full((1, 8), 0.2)

    def exact(t):
        return 1 / np.sqrt(1 + (1 / 0.2**2 - 1) * np.exp(-2 * t))

    for tolerance in (1e-4, 1e-8):
        frames, error = solve(
            equation, {}, u0, lengths=(1.0,), dt=2.0, steps=1, tolerance=tolerance
        )
        assert abs(frames[-1, 0, 0] - exact(2.0)) <= error * exact(2.0)
        assert 0 < error <= tolerance


def test_a_solution_that_blows_up_is_refused():
    equation = parse_equation("dt(u) = u^2", dims=1)
    with pytest.raises(SplatopError, match=r"in frame 3, got .* check the signs"):
        solve(equation, {}, np.ones((1, 4)), lengths=(1.0,), dt=0.4, steps=4)


def test_an_ill_posed_equation_is_refused():
    equation = parse_equation("dt(u) = -D*lap(u) + u^2", dims=1)
    u0 = np.random.default_rng(0).normal(size=(1, 64))
    with pytest.raises(SplatopError, match="ill-posed"):
        solve(equation, {"D": 1.0}, u0, lengths=(1.0,), dt=1.0, steps=1)


def test_a_coarse_grid_is_pointed_out():
    equation = parse_equation("dt(u) = -u*dx(u) + 1e-4*lap(u)", dims=1)
    u0 = np.sin(TAU * np.arange(32) / 32)[None]
    with pytest.warns(UserWarning, match="grid of 32 points is coarse"):
        solve(equation, {}, u0, lengths=(1.0,), dt=0.1, steps=3, tolerance=1e-3)


def test_bad_input():
    equation = parse_equation("dt(u) = -v*dx(u) + D*lap(u)", dims=1)
    u0, args = np.ones((1, 8)), {"lengths": (1.0,), "dt": 0.1, "steps": 1}
    with pytest.raises(SplatopError, match="got none for D"):
        solve(equation, {"v": 1.0}, u0, **args)
    with pytest.raises(SplatopError, match="unknown coefficient 'w'"):
        solve(equation, {"v": 1.0, "D": 1.0, "w": 2.0}, u0, **args)
    with pytest.raises(SplatopError, match="finite number"):
        solve(equation, {"v": 1.0, "D": float("nan")}, u0, **args)
    with pytest.raises(SplatopError, match="with 1 channel"):
        solve(equation, {"v": 1.0, "D": 1.0}, np.ones((2, 8)), **args)
    with pytest.raises(SplatopError, match="expected u of shape"):
        solve(equation, {"v": 1.0, "D": 1.0}, np.ones((1, 8, 8)), **args)
    with pytest.raises(SplatopError, match="1D field for the term"):
        solve(equation, {"v": 1.0, "D": 1.0}, np.ones((1, 8, 8)), **args | {"lengths": (1.0, 1.0)})
    with pytest.raises(SplatopError, match="positive time step"):
        solve(equation, {"v": 1.0, "D": 1.0}, u0, lengths=(1.0,), dt=0.0, steps=1)
    with pytest.raises(SplatopError, match="finite values"):
        solve(equation, {"v": 1.0, "D": 1.0}, u0 * np.nan, **args)
    with pytest.raises(SplatopError, match="at least one substep"):
        ReferenceSolver(equation, (1.0,), 0.1, 0)
    with pytest.raises(SplatopError, match="did you mean 'fourier'"):
        initial_condition("fourrier", Grid.unit(8, 1), channels=1, key=jax.random.key(0))
    with pytest.raises(SplatopError, match="1D box"):
        initial_condition("solitons", Grid.unit(8, 2), channels=1, key=jax.random.key(0))


# --- data --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_solves_on_its_own_grid(name):
    """Three frames of each: converged, resolved (a warning would fail), and something happens."""
    e = EXAMPLES[name]
    grid = Grid(e.points, e.lengths)
    (frames,) = solve_trajectories(
        e.equation, e.coefficients, grid=grid, dt=e.dt, steps=3, trajectories=1, initial=e.initial
    )
    assert frames.shape == (4, len(e.equation.fields), *e.points)
    assert frames.dtype == np.float32
    assert 1e-2 < relative(frames[1], frames[0]) < 0.5


def test_trajectories_differ_and_repeat():
    e = EXAMPLES["fisher_kpp"]
    grid = Grid((40, 36), (1.0, 1.5))
    options = {"grid": grid, "dt": 0.1, "steps": 1, "initial": "positive"}
    first = list(solve_trajectories(e.equation, e.coefficients, trajectories=2, **options))
    again = list(solve_trajectories(e.equation, e.coefficients, trajectories=2, **options))
    other = list(solve_trajectories(e.equation, e.coefficients, trajectories=1, seed=1, **options))
    np.testing.assert_array_equal(first, again)
    assert relative(first[0], first[1]) > 0.1
    assert relative(first[0], other[0]) > 0.1


@pytest.mark.parametrize("kind", INITIAL_CONDITIONS)
def test_initial_conditions_do_not_depend_on_the_resolution(kind):
    """Every second point of a grid twice as fine, up to the normalisation by the largest value."""
    dims = 1 if kind == "solitons" else 2
    length = 40.0 if kind == "solitons" else 1.0
    key = jax.random.key(4)
    coarse = initial_condition(kind, Grid((32,) * dims, (length,) * dims), channels=2, key=key)
    fine = initial_condition(kind, Grid((64,) * dims, (length,) * dims), channels=2, key=key)
    every_second = fine[(slice(None), *(slice(None, None, 2),) * dims)]
    deviation = coarse - coarse.mean()
    assert relative(np.corrcoef(coarse.ravel(), every_second.ravel())[0, 1], 1.0) < 1e-3
    assert deviation.std() > 0.01
    assert coarse.dtype == np.float64


def test_initial_conditions_are_what_they_say():
    grid = Grid((32, 24), (1.0, 2.0))
    u = initial_condition("fourier", grid, channels=2, key=jax.random.key(0))
    np.testing.assert_allclose(u.mean(axis=(1, 2)), 0, atol=1e-12)
    np.testing.assert_allclose(np.abs(u).max(axis=(1, 2)), 1)
    power = np.abs(np.fft.rfft2(u))
    assert power[:, 6:27].max() < 1e-9 * power.max()
    assert power[:, :, 6:].max() < 1e-9 * power.max()
    assert power[:, 5].max() > 1e-3 * power.max()
    u = initial_condition("positive", grid, channels=1, key=jax.random.key(0))
    assert u.min() >= 0.05
    assert u.max() <= 0.95
    a, b = initial_condition("seeds", grid, channels=2, key=jax.random.key(0))
    np.testing.assert_allclose(a, 1 - 2 * b)
    assert b.min() > -1e-12
    assert 0.2 < b.max() < 0.26

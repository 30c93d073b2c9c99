"""Stiff equations: exponax beside Φ solves the same ones; a filter in modes is a filter."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from splatop.bench.stiff_solvers import as_good, doubled, made_by_exponax
from splatop.bench.timing import relative_error
from splatop.benchmarks import BENCHMARKS
from splatop.equation import EXAMPLES, parse_equation
from splatop.numerics import Numerics, build_physics
from splatop.spectral import from_modes, keep_band, pad_modes, to_modes


def waves(points, channels, dims, length):
    """A smooth state: a few low modes, between 0 and 1."""
    x = np.arange(points) / points
    along = 0.5 + 0.2 * np.cos(2 * np.pi * x + 0.3) + 0.1 * np.sin(4 * np.pi * x)
    field = along if dims == 1 else along[:, None] * (0.8 + 0.2 * np.cos(2 * np.pi * x + 1))
    return jnp.asarray(np.stack([field, 0.5 * field[::-1]][:channels]), jnp.float32)


# exponax keeps the real part of its tables, of first order for dispersion, and for a cubic term
# half of the modes, 8 of these 16.
@pytest.mark.parametrize(
    ("name", "tolerance"), [("kuramoto_sivashinsky", 1e-4), ("gray_scott", 1e-2), ("kdv", 5e-3)]
)
def test_exponax_is_given_the_equation_that_we_have(name, tolerance):
    """By its change over a few frames: a sign or a factor would be off by as much as the change."""
    example = EXAMPLES[name]
    dims, length = len(example.lengths), example.lengths[0]
    u = waves(32, len(example.equation.fields), dims, length)
    numerics = Numerics(
        "box", (10 / length,) * dims, 0.0, (32,) * dims, 16, jets="spectral", integrator="etdrk4"
    )
    dt = 4 * example.dt
    physics = build_physics(example.equation, numerics, lengths=example.lengths, dt=dt)
    ours = jax.jit(lambda v: physics(v, dict(example.coefficients)))(u)
    make = made_by_exponax(name, example.coefficients, length, dims)
    step = make(32, dt / 32)
    theirs = jax.jit(lambda v: jax.lax.fori_loop(0, 32, lambda _, w: step(w), v))(u)
    assert relative_error(theirs - u, ours - u) < tolerance


def test_exponax_is_given_the_benchmark_between_walls():
    """Reflected, insulated walls are none: by the change over a few frames, as above."""
    benchmark = BENCHMARKS["reaction_diffusion2d"].with_points(24)
    x = (np.arange(24) + 0.5) / 24
    along = 0.3 + 0.3 * np.cos(np.pi * x)[:, None] * np.cos(2 * np.pi * x)
    u = jnp.asarray(np.stack([along, 0.3 * along.T]), jnp.float32)
    numerics = Numerics("none", (), 0.0, (14, 14), 8, integrator="etdrk4")
    physics = build_physics(
        benchmark.equation, numerics, domain=benchmark.domain, layout=("cells", "cells"), dt=0.2
    )
    ours = jax.jit(lambda v: physics(v, dict(benchmark.coefficients)))(u)
    step = made_by_exponax("reaction_diffusion2d", benchmark.coefficients, 4.0, 2)(48, 0.2 / 8)
    theirs = jax.jit(lambda v: jax.lax.fori_loop(0, 8, lambda _, w: step(w), v))(doubled(u))
    # 14 Gaussians hold these waves, and the sixth of their cube, to 1e-3; k alone is 1e-2 of it.
    assert relative_error(theirs - doubled(u), doubled(ours) - doubled(u)) < 1e-3


@pytest.mark.slow
def test_the_solver_beside_is_the_coarsest_and_longest_that_is_as_good():
    example = EXAMPLES["kuramoto_sivashinsky"]
    u = waves(64, 1, 1, 60.0)
    make = made_by_exponax("kuramoto_sivashinsky", example.coefficients, 60.0, 1)
    fine = make(64, 0.01)
    after = jax.jit(lambda v: jax.lax.fori_loop(0, 20, lambda _, w: fine(w), v))(u)
    found = as_good(make, u, after, dt=0.2, error=1e-5)
    assert found
    assert found[0].points[0] < 64
    assert all(solver.error <= 1e-5 for solver in found)
    assert not as_good(make, u, -after, dt=0.2, error=1e-5)


@pytest.mark.parametrize("points", [(16,), (15,), (16, 12), (9, 15)])
def test_a_band_in_its_place_and_back(points):
    """Against NumPy's own places: mode k stands at k modulo the number of points."""
    band = tuple((n - 1) // 2 - 1 for n in points)
    u = jnp.asarray(np.random.default_rng(0).normal(size=(2, *points)), jnp.float32)
    modes = to_modes(u)
    kept = keep_band(modes, band)
    inside = [np.abs(np.fft.fftfreq(n, 1 / n)) <= b for n, b in zip(points, band, strict=True)]
    inside[-1] = inside[-1][: points[-1] // 2 + 1]
    if points[-1] % 2 == 0:
        inside[-1] = np.arange(points[-1] // 2 + 1) <= band[-1]
    mask = inside[0] if len(points) == 1 else inside[0][:, None] & inside[1]
    np.testing.assert_array_equal(pad_modes(kept, band, points), modes * mask)
    assert from_modes(pad_modes(kept, band, points), points).shape == u.shape


@pytest.mark.parametrize("jets", ["splat", "spectral"])
def test_a_filter_in_modes_is_the_filter(jets):
    """A forcing of zero takes the way through fields, which is what the other has to equal where
    steps stay at rest, as what is forced in places does."""
    equation = parse_equation("dt(u) = -u*dx(u) - lap(u) - bilap(u) + cos(pi*x/15)/10", dims=1)
    numerics = Numerics("sharp", (9 / 30,), 0.0, (26,), 2, jets=jets, integrator="etdrk4")
    physics = build_physics(equation, numerics, lengths=(30.0,), dt=0.5)
    u = jnp.asarray(np.random.default_rng(1).normal(size=(1, 64)), jnp.float32)
    u = physics.confine(u, {})  # what lies beyond the band, only fields carry through the stages
    one = eqx.filter_jit(lambda v: physics.advance(v, {}))(u)
    other = eqx.filter_jit(lambda v: physics.advance(v, {}, forcing=jnp.zeros_like))(u)
    # Rounding of a few transforms of 64 points.
    np.testing.assert_allclose(one, other, atol=5e-6 * float(jnp.abs(u).max()))


def exponential(text, dims, substeps, *, length=1.0, dt, cutoff=12.0):
    """One step of ETDRK4 in double precision, compiled."""
    numerics = Numerics(
        "box",
        (cutoff / length,) * dims,
        0.0,
        (32,) * dims,
        substeps,
        jets="spectral",
        integrator="etdrk4",
    )
    equation = parse_equation(text, dims=dims)
    physics = build_physics(equation, numerics, lengths=(length,) * dims, dt=dt)
    return jax.jit(lambda u: physics(u, {}))


def test_a_soliton_is_still_in_its_own_coordinates():
    """A wave of KdV that keeps its shape: what a step leaves is what its images leave of it."""
    x = np.arange(64) * 24 / 64 - 12
    with jax.enable_x64(True):
        u = jnp.asarray(sum(0.8 / np.cosh(np.sqrt(0.4) * (x + n)) ** 2 for n in (-24, 0, 24)))[None]
        places = {"length": 24.0, "dt": 0.1, "cutoff": 20.0}
        one, many = (exponential("dt(u) = -6*u*dx(u) - d3x(u)", 1, n, **places)(u) for n in (1, 64))
        assert relative_error(many, u) > 0.05  # it moves
        assert relative_error(one, many) < 2e-6  # 2.4e-4 in coordinates at rest


@pytest.mark.parametrize("wind", [(20.0, 0.0), (-8.0, 8.0)])
def test_a_wind_costs_no_steps(wind):
    """What a wind carries and what is at rest differ by a shift alone."""
    text = "dt(u) = -u*dx(u) - v*dy(u) + lap(u)/50; dt(v) = -u*dx(v) - v*dy(v) + lap(v)/50"
    still = np.asarray(waves(32, 2, 2, 1.0), float)
    still -= still.mean(axis=(1, 2), keepdims=True)
    dt = 1 / 64
    with jax.enable_x64(True):
        step = exponential(text, 2, 1, dt=dt)
        calm = step(jnp.asarray(still))
        blown = step(jnp.asarray(still + np.reshape(wind, (2, 1, 1))))
        k = np.fft.fftfreq(32, 1 / 32)
        phase = np.exp(-2j * np.pi * dt * (wind[0] * k[:, None] + wind[1] * k))
        back = np.fft.ifft2(np.fft.fft2(np.asarray(blown)) * np.conj(phase)).real
        back -= np.reshape(wind, (2, 1, 1))
        assert relative_error(jnp.asarray(back), calm) < 1e-5


def test_a_constant_velocity_is_a_wind_too():
    """Of all fields alike, or in their mean: what is left of each stays in the tables."""
    text = "dt(u) = -30*dx(u) + u - u*v^2; dt(v) = -20*dx(v) + v - v*u^2 + lap(v)/50"
    u = waves(32, 2, 1, 1.0)
    with jax.enable_x64(True):
        u = jnp.asarray(u, jnp.float64)
        few, many = (exponential(text, 1, n, dt=0.02)(u) for n in (2, 64))
        assert relative_error(few, many) < 1e-5


def test_steps_do_not_move_along_where_a_place_matters():
    """A velocity that varies is felt where it is: steps agree with many short ones."""
    text = "dt(u) = -(2 + sin(2*pi*x))*dx(u) + lap(u)/50"
    u = np.asarray(waves(32, 1, 1, 1.0), float)
    with jax.enable_x64(True):
        few, many = (exponential(text, 1, n, dt=0.05)(jnp.asarray(u)) for n in (16, 128))
        assert relative_error(few, many) < 1e-4


def test_a_wave_along_one_direction_alone_has_a_velocity():
    """In 2D its gradients all point the same way, so that the velocity across it is anyone's."""
    text = "dt(u) = -(u + 3)*dx(u) - (u + 3)*dy(u) + lap(u)/50"
    x = np.arange(32) / 32
    u = 0.1 * np.sin(2 * np.pi * (x[:, None] + x))[None]
    with jax.enable_x64(True):
        few, many = (exponential(text, 2, n, dt=0.05)(jnp.asarray(u)) for n in (1, 32))
        assert relative_error(few, many) < 1e-4

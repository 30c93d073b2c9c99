"""Reference solutions against exact ones, and the laws that the equations obey."""

from dataclasses import replace
from functools import lru_cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from splatop.benchmarks import BENCHMARKS
from splatop.data import generate, reference_stepper
from splatop.data.reference import draw_coefficients, initial_state, trajectory_keys
from splatop.equation import Equation, Reaction
from splatop.errors import SplatopError
from splatop.jets import SpectralJets
from splatop.spectral import PassThrough, resample
from splatop.stepper import rollout


def _start(benchmark, index=0):
    return initial_state(benchmark, trajectory_keys(0, "train", index)[1])


@eqx.filter_jit
def _final(benchmark_stepper, u, coefficients, steps):
    return rollout(benchmark_stepper, u, coefficients, steps=steps)[-1]


@lru_cache
def _data(name, points=None):
    """A small data set, shared by the tests of laws."""
    benchmark = BENCHMARKS[name].reduced()
    return generate(benchmark, trajectories=2, steps=40, points=points).array


def _relative(a, b):
    return float(jnp.linalg.norm(a - b) / jnp.linalg.norm(b))


@pytest.mark.parametrize("name", [n for n, b in BENCHMARKS.items() if not b.boundary])
def test_one_step_agrees_with_eight_smaller_ones(name):
    benchmark = BENCHMARKS[name]
    coefficients, u = benchmark.typical_coefficients(), _start(benchmark)
    if "allen_cahn" in name:  # a state with interfaces
        u = _final(reference_stepper(benchmark), u, coefficients, 40)
    once = _final(reference_stepper(benchmark), u, coefficients, 1)
    fine = reference_stepper(replace(benchmark, dt=benchmark.dt / 8))
    # The bound that the data has to meet; float32 alone gives about 8 * 1e-7.
    assert _relative(once, _final(fine, u, coefficients, 8)) < 1e-5


def test_advection_is_a_roll_by_four_cells():
    data = generate(BENCHMARKS["advection2d"], trajectories=1, steps=10).array[0, :, 0]
    for step in (1, 10):
        rolled = np.roll(data[0], (4 * step, 4 * step), (0, 1))
        # One FFT and back in float32 costs about 2e-7.
        np.testing.assert_allclose(data[step], rolled, atol=step * 5e-7)


@pytest.mark.parametrize("name", ["advection_diffusion2d", "advection_diffusion3d"])
def test_a_wave_travels_and_decays(name):
    benchmark = BENCHMARKS[name].reduced()
    coefficients = {"v": 0.03, "D": 1e-3}
    modes = (3, -2, 1)[: benchmark.dims]
    with jax.enable_x64(True):
        x = benchmark.grid.coordinates()
        steps, t = 7, 7 * benchmark.dt

        def wave(t):
            phase = sum(k * (xi - 0.03 * t) for k, xi in zip(modes, x, strict=True))
            decay = np.exp(-1e-3 * (2 * np.pi) ** 2 * sum(k * k for k in modes) * t)
            return decay * np.sin(2 * np.pi * phase)[None]

        u = _final(reference_stepper(benchmark), jnp.asarray(wave(0.0)), coefficients, steps)
    # Exact but for rounding.
    np.testing.assert_allclose(u, wave(t), atol=1e-12)


@pytest.mark.parametrize("points", [40, 64, 320])
def test_every_grid_has_the_same_initial_functions(points):
    benchmark = BENCHMARKS["advection2d"]
    fine, other = _start(benchmark), _start(benchmark.with_points(24).with_points(points))
    step, ours = (160 // np.gcd(160, points)), points // np.gcd(160, points)
    # The points that both grids have: rounding of a float32 product of 160 numbers.
    np.testing.assert_allclose(other[:, ::ours, ::ours], fine[:, ::step, ::step], atol=1e-6)


def _oracle(benchmark, u, substeps):
    """One frame by RK4 over the benchmark's own equation with exact derivatives."""
    jets = SpectralJets(benchmark.lengths, PassThrough())
    needed = benchmark.equation.derivatives(benchmark.dims)
    h = benchmark.dt / substeps

    def rate(u):
        return benchmark.equation(jets(u, needed), benchmark.coefficients)

    def step(u, _):
        k1 = rate(u)
        k2 = rate(u + h / 2 * k1)
        k3 = rate(u + h / 2 * k2)
        k4 = rate(u + h * k3)
        return u + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    return jax.jit(lambda u: jax.lax.scan(step, u, length=substeps)[0])(u)


@pytest.mark.parametrize("name", ["burgers2d", "burgers2d_conservative", "advection_allen_cahn2d"])
def test_nonlinear_reference_solves_the_equation_of_the_table(name):
    benchmark = replace(BENCHMARKS[name].with_points(48), initial_cutoff=2)
    u = _start(benchmark)
    ours = _final(reference_stepper(benchmark), u, benchmark.coefficients, 1)
    truth = _oracle(benchmark, u, substeps=32)
    # ETDRK4 at one step per frame and float32 are each good to 1e-6; 48 points hold what products
    # of modes up to 2 make in one frame. A wrong sign or form of a term is off by more than 1e-3.
    assert _relative(ours, truth) < 5e-6
    assert _relative(u, truth) > 1e-2


@pytest.mark.slow
def test_coarse_allen_cahn_is_the_fine_one_sampled():
    benchmark = BENCHMARKS["advection_allen_cahn2d"]
    u = _start(benchmark)
    fine = _final(reference_stepper(benchmark), u, benchmark.coefficients, 30)
    coarse = reference_stepper(benchmark.with_points(64))
    ours = _final(coarse, resample(u, (64, 64)), benchmark.coefficients, 30)
    # Energy beyond mode 32 is 1e-6 of the field; dealiased on 64 points it would be off by 5e-4.
    assert _relative(ours, resample(fine, (64, 64))) < 3e-5


def test_forms_of_burgers_differ():
    """In 2D the paper's form and APEBench's are different equations."""
    plain, conservative = (_data(name)[0, -1] for name in ("burgers2d", "burgers2d_conservative"))
    assert _relative(plain, conservative) > 0.05


@pytest.mark.parametrize(
    "name",
    ["advection_diffusion2d", pytest.param("advection_allen_cahn2d", marks=pytest.mark.slow)],
)
def test_coefficients_are_those_of_the_call(name):
    """Also where they are tracers, and the solver is built in the trace."""
    benchmark = BENCHMARKS[name].with_points(16)
    stepper, u = reference_stepper(benchmark), _start(benchmark)
    other = {k: 2 * v for k, v in benchmark.coefficients.items()}
    traced = jax.vmap(stepper, (None, 0))(u, {k: jnp.full(2, v) for k, v in other.items()})
    expected = stepper(u, other)
    # Two compilations of one computation in float32.
    np.testing.assert_allclose(traced[1], expected, atol=3e-6)
    assert _relative(stepper(u, benchmark.coefficients), expected) > 1e-2


def test_linear_cases_keep_the_mean_and_lose_energy():
    for name in ("advection2d", "advection_diffusion2d", "advection_diffusion3d"):
        data = _data(name)
        space = tuple(range(3, data.ndim))
        # Rounding of sums over the grid in float32.
        np.testing.assert_allclose(data.mean(space, dtype=float), 0.0, atol=1e-6)
        energy = np.square(data, dtype=float).sum(space)
        growth = energy[:, 1:] / energy[:, :-1]
        assert (growth < 1 + 1e-6).all()
        if "diffusion" in name:
            assert (growth < 1 - 1e-5).all()
        else:
            np.testing.assert_allclose(growth, 1.0, atol=1e-6)


def test_burgers_obeys_the_maximum_principle():
    data = _data("burgers2d")
    largest = np.abs(data).max(axis=(3, 4))
    # Between grid points the maximum is a little higher than on them: 64 points see a crest of
    # mode 5 to within 1 - cos(pi 5 / 64) = 3 %.
    assert (largest[:, 1:] < 1.03 * np.minimum.accumulate(largest, axis=1)[:, :-1]).all()


def test_conservative_burgers_keeps_the_mean():
    data = _data("burgers2d_conservative")
    np.testing.assert_allclose(data.mean((3, 4), dtype=float), 0.0, atol=1e-6)


def test_allen_cahn_stays_bounded_and_lowers_its_energy():
    benchmark = BENCHMARKS["advection_allen_cahn2d"].reduced()
    data = _data(benchmark.name)[0]
    assert np.abs(data).max() < 1.001
    jets = SpectralJets(benchmark.lengths, PassThrough())
    needed = sorted(d for d in benchmark.equation.derivatives(2) if d.order == 1)

    @jax.jit
    def free_energy(u):
        slopes = jets(u, needed)
        gradient = sum(jnp.mean(slopes[d] ** 2) for d in needed)
        return 1e-3 / 2 * gradient + jnp.mean((1 - u**2) ** 2) / 4

    energy = np.array([free_energy(u) for u in data])
    assert (np.diff(energy) < 1e-6).all()
    assert energy[-1] < 0.7 * energy[0]


def test_allen_cahn_of_a_constant_is_the_logistic_solution():
    benchmark = BENCHMARKS["advection_allen_cahn2d"].with_points(16)
    u = jnp.full((1, 16, 16), 0.3)
    final = _final(reference_stepper(benchmark), u, benchmark.coefficients, 10)
    grown = 0.09 * np.exp(2.0)
    # Order 4 with h = 0.1: a few times h^4/100 per unit time.
    np.testing.assert_allclose(final, np.sqrt(grown / (1 - 0.09 + grown)), rtol=5e-6)


@pytest.mark.parametrize("name", ["burgers2d", "advection_diffusion3d"])
def test_initial_states_are_truncated_fourier_series(name):
    benchmark = BENCHMARKS[name]
    u = np.stack([_start(benchmark, index) for index in range(8)])
    space = tuple(range(2, u.ndim))
    np.testing.assert_allclose(np.abs(u).max(axis=space), 1.0, atol=1e-6)
    np.testing.assert_allclose(u.mean(axis=space), 0.0, atol=1e-6)
    energy = (np.abs(np.fft.rfftn(u, axes=space)) ** 2).mean(axis=(0, 1))
    modes = benchmark.grid.modes()
    inside = np.all(np.broadcast_arrays(*[np.abs(k) <= 5 for k in modes]), axis=0)
    assert energy[~inside].max() < 1e-10 * energy[inside].max()
    # The band is a box: its corner is as full as the rest.
    assert energy[(5,) * benchmark.dims] > 0.05 * energy[inside].mean()
    if benchmark.channels == 2:
        assert np.abs(np.corrcoef(u[:, 0].ravel(), u[:, 1].ravel())[0, 1]) < 0.3


def test_unknown_coefficients_are_log_uniform():
    benchmark = BENCHMARKS["unknown_advection_diffusion2d"]
    keys = [trajectory_keys(0, "train", index)[0] for index in range(200)]
    drawn = [draw_coefficients(benchmark, key) for key in keys]
    places = []
    for name, (low, high) in benchmark.coefficient_ranges.items():
        values = np.array([float(one[name]) for one in drawn])
        places.append(np.log(values / low) / np.log(high / low))
        assert (places[-1] > -1e-6).all()
        assert (places[-1] < 1 + 1e-6).all()
        # Kolmogorov-Smirnov: 1.95 / sqrt(200) is exceeded once in a thousand seeds.
        steps = np.arange(201) / 200
        ordered = np.sort(places[-1])
        assert max(np.abs(ordered - steps[1:]).max(), np.abs(ordered - steps[:-1]).max()) < 0.138
    # Independent: the correlation of 200 pairs is below 3.3 / sqrt(200).
    assert abs(np.corrcoef(places)[0, 1]) < 0.23


def test_the_reference_refuses_what_it_cannot_solve():
    benchmark = BENCHMARKS["advection2d"].with_points(16)
    odd = replace(benchmark, equation=Equation((Reaction((0.0, 1.0, -1.0)),)))
    with pytest.raises(SplatopError, match="expected an equation of the benchmarks"):
        reference_stepper(odd)
    with pytest.raises(SplatopError, match=r"on the grid \(16, 16\)"):
        reference_stepper(benchmark)(jnp.zeros((1, 20, 20)), benchmark.coefficients)
    with pytest.raises(SplatopError, match="give v"):
        reference_stepper(benchmark)(jnp.zeros((1, 16, 16)), {})

"""Identification against exact solutions: each method, its bias, its intervals."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import splatop
from splatop.data import ArrayTrajectories
from splatop.encoders import UNetEncoder
from splatop.equation import Advection, Diffusion, Equation, parse_equation
from splatop.grid import Grid
from splatop.identify import add_noise, identify, identify_trajectories, lattice_jets
from splatop.identify.inverse import pose
from splatop.identify.reduced import reduce
from splatop.identify.weak import integrate
from splatop.jets import SpectralJets, SplatJets
from splatop.physics import EmbeddedPhysics
from splatop.spectral import PassThrough
from splatop.stepper import rollout

EQUATION = Equation((Advection(), Diffusion()))
JETS = lattice_jets((3, 3), Grid.unit(32, 2))
LINE = lattice_jets((31,), Grid.unit(64, 1))
TRUE = {"v": 0.02, "D": 2e-4}


def exact(*, velocity=(0.02, 0.02), diffusivity=2e-4, frames=7, dt=1.0, seed=0) -> np.ndarray:
    """Frames `(T, 1, 32, 32)` of random modes up to 3 that travel and decay, exact."""
    generator = np.random.default_rng(seed)
    k = np.fft.fftfreq(32, 1 / 32)
    kx, ky = k[:, None], k[None]
    inside = (np.abs(kx) <= 3) & (np.abs(ky) <= 3) & ((kx != 0) | (ky != 0))
    modes = inside * np.fft.fft2(generator.normal(size=(32, 32)))
    rate = -2j * np.pi * (velocity[0] * kx + velocity[1] * ky)
    rate = rate - diffusivity * (2 * np.pi) ** 2 * (kx**2 + ky**2)
    return np.stack([np.fft.ifft2(modes * np.exp(rate * n * dt)).real for n in range(frames)])[
        :, None
    ]


def relative_errors(found, true=TRUE) -> np.ndarray:
    return np.array(list(found.relative_errors(true).values()))


# --- the paper's method --------------------------------------------------------------------------


def test_paper_estimate_has_exactly_the_error_of_its_stencil():
    # A wave exp(λt) makes the regression exact but for the time difference, which maps λ to
    # (45 sinh λ - 9 sinh 2λ + sinh 3λ)/30; v and D are its imaginary and real part. The columns
    # are in single precision (1e-7), and D is a thirtieth of the rate.
    x = np.arange(32) / 32
    v, d, k = 0.04, 1e-3, 2 * np.pi * 3
    rate = -1j * k * v - d * k**2
    frames = np.stack([(np.exp(1j * k * x + rate * n)).real for n in range(7)])[:, None]
    seen = (45 * np.sinh(rate) - 9 * np.sinh(2 * rate) + np.sinh(3 * rate)) / 30
    equation = parse_equation("dt(u) = -v*dx(u) + D*d2x(u)", dims=1)
    found = identify(equation, lattice_jets((3,), Grid.unit(32, 1)), frames, 1.0, method="paper")
    assert found.estimates["v"] == pytest.approx(-seen.imag / k, rel=1e-6)
    assert found.estimates["D"] == pytest.approx(-seen.real / k**2, rel=3e-5)
    assert abs(found.estimates["v"] / v - 1) > 1e-3  # the stencil's error is there to be seen


def test_paper_method_is_the_dense_regression_with_directions_averaged():
    # The slow way: spectral columns in double precision, three of them, np.linalg.lstsq. The
    # lattice of 20 anchors differentiates modes up to 3 to 1e-6 in single precision.
    frames = exact(velocity=(0.015, 0.025))
    k = 2 * np.pi * np.fft.fftfreq(32, 1 / 32)
    centre = np.fft.fft2(frames[3, 0])
    columns = [-1j * k[:, None] * centre, -1j * k[None] * centre]
    columns.append(-(k[:, None] ** 2 + k[None] ** 2) * centre)
    matrix = np.stack([np.fft.ifft2(c).real.ravel() for c in columns], axis=1)
    stencil = np.array([-1, 9, -45, 0, 45, -9, 1]) / 60
    target = np.tensordot(stencil, frames[:, 0], axes=1).ravel()
    vx, vy, d = np.linalg.lstsq(matrix, target)[0]
    found = identify(EQUATION, JETS, frames, 1.0, method="paper")
    assert found.estimates["v"] == pytest.approx((vx + vy) / 2, rel=1e-5)
    assert found.estimates["D"] == pytest.approx(d, rel=1e-4)
    assert vx < 0.016 < 0.024 < vy  # the average is not what either direction says


@pytest.mark.slow
def test_paper_method_takes_a_learned_encoder():
    # Untrained, the network is the isotropic lattice with solved amplitudes: per cent accuracy.
    encoder = UNetEncoder((12, 12), 1, key=jax.random.key(0))
    jets = SplatJets(encoder=encoder, lengths=(1.0, 1.0), filter=PassThrough())
    found = identify(EQUATION, jets, exact().astype(np.float32), 1.0, method="paper")
    assert found.estimates["v"] == pytest.approx(0.02, rel=0.05)


def test_paper_intervals_hold_the_error_of_the_stencil():
    for seed in range(6):
        found = identify(EQUATION, JETS, exact(seed=seed), 1.0, method="paper")
        assert all(found.covers(TRUE).values())


# --- flow, weak, trajectory ----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("method", ["flow", "weak", "trajectory"])
def test_clean_frames_give_the_coefficients(method):
    # Exact data: RK4 with substeps is good to 1e-6 of the rate of the fastest mode, the weak
    # form's order is 12. D is a tenth of the rate. A flipped sign of either term is 200 % off.
    found = identify(EQUATION, JETS, exact(), 1.0, method=method)
    assert found.method == method
    assert found.warnings == ()
    assert np.all(relative_errors(found) < 1e-5)
    assert found.relative_residual < 1e-5


@pytest.mark.slow
def test_auto_takes_the_flow_for_clean_frames_and_the_trajectory_for_noisy_ones():
    clean = exact().astype(np.float32)
    assert identify(EQUATION, JETS, clean, 1.0).method == "flow"
    noisy = identify(EQUATION, JETS, add_noise(clean, 0.05, 0), 1.0)
    assert noisy.method == "trajectory"
    assert noisy.noise_level == pytest.approx(0.05, rel=0.1)


@pytest.mark.slow
def test_noise_biases_damping_of_the_flow_but_not_of_the_trajectory():
    # Noise of relative size s puts s² 49/1024 of noise beside the signal of each of the 49 modes,
    # which a step from noisy frame to noisy frame takes for signal that vanishes. At s = 1 that
    # is 0.05 per step; the damping of the modes is D (2πk)² = 0.05 for |k|² = 6.5.
    clean = exact(frames=7)
    estimates = {"flow": [], "trajectory": []}
    for seed in range(24):
        noisy = add_noise(clean, 1.0, seed)
        for method, values in estimates.items():
            found = identify(EQUATION, JETS, noisy, 1.0, method=method)
            values.append(found.estimates["D"] / TRUE["D"] - 1)
    means = {m: np.mean(v) for m, v in estimates.items()}
    deviations = {m: np.std(v) / np.sqrt(24) for m, v in estimates.items()}
    assert means["flow"] > 4 * deviations["flow"]
    assert abs(means["trajectory"]) < 3.5 * deviations["trajectory"]


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.01, 0.05])
def test_intervals_cover_the_truth_as_often_as_they_say(level):
    # 120 intervals at 95 %: 114 expected, deviation 2.4; four deviations are 104 (87 %). At the
    # other end the estimates must not be much better than claimed: their z values spread by 1,
    # known to 1/sqrt(240) = 6.5 %.
    scores = []
    for seed in range(60):
        noisy = add_noise(exact(seed=seed), level, 1000 + seed)
        found = identify(EQUATION, JETS, noisy, 1.0)
        scores += [
            (found.estimates[name] - true) / found.standard_errors[name]
            for name, true in TRUE.items()
        ]
    assert np.sum(np.abs(scores) < 1.98) >= 104
    assert np.std(scores) == pytest.approx(1.0, abs=4 * 0.065)


def test_weak_form_takes_out_what_noise_does_to_its_columns():
    # At s = 1 each of 49 modes holds 49/1024 of noise beside its signal, in one frame; over the
    # window the squared bell leaves Σ a² = 0.27 of that: least squares alone shrinks v by 1.3 %,
    # up to a factor of two for the shape of this field's spectrum. The pairs share their noise.
    corrected, plain = [], []
    for seed in range(40):
        problem = pose(EQUATION, JETS, add_noise(exact(), 1.0, seed), 1.0)
        trusting = replace(problem, spectrum=replace(problem.spectrum, noise=np.zeros(1)))
        with jax.enable_x64(True):
            corrected.append(integrate(problem, reduce(problem)).x[0] / TRUE["v"] - 1)
            plain.append(integrate(trusting, reduce(problem)).x[0] / TRUE["v"] - 1)
    shrinkage = np.mean(corrected) - np.mean(plain)
    assert 0.006 < shrinkage < 0.026
    assert abs(np.mean(corrected)) < 3.5 * np.std(corrected) / np.sqrt(40)


def test_any_time_step_and_box():
    # Units cancel: twice the box and a third of the time step scale v by 6 and D by 12.
    frames = exact()
    found = identify(EQUATION, lattice_jets((3, 3), Grid((32, 32), (2.0, 2.0))), frames, 1 / 3)
    scaled = {"v": 6 * TRUE["v"], "D": 12 * TRUE["D"]}
    assert np.all(relative_errors(found, scaled) < 1e-5)


def test_known_coefficients_are_used():
    found = identify(EQUATION, JETS, exact(), 1.0, known={"v": 0.02})
    assert set(found.estimates) == {"D"}
    assert found.coefficients["v"] == 0.02
    assert found.estimates["D"] == pytest.approx(TRUE["D"], rel=1e-5)


def test_many_trajectories_are_each_by_itself():
    velocities = (0.01, 0.02, 0.03)
    array = np.stack([exact(velocity=(v, v), seed=i) for i, v in enumerate(velocities)])
    data = ArrayTrajectories(array, Grid.unit(32, 2), dt=1.0, fields=("u",))
    calls = []
    found = identify_trajectories(
        EQUATION, None, data, progress=lambda done, total: calls.append((done, total))
    )
    assert calls == [(1, 3), (2, 3), (3, 3)]
    # Single precision data: 1e-7 of the field against a change of 0.1 of it per step.
    assert [one.estimates["v"] for one in found] == pytest.approx(velocities, rel=1e-5)
    alone = identify(EQUATION, JETS, array[2].astype(np.float32), 1.0)
    assert found[2].estimates["v"] == pytest.approx(alone.estimates["v"], rel=1e-9)


# --- other equations -----------------------------------------------------------------------------


def solution(text, coefficients, *, dims=1, points=64, dt=0.1, frames=7, seed=0):
    """Frames of any equation, by RK4 with 64 substeps and exact derivatives in double precision."""
    equation = parse_equation(text, dims=dims)
    with jax.enable_x64(True):
        jets = SpectralJets((1.0,) * dims, PassThrough())
        physics = EmbeddedPhysics(equation, jets, dt, 64, working_grid=False)
        x = np.arange(points) / points
        phases = np.random.default_rng(seed).uniform(0, 2 * np.pi, (len(equation.fields), 3, dims))
        u0 = np.zeros((len(equation.fields), *(points,) * dims))
        for c, per_channel in enumerate(phases):
            for k, phase in enumerate(per_channel, start=1):
                waves = [np.cos(2 * np.pi * k * x + p) for p in phase]
                u0[c] += np.prod(np.stack(np.meshgrid(*waves, indexing="ij")), axis=0) / k
        states = rollout(physics, jnp.asarray(u0), coefficients, steps=frames - 1)
        return equation, np.concatenate([u0[None], np.asarray(states)])


def test_nonlinear_terms():
    true = {"c": 0.05, "nu": 2e-3, "r": 0.3}
    equation, frames = solution("dt(u) = -c*u*dx(u) + nu*d2x(u) + r*(u - u^3)", true)
    # The cubic feeds modes beyond any band: what lies beyond is 1e-6 of the field.
    assert np.all(relative_errors(identify(equation, LINE, frames, 0.1), true) < 1e-5)
    noisy = identify(equation, LINE, add_noise(frames, 0.01, 0), 0.1)
    assert noisy.method == "trajectory"
    for name, value in true.items():
        assert abs(noisy.estimates[name] - value) < 4 * noisy.standard_errors[name]


@pytest.mark.slow
def test_an_unknown_that_enters_nonlinearly_is_found_by_the_flow():
    true = {"v": 0.3, "q": 2.2, "r": 0.5}
    equation, frames = solution("dt(u) = -v*dx(u) + r*sin(q*u)", true)
    found = identify(equation, LINE, frames, 0.1, method="paper")
    assert found.method == "flow"
    assert any("not linear in q" in text and "flow" in text for text in found.warnings)
    # sin(q u) = sin(-q u) with -r: the signs of q and r are a convention.
    assert abs(found.estimates["q"]) == pytest.approx(2.2, rel=1e-4)
    assert found.estimates["q"] * found.estimates["r"] == pytest.approx(1.1, rel=1e-4)
    given = identify(equation, LINE, frames, 0.1, unknown={"v": 0.1, "q": 2.0, "r": 1.0})
    assert given.estimates["q"] == pytest.approx(2.2, rel=1e-4)


def test_coupled_fields_with_different_scales():
    # A wave equation as a system: s is a thousandth of u, yet both channels count.
    true = {"a": 40.0, "b": 1e-3}
    equation, frames = solution("dt(u) = -a*dx(s); dt(s) = -b*dx(u)", true)
    frames = frames * np.array([1.0, 1e-3])[:, None]
    scaled = {"a": 40.0 * 1e3, "b": 1e-6}
    found = identify(equation, LINE, frames, 0.1)
    assert np.all(relative_errors(found, scaled) < 1e-5)


@pytest.mark.slow
def test_three_dimensions():
    true = {"v": 0.3, "D": 1e-3}
    text = "dt(u) = -v*(dx(u) + dy(u) + dz(u)) + D*lap(u)"
    equation, frames = solution(text, true, dims=3, points=12, frames=5)
    found = identify(equation, lattice_jets((3, 3, 3), Grid.unit(12, 3)), frames, 0.1)
    assert np.all(relative_errors(found, true) < 1e-5)


def test_data_of_any_kind_are_identified(tmp_path):
    """A wave that travels and decays, as an array and as a file."""
    x, t = np.arange(48) / 48, 0.1 * np.arange(12)
    waves = [
        np.exp(-0.01 * (2 * np.pi * k) ** 2 * t)[:, None]
        * np.sin(2 * np.pi * k * (x - 0.3 * t[:, None]))
        for k in (1, 2)
    ]
    u = (waves[0] + waves[1])[:, None]
    for name, values in {"u": u[:, 0], "x": x, "t": t}.items():
        np.save(tmp_path / f"{name}.npy", values)
    text, how = "dt(u) = -v*dx(u) + D*d2x(u)", {"dt": 0.1, "lengths": 1.0}
    (found,) = splatop.identify_data(u, text, **how)
    assert found.trusted
    assert found.estimates == pytest.approx({"v": 0.3, "D": 0.01}, rel=1e-4)
    (known,) = splatop.identify_data(u, text, known={"v": 0.3}, unknown={"D": 0.5}, **how)
    assert known.estimates == pytest.approx({"D": 0.01}, rel=1e-4)
    (filed,) = splatop.identify_data(tmp_path / "u.npy", text, periodic=True)
    assert filed.estimates == pytest.approx({"v": 0.3, "D": 0.01}, rel=1e-4)

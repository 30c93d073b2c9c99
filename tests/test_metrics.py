"""Metrics against values computed by hand and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from splatop.domain import Domain
from splatop.encoders import LatticeEncoder
from splatop.evaluate.metrics import (
    correlation,
    energy_error,
    first_divergence,
    first_step_above,
    first_step_below,
    frame_statistics,
    psnr,
    relative_l2,
    spectral_error,
)
from splatop.evaluate.representation import local_against_dense, representation_errors
from splatop.finite_differences import FiniteDifferenceJets
from splatop.jets import SplatJets
from splatop.spectral import PassThrough, SharpFilter, radial_spectrum

N = 32
X = np.arange(N) / N
# Means over 32 to 1024 points in float32, square roots of ratios: a few roundings of 6e-8 each.
CLOSE = 5e-6


def sine(shift: float = 0.0, amplitude: float = 1.0, mode: int = 1) -> jnp.ndarray:
    return jnp.asarray(amplitude * np.sin(2 * np.pi * mode * (X + shift)))[None]


def stats(prediction, reference):
    dims = np.ndim(reference) - 1
    return frame_statistics(
        jnp.asarray(prediction, jnp.float32),
        jnp.asarray(reference, jnp.float32),
        domain=Domain.box((1.0,) * dims),
        layout=("left",) * dims,
    )


@pytest.mark.parametrize("shift", [0.0, 0.03, 0.25, 0.5])
def test_shifted_sine_has_the_known_error(shift):
    # sin(a + b) - sin(a) = 2 sin(b/2) cos(a + b/2), and sine and cosine have equal norms.
    found = relative_l2(stats(sine(shift), sine()))
    assert found == pytest.approx(2 * abs(np.sin(np.pi * shift)), abs=CLOSE)


@pytest.mark.parametrize("shift", [0.0, 0.03, 0.25, 0.5])
def test_correlation_of_a_shifted_sine(shift):
    found = correlation(stats(sine(shift) + 3.0, sine() - 1.0))  # means do not count
    assert found == pytest.approx(np.cos(2 * np.pi * shift), abs=CLOSE)


def test_error_is_over_all_channels_together():
    reference = np.array([[3.0, 3.0], [0.0, 4.0]])
    prediction = np.array([[3.0, 0.0], [0.0, 0.0]])
    # sqrt(9 + 16) / sqrt(9 + 9 + 16); the channels by themselves would give 0.7071 and 1.
    assert relative_l2(stats(prediction, reference)) == pytest.approx(np.sqrt(25 / 34), rel=1e-6)


def test_energy_error_keeps_its_sign():
    assert energy_error(stats(sine(amplitude=0.9), sine())) == pytest.approx(0.81 - 1, abs=CLOSE)
    assert energy_error(stats(sine(amplitude=1.1), sine())) == pytest.approx(1.21 - 1, abs=CLOSE)


def test_correlation_counts_a_flat_reference_as_followed():
    flat = np.full((1, N), 0.7)
    assert correlation(stats(flat, flat)) == 1.0
    assert correlation(stats(np.zeros((1, N)), np.asarray(sine()))) == 0.0


def test_psnr_by_hand():
    # R² / MSE = 4 / 0.01 = 400, and 10 log10(400) = 26.0206.
    assert psnr(np.array(0.01), 2.0) == pytest.approx(26.0206, abs=1e-4)
    # Ten times the error is 20 dB less.
    assert psnr(np.array(1.0), 2.0) == pytest.approx(26.0206 - 20, abs=1e-4)


def test_psnr_of_an_exact_prediction_is_the_rounding_of_float32():
    assert psnr(np.array(0.0), 2.0) == pytest.approx(20 * np.log10(2**24), rel=1e-12)


def test_spectrum_puts_a_mode_into_its_shell():
    # cos has amplitude 1/2 at +k and -k, energy 1/4 each: a²/2 in all.
    x, y = np.meshgrid(X, X, indexing="ij")
    u = 3.0 * np.cos(2 * np.pi * (3 * x + 4 * y)) + 0.5
    energy = np.asarray(radial_spectrum(jnp.asarray(u, jnp.float32)[None], (1.0, 1.0)))
    expected = np.zeros_like(energy)
    expected[0], expected[5] = 0.25, 4.5
    # FFT of 1024 values in float32: relative 1e-6 of the largest coefficient, squared sums.
    np.testing.assert_allclose(energy, expected, atol=2e-5)


def test_spectral_error_with_and_without_the_mean():
    reference, prediction = np.array([4.0, 3.0, 0.0]), np.array([0.0, 3.0, 4.0])
    # ||(-4, 0, 4)|| / 5 with the mean; ||(0, 4)|| / 3 without.
    with_mean = spectral_error(prediction, reference, mean_evolves=True)
    assert with_mean == pytest.approx(np.sqrt(32) / 5)
    assert spectral_error(prediction, reference, mean_evolves=False) == pytest.approx(4 / 3)


def stacked(*frames):
    return jax.tree.map(lambda *a: np.stack(a), *(stats(p, r) for p, r in frames))


def test_divergence_is_the_first_step_that_is_not_finite_or_far_off():
    u = np.asarray(sine())
    assert first_divergence(stacked((u, u), (2 * u, u)), 0.5) is None
    assert first_divergence(stacked((u, u), (np.full_like(u, np.nan), u), (u, u)), 0.5) == 2
    assert first_divergence(stacked((u, u), (9.9 * u, u)), 0.5) is None
    assert first_divergence(stacked((u, u), (u, u), (10.1 * u, u)), 0.5) == 3
    # A reference that decays does not make a prediction of its initial size diverge.
    assert first_divergence(stacked((u, u), (u, 1e-3 * u)), 0.5) is None
    # 1e25 squared overflows float32.
    assert first_divergence(stacked((1e25 * u, u)), 0.5) == 1


def test_first_steps_count_from_one():
    curve = np.array([0.05, 0.1, 0.11, 0.02])
    assert first_step_above(curve, 0.1) == 3
    assert first_step_above(curve, 0.2) is None
    assert first_step_above(np.array([0.05, np.nan]), 0.1) == 2
    assert first_step_below(np.array([1.0, 0.85, 0.79]), 0.9) == 2
    assert first_step_below(np.array([1.0, 0.85, 0.79]), 0.8) == 3
    assert first_step_below(np.array([1.0, 0.95]), 0.9) is None


def test_representation_errors_of_central_differences():
    # On a mode with θ = 2πk/N a central difference gives sin θ/θ of the slope, and
    # (sin(θ/2)/(θ/2))² of the second derivative.
    mode, theta = 4, 2 * np.pi * 4 / N
    jets = FiniteDifferenceJets(lengths=(1.0,), filter=SharpFilter(1.0), accuracy=2)
    found = representation_errors(jets, np.asarray(sine(mode=mode))[None])
    assert found["e_u"] == pytest.approx(0.0, abs=1e-6)
    # Spectral second derivatives multiply float32 rounding by (2π 16)²/(2π 4)² = 16.
    assert found["e_grad"] == pytest.approx(1 - np.sin(theta) / theta, abs=1e-5)
    assert found["e_lap"] == pytest.approx(1 - np.sinc(theta / 2 / np.pi) ** 2, abs=3e-5)


def test_representation_errors_leave_the_filter_out():
    # The filter keeps mode 1 only; the lattice of 16 resolves mode 4 nevertheless.
    jets = SplatJets(encoder=LatticeEncoder((16,)), lengths=(1.0,), filter=SharpFilter(1.0))
    found = representation_errors(jets, np.asarray(sine(mode=4))[None])
    # Kernels of 1.2 spacings leave a mirror of exp(-2π² 1.44 (12² - 4²)/16²) = 6e-6 of the mode;
    # its slope is 3 and its second derivative 9 times as large.
    assert found["e_u"] < 2e-5
    assert found["e_grad"] < 6e-5
    assert found["e_lap"] < 2e-4


@pytest.mark.slow
def test_local_rendering_approaches_the_dense_one():
    frame = np.asarray(sine())[:, :, None] * np.cos(2 * np.pi * X)
    frames = np.stack([frame.astype(np.float32)])
    encoder = LatticeEncoder((16, 16), ratio=0.75)
    errors = [
        local_against_dense(encoder, frames, lengths=(1.0, 1.0), window=window)
        for window in (1, 2, 4)
    ]
    # What is cut off starts 1.5, 2.5 and 4.5 spacings away (half a cell further than the window
    # at the middle of a cell): exp(-½ (1.5/0.75)²) = 0.14, 4e-3, 1e-8 plus rounding.
    assert errors[0]["u"] > 10 * errors[1]["u"] > 1e3 * errors[2]["u"]
    assert errors[2]["u"] < 3e-6
    assert set(errors[0]) >= {"u", "dx", "dy", "lap", "speedup"}
    assert errors[0]["speedup"] == errors[0]["dense_ms"] / errors[0]["local_ms"]


def test_pass_through_is_what_unfiltered_means():
    jets = SplatJets(encoder=LatticeEncoder((16,)), lengths=(1.0,), filter=PassThrough())
    filtered = SplatJets(encoder=LatticeEncoder((16,)), lengths=(1.0,), filter=SharpFilter(1.0))
    frame = np.asarray(sine(mode=3))[None]
    assert representation_errors(jets, frame) == representation_errors(filtered, frame)

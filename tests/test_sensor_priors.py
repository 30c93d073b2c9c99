"""What was expected before measuring, and is corrected by the reports where they contradict it."""

import numpy as np
import pytest

from splatop import Observations, assimilate
from splatop.assimilate.unknowns import Prior

LENGTH, V, D, POINTS, DT = 2.0, 0.3, 1e-4, 128, 0.25
BAND = (POINTS - 1) // 2
WAVES = (np.arange(2 * BAND + 1) + 1) // 2
EXPECTED = 1 / (1 + WAVES / 8) ** 2
FEWER, SENSORS, FRAMES, SIGMA = 3.0, 40, 8, 0.01


def analysed(sizes):
    """Reports of a state with numbers of these sizes, and its analysis with those `EXPECTED`."""
    rng = np.random.default_rng(1)
    numbers = sizes * rng.normal(size=len(WAVES))

    def u(x, t):
        q = 2 * np.pi * WAVES / LENGTH
        wave = np.where(np.arange(len(WAVES)) % 2, np.cos, np.sin)
        phase = q * (x[:, None] - V * t[:, None])
        wave = np.where(np.arange(len(WAVES)) % 2, np.cos(phase), np.sin(phase))
        wave = np.where(WAVES == 0, 1.0, np.sqrt(2) * wave)
        return (wave * np.exp(-D * q**2 * t[:, None])) @ numbers

    x = np.tile(rng.uniform(0, LENGTH, SENSORS), FRAMES + 1)
    t = np.repeat(DT * np.arange(FRAMES + 1), SENSORS)
    obs = Observations(t, x, "u", u(x, t) + SIGMA * rng.normal(size=len(x)), sigma=SIGMA)
    found = assimilate(
        obs,
        "dt(u) = -v*dx(u) + D*d2x(u)",
        coefficients={"v": V, "D": D},
        prior=Prior(np.zeros((1, len(WAVES))), EXPECTED[None], "a test"),
        lengths=LENGTH,
        points=POINTS,
        dt=DT,
    )
    grid = LENGTH * np.arange(POINTS) / POINTS
    truth = np.stack([u(grid, np.full(POINTS, t)) for t in found.window.times])
    return found, np.abs(found.window.mean[:, 0] - truth) <= 2 * found.window.std[:, 0]


def test_waves_of_which_there_are_more_than_expected_widen_the_prior():
    fine = WAVES >= BAND / 3
    found, covered = analysed(np.where(fine, FEWER, 1.0) * EXPECTED)
    factor = found.prior.std[0] / EXPECTED
    # A tenth of the waves has twelve numbers: their mean square is off by sqrt(2 / 12) = 41 %.
    assert np.median(factor[fine]) == pytest.approx(FEWER, rel=0.4)
    assert np.median(factor[~fine]) == pytest.approx(1.0, rel=0.2)
    assert "as the reports tell" in found.prior.source
    assert 0.88 < covered.mean() < 0.995


def test_a_prior_that_agrees_with_the_reports_stays():
    found, covered = analysed(EXPECTED)
    assert (found.prior.std[0] == EXPECTED).all()
    assert 0.88 < covered.mean() < 0.995

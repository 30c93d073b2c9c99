"""What data cannot show: terms that were left out, and how large they could be."""

import numpy as np
import pytest

from splatop.discover import discover
from splatop.identify import add_noise


def allen_cahn(points=256, frames=101, dt=0.01, diffusion=1e-4, substeps=8):
    """u_t = D u_xx + 5 u - 5 u³ on a box of side 2, by Strang splitting of two exact flows."""
    x = -1 + 2 * np.arange(points) / points
    k = 2 * np.pi * np.fft.fftfreq(points, 2 / points)
    h = dt / substeps
    half = np.exp(-diffusion * k**2 * h / 2)

    def diffused(u):
        return np.fft.ifft(half * np.fft.fft(u)).real

    u = x**2 * np.cos(np.pi * x)
    found = [u]
    for _ in range(frames - 1):
        for _ in range(substeps):
            u = diffused(u)
            u = u * np.exp(5 * h) / np.sqrt(1 + u**2 * np.expm1(10 * h))
            u = diffused(u)
        found.append(u)
    return np.stack(found)[:, None]


@pytest.fixture(scope="module")
def frames():
    return allen_cahn()


def asked(frames, noise, seed, **options):
    noisy = add_noise(frames, noise, (7, seed))
    return discover(noisy, "dt(u) = ?", dt=0.01, lengths=2.0, budget=0.0, **options)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_term_too_weak_to_be_seen_is_a_doubt(frames, seed):
    """Diffusion of 1e-4 makes about 1 % of the change: 5 % of noise hides it."""
    found = asked(frames, 0.05, seed)
    assert {term.text for term in found.terms} == {"u", "u^3"}
    assert not found.trusted
    assert any("d2x(u)" in text and "may be missing" in text for text in found.warnings)
    (weak,) = [one for one in found.left_out if str(one.candidate) == "d2x(u)"]
    # The truth is within three half widths: these are 95 % intervals, and two draws.
    assert abs(1e-4 - (weak.low + weak.high) / 2) < 1.5 * (weak.high - weak.low)
    assert weak.share > 0.01


def test_shares_come_largest_first_and_are_in_json(frames):
    found = asked(frames, 0.05, 0)
    shares = [one.share for one in found.left_out]
    assert shares == sorted(shares, reverse=True)
    written = found.as_dict()["left_out"]
    assert {"fields", "term", "low", "high", "share"} == set(written[0])
    assert "left out: " in str(found)


def test_terms_that_were_found_are_not_left_out(frames):
    found = asked(frames, 0.0001, 0, terms="u, u^3, dx(u), d2x(u)")
    assert {term.text for term in found.terms} == {"u", "u^3", "d2x(u)"}
    assert [str(one.candidate) for one in found.left_out] == ["dx(u)"]
    (drift,) = found.left_out
    # Nothing drifts: 1e-4 of noise leaves less than a thousandth of the change.
    assert drift.low - 1e-4 < 0 < drift.high + 1e-4
    assert drift.share < 1e-3

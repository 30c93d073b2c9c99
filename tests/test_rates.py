"""Rates of fields as fields: waves from data of their displacement alone."""

import numpy as np
import pytest

from splatop import SplatopError
from splatop.data import open_trajectories
from splatop.equation import parse_equation
from splatop.identify import identify_trajectories

POINTS, DT, SPEED = 48, 0.05, 1.5
X = np.linspace(0, 2 * np.pi, POINTS, endpoint=False)


def standing_waves(frames=61, noise=0.0):
    """Modes of `d2t(u) = SPEED² d2x(u)`, and their rates."""
    t = DT * np.arange(frames)[:, None]
    parts = [(1, 1.0, 0.3), (2, 0.5, 1.1), (3, 0.3, 0.0)]
    u = sum(a * np.cos(SPEED * k * t + p) * np.sin(k * X) for k, a, p in parts)
    v = sum(-a * SPEED * k * np.sin(SPEED * k * t + p) * np.sin(k * X) for k, a, p in parts)
    drawn = np.random.default_rng(0).normal(size=u.shape)
    return u + noise * drawn, v


WAVES = parse_equation("dt(u) = v; dt(v) = c2*d2x(u)", dims=1)


def opened(tmp_path, u, fields=("u", "v=dt(u)")):
    np.save(tmp_path / "waves.npy", u)
    how = {"axes": "tx", "lengths": 2 * np.pi, "dt": DT, "t0": 0.0}
    return open_trajectories(tmp_path / "waves.npy", fields=fields, **how)


def test_rates_are_those_of_the_frames_that_remain(tmp_path):
    u, v = standing_waves()
    data = opened(tmp_path, u)
    assert data.fields == ("u", "v")
    assert data.frames == 61 - 6
    frames = data.window(0, 10, 5)
    np.testing.assert_allclose(frames[:, 0], u[13:18], rtol=0, atol=1e-6)
    # Sixth order: (k c dt)^6 / 140 = (0.225)^6 / 140 = 1e-6 of the third mode's rate, 1.35.
    np.testing.assert_allclose(frames[:, 1], v[13:18], rtol=0, atol=2e-6)
    np.testing.assert_allclose(data.times, DT * np.arange(3, 58), rtol=1e-12)


def test_the_speed_of_waves_from_their_displacement_alone(tmp_path):
    data = opened(tmp_path, standing_waves()[0])
    (found,) = identify_trajectories(WAVES, None, data, method="weak")
    assert found.estimates["c2"] == pytest.approx(SPEED**2, rel=1e-4)
    assert found.trusted


def test_noise_in_differences_is_told(tmp_path):
    with pytest.warns(UserWarning, match="v, the rate of u .* is uncertain by"):
        data = opened(tmp_path, standing_waves(noise=0.01)[0])
    (found,) = identify_trajectories(WAVES, None, data, method="weak")
    low, high = found.intervals["c2"]
    assert low < SPEED**2 < high  # 0.2 half-widths away at most over 15 draws: too wide, not wrong


@pytest.mark.parametrize(
    ("fields", "frames", "said"),
    [
        (("u", "v=dt(w)"), 61, "unknown field to take the rate of 'w'"),
        (("u", "u=dt(u)"), 61, "'u', which is a field"),
        (("u", "v=dt(u)"), 7, "at least 8 frames"),
    ],
)
def test_what_has_no_rate_is_refused(tmp_path, fields, frames, said):
    with pytest.raises(SplatopError, match=said):
        opened(tmp_path, standing_waves(frames)[0], fields)

"""Surrogates from sensors alone: waves of unknown speed, growth that the equation lacks."""

import numpy as np
import pytest

import splatop
from splatop import Observations, SplatopError
from splatop.assimilate.begin import values_to_begin_at
from splatop.assimilate.from_sensors import from_sensors

LENGTH, V, D = 2.0, 0.3, 0.01


def waves(x, t):
    """A closed form of `dt(u) = -v dx(u) + D d2x(u)`."""
    found = 0.3 * np.ones_like(x)
    for k, size, phase in ((1, 1.0, 0.0), (2, -0.6, 1.0), (3, 0.4, 2.0)):
        q = 2 * np.pi * k / LENGTH
        found = found + size * np.exp(-D * q**2 * t) * np.cos(q * (x - V * t) + phase)
    return found


@pytest.mark.slow
def test_coefficients_that_nobody_gave_are_found_from_sensors():
    rng = np.random.default_rng(0)
    t, x = np.repeat(0.2 * np.arange(21), 12), np.tile(rng.uniform(0, LENGTH, 12), 21)
    obs = Observations(t, x, "u", waves(x, t) + 0.02 * rng.normal(size=len(x)), sigma=0.02)
    said = []
    fitted = splatop.fit(
        obs,
        "dt(u) = -v*dx(u) + D*d2x(u)",
        lengths=LENGTH,
        points=32,
        dt=0.2,
        say=said.append,
    )
    # 252 reports of noise 0.02: v to 0.02 / (3 * 4 sqrt(252 / 2)), D to a few per cent.
    assert fitted.coefficients["v"] == pytest.approx(V, rel=0.01)
    assert fitted.coefficients["D"] == pytest.approx(D, rel=0.1)
    assert "nothing was learned" in fitted.summary
    grid = np.arange(32) * LENGTH / 32
    ahead = fitted.rollout(waves(grid, 0 * grid)[None].astype(np.float32), steps=10)
    # Over two units of time 1 % of v moves the third wave by 0.06 of its size 0.4.
    assert np.abs(ahead[-1, 0] - waves(grid, 0 * grid + 2)).max() < 0.05


def test_unknown_coefficients_need_no_value_to_begin_at():
    rng = np.random.default_rng(0)
    t, x = np.repeat(0.2 * np.arange(11), 12), np.tile(rng.uniform(0, LENGTH, 12), 11)
    obs = Observations(t, x, "u", waves(x, t) + 0.02 * rng.normal(size=len(x)), sigma=0.02)
    text = "dt(u) = -v*dx(u) + D*d2x(u)"
    place = {"lengths": LENGTH, "points": 16}
    found = values_to_begin_at(lambda fields: obs, text, {"D": D}, ["v"], place)
    assert found == {"v": pytest.approx(V, rel=0.1)}
    assert values_to_begin_at(lambda fields: obs, text, {"D": D, "v": 1.0}, ["v"], place) == {}
    with pytest.raises(SplatopError, match="expected coefficients v, D"):  # D is not looked for
        splatop.assimilate(obs, text, unknown=["v"], lengths=LENGTH, points=16, dt=0.2)


def growth(frames, dt, rng, sensors=20):
    """Fisher's equation on a ring of 10 by a spectral method in double precision."""
    n, length, diffusion = 128, 10.0, 0.1
    q = 2 * np.pi * np.fft.rfftfreq(n, length / n)

    def rate(u):
        return np.fft.irfft(-diffusion * q**2 * np.fft.rfft(u), n) + u * (1 - u)

    x = np.arange(n) * length / n
    states = [0.25 + 0.2 * np.cos(2 * np.pi * x / length) + 0.1 * np.sin(4 * np.pi * x / length)]
    for _ in range(frames):
        u, h = states[-1], dt / 20
        for _ in range(20):
            a = rate(u)
            b = rate(u + h / 2 * a)
            c = rate(u + h / 2 * b)
            u = u + h / 6 * (a + 2 * b + 2 * c + rate(u + h * c))
        states.append(u)
    states = np.array(states)
    where = rng.permutation(n)[:sensors]
    t, at = np.repeat(dt * np.arange(frames + 1), sensors), np.tile(x[where], frames + 1)
    values = states[:, where].ravel() + 0.005 * rng.normal(size=len(t))
    return states, Observations(t, at, "u", values, sigma=0.005)


@pytest.mark.slow
def test_a_term_that_the_equation_lacks_is_found_from_sensors():
    states, obs = growth(40, 0.1, np.random.default_rng(0))
    said = []
    fitted = splatop.fit(
        obs,
        "dt(u) = D*d2x(u) + ?",
        coefficients={"D": 0.1},
        lengths=10.0,
        points=32,
        dt=0.1,
        settings={"model": "physics"},
        say=said.append,
    )
    start = states[0, None, ::4].astype(np.float32)
    ahead = fitted.rollout(start, steps=40)
    error = np.abs(ahead[:, 0] - states[1:, ::4]).max()
    # Without the term u stays at 0.25 in the mean, which grows to 0.9: an error of 0.6.
    assert error < 0.06
    better = next(text for text in said if "with what was learned" in text)
    before, after = (float(part.split()[-1]) for part in better.split(" with ")[:2])
    assert after < 3 < before


def test_what_training_from_sensors_needs_is_said():
    obs = Observations(np.arange(6.0), np.linspace(0, 1, 6), "u", np.arange(6.0), sigma=0.1)
    where = {"lengths": 2.0, "points": 16, "dt": 1.0}
    with pytest.raises(SplatopError, match="expected lengths to train from sensors"):
        splatop.fit(obs, "dt(u) = D*d2x(u)", points=16, dt=1.0)
    with pytest.raises(SplatopError, match="D may begin at"):
        splatop.fit(obs, "dt(u) = D*d2x(u)", **where)
    with pytest.raises(SplatopError, match="at least one known term"):
        from_sensors(obs, "dt(u) = ?", **where)

"""The state on shapes from sensors: heat in a disk against its closed form."""

import numpy as np
import pytest
from scipy.special import jn_zeros, jv

from splatop import Observations, SplatopError, assimilate, place, reconstruct

RADIUS, D, DT, FRAMES = 0.4, 0.02, 0.05, 6
DISK = {"shape": "disk(0.5, 0.5, 0.4)", "boundary": "disk1: u = 0", "points": 24}
HEAT = "dt(u) = D*lap(u)"


def bessel(places, t):
    """Two modes of a disk whose edge is cold; each decays with the square of its wavenumber."""
    x, y = (np.asarray(places, float) - 0.5).T
    r, angle = np.hypot(x, y) / RADIUS, np.arctan2(y, x)
    first, second = jn_zeros(0, 1)[0], jn_zeros(1, 1)[0]
    return jv(0, first * r) * np.exp(-D * (first / RADIUS) ** 2 * t) + 0.8 * jv(
        1, second * r
    ) * np.cos(angle) * np.exp(-D * (second / RADIUS) ** 2 * t)


def sensors(rng, count):
    found = rng.uniform(0.1, 0.9, (4 * count, 2))
    return found[np.hypot(*(found - 0.5).T) < 0.39][:count]


@pytest.mark.slow
def test_heat_in_a_disk_from_thirty_sensors():
    rng = np.random.default_rng(0)
    where, sigma = sensors(rng, 30), 0.005
    t = np.repeat(DT * np.arange(FRAMES + 1), len(where))
    at = np.tile(where, (FRAMES + 1, 1))
    values = bessel(at, t) + sigma * rng.normal(size=len(t))
    found = assimilate(
        Observations(t, at, "u", values, sigma=sigma),
        HEAT,
        coefficients={"D": 0.03},
        unknown=["D"],
        dt=DT,
        **DISK,
    )
    window = found.window
    truth = bessel(window.grid.places, FRAMES * DT)
    error = np.sqrt(np.mean((window.mean[-1, 0] - truth) ** 2))
    # 210 reports of noise 0.005 tell some twenty numbers of a smooth field: 0.005 sqrt(20 / 210).
    assert error < 0.003
    assert np.mean(np.abs(window.mean[-1, 0] - truth) <= 2.5 * window.std[-1, 0]) > 0.8
    one = found.estimates["D"]
    assert abs(one.value - D) < 4 * one.std
    assert one.std < 0.1 * D
    assert found.trusted
    # On the grid that the points are of, outside of the disk there is nothing.
    table = window.to_xarray()
    assert table.u.dims == ("t", "x", "y")
    assert np.isnan(table.u.values[0, 0, 0])
    value, _ = found.at([[0.5, 0.5]], 0.1)
    assert value[0] == pytest.approx(bessel([[0.5, 0.5]], 0.1)[0], abs=0.01)


@pytest.mark.slow
def test_sensors_are_placed_inside_of_a_shape():
    how = {"sensors": 4, "frames": 2, "coefficients": {"D": D}, "dt": DT, "length": 0.15, **DISK}
    found = place(HEAT, **how)
    assert np.hypot(*(found.places - 0.5).T).max() < 0.36  # the edge is known already
    assert np.all(np.diff(found.expected) < 0)
    # Places at random are no better than those chosen first among 400.
    anywhere = place(HEAT, candidates=sensors(np.random.default_rng(3), 4), **how)
    assert anywhere.expected[-1] > 1.1 * found.expected[-1]
    with pytest.raises(SplatopError, match="inside the domain, got 1 outside"):
        place(HEAT, candidates=[[0.5, 0.5], [0.95, 0.95]], **{**how, "sensors": 1})


@pytest.mark.slow
def test_fields_on_a_shape_without_an_equation():
    rng = np.random.default_rng(1)
    where = sensors(rng, 60)
    obs = Observations(np.zeros(60), where, "u", bessel(where, 0) + 0.01 * rng.normal(size=60))
    found = reconstruct(obs, shape=DISK["shape"], points=24)
    frames = found.frames
    error = np.abs(frames.mean[0, 0] - bessel(frames.grid.places, 0.0))
    # Fields with a length of about 0.2 from sensors 0.07 apart, noise 0.01; beyond the outermost
    # sensors nothing tells them.
    inner = np.hypot(*(frames.grid.places - 0.5).T) < 0.33
    assert np.sqrt(np.mean(error[inner] ** 2)) < 0.03
    assert np.mean(error <= 2.5 * frames.std[0, 0]) > 0.85


def test_sensors_outside_of_a_shape_are_named():
    obs = Observations(np.zeros(6), np.full((6, 2), 0.95), "u", np.arange(6.0), sigma=1.0)
    with pytest.raises(SplatopError, match=r"inside the shape.*6 reports outside"):
        assimilate(obs, HEAT, coefficients={"D": D}, dt=DT, **DISK)

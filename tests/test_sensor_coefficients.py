"""Unknown coefficients that begin far from the truth, and noise that takes the blame for them."""

import numpy as np
import pytest

from splatop import Observations, assimilate
from splatop.assimilate.check import check

LENGTH, D, DT = 0.5, 1.1e-4, 10.0
HEAT = "dt(u) = D*d2x(u)"
BAR = {"lengths": LENGTH, "points": 32, "dt": DT, "boundary": "x: u = 0"}
PLACES, FRAMES, NOISE = np.array([0.05, 0.15, 0.25, 0.35, 0.45]), 15, 0.2


def rod():
    """Five thermocouples on a rod whose ends are held at 0, which nobody said the noise of."""
    x = np.tile(PLACES, FRAMES + 1)
    t = np.repeat(DT * np.arange(FRAMES + 1), len(PLACES))
    u = sum(
        size * np.sin(n * np.pi * x / LENGTH) * np.exp(-D * (n * np.pi / LENGTH) ** 2 * t)
        for n, size in ((1, 50.0), (2, 30.0), (3, -20.0))
    )
    noise = NOISE * np.random.default_rng(0).normal(size=len(x))
    return Observations(t, x, "u", u + noise, sensors=np.char.mod("%g", x))


def test_a_coefficient_that_is_a_hundred_times_off_at_first_is_found():
    """Slow diffusion of fine waves beside each sensor explains five sensors nearly as well."""
    found = assimilate(rod(), HEAT, unknown={"D": D / 100}, spread="none", **BAR)
    # Noise of 0.2 on 80 reports of 50 that decay by half: about half a per cent of D.
    assert found.coefficients["D"] == pytest.approx(D, rel=0.02)
    assert found.noise["u"] == pytest.approx(NOISE, rel=0.3)
    assert found.trusted


@pytest.mark.parametrize(("noise", "said"), [(1.0, False), (2.0, True)])
def test_noise_that_sensors_do_not_show_from_report_to_report_is_said(noise, said):
    rng = np.random.default_rng(0)
    t, x = np.repeat(np.arange(40.0), 5), np.tile(PLACES, 40)
    smooth = 20 * np.sin(t / 10 + x)
    obs = Observations(t, x, "u", smooth + rng.normal(size=len(t)))
    found = check(
        obs,
        smooth + np.sqrt(noise**2 - 1) * rng.normal(size=len(t)),
        np.full(len(t), noise),
        ratio=1.0,
        prior_share=1.0,
        converged=True,
        estimated={"u": noise},
    )
    assert any("from report to report" in text for text in found.warnings) == said


def test_single_reports_far_from_all_others_are_named():
    rng = np.random.default_rng(0)
    t, x = np.repeat(np.arange(40.0), 5), np.tile(PLACES, 40)
    smooth = 20 * np.sin(t / 10 + x)
    values = smooth + rng.normal(size=len(t))
    values[[7, 100]] += 60.0, -40.0
    noise = float(np.std(values - smooth))
    found = check(
        Observations(t, x, "u", values),
        smooth,
        np.full(len(t), noise),
        ratio=1.0,
        prior_share=1.0,
        converged=True,
        estimated={"u": noise},
    )
    assert any("2 reports are off" in text and "t = 1" in text for text in found.warnings)


def test_a_state_is_written_as_netcdf(tmp_path):
    import xarray as xr

    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, 20)
    t = np.repeat([0.0, 0.1], 10)
    obs = Observations(t, x, "u", np.sin(2 * np.pi * x) + 0.01 * rng.normal(size=20), sigma=0.01)
    found = assimilate(
        obs, "dt(u) = D*d2x(u)", coefficients={"D": 0.01}, lengths=1.0, points=16, dt=0.1
    )
    with xr.open_dataset(found.save(tmp_path / "state.nc")) as held:
        assert held["u_std"].shape == held["u"].shape == (2, 16)
        assert held.attrs["trusted"] == found.trusted

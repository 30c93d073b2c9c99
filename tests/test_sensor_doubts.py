"""Answers that agree with all reports and may be wrong all the same are not trusted."""

import json

import numpy as np
import pytest

from splatop import Observations, assimilate
from splatop.assimilate import posterior
from splatop.assimilate.check import check
from test_sensor_tables import command

EQUATION, V, D = "dt(u) = -v*dx(u) + D*d2x(u)", 12.3, 2e-3
BOX = {"lengths": 1.0, "points": 16}
PLACES = np.array([0.02, 0.17, 0.31, 0.42, 0.55, 0.64, 0.78, 0.91])


def reports(times, v=V):
    """Two waves that travel and decay, with 1 % of noise."""
    t, x = np.repeat(times, len(PLACES)), np.tile(PLACES, len(times))
    u = 1.0 + sum(
        size * np.exp(-D * q**2 * t) * np.cos(q * (x - v * t) + shift)
        for size, q, shift in ((1.0, 2 * np.pi, 0.3), (0.6, 4 * np.pi, 1.0))
    )
    noise = 0.01 * np.random.default_rng(0).normal(size=len(t))
    return Observations(t, x, "u", u + noise, sigma=0.01)


def aliased(found):
    return [text for text in found.all_warnings() if "explain the reports as well" in text]


def test_a_speed_is_not_trusted_where_waves_may_have_passed_once_more_between_reports():
    found = assimilate(
        reports(0.1 * np.arange(9)), EQUATION, unknown={"v": 2.0, "D": 1e-3}, dt=0.1, **BOX
    )
    # 12.3 and 2.3 differ by one box in the 0.1 between reports.
    assert found.coefficients["v"] % 10 == pytest.approx(2.3, abs=0.01)
    assert found.coefficients["D"] == pytest.approx(D, rel=0.1)
    assert not found.trusted
    assert "12.3" in aliased(found)[0] or "2.3" in aliased(found)[0]
    assert not any(text.startswith("D ") for text in aliased(found))


def test_a_speed_is_trusted_where_reports_follow_the_waves():
    found = assimilate(
        reports(0.1 * np.arange(9), v=0.4), EQUATION, unknown={"v": 0.3, "D": 1e-3}, dt=0.1, **BOX
    )
    assert found.coefficients["v"] == pytest.approx(0.4, abs=0.01)
    assert found.trusted


def test_coefficients_that_only_their_sum_is_told_of_are_not_trusted():
    found = assimilate(
        reports(0.1 * np.arange(9), v=0.4),
        "dt(u) = -v*dx(u) + D*d2x(u) + E*d2x(u)",
        coefficients={"v": 0.4},
        unknown={"D": 1e-3, "E": 1e-3},
        dt=0.1,
        **BOX,
    )
    assert found.coefficients["D"] + found.coefficients["E"] == pytest.approx(D, rel=0.05)
    assert any("hardly told by these reports: only together" in w for w in found.all_warnings())


def test_half_a_box_without_sensors_is_said():
    held = reports(0.1 * np.arange(5), v=0.4)
    given = {"coefficients": {"v": 0.4, "D": D}, "dt": 0.1, "spread": "none"}
    whole = assimilate(held, EQUATION, **given, **BOX)
    assert whole.trusted
    half = Observations(held.times, 0.4 * held.places, "u", held.values, sigma=0.01)
    said = assimilate(half, EQUATION, **given, **BOX).all_warnings()
    # Around the ring: from the last sensor to the first.
    assert any("no sensor stands between -0.636 and 0.008 along x" in text for text in said)


def test_a_rollout_that_leaves_the_finite_numbers_has_no_standard_deviations(monkeypatch):
    monkeypatch.setattr(posterior, "jacobian", lambda *_: np.full((15, 40), np.inf))
    held = reports(0.1 * np.arange(5), v=0.4)
    found = assimilate(held, EQUATION, coefficients={"v": 0.4, "D": D}, dt=0.1, **BOX)
    assert "leaves the finite numbers" in found.all_warnings()[0]
    assert found.window.std is None
    assert not found.trusted


@pytest.mark.parametrize(("lacks", "said"), [(0.0, False), (1.0, True)])
def test_what_an_equation_lacks_comes_and_goes_with_the_waves(lacks, said):
    """Residuals that return with the other sign two reports later count as noise otherwise."""
    rng = np.random.default_rng(0)
    t, x = np.repeat(np.arange(30.0), len(PLACES)), np.tile(PLACES, 30)
    u = 20 * np.sin(t + 9 * x)
    missed = lacks * np.sin(np.pi / 2 * t + 40 * x)
    obs = Observations(t, x, "u", u + missed + 0.5 * rng.normal(size=len(t)))
    noise = float(np.hypot(0.5, lacks * np.sqrt(0.5)))
    found = check(
        obs,
        u,
        np.full(len(t), noise),
        ratio=1.0,
        prior_share=1.0,
        converged=True,
        estimated={"u": noise},
    )
    # A wave of two thirds of the variance, seen after half a turn.
    assert any("2 reports later (-0." in text for text in found.warnings) == said
    assert found.trusted == (not said)


def test_without_standard_deviations_an_estimate_has_no_interval(tmp_path, capsys):
    held = reports(0.1 * np.arange(5), v=0.4).to_pandas()
    held.to_csv(tmp_path / "obs.csv", index=False)
    given = ["--equation", EQUATION, "--coefficients", f"D={D}", "--unknown", "v=0.3"]
    given += ["--lengths", "1", "--points", "16", "--dt", "0.1", "--spread", "none"]
    assert command("assimilate", tmp_path / "obs.csv", *given, "--json") == 0
    told = json.loads(capsys.readouterr().out)["estimates"]["v"]
    assert told["value"] == pytest.approx(0.4, abs=0.01)
    assert (told["std"], told["low"], told["high"]) == (None, None, None)
    assert command("assimilate", tmp_path / "obs.csv", *given) == 0
    assert "not known" in capsys.readouterr().out

"""Tables of sensors as others publish them: codes for what is missing, profiles, stations."""

import numpy as np
import pytest

from splatop import Observations, SplatopError
from splatop.assimilate.check import check
from splatop.assimilate.missing_codes import without_codes
from splatop.assimilate.observations import stuck


@pytest.mark.parametrize("code", [-999.0, -9999.0, 99.99, -999999.0, 9.96921e36, -32768.0])
def test_codes_for_missing_values_are_left_out_and_said(code, tmp_path):
    path = tmp_path / "air.csv"
    rows = [f"{h},{x},pm25,{8 + h + x}" for h in range(4) for x in (0.1, 0.5)]
    path.write_text("\n".join(["t,x,parameter,value", *rows, f"4,0.1,pm25,{code}"]))
    with pytest.warns(UserWarning, match="1 values of .* in pm25 count as missing"):
        found = Observations.read(path)
    assert len(found) == 8
    assert found.values.max() < 12


@pytest.mark.parametrize(
    "values", [[95.0, 99.0, 103.0], [-60.0, -99.0, 40.0], [999.0, 1003.2, 1010.0]]
)
def test_values_among_others_are_no_codes(values):
    assert (without_codes(np.array(values), "u", "a table") == values).all()


def test_a_profile_and_a_list_of_stations_are_told_how_to_be_given(tmp_path):
    path = tmp_path / "soil.csv"
    path.write_text("timestamp,depth_cm,soil_temperature\n2023-06-01 00:00,5,18.2\n")
    with pytest.raises(SplatopError, match='--columns "x=depth_cm,T=soil_temperature"'):
        Observations.read(path, fields=("T",))
    path.write_text("station,time,temp,rhum,pres\n10637,2018-01-01,8.1,71,1006.2\n")
    with pytest.raises(SplatopError, match="give --places FILE"):
        Observations.read(path, fields=("temp",))


def test_a_sensor_that_is_stuck_is_named():
    rng = np.random.default_rng(0)
    x, t = np.tile([0.1, 0.4, 0.7], 12), np.repeat(np.arange(12.0), 3)
    u = np.where(x == 0.4, 47.3, rng.normal(size=36))
    obs = Observations(t, x, "u", u, sensors=np.char.mod("at %g", x))
    said = stuck(obs)
    assert len(said) == 1
    assert "at 0.4" in said[0]
    assert not stuck(obs.take(x != 0.4))
    # A wall also has one value: that alone is no reason to distrust what explains the reports.
    given = {"ratio": 1.0, "prior_share": 1.0, "converged": True, "estimated": {}}
    assert check(obs, u + 0.1 * rng.normal(size=36), np.full(36, 0.1), **given).trusted
    given["ratio"] = 3.0
    assert any("at 0.4" in text for text in check(obs, u, np.full(36, 0.1), **given).warnings)

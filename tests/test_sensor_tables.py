"""Tables of observations: what is read, and what is refused in one clear line."""

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from splatop import Observations, SplatopError, assimilate, reconstruct
from splatop.assimilate.observations import checked
from splatop.cli.app import app, run
from splatop.domain import Domain

BOX = Domain.box((1.0, 2.0))
LONG = pd.DataFrame(
    {
        "t": [0.0, 0.0, 1.0, 1.0],
        "x": [0.1, 0.2, 0.1, 0.2],
        "y": [0.5, 1.5, 0.5, 1.5],
        "field": ["u", "u", "v", "u"],
        "value": [1.0, 2.0, 3.0, 4.0],
        "sigma": [0.1, 0.1, 0.2, 0.1],
    }
)


def command(*arguments: str) -> int:
    import sys
    from unittest import mock

    with mock.patch.object(sys, "argv", ["splatop", *map(str, arguments)]):
        return run(app)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_long_table_is_read_from_any_file(kind, tmp_path):
    path = tmp_path / f"obs.{kind}"
    if kind == "csv":
        LONG.to_csv(path, index=False)
    else:
        LONG.to_parquet(path)
    for held in (Observations.read(path), Observations.read(LONG)):
        assert held.values.tolist() == [1, 2, 3, 4]
        assert held.places.shape == (4, 2)
        assert held.fields.tolist() == ["u", "u", "v", "u"]
        assert held.sigma.tolist() == [0.1, 0.1, 0.2, 0.1]
        assert len(set(held.sensors)) == 2


def test_a_wide_table_has_a_column_for_each_field_and_gaps_are_missing_reports():
    wide = pd.DataFrame(
        {
            "time": [0, 1],
            "x": [0.1, 0.1],
            "u": [1.0, np.nan],
            "v": [2.0, 3.0],
            "v_sigma": [0.1, 0.2],
        }
    )
    held = Observations.read(wide)
    assert sorted(zip(held.fields, held.times, held.values, strict=True)) == [
        ("u", 0, 1),
        ("v", 0, 2),
        ("v", 1, 3),
    ]
    assert np.isnan(held.sigma[held.fields == "u"]).all()
    assert held.sigma[held.fields == "v"].tolist() == [0.1, 0.2]


def test_stations_and_clouded_pixels_are_read_from_netcdf(tmp_path):
    u = np.arange(6.0).reshape(2, 3)
    u[0, 1] = np.nan  # a cloud
    stations = xr.Dataset(
        {"u": (("time", "station"), u)},
        coords={"time": [0.0, 0.5], "x": ("station", [0.1, 0.4, 0.7])},
    )
    stations.to_netcdf(tmp_path / "obs.nc", engine="h5netcdf")
    for held in (Observations.read(stations), Observations.read(tmp_path / "obs.nc")):
        assert len(held) == 5
        assert held.values[(held.times == 0.5) & (held.places[:, 0] == 0.7)] == [5.0]
    clock = stations.assign_coords(time=pd.to_datetime(["2024-01-01 00:00", "2024-01-01 00:01"]))
    assert Observations.read(clock).span_of_time == (0.0, 60.0)


def test_footprints_are_boxes_or_lines():
    boxes = Observations.read(LONG.assign(wx=0.1, wy=0.2))
    assert boxes.spans[0].tolist() == [[0.1, 0.0], [0.0, 0.2]]
    line = Observations.read(LONG.assign(x2=0.3, y2=0.5))
    assert line.spans[0] == pytest.approx(np.array([[0.2, 0.0]]))
    assert line.places[0] == pytest.approx([0.2, 0.5])  # its middle


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"x": [0.1, 7.0, 0.1, 0.2]},
            r"inside the domain \[0, 1\] x \[0, 2\], got 1 .* at \(7, 1.5\)",
        ),
        ({"field": ["u", "u", "w", "u"]}, "unknown field in the observations 'w'.*u, v"),
        ({"value": [1.0, np.nan, 3.0, 4.0]}, "finite values.*row 2"),
        ({"sigma": [0.1, 0.0, 0.1, 0.1]}, "positive standard deviations"),
        ({"value": ["1", "two", "3", "4"]}, "numbers in column value.*'two'"),
        (
            {"x": [0.1] * 4, "y": [0.5] * 4, "t": [0.0] * 4, "field": ["u"] * 4},
            "contradict each other",
        ),
        ({"t": None}, "column t"),
        ({"x": None}, "column x"),
        ({"value": None}, "column value, or columns named as fields"),
    ],
)
def test_bad_tables_are_refused_in_one_line(change, says):
    table = LONG.assign(**{k: v for k, v in change.items() if v is not None})
    table = table.drop(columns=[k for k, v in change.items() if v is None])
    with pytest.raises(SplatopError, match=says) as refused:
        checked(Observations.read(table, fields=("u", "v")), ("u", "v"), BOX)
    assert "\n" not in str(refused.value)


def test_rows_that_repeat_others_count_once():
    twice = Observations.read(pd.concat([LONG, LONG.iloc[[0]]]))
    held, warnings = checked(twice, ("u", "v"), BOX)
    assert len(held) == 4
    assert "repeat" in warnings[0]


def test_sensors_are_held_out_whole():
    table = pd.DataFrame({"t": np.repeat(np.arange(5), 20), "x": np.tile(np.arange(20) / 20, 5)})
    used, out = Observations.read(table.assign(u=0.5)).split_off(0.1)
    assert len(out) == 10
    assert not set(out.sensors) & set(used.sensors)
    with pytest.raises(SplatopError, match="to hold out and to use"):
        Observations.read(table.assign(u=0.5)).split_off(0.001)


ADVECTION = (
    "dt(u) = -v*dx(u)",
    {"coefficients": {"v": 1.0}, "lengths": 1.0, "points": 16, "dt": 0.1},
)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"lengths": None}, "expected lengths for an equation.*--lengths"),
        ({"dt": None}, "expected dt for an equation"),
        ({"dt": -0.1}, "positive time between frames"),
        ({"begin": 0.5}, "times from 0.5 on.*before"),
        ({"unknown": ("w",)}, "unknown coefficient 'w'"),
        ({"coefficients": {}}, "expected coefficients v"),
        ({"unknown": {"v": 0.0}}, "value other than 0"),
        ({"spread": "lots"}, "unknown spread 'lots'"),
        ({"window": 0}, "at least one frame"),
        ({"hold_out": 1.5}, "share between 0 and 1"),
        ({"boundary": "x: u = 0"}, "one end of x alone"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(changes, says):
    text, given = ADVECTION
    n = 40
    obs = Observations(
        np.repeat([0.0, 0.1], n // 2), np.linspace(0, 0.99, n), "u", np.arange(n) % 7.0
    )
    with pytest.raises(SplatopError, match=says) as refused:
        assimilate(obs, text, **{**given, **changes})
    assert "\n" not in str(refused.value)


def test_too_few_reports_and_reports_that_do_not_vary_are_refused():
    text, given = ADVECTION
    few = Observations([0.0, 0.1], [0.1, 0.2], "u", [1.0, 2.0])
    with pytest.raises(SplatopError, match="at least 5 reports"):
        assimilate(few, text, **given)
    flat = Observations(np.zeros(9), np.arange(9) / 9, "u", np.ones(9))
    with pytest.raises(SplatopError, match="that vary"):
        assimilate(flat, text, **given)


def test_the_command_writes_state_forecast_report_and_json(tmp_path, capsys):
    """A wave that travels once around the box; closed form at every frame and beyond."""
    rng = np.random.default_rng(0)
    t = np.repeat(0.1 * np.arange(6), 10)
    x = np.tile(rng.uniform(0, 1, 10), 6)
    u = np.sin(2 * np.pi * (x - 0.5 * t)) + 0.01 * rng.normal(size=60)
    table = tmp_path / "obs.csv"
    pd.DataFrame({"t": t, "x": x, "u": u}).to_csv(table, index=False)
    out, page = tmp_path / "state.h5", tmp_path / "page.html"
    arguments = [
        "assimilate", table, "--equation", "dt(u) = -v*dx(u)", "--coefficients", "v=0.5",
        "--lengths", "1", "--points", "16", "--dt", "0.1",
    ]  # fmt: skip
    assert command(*arguments, "--forecast", "5", "--hold-out", "0.1", "--out", out,
                   "--report", page, "--json") == 0  # fmt: skip
    said = json.loads(capsys.readouterr().out)
    assert said["trusted"]
    assert said["noise"]["u"] == pytest.approx(0.01, rel=0.5)
    assert said["held_out"]["error"] < 0.1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["obs.csv", "page.html", "state.h5"]
    import splatop

    with splatop.open_trajectories(out) as held:
        assert held.fields == ("u", "u_std")
        assert held.frames == 11
        states = held.window(0, 0, 11)
    grid = np.arange(16) / 16
    # 54 reports of noise 0.01 tell about three numbers: 0.01 * sqrt(3 / 54) = 0.0024; six of it.
    assert np.abs(states[10, 0] - np.sin(2 * np.pi * (grid - 0.5))).max() < 0.015
    assert "Field and sensors" in page.read_text()
    assert command(*arguments, "--out", tmp_path / "no" / "state.h5") == 1
    assert "existing folder" in capsys.readouterr().err
    assert command("assimilate", table) == 1
    assert "--model or --equation" in capsys.readouterr().err


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path):
    text, given = ADVECTION
    rng = np.random.default_rng(0)
    t, x = np.repeat(0.1 * np.arange(6), 10), np.tile(rng.uniform(0, 1, 10), 6)
    values = np.sin(2 * np.pi * (x - t)) + 0.01 * rng.normal(size=60)
    obs = Observations(t, x, "u", values, sigma=0.01)
    kept, seen = tmp_path / "kept.npz", []

    def stop(done, total):
        raise KeyboardInterrupt

    # One step minimises what is linear: to be interrupted is the spread, and the minimum is kept.
    with pytest.raises(KeyboardInterrupt):
        assimilate(obs, text, **given, keep=kept, sampled=stop)
    assert kept.exists()
    whole = assimilate(obs, text, **given, keep=kept, report=seen.append)
    assert whole.trusted
    assert not seen
    assert not kept.exists()
    kept.write_text("something else")
    with pytest.raises(SplatopError, match="cannot be read: remove it"):
        assimilate(obs, text, **given, spread="none", keep=kept)


def test_units_below_or_behind_the_names_are_left_out(tmp_path):
    path = tmp_path / "logger.csv"
    rows = [f"2024-03-01 10:15:0{k},TC{j},{0.1 * j},{20 + k + j}" for k in (0, 5) for j in (1, 2)]
    path.write_text("\n".join(["time_utc,channel,x_m,T", "-,-,m,degC", *rows]))
    with pytest.warns(UserWarning, match="first row holds units .*T degC"):
        held = Observations.read(path, fields=("T",))
    assert held.times.tolist() == [0, 0, 5, 5]
    assert held.places[:, 0] == pytest.approx([0.1, 0.2, 0.1, 0.2])
    assert held.values.tolist() == [21, 22, 26, 27]


def test_names_of_stations_are_no_field():
    table = pd.DataFrame(
        {"t": [0, 0], "x": [0.1, 0.2], "town": ["A", "B"], "channel": [7, 8], "u": [1.0, 2.0]}
    ).assign(wx=["clear", "rain"])  # no side of a footprint
    held = Observations.read(table)
    assert held.fields.tolist() == ["u", "u"]
    assert held.sensors.tolist() == ["7", "8"]


def test_words_for_missing_numbers_are_left_out(tmp_path):
    path = tmp_path / "asos.csv"
    rows = [f"S{k},{0.1 * k},{'M' if k == 2 else 20 + k},{'?' if k else 'M'}" for k in range(6)]
    path.write_text("\n".join(["station,t,x,T,sky", *(r.replace(",", ",0.5,", 1) for r in rows)]))
    with pytest.warns(UserWarning, match="1 values of 'M' in T count as missing"):
        held = Observations.read(path)
    assert held.values.tolist() == [20, 21, 23, 24, 25]
    assert set(held.fields) == {"T"}


def test_a_column_that_is_the_same_in_all_reports_is_no_field():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, 40)
    table = pd.DataFrame({"t": np.repeat([0, 1], 20), "x": x, "height": 100.0, "u": np.sin(3 * x)})
    found = reconstruct(table, points=16)
    assert found.frames.fields == ("u",)
    assert any("height is 100 in all reports" in words for words in found.warnings)
    with pytest.raises(SplatopError, match="height that vary"):
        reconstruct(table, points=16, fields=("u", "height"))


def test_names_that_do_not_fit_are_told_how_to_be_given():
    table = pd.DataFrame({"t": [0, 1], "x": [0, 0], "who": ["a", "b"], "temp_C": [1.0, 2.0]})
    with pytest.raises(SplatopError, match='give --columns "T=temp_C"'):
        Observations.read(table, fields=("T",))
    wide = pd.DataFrame({"Time (s)": [0, 1], "TC1": [1.0, 2], "TC2": [1.0, 2], "TC3": [1.0, 2]})
    with pytest.raises(SplatopError, match="give --places FILE"):
        Observations.read(wide, fields=("T",))


@pytest.mark.slow
def test_times_in_another_unit_are_suspected_where_windows_are_empty():
    t, x = np.repeat(360.0 * np.arange(6), 10), np.tile(np.linspace(0, 0.9, 10), 6)
    held = Observations(t, x, "u", np.sin(2 * np.pi * (x - t / 7200)), sigma=0.01)
    with pytest.raises(SplatopError, match=r"none between .* unit of time, .* dt = 0.1 apart"):
        assimilate(held, "dt(u) = -v*dx(u)", coefficients={"v": 0.5}, lengths=1.0, points=8, dt=0.1)

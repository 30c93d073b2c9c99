"""Tables that name stations: places in a second table, in names, in rows below, in comments."""

import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from splatop import Observations, SplatopError, assimilate

X = [0.05, 0.1, 0.4]
U = np.array([[1.0, 2.0, 3.0], [4.0, np.nan, 6.0]])
WIDE = pd.DataFrame(U, columns=["A", "B", "C"])
WIDE.insert(0, "timestamp", pd.to_datetime(["2024-03-01 10:00", "2024-03-01 10:01"]))
PLACES = pd.DataFrame({"gauge": ["C", "A", "B"], "distance_m": [0.4, 0.05, 0.1]})
NDBC = """#YY  MM DD hh mm WDIR WTMP
#yr  mo dy hr mn degT degC
2023 01 31 23 50 120 13.5
2023 02 01 00 00  MM 13.9
"""


def reports(held: Observations) -> set[tuple]:
    rows = zip(held.times, *held.places.T, held.values, strict=True)
    return {tuple(float(v) for v in row) for row in rows}


EXPECTED = {(0, 0.05, 1), (0, 0.1, 2), (0, 0.4, 3), (60, 0.05, 4), (60, 0.4, 6)}


@pytest.mark.parametrize("places", [PLACES, dict(zip("ABC", X, strict=True)), "file"])
def test_a_column_for_each_station_gets_places_from_a_second_table(places, tmp_path):
    if isinstance(places, str):
        places = tmp_path / "places.csv"
        PLACES.to_csv(places, index=False)
    held = Observations.read(WIDE, fields=["T"], places=places)
    assert reports(held) == EXPECTED
    assert set(held.fields) == {"T"}
    assert set(held.sensors) == {"A", "B", "C"}
    # A column that is no station is left out, and said to be.
    with pytest.warns(UserWarning, match="battery have no place"):
        assert reports(Observations.read(WIDE.assign(battery=12.5), places=places)) == EXPECTED


@pytest.mark.parametrize(
    "names",
    [
        ["T_x=0.05m", "T_x=0.1m", "T_x=0.4m"],
        ["0.05 m", "0.1 m", "0.4 m"],
        ["T@0.05", "T@0.1", "T@0.4"],
        ["T (0.05)", "T (0.1)", "T (0.4)"],
        X,
    ],
)
def test_places_are_read_from_the_names_of_columns(names):
    table = WIDE.set_axis(["time", *names], axis=1)
    with pytest.warns(UserWarning, match=r"read from its name, \(0.05\) to \(0.4\)"):
        assert reports(Observations.read(table)) == EXPECTED


def test_numbers_of_sensors_are_no_places():
    with pytest.raises(SplatopError, match="--places FILE"):
        Observations.read(WIDE.set_axis(["time", "T1", "T2", "T3"], axis=1))


def test_places_stand_in_rows_below_the_names_or_in_comments(tmp_path):
    text = WIDE.to_csv(index=False).splitlines()
    below = [text[0], "x (m),0.05,0.1,0.4", *text[1:]]
    above = [*(f"# {n}: x = {x} m" for n, x in zip("ABC", X, strict=True)), *text]
    for lines in (below, above):
        (tmp_path / "obs.csv").write_text("\n".join(lines))
        assert reports(Observations.read(tmp_path / "obs.csv")) == EXPECTED


def test_loggers_have_four_lines_above_their_numbers(tmp_path):
    path = tmp_path / "logger.dat"
    path.write_text(
        '"TOA5","CR1000","CR1000","1","OS","CPU:p.CR1","2","T"\n'
        '"TIMESTAMP","RECORD","T_5cm","T_10cm"\n"TS","RN","Deg C","Deg C"\n"","","Avg","Avg"\n'
        '"2024-03-01 10:00:00",0,1.5,2.5\n"2024-03-01 10:00:05",1,3.5,"NAN"\n'
    )
    with pytest.warns(UserWarning, match="read from its name"):
        assert reports(Observations.read(path)) == {(0, 5, 1.5), (0, 10, 2.5), (5, 5, 3.5)}


def test_a_folder_of_buoys_with_dates_in_parts(tmp_path):
    folder = tmp_path / "buoys"
    folder.mkdir()
    for name in ("46042.txt", "46026h2023.txt"):
        (folder / name).write_text(NDBC)
    places = {"46042": (1.0, 2.0), "46026": (3.0, 4.0)}
    held = Observations.read(folder, columns={"u": "WTMP"}, places=places, time_unit="min")
    assert reports(held) == {(0, 1, 2, 13.5), (10, 1, 2, 13.9), (0, 3, 4, 13.5), (10, 3, 4, 13.9)}
    with pytest.warns(UserWarning, match="'MM' in u count as missing"):
        alone = Observations.read(folder / "46042.txt", columns={"u": "WDIR"}, places=places)
    assert reports(alone) == {(0, 1, 2, 120)}
    with pytest.raises(SplatopError, match=r"expected a column x.*or of the file"):
        Observations.read(folder / "46042.txt")
    with pytest.raises(SplatopError, match="as the stations of the places are called"):
        Observations.read(folder / "46042.txt", places={"other": 1.0})


def test_words_for_missing_numbers_are_said_in_one_line(tmp_path):
    (tmp_path / "obs.csv").write_text("t,x,a,b,c,d\n0,0,MM,MM,MM,MM\n1,0,1,2,3,4\n")
    with pytest.warns(UserWarning, match="4 values of 'MM' in a, b, c and 1 others") as said:
        assert len(Observations.read(tmp_path / "obs.csv")) == 4
    assert len(said) == 1


def test_a_date_and_a_time_of_the_day_are_one_moment(tmp_path):
    path = tmp_path / "obs.csv"
    path.write_text("Date,Time,x,u\n2024-01-01,23:59:30,0.1,1\n2024-01-02,00:00:30,0.1,2\n")
    assert Observations.read(path, fields=["u"]).times.tolist() == [0, 60]
    path.write_text("year,month,day,hour,x,u\n99,12,31,23,0.1,1\n2000,1,1,1,0.1,2\n")
    assert Observations.read(path, fields=["u"]).times.tolist() == [0, 7200]
    path.write_text("year,month,day,hour,x,u\n2000,13,31,23,0.1,1\n2000,1,1,1,0.1,2\n")
    with pytest.raises(SplatopError, match="expected dates in columns year, month, day"):
        Observations.read(path, fields=["u"])


def test_rows_get_the_place_of_the_station_that_they_name():
    long = WIDE.melt("timestamp", var_name="who", value_name="T")
    held = Observations.read(long, fields=["T"], places=PLACES)
    assert reports(held) == EXPECTED
    with pytest.warns(UserWarning, match="2 rows of B.*left out"):
        held = Observations.read(long, fields=["T"], places=PLACES[PLACES.gauge != "B"])
    assert len(held) == 4


def test_ragged_arrays_name_their_stations_by_number_or_by_count():
    flat = np.array([1.0, 2.0, 3.0, 4.0, 6.0])
    number = [0, 1, 2, 0, 2]
    index = xr.Dataset(
        {
            "T": ("obs", flat),
            "time": ("obs", [0.0, 0, 0, 60, 60]),
            "of": ("obs", number, {"instance_dimension": "station"}),
            "x": ("station", X),
            "crs": 0,
        }
    )
    assert reports(Observations.read(index, fields=["T"])) == EXPECTED
    count = xr.Dataset(
        {
            "T": ("obs", np.array([1.0, 4, 2, 3, 6])),
            "time": ("obs", [0.0, 60, 0, 0, 60]),
            "rows": ("station", [2, 1, 2], {"sample_dimension": "obs"}),
            "x": ("station", X),
        }
    )
    assert reports(Observations.read(count, fields=["T"])) == EXPECTED
    wrong = index.assign(of=("obs", [0, 1, 7, 0, 2], {"instance_dimension": "station"}))
    with pytest.raises(SplatopError, match="numbers of stations below 3, got 7"):
        Observations.read(wrong, fields=["T"])


def test_variables_over_other_dimensions_are_not_multiplied():
    data = xr.Dataset(
        {"T": (("time", "station"), U), "S": (("time", "depth"), U)},
        coords={"time": [0.0, 60.0], "x": ("station", X)},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert reports(Observations.read(data, fields=["T"])) == EXPECTED
    with pytest.raises(SplatopError, match="same dimensions, got T over time, station and S over"):
        Observations.read(data)


def test_moments_may_be_the_index_of_a_pandas_table():
    table = WIDE.set_index("timestamp").rename_axis(None)
    assert reports(Observations.read(table, places=PLACES)) == EXPECTED


def test_dates_go_on_from_the_first_table_and_it_is_read_as_that_was():
    t, x = np.arange(12.0), np.linspace(0, 0.9, 10)
    u = 1 + np.sin(2 * np.pi * (x - 0.05 * t[:, None]))
    table = pd.DataFrame(u + 0.01 * np.random.default_rng(0).normal(size=u.shape))
    table = table.set_axis([f"S{i}" for i in range(10)], axis=1)
    table.index = pd.Timestamp("2024-03-01") + pd.to_timedelta(t, unit="min")
    places = {f"S{i}": x[i] for i in range(10)}
    first = assimilate(
        table.iloc[:6],
        "dt(u) = -v*dx(u)",
        coefficients={"v": 0.05},
        lengths=1.0,
        points=8,
        dt=1.0,
        time_unit="min",
        places=places,
    )
    later = first.advance(table.iloc[6:])
    assert (later.begin, later.end) == (5, 11)
    assert later.trusted
    exact = 1 + np.sin(2 * np.pi * (np.arange(8) / 8 - 0.05 * 11))
    # 1 % of noise on 120 reports of three waves.
    assert later.window.mean[-1, 0] == pytest.approx(exact, abs=0.01)
    assert later.window.attributes["times_since"] == "2024-03-01T00:00:00+00:00"
    with pytest.raises(SplatopError, match="expected reports after 11"):
        later.advance(table.iloc[6:])
    again = later.advance(
        table.iloc[6:].shift(freq="6min").set_axis(list("ABCDEFGHIJ"), axis=1),
        places=dict(zip("ABCDEFGHIJ", x, strict=True)),
        spread="none",
    )
    assert again.end == 17

"""Tables as other programs write them: the same heat in a box, read from all of them."""

import numpy as np
import pandas as pd
import pytest
import scipy.io

from splatop import Observations, SplatopError
from splatop.data import open_trajectories

X, Y, T = np.linspace(0, 2, 9), np.linspace(-1, 0, 5), 0.1 * np.arange(4)
PLACES = np.stack([a.ravel() for a in np.meshgrid(X, Y)], axis=1)  # y changes last, as in MATLAB
FREE = {"boundary": "all: free", "sampling": "ends"}


def heat(x, y, t):
    return 300 + 10 * np.cos(np.pi * x / 2) * np.cos(np.pi * y) * np.exp(-t) + x


VALUES = np.stack([heat(*PLACES.T, t) for t in T])  # (T, P)
ON_GRID = np.stack([heat(*np.meshgrid(X, Y, indexing="ij"), t) for t in T])


def long_table(**names):
    rows = [(t, *place, VALUES[k, p]) for k, t in enumerate(T) for p, place in enumerate(PLACES)]
    return pd.DataFrame(rows, columns=["t", "x", "y", "T"]).rename(columns=names)


def check(path, fields=("T",), **how):
    """Float32 of 300 is good to 2e-5, text with nine digits to less."""
    with open_trajectories(path, **FREE, **how) as data:
        assert data.fields == fields
        assert data.grid.points == (9, 5)
        assert data.grid.origin == pytest.approx((0, -1))
        assert data.grid.lengths == pytest.approx((2, 1))
        assert data.dt == pytest.approx(0.1, rel=1e-6)
        assert np.abs(data.window(0, 0, 4)[:, 0] - ON_GRID).max() < 1e-4
        return dict(data.attributes)


def test_a_temperature_is_no_time(tmp_path):
    """Columns t and T, or Time and T: told apart by their case, or by the better name."""
    long_table().to_csv(tmp_path / "a.csv", index=False)
    check(tmp_path / "a.csv")
    long_table(t="Time").to_csv(tmp_path / "b.csv", index=False)
    check(tmp_path / "b.csv")
    for held in (long_table(), long_table(t="Time")):
        seen = Observations.read(held)
        assert set(seen.fields) == {"T"}
        assert np.unique(seen.times) == pytest.approx(T)


@pytest.mark.parametrize("separator", [",", "  "])
def test_a_column_for_each_time_as_comsol_writes_them(tmp_path, separator):
    head = [f"T (K) @ t={t:g}" for t in T]
    lines = [f"% Model{separator}heat.mph", f"% Nodes{separator}{len(PLACES)}"]
    lines.append("% " + separator.join(["x", "y", *head]))
    lines += [separator.join(f"{v:.9g}" for v in (*p, *VALUES[:, k])) for k, p in enumerate(PLACES)]
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n")
    check(tmp_path / "a.txt")


def test_points_by_number_as_paraview_writes_them(tmp_path):
    held = long_table(t="Time", x="Points:0", y="Points:1")
    held = held.assign(TimeStep=1, **{"Points:2": 0.0, "Point ID": np.arange(len(held))})
    held.to_csv(tmp_path / "a.csv", index=False, quoting=2)
    check(tmp_path / "a.csv")
    held.assign(**{"v:0": 1.0, "v:1": 2.0}).to_csv(tmp_path / "b.csv", index=False)
    check(tmp_path / "b.csv", fields=("T", "v_x", "v_y"))


def test_names_in_a_comment_and_units(tmp_path):
    text = long_table().to_csv(sep=" ", index=False, header=False)
    (tmp_path / "a.dat").write_text("# made by hand\n# t x y T\n" + text)
    check(tmp_path / "a.dat")
    named = long_table(t="Time [s]", x="X (m)", y="Y (m)", T="Temp (K)")
    named.to_csv(tmp_path / "b.csv", index=False, encoding="utf-8-sig")
    check(tmp_path / "b.csv", fields=("Temp",))


def test_degrees_and_dates(tmp_path):
    days = pd.Timestamp("2021-03-01") + pd.to_timedelta(long_table().t * 10, unit="D")
    held = long_table(x="lon", y="lat").assign(t=days).rename(columns={"t": "date"})
    held.to_csv(tmp_path / "a.csv", index=False)
    with pytest.warns(UserWarning, match="lon and lat are read as x and y, in degrees"):
        data = open_trajectories(tmp_path / "a.csv", **FREE)
    assert data.dt == 86400
    assert "seconds from 2021-03-01" in data.attributes["clock"]
    assert np.abs(data.window(0, 0, 4)[:, 0] - ON_GRID).max() < 1e-4
    with pytest.warns(UserWarning, match="degrees"):
        seen = Observations.read(tmp_path / "a.csv", time_unit="day")
    assert np.unique(seen.times) == pytest.approx([0, 1, 2, 3])
    assert seen.places[:, 0].max() == 2


def test_numbers_without_names_are_an_array_or_refused(tmp_path):
    np.savetxt(tmp_path / "a.csv", ON_GRID[:, :, 2], delimiter=",", header="by numpy")
    with pytest.raises(SplatopError, match=r"9 without names.*--axes tx \(or xt\)"):
        open_trajectories(tmp_path / "a.csv")
    how = {"axes": "tx", "lengths": 2.0, "dt": 0.1}
    with open_trajectories(tmp_path / "a.csv", **how, **FREE) as data:
        assert np.abs(data.window(0, 0, 4)[:, 0] - ON_GRID[:, :, 2]).max() < 1e-4
    long_table().to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(SplatopError, match="leave --axes"):
        open_trajectories(tmp_path / "b.csv", **how)


def test_points_of_an_archive_that_fill_a_grid_are_one(tmp_path):
    """As in `cylinder_nektar_wake.mat`, whose points are a grid of 100 by 50 in a list."""
    shaken = PLACES * (1 + 1e-13)
    held = {"X_star": shaken, "T_star": VALUES.T, "t": T[:, None]}
    scipy.io.savemat(tmp_path / "a.mat", held)
    check(tmp_path / "a.mat")
    held["X_star"] = PLACES[:-1]
    held["T_star"] = VALUES.T[:-1]
    np.savez(tmp_path / "b.npz", **held)
    with open_trajectories(tmp_path / "b.npz", boundary="all: free") as data:
        assert data.grid.points == (len(PLACES) - 1,)


def _wave():
    """u (T, X) on a period of 2 from -1 on, its times and its places."""
    t, x = 0.5 * np.arange(6), -1 + 0.25 * np.arange(8)
    return np.sin(np.pi * (x - t[:, None])), t, x


@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("lead", ["t", "Time (s)", "x", ""])
def test_values_between_a_row_and_a_column_of_coordinates(tmp_path, lead, decimal):
    u, t, x = _wave()
    down, across, values = (x, t, u.T) if lead == "x" else (t, x, u)
    names = [str(one).replace(".", decimal) for one in across]
    table = pd.DataFrame(values, index=pd.Index(down, name=lead), columns=names)
    table.to_csv(tmp_path / "a.csv", sep="," if decimal == "." else ";", decimal=decimal)
    if not lead:
        with pytest.raises(SplatopError, match=r"--axes tx if each row is a time, --axes xt"):
            open_trajectories(tmp_path / "a.csv")
    with open_trajectories(tmp_path / "a.csv", axes=None if lead else "tx") as data:
        assert (data.frames, data.dt) == (6, 0.5)
        assert (data.grid.lengths, data.grid.origin) == ((2.0,), (-1.0,))
        np.testing.assert_allclose(data.window(0, 0, 6)[:, 0], u, atol=1e-6)


@pytest.mark.parametrize("index", [True, False])
def test_rows_and_columns_that_only_count_are_no_data(tmp_path, index):
    u, _, _ = _wave()
    pd.DataFrame(u).to_csv(tmp_path / "a.csv", index=index)
    with pytest.warns(UserWarning, match="only count"):
        data = open_trajectories(tmp_path / "a.csv", axes="tx", lengths=2.0, dt=0.5)
    assert data.frames == 6
    np.testing.assert_allclose(data.window(0, 0, 6)[:, 0], u, atol=1e-6)


def test_trajectories_in_one_table(tmp_path):
    u, t, x = _wave()
    rows = [
        (b, a, c, (1 + b) * u[i, j])
        for b in (0, 1)
        for i, a in enumerate(t)
        for j, c in enumerate(x)
    ]
    table = pd.DataFrame(rows, columns=["sim", "t", "x", "u"])
    table.to_csv(tmp_path / "a.csv", index=False)
    with open_trajectories(tmp_path / "a.csv") as data:
        assert (data.trajectories, data.fields) == (2, ("u",))
    table.rename(columns={"sim": "draw"}).to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(SplatopError, match="the column draw tells them apart, call it trajectory"):
        open_trajectories(tmp_path / "b.csv")

"""Scattered data in the layouts of public sets: wakes, meshes over time, tables of others."""

import h5py
import meshio
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from splatop import SplatopError
from splatop.data import open_trajectories, save_table
from splatop.grid import Grid
from splatop.points import Points

FREE = {"boundary": "all: free"}
UNEVEN = np.array([0.0, 0.1, 0.3, 0.35, 0.6])


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch):
    monkeypatch.setenv("SPLATOP_CACHE", "off")


def lattice(n=9):
    x = np.linspace(0, 1, n)
    return np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)


@pytest.fixture(scope="module")
def places():
    """The corners of a square and random points in it."""
    corners = np.array([[0, 0], [1, 0], [0, 1], [1, 1]], float)
    return np.concatenate([corners, np.random.default_rng(0).random((196, 2))])


def wave(places, t):
    """Different in x, y and t, so that no axis can be taken for another unseen."""
    x, y = np.moveaxis(places, -1, 0)
    return np.cos(2 * x + t) + 0.5 * y * (1 + t)


def values(places, times=UNEVEN):
    return np.stack([wave(places, t) for t in times])  # (T, P)


def table(places, times=UNEVEN):
    rows = [(t, *place, wave(place, t)) for t in times for place in places]
    return pd.DataFrame(rows, columns=["t", "x", "y", "u"])


def write_series(path, places, times):
    from scipy.spatial import Delaunay

    cells = [("triangle", Delaunay(places).simplices)]
    flat = np.c_[places, np.zeros(len(places))]
    if path.suffix == ".xdmf":
        with meshio.xdmf.TimeSeriesWriter(path) as writer:
            writer.write_points_cells(flat, cells)
            for t in times:
                writer.write_data(t, point_data={"u": wave(places, t)})
        return
    named = [(t, f"a{k}.vtu") for k, t in enumerate(times)]
    for t, name in named:
        meshio.Mesh(flat, cells, point_data={"u": wave(places, t)}).write(path.with_name(name))
    listed = "".join(f'<DataSet timestep="{t}" file="{n}"/>' for t, n in reversed(named))
    path.write_text(f'<VTKFile type="Collection"><Collection>{listed}</Collection></VTKFile>')


def write(path, places, times):
    match path.suffix:
        case ".csv":
            table(places, times).to_csv(path, index=False)
        case ".npz":
            np.savez(path, points=places, t=times, u=values(places, times))
        case ".nc":
            coords = {"x": ("point", places[:, 0]), "y": ("point", places[:, 1]), "time": times}
            held = {"u": (("time", "point"), values(places, times))}
            xr.Dataset(held, coords).to_netcdf(path, engine="h5netcdf")
        case _:
            write_series(path, places, times)


@pytest.mark.parametrize("name", ["a.csv", "a.npz", "a.nc", "a.xdmf", "a.pvd"])
def test_uneven_times_at_points_are_kept(name, places, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # XDMF's data lie beside it
    write(tmp_path / name, places, UNEVEN)
    with open_trajectories(tmp_path / name, **FREE) as data:
        assert data.times == pytest.approx(UNEVEN)
        assert not data.even
        exact = values(data.grid.places)
        assert np.abs(data.window(0, 0, 5)[:, 0] - exact).max() < 1e-6
        save_table(tmp_path / "b.csv", data)
    with open_trajectories(tmp_path / "b.csv", **FREE) as again:
        assert again.times == pytest.approx(UNEVEN)


# (T, P, C) is how sets of meshes store vectors; a reader that takes it for (B, T, P) finds as many
# trajectories of two frames as there are times.
@pytest.mark.parametrize("repeated", [False, True])
def test_meshes_over_time_as_arrays(places, tmp_path, repeated):
    from scipy.spatial import Delaunay

    u = values(places)
    cells = Delaunay(places).simplices.astype(np.int32)
    held = {"mesh_pos": places, "cells": cells, "node_type": np.zeros((len(places), 1), np.int32)}
    if repeated:
        held = {name: np.tile(array, (5, 1, 1)) for name, array in held.items()}
    np.savez(tmp_path / "a.npz", **held, velocity=np.stack([u, -2 * u], -1), pressure=u[..., None])
    with open_trajectories(tmp_path / "a.npz", dt=0.1, **FREE) as data:
        assert data.fields == ("velocity_x", "velocity_y", "pressure")
        assert data.shape == (1, 5, 3, len(places))
        assert np.abs(data.window(0, 0, 5) - np.stack([u, -2 * u, u], 1)).max() < 1e-6
        assert data.domain.shape.area == pytest.approx(1)  # the triangles fill the square
    with pytest.raises(SplatopError, match=r"the time between frames.*--dt"):
        open_trajectories(tmp_path / "a.npz", **FREE)


def test_points_in_hdf5_are_no_grid(places, tmp_path):
    path = tmp_path / "gnn.h5"
    with h5py.File(path, "w") as file:
        file["pos"], file["t"] = places, 0.1 * np.arange(5)
        file["u"] = np.zeros((3, 5, len(places)))
    with pytest.raises(SplatopError, match=r"points 'pos': write them as .npz"):
        open_trajectories(path)


def test_points_that_move_are_refused(places, tmp_path):
    moving = np.stack([places, places + 0.1])
    np.savez(tmp_path / "a.npz", mesh_pos=moving, u=values(places, [0, 1]))
    with pytest.raises(SplatopError, match="points must stay where they are"):
        open_trajectories(tmp_path / "a.npz", dt=0.1, **FREE)


def test_a_table_that_fills_a_grid_is_one(tmp_path):
    shuffled = table(lattice()).sample(frac=1, random_state=0)
    shuffled.to_csv(tmp_path / "a.csv", index=False)
    with open_trajectories(tmp_path / "a.csv", boundary="all: free") as data:
        assert isinstance(data.grid, Grid)
        assert data.grid.points == (9, 9)
        assert data.grid.lengths == (1, 1)
        assert data.grid.layout == ("ends", "ends")
        exact = values(lattice()).reshape(5, 9, 9)
        assert np.abs(data.window(0, 0, 5)[:, 0] - exact).max() < 1e-6
    line = table(np.stack([np.linspace(-1, 1, 21), np.zeros(21)], 1)).drop(columns="y")
    line.to_csv(tmp_path / "b.csv", index=False)
    with open_trajectories(tmp_path / "b.csv", boundary="x: free") as data:
        assert data.grid.points == (21,)
        assert data.grid.origin == (-1,)
    line.drop(index=[k for k in line.index if k % 21 == 4]).to_csv(tmp_path / "c.csv", index=False)
    with pytest.raises(SplatopError, match="an even grid in 1D"):
        open_trajectories(tmp_path / "c.csv")


def test_tables_of_others(places, tmp_path):
    held = table(places)
    exact = values(places)

    def read(name, **how):
        with open_trajectories(tmp_path / name, **{**FREE, **how}) as data:
            assert isinstance(data.grid, Points)
            assert np.abs(data.window(0, 0, 5)[:, 0] - values(data.grid.places)).max() < 1e-5
            return data

    held.to_csv(tmp_path / "a.csv", index=False, sep=";", decimal=",")
    read("a.csv")
    held.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    read("a.tsv")
    held.to_csv(tmp_path / "a.txt", index=False, sep=" ")
    read("a.txt")
    named = held.rename(columns={"t": "Time", "x": "X", "u": "Temp (C)"})
    named.assign(site="north", z=0.0).to_csv(tmp_path / "b.csv", index=False)
    assert read("b.csv", fields=["u=Temp (C)"]).fields == ("u",)
    clock = pd.Timestamp("2020-02-29") + pd.to_timedelta(held.t, unit="h")
    held.assign(t=clock).to_csv(tmp_path / "c.csv", index=False)
    data = read("c.csv")
    assert data.times == pytest.approx(3600 * UNEVEN)
    assert "seconds from 2020-02-29" in data.attributes["clock"]
    pd.concat([held, held[:3]]).to_csv(tmp_path / "d.csv", index=False)
    with pytest.warns(UserWarning, match="3 rows repeat another"):
        read("d.csv")
    assert exact.shape == (5, len(places))


def test_what_tables_are_refused_for(places, tmp_path):
    held = table(places)

    def refused(match, changed, name="a.csv", **how):
        changed.to_csv(tmp_path / name, **{"index": False, **how})
        with pytest.raises(SplatopError, match=match):
            open_trajectories(tmp_path / name, **FREE)

    refused(r"2 with different values.*keep one", pd.concat([held, held[:1].assign(u=7.0)]))
    gaps = held.assign(u=held.u.where(held.index % 7 > 0))
    refused(r"column 'u'.*143 that are not.*first in row 2.*splatop reconstruct", gaps)
    refused(r"no x; rename columns in the first line", held.rename(columns={"x": "along"}))
    refused(r"one way only.*'04/03/2021'.*2021-12-31", held.assign(t="04/03/2021"))
    refused("name the columns in the first line", held, header=False)
    refused("expected numbers in column 't', got text", held.assign(t="soon"))
    refused("call z y", held.rename(columns={"y": "z"}))
    (tmp_path / "a.pvd").write_text("<VTKFile><Collection/></VTKFile>")
    with pytest.raises(SplatopError, match="expected files of a time series"):
        open_trajectories(tmp_path / "a.pvd")
    (tmp_path / "a.pvd").write_text("<VTKFile><DataSet timestep='0' file='no.vtu'/></VTKFile>")
    with pytest.raises(SplatopError, match=r"expected the file no.vtu"):
        open_trajectories(tmp_path / "a.pvd")
    (tmp_path / "a.vtu").write_text("<VTKFile/>")
    with pytest.raises(SplatopError, match=r"one moment.*\.pvd"):
        open_trajectories(tmp_path / "a.vtu")


def test_the_box_that_is_proposed_is_round(places, tmp_path):
    inner = 0.01 + 0.98 * places
    np.savez(tmp_path / "a.npz", points=inner, t=UNEVEN, u=values(inner))
    with pytest.raises(SplatopError, match=r'--shape "box\(0, 0, 1, 1\)"'):
        open_trajectories(tmp_path / "a.npz")


def test_a_masked_grid_keeps_its_times_and_its_inputs(tmp_path):
    n = 24
    x = (np.arange(n) + 0.5) / n
    whole = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1)
    u, f = values(whole), values(whole, UNEVEN + 1)
    np.savez(tmp_path / "a.npz", u=u, f=f, x=x, y=x, t=UNEVEN)
    how = {"axes": "txy", "shape": "disk(0.5, 0.5, 0.4)", "boundary": "all: free"}
    with open_trajectories(tmp_path / "a.npz", inputs=["f"], **how) as data:
        inside = data.grid.mask
        assert data.fields == ("u",)
        assert data.inputs == ("f",)
        assert data.times == pytest.approx(UNEVEN)
        assert np.allclose(data.window(0, 1, 1)[0, 0], u[1][inside])
        held = data.signals(0)["f"]
        assert np.allclose(held.values, f[:, inside])


def test_probes_of_openfoam(tmp_path):
    places = [(0.1 * k, 0.0, 0.5) for k in range(1, 5)]
    text = [f"# Probe {k} ({x} {y} {z})" for k, (x, y, z) in enumerate(places)]
    text += ["#   Probe  0 1 2 3", "#    Time"]
    rows = [f"{0.1 * n:g} " + " ".join(f"({n} {x:g} 0)" for x, _, _ in places) for n in range(3)]
    path = tmp_path / "U"
    path.write_text("\n".join([*text, *rows]) + "\n")
    with pytest.raises(SplatopError, match=r"points along x are few.*--boundary"):
        open_trajectories(path)  # a line of four points is no period
    with open_trajectories(path, boundary="x: free", sampling="ends") as data:
        assert (data.fields, data.dt) == (("U_x", "U_y", "U_z"), pytest.approx(0.1))
        np.testing.assert_allclose(data.window(0, 0, 3)[2, 0], 2.0)
        np.testing.assert_allclose(data.window(0, 0, 3)[2, 1], [0.1, 0.2, 0.3, 0.4], rtol=1e-6)
    path.write_text("\n".join([*text, *rows, "0.3 (1 2"]))
    with pytest.raises(SplatopError, match="rows that are not whole"):
        open_trajectories(path)


def test_tables_packed_and_indexed(tmp_path):
    t, x = np.meshgrid(0.5 * np.arange(3), np.arange(8) / 8, indexing="ij")
    table = pd.DataFrame({"t": t.ravel(), "x": x.ravel()})
    table["u"] = np.sin(2 * np.pi * table["x"] - table["t"])
    table.to_csv(tmp_path / "a.csv.gz", index=False)
    table.set_index(["t", "x"]).to_parquet(tmp_path / "b.parquet")
    for name in ("a.csv.gz", "b.parquet"):
        with open_trajectories(tmp_path / name) as data:
            assert (data.fields, data.frames, data.grid.points) == (("u",), 3, (8,))


@pytest.mark.parametrize(
    ("name", "start", "words"),
    [
        ("a.png", b"\x89PNG\r\n\x1a\n", "an image.*numpy.stack.*--axes tyx"),
        ("a.nc.gz", b"\x1f\x8b\x08\x00", "compressed by gzip: unpack it first"),
        ("a.feather", b"ARROW1\0\0", r"Feather: pandas.read_feather\(path\).to_parquet"),
        ("a.json", b'{"t": 0}', "JSON"),
        ("a.dat", b'TITLE = "B1"\nVARIABLES = "x", "y"\n1 2\n', "Tecplot's text"),
        ("a.txt", b"PIVlab\nFRAME: 0\nx [px],y [px],u\n1,2,3\n", "lines above the names"),
        ("b.txt", b"x [px],y [px],u\n1,2,3\n", "if each file is a frame join them"),
    ],
)
def test_files_of_other_kinds_are_answered_with_what_to_do(tmp_path, name, start, words):
    (tmp_path / name).write_bytes(start)
    with pytest.raises(SplatopError, match=words):
        open_trajectories(tmp_path / name)
    folder = {".png": "holds 1 .png file: read all", ".txt": "column t"}
    if (tmp_path / name).suffix in folder:
        with pytest.raises(SplatopError, match=folder[(tmp_path / name).suffix]):
            open_trajectories(tmp_path)

"""Data at points and on masked grids: readers, what is refused, and back."""

import json

import meshio
import numpy as np
import pytest
import scipy.io
import xarray as xr

from splatop import SplatopError
from splatop.data import open_trajectories, save_table, save_trajectories
from splatop.points import Points
from splatop.shapes.mesh import read_mesh, shape_of_mesh

DISK = "disk(0.5, 0.5, 0.4)"
COLD = {"shape": DISK, "boundary": "disk1: u = 0"}


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch):
    monkeypatch.setenv("SPLATOP_CACHE", "off")


def bump(places, t):
    """0 at the edge of the disk, of radius 0.4."""
    x, y = np.moveaxis(np.asarray(places), -1, 0)
    r2 = (x - 0.5) ** 2 + (y - 0.5) ** 2
    return np.exp(-t) * (0.16 - r2) * (1 + x) * 5


@pytest.fixture(scope="module")
def cloud():
    rng = np.random.default_rng(0)
    drawn = rng.random((900, 2))
    places = drawn[np.hypot(*(drawn - 0.5).T) < 0.4][:400]
    times = 0.1 * np.arange(5)
    return places, times, np.stack([bump(places, t) for t in times]).astype(np.float32)  # (T, P)


def write_npz(path, places, times, values):
    np.savez(path, points=places, t=times, u=values)


def write_table(path, places, times, values):
    import pandas as pd

    rows = [
        {"t": t, "x": x, "y": y, "u": v}
        for t, frame in zip(times, values, strict=True)
        for (x, y), v in zip(places, frame, strict=True)
    ]
    table = pd.DataFrame(rows).sample(frac=1, random_state=0)  # in any order
    if path.suffix == ".csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path)


def write_netcdf(path, places, times, values):
    data = xr.Dataset(
        {"u": (("time", "point"), values)},
        {"x": ("point", places[:, 0]), "y": ("point", places[:, 1]), "time": times},
    )
    data.to_netcdf(path, engine="h5netcdf")


def write_matlab(path, places, times, values):
    """As the public wake behind a cylinder has it: vectors (P, 2, T)."""
    both = np.stack([values.T, 0 * values.T], axis=1)
    scipy.io.savemat(path, {"X_star": places, "U_star": both, "t": times[:, None]})


WRITERS = {
    "a.npz": write_npz,
    "a.csv": write_table,
    "a.parquet": write_table,
    "a.nc": write_netcdf,
    "a.mat": write_matlab,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_values(name, cloud, tmp_path):
    places, times, values = cloud
    path = tmp_path / name
    WRITERS[name](path, places, times, values)
    asked = dict(COLD)
    if name == "a.mat":
        asked["boundary"] = "disk1: u = 0, v = 0"
    with open_trajectories(path, **asked) as data:
        assert isinstance(data.grid, Points)
        assert data.dt == pytest.approx(0.1)
        assert data.fields[0] == "u"
        # Points may come in another order: each value lies where it belongs.
        found = data.window(0, 0, 5)[:, 0]
        exact = np.stack([bump(data.grid.places, t) for t in times])
        assert np.abs(found - exact).max() < 1e-6
        assert sorted(map(tuple, data.grid.places)) == sorted(map(tuple, places))


def test_our_own_file_and_a_table_bring_it_back(cloud, tmp_path):
    write_npz(tmp_path / "a.npz", *cloud)
    with open_trajectories(tmp_path / "a.npz", **COLD) as data:
        save_trajectories(tmp_path / "b.h5", data)
        save_table(tmp_path / "c.csv", data)
        with open_trajectories(tmp_path / "b.h5") as again:
            assert again.domain == data.domain
            assert again.grid == data.grid
            assert (again.window(0, 0, 5) == data.window(0, 0, 5)).all()
        with open_trajectories(tmp_path / "c.csv", **COLD) as table:
            assert (table.window(0, 0, 5) == data.window(0, 0, 5)).all()


def on_grid(n=24):
    x = (np.arange(n) + 0.5) / n
    places = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1)
    frames = np.stack([bump(places, 0.1 * k) for k in range(4)])
    mask = np.hypot(places[..., 0] - 0.5, places[..., 1] - 0.5) < 0.4
    return frames, mask


def test_a_masked_grid_by_shape_by_nan_and_by_a_variable(tmp_path):
    frames, mask = on_grid()
    holes = np.where(mask, frames, np.nan)
    np.savez(tmp_path / "a.npz", u=holes, inside=mask.astype(float))
    how = {"axes": "txy", "lengths": 1.0, "dt": 0.1, "sampling": "cells", "fields": ["u"]}
    with open_trajectories(tmp_path / "a.npz", **how, **COLD) as data:
        assert data.shape == (1, 4, 1, int(mask.sum()))
        assert np.allclose(data.window(0, 2, 1)[0, 0], frames[2][mask])
        back = data.grid.on_grid(data.window(0, 0, 1)[0, 0])
        assert (np.isnan(back) == ~mask).all()
        assert np.allclose(back[mask], frames[0][mask])
        exact = data.domain.shape.area
    for name in ("inside", "nan"):
        with open_trajectories(tmp_path / "a.npz", **how, mask=name, boundary="all: u = 0") as data:
            shape = data.domain.shape
            assert not shape.is_exact
            assert "known to a cell only" in data.attributes["shape"]
            assert shape.area == pytest.approx(exact, rel=0.06)  # a third of a cell of 10, twice


def test_nan_that_come_and_go_are_no_shape(tmp_path):
    rng = np.random.default_rng(0)
    frames = rng.normal(size=(8, 12, 12))
    frames[:, 0, 0] = np.nan
    frames[5, 4:7, 3] = np.nan
    np.savez(tmp_path / "a.npz", u=frames)
    how = {"axes": "txy", "lengths": 1.0, "dt": 0.1, "boundary": "all: u = 0"}
    for told in ({"mask": "nan"}, {"shape": "box - disk(0, 0, 0.1)"}):
        with pytest.raises(SplatopError, match=r"3 others at step 5.*reconstruct or assimilate"):
            open_trajectories(tmp_path / "a.npz", **how, **told)


def test_slopes_around_a_hole_that_few_points_see_are_not_called_broken(tmp_path):
    """A field that flows around a small hole: 300 points do not show its slopes there."""
    rng = np.random.default_rng(0)
    places = rng.random((400, 2)) * [2.0, 1.0]
    x, y = (places - [0.6, 0.5]).T
    places = places[x**2 + y**2 > 0.15**2][:300]
    x, y = (places - [0.6, 0.5]).T
    flow = x * (1 + 0.0225 / (x**2 + y**2))  # a potential: no slope across the hole's edge
    frames = np.stack([np.sin(6 * flow + k) for k in range(3)])
    write_npz(tmp_path / "a.npz", places, 0.1 * np.arange(3), frames)
    how = {"shape": "box(0, 0, 2, 1) - disk(0.6, 0.5, 0.15)"}
    with open_trajectories(
        tmp_path / "a.npz", **how, boundary="outer: free; disk1: dn(u) = 0"
    ) as data:
        assert data.domain.shape is not None
    with pytest.raises(SplatopError, match="'u = 2' at disk1 does not hold"):
        open_trajectories(tmp_path / "a.npz", **how, boundary="outer: free; disk1: u = 2")


def test_points_outside_and_edges_unsaid_are_refused(cloud, tmp_path):
    write_npz(tmp_path / "a.npz", *cloud)

    def refused(match, **how):
        with pytest.raises(SplatopError, match=match):
            open_trajectories(tmp_path / "a.npz", **how)

    refused(
        r"of 400 outside, the farthest at \(0\.", shape="disk(0.5, 0.5, 0.3)", boundary="all: u = 0"
    )
    refused("expected the shape that the points lie in", boundary="all: u = 0")
    refused("what holds at the edges of the shape .disk1.", shape=DISK)
    refused("did you mean 'disk1'", shape=DISK, boundary="disk: u = 0")
    refused("'u = 2' at disk1 does not hold", shape=DISK, boundary="disk1: u = 2")
    refused(r"'dn\(u\) = 0' at disk1 does not hold", shape=DISK, boundary="disk1: dn(u) = 0")
    refused("--shape or --mask, got both", shape=DISK, mask="nan")
    refused("expected to know the box", shape="box - disk(0, 0, 1)", boundary="all: u = 0")


def test_a_table_with_holes_is_refused_with_the_place(cloud, tmp_path):
    import pandas as pd

    path = tmp_path / "a.csv"
    write_table(path, *cloud)
    table = pd.read_csv(path)
    table.drop(index=17).to_csv(path, index=False)
    with pytest.raises(
        SplatopError, match=r"got none at t = .*, x = .*1 of 2000 rows.*points must stay"
    ):
        open_trajectories(path, **COLD)
    table.rename(columns={"x": "where"}).to_csv(path, index=False)
    with pytest.raises(SplatopError, match=r"expected columns t, x.*no x"):
        open_trajectories(path, **COLD)
    path.write_text("t,x,y,u\n0,0.5,0.5,hot\n")
    with pytest.raises(SplatopError, match="numbers in column 'u'"):
        open_trajectories(path, **COLD)
    for content in (b"", b"\x00\xff" * 40, b"t,x,y\n1,2,3\n"):
        path.write_bytes(content)
        with pytest.raises(SplatopError):
            open_trajectories(path, **COLD)
        path.with_suffix(".parquet").write_bytes(content)
        with pytest.raises(SplatopError):
            open_trajectories(path.with_suffix(".parquet"), **COLD)


def test_shapes_are_refused_in_other_dimensions(tmp_path):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(4, 32)))
    with pytest.raises(SplatopError, match="2D data for a shape, got 1D"):
        open_trajectories(tmp_path / "a.npy", axes="tx", lengths=1.0, dt=0.1, fields=["u"], **COLD)


def test_points_on_all_sides_show_the_box(tmp_path):
    x = np.linspace(0, 1, 12)
    grid = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)
    places = grid[np.hypot(*(grid - (0.4, 0.5)).T) > 0.2]
    write_npz(tmp_path / "a.npz", places, [0.0, 0.1], np.ones((2, len(places))))
    data = open_trajectories(
        tmp_path / "a.npz", shape="box - disk(0.4, 0.5, 0.15)", boundary="all: dn(u) = 0"
    )
    assert data.domain.shape.area == pytest.approx(1 - np.pi * 0.15**2)
    inner = places[(places > 0).all(1)]
    write_npz(tmp_path / "b.npz", inner, [0.0, 0.1], np.ones((2, len(inner))))
    with pytest.raises(SplatopError, match="to know the box"):
        open_trajectories(tmp_path / "b.npz", shape="box", boundary="all: dn(u) = 0")


# --- meshes --------------------------------------------------------------------------------------


def square_with_groups():
    """Two triangles, whose left side is the group `inlet` and the others `wall`."""
    points = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    cells = [
        ("triangle", np.array([[0, 1, 2], [0, 2, 3]])),
        ("line", np.array([[0, 1], [1, 2], [2, 3], [3, 0]])),
    ]
    tags = [np.array([9, 9]), np.array([1, 1, 1, 2])]
    return meshio.Mesh(
        points,
        cells,
        cell_data={"gmsh:physical": tags, "gmsh:geometrical": tags},
        field_data={"wall": np.array([1, 1]), "inlet": np.array([2, 1]), "all": np.array([9, 2])},
    )


def test_groups_of_a_mesh_name_the_edges(tmp_path):
    square_with_groups().write(tmp_path / "a.msh", file_format="gmsh22", binary=False)
    shape = shape_of_mesh(read_mesh(tmp_path / "a.msh"), "a.msh")
    assert set(shape.edge_names) == {"inlet", "wall"}
    assert shape.area == pytest.approx(1.0)
    inlet = [edge.piece for edge in shape.edges if edge.name == "inlet"]
    assert len(inlet) == 1
    assert np.allclose(inlet[0].at(np.array([0.0, 1.0]))[:, 0], 0.0)


def test_a_mesh_that_does_not_match_its_points_is_refused():
    mesh = square_with_groups()
    mesh.cells[0].data[0, 1] = 7
    with pytest.raises(SplatopError, match="triangle 0 with the corners"):
        shape_of_mesh(mesh, "a.msh")
    mesh.cells[0].data[0, 1] = 1
    mesh.cells.append(meshio.CellBlock("triangle", np.array([[0, 1, 3], [0, 1, 2]])))
    with pytest.raises(SplatopError, match="at most two triangles share"):
        shape_of_mesh(mesh, "a.msh")


def test_a_series_on_a_mesh(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # meshio writes the values there
    n = 12
    x = np.linspace(0, 1, n)
    points = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)
    corner = (np.arange(n - 1)[:, None] * n + np.arange(n - 1)).ravel()
    cells = np.concatenate(
        [
            np.stack([corner, corner + n, corner + n + 1], axis=1),
            np.stack([corner, corner + n + 1, corner + 1], axis=1),
        ]
    )
    with meshio.xdmf.TimeSeriesWriter(tmp_path / "a.xdmf") as writer:
        writer.write_points_cells(points, [("triangle", cells)])
        for k in range(4):
            wave = np.cos(np.pi * points[:, 0]) * np.exp(-0.1 * k)
            writer.write_data(0.1 * k, point_data={"u": wave})
    with open_trajectories(tmp_path / "a.xdmf", boundary="all: dn(u) = 0") as data:
        assert data.shape == (1, 4, 1, n * n)
        assert data.domain.shape.area == pytest.approx(1.0)
        assert np.allclose(data.window(0, 3, 1)[0, 0], np.cos(np.pi * points[:, 0]) * np.exp(-0.3))
    (tmp_path / "a.xdmf").write_text("<Xdmf><oops")
    with pytest.raises(SplatopError, match="cannot be read"):
        open_trajectories(tmp_path / "a.xdmf", boundary="all: dn(u) = 0")


def test_a_file_whose_points_are_damaged_says_so(cloud, tmp_path):
    import h5py

    write_npz(tmp_path / "a.npz", *cloud)
    with open_trajectories(tmp_path / "a.npz", **COLD) as data:
        save_trajectories(tmp_path / "b.h5", data)
    with h5py.File(tmp_path / "b.h5", "a") as file:
        ours = json.loads(file.attrs["splatop"])
        ours["layout"]["packed"] = ours["layout"]["packed"][:-40] + "="
        file.attrs["splatop"] = json.dumps(ours)
    with pytest.raises(SplatopError, match=r"b\.h5"):
        open_trajectories(tmp_path / "b.h5")

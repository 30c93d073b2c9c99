"""Grids in the layouts of public sets: PDEBench, The Well, MATLAB, climate data, archives."""

import json
import warnings
import zipfile

import h5py
import numpy as np
import pytest
import scipy.io
import xarray as xr

from splatop import SplatopError
from splatop.data import open_trajectories
from splatop.data.stored import Stored

T = 5
RING = np.arange(24) / 24


def moving(x, y, shift=0.0):
    """`(T, X, Y)`, periodic in both, different along each axis and in time."""
    waves = [np.sin(2 * np.pi * (x - 0.03 * k + shift)) for k in range(T)]
    return np.stack([np.outer(wave, 1.5 + np.cos(2 * np.pi * y)) for wave in waves])


def write_well(path, axes, fields, *, grid="cartesian", flags=(), constant=()):
    """Fields by rank and name; flags `(name, dims, kind)`; constant fields by name."""
    with h5py.File(path, "w") as file:
        file.attrs["grid_type"] = grid
        file.create_group("dimensions").attrs["spatial_dims"] = list(axes)
        file["dimensions/time"] = np.float32(0.1 * np.arange(T))
        for name, x in axes.items():
            file[f"dimensions/{name}"] = np.float32(x)
        for (rank, name), values in fields.items():
            file[f"t{rank}_fields/{name}"] = np.float32(values)
        for name, values in dict(constant).items():
            file[f"t0_fields/{name}"] = np.float32(values)
            file[f"t0_fields/{name}"].attrs["time_varying"] = False
            file[f"t0_fields/{name}"].attrs["sample_varying"] = np.ndim(values) > len(axes)
        for name, dims, kind in flags:
            group = file.create_group(f"boundary_conditions/{name}")
            group.attrs["associated_dims"] = list(dims)
            group.attrs["bc_type"] = kind


PERIODIC = (("x_periodic", "x", "PERIODIC"), ("y_periodic", "y", "PERIODIC"))


def test_a_vector_is_asked_for_by_its_name(tmp_path):
    u, v = moving(RING, RING), moving(RING, RING, 0.2)
    fields = {(0, "p"): u[None], (1, "velocity"): np.stack([u, v], -1)[None]}
    write_well(tmp_path / "a.h5", {"x": RING, "y": RING}, fields, flags=PERIODIC)
    with open_trajectories(tmp_path / "a.h5", fields=["velocity"]) as data:
        assert data.fields == ("velocity_x", "velocity_y")
    with open_trajectories(tmp_path / "a.h5", fields=["w=velocity", "p"]) as data:
        assert data.fields == ("w_x", "w_y", "p")
        assert np.allclose(data.window(0, 0, T)[:, 1], v, atol=1e-6)


def test_fields_that_do_not_change_are_inputs(tmp_path):
    """One of each trajectory, one of all; both named where nobody asks for them."""
    u, speed = moving(RING, RING), np.stack([np.outer(RING, RING), np.outer(RING, 1 + RING)])
    fields = {(0, "p"): np.stack([u, 2 * u])}
    constant = {"speed": speed, "depth": speed[0]}
    write_well(tmp_path / "a.h5", {"x": RING, "y": RING}, fields, flags=PERIODIC, constant=constant)
    with open_trajectories(tmp_path / "a.h5", inputs=["speed", "depth"]) as data:
        assert data.fields == ("p",)
        held = data.signals(1)
        assert np.allclose(held["speed"].values, speed[1], atol=1e-6)
        assert np.allclose(held["depth"].values, speed[0], atol=1e-6)
        assert np.allclose(data.window(1, 0, T)[:, 0], 2 * u, atol=1e-6)
    with open_trajectories(tmp_path / "a.h5") as data:
        assert data.fields == ("p",)
        assert "--inputs depth,speed" in data.attributes["constant_fields"]


def test_uneven_points_are_resampled_when_asked(tmp_path):
    """Chebyshev's points between walls. A quintic spline errs by about h^6 u''''''/720, with
    h = pi/64 and the sixth derivative of sin(pi y) pi^6: 2e-8; single precision is 1e-7."""
    y = 0.5 - 0.5 * np.cos(np.pi * (np.arange(32) + 0.5) / 32)
    exact = lambda along: np.stack(  # noqa: E731
        [np.outer(np.sin(2 * np.pi * (RING - 0.1 * k)), np.sin(np.pi * along)) for k in range(T)]
    )
    flags = (("x_periodic", "x", "PERIODIC"), ("y_wall", "y", "WALL"))
    write_well(tmp_path / "a.h5", {"x": RING, "y": y}, {(0, "u"): exact(y)[None]}, flags=flags)
    with pytest.raises(SplatopError, match=r"evenly spaced.*along y.*--resample"):
        open_trajectories(tmp_path / "a.h5")
    how = {"resample": True, "boundary": "x: periodic; y: u = 0"}
    with open_trajectories(tmp_path / "a.h5", **how) as data:
        assert data.grid.lengths == pytest.approx((1, 1))
        assert data.grid.origin[1] == 0
        assert data.grid.layout == ("left", "cells")
        found, along = data.window(0, 0, T)[:, 0], data.grid.coordinates()[1].ravel()
        assert np.abs(found - exact(along)).max() < 1e-6
        assert "interpolated from 32 uneven points" in data.attributes["axes"]


def test_what_resampling_loses_is_warned_of(tmp_path):
    """A layer of 1e-3 that Chebyshev's points see at the wall, and even ones do not."""
    y = 0.5 - 0.5 * np.cos(np.pi * (np.arange(32) + 0.5) / 32)
    u = np.stack([np.outer(1.5 + np.sin(2 * np.pi * RING), np.exp(-y / 1e-3))] * T)
    write_well(tmp_path / "a.h5", {"x": RING, "y": y}, {(0, "u"): u[None]})
    with pytest.warns(UserWarning, match="thinner than an even cell is gone"):
        open_trajectories(tmp_path / "a.h5", resample=True, boundary="x: periodic; y: free")


def test_a_sphere_and_an_obstacle_are_refused_in_words(tmp_path):
    u = {(0, "u"): moving(RING, RING)[None]}
    write_well(tmp_path / "s.h5", {"theta": RING, "phi": RING}, u, grid="equiangular")
    with pytest.raises(SplatopError, match=r"'equiangular'.*sphere"):
        open_trajectories(tmp_path / "s.h5")
    flags = (*PERIODIC, ("hole", "xy", "WALL"))
    write_well(tmp_path / "o.h5", {"x": RING, "y": RING}, u, flags=flags)
    with pytest.raises(SplatopError, match=r"an obstacle.*--shape.*--boundary"):
        open_trajectories(tmp_path / "o.h5")
    with open_trajectories(tmp_path / "o.h5", periodic=True) as data:  # the user counts first
        assert data.domain.all_periodic


def test_one_moment_is_no_trajectory(tmp_path):
    with h5py.File(tmp_path / "2D_DarcyFlow_beta1.0_Train.hdf5", "w") as file:
        file["tensor"] = np.ones((3, 1, 8, 8), np.float32)
        file["nu"] = np.ones((3, 8, 8), np.float32)
        file["t-coordinate"] = np.array([0.0, 1.0])
        for axis in "xy":
            file[f"{axis}-coordinate"] = (np.arange(8) + 0.5) / 8
    with pytest.raises(SplatopError, match=r"at least two frames, got one: a steady state"):
        open_trajectories(tmp_path / "2D_DarcyFlow_beta1.0_Train.hdf5")


def test_vectors_scalars_and_forces_of_plain_hdf5(tmp_path):
    """`velocity` and `force` have two channels, `particles` has one, `force` has no time."""
    u, v = moving(RING, RING), moving(RING, RING, 0.3)
    force = np.tile(np.stack([u[0], v[0]], -1), (2, 1, 1, 1))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["velocity"] = np.tile(np.stack([u, v], -1), (2, 1, 1, 1, 1))
        file["particles"] = np.tile((u + v)[..., None], (2, 1, 1, 1, 1))
        file["force"] = force
        file["t"] = np.tile(0.1 * np.arange(T), (2, 1))
    with pytest.raises(SplatopError, match="--fields velocity --axes btxyc --lengths 1"):
        open_trajectories(tmp_path / "a.h5")
    how = {"axes": "btxyc", "lengths": 1.0}
    asked = {"fields": ["velocity", "particles"], "inputs": ["force"]}
    with open_trajectories(tmp_path / "a.h5", **how, **asked) as data:
        assert data.fields == ("velocity_x", "velocity_y", "particles")
        assert np.allclose(data.window(0, 0, T), np.stack([u, v, u + v], 1), atol=1e-6)
        assert data.inputs == ("force_x", "force_y")
        assert np.allclose(data.signals(0)["force_y"].values, v[0], atol=1e-6)


def test_datasets_in_groups_with_their_coordinates(tmp_path):
    """As PDEArena stores them: all in one group, coordinates and numbers for each trajectory."""
    u, v = moving(RING, RING), moving(RING, RING, 0.3)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        group = file.create_group("train")
        group["u"], group["vx"] = np.stack([u, v, u]), np.stack([v, u, v])
        group["t"], group["dt"] = np.tile(2 + 0.1 * np.arange(T), (3, 1)), np.full(3, 0.1)
        group["x"], group["y"] = np.tile(RING, (3, 1)), np.tile(RING, (3, 1))
        group["buo_y"] = np.array([0.1, 0.2, 0.3])
    with pytest.raises(SplatopError, match=r"u \(3, 5, 24, 24\).*--axes btxy"):
        open_trajectories(tmp_path / "a.h5")
    with open_trajectories(tmp_path / "a.h5", axes="btxy") as data:
        assert data.fields == ("u", "vx")
        assert data.grid.lengths == pytest.approx((1, 1))
        assert data.times == pytest.approx(2 + 0.1 * np.arange(T))
        assert data.coefficients["buo_y"] == pytest.approx([0.1, 0.2, 0.3])
        assert np.allclose(data.window(1, 0, T)[:, 0], v, atol=1e-6)
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["results/temperature"], file["results/time"] = u[:, :20], 0.1 * np.arange(T)
        file["mesh/x"], file["mesh/y"] = RING[:20], 3 * RING
        file["other/note"] = "by hand"
    with open_trajectories(
        tmp_path / "b.h5", boundary="x: free; y: periodic", sampling="ends"
    ) as data:
        assert data.fields == ("temperature",)
        assert data.grid.lengths[1] == pytest.approx(3)


def test_inputs_need_not_be_named_as_fields_too(tmp_path):
    u, v = moving(RING, RING), moving(RING, RING, 0.3)
    np.savez(tmp_path / "a.npz", u=u, f=v, g=u, x=RING, y=2 * RING, t=0.1 * np.arange(T))
    for fields in (["u"], ["u", "f"]):
        how = {"axes": "txy", "fields": fields, "inputs": ["f"]}
        with open_trajectories(tmp_path / "a.npz", **how) as data:
            assert data.fields == ("u",)
            assert data.inputs == ("f",)
    with pytest.raises(SplatopError, match="'h'"):
        open_trajectories(tmp_path / "a.npz", axes="txy", fields=["u"], inputs=["h"])


def climate(path, *, land=False, level=False):
    lat, lon = np.linspace(40, -32, 24), 15.0 * np.arange(24)
    u = np.swapaxes(moving(RING, RING), 1, 2) + lat[:, None] / 10  # (T, lat, lon)
    u = np.where(lon / 90 < 1, np.nan, u) if land else u
    dims = ("time", "level", "lat", "lon") if level else ("time", "lat", "lon")
    held = {"sst": (dims, u[:, None] if level else u)}
    xr.Dataset(held, {"time": 7.0 * np.arange(T), "lat": lat, "lon": lon}).to_netcdf(
        path,
        engine="h5netcdf",
        encoding={"sst": {"dtype": "i2", "scale_factor": 1e-3, "_FillValue": 32767}},
    )
    return lat, u


@pytest.mark.parametrize("level", [False, True])
def test_latitudes_that_fall(tmp_path, level):
    lat, u = climate(tmp_path / "a.nc", level=level)
    with pytest.raises(SplatopError, match=r"--axes tyx, with degrees as lengths on a plane"):
        open_trajectories(tmp_path / "a.nc")
    with open_trajectories(tmp_path / "a.nc", axes="tyx", boundary="x: periodic; y: free") as data:
        assert np.allclose(data.grid.coordinates()[1].ravel(), lat[::-1], atol=1e-4)
        # Packed in steps of 1e-3: half of one, and single precision of 5.
        wanted = np.swapaxes(u, 1, 2)[:, :, ::-1]
        assert np.abs(data.window(0, 0, T)[:, 0] - wanted).max() < 5.1e-4
        assert "turned round" in data.attributes["axes"]


def test_land_is_not_looked_through(tmp_path):
    climate(tmp_path / "a.nc", land=True)
    with pytest.raises(SplatopError, match=r"no value \(NaN\) in any frame.*--mask nan"):
        open_trajectories(tmp_path / "a.nc", axes="tyx")
    with (
        open_trajectories(tmp_path / "a.nc", axes="tyx", periodic=True) as data,
        pytest.raises(SplatopError, match="--mask nan"),
    ):
        data.window(0, 0, 1)


def test_land_beside_latitudes_that_fall(tmp_path):
    lat, lon = np.arange(6.0, -6.0, -1), np.arange(14.0)
    land = (lat[:, None] > 2) & (lon > 8)
    u = np.where(land, np.nan, 1.0) * (lat[:, None] + 0.1 * np.arange(T)[:, None, None])
    coords = {"time": np.arange(T), "lat": lat, "lon": lon}
    xr.Dataset({"u": (("time", "lat", "lon"), u + 0 * lon)}, coords).to_netcdf(tmp_path / "a.nc")
    asked = {"axes": "tyx", "mask": "nan", "boundary": "all: free"}
    with open_trajectories(tmp_path / "a.nc", **asked) as data:
        assert np.isfinite(data.window(0, 0, T)).all()
        assert data.grid.places[:, 1].max() == 6
        assert not ((data.grid.places[:, 1] > 2) & (data.grid.places[:, 0] > 8)).any()


def test_grids_in_one_column_and_frames_apart_are_answered_with_what_to_do(tmp_path):
    columns = {"VORTALL": np.zeros((63, 5)), "nx": 9.0, "ny": 7.0, "dt": 0.2}
    scipy.io.savemat(tmp_path / "a.mat", columns)
    with pytest.raises(SplatopError, match=r"reshape\(9, 7, -1, order=\"F\"\)"):
        open_trajectories(tmp_path / "a.mat")
    with h5py.File(tmp_path / "b.h5", "w") as file:
        for k in range(1, 5):
            file[f"Velocity_{k:04d}"] = np.zeros((6, 6, 6, 3))
    with pytest.raises(SplatopError, match="Velocity_0001 to Velocity_0004 seem to be one frame"):
        open_trajectories(tmp_path / "b.h5")


def test_data_at_rest_at_their_ends_may_have_walls(tmp_path):
    x = (np.arange(48) + 0.5) / 48
    bump = np.stack([np.exp(-(((x - 0.5) / (0.04 + 0.005 * k)) ** 2)) for k in range(T)])
    np.savez(tmp_path / "a.npz", u=1 + bump, x=x, t=0.1 * np.arange(T))
    with open_trajectories(tmp_path / "a.npz") as data:
        said = data.attributes["boundary_conditions"]
        assert "rests at the ends of x, where walls would look the same" in said
    np.savez(tmp_path / "b.npz", u=moving(x, RING)[..., 0], x=x, t=0.1 * np.arange(T))
    with open_trajectories(tmp_path / "b.npz") as data:
        assert data.attributes["boundary_conditions"] == "periodic (not stated, the data closes)"


def test_trajectories_side_by_side_are_read_in_blocks(tmp_path, monkeypatch):
    """As MATLAB stores (B, X, T): one trajectory costs as much as its neighbours together."""
    array = np.random.default_rng(0).random((T, 6, 10)).astype(np.float32)  # (T, X, B)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        stored = Stored(file.create_dataset("u", data=array), transposed=True)
        monkeypatch.setattr("splatop.data.stored._BLOCK_BYTES", 4 * array[..., :4].nbytes // 4)
        reads = []
        inner = stored._dataset

        class Counted:
            shape, dtype = inner.shape, inner.dtype

            def __getitem__(self, key):
                reads.append(key)
                return inner[key]

        stored._dataset = Counted()
        every = (slice(None), slice(None))
        for b in range(10):
            assert np.array_equal(stored.part((b, *every)), array[..., b].T)
        assert len(reads) == 3  # four trajectories at once


def test_large_arrays_of_an_archive_stay_on_disk(tmp_path):
    u = np.random.default_rng(0).random((2, 40, 80, 80)).astype(np.float32)  # 2 MB
    np.savez(tmp_path / "a.npz", u=u, kind=np.array(["text"]))
    np.savez_compressed(tmp_path / "b.npz", u=u)
    how = {"axes": "btxy", "lengths": 1.0, "dt": 0.1, "periodic": True}
    for name, mapped in (("a.npz", True), ("b.npz", False)):
        with open_trajectories(tmp_path / name, **how) as data:
            assert isinstance(data._arrays[0], np.memmap) == mapped
            assert np.array_equal(data.window(1, 3, 2)[:, 0], u[1, 3:5])


def test_dedalus_names_its_axes_by_scales(tmp_path):
    z = 0.5 - 0.5 * np.cos(np.pi * (np.arange(16) + 0.5) / 16)
    x, t = np.arange(12) / 3, 0.25 * np.arange(5)
    wave = np.cos(np.pi * x / 2 - t[:, None])[:, :, None] * np.sin(np.pi * z)
    path = tmp_path / "snapshots_s1.h5"
    with h5py.File(path, "w") as file:
        for name, values in {
            "x_hash_1": x,
            "z_hash_1": z,
            "sim_time": t,
            "iteration": 7 * t,
        }.items():
            file[f"scales/{name}"] = values
            file[f"scales/{name}"].make_scale(name)
        for name, values in {"b": wave, "u": np.stack([wave, 2 * wave], axis=1)}.items():
            held = file.create_dataset(f"tasks/{name}", data=values)
            axes = {0: ("t", "iteration", "sim_time")}
            axes |= {held.ndim - 2: ("x", "x_hash_1"), held.ndim - 1: ("z", "z_hash_1")}
            for axis, (label, *scales) in axes.items():
                held.dims[axis].label = label
                for scale in scales:
                    held.dims[axis].attach_scale(file[f"scales/{scale}"])
    with open_trajectories(path, resample=True, boundary="x: periodic; y: free") as data:
        assert data.fields == ("b", "u_x", "u_y")
        assert (data.dt, data.domain.lengths) == (0.25, (4.0, 1.0))
        assert data.attributes["names"] == "z of the file is y"
        frame = data.window(0, 2, 1)[0]
    np.testing.assert_allclose(frame[2], 2 * frame[0], atol=1e-6)
    np.testing.assert_allclose(frame[0][:, 8], np.cos(np.pi * x / 2 - 0.5), atol=0.02)


def test_latitude_and_depth_are_no_periods(tmp_path):
    lat, lon = np.arange(-88.0, 89.0, 8.0), np.arange(0.0, 360.0, 15.0)
    u = np.cos(np.deg2rad(lat))[:, None] ** 2 + 0.1 * np.sin(np.deg2rad(lon))
    u = u * np.linspace(1, 2, T)[:, None, None]
    for name, why in (("lat", "latitude"), ("depth", "height or depth")):
        path = tmp_path / f"{name}.nc"
        coords = {"time": np.arange(T), name: lat, "lon": lon}
        xr.Dataset({"u": (("time", name, "lon"), u)}, coords).to_netcdf(path)
        with pytest.raises(SplatopError, match=rf"y \({name}\) is a {why}, which has two ends"):
            open_trajectories(path, axes="tyx")
        with open_trajectories(path, axes="tyx", periodic=True) as data:
            assert all(data.domain.periodic)


def test_staggered_and_curved_grids_are_refused(tmp_path):
    half, whole = np.arange(8) + 0.5, np.arange(8.0)
    values = np.random.default_rng(0).normal(size=(T, 8, 8))
    coords = {"time": np.arange(T), "YC": half, "XC": half, "XG": whole}
    fields = {"eta": (("time", "YC", "XC"), values), "u": (("time", "YC", "XG"), values)}
    xr.Dataset(fields, coords).to_netcdf(tmp_path / "a.nc")
    with pytest.raises(SplatopError, match=r"XC from 0\.5 and u along XG from 0, a staggered grid"):
        open_trajectories(tmp_path / "a.nc", axes="tyx")
    with open_trajectories(tmp_path / "a.nc", axes="tyx", fields=["u"], periodic=True) as data:
        assert data.grid.origin == (0.0, 0.5)
    lines = {"lon_rho": (("e", "x"), half + half[:, None]), "ocean_time": np.arange(T)}
    held = {"zeta": (("ocean_time", "e", "x"), values), "w": (("ocean_time", "s"), values[0, :T])}
    xr.Dataset(held, lines).to_netcdf(tmp_path / "b.nc")
    with pytest.raises(SplatopError, match=r"got zeta \(ocean_time, e, x\).*--axes tyx"):
        open_trajectories(tmp_path / "b.nc", fields=["zeta"])
    with pytest.raises(SplatopError, match=r"lon_rho \(e, x\), the places of a curved grid"):
        open_trajectories(tmp_path / "b.nc", fields=["zeta"], axes="tyx")


def test_axes_named_in_another_order_than_the_coordinates_have(tmp_path):
    path = tmp_path / "ns.npz"
    np.savez(path, u=np.zeros((3, 8, 8, 5)), t=np.arange(5.0))
    with pytest.raises(SplatopError, match=r"expected 8 values of t.*got 5.*another order"):
        open_trajectories(path, axes="btxy", lengths=1.0)


def _pypde(path, data, fields, grid):
    """A file as py-pde 0.59 writes it: JSON in JSON."""
    parts = [
        {
            "class": json.dumps(kind),
            "grid": json.dumps(grid),
            "label": json.dumps(label),
            "dtype": json.dumps("<f8"),
        }
        for kind, label in fields
    ]
    about = parts[0]
    if len(parts) > 1:
        about = {"class": '"FieldCollection"', "label": "null", "fields": json.dumps(parts)}
    with h5py.File(path, "w") as file:
        file["data"], file["times"] = data, 0.1 * np.arange(len(data))
        file.attrs["field_attributes"] = json.dumps(about)
        file.attrs["package_version"] = '"0.59.0"'


def test_files_of_pypde(tmp_path):
    x = 6 * (np.arange(16) + 0.5) / 16
    u = np.sin(np.pi / 3 * (x - np.linspace(0, 1, 7)[:, None]))
    ring = {"bounds": [[0.0, 6.0]], "shape": [16], "periodic": [True], "class": "CartesianGrid"}
    _pypde(tmp_path / "a.h5", u, [("ScalarField", None)], ring)
    with open_trajectories(tmp_path / "a.h5") as data:
        assert (data.fields, data.grid.lengths, data.dt) == (("u",), (6.0,), pytest.approx(0.1))
        assert data.grid.origin == (0.1875,)  # points are in the middle of cells
        assert data.domain is not None
        assert all(data.domain.periodic)
    two = [("ScalarField", "a"), ("VectorField", "v")]
    _pypde(tmp_path / "b.h5", np.stack([u, 2 * u], 1), two, ring)
    with open_trajectories(tmp_path / "b.h5", fields=["w=v", "a"]) as data:
        assert data.fields == ("w", "a")
        np.testing.assert_allclose(data.window(0, 0, 7)[:, 0], 2 * u, rtol=1e-5, atol=1e-6)
    flat = np.cos(np.pi * x / 6) * np.exp(-np.linspace(0, 1, 7)[:, None])
    _pypde(tmp_path / "c.h5", flat, [("ScalarField", "u")], {**ring, "periodic": [False]})
    with pytest.raises(SplatopError, match=r'--boundary "x: dn\(u\) = 0"'):
        open_trajectories(tmp_path / "c.h5")
    with open_trajectories(tmp_path / "c.h5", boundary="x: dn(u) = 0") as data:
        assert data.domain is not None
        assert data.domain.lengths == (6.0,)
        assert "cells" in data.attributes["sampling"]
    _pypde(tmp_path / "d.h5", flat, [("ScalarField", "u")], {**ring, "class": "SphericalSymGrid"})
    with pytest.raises(SplatopError, match="Cartesian grid, got ScalarField on a SphericalSymGrid"):
        open_trajectories(tmp_path / "d.h5")


def test_parameters_as_records_beside_fields_are_no_fields(tmp_path):
    """As in BubbleML's files of Flash-X: meshes of space at all times, records of parameters."""
    records = np.array([(b"ins_invreynolds", 0.0042)], [("name", "S80"), ("value", "f8")])
    x, y = np.meshgrid(np.arange(8.0) / 8, np.arange(8.0) / 8)  # (Y, X)
    wave = np.stack([np.sin(2 * np.pi * (x + s)) * np.cos(2 * np.pi * y) for s in (0, 0.1, 0.2)])
    with h5py.File(tmp_path / "Twall-100.hdf5", "w") as file:
        file["temperature"], file["real-runtime-params"] = wave, records
        file["x"], file["y"] = (np.broadcast_to(one, (3, 8, 8)) for one in (x, y))
    with open_trajectories(tmp_path / "Twall-100.hdf5", dt=0.1) as data:
        assert data.fields == ("temperature",)
        np.testing.assert_allclose(data.window(0, 0, 1)[0, 0], wave[0].T, atol=1e-6)


@pytest.mark.parametrize(
    ("member", "answer"),
    [
        ("ns_train/data.pkl", r"PyTorch's: pickles are never loaded: numpy.savez\("),
        ("xl/workbook.xml", "a workbook: export a sheet as CSV"),
        ("u/.zarray", "a packed Zarr store: unpack it first"),
        ("readme.md", "an archive with readme.md in it: unpack it first"),
    ],
)
def test_archives_that_are_not_numpys_are_answered_with_what_to_do(tmp_path, member, answer):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(member, b"")
    with pytest.raises(SplatopError, match=answer):
        open_trajectories(tmp_path / "a.zip")


def test_a_struct_is_answered_with_how_to_save_what_it_holds(tmp_path):
    scipy.io.savemat(tmp_path / "a.mat", {"sol": {"u": np.zeros((4, 5))}})
    with pytest.raises(SplatopError, match=r"save\('flat.mat', '-struct', 'sol'\)"):
        open_trajectories(tmp_path / "a.mat")


def test_steps_that_contradict_the_coordinates_are_warned_of(tmp_path):
    """PDEArena's smoke: cells 1 apart, with x from linspace(0, 32, 32), and dt beside t."""
    path, count = tmp_path / "NavierStokes2D_train.h5", 16
    ring = np.arange(count) / count
    with h5py.File(path, "w") as file:
        group = file.create_group("train")
        group["u"] = np.tile(moving(ring, ring), (2, 1, 1, 1))
        group["t"] = np.tile(np.linspace(18, 102, T), (2, 1))
        for axis in "xy":
            group[axis] = np.tile(np.linspace(0, count, count), (2, 1))
            group[f"d{axis}"] = np.full(2, 1.0)
        group["dt"] = np.full(2, 6.0)
    said = r"t steps by 21 where dt says 6, x steps by 1\.06667 where dx says 1, y steps.*"
    with (
        pytest.warns(UserWarning, match=f"{said}--dt 6 --lengths 16,16"),
        open_trajectories(path, axes="btxy") as data,
    ):
        assert data.dt == pytest.approx(21)
    with warnings.catch_warnings():  # the words of the warning silence it
        warnings.simplefilter("error")
        with open_trajectories(path, axes="btxy", dt=6.0, lengths=(16.0, 16.0)) as data:
            assert (data.dt, data.grid.lengths) == (6.0, (16.0, 16.0))


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((9, 1, 24), "tcx"),
        ((9, 2, 24, 24), "tcxy"),
        ((5, 9, 1, 24), "btcx"),
        ((5, 9, 1, 24, 24), "btcxy"),
        ((9, 24, 24, 2), "txyc"),
        ((5, 9, 24, 24, 2), "btxyc"),
        ((9, 24, 24), "txy"),
        ((9, 24), "tx"),
    ],
)
def test_the_axes_that_are_proposed_can_be_given(tmp_path, shape, axes):
    """With channels where a side of few lies; the numbers of the message are options as well."""
    values = np.zeros(shape)
    for axis, letter in enumerate(axes):
        k = np.arange(shape[axis])
        wave = np.sin(2 * np.pi * k / shape[axis]) if letter in "xyz" else 0.1 * k
        values = values + wave.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    np.save(tmp_path / "a.npy", values)
    with pytest.raises(SplatopError) as refused:
        open_trajectories(tmp_path / "a.npy")
    words = str(refused.value)
    assert words.split("--axes ")[1].split()[0].strip(",") == axes
    assert "--lengths 1 and --dt 0.1" in words
    fields = [f"u{k}" for k in range(shape[axes.index("c")])] if "c" in axes else None
    with open_trajectories(
        tmp_path / "a.npy", axes=axes, lengths=1.0, dt=0.1, fields=fields
    ) as data:
        assert data.shape[3:] == tuple(n for n, k in zip(shape, axes, strict=True) if k in "xyz")


def test_a_folder_of_cases_is_answered_with_what_to_do(tmp_path):
    """CFDBench: a folder for each case with u.npy and v.npy, of (time, height, width)."""
    case = tmp_path / "cavity" / "bc" / "case0000"
    case.mkdir(parents=True)
    u = moving(RING, RING)
    for name, values in (("u", u), ("v", 2 * u)):
        np.save(case / f"{name}.npy", values)
    (case / "case.json").write_text("{}")
    with pytest.raises(SplatopError, match=r"folders \(bc\): name a file in one of them"):
        open_trajectories(tmp_path / "cavity")
    joined = r"numpy\.savez\('all\.npz', u=numpy\.load\('u\.npy'\), v=numpy\.load\('v\.npy'\)\)"
    with pytest.raises(SplatopError, match=joined):
        open_trajectories(case)
    np.savez(tmp_path / "all.npz", u=np.load(case / "u.npy"), v=np.load(case / "v.npy"))
    with open_trajectories(tmp_path / "all.npz", axes="tyx", lengths=1.0, dt=0.1) as data:
        assert data.fields == ("u", "v")
        # Height is y: what varies along the last axis of the array varies along x.
        assert np.allclose(data.window(0, 0, T)[:, 0], np.swapaxes(u, 1, 2), atol=1e-6)


def test_frames_at_the_beginning_are_left_out(tmp_path):
    """A start from noise in each cell, as PDEBench's diffusion-reaction has it."""
    u = moving(RING, RING)
    path = tmp_path / "a.h5"
    fields = {(0, "u"): np.stack([u, 2 * u]), (0, "f"): np.stack([u + 1, u])}
    write_well(path, {"x": RING, "y": RING}, fields, flags=PERIODIC)
    with open_trajectories(path) as whole, open_trajectories(path, start=2) as data:
        assert data.frames == T - 2
        assert data.times == pytest.approx(whole.times[2:])
        assert np.array_equal(data.window(1, 0, T - 2), whole.window(1, 2, T - 2))
        assert data.attributes["left_out"] == f"the first 2 of {T} frames"
    with open_trajectories(path, start=1, inputs=["f"], fields=["w=u"]) as data:
        assert np.allclose(data.signals(0)["f"].values, u[1:] + 1, atol=1e-6)
        assert np.allclose(data.window(0, 0, T - 1)[:, 0], u[1:], atol=1e-6)
    for start in (-1, T - 1, T):
        with pytest.raises(SplatopError, match=f"first frame from 0 to {T - 2}.*got {start}"):
            open_trajectories(path, start=start)

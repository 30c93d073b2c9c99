"""Round trips: each format is written here as its documentation says, and read back."""

import hashlib
import json

import h5py
import jax
import numpy as np
import pytest
import xarray as xr

import splatop
from splatop.benchmarks import BENCHMARKS
from splatop.data import (
    ArrayTrajectories,
    generate,
    generate_to_file,
    in_memory,
    open_trajectories,
    save_trajectories,
)
from splatop.data.held import as_trajectories
from splatop.data.well_writer import Layout, writing
from splatop.errors import SplatopError
from splatop.grid import Grid

DT = 0.25
LENGTHS = (2.0, 3.0, 1.5)


def states(dims=2, channels=1, trajectories=3, frames=5):
    """Periodic fields that tell all axes apart: sizes, lengths, phases differ."""
    points = (12, 10, 8)[:dims]
    grid = Grid(points, LENGTHS[:dims])
    shape = (trajectories, frames, channels, *points)
    phase = sum(
        (axis + 1) * 2 * np.pi * x / length
        for axis, (x, length) in enumerate(zip(grid.coordinates(), grid.lengths, strict=True))
    )
    b, t, c = np.ogrid[:trajectories, :frames, :channels]
    offset = (0.3 * b + 0.7 * t + 1.1 * c).reshape(trajectories, frames, channels, *(1,) * dims)
    return np.broadcast_to(np.sin(phase + offset), shape).astype(np.float32), grid


def coordinates(grid):
    return {name: x.ravel() for name, x in zip("xyz", grid.coordinates(), strict=False)}


def assert_holds(trajectories, array, grid, fields):
    """The reader gives this array, from whole trajectories and from windows."""
    assert trajectories.shape == array.shape
    assert trajectories.fields == fields
    assert trajectories.grid.points == grid.points
    assert trajectories.grid.lengths == pytest.approx(grid.lengths, rel=1e-6)
    assert trajectories.dt == pytest.approx(DT, rel=1e-6)
    for index in range(len(array)):
        window = trajectories.window(index, 0, array.shape[1])
        assert window.dtype == np.float32
        np.testing.assert_array_equal(window, array[index])
    pairs = np.array([[2, 1], [0, 3], [2, 0]])
    expected = np.stack([array[b, t : t + 2] for b, t in pairs])
    np.testing.assert_array_equal(trajectories.windows(pairs, 2), expected)
    np.testing.assert_array_equal(in_memory(trajectories).window(1, 2, 3), array[1, 2:5])


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize(
    ("dims", "fields"),
    [
        (1, ("u",)),
        (2, ("u_x", "u_y")),
        (2, ("p", "u_x", "u_y", "v_y")),
        (2, ("u_y", "u_x")),
        (3, ("a", "w_x", "w_y", "w_z")),
    ],
)
def test_native_round_trip(tmp_path, dims, fields, compress):
    array, grid = states(dims, len(fields))
    coefficients = {"nu": 1e-4, "v": np.array([1.0, 2.0, 3.0])}
    attributes = {"benchmark": "mine", "seed": 7}
    data = ArrayTrajectories(
        array, grid, dt=DT, fields=fields, coefficients=coefficients, attributes=attributes
    )
    save_trajectories(tmp_path / "a.h5", data, compress=compress)
    with open_trajectories(tmp_path / "a.h5") as read:
        assert_holds(read, array, grid, fields)
        assert (read.dt, read.grid) == (DT, grid)
        assert list(read.coefficients) == ["nu", "v"]
        np.testing.assert_array_equal(read.coefficients["nu"], [1e-4] * 3)
        np.testing.assert_array_equal(read.coefficients["v"], [1.0, 2.0, 3.0])
        assert read.attributes["seed"] == 7
        assert read.attributes["boundary_conditions"] == "periodic"
        assert read.trajectory_coefficients(1) == {"nu": 1e-4, "v": 2.0}


def test_native_files_are_laid_out_as_the_well(tmp_path):
    array, grid = states(2, 3)
    data = ArrayTrajectories(
        array, grid, dt=DT, fields=("p", "u_x", "u_y"), coefficients={"nu": 0.5}
    )
    save_trajectories(tmp_path / "a.h5", data)
    with h5py.File(tmp_path / "a.h5") as file:
        assert file.attrs["grid_type"] == "cartesian"
        assert file.attrs["n_spatial_dims"] == 2
        assert file.attrs["n_trajectories"] == 3
        assert list(file.attrs["simulation_parameters"]) == ["nu"]
        assert file.attrs["nu"] == 0.5
        assert list(file["dimensions"].attrs["spatial_dims"]) == ["x", "y"]
        np.testing.assert_allclose(file["dimensions/time"], DT * np.arange(5))
        np.testing.assert_allclose(file["dimensions/y"], 0.3 * np.arange(10), rtol=1e-6)
        assert not file["dimensions/x"].attrs["sample_varying"]
        boundary = file["boundary_conditions/x_periodic"]
        assert boundary.attrs["bc_type"] == "PERIODIC"
        assert list(boundary.attrs["associated_dims"]) == ["x"]
        assert list(np.flatnonzero(boundary["mask"])) == [0, 11]
        assert list(file["scalars"].attrs["field_names"]) == ["nu"]
        assert list(file["t0_fields"].attrs["field_names"]) == ["p"]
        assert list(file["t1_fields"].attrs["field_names"]) == ["u"]
        assert list(file["t2_fields"].attrs["field_names"]) == []
        np.testing.assert_array_equal(file["t0_fields/p"], array[:, :, 0])
        vector = file["t1_fields/u"]
        np.testing.assert_array_equal(vector, np.moveaxis(array[:, :, 1:], 2, -1))
        assert list(vector.attrs["dim_varying"]) == [True, True]
        assert vector.attrs["sample_varying"]
        assert vector.attrs["time_varying"]
        assert vector.dtype == np.float32


def write_well(path, array, grid, *, bc_type="PERIODIC", times=None, rename=None):
    """A file of The Well as others write it: scalar p, vector v, tensor s, and constant fields."""
    names = list("xy")
    with h5py.File(path, "w") as file:
        file.attrs["simulation_parameters"] = ["Re"]
        file.attrs["Re"] = 100.0
        file.attrs["grid_type"] = "cartesian"
        file.attrs["n_spatial_dims"] = 2
        file.attrs["n_trajectories"] = len(array)
        dims = file.create_group("dimensions")
        dims.attrs["spatial_dims"] = names
        if times is None:
            times = DT * np.arange(array.shape[1]) + 3.0
        dims.create_dataset("time", data=np.float32(times)).attrs["sample_varying"] = False
        for name, x in coordinates(grid).items():
            dims.create_dataset(name, data=np.float32(x))
        for name in names:
            boundary = file.create_group(f"boundary_conditions/{name}_boundary")
            boundary.attrs["associated_dims"] = [name]
            boundary.attrs["bc_type"] = bc_type
        varying = {"dim_varying": [True, True], "sample_varying": True, "time_varying": True}

        def add(where, values, **attributes):
            dataset = file.create_dataset(where, data=values)
            for key, value in {**varying, **attributes}.items():
                dataset.attrs[key] = value

        add("t0_fields/p", array[:, :, 0])
        add("t0_fields/mask", array[:, 0, 0], time_varying=False)
        add("t1_fields/v", np.moveaxis(array[:, :, 1:3], 2, -1))
        tensor = np.moveaxis(array[:, :, 3:7], 2, -1)
        add("t2_fields/s", tensor.reshape(*tensor.shape[:-1], 2, 2))
        scalars = file.create_group("scalars")
        scalars.create_dataset("Pr", data=np.float32([1, 2, 3])).attrs["time_varying"] = False
        scalars.create_dataset("inflow", data=np.zeros(5)).attrs["time_varying"] = True


def test_the_well_of_others(tmp_path):
    array, grid = states(2, 7)
    write_well(tmp_path / "w.hdf5", array, grid)
    fields = ("p", "v_x", "v_y", "s_xx", "s_xy", "s_yx", "s_yy")
    with open_trajectories(tmp_path / "w.hdf5") as read:
        assert_holds(read, array, grid, fields)
        np.testing.assert_array_equal(read.coefficients["Re"], [100.0] * 3)
        np.testing.assert_array_equal(read.coefficients["Pr"], [1, 2, 3])
        assert "inflow" not in read.coefficients
    with open_trajectories(tmp_path / "w.hdf5", fields=["v_y", "p"]) as read:
        assert_holds(read, array[:, :, [2, 0]], grid, ("v_y", "p"))
    with pytest.raises(SplatopError, match="unknown field 'q'"):
        open_trajectories(tmp_path / "w.hdf5", fields=["q"])


def test_pdebench_1d(tmp_path):
    array, grid = states(1)
    with h5py.File(tmp_path / "1D_Advection.hdf5", "w") as file:
        file["tensor"] = array[:, :, 0]
        # PDEBench's points are cell centres, and there is one time more than frames.
        file["x-coordinate"] = coordinates(grid)["x"] + grid.spacing[0] / 2
        file["t-coordinate"] = DT * np.arange(6)
        file.attrs["beta"] = 0.4
    with open_trajectories(tmp_path / "1D_Advection.hdf5") as read:
        assert_holds(read, array, grid, ("u",))
        np.testing.assert_array_equal(read.coefficients["beta"], [0.4] * 3)
        assert "not stated" in read.attributes["boundary_conditions"]


@pytest.mark.parametrize("dims", [2, 3])
def test_pdebench_compressible_flow(tmp_path, dims):
    names = (*("Vx", "Vy", "Vz")[:dims], "density", "pressure")
    array, grid = states(dims, len(names))
    with h5py.File(tmp_path / "cfd.hdf5", "w") as file:
        for channel, name in enumerate(names):
            file[name] = array[:, :, channel]
        for name, x in coordinates(grid).items():
            file[f"{name}-coordinate"] = x
        file["t-coordinate"] = DT * np.arange(6)
        file.attrs["eta"] = 0.01
    with open_trajectories(tmp_path / "cfd.hdf5") as read:
        assert_holds(read, array, grid, names)
        assert read.coefficients["eta"][0] == 0.01
    with open_trajectories(tmp_path / "cfd.hdf5", fields=["density"]) as read:
        assert_holds(read, array[:, :, dims : dims + 1], grid, ("density",))


def test_pdebench_grouped(tmp_path):
    array, grid = states(2, 2)
    with h5py.File(tmp_path / "grouped.h5", "w") as file:
        for index, one in enumerate(array):
            group = file.create_group(f"{index:04d}")
            group["data"] = np.moveaxis(one, 1, -1)
            group["grid/t"] = np.float32(DT * np.arange(5))
            for name, x in coordinates(grid).items():
                group[f"grid/{name}"] = np.float32(x)
            group.attrs["config"] = "sim: {}"
    with open_trajectories(tmp_path / "grouped.h5", fields=["a", "b"]) as read:
        assert_holds(read, array, grid, ("a", "b"))
    with pytest.raises(SplatopError, match=r"names for its 2 channel\(s\)"):
        open_trajectories(tmp_path / "grouped.h5")
    for name in ("-1", "nan", "a-b"):
        with pytest.raises(SplatopError, match=f"names that an equation can hold.*got '{name}'"):
            open_trajectories(tmp_path / "grouped.h5", fields=["a", name])


def test_other_hdf5_with_everything_named(tmp_path):
    array, grid = states(2)
    with h5py.File(tmp_path / "mine.h5", "w") as file:
        file["velocity"] = np.transpose(array[:, :, 0], (2, 3, 0, 1))
    told = {"fields": ["velocity"], "axes": "xybt", "lengths": grid.lengths, "dt": DT}
    with open_trajectories(tmp_path / "mine.h5", **told) as read:
        assert_holds(read, array, grid, ("velocity",))
    with pytest.raises(SplatopError, match=r"expected a time axis, got velocity.*--axes"):
        open_trajectories(tmp_path / "mine.h5")


@pytest.mark.parametrize("name", ["burgers.npy", "burgers_train.npy", "burgers_test.npy"])
def test_apebench(tmp_path, name):
    array, _ = states(2, 2)
    array = np.ascontiguousarray(array[..., :10, :])  # APEBench's grids are square
    grid = Grid((10, 10), (2.0, 2.0))
    np.save(tmp_path / name, array)
    info = {"num_spatial_dims": 2, "num_points": 10, "num_channels": 2}
    info |= {"domain_extent": 2.0, "dt": DT}
    (tmp_path / "burgers.json").write_text(json.dumps({"name": "burgers", "info": info}))
    with open_trajectories(tmp_path / name, fields=["u_x", "u_y"]) as read:
        assert_holds(read, array, grid, ("u_x", "u_y"))
        assert read.attributes["boundary_conditions"] == "periodic"
        assert read.attributes["format"] == "apebench"


def test_apebench_without_physical_units_asks(tmp_path):
    array, _ = states(1)
    np.save(tmp_path / "a.npy", array)
    info = {"num_spatial_dims": 1, "num_points": 12, "num_channels": 1}
    (tmp_path / "a.json").write_text(json.dumps({"info": info}))
    with pytest.raises(SplatopError, match="give lengths"):
        open_trajectories(tmp_path / "a.npy")
    with pytest.raises(SplatopError, match="give dt"):
        open_trajectories(tmp_path / "a.npy", lengths=2.0)
    (tmp_path / "a.json").write_text(json.dumps({"info": {**info, "num_points": 13}}))
    with pytest.raises(SplatopError, match=r"of its \.json"):
        open_trajectories(tmp_path / "a.npy", lengths=2.0, dt=DT)


@pytest.mark.parametrize("kind", ["netcdf4", "netcdf3", "zarr"])
def test_xarray(tmp_path, kind):
    array, grid = states(2, 2)
    dims = ("trajectory", "time", "x", "y")
    dataset = xr.Dataset(
        {
            "h": (dims, array[:, :, 0]),
            "q": (("y", "time", "x", "trajectory"), np.transpose(array[:, :, 1], (3, 1, 2, 0))),
            "nu": ((), 0.1),
            "Re": (("trajectory",), [1.0, 2.0, 3.0]),
        },
        coords={"time": DT * np.arange(5), **coordinates(grid)},
    )
    path = tmp_path / ("data.zarr" if kind == "zarr" else "data.nc")
    if kind == "zarr":
        dataset.to_zarr(path, consolidated=False)
    else:
        engine, form = {"netcdf4": ("h5netcdf", "NETCDF4"), "netcdf3": ("scipy", "NETCDF3_64BIT")}[
            kind
        ]
        dataset.to_netcdf(path, engine=engine, format=form)
    with open_trajectories(path, fields=["h", "q"]) as read:
        assert_holds(read, array, grid, ("h", "q"))
        np.testing.assert_array_equal(read.coefficients["nu"], [0.1] * 3)
        np.testing.assert_array_equal(read.coefficients["Re"], [1.0, 2.0, 3.0])
    with open_trajectories(path) as read:
        assert set(read.fields) == {"h", "q"}
    with open_trajectories(path, fields=["q"]) as read:
        assert_holds(read, array[:, :, 1:], grid, ("q",))


def test_xarray_with_channels_and_foreign_names(tmp_path):
    array, grid = states(2, 2)
    flipped = np.moveaxis(array, 2, -1)
    dims = ("run", "time", "lon", "lat", "channel")
    coords = {"time": DT * np.arange(5), "channel": ["a", "b"]}
    xr.Dataset({"w": (dims, flipped)}, coords=coords).to_netcdf(tmp_path / "d.nc")
    with pytest.raises(SplatopError, match="rename them, or give their order"):
        open_trajectories(tmp_path / "d.nc")
    told = {"axes": "btxyc", "lengths": grid.lengths}
    with open_trajectories(tmp_path / "d.nc", **told) as read:
        assert_holds(read, array, grid, ("a", "b"))
    with pytest.raises(SplatopError, match="give the lengths"):
        open_trajectories(tmp_path / "d.nc", axes="btxyc")


@pytest.mark.parametrize("axes", ["btcxy", "xytbc", "cybtx"])
def test_npy_and_npz_with_axes_named(tmp_path, axes):
    array, grid = states(2, 2)
    stored = np.transpose(array, ["btcxy".index(letter) for letter in axes]).astype(float)
    np.save(tmp_path / "a.npy", stored)
    np.savez(tmp_path / "a.npz", u=stored, other=np.zeros(3))
    told = {"axes": axes, "fields": ["a", "b"], "lengths": grid.lengths, "dt": DT}
    for name in ("a.npy", "a.npz"):
        with open_trajectories(tmp_path / name, **told) as read:
            assert_holds(read, array, grid, ("a", "b"))


def test_npy_stays_on_disk(tmp_path):
    array, grid = states(1)
    np.save(tmp_path / "a.npy", array)
    read = open_trajectories(tmp_path / "a.npy", axes="btcx", lengths=grid.lengths, dt=DT)
    assert isinstance(read._arrays[0], np.memmap)
    assert isinstance(in_memory(read), ArrayTrajectories)
    assert in_memory(read, limit_bytes=read.nbytes - 1) is read


def test_npz_with_one_array_per_field(tmp_path):
    array, grid = states(1, 2)
    np.savez(tmp_path / "a.npz", h=array[:, :, 0], q=array[:, :, 1])
    told = {"axes": "btx", "lengths": grid.lengths, "dt": DT}
    with open_trajectories(tmp_path / "a.npz", **told) as read:
        assert_holds(read, array, grid, ("h", "q"))
    with open_trajectories(tmp_path / "a.npz", fields=["q"], **told) as read:
        assert_holds(read, array[:, :, 1:], grid, ("q",))


def test_a_single_trajectory_without_batch_axis(tmp_path):
    array, _ = states(1, trajectories=1)
    np.save(tmp_path / "a.npy", array[0, :, 0])
    read = open_trajectories(tmp_path / "a.npy", axes="tx", lengths=2.0, dt=DT)
    assert read.shape == array.shape
    np.testing.assert_array_equal(read.window(0, 0, 5), array[0])


def test_what_is_given_replaces_what_the_file_says(tmp_path):
    array, grid = states(2)
    save_trajectories(tmp_path / "a.h5", ArrayTrajectories(array, grid, dt=DT, fields=("u",)))
    read = open_trajectories(tmp_path / "a.h5", dt=0.5, lengths=[4.0, 6.0])
    assert read.dt == 0.5
    assert read.grid.lengths == (4.0, 6.0)


def test_generation_is_reproducible_bit_for_bit(tmp_path):
    benchmark = BENCHMARKS["unknown_advection_diffusion2d"].with_points(16)
    hashes = []
    for name in ("a.h5", "b.h5"):
        generate_to_file(benchmark, tmp_path / name, trajectories=3, steps=4, seed=5)
        hashes.append(hashlib.sha256((tmp_path / name).read_bytes()).hexdigest())
    assert hashes[0] == hashes[1]
    whole = generate(benchmark, trajectories=3, steps=4, seed=5)
    with open_trajectories(tmp_path / "a.h5") as read:
        np.testing.assert_array_equal(in_memory(read).array, whole.array)
        assert read.coefficients["D"].tolist() == whole.coefficients["D"].tolist()
        assert len(set(read.coefficients["D"])) == 3
    # A trajectory depends on seed, split and index, not on how many there are.
    fewer = generate(benchmark, trajectories=2, steps=4, seed=5)
    np.testing.assert_array_equal(fewer.array, whole.array[:2])
    first = {whole.array[0, 0].tobytes()}
    for other in ({"seed": 6}, {"seed": 5, "split": "test"}):
        first.add(generate(benchmark, trajectories=1, steps=1, **other).array[0, 0].tobytes())
    assert len(first) == 3


def test_generation_does_not_depend_on_the_precision_in_force():
    benchmark = BENCHMARKS["advection_diffusion2d"].with_points(16)
    plain = generate(benchmark, trajectories=1, steps=2)
    with jax.enable_x64(True):
        double = generate(benchmark, trajectories=1, steps=2)
    np.testing.assert_array_equal(plain.array, double.array)


def test_an_incomplete_write_leaves_nothing(tmp_path):
    array, grid = states(2)
    layout = Layout(array.shape, grid, DT, ("u",), {}, {})
    with (
        pytest.raises(SplatopError, match="expected 15 frames, got 5"),
        writing(tmp_path / "a.h5", layout) as write,
    ):
        write(0, 0, array[0])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("shape", "fields", "read_as"),
    [
        ((1, 6, 1, 8), ("u",), (1, 6, 1, 8)),  # not one frame of six fields in 2D
        ((6, 1, 8, 4), ("u",), (1, 6, 1, 8, 4)),  # not six trajectories of one frame
        ((3, 6, 2, 8, 4), ("u", "v"), (3, 6, 2, 8, 4)),
        ((6, 2, 8, 4, 4), ("u", "v"), (1, 6, 2, 8, 4, 4)),
    ],
)
def test_one_length_for_all_axes_is_enough_where_fields_tell_the_shape(shape, fields, read_as):
    frames = np.random.default_rng(0).normal(size=shape)
    told = as_trajectories(frames, dt=0.1, lengths=1.0, fields=fields, periodic=True)
    assert told.shape == read_as
    assert told.grid.lengths == (1.0,) * (len(read_as) - 3)


def test_shapes_that_can_be_read_in_two_ways_are_asked_for():
    with pytest.raises(SplatopError, match=r"give lengths=\(1.0,\) or \(1.0, 1.0\)"):
        as_trajectories(np.ones((4, 2, 2, 8)), dt=0.1, lengths=1.0, fields=("u", "v"))
    with pytest.raises(SplatopError, match=r"got shape \(60, 8\): .* give data\[:, None\]"):
        as_trajectories(np.ones((60, 8)), dt=0.1, lengths=1.0)


@pytest.mark.parametrize(("first", "dt"), [(1.6e9, 60.0), (1.6e9, 3600.0), (5e4, 0.01)])
def test_times_far_from_zero_are_written_as_they_are(tmp_path, first, dt):
    """Seconds since 1970 are 128 apart in single precision: 3600 came back as 3602.3."""
    grid, times = splatop.Grid((16,), (1.0,), (5e6,)), first + dt * np.arange(6)
    wave = np.sin(2 * np.pi * (np.arange(16) / 16 - 0.1 * np.arange(6)[:, None]))
    data = splatop.ArrayTrajectories(wave[None, :, None], grid, dt=dt, fields=("u",))
    data.times = times
    splatop.save_trajectories(tmp_path / "a.h5", data)
    with splatop.open_trajectories(tmp_path / "a.h5") as read:
        assert read.dt == pytest.approx(dt, rel=1e-9)
        assert read.times == pytest.approx(times, rel=1e-15)
        assert read.grid == grid
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["dimensions/x"].dtype == np.float64
    data.times, data.grid = None, splatop.Grid((16,), (1.0,))
    splatop.save_trajectories(tmp_path / "b.h5", data)
    with h5py.File(tmp_path / "b.h5") as file:  # what The Well's layout has
        assert file["dimensions/x"].dtype == file["dimensions/time"].dtype == np.float32


def test_places_that_numbers_do_not_tell_apart_are_not_written(tmp_path):
    grid = splatop.Grid((16,), (1.0,), (1e30,))
    data = splatop.ArrayTrajectories(np.zeros((1, 3, 1, 16)), grid, dt=0.1, fields=("u",))
    with pytest.raises(SplatopError, match=r"values of x that numbers tell apart.*begin nearer"):
        splatop.save_trajectories(tmp_path / "a.h5", data)
    assert not list(tmp_path.iterdir())

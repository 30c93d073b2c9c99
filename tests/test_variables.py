"""Files of named variables without axes, `.npz` and plain HDF5, as published; held ends."""

import h5py
import numpy as np
import pytest
import xarray as xr

from splatop.data import open_trajectories
from splatop.errors import SplatopError

X, T = np.linspace(-1, 1, 33), np.linspace(0, 1, 21)


def _heat(x, t, wave=3.0):
    """`(T, X)`: decays at rates of its own, with slopes at the ends that do not fit together."""
    modes = [(k, np.cos(wave * k)) for k in range(1, 6)]
    return sum(
        a * np.exp(-0.1 * (k * np.pi) ** 2 * t[:, None]) * np.sin(k * np.pi * (x + 1) / 2)
        for k, a in modes
    )


def _savez(path, **arrays):
    np.savez(path, **arrays)
    return path


def _save_hdf5(path, **arrays):
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array
    return path


@pytest.mark.parametrize("save", [_savez, _save_hdf5])
@pytest.mark.parametrize("transposed", [False, True])
def test_axes_are_told_by_the_lengths_of_coordinates(tmp_path, save, transposed):
    u = _heat(X, T)
    name = "a.npz" if save is _savez else "a.h5"
    path = save(tmp_path / name, t=T[:, None], x=X[:, None], usol=u.T if transposed else u)
    with open_trajectories(path, boundary="x: usol = 0") as data:
        assert (data.frames, data.grid.points, data.grid.lengths) == (21, (33,), (2.0,))
        assert data.grid.origin == (-1.0,)
        assert data.dt == pytest.approx(0.05)
        np.testing.assert_allclose(data.window(0, 0, 21)[:, 0], u, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("x", "t"), [("x_points", "t_points"), ("x-coordinate", "T_grid")])
def test_names_of_coordinates(tmp_path, x, t):
    path = _savez(tmp_path / "a.npz", **{x: X, t: T, "data_set": _heat(X, T).T})
    with open_trajectories(path, boundary="x: data_set = 0") as data:
        assert (data.frames, data.grid.points, data.grid.lengths) == (21, (33,), (2.0,))


def test_equal_lengths_are_asked_for_unless_meshes_tell(tmp_path):
    t = np.linspace(0, 1, 33)
    u = _heat(X, t)
    unclear = _savez(tmp_path / "lines.npz", t=t, x=X, u=u)
    with pytest.raises(SplatopError, match=r"--axes tx or --axes xt"):
        open_trajectories(unclear, boundary="x: u = 0")
    meshes = np.meshgrid(X, t, indexing="ij")
    told = _savez(tmp_path / "meshes.npz", x=meshes[0], t=meshes[1], u=u.T)
    with open_trajectories(told, boundary="x: u = 0") as data:
        np.testing.assert_allclose(data.window(0, 0, 33)[:, 0], u, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("level", [0.0, -1.0])
def test_ends_that_keep_their_value_are_walls(tmp_path, level):
    """Symmetric about the seam, sharp inside: neither a jump nor a kink gives it away."""
    front = np.tanh((0.5 - np.abs(X)) / 0.05)
    u = level + (1 - X**2) * (1 + front * np.exp(-T[:, None]))
    path = _savez(tmp_path / "held.npz", t=T, x=X, u=u)
    with pytest.raises(SplatopError, match=rf'--boundary "x: u = {level:g}"'):
        open_trajectories(path)


def test_a_wave_that_passes_through_the_seam_is_periodic(tmp_path):
    x = np.arange(32) / 16 - 1
    u = np.sin(np.pi * (x - 0.3 * T[:, None])) + np.cos(3 * np.pi * (x + T[:, None]))
    with open_trajectories(_savez(tmp_path / "wave.npz", t=T, x=x, u=u)) as data:
        assert all(data.domain.periodic)
        assert data.grid.lengths == (2.0,)


@pytest.mark.parametrize("names", [("x", "t"), ("heat_x", "heat_t"), ("heat_1_x", "heat_1_t")])
def test_coordinates_in_files_beside_an_array(tmp_path, names):
    u = _heat(X, T)
    np.save(tmp_path / "heat_1.npy", u.T)
    np.save(tmp_path / f"{names[0]}.npy", X)
    np.save(tmp_path / f"{names[1]}.npy", T + 3)
    with open_trajectories(tmp_path / "heat_1.npy", boundary="x: u = 0") as data:
        assert (data.fields, data.grid.origin, data.grid.lengths) == (("u",), (-1.0,), (2.0,))
        assert (data.dt, float(data.times[0])) == pytest.approx((0.05, 3.0))
        np.testing.assert_allclose(data.window(0, 0, 21)[:, 0], u, rtol=1e-6, atol=1e-7)


def test_an_array_alone_is_asked_for_its_axes(tmp_path):
    np.save(tmp_path / "u.npy", _heat(X, T))
    np.save(tmp_path / "x.npy", np.arange(5.0))  # of something else
    with pytest.raises(SplatopError, match=r"--axes tx or --axes xt, with --lengths 1 and --dt"):
        open_trajectories(tmp_path / "u.npy")


def _odd(t):
    """`(T, X)`: odd about both ends, so a period with its end twice as well as two walls."""
    return np.exp(-t[:, None]) * np.sin(np.pi * X) + np.exp(-4 * t[:, None]) * np.sin(2 * np.pi * X)


def test_walls_and_a_period_with_its_end_twice_are_asked_about(tmp_path):
    path = _savez(tmp_path / "a.npz", t=T, x=X, u=_odd(T))
    with pytest.raises(SplatopError, match=r'--drop-end.*--boundary "x: u = 0"'):
        open_trajectories(path)
    with open_trajectories(path, drop_end=True) as data:
        assert (data.grid.points, data.grid.lengths) == ((32,), (2.0,))
    with open_trajectories(path, boundary="x: u = 0") as data:
        assert (data.grid.points, data.grid.lengths) == ((33,), (2.0,))


def test_noise_that_hides_the_ends_is_asked_about_where_both_are_points(tmp_path):
    # Steps near the ends are about 0.1 of the field with 33 points: noise of 20 % hides them.
    noise = 0.2 * np.random.default_rng(0).standard_normal((21, 33))
    path = _savez(tmp_path / "a.npz", t=T, x=X, u=_odd(T) + noise)
    with pytest.raises(SplatopError, match="along x noise hides whether it closes"):
        open_trajectories(path)
    around = _savez(tmp_path / "b.npz", t=T, x=X[:-1], u=(_odd(T) + noise)[:, :-1])
    with open_trajectories(around) as data:
        assert all(data.domain.periodic)


def _periodic(trajectories=3, frames=9, points=16):
    x = np.arange(points) / points
    phase = np.linspace(0, 1, frames)[:, None]
    return np.stack([np.sin(2 * np.pi * (x - phase + 0.1 * b)) for b in range(trajectories)])


def test_coordinates_and_steps_in_attributes_of_hdf5(tmp_path):
    """As in the files of message-passing PDE solvers: `train/pde_9-16` with `x`, `dt`, `tmax`."""
    u, x = _periodic(), 2 + 0.25 * np.arange(16)
    path = tmp_path / "CE_train_E2.h5"
    with h5py.File(path, "w") as file:
        stored = file.create_dataset("train/pde_9-16", data=u)
        stored.attrs.update({"x": x, "dt": 0.125, "tmin": 0.0, "tmax": 1.0, "nt": 9})
        file["train/beta"] = np.array([0.1, 0.2, 0.3])
    with pytest.raises(SplatopError, match=r"as in --axes btx$"):
        open_trajectories(path)
    for fields in (None, ["u=train/pde_9-16"], ["u=pde_9-16"]):
        with open_trajectories(path, axes="btx", fields=fields) as data:
            assert (data.trajectories, data.frames, data.dt) == (3, 9, 0.125)
            assert (data.grid.lengths, data.grid.origin) == ((4.0,), (2.0,))
            assert set(data.coefficients) == {"beta"}


@pytest.mark.parametrize("save", [_savez, _save_hdf5])
def test_each_trajectory_with_coordinates_of_its_own(tmp_path, save):
    """As in LPSDA's and PDEArena's 1D files: `t (B, T)`, `x (B, X)`, `dt (B,)`, `dx (B,)`."""
    u, rows = _periodic(), np.ones((3, 1))
    t, x = 0.1 * np.arange(9), 0.25 * np.arange(16)
    name = "a.npz" if save is _savez else "a.h5"
    steps = {"dt": np.full(3, 0.1), "dx": np.full(3, 0.25)}
    path = save(tmp_path / name, u=u, t=rows * t, x=rows * x, **steps)
    with open_trajectories(path) as data:  # rows tell the axis of trajectories
        assert (data.trajectories, data.frames, data.grid.lengths) == (3, 9, (4.0,))
        assert data.dt == pytest.approx(0.1)
        assert not data.coefficients  # dx is no coefficient
    stretched = np.array([1, 1.1, 0.9])[:, None]
    path = save(tmp_path / f"own_{name}", u=u, t=rows * t, x=stretched * x)
    with pytest.raises(SplatopError, match=r"x to be the same for all trajectories, got rows over"):
        open_trajectories(path)
    with pytest.raises(SplatopError, match=r"read one, as with --only 0"):
        open_trajectories(path)
    with open_trajectories(path, only=[2]) as data:  # with its own coordinates
        assert data.grid.lengths == pytest.approx((3.6,))
        np.testing.assert_allclose(data.window(0, 1, 2)[:, 0], u[2, 1:3], atol=1e-6)
    with pytest.raises(SplatopError, match="from 0 to 2, each once, got 3"):
        open_trajectories(path, only=[3])
    own = save(tmp_path / f"two_{name}", u=u, t=rows * t, x=stretched[[0, 1, 1]] * x, D=stretched)
    with pytest.raises(SplatopError, match=r"the most that share theirs are --only 1,2;"):
        open_trajectories(own, only=[0, 2])
    with open_trajectories(own, only=[2, 1]) as data:
        assert (data.trajectories, data.grid.lengths) == (2, pytest.approx((4.4,)))
        np.testing.assert_allclose(data.window(0, 0, 1)[0, 0], u[2, 0], atol=1e-6)
        assert data.coefficients["D"].tolist() == [0.9, 1.1]
    with open_trajectories(path, lengths=4.0) as data:  # what is given replaces what the file says
        assert (data.trajectories, data.grid.lengths) == (3, (4.0,))
    path = save(tmp_path / f"steps_{name}", u=u, **steps)
    with open_trajectories(path, axes="btx") as data:
        assert (data.dt, data.grid.lengths) == (pytest.approx(0.1), (4.0,))


def test_labels_of_channels_choose_them(tmp_path):
    """A field asked for by its label is that field, whatever the order asked for."""
    u = _periodic()[:, :, None] * np.array([1.0, 2.0])[:, None]
    dims = ("trajectory", "time", "channel", "x")
    coords = {"time": 0.1 * np.arange(9), "x": np.arange(16) / 16, "channel": ["a", "b"]}
    xr.Dataset({"state": (dims, u)}, coords).to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    for fields, factors in ((["b", "a"], (2, 1)), (["b"], (2,)), (["w=b", "a"], (2, 1))):
        with open_trajectories(tmp_path / "a.nc", fields=fields) as data:
            for channel, factor in enumerate(factors):
                found = data.window(0, 0, 9)[:, channel]
                np.testing.assert_allclose(found, factor * u[0, :, 0], atol=1e-6)
    with open_trajectories(tmp_path / "a.nc", fields=["u", "v"]) as data:  # names of the user's
        assert data.fields == ("u", "v")
    with pytest.raises(SplatopError, match="unknown field 'c'"):
        open_trajectories(tmp_path / "a.nc", fields=["a", "c"])


@pytest.mark.parametrize("indexing", ["xy", "ij"])
def test_meshes_of_space_tell_the_axes_of_a_square(tmp_path, indexing):
    """MATLAB's meshgrid or ndgrid, `(Y, X)` or `(X, Y)`, beside u over time as well."""
    x, t = np.arange(12) / 12, 0.1 * np.arange(5)
    X, Y, T = np.meshgrid(x, x, t, indexing=indexing)
    u = np.sin(2 * np.pi * (X - T)) + np.cos(2 * np.pi * Y)
    path = _savez(tmp_path / "a.npz", X=X[..., 0], Y=Y[..., 0], t=t, u=u)
    wanted = np.sin(2 * np.pi * x)[:, None] + np.cos(2 * np.pi * x)
    with open_trajectories(path) as data:
        np.testing.assert_allclose(data.window(0, 0, 1)[0, 0], wanted, atol=1e-6)


def test_a_temperature_beside_times_is_a_field_whatever_its_rows_are(tmp_path):
    path = _savez(tmp_path / "a.npz", T=np.outer(1 + T, X), x=X, t=T)
    with open_trajectories(path, boundary="x: free") as data:
        assert (data.fields, data.frames) == (("T",), 21)


def test_groups_that_repeat_each_other_are_read_one_at_a_time(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        for factor, name in ((1, "train"), (2, "valid")):
            file[f"{name}/u"] = factor * _periodic()[0]
            file[f"{name}/t"], file[f"{name}/x"] = 0.1 * np.arange(9), np.arange(16) / 16
    with pytest.raises(SplatopError, match=r"got train, valid .*--fields train/u\)"):
        open_trajectories(path)
    with open_trajectories(path, fields=["valid/u"]) as data:
        assert (data.fields, data.grid.lengths) == (("u",), (1.0,))
        np.testing.assert_allclose(data.window(0, 0, 9)[:, 0], 2 * _periodic()[0], atol=1e-6)


def test_a_field_of_one_moment_is_no_evolution(tmp_path):
    path = _savez(tmp_path / "a.npz", u=np.zeros((12, 9)), x=np.arange(12.0), y=np.arange(9.0))
    with pytest.raises(SplatopError, match="at least two frames, got one"):
        open_trajectories(path)


@pytest.mark.parametrize(
    ("dims", "axes"),
    [(("sim", "time", "variable", "x"), "btcx"), (("time", "yh", "xh"), "tyx")],
)
def test_dimensions_of_other_names_are_proposed_as_what_they_seem(tmp_path, dims, axes):
    array = np.zeros((2, 3, 4, 5)[: len(dims)])
    xr.Dataset({"u": (dims, array)}).to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    with pytest.raises(SplatopError, match=rf"give their order \(--axes {axes}\)"):
        open_trajectories(tmp_path / "a.nc")


def test_a_vector_beside_scalars_has_its_components_last(tmp_path):
    x, y, t = np.arange(8) / 8, np.arange(6) / 6, 0.1 * np.arange(5)
    p = np.stack([np.outer(np.sin(2 * np.pi * (x - s)), np.cos(2 * np.pi * y)) for s in t])
    path = _save_hdf5(tmp_path / "a.h5", velocity=np.stack([p, 2 * p], -1), p=p, x=x, y=y, t=t)
    with open_trajectories(path) as data:
        assert set(data.fields) == {"p", "velocity_x", "velocity_y"}
    with open_trajectories(path, fields=["velocity"]) as data:
        np.testing.assert_allclose(data.window(0, 0, 5)[:, 1], 2 * p, atol=1e-6)


def test_groups_and_arrays_without_a_name_of_netcdf(tmp_path):
    u = xr.DataArray(_periodic()[0], {"t": 0.1 * np.arange(9), "x": np.arange(16) / 16}, ("t", "x"))
    u.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    with open_trajectories(tmp_path / "a.nc") as data:
        assert data.fields == ("u",)
    u.to_dataset(name="w").to_netcdf(tmp_path / "b.nc", group="run1", engine="h5netcdf")
    with open_trajectories(tmp_path / "b.nc") as data:
        assert data.fields == ("w",)
    u.to_dataset(name="w").to_netcdf(tmp_path / "b.nc", mode="a", group="run2", engine="h5netcdf")
    with pytest.raises(SplatopError, match=r"groups run1, run2: take one.*group='run1'"):
        open_trajectories(tmp_path / "b.nc")


def test_nodes_at_both_ends_are_the_ends(tmp_path):
    """Chebyshev's extreme points, whose last one rounding may put a hair beyond 1."""
    x = np.cos(np.pi * np.arange(24) / 23)
    path = _savez(tmp_path / "a.npz", u=np.sin(np.pi * x - 2 * T[:, None]), x=x, t=T)
    with open_trajectories(path, resample=True, boundary="x: free") as data:
        assert data.domain is not None
        assert (data.domain.origin, data.domain.lengths) == ((-1.0,), (2.0,))

"""Each kind of bad input is refused with what was expected, what came and what to do."""

import os
import signal
import subprocess
import sys
import time
from unittest.mock import patch

import h5py
import numpy as np
import pytest
import typer
import xarray as xr

from splatop.benchmarks import BENCHMARKS
from splatop.cli.app import run
from splatop.data import (
    ArrayTrajectories,
    generate,
    generate_to_file,
    in_memory,
    open_trajectories,
    save_trajectories,
    summarize,
)
from splatop.data.axes import uneven_gaps
from splatop.data.times import frame_times, is_even
from splatop.errors import SplatopError
from test_data_files import DT, coordinates, states, write_well


@pytest.fixture
def well(tmp_path):
    array, grid = states(2, 7)
    path = tmp_path / "w.h5"
    write_well(path, array, grid)
    return path


def test_truncated_file(well):
    well.write_bytes(well.read_bytes()[:2000])
    with pytest.raises(SplatopError, match="it is truncated"):
        open_trajectories(well)


def test_not_a_data_file(tmp_path):
    (tmp_path / "a.h5").write_text("hello, world")
    with pytest.raises(SplatopError, match=r"is none of them; it begins with b'hello, w'"):
        open_trajectories(tmp_path / "a.h5")
    (tmp_path / "empty.h5").touch()
    with pytest.raises(SplatopError, match="is none of them"):
        open_trajectories(tmp_path / "empty.h5")
    with pytest.raises(SplatopError, match="does not exist"):
        open_trajectories(tmp_path / "missing.h5")
    with pytest.raises(SplatopError, match="got the folder"):
        open_trajectories(tmp_path)


def test_missing_time_axis(well):
    with h5py.File(well, "a") as file:
        del file["dimensions/time"]
    with pytest.raises(SplatopError, match=r"give the time step \(dt\)"):
        open_trajectories(well)
    assert open_trajectories(well, dt=DT).dt == DT


def test_unevenly_spaced_time(tmp_path):
    array, grid = states(2, 7)
    write_well(tmp_path / "w.h5", array, grid, times=[0.0, 0.1, 0.2, 0.4, 0.5])
    with open_trajectories(tmp_path / "w.h5") as data:
        assert not data.even
    write_well(tmp_path / "w.h5", array, grid, times=[0.0, 0.1, 0.3, 0.2, 0.5])
    with pytest.raises(SplatopError, match="time"):
        open_trajectories(tmp_path / "w.h5")


def test_time_axis_of_another_length(tmp_path):
    array, grid = states(2, 7)
    write_well(tmp_path / "w.h5", array, grid, times=[0.0, 0.1, 0.2, 0.3])
    with pytest.raises(SplatopError, match=r"expected 5 values in dimensions/time"):
        open_trajectories(tmp_path / "w.h5")


def test_coordinates_of_few_decimals_are_even():
    rng = np.random.default_rng(0)
    for step, decimals in ((0.0625, 3), (0.1234567, 2), (1 / 3, 2), (86.4, 0)):
        even = 5 * rng.normal() + step * np.arange(101)
        assert not uneven_gaps(np.round(even, decimals)).any()
        assert uneven_gaps(even + 0.04 * step * rng.uniform(-1, 1, 101)).any()
        assert uneven_gaps(np.round(np.delete(even, 40), decimals)).any()
    dt, times = frame_times(np.round(0.1234567 * np.arange(101), 2), source="a file")
    assert abs(dt / 0.1234567 - 1) < 1e-4  # the ends alone: 3e-4
    assert is_even(times)


def test_uneven_grid(well):
    with h5py.File(well, "a") as file:
        file["dimensions/y"][3:] += 0.05
    with pytest.raises(SplatopError, match="evenly spaced, increasing values along y"):
        open_trajectories(well)


def test_walls_are_refused_with_words_to_give_and_open_ends_are_free(tmp_path):
    array, grid = states(2, 7)
    write_well(tmp_path / "w.h5", array, grid, bc_type="WALL")
    said = "says 'wall' at x0 and 'wall' at x1.*give --boundary \"x: free"
    with pytest.raises(SplatopError, match=said):
        open_trajectories(tmp_path / "w.h5")
    write_well(tmp_path / "o.h5", array, grid, bc_type="open")
    with open_trajectories(tmp_path / "o.h5") as data:
        assert data.domain.periodic == (False, False)
        assert not data.domain.conditions


def test_flags_of_other_words_are_refused(tmp_path):
    array, grid = states(2, 7)
    write_well(tmp_path / "w.h5", array, grid, bc_type="ROBIN")
    with pytest.raises(SplatopError, match="got bc_type 'ROBIN' in boundary_conditions/x_bound"):
        open_trajectories(tmp_path / "w.h5")


def test_walls_in_netcdf_are_refused_by_their_flag(tmp_path):
    array, grid = states(1)
    coords = {"t": DT * np.arange(5), **coordinates(grid)}
    data = xr.Dataset({"u": (("b", "t", "x"), array[:, :, 0])}, coords=coords)
    data.attrs["boundary_conditions"] = "dirichlet"
    data.to_netcdf(tmp_path / "a.nc")
    with pytest.raises(SplatopError, match="boundary_conditions = 'dirichlet'"):
        open_trajectories(tmp_path / "a.nc")


def test_spherical_grids_are_refused(well):
    with h5py.File(well, "a") as file:
        file.attrs["grid_type"] = "spherical"
    with pytest.raises(SplatopError, match="got grid_type 'spherical'"):
        open_trajectories(well)


def test_data_that_does_not_close_is_refused_unless_told(tmp_path):
    ramp = np.broadcast_to(np.linspace(0, 1, 32) ** 2, (2, 4, 1, 32))
    np.save(tmp_path / "a.npy", ramp)
    told = {"axes": "btcx", "lengths": 1.0, "dt": 1.0}
    with pytest.raises(SplatopError, match="jump from its last point to its first"):
        open_trajectories(tmp_path / "a.npy", **told)
    assert open_trajectories(tmp_path / "a.npy", periodic=True, **told).frames == 4
    with pytest.raises(SplatopError, match=r'"x0: dn\(u\) = 0; x1: u = 1" --sampling ends'):
        open_trajectories(tmp_path / "a.npy", periodic=False, **told)


def test_a_repeated_end_point_is_refused(tmp_path):
    """Whether the last point is the first again changes the length of the box."""
    wave = np.sin(2 * np.pi * np.linspace(0, 1, 33))
    wave[-1] = wave[0]
    np.save(tmp_path / "a.npy", np.broadcast_to(wave, (2, 4, 1, 33)))
    told = {"axes": "btcx", "lengths": 1.0, "dt": 1.0}
    with pytest.raises(SplatopError, match="drop the last point"):
        open_trajectories(tmp_path / "a.npy", **told)


def test_mismatched_shapes_between_fields(tmp_path):
    array, grid = states(1)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["Vx"] = array[:, :, 0]
        file["density"] = array[:, :4, 0]
        file["x-coordinate"] = coordinates(grid)["x"]
        file["t-coordinate"] = DT * np.arange(5)
    with pytest.raises(SplatopError, match=r"Vx \(3, 5, 12\), density \(3, 4, 12\)"):
        open_trajectories(tmp_path / "a.h5")
    assert open_trajectories(tmp_path / "a.h5", fields=["Vx"]).frames == 5


def test_mismatched_coordinates(tmp_path):
    array, _ = states(1)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["tensor"] = array[:, :, 0]
        file["x-coordinate"] = np.arange(13.0)
        file["t-coordinate"] = DT * np.arange(5)
    with pytest.raises(SplatopError, match="expected 12 coordinates along x"):
        open_trajectories(tmp_path / "a.h5")


class Trap:
    """An object that would leave a trace if it were ever unpickled."""

    def __reduce__(self):
        return os.mkdir, ("unpickled",)


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_pickles_are_never_loaded(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    trap = np.array([Trap()], dtype=object)
    if name == "a.npy":
        np.save(tmp_path / name, trap, allow_pickle=True)
    else:
        np.savez(tmp_path / name, u=trap)
    with pytest.raises(SplatopError, match="never loaded"):
        open_trajectories(tmp_path / name, axes="btx", lengths=1.0, dt=1.0)
    assert not (tmp_path / "unpickled").exists()


def test_arrays_that_are_not_real_numbers(tmp_path):
    np.save(tmp_path / "a.npy", np.full((2, 3, 4), "a"))
    with pytest.raises(SplatopError, match="expected real numbers"):
        open_trajectories(tmp_path / "a.npy", axes="btx", lengths=1.0, dt=1.0)


def test_fields_that_are_not_real_numbers(well):
    with h5py.File(well, "a") as file:
        values = file["t0_fields/p"][()]
        del file["t0_fields/p"]
        file["t0_fields/p"] = values.astype("S3")
    with pytest.raises(SplatopError, match=r"expected real numbers in t0_fields/p, got \|S3"):
        open_trajectories(well)
    with h5py.File(well, "a") as file:
        del file["t0_fields/p"]
        file["t0_fields/p"] = values * (1 + 2j)
    with pytest.warns(UserWarning, match="p is complex"):
        opened = open_trajectories(well)
    with opened as data:
        index = data.fields.index("p_im")
        np.testing.assert_array_equal(data.window(1, 0, 2)[:, index], 2 * values[1, :2])


def test_empty_and_still_data(tmp_path):
    told = {"axes": "btx", "lengths": 1.0, "dt": 1.0}
    np.save(tmp_path / "a.npy", np.zeros((0, 4, 16)))
    with pytest.raises(SplatopError, match="not empty"):
        open_trajectories(tmp_path / "a.npy", **told)
    np.save(tmp_path / "a.npy", np.zeros((3, 1, 16)))
    with pytest.raises(SplatopError, match="at least two frames"):
        open_trajectories(tmp_path / "a.npy", **told)


def test_truncated_npy_and_npz(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((3, 4, 50)))
    np.savez(tmp_path / "a.npz", u=np.zeros((3, 4, 50)))
    for name in ("a.npy", "a.npz"):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[: len(content) // 2])
        with pytest.raises(SplatopError, match="cannot be read"):
            open_trajectories(tmp_path / name, axes="btx", lengths=1.0, dt=1.0)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        (None, r"the meaning of the 4 axes of its shape \(3, 5, 1, 12\)"),
        ("btx", "expected one letter for each of its 4 axes"),
        ("btcq", "expected axes from b"),
        ("bttx", "each once"),
        ("bcxy", "at least t and x"),
        ("btyz", "at least t and x"),
        ("btxz", "expected space as x, xy or xyz"),
    ],
)
def test_axes_are_asked_for(tmp_path, axes, message):
    np.save(tmp_path / "a.npy", states(1)[0])
    with pytest.raises(SplatopError, match=message):
        open_trajectories(tmp_path / "a.npy", axes=axes, lengths=1.0, dt=1.0)


def test_axes_of_files_that_state_them(well):
    with pytest.raises(SplatopError, match="leave out axes"):
        open_trajectories(well, axes="btxy")


def test_lengths_must_fit(well):
    with pytest.raises(SplatopError, match="expected 1 or 2 lengths"):
        open_trajectories(well, lengths=[1.0, 2.0, 3.0])


def test_nan_frames_are_reported_with_trajectory_and_step(tmp_path):
    array, grid = states(2, 2)
    array = array.copy()
    array[1, 3, 1, 2, 2] = np.nan
    array[2, 4, 0, 0, 0] = np.inf
    np.save(tmp_path / "a.npy", array)
    told = {"axes": "btcxy", "fields": ["a", "b"], "lengths": grid.lengths, "dt": DT}
    read = open_trajectories(tmp_path / "a.npy", **told)
    message = r"a\.npy: .* in field 'b' of trajectory 1 at step 3"
    with pytest.raises(SplatopError, match=message):
        read.window(1, 2, 3)
    with pytest.raises(SplatopError, match=message):
        in_memory(read)
    with pytest.raises(SplatopError, match=message):
        save_trajectories(tmp_path / "b.h5", read)
    assert not (tmp_path / "b.h5").exists()
    assert read.window(1, 0, 3).shape == (3, 2, 12, 10)
    assert summarize(read)["not_finite"] == {
        "frames": 2,
        "first": [
            {"trajectory": 1, "step": 3, "field": "b"},
            {"trajectory": 2, "step": 4, "field": "a"},
        ],
    }


def test_windows_outside_the_data():
    array, grid = states(1)
    data = ArrayTrajectories(array, grid, dt=DT, fields=("u",))
    with pytest.raises(SplatopError, match="got trajectory 3, start 0"):
        data.window(3, 0, 2)
    with pytest.raises(SplatopError, match="start at 3 or before"):
        data.window(0, 4, 2)
    with pytest.raises(SplatopError, match="1 to 5 frames"):
        data.window(0, 0, 6)
    with pytest.raises(SplatopError, match="integer array"):
        data.windows(np.zeros((2, 2)), 1)


def test_arrays_that_do_not_fit_their_description():
    array, grid = states(2)
    with pytest.raises(SplatopError, match=r"expected an array \(B, T, C, 12, 10\)"):
        ArrayTrajectories(array[..., :9], grid, dt=DT, fields=("u",))
    with pytest.raises(SplatopError, match="one name of its own"):
        ArrayTrajectories(array, grid, dt=DT, fields=("u", "v"))
    with pytest.raises(SplatopError, match="positive time step"):
        ArrayTrajectories(array, grid, dt=-1.0, fields=("u",))
    with pytest.raises(SplatopError, match="one for each of the 3 trajectories"):
        ArrayTrajectories(array, grid, dt=DT, fields=("u",), coefficients={"v": np.zeros(2)})


def test_names_that_hdf5_cannot_hold(tmp_path):
    array, grid = states(1)
    data = ArrayTrajectories(array, grid, dt=DT, fields=("a/b",))
    with pytest.raises(SplatopError, match="names without '/'"):
        save_trajectories(tmp_path / "a.h5", data)
    # A name that the layout itself uses does no harm.
    odd = {"n_trajectories": 7.0, "splatop": 2.0}
    data = ArrayTrajectories(array, grid, dt=DT, fields=("u",), coefficients=odd)
    save_trajectories(tmp_path / "a.h5", data)
    with open_trajectories(tmp_path / "a.h5") as read:
        assert read.trajectory_coefficients(0) == odd
        assert (read.dt, read.grid) == (DT, grid)


def test_generation_refuses_impossible_sizes(tmp_path):
    benchmark = BENCHMARKS["advection_diffusion3d"]
    with pytest.raises(SplatopError, match="at most 4 GiB"):
        generate(benchmark)
    with pytest.raises(SplatopError, match="at least 1 trajectory"):
        generate(benchmark, trajectories=0)
    with pytest.raises(SplatopError, match="a seed from 0"):
        generate(benchmark, seed=-1)
    with pytest.raises(SplatopError, match="of free disk"):
        generate_to_file(benchmark, tmp_path / "a.h5", trajectories=10**6)
    with pytest.raises(SplatopError, match="expected an existing folder"):
        generate_to_file(benchmark, tmp_path / "no" / "a.h5")
    with pytest.raises(SplatopError, match="add a file name"):
        generate_to_file(benchmark, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_leaves_no_file(tmp_path):
    (tmp_path / "a.h5").write_text("what was there before")

    def interrupt(done, total):
        if done == 2:
            raise KeyboardInterrupt

    benchmark = BENCHMARKS["advection2d"].with_points(16)
    with pytest.raises(KeyboardInterrupt):
        generate_to_file(benchmark, tmp_path / "a.h5", trajectories=4, steps=3, progress=interrupt)
    assert [path.name for path in tmp_path.iterdir()] == ["a.h5"]
    assert (tmp_path / "a.h5").read_text() == "what was there before"


def test_control_c_on_the_command(tmp_path):
    command = [sys.executable, "-c", "from splatop.cli import main; main()", "generate"]
    command += ["advection2d", "--out", "a.h5", "--trajectories", "100000", "--points", "12"]
    process = subprocess.Popen(
        [*command, "--steps", "1"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        # A job in the background of a shell ignores Ctrl-C, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 120
    while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr.decode()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_no_file(tmp_path):
    """A limit on the size of files stands for the disk; it fails in the same call."""
    script = """
import resource, sys
import numpy as np
from splatop.data import ArrayTrajectories, save_trajectories
from splatop.errors import SplatopError
from splatop.grid import Grid
array = np.random.default_rng(0).normal(size=(8, 20, 1, 64, 64))
data = ArrayTrajectories(array, Grid.unit(64, 2), dt=1.0, fields=("u",))
resource.setrlimit(resource.RLIMIT_FSIZE, (10**6, 10**6))
try:
    save_trajectories("a.h5", data)
except SplatopError as error:
    sys.exit(0 if "the disk is full" in str(error) else f"wrong message: {error}")
sys.exit("no error")
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert list(tmp_path.iterdir()) == []


def test_control_c_while_a_module_is_loaded(capsys):
    """Compiled modules make an ImportError of it."""
    application = typer.Typer()

    @application.command()
    def load(lost: bool = False) -> None:
        if lost:
            raise ImportError("no such library")
        raise ImportError("initialization failed") from KeyboardInterrupt()

    def called(*arguments):
        with patch.object(sys, "argv", ["load", *arguments]):
            return run(application)

    assert called() == 130
    assert "interrupted" in capsys.readouterr().err
    with pytest.raises(ImportError, match="no such library"):
        called("--lost")

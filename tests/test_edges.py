"""Data between edges: what is told, what files state, what the data look like, where points lie."""

import json
import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io
import xarray as xr

from splatop.data import (
    ArrayTrajectories,
    frames_at,
    in_memory,
    open_trajectories,
    part,
    roughest_pairs,
    save_trajectories,
    spectrum,
    split,
)
from splatop.data.held import as_trajectories
from splatop.data.labelled_states import read_state
from splatop.data.sampling import candidates, digits
from splatop.domain import Condition
from splatop.equation import domain_from_text
from splatop.errors import SplatopError
from splatop.grid import Grid

DT = 0.05
# What py-pde was told, in our words, with lengths and origin of its boxes.
TOLD = {
    "walls": ("x: u = 0", (1.0,), (0.0,)),
    "uneven": ("x0: u = 1; x1: dn(u) = 0.7", (2.0,), (-1.0,)),
    "channel": ("x0: u = 0; x1: dn(u) = 0; y: periodic", (2.0, 1.0), (-1.0, 0.0)),
    "box": ("x: u = 0; y: dn(u) = 0; z: dn(u) = 0", (2.0, 1.0, 1.0), (0.0, 0.0, -0.5)),
}


@pytest.fixture(scope="module")
def solutions(tmp_path_factory):
    """Of py-pde, by name: frames `(T, *N)` and the coordinates of its cells."""
    pytest.importorskip("pde")
    path = tmp_path_factory.mktemp("pypde") / "solutions.npz"
    script = Path(__file__).with_name("pypde_solutions.py")
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, script, path], check=True, env=environment, timeout=600)
    with np.load(path) as held:
        return {
            name: (held[name], {k: held[f"{name}_{k}"] for k in "xyz"[: len(told[1])]})
            for name, told in TOLD.items()
        }


def labelled(frames, axes, **attributes):
    coords = {"time": DT * np.arange(len(frames)), **axes}
    return xr.Dataset({"u": (("time", *axes), frames)}, coords, attributes)


def to_netcdf(path, frames, axes):
    labelled(frames, axes).to_netcdf(path)
    return {}


def to_flat(path, frames, axes):
    with h5py.File(path, "w") as file:
        file["tensor"] = frames[None].astype(np.float32)
        file["t-coordinate"] = DT * np.arange(len(frames) + 1)
        for name, x in axes.items():
            file[f"{name}-coordinate"] = x.astype(np.float32)
    return {}


def to_grouped(path, frames, axes):
    with h5py.File(path, "w") as file:
        file["0000/data"] = frames[..., None]
        file["0000/grid/t"] = DT * np.arange(len(frames))
        for name, x in axes.items():
            file[f"0000/grid/{name}"] = x
    return {}


def to_matlab(path, frames, axes):
    held = {"u": np.moveaxis(frames, 0, -1), "t": DT * np.arange(len(frames)), **axes}
    scipy.io.savemat(path, held)
    return {}


def to_npy(path, frames, axes):
    np.save(path, frames)
    steps = [(x[1] - x[0]) * len(x) for x in axes.values()]
    begins = [x[0] - (x[1] - x[0]) / 2 for x in axes.values()]
    ring = {"origin": [*begins[:1], axes["y"][0]]} if len(axes) == 2 else {"origin": begins}
    told = {"axes": "txyz"[: frames.ndim], "lengths": steps, "dt": DT}
    return {**told, **ring, "sampling": "cells"}


WRITERS = {
    "a.nc": to_netcdf,
    "flat.hdf5": to_flat,
    "grouped.h5": to_grouped,
    "a.mat": to_matlab,
    "a.npy": to_npy,
}


@pytest.mark.parametrize("file", WRITERS)
@pytest.mark.parametrize("name", TOLD)
def test_cells_between_edges_in_every_format(tmp_path, solutions, name, file):
    """Coordinates are cell centres; the domain is what py-pde was given, and its edges hold."""
    frames, axes = solutions[name]
    text, lengths, origin = TOLD[name]
    options = WRITERS[file](tmp_path / file, frames, axes)
    with open_trajectories(tmp_path / file, boundary=text, **options) as data:
        ring = data.domain.periodic
        assert data.grid.layout == tuple("left" if one else "cells" for one in ring)
        assert data.grid.lengths == pytest.approx(lengths, rel=1e-6)
        for one, begin, wanted in zip(ring, data.grid.origin, origin, strict=True):
            if not one:
                assert begin == pytest.approx(wanted, abs=1e-6)
        for found, wanted in zip(data.grid.coordinates(), axes.values(), strict=True):
            np.testing.assert_allclose(found.ravel(), wanted, atol=1e-6)
        assert data.domain.describe(("u",)) == text
        np.testing.assert_array_equal(data.window(0, 0, 2)[:, 0], frames[:2].astype(np.float32))


@pytest.mark.parametrize("name", ["walls", "channel"])
def test_the_words_to_give_are_proposed(tmp_path, solutions, name):
    """Also that the points are cells, where the array does not say; what is proposed is taken."""
    frames, axes = solutions[name]
    text, lengths, _ = TOLD[name]
    labelled(frames, axes).to_netcdf(tmp_path / "a.nc")
    with pytest.raises(SplatopError) as caught:
        open_trajectories(tmp_path / "a.nc")
    assert f'give --boundary "{text}" (boundary=' in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(SplatopError) as caught:
        as_trajectories(frames[:, None], dt=DT, lengths=lengths)
    assert f'--boundary "{text}" --sampling cells' in str(caught.value)


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.05])
def test_what_the_data_break_is_refused_and_noise_is_not(solutions, noise):
    rng = np.random.default_rng(0)
    for name, (frames, axes) in solutions.items():
        if name == "box":
            continue
        text = TOLD[name][0]
        noisy = frames + noise * frames.std() * rng.normal(size=frames.shape)
        told = as_trajectories(labelled(noisy, axes), boundary=text)
        assert not told.domain.all_periodic
        wrong = text.replace("u = 0", "u = 0.9").replace("u = 1;", "u = 2;")
        found = "u = 0.9 at x0" if wrong != text and "0.9" in wrong else "u = 2 at x0"
        with pytest.raises(SplatopError, match=f"{found} is not what the data do.*off by"):
            as_trajectories(labelled(noisy, axes), boundary=wrong)


def test_a_slope_that_is_not_there_is_refused(solutions):
    frames, axes = solutions["walls"]
    with pytest.raises(SplatopError, match=r"dn\(u\) = 0 at x0 .* outward slope of u there is -1"):
        as_trajectories(labelled(frames, axes), boundary="x: dn(u) = 0")
    flipped = "x0: u = 1; x1: dn(u) = -0.7"
    with pytest.raises(SplatopError, match=r"dn\(u\) = -0\.7 at x1.*off by 1\.[45]"):
        as_trajectories(labelled(*solutions["uneven"]), boundary=flipped)


# --- where points lie ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("points", "layout", "box"),
    [
        (np.linspace(0, 1, 65), "ends", (0, 1)),
        ((np.arange(64) + 0.5) / 64, "cells", (0, 1)),
        (np.arange(64) / 64, "left", (0, 1)),
        (-1 + (np.arange(128) + 0.5) / 64, "cells", (-1, 2)),
        (np.linspace(-np.pi, np.pi, 50), "ends", (-np.pi, 2 * np.pi)),
        (2 * np.pi * (np.arange(50) + 0.5) / 50, "cells", (0, 2 * np.pi)),
        (np.float32(3 + 22 * (np.arange(100) + 0.5) / 100), "cells", (3, 22)),
        (np.linspace(1e-3, 3e-3, 41), "ends", (1e-3, 2e-3)),
    ],
)
def test_coordinates_tell_the_layout(points, layout, box):
    u = np.sin(3 * (points - points[0]) / np.ptp(points))[None] * np.linspace(1, 2, 4)[:, None]
    data = as_trajectories(labelled(u, {"x": points}), boundary="x: free")
    assert data.grid.layout == (layout,)
    assert (data.grid.origin[0], data.grid.lengths[0]) == pytest.approx(box, rel=1e-6, abs=1e-12)
    np.testing.assert_allclose(data.grid.coordinates()[0], points, atol=1e-6 * np.ptp(points))
    assert f"x {layout} (told by the coordinates" in data.attributes["sampling"]


def test_a_given_box_tells_the_layout_and_words_override():
    x = np.arange(10) / 10  # [0, 0.9] with its ends, or [0, 1] without the right one
    data = labelled(np.outer(np.arange(1, 5), np.cos(x)), {"x": x})
    with pytest.raises(SplatopError, match=r"ends 0 to 0\.9, cells -0\.05 to 0\.95, left 0 to 1"):
        as_trajectories(data, boundary="x: free")
    for options, layout, length in (
        ({"lengths": (0.9,)}, "ends", 0.9),
        ({"lengths": (1.0,), "origin": (0.0,)}, "left", 1.0),
        ({"origin": (-0.05,)}, "cells", 1.0),
        ({"sampling": "ends"}, "ends", 0.9),
        ({"sampling": ["cells"]}, "cells", 1.0),
        ({"sampling": "ends", "lengths": (4.5,)}, "ends", 4.5),  # in other units
    ):
        held = as_trajectories(data, boundary="x: free", **options)
        assert held.grid.layout == (layout,)
        assert held.grid.lengths == pytest.approx((length,))


def test_digits_of_coordinates():
    step = 0.01
    assert [digits(x, step) for x in (0.0, 5e-6, 1.0, -20.0, 0.25, 2 * np.pi)] == [0, 0, 1, 1, 2, 2]
    assert candidates(0.5, 1.0, 3)["cells"] == (0.0, 3.0)


def test_arrays_say_where_their_points_lie():
    x = np.linspace(0, 2, 33)
    frames = (x * (2 - x) * np.exp(-np.arange(6) / 5)[:, None])[:, None]
    told = {"dt": DT, "lengths": (2.0,)}
    held = as_trajectories(frames, **told, boundary="x: u = 0")  # the end points hold it exactly
    assert held.grid.layout == ("ends",)
    assert "hold the stated values" in held.attributes["sampling"]
    with pytest.raises(SplatopError, match=r"33 points along x lie.*give --sampling ends"):
        as_trajectories(frames, **told, boundary="x: free")
    for words in ("left,ends", "middle"):
        with pytest.raises(SplatopError, match=r"one word on the sampling|unknown sampling"):
            as_trajectories(frames, **told, boundary="x: free", sampling=words)
    wave = np.broadcast_to(np.sin(np.pi * x[:-1]), (3, 1, 32))
    with pytest.raises(SplatopError, match="axes with two ends, got it for data that are periodic"):
        as_trajectories(wave, **told, sampling="cells")
    with pytest.raises(SplatopError, match="--boundary or --periodic, got both"):
        as_trajectories(frames, **told, boundary="x: free", periodic=True)


def test_walls_at_zero_are_not_taken_for_a_period():
    """Cell centres: the ends are near each other, and the slopes do not fit together."""
    x = (np.arange(48) + 0.5) / 48
    frames = (x * (1 - x) * (1 + 3 * x) * np.linspace(1, 2, 5)[:, None])[:, None]
    with pytest.raises(SplatopError, match="as at walls"):
        as_trajectories(frames, dt=DT, lengths=(1.0,))


# --- what files state ----------------------------------------------------------------------------


def write_flags(path, frames, axes, flags):
    """A file of The Well, float32, with groups `name: (dims, fields, kind, mask, values)`."""
    with h5py.File(path, "w") as file:
        file.attrs["grid_type"] = "cartesian"
        dims = file.create_group("dimensions")
        dims.attrs["spatial_dims"] = list(axes)
        dims["time"] = np.float32(DT * np.arange(len(frames)))
        for name, x in axes.items():
            dims[name] = np.float32(x)
        for name, (along, fields, kind, mask, values) in flags.items():
            group = file.create_group(f"boundary_conditions/{name}")
            group.attrs["associated_dims"] = along
            group.attrs["associated_fields"] = np.array(fields, dtype=h5py.string_dtype())
            group.attrs["bc_type"] = kind
            if mask is not None:
                group["mask"] = np.isin(np.arange(len(axes[along[0]])), mask)
                group["values"] = np.float32(values)
        file["t0_fields/u"] = np.float32(frames[None])


def test_flags_of_the_well(tmp_path, solutions):
    frames, axes = solutions["channel"]
    last = len(axes["x"]) - 1
    flags = {
        "x_low": (["x"], ["u"], "WALL", [0], [0.0]),
        "x_high": (["x"], [], "OPEN", [last], [0.0]),
        "y_ring": (["y"], [], "PERIODIC", [0, len(axes["y"]) - 1], [0.0, 0.0]),
    }
    write_flags(tmp_path / "w.h5", frames, axes, flags)
    with open_trajectories(tmp_path / "w.h5") as data:  # an open end is one that sets nothing
        assert data.domain.describe(("u",)) == "x0: u = 0; x1: free(u); y: periodic"
    flags["x_low"] = (["x"], [], "WALL", [0], [0.0])  # of no field: what holds is not said
    write_flags(tmp_path / "w.h5", frames, axes, flags)
    said = (
        "the file says 'wall' at x0 and 'open' at x1.*In the data u is 0 at x0: "
        r'.*--boundary "x0: u = 0; x1: free\(u\); y: periodic"'
    )
    with pytest.raises(SplatopError, match=said):
        open_trajectories(tmp_path / "w.h5")
    text = TOLD["channel"][0]
    with open_trajectories(tmp_path / "w.h5", boundary=text) as data:
        assert data.domain.describe(("u",)) == text


def test_a_value_that_data_nearly_have_is_warned_of(tmp_path):
    """PDEBench's diffusion-sorption ends with D times a slope, a thousandth of its spread."""
    x, t = np.linspace(0, 1, 41), 0.1 * np.arange(9)
    heat = np.exp(-t)[:, None] * np.sin(np.pi * x)  # with a spread of 0.2
    boundary, path = "x0: u = 0; x1: u = 0", tmp_path / "a.npz"
    np.savez(path, u=heat + 2e-4 * x, x=x, t=t)
    with (
        pytest.warns(UserWarning, match=r"u = 0 at x1 is not what the data do.*off by 0\.0002"),
        open_trajectories(path, boundary=boundary) as data,
    ):
        assert data.domain.ends(0, "u")[1] == Condition("value", 0.0)
    np.savez(path, u=heat + 2e-3 * x, x=x, t=t)
    with pytest.raises(SplatopError, match=r"u = 0 at x1 is not what the data do.*off by 0\.002"):
        open_trajectories(path, boundary=boundary)


def test_values_that_walls_of_the_well_state_are_taken_and_checked(tmp_path, solutions):
    frames, axes = solutions["walls"]
    ends = [0, len(axes["x"]) - 1]
    for value, name in ((0.0, "right.h5"), (0.8, "wrong.h5")):
        flags = {"x_wall": (["x"], ["u"], "WALL", ends, [value, value])}
        write_flags(tmp_path / name, frames, axes, flags)
    with open_trajectories(tmp_path / "right.h5") as data:
        assert data.domain.ends(0, "u") == (Condition("value", 0.0),) * 2
        assert data.grid.layout == ("cells",)
    with pytest.raises(SplatopError, match=r"u = 0\.8 at x0 is not what the data do"):
        open_trajectories(tmp_path / "wrong.h5")
    inside = {"hole": (["x", "y"], [], "WALL", None, None)}
    write_flags(tmp_path / "hole.h5", *solutions["channel"], inside)
    with pytest.raises(SplatopError, match=r"an obstacle inside of the box.*--shape.*--mask"):
        open_trajectories(tmp_path / "hole.h5")


def insulated(points=32, frames=6):
    """Cosines that decay in [-1, 1]², with both fields of PDEBench's set: `(T, X, Y, C)`."""
    x = -1 + (np.arange(points) + 0.5) * 2 / points
    t = np.arange(frames)[:, None, None]
    waves = [np.cos(k * np.pi * (x + 1) / 2) for k in range(4)]
    u = np.exp(-0.1 * t) * np.outer(waves[1], waves[2]) + np.exp(-0.2 * t) * np.outer(
        waves[3], waves[0]
    )
    return x, np.stack([u, 0.5 * u + np.outer(waves[1], waves[0])], axis=-1)


def test_pdebench_by_name(tmp_path):
    x, states = insulated()
    for name in ("2D_diff-react_NA_NA.h5", "mine.h5"):
        with h5py.File(tmp_path / name, "w") as file:
            for k in range(2):
                file[f"{k:04d}/data"] = states * (1 + k)
                for axis in "xy":
                    file[f"{k:04d}/grid/{axis}"] = np.float32(x)
                file[f"{k:04d}/grid/t"] = DT * np.arange(len(states))
    fields = ["u", "v"]
    with open_trajectories(tmp_path / "2D_diff-react_NA_NA.h5", fields=fields) as data:
        assert data.domain.describe(fields) == ("x: dn(u) = 0, dn(v) = 0; y: dn(u) = 0, dn(v) = 0")
        assert data.grid == Grid((32, 32), (2.0, 2.0), (-1.0, -1.0), ("cells", "cells"))
        assert "PDEBench" in data.attributes["boundary_conditions"]
    with pytest.raises(SplatopError, match=r'--boundary "x: dn\(u\) = 0, dn\(v\) = 0; y: '):
        open_trajectories(tmp_path / "mine.h5", fields=fields)


def test_an_attribute_in_our_words(tmp_path, solutions):
    frames, axes = solutions["uneven"]
    data = labelled(frames, axes, boundary_conditions=TOLD["uneven"][0] + ", free(w)")
    with pytest.raises(SplatopError, match="unknown field 'w'"):
        as_trajectories(data)
    text = "x0: u = 1, free(w); x1: dn(u) = 0.7, w = 0"
    data = labelled(frames, axes, boundary_conditions=text).assign(w=2 * labelled(frames, axes).u)
    assert as_trajectories(data, fields=["u"]).domain.describe(("u",)) == TOLD["uneven"][0]
    with pytest.raises(SplatopError, match="w = 0 at x1 is not what the data do"):
        as_trajectories(data)
    assert as_trajectories(data, boundary="x: free").domain.conditions == {}


def test_a_complex_field(solutions):
    frames, axes = solutions["walls"]
    with pytest.warns(UserWarning, match="psi is complex"):
        data = as_trajectories(
            (labelled(frames * (1 + 2j), axes).rename(u="psi")), boundary="x: psi = 0"
        )
    assert data.domain.at("x0", "psi_im") == Condition("value", 0.0)
    with (
        pytest.warns(UserWarning, match="psi is complex"),
        pytest.raises(SplatopError, match="psi_im = 1 at x0 is not"),
    ):
        as_trajectories((labelled(frames * (1 + 2j), axes).rename(u="psi")), boundary="x: psi = 1i")


def test_values_that_vary_along_a_side_and_by_trajectory():
    """u = a sin(pi y) at x0, with a of each trajectory; at x1 a coefficient that is not known."""
    x, y = np.linspace(0, 1, 17)[:, None], np.linspace(0, 1, 21)[None]
    strength = np.array([1.0, 3.0])
    one = np.sin(np.pi * y) * (1 + x * (1 - x)) + x**2
    frames = strength[:, None, None, None] * np.stack([one] * 3)
    coords = {"t": DT * np.arange(3), "x": x.ravel(), "y": y.ravel()}
    data = xr.Dataset({"u": (("b", "t", "x", "y"), frames), "a": ("b", strength)}, coords)
    text = "x0: u = {}; x1: u = c*y; y: free"
    held = as_trajectories(data, boundary=text.format("a*sin(pi*y)"))
    assert held.grid.layout == ("ends", "ends")
    with pytest.raises(SplatopError, match=r"u = 2\*sin\(pi\*y\) at x0 is not"):
        as_trajectories(data, boundary=text.format("2*sin(pi*y)"))


# --- the domain stays with the data --------------------------------------------------------------


@pytest.mark.parametrize("layout", ["ends", "cells", "left"])
def test_our_own_files_keep_domain_and_layout(tmp_path, layout):
    grid = Grid((12, 9), (1 / 3, np.pi), (-0.1, 2.0), (layout, "left"))
    domain = domain_from_text(
        "x0: u = a*sin(2*y), v = 1/3; x1: dn(u) = 1e-9, free(v); y: periodic",
        lengths=grid.lengths,
        origin=grid.origin,
        fields=("u", "v"),
    )
    array = np.random.default_rng(0).normal(size=(2, 3, 2, 12, 9))
    data = ArrayTrajectories(array, grid, dt=0.1, fields=("u", "v"), domain=domain)
    save_trajectories(tmp_path / "a.h5", data)
    with open_trajectories(tmp_path / "a.h5") as read:
        assert read.domain == domain
        assert read.grid == grid
        save_trajectories(tmp_path / "b.h5", in_memory(part(read, slice(1), which="the first")))
    with open_trajectories(tmp_path / "b.h5") as read:
        assert (read.domain, read.grid) == (domain, grid)
    with h5py.File(tmp_path / "a.h5") as file:
        flags = file["boundary_conditions"]
        assert {name: str(one.attrs["bc_type"]) for name, one in flags.items()} == {
            **dict.fromkeys(("x0_u", "x0_v", "x1_u"), "WALL"),
            "x1_v": "OPEN",
            "y_periodic": "PERIODIC",
        }
        assert list(np.flatnonzero(flags["x1_v/mask"])) == [11]
        assert flags["x0_v/values"][0] == np.float32(1 / 3)
    with open_trajectories(tmp_path / "a.h5", boundary="all: free", sampling="ends") as read:
        assert read.domain.conditions == {}  # what the user says counts first
    with pytest.raises(SplatopError, match="the domain to be the grid's box"):
        ArrayTrajectories(
            array, Grid((12, 9), (1.0, 1.0)), dt=0.1, fields=("u", "v"), domain=domain
        )


def test_parts_of_bounded_data_keep_their_domain(solutions):
    data = as_trajectories(labelled(*solutions["walls"]), boundary="x: u = 0")
    parts = split(data)
    assert parts.training.domain == parts.reported.domain == data.domain


# --- looks at bounded fields ---------------------------------------------------------------------


def test_roughness_does_not_wrap_around():
    """A steep line is smooth between ends; on a ring its jump would make it the roughest."""
    x = np.linspace(0, 1, 32)
    frames = np.stack([5 + x, 5 + 0.3 * np.sin(20 * x)])[None, :, None]
    bounded = {"domain": domain_from_text("x: free", lengths=(1.0,), fields=("u",))}
    for options, rough in (({}, 0), (bounded, 1)):
        data = ArrayTrajectories(frames, Grid((32,), (1.0,)), dt=1.0, fields=("u",), **options)
        np.testing.assert_allclose(
            frames_at(data, roughest_pairs(data, 1))[0], frames[0, rough], rtol=1e-6
        )


@pytest.mark.parametrize("layout", ["ends", "cells"])
@pytest.mark.parametrize(("text", "wave"), [("x: u = 0", np.sin), ("x: dn(u) = 0", np.cos)])
def test_the_spectrum_is_in_waves_of_the_box(layout, text, wave):
    """Three half waves across: all energy at wavenumber 3 of twice the length."""
    grid = Grid((40,), (2.0,), layout=(layout,))
    u = wave(3 * np.pi * grid.coordinates()[0] / 2)
    domain = domain_from_text(text, lengths=(2.0,), fields=("u",))
    data = ArrayTrajectories(u[None, None, None], grid, dt=1.0, fields=("u",), domain=domain)
    found = spectrum(data)
    assert found["box"] == 4.0
    energy = np.array(found["energy"])
    assert energy[3] == pytest.approx(0.5, rel=1e-6)
    assert energy.sum() == pytest.approx(0.5, rel=1e-6)


def test_states_of_bounded_coordinates():
    x = (np.arange(16) + 0.5) / 16 - 1
    state = xr.DataArray(np.cos(x), {"x": x}, ("x",), name="u")
    told = {"fields": ("u",), "lengths": (1.0,)}
    _, layout = read_state(state, **told, sampling=("cells",))
    assert layout.begins((0.0,)) == pytest.approx((-1.0,))
    ends = xr.DataArray(np.cos(x), {"x": np.linspace(0, 1, 16)}, ("x",), name="u")
    _, layout = read_state(ends, **told, sampling=("ends",))
    assert layout.begins((5.0,)) == (0.0,)
    with pytest.raises(SplatopError, match=r"of length 1 along x, got 1\.06"):
        read_state(ends, **told)


# --- the command line ----------------------------------------------------------------------------


def test_commands(splatop, tmp_path, solutions):
    frames, axes = solutions["channel"]
    text = TOLD["channel"][0]
    source, out = tmp_path / "a.nc", tmp_path / "a.h5"
    labelled(frames, axes).to_netcdf(source)
    code, shown, error = splatop("inspect", source)
    assert code == 1
    assert f'--boundary "{text}"' in " ".join(error.split())
    assert "boundary not known, see below" in shown
    assert "field u: " in shown
    assert splatop("inspect", source, "--json")[1] == ""
    code, shown, _ = splatop("inspect", source, "--boundary", text)
    assert code == 0
    assert f"boundary {text} (as told)" in shown
    assert "points of bounded axes: x cells (told by the coordinates: from -1 to 1)" in shown
    code, _, error = splatop("inspect", source, "--boundary", text, "--sampling", "ends")
    assert code == 1
    assert "u = 0 at x0 is not what the data do" in " ".join(error.split())
    assert splatop("convert", source, out, "--boundary", text)[0] == 0
    code, shown, _ = splatop("inspect", out, "--json")
    held = json.loads(shown)
    assert held["layout"] == ["cells", "left"]
    assert held["boundary_conditions"] == text
    assert [axis["periodic"] for axis in held["domain"]["axes"]] == [False, True]
    code, _, error = splatop("identify", out, "--equation", "dt(u) = -v*dx(u)")
    assert code == 1
    assert "a condition for u at one end of x alone" in " ".join(error.split())

"""The data commands as a user types them."""

import json
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from splatop import SplatopError, __version__
from splatop.benchmarks import BENCHMARKS
from splatop.cli.reading import arguments, open_data, open_for
from splatop.data import ArrayTrajectories, generate, in_memory, open_trajectories, summarize
from splatop.equation import domain_from_text
from splatop.grid import Grid
from test_data_files import states

READING = (
    *("axes", "fields", "lengths", "origin", "dt", "t0", "inputs", "boundary", "sampling"),
    *("shape", "mask", "start"),
)


def test_what_a_file_holds_is_shown_as_it_is(splatop, tmp_path):
    (tmp_path / "passwd").write_text("[red]:x:0")
    code, out, err = splatop("inspect", tmp_path / "passwd")
    assert (code, out) == (1, "")
    assert "it begins with b'[red]:x:'" in err


def test_edges_that_a_file_does_not_state_are_those_of_the_model(tmp_path):
    x, t = np.linspace(0, 1, 33), 0.1 * np.arange(4)
    np.savez(tmp_path / "a.npz", x=x, t=t, u=np.stack([np.cos(np.pi * x) * (1 - k) for k in t]))
    reading = {**dict.fromkeys(READING), "drop_end": False, "resample": False, "periodic": False}
    with pytest.raises(SplatopError, match="expected edges"):
        open_data(tmp_path / "a.npz", reading)
    for text, obeyed in (("x: dn(u) = 0", True), ("x: u = 0", False)):
        domain = domain_from_text(text, lengths=(1.0,), fields=("u",))
        spec = SimpleNamespace(domain=domain, fields=("u",))
        if obeyed:
            with open_for(spec, tmp_path / "a.npz", reading) as data:
                assert data.domain == domain
        else:
            with pytest.raises(SplatopError, match="obey their boundary"):
                open_for(spec, tmp_path / "a.npz", reading)


def test_a_zero_is_given():
    """`--t0 0` and `--dt 0` are answers, the second a wrong one; False is none."""
    reading = {**dict.fromkeys(READING), "drop_end": False, "resample": False, "periodic": False}
    assert arguments({**reading, "t0": 0.0, "dt": 0.0}) == {"t0": 0.0, "dt": 0.0}


def test_the_module_is_the_command(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["splatop", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("splatop", run_name="__main__")
    assert not ended.value.code
    assert __version__ in capsys.readouterr().out


def test_benchmarks(splatop):
    code, out, _ = splatop("benchmarks")
    assert code == 0
    for benchmark in BENCHMARKS.values():
        assert benchmark.name in out
        for line in benchmark.equation_text.split("; "):
            assert line in out
    code, out, _ = splatop("benchmarks", "--json")
    listed = {one["name"]: one for one in json.loads(out)}
    assert set(listed) == set(BENCHMARKS)
    burgers = listed["burgers2d"]
    assert burgers["coefficients"] == {"c": 1.5 / 320, "nu": 1e-4}
    assert burgers["points"] == [160, 160]
    assert burgers["paper_filter"] == "sharp 10"
    assert burgers["train"] == {"trajectories": 256, "steps": 50}
    assert listed["unknown_advection_diffusion2d"]["coefficient_ranges"]["D"] == [1e-6, 4e-6]


def test_generate_inspect_convert(splatop, tmp_path):
    options = ("--split", "test", "--trajectories", 2, "--steps", 3, "--points", 16, "--seed", 4)
    code, out, err = splatop("generate", "advection_diffusion2d", "--out", "a.h5", *options)
    assert code == 0, err
    assert "wrote a.h5: 2 x 4 x 1 x 16 x 16" in out
    expected = generate(
        BENCHMARKS["advection_diffusion2d"],
        split="test",
        trajectories=2,
        steps=3,
        points=16,
        seed=4,
    )
    with open_trajectories(tmp_path / "a.h5") as read:
        np.testing.assert_array_equal(in_memory(read).array, expected.array)

    code, out, err = splatop("inspect", "a.h5", "--plot", "a.png")
    assert code == 0, err
    for text in ("2 trajectories of 4 frames", "grid 16 x 16", "coefficient D: 2e-06", "periodic"):
        assert text in out
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    code, out, _ = splatop("inspect", "a.h5", "--json")
    summary = json.loads(out)
    assert summary["attributes"]["seed"] == 4
    assert summary["not_finite"]["frames"] == 0
    assert summary["coefficients"]["v"] == {"min": 0.025, "max": 0.025}

    code, out, err = splatop("convert", "a.h5", "b.h5", "--compress")
    assert code == 0, err
    with open_trajectories(tmp_path / "b.h5") as read:
        np.testing.assert_array_equal(in_memory(read).array, expected.array)
        assert read.attributes["seed"] == 4


def test_convert_with_everything_named(splatop, tmp_path):
    array, grid = states(2, 2)
    np.save(tmp_path / "a.npy", array)
    told = ("--axes", "btcxy", "--fields", "h, q", "--lengths", "2,3", "--dt", 0.25)
    code, _, err = splatop("convert", "a.npy", "b.h5", *told)
    assert code == 0, err
    with open_trajectories(tmp_path / "b.h5") as read:
        np.testing.assert_array_equal(in_memory(read).array, array)
        assert (read.fields, read.grid, read.dt) == (("h", "q"), grid, 0.25)


def test_reduced_size(splatop, tmp_path):
    code, _, err = splatop(
        "generate", "advection_diffusion3d", "--out", "a.h5", "--reduced", "--trajectories", 1,
        "--steps", 1,
    )  # fmt: skip
    assert code == 0, err
    assert open_trajectories(tmp_path / "a.h5").grid.points == (24, 24, 24)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("generate", "burger2d", "--out", "a.h5"), 1, "did you mean 'burgers2d'"),
        (("generate", "burgers2d"), 2, "--out"),
        (("generate", "burgers2d", "--out", "a.npy"), 1, "named .h5 or .hdf5"),
        (("generate", "burgers2d", "--out", "no/a.h5"), 1, "expected an existing folder"),
        (("generate", "burgers2d", "--out", "a.h5", "--split", "tset"), 1, "'test'"),
        (("generate", "burgers2d", "--out", "a.h5", "--points", 4), 1, "at least 12 points"),
        (("generate", "burgers2d", "--out", "a.h5", "--points", "x"), 1, "for --points, got "),
        (("generate", "burgers2d", "--out", "a.h5", "--steps", 0), 1, "at least 1 trajectory"),
        (("generate", "burgers2d", "--out", "a.h5", "--seed", -1), 1, "a seed from 0"),
        (("inspect", "missing.h5"), 1, "does not exist"),
        (("inspect", "a.npy"), 1, "--axes btcx"),
        (("inspect", "a.npy", "--axes", "btcx"), 1, "--lengths"),
        (("inspect", "a.npy", "--axes", "btcx", "--lengths", "a"), 1, "such as 1 or 1,2"),
        (("inspect", "a.npy", "--axes", "btcx", "--lengths", "1"), 1, "--dt"),
        (("convert", "a.npy", "b.nc"), 1, "named .h5 or .hdf5"),
        (("convert", "a.npy"), 2, "OUT"),
    ],
)
def test_mistakes_are_one_message(splatop, tmp_path, arguments, code, message):
    np.save(tmp_path / "a.npy", states(1)[0])
    got, out, err = splatop(*arguments)
    assert got == code
    assert message in err
    assert "Traceback" not in err
    assert out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]


def test_the_summary_measures_the_data():
    grid = Grid((32, 48), (1.0, 2.0))
    x, y = grid.coordinates()
    # Amplitude 3 at 2 cycles along x, on the longer side of 2 that is wavenumber 4; mean 0.5.
    state = 0.5 + 3 * np.sin(2 * np.pi * 2 * x) + 0 * y
    data = ArrayTrajectories(np.broadcast_to(state, (2, 3, 1, 32, 48)), grid, dt=0.1, fields=("u",))
    summary = summarize(data)
    assert summary["ranges"]["u"]["mean"] == pytest.approx(0.5, abs=1e-6)
    assert summary["ranges"]["u"]["std"] == pytest.approx(3 / 2**0.5, rel=1e-6)
    assert summary["ranges"]["u"]["max"] == pytest.approx(3.5, rel=1e-6)
    energy = np.array(summary["spectrum"]["energy"])
    # Parseval: the mean square of the wave is 9/2.
    assert energy[4] == pytest.approx(4.5, rel=1e-5)
    assert energy[0] == pytest.approx(0.25, rel=1e-5)
    assert summary["spectrum"]["holds"] == {"0.99": 4, "0.9999": 4, "0.999999": 4}
    assert summary["spectrum"]["tail"] < 1e-10
    json.dumps(summary, allow_nan=False)
    empty = ArrayTrajectories(np.full((1, 2, 1, 8), np.nan), Grid.unit(8, 1), dt=1.0, fields=("u",))
    empty.coefficients["v"] = np.array([np.nan])
    summary = summarize(empty)
    assert summary["ranges"] == {"u": None}
    json.dumps(summary, allow_nan=False)


def test_generate_an_equation_on_a_rectangular_box(splatop):
    equation = ("--equation", "dt(u) = -v*dy(u)", "--coefficients", "v=0.5", "--dt", 0.5)
    size = ("--points", "48,32", "--length", "3,0.5", "--steps", 2, "--trajectories", 1)
    code, _, _ = splatop("generate", *equation, *size, "--out", "box.h5")
    assert code == 0
    with open_trajectories("box.h5") as data:
        assert data.grid == Grid((48, 32), (3.0, 0.5))
        first, _, last = data.window(0, 0, 3)
        # 0.5 a time unit along y is one box length: after one frame half of it.
        np.testing.assert_allclose(last, first, atol=1e-5)
    for points in ("24,12,8", "24,", "many"):
        code, _, error = splatop("generate", *equation, "--points", points, "--out", "no.h5")
        assert code == 1
        assert "expected one whole number, or 2 with commas, for --points" in error


SMALL = ["--trajectories", 1, "--steps", 2]
EQUATION = ["--equation", "dt(u) = D*lap(u)", "--points", 16, "--dt", 0.1, *SMALL]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["advection2d", "--points", "9" * 400], "fewer than 1,000,000,000 --points per axis"),
        (["advection2d", "--points", "9" * 5000], "got 999999999999... (5000 characters)"),
        (["advection2d", "--points=-5"], "expected a positive number of --points per axis, got -5"),
        (["advection2d", "--points", "0"], "expected a positive number of --points"),
        (["advection_diffusion3d", "--points", 100000], "got one that needs 816 PB: ask for fewer"),
        (["advection2d", "--trajectories", "9" * 12], "expected 5e+18 bytes of free disk for a.h5"),
        (["advection2d", "--trajectories", "9" * 400], "bytes of free disk for a.h5"),
        (["unknown_advection_diffusion2d", "--trajectories", "9" * 12], "of free disk for a.h5"),
        ([*EQUATION, "--coefficients=D=1", "--trajectories", "9" * 12], "of free disk for a.h5"),
        ([*EQUATION, "--coefficients=D=1", "--steps", "9" * 12], "of memory, got one that needs"),
        ([*EQUATION, "--coefficients=D=1", "--trajectories", 0], "at least 1 trajectory"),
        (
            [*EQUATION, "--coefficients=D=1", "--dt", 1e-300],
            "expected a time step whose multiples single precision can hold (1e-38 to 3e+38), got "
            "1e-300: use other units",
        ),
        ([*EQUATION, "--coefficients=D=1", "--length", 1e300], "expected a spacing along x whose"),
        ([*EQUATION, "--coefficients=D=1", "--length", "inf"], "finite lengths"),
        ([*EQUATION, "--coefficients=D=1", "--points", 1], "at least two points along each axis"),
        (
            ["--equation", "dt(u) = lap(u)", "--dt", 1, "--coefficients=D=1"],
            "expected no coefficient for this equation, which names none, got 'D'",
        ),
        ([*EQUATION, "--coefficients=D=1e308"], "check the signs and sizes of the coefficients"),
    ],
)
def test_numbers_that_cannot_be_are_one_line_and_leave_nothing(
    splatop, tmp_path, recwarn, arguments, message
):
    code, out, err = splatop("generate", *arguments, "--out", "a.h5")
    assert (code, out, len(err.splitlines())) == (1, "", 1)
    assert message in err
    assert not [one for one in recwarn if issubclass(one.category, RuntimeWarning)]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a place that cannot be written")
def test_a_place_that_cannot_be_written_is_not_a_full_disk(splatop):
    code, _, err = splatop("generate", "advection2d", "--points", 16, *SMALL, "--out", "/proc/a.h5")
    assert code == 1
    assert "expected a folder that can be written, got /proc for /proc/a.h5" in err
    assert "disk" not in err


def test_a_grid_of_one_point_is_refused(splatop, tmp_path):
    np.save(tmp_path / "one.npy", np.zeros((2, 3, 1)))
    code, out, err = splatop("inspect", "one.npy", "--axes", "btx", "--lengths", 1, "--dt", 1)
    assert (code, out) == (1, "")
    assert "expected at least two points along each axis of space, got a grid of 1" in err


def test_large_values_are_measured_without_a_warning(splatop, tmp_path, recwarn):
    wave = np.broadcast_to(np.sin(2 * np.pi * 3 * np.arange(16) / 16), (2, 3, 16))
    for scale, bad in ((1e30, 0), (1e-30, 0), (1e39, 6)):
        np.save(tmp_path / "large.npy", scale * wave)
        given = ["inspect", "large.npy", "--axes", "btx", "--lengths", 1, "--dt", 1, "--json"]
        code, out, _ = splatop(*given)
        assert code == 0
        found = json.loads(out)
        assert found["not_finite"]["frames"] == bad
        # The wave has three periods.
        assert bad or found["spectrum"]["holds"]["0.99"] == 3
    assert not [one for one in recwarn if issubclass(one.category, RuntimeWarning)]

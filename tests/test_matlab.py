"""MATLAB files, laid out as those that other groups published."""

import h5py
import numpy as np
import pytest
import scipy.io

import splatop as package
from splatop.data import ArrayTrajectories, open_trajectories, save_trajectories
from splatop.equation.boundary import domain_from_text
from splatop.errors import SplatopError
from splatop.grid import Grid

MODES = (1, 2, 3)


def line(count, low, high):
    """Points of a period, without its end."""
    return low + (high - low) / count * np.arange(count)


def wave(x, t, *, complex_parts=False):
    """`(x, t)`: travelling waves that tell the axes and the two parts apart."""
    length = len(x) * (x[1] - x[0])
    k = 2 * np.pi / length
    field = sum(np.exp(1j * m * (k * x[:, None] - m * t[None] + m)) / m for m in MODES)
    return field if complex_parts else field.real


def save_73(path, **variables):
    """As MATLAB writes version 7.3: HDF5 behind a header, axes reversed, complex as a compound."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, values in variables.items():
            stored = np.asarray(values).T
            if np.iscomplexobj(stored):
                pair = np.empty(stored.shape, [("real", "f8"), ("imag", "f8")])
                pair["real"], pair["imag"] = stored.real, stored.imag
                stored = pair
            kind = "single" if stored.dtype == np.float32 else "double"
            file.create_dataset(name, data=stored).attrs["MATLAB_class"] = np.bytes_(kind)
        held = file.create_group("#refs#").create_dataset("a", data=np.zeros(3))
        cell = file.create_dataset("names", data=np.array([held.ref], h5py.ref_dtype))
        cell.attrs["MATLAB_class"] = np.bytes_("cell")
        struct = file.create_group("params")
        struct.attrs["MATLAB_class"] = np.bytes_("struct")
        note = file.create_dataset("note", data=np.array([[104], [105]], "u2"))
        note.attrs["MATLAB_class"] = np.bytes_("char")
    with path.open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")


def assert_frames(path, *expected, length, dt, fields, **options):
    """`expected` is one array `(x, t)` for each field."""
    with open_trajectories(path, **options) as data:
        assert data.fields == fields
        assert data.grid.lengths == pytest.approx((length,))
        assert data.dt == pytest.approx(dt)
        frames = np.stack([field.T for field in expected], axis=1).astype(np.float32)
        np.testing.assert_array_equal(data.window(0, 0, data.frames), frames)


@pytest.mark.parametrize("row", [True, False])
@pytest.mark.parametrize("compressed", [True, False])
def test_fields_over_x_and_t(tmp_path, row, compressed):
    """burgers_shock.mat, kdv.mat, AC.mat, kuramoto_sivishinky.mat: rows, columns, t and tt."""
    x, t = line(64, -30, 30), 0.1 * np.arange(21)
    shape = (1, -1) if row else (-1, 1)
    scipy.io.savemat(
        tmp_path / "a.mat",
        {"x": x.reshape(shape), "tt": t.reshape(shape), "uu": wave(x, t)},
        do_compression=compressed,
    )
    assert_frames(tmp_path / "a.mat", wave(x, t), length=60, dt=0.1, fields=("uu",))


def test_time_may_come_first_and_coordinates_as_meshes(tmp_path):
    x, t = line(32, 0, 2), 0.5 * np.arange(9)
    mesh, times = np.meshgrid(x, t)
    scipy.io.savemat(tmp_path / "a.mat", {"X": mesh, "T": times, "u": wave(x, t).T, "nu": 0.25})
    assert_frames(tmp_path / "a.mat", wave(x, t), length=2, dt=0.5, fields=("u",))
    assert open_trajectories(tmp_path / "a.mat").coefficients["nu"] == [0.25]


def test_fields_are_read_under_names_of_the_users_own(tmp_path, splatop):
    """`--fields u=usol`, real and complex; every mistake is one line."""
    x, t = line(64, -5, 5), 0.01 * np.arange(11)
    psi, path = wave(x, t, complex_parts=True), tmp_path / "a.mat"
    scipy.io.savemat(path, {"x": x, "t": t, "usol": psi, "p": psi.real})
    with pytest.warns(UserWarning, match="u is complex"):
        data = open_trajectories(path, fields=("u=usol", "p"))
    assert data.fields == ("u_re", "u_im", "p")
    np.testing.assert_array_equal(data.window(0, 3, 1)[0, 1], psi.imag.T[3].astype("f4"))
    bad = {"u=": "u=usol, got", "u=p,w=p": "'p' twice", "p=usol,p": "different names"}
    for fields, message in bad.items():
        with pytest.raises(SplatopError, match=message):
            open_trajectories(path, fields=fields.split(","))
    code, _, err = splatop("identify", "a.mat", "--fields=p", "--equation", "dt(q) = D*lap(q)")
    assert code == 1
    assert "--fields q=p" in err


def test_new_names_hold_at_the_edges_too(tmp_path):
    x, t = np.linspace(0, 1, 33), 0.01 * np.arange(5)
    u = np.sin(np.pi * x)[None] * np.exp(-t)[:, None]
    grid = Grid((33,), (1.0,), layout=("ends",))
    domain = domain_from_text("x: u = 0", lengths=(1.0,), fields=("u",))
    whole = ArrayTrajectories(u[None, :, None], grid, dt=0.01, fields=("u",), domain=domain)
    save_trajectories(tmp_path / "a.h5", whole)
    with open_trajectories(tmp_path / "a.h5", fields=("w=u",)) as data:
        assert data.domain.at("x1", "w").kind == "value"


def test_version_4(tmp_path):
    x, t = line(32, 0, 2), 0.5 * np.arange(9)
    scipy.io.savemat(tmp_path / "a.mat", {"x": x, "t": t, "u": wave(x, t)}, format="4")
    assert_frames(tmp_path / "a.mat", wave(x, t), length=2, dt=0.5, fields=("u",))


@pytest.mark.parametrize("save", [scipy.io.savemat, lambda p, v: save_73(p, **v)])
def test_complex_fields(tmp_path, save):
    """NLS.mat is complex; burgers.mat is complex in type only."""
    x, t = line(64, -5, 5), 0.01 * np.arange(11)
    psi = wave(x, t, complex_parts=True)
    save(tmp_path / "a.mat", {"x": x[None], "t": t[None], "psi": psi})
    with pytest.warns(UserWarning, match=r'"dt\(psi\) = i\*\(D\*lap\(psi\)'):
        assert_frames(
            tmp_path / "a.mat",
            psi.real,
            psi.imag,
            length=10,
            dt=0.01,
            fields=("psi_re", "psi_im"),
        )
    save(tmp_path / "b.mat", {"x": x[None], "t": t[None], "u": psi.real + 1e-17j})
    with pytest.warns(UserWarning, match="imaginary part of u is rounding .* dropped"):
        assert_frames(tmp_path / "b.mat", psi.real, length=10, dt=0.01, fields=("u",))


def flow():
    """`(N, X, Y, T)`, as ns_V1e-3_N5000_T50.mat, with every axis telling itself."""
    b, x, y, t = np.meshgrid(
        np.arange(3), np.arange(16) / 16, np.arange(16) / 16, np.arange(7), indexing="ij"
    )
    return np.sin(2 * np.pi * (x + 2 * y) + 0.3 * b + 0.2 * t).astype(np.float32)


def test_version_73_is_stored_transposed(tmp_path):
    u = flow()
    save_73(tmp_path / "ns.mat", u=u, a=u[..., 0], t=np.arange(1.0, 8.0)[None])
    with pytest.raises(SplatopError, match=r"as in --fields u --axes bxyt --lengths 1$") as caught:
        open_trajectories(tmp_path / "ns.mat")
    assert "params (a struct)" in str(caught.value)
    assert "refs" not in str(caught.value)
    with open_trajectories(tmp_path / "ns.mat", fields=["u"], axes="bxyt", lengths=1.0) as data:
        assert data.shape == (3, 7, 1, 16, 16)
        assert data.dt == 1.0
        np.testing.assert_array_equal(data.window(2, 3, 2)[:, 0], np.moveaxis(u[2], -1, 0)[3:5])
    with pytest.raises(SplatopError, match="got a MATLAB struct"):
        open_trajectories(tmp_path / "ns.mat", fields=["params"])
    with pytest.raises(SplatopError, match="unknown variable 'uu': did you mean 'u'"):
        open_trajectories(tmp_path / "ns.mat", fields=["uu"])


def test_axes_of_one_length_are_asked_for(tmp_path):
    x, t = line(16, 0, 1), 0.1 * np.arange(16)
    scipy.io.savemat(tmp_path / "a.mat", {"x": x, "t": t, "u": wave(x, t)})
    with pytest.raises(SplatopError, match="give --axes tx or --axes xt"):
        open_trajectories(tmp_path / "a.mat")
    assert_frames(tmp_path / "a.mat", wave(x, t), length=1, dt=0.1, fields=("u",), axes="xt")
    u = flow()
    scipy.io.savemat(tmp_path / "b.mat", {"x": x, "y": x, "t": t[:7], "u": u[0], "v": u[1]})
    with pytest.raises(SplatopError, match="give --axes xyt or --axes yxt"):
        open_trajectories(tmp_path / "b.mat")
    with open_trajectories(tmp_path / "b.mat", axes="yxt", fields=["v"]) as data:
        np.testing.assert_array_equal(data.window(0, 4, 1)[0, 0], u[1, :, :, 4].T)


def test_pairs_of_inputs_and_outputs_are_refused(tmp_path):
    """burgers_data_R10.mat: initial states and final states."""
    rng = np.random.default_rng(0)
    scipy.io.savemat(tmp_path / "a.mat", {k: rng.normal(size=(20, 32)) for k in ("a", "u")})
    with pytest.raises(SplatopError, match=r"expected a time axis.*pairs of inputs and outputs"):
        open_trajectories(tmp_path / "a.mat")


def _cell(*parts):
    held = np.empty((1, len(parts)), object)
    held[0, :] = parts
    return held


@pytest.mark.parametrize("version", [5, 7.3])
@pytest.mark.parametrize("fields", [1, 2])
def test_cells_of_fields_and_coordinates(tmp_path, version, fields):
    """As WSINDy's files: U_exact {1 x n}, xs {x, t}, lhs, weights in a cell as well."""
    x, t = line(64, -3.0, 3.0), 0.1 * np.arange(20)
    us = [wave(x, t), wave(x, 2 * t)][:fields]
    held = {"U_exact": us, "xs": [x[:, None], t[:, None]], "true_nz_weights": [np.ones((2, 4))]}
    path = tmp_path / "kdv.mat"
    if version == 5:
        cells = {name: _cell(*parts) for name, parts in held.items()}
        scipy.io.savemat(path, {**cells, "lhs": np.array([[1, 0, 1]])})
    else:
        save_73(path, lhs=np.array([[1.0, 0.0, 1.0]]))
        with h5py.File(path, "r+") as file:
            for name, parts in held.items():
                stored = [
                    file["#refs#"].create_dataset(f"{name}{i}", data=np.transpose(part))
                    for i, part in enumerate(parts)
                ]
                for one in stored:
                    one.attrs["MATLAB_class"] = np.bytes_("double")
                cell = file.create_dataset(
                    name, data=np.array([[s.ref] for s in stored], h5py.ref_dtype)
                )
                cell.attrs["MATLAB_class"] = np.bytes_("cell")
    names = ("U_exact",) if fields == 1 else ("U_exact_1", "U_exact_2")
    assert_frames(path, *us, length=6.0, dt=0.1, fields=names)


def test_the_order_of_a_cell_tells_axes_of_one_length(tmp_path):
    x, t = line(16, 0.0, 1.0), 0.1 * np.arange(7)
    u = np.sin(2 * np.pi * x)[:, None, None] * np.cos(4 * np.pi * x)[:, None] * np.exp(-t)
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"U": _cell(u), "xs": _cell(x, x, t)})
    with open_trajectories(path) as data:
        expected = np.moveaxis(u, -1, 0).astype(np.float32)
        np.testing.assert_array_equal(data.window(0, 0, 7)[:, 0], expected)


def test_structures_are_named_and_not_read(tmp_path):
    held = {"s": {"u": np.zeros((4, 5))}, "c": np.array([[1, "a"]], dtype=object), "note": "hi"}
    scipy.io.savemat(tmp_path / "a.mat", held)
    with pytest.raises(SplatopError, match=r"got s \(a struct\), c \(a cell\), note \(a char\)"):
        open_trajectories(tmp_path / "a.mat")


def test_damaged_files_are_refused_in_one_line(tmp_path):
    x, t = line(64, -5, 5), 0.01 * np.arange(11)
    scipy.io.savemat(tmp_path / "a.mat", {"x": x, "t": t, "u": wave(x, t)}, do_compression=True)
    save_73(tmp_path / "b.mat", x=x[None], t=t[None], u=wave(x, t))
    for name in ("a.mat", "b.mat"):
        whole = (tmp_path / name).read_bytes()
        for size in (0, 5, 100, 600, len(whole) // 2, len(whole) - 40):
            (tmp_path / name).write_bytes(whole[:size])
            with pytest.raises(SplatopError) as caught:
                open_trajectories(tmp_path / name).window(0, 0, 11)
            assert "\n" not in str(caught.value)
    (tmp_path / "c.mat").write_text("no MATLAB file at all, whatever it is called")
    with pytest.raises(SplatopError, match="expected a MATLAB file"):
        open_trajectories(tmp_path / "c.mat")


def test_commands_and_fit_read_them(tmp_path, splatop):
    """KdV's soliton `c/2 sech²(√c/2 (x - c t))` with its end repeated, as linspace gives it."""
    x, t = np.linspace(-20, 20, 129), 0.1 * np.arange(12)
    from_centre = (x[:, None] - t[None] + 20) % 40 - 20
    u = 0.5 / np.cosh(from_centre / 2) ** 2 + 0.2 * np.cos(2 * np.pi * x / 40)[:, None]
    scipy.io.savemat(tmp_path / "a.mat", {"x": x, "t": t, "usol": u})
    code, _, err = splatop("inspect", "a.mat")
    assert code == 1
    assert "--drop-end" in err
    code, out, err = splatop("inspect", "a.mat", "--drop-end")
    assert code == 0, err
    assert "grid 128, lengths 40" in out
    code, _, err = splatop("convert", "a.mat", "a.h5", "--drop-end")
    assert code == 0, err
    with open_trajectories(tmp_path / "a.h5") as data:
        assert data.fields == ("usol",)
        assert data.grid.points == (128,)
    fitted = package.fit(
        tmp_path / "a.mat",
        "dt(usol) = -v*dx(usol) + D*lap(usol)",
        coefficients={"v": 1.0, "D": 1e-3},
        drop_end=True,
        preset="smoke",
        settings={"model": "physics"},
        out=tmp_path / "run",
    )
    assert fitted.model.spec.lengths == pytest.approx((40.0,))
    reading = ("--data", "a.mat", "--drop-end")
    code, _, err = splatop("rollout", "run", *reading, "--out", "b.h5", "--steps", 3)
    assert code == 0, err
    code, out, err = splatop("evaluate", "run", *reading, "--steps", 3, "--json")
    assert code == 0, err
    code, out, err = splatop("report", "run", *reading)
    assert code == 0, err
    assert (tmp_path / "run" / "report.html").exists()
    equation = ("--equation", "dt(usol) = -v*dx(usol)", "--coefficients", "v=1")
    code, _, err = splatop("tune", *reading, *equation)
    assert code == 0, err
    options = ("--model", "physics", "--preset", "smoke", "--out", "again")
    code, _, err = splatop("train", *reading, *equation, *options)
    assert code == 0, err

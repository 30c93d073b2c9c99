"""Complex fields, from files and arrays, and complex equations, as systems of real ones."""

import h5py
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from splatop.data import open_trajectories
from splatop.data.complex_fields import as_parts
from splatop.data.held import as_trajectories
from splatop.equation import format_equation, parse_equation, parse_valued_equation
from splatop.errors import SplatopError
from splatop.jets import SpectralJets
from splatop.solver import solve
from splatop.spectral import PassThrough
from test_fit import quick_fit

NLS = "dt(psi) = i*(D*lap(psi) + g*abs2(psi)*psi)"
LENGTH, POINTS, DT = 4.0, 32, 0.02
X = LENGTH / POINTS * np.arange(POINTS)
PARTS = ("psi_re", "psi_im")


def plane_waves(frames=12, trajectories=1):
    """Of `i psi_t = -D psi_xx` with D = 0.5: `(B, T, 1, N)`, complex."""
    t, out = DT * np.arange(frames)[:, None], []
    for b in range(trajectories):
        psi = 0
        for mode, size in ((1, 1.0), (-2, 0.4 + 0.1 * b)):
            k = 2 * np.pi * mode / LENGTH
            psi = psi + size * np.exp(1j * (k * X - 0.5 * k**2 * t))
        out.append(psi[:, None])
    return np.stack(out)


# --- data --------------------------------------------------------------------------------------


def write_npy(path, psi):
    with path.open("wb") as stream:
        np.save(stream, psi[:, :, 0])


def write_npz(path, psi):
    with path.open("wb") as stream:
        np.savez(stream, psi=psi[:, :, 0], n=psi[:, :, 0].real)


def write_hdf5(path, psi):
    with h5py.File(path, "w") as file:
        file["psi"] = psi[:, :, 0]


def write_zarr(path, psi):
    coords = {"t": DT * np.arange(psi.shape[1]), "x": X}
    xr.Dataset({"psi": (("b", "t", "x"), psi[:, :, 0])}, coords).to_zarr(path)


@pytest.mark.parametrize(
    ("write", "told"),
    [
        (write_npy, {"axes": "btx", "lengths": LENGTH, "dt": DT, "fields": ["psi"]}),
        (write_npz, {"axes": "btx", "lengths": LENGTH, "dt": DT, "fields": ["psi", "n"]}),
        (write_hdf5, {"axes": "btx", "lengths": LENGTH, "dt": DT, "fields": ["psi"]}),
        (write_zarr, {}),
    ],
)
def test_every_reader_gives_two_real_fields(tmp_path, write, told):
    psi = plane_waves(trajectories=2)
    write(tmp_path / "a", psi)
    with pytest.warns(UserWarning, match=r"psi_im\. .*dt\(psi_re\) = -D\*lap\(psi_im\)"):
        opened = open_trajectories(tmp_path / "a", **told)
    with opened as data:
        assert data.fields[:2] == PARTS
        window = data.window(1, 2, 3)
        np.testing.assert_array_equal(window[:, 0], psi[1, 2:5, 0].real.astype(np.float32))
        np.testing.assert_array_equal(window[:, 1], psi[1, 2:5, 0].imag.astype(np.float32))
        if "n" in data.fields:  # a real field beside it stays one
            assert data.fields == (*PARTS, "n")
            np.testing.assert_array_equal(window[:, 2], window[:, 0])


@pytest.mark.parametrize(("size", "fields"), [(2e-6, ("psi",)), (1e-4, PARTS)])
def test_an_imaginary_part_that_is_rounding_is_dropped(size, fields):
    real = plane_waves().real
    with pytest.warns(UserWarning, match="psi"):
        data = as_trajectories(real + 1j * size * real, dt=DT, lengths=(LENGTH,), fields=("psi",))
    assert data.fields == fields


@pytest.mark.filterwarnings("ignore:.*psi")
def test_names_that_would_meet_are_refused():
    psi = np.concatenate([plane_waves(), plane_waves().real], axis=2)
    told = {"dt": DT, "lengths": (LENGTH,), "fields": ("n", "n_re")}
    with pytest.raises(SplatopError, match="'n_re' both as a field and as a part"):
        as_trajectories(psi, **told)


def test_the_command_says_what_it_did(tmp_path, splatop):
    np.save(tmp_path / "a.npy", plane_waves()[0, :, 0])
    told = ("--axes", "tx", "--lengths", LENGTH, "--dt", DT, "--fields", "psi")
    code, out, err = splatop("inspect", "a.npy", *told)
    assert code == 0
    assert "field psi_im" in out
    assert err.startswith("warning: a.npy: psi is complex, its parts are the fields")
    code, out, err = splatop("identify", "a.npy", *told, "--equation", "dt(psi) = i*D*lap(psi)")
    assert code == 0, err
    assert " 0.5 " in out or " 0.500" in out


@pytest.mark.slow
def test_fit_takes_and_gives_complex_states():
    psi = plane_waves(trajectories=2)
    with pytest.warns(UserWarning, match="psi is complex"):
        fitted = quick_fit(
            psi, "dt(psi) = i*D*lap(psi)", dt=np.float64(DT), lengths=np.array([LENGTH])
        )
    assert fitted.model.spec.fields == PARTS
    assert fitted.coefficients["D"] == pytest.approx(0.5, rel=1e-3)
    found = fitted.rollout(psi[0, 0], 5)
    assert found.shape == (5, 1, POINTS)
    # Five frames of coefficients to 1e-3 of a turn of 5 * 0.1.
    np.testing.assert_allclose(found, psi[0, 1:6], atol=5e-3)
    x = LENGTH * np.arange(POINTS) / POINTS
    start = xr.Dataset({"psi": (("x",), psi[0, 0, 0], {"units": "1"})}, coords={"x": x, "time": 2})
    labelled = fitted.rollout(start, 5).psi
    assert labelled.dims == ("time", "x")
    np.testing.assert_allclose(labelled.time, 2 + DT * np.arange(1, 6))
    np.testing.assert_allclose(labelled, found[:, 0], atol=1e-6)
    np.testing.assert_allclose(fitted.step(start.psi), found[0, 0], atol=1e-6)
    parts = np.concatenate([psi[0, 0].real, psi[0, 0].imag])
    np.testing.assert_allclose(fitted.step(parts)[1], found[0, 0].imag, atol=1e-6)


def test_a_complex_state_is_not_cut_to_its_real_part():
    state = jnp.ones((1, 4)) * (1 + 1e-8j)
    np.testing.assert_allclose(as_parts(state, ("u",), axis=0), 1.0, atol=1e-6)
    with pytest.raises(SplatopError, match="expected real states"):
        as_parts(state + 0.1j, ("u",), axis=0)


# --- equations ---------------------------------------------------------------------------------


def rate(text, state, **options):
    """du/dt of the real system for a complex state `(N,)`, as a complex array."""
    equation = parse_equation(text, dims=1, **options)
    assert equation.fields == PARTS
    numbers = {name: jnp.asarray(v) for name, v in COEFFICIENTS.items()}
    u = jnp.stack([state.real, state.imag])
    jet = SpectralJets((LENGTH,), PassThrough())(u, sorted(equation.derivatives(1)))
    real, imaginary = equation(jet, {k: numbers[k] for k in equation.coefficient_names})
    return np.asarray(real) + 1j * np.asarray(imaginary)


COEFFICIENTS = {"D": 0.3, "g": 1.7, "a": 0.8}
D, G, A = COEFFICIENTS.values()


def derivative(psi, order):
    k = 2 * np.pi * np.fft.fftfreq(POINTS, LENGTH / POINTS)
    return np.fft.ifft((1j * k) ** order * np.fft.fft(psi))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (NLS, lambda p: 1j * (D * derivative(p, 2) + G * abs(p) ** 2 * p)),
        ("dt(psi) = 1i*D*lap(psi)", lambda p: 1j * D * derivative(p, 2)),
        ("dt(psi) = -2i*D*dx(conj(psi))", lambda p: -2j * D * derivative(p.conj(), 1)),
        (
            "dt(psi) = psi + (1 + i*a)*lap(psi) - (1 + 1i*g)*abs2(psi)*psi",
            lambda p: p + (1 + 1j * A) * derivative(p, 2) - (1 + 1j * G) * abs(p) ** 2 * p,
        ),
        ("dt(psi) = i*re(psi)*im(psi)^2 - psi", lambda p: 1j * p.real * p.imag**2 - p),
        ("dt(psi) = real(psi) - 2i*imag(psi)", lambda p: p.real - 2j * p.imag),
        ("dt(psi) = 1i*psi*abs(psi)", lambda p: 1j * p * abs(p)),
        ("dt(psi) = exp(1i*pi*x)*psi^2", lambda p: np.exp(1j * np.pi * X) * p**2),
        ("dt(psi) = psi/(a + 2i)^2 + i^3*psi", lambda p: p / (A + 2j) ** 2 - 1j * p),
        ("dt(psi) = 1i*dx(psi*conj(psi)*psi)", lambda p: 1j * derivative(abs(p) ** 2 * p, 1)),
    ],
)
def test_complex_equations_are_what_complex_numbers_say(x64, text, expected):
    psi = 0.3 + np.exp(2j * np.pi * X / LENGTH) + 0.5j * np.exp(-4j * np.pi * X / LENGTH)
    # Double precision; the third derivative of products amplifies 1e-16 by (2 pi 16 / 4)^2.
    np.testing.assert_allclose(rate(text, psi), expected(psi), atol=1e-11)
    np.testing.assert_allclose(rate(text, psi, fields=PARTS), expected(psi), atol=1e-11)


def test_one_coefficient_is_one_term_and_the_text_comes_back():
    equation = parse_equation(NLS, dims=2)
    assert equation.term_names == ("diffusion", "reaction")
    assert equation.coefficient_names == ("D", "g")
    text = format_equation(equation)
    assert text.startswith("dt(psi_re) = -D*lap(psi_im) - g*(")
    assert parse_equation(text, dims=2) == equation


def test_real_and_complex_fields_together():
    """Zakharov's system: only psi has an imaginary part."""
    text = "dt(psi) = 1i*(lap(psi) - n*psi); dt(n) = v; dt(v) = lap(n + abs2(psi))"
    assert parse_equation(text, dims=1).fields == (*PARTS, "n", "v")
    order = ("n", "v", "psi_im", "psi_re")
    assert parse_equation(text, dims=1, fields=order).fields == order


def test_i_is_a_name_like_any_other_where_nothing_is_complex():
    assert parse_equation("dt(u) = i*lap(u)", dims=1).coefficient_names == ("i",)
    assert parse_equation("dt(u) = i*u", dims=1, fields=["u"]).coefficient_names == ("i",)
    assert parse_equation("dt(i) = -i*dx(i)", dims=1).fields == ("i",)
    assert parse_equation("dt(u) = re*u + im*lap(u)", dims=1).coefficient_names == ("re", "im")
    assert parse_equation("dt(re) = -re", dims=1).fields == ("re",)
    # A complex field, or no value for it: then it is the unit.
    assert parse_equation("dt(psi) = i*psi", dims=1, fields=PARTS).coefficient_names == ()
    text = "dt(psi) = i*D*lap(psi)"
    assert parse_valued_equation(text, dims=1, values=["D"]).fields == PARTS
    assert parse_valued_equation(text, dims=1, values=["D", "i"]).fields == ("psi",)


@pytest.mark.parametrize(
    ("text", "options", "column", "message"),
    [
        ("dt(u) = 1i*u", {"fields": ["u"]}, 9, "expected a real right-hand side for the real"),
        ("dt(u) = u + i*abs2(u)", {"fields": ["u"]}, 9, "expected a real right-hand side"),
        ("dt(u) = 1i*sin(u)", {"fields": ["u_re", "u_im"]}, 12, "expected a real argument of sin"),
        ("dt(u) = u^(1i)", {}, 11, "expected a number as exponent"),
        ("dt(u) = (1i)^(1/2)*u", {}, 13, "expected a real number for a root"),
        ("dt(u) = 1i*u; dt(u_re) = u", {}, 4, "expected one equation for u_re"),
        ("dt(u) = i*u", {"fields": ["u_re", "u_im", "n"]}, 12, "got none for n"),
        ("dt(u) = 2ix*u", {}, 10, "expected an operator before 'ix'"),
        ("dt(u) = conj(u, u)", {}, 9, "expected 1 argument"),
        ("dt(u) = congj(u)", {}, 9, "did you mean 'conj'"),
    ],
)
def test_mistakes_point_at_their_column(text, options, column, message):
    with pytest.raises(SplatopError, match=f"^column {column}: .*{message}"):
        parse_equation(text, dims=1, **options)


def test_the_solver_keeps_a_soliton_s_shape(tmp_path, splatop):
    """`sech(x) exp(i t/2)` solves `psi_t = i (psi_xx/2 + |psi|² psi)`, from a box of 24."""
    length, points, dt, steps = 24.0, 64, 0.1, 5
    x = length / points * np.arange(points) - length / 2
    u0 = np.stack([1 / np.cosh(x), 0 * x])
    equation = parse_equation(NLS, dims=1)
    with jax.enable_x64(True):
        frames, _ = solve(equation, {"D": 0.5, "g": 1.0}, u0, lengths=(length,), dt=dt, steps=steps)
    # The images at the ends: 2 exp(-12) = 1e-5; the grid resolves sech to 1e-6.
    expected = 1 / np.cosh(x) * np.exp(0.5j * dt * steps)
    np.testing.assert_allclose(frames[-1, 0] + 1j * frames[-1, 1], expected, atol=3e-5)
    options = ("--dims", 1, "--dt", 0.02, "--length", 8, "--points", 32, "--steps", 8)
    own = ("--equation", "dt(psi) = i*D*lap(psi)", "--coefficients", "D=0.5")
    code, _, err = splatop("generate", "--out", "a.h5", "--trajectories", 1, *own, *options)
    assert code == 0, err
    with open_trajectories(tmp_path / "a.h5") as data:
        assert data.fields == PARTS
    code, out, err = splatop("identify", "a.h5", "--equation", "dt(psi) = i*D*lap(psi)")
    assert code == 0, err
    assert "mean error" in out

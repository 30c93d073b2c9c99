"""Coordinates in an equation are those of the data, wherever their box begins."""

import json
from dataclasses import replace

import equinox as eqx
import h5py
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from scipy.special import eval_hermite, factorial

import splatop as library
from oracles import random_field, relative
from splatop.data import ArrayTrajectories, open_trajectories, save_trajectories
from splatop.encoders import LatticeEncoder
from splatop.equation import CustomTerm, Equation, parse_equation
from splatop.errors import SplatopError
from splatop.finite_differences import FiniteDifferenceJets
from splatop.grid import Grid
from splatop.identify import identify_trajectories
from splatop.initial import initial_condition
from splatop.jets import SpectralJets, SplatJets
from splatop.model import ModelSpec
from splatop.physics import EmbeddedPhysics
from splatop.solver import solve, solve_trajectories
from splatop.spectral import SharpFilter

GROWTH, SPREAD, LENGTH, POINTS, DT = 0.8, 0.02, 2.0, 32, 0.02
TEXT = "dt(u) = D*lap(u) + a*sin(pi*x)*u"
SHIFTED = "dt(u) = D*lap(u) + a*sin(pi*(x - 1))*u"  # the same on a box that begins at 0
VALUES = {"D": SPREAD, "a": GROWTH}


def grown(trajectories=2, frames=12):
    """`u_t = D u_xx + a sin(pi x) u` on [-1, 1), by the exponential of its matrix: `(B, T, N)`."""
    x = -1 + LENGTH / POINTS * np.arange(POINTS)
    k = 2j * np.pi * np.fft.fftfreq(POINTS, LENGTH / POINTS)
    second = np.fft.ifft(k[:, None] ** 2 * np.fft.fft(np.eye(POINTS), axis=0), axis=0).real
    rates, modes = np.linalg.eig(SPREAD * second + np.diag(GROWTH * np.sin(np.pi * x)))
    step = (modes @ np.diag(np.exp(DT * rates)) @ np.linalg.inv(modes)).real
    rng = np.random.default_rng(0)
    u = [1.5 + 0.4 * sum(rng.normal() * np.cos(np.pi * m * x + m) for m in (1, 2, 3))]
    u = [np.stack([u[0], 2 - u[0] ** 2 / 3][:trajectories])]
    while len(u) < frames:
        u.append(u[-1] @ step.T)
    return np.stack(u, axis=1)


def labelled(begin=-1.0, **kinds):
    u = grown(**kinds)
    x = begin + LENGTH / POINTS * np.arange(POINTS)
    return xr.Dataset(
        {"u": (("trajectory", "time", "x"), u)},
        coords={"time": DT * np.arange(u.shape[1]), "x": x},
        attrs={"boundary_conditions": "periodic"},
    )


def physics_of(data, equation=TEXT, **options):
    return library.fit(
        data,
        equation,
        coefficients=VALUES,
        settings={"model": "physics"},
        preset="smoke",
        **options,
    )


@pytest.fixture(scope="module")
def fitted():
    return physics_of(labelled())


# --- the value -----------------------------------------------------------------------------------


def test_a_grid_begins_at_its_origin():
    grid = Grid((4, 2), (2.0, 3.0), (-1.0, 5.0))
    x, y = grid.coordinates()
    assert x.ravel().tolist() == [-1.0, -0.5, 0.0, 0.5]
    assert y.ravel().tolist() == [5.0, 6.5]
    assert Grid((4,), (2.0,)) == Grid((4,), (2.0,), (0.0,))
    for wrong in ((1.0, 2.0), (np.nan,), (np.inf,)):
        with pytest.raises(SplatopError, match="one finite coordinate for each of the 1 axes"):
            Grid((4,), (2.0,), wrong)


def test_initial_states_do_not_depend_on_where_the_box_begins():
    for kind in ("fourier", "seeds", "solitons"):
        one, other = (
            initial_condition(kind, Grid((32,), (40.0,), origin), channels=1, key=jax.random.key(0))
            for origin in ((), (-20.0,))
        )
        np.testing.assert_array_equal(one, other)


# --- the physics ---------------------------------------------------------------------------------


def _providers():
    box, filter = (LENGTH, LENGTH), SharpFilter(2.0)
    return {
        "spectral": SpectralJets(box, filter),
        "lattice": SplatJets(LatticeEncoder((14, 14)), box, filter),
        "differences": FiniteDifferenceJets(box, filter),
    }


@pytest.mark.parametrize("provider", _providers())
@pytest.mark.usefixtures("x64")
def test_a_step_is_that_of_the_shifted_equation(provider):
    """Whatever makes the derivatives, and on whatever grid it works."""
    jets = _providers()[provider]
    text = "dt(u) = D*lap(u) + a*sin(pi*{})*cos(pi*{})*u"
    here = parse_equation(text.format("x", "y"), dims=2).placed_at((-1.0, 0.5))
    there = parse_equation(text.format("(x - 1)", "(y + 0.5)"), dims=2)
    u = jnp.asarray(random_field(Grid((24, 24), (LENGTH, LENGTH)), 4))
    one, two = (
        eqx.filter_jit(EmbeddedPhysics(e, jets, 0.05, 1, provider != "differences"))(u, VALUES)
        for e in (here, there)
    )
    assert relative(one, two) < 1e-12


def test_the_reference_solver_and_a_users_own_term_see_the_coordinates():
    u0 = grown()[0, :1]
    equation = parse_equation(TEXT, dims=1).placed_at((-1.0,))
    frames, _ = solve(equation, VALUES, u0, lengths=(LENGTH,), dt=DT, steps=8, tolerance=1e-10)
    # ETDRK4 leaves out the Nyquist mode, which holds 1e-9 here.
    assert relative(frames[:, 0], grown()[0, :9]) < 1e-8

    def pull(jet, coefficients):
        return GROWTH * jnp.sin(jnp.pi * jet.grid.coordinates()[0]) * jet.state

    own = Equation(
        (
            CustomTerm(pull, frozenset(), name="pull"),
            *parse_equation("dt(u) = D*lap(u)", dims=1).terms,
        )
    ).placed_at((-1.0,))
    frames, _ = solve(own, {"D": SPREAD}, u0, lengths=(LENGTH,), dt=DT, steps=8, tolerance=1e-10)
    assert relative(frames[:, 0], grown()[0, :9]) < 1e-8


def test_an_equation_is_solved_on_the_box_it_is_given():
    sizes = {"dt": 0.1, "steps": 3, "trajectories": 1}
    (here,) = solve_trajectories(
        parse_equation(TEXT, dims=1), VALUES, grid=Grid((32,), (2.0,), (-1.0,)), **sizes
    )
    (there,) = solve_trajectories(
        parse_equation(SHIFTED, dims=1), VALUES, grid=Grid((32,), (2.0,)), **sizes
    )
    np.testing.assert_allclose(here, there, atol=1e-7)


def test_an_equation_without_coordinates_is_the_same_anywhere():
    equation = parse_equation("dt(u) = -v*dx(u) + D*lap(u) - u^3", dims=1)
    assert equation.placed_at((-3.0,)) == equation


# --- identification ------------------------------------------------------------------------------


def oscillator(points=128, frames=9, dt=0.025):
    """Eigenfunctions of `i psi_t = -psi_xx/2 + x² psi/2` on [-7.5, 7.5): `(T, 2, N)`, exact."""
    x = -7.5 + 15 / points * np.arange(points)
    t = dt * np.arange(frames)[:, None]
    psi = 0
    for n, share in enumerate((1, 0.7, 0.5j, 0.3)):
        shape = eval_hermite(n, x) * np.exp(-(x**2) / 2) / np.sqrt(2.0**n * factorial(n))
        psi = psi + share * shape * np.exp(-1j * (n + 0.5) * t)
    return np.stack([psi.real, psi.imag], axis=1)


@pytest.mark.parametrize("method", ["flow", "weak", "paper"])
def test_the_potential_of_a_harmonic_oscillator(method):
    """x² is not smooth where the box closes, but the field vanishes there."""
    text = "dt(p) = -D*d2x(q) + k*x^2*q; dt(q) = D*d2x(p) - k*x^2*p"
    equation = parse_equation(text, dims=1, fields=("p", "q"))
    grid = Grid((128,), (15.0,), (-7.5,))
    data = ArrayTrajectories(oscillator()[None], grid, dt=0.025, fields=("p", "q"))
    (found,) = identify_trajectories(equation, None, data, frames=9, method=method)
    # Float32 data: 6e-8 of the state over a change of 2e-2 a frame.
    assert found.estimates["D"] == pytest.approx(0.5, rel=1e-5)
    assert found.estimates["k"] == pytest.approx(0.5, rel=1e-5)


def test_the_command_identifies_with_the_files_coordinates(splatop, tmp_path):
    labelled().to_netcdf(tmp_path / "u.nc")
    np.save(tmp_path / "u.npy", grown())
    bare = ["u.npy", "--axes", "btx", "--lengths", "2", "--dt", str(DT), "--origin", "-1"]
    for source in (["u.nc"], bare):
        _, out, _ = splatop("identify", *source, "--equation", TEXT, "--json")
        for row in json.loads(out)["trajectories"]:
            assert row["a"]["estimate"] == pytest.approx(GROWTH, rel=1e-4)


# --- files ---------------------------------------------------------------------------------------


def test_every_reader_says_where_the_axes_begin(tmp_path):
    u = grown().astype(np.float32)
    x = -1 + LENGTH / POINTS * np.arange(POINTS)
    labelled().to_netcdf(tmp_path / "labelled.nc")
    labelled().to_zarr(tmp_path / "labelled.zarr", consolidated=False)
    with h5py.File(tmp_path / "flat.h5", "w") as file:
        file["tensor"], file["x-coordinate"] = u, x
        file["t-coordinate"] = DT * np.arange(u.shape[1] + 1)
    with h5py.File(tmp_path / "grouped.h5", "w") as file:
        for index, one in enumerate(u):
            file[f"{index:04}/data"] = one[..., None]
            file[f"{index:04}/grid/x"], file[f"{index:04}/grid/t"] = x, DT * np.arange(u.shape[1])
    with h5py.File(tmp_path / "well.h5", "w") as file:
        file["t0_fields/u"] = u
        file["dimensions/x"], file["dimensions/time"] = x, DT * np.arange(u.shape[1])
        file["dimensions"].attrs["spatial_dims"] = ["x"]
    for name in ("labelled.nc", "labelled.zarr", "flat.h5", "grouped.h5", "well.h5"):
        with open_trajectories(tmp_path / name, periodic=True) as data:
            assert data.grid.origin == (-1.0,), name
            assert data.grid.lengths == pytest.approx((2.0,), rel=1e-6), name
        with open_trajectories(tmp_path / name, origin=3.0, periodic=True) as data:
            assert data.grid.origin == (3.0,), name


def test_our_own_file_keeps_the_origin_exactly(tmp_path):
    """-0.1 and 1/3 are no float32, in which The Well keeps coordinates."""
    grid = Grid((8, 8), (1.0, 2.0), (-0.1, 1 / 3))
    data = ArrayTrajectories(np.zeros((1, 2, 1, 8, 8)), grid, dt=0.1, fields=("u",))
    save_trajectories(tmp_path / "u.h5", data)
    with open_trajectories(tmp_path / "u.h5") as again:
        assert again.grid == grid
    with h5py.File(tmp_path / "u.h5", "r+") as file:
        np.testing.assert_allclose(file["dimensions/x"][:], grid.coordinates()[0].ravel(), 1e-6)
        file["dimensions/x"][...] += 0.5  # by another program: its coordinates are what counts
    with open_trajectories(tmp_path / "u.h5") as moved:
        assert moved.grid.origin == pytest.approx((0.4, 1 / 3))


def test_the_commands_show_and_take_the_origin(splatop, tmp_path):
    np.save(tmp_path / "u.npy", grown())
    bare = ["u.npy", "u.h5", "--axes", "btx", "--lengths", "2", "--dt", str(DT)]
    splatop("convert", *bare, "--origin", "-1")
    _, shown, _ = splatop("inspect", "u.h5")
    assert "lengths 2, from -1," in shown
    for wrong, message in (("-1,2", "one finite number"), ("left", "an origin such as")):
        code, _, said = splatop("convert", *bare, "--origin", wrong)
        assert code == 1
        assert message in said
    own = ["generate", "--dims", "1", "--length", "2", "--dt", "0.1", "--steps", "2"]
    own += ["--trajectories", "1", "--points", "32", "--coefficients", "D=0.02,a=0.8"]
    splatop(*own, "--origin", "-1", "--equation", TEXT, "--out", "here.h5")
    splatop(*own, "--equation", SHIFTED, "--out", "there.h5")
    here, there = (open_trajectories(tmp_path / name) for name in ("here.h5", "there.h5"))
    assert (here.grid.origin, there.grid.origin) == ((-1.0,), (0.0,))
    np.testing.assert_allclose(here.window(0, 0, 3), there.window(0, 0, 3), atol=1e-6)


# --- models --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_fit_predicts_as_one_of_the_shifted_equation(fitted):
    u = grown()[:, :, None].astype(np.float32)
    bare = physics_of(u, dt=DT, lengths=(LENGTH,), origin=-1.0)
    shifted = physics_of(u, SHIFTED, dt=DT, lengths=(LENGTH,))
    found = bare.rollout(u[0, 0], 8)
    np.testing.assert_allclose(found, shifted.rollout(u[0, 0], 8), atol=2e-6)
    assert relative(found, u[0, 1:9]) < 1e-5
    assert bare.evaluate(u).rl2_mean == pytest.approx(shifted.evaluate(u).rl2_mean, abs=1e-6)
    assert bare.evaluate().rl2_mean < 1e-5
    assert bare.identify(u[0], unknown=["a"]).estimates["a"] == pytest.approx(GROWTH, rel=1e-4)
    state = labelled().isel(trajectory=0, time=0)
    predicted = fitted.rollout(state, 8)
    np.testing.assert_array_equal(predicted.x, state.x)
    np.testing.assert_allclose(predicted.u, found[:, 0], atol=2e-6)


def test_a_models_file_and_its_export_know_the_origin(fitted, tmp_path):
    model = library.load(fitted.save(tmp_path / "model.safetensors"))
    assert model.spec.origin == (-1.0,)
    u = grown()[:, :1].astype(np.float32)
    exported = library.export_model(model, points=POINTS, platforms=("cpu",))
    assert exported.description["origin"] == [-1.0]
    found = jax.export.deserialize(bytearray(exported.function)).call(u)
    assert relative(found, grown()[:, 1:2]) < 1e-5
    np.testing.assert_allclose(found[0], model.step(u[0]), atol=1e-6)


def test_a_description_without_an_origin_begins_at_zero(fitted):
    old = {k: v for k, v in fitted.model.spec.as_dict().items() if k != "origin"}
    assert ModelSpec.from_dict(old).origin == (0.0,)


def test_data_that_begin_elsewhere(fitted, tmp_path):
    """Refused if the equation says where it acts, else predicted all the same."""
    moved = labelled(begin=0.0)
    for attempt in (
        lambda: fitted.rollout(moved.isel(trajectory=0, time=0), 2),
        lambda: fitted.evaluate(moved),
    ):
        with pytest.raises(SplatopError, match="begin at -1, as where the model was trained"):
            attempt()
    anywhere = physics_of(labelled(), "dt(u) = D*lap(u) + a*u")
    state = moved.isel(trajectory=0, time=0)
    found = anywhere.rollout(state, 2)
    np.testing.assert_array_equal(found.x, state.x)
    np.testing.assert_array_equal(
        found.u, anywhere.rollout(labelled().isel(trajectory=0, time=0), 2).u
    )
    assert anywhere.evaluate(moved).rl2_mean > 0


def test_commands_from_training_to_rollout(splatop, tmp_path):
    labelled().to_netcdf(tmp_path / "u.nc")
    labelled(begin=0.0).to_netcdf(tmp_path / "moved.nc")
    known = ["--coefficients", f"D={SPREAD},a={GROWTH}"]
    splatop("train", "--data", "u.nc", "--equation", TEXT, *known, "--out", "run",
            "--model", "physics", "--preset", "smoke")  # fmt: skip
    splatop("rollout", "run", "--data", "u.nc", "--out", "ahead.h5", "--steps", "10")
    with open_trajectories(tmp_path / "ahead.h5") as ahead:
        assert ahead.grid.origin == (-1.0,)
        assert relative(ahead.window(0, 0, 11)[:, 0], grown()[0, :11]) < 1e-5
    _, out, _ = splatop("evaluate", "run", "--data", "u.nc", "--steps", "10", "--json")
    measured = json.loads(out)
    assert measured["rl2_mean"] < 1e-5
    assert measured["data"]["origin"] == [-1.0]
    code, _, said = splatop("rollout", "run", "--data", "moved.nc", "--out", "no.h5")
    assert code == 1
    assert "begin at -1" in said
    assert not (tmp_path / "no.h5").exists()


def test_a_coarser_grid_begins_where_the_fine_one_does():
    from splatop.training.coarsened import coarsened

    grid = Grid((16, 16), (2.0, 2.0), (-1.0, 4.0))
    u = random_field(replace(grid, origin=()), 3)
    data = ArrayTrajectories(u[None, None], grid, dt=0.1, fields=("u",))
    assert coarsened(data, (8, 8)).grid == Grid((8, 8), (2.0, 2.0), (-1.0, 4.0))

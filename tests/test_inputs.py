"""Known fields that drive the others, against analytic solutions."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import splatop
from splatop import discover
from splatop.cli.app import app
from splatop.data import (
    ArrayTrajectories,
    in_memory,
    open_trajectories,
    save_trajectories,
    split,
)
from splatop.data.held import as_trajectories
from splatop.data.inputs import with_inputs
from splatop.discover.learn import learn
from splatop.discover.shares import shares_of_change
from splatop.equation import (
    Equation,
    domain_from_text,
    format_equation,
    parse_equation,
    parse_partial_equation,
)
from splatop.errors import SplatopError
from splatop.export import export_model
from splatop.grid import Grid
from splatop.identify import identify_trajectories
from splatop.numerics import Numerics, build_physics
from splatop.signal import Signal
from splatop.stepper import rollout
from splatop.training.found_terms import physics_of
from test_time import DT, OMEGA, TAU, A, D, forced

EQUATION = "dt(u) = D*lap(u) + f"
X = np.arange(32) / 32


def heating(t):
    return A * np.sin(OMEGA * t) * np.sin(TAU * X)


def driven(frames=60, t0=0.4):
    """Heat with a forcing that the data hold as a field, solved by hand."""
    times = t0 + DT * np.arange(frames)
    states = np.stack([[forced(t, X, t0=t0), heating(t)] for t in times])[None]
    return ArrayTrajectories(states, Grid((32,), (1.0,)), dt=DT, fields=("u", "f"), times=times)


def test_signals_are_cubic_between_frames():
    times = np.array([0.0, 0.5, 0.7, 1.5, 2.0, 2.2])
    cubic = Signal(np.float64(times**3 - 2 * times)[:, None], times)
    with jax.enable_x64(True):
        for t in (0.0, 0.3, 0.6, 1.1, 1.9, 2.2):
            assert abs(float(cubic(t)[0]) - (t**3 - 2 * t)) < 1e-12
        assert float(cubic(5.0)[0]) == pytest.approx(2.2**3 - 4.4)  # held
        assert float(Signal(np.ones((1, 2)), np.zeros(1))(3.0)[1]) == 1.0


@pytest.mark.parametrize("more", [[], ["--noise", "1e-6"]])
def test_some_trajectories_keep_their_inputs(tmp_path, more):
    save_trajectories(tmp_path / "heat.h5", driven())
    asked = ["--inputs", "f", "--equation", EQUATION, "--trajectories", "1", "--json"]
    done = CliRunner().invoke(app, ["identify", str(tmp_path / "heat.h5"), *asked, *more])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["trajectories"][0]["D"]["estimate"]
    assert found == pytest.approx(D, rel=1e-3)


def test_a_field_without_an_equation_may_be_an_input():
    with pytest.raises(SplatopError, match="--fields u --inputs f"):
        parse_equation(EQUATION, dims=1, fields=("u", "f"))


def test_an_equation_reads_its_inputs():
    equation = parse_equation(EQUATION, dims=1, inputs=("f",))
    assert equation.inputs == ("f",)
    assert equation.coefficient_names == ("D",)
    assert equation.term_names == ("diffusion", "forcing")
    assert format_equation(equation) == "dt(u) = D*d2x(u) + f"
    with pytest.raises(SplatopError, match="is an input"):
        parse_equation("dt(u) = f; dt(f) = u", dims=1, inputs=("f",))


@pytest.mark.parametrize(("scheme", "substeps"), [("rk4", 8), ("etdrk4", 4)])
def test_transport_by_a_wind_that_changes(scheme, substeps):
    """u_t = -w(t) u_x moves a profile by the integral of w: a product with an input, also of a
    derivative."""
    times = 0.1 * np.arange(21)
    wind = Signal(np.cos(times)[:, None] * np.ones(32), times)
    equation = parse_equation("dt(u) = -w*dx(u) - u*dx(w)", dims=1, inputs=("w",))
    numerics = Numerics("sharp", (6.0,), 0.0, (24,), substeps, integrator=scheme)
    physics = build_physics(equation, numerics, lengths=(1.0,), dt=0.1)
    with jax.enable_x64(True):
        u = jnp.asarray(np.sin(TAU * X)[None])
        frames = rollout(physics, u, {"t": 0.0, "w": wind}, steps=20)
    # Cubic interpolation in between: 3/128 h^4 |w''''| is 2e-6, times the wave number and the time.
    assert np.abs(frames[-1, 0] - np.sin(TAU * (X - np.sin(2.0)))).max() < 5e-5


def test_walls_with_inputs():
    grid = Grid((33,), (1.0,), layout=("ends",))
    x = grid.coordinates()[0]
    domain = domain_from_text("x: u = 0", lengths=(1.0,), fields=("u",))
    equation = parse_equation(EQUATION, dims=1, inputs=("f",))
    numerics = Numerics("none", (), 0.0, (16,), 2, integrator="etdrk4")
    physics = build_physics(
        equation, numerics, lengths=(1.0,), dt=DT, domain=domain, layout=("ends",)
    )
    times = 0.4 + DT * np.arange(21)
    values = np.stack([A * np.sin(OMEGA * t) * np.sin(TAU * x) for t in times])
    with jax.enable_x64(True):
        start = jnp.asarray(forced(0.4, x)[None])
        given = {"D": D, "t": 0.4, "f": Signal(values, times)}
        frames = rollout(physics, start, given, steps=20)
    # Cubic interpolation: 3/128 (0.3)^4 of the forcing, over two units of time.
    assert np.abs(frames[-1, 0] - forced(2.4, x)).max() < 3e-4


@pytest.mark.parametrize(
    "method", ["flow", "weak", pytest.param("trajectory", marks=pytest.mark.slow)]
)
def test_coefficients_beside_inputs(method):
    data = with_inputs(driven(), ("f",))
    assert data.fields == ("u",)
    equation = parse_equation("dt(u) = D*lap(u) + c*f", dims=1, inputs=("f",))
    (found,) = identify_trajectories(equation, None, data, method=method)
    assert found.method == method
    # Cubic interpolation of the inputs between frames leaves 2e-4 of them.
    assert abs(found.estimates["c"] - 1) < 1e-3
    assert abs(found.estimates["D"] - D) < 1e-3 * D + 1e-4


@pytest.mark.slow
def test_a_driven_surrogate_learns_from_its_inputs(tmp_path):
    """The equation leaves the input out: only the operator can know of it."""
    data = with_inputs(driven(frames=200), ("f",))
    fitted = splatop.fit(
        data,
        "dt(u) = D*lap(u)",
        coefficients={"D": D},
        settings={"phases": "0:150", "batch": 16, "horizon": 1, "modes": 3, "warmup": 10},
        hold_out=0,
    )
    assert fitted.model.spec.inputs == ("f",)
    alone, with_operator = (
        fitted.model.record["measured"][name] for name in ("physics", "with_operator")
    )
    # Without the input it would be guessing: the forcing turns by a third of a radian a frame.
    assert with_operator < 0.6 * alone
    fitted.save(tmp_path / "model.safetensors")
    again = splatop.load(tmp_path / "model.safetensors")
    u, f = data.window(0, 5, 1)[0], np.stack([heating(0.4 + DT * n) for n in range(5, 9)])
    given = {"f": Signal(jnp.asarray(f, jnp.float32), jnp.asarray(DT * np.arange(4), jnp.float32))}
    frames = again.rollout(u, steps=3, coefficients={"t": 0.0, **given})
    np.testing.assert_allclose(frames, fitted.rollout(u, 3, inputs={"f": f}), rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_from_a_file_to_a_forecast(tmp_path):
    path, run, out = (str(tmp_path / name) for name in ("data.h5", "run", "out.h5"))
    save_trajectories(path, driven())
    settings = ["--set", "model=physics", "--coefficients", f"D={D}", "--periodic"]
    command = ["train", "--data", path, "--equation", EQUATION, "--inputs", "f", "--out", run]
    done = CliRunner().invoke(app, [*command, *settings], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    ahead = ["rollout", run, "--data", path, "--out", out, "--periodic"]
    done = CliRunner().invoke(app, [*ahead, "--steps", "50"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    with open_trajectories(out, periodic=True) as read:
        assert read.fields == ("u",)
        truth = driven().array[0, :51, :1]
        assert np.abs(read.window(0, 0, 51) - truth).max() < 1e-3
    done = CliRunner().invoke(app, [*ahead, "--steps", "80"])
    assert "--hold-inputs" in str(done.exception)
    done = CliRunner().invoke(app, [*ahead, "--steps", "80", "--hold-inputs"])
    assert done.exit_code == 0, done.output
    save_trajectories(tmp_path / "more.h5", driven(frames=90))
    more = ["--steps", "80", "--inputs-file", str(tmp_path / "more.h5")]
    done = CliRunner().invoke(app, [*ahead, *more], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    with open_trajectories(out, periodic=True) as read:
        assert np.abs(read.window(0, 0, 81) - driven(frames=90).array[0, :81, :1]).max() < 1e-3


def test_inputs_are_checked():
    with pytest.raises(SplatopError, match="unknown field"):
        with_inputs(driven(), ("g",))
    with pytest.raises(SplatopError, match="not all of them"):
        with_inputs(driven(), ("u", "f"))


def test_coefficients_beside_inputs_in_a_window_of_a_flow():
    """Vortices that a wind carries and viscosity wears out, exactly, in a window whose edges are
    open; the pressure is given, as in `cylinder_nektar_wake.mat`."""
    nu, k, wind = 0.01, 1.5, 0.8
    grid = Grid((32, 24), (4.0, 2.0), (1.0, -1.0), layout=("ends", "ends"))
    x, y = grid.coordinates()
    frames = []
    for t in 0.1 * np.arange(16):
        size, a, b = 0.4 * np.exp(-2 * nu * k**2 * t), k * (x - wind * t), k * y + 0.3
        u, v = wind + size * np.cos(a) * np.sin(b), -size * np.sin(a) * np.cos(b)
        frames.append([u, v, -(size**2) / 4 * (np.cos(2 * a) + np.cos(2 * b))])
    whole = ArrayTrajectories(
        np.array(frames, np.float32)[None], grid, dt=0.1, fields=("u", "v", "p")
    )
    text = "all: free"
    whole.domain = domain_from_text(
        text, lengths=grid.lengths, origin=grid.origin, fields=("u", "v", "p")
    )
    data = with_inputs(whole, ("p",))
    equation = parse_equation(
        "dt(u) = -c*(u*dx(u) + v*dy(u)) - dx(p) + nu*lap(u);"
        "dt(v) = -c*(u*dx(v) + v*dy(v)) - dy(p) + nu*lap(v)",
        dims=2,
        inputs=("p",),
    )
    (found,) = identify_trajectories(equation, None, data)
    assert found.trusted
    # Single precision of the frames, and what the Gaussians leave of the waves: 1e-3 of lap(u).
    assert found.estimates["c"] == pytest.approx(1, abs=1e-3)
    assert found.estimates["nu"] == pytest.approx(nu, rel=0.01)


def test_an_exported_model_takes_its_inputs(tmp_path):
    """Frames of the input around the steps are arguments of the function."""
    fitted = splatop.fit(
        driven(),
        EQUATION,
        inputs=("f",),
        coefficients={"D": D},
        settings={"model": "physics"},
        hold_out=0,
    )
    made = export_model(fitted.model, steps=3, platforms=("cpu",))
    assert made.description["driven_by"] == ["f"]
    assert [one["name"] for one in made.description["inputs"]] == [
        "state",
        "coefficients",
        "inputs",
        "input_times",
    ]
    function = jax.export.deserialize(bytearray(made.function))
    times = 1.0 + DT * np.arange(-1, 5)
    given = np.stack([heating(t) for t in times])[None, :, None]
    u = forced(1.0, X)[None, None]
    arguments = (u, [[1.0]], given, times[None])
    frames = function.call(*(np.asarray(one, np.float32) for one in arguments))
    truth = np.stack([forced(1.0 + DT * n, X) for n in (1, 2, 3)])
    # Cubic interpolation in the middle of four frames: 3/128 (0.3)^4 of the forcing.
    assert np.abs(frames[0, :, 0] - truth).max() < 3e-4


def test_what_is_not_known_may_depend_on_inputs():
    """`?` is f^2 here, which no function of u is: its learned term reads the input."""
    times = DT * np.arange(40)
    starts = np.array([[0.3], [1.1], [2.0]])  # of the forcing's phase, one for each trajectory
    f = np.cos(OMEGA * times + starts)[..., None] * np.sin(TAU * X) + 0.5 * np.cos(TAU * X)
    # The antiderivative of f^2, by its products of sines and cosines.
    phase = (OMEGA * times + starts)[..., None]
    square, cross = phase / 2 + np.sin(2 * phase) / 4, np.sin(phase)
    whole = (square * np.sin(TAU * X) ** 2 + cross * np.sin(TAU * X) * np.cos(TAU * X)) / OMEGA
    whole = whole + times[:, None] * 0.25 * np.cos(TAU * X) ** 2
    states = np.stack([whole, f], axis=2).astype(np.float32)
    data = with_inputs(
        ArrayTrajectories(states, Grid((32,), (1.0,)), dt=DT, fields=("u", "f")), ("f",)
    )
    partial = parse_partial_equation("dt(u) = ?(f)", dims=1, fields=("u",), inputs=("f",))
    learned = learn(data, partial, known=None, coefficients={}, steps=1)
    assert learned.names == ("f",)
    assert learned.explained > 1 - 1e-4
    values = jnp.asarray([[-0.5, 0.2, 0.8]], jnp.float32)
    np.testing.assert_allclose(learned.term.values(values)[0], values[0] ** 2, atol=3e-3)
    whole = Equation((learned.term,), ("u",))
    assert shares_of_change((whole, {}), None, data)["left"] < 1e-3
    physics = physics_of(whole, {}, data)
    frames = rollout(physics, jnp.asarray(data.window(0, 0, 1)[0]), data.drive(0, 0, 21), steps=20)
    truth = data.window(0, 1, 20)
    assert np.abs(frames - truth).max() < 0.01 * np.ptp(truth)


def test_what_is_told_of_data_holds_for_parts_of_them(tmp_path):
    """Edges, places and times: a model of inputs between walls was one of a periodic box."""
    x = np.linspace(0, 1, 17)
    states = np.stack([[np.sin(np.pi * x) * np.exp(-0.1 * n) for n in range(12)]] * 2)
    np.savez(tmp_path / "data.npz", x=x, u=states[0], f=states[1])
    told = {"boundary": "x: u = 0", "inputs": ("f",), "dt": 0.1, "t0": 3.0, "axes": "tx"}
    for data in (
        open_trajectories(tmp_path / "data.npz", **told),
        as_trajectories(
            np.stack(list(states), axis=1),
            dt=0.1,
            lengths=1.0,
            fields=("u", "f"),
            boundary="x: u = 0",
            sampling="ends",
            inputs=("f",),
            t0=3.0,
        ),
    ):
        training = in_memory(split(data).training)
        assert training.fields == ("u",)
        assert training.inputs == ("f",)
        assert training.domain == data.domain
        assert training.domain.sides == ("x0", "x1")
        assert training.grid.layout == ("ends",)
        assert training.times[0] == 3.0
        assert training.together.domain == data.domain


@pytest.mark.slow
def test_inputs_between_uneven_frames():
    times = 0.4 + np.cumsum(np.tile([0.1, 0.15, 0.2], 13))
    states = np.stack([[forced(t, X, t0=times[0]), heating(t)] for t in times])[None]
    grid = Grid((32,), (1.0,))
    data = ArrayTrajectories(
        states.astype(np.float32), grid, dt=0.1, fields=("u", "f"), times=times
    )
    # The length of a step is no coefficient of a frame.
    assert set(with_inputs(data, ("f",)).moments(np.array([[0, 1], [0, 4]]))) == {"t", "f"}
    fitted = splatop.fit(
        data,
        EQUATION,
        inputs=("f",),
        coefficients={"D": D},
        settings={"model": "physics"},
        hold_out=0,
    )
    # Cubic interpolation over up to 0.2: 3/128 (0.6)^4 of the forcing over the longest interval.
    assert fitted.evaluate().rl2_mean < 2e-3


@pytest.mark.parametrize("noise", [0.0, 0.005])
def test_terms_with_inputs_are_found(noise):
    """Any field obeys an equation with the right force: here two waves, and a force made for them,
    which acts by itself and times the field."""
    x, t = 2 * np.pi * np.arange(48) / 48, 0.1 * np.arange(61)[:, None]
    sides = ((1, 0.5, 0.3, 0.0), (2, -0.3, 0.5, 1.0), (3, 0.3, 0.2, 2.0))
    u = 0.4 + sum(a * np.cos(k * x - w * t + p) for k, w, a, p in sides)
    rate = sum(a * w * np.sin(k * x - w * t + p) for k, w, a, p in sides)
    second = -sum(a * k**2 * np.cos(k * x - w * t + p) for k, w, a, p in sides)
    f = (rate - 0.1 * second) / (1.5 - 0.5 * u)
    data = np.stack([u, f], axis=1)
    data = data + noise * np.random.default_rng(0).standard_normal(data.shape)
    how = {"dt": 0.1, "lengths": 2 * np.pi, "fields": ("u", "f"), "inputs": ("f",)}
    found = discover(data, "dt(u) = ?", terms="u, f, dx(u), d2x(u), u*f, f^2, u^2, dx(f)", **how)
    told = {term.text: term.coefficient for term in found.terms}
    assert set(told) == {"f", "d2x(u)", "f*u"}
    tolerance = 0.03 if noise else 1e-3
    assert told == pytest.approx({"f": 1.5, "d2x(u)": 0.1, "f*u": -0.5}, rel=tolerance)
    beside = discover(data, "dt(u) = 1.5*f + ?(u, f, d2x(u))", budget=0.0, **how)
    assert {term.text for term in beside.terms} == {"d2x(u)", "f*u"}
    assert parse_equation(beside.equation, dims=1, inputs=("f",)).inputs == ("f",)

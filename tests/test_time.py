"""Equations, edges and data that depend on time, against analytic solutions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import splatop
from splatop.cli.app import app
from splatop.data import ArrayTrajectories, open_trajectories, save_trajectories
from splatop.data.held import as_trajectories
from splatop.data.times import frame_times
from splatop.equation import domain_from_text, format_equation, parse_equation
from splatop.errors import SplatopError
from splatop.grid import Grid
from splatop.identify import identify_trajectories
from splatop.numerics import Numerics, build_physics
from splatop.solver import solve
from splatop.stepper import course, rollout
from splatop.walls import solve_between_walls

TAU = 2 * np.pi
D, A, OMEGA = 0.02, 0.7, 3.0
DT = 0.1
FORCED = "dt(u) = D*lap(u) + A*sin(omega*t)*sin(2*pi*x)"
VALUES = {"D": D, "A": A, "omega": OMEGA}
# What u = sin(omega t + 2x) needs to be a solution; it moves the values and slopes at both ends.
CARRIED = "dt(u) = D*lap(u) + omega*cos(omega*t + 2*x) + 4*D*sin(omega*t + 2*x)"


def forced(t, x, t0=0.4, a0=1.0):
    """Heat with a forcing in one mode: a' = -k a + A sin(omega t), solved by hand."""
    k = D * TAU**2

    def particular(t):
        return A * (k * np.sin(OMEGA * t) - OMEGA * np.cos(OMEGA * t)) / (k**2 + OMEGA**2)

    decay = np.exp(-k * (t - t0))
    return (a0 * decay + particular(t) - decay * particular(t0)) * np.sin(TAU * x)


def forced_data(frames=41, dt=0.1, t0=0.4, points=32, times=None, **about):
    x = np.arange(points) / points
    times = t0 + dt * np.arange(frames) if times is None else times
    states = np.stack([[forced(t, x, t0=times[0])] for t in times])[None]
    grid = Grid((points,), (1.0,))
    return ArrayTrajectories(states, grid, dt=dt, fields=("u",), times=times, **about)


@pytest.fixture
def double():
    with jax.enable_x64(True):
        yield


def test_the_time_has_a_text():
    equation = parse_equation(FORCED, dims=1)
    assert equation.coefficient_names == ("D", "A", "omega")
    assert equation.uses_time
    assert equation.rates == {"omega"}
    text = format_equation(equation)
    assert text == "dt(u) = D*d2x(u) + A*sin(2*pi*x)*sin(omega*t)"
    assert parse_equation(text, dims=1) == equation
    assert not parse_equation("dt(u) = D*lap(u)", dims=1).uses_time


@pytest.mark.parametrize(("scheme", "fewest"), [("rk4", 6), ("etdrk4", 1)])
def test_stages_have_a_time_of_their_own(scheme, fewest, double):
    """Order 4 only if each stage takes the forcing at its own time: at the step's beginning it
    would be 1."""
    x = np.arange(16) / 16
    equation = parse_equation(FORCED, dims=1)
    errors = []
    for substeps in (fewest, 2 * fewest):
        numerics = Numerics(
            "sharp", (4.0,), 0.0, (16,), substeps, integrator=scheme, jets="spectral"
        )
        physics = build_physics(equation, numerics, lengths=(1.0,), dt=0.5)
        assert not physics.autonomous
        u = jnp.asarray(forced(0.4, x)[None])
        frames = rollout(physics, u, {**VALUES, "t": 0.4}, steps=4)
        errors.append(np.abs(frames[-1, 0] - forced(2.4, x)).max())
    # 16 times less at half the step; a part of a higher order may add or take a fifth.
    assert 12 < errors[0] / errors[1] < 20
    assert errors[1] < 1e-4


def test_the_reference_solver_begins_at_a_time():
    x = np.arange(16) / 16
    equation = parse_equation(FORCED, dims=1)
    u0 = forced(0.4, x)[None]
    frames, _ = solve(equation, VALUES, u0, lengths=(1.0,), dt=0.5, steps=4, t0=0.4)
    assert np.abs(frames[-1, 0] - forced(2.4, x)).max() < 1e-7


@pytest.mark.parametrize(
    "edges",
    [
        "x0: u = sin(omega*t); x1: u = sin(omega*t + 2)",
        "x0: u = sin(omega*t); x1: dn(u) = 2*cos(omega*t + 2)",
    ],
)
def test_walls_that_move(edges, double):
    """The lift carries what is set at the edges, and its rate of change enters: without that the
    error would be of order one."""
    grid = Grid((33,), (1.0,), layout=("ends",))
    x = grid.coordinates()[0]
    equation = parse_equation(CARRIED, dims=1)
    domain = domain_from_text(edges, lengths=(1.0,), fields=("u",))
    values = {"D": D, "omega": OMEGA}
    errors = []
    for substeps in (1, 2):
        numerics = Numerics("none", (), 0.0, (16,), substeps, integrator="etdrk4")
        physics = build_physics(
            equation, numerics, lengths=(1.0,), dt=0.25, domain=domain, layout=("ends",)
        )
        assert not physics.autonomous
        start = jnp.asarray(np.sin(OMEGA * 0.4 + 2 * x)[None])
        frames = rollout(physics, start, {**values, "t": 0.4}, steps=4)
        errors.append(np.abs(frames[-1, 0] - np.sin(OMEGA * 1.4 + 2 * x)).max())
    assert 12 < errors[0] / errors[1] < 20
    assert errors[1] < 5e-5


@pytest.mark.slow
def test_the_reference_between_moving_walls():
    grid = Grid((31,), (1.0,), layout=("ends",))
    x = grid.coordinates()[0]
    edges = "x0: u = sin(omega*t); x1: dn(u) = 2*cos(omega*t + 2)"
    domain = domain_from_text(edges, lengths=(1.0,), fields=("u",))
    frames, _ = solve_between_walls(
        parse_equation(CARRIED, dims=1),
        {"D": D, "omega": OMEGA},
        np.sin(OMEGA * 0.4 + 2 * x)[None],
        domain=domain,
        grid=grid,
        dt=0.25,
        steps=4,
        t0=0.4,
    )
    assert np.abs(frames[-1, 0] - np.sin(OMEGA * 1.4 + 2 * x)).max() < 1e-8


def test_steps_of_any_length(double):
    x = np.arange(16) / 16
    equation = parse_equation(FORCED, dims=1)
    times = np.array([0.4, 0.6, 1.7, 2.4])
    for scheme, substeps in (("rk4", 24), ("etdrk4", 8)):
        numerics = Numerics(
            "sharp", (4.0,), 0.0, (16,), substeps, integrator=scheme, jets="spectral"
        )
        physics = build_physics(equation, numerics, lengths=(1.0,), dt=0.5)
        when = {"t": jnp.asarray(times[:-1]), "dt": jnp.asarray(np.diff(times))}
        u = jnp.asarray(forced(0.4, x)[None])
        frames = rollout(physics, u, {**VALUES, **when}, steps=3)
        for t, frame in zip(times[1:], frames, strict=True):
            assert np.abs(frame[0] - forced(t, x)).max() < 2e-6


def test_the_course_of_a_rollout():
    physics = build_physics(
        parse_equation("dt(u) = D*lap(u)", dims=1),
        Numerics("sharp", (4.0,), 0.0, (16,), 1, jets="spectral"),
        lengths=(1.0,),
        dt=0.5,
    )
    assert course(physics, {"D": 1.0}, 3) == {}
    np.testing.assert_allclose(course(physics, {"t": 2.0}, 3)["t"], [2.0, 2.5, 3.0])
    np.testing.assert_allclose(course(physics, {"t": 2.0}, 2, first=1)["t"], [2.5, 3.0])
    with pytest.raises(SplatopError, match="one for each step"):
        course(physics, {"t": jnp.zeros(2)}, 3)


def test_the_frequency_is_identified():
    """A, omega and D from clean frames of many periods, without a value to start from."""
    data = forced_data(frames=81)
    (found,) = identify_trajectories(parse_equation(FORCED, dims=1), None, data)
    assert found.method == "flow"
    assert found.trusted
    for name, value in VALUES.items():
        # Frames are in single precision: 1e-7 of the field, over a change of a tenth of it.
        assert abs(found.estimates[name] - value) < 1e-4 * value


def test_the_amplitude_is_identified_by_the_weak_form():
    data = forced_data()
    (found,) = identify_trajectories(
        parse_equation(FORCED, dims=1), None, data, known={"omega": OMEGA}, method="weak"
    )
    assert found.method == "weak"
    assert abs(found.estimates["A"] - A) < 1e-4
    assert abs(found.estimates["D"] - D) < 1e-4


def test_uneven_frames_are_identified():
    times = 0.4 + np.cumsum(np.tile([0.05, 0.1, 0.15], 10))
    data = forced_data(frames=30, times=times)
    assert not data.even
    (found,) = identify_trajectories(
        parse_equation(FORCED, dims=1), None, data, known={"omega": OMEGA}
    )
    assert found.trusted
    assert abs(found.estimates["A"] - A) < 1e-3
    assert abs(found.estimates["D"] - D) < 1e-3


def test_uneven_frames_are_interpolated_when_asked(tmp_path):
    """sin(t) at steps of 0.05 to 0.15: a spline of fifth degree errs by about 0.15^6 / 720 = 2e-8,
    a few times that at the ends; single precision is 6e-8."""
    times = 0.4 + np.cumsum(np.tile([0.05, 0.1, 0.15], 10))
    waves = np.sin(times)[:, None] * np.sin(2 * np.pi * np.arange(16) / 16)
    where = {"dt": 0.1, "times": times, "fields": ("u",)}
    data = ArrayTrajectories(np.float32(waves)[None, :, None], Grid((16,), (1.0,)), **where)
    save_trajectories(tmp_path / "a.h5", data)
    with open_trajectories(tmp_path / "a.h5", periodic=True, resample=True) as read:
        assert read.even
        assert read.frames == 30
        even = np.linspace(times[0], times[-1], 30)
        np.testing.assert_allclose(read.times, even, rtol=1e-12)
        truth = np.sin(even)[:, None] * np.sin(2 * np.pi * np.arange(16) / 16)
        assert np.abs(read.read(0, 0, 30)[:, 0] - truth).max() < 1e-6
        assert np.abs(read.read(0, 11, 4)[:, 0] - truth[11:15]).max() < 1e-6
        assert "30 uneven times" in read.attributes["times"]


def test_frames_too_far_apart_to_interpolate_are_warned_of(tmp_path):
    """Three radians a frame: every other one says nothing of those between."""
    times = np.cumsum(np.tile([2.0, 3.0, 4.0], 10))
    waves = np.sin(times)[:, None] * np.sin(2 * np.pi * np.arange(16) / 16)
    where = {"dt": 3.0, "times": times, "fields": ("u",)}
    data = ArrayTrajectories(np.float32(waves)[None, :, None], Grid((16,), (1.0,)), **where)
    save_trajectories(tmp_path / "a.h5", data)
    with pytest.warns(UserWarning, match="so far apart nobody knows"):
        open_trajectories(tmp_path / "a.h5", periodic=True, resample=True).close()


def test_files_keep_their_times(tmp_path):
    for times in (0.4 + 0.1 * np.arange(30), 0.4 + np.cumsum(np.tile([0.05, 0.1, 0.15], 10))):
        save_trajectories(tmp_path / "a.h5", forced_data(times=times))
        with open_trajectories(tmp_path / "a.h5", periodic=True) as read:
            np.testing.assert_allclose(read.times, times, rtol=1e-12)
            assert read.even == forced_data(times=times).even
        (tmp_path / "a.h5").unlink()


def test_stamps():
    dt, times = frame_times(np.float32(3.0) + np.arange(5, dtype=np.float32) / 10, source="a")
    assert dt == pytest.approx(0.1)
    assert times[0] == 3.0
    assert frame_times(np.array([0.0, 1.0, 3.0, 4.0]), source="a")[0] == 1.0
    for wrong, said in (([0.0, 2.0, 1.0], "one before it"), ([0.0, 1.0, 1.0], "the same again")):
        with pytest.raises(SplatopError, match=said):
            frame_times(np.array(wrong), source="a")


def test_data_without_times_are_refused(tmp_path):
    array = forced_data().array
    with pytest.raises(SplatopError, match="t0"):
        splatop.fit(array, FORCED, dt=0.1, lengths=(1.0,), coefficients=VALUES)
    np.save(tmp_path / "a.npy", array)
    reading = ["--axes", "btcx", "--lengths", "1", "--dt", "0.1", "--periodic"]
    command = ["identify", str(tmp_path / "a.npy"), "--equation", FORCED, *reading]
    done = CliRunner().invoke(app, command)
    assert done.exit_code != 0
    assert "--t0" in str(done.exception)


@pytest.mark.slow
def test_a_forced_model_from_data_to_forecast():
    """Physics alone, from arrays: the error of 30 frames is that of single precision."""
    data = forced_data(frames=60)
    fitted = splatop.fit(
        data.array,
        FORCED,
        dt=0.1,
        t0=0.4,
        lengths=(1.0,),
        coefficients=VALUES,
        settings={"model": "physics"},
    )
    x = np.arange(32) / 32
    frames = fitted.rollout(data.array[0, 10], 30, t0=1.4)
    assert np.abs(frames[-1, 0] - data.array[0, 40, 0]).max() < 1e-5
    assert np.abs(data.array[0, 40, 0] - forced(4.4, x)).max() < 1e-6
    with pytest.raises(SplatopError, match="t0"):
        fitted.rollout(data.array[0, 10], 3)
    assert fitted.evaluate(steps=5).rl2_mean < 1e-5


@pytest.mark.slow
def test_one_model_for_several_intervals():
    """Growth that the equation leaves out, at three intervals: the operator learns it in proportion
    to the interval, and predicts at times of one's own."""
    x = np.arange(32) / 32
    times = np.cumsum(np.tile([0.05, 0.1, 0.2], 40))
    rng = np.random.default_rng(0)
    waves, phases = (1, 2), rng.uniform(0, TAU, (3, 2))

    def solution(t, phase):
        rates = [np.exp((0.5 - D * (TAU * k) ** 2) * (t - times[0])) for k in waves]
        return sum(r * np.sin(TAU * k * x + p) for r, k, p in zip(rates, waves, phase, strict=True))

    states = np.stack([[[solution(t, phase)] for t in times[:24]] for phase in phases])
    fitted = splatop.fit(
        states.astype(np.float32),
        "dt(u) = D*lap(u)",
        coefficients={"D": D},
        times=times[:24],
        lengths=(1.0,),
        settings={"phases": "0:150", "batch": 16, "horizon": 1, "modes": 3, "warmup": 10},
        hold_out=0,
    )
    assert fitted.model.spec.intervals == pytest.approx((0.05, 0.2))
    record = fitted.model.record["measured"]
    assert record["with_operator"] < 0.5 * record["physics"]
    asked = times[0] + np.array([0.15, 0.3, 0.45])  # between those it saw
    frames = fitted.rollout(states[0, 0].astype(np.float32), times=asked, t0=times[0])
    error = np.abs(frames[-1, 0] - solution(asked[-1], phases[0])).max()
    alone = np.abs(solution(asked[-1], phases[0]) * (1 - np.exp(-0.5 * 0.45))).max()
    assert error < 0.5 * alone


def test_edges_that_move_are_compared_with_the_data_at_their_times():
    """`sin(2t + x)` between its own values; on a disk as well, from points."""
    x, t = np.linspace(0, 1, 33), 0.3 + 0.05 * np.arange(41)
    u = np.sin(2 * t[:, None] + x)[:, None]
    told = {"lengths": (1.0,), "times": t, "sampling": "ends"}
    data = as_trajectories(u, boundary="x0: u = sin(2*t); x1: u = sin(2*t + 1)", **told)
    assert not data.domain.periodic[0]
    with pytest.raises(SplatopError, match=r"u = sin\(3\*t\) at x0 is not what the data do"):
        as_trajectories(u, boundary="x0: u = sin(3*t); x1: u = sin(2*t + 1)", **told)
    turn = np.linspace(0, 2 * np.pi, 400) * 61
    away = 0.4 * np.sqrt((np.arange(400) + 0.5) / 400)
    places = 0.5 + away[:, None] * np.stack([np.cos(turn), np.sin(turn)], 1)
    u = np.sin(2 * t[:, None] + places[:, 0])[None, :, None]
    told = {"points": places, "shape": "disk(0.5, 0.5, 0.4)", "times": t}
    as_trajectories(u, boundary="disk1: u = sin(2*t + x)", **told)
    with pytest.raises(SplatopError, match="at disk1 does not hold"):
        as_trajectories(u, boundary="disk1: u = sin(3*t + x)", **told)

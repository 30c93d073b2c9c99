"""Coarse models: the projection, steps on the user's grid, training through the physics."""

import itertools
import json
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import splatop
from splatop.bench.coarse_cases import cases
from splatop.cli import app
from splatop.coarse import (
    CoarseStepper,
    CoarseTrajectories,
    coarse_points,
    truncate,
    truncated_frames,
)
from splatop.coarse.chaos import horizon, long_run
from splatop.data import ArrayTrajectories, save_trajectories
from splatop.domain import Domain
from splatop.encoders.unet import PeriodicConv
from splatop.ensemble import Ensemble, stack
from splatop.equation import parse_equation
from splatop.errors import SplatopError
from splatop.grid import Grid
from splatop.model import ModelSpec, load_model, save_model
from splatop.numerics import Numerics, build_physics
from splatop.operators import Convolutions
from splatop.operators.convolutions import _convolved
from splatop.spectral import resample
from splatop.stepper import rollout
from splatop.surrogate import Surrogate
from splatop.training.losses import rollout_loss
from splatop.training.settings import PRESETS, coarser
from splatop.training.stages import _noisy, _phase_ranges
from splatop.tune import Pairs, choose_coarse

FINE, COARSE, LENGTH, DT = 64, 16, 3.0, 0.1
HEAT = "dt(u) = D*lap(u)"


def waves(x, modes):
    """Real waves with fixed amplitudes and phases, as one channel."""
    return sum(a * np.cos(2 * np.pi * k * x / LENGTH + p) for k, a, p in modes)[None]


def ring(length):
    """A periodic axis, as numerics are chosen for it."""
    return {"domain": Domain.box((length,)), "layout": ("left",)}


def at(points):
    return np.arange(points) * LENGTH / points


LOW = [(0, 0.4, 0.0), (3, 1.0, 0.3), (7, 0.5, 1.1)]
HIGH = [(8, 0.7, 0.4), (11, 0.6, 0.2), (25, 0.3, 0.9)]


def test_projection_keeps_the_modes_below_the_limit_and_nothing_else():
    """16 points tell modes up to 7 apart; mode 8, their Nyquist mode, is dropped as well."""
    u = jnp.asarray(waves(at(FINE), LOW + HIGH), jnp.float32)
    found = truncate(u, (COARSE,))
    # A matrix of 64 columns in float32: rounding of a few times 64^(1/2) 6e-8 of values of size 3.
    np.testing.assert_allclose(found, waves(at(COARSE), LOW), atol=5e-6)
    np.testing.assert_allclose(truncate(found, (COARSE,)), found, atol=5e-6)
    np.testing.assert_allclose(resample(found, (FINE,)), waves(at(FINE), LOW), atol=1e-5)


@pytest.mark.parametrize("points", [(60, 45), (31, 64)])
def test_projection_of_any_grid_is_closest_in_the_mean_square(points):
    """What is left out is orthogonal to everything in the coarse space, on odd grids as well."""
    rng = np.random.default_rng(0)
    u = jnp.asarray(rng.normal(size=(2, *points)), jnp.float32)
    other = resample(jnp.asarray(rng.normal(size=(2, 11, 15)), jnp.float32), points)
    left = u - resample(truncate(u, (12, 16)), points)
    scale = float(jnp.linalg.norm(left) * jnp.linalg.norm(other))
    assert abs(float(jnp.sum(left * other))) < 1e-5 * scale
    assert float(jnp.linalg.norm(left)) > 0.5 * float(jnp.linalg.norm(u))


def trajectories(frames=12, count=3, points=FINE):
    rng = np.random.default_rng(1)
    array = rng.normal(size=(count, frames, 1, points)).astype(np.float32)
    return ArrayTrajectories(array, Grid((points,), (LENGTH,), (0.5,)), dt=DT, fields=("u",))


def test_every_other_frame_is_projected_and_the_data_stay_at_hand():
    data = trajectories()
    seen = CoarseTrajectories(data, points=(COARSE,), stride=5)
    assert (seen.frames, seen.grid.points, seen.grid.origin) == (3, (COARSE,), (0.5,))
    assert seen.dt == pytest.approx(0.5)
    wanted = [truncate(jnp.asarray(data.array[2, t]), (COARSE,)) for t in (5, 10)]
    np.testing.assert_allclose(seen.window(2, 1, 2), np.stack(wanted), atol=1e-5)
    assert seen.observed is data


def test_a_factor_or_stride_that_leaves_nothing_is_refused():
    with pytest.raises(SplatopError, match=r"leaves at least 8 points.*coarse=16.*leaves 4"):
        coarse_points(Grid((FINE,), (LENGTH,)), 16)
    with pytest.raises(SplatopError, match=r"whole number.*coarse=0"):
        coarse_points(Grid((FINE,), (LENGTH,)), 0)
    with pytest.raises(SplatopError, match=r"12 frames in one step for 12 frames.*at most 11"):
        CoarseTrajectories(trajectories(), stride=12)
    assert coarse_points(Grid((160, 90), (1.0, 1.0)), 4) == (40, 22)


def heat(dt=DT):
    band = (COARSE - 1) // 2
    numerics = Numerics("box", (band / LENGTH,), 0.0, (COARSE,), 1, jets="spectral")
    return build_physics(
        parse_equation(HEAT, dims=1),
        numerics.from_dict({**numerics.as_dict(), "integrator": "etdrk4"}),
        lengths=(LENGTH,),
        dt=dt,
    )


def _drawn(weight):
    """Weights for a layer that starts at zero."""
    return 0.3 * jax.random.normal(jax.random.key(5), weight.shape)


@eqx.filter_jit
def advanced(stepper, u):
    return stepper(u, {"D": 0.02})


def surrogate(**choices):
    network = Convolutions(1, 1, hidden=4, blocks=3, key=jax.random.key(0))
    network = eqx.tree_at(lambda n: n.layers[-1].weight, network, replace_fn=_drawn)
    one = jnp.ones(1)
    return Surrogate(heat(), network, 0 * one, one, 0.1 * one, **choices)


def test_a_rollout_stays_in_the_coarse_space_and_decays_as_it_must():
    """Mode k decays by exp(-D (2πk/L)² t), whatever grid the states come on."""
    stepper, values = CoarseStepper(heat(0.4), (COARSE,)), {"D": 0.02}
    u = jnp.asarray(waves(at(FINE), LOW + HIGH), jnp.float32)
    frames = eqx.filter_jit(rollout)(stepper, u, values, steps=5)
    for n in (1, 5):
        decayed = [
            (k, a * np.exp(-0.02 * (2 * np.pi * k / LENGTH) ** 2 * 0.4 * n), p) for k, a, p in LOW
        ]
        np.testing.assert_allclose(frames[n - 1], waves(at(FINE), decayed), atol=2e-5)


def coarse_ensemble():
    """Two members whose corrections differ in size."""
    several = [surrogate(confined=True), surrogate(confined=True)]
    several[1] = eqx.tree_at(lambda s: s.scale, several[1], 0.3 * jnp.ones(1))
    return Ensemble(stack([CoarseStepper(one, (COARSE,)) for one in several]), 2)


@pytest.mark.parametrize("stays", [False, True, "ensemble"])
def test_steps_one_by_one_are_the_rollout(stays):
    stepper = CoarseStepper(surrogate(confined=True), (COARSE,), stays is True)
    if stays == "ensemble":
        stepper = coarse_ensemble()
        assert stepper.carried is not stepper
        assert isinstance(stepper.physics_alone, CoarseStepper)
    u = jnp.asarray(waves(at(FINE), LOW + HIGH), jnp.float32)
    frames = eqx.filter_jit(rollout)(stepper, u, {"D": 0.02}, steps=4)
    assert frames.shape == (4, 1, COARSE if stays is True else FINE)
    unrolled = eqx.filter_jit(rollout)(stepper, u, {"D": 0.02}, steps=4, loop=False)
    for n in range(4):
        u = advanced(stepper, u)
        np.testing.assert_allclose(u, frames[n], atol=2e-5)
        np.testing.assert_allclose(unrolled[n], frames[n], atol=2e-5)


def test_a_confined_step_that_conserves_leaves_the_mean_and_the_nyquist_mode():
    u = jnp.asarray(waves(at(COARSE), LOW), jnp.float32)
    free = advanced(surrogate(), u)
    kept = advanced(surrogate(confined=True, conserves=True), u)
    signs = (-1.0) ** np.arange(COARSE)
    assert abs(float(jnp.mean(free - u))) > 1e-3
    assert abs(float(jnp.mean(free[0] * signs))) > 1e-4
    assert abs(float(jnp.mean(kept - u))) < 1e-6
    assert abs(float(jnp.mean(kept[0] * signs))) < 1e-6


def test_gradients_of_a_loss_pass_through_the_physics_if_asked():
    """Of two steps the second one's error depends on the first correction through Φ."""
    u = jnp.asarray(waves(at(COARSE), LOW), jnp.float32)
    window, values = jnp.stack([u, u, 0.9 * u]), {"D": 0.5}

    def gradient(step, loss):
        weights, rest = eqx.partition(step, eqx.is_inexact_array)
        found = jax.jit(jax.grad(lambda w: loss(eqx.combine(w, rest))))(weights)
        return np.concatenate([np.ravel(a) for a in jax.tree.leaves(found.network)])

    def trained(step):
        return rollout_loss(step, window, values, scale=jnp.ones(1))[0]

    def plain(step):
        return jnp.mean((rollout(step, u, values, steps=2) - window[1:]) ** 2)

    through, stopped = surrogate(through_physics=True), surrogate()
    exact = gradient(through, plain)
    # The mean over two steps of means is the mean over both; float32 sums differ by 1e-6 of it.
    np.testing.assert_allclose(gradient(through, trained), exact, atol=1e-5 * np.abs(exact).max())
    assert np.linalg.norm(gradient(stopped, trained) - exact) > 0.05 * np.linalg.norm(exact)


@pytest.mark.parametrize(("source", "target"), [(2, 5), (3, 3), (4, 1)])
@pytest.mark.parametrize("points", [(12,), (6, 8)])
def test_a_convolution_shifts_before_or_after(source, target, points):
    """Whichever is less, against the encoder's, which shifts before and has its channels first."""
    layer = PeriodicConv(len(points), source, target, 3, 1, key=jax.random.key(1))
    u = jax.random.normal(jax.random.key(2), (source, *points))
    found = _convolved(layer, jnp.moveaxis(u, 0, -1), ())
    np.testing.assert_allclose(jnp.moveaxis(found, -1, 0), layer(u), atol=1e-5)


def test_convolutions_are_the_same_everywhere_and_see_their_condition():
    network = Convolutions(2, 2, hidden=4, blocks=2, conditions=1, reach=3, key=jax.random.key(3))
    network = eqx.tree_at(lambda n: n.layers[-1].weight, network, replace_fn=_drawn)
    apply = jax.jit(lambda u, c: network(u, jnp.asarray([c])))
    u = jax.random.normal(jax.random.key(1), (2, 9, 8))
    one, two = apply(u, 0.5), apply(u, 1.0)
    shifted = apply(jnp.roll(u, (2, 3), (1, 2)), 0.5)
    np.testing.assert_allclose(shifted, jnp.roll(one, (2, 3), (1, 2)), atol=1e-5)
    assert float(jnp.abs(one - two).max()) > 1e-3
    fresh = Convolutions(1, 1, key=jax.random.key(0))
    assert float(jnp.abs(fresh(jnp.ones((1, 16)))).max()) == 0.0


def test_a_stream_function_in_harmonics_is_that_of_the_grid():
    """One step of Navier-Stokes vorticity by small matrices and by transforms, the same band."""
    equation = parse_equation(
        "dt(w) = dy(invlap(w))*dx(w) - dx(invlap(w))*dy(w) + 0.01*lap(w)", dims=2
    )
    lengths = (2 * np.pi, 2 * np.pi)
    numerics = Numerics("box", (7 / lengths[0],) * 2, 0.0, (16, 16), 2, jets="spectral")
    steps = {
        space: build_physics(equation, replace(numerics, space=space), lengths=lengths, dt=0.05)
        for space in ("grid", "harmonics")
    }
    x, y = np.meshgrid(*[2 * np.pi * np.arange(16) / 16] * 2, indexing="ij")
    w = jnp.asarray(0.3 + np.sin(x + 2 * y) + np.cos(3 * x) * np.sin(y), jnp.float32)[None]
    found = {space: np.asarray(physics(w, {})) for space, physics in steps.items()}
    # Float32 with sums of a few hundred products: 1e-6 of values of size 2.
    np.testing.assert_allclose(found["harmonics"], found["grid"], atol=5e-6)
    assert np.abs(found["grid"] - w).max() > 1e-2
    # Waves of one wavenumber alone are carried by nothing: sin(x + 2y) decays by its diffusion.
    alone = jnp.asarray(np.sin(x + 2 * y), jnp.float32)[None]
    decayed = np.exp(-0.01 * 5 * 0.05) * alone
    np.testing.assert_allclose(steps["harmonics"](alone, {}), decayed, atol=2e-6)


@pytest.mark.slow
def test_a_guess_of_small_scales_leaves_the_coarse_part_alone(tmp_path):
    """Waves that are steep alike: modes 8 to 12 follow from those that 16 points hold."""
    x, phases = 2 * np.pi * np.arange(64) / 64, np.linspace(0, 2 * np.pi, 6, endpoint=False)
    at = x - 0.1 * np.arange(12)[:, None] + phases[:, None, None]
    u = sum(np.sin(n * at) / n for n in range(1, 13))[:, :, None].astype(np.float32)
    fitted = splatop.fit(
        u,
        "dt(u) = -dx(u)",
        dt=0.1,
        lengths=(2 * np.pi,),
        coarse=4,
        refine=True,
        preset="smoke",
        settings={"model": "physics", "refine_steps": 120},
        hold_out=2,
    )
    model = fitted.model
    assert model.spec.refined
    save_model(tmp_path / "model.safetensors", model)
    guessed = np.asarray(load_model(tmp_path / "model.safetensors").rollout(u[5, 0], steps=5))
    plain = replace(model, stepper=CoarseStepper(model.stepper.coarse, (16,)))
    coarse = np.asarray(plain.rollout(u[5, 0], steps=5))
    missing, left = (np.linalg.norm(made - u[5, 1:6]) for made in (coarse, guessed))
    assert left < 0.5 * missing
    # Projections of 64 values of size 2 in float32.
    held = [truncated_frames(made, (16,)) for made in (guessed, coarse)]
    np.testing.assert_allclose(*held, atol=1e-5)
    # A grid with no room for smaller scales gets none.
    start = truncated_frames(u[5, :1], (16,))[0]
    np.testing.assert_allclose(model.step(start), plain.step(start), atol=1e-6)


def test_rollouts_grow_in_equal_parts_and_fit_the_data():
    chosen = coarser(PRESETS["fast"], factor=4, stride=2)
    assert chosen.horizons == (1, 2, 4, 8, 16)
    ranges = list(_phase_ranges(chosen))
    assert [h for _, h, _, _ in ranges] == [1, 2, 4, 8, 16]
    assert ranges[0][2] == 0
    assert ranges[-1][3] == chosen.steps
    assert all(a[3] == b[2] for a, b in itertools.pairwise(ranges))
    assert chosen.fitting(7).horizons == (1, 2, 4, 6)
    assert PRESETS["fast"].horizons == (5,)
    assert coarser(PRESETS["fast"], factor=None) == PRESETS["fast"]
    with pytest.raises(SplatopError, match="a coarse grid to answer on"):
        coarser(PRESETS["fast"], factor=None, answers="coarse")


def test_noise_depends_on_seed_and_step_alone_and_hits_the_first_state():
    windows = np.zeros((200, 3, 2, 16), np.float32)
    one, again, other = (_noisy(windows, 0.01, (1.0, 5.0), s) for s in ((0, 1), (0, 1), (0, 2)))
    np.testing.assert_array_equal(one, again)
    assert np.abs(one - other).max() > 0
    assert np.abs(one[:, 1:]).max() == 0
    # 3,200 draws tell a standard deviation to 1.3 %.
    np.testing.assert_allclose(one[:, 0].std(axis=(0, 2)), [0.01, 0.05], rtol=0.06)


def burgers_data(count=8, frames=25, points=64):
    """Viscous Burgers waves by exponax: fronts that 16 points do not hold."""
    import exponax

    step = exponax.stepper.Burgers(1, LENGTH, points, 0.05, diffusivity=0.02, convection_scale=1.0)
    x, rng, frame = at(points), np.random.default_rng(0), jax.jit(lambda u: step(u))
    array = []
    for _ in range(count):
        u = waves(x, [(k, 0.6 / k, 6 * rng.random()) for k in (1, 2)])
        states = [jnp.asarray(u, jnp.float32)]
        for _ in range(frames - 1):
            states.append(frame(states[-1]))
        array.append(np.stack(states))
    return ArrayTrajectories(np.stack(array), Grid((points,), (LENGTH,)), dt=0.05, fields=("u",))


EQUATION = "dt(u) = -u*dx(u) + 0.02*lap(u)"


def test_coarse_numerics_keep_every_mode_and_few_steps():
    data = burgers_data(count=2)
    seen = CoarseTrajectories(data, points=(COARSE,), stride=4)
    before, after = seen.window(0, 0, 6), seen.window(0, 1, 6)
    equation = parse_equation(EQUATION, dims=1)
    tuned = choose_coarse(equation, {}, Pairs(before, after), **ring(LENGTH), dt=seen.dt)
    assert tuned.band == (7,)
    assert tuned.numerics.jets == "spectral"
    assert tuned.numerics.substeps <= 4
    physics = build_physics(equation, tuned.numerics, lengths=(LENGTH,), dt=seen.dt)
    off = jax.vmap(lambda u: physics(u, {}))(jnp.asarray(before)) - after
    found = float(jnp.sqrt(jnp.mean(off**2)) / after.std())
    assert tuned.time_error == pytest.approx(found, rel=1e-3)


def test_coarse_numerics_take_each_state_at_its_own_time():
    """u = sin(t) (1 + cos(x)): at one time for all, the forcing would be wrong by its size."""
    t, x = 0.1 * np.arange(40), 2 * np.pi * np.arange(32) / 32
    frames = (np.sin(t)[:, None] * (1 + np.cos(x)))[None, :, None].astype(np.float32)
    data = ArrayTrajectories(frames, Grid((32,), (2 * np.pi,)), dt=0.1, fields=("u",), times=t)
    seen = CoarseTrajectories(data, points=(16,), stride=2)
    equation = parse_equation("dt(u) = cos(t)*(1 + cos(x))", dims=1)
    tuned = choose_coarse(equation, {}, Pairs.spread_over(seen, 8), **ring(2 * np.pi), dt=seen.dt)
    # RK4 over 0.2 leaves 0.2^5 / 2880 of the forcing; float32 leaves 1e-7 of the state.
    assert tuned.time_error < 1e-5


@pytest.mark.parametrize("name", ["ks", "burgers2d", "navier_stokes"])
def test_the_solver_of_each_case_solves_its_equation(name):
    """A short step of exponax beside ours, which would show any wrong sign or factor."""
    case = cases()[name]
    points, dt = 32, 0.05 * case.dt
    u = case.initial(jax.random.key(0), points)
    # Modes up to 4, whose products both keep: of 32 points exponax keeps nine or ten of them.
    u = resample(truncate(u, (9,) * case.dims), (points,) * case.dims)
    cutoff = (10 / case.length,) * case.dims
    anchors = (points,) * case.dims
    numerics = Numerics("box", cutoff, 0.0, anchors, 4, jets="spectral", integrator="etdrk4")
    equation = parse_equation(case.equation, dims=case.dims, fields=case.fields)
    physics = build_physics(equation, numerics, lengths=(case.length,) * case.dims, dt=dt)
    ours = jax.jit(lambda v: physics(v, {}))(u)
    step = case.solver(points, dt)
    moved = jax.jit(lambda v: step(v))(u) - u
    # Rounding of float32 states over a movement of a few thousandths of them: 1e-7 / 1e-3.
    assert float(jnp.linalg.norm(ours - u - moved)) < 1e-3 * float(jnp.linalg.norm(moved))


def test_long_run_statistics_of_known_waves():
    """A travelling sine: deviation 1/√2, kurtosis 1.5, one mode, correlation cos(ωt)."""
    x, t = np.arange(64) / 64, np.arange(400)[:, None]
    frames = np.sin(2 * np.pi * (3 * x - t / 80))[None, :, None]
    found = long_run(frames)
    assert found["deviation"] == pytest.approx(np.sqrt(0.5), rel=1e-6)
    assert found["kurtosis"] == pytest.approx(1.5, rel=1e-6)
    assert np.argmax(found["spectrum"]) == 3
    # cos(2πn/80) is first below 1/e at n = 16 (15.2 solves it exactly).
    assert found["correlation_frames"] == 16
    assert horizon(np.array([0.1, 0.2, 0.4, 0.1]), 1.0, stride=3) == 6
    assert horizon(np.array([0.1, np.nan]), 1.0) == 1
    assert horizon(np.array([0.1, 0.3]), 1.0) == 2


SMALL = {"phases": "0:60", "hidden": 8, "blocks": 3, "checkpoint_every": 30}


@pytest.fixture(scope="module")
def fast(tmp_path_factory):
    folder = tmp_path_factory.mktemp("coarse")
    data = burgers_data()
    save_trajectories(folder / "fine.h5", data)
    pairs = [part for key, value in SMALL.items() for part in ("--set", f"{key}={value}")]
    arguments = ["train", "--data", str(folder / "fine.h5"), "--equation", EQUATION]
    arguments += ["--coarse", "4", "--stride", "4", "--preset", "smoke", "--hold-out", "2"]
    arguments += ["--set", "trajectories=none", "--set", "data_steps=none", "--set", "points=none"]
    done = CliRunner().invoke(app, [*arguments, *pairs, "--out", str(folder / "fast")])
    assert done.exit_code == 0, done.output
    return folder, data, done.output


def test_a_coarse_model_is_trained_and_used_on_the_fine_grid(fast):
    folder, data, said = fast
    assert "16 of 64 points hold all but" in said
    assert "one step takes 4 frames" in said
    model = load_model(folder / "fast")
    spec = model.spec
    assert (spec.coarse, spec.stride, spec.dt) == ((16,), 4, pytest.approx(0.2))
    assert spec.conserves
    assert spec.through_physics
    assert model.record["points"] == [64]
    u = data.array[7, 0]
    frames = model.rollout(u, steps=3)
    truth = data.array[7, 4:13:4]
    error = np.linalg.norm(np.asarray(frames) - truth) / np.linalg.norm(truth)
    assert frames.shape == (3, 1, 64)
    assert error < 0.1
    np.testing.assert_allclose(model.step(u), frames[0], atol=1e-5)
    assert abs(float(jnp.mean(frames[-1])) - u.mean()) < 1e-5


def test_evaluation_takes_every_fourth_frame_and_the_physics_stays_coarse(fast):
    folder, _data, _ = fast
    done = CliRunner().invoke(app, ["evaluate", str(folder / "fast"), "--no-solvers", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.output[done.output.index("{") :])
    assert found["steps"] == 6
    assert found["data"]["dt"] == pytest.approx(0.2)
    assert found["data"]["points"] == [64]
    model = load_model(folder / "fast")
    alone = model.physics_only().stepper
    assert isinstance(alone, CoarseStepper)
    # On what training has not seen, the correction is worth something.
    assert found["rl2_mean"] < found["physics_alone"]["rl2_mean"]


def test_a_forecast_has_the_steps_of_the_model(fast):
    folder, _data, _ = fast
    out = folder / "ahead.h5"
    arguments = [str(folder / "fast"), "--data", str(folder / "fine.h5"), "--out", str(out)]
    done = CliRunner().invoke(app, ["rollout", *arguments, "--steps", "3"])
    assert done.exit_code == 0, done.output
    with splatop.open_trajectories(out) as made:
        assert (made.dt, made.frames, made.grid.points) == (pytest.approx(0.2), 4, (64,))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--coarse", "16"], "leaves 4 of 64: use a smaller one"),
        (["--stride", "30"], "shorter than the trajectories"),
        (["--coarse", "4", "--set", "network=fno"], "10 modes per axis need at least 20 points"),
        (["--grid", "coarse"], "expected a coarse grid to answer on"),
        (["--coarse", "4", "--grid", "both"], "unknown grid 'both'"),
        (["--refine"], "come out on the given one to refine, got none"),
        (["--coarse", "4", "--grid", "coarse", "--refine"], "leave out grid=coarse"),
        (["--coarse", "2.5"], "expected a whole number or auto for --coarse, got '2.5'"),
        (["--coarse", "auto"], "--coarse auto together with --budget"),
        (["--coarse", "auto", "--budget", "0"], "a budget above 0 and up to 1, got 0"),
        (["--coarse", "auto", "--budget", "nan"], "a budget above 0 and up to 1, got nan"),
        (["--coarse", "auto", "--budget", "0.1", "--stride", "2"], "no --stride"),
    ],
)
def test_bad_choices_are_one_line_and_write_nothing(fast, tmp_path, options, said):
    folder, _, _ = fast
    out = tmp_path / "run"
    arguments = ["train", "--data", str(folder / "fine.h5"), "--equation", EQUATION, *options]
    done = CliRunner().invoke(app, [*arguments, "--out", str(out)])
    text = f"{done.output} {done.exception}"
    assert done.exit_code != 0
    assert said in " ".join(text.split()), text
    assert not (out / "config.json").exists()


@pytest.mark.slow
def test_a_speed_up_is_proposed_with_what_the_physics_alone_can_do(fast):
    folder, _, _ = fast
    arguments = ["tune", "--data", str(folder / "fine.h5"), "--equation", EQUATION]
    done = CliRunner().invoke(app, [*arguments, "--speed", "12", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert found
    assert all(one["speed"] >= 12 for one in found)
    assert found[0]["horizon"] == max(one["horizon"] for one in found)
    done = CliRunner().invoke(app, [*arguments, "--speed", "10000"])
    assert "ask for a smaller speed-up" in f"{done.output} {done.exception}"


def test_a_model_without_coarse_fields_in_its_file_is_what_it_was():
    spec = ModelSpec("physics", HEAT, ("u",), (LENGTH,), DT)
    held = {k: v for k, v in spec.as_dict().items() if k not in ("coarse", "stride", "answers")}
    assert ModelSpec.from_dict(held) == spec

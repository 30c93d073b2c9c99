"""`splatop.fit`: every form that data come in, what comes out, and what is refused."""

import re
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import splatop
from splatop.errors import SplatopError
from splatop.evaluate.results import measured_on
from splatop.training import Problem, preset
from study_problems import PROBLEMS, draw

V, D = 0.7, 0.02
LENGTH, POINTS, DT = 2.0, 32, 0.05
TEXT = "dt(u) = -v*dx(u) + D*lap(u)"
QUICK = {
    "phases": ((0, 6),),
    "batch": 2,
    "modes": 4,
    "warmup": 1,
    "hidden": 4,
    "trajectories": None,
}


def waves(trajectories=5, frames=12, points=POINTS):
    """Decaying travelling waves, exact: `(B, T, 1, N)`."""
    x = np.arange(points) * LENGTH / points
    t = DT * np.arange(frames)[:, None]
    rng = np.random.default_rng(0)
    out = []
    for _ in range(trajectories):
        u = np.zeros((frames, points))
        for mode in (1, 2, 3):
            k = 2 * np.pi * mode / LENGTH
            a, phase = rng.normal(), rng.uniform(0, 6)
            u += a * np.exp(-D * k**2 * t) * np.sin(k * (x - V * t) + phase)
        out.append(u[:, None])
    return np.stack(out).astype(np.float32)


def labelled(array, **attributes):
    """The same as a Dataset with a channel-free variable."""
    _, t, _, n = array.shape
    return xr.Dataset(
        {"u": (("trajectory", "time", "x"), array[:, :, 0])},
        coords={"time": 3.0 + DT * np.arange(t), "x": LENGTH / n * np.arange(n)},
        attrs=attributes,
    )


def quick_fit(data, equation=TEXT, **options):
    settings = {**QUICK, **options.pop("settings", {})}
    return splatop.fit(data, equation, preset="smoke", settings=settings, **options)


@pytest.fixture(scope="module")
def fitted():
    return quick_fit(waves(), dt=DT, lengths=LENGTH * np.ones(1))


def test_identifies_what_is_not_known_and_predicts(fitted):
    # Float32 data: 6e-8 of the state over a change of V k dt = 0.1 a frame.
    assert fitted.coefficients["v"] == pytest.approx(V, rel=1e-4)
    assert fitted.coefficients["D"] == pytest.approx(D, rel=1e-3)
    truth = waves(frames=30)[0]
    found = fitted.rollout(truth[0], 29)
    assert isinstance(found, np.ndarray)
    # 29 frames of time integration to 2e-6 and coefficients to 1e-4 of a turn of 29 * 0.33.
    assert np.linalg.norm(found - truth[1:]) < 2e-3 * np.linalg.norm(truth[1:])
    np.testing.assert_allclose(fitted.step(truth[0]), found[0], atol=1e-6)


def test_batches_are_their_samples(fitted):
    u = waves()[:3, 0]
    both = fitted.rollout(u, 4)
    assert both.shape == (3, 4, 1, POINTS)
    np.testing.assert_allclose(both[1], fitted.rollout(u[1], 4), atol=1e-6)
    np.testing.assert_allclose(fitted.step(u), both[:, 0], atol=1e-6)


def test_jax_in_jax_out_and_through_transformations(fitted):
    u = jnp.asarray(waves()[0, 0])
    assert isinstance(fitted.step(u), jax.Array)
    np.testing.assert_allclose(jax.jit(fitted.step)(u), fitted.step(u), atol=1e-6)

    def energy(u):
        return jnp.sum(fitted.rollout(u, 3) ** 2)

    # The surrogate is nearly linear here: along u, the derivative of |S u|² is twice itself; the
    # operator, six steps old, is left out or tiny.
    slope = jnp.vdot(jax.grad(energy)(u), u)
    assert slope == pytest.approx(2 * float(energy(u)), rel=1e-3)


def test_identifies_other_frames(fitted):
    found = fitted.identify(waves()[1])
    assert found.estimates["v"] == pytest.approx(V, rel=1e-3)
    alone = fitted.identify(waves()[1], unknown=["D"])
    assert list(alone.estimates) == ["D"]
    with pytest.raises(SplatopError, match="unknown coefficient 'w'"):
        fitted.identify(waves()[1], unknown=["w"])
    with pytest.raises(SplatopError, match="one trajectory, got 5"):
        fitted.identify(waves())


def test_report_is_about_what_was_held_out(fitted, tmp_path):
    assert fitted.test.trajectories == 1
    np.testing.assert_array_equal(fitted.test.window(0, 0, 12), waves()[4])
    report = fitted.report(tmp_path / "page.html")
    page = report.path.read_text()
    assert "held out" in page
    assert "0.05" in page
    # Of data that are given it is not known, and not said.
    given = fitted.evaluate(waves())
    assert given.trajectories == 5
    assert given.data["held_out"] is None
    assert measured_on(given) == "5 trajectories"
    assert measured_on(fitted.evaluate()) == "1 held-out trajectory"


def test_save_and_load(fitted, tmp_path):
    u = waves()[0, 0]
    for path in (tmp_path / "one.safetensors", tmp_path):
        written = fitted.save(path)
        loaded = splatop.load(written)
        np.testing.assert_array_equal(loaded.step(u), fitted.model.step(u))


def test_of_one_trajectory_the_last_fifth_is_held_out():
    """Nothing that is trained, identified or chosen depends on frames that are held out."""
    data = waves(1, 30)[0]
    other = data.copy()
    other[24:] = waves(1, 30, POINTS)[0, :6] ** 2  # another trajectory, rougher and not a solution
    options = {"dt": DT, "lengths": (LENGTH,), "settings": {"keep_if_better": False}}
    one, two = (quick_fit(d, **options) for d in (data, other))
    assert one.model.spec == two.model.spec
    assert eqx.tree_equal(one.model.stepper, two.model.stepper)
    # The report is about those frames and says which they are.
    np.testing.assert_array_equal(two.test.window(0, 0, 6), other[24:])
    metrics = two.evaluate()
    assert (metrics.trajectories, metrics.steps) == (1, 5)
    assert metrics.data["held_out"] is True
    assert "the last 6 of 30 frames" in metrics.data["source"]
    assert one.evaluate().rl2_mean < 1e-3
    # They solve no such equation: who had seen them in training would not be so far off.
    assert metrics.rl2_mean > 0.1
    assert "on held-out data (the last 6 of 30 frames) the error" in two.summary
    assert "from 1 trajectory of 21 frames" in two.summary


def test_nothing_is_called_held_out_when_all_is_trained_on(tmp_path):
    found = quick_fit(
        waves(),
        dt=DT,
        lengths=(LENGTH,),
        coefficients={"v": V, "D": D},
        settings={"model": "physics"},
        hold_out=0,
    )
    assert found.coefficients == {"v": V, "D": D}
    assert found.evaluate().data["held_out"] is False
    assert "nothing was held out: on the training data the error stays" in found.summary
    assert "nothing was learned" in found.summary
    page = found.report(tmp_path / "page.html").path.read_text()
    assert "5 trajectories that it was trained on" in page
    assert "held-out" not in page


@pytest.mark.slow
def test_the_operator_is_decided_on_data_that_training_has_not_seen():
    """Training damps, the held-out trajectory does not: what is learned does harm there."""
    damped = waves(5, 16)
    data = np.concatenate([damped[:4], travelling(waves(5, 16)[4:, :1])])
    options = {
        "coefficients": {"v": V},
        "drop_terms": ["diffusion"],
        "settings": {"phases": ((0, 60),), "batch": 4, "warmup": 5},
        **BOX,
    }
    seen = quick_fit(data[:4], hold_out=0, **options)
    assert seen.model.record["operator_earned_its_place"]
    assert seen.model.record["decision"]["held_out"] is False
    assert "an operator that lowers the error" in seen.summary
    found = quick_fit(data, **options)
    assert not found.model.record["operator_earned_its_place"]
    assert found.model.record["decision"]["held_out"] is True
    # Left out is gone: the model is its physics, in its description, its step and its file.
    assert found.model.spec.kind == "physics"
    assert isinstance(found.stepper, splatop.EmbeddedPhysics)
    assert found.model.parameters == 0
    assert "was left out: the model is its physics" in found.summary
    assert "the data that decided on the operator" in found.summary


def travelling(start):
    """Waves that keep their shape, exactly."""
    k = 2 * np.pi * np.fft.rfftfreq(POINTS, LENGTH / POINTS)
    t = DT * np.arange(16)[:, None, None]
    return np.fft.irfft(np.fft.rfft(start) * np.exp(-1j * k * V * t), n=POINTS).astype(np.float32)


@pytest.mark.slow
def test_without_its_operators_an_ensemble_is_one_physics(tmp_path):
    found = quick_fit(waves(), **BOX, coefficients={"v": V, "D": D}, settings={"seeds": 2})
    assert (found.model.spec.kind, found.model.spec.members) == ("physics", 1)
    assert found.model.record["members_with_operator"] == 0
    loaded = splatop.load(found.save(tmp_path / "m.safetensors"))
    np.testing.assert_array_equal(loaded.step(waves()[0, 0]), found.step(waves()[0, 0]))


@pytest.mark.parametrize("name", ["smoke", "fast"])
def test_numerics_are_chosen_from_all_of_the_training_data(name, tmp_path):
    """A frame beyond the steps that `smoke` trains on, between the moments that are sampled."""
    array = waves(2, 60)
    sharp = np.sign(np.sin(np.arange(POINTS)))[None].astype(np.float32)
    array[1, 41] = sharp
    held = splatop.ArrayTrajectories(
        array, splatop.Grid((POINTS,), (LENGTH,)), dt=DT, fields=("u",)
    )
    loaded = Problem(data=held, equation_text=TEXT).load(preset(name), tmp_path)
    frames = loaded.sample_frames()
    assert any(np.array_equal(frame, sharp) for frame in frames)
    # Of what is held out, nothing.
    assert not any(np.array_equal(frame, array[0, -1]) for frame in frames)
    # Coefficients too are identified from all frames: the first ones often tell least.
    assert loaded.observed(0).frames == 48


@pytest.mark.slow
def test_smoke_is_as_accurate_as_fast_on_fields_that_steepen():
    """Burgers' equation from a smooth start: the first 20 steps, which `smoke` trains on, need half
    of the band that the fronts of the later ones do. Both see all of the training frames."""
    problem = replace(PROBLEMS["burgers"], points=(128,), frames=61)
    data = draw(problem, 0)[None].astype(np.float32)
    told = {"dt": problem.dt, "lengths": problem.lengths, "coefficients": problem.true}
    found = {
        name: splatop.fit(data, problem.text, preset=name, settings={"model": "physics"}, **told)
        for name in ("smoke", "fast")
    }
    assert found["smoke"].model.spec.numerics == found["fast"].model.spec.numerics
    # A band that holds all but 1e-5 of the amplitude, and a dozen frames at 2e-6 each.
    assert found["smoke"].model.record["measured"]["with_operator"] < 5e-5


def test_what_was_identified_without_trust_is_summed_up_so():
    found = quick_fit(waves(2), "dt(u) = -v*dx(u)", **BOX, settings={"model": "physics"})
    assert found.summary.startswith("not trusted")
    assert any("unexplained" in text for text in found.model.record["doubts"])


# --- xarray ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_dataset_in_dataset_out():
    data = labelled(waves(), boundary_conditions="periodic")
    found = quick_fit(data, coefficients={"v": V}, settings={"model": "physics"})
    assert found.model.spec.dt == pytest.approx(DT)
    assert found.model.spec.lengths == pytest.approx((LENGTH,))
    start = data.isel(trajectory=0, time=5)
    ahead = found.rollout(start, 6)
    assert isinstance(ahead, xr.Dataset)
    assert ahead["u"].dims == ("time", "x")
    np.testing.assert_allclose(ahead["time"], data["time"][6:12], rtol=1e-6)
    np.testing.assert_array_equal(ahead["x"], data["x"])
    truth = data["u"][0, 6:12]
    assert float(abs(ahead["u"] - truth).max()) < 1e-3
    one = found.step(start)
    assert one["u"].dims == ("x",)
    assert float(one["time"]) == pytest.approx(float(data["time"][6]))
    # A batch keeps its dimension; a state without its time begins at zero.
    many = found.rollout(data.isel(time=0).drop_vars("time"), 2)
    assert many["u"].dims == ("trajectory", "time", "x")
    np.testing.assert_allclose(many["time"], [DT, 2 * DT], rtol=1e-6)
    assert found.identify(data.isel(trajectory=2)).estimates["D"] == pytest.approx(D, rel=1e-2)


@pytest.mark.slow
def test_channels_by_label_and_clock_times():
    array = waves()
    both = np.concatenate([array, 2 * array], axis=2)
    times = np.datetime64("2026-01-01") + np.arange(12) * np.timedelta64(3, "s")
    data = xr.DataArray(
        np.moveaxis(both, 2, 3),
        dims=("trajectory", "time", "x", "channel"),
        coords={
            "time": times,
            "x": LENGTH / POINTS * np.arange(POINTS),
            "channel": ["a", "b"],
        },
        name="state",
    )
    text = "dt(b) = -v*dx(b) + D*lap(b); dt(a) = -v*dx(a) + D*lap(a)"
    per_second = {"v": V * DT / 3, "D": D * DT / 3}
    found = quick_fit(data, text, coefficients=per_second, settings={"model": "physics"})
    assert found.model.spec.fields == ("a", "b")
    assert found.model.spec.dt == 3.0
    swapped = data.isel(trajectory=0, time=0, channel=[1, 0])
    ahead = found.rollout(swapped, 3)
    assert isinstance(ahead, xr.DataArray)
    assert ahead.dims == ("time", "x", "channel")
    assert list(ahead["channel"].values) == ["b", "a"]
    np.testing.assert_array_equal(ahead["time"], times[1:4])
    np.testing.assert_allclose(ahead.sel(channel="b"), 2 * ahead.sel(channel="a"), atol=1e-5)
    np.testing.assert_allclose(ahead.sel(channel="a"), array[0, 1:4, 0], atol=1e-3)


@pytest.fixture(scope="module")
def physics():
    return quick_fit(
        waves(),
        dt=DT,
        lengths=(LENGTH,),
        coefficients={"v": V, "D": D},
        settings={"model": "physics"},
    )


def test_labelled_states_that_do_not_fit_are_refused(physics):
    data = labelled(waves())
    with pytest.raises(SplatopError, match=r"one moment, got 12 along 'time'.*isel\(time=0\)"):
        physics.rollout(data, 2)
    start = data.isel(time=0, trajectory=0)
    with pytest.raises(SplatopError, match="of length 2 along x, got 4"):
        physics.rollout(start.assign_coords(x=2 * start.x), 2)
    with pytest.raises(SplatopError, match="over the dimensions x"):
        physics.rollout(start.rename(x="r"), 2)
    with pytest.raises(SplatopError, match="evenly spaced"):
        physics.rollout(start.assign_coords(x=start.x**2), 2)
    with pytest.raises(SplatopError, match="clock time"):
        physics.rollout(start.assign_coords(time=np.datetime64("2026-01-01", "ns")), 2)


# --- an operator of one's own ------------------------------------------------------------------


class Convolution(eqx.Module):
    """A network that a user might bring: circular convolutions."""

    layers: list

    def __init__(self, key):
        one, two = jax.random.split(key)
        options = {"padding": "SAME", "padding_mode": "CIRCULAR"}
        self.layers = [
            eqx.nn.Conv1d(1, 6, 5, key=one, **options),
            eqx.nn.Conv1d(6, 1, 5, key=two, **options),
        ]

    def __call__(self, u):
        return self.layers[1](jnp.tanh(self.layers[0](u)))


@pytest.mark.slow
def test_own_operator_learns_a_missing_term_and_comes_back_from_its_file(tmp_path):
    data = waves(6, 24)
    found = quick_fit(
        data,
        dt=DT,
        lengths=(LENGTH,),
        coefficients={"v": V},
        drop_terms=["diffusion"],
        operator=Convolution(jax.random.key(1)),
        out=tmp_path / "run",
        settings={"phases": ((0, 60),), "rate": 1e-2, "batch": 4},
    )
    assert isinstance(found.model.stepper.network, Convolution)
    assert found.model.record["operator"] == "Convolution"
    metrics = found.evaluate()
    # Diffusion damps by up to exp(-D k² dt) = 0.915 a step; the operator must find most of it.
    assert metrics.rl2_mean < 0.5 * metrics.physics_alone.rl2_mean
    with pytest.raises(SplatopError, match=r"load\(path, operator=...\)"):
        splatop.load(tmp_path / "run")
    loaded = splatop.load(tmp_path / "run", operator=Convolution(jax.random.key(9)))
    np.testing.assert_array_equal(loaded.step(data[0, 0]), found.model.step(data[0, 0]))


class Cropping(eqx.Module):
    weight: jax.Array

    def __call__(self, u):
        return self.weight * u[:, 1:]


@pytest.mark.parametrize(
    ("operator", "settings", "message"),
    [
        (jnp.tanh, {}, "arrays to train"),
        (Cropping(jnp.ones(())), {}, "field of its input's shape"),
        (Convolution(jax.random.key(0)), {"model": "fno"}, "for model=fno"),
    ],
)
def test_operators_that_cannot_be_used_are_refused(operator, settings, message):
    with pytest.raises(SplatopError, match=message):
        quick_fit(waves(), dt=DT, lengths=(LENGTH,), operator=operator, settings=settings)


# --- refusals ----------------------------------------------------------------------------------


def with_hole():
    data = waves()
    data[2, 7, 0, 3] = np.nan
    return data


def backwards():
    data = labelled(waves())
    return data.assign_coords(time=-np.asarray(data["time"]))


BOX = {"dt": DT, "lengths": (LENGTH,)}


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (waves(), {"lengths": (LENGTH,)}, "the time between frames.*give dt"),
        (waves(), {"dt": DT}, "the lengths of the box.*give lengths"),
        (
            waves().repeat(3, axis=2),
            {"dt": DT, "lengths": LENGTH},
            r"can be \(B, T, C, \*N\) or \(T, C, \*N\)",
        ),
        (waves()[:, :, 0], {**BOX, "lengths": (1.0, 1.0)}, r"2 axes of space.*\(5, 12, 32\)"),
        (waves(), {**BOX, "dt": -1.0}, "positive time step"),
        (waves(), {**BOX, "fields": ("a", "b")}, "2 channel.*a, b, got 1"),
        (waves(), {**BOX, "fields": ("w",)}, "unknown field of the data 'u'"),
        (waves().astype(str), BOX, "real numbers"),
        (with_hole(), BOX, "field 'u' of trajectory 2 at step 7"),
        (waves() + np.linspace(0, 9, POINTS), BOX, "periodic along x"),
        (waves(frames=3), BOX, "more than 5 frames.*horizon=2"),
        (waves(frames=1), BOX, "at least two frames"),
        (waves().tolist(), BOX, "got list"),
        ("missing.h5", {}, "does not exist"),
        (backwards(), {}, "times"),
        (labelled(waves()).drop_vars("x"), {}, "coordinates along 'x'"),
        (labelled(waves()).rename(u="w"), {}, "unknown field of the data 'u'"),
        (waves(), {**BOX, "coefficients": {"w": 1.0}}, "unknown coefficient 'w'"),
        (waves(), {**BOX, "coefficients": {"v": "fast"}}, "finite number for the coefficient v"),
        (waves(), {**BOX, "drop_terms": ["difusion"]}, "did you mean 'diffusion'"),
        (waves(), {**BOX, "settings": {"fases": 1}}, "did you mean 'phases'"),
        (waves(), {**BOX, "hold_out": 5}, "0 to 4 trajectories to hold out"),
        (waves(), {**BOX, "equation": "fisher"}, "did you mean 'fisher_kpp'"),
        (waves(), {**BOX, "equation": "dt(u) = dy(u)"}, "column"),
        (waves(), {**BOX, "settings": {"modes": 20}}, r"modes=16"),
        (
            waves(),
            {**BOX, "coefficients": {"v": 1.0, "D": -1e4}},
            r"finite a step after the data, with v = 1, D = -1e\+04 it is not: check signs",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_a_way_out(data, options, message):
    with pytest.raises(SplatopError, match=message):
        quick_fit(data, **options)


def test_trajectories_state_their_own_box():
    grid = splatop.Grid((POINTS,), (LENGTH,))
    held = splatop.ArrayTrajectories(waves(), grid, dt=DT, fields=("u",))
    with pytest.raises(SplatopError, match="leave them out"):
        quick_fit(held, dt=DT)


def test_wrong_states_are_refused(physics):
    with pytest.raises(SplatopError, match="add a channel axis"):
        physics.step(np.zeros(POINTS, np.float32))
    with pytest.raises(SplatopError, match="at least one step"):
        physics.rollout(waves()[0, 0], 0)
    with pytest.raises(SplatopError, match="finite"):
        physics.rollout(np.full((1, POINTS), np.nan, np.float32), 2)


@pytest.mark.slow
def test_coefficients_that_differ_belong_to_a_trajectory():
    slow, fast = waves(4)[:, :7], waves(4, 14)[:, ::2]
    data = np.concatenate([slow[:2], fast[2:]])
    found = quick_fit(data, dt=DT, lengths=(LENGTH,), settings={"model": "physics"}, hold_out=0)
    assert found.coefficients["v"] == pytest.approx([V, V, 2 * V, 2 * V], rel=1e-2)
    with pytest.raises(SplatopError, match="identify them from its first frames"):
        found.rollout(data[3, 0], 2)
    own = found.identify(data[3]).estimates
    ahead = found.rollout(data[3, 0], 6, coefficients=own)
    assert np.abs(ahead - data[3, 1:]).max() < 1e-2


@pytest.mark.slow
def test_the_order_of_statements_does_not_matter():
    data = np.concatenate([waves(), -waves()], axis=2)
    text = "dt(b) = -v*dx(b) + D*lap(b); dt(a) = -v*dx(a) + D*lap(a)"
    found = quick_fit(
        data, text, dt=DT, lengths=(LENGTH,), fields=("a", "b"), settings={"model": "physics"}
    )
    assert found.model.spec.fields == ("a", "b")
    assert replace(found.model.spec).full_equation.fields == ("a", "b")


# --- grids -------------------------------------------------------------------------------------


def plane_waves(points, mode):
    """Trajectories of one oblique wave on a box of 4 x 1."""
    x, y = np.meshgrid(*(np.arange(n) / n for n in points), indexing="ij")
    frames = [np.sin(2 * np.pi * (mode * x + y) + t) for t in range(8)]
    array = np.stack(frames)[None, :, None].astype(np.float32)
    return splatop.ArrayTrajectories(array, splatop.Grid(points, (4.0, 1.0)), dt=0.1, fields=("u",))


@pytest.mark.parametrize(
    ("points", "mode", "coarse"),
    [
        ((128, 32), 3, (64, 32)),  # no axis gets finer
        ((32, 256), 3, (32, 64)),  # whichever is the first
        ((128, 32), 30, (128, 32)),  # 93 points would hold the wave: not worth it
        ((512, 32), 30, (94, 32)),
        ((48, 48), 3, (48, 48)),
    ],
)
def test_a_coarse_phase_keeps_what_the_data_hold(points, mode, coarse, tmp_path):
    data = plane_waves(points, mode)
    problem = Problem(data=data, equation_text="dt(u) = -v*dx(u)")
    loaded = problem.load(preset("fast"), tmp_path)
    assert loaded.points_at(64) == coarse
    held = loaded.at(64)
    assert held.grid.points == coarse
    assert held.grid.lengths == (4.0, 1.0)
    size = np.abs(held.window(0, 0, 6)).max()
    assert size == pytest.approx(1.0, abs=0.01)
    assert loaded.points_at(0) == points


def test_one_dimension_is_never_coarsened(tmp_path):
    grid = splatop.Grid((POINTS,), (LENGTH,))
    held = splatop.ArrayTrajectories(waves(), grid, dt=DT, fields=("u",))
    loaded = Problem(data=held, equation_text=TEXT).load(preset("fast"), tmp_path)
    assert loaded.points_at(16) == (POINTS,)


def test_the_run_remembers_which_data_it_is_of():
    one, other = (plane_waves((32, 16), mode) for mode in (2, 3))
    names = [Problem(data=d, equation_text="dt(u) = u").as_dict()["data"] for d in (one, other)]
    assert names[0] != names[1]
    assert "(1, 8, 1, 32, 16)" in names[0]


@pytest.mark.slow
def test_a_rectangular_box_with_other_points_per_axis():
    """A wave across a box of 3 x 0.5 comes back after its period, along each axis at its speed."""
    grid = splatop.Grid((24, 16), (3.0, 0.5))
    x, y = grid.coordinates()
    times = 0.1 * np.arange(8)
    moving = np.stack(
        [np.sin(2 * np.pi * ((x - 0.6 * t) / 3 + (y - 0.6 * t) / 0.5)) for t in times]
    )
    found = quick_fit(
        moving[None, :, None].astype(np.float32),
        "dt(u) = -v*(dx(u) + dy(u))",
        coefficients={"v": 0.6},
        dt=0.1,
        lengths=(3.0, 0.5),
        settings={"model": "physics"},
    )
    ahead = found.rollout(moving[0][None].astype(np.float32), 7)
    # 7 frames of time integration to 2e-6.
    np.testing.assert_allclose(ahead[:, 0], moving[1:], atol=1e-4)
    assert found.evaluate().data["lengths"] == [3.0, 0.5]


def test_first_frames_rougher_than_their_grid_are_named_and_can_be_left_out(tmp_path):
    """Noise in each cell makes a fit overshoot at a wall, and u^3 does the rest: the message says
    from which frame on the physics is finite, and `start` leaves out those before."""
    x, frames = (np.arange(48) + 0.5) / 48, 24
    u = np.stack([0.5 + 0.1 * np.cos(np.pi * x) * np.exp(-0.02 * k) for k in range(frames)])
    u[:4] += 40 * np.random.default_rng(0).standard_normal((4, 48))
    np.savez(tmp_path / "a.npz", u=np.tile(u, (5, 1, 1)), t=0.05 * np.arange(frames), x=x)
    equation, how = "dt(u) = D*d2x(u) + u - u^3", {"axes": "btx", "boundary": "x: dn(u) = 0"}
    said = r"so from frame (\d+) on, but not before.*--start \1;"
    with (
        splatop.open_trajectories(tmp_path / "a.npz", **how) as data,
        pytest.raises(SplatopError, match=said) as refused,
    ):
        quick_fit(data, equation, coefficients={"D": 0.01})
    start = int(re.search(said, str(refused.value))[1])
    with splatop.open_trajectories(tmp_path / "a.npz", **how, start=start) as data:
        found = quick_fit(data, equation, coefficients={"D": 0.01})
        states = found.rollout(data.window(0, 0, 1)[0], 3)
    assert start >= 4
    assert np.isfinite(states).all()

"""The state from sensors against closed forms: dense linear algebra, sines between walls."""

import inspect
from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from splatop import Observations, SplatopError, assimilate, load, place, reconstruct
from splatop.assimilate import starts
from splatop.assimilate.minimise import Minimum
from splatop.assimilate.observe import look, make_taps, time_weights
from splatop.assimilate.place import _exchanged, _greedy
from splatop.assimilate.prior import _profile
from splatop.assimilate.source import EquationSetting, as_dynamics
from splatop.assimilate.unknowns import Prior
from splatop.model import Model

LENGTH, V, D, POINTS, DT = 2.0, 0.3, 0.01, 16, 0.25
TRANSPORT = "dt(u) = -v*dx(u) + D*d2x(u)"
BOX = {"lengths": LENGTH, "points": POINTS, "dt": DT}
BAND = (POINTS - 1) // 2


def functions(x, t):
    """Each number's field at places and times, `(n, 15)`: waves that travel and decay."""
    columns = [np.ones_like(x)]
    for k in range(1, BAND + 1):
        q = 2 * np.pi * k / LENGTH
        phase, decay = q * (x - V * t), np.sqrt(2) * np.exp(-D * q**2 * t)
        columns += [decay * np.cos(phase), decay * np.sin(phase)]
    return np.stack(columns, axis=1)


def prior():
    std = 1 / (1 + np.arange(2 * BAND + 1) / 4) ** 2
    return Prior(np.zeros((1, 2 * BAND + 1)), std[None], "a test")


def reports(rng, n=60, sigma=0.05, frames=8):
    x = rng.uniform(0, LENGTH, n)
    t = rng.integers(0, frames + 1, n) * DT
    t[:2] = 0, frames * DT
    truth = prior().std[0] * rng.normal(size=2 * BAND + 1)
    values = functions(x, t) @ truth + sigma * rng.normal(size=n)
    return Observations(t, x, "u", values, sigma=sigma), truth


def posterior(obs, sigma):
    """Mean and covariance of the numbers by dense linear algebra."""
    h, std = functions(obs.places[:, 0], obs.times), prior().std[0]
    covariance = np.linalg.inv(np.diag(std**-2) + h.T @ h / sigma**2)
    return covariance @ h.T @ obs.values / sigma**2, covariance


@pytest.fixture(scope="module")
def linear():
    rng = np.random.default_rng(3)
    obs, truth = reports(rng)
    found = assimilate(
        obs, TRANSPORT, coefficients={"v": V, "D": D}, prior=prior(), samples=4000, **BOX
    )
    return obs, truth, found


def test_the_mean_is_that_of_dense_linear_algebra(linear):
    obs, _, found = linear
    mean, _ = posterior(obs, 0.05)
    # Time steps are exact to 2e-6 a frame, conjugate gradients to 1e-5, numbers of size 1.
    numbers = np.asarray(found.forward.unknowns.numbers(jnp.asarray(found.minimum.x)))[0]
    assert numbers == pytest.approx(mean, abs=2e-4)
    assert found.trusted


def test_the_covariance_is_that_of_dense_linear_algebra(linear):
    obs, _, found = linear
    _, covariance = posterior(obs, 0.05)
    std = np.asarray(found.forward.unknowns.std)
    samples = found.deviations * std
    # Entries of a covariance from 4,000 samples have a standard error of 1/sqrt(2000) = 2.2 %
    # of the variances beside them; five of these.
    size = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert np.abs((samples.T @ samples) / len(samples) - covariance).max() < 0.12 * size.max()
    # At any place and time, also beyond the window.
    x, t = np.array([0.3, 1.1, 1.7]), np.array([0.5, 1.9, 3.0])
    h = functions(x, t)
    value, deviation = found.at(x, t)
    assert value == pytest.approx(h @ posterior(obs, 0.05)[0], abs=2e-3)
    assert deviation == pytest.approx(np.sqrt(np.diag(h @ covariance @ h.T)), rel=0.1)


def test_samples_by_conjugate_gradients_are_those_of_the_dense_hessian(linear, monkeypatch):
    from splatop.assimilate import posterior as module
    from splatop.assimilate.rounds import settle
    from splatop.assimilate.window import Options, Window

    obs, _, found = linear
    monkeypatch.setattr(module, "DENSE", 0)
    window = Window(found.dynamics, obs, prior(), {}, 0.0, {})
    one = settle(window, Options(spread="none"), found.minimum.x)
    drawn, _ = module.laplace(one.forward, one.taps, one.data, found.minimum, samples=300)
    _, covariance = posterior(obs, 0.05)
    held = drawn * np.asarray(found.forward.unknowns.std)
    # 300 samples: standard error 8 % of a variance; four of these over fifteen numbers.
    assert np.var(held, axis=0) == pytest.approx(np.diag(covariance), rel=0.35)


def test_fewer_reports_than_unknowns_have_the_same_covariance(linear):
    from splatop.assimilate.posterior import laplace
    from splatop.assimilate.rounds import settle
    from splatop.assimilate.window import Options, Window

    _, _, found = linear
    few, _ = reports(np.random.default_rng(5), n=9)
    window = Window(found.dynamics, few, prior(), {}, 0.0, {})
    one = settle(window, Options(spread="none"), found.minimum.x)
    drawn, _ = laplace(one.forward, one.taps, one.data, found.minimum, samples=4000)
    _, covariance = posterior(few, 0.05)
    held = drawn * np.asarray(found.forward.unknowns.std)
    # 4,000 samples: standard error 2.2 % of a variance; five of these.
    assert np.var(held, axis=0) == pytest.approx(np.diag(covariance), rel=0.12)


@pytest.mark.parametrize("known", [True, False])
def test_the_likeliest_strength_of_a_prior_is_the_one_that_was_drawn_from(known):
    rng, shape, sigma, strength = np.random.default_rng(6), np.full(150, 1 / 150), 0.2, 900.0
    rows = [rng.normal(size=(150, 150)) for _ in range(4)]
    values = [r @ (np.sqrt(strength * shape) * rng.normal(size=150)) for r in rows]
    values = [v + sigma * rng.normal(size=150) for v in values]
    _, found, _ = _profile(rows, values, [np.full(150, sigma)] * 4, shape, known)
    # 600 numbers: standard error sqrt(2 / 600) = 6 % of a variance; four of these. Strengths are
    # tried in steps of 17 %.
    assert found == pytest.approx(strength, rel=0.3)


def test_reports_between_frames_and_means_over_footprints_are_seen_exactly():
    rng = np.random.default_rng(0)
    dynamics = as_dynamics(TRANSPORT, EquationSetting({"v": V, "D": D}, LENGTH, POINTS, DT))
    width = 0.4
    x = rng.uniform(0, LENGTH, 20)
    obs = Observations(np.zeros(20), x, "u", x, spans=np.full((20, 1, 1), width))
    taps = make_taps(obs, ("u",), dynamics.evaluator, begin=0.0, dt=DT, frames=0)
    q = 2 * np.pi * 3 / LENGTH
    u = jnp.asarray(np.cos(q * dynamics.grid.coordinates()[0])[None], jnp.float32)
    seen = np.asarray(taps.gather(look(u, tuple(r[0] for r in taps.rows))[None]))
    # The mean of a cosine over a width w is sin(qw/2)/(qw/2) times it; float32 rounds at 1e-6.
    assert seen == pytest.approx(np.cos(q * x) * np.sinc(q * width / 2 / np.pi), abs=1e-5)
    # A cubic in time is reproduced by the four frames around each moment.
    position = np.array([0.0, 0.3, 1.5, 3.9, 5.0])
    frame, weight = time_weights(position, 5)
    assert np.sum(weight * frame**3, axis=1) == pytest.approx(position**3, abs=1e-9)


@pytest.mark.slow
def test_unknown_coefficients_and_noise_are_found_with_the_state():
    rng = np.random.default_rng(5)
    n, sensors = 12, 12
    where = rng.uniform(0, LENGTH, sensors)
    t = np.repeat(np.arange(13) * DT, n)
    x = np.tile(where, 13)
    truth = prior().std[0] * rng.normal(size=2 * BAND + 1)
    values = functions(x, t) @ truth + 0.02 * rng.normal(size=len(x))
    obs = Observations(t, x, "u", values)
    found = assimilate(
        obs, TRANSPORT, coefficients={"v": 0.4, "D": 0.02}, unknown=("v", "D"), **BOX
    )
    for name, true in (("v", V), ("D", D)):
        one = found.estimates[name]
        assert abs(one.value - true) < 4 * one.std
        assert one.std < 0.1 * true
    # 156 reports less about 17 unknowns: the noise is known to 1/sqrt(2 * 139) = 6 %; four of it.
    assert found.noise["u"] == pytest.approx(0.02, rel=0.25)
    assert found.trusted


def test_a_velocity_that_is_far_off_at_first_is_found():
    """From five times the velocity all unknowns together end in a wrong minimum."""
    rng = np.random.default_rng(6)
    t, x = np.repeat(np.arange(13) * DT, 12), np.tile(rng.uniform(0, LENGTH, 12), 13)
    short = np.repeat([0.0, 1.0], [5, 2 * BAND - 4]) * rng.normal(size=2 * BAND + 1)
    values = functions(x, t) @ short + 0.01 * rng.normal(size=len(x))
    obs = Observations(t, x, "u", values, sigma=0.01)
    far = {"v": 5 * V, "D": 2 * D}
    found = assimilate(obs, TRANSPORT, coefficients=far, unknown=far, spread="none", **BOX)
    # Coefficients of 15 modes from 156 reports at 1 %: 1e-3 of v, and D by its decay over 3 units.
    assert found.coefficients["v"] == pytest.approx(V, rel=2e-3)
    assert found.coefficients["D"] == pytest.approx(D, rel=2e-2)
    assert found.check.ratio < 1.5


def test_a_wrong_equation_is_not_trusted():
    rng = np.random.default_rng(5)
    obs, _ = reports(rng, n=120, sigma=0.01)
    backward = assimilate(
        obs, TRANSPORT, coefficients={"v": -V, "D": D}, prior=prior(), spread="none", **BOX
    )
    assert not backward.trusted
    assert backward.check.ratio > 10
    assert "equation" in backward.check.warnings[0]


@pytest.mark.slow
def test_heat_between_walls_from_moving_sensors_with_missing_reports():
    """Sines decay by exp(-D (kπ)² t); the sensors wander, and half of the reports are missing."""
    rng = np.random.default_rng(2)
    amplitudes = {1: 1.0, 2: -0.6, 4: 0.3}

    def u(x, t):
        return sum(
            a * np.sin(k * np.pi * x) * np.exp(-0.02 * (k * np.pi) ** 2 * t)
            for k, a in amplitudes.items()
        )

    frames, sensors = 6, 16
    x = np.clip(
        rng.uniform(0, 1, sensors) + 0.05 * rng.normal(size=(frames + 1, sensors)).cumsum(0), 0, 1
    )
    t = np.repeat(0.1 * np.arange(frames + 1), sensors)
    kept = rng.uniform(size=t.size) < 0.5
    kept[0] = True
    obs = Observations(
        t[kept],
        x.ravel()[kept],
        "u",
        (u(x.ravel(), t) + 0.01 * rng.normal(size=t.size))[kept],
        sigma=0.01,
    )
    found = assimilate(
        obs,
        "dt(u) = D*d2x(u)",
        coefficients={"D": 0.02},
        lengths=1.0,
        points=40,
        dt=0.1,
        boundary="x: u = 0",
    )
    window = found.window
    grid = window.grid.coordinates()[0].ravel()
    truth = u(grid, window.times[-1])
    error = np.abs(window.mean[-1, 0] - truth)
    # About 50 reports of noise 0.01 tell about five numbers.
    assert np.sqrt(np.mean(error**2)) < 0.01
    assert error[[0, -1]].max() < 1e-4  # the walls are in the space
    assert np.mean(error <= 2.5 * window.std[-1, 0] + 1e-5) > 0.8
    later = found.forecast(4)
    assert later.times[-1] == pytest.approx(1.0)
    assert np.abs(later.mean[-1, 0] - u(grid, 1.0)).max() < 0.02


def test_reconstruction_without_an_equation_knows_what_it_does_not_know():
    rng = np.random.default_rng(4)
    x = np.concatenate([rng.uniform(0, 0.6, 40)])
    obs = Observations(np.zeros(40), x, "u", np.sin(7 * x) + 0.02 * rng.normal(size=40))
    found = reconstruct(obs, lengths=(1.0,), points=50, origin=(0.0,))
    frames = found.frames
    grid = frames.grid.coordinates()[0].ravel()
    error = np.abs(frames.mean[0, 0] - np.sin(7 * grid))
    inside = grid < 0.6
    assert error[inside].max() < 0.08
    assert np.mean(error <= 2 * frames.std[0, 0]) > 0.85
    assert frames.std[0, 0][grid > 0.9].min() > 5 * frames.std[0, 0][inside].mean()
    assert found.smoothness["u"].noise == pytest.approx(0.02, rel=0.5)


def test_the_first_sensor_stands_where_it_tells_most():
    """Of three candidates one sees a number of variance 4, one of variance 1, one nothing."""
    reports = np.zeros((2, 1, 1, 3))
    reports[0, 0, 0, 1] = 2.0
    reports[1, 0, 0, 2] = 1.0
    targets = np.diag([2.0, 1.0])
    chosen, expected, left = _greedy(reports, targets, 2, lambda _: None)
    assert chosen == [1, 2]
    # A report of 2x with noise 1 leaves x a variance of 1/5, one of x a half.
    assert np.diag(left) == pytest.approx([0.2, 0.5])
    assert expected**2 == pytest.approx([5, 4 * 0.2 + 1, 4 * 0.2 + 0.5])


def test_a_sensor_that_was_best_alone_is_exchanged_where_others_tell_more_together():
    """One candidate sees the sum of two numbers, one each of them a little more sharply."""
    reports = np.zeros((2, 1, 1, 3))
    reports[:, 0, 0] = np.array([[1.0, 1.0], [1.3, 0.0], [0.0, 1.3]]).T
    chosen, before, _ = _greedy(reports, np.eye(2), 2, lambda _: None)
    assert 0 in chosen
    chosen, expected, left = _exchanged(reports, np.eye(2), chosen, lambda _: None)
    assert sorted(chosen) == [1, 2]
    assert np.diag(left) == pytest.approx([1 / 2.69, 1 / 2.69])
    assert expected[-1] == pytest.approx(np.sqrt(2 / 2.69))
    assert expected[-1] < 0.95 * before[-1]


def test_placed_sensors_beat_random_ones_on_what_they_were_placed_for():
    found = place(TRANSPORT, sensors=4, frames=2, coefficients={"v": V, "D": D}, length=0.3, **BOX)
    gaps = np.diff(np.sort(np.append(found.places[:, 0], found.places[:, 0].min() + LENGTH)))
    assert np.all(np.diff(found.expected) < 0)
    assert gaps.max() < 1.0  # four sensors on a ring of 2 do not stand together
    with pytest.raises(SplatopError, match="candidate"):
        place(TRANSPORT, sensors=4, coefficients={"v": V, "D": D}, candidates=[[0.1]], **BOX)


def test_tables_of_others_are_read_by_a_map_of_columns_and_in_their_unit_of_time():
    pd = pytest.importorskip("pandas")
    hours = np.repeat([0.0, 0.5, 1.0], 4)
    table = pd.DataFrame(
        {
            "station_id": np.tile([7, 8, 9, 10], 3),
            "date": pd.Timestamp("2024-02-29") + pd.to_timedelta(hours, unit="h"),
            "lon": np.tile([0.1, 0.2, 0.3, 0.4], 3),
            "temperature": np.arange(12.0),
        }
    )
    # Dates and degrees are known by their names; what is a field is not.
    with pytest.raises(SplatopError, match='--columns "u=temperature"'):
        Observations.read(table, fields=["u"])
    names = {"t": "date", "x": "lon", "u": "temperature"}
    read = Observations.read(table, fields=["u"], columns=names, time_unit="h")
    assert read.times == pytest.approx(hours)
    assert read.values == pytest.approx(np.arange(12.0))
    assert sorted(set(read.sensors)) == ["10", "7", "8", "9"]
    with pytest.raises(SplatopError, match="did you mean 'lon'"):
        Observations.read(table, fields=["u"], columns={"x": "longi"})
    with pytest.raises(SplatopError, match="unit of time"):
        Observations.read(table, fields=["u"], columns=names, time_unit="hour")
    # In seconds the same table spans more frames than anything could: another unit.
    with pytest.raises(SplatopError, match="another unit"):
        assimilate(
            table, TRANSPORT, coefficients={"v": V, "D": D}, columns=names, **{**BOX, "dt": 0.1}
        )


def test_one_sensor_is_not_trusted_with_a_prior_fitted_to_it():
    t = DT * np.arange(9)
    obs = Observations(t, np.full(9, 0.7), "u", np.sin(np.pi * (0.7 - V * t)), sigma=0.02)
    found = assimilate(obs, TRANSPORT, coefficients={"v": V, "D": 0.001}, spread="none", **BOX)
    assert not found.trusted
    assert "1 places only" in found.warnings[0]


def test_random_beginnings_scatter_as_the_posterior_of_the_first_frame():
    from splatop.assimilate.prior import first_guess

    rng = np.random.default_rng(2)
    obs, _ = reports(rng, n=8, frames=0)
    space = as_dynamics(TRANSPORT, EquationSetting({"v": V, "D": D}, LENGTH, POINTS, DT)).space
    sigma = np.full(8, 0.05)
    drawn = np.stack([first_guess(obs, prior(), space, sigma, seed=i)[0] for i in range(2000)])
    mean, covariance = posterior(obs, 0.05)
    std = prior().std[0]
    # 2,000 draws: five standard errors of a mean are 0.11 of a deviation, of a variance 16 %.
    assert drawn.mean(axis=0) * std == pytest.approx(mean, abs=0.12 * std.max())
    assert np.var(drawn * std, axis=0) == pytest.approx(np.diag(covariance), rel=0.2)


@pytest.mark.parametrize(("explained", "tried"), [(1, 16), (2, 30)])
def test_more_beginnings_are_tried_where_only_the_way_is_missing(monkeypatch, explained, tried):
    """Short windows that are explained say that the model is right. The thirtieth start is good."""
    asked = []

    def stuck_until_the_thirtieth(forward, windows, x, *, leading=False, **_):
        if leading:
            asked.append(x)
        good = len(asked) >= 30
        count, cost = 10, 10.0 if good else np.inf
        return Minimum(x, cost, 0.0, count, 1, good, x, explained if leading else 0)

    class Plain(eqx.Module):
        shift: np.ndarray

        def shifted(self, centre):
            return Plain(self.shift + centre)

    class Known(eqx.Module):
        unknowns: Plain

    monkeypatch.setattr(starts, "minimise", stuck_until_the_thirtieth)
    every = [lambda k=k: np.full(1, k, np.float32) for k in range(48)]
    forward = Known(Plain(np.zeros(1, np.float32)))
    search = inspect.unwrap(starts.from_starts)  # stand-ins are not of its types
    found = search(forward, [(None, None)] * 4, every, report=lambda _: None)
    assert len(asked) == tried
    assert (found.ratio == 1.0) == (tried == 30)


def test_an_earlier_window_that_is_not_trusted_is_told_by_the_whole(linear):
    from dataclasses import replace

    _, _, found = linear
    whole = replace(found, earlier=replace(found, warnings=("a broken sensor",)))
    said = whole.as_dict()
    assert whole.trusted
    assert not said["trusted"]
    assert [one["trusted"] for one in said["windows"]] == [False, True]
    assert "a broken sensor" in said["warnings"][-1]


def test_a_name_is_the_model_that_ships_else_the_equation_on_points_of_ones_own():
    assert as_dynamics("burgers1d_walls", EquationSetting()).title == "the model of burgers1d_walls"
    own = as_dynamics("burgers1d_walls", EquationSetting(points=40))
    assert own.title == "the equation"
    assert own.written.points == (40,)


@pytest.mark.slow
def test_states_that_a_chaotic_equation_ends_in_are_expected_where_they_are_as_likely():
    from splatop.assimilate.expected import _climate, choose_prior, with_steps
    from splatop.assimilate.prior import draw, fit_smoothness, functions_at

    length = 60.0
    box = EquationSetting({}, length, 64, 0.2)
    dynamics = as_dynamics("dt(u) = -u*dx(u) - d2x(u) - d4x(u)", box)
    dynamics = with_steps(dynamics, None, ())
    late = _climate(dynamics, None)
    where = (np.arange(12) + 0.3)[:, None] * length / 12
    rows = functions_at(dynamics.space, where, 0)
    for size, wanted in ((1.0, "ends in"), (0.05, "smooth field")):
        values = np.concatenate([rows @ one[0] for one in size * draw(late, 6, seed=3)])
        t = np.repeat(0.2 * np.arange(6), 12)
        obs = Observations(t, np.tile(where, (6, 1)), "u", values, sigma=0.01 * size)
        moments = np.repeat(np.arange(6), 12)
        smooth = fit_smoothness(obs, moments, dynamics.space, as_likely=1.0)
        chosen = choose_prior(None, dynamics, smooth, obs, moments, {})
        assert wanted in chosen.source


@pytest.mark.slow
def test_an_equation_that_depends_on_time_is_taken_at_the_time_of_the_reports():
    """`u = f(x - v t) + a sin(t)`, from t = 1 on."""
    rng = np.random.default_rng(4)
    t = 1.0 + np.repeat(np.arange(9) * DT, 10)
    x = np.tile(rng.uniform(0, LENGTH, 10), 9)

    def u(x, t):
        return np.cos(2 * np.pi * (x - V * t) / LENGTH) + 0.5 * np.sin(t)

    obs = Observations(t, x, "u", u(x, t) + 0.01 * rng.normal(size=len(x)), sigma=0.01)
    found = assimilate(
        obs, "dt(u) = -v*dx(u) + a*cos(t)", coefficients={"v": V, "a": 0.5}, spread="none", **BOX
    )
    window = found.window
    grid = window.grid.coordinates()[0].ravel()
    # 90 reports of noise 0.01 tell some ten numbers; taken from t = 0 on it would be off by 0.2.
    assert window.mean[-1, 0] == pytest.approx(u(grid, window.times[-1]), abs=0.02)
    assert found.trusted
    assert set(found.coefficients) == {"v", "a"}


def test_what_a_model_got_wrong_on_held_out_data_is_in_its_standard_deviations(linear):
    _, _, exact = linear
    model = load("burgers2d")
    for held_out, error in ((True, 0.02), (False, 0.0)):
        told = {"measured": {"held_out": held_out, "with_operator": 0.02}}
        own = Model(model.spec, model.stepper, told)
        assert as_dynamics(own, EquationSetting()).own_error == error
    wrong = replace(exact, dynamics=replace(exact.dynamics, own_error=0.1))
    size = 0.1 * np.sqrt(np.mean(exact.window.mean[-1] ** 2))
    expected = np.sqrt(exact.window.std**2 + size**2)
    # States are single precision, evaluated on the grid they are written on.
    assert wrong.window.std == pytest.approx(expected, rel=1e-3)
    std = [one.at([[0.3]], 0.2)[1] for one in (exact, wrong)]
    assert std[1] == pytest.approx(np.sqrt(std[0] ** 2 + size**2), rel=1e-3)

"""Windows one after the other, states of a file as what is expected, refusals of training."""

import numpy as np
import pytest

from splatop import ArrayTrajectories, Observations, SplatopError, assimilate, save_trajectories
from splatop.grid import Grid
from test_sensor_tables import command

EQUATION, V = "dt(u) = -v*dx(u)", 0.4
SETTING = {"coefficients": {"v": V}, "lengths": 1.0, "points": 16, "dt": 0.1}
PLACES = np.array([0.02, 0.17, 0.31, 0.42, 0.55, 0.64, 0.78, 0.91])


def wave(x, t, shift=0.0):
    return np.cos(2 * np.pi * (x - V * t - shift)) + 0.5 * np.sin(4 * np.pi * (x - V * t))


def reports(frames, shift=0.0):
    t, x = np.repeat(0.1 * np.asarray(frames), len(PLACES)), np.tile(PLACES, len(frames))
    noise = 0.01 * np.random.default_rng(0).normal(size=len(t))
    return Observations(t, x, "u", wave(x, t, shift) + noise, sigma=0.01)


def test_a_long_table_is_analysed_in_windows():
    found = assimilate(reports(range(10)), EQUATION, window=3, **SETTING)
    assert [round(one.end, 6) for one in found.chain] == [0.3, 0.6, 0.9]
    assert found.trusted
    frames = found.record()
    assert frames.times == pytest.approx(0.1 * np.arange(10))
    exact = wave(np.arange(16) / 16, frames.times[:, None])
    # 1 % of noise on 32 reports of five numbers in each window.
    assert frames.mean[:, 0] == pytest.approx(exact, abs=0.02)


def test_a_state_that_is_not_where_the_last_window_left_it_is_found_anew():
    first = assimilate(reports(range(4)), EQUATION, **SETTING)
    later = first.advance(reports(range(4, 8), shift=0.4))
    exact = wave(np.arange(16) / 16, 0.7, shift=0.4)
    assert later.window.mean[-1, 0] == pytest.approx(exact, abs=0.05)
    # From what was expected there twice the cost is 187 times the reports.
    assert later.check.ratio < 1.4


def test_states_of_a_file_are_what_is_expected(tmp_path):
    x, rng = np.arange(16) / 16, np.random.default_rng(1)
    phases = rng.uniform(size=(20, 2))
    states = np.stack([[wave(x - a, t, b) for t in (0.0, 0.1)] for a, b in phases])
    states = states[:, :, None].astype(np.float32)
    path = tmp_path / "states.h5"
    save_trajectories(path, ArrayTrajectories(states, Grid((16,), (1.0,)), dt=0.1, fields=("u",)))
    # Three sensors: a smooth field fitted to them is not told, states of two waves are.
    few = reports(range(6))
    few = few.take(np.isin(few.places[:, 0], PLACES[:3]))
    found = assimilate(few, EQUATION, prior=path, **SETTING)
    assert "states of" in found.prior.source
    assert found.trusted
    assert found.window.mean[0, 0] == pytest.approx(wave(x, 0.0), abs=0.05)
    other = ArrayTrajectories(states, Grid((16,), (1.0,)), dt=0.1, fields=("w",))
    with pytest.raises(SplatopError, match="expected states of u for the prior, got w"):
        assimilate(few, EQUATION, prior=other, **SETTING)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--data", "other.h5", "--equation", EQUATION], "expected --sensors or other data"),
        ([], "expected an equation to train from sensors"),
        (["--equation", EQUATION, "--axes", "tx"], "expected no --axes with --sensors"),
        (["--equation", EQUATION, "--lengths", "1", "--points", "8"], "give --places FILE"),
        (["--equation", EQUATION, "--columns", "t"], "expected columns such as t=date,x=lon"),
    ],
)
def test_training_from_a_table_says_what_it_needs(options, says, tmp_path, capsys):
    reports(range(3)).to_pandas().drop(columns="x").to_csv(tmp_path / "obs.csv", index=False)
    given = ["train", "--sensors", tmp_path / "obs.csv", "--out", tmp_path / "run", *options]
    assert command(*given) == 1
    said = capsys.readouterr().err
    assert says in said
    assert "Traceback" not in said
    assert not (tmp_path / "run").exists()

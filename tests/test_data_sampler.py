"""The window sampler: a function of seed and step, uniform, read ahead in the background."""

import threading
import time

import numpy as np
import pytest

from splatop.data import ArrayTrajectories, WindowSampler, open_trajectories, save_trajectories
from splatop.errors import SplatopError
from splatop.grid import Grid
from test_data_files import DT, states


@pytest.fixture
def data():
    array, grid = states(2, 2, trajectories=7, frames=9)
    return ArrayTrajectories(array, grid, dt=DT, fields=("a", "b"))


def prefetching():
    return [t for t in threading.enumerate() if t.name.startswith("splatop-prefetch")]


def test_windows_are_the_pairs_they_come_with(data):
    batch = WindowSampler(data, batch=5, frames=3, seed=1).batch(4)
    assert batch.windows.shape == (5, 3, 2, 12, 10)
    assert batch.windows.dtype == np.float32
    for window, (trajectory, start) in zip(batch.windows, batch.pairs, strict=True):
        np.testing.assert_array_equal(window, data.array[trajectory, start : start + 3])


def test_a_batch_depends_on_seed_and_step_alone(data):
    forward = WindowSampler(data, batch=4, frames=3, seed=1)
    runs = [forward.pairs(step) for step in range(40)]
    backward = WindowSampler(data, batch=4, frames=3, seed=1)
    for step in reversed(range(40)):
        np.testing.assert_array_equal(backward.pairs(step), runs[step])
    other = WindowSampler(data, batch=4, frames=3, seed=2)
    assert any((other.pairs(step) != runs[step]).any() for step in range(3))


def test_every_window_comes_once_in_each_epoch(data):
    sampler = WindowSampler(data, batch=10, frames=3, seed=0)
    assert sampler.epoch == 7 * 7
    # 49 windows and batches of 10: epochs end inside batches, and 49 batches are 10 epochs.
    pairs = np.concatenate([sampler.pairs(step) for step in range(49)]).reshape(10, 49, 2)
    everything = {(b, t) for b in range(7) for t in range(7)}
    for epoch in pairs:
        assert {tuple(pair) for pair in epoch.tolist()} == everything
    assert (pairs[0] != pairs[1]).any()


def test_the_first_batch_is_uniform_over_seeds(data):
    counts = np.zeros((7, 7))
    for seed in range(400):
        for trajectory, start in WindowSampler(data, batch=5, frames=3, seed=seed).pairs(0):
            counts[trajectory, start] += 1
    # 2000 draws over 49 windows: chi-squared with 48 degrees is above 93 once in 10,000 times
    # (drawing without replacement makes it smaller still).
    expected = 2000 / 49
    assert ((counts - expected) ** 2 / expected).sum() < 93


def test_a_batch_larger_than_the_data_goes_round(data):
    sampler = WindowSampler(data, batch=120, frames=9, seed=0)
    counts = np.bincount(sampler.pairs(0)[:, 0], minlength=7)
    assert set(counts) <= {120 // 7, 120 // 7 + 1}


def test_prefetch_gives_the_same_batches_from_disk(tmp_path, data):
    save_trajectories(tmp_path / "a.h5", data)
    with open_trajectories(tmp_path / "a.h5") as read:
        sampler = WindowSampler(read, batch=4, frames=3, seed=3)
        reference = WindowSampler(data, batch=4, frames=3, seed=3)
        steps = list(sampler.prefetch(5, 25))
        assert len(steps) == 20
        for step, batch in enumerate(steps, start=5):
            np.testing.assert_array_equal(batch.windows, reference.batch(step).windows)
    assert list(sampler.prefetch(3, 3)) == []
    assert not prefetching()


def test_leaving_early_stops_the_thread(data):
    for _ in WindowSampler(data, batch=4, frames=3).prefetch(0, 10**9):
        break
    assert not prefetching()
    batches = WindowSampler(data, batch=4, frames=3).prefetch(0, 10**9)
    next(batches)
    assert prefetching()
    batches.close()
    assert not prefetching()


def test_batches_are_read_while_the_caller_works(data):
    read = threading.Event()

    class Watched(ArrayTrajectories):
        def read(self, trajectory, start, frames):
            if threading.current_thread() is not threading.main_thread():
                read.set()
            return super().read(trajectory, start, frames)

    watched = Watched(data.array, data.grid, dt=DT, fields=("a", "b"))
    batches = WindowSampler(watched, batch=4, frames=3).prefetch(0, 10)
    next(batches)
    read.clear()
    next(batches)
    assert read.wait(10)
    batches.close()


def test_an_error_while_reading_reaches_the_caller():
    array = np.zeros((2, 6, 1, 16), np.float32)
    array[1, 4] = np.nan
    data = ArrayTrajectories(array, Grid.unit(16, 1), dt=1.0, fields=("u",))
    with pytest.raises(SplatopError, match="of trajectory 1 at step 4"):
        list(WindowSampler(data, batch=4, frames=3).prefetch(0, 20))
    time.sleep(0.01)
    assert not prefetching()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch": 0, "frames": 3}, "a batch of at least 1"),
        ({"batch": 1, "frames": 10}, "windows of 1 to 9 frames"),
        ({"batch": 1, "frames": 0}, "windows of 1 to 9 frames"),
        ({"batch": 1, "frames": 3, "seed": -1}, "a seed of at least 0"),
    ],
)
def test_impossible_settings(data, options, message):
    with pytest.raises(SplatopError, match=message):
        WindowSampler(data, **options)
    with pytest.raises(SplatopError, match="a step of at least 0"):
        WindowSampler(data, batch=1, frames=1).pairs(-1)

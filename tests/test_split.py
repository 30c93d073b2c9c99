"""What is held out: one rule, and no frame in two parts."""

import numpy as np
import pytest

from splatop.data import ArrayTrajectories, open_trajectories, save_trajectories, split
from splatop.errors import SplatopError
from splatop.grid import Grid


def numbered(trajectories: int, frames: int) -> ArrayTrajectories:
    """Every frame holds its own number."""
    numbers = np.arange(trajectories * frames, dtype=np.float32)
    array = np.broadcast_to(
        numbers.reshape(trajectories, frames, 1, 1), (trajectories, frames, 1, 8)
    )
    return ArrayTrajectories(array, Grid((8,), (1.0,)), dt=0.1, fields=("u",))


def numbers(data) -> set[int]:
    if data is None:
        return set()
    held = [data.window(b, 0, data.frames)[:, 0, 0] for b in range(data.trajectories)]
    return {int(n) for n in np.concatenate(held)}


@pytest.mark.parametrize(
    ("size", "hold_out", "training", "validation", "test"),
    [
        ((1, 100), None, (1, 70), (1, 10), (1, 20)),  # the last fifth in time
        ((1, 40), None, (1, 32), None, (1, 8)),  # too few frames for a validation
        ((4, 40), None, (4, 32), None, (4, 8)),  # too few trajectories to spare one
        ((5, 12), None, (4, 12), None, (1, 12)),
        ((15, 12), None, (11, 12), (1, 12), (3, 12)),
        ((5, 12), 2, (3, 12), None, (2, 12)),
        ((5, 12), 0, (5, 12), None, None),
        ((1, 12), 0, (1, 12), None, None),
    ],
)
def test_parts_share_no_frame_and_are_all_there_is(size, hold_out, training, validation, test):
    data = numbered(*size)
    found = split(data, hold_out)
    parts = (found.training, found.validation, found.test)
    sizes = tuple(None if p is None else (p.trajectories, p.frames) for p in parts)
    assert sizes == (training, validation, test)
    held = [numbers(p) for p in parts]
    assert set().union(*held) == numbers(data)
    assert sum(map(len, held)) == len(numbers(data))
    # What is held out comes last, in order of trajectories or of time.
    assert found.reported.attributes["held_out"] is (test is not None)
    assert ("held out" in found.reported.source) == (test is not None)
    assert found.deciding is (found.reported if validation is None else found.validation)


def test_the_same_from_a_file(tmp_path):
    data = numbered(3, 20)
    save_trajectories(tmp_path / "d.h5", data)
    with open_trajectories(tmp_path / "d.h5") as opened:
        found = split(opened)
        assert numbers(found.test) == numbers(split(data).test)
        assert numbers(found.training) == numbers(split(data).training)


def test_refusals():
    with pytest.raises(SplatopError, match="0 to 4 trajectories to hold out of 5, got 5"):
        split(numbered(5, 9), 5)
    with pytest.raises(SplatopError, match="last fifth in time"):
        split(numbered(1, 9), 1)
    with pytest.raises(SplatopError, match=r"at least 4 frames.*hold_out=0"):
        split(numbered(1, 3))

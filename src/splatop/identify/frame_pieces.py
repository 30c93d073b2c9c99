"""Which frames to use: pieces of successive frames, spread over a trajectory."""

import math

import numpy as np

from ..errors import SplatopError
from ..grid import Grid
from ..points import Points

# Successive frames of a piece: as many as are used together, and as few as are worth it where
# not all frames can be used, or where a trajectory cannot be followed for long.
LONGEST = 128
SHORTEST = 16
# Seconds of two cores for a frame, and for each of its values, by the trajectory method.
_SECONDS_PER_FRAME = 0.02
_SECONDS_PER_VALUE = 1.5e-4
DEFAULT_BUDGET = 30.0


def cut(frames: np.ndarray, longest: int = LONGEST) -> np.ndarray:
    """Pieces `(S, L, ...)` cut into shorter ones; of each, fewer frames are left over than it
    makes pieces."""
    pieces, length = frames.shape[:2]
    parts = math.ceil(length / longest)
    own = length // parts
    return frames[:, : parts * own].reshape(pieces * parts, own, *frames.shape[2:])


def frames_within(budget: float, grid: Grid | Points, *, channels: int, trajectories: int) -> int:
    """How many frames of each trajectory about so many seconds suffice for; 16 at least.

    An estimate on paper, so that the same data give the same answer on every machine.
    """
    if not (math.isfinite(budget) and budget > 0):
        raise SplatopError(f"expected a budget of more than 0 seconds, got {budget:g}")
    return max(SHORTEST, int(budget / (seconds_of_a_frame(grid, channels) * trajectories)))


def seconds_of_a_frame(grid: Grid | Points, channels: int) -> float:
    """About so long does the trajectory method take for each frame, on paper."""
    # Only modes in the band are computed with, which along an axis are seldom more than 128.
    values = channels * math.prod(min(n, 128) for n in grid.points)
    return _SECONDS_PER_FRAME + _SECONDS_PER_VALUE * values


def spread(frames: int, wanted: int) -> tuple[np.ndarray, int]:
    """Where pieces begin that hold `wanted` of the `frames`, evenly spread, and their length."""
    if wanted >= frames:
        pieces = math.ceil(frames / LONGEST)
        return frames // pieces * np.arange(pieces), frames // pieces
    length = min(2 * SHORTEST, wanted)
    pieces = wanted // length
    if pieces == 1:
        return np.array([(frames - length) // 2]), length
    return np.linspace(0, frames - length, pieces).round().astype(int), length

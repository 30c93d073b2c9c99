"""Some frames of trajectories: spread over time, or the roughest."""

import numpy as np

from ..points import Points
from .trajectories import Trajectories

_MOST = 2048  # frames that are looked at for the roughest


def frames_at(data: Trajectories, pairs: np.ndarray) -> np.ndarray:
    """The frames `(n, C, *N)` at pairs `(n, 2)` of a trajectory and a frame."""
    return np.stack([data.window(int(b), int(t), 1)[0] for b, t in pairs])


def spread_frames(data: Trajectories, moments: int, *, first: int = 0) -> np.ndarray:
    """Frames `(n, C, *N)` of up to four trajectories at moments from the `first` to the last."""
    return frames_at(data, spread_pairs(data, moments, first=first))


def spread_pairs(data: Trajectories, moments: int, *, first: int = 0) -> np.ndarray:
    """The trajectory and the number of each of these frames."""
    which = np.linspace(0, data.trajectories - 1, min(4, data.trajectories)).astype(int)
    times = np.linspace(first, data.frames - 1, min(moments, data.frames - first)).astype(int)
    return np.array([(b, t) for b in which for t in times])


def roughest_pairs(data: Trajectories, count: int) -> np.ndarray:
    """The trajectory and the number of each of the `count` frames with the largest part of their
    amplitude in high modes, among all frames, or `_MOST` of them, spread over all trajectories and
    their time."""
    every = data.trajectories * data.frames
    numbers = np.unique(np.linspace(0, every - 1, min(every, _MOST)).astype(int))
    pairs = np.stack(np.divmod(numbers, data.frames), axis=1)
    rough = [_roughness(data.window(int(b), int(t), 1)[0], data) for b, t in pairs]
    return pairs[np.argsort(rough, kind="stable")[::-1][:count]]


def _roughness(frame: np.ndarray, data: Trajectories) -> float:
    """The mean square of the slope from point to point, over that of the frame itself."""
    size = float(np.square(frame).sum())
    slopes = 0.0
    if isinstance(data.grid, Points):
        slopes = float(np.square(frame - frame[:, data.grid.neighbours]).sum())
        return slopes / size if size > 0 else 0.0
    for axis, ring in enumerate(data.domain.periodic, start=1):
        slopes += float(np.square(np.diff(frame, axis=axis)).sum())
        if ring:
            across = frame.take(0, axis) - frame.take(-1, axis)
            slopes += float(np.square(across).sum())
    return slopes / size if size > 0 else 0.0

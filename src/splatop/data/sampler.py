"""Training windows, drawn by index from a seed and a step number alone."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

import numpy as np

from ..errors import SplatopError
from .trajectories import Trajectories

# Batches read ahead of the one in use: one being read, one ready.
_AHEAD = 2


@dataclass(frozen=True)
class Batch:
    """Windows `(n, frames, C, *N)` and the `(trajectory, start)` pairs `(n, 2)` they begin at."""

    windows: np.ndarray
    pairs: np.ndarray


class WindowSampler:
    """Batches of random windows; batch `step` is a function of `seed` and `step`, so that resuming
    needs no state.

    Every window comes once in each epoch, in a new random order. Steps run through the epochs
    without a gap, so a batch may hold the end of one and the beginning of the next.
    """

    def __init__(self, trajectories: Trajectories, *, batch: int, frames: int, seed: int = 0):
        if batch < 1 or seed < 0:
            raise SplatopError(
                f"expected a batch of at least 1 and a seed of at least 0, got {batch} and {seed}"
            )
        if not 1 <= frames <= trajectories.frames:
            raise SplatopError(
                f"expected windows of 1 to {trajectories.frames} frames, which is what each "
                f"trajectory has, got {frames}: shorten the rollout, or bring longer trajectories"
            )
        self.trajectories = trajectories
        self.batch_size = batch
        self.frames = frames
        self.seed = seed
        self._order: tuple[int, np.ndarray] | None = None

    @property
    def starts(self) -> int:
        """Windows in one trajectory."""
        return self.trajectories.frames - self.frames + 1

    @property
    def epoch(self) -> int:
        """Windows in one epoch: all there are."""
        return self.trajectories.trajectories * self.starts

    def pairs(self, step: int) -> np.ndarray:
        """The `(trajectory, start)` pairs of a step, without reading any data."""
        if step < 0:
            raise SplatopError(f"expected a step of at least 0, got {step}")
        position = step * self.batch_size + np.arange(self.batch_size)
        epochs, within = np.divmod(position, self.epoch)
        index = np.empty_like(within)
        for epoch in np.unique(epochs):
            index[epochs == epoch] = self._shuffled(int(epoch))[within[epochs == epoch]]
        return np.stack(np.divmod(index, self.starts), axis=1)

    def batch(self, step: int) -> Batch:
        pairs = self.pairs(step)
        return Batch(self.trajectories.windows(pairs, self.frames), pairs)

    def prefetch(self, start_step: int, stop_step: int) -> Iterator[Batch]:
        """The batches of these steps, read ahead in a background thread.

        Leaving the loop early stops the thread; an error while reading is raised here.
        """
        pool = ThreadPoolExecutor(1, thread_name_prefix="splatop-prefetch")
        try:
            steps = iter(range(start_step, stop_step))
            ahead = deque(pool.submit(self.batch, step) for step in islice(steps, _AHEAD))
            while ahead:
                batch = ahead.popleft().result()
                ahead.extend(pool.submit(self.batch, step) for step in islice(steps, 1))
                yield batch
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _shuffled(self, epoch: int) -> np.ndarray:
        held = self._order
        if held is None or held[0] != epoch:
            held = (epoch, np.random.default_rng([self.seed, epoch]).permutation(self.epoch))
            self._order = held
        return held[1]

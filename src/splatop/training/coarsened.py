"""Trajectories on a coarser grid, and how far their spectrum reaches."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from ..data import (
    ArrayTrajectories,
    Trajectories,
)
from ..spectral import resample

# A coarse grid for a user's data keeps all but this part of its amplitude, and this many points
# per kept mode: two to hold it, a third for its products.
_COARSE_TAIL = 1e-4


def highest_mode(energy: np.ndarray) -> int:
    """The mode along one axis up to which all but `_COARSE_TAIL` of the amplitude lies."""
    modes = np.abs(np.fft.fftfreq(len(energy), 1 / len(energy)))
    allowed = _COARSE_TAIL**2 * energy.sum()
    return next(b for b in range(len(energy)) if energy[modes > b].sum() <= allowed)


def coarsened(
    data: Trajectories, points: tuple[int, ...], *, most: int | None = None
) -> Trajectories:
    """Band-limited copies of all frames on a coarser grid, of the first `most` trajectories, in
    memory."""
    if data.inputs:
        return data.made_of(lambda whole: coarsened(whole, points, most=most))
    count = min(most or data.trajectories, data.trajectories)
    array = np.empty((count, data.frames, len(data.fields), *points), np.float32)
    for b in range(count):
        frames = jnp.asarray(data.window(b, 0, data.frames))
        flat = resample(frames.reshape(-1, *frames.shape[2:]), points)
        array[b] = np.asarray(flat).reshape(array.shape[1:])
    return ArrayTrajectories.of(
        data,
        array,
        grid=replace(data.grid, points=points),
        coefficients={name: values[:count] for name, values in data.coefficients.items()},
    )

"""Trajectories held in memory."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..domain import Domain
from ..errors import SplatopError
from ..grid import Grid
from ..points import Points
from .times import frame_times
from .trajectories import Trajectories, checked_metadata

GIBIBYTE = 2**30


class ArrayTrajectories(Trajectories):
    """Trajectories held in memory: an array `(B, T, C, *N)`."""

    def __init__(
        self,
        array: np.ndarray,
        grid: Grid | Points,
        *,
        dt: float,
        fields: tuple[str, ...],
        coefficients: Mapping[str, np.ndarray | float] | None = None,
        attributes: Mapping[str, Any] | None = None,
        domain: Domain | None = None,
        times: np.ndarray | None = None,
    ):
        self.array = np.asarray(array, np.float32)
        if self.array.shape[3:] != grid.points:
            raise SplatopError(
                f"expected an array (B, T, C, {', '.join(map(str, grid.points))}) for this grid, "
                f"got shape {self.array.shape}"
            )
        self.grid = grid
        self.trajectories, self.frames = self.array.shape[:2]
        self.dt, self.fields, self.coefficients = checked_metadata(
            self.array.shape, dt, fields, coefficients or {}
        )
        self.attributes = dict(attributes or {})
        if times is not None:
            if np.shape(times) != (self.frames,):
                raise SplatopError(
                    f"expected {self.frames} times, one for each frame, got shape {np.shape(times)}"
                )
            self.dt, self.times = frame_times(times, source=self.source, stated_dt=self.dt)
        if domain is not None:
            if (domain.lengths, domain.origin) != (grid.lengths, grid.origin):
                raise SplatopError(
                    f"expected the domain to be the grid's box, of lengths {grid.lengths} from "
                    f"{grid.origin}, got lengths {domain.lengths} from {domain.origin}"
                )
            self.domain = domain

    def read(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        return self.array[trajectory, start : start + frames]

    @classmethod
    def of(cls, whole: Trajectories, array: np.ndarray, **changes: Any) -> "ArrayTrajectories":
        """Another array of states with everything else as in `whole`, except for `changes`."""
        told = {
            "dt": whole.dt,
            "fields": whole.fields,
            "coefficients": whole.coefficients,
            "attributes": whole.attributes,
            "domain": whole.domain,
            "times": whole.times,
        }
        return cls(array, **{"grid": whole.grid, **told, **changes})


def in_memory(trajectories: Trajectories, *, limit_bytes: int = 4 * GIBIBYTE) -> Trajectories:
    """The same data held in memory if it fits the limit, else unchanged: read from disk."""
    if trajectories.inputs:
        return trajectories.made_of(lambda whole: in_memory(whole, limit_bytes=limit_bytes))
    if isinstance(trajectories, ArrayTrajectories) or trajectories.nbytes > limit_bytes:
        return trajectories
    array = np.empty(trajectories.shape, np.float32)
    for index, states in enumerate(array):
        states[...] = trajectories.window(index, 0, trajectories.frames)
    return ArrayTrajectories.of(trajectories, array)

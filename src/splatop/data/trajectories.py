"""What every data set is: trajectories of named fields on a grid, read window by window."""

import abc
import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import numpy as np

from ..domain import Domain
from ..equation import Equation
from ..equation.edge_values import moves
from ..errors import SplatopError
from ..points import Points
from ..stepper import TIME
from .stated import Stated
from .times import check_clock, is_even, windows_when

_BLOCK_BYTES = 2**26
# What h5py, NumPy, xarray and zarr raise for files that are not what they say.
_UNREADABLE = (OSError, RuntimeError, ValueError, TypeError, LookupError, MemoryError, zlib.error)


Constant = Callable[[int], np.ndarray]


class Trajectories(abc.ABC):
    """Trajectories with `frames` states each, a time `dt` apart.

    `times` are those of the frames where they are known, the same for all trajectories: None if
    only the time between frames is. Uneven ones are `dt` apart at the median.

    A state is `(C, *N)`, its channels named by `fields`. `coefficients` holds one value for each
    trajectory, `attributes` whatever else is known (benchmark, split, seed, ...). `coordinates` are
    those that a file has, by the letter of their axis, and `stated` is what it says of its edges.
    """

    grid: Any  # a Grid, or Points
    dt: float
    fields: tuple[str, ...]
    coefficients: dict[str, np.ndarray]
    trajectories: int
    frames: int
    attributes: dict[str, Any]
    # Fields of which `read` gives complex numbers. Opening makes two real fields of each.
    complex_fields: tuple[str, ...] = ()
    coordinates: Mapping[str, np.ndarray] = {}
    stated: Stated = Stated()
    times: np.ndarray | None = None
    inputs: tuple[str, ...] = ()
    mesh_shape: Any = None  # of values at the vertices of a mesh
    # Fields that a file holds for all times at once, by name: `(*N)` of a trajectory.
    static: Mapping[str, Constant] = {}
    # Coordinates `(B, N)` that each trajectory of a file has of its own, by the letter of an axis.
    rows: Mapping[str, np.ndarray] = {}
    _domain: Domain | None = None

    @property
    def domain(self) -> Domain:
        """Where the fields live and what holds at the edges: the grid's box, periodic unless told.

        Its lengths and origin are the grid's, whichever was set last.
        """
        if self._domain is None:
            return Domain.box(self.grid.lengths, self.grid.origin)
        return self._domain.on(self.grid.lengths, self.grid.origin)

    @domain.setter
    def domain(self, domain: Domain) -> None:
        if domain.dims != self.grid.dims:
            raise SplatopError(
                f"expected a domain of {self.grid.dims} axes for this grid, got {domain.dims}"
            )
        self._domain = domain

    def _like(self, whole: "Trajectories") -> None:
        """Everything that is known of other trajectories, for those made of them."""
        self.grid, self.dt, self.fields = whole.grid, whole.dt, whole.fields
        self.trajectories, self.frames = whole.trajectories, whole.frames
        self.coefficients, self.attributes = whole.coefficients, whole.attributes
        self.coordinates, self.stated = whole.coordinates, whole.stated
        self.times, self.static = whole.times, whole.static
        self.mesh_shape = whole.mesh_shape
        self.domain = whole.domain

    @property
    def observed(self) -> "Trajectories":
        """The data as they were observed, which coefficients are identified from."""
        return self

    @abc.abstractmethod
    def read(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        """`frames` states `(frames, C, *N)` in float32, unchecked: NaN and all."""

    def states(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        """`read`, with what a damaged file makes its library raise said plainly."""
        try:
            return self.read(trajectory, start, frames)
        except SplatopError:
            raise
        except _UNREADABLE as error:
            raise SplatopError(
                f"{self.source}: steps {start} to {start + frames - 1} of trajectory {trajectory} "
                f"cannot be read ({error}): the file was damaged, copy or generate it again"
            ) from error

    def close(self) -> None:  # noqa: B027  (only files have something to close)
        """Give back the file, if there is one."""

    def __enter__(self) -> "Trajectories":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def source(self) -> str:
        """Where the data came from, for messages."""
        return str(self.attributes.get("source", "data"))

    @property
    def shape(self) -> tuple[int, ...]:
        """`(B, frames, C, *N)`."""
        return (self.trajectories, self.frames, len(self.fields), *self.grid.points)

    @property
    def nbytes(self) -> int:
        """Bytes of all the states in float32."""
        return 4 * math.prod(self.shape)

    def window(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        """`frames` successive states `(frames, C, *N)` of one trajectory, float32 and finite."""
        return self.windows(np.array([[trajectory, start]]), frames)[0]

    def windows(self, pairs: np.ndarray, frames: int) -> np.ndarray:
        """Windows `(n, frames, C, *N)` that begin at the `(trajectory, start)` pairs `(n, 2)`."""
        pairs = np.asarray(pairs)
        self._check_pairs(pairs, frames)
        out = np.empty((len(pairs), frames, *self.shape[2:]), np.float32)
        for window, (trajectory, start) in zip(out, pairs, strict=True):
            window[...] = self.states(int(trajectory), int(start), frames)
            self._check_finite(window, int(trajectory), int(start))
        return out

    def blocks(self) -> Iterator[tuple[int, int, int]]:
        """(trajectory, start, frames) of blocks that cover the data, each small enough to hold."""
        frame_bytes = 4 * int(np.prod(self.shape[2:]))
        most = max(1, _BLOCK_BYTES // frame_bytes)
        for trajectory in range(self.trajectories):
            for start in range(0, self.frames, most):
                yield trajectory, start, min(most, self.frames - start)

    @property
    def even(self) -> bool:
        """Whether all frames are equally far apart."""
        return is_even(self.times)

    def when(self, start: int = 0, frames: int | None = None) -> dict[str, np.ndarray]:
        """When the steps of a window begin, and how long they are where that differs: `t` and `dt`
        among the coefficients that a rollout of it takes."""
        return {
            name: values[0] for name, values in self.all_when(np.array([start]), frames).items()
        }

    def all_when(self, starts: np.ndarray, frames: int | None = None) -> dict[str, np.ndarray]:
        """The same for windows that begin at several frames, `(n, frames - 1)` each."""
        return dict(windows_when(self.times, starts, frames or self.frames))

    def check_clock(self, equation: Equation) -> None:
        """Refuse data without times for an equation, or for edges, that depend on time."""
        if equation.uses_time or any(moves(one) for one in self.domain.conditions.values()):
            check_clock(self.times, self.dt, self.source)

    def made_of(self, change: "Callable[[Trajectories], Trajectories]") -> "Trajectories":
        """The data with a change that is made to all of its channels, those of inputs as well."""
        return change(self)

    @property
    def together(self) -> "Trajectories":
        """The same with its inputs as channels behind its fields."""
        return self

    def signals(self, trajectory: int, start: int = 0, frames: int | None = None) -> dict[str, Any]:
        """The inputs of a window over time, by name; data without inputs have none."""
        return {}

    def drive(self, trajectory: int, start: int = 0, frames: int | None = None) -> dict[str, Any]:
        """All that a rollout of a window is told beside its coefficients: when its steps are, and
        what its inputs are over time."""
        return {**self.when(start, frames), **self.signals(trajectory, start, frames)}

    def all_drive(self, pairs: np.ndarray, frames: int) -> dict[str, Any]:
        """The same for several windows, stacked."""
        found = self.all_when(np.asarray(pairs)[:, 1], frames)
        if not self.inputs:
            return found
        last = self.frames - frames
        each = [self.signals(int(b), min(int(start), last), frames) for b, start in pairs]
        return {**found, **jax.tree.map(lambda *own: np.stack(own), *each)}

    def moments(self, pairs: np.ndarray) -> dict[str, Any]:
        """The time `t` of frames at `(trajectory, frame)` pairs, where it is known, and their
        inputs around it."""
        pairs = np.asarray(pairs, int)
        found = {} if self.times is None else {TIME: self.times[pairs[:, 1]]}
        driven = self.all_drive(pairs, 2) if self.inputs else {}
        return found | {name: driven[name] for name in self.inputs}

    def trajectory_coefficients(self, trajectory: int) -> dict[str, float]:
        return {name: float(values[trajectory]) for name, values in self.coefficients.items()}

    def known_at(self, trajectory: int, frame: int) -> dict[str, float]:
        """The coefficients of a trajectory, and the time of a frame where it is known."""
        now = {} if self.times is None else {TIME: float(self.times[frame])}
        return {**self.trajectory_coefficients(trajectory), **now}

    def _check_pairs(self, pairs: np.ndarray, frames: int) -> None:
        if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
            raise SplatopError(
                "expected (trajectory, start) pairs as an integer array of shape (n, 2), "
                f"got {pairs.dtype} of shape {pairs.shape}"
            )
        if not 1 <= frames <= self.frames:
            raise SplatopError(
                f"expected a window of 1 to {self.frames} frames, which is what each trajectory "
                f"has, got {frames}"
            )
        last = np.array([self.trajectories - 1, self.frames - frames])
        outside = ((pairs < 0) | (pairs > last)).any(axis=1)
        if outside.any():
            trajectory, start = pairs[outside][0]
            raise SplatopError(
                f"expected trajectories below {self.trajectories} and windows of {frames} frames "
                f"that start at {last[1]} or before, got trajectory {trajectory}, start {start}"
            )

    def _check_finite(self, window: np.ndarray, trajectory: int, start: int) -> None:
        # A sum meets every NaN and infinity at a fraction of the cost of looking for them.
        with np.errstate(all="ignore"):
            if np.isfinite(window.sum()):
                return
        for offset, channel in np.argwhere(
            ~np.isfinite(window).all(axis=tuple(range(2, window.ndim)))
        ):
            raise SplatopError(
                f"{self.source}: expected finite values (below 3e38), got NaN or infinity in field "
                f"'{self.fields[channel]}' of trajectory {trajectory} at step {start + offset}: "
                "remove that trajectory or frame (times may be uneven)" + self._what_nan_may_be
            )

    @property
    def _what_nan_may_be(self) -> str:
        if isinstance(self.grid, Points):
            return (
                "; if points miss values now and then, give those that are there as a table to "
                "splatop reconstruct or assimilate"
            )
        outside = ", or fill them in; if NaN marks what lies outside, such as land, give --mask nan"
        return outside if self.grid.dims == 2 else ", or fill them in"


def checked_metadata(
    shape: tuple[int, ...],
    dt: float,
    fields: tuple[str, ...],
    coefficients: Mapping[str, np.ndarray | float],
) -> tuple[float, tuple[str, ...], dict[str, np.ndarray]]:
    """Time step, field names and one coefficient per trajectory, for data `(B, T, C, *N)`."""
    if min(shape) < 1:
        raise SplatopError(f"expected data (B, T, C, *N) that is not empty, got shape {shape}")
    if min(shape[3:]) < 2:
        raise SplatopError(
            "expected at least two points along each axis of space, got a grid of "
            f"{' x '.join(map(str, shape[3:]))}: take an axis of one point out of the data"
        )
    if not (np.isfinite(dt) and dt > 0):
        raise SplatopError(f"expected a positive time step, got dt = {dt}")
    if len(fields) != shape[2] or len(set(fields)) != len(fields):
        raise SplatopError(
            f"expected one name of its own for each of the {shape[2]} channel(s), "
            f"got {', '.join(fields) or 'none'}"
        )
    per_trajectory = {}
    for name, value in coefficients.items():
        values = np.asarray(value, float)
        if values.shape not in ((), (shape[0],)):
            raise SplatopError(
                f"expected coefficient '{name}' as one number or one for each of the {shape[0]} "
                f"trajectories, got shape {values.shape}"
            )
        per_trajectory[name] = np.broadcast_to(values, (shape[0],)).copy()
    return float(dt), tuple(fields), per_trajectory

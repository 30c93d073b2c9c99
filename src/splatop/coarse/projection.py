"""From a fine grid into a coarse space: the same map for training data and for a user's states."""

from dataclasses import replace
from functools import lru_cache

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..data import Trajectories
from ..errors import SplatopError
from ..grid import Grid
from ..spectral import interpolation_matrix

# A field on another grid than the one it is made of.
Other = Float[Array, "C *M"]
# Fewer points than this along an axis hold no field worth stepping.
FEWEST = 8


def coarse_points(grid: Grid, factor: int) -> tuple[int, ...]:
    """The points per axis of a grid that is coarser by `factor`, an even number of them."""
    if not isinstance(factor, int) or isinstance(factor, bool) or factor < 1:
        raise SplatopError(
            f"expected a whole number of at least 1 to divide the points by, got coarse={factor}"
        )
    points = tuple(2 * round(n / factor / 2) if factor > 1 else n for n in grid.points)
    if min(points) < FEWEST:
        raise SplatopError(
            f"expected a factor that leaves at least {FEWEST} points along each axis, got "
            f"coarse={factor}, which leaves {' x '.join(map(str, points))} of "
            f"{' x '.join(map(str, grid.points))}: use a smaller one"
        )
    return points


@lru_cache(maxsize=64)
def truncation_matrix(source: int, target: int) -> np.ndarray:
    """Samples at `target` points of the modes that these tell apart, from `source` samples.

    A mode at the Nyquist limit is half a mode: it is dropped, so that the map is a projection that
    commutes with every shift of the field.
    """
    odd = target - 1 + target % 2
    return interpolation_matrix(odd, target) @ interpolation_matrix(source, odd)


def truncate(u: Float[Array, "C *N"], points: tuple[int, ...]) -> Other:
    """The modes of a periodic field below the Nyquist limit of a grid of `points`, sampled there:
    the closest field of that space in the mean square."""
    if u.ndim - 1 != len(points):
        raise SplatopError(f"expected {u.ndim - 1} numbers of points for {u.shape}, got {points}")
    for axis, target in enumerate(points, start=1):
        matrix = jnp.asarray(truncation_matrix(u.shape[axis], target), u.dtype)
        u = jnp.moveaxis(jnp.tensordot(matrix, u, axes=(1, axis)), 0, axis)
    return u


def truncated_frames(frames: np.ndarray, points: tuple[int, ...]) -> np.ndarray:
    """`truncate` of frames `(T, C, *N)` in NumPy, for data that are read by several threads."""
    for axis, target in enumerate(points, start=2):
        matrix = truncation_matrix(frames.shape[axis], target).astype(np.float32)
        frames = np.moveaxis(np.tensordot(matrix, frames, axes=(1, axis)), 0, axis)
    return np.ascontiguousarray(frames)


class CoarseTrajectories(Trajectories):
    """Every `stride`-th frame of other trajectories, on their grid or projected to `points`."""

    def __init__(
        self, whole: Trajectories, *, points: tuple[int, ...] | None = None, stride: int = 1
    ):
        self._like(whole)
        check_stride(stride, whole)
        if points is not None and not whole.domain.all_periodic:
            raise SplatopError(
                "expected a periodic box for a coarser grid, got "
                f"'{whole.domain.describe(whole.fields)}' in {whole.source}: leave out coarse, or "
                "ask for fewer Gaussians (anchors)"
            )
        if whole.inputs:
            raise SplatopError(
                f"expected data without inputs for a coarse model, got {', '.join(whole.inputs)}: "
                "leave out coarse and stride"
            )
        self.whole, self.stride = whole, stride
        self.dt, self.frames = whole.dt * stride, (whole.frames - 1) // stride + 1
        self.times = None if whole.times is None else whole.times[::stride][: self.frames]
        self.coordinates = {}
        self._points = None if points == whole.grid.points else points
        if points is not None:
            self.grid = replace(whole.grid, points=points)

    def read(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        begin, many = start * self.stride, (frames - 1) * self.stride + 1
        kept = self.whole.read(trajectory, begin, many)[:: self.stride]
        return kept if self._points is None else truncated_frames(kept, self._points)

    @property
    def observed(self) -> Trajectories:
        return self.whole.observed

    def close(self) -> None:
        self.whole.close()


def check_stride(stride: int, data: Trajectories) -> None:
    """Refuse a stride that leaves no step within a trajectory."""
    if not isinstance(stride, int) or isinstance(stride, bool) or stride < 1:
        raise SplatopError(f"expected a stride of at least one frame, got {stride}")
    if stride >= data.frames:
        raise SplatopError(
            f"expected a stride shorter than the trajectories, got {stride} frames in one step for "
            f"{data.frames} frames in {data.source}: use at most {data.frames - 1}"
        )

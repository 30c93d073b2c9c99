"""From a fine grid into a coarse space: the same map for training data and for a user's states."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..data import Trajectories
from ..domain import Domain
from ..errors import SplatopError
from ..grid import Grid
from ..points import Layout, Points
from ..spaces import between_ends
from ..spectral import Other, interpolation_matrix, resample

# Fewer points than this along an axis hold no field worth stepping; between two ends, where some of
# the Gaussians lie beyond them, it takes more.
FEWEST, FEWEST_BETWEEN = 8, 24
# An axis that is periodic; between two ends the word for an axis is where its points lie.
RING = "ring"


def axis_words(domain: Domain, layout: Layout) -> tuple[str, ...]:
    """What a projection has to know of each axis of a box: that it is a ring, or where its points
    lie between two ends. Nothing, `()`, where all of them are rings."""
    if domain.all_periodic:
        return ()
    if domain.shape is not None or isinstance(layout, Points):
        raise SplatopError(
            "expected a box for a coarser grid, got a shape: leave out coarse, which there is the "
            "number of Gaussians (anchors), and give a stride alone"
        )
    return tuple(
        RING if closed else word for closed, word in zip(domain.periodic, layout, strict=True)
    )


def coarse_points(grid: Grid, factor: int, words: tuple[str, ...] = ()) -> tuple[int, ...]:
    """The points per axis of a grid that is coarser by `factor`, an even number of them along a
    ring."""
    if not isinstance(factor, int) or isinstance(factor, bool) or factor < 1:
        raise SplatopError(
            f"expected a whole number of at least 1 to divide the points by, got coarse={factor}"
        )
    points = tuple(2 * round(n / factor / 2) if factor > 1 else n for n in grid.points)
    if not enough(points, words):
        least = FEWEST if not words else f"{FEWEST} (between two ends {FEWEST_BETWEEN})"
        raise SplatopError(
            f"expected a factor that leaves at least {least} points along each axis, got "
            f"coarse={factor}, which leaves {' x '.join(map(str, points))} of "
            f"{' x '.join(map(str, grid.points))}: use a smaller one"
        )
    return points


def enough(points: tuple[int, ...], words: tuple[str, ...] = ()) -> bool:
    """Whether a grid holds a field worth stepping."""
    return all(
        n >= (FEWEST if word == RING else FEWEST_BETWEEN) for n, word in _by_axis(points, words)
    )


def _by_axis(points: tuple[int, ...], words: tuple[str, ...]) -> list[tuple[int, str]]:
    return list(zip(points, words or (RING,) * len(points), strict=True))


@lru_cache(maxsize=64)
def truncation_matrix(source: int, target: int) -> np.ndarray:
    """Samples at `target` points of the modes that these tell apart, from `source` samples.

    A mode at the Nyquist limit is half a mode: it is dropped, so that the map is a projection that
    commutes with every shift of the field.
    """
    odd = target - 1 + target % 2
    return interpolation_matrix(odd, target) @ interpolation_matrix(source, odd)


@lru_cache(maxsize=64)
def _between(word: str, source: int, target: int) -> np.ndarray:
    """From samples between two ends to others of them, by the Gaussians that the fewer points of
    both tell apart: down a projection, up the field itself."""
    basis = between_ends(min(source, target))
    there, here = (Grid((n,), (1.0,), layout=(word,)).fractions()[0] for n in (target, source))
    return basis.evaluate(there) @ np.linalg.pinv(basis.evaluate(here), rcond=1e-6)


def _matrices(
    source: tuple[int, ...], target: tuple[int, ...], words: tuple[str, ...], around: Any
) -> list[np.ndarray]:
    """A matrix for each axis, that of a ring by `around(source, target)`."""
    return [
        around(n, m) if word == RING else _between(word, n, m)
        for n, (m, word) in zip(source, _by_axis(target, words), strict=True)
    ]


def _along_axes(u: Any, matrices: list[np.ndarray], first: int, xp: Any) -> Any:
    """A field with its axes from the `first` on multiplied by a matrix each, in NumPy or JAX."""
    for axis, matrix in enumerate(matrices, start=first):
        u = xp.moveaxis(xp.tensordot(xp.asarray(matrix, u.dtype), u, axes=(1, axis)), 0, axis)
    return u


def truncate(
    u: Float[Array, "C *N"], points: tuple[int, ...], words: tuple[str, ...] = ()
) -> Other:
    """The part of a field that a grid of `points` holds, sampled there.

    Around a ring these are the modes below the Nyquist limit: the closest field of that space in
    the mean square. Between two ends, which `words` tell (`axis_words`), it is the least-squares
    fit of half as many Gaussians as points.
    """
    if u.ndim - 1 != len(points):
        raise SplatopError(f"expected {u.ndim - 1} numbers of points for {u.shape}, got {points}")
    matrices = _matrices(tuple(u.shape[1:]), points, words, truncation_matrix)
    return _along_axes(u, matrices, 1, jnp)


def expand(
    state: Float[Array, "C *N"], points: tuple[int, ...], words: tuple[str, ...] = ()
) -> Other:
    """The field of a coarse state on a grid of `points`."""
    if not words:
        return resample(state, points)
    matrices = _matrices(tuple(state.shape[1:]), points, words, interpolation_matrix)
    return _along_axes(state, matrices, 1, jnp)


def truncated_frames(
    frames: np.ndarray, points: tuple[int, ...], words: tuple[str, ...] = ()
) -> np.ndarray:
    """`truncate` of frames `(T, C, *N)` in NumPy, for data that are read by several threads."""
    matrices = _matrices(tuple(frames.shape[2:]), points, words, truncation_matrix)
    return np.ascontiguousarray(_along_axes(frames.astype(np.float32), matrices, 2, np))


class CoarseTrajectories(Trajectories):
    """Every `stride`-th frame of other trajectories, on their grid or projected to `points`."""

    def __init__(
        self, whole: Trajectories, *, points: tuple[int, ...] | None = None, stride: int = 1
    ):
        self._like(whole)
        check_stride(stride, whole)
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
        self._words = () if points is None else axis_words(whole.domain, whole.grid.layout)
        if points is not None:
            self.grid = replace(whole.grid, points=points)

    def read(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        begin, many = start * self.stride, (frames - 1) * self.stride + 1
        kept = self.whole.read(trajectory, begin, many)[:: self.stride]
        return kept if self._points is None else truncated_frames(kept, self._points, self._words)

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

"""Where samples of a field lie, and a field at other points than its samples."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import SplatopError
from ..grid import Grid
from ..points import Points
from .axis import BEYOND, LEAST_ANCHORS, WallBasis, ring, walls

# Where the points of a grid lie along each axis, as fractions of it.
Fractions = tuple[np.ndarray, ...]
# Where the samples of a state lie: on a grid, or at scattered points of a shape.
Sampling = Fractions | Points

# Anchors for each sample between two ends, as a fit of data takes at most, and functions, of which
# there are more: some of the Gaussians lie beyond the ends.
_ANCHORS, _FUNCTIONS = 0.5, 0.7


def between_ends(samples: int) -> WallBasis:
    """The Gaussians that so many samples between two ends tell apart, without conditions."""
    anchors = min(int(_ANCHORS * samples), int(_FUNCTIONS * samples) - 2 * BEYOND)
    return walls(max(LEAST_ANCHORS, anchors), ("free", "free"))


def by_axis(along: Sampling) -> Fractions:
    """Samples on a grid, which a box has."""
    if isinstance(along, Points):
        raise SplatopError("expected a state on a grid for a box, got scattered points")
    return along


def at_points(along: Sampling) -> Points:
    """Samples at points, which a shape has."""
    if not isinstance(along, Points):
        raise SplatopError("expected a state at points for a shape, got one on a grid")
    return along


def root_of(matrix: np.ndarray) -> np.ndarray:
    """The triangle `T` of `(..., r, r)` with `‖T c‖ = ‖M c‖` for a matrix `(..., N, r)`."""
    found = np.asarray(np.linalg.qr(matrix, mode="r"))
    missing = matrix.shape[-1] - found.shape[-2]
    return np.pad(found, [(0, 0)] * (found.ndim - 2) + [(0, missing), (0, 0)])


def resampled_between(
    samples: Float[Array, "C *N"],
    layout: tuple[str, ...],
    fractions: tuple[tuple[float, ...], ...],
    *,
    scattered: bool,
) -> Float[Array, "C *Q"]:
    """The field at fractions of each axis, or of every axis at `scattered` points.

    Its samples lie as `layout` says: `left` around a ring, `ends` or `cells` between two ends,
    where the field is a combination of Gaussians without conditions.
    """
    points = samples.shape[1:]
    if len(layout) != len(points):
        raise SplatopError(
            "expected to know where the samples of a velocity lie between walls, one of 'ends', "
            f"'cells' or 'left' (periodic) for each of {len(points)} axes, got "
            f"{', '.join(layout) or 'nothing'}: give Advection(velocity, layout=...)"
        )
    at = Grid(points, (1.0,) * len(points), layout=layout).fractions()
    matrices = [
        jnp.asarray(_matrix(word, x, np.asarray(wanted)), samples.dtype)
        for word, x, wanted in zip(layout, at, fractions, strict=True)
    ]
    found = samples
    for axis, matrix in reversed(list(enumerate(matrices, start=1))):
        if scattered and axis < len(points):
            found = jnp.einsum("c...nq,qn->c...q", found, matrix)
        else:
            found = jnp.moveaxis(jnp.tensordot(found, matrix, axes=(axis, 1)), -1, axis)
    return found


def _matrix(layout: str, x: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """From samples of an axis to other points of it, `(Q, N)`."""
    count = len(x)
    basis = ring((count - 1) // 2) if layout == "left" else between_ends(count)
    return basis.evaluate(wanted) @ np.linalg.pinv(basis.evaluate(x), rcond=1e-6)

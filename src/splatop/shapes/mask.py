"""The shape that a mask of a grid shows: its contour, smoothed. Its edge is known to a cell."""

import numpy as np

from ..errors import SplatopError
from .combinations import Intersection
from .pieces import Place
from .primitives import Box, Outline
from .shape import Shape

# σ over which the steps of a mask are smoothed, in cells, for a region as narrow as one cell: it
# grows like the root of the narrowest region's width. Steps are then averaged over more cells of a
# finer grid, and yet over a smaller part of the region.
SMOOTHING = 0.4
# Cells between corners of the contour.
CORNERS = 2.0
# A region of fewer cells is a speck.
_LEAST_CELLS = 16
_MARGIN = 6


def shape_of_mask(mask: np.ndarray, first: Place, spacing: Place, low: Place, high: Place) -> Shape:
    """The shape where a mask `(Nx, Ny)` is True, in the box from `low` to `high`.

    `first` is the place of the first point. Where the mask reaches the box's side, that is the
    edge; elsewhere it runs between the points that are inside and those that are not.
    """
    from skimage.measure import find_contours

    if mask.all():
        return Box(low, high)
    if not mask.any():
        raise SplatopError("expected a mask with points inside, got none: is it upside down?")
    # The mask goes on beyond the box, so that its contour crosses the box's sides squarely.
    wide = np.pad(mask.astype(float), _MARGIN, mode="edge")
    smooth = np.pad(_smoothed(wide, SMOOTHING * np.sqrt(_narrowest(wide > 0.5))), 1)
    rings = []
    for contour in find_contours(smooth, 0.5):
        ring = _resampled(contour[:-1])
        x, y = ring[:, 0], ring[:, 1]
        area = abs(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))) / 2
        if area < _LEAST_CELLS or len(ring) < 6:
            continue
        places = np.asarray(first) + (ring - _MARGIN - 1) * np.asarray(spacing)
        rings.append(tuple((float(x), float(y)) for x, y in places))
    if not rings:
        raise SplatopError(
            f"expected a mask with a region of at least {_LEAST_CELLS} cells, got specks: give "
            "--shape instead"
        )
    names = tuple((f"mask{k}",) * len(ring) for k, ring in enumerate(rings, start=1))
    return Intersection(Outline(tuple(rings), names, exact=False), Box(low, high))


def _smoothed(mask: np.ndarray, width: float) -> np.ndarray:
    """By a kernel without second moment: one with it, as a Gaussian, moves a curved edge inwards by
    σ²/2R."""
    from scipy.ndimage import gaussian_filter

    return 2 * gaussian_filter(mask, width) - gaussian_filter(mask, np.sqrt(2) * width)


def _narrowest(mask: np.ndarray) -> float:
    """Cells across the narrowest region inside or outside: twice its area over its edge."""
    from scipy.ndimage import binary_erosion, label

    widths = []
    for kind in (mask, ~mask):
        regions, count = label(kind)  # type: ignore[misc]
        for number in range(1, count + 1):
            region = regions == number
            area = int(region.sum())
            if area >= _LEAST_CELLS:
                edge = area - int(binary_erosion(region, border_value=1).sum())
                widths.append(2 * area / max(edge, 1))
    return max(min(widths, default=1.0), 2.0)


def _resampled(ring: np.ndarray) -> np.ndarray:
    """Corners at even distances around a closed ring."""
    steps = np.linalg.norm(np.diff(ring, axis=0, append=ring[:1]), axis=1)
    way = np.concatenate([[0.0], np.cumsum(steps)])
    count = max(6, round(way[-1] / CORNERS))
    at = np.arange(count) / count * way[-1]
    closed = np.concatenate([ring, ring[:1]])
    return np.stack([np.interp(at, way, closed[:, k]) for k in (0, 1)], axis=1)

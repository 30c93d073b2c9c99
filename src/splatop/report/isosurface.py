"""Isosurfaces of 3D fields, in one shaded picture."""

import io
from collections.abc import Sequence

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from scipy.ndimage import map_coordinates
from skimage.measure import marching_cubes

# The paper shows +0.4 and -0.4 of fields whose largest value is 1.
LEVEL = 0.4
POSITIVE, NEGATIVE = "#d6604d", "#4393c3"
# Readable on white and on black, as the page may be either.
_TEXT, _EDGE = "#757c85", "#a2a9b2"
_ELEVATION, _AZIMUTH = 22.0, -58.0
_VIEW = np.array([0.49, -0.79, 0.37])  # the direction of those angles
_LIGHT = np.array([0.15, -0.56, 0.81])

_CORNERS = np.array([[i >> 2 & 1, i >> 1 & 1, i & 1] for i in range(8)])


def isosurface(values: np.ndarray, level: float) -> np.ndarray:
    """Triangles `(n, 3, 3)` of the surface `values == level`, in grid cells, oriented downhill.

    The box is not closed over its periodic seam, so that surfaces end at its faces.
    """
    if not values.min() < level < values.max():
        return np.zeros((0, 3, 3))
    vertices, faces, _, _ = marching_cubes(values, level, gradient_direction="ascent")
    return vertices[faces].astype(float)


def draw_isosurfaces(
    fields: Sequence[np.ndarray], *, level: float, lengths: tuple[float, ...]
) -> bytes:
    """A WebP picture with the surfaces at `level` and `-level` of each field, side by side."""
    figure = Figure(figsize=(2.45 * len(fields), 2.4), dpi=110)
    figure.patch.set_alpha(0)
    for column, values in enumerate(fields, start=1):
        axes = figure.add_subplot(1, len(fields), column, projection="3d")
        _draw(axes, values, level, lengths)
    figure.subplots_adjust(left=0, right=1, bottom=0.01, top=0.99, wspace=0)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="webp", pil_kwargs={"quality": 88, "method": 6})
    return buffer.getvalue()


def _slopes(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Unit gradients between grid points: smooth, where the normals of slivers are not."""
    slopes = np.gradient(values)
    found = np.stack(
        [map_coordinates(s, places.T, order=1, mode="nearest") for s in slopes], axis=1
    )
    return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)


def add_surfaces(axes, values: np.ndarray, level: float, lengths: tuple[float, ...]) -> None:
    """Draw the surfaces at `level` and `-level` into a box of these lengths, shaded; nothing where
    the field is not finite."""
    faces, colours = [], []
    for sign, colour in ((1, POSITIVE), (-1, NEGATIVE)):
        if not np.isfinite(values).all():
            continue
        found = isosurface(sign * values, level)
        if len(found):
            normal = _slopes(values, found.mean(axis=1))
            # Lit from both sides: where a surface ends at a face of the box, one looks inside.
            normal *= np.where(normal @ _VIEW < 0, -1, 1)[:, None]
            bright = 0.58 + 0.42 * np.clip(normal @ _LIGHT, -0.4, 1)
            faces.append(found * (np.array(lengths) / np.array(values.shape)))
            colours.append(np.clip(np.array(to_rgb(colour)) * bright[:, None], 0, 1))
    if faces:
        axes.add_collection3d(
            # Edges in the colour of their face close the seams that smoothing leaves.
            Poly3DCollection(
                np.concatenate(faces),
                facecolors=np.concatenate(colours),
                edgecolors=np.concatenate(colours),
                linewidths=0.4,
            )
        )
    axes.set(xlim=(0, lengths[0]), ylim=(0, lengths[1]), zlim=(0, lengths[2]))


def _draw(axes, values: np.ndarray, level: float, lengths: tuple[float, ...]) -> None:
    add_surfaces(axes, values, level, lengths)
    axes.set_box_aspect(lengths, zoom=1.08)
    axes.view_init(elev=_ELEVATION, azim=_AZIMUTH)
    axes.set_axis_off()
    axes.patch.set_alpha(0)
    ends = _CORNERS * np.array(lengths)
    for a, b in ((i, i | bit) for i in range(8) for bit in (1, 2, 4) if not i & bit):
        # The corner away from the viewer is at x = 0 and y = L: its edges lie behind.
        hidden = {a, b} & {0b010}
        axes.plot(
            *ends[[a, b]].T,
            color=_EDGE,
            linewidth=0.5 if hidden else 0.8,
            linestyle=":" if hidden else "-",
        )
    for name, at in (("x", (0.5, -0.1, 0)), ("y", (1.1, 0.5, 0)), ("z", (1.06, 1.04, 0.5))):
        axes.text(
            *np.array(at) * lengths,
            name,
            fontsize=8,
            color=_TEXT,
            style="italic",
            ha="center",
            va="center",
        )

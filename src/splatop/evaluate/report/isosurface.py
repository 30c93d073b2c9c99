"""Isosurfaces of periodic 3D fields: marching tetrahedra and one shaded picture."""

import io
from collections.abc import Sequence
from itertools import permutations

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

# The paper shows +0.4 and -0.4 of fields whose largest value is 1.
LEVEL = 0.4
POSITIVE, NEGATIVE = "#d6604d", "#4393c3"
_LIGHT = np.array([0.35, -0.55, 0.76])

# A cube falls into six tetrahedra around its diagonal, one for each order of the axes.
_CORNERS = np.array([[i >> 2 & 1, i >> 1 & 1, i & 1] for i in range(8)])


def _tetrahedra() -> np.ndarray:
    found = []
    for order in permutations(range(3)):
        corner, path = np.zeros(3, int), [0]
        for axis in order:
            corner[axis] = 1
            path.append(int(corner @ [4, 2, 1]))
        found.append(path)
    return np.array(found)


def isosurface(values: np.ndarray, level: float) -> np.ndarray:
    """Triangles `(n, 3, 3)` of the surface `values == level`, in grid cells, oriented downhill.

    The box is not closed over its periodic seam, so that surfaces end at its faces.
    """
    shape = np.array(values.shape) - 1
    origin = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1).reshape(-1, 1, 3)
    corner = origin + _CORNERS  # (cells, 8, 3)
    height = values[tuple(np.moveaxis(corner, -1, 0))] - level
    crossed = (height.min(axis=1) < 0) & (height.max(axis=1) >= 0)
    corner, height = corner[crossed].astype(float), height[crossed]
    triangles = []
    for tetrahedron in _tetrahedra():
        place, depth = corner[:, tetrahedron], height[:, tetrahedron]
        inside = depth >= 0
        count = inside.sum(axis=1)
        for wanted in (1, 2, 3):
            chosen = count == wanted
            if chosen.any():
                triangles += _cut(place[chosen], depth[chosen], inside[chosen], wanted)
    return np.concatenate(triangles) if triangles else np.zeros((0, 3, 3))


def _cut(place: np.ndarray, depth: np.ndarray, inside: np.ndarray, count: int) -> list[np.ndarray]:
    """The triangle or quadrilateral in which a plane cuts tetrahedra with `count` corners inside."""
    order = np.argsort(~inside, axis=1, kind="stable")  # corners inside come first
    place = np.take_along_axis(place, order[..., None], axis=1)
    depth = np.take_along_axis(depth, order, axis=1)

    def crossing(a: int, b: int) -> np.ndarray:
        share = depth[:, a] / (depth[:, a] - depth[:, b])
        return place[:, a] + share[:, None] * (place[:, b] - place[:, a])

    downhill = place[:, count:].mean(axis=1) - place[:, :count].mean(axis=1)
    if count == 1:
        faces = [np.stack([crossing(0, 1), crossing(0, 2), crossing(0, 3)], 1)]
    elif count == 3:
        faces = [np.stack([crossing(0, 3), crossing(1, 3), crossing(2, 3)], 1)]
    else:
        a, b, c, d = crossing(0, 2), crossing(0, 3), crossing(1, 3), crossing(1, 2)
        faces = [np.stack([a, b, c], 1), np.stack([a, c, d], 1)]
    return [_oriented(face, downhill) for face in faces]


def _oriented(face: np.ndarray, outward: np.ndarray) -> np.ndarray:
    normal = np.cross(face[:, 1] - face[:, 0], face[:, 2] - face[:, 0])
    flip = (normal * outward).sum(axis=1) < 0
    face[flip] = face[flip][:, ::-1]
    return face


def draw_isosurfaces(
    rows: Sequence[tuple[str, Sequence[np.ndarray]]],
    columns: Sequence[str],
    *,
    level: float,
    lengths: tuple[float, ...],
) -> bytes:
    """A PNG with one row of pictures per label: the surfaces at `level` and `-level`."""
    figure = Figure(figsize=(2.45 * len(columns), 2.5 * len(rows)), dpi=110)
    figure.patch.set_alpha(0)
    for r, (label, fields) in enumerate(rows):
        for c, values in enumerate(fields):
            axes = figure.add_subplot(
                len(rows), len(columns), r * len(columns) + c + 1, projection="3d"
            )
            _draw(axes, values, level, lengths)
            if r == 0:
                axes.set_title(columns[c], fontsize=10, pad=-2, color="#222")
            if c == 0:
                axes.text2D(-0.06, 0.5, label, transform=axes.transAxes, rotation=90,
                            va="center", ha="center", fontsize=10, color="#222", parse_math=False)
    figure.subplots_adjust(left=0.03, right=1, bottom=0, top=0.95, wspace=-0.02, hspace=0)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def _draw(axes, values: np.ndarray, level: float, lengths: tuple[float, ...]) -> None:
    faces, colours = [], []
    for sign, colour in ((1, POSITIVE), (-1, NEGATIVE)):
        found = isosurface(sign * values, level) if np.isfinite(values).all() else []
        if len(found):
            normal = np.cross(found[:, 1] - found[:, 0], found[:, 2] - found[:, 0])
            normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-12)
            bright = 0.62 + 0.38 * (normal @ _LIGHT)
            faces.append(found * (np.array(lengths) / np.array(values.shape)))
            colours.append(np.clip(np.array(to_rgb(colour)) * bright[:, None], 0, 1))
    if faces:
        axes.add_collection3d(
            Poly3DCollection(np.concatenate(faces), facecolors=np.concatenate(colours), linewidths=0)
        )
    axes.set(xlim=(0, lengths[0]), ylim=(0, lengths[1]), zlim=(0, lengths[2]))
    axes.set_box_aspect(lengths, zoom=1.12)
    axes.view_init(elev=22, azim=-58)
    axes.tick_params(labelsize=6, pad=-4, colors="#555")
    for axis, name, length in zip((axes.xaxis, axes.yaxis, axes.zaxis), "xyz", lengths, strict=True):
        axis.set_ticks([0, length])
        axis.set_tick_params(which="both", length=0)
        axis.pane.set(facecolor="#f6f6f6", edgecolor="#cccccc")
        axis.set_label_text(name, fontsize=7, color="#555")
        axis.labelpad = -14
    axes.grid(False)

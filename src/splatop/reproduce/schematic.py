"""The method in one figure: a frame as Gaussians with its derivatives, and the composite step."""

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from .encoding import Encoding
from .plots import styled
from .style import COLOURS, FIELD_MAP

_INK = "#333333"


@styled
def architecture_figure(encoding: Encoding) -> Figure:
    """Stage 1 with the fields of one frame, stage 2 as a diagram."""
    figure = Figure(figsize=(9.2, 4.6))
    upper, lower = figure.subfigures(2, 1, height_ratios=(1.0, 1.05)).ravel()  # pyright: ignore[reportAttributeAccessIssue]
    _representation(upper, encoding)
    _composite(lower.add_axes((0.0, 0.0, 1.0, 0.88)))
    upper.text(0.012, 0.95, "(a) a frame as Gaussians, derivatives in closed form", fontsize=9.5)
    lower.text(0.012, 0.94, "(b) one step of the surrogate", fontsize=9.5)
    return figure


def _representation(part, encoding: Encoding) -> None:
    pictures = (
        ("frame $u(t)$", encoding.field),
        (f"{len(encoding.center)} Gaussians", None),
        ("rendered $\\hat u$", encoding.rendered),
        ("$\\partial_x \\hat u$", encoding.slope),
        ("$\\Delta \\hat u$", encoding.laplacian),
    )
    width, gap, left = 0.155, 0.045, 0.02
    limit = float(np.abs(encoding.field).max())
    for index, (title, values) in enumerate(pictures):
        ax = part.add_axes((left + index * (width + gap), 0.06, width, 0.72))
        if values is None:
            _ellipses(ax, encoding)
        else:
            largest = limit if index in (0, 2) else float(np.abs(values).max())
            ax.imshow(
                values.T, origin="lower", extent=(0, 1, 0, 1), cmap=FIELD_MAP,
                vmin=-largest, vmax=largest, interpolation="bilinear", rasterized=True,
            )  # fmt: skip
        ax.set_title(title, loc="center", fontsize=9)
        ax.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1), aspect="equal")
        ax.grid(False)
        for spine in ax.spines.values():
            spine.set(visible=True, linewidth=0.6, color="#888888")
        name = {1: "encode", 2: "render"}.get(index)
        if name:
            x = left + index * (width + gap) - gap / 2
            part.text(x, 0.42, "→", ha="center", va="center", fontsize=14, color=_INK)
            part.text(x, 0.50, name, ha="center", fontsize=6.5, color="#555555")


def _ellipses(ax: Axes, encoding: Encoding) -> None:
    """Each primitive as its one-sigma ellipse, coloured by its amplitude."""
    variance, axes = np.linalg.eigh(encoding.covariance)
    angle = np.degrees(np.arctan2(axes[:, 1, 1], axes[:, 0, 1]))
    size = 2 * np.sqrt(variance)
    largest = float(np.abs(encoding.amplitude).max()) or 1.0
    colours = matplotlib.colormaps[FIELD_MAP](0.5 + 0.5 * encoding.amplitude / largest)
    colours[:, 3] = 0.12 + 0.6 * np.abs(encoding.amplitude) / largest
    ax.add_collection(
        EllipseCollection(
            size[:, 1],
            size[:, 0],
            angle,
            units="xy",
            offsets=encoding.center,
            offset_transform=ax.transData,
            facecolors=colours,
            edgecolor="#00000030",
            linewidth=0.35,
        )
    )


def _composite(ax: Axes) -> None:
    ax.set(xlim=(0, 10), ylim=(0, 4))
    ax.axis("off")
    blue, orange = COLOURS["surrogate"], COLOURS["fno"]
    _box(ax, (0.2, 1.55, 1.15, 0.9), "state\n$u(t)$", "#EEEEEE", _INK)
    _box(ax, (2.0, 2.35, 1.35, 1.0), "Gaussian\nencoder", "#E6F1F8", blue)
    _box(
        ax,
        (3.65, 2.35, 1.5, 1.0),
        "derivatives\n$\\Pi_\\kappa\\,\\partial^p \\hat u$",
        "#E6F1F8",
        blue,
    )
    _box(
        ax,
        (5.45, 2.35, 1.55, 1.0),
        "equation\n$\\mathcal{F}[u, \\ldots; \\lambda]$",
        "#E6F1F8",
        blue,
    )
    _box(ax, (7.3, 2.35, 0.95, 1.0), "RK4,\nfilter", "#E6F1F8", blue)
    _box(
        ax,
        (3.65, 0.5, 3.35, 1.0),
        "neural operator $\\mathcal{N}_\\theta(u; \\lambda)$",
        "#FBEADD",
        orange,
    )
    _box(ax, (8.85, 1.55, 1.0, 0.9), "$u(t{+}\\Delta t)$", "#EEEEEE", _INK)
    ax.text(8.52, 2.0, "+", fontsize=15, ha="center", va="center", color=_INK,
            bbox={"boxstyle": "circle,pad=0.12", "fc": "white", "ec": _INK, "lw": 1.0})  # fmt: skip
    for start, end, bend in (
        ((1.35, 2.1), (2.0, 2.85), 0.0),
        ((3.35, 2.85), (3.65, 2.85), 0.0),
        ((5.15, 2.85), (5.45, 2.85), 0.0),
        ((7.0, 2.85), (7.3, 2.85), 0.0),
        ((8.25, 2.85), (8.5, 2.22), 0.0),
        ((1.35, 1.9), (3.65, 1.0), 0.0),
        ((7.0, 1.0), (8.42, 1.84), 0.0),
        ((8.66, 2.0), (8.85, 2.0), 0.0),
    ):
        ax.add_patch(
            FancyArrowPatch(
                start,
                end,
                connectionstyle=f"arc3,rad={bend}",
                arrowstyle="-|>",
                mutation_scale=9,
                linewidth=1.1,
                color=_INK,
                shrinkA=0,
                shrinkB=0,
            )
        )
    ax.text(4.6, 3.58, "embedded physics $\\Phi$, no gradient passes through it", ha="center",
            fontsize=8, color=blue)  # fmt: skip
    ax.text(5.3, 0.2, "trained by rollout", ha="center", fontsize=8, color=orange)


def _box(
    ax: Axes, place: tuple[float, float, float, float], text: str, fill: str, edge: str
) -> None:
    x, y, width, height = place
    ax.add_patch(
        FancyBboxPatch(
            (x, y),
            width,
            height,
            boxstyle="round,pad=0,rounding_size=0.12",
            facecolor=fill,
            edgecolor=edge,
            linewidth=1.2,
        )
    )
    ax.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=8.5, color=_INK)

"""Draw the figures of docs/results.md from the JSON files that tools/measure.py wrote."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from rivals import read as read_rivals
from splatop.data.atomic import complete_or_absent
from splatop.evaluate import Metrics
from splatop.evaluate.labels import default_name
from splatop.evaluate.published import published_representation, published_rollout
from splatop.reproduce.plots import rollout_grid, spectra_grid, styled
from splatop.reproduce.style import RC

PUBLISHED_COLOUR = "#777777"


def draw_all(shipped: dict[str, Metrics], results: Path, images: Path) -> None:
    """Write `results-*.png` into `images`."""
    shown = {
        name: _by_kind(m for m in (metrics, metrics.physics_alone) if m)
        for name, metrics in shipped.items()
    }
    drawn = {
        "rollouts": _with_published(rollout_grid(shown), list(shown)),
        "spectra": spectra_grid(shown),
        "anchors": anchors_figure(results / "anchors", "advection_allen_cahn2d"),
    }
    if rivals := read_rivals():
        drawn["rivals"] = rivals_figure(rivals)
    for name, figure in drawn.items():
        path = images / f"results-{name}.png"
        with matplotlib.rc_context(RC), complete_or_absent(path) as partial:
            # No version of matplotlib in it: the same numbers give the same file.
            figure.savefig(
                partial, format="png", dpi=110, bbox_inches="tight", metadata={"Software": None}
            )


def _by_kind(several: Iterable[Metrics]) -> list[Metrics]:
    """Named by what kind of model it is: the benchmark stands above the panel."""
    return [replace(m, model={**m.model, "name": default_name(m.model)}) for m in several]


def _with_published(figure: Figure, names: list[str]) -> Figure:
    """The paper's mean over the rollout as a dashed line."""
    with matplotlib.rc_context(RC):
        for ax, name in zip(figure.axes, names, strict=False):
            paper = published_rollout(name).get("surrogate")
            if paper is None:
                continue
            ax.axhline(paper.rl2[0], color=PUBLISHED_COLOUR, linestyle="--", linewidth=1.0)
            ax.annotate(
                f"paper's mean {paper.rl2[0]:.3f} (published)", (1, paper.rl2[0]),
                xycoords=("axes fraction", "data"), xytext=(-3, -3), textcoords="offset points",
                ha="right", va="top", fontsize=7, color=PUBLISHED_COLOUR,
            )  # fmt: skip
    return figure


@styled
def anchors_figure(folder: Path, name: str) -> Figure:
    """Representation errors against the number of Gaussians: lattice and learned geometry."""
    measured = {
        int(path.name.split(".")[1]): json.loads(path.read_text())
        for path in folder.glob(f"{name}.*.json")
    }
    counts = sorted(measured)
    published = published_representation(name)
    figure = Figure(figsize=(8.4, 2.7), layout="constrained")
    panels = {"e_u": "$e_u$", "e_grad": "$e_{\\nabla u}$", "e_lap": "$e_{\\Delta u}$"}
    for ax, (error, title) in zip(figure.subplots(1, len(panels)), panels.items(), strict=True):
        for kind, mark in (("lattice", "o-"), ("learned", "s-")):
            ax.plot(counts, [measured[a][kind][error] for a in counts], mark, label=kind)
        if published:
            style = {"color": PUBLISHED_COLOUR, "markerfacecolor": "white"}
            ax.plot(20, published[error], "D", label="paper, published", **style)
        ax.set(xlabel="anchors per axis $A$", yscale="log", xscale="log", title=title)
        ax.set_xticks(counts, [str(a) for a in counts])
        ax.minorticks_off()
    figure.axes[0].set_ylabel("relative error")
    figure.axes[0].legend()
    return figure


@styled
def rivals_figure(measured: dict[str, dict[str, list[dict]]]) -> Figure:
    """Error against the time of training, a panel for each benchmark; published ones as lines."""
    names = {"surrogate": "splatop", "fno": "FNO", "unet": "U-Net"}
    figure = Figure(figsize=(3.0 * max(len(measured), 1), 2.8), layout="constrained")
    panels = figure.subplots(1, max(len(measured), 1), squeeze=False)[0]
    for ax, (name, contenders) in zip(panels, measured.items(), strict=False):
        for kind, points in contenders.items():
            known = [p for p in points if p["rl2"] is not None]
            ax.plot(
                [p["minutes"] for p in known], [p["rl2"] for p in known], "o-", label=names[kind]
            )
        for kind, row in published_rollout(name).items():
            if kind in names:
                ax.axhline(row.rl2[0], color=PUBLISHED_COLOUR, linestyle="--", linewidth=1.0)
                label = {**names, "surrogate": "paper's"}[kind]
                ax.annotate(f"{label}, published", (1, row.rl2[0]), xycoords=("axes fraction", "data"),
                            ha="right", va="bottom", fontsize=7, color=PUBLISHED_COLOUR)  # fmt: skip
        ax.set(xscale="log", yscale="log", xlabel="processor, minutes", title=name)
    panels[0].set_ylabel("mean rL2, 200 steps")
    panels[0].legend()
    return figure

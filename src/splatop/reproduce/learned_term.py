"""A learned term as a picture: what it is over the range of the data that it was learned from."""

import numpy as np
from matplotlib.figure import Figure

from ..errors import SplatopError
from ..model import Model
from ..report.term_curves import (
    Curve,
    Map,
    curves,
    learned_term,
    sampled_arguments,
    shown_as,
    term_map,
)
from .plots import styled

_SHADE = "0.85"
_COLUMNS = 4


@styled
def draw_learned(model: Model) -> Figure:
    """A curve for one argument, a map for two, partial dependence for more; grey is where there
    were no data."""
    term = learned_term(model)
    if term is None:
        raise SplatopError("expected a model with a learned term, got one without: train with ?")
    names, samples = sampled_arguments(model.record.get("unknown") or {})
    labels = shown_as(term)
    if len(names) == 2:
        return _map(term_map(term, names, samples), labels)
    return _curves(curves(term, names, samples), labels)


def _curves(found: list[Curve], labels: tuple[str, ...]) -> Figure:
    wide, high = min(len(found), _COLUMNS), -(-len(found) // _COLUMNS)
    figure = Figure(figsize=(3.2 * wide, 2.6 * high))
    axes = figure.subplots(high, wide, squeeze=False)
    for one, ax in zip(found, axes.ravel(), strict=False):
        for label, y in zip(labels, one.y, strict=True):
            ax.plot(one.x, y, label=label)
        ax.axvspan(one.x[0], one.low, color=_SHADE)
        ax.axvspan(one.high, one.x[-1], color=_SHADE)
        ax.set_xlabel(one.name)
        ax.set_xlim(one.x[0], one.x[-1])
    for ax in axes.ravel()[len(found) :]:
        ax.remove()
    axes[0, 0].set_ylabel("learned term" if len(found) == 1 else "learned term, mean")
    axes[0, 0].legend(frameon=False)
    figure.tight_layout()
    return figure


def _map(found: Map, labels: tuple[str, ...]) -> Figure:
    figure = Figure(figsize=(3.8 * len(labels), 3.0))
    axes = figure.subplots(1, len(labels), squeeze=False)[0]
    grey = np.ma.masked_where(~found.empty.T, np.ones(found.empty.shape))
    for label, value, ax in zip(labels, found.values, axes, strict=True):
        drawn = ax.pcolormesh(found.x, found.y, value.T, shading="auto", rasterized=True)
        ax.pcolormesh(
            found.x, found.y, grey, cmap="Greys", vmin=0, vmax=2, alpha=0.6, rasterized=True
        )
        ax.set_xlabel(found.names[0])
        ax.set_ylabel(found.names[1])
        ax.set_title(f"learned term {label}")
        figure.colorbar(drawn, ax=ax)
    figure.tight_layout()
    return figure

"""A learned term as a picture: what it is over the range of the data that it was learned from."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

from ..equation import LearnedTerm
from ..errors import SplatopError
from ..model import Model
from .plots import styled

# How far beyond the range of the data a picture goes, as a share of it.
_BEYOND = 0.15
_POINTS = 121
_SHADE = "0.85"


def learned_term(model: Model) -> LearnedTerm | None:
    """The term of a model's physics that was learned, if there is one."""
    physics = model.physics
    terms = () if physics is None else physics.equation.terms
    return next((term for term in terms if isinstance(term, LearnedTerm)), None)


@styled
def draw_learned(model: Model) -> Figure:
    """A curve for one argument, a map for two, partial dependence for more; grey is where there
    were no data."""
    term = learned_term(model)
    about: Any = (model.record.get("unknown") or {}).get("learned")
    if term is None or not about:
        raise SplatopError("expected a model with a learned term, got one without: train with ?")
    names, samples = about["arguments"], np.asarray(about["samples"], np.float64)
    if len(names) == 2:
        return _map(term, names, samples)
    figure = Figure(figsize=(3.2 * min(len(names), 4), 2.6 * -(-len(names) // 4)))
    axes = figure.subplots(-(-len(names) // 4), min(len(names), 4), squeeze=False)
    for index, (name, ax) in enumerate(zip(names, axes.ravel(), strict=False)):
        low, high = samples[:, index].min(), samples[:, index].max()
        beyond = _BEYOND * (high - low or 1.0)
        x = np.linspace(low - beyond, high + beyond, _POINTS)
        for target, y in zip(term.targets, _dependence(term, samples, index, x), strict=False):
            ax.plot(x, y, label=f"in dt({target})")
        ax.axvspan(x[0], low, color=_SHADE)
        ax.axvspan(high, x[-1], color=_SHADE)
        ax.set_xlabel(name)
        ax.set_xlim(x[0], x[-1])
    for ax in axes.ravel()[len(names) :]:
        ax.remove()
    axes[0, 0].set_ylabel("learned term" if len(names) == 1 else "learned term, mean")
    axes[0, 0].legend(frameon=False)
    figure.tight_layout()
    return figure


def _dependence(term: LearnedTerm, samples: np.ndarray, index: int, x: np.ndarray) -> np.ndarray:
    """Outputs `(O, n)` at values of one argument, the mean over those of the others."""
    if samples.shape[1] == 1:
        return np.asarray(term.values(jnp.asarray(x[None], jnp.float32)))
    found = []
    for value in x:
        moved = samples.copy()
        moved[:, index] = value
        found.append(np.asarray(term.values(jnp.asarray(moved.T, jnp.float32))).mean(axis=1))
    return np.stack(found, axis=1)


def _map(term: LearnedTerm, names: list[str], samples: np.ndarray) -> Figure:
    low, high = samples.min(axis=0), samples.max(axis=0)
    beyond = _BEYOND * np.where(high > low, high - low, 1.0)
    x, y = (np.linspace(low[i] - beyond[i], high[i] + beyond[i], _POINTS) for i in (0, 1))
    both = np.stack([part.ravel() for part in np.meshgrid(x, y, indexing="ij")])
    values = np.asarray(term.values(jnp.asarray(both, jnp.float32)))
    values = values.reshape(-1, _POINTS, _POINTS)
    counts, xs, ys = np.histogram2d(*samples.T, bins=16, range=[(x[0], x[-1]), (y[0], y[-1])])
    empty = np.ma.masked_where(counts.T > 0, np.ones_like(counts))
    figure = Figure(figsize=(3.8 * len(term.targets), 3.0))
    axes = figure.subplots(1, len(term.targets), squeeze=False)[0]
    for target, value, ax in zip(term.targets, values, axes, strict=False):
        drawn = ax.pcolormesh(x, y, value.T, shading="auto", rasterized=True)
        ax.pcolormesh(xs, ys, empty, cmap="Greys", vmin=0, vmax=2, alpha=0.6, rasterized=True)
        ax.set_xlabel(names[0])
        ax.set_ylabel(names[1])
        ax.set_title(f"learned term in dt({target})")
        figure.colorbar(drawn, ax=ax)
    figure.tight_layout()
    return figure

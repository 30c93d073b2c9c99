"""A learned term over the range of the data that it was learned from, as numbers to draw."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..equation import LearnedTerm
from ..errors import SplatopError
from ..model import Model

# How far beyond the range of the data a picture goes, as a share of it.
_BEYOND = 0.15
_POINTS = 121
# Cells along each side of a map that hold data or do not.
_CELLS = 16


@dataclass(frozen=True)
class Curve:
    """The term `(O, n)` at values `x` of one argument, the mean over the data's values of the
    others; there were data from `low` to `high`."""

    name: str
    x: np.ndarray
    y: np.ndarray
    low: float
    high: float


@dataclass(frozen=True)
class Map:
    """The term `(O, n, n)` over two arguments; `empty` `(n, n)` is where there were no data."""

    names: tuple[str, str]
    x: np.ndarray
    y: np.ndarray
    values: np.ndarray
    empty: np.ndarray


def learned_term(model: Model) -> LearnedTerm | None:
    """The term of a model's physics that was learned, if there is one."""
    physics = model.physics
    terms = () if physics is None else physics.equation.terms
    return next((term for term in terms if isinstance(term, LearnedTerm)), None)


def shown_as(term: LearnedTerm) -> tuple[str, ...]:
    """What the outputs of a term are called."""
    count = len(term.size) // len(term.targets)
    if not term.conservative:
        return tuple(f"in dt({field})" for field in term.targets)
    return tuple(
        f"flux {i + 1} of {field}" if count > 1 else f"flux of {field}"
        for field in term.targets
        for i in range(count)
    )


def sampled_arguments(found: Mapping[str, Any]) -> tuple[tuple[str, ...], np.ndarray]:
    """The names of its arguments, and values `(n, F)` that these have in the data, from the record
    of what was found for `?`."""
    about = found.get("learned")
    if not about:
        raise SplatopError("expected a model with a learned term, got one without: train with ?")
    return tuple(about["arguments"]), np.asarray(about["samples"], np.float64)


def curves(term: LearnedTerm, names: tuple[str, ...], samples: np.ndarray) -> list[Curve]:
    """How the term depends on each of its arguments."""
    found = []
    for index, name in enumerate(names):
        low, high = float(samples[:, index].min()), float(samples[:, index].max())
        beyond = _BEYOND * (high - low or 1.0)
        x = np.linspace(low - beyond, high + beyond, _POINTS)
        found.append(Curve(name, x, _dependence(term, samples, index, x), low, high))
    return found


def _dependence(term: LearnedTerm, samples: np.ndarray, index: int, x: np.ndarray) -> np.ndarray:
    if samples.shape[1] == 1:
        return np.asarray(term.values(jnp.asarray(x[None], jnp.float32)))
    moved = np.repeat(samples[None], len(x), axis=0)
    moved[:, :, index] = x[:, None]
    values = term.values(jnp.asarray(moved.reshape(-1, samples.shape[1]).T, jnp.float32))
    return np.asarray(values).reshape(-1, *moved.shape[:2]).mean(axis=2)


def term_map(term: LearnedTerm, names: tuple[str, ...], samples: np.ndarray) -> Map:
    """The term over its two arguments."""
    low, high = samples.min(axis=0), samples.max(axis=0)
    beyond = _BEYOND * np.where(high > low, high - low, 1.0)
    x, y = (np.linspace(low[i] - beyond[i], high[i] + beyond[i], _POINTS) for i in (0, 1))
    both = np.stack([part.ravel() for part in np.meshgrid(x, y, indexing="ij")])
    values = np.asarray(term.values(jnp.asarray(both, jnp.float32)))
    sides = [(x[0], x[-1]), (y[0], y[-1])]
    counts, _, _ = np.histogram2d(*samples.T, bins=_CELLS, range=sides)
    cell = np.minimum(np.arange(_POINTS) * _CELLS // _POINTS, _CELLS - 1)
    empty = counts[np.ix_(cell, cell)] == 0
    return Map((names[0], names[1]), x, y, values.reshape(-1, _POINTS, _POINTS), empty)

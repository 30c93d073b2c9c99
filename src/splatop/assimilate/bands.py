"""Which functions hold an unknown state: as many as its points tell apart."""

from dataclasses import replace
from typing import Any

import numpy as np

from ..domain import Domain
from ..grid import Grid
from ..numerics import Numerics
from ..spaces import BoxSpace, ShapeSpace

# Anchors between walls for each point that the state is written on, and limits.
_ANCHORS, _LEAST, _MOST = 0.625, 8, 40


def told_apart(space: ShapeSpace) -> np.ndarray:
    """The functions that each field has, `(C, r)`: some have fewer."""
    sizes = np.array([basis.size for basis in space.bases])
    return np.arange(space.shape[0]) < sizes[:, None]


def anchors_between(written: Grid, domain: Domain) -> tuple[int, ...]:
    """As many as the points can tell apart between walls, around rings as a third of them."""
    return tuple(
        2 * ((n - 1) // 3) + 1
        if axis.periodic
        else int(np.clip(round(_ANCHORS * n), _LEAST, _MOST))
        for n, axis in zip(written.points, domain.axes, strict=True)
    )


def cheaper(numerics: Numerics, written: Grid) -> Numerics:
    """The same physics around rings for less: waves where Gaussians on a lattice equal them, and no
    more of them than a third of the points that are written."""
    if (numerics.jets, numerics.encoder, numerics.filter) != ("splat", "lattice", "box"):
        return numerics
    cutoffs = numerics.cutoff * (written.dims if len(numerics.cutoff) == 1 else 1)
    held = tuple(
        min(cutoff, ((n - 1) // 3) / length)
        for cutoff, n, length in zip(cutoffs, written.points, written.lengths, strict=True)
    )
    return replace(numerics, jets="spectral", cutoff=held)


def inside_filter(space: BoxSpace, filter: Any) -> np.ndarray:
    """The functions that a filter keeps, `(C, *R)`."""
    shape = (len(space.fields), *space.shape)
    if filter is None:
        return np.ones(shape, bool)
    waves = []
    for number, (r, length) in enumerate(zip(space.shape, space.domain.lengths, strict=True)):
        place = [-1 if i == number else 1 for i in range(space.dims)]
        waves.append((((np.arange(r) + 1) // 2) / length).reshape(place))
    return np.broadcast_to(filter.weights(waves) > 0.5, shape)

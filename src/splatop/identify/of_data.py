"""Coefficients of an equation from data as `fit` takes them."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..data.held import as_trajectories
from ..equation import parse_equation
from .frame_pieces import DEFAULT_BUDGET
from .identified import Identified
from .identifying import identify_trajectories
from .inverse import Unknown


def identify_data(
    data: Any,
    equation: str,
    *,
    unknown: Unknown = None,
    known: Mapping[str, float | np.ndarray] | None = None,
    method: str = "auto",
    frames: int | str | None = None,
    start: int = 0,
    budget: float = DEFAULT_BUDGET,
    progress: Callable[[int, int], None] | None = None,
    **reading: Any,
) -> list[Identified]:
    """The coefficients of an equation as text, for each trajectory of the data.

    `data` are a file, an array `([B,] T, C, *N)` or xarray, and `reading` says the rest, as for
    `fit` and `discover`: `dt`, `lengths`, `fields`, `boundary`, `sampling`, `shape` and so on.
    `unknown` names coefficients to find, all that are not `known` without it, or gives values
    to begin with. `frames` successive ones from `start` on are used, "all", or as many of each
    trajectory as about `budget` seconds suffice for. `method` is one of those of `identify`.
    """
    trajectories = as_trajectories(data, **reading)
    chosen = parse_equation(
        equation,
        dims=trajectories.grid.dims,
        fields=trajectories.fields,
        unknown=tuple(unknown or ()),
        inputs=trajectories.inputs,
    )
    return identify_trajectories(
        chosen,
        None,
        trajectories,
        frames=frames,
        start=start,
        budget=budget,
        unknown=unknown,
        known=known,
        method=method,
        progress=progress,
    )

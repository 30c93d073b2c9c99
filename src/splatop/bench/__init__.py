"""Ratios of times, measured side by side in one run: what `splatop bench` prints.

Absolute times depend on the machine and on what else runs; the contenders of one group are timed in
turns, and the medians are compared. Errors stand beside the speed that they pay for.
"""

from collections.abc import Callable
from typing import Any

from ..errors import unknown_name
from ..threads import one_blas_thread
from .coarse_cost import coarse
from .rendering import lattice, render, window
from .shapes import shapes
from .startup import startup, threads
from .steps import memory, operators, physics, surrogate, surrogate3d, training
from .stiff import stiff, walls
from .timing import Measured

GROUPS: dict[str, Callable[..., Measured]] = {
    "startup": startup,
    "threads": threads,
    "render": render,
    "window": window,
    "lattice": lattice,
    "physics": physics,
    "operators": operators,
    "surrogate": surrogate,
    "surrogate3d": surrogate3d,
    "training": training,
    "memory": memory,
    "stiff": stiff,
    "walls": walls,
    "coarse": coarse,
    "shapes": shapes,
}


@one_blas_thread()
def measure(names: list[str] | None = None) -> dict[str, Any]:
    """The groups named, or all of them."""
    for name in names or []:
        if name not in GROUPS:
            raise unknown_name("group", name, GROUPS)
    found: dict[str, Any] = {}
    for name in names or GROUPS:
        found |= GROUPS[name]()
    return found

"""Automatic numerics, chosen from data and equation alone. Each choice has its reason in words."""

import numpy as np

from ..domain import Domain
from ..equation import Equation
from ..errors import SplatopError, check_finite
from ..grid import as_number, as_numbers
from ..points import Layout, Points
from ..signal import Signal
from ..stepper import Coefficients
from ..threads import one_blas_thread
from .coarse_numerics import Pairs as Pairs
from .coarse_numerics import choose_coarse as choose_coarse
from .rings import WIDEST as WIDEST
from .rings import choose_on_rings
from .speed import Proposal as Proposal
from .speed import propose as propose
from .tuned import DERIVATIVE_TOLERANCE as DERIVATIVE_TOLERANCE
from .tuned import MOST_SUBSTEPS as MOST_SUBSTEPS
from .tuned import TAIL as TAIL
from .tuned import TIME_TOLERANCE as TIME_TOLERANCE
from .tuned import Tuned as Tuned
from .wall_numerics import choose_between_walls


@one_blas_thread()
def choose_numerics(
    equation: Equation,
    coefficients: Coefficients,
    frames: np.ndarray,
    *,
    lengths: tuple[float, ...],
    dt: float,
    tail: float = TAIL,
    domain: Domain | None = None,
    layout: Layout = (),
) -> Tuned:
    """Choose filter, Gaussians and substeps for an equation, from sample frames `(n, C, *N)`.

    They hold all but the share `tail` of the frames' amplitude, and a frame of length `dt` is
    converged in time; the result says why in words. Without a `domain` the box of sides `lengths`
    is periodic; between walls `layout` says where the points lie along each axis.
    """
    frames = np.asarray(frames, np.float32)
    lengths, dt = as_numbers(lengths), as_number(dt)
    axes = 1 if isinstance(layout, Points) else len(lengths)
    if frames.ndim != axes + 2 or len(frames) == 0:
        raise SplatopError(
            f"expected sample frames (n, C, *N) of a {len(lengths)}D field, "
            f"got shape {frames.shape}"
        )
    check_finite(frames, "the sample frames")
    for name, value in coefficients.items():
        if isinstance(value, Signal):
            continue
        if np.abs(np.asarray(value, float)).max() > np.finfo(np.float32).max:
            raise SplatopError(
                f"expected coefficients that single precision can hold (up to 3e38), got {name} = "
                f"{value}: check the sizes of the coefficients"
            )
    if domain is None or domain.all_periodic:
        return choose_on_rings(equation, coefficients, frames, lengths=lengths, dt=dt, tail=tail)
    return choose_between_walls(
        equation, coefficients, frames, domain=domain, layout=layout, dt=dt, tail=tail
    )

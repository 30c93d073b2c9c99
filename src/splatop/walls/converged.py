"""Frames of a reference solution, each with as many substeps as it needs to converge."""

from collections.abc import Callable, Iterator

from jaxtyping import Array

from ..errors import SplatopError

MAX_SUBSTEPS = 4096


def converged_frames(
    c: Array,
    one_frame: Callable[[Array, int], Array],
    apart: Callable[[Array, Array], float],
    *,
    steps: int,
    dt: float,
    tolerance: float,
) -> Iterator[tuple[Array, float]]:
    """The states that follow `c`, each with its error: how far n and 2n substeps are `apart`.

    `one_frame` advances a state by `dt` in so many substeps of a scheme of fourth order.
    """
    substeps = 1
    for frame in range(1, steps + 1):
        coarse = one_frame(c, substeps)
        while True:
            fine = one_frame(c, 2 * substeps)
            difference = apart(coarse, fine)
            if difference <= tolerance:
                break
            substeps, coarse = 2 * substeps, fine
            if substeps > MAX_SUBSTEPS:
                raise SplatopError(
                    f"expected {MAX_SUBSTEPS} and {2 * MAX_SUBSTEPS} substeps of dt={dt:g} to "
                    f"agree to {tolerance:g} in frame {frame}, got {difference:.1e}: the "
                    "solution grows without bound, or the equation needs other conditions at "
                    "the edges; check signs and sizes, or take a smaller dt"
                )
        c = fine + (fine - coarse) / 15  # what is left of fourth order
        yield c, difference
        if substeps > 1 and difference < tolerance / 64:
            substeps //= 2

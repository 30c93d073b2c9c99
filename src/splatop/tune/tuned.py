"""What a choice of numerics comes to: the numbers, and the reasons in words."""

from dataclasses import dataclass

from ..numerics import Numerics

# Amplitude that may lie outside the kept band, relative to the whole.
TAIL = 1e-5
# Error of the derivatives inside the band, relative: a few rounding errors of float32.
DERIVATIVE_TOLERANCE = 1e-5
# Error of time integration over one frame, relative: 200 frames add up to at most 4e-4.
TIME_TOLERANCE = 2e-6
# Beyond this only for stability.
MOST_SUBSTEPS = 64


@dataclass(frozen=True)
class Tuned:
    """Chosen numerics, the diagnostics behind them, and the reasons in words."""

    numerics: Numerics
    reasons: tuple[str, ...]
    band: tuple[int, ...]  # highest mode kept, per axis; between walls, the anchors
    tail: float  # amplitude outside it
    derivative_error: float
    time_error: float
    stability_reach: float

"""Which frames terms are found from: pieces spread over the trajectories."""

import numpy as np

from ..data import Trajectories
from ..errors import SplatopError
from ..identify import check_window
from ..identify.frame_pieces import LONGEST
from .gather import Gathered, gather, gather_between_walls
from .moments import most_frames
from .question import Question

_FEWEST_FRAMES = 5
# Numbers in the columns of a piece, and its fewest frames where these are too many.
_HELD = 3e7
_SHORTEST = 32


def pieces_of(
    data: Trajectories, question: Question, frames: int | str | None, start: int
) -> Gathered:
    """Pieces spread over the trajectories, as many as one pass over all candidates allows for."""
    left = data.frames - start
    wanted = left if frames in (None, "all") else frames
    if not isinstance(wanted, int):
        raise SplatopError(f"expected a number of frames or 'all', got {frames!r}")
    check_window(data, wanted, start)
    if wanted < _FEWEST_FRAMES:
        raise SplatopError(
            f"expected at least {_FEWEST_FRAMES} frames of a trajectory to find terms from, got "
            f"{wanted}: pass more frames"
        )
    points = int(np.prod([min(n, 128) for n in data.grid.points])) * 2 ** (data.grid.dims - 1)
    most = max(_FEWEST_FRAMES, most_frames(points, len(question.basis[0])) // data.trajectories)
    # A piece is held with all its columns: as many frames as fit, and no fewer than a bell needs.
    fitting = int(
        _HELD / (len(question.basis[0]) * np.prod([min(n, 96) for n in data.grid.points]))
    )
    longest = min(LONGEST, max(fitting, _SHORTEST), wanted)
    total = wanted if frames == "all" else min(wanted, most)
    if total == wanted:
        pieces = -(-wanted // longest)
        length = wanted // pieces
        begin = length * np.arange(pieces)
    else:
        length = min(longest, max(total, _FEWEST_FRAMES))
        pieces = max(1, total // length)
        begin = np.linspace(0, wanted - length, pieces).round().astype(int)
    if data.domain.all_periodic:
        columns, inputs = len(question.basis[0]), len(question.inputs)
        held = gather(data, start + begin, length, question.degree, columns, inputs=inputs)
    else:
        held = gather_between_walls(
            data, start + begin, length, question.degree, question.values, question.derivatives
        )
    if not np.ptp(held.states):
        raise SplatopError(
            "expected frames that vary in space or time, got one constant value: nothing can be "
            "learned from them"
        )
    changing = np.abs(np.diff(held.states, axis=1)).max(axis=(0, 1, *range(3, held.states.ndim)))
    for field in question.partial.unknown:
        if changing[question.fields.index(field)] == 0:
            raise SplatopError(
                f"expected a field {field} that changes in time, it does not on these frames: "
                f"nothing can be learned about its equation"
            )
    return held


def check_enough(rows: float, candidates: int) -> None:
    if rows < 2 * candidates:
        raise SplatopError(
            f"expected more data for {candidates} candidate terms: the frames hold about "
            f"{rows:.0f} independent numbers (a few waves hold no more, however many the points); "
            "pass more or more varied frames, or fewer candidates with --terms, --symmetry, "
            "--degree or --order"
        )

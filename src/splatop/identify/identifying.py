"""`identify`: one trajectory, or many."""

from collections.abc import Callable, Mapping

import jax
import numpy as np

from ..data import Trajectories
from ..encoders import LatticeEncoder
from ..equation import Equation
from ..errors import SplatopError, unknown_name
from ..grid import Grid
from ..jets import JetProvider, SplatJets
from ..spectral import PassThrough
from ..threads import one_blas_thread
from .between_walls import identify_between_walls
from .frame_pieces import DEFAULT_BUDGET, cut, frames_within, spread
from .identified import METHODS, Identified
from .inverse import Unknown, known_values, pose, unknown_names
from .methods import by_method
from .noise import measure
from .regression import PAPER_FRAMES

_PAPER_ANCHORS = 20


@one_blas_thread()
def identify(
    equation: Equation,
    jets: JetProvider,
    frames: np.ndarray,
    dt: float,
    *,
    unknown: Unknown = None,
    known: Mapping[str, float] | None = None,
    method: str = "auto",
    t0: float | None = None,
) -> Identified:
    """The unknown coefficients of the equation behind frames `(T, C, *N)` a time `dt` apart.

    `t0` is the time of the first frame, which an equation with `t` in it needs. Files and whole
    data sets go to `identify_data`, with the equation as text.

    `unknown` are names (all that are not known), or names with values to start from. Methods:
    "paper" regresses a time difference on the derivatives of `jets` without a filter (appendix E);
    "flow" matches Φ frame to frame; "weak" integrates against test functions; "trajectory"
    estimates initial states along, which noise does not bias. "auto" takes "flow", or "trajectory"
    if the frames are noisy. Where a method fails the next one is tried, and a warning says so.
    Runs in double precision, whatever the default.
    """
    with jax.enable_x64(True):
        times = None if t0 is None else t0 + dt * np.arange(len(frames))
        problem = pose(equation, jets, frames, dt, unknown=unknown, known=known, times=times)
        if problem.pieces == 1 and method != "paper":
            problem = problem.of(cut)
        return by_method(problem, method)


@one_blas_thread()
def identify_trajectories(
    equation: Equation,
    jets: JetProvider | None,
    trajectories: Trajectories,
    *,
    frames: int | str | None = None,
    start: int = 0,
    budget: float = DEFAULT_BUDGET,
    unknown: Unknown = None,
    known: Mapping[str, float | np.ndarray] | None = None,
    method: str = "auto",
    progress: Callable[[int, int], None] | None = None,
) -> list[Identified]:
    """Each trajectory by itself, from all frames after `start`, or as many as the budget allows.

    `frames` may be "all", or a number of successive frames; without it frames are spread evenly,
    as many as about `budget` seconds on two cores suffice for. Without `jets` the Gaussians are a
    lattice fine enough for the data. `known` values are the same for all trajectories or one for
    each. All share one band, and so compiled code.
    """
    trajectories.check_clock(equation)
    equation = equation.placed_at(trajectories.grid.origin)
    count = trajectories.trajectories
    begin, length = chosen_frames(trajectories, frames, start=start, budget=budget, method=method)
    if not trajectories.domain.all_periodic:
        return _between_walls(
            equation, trajectories, begin, length, unknown, known or {}, method, progress
        )

    def pieces(i: int) -> np.ndarray:
        return trajectories.windows(np.array([[i, s] for s in begin]), length)

    times = None
    if trajectories.times is not None:
        times = trajectories.times[np.asarray(begin)[:, None] + np.arange(length)]
    told = [pieces(i) for i in range(count)]
    if equation.inputs:  # products with an input of small scales reach what it is carried by
        told += [_driving(trajectories, i, begin, length) for i in range(count)]
    spectra = [measure(one.astype(np.float64)) for one in told if one is not None]
    band = tuple(int(b) for b in np.max([s.band for s in spectra], axis=0))
    jets = jets or lattice_jets(band, trajectories.grid)
    found = []
    for i in range(count):
        values = {
            name: float(np.broadcast_to(value, (count,))[i])
            for name, value in (known or {}).items()
        }
        with jax.enable_x64(True):
            problem = pose(
                equation,
                jets,
                pieces(i),
                trajectories.dt,
                unknown=unknown,
                known=values,
                times=times,
                driving=_driving(trajectories, i, begin, length),
            )
            found.append(by_method(problem.with_band(band), method))
        if progress:
            progress(i + 1, count)
    return found


def _driving(
    trajectories: Trajectories, index: int, begin: np.ndarray, length: int
) -> np.ndarray | None:
    """The inputs at the frames of each piece, `(S, L, I, *N)`; None if there are none."""
    if not trajectories.inputs:
        return None
    every = [signal.values for signal in trajectories.signals(index).values()]
    return np.stack([np.stack(every, axis=1)[int(b) : int(b) + length] for b in begin])


def _between_walls(
    equation: Equation,
    trajectories: Trajectories,
    begin: np.ndarray,
    length: int,
    unknown: Unknown,
    known: Mapping[str, float | np.ndarray],
    method: str,
    progress: Callable[[int, int], None] | None,
) -> list[Identified]:
    if method not in ("auto", *METHODS):
        raise unknown_name("method", method, ("auto", *METHODS))
    if method == "paper":
        raise SplatopError(
            "expected method 'flow', 'weak' or 'trajectory' for data between walls, got 'paper': "
            "its derivatives are those of a periodic box"
        )
    names, starts = unknown_names(equation, unknown, known)
    found = []
    for i in range(trajectories.trajectories):
        fixed = {
            name: float(np.broadcast_to(value, (trajectories.trajectories,))[i])
            for name, value in known.items()
        }
        found.append(
            identify_between_walls(
                equation,
                trajectories,
                i,
                begin=begin.tolist(),
                length=length,
                unknown={name: starts.get(name, 0.0) for name in names},
                known=known_values(equation, names, fixed),
                method=method,
            )
        )
        if progress:
            progress(i + 1, trajectories.trajectories)
    return found


def chosen_frames(
    trajectories: Trajectories,
    frames: int | str | None = None,
    *,
    start: int = 0,
    budget: float = DEFAULT_BUDGET,
    method: str = "auto",
) -> tuple[np.ndarray, int]:
    """Where the pieces begin that identification uses of each trajectory, and their length."""
    if frames is None and method == "paper":
        frames = min(PAPER_FRAMES, trajectories.frames - start)
    left = trajectories.frames - start
    wanted = left if frames in (None, "all") else frames
    if not isinstance(wanted, int):
        raise SplatopError(f"expected a number of frames or 'all', got {frames!r}")
    check_window(trajectories, wanted, start)
    if method == "paper":
        return np.array([start]), wanted
    if frames is None:
        wanted = frames_within(
            budget,
            trajectories.grid,
            channels=len(trajectories.fields),
            trajectories=trajectories.trajectories,
        )
        left = trajectories.frames - start
        begin, length = spread(left, wanted)
    else:
        begin, length = spread(wanted, wanted)
    return start + begin, length


def lattice_jets(band: tuple[int, ...], grid: Grid) -> SplatJets:
    """Unfiltered derivatives of a lattice of Gaussians that carries the band: 20 anchors per axis
    as in the paper, or as many as the band needs, up to one for each grid point."""
    anchors = tuple(
        min(n, max(_PAPER_ANCHORS, 2 * int(np.ceil(1.25 * b)) + 2))
        for b, n in zip(band, grid.points, strict=True)
    )
    return SplatJets(encoder=LatticeEncoder(anchors), lengths=grid.lengths, filter=PassThrough())


def check_window(trajectories: Trajectories, frames: int, start: int) -> None:
    """Refuse a window that is not inside of each trajectory."""
    if frames < 2 or start < 0 or start + frames > trajectories.frames:
        raise SplatopError(
            f"expected a window of at least 2 frames inside the {trajectories.frames} that each "
            f"trajectory of {trajectories.source} has, got {frames} from frame {start} on: "
            "ask for fewer frames, or start earlier"
        )

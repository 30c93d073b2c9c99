"""`identify`: one trajectory, or many."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

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
from .columns import acting_parts
from .diagnose import Remark, remarks_on
from .flow import match
from .noise import TAIL, measure
from .pieces import DEFAULT_BUDGET, SHORTEST, cut, frames_within, spread
from .problem import Problem, Reduced, Unknown, known_values, pose, reduce, unknown_names
from .propagate import described, steps_for
from .regression import PAPER_FRAMES, regress
from .result import METHODS, Identified
from .start import first_estimate
from .trajectory import fit as fit_trajectory
from .uncertainty import Fit
from .weak import WEAK_FRAMES, integrate

_LINEAR_METHODS = ("paper", "weak")
_LEAST_FRAMES = {"paper": 3, "flow": 2, "weak": WEAK_FRAMES, "trajectory": 3}
_PAPER_ANCHORS = 20
_HIDDEN = 1.5
# Small scales by which pieces must fall below the whole for these to be left out of the rest.
_MUCH_LESS = 0.1
# What may be left out of clean data where all of it cannot be followed in time.
_TAILS = (TAIL, 1e-5, 1e-4, 1e-3)


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

    `t0` is the time of the first frame, which an equation with `t` in it needs.

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
        return _identify(problem, method)


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
    spectra = [measure(pieces(i).astype(np.float64)) for i in range(count)]
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
            found.append(_identify(problem.with_band(band), method))
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
    if method not in ("auto", "weak"):
        raise SplatopError(
            f"expected method 'auto' or 'weak' for data between walls, got '{method}': the others "
            "need a periodic box"
        )
    if trajectories.inputs:
        raise SplatopError(
            f"{trajectories.source}: expected data without inputs to identify coefficients from "
            f"between walls, got {', '.join(trajectories.inputs)}: give all coefficients"
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
    if frames < 2 or start < 0 or start + frames > trajectories.frames:
        raise SplatopError(
            f"expected a window of at least 2 frames inside the {trajectories.frames} that each "
            f"trajectory of {trajectories.source} has, got {frames} from frame {start} on: "
            "ask for fewer frames, or start earlier"
        )


def _identify(problem: Problem, method: str) -> Identified:
    if method not in ("auto", *METHODS):
        raise unknown_name("method", method, ("auto", *METHODS))
    problem, remarks = _resolved_pieces(problem)
    if method in _LINEAR_METHODS and problem.nonlinear:
        remarks.append(
            Remark(
                f"the equation is not linear in {', '.join(problem.nonlinear)}, which the {method} "
                "method needs: used the flow method instead"
            )
        )
        method = "flow"
    if method in _LINEAR_METHODS and not problem.even:
        remarks.append(
            Remark(
                f"frames are not evenly spaced, which the {method} method needs: used the flow "
                "method instead"
            )
        )
        method = "flow"
    if method == "auto":
        method = "trajectory" if problem.noisy and problem.length >= 3 else "flow"
    if problem.length < _LEAST_FRAMES[method]:
        raise SplatopError(
            f"expected at least {_LEAST_FRAMES[method]} frames for the {method} method, got "
            f"{problem.length}: pass more frames, or use the flow method, which needs 2"
        )
    for one, fit in _attempts(problem, method, remarks):
        if fit is not None:
            remarks += remarks_on(problem, one, fit)
            return _identified(problem, one, fit, remarks)
    raise SplatopError(
        f"found no values of {', '.join(problem.unknown)} from which the equation can be followed "
        "for one frame: check the time step and the signs, or give values to start from, as in "
        f"--unknown {problem.unknown[0]}=0.5"
    )


def _attempts(
    problem: Problem, method: str, remarks: list[Remark]
) -> Iterator[tuple[str, Fit | None]]:
    """What one method after another finds; the remarks grow by what went wrong."""
    if method in _LINEAR_METHODS:
        reduced = reduce(problem)
        acting = acting_parts(problem, reduced)
        if method == "paper":
            yield method, regress(problem, acting)
        else:
            yield method, integrate(problem, reduced)
        return
    run = {"flow": match, "trajectory": fit_trajectory}
    order = [method, *(other for other in run if other != method and problem.length >= 3)]
    for one in order:
        yield one, _followed(problem, one, run[one], remarks)
    if not problem.nonlinear and problem.length >= WEAK_FRAMES and problem.even:
        remarks.append(
            Remark(
                "the equation cannot be followed in time at the values that the weak form finds, "
                "which are given here: check them, the time step and the signs",
                doubt=True,
            )
        )
        yield "weak", integrate(problem, reduce(problem))


def _followed(
    problem: Problem, method: str, run: Callable[..., Fit], remarks: list[Remark]
) -> Fit | None:
    """What a method that follows the equation in time finds, in the widest band that it can."""
    narrower: tuple[int, ...] = ()
    for tail in _TAILS:
        tried = problem if tail == TAIL else problem.with_tail(tail)
        if tried.spectrum.band == narrower:
            continue
        narrower = tried.spectrum.band
        # Products feed on modes that noise hides: a trajectory has them nevertheless.
        wider = method == "trajectory" and problem.equation.degree > 1
        own = reduce(tried, margin=1.0)
        reduced = reduce(tried, margin=_HIDDEN) if wider else own
        if not problem.nonlinear:
            acting_parts(tried, own)
        for start in _starts(tried, own):
            steps = steps_for(tried, reduced, start)
            if steps is None:
                continue
            fit = run(tried, reduced, start, steps)
            if np.isfinite(fit.residual) and np.isfinite(fit.x).all():
                if tail > TAIL:
                    remarks.append(
                        Remark(
                            f"only modes up to {max(narrower)} could be followed in time; what "
                            f"lies beyond is {tail:g} of the data at most"
                        )
                    )
                return fit
    values = described(problem, next(_starts(problem, reduce(problem))))
    remarks.append(
        Remark(
            f"the {method} method could not follow the equation for one frame at {values}: "
            "another method was used"
        )
    )
    return None


def _starts(problem: Problem, reduced: Reduced) -> Iterator[np.ndarray]:
    """Where a search may begin, the best guess first."""
    if all(name in problem.starts for name in problem.unknown):
        yield np.array([problem.starts[name] for name in problem.unknown])
    if not problem.nonlinear and problem.length >= WEAK_FRAMES and problem.even:
        yield integrate(problem, reduced).x
    yield first_estimate(problem, reduced)


def _resolved_pieces(problem: Problem) -> tuple[Problem, list[Remark]]:
    """The problem without the pieces that the grid does not resolve, if others remain."""
    if not problem.spectrum.unresolved:
        return problem, []
    shorter = problem.of(lambda pieces: cut(pieces, SHORTEST))
    pieces = shorter.frames
    spectra = [measure(piece[None]) for piece in pieces]
    least = _MUCH_LESS * problem.spectrum.unresolved
    good = [not one.unresolved and one.relative_noise < least for one in spectra]
    if all(good) or not any(good):
        return problem, []
    kept = shorter.of(lambda pieces: pieces[good])
    frames = kept.frames
    return replace(kept, spectrum=measure(frames)), [
        Remark(
            f"{(len(pieces) - len(frames)) * frames.shape[1]} of "
            f"{len(pieces) * frames.shape[1]} frames hold scales that the grid does not resolve "
            "and were left out"
        )
    ]


def _identified(problem: Problem, method: str, found: Fit, remarks: list[Remark]) -> Identified:
    half = found.spread.half_widths()
    values = {name: float(v) for name, v in zip(problem.unknown, found.x, strict=True)}
    errors = dict(zip(problem.unknown, map(float, found.spread.errors), strict=True))
    # Doubts come first: they decide whether to read on.
    remarks = sorted(remarks, key=lambda remark: not remark.doubt)
    return Identified(
        method=method,
        estimates=values,
        standard_errors=errors,
        intervals={
            name: (value - float(h), value + float(h))
            for (name, value), h in zip(values.items(), half, strict=True)
        },
        known=problem.known,
        frames=problem.pieces * problem.length,
        relative_residual=found.residual,
        noise_level=problem.spectrum.relative_noise,
        condition_number=found.spread.condition,
        warnings=tuple(dict.fromkeys(remark.text for remark in remarks)),
        trusted=not any(remark.doubt for remark in remarks),
    )

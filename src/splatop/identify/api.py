"""`identify`: one trajectory, or many."""

from collections.abc import Callable, Mapping
from functools import partial

import jax
import numpy as np

from ..data import Trajectories
from ..encoders import LatticeEncoder
from ..equation import Equation
from ..errors import SplatopError, unknown_name
from ..grid import Grid
from ..jets import JetProvider, SplatJets
from ..spectral import PassThrough
from .columns import acting_parts
from .diagnose import NOISY, warnings_for
from .flow import match
from .noise import measure
from .problem import Problem, Reduced, Unknown, pose, reduce
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


def identify(
    equation: Equation,
    jets: JetProvider,
    frames: np.ndarray,
    dt: float,
    *,
    unknown: Unknown = None,
    known: Mapping[str, float] | None = None,
    method: str = "auto",
) -> Identified:
    """The unknown coefficients of the equation behind frames `(T, C, *N)` a time `dt` apart.

    `unknown` are names (all that are not known), or names with values to start from. Methods:
    "paper" regresses a time difference on the derivatives of `jets` without a filter (appendix E);
    "flow" matches Φ frame to frame; "weak" integrates against test functions; "trajectory"
    estimates the initial state along, which noise does not bias. "auto" takes "flow", or
    "trajectory" if the frames are noisy. Runs in double precision, whatever the default.
    """
    with jax.enable_x64(True):
        return _identify(pose(equation, jets, frames, dt, unknown=unknown, known=known), method)


def identify_trajectories(
    equation: Equation,
    jets: JetProvider | None,
    trajectories: Trajectories,
    *,
    frames: int = PAPER_FRAMES,
    start: int = 0,
    unknown: Unknown = None,
    known: Mapping[str, float | np.ndarray] | None = None,
    method: str = "auto",
    progress: Callable[[int, int], None] | None = None,
) -> list[Identified]:
    """Each trajectory by itself, from `frames` frames that begin at `start`.

    Without `jets` the Gaussians are a lattice fine enough for the data. `known` values are the
    same for all trajectories or one for each. All share one band, and so compiled code.
    """
    equation = equation.placed_at(trajectories.grid.origin)
    count = trajectories.trajectories
    check_window(trajectories, frames, start)
    spectra = [
        measure(trajectories.window(i, start, frames).astype(np.float64)) for i in range(count)
    ]
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
                trajectories.window(i, start, frames),
                trajectories.dt,
                unknown=unknown,
                known=values,
            )
            found.append(_identify(problem.with_band(band), method))
        if progress:
            progress(i + 1, count)
    return found


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
    notes = []
    if method in _LINEAR_METHODS and problem.nonlinear:
        notes.append(
            f"the equation is not linear in {', '.join(problem.nonlinear)}, which the {method} "
            "method needs: used the flow method instead"
        )
        method = "flow"
    if method == "auto":
        noisy = problem.spectrum.relative_noise > NOISY
        method = "trajectory" if noisy and len(problem.frames) >= 3 else "flow"
    if len(problem.frames) < _LEAST_FRAMES[method]:
        raise SplatopError(
            f"expected at least {_LEAST_FRAMES[method]} frames for the {method} method, got "
            f"{len(problem.frames)}: pass more frames, or use the flow method, which needs 2"
        )
    # Products feed on modes that noise hides: a trajectory has them nevertheless.
    wider = method == "trajectory" and problem.equation.degree > 1
    reduced = reduce(problem, margin=_HIDDEN if wider else 1.0)
    acting = {} if problem.nonlinear else acting_parts(problem, reduced)
    found = _methods(problem, reduced, acting)[method]()
    warnings = (*notes, *warnings_for(problem, method, found))
    return _identified(problem, method, found, warnings)


def _methods(
    problem: Problem, reduced: Reduced, acting: dict[str, np.ndarray]
) -> dict[str, Callable[[], Fit]]:
    def start() -> np.ndarray:
        if problem.nonlinear or len(problem.frames) < WEAK_FRAMES:
            return first_estimate(problem, reduced)
        return integrate(problem, reduced).x

    return {
        "paper": partial(regress, problem, acting),
        "weak": partial(integrate, problem, reduced),
        "flow": lambda: match(problem, reduced, start()),
        "trajectory": lambda: fit_trajectory(problem, reduced, start()),
    }


def _identified(problem: Problem, method: str, found: Fit, warnings: tuple[str, ...]) -> Identified:
    half = found.spread.half_widths()
    values = {name: float(v) for name, v in zip(problem.unknown, found.x, strict=True)}
    errors = dict(zip(problem.unknown, map(float, found.spread.errors), strict=True))
    return Identified(
        method=method,
        estimates=values,
        standard_errors=errors,
        intervals={
            name: (value - float(h), value + float(h))
            for (name, value), h in zip(values.items(), half, strict=True)
        },
        known=problem.known,
        relative_residual=found.residual,
        noise_level=problem.spectrum.relative_noise,
        condition_number=found.spread.condition,
        warnings=warnings,
    )

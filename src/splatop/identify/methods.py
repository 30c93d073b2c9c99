"""One trajectory's coefficients by each method, and by the best that applies."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from ..errors import SplatopError, unknown_name
from .columns import acting_parts
from .diagnose import Remark, remarks_on
from .flow import match
from .frame_pieces import SHORTEST, cut
from .identified import METHODS, Identified
from .inverse import InverseProblem, about_offset
from .noise import TAIL, measure, project
from .propagate import MOST_SUBSTEPS, Lost, described, steps_for
from .reduced import Reduced, reduce
from .regression import regress
from .start import first_estimate
from .trajectory import fit as fit_trajectory
from .uncertainty import Fit
from .weak import WEAK_FRAMES, integrate

_LINEAR_METHODS = ("paper", "weak")
_LEAST_FRAMES = {"paper": 3, "flow": 2, "weak": WEAK_FRAMES, "trajectory": 3}
_HIDDEN = 1.5
# Small scales by which pieces must fall below the whole for these to be left out of the rest.
_MUCH_LESS = 0.1
# Values times substeps times directions up to which following an equation takes seconds.
_MOST_WORK = 2e7
# What may be left out of clean data where all of it cannot be followed in time.
_TAILS = (TAIL, 1e-5, 1e-4, 1e-3)


def by_method(problem: InverseProblem, method: str) -> Identified:
    """The coefficients of one trajectory by a method, or by the best that applies to it."""
    if method not in ("auto", *METHODS):
        raise unknown_name("method", method, ("auto", *METHODS))
    problem, remarks = _resolved_pieces(about_offset(problem))
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
        kept = None if problem.noisy else _weak_suffices(problem, remarks)
        if kept is not None:
            return kept
    if problem.length < _LEAST_FRAMES[method]:
        raise SplatopError(
            f"expected at least {_LEAST_FRAMES[method]} frames for the {method} method, got "
            f"{problem.length}: pass more frames, or use the flow method, which needs 2"
        )
    for one, fit in _attempts(problem, method, remarks):
        if fit is not None:
            remarks += remarks_on(problem, one, fit)
            return identified(problem, one, fit, remarks)
    raise SplatopError(
        f"found no values of {', '.join(problem.unknown)} from which the equation can be followed "
        "for one frame: check the time step and the signs, or give values to start from, as in "
        f"--unknown {problem.unknown[0]}=0.5"
    )


def _weak_suffices(problem: InverseProblem, remarks: list[Remark]) -> Identified | None:
    """The answer of the weak form, where nothing doubts it and it takes minutes to follow the
    equation from frame to frame."""
    if problem.nonlinear or problem.length < WEAK_FRAMES or not problem.even:
        return None
    own = reduce(problem, margin=1.0)
    most = int(_MOST_WORK / (own.states.size * (1 + len(problem.unknown))))
    if most >= MOST_SUBSTEPS:
        return None
    acting_parts(problem, own)
    fit = integrate(problem, own)
    found = remarks_on(problem, "weak", fit)
    if any(one.doubt for one in found) or steps_for(problem, own, fit.x, most=most) is not None:
        return None
    kept = Remark(
        f"more than {most} steps from frame to frame are needed to follow the equation, which "
        "takes minutes: these are the values of the weak form (--method flow takes the time)"
    )
    return identified(problem, "weak", fit, [*remarks, *found, kept])


def _attempts(
    problem: InverseProblem, method: str, remarks: list[Remark]
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
    problem: InverseProblem, method: str, run: Callable[..., Fit], remarks: list[Remark]
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
        # Substeps are for what trajectories hold, which is not the noise of hidden modes.
        seen = replace(reduced, states=project(tried.frames, own.band, reduced.points))
        if not problem.nonlinear:
            acting_parts(tried, own)
        for start in _starts(tried, own):
            try:
                fit = run(tried, reduced, start, partial(steps_for, tried, seen))
            except Lost:
                continue
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


def _starts(problem: InverseProblem, reduced: Reduced) -> Iterator[np.ndarray]:
    """Where a search may begin, the best guess first."""
    if all(name in problem.starts for name in problem.unknown):
        yield np.array([problem.starts[name] for name in problem.unknown])
    if not problem.nonlinear and problem.length >= WEAK_FRAMES and problem.even:
        yield integrate(problem, reduced).x
    yield first_estimate(problem, reduced)


def _resolved_pieces(problem: InverseProblem) -> tuple[InverseProblem, list[Remark]]:
    """The problem without the pieces that the grid does not resolve, if others remain."""
    if not problem.spectrum.unresolved:
        return problem, []
    least = _MUCH_LESS * problem.spectrum.unresolved

    def good(frames: np.ndarray) -> bool:
        own = measure(frames[None])
        return not own.unresolved and own.relative_noise < least

    # A kink in the first state may be gone a frame later: that frame alone is no reason to leave
    # out its piece, which is often the one that tells most.
    early = problem.frames[0, : min(SHORTEST, problem.length - _LEAST_FRAMES["trajectory"])]
    rough = next((n for n, frame in enumerate(early) if good(frame[None])), 0)
    shorter = problem.of(lambda pieces: cut(pieces[:, rough:], SHORTEST))
    resolved = [good(piece) for piece in shorter.frames]
    if not any(resolved) or (all(resolved) and not rough):
        return problem, []
    kept = shorter.of(lambda pieces: pieces[resolved])
    total = problem.pieces * problem.length
    return replace(kept, spectrum=measure(kept.frames)), [
        Remark(
            f"{total - kept.pieces * kept.length} of {total} frames hold scales that the grid does "
            "not resolve and were left out"
        )
    ]


def identified(
    problem: InverseProblem, method: str, found: Fit, remarks: list[Remark]
) -> Identified:
    """The answer of a method, with what there is to say about it."""
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

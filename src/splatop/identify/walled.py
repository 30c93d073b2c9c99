"""`flow` and `trajectory` between walls and on shapes: the equation followed in the space."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..data import Trajectories
from ..equation import Equation
from ..errors import SplatopError
from ..walls import check_conditions
from .diagnose import Remark, remarks_on
from .flow import match
from .identified import Identified
from .in_harmonics import MOST_NUMBERS, Harmonics
from .in_space import in_space
from .inverse import InverseProblem
from .methods import identified
from .noise import Spectrum
from .propagate import Lost, described, steps_for
from .restraint import first_restraint
from .trajectory import fit as fit_trajectory
from .trajectory import noise_weighted
from .uncertainty import Fit

_METHODS: dict[str, Callable[..., Fit]] = {"flow": match, "trajectory": fit_trajectory}


@dataclass(frozen=True)
class Asked:
    """What is asked of frames `(S, L, C, *N)`: names with values to start from, and the rest."""

    equation: Equation
    unknown: dict[str, float]
    known: dict[str, float]
    frames: np.ndarray
    times: np.ndarray
    dt: float
    precision: float


def smoothed_numbers(asked: Asked, held: Harmonics) -> np.ndarray:
    """The numbers of all frames without most of their noise: products of it lead a first estimate
    astray."""
    problem, space = _problem(asked, held), in_space(held)
    if not problem.noisy:
        return space.states
    weighed = noise_weighted(problem, space)
    space = replace(weighed, restraint=first_restraint(problem, weighed))
    flat = space.states.reshape(-1, *space.states.shape[2:])
    return space.smoothed(flat).reshape(space.states.shape)


def can_follow(equation: Equation, trajectories: Trajectories, method: str) -> bool:
    """Whether the equation can be solved from frame to frame. The weak form asks for less: frames
    have been where nothing is said about an end, and hold what drives them."""
    try:
        check_conditions(equation, trajectories.domain)
        if trajectories.inputs:
            raise SplatopError(
                f"{trajectories.source}: expected method 'auto' or 'weak' beside inputs between "
                f"walls, got '{method}'"
            )
    except SplatopError:
        if method in ("auto", "weak"):
            return False
        raise
    return True


def follow(
    asked: Asked, held: Harmonics, method: str, start: np.ndarray, remarks: list[Remark]
) -> Identified | None:
    """What a method finds that follows the equation from frame to frame; None where it cannot be
    followed, which the remarks then say."""
    problem = _problem(asked, held)
    reduced = in_space(held)
    if method == "auto":
        method = "trajectory" if problem.noisy else "flow"
        if reduced.freedom > MOST_NUMBERS and not problem.noisy and held.scheme.space.scattered:
            return None  # on a shape, where a step is a product with a whole matrix
        if problem.noisy and reduced.freedom > MOST_NUMBERS:
            remarks.append(
                Remark(
                    f"the trajectory method takes minutes for {reduced.freedom} numbers a state: "
                    "the weak form was used, which noise moves more (--method trajectory)"
                )
            )
            return None
    try:
        fit = _METHODS[method](problem, reduced, start, partial(steps_for, problem, reduced))
    except Lost:
        fit = None
    if fit is not None and np.isfinite(fit.residual) and np.isfinite(fit.x).all():
        return identified(problem, method, fit, [*remarks, *remarks_on(problem, method, fit)])
    text = f"the {method} method could not follow the equation at {described(problem, start)}"
    remarks.append(Remark(f"{text}: the weak form was used"))
    return None


def _problem(asked: Asked, held: Harmonics) -> InverseProblem:
    noise = np.zeros_like(held.noise) if held.unresolved else held.noise
    points = int(np.prod(asked.frames.shape[3:]))
    return InverseProblem(
        asked.equation,
        None,
        asked.frames,
        asked.times,
        None,
        asked.dt,
        unknown=tuple(asked.unknown),
        known=asked.known,
        starts=asked.unknown,
        spectrum=Spectrum(noise, held.sizes, (), points, held.unresolved),
        precision=asked.precision,
    )

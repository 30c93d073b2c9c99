"""What to tell the user about an estimate, in plain sentences."""

import itertools
from dataclasses import dataclass

import numpy as np

from ..errors import in_percent
from .inverse import NOISY, InverseProblem
from .regression import PAPER_FRAMES
from .uncertainty import LASTING, SLACK, Fit

_FEW_FRAMES = 5
_ILL_CONDITIONED = 1e3
# The share of the change between frames that an equation may leave unexplained.
_UNEXPLAINED = 0.01
# The same for data with scales that the grid does not resolve: what resolves them explains all.
UNRESOLVED = 1e-3
# Noise above which products of hidden modes move estimates by more than the intervals say, as they
# do for two solitons of KdV at 20 %. The study measures up to 5 %.
_LOUD = 0.1
# The share of energy that may turn by more than a quarter period between frames.
_TURNED = 0.25


@dataclass(frozen=True)
class Remark:
    """A sentence for the user; a `doubt` means that the numbers should not be trusted."""

    text: str
    doubt: bool = False


def remarks_on(problem: InverseProblem, method: str, fit: Fit) -> list[Remark]:
    """All that a user has to know before trusting a fit."""
    return [
        *_about_frames(problem, method),
        *remarks_on_noise(problem, method),
        *_about_time(problem),
        *_about_residual(problem, fit),
        *_about_coefficients(problem, fit),
    ]


def _about_frames(problem: InverseProblem, method: str) -> list[Remark]:
    frames = problem.pieces * problem.length
    found = []
    if method == "paper" and frames < PAPER_FRAMES:
        order = 2 * ((frames - 1) // 2)
        found.append(
            Remark(
                f"{frames} frames are few: the time derivative is of order {order} instead of 6; "
                f"pass {PAPER_FRAMES}, or use the flow method"
            )
        )
    elif frames < _FEW_FRAMES:
        text = f"{frames} frames are few: the estimates rest on little data; pass more"
        found.append(Remark(text))
    encoder = problem.jets.gaussian_encoder if problem.jets else None
    if encoder is not None and encoder.carries(problem.spectrum.band) is False:
        found.append(
            Remark(
                f"{'x'.join(map(str, encoder.anchors))} Gaussians cannot carry the data, whose "
                f"modes reach {max(problem.spectrum.band)}: use more than twice as many along each "
                "axis",
                doubt=True,
            )
        )
    return found


def remarks_on_noise(problem: InverseProblem, method: str) -> list[Remark]:
    """What the noise of the frames means for what a method makes of them."""
    noise = problem.spectrum.relative_noise
    if method in ("paper", "flow") and noise > 10 * NOISY:
        return [
            Remark(
                f"the frames hold about {in_percent(noise)} of noise, which biases the {method} "
                "method (noise in its input looks like damping): use the trajectory method",
                doubt=True,
            )
        ]
    if method == "trajectory" and noise > _LOUD and problem.equation.degree > 1:
        return [
            Remark(
                f"the frames hold about {in_percent(noise)} of noise: beyond {100 * _LOUD:.0f} % "
                "intervals of equations with products can be several times too narrow; average "
                "frames or points, or compare with other data",
                doubt=True,
            )
        ]
    return []


def _about_time(problem: InverseProblem) -> list[Remark]:
    """Modes that turn by more than a quarter period per frame: motion may be aliased."""
    axes = tuple(range(3, problem.frames.ndim))
    modes = np.fft.rfftn(problem.frames, axes=axes, norm="forward")
    modes[(..., *(0,) * len(axes))] = 0
    overlap = modes[:, 1:] * np.conj(modes[:, :-1])
    energy = np.abs(overlap)
    energy = np.where(energy > 1e-3 * energy.max(), energy, 0.0)
    turned = float(np.sum(energy * (overlap.real < 0)) / max(np.sum(energy), 1e-300))
    if turned > _TURNED:
        return [
            Remark(
                f"{100 * turned:.0f} % of the energy turns by more than a quarter period from "
                f"frame to frame: the time step {problem.dt:g} may be too long to follow the "
                "motion (aliased); pass frames closer in time",
                doubt=True,
            )
        ]
    return []


def _about_residual(problem: InverseProblem, fit: Fit) -> list[Remark]:
    unexplained = np.sqrt(max(fit.residual**2 - (SLACK * fit.noise) ** 2, 0.0))
    found = []
    if not fit.settled:
        found.append(
            Remark(
                "the search for the values did not settle: they may be off by more than the "
                "intervals say; give better values to start from, or pass fewer frames",
                doubt=True,
            )
        )
    if problem.spectrum.unresolved and unexplained > UNRESOLVED:
        found.append(
            Remark(
                unresolved_text(problem.spectrum.unresolved),
                doubt=True,
            )
        )
    rounded = problem.spectrum.relative_noise < problem.precision
    if fit.lasting > LASTING and unexplained <= _UNEXPLAINED and rounded:
        found.append(
            Remark(
                "the fields are so small beside their means that rounding is the noise, and lasts "
                "from frame to frame: take the means off, in the data and in the equation",
                doubt=True,
            )
        )
    elif fit.lasting > LASTING and unexplained <= _UNEXPLAINED:
        found.append(
            Remark(
                "what the equation leaves is no noise: it lasts from frame to frame "
                f"({fit.lasting:.0f} deviations), so a term is missing or wrong, or a known value "
                "is off; intervals are widened by as much",
                doubt=True,
            )
        )
    if unexplained > _UNEXPLAINED:
        found.append(
            Remark(
                f"the equation leaves {in_percent(unexplained)} of the change between frames "
                "unexplained, more than noise can: check the time step "
                f"(dt = {problem.dt:g}), the known values, whether a term is missing or wrong, and "
                "whether the solver that made the data was fine enough",
                doubt=True,
            )
        )
    return found


def unresolved_text(share: float) -> str:
    return (
        f"the grid does not resolve the data: {share:.2g} of the field lies in its smallest "
        "scales, and is no white noise (a front thinner than a cell? values that are rounded, as "
        "those of an image?): take frames from a finer grid, or from other times (--start)"
    )


def _about_coefficients(problem: InverseProblem, fit: Fit) -> list[Remark]:
    found = [
        Remark(
            f"the frames speak against the known value {name} = {problem.known[name]:.6g} "
            f"({off:.0f} deviations; they call for {value:.4g}): check it, and the time step "
            f"(dt = {problem.dt:g})",
            doubt=True,
        )
        for name, (off, value) in fit.contradicted.items()
    ]
    if fit.missing:
        name, (off, value) = max(fit.missing.items(), key=lambda one: one[1][0])
        found.append(
            Remark(
                f"the frames call for another term: what is left lies along {name} by {off:.0f} "
                f"deviations (a coefficient of about {value:.2g}); a term is missing or wrong: add "
                'it, or look for what is missing with a "?" in the equation',
                doubt=True,
            )
        )
    half = fit.spread.half_widths()
    wide = half > np.abs(fit.x)
    blurred = set()
    correlation = np.abs(fit.spread.correlation)
    for i, j in itertools.combinations(range(len(fit.x)), 2):
        both_lost = fit.spread.lost[i] and fit.spread.lost[j]
        if (
            both_lost
            or (correlation[i, j] > 0.98 and (wide[i] or wide[j]))
            or (correlation[i, j] > 0.98 and fit.spread.condition > _ILL_CONDITIONED)
        ):
            blurred |= {i, j}
            found.append(
                Remark(
                    f"'{problem.unknown[i]}' and '{problem.unknown[j]}' cannot be told apart on "
                    f"these frames, their terms are nearly proportional (condition number "
                    f"{fit.spread.condition:.3g}): give one as known, or pass more varied frames",
                    doubt=True,
                )
            )
    for i, name in enumerate(problem.unknown):
        if wide[i] and i not in blurred:
            found.append(
                Remark(
                    f"'{name}' cannot be told from zero on these frames: {fit.x[i]:.3g} ± "
                    f"{half[i]:.3g} (95 %): its term may be absent, or too weak to be seen here",
                    doubt=True,
                )
            )
    return found

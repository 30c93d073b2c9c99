"""Whether to trust what was found, in plain sentences."""

from dataclasses import dataclass

import numpy as np

from ..equation.expansion import expand
from ..equation.expression import Coefficient, Expression, Monomial
from ..errors import in_percent
from ..identify.diagnose import UNRESOLVED, unresolved_text
from ..identify.inverse import NOISY
from .candidates import plain_expression
from .evidence import NEGLIGIBLE, Choice
from .gather import Gathered
from .modes import RingModes
from .question import FieldGroup, Question
from .refine import Refined
from .search import LARGEST

# The share of the change that an equation may leave beside noise: what is more has a cause.
UNEXPLAINED = 0.005
# A term that fewer of the replicates choose than this is in doubt.
_SUPPORT = 0.75
# Coefficients of the two halves of the data that are apart by more are no constants.
_DRIFT = 0.2
# The weak form and the refined fit may differ by so many standard errors, or so much.
_APART = 8.0
_APART_SHARE = 0.03
# A term that was not found but could make more of the change than this would matter in rollouts.
_HIDDEN = 0.01
# Such terms that are named.
_NAMED = 3
# Deviations of a field by which its mean is large beside them.
_LARGE = 10.0
# Powers of a field, the constant among them, that fit about any function of it.
_SERIES = 4


@dataclass(frozen=True)
class Trust:
    trusted: bool
    warnings: tuple[str, ...]
    alternatives: tuple[str, ...]
    use_refined: bool


def judge(
    question: Question,
    held: Gathered,
    choices: list[Choice],
    refined: Refined | None,
    seconds: float | None = None,
) -> Trust:
    """Doubts first: each of them makes the equation untrusted. `seconds` is what following it in
    time would have taken, if that was more than the budget."""
    doubts: list[str] = []
    notes: list[str] = []
    for group, choice in zip(question.groups, choices, strict=True):
        names, told = ", ".join(group.fields), _told(question, group)
        doubts += _about(names, choice, held.spectrum.relative_noise, known=bool(told))
        doubts += _series(question, group, choice)
        notes += [
            f"{candidate} is among the known terms of {names} as well: what the equation says of "
            "it is off by the coefficient found here"
            for candidate in choice.candidates[len(choice.names) :]
            if any(told & _products(side, field) for field, side in candidate.sides)
        ]
    alternatives = tuple(
        " + ".join(f"c*{candidate}" for candidate in other)
        for choice in choices
        for other in choice.alternatives
        if not set(choice.candidates) <= set(other)
    )
    if alternatives:
        doubts.append(
            f"{len(alternatives)} other set(s) of terms fit the data about as well (listed as not "
            f"excluded): pass more varied data, or name a symmetry{_on_a_mean(question, held)}"
        )
    if held.spectrum.unresolved and max(choice.left for choice in choices) > UNRESOLVED:
        doubts.append(unresolved_text(held.spectrum.unresolved))
    use = False
    if refined is None:
        more = "" if seconds is None else f", which needs a budget of about {seconds:.0f} s"
        notes.append(
            "the coefficients are those of the weak form: the equation found was not followed in "
            f"time{more}"
        )
    else:
        doubts += refined.doubts
        notes += refined.warnings
        use = np.isfinite(refined.values).all() and refined.surer
        doubts += _disagreement(choices, refined)
    warnings = tuple(dict.fromkeys([*doubts, *notes]))
    return Trust(not doubts, warnings, alternatives, bool(use))


def _on_a_mean(question: Question, held: Gathered) -> str:
    """What makes terms look alike where fields vary by little about their mean."""
    if not isinstance(held.modes, RingModes):
        return ""
    axes = (0, 1, *range(3, held.states.ndim))
    large = np.abs(held.states.mean(axis=axes)) > _LARGE * held.states.std(axis=axes)
    names = ", ".join(name for name, so in zip(question.channels, large, strict=True) if so)
    if not names:
        return ""
    return (
        f"; {names} varies by little about a large mean, which makes terms with it look like those "
        "without: take the mean off"
    )


Products = set[tuple[str, Monomial]]


def _told(question: Question, group: FieldGroup) -> Products:
    """The products of known terms in the equations of a group's fields."""
    found: Products = set()
    terms = () if question.known is None else question.known.terms
    for term in terms:
        sides = expand(term, question.fields, question.setting.dims)
        for field, side in zip(question.fields, sides or (), strict=False):
            if field in group.fields:
                found |= _products(side, field)
    return found


def _products(side: Expression, field: str) -> Products:
    """Without the names of coefficients in them."""
    return {
        (field, tuple(factor for factor in monomial if not isinstance(factor[0], Coefficient)))
        for monomial, _ in plain_expression(side).monomials
    }


def _about(fields: str, choice: Choice, noise: float, *, known: bool) -> list[str]:
    # Clean data of which the terms leave nothing need each that makes a part of the change, however
    # few of the selections hold the times at which it does.
    exact = noise < NOISY and choice.left <= NEGLIGIBLE
    found = []
    if not choice.candidates:
        if choice.left > max(noise, NEGLIGIBLE):
            return [
                f"no candidate explains the change of {fields}: where that is a wave, its rate is "
                "a field with an equation of its own (--fields 'u,v=dt(u)')"
            ]
        # What known terms explain all of is known. What does not change tells nothing of terms
        # that hold each other.
        still = (
            f"{fields} changes by no more than noise ({100 * noise:.2g} % of the field by its "
            "smallest scales, which on a grid too coarse for it are its own): which terms keep it "
            "as it is, if any do, cannot be told from data that stay the same"
        )
        return [] if known else [still]
    if choice.left > UNEXPLAINED:
        found.append(
            f"the terms found leave {in_percent(choice.left)} of the change of {fields} "
            "unexplained, more than noise can: a term is missing among the candidates (functions "
            "of place are there only if --terms has them), or the unknown part is no sum of them"
        )
    if len(choice.candidates) - len(choice.names) >= LARGEST:
        found.append(
            f"{len(choice.candidates)} terms were needed for {fields}, as many as are looked for: "
            "the right ones are probably not among the candidates"
        )
    for candidate, without, support, drift in zip(
        choice.candidates, choice.without, choice.support, choice.drift, strict=True
    ):
        forced = candidate in choice.candidates[: len(choice.names)]
        if without <= choice.left and not forced:
            found.append(
                f"as little of the change is left without {candidate}: these data cannot tell it "
                "from the other terms, or from noise"
            )
        elif noise < NOISY and without <= UNEXPLAINED and not forced:
            found.append(
                f"{candidate} makes {100 * without:.2g} % of the change only, as little as the "
                "error of a solver may: finite differences add derivatives of higher order, means "
                "over cells products of slopes"
            )
        if support < _SUPPORT and not (exact and without > _HIDDEN):
            found.append(
                f"{candidate} is chosen in {100 * support:.0f} % of random selections of the data "
                "only: it may be chance"
            )
        if drift > _DRIFT:
            found.append(
                f"the coefficient of {candidate} differs by {100 * drift:.0f} % between the first "
                "and the second half of the data: it is no constant, or not a term"
            )
    return found + _hidden(choice)


def _series(question: Question, group: FieldGroup, choice: Choice) -> list[str]:
    """A field of which all powers are needed: so many fit any smooth function of it."""
    every, found = ({str(c) for c in some} for some in (group.candidates, choice.candidates))
    doubts = []
    for field in question.channels:
        higher = [f"{field}^{power}" for power in range(2, question.setting.degree + 1)]
        powers = ["1", field, *(one for one in higher if one in every)]
        if len(powers) >= _SERIES and found.issuperset(powers):
            doubts.append(
                f"all powers of {field} among the candidates are needed ({', '.join(powers)}), as "
                "they would be for the series of another function (exp, sqrt, a quotient): a "
                "higher --degree, or --terms with such functions, would tell"
            )
    return doubts


def _hidden(choice: Choice) -> list[str]:
    """What the data could hide beside the terms found, if that would matter."""
    large = [one for one in choice.left_out if one.share > _HIDDEN]
    if not large:
        return []
    more = f"; and {len(large) - _NAMED} more" if len(large) > _NAMED else ""
    return [
        "a term may be missing that these data cannot show: "
        + "; ".join(str(one) for one in large[:_NAMED])
        + f"{more}. More frames or trajectories, less noise, or a --symmetry that forbids it would "
        "tell"
    ]


def _disagreement(choices: list[Choice], refined: Refined) -> list[str]:
    weak = np.concatenate([choice.c for choice in choices])
    errors = np.concatenate([np.sqrt(np.diag(choice.covariance)) for choice in choices])
    names = [candidate for choice in choices for candidate in choice.candidates]
    away = np.abs(weak - refined.values)
    far = (away > _APART * np.hypot(errors, refined.errors)) & (
        away > _APART_SHARE * np.abs(refined.values)
    )
    return [
        f"two ways of estimating the coefficient of {names[i]} disagree: {weak[i]:.4g} in the weak "
        f"form, {refined.values[i]:.4g} by following the equation in time"
        for i in np.nonzero(far)[0]
    ]

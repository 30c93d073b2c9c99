"""What `?` in an equation stands for, before a model is trained: a formula, else a learned term.

Each is kept only if it lowers the error of rollouts of data that it was not found from. What is
not local is left to the operator, which is trained and decided on afterwards.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..data import Trajectories, frames_at, in_memory, open_trajectories, split
from ..data.split import Split
from ..description import describe
from ..discover import Discovered, discover
from ..discover.distil import distilled
from ..discover.learn import Learned, learn
from ..discover.shares import shares_of_change
from ..discover.symmetry import usual_velocity
from ..equation import (
    Equation,
    PartialEquation,
    format_equation,
    has_unknown,
    parse_equation,
    parse_partial_equation,
)
from ..errors import SplatopError
from ..numerics import build_physics
from ..physics import Physics
from ..tune import choose_numerics
from .follow import followed, learned_term
from .prepare import Say
from .problem import Problem
from .rollout_errors import LOST, rollout_errors

# A formula that is trusted and this good is not compared with a learned term.
_GOOD = 0.01
# A learned term must be better than a formula by this factor, since a formula can be understood.
_LEAST_GAIN = 0.7
# A learned term that explains less than this of what the known terms leave is no finding.
_LEAST_EXPLAINED = 0.1
# A learned term whose rollouts are this good is not fitted to rollouts.
_FINE = 1e-4
_MOST_STEPS = 100
_MOST_TRAJECTORIES = 4
_SAMPLED = 24
# Values of a learned term's arguments that a record keeps.
_SHOWN = 300


@dataclass(frozen=True)
class Trial:
    """What could stand for `?`: an equation with values for its coefficients, and the error of its
    rollouts of data that it was not found from."""

    what: str
    equation: Equation
    coefficients: dict[str, float]
    error: float


def with_found_terms(problem: Problem, held: Mapping[str, Any] | None, say: Say) -> Problem:
    """The problem with what `?` stands for in its place; `held` is the problem of an earlier part
    of the same run, whose findings count."""
    text = problem.equation_text
    if text is None or not has_unknown(text):
        return problem
    if held is not None and held.get("question") == text:
        return replace(
            problem,
            equation_text=held["equation_text"],
            terms=held.get("terms"),
            coefficients=held["coefficients"],
            question=text,
            found=held.get("found"),
        )
    data = problem.data
    if isinstance(data, str):
        data = open_trajectories(data, **problem.reading)
    assert data is not None
    return _resolved(problem, text, in_memory(data), say)


def _resolved(problem: Problem, text: str, data: Trajectories, say: Say) -> Problem:
    parts = split(data, problem.hold_out)
    names: dict[str, Any] = {"dims": data.grid.dims, "fields": data.fields, "inputs": data.inputs}
    partial = parse_partial_equation(text, **names)
    given = {k: float(v) for k, v in problem.coefficients.items()}
    say(f"looking for what ? stands for in {text}")
    trials: list[Trial] = []
    formula = _formula(text, parts.training, given, problem.symmetry, say)
    values = dict(given)
    if formula is not None:
        values |= formula.coefficients
        equation = parse_equation(formula.equation, **names)
        error = rollout_error(equation, {}, parts.training, parts.deciding)
        trials.append(Trial("formula", equation, {}, error))
        say(f"as a formula: {formula.equation}; rollout error {error:.2g}")
    if partial.known is not None and all(n in values for n in partial.coefficient_names):
        own = {n: values[n] for n in partial.coefficient_names}
        error = rollout_error(partial.known, own, parts.training, parts.deciding)
        trials.append(Trial("known", partial.known, own, error))
        say(f"with the known terms alone: rollout error {error:.2g}")
    enough = formula is not None and formula.trusted and trials[0].error < _GOOD
    learned: Learned | None = None
    if not enough:
        learned, trial = learned_trial(partial, values, problem.symmetry, parts, say)
        trials.append(trial)
        say(
            f"as a learned term of {', '.join(learned.names)}: it explains "
            f"{100 * learned.explained:.3g} % of what is left; rollout error {trial.error:.2g}"
        )
    best = _best(trials)
    told = None
    if partial.known is not None:
        told = partial.known, {n: values[n] for n in partial.coefficient_names if n in values}
    shares = shares_of_change((best.equation, best.coefficients), told, parts.training)
    said = _said(best, formula, learned, shares)
    say(said)
    found = {
        "kept": best.what,
        "said": said,
        "shares": shares,
        "errors": {trial.what: trial.error for trial in trials},
        "formula": None if formula is None else formula.as_dict(),
        "learned": None
        if learned is None
        else {
            "explained": learned.explained,
            "arguments": list(learned.names),
            "samples": [[float(f"{v:.6g}") for v in row] for row in learned.samples[:_SHOWN]],
        },
    }
    if best.what == "learned" and learned is not None:
        worth_it = learned.explained >= _LEAST_EXPLAINED
        found["distilled"] = offer = distilled(learned) if worth_it else None
        if offer is not None:
            say(f"the learned term is close to {offer['text']}")
    terms = describe(best.equation, inline=True) if best.what == "learned" else None
    return replace(
        problem,
        equation_text=format_equation(best.equation, dims=data.grid.dims),
        terms=terms,
        coefficients=best.coefficients,
        question=text,
        found=found,
    )


def _formula(
    text: str,
    data: Trajectories,
    given: Mapping[str, float],
    symmetry: tuple[str, ...],
    say: Say,
) -> Discovered | None:
    try:
        found = discover(data, text, known=given, symmetry=symmetry)
    except SplatopError as error:
        say(f"no formula: {error}")
        return None
    return found if found.terms else None


def learned_trial(
    partial: PartialEquation,
    values: Mapping[str, float],
    symmetry: tuple[str, ...],
    parts: Split,
    say: Say,
) -> tuple[Learned, Trial]:
    """A learned term: fitted to the change between frames, then to short rollouts if these gain."""
    missing = [n for n in partial.coefficient_names if n not in values]
    if missing:
        raise SplatopError(
            f"expected values of {', '.join(missing)} to learn what ? stands for, since no formula "
            "was found to identify them with: give --coefficients"
        )
    own = {n: values[n] for n in partial.coefficient_names}
    training = parts.training
    learned = learn(
        training,
        partial,
        known=partial.known,
        coefficients=own,
        symmetry=_respected(symmetry, training, say),
    )
    told = () if partial.known is None else partial.known.terms
    equation = Equation((*told, learned.term), training.fields)
    physics = physics_of(equation, own, training)
    error = _error(physics, own, parts.deciding)
    worth_it = error > _FINE and learned.explained >= _LEAST_EXPLAINED
    closer = followed(physics, learned.gram, own, training) if worth_it else None
    if closer is not None and (now := _error(closer, own, parts.deciding)) < error:
        say(f"following it in time lowers the rollout error from {error:.2g} to {now:.2g}")
        equation, error = closer.equation, now
        learned = replace(learned, term=learned_term(equation))
    return learned, Trial("learned", equation, own, error)


def _respected(symmetry: tuple[str, ...], data: Trajectories, say: Say) -> list[str]:
    """Those of the symmetries that a learned term can have; of the others it is said."""
    able = []
    if not usual_velocity(data.together.fields, data.grid.dims):
        able.append("rotation")
    if data.domain.all_periodic:
        able.append("conservation")
    lost = [name for name in symmetry if name not in able]
    if lost:
        say(f"a learned term does not respect {', '.join(lost)} here: only a formula does")
    return [name for name in symmetry if name in able]


def _best(trials: list[Trial]) -> Trial:
    """The one with the smallest error, where a formula may be somewhat worse than a network."""
    if not trials:
        raise SplatopError(
            "found nothing that ? could stand for: check the time step and the known terms"
        )
    handicap = {"learned": 1 / _LEAST_GAIN}
    return min(trials, key=lambda trial: trial.error * handicap.get(trial.what, 1.0))


def _said(
    best: Trial, formula: Discovered | None, learned: Learned | None, shares: Mapping[str, float]
) -> str:
    if not shares:
        left = known = ""
        makes = "the fields change by no more than noise"
    else:
        known = f": the known terms make {_percent(shares['known'])} of the change"
        left = f", and {_percent(shares['left'])} is left"
        makes = f"it makes {_percent(shares['found'])} of the change"
        if shares["known"]:
            makes += f", the known terms {_percent(shares['known'])}"
        makes += left
    if best.what == "formula" and formula is not None:
        terms = " ".join(
            f"{term.coefficient:+.4g} {term.text}" for term in formula.terms if term.name is None
        )
        trust = "" if formula.trusted else " (not trusted: see `splatop discover`)"
        if not terms:
            said = "no term is missing" if formula.trusted else "no term was found"
            return f"{said}{trust}{known}{left}"
        signed = terms.removeprefix("+").replace(" +", " + ").replace(" -", " - ")
        return f"the missing term is {signed}{trust}: {makes}"
    if best.what == "learned" and learned is not None:
        return learned_text(learned.names, learned.explained, makes)
    return "nothing found for ? lowers the error of rollouts: the known terms stand alone"


def learned_text(names: tuple[str, ...], explained: float, makes: str) -> str:
    """What is said of a learned term that explains this share of what the known terms leave."""
    of = f"a function of {', '.join(names)} at each point"
    if explained < _LEAST_EXPLAINED:
        return (
            f"not trusted: nothing was found for ?; {of} explains {_percent(max(explained, 0.0))} "
            "of what the known terms leave (is there noise, or something that drives the fields "
            "and is not among them?)"
        )
    return (
        f"the missing term was learned as {of}, which explains {_percent(explained)} of what the "
        f"known terms leave: {makes}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %" if abs(share) >= 1e-4 else "less than 0.01 %"


def rollout_error(
    equation: Equation,
    coefficients: Mapping[str, float],
    training: Trajectories,
    data: Trajectories,
) -> float:
    """The mean relative error of rollouts of an equation over trajectories of data, at most 10."""
    return _error(physics_of(equation, coefficients, training), coefficients, data)


def physics_of(
    equation: Equation, coefficients: Mapping[str, float], training: Trajectories
) -> Physics:
    """Φ of an equation, as fine as frames of the training data need it."""
    equation = equation.placed_at(training.grid.origin)
    which = np.linspace(0, training.trajectories * training.frames - 1, _SAMPLED).astype(int)
    pairs = np.stack(np.divmod(which, training.frames), axis=1)
    frames = frames_at(training, pairs)
    at = {**coefficients, **training.moments(pairs)}
    place: dict[str, Any] = {
        "lengths": training.grid.lengths,
        "dt": training.dt,
        "domain": training.domain,
        "layout": training.grid.layout,
    }
    numerics = choose_numerics(equation, at, frames, **place).numerics
    return build_physics(equation, numerics, **place)


def _error(physics: Physics, coefficients: Mapping[str, float], data: Trajectories) -> float:
    steps = min(_MOST_STEPS, data.frames - 1)
    if steps < 1:
        return LOST
    own = {name: jnp.asarray(value, jnp.float32) for name, value in coefficients.items()}
    count = min(_MOST_TRAJECTORIES, data.trajectories)
    return float(rollout_errors(physics, data, [own] * count, steps).mean())

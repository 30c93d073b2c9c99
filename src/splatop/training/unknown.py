"""What `?` in an equation stands for, before a model is trained: a formula, else a learned term.

Each is kept only if it lowers the error of rollouts of data that it was not found from. What is
not local is left to the operator, which is trained and decided on afterwards.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..data import Trajectories, in_memory, open_trajectories, split
from ..description import describe
from ..discover import Discovered, discover
from ..discover.distil import distilled
from ..discover.learn import Learned, learn
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
from ..stepper import rollout
from ..tune import choose_numerics
from .prepare import Say
from .problem import Problem

# A formula that is trusted and this good is not compared with a learned term.
_GOOD = 0.01
# A learned term must be better than a formula by this factor: a formula says more.
_LEAST_GAIN = 0.7
_MOST_STEPS = 100
_MOST_TRAJECTORIES = 4
_SAMPLED = 24
# An error of ten times the state is lost, however much larger it gets.
_LOST = 10.0


@dataclass(frozen=True)
class _Trial:
    """An equation with values for its coefficients, and its rollout error."""

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
    partial = parse_partial_equation(text, dims=data.grid.dims, fields=data.fields)
    given = {k: float(v) for k, v in problem.coefficients.items()}
    say(f"looking for what ? stands for in {text}")
    trials: list[_Trial] = []
    formula = _formula(text, parts.training, given, say)
    values = dict(given)
    if formula is not None:
        values |= formula.coefficients
        equation = parse_equation(formula.equation, dims=data.grid.dims, fields=data.fields)
        error = rollout_error(equation, {}, parts.training, parts.deciding)
        trials.append(_Trial("formula", equation, {}, error))
        say(f"as a formula: {formula.equation}; rollout error {error:.2g}")
    if partial.known is not None and all(n in values for n in partial.coefficient_names):
        own = {n: values[n] for n in partial.coefficient_names}
        error = rollout_error(partial.known, own, parts.training, parts.deciding)
        trials.append(_Trial("known", partial.known, own, error))
        say(f"with the known terms alone: rollout error {error:.2g}")
    enough = formula is not None and formula.trusted and trials[0].error < _GOOD
    learned: Learned | None = None
    if not enough:
        learned, trial = _learned(partial, values, parts.training, parts.deciding)
        trials.append(trial)
        say(
            f"as a learned term of {', '.join(learned.names)}: it explains "
            f"{100 * learned.explained:.3g} % of what is left; rollout error {trial.error:.2g}"
        )
    best = _best(trials)
    said = _said(best, formula, learned)
    say(said)
    found = {
        "kept": best.what,
        "said": said,
        "errors": {trial.what: trial.error for trial in trials},
        "formula": None if formula is None else formula.as_dict(),
        "learned": None
        if learned is None
        else {
            "explained": learned.explained,
            "arguments": list(learned.names),
            "samples": np.round(learned.samples, 6).tolist(),
        },
    }
    if best.what == "learned" and learned is not None:
        found["distilled"] = offer = distilled(learned)
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
    text: str, data: Trajectories, given: Mapping[str, float], say: Say
) -> Discovered | None:
    try:
        found = discover(data, text, known=given)
    except SplatopError as error:
        say(f"no formula: {error}")
        return None
    return found if found.terms else None


def _learned(
    partial: PartialEquation,
    values: Mapping[str, float],
    training: Trajectories,
    deciding: Trajectories,
) -> tuple[Learned, _Trial]:
    missing = [n for n in partial.coefficient_names if n not in values]
    if missing:
        raise SplatopError(
            f"expected values of {', '.join(missing)} to learn what ? stands for, since no formula "
            "was found to identify them with: give --coefficients"
        )
    own = {n: values[n] for n in partial.coefficient_names}
    learned = learn(training, partial, known=partial.known, coefficients=own)
    told = () if partial.known is None else partial.known.terms
    equation = Equation((*told, learned.term), training.fields)
    error = rollout_error(equation, own, training, deciding)
    return learned, _Trial("learned", equation, own, error)


def _best(trials: list[_Trial]) -> _Trial:
    """The one with the smallest error, where a formula may be somewhat worse than a network."""
    if not trials:
        raise SplatopError(
            "found nothing that ? could stand for: check the time step and the known terms"
        )
    handicap = {"learned": 1 / _LEAST_GAIN}
    return min(trials, key=lambda trial: trial.error * handicap.get(trial.what, 1.0))


def _said(best: _Trial, formula: Discovered | None, learned: Learned | None) -> str:
    if best.what == "formula" and formula is not None:
        terms = " + ".join(
            f"{term.coefficient:.4g} {term.text}" for term in formula.terms if term.name is None
        )
        trust = "" if formula.trusted else " (not trusted: see `splatop discover`)"
        return f"the missing term is {terms}{trust}"
    if best.what == "learned" and learned is not None:
        return (
            f"the missing term was learned: a network of {', '.join(learned.names)} at each point, "
            f"which explains {100 * learned.explained:.3g} % of what the known terms leave"
        )
    return "nothing found for ? lowers the error of rollouts: the known terms stand alone"


def rollout_error(
    equation: Equation,
    coefficients: Mapping[str, float],
    training: Trajectories,
    data: Trajectories,
) -> float:
    """The mean relative error of rollouts of an equation over trajectories of data, at most 10."""
    equation = equation.placed_at(data.grid.origin)
    which = np.linspace(0, training.trajectories * training.frames - 1, _SAMPLED).astype(int)
    frames = np.stack(
        [training.window(int(i) // training.frames, int(i) % training.frames, 1)[0] for i in which]
    )
    where = {
        "lengths": data.grid.lengths,
        "dt": data.dt,
        "domain": data.domain,
        "layout": data.grid.layout,
    }
    at = {**coefficients, **training.moments(np.stack(np.divmod(which, training.frames), axis=1))}
    numerics = choose_numerics(equation, at, frames, **where).numerics
    physics = build_physics(equation, numerics, **where)
    steps = min(_MOST_STEPS, data.frames - 1)
    if steps < 1:
        return _LOST
    given = {**coefficients, **data.when(0, steps + 1)}
    roll = eqx.filter_jit(lambda u: rollout(physics, u, given, steps=steps))
    errors = []
    for i in range(min(_MOST_TRAJECTORIES, data.trajectories)):
        true = data.window(i, 0, steps + 1)
        made = np.asarray(roll(jnp.asarray(true[0])))
        off = np.linalg.norm((made - true[1:]).reshape(steps, -1), axis=1)
        size = np.linalg.norm(true[1:].reshape(steps, -1), axis=1)
        errors.append(np.mean(np.minimum(np.nan_to_num(off / size, nan=_LOST), _LOST)))
    return float(np.mean(errors))

"""From sensors alone to data that a surrogate is trained on: windows are analysed first, what the
equation does not explain is left in their frames for training."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data import ArrayTrajectories
from ..equation import Equation, format_equation, has_unknown, parse_partial_equation
from ..errors import SplatopError
from ..points import Points
from .assimilating import assimilate
from .begin import as_trajectories, told_by_fields
from .check import HIGH
from .observations import Observations
from .state import Analysis

# What says where the state lives, of the arguments of `assimilate`.
_PLACE = ("lengths", "points", "dt", "origin", "boundary", "sampling", "shape")
# Correlation of a sensor's successive residuals from which on something is missing, also where the
# noise was not known and so takes the blame.
_CORRELATED = 0.25
# A learned part has to lower twice the cost over the reports by this factor to have been of use.
_USEFUL = 0.9

Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class FromSensors:
    """What sensors tell: the analysis, its frames as trajectories, and all coefficients."""

    analysis: Analysis
    coefficients: dict[str, float]
    observations: Observations
    given: Mapping[str, Any]  # what the analysis was told
    explained: bool  # whether nothing is left to learn

    @property
    def trajectories(self) -> ArrayTrajectories:
        """The frames of all windows as one trajectory."""
        return as_trajectories(
            self.analysis.record(), f"the analysis of {len(self.observations)} reports"
        )

    def settings(self, given: Mapping[str, Any] | None) -> dict[str, Any]:
        """Those of a training: the physics alone, where nothing is left to learn."""
        chosen = dict(given or {})
        return {"model": "physics", **chosen} if self.explained else chosen

    def judge(self, model: Any, say: Say) -> str | None:
        """Analyse the reports again with a trained model, and say how much better it explains them;
        the answer is a warning if it does not."""
        if self.explained:
            return None
        dynamics = self.analysis.dynamics
        assert dynamics.equation is not None
        before = self._ratio(dynamics.equation, **{k: self.given.get(k) for k in _PLACE})
        shaped = isinstance(dynamics.written, Points)  # such a model has points of its own
        after = self._ratio(model, points=None if shaped else dynamics.written.points)
        say(
            f"twice the cost over the reports: {before:.3g} with the equation alone, {after:.3g} "
            "with what was learned (expected: 1)"
        )
        if after <= max(_USEFUL * before, HIGH):
            return None
        return (
            "what was learned does not explain the reports better than the equation alone "
            f"(twice the cost over the reports: {after:.3g} and {before:.3g}): give more sensors, "
            "longer records, or more of the equation"
        )

    def _ratio(self, model: Any, **place: Any) -> float:
        """Twice the cost over the reports of an analysis in which this model counts as exact."""
        kept = {k: v for k, v in self.given.items() if k in ("window", "prior", "begin", "seed")}
        names = (
            model.coefficient_names
            if isinstance(model, Equation)
            else model.spec.full_equation.coefficient_names
        )
        known = {k: v for k, v in self.coefficients.items() if k in names}
        found = assimilate(
            self.observations, model, coefficients=known, spread="none", **place, **kept
        )
        return float(np.mean([one.check.ratio for one in found.chain]))


def from_sensors(
    observations: Any,
    equation: str | Equation,
    *,
    coefficients: Mapping[str, float] | None = None,
    say: Say = lambda _: None,
    **given: Any,
) -> FromSensors:
    """What sensors and an equation tell before anything is trained.

    Coefficients without a value are estimated with the state, from `unknown` on, or from what
    fields that are reconstructed without an equation tell. Where the equation does not explain
    the reports, or has a `?`, the model counts as wrong by as much as the reports tell: the
    frames then hold what it lacks. `given` are other arguments of `assimilate`.
    """
    text = equation if isinstance(equation, str) else format_equation(equation, dims=_dims(given))
    places = {k: v for k, v in given.items() if k in ("columns", "time_unit", "places")}
    partial = parse_partial_equation(text, dims=_dims(given))
    fields = partial.fields
    held = Observations.read(observations, fields=fields, **places)
    rest = {k: v for k, v in given.items() if k not in places}
    known = {name: float(value) for name, value in (coefficients or {}).items()}
    asked = rest.pop("unknown", {})
    starts = dict(asked) if isinstance(asked, Mapping) else {}
    if partial.known is None:
        raise SplatopError(
            "expected at least one known term to analyse sensors with, got ? alone: write what is "
            "known, such as dt(u) = D*lap(u) + ?"
        )
    missing = [n for n in partial.known.coefficient_names if n not in {**known, **starts}]
    if missing:
        starts |= told_by_fields(held, partial.known, {**known, **starts}, missing, rest)
        told = ", ".join(f"{name} = {starts[name]:.3g}" for name in missing)
        say(f"fields without the equation tell about {told}: estimated with the state from there")
    how = {**rest, "coefficients": known, "unknown": starts, "say": say}
    lacks = has_unknown(text)
    found = None
    if not lacks and "model_error" not in rest:
        found = assimilate(held, partial.known, **how)
        lacks = any(
            one.check.ratio > HIGH or one.check.correlation > _CORRELATED for one in found.chain
        )
        say(
            f"twice the cost over the reports: {found.check.ratio:.3g} (expected: 1)"
            + (": the equation lacks something, which its error makes up for" if lacks else "")
        )
    if found is None or lacks:
        found = assimilate(held, partial.known, **{"model_error": "auto", **how})
    for name, one in found.estimates.items():
        say(f"{name} = {one.value:.6g} (95 %: {one.low:.6g} to {one.high:.6g}), with the state")
    for warning in found.all_warnings():
        say(f"warning: {warning}")
    return FromSensors(
        analysis=found,
        coefficients={**found.coefficients, **known},
        observations=held,
        given=rest,
        explained=not lacks and found.errors is None,
    )


def refuse_with_sensors(**given: Any) -> None:
    """What is said of trajectories, and means nothing for reports of sensors."""
    for name, value in given.items():
        if value is not None:
            raise SplatopError(
                f"expected no {name} for what sensors reported, got {value}: leave it out (columns "
                "of a table are named by sensors={'columns': ...})"
            )


def _dims(given: Mapping[str, Any]) -> int:
    for name in ("lengths", "points"):
        if given.get(name) is None:
            raise SplatopError(
                f"expected {name} to train from sensors, which say only where they are, got none: "
                f"give {name}= (--{name})"
            )
    return max(len(np.atleast_1d(given[name])) for name in ("lengths", "points"))

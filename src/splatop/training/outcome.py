"""After the last step: whether the operator is kept, and how far ahead the model can be trusted.

Both are measured by rollouts of data that training has not seen, where there are any.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from ..data import Trajectories, part
from ..identify import identify_trajectories
from ..stepper import Coefficients, Stepper
from .loaded import MOST_DECIDING
from .rollout_errors import LOST, rollout_errors, share_that_varies, still_errors
from .stages import Session

# The operator must lower the rollout error by this part of it, and by more than float32 rounding
# adds up to over a rollout: less than that is fitted noise, which other trajectories pay for.
LEAST_GAIN = 0.1
ROUNDING = 2e-6
# Rollouts are no longer than this, and no more of them are reported on.
MOST_STEPS = 200
MOST_REPORTED = 8
# How far ahead an error stays below these is what the summary states.
LEVELS = (1e-2, 1e-1)
# A model is worth something if at one step at least its error is negligible, or below this part of
# the error of a state that stays as it is. The summary states the latter if it is not ten times the
# model's own.
SKILL, NEGLIGIBLE = 0.7, 1e-5
CLOSE = 10.0
# Of fields that vary by less than this part of their size the mean makes relative errors small.
MOSTLY_MEAN = 0.3


@dataclass(frozen=True)
class Decision:
    """Rollout errors without and with the operator, and on which data."""

    kept: bool
    data: str
    held_out: bool
    also_reported: bool  # the same data are reported on: there were too few for both
    trajectories: int
    steps: int
    physics: float
    with_operator: float

    def __str__(self) -> str:
        where = self.data if self.held_out else f"{self.data}: nothing is held out"
        return (
            f"rollout error over {self.steps} steps ({where}): physics alone {self.physics:.3e}, "
            f"with the operator {self.with_operator:.3e}"
            + ("" if self.kept else "; the operator is left out")
        )


@dataclass(frozen=True)
class Measured:
    """Rollout errors of the finished model, the worst trajectory's at each step.

    `below` are the steps for which they stay below 0.01 and 0.1. `physics` and `with_operator` are
    mean errors, the first None where there is no operator; `still` is that of a state that stays as
    it is, and `skilled` whether the model is better than that at any step. `varies` is the size
    of the fields about their mean, relative to their size.
    """

    data: str
    held_out: bool
    trajectories: int
    steps: int
    below: tuple[int, int]
    diverged_step: int | None
    physics: float | None
    with_operator: float
    still: float = LOST
    skilled: bool = True
    varies: float = 1.0

    def __str__(self) -> str:
        if self.held_out:
            where = f"on held-out data ({self.data})"
        else:
            where = "nothing was held out: on the training data"
        tight, loose = self.below
        if tight == self.steps:
            said = f"stays below 1e-2 for {tight} of {self.steps} steps"
        elif loose == 0:
            said = f"is above 1e-1 from the first of {self.steps} steps on"
        elif tight == 0:
            said = f"stays below 1e-1 for {loose} of {self.steps} steps"
        else:
            said = f"stays below 1e-2 for {tight} and below 1e-1 for {loose} of {self.steps} steps"
        if self.diverged_step is not None:
            said += f" and diverges at step {self.diverged_step}"
        if self.still < CLOSE * self.with_operator:
            said += (
                f"; on average it is {self.with_operator:.2g}, and {self.still:.2g} for a state "
                "that stays as it is"
            )
        if self.varies < MOSTLY_MEAN:
            said += f" (relative to fields that vary by {self.varies:.2g} of their size)"
        after = "" if self.held_out else ", which does not tell how it does on other data"
        return f"{where} the error {said}{after}"


def decide(with_operator: Stepper, physics: Stepper, session: Session) -> Decision:
    """Keep the operator only where it lowers the rollout error of data that training has not seen.

    Judged on the last phase's grid, the finest: on a coarse one the reference has errors of its
    own that an operator can learn.
    """
    data = session.loaded.deciding(session.settings.phases[-1][0])
    own = _coefficients(data, session, MOST_DECIDING)
    composite, alone = (
        _mean(rollout_errors(s, data, own, _steps(data))) for s in (with_operator, physics)
    )
    return Decision(
        kept=alone - composite > max(LEAST_GAIN * alone, ROUNDING),
        data=_words(data),
        held_out=bool(data.attributes.get("held_out")),
        also_reported=session.loaded.decides_on_reported,
        trajectories=len(own),
        steps=_steps(data),
        physics=alone,
        with_operator=composite,
    )


def measure(model: Stepper, physics: Stepper | None, session: Session) -> Measured:
    """How a model does on what is reported on; `physics` is that of a model with an operator."""
    data = session.loaded.reported()
    own = _coefficients(data, session, MOST_REPORTED)
    steps = _steps(data)
    errors = rollout_errors(model, data, own, steps)
    still = still_errors(data, len(own), steps)
    worst = errors.max(axis=0)
    lost = np.flatnonzero(worst >= LOST)
    return Measured(
        data=_words(data),
        held_out=bool(data.attributes.get("held_out")),
        trajectories=len(own),
        steps=steps,
        below=(_below(worst, LEVELS[0]), _below(worst, LEVELS[1])),
        diverged_step=int(lost[0]) + 1 if len(lost) else None,
        physics=None if physics is None else _mean(rollout_errors(physics, data, own, steps)),
        with_operator=_mean(errors),
        still=_mean(still),
        skilled=bool((errors.mean(0) < np.maximum(SKILL * still.mean(0), NEGLIGIBLE)).any()),
        varies=share_that_varies(data, len(own), steps),
    )


def summary(
    session: Session,
    *,
    kind: str,
    parameters: int,
    decision: Decision | None,
    measured: Measured,
    found: str | None = None,
) -> str:
    """One line: what was learned, from how much, and how far ahead it can be trusted; `found` says
    what `?` in the equation stands for."""
    prepared, settings = session.prepared, session.settings
    learned = [_coefficient(name, session) for name in prepared.identified]
    if kind == "surrogate":
        learned.append(_operator(measured))
    elif kind != "physics":
        learned.append(f"a network ({kind}, {parameters:,} parameters) without physics")
    told = [] if found is None else [found]
    if learned or not told:
        told.append(f"learned {_listed(learned)}" if learned else "nothing was learned")
    if kind == "physics" and settings.model != "physics":
        told.append(
            "the operator did not lower the error and was left out: the model is its physics"
        )
    elif kind == "physics":
        told.append("the model is its physics")
    said = "; ".join(told)
    doubts = ["see the warnings on what was identified"] if prepared.doubts else []
    if not measured.skilled:
        doubts.append("at no step better than a state that stays as it is")
    if kind == "surrogate" and _gain(measured) < 1 / (1 + LEAST_GAIN):
        doubts.append("its physics alone does better, which model=physics takes")
    if doubts:
        said = f"not trusted ({'; '.join(doubts)}): {said}"
    given = [n for n in prepared.spec.coefficients if n not in prepared.identified]
    if given and kind in ("surrogate", "physics"):
        said += f", with {_listed(given)} as given"
    count, frames = session.loaded.size
    many = "1 trajectory" if count == 1 else f"{count} trajectories"
    trust = str(measured)
    if decision is not None and decision.also_reported and measured.held_out:
        trust += " (the data that decided on the operator: there are too few for others)"
    return f"{said}; from {many} of {frames} frames; {trust}"


def _coefficient(name: str, session: Session) -> str:
    prepared = session.prepared
    half = prepared.identified[name]
    if name in prepared.spec.coefficients:
        value = f"{name} = {prepared.spec.coefficients[name]:.4g}"
        return (
            f"{value} ± {half:.1g}" if half is not None else f"{value} (with an unbounded interval)"
        )
    values = prepared.coefficients[name]
    return f"{name} from {min(values):.4g} to {max(values):.4g} by trajectory"


def _gain(measured: Measured) -> float:
    assert measured.physics is not None
    return measured.physics / max(measured.with_operator, 1e-12)


def _operator(measured: Measured) -> str:
    ratio = _gain(measured)
    if ratio > 1 + LEAST_GAIN:
        return f"an operator that lowers the error {ratio:.2g}x"
    if ratio < 1 / (1 + LEAST_GAIN):
        return f"an operator that raises the error {1 / ratio:.2g}x"
    return "an operator that hardly changes the error"


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _words(data: Trajectories) -> str:
    return str(data.attributes.get("part", data.source))


def _steps(data: Trajectories) -> int:
    return min(data.frames - 1, MOST_STEPS)


def _coefficients(data: Trajectories, session: Session, most: int) -> list[Coefficients]:
    """Those of the first trajectories of `data`: of the training's own, or identified."""
    prepared, settings = session.prepared, session.settings
    spec = prepared.spec
    count = min(data.trajectories, most)
    if spec.unknown and not session.loaded.in_time:
        known = spec.known_equation
        found = identify_trajectories(
            known,
            None,
            part(data.observed, slice(0, count), which="some"),
            unknown=spec.unknown,
            known={k: v for k, v in spec.coefficients.items() if k in known.coefficient_names},
            frames=min(settings.calibration_frames, data.observed.frames),
        )
        own = {name: [one.estimates[name] for one in found] for name in spec.unknown}
    else:
        own = {name: list(values[:count]) for name, values in prepared.coefficients.items()}
        count = min([count, *map(len, own.values())])
    return [
        {
            **spec.coefficients,
            **{name: jnp.asarray(values[b], jnp.float32) for name, values in own.items()},
        }
        for b in range(count)
    ]


def _mean(errors: np.ndarray) -> float:
    return float(errors.mean())


def _below(worst: np.ndarray, level: float) -> int:
    """Steps until an error passes the level."""
    above = np.flatnonzero(worst > level)
    return int(above[0]) if len(above) else len(worst)

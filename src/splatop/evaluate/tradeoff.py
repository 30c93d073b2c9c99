"""What accuracy costs: a model beside solvers of its equation on several grids.

A surrogate is worth having where no solver is as good for less. One row holds how far a contestant
is off or how long it holds, and the time that it takes for a unit of simulated time.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..coarse import CoarseStepper, CoarseTrajectories, axis_words
from ..coarse.projection import enough
from ..data import Trajectories
from ..errors import SplatopError
from ..jets import fast_size
from ..model import Model
from ..numerics import build_physics
from ..stepper import Coefficients
from ..tune import Pairs, choose_coarse
from .cost import rollout_cost
from .results import Metrics

# Grids that a solver is tried on, as parts of the data's points along each axis, and the most
# points of one: a finer solver is too slow to compete with a coarse model.
PARTS = (1 / 4, 3 / 8, 1 / 2, 3 / 4, 1)
MOST_POINTS = 2**16
# On more points than this along an axis transforms are quicker than products with matrices.
_WIDE = 64
_PAIRS = 8


@dataclass(frozen=True)
class Row:
    """A contestant: a model, the physics of one alone, or a solver.

    `points` are those that it computes on, `interval` is the time of one of its steps, `cost` the
    milliseconds for a unit of simulated time in a rollout of one state, `rl2` the mean relative
    error (None: it diverged), `horizon` the time until its error passes 0.3 standard deviations,
    `correlation` the time until its correlation falls below 0.9; both are `length` where that
    does not happen within the rollout.
    """

    name: str
    role: str  # "model", "physics" or "solver"
    points: tuple[int, ...]
    interval: float
    cost: float
    rl2: float | None
    horizon: float
    correlation: float
    length: float

    def as_good_as(self, other: "Row", judged: str) -> bool:
        """By "horizon" or by "rl2"."""
        if judged == "horizon":
            return self.horizon >= other.horizon
        return self.rl2 is not None and other.rl2 is not None and self.rl2 <= other.rl2


@dataclass(frozen=True)
class Verdict:
    """How a model stands: the cheapest solver that is as good, if one that was tried is, and the
    model's time over its."""

    row: Row
    judged: str
    solver: Row | None
    ratio: float | None

    def __str__(self) -> str:
        own, solver = self.row, self.solver
        as_good = "holds as long" if self.judged == "horizon" else "is as accurate"
        said = f"{own.name}: {own.cost:.3g} ms for a unit of simulated time; "
        if solver is None or self.ratio is None:
            return said + f"no solver that was tried {as_good}"
        said += (
            f"the cheapest solver that {as_good}, on {_across(solver.points)} points, takes "
            f"{solver.cost:.3g} ms: the model takes {self.ratio:.2g} times as long"
        )
        return said + (". The solver is the better choice" if self.ratio > 1 else "")


def solvers(
    model: Model, trajectories: Trajectories, coefficients: Coefficients
) -> Iterator[tuple[str, Model]]:
    """The model's own equation solved on several grids, with steps as long as the model's in the
    substeps that its error in space deserves."""
    physics = model.physics
    domain, layout = trajectories.domain, trajectories.grid.layout
    if physics is None or domain.shape is not None or model.spec.answers == "coarse":
        raise SplatopError(
            "expected a model with physics on a box, and states on the grid that is given, to "
            "compare with solvers: leave the comparison out (--no-solvers)"
        )
    words = axis_words(domain, layout)
    for points in _grids(trajectories.grid.points, words):
        seen = CoarseTrajectories(trajectories, points=points)
        tuned = choose_coarse(
            physics.equation,
            coefficients,
            Pairs.spread_over(seen, _PAIRS),
            domain=domain,
            layout=layout,
            dt=model.spec.dt,
            space="harmonics" if max(points) <= _WIDE else "grid",
        )
        where = {"domain": domain, "layout": layout, "dt": model.spec.dt}
        stepper = build_physics(physics.equation, tuned.numerics, **where)
        spec = replace(model.spec.without_operator(), coarse=points, numerics=tuned.numerics)
        name = f"solver, {_across(points)} points"
        yield name, Model(spec, CoarseStepper(stepper, points, words=words), model.record)


def _grids(fine: tuple[int, ...], words: tuple[str, ...]) -> Iterator[tuple[int, ...]]:
    """Even sizes with small prime factors, from few points to the data's own."""
    found = [tuple(min(n, fast_size(int(np.ceil(n * part)))) for n in fine) for part in PARTS]
    for points in dict.fromkeys(found):
        if enough(points, words) and np.prod(points) <= MOST_POINTS:
            yield points


def row(
    name: str, role: str, model: Model, metrics: Metrics, u0: Any, coefficients: Coefficients
) -> Row:
    """A contestant that was evaluated, timed from the state `u0`."""
    dt, steps = model.spec.dt, metrics.steps
    held = metrics.steps if metrics.horizon is None else metrics.horizon
    fell = metrics.correlation_time["0.9"]
    return Row(
        name=name,
        role=role,
        points=model.spec.coarse or tuple(u0.shape[1:]),
        interval=dt,
        cost=rollout_cost(model.stepper, jnp.asarray(u0), coefficients) / dt,
        rl2=metrics.rl2_mean,
        horizon=dt * held,
        correlation=dt * (steps if fell is None else fell - 1),
        length=dt * steps,
    )


def as_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [{**asdict(one), "points": list(one.points)} for one in rows]


def from_json(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    return [Row(**{**one, "points": tuple(one["points"])}) for one in rows]


def judged_by(rows: Sequence[Row]) -> str:
    """Where the models part from the reference within the rollout, what counts is when."""
    models = [one for one in rows if one.role == "model"]
    return "horizon" if any(one.horizon < one.length for one in models) else "rl2"


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """One for each model."""
    judged, found = judged_by(rows), []
    for own in (one for one in rows if one.role == "model"):
        good = [s for s in rows if s.role == "solver" and s.as_good_as(own, judged)]
        best = min(good, key=lambda one: one.cost, default=None)
        found.append(Verdict(own, judged, best, None if best is None else own.cost / best.cost))
    return found


def _across(points: tuple[int, ...]) -> str:
    return " x ".join(map(str, points))

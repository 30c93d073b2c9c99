"""A model: a stepper with what is known about it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..ensemble import Ensemble, stack
from ..errors import SplatopError, check_field, unknown_name
from ..grid import Grid
from ..operators import parameter_count
from ..physics import Physics
from ..points import Points
from ..spectral import Field
from ..stepper import INTERVAL, Coefficients, Stepper, at_step, course, rollout
from .spec import ModelSpec
from .timetable import Timetable, timetable

GivenField = Float[Array | np.ndarray, "C *N"]


class Record(dict):
    """What training wrote down about a model: JSON that nobody changes, and so has a hash, as all
    must have that `jit` does not trace."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(json.dumps(self, sort_keys=True, default=str))


class Model(eqx.Module):
    """A trained stepper with its description: `spec` says which problem it is a model of, `record`
    what training wrote down. A pytree of the stepper's arrays, for `jit`, `vmap` and `grad`.
    """

    spec: ModelSpec = eqx.field(static=True)
    stepper: Stepper
    record: Mapping[str, Any] = eqx.field(static=True, converter=Record, default_factory=Record)

    @property
    def physics(self) -> Physics | None:
        """The embedded physics alone, if the model has one; of an ensemble the first member's."""
        return self.stepper.embedded

    @property
    def members(self) -> list["Model"]:
        """The models of an ensemble one by one; of any other the model itself."""
        one = replace(self.spec, members=1)
        return [Model(one, stepper, self.record) for stepper in self.stepper.alone]

    @property
    def parameters(self) -> int:
        """Trainable parameters of the dynamics map, learned terms included; the encoder is counted
        apart, as the paper."""
        network = getattr(self.stepper, "network", None)
        physics = self.physics
        terms = () if physics is None else physics.equation.terms
        own = 0 if network is None else parameter_count(network)
        return own + sum(term.learned_parameters for term in terms)

    def physics_only(self) -> "Model":
        """The ablation without the operator."""
        alone = self.stepper.physics_alone
        if alone is None:
            raise SplatopError(f"a '{self.spec.kind}' model has no physics to run alone")
        return Model(self.spec.without_operator(), alone, self.record)

    def at(self, points: Points | np.ndarray) -> "Model":
        """The same model of states `(C, P)` at other points of its shape, `(P, 2)`."""
        domain = self.spec.domain
        if domain is None or domain.shape is None:
            raise SplatopError("expected a model of a shape to move to other points, got a box")
        if not isinstance(points, Points):
            points = Points.of(points, lengths=domain.lengths, origin=domain.origin)
        away = domain.shape.distance(points.places)
        if away.max() > 1e-5 * max(domain.lengths):
            x, y = points.places[int(np.argmax(away))]
            raise SplatopError(
                f"expected points inside of the shape, got one at ({x:.6g}, {y:.6g}), "
                f"{away.max():.3g} outside: leave it out"
            )
        if points == self.spec.layout:
            return self

        def movable(node: Any) -> bool:
            return hasattr(node, "moved_to")

        stepper = jax.tree.map(
            lambda node: node.moved_to(points) if movable(node) else node,
            self.stepper,
            is_leaf=movable,
        )
        return Model(replace(self.spec, layout=points), stepper, self.record)

    def for_data(self, grid: Any) -> "Model":
        """The model for states that are sampled like these: itself, or moved to their points."""
        return self.at(grid) if isinstance(grid, Points) else self

    def complete(self, coefficients: Coefficients | None) -> dict[str, Any]:
        """The model's fixed coefficients with a trajectory's own ones."""
        given = {**self.spec.coefficients, **(coefficients or {})}
        missing = [name for name in self.spec.unknown if name not in given]
        if missing:
            raise SplatopError(
                f"expected values for the coefficients {', '.join(missing)}, which belong to a "
                "trajectory: identify them from its first frames, or pass them"
            )
        if self.spec.intervals:
            given.setdefault(INTERVAL, self.spec.dt)
        return given

    def timetable(self, times: Sequence[float] | np.ndarray, *, t0: float) -> Timetable:
        """The steps that lead from `t0` to each of the times."""
        learned = getattr(self.stepper, "network", None) is not None or self.spec.members > 1
        return timetable(self.spec, times, t0=t0, learned=learned)

    def step(self, u: GivenField, coefficients: Coefficients | None = None) -> Field:
        """The state one frame later."""
        return _jitted_step(self.stepper, self._checked(u), self.complete(coefficients))

    def rollout(
        self, u0: GivenField, steps: int, *, coefficients: Coefficients | None = None
    ) -> Float[Array, "T C *N"]:
        """The `steps` states that follow `u0`."""
        if steps < 1:
            raise SplatopError(f"expected at least one step, got {steps}")
        u, own = self._checked(u0), self.complete(coefficients)
        if self.stepper.scannable:
            return _jitted_rollout(self.stepper, u, own, steps)
        states, points = [], tuple(u.shape[1:])
        changing = course(self.stepper, own, steps)
        u = self.stepper.enter(u)
        for n in range(steps):
            u = _jitted_step(self.stepper.carried, u, {**own, **at_step(changing, n)})
            states.append(u)
        return jnp.stack([self.stepper.leave(u, points) for u in states])

    def plot(
        self,
        u0: GivenField,
        *,
        steps: int,
        coefficients: Coefficients | None = None,
        field: str | None = None,
        ax: Any = None,
    ) -> Any:
        """A field `steps` steps after `u0`, on matplotlib axes, which it returns."""
        from ..notebook import draw_state, new_axes

        name = self.spec.fields[0] if field is None else field
        if name not in self.spec.fields:
            raise unknown_name("field", name, self.spec.fields)
        state = self.rollout(u0, steps=steps, coefficients=coefficients)[-1]
        shown = np.asarray(state[self.spec.fields.index(name)])
        at = self.spec.layout
        if not isinstance(at, Points):
            at = Grid(shown.shape, self.spec.lengths, self.spec.origin, at)
        axes = draw_state(new_axes(ax), shown, at)
        axes.set_title(f"{name} after {steps} steps")
        return axes

    def _repr_html_(self) -> str:
        from ..notebook import card

        return card(f"splatop model: {self.spec.kind}", self._about())

    def _about(self) -> dict[str, object]:
        """What there is to say of it, by name."""
        summary = self.record.get("summary")
        return {
            "equation": self.spec.equation,
            "fields": ", ".join(self.spec.fields),
            **{name: float(value) for name, value in self.spec.coefficients.items()},
            "time step": float(self.spec.dt),
            "parameters": f"{self.parameters:,}",
            **({} if summary is None else {"summary": summary}),
        }

    def _checked(self, u: GivenField) -> Array:
        u = jnp.asarray(u)
        check_field(u, dims=self.spec.rank, channels=len(self.spec.fields))
        return u


@eqx.filter_jit
def _jitted_step(stepper, u, coefficients):
    return stepper(u, coefficients)


@eqx.filter_jit
def _jitted_rollout(stepper, u0, coefficients, steps):
    return rollout(stepper, u0, coefficients, steps=steps)


def ensemble_of(models: Sequence[Model]) -> Model:
    """Models of one description, as one."""
    first = models[0]
    if any(other.spec != first.spec for other in models):
        raise SplatopError("expected models of one description in an ensemble, got different ones")
    stepper = Ensemble(stack([model.stepper for model in models]), len(models))
    return Model(replace(first.spec, members=len(models)), stepper, first.record)

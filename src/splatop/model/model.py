"""A model: a stepper with what is known about it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..ensemble import Ensemble, stack
from ..errors import SplatopError, check_field
from ..operators import parameter_count
from ..physics import Physics
from ..spectral import Field
from ..stepper import Coefficients, Stepper, rollout
from .spec import ModelSpec

GivenField = Float[Array | np.ndarray, "C *N"]


class Record(dict):
    """What training wrote down about a model: JSON that nobody changes, and so has a hash, as all
    must have that `jit` does not trace."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(json.dumps(self, sort_keys=True, default=str))


class Model(eqx.Module):
    """A stepper with what is known about it: `spec` says of what problem it is, `record` what
    training wrote down. A pytree of the stepper's arrays, for `jit`, `vmap` and `grad`.
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
        """Trainable parameters of the dynamics map; the encoder is counted apart, as the paper."""
        network = getattr(self.stepper, "network", None)
        return 0 if network is None else parameter_count(network)

    def physics_only(self) -> "Model":
        """The ablation without the operator."""
        alone = self.stepper.physics_alone
        if alone is None:
            raise SplatopError(f"a '{self.spec.kind}' model has no physics to run alone")
        return Model(self.spec.without_operator(), alone, self.record)

    def complete(self, coefficients: Coefficients | None) -> dict[str, Any]:
        """The model's fixed coefficients with a trajectory's own ones."""
        given = {**self.spec.coefficients, **(coefficients or {})}
        missing = [name for name in self.spec.unknown if name not in given]
        if missing:
            raise SplatopError(
                f"expected values for the coefficients {', '.join(missing)}, which belong to a "
                "trajectory: identify them from its first frames, or pass them"
            )
        return given

    def step(self, u: GivenField, coefficients: Coefficients | None = None) -> Field:
        """The state one frame later."""
        return _jitted_step(self.stepper, self._checked(u), self.complete(coefficients))

    def rollout(
        self, u0: GivenField, *, steps: int, coefficients: Coefficients | None = None
    ) -> Float[Array, "T C *N"]:
        """The `steps` states that follow `u0`."""
        if steps < 1:
            raise SplatopError(f"expected at least one step, got {steps}")
        u, own = self._checked(u0), self.complete(coefficients)
        if self.stepper.scannable:
            return _jitted_rollout(self.stepper, u, own, steps)
        states, points = [], tuple(u.shape[1:])
        u = self.stepper.enter(u)
        for _ in range(steps):
            u = _jitted_step(self.stepper.carried, u, own)
            states.append(u)
        return jnp.stack([self.stepper.leave(u, points) for u in states])

    def _checked(self, u: GivenField) -> Array:
        u = jnp.asarray(u)
        check_field(u, dims=self.spec.dims, channels=len(self.spec.fields))
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

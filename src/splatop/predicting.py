"""States in whatever form a user holds them: checked, rolled out, and given back in that form."""

import warnings
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .data.complex_fields import as_parts, as_whole
from .data.inputs import check_cover
from .errors import SplatopError, check_field, check_finite, is_concrete, unknown_name
from .model import ModelSpec
from .signal import Signal
from .stepper import at_step, course, rollout


def as_states(spec: ModelSpec, u: Any) -> tuple[jax.Array, bool]:
    """The state, or states, and which of the two."""
    array = jnp.asarray(u)
    if jnp.iscomplexobj(array) and array.ndim > spec.rank:
        array = as_parts(array, spec.fields, axis=array.ndim - spec.rank - 1)
    batched = array.ndim == spec.rank + 2
    check_field(array[0] if batched else array, dims=spec.rank, channels=len(spec.fields))
    if batched and is_concrete(array):
        check_finite(array)
    return array, batched


def in_form_of(spec: ModelSpec, values: jax.Array, given: Any) -> Any:
    """Predicted states in the form of the given one: complex, NumPy."""
    if jnp.iscomplexobj(given):
        values = as_whole(values, spec.fields, axis=values.ndim - spec.rank - 1)
    return np.asarray(values) if isinstance(given, np.ndarray) and is_concrete(values) else values


def warn_unless_finite(spec: ModelSpec, frames: jax.Array) -> None:
    """Say at which step a rollout left the finite numbers, unless it is traced."""
    if not is_concrete(frames):
        return
    axis = frames.ndim - spec.rank - 2
    held = np.isfinite(np.moveaxis(np.asarray(frames), axis, 0))
    bad = ~held.reshape(held.shape[0], -1).all(axis=1)
    if bad.any():
        warnings.warn(
            f"the rollout left the finite numbers at step {int(np.argmax(bad)) + 1}: ask "
            "for fewer steps, or train with more substeps",
            stacklevel=4,
        )


def input_signals(
    spec: ModelSpec, inputs: Mapping[str, Any], *, begin: float, until: float, hold: bool
) -> dict[str, Signal]:
    """The inputs of a rollout over time, checked."""
    found = {}
    for name, values in inputs.items():
        if name not in spec.inputs:
            raise unknown_name("input", name, spec.inputs)
        if isinstance(values, Signal):
            found[name] = values
            continue
        array = jnp.asarray(values, jnp.float32)
        array = array[None] if array.ndim == spec.dims else array
        if array.ndim != spec.dims + 1:
            raise SplatopError(
                f"expected values (T, *N) of the input {name}, got shape {np.shape(values)}"
            )
        when = begin + spec.dt * np.arange(len(array))
        found[name] = Signal(array, jnp.asarray(when, jnp.float32))
    check_cover(found, spec.inputs, begin=begin, until=until, hold=hold)
    return found


@eqx.filter_jit
def step_states(stepper, u, coefficients, batched):
    """A state `(C, *N)`, or states `(B, C, *N)` if `batched`, one frame later."""
    return jax.vmap(lambda v: stepper(v, coefficients))(u) if batched else stepper(u, coefficients)


def roll_out(stepper, u, coefficients, steps, batched):
    """The frames `(T, C, *N)` that follow a state, or `(B, T, C, *N)` of states."""
    if stepper.scannable:
        return _scanned(stepper, u, coefficients, steps, batched)
    # A stepper may give its states on another grid than it takes.
    states, changing = [], course(stepper, coefficients, steps)
    for n in range(steps):
        u = step_states(stepper, u, {**coefficients, **at_step(changing, n)}, batched)
        states.append(u)
    return jnp.stack(states, axis=int(batched))


@eqx.filter_jit
def _scanned(stepper, u, coefficients, steps, batched):
    def one(v):
        return rollout(stepper, v, coefficients, steps=steps)

    return jax.vmap(one)(u) if batched else one(u)

"""A stepper advances a state by one frame; a rollout applies it again and again."""

import abc
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .errors import SplatopError
from .signal import Signal
from .spectral import Field

Scalar = float | Float[Array, ""]
# One number of each name; what changes from step to step may have one for each step, and what
# drives the state is a `Signal`.
Coefficients = Mapping[str, Any]

# Names that coefficients never have: under these a step finds the time at which it begins, and how
# long it is to be if that is not the stepper's own interval.
TIME, INTERVAL = "t", "dt"


class Stepper(eqx.Module):
    """A function `(u, coefficients) -> u_next` of a state `(C, *N)`: reference solver, physics,
    operator and surrogate are all steppers.

    The properties below say what differs between them: a new stepper overrides those whose answer
    is another for it.
    """

    @abc.abstractmethod
    def __call__(self, u: Field, coefficients: Coefficients) -> Field: ...

    def in_loss(self, u: Field, coefficients: Coefficients) -> Field:
        """The same step as a training loss takes it, which may stop gradients that nobody needs."""
        return self(u, coefficients)

    @property
    def scannable(self) -> bool:
        """Whether steps may run in one compiled loop (`jax.lax.scan`).

        XLA's convolutions are ten times slower there on CPUs, so that the `network` of a stepper
        has to say that it is: by an attribute `scannable` of its own.
        """
        network = getattr(self, "network", None)
        return network is None or bool(getattr(network, "scannable", False))

    @property
    def light_gradient(self) -> bool:
        """Whether the gradient of a step keeps little more than the state itself, so that a loss
        over several steps need not compute them again on its way back: as the `network` says."""
        return bool(getattr(getattr(self, "network", None), "light_gradient", False))

    @property
    def interval(self) -> float | None:
        """The time that a step takes, unless it is told another; None if it does not know."""
        return None

    @property
    def autonomous(self) -> bool:
        """Whether a step is the same at all times."""
        return True

    @property
    def embedded(self) -> Any:
        """The physics Φ inside, an `EmbeddedPhysics`, or None where there is none."""
        return None

    @property
    def physics_alone(self) -> "Stepper | None":
        """The same without its operator: Φ as this stepper takes states and gives them."""
        return self.embedded

    @property
    def carried(self) -> "Stepper":
        """What a rollout steps with: a stepper of states in its own form, which `enter` makes of a
        field, and `leave` a field of."""
        return self

    def enter(self, u: Field) -> Field:
        """A field in the form that `carried` steps."""
        return u

    def leave(self, state: Field, points: tuple[int, ...]) -> Field:
        """A state of `carried` as a field on a grid of `points`."""
        return state

    @property
    def alone(self) -> "tuple[Stepper, ...]":
        """The members of an ensemble, one by one; any other stepper is the only one."""
        return (self,)


class StepperAround(Stepper):
    """A stepper that hands states on to the one `inside`, whose time and loops are its own."""

    @property
    @abc.abstractmethod
    def inside(self) -> Stepper:
        """The stepper that does the work."""

    @property
    def scannable(self) -> bool:
        return self.inside.scannable

    @property
    def light_gradient(self) -> bool:
        return self.inside.light_gradient

    @property
    def interval(self) -> float | None:
        return self.inside.interval

    @property
    def autonomous(self) -> bool:
        return self.inside.autonomous

    @property
    def network(self) -> Any:
        """The network inside, or those of all members, whose parameters are counted."""
        return getattr(self.inside, "network", None)


def rollout(
    stepper: Stepper, u0: Field, coefficients: Coefficients, *, steps: int, loop: bool | None = None
) -> Float[Array, "T C *M"]:
    """The `steps` states that follow a state `u0` of shape `(C, *N)`, each from the one before.

    Whether they are computed in one compiled loop is up to the stepper, unless `loop` says so.
    `coefficients` may hold the time "t" of `u0`, and one value of "t" or "dt" for each step.
    """
    changing = course(stepper, coefficients, steps)

    carried, points = stepper.carried, tuple(u0.shape[1:])

    def advance(u, now):
        u = carried(u, {**coefficients, **now})
        return u, u

    if stepper.scannable if loop is None else loop:
        states = jax.lax.scan(advance, stepper.enter(u0), changing, length=steps)[1]
    else:
        several, u = [], stepper.enter(u0)
        for n in range(steps):
            u, _ = advance(u, at_step(changing, n))
            several.append(u)
        states = jnp.stack(several)
    return jax.vmap(lambda state: stepper.leave(state, points))(states)


def course(
    stepper: Stepper, coefficients: Coefficients, steps: int, *, first: int = 0
) -> dict[str, Array]:
    """What differs from step to step: when each of the steps from the `first` on begins, and how
    long it is.

    The time `t` and the interval `dt` among the coefficients are numbers of the first step of all,
    from which even steps follow, or hold one for each step.
    """
    found = {}
    for name in (TIME, INTERVAL):
        if name in coefficients and jnp.ndim(coefficients[name]):
            found[name] = jnp.asarray(coefficients[name])[first : first + steps]
            if len(found[name]) < steps:
                raise SplatopError(
                    f"expected the {'time' if name == TIME else 'length'} of {first + steps} "
                    f"steps, got {len(jnp.asarray(coefficients[name]))}: give one for each step"
                )
    if TIME in coefficients and TIME not in found:
        interval = coefficients.get(INTERVAL, stepper.interval)
        if interval is not None:
            whole = jnp.asarray(coefficients[TIME], float)
            found[TIME] = whole + jnp.arange(first, first + steps) * jnp.asarray(interval, float)
    return found


def interval_of(coefficients: Coefficients, usual: float) -> Any:
    """How long a step is: what it is told, else the usual."""
    return coefficients.get(INTERVAL, usual)


def on_device(values: Mapping[str, Any]) -> dict[str, Any]:
    """Signals as arrays of JAX, once for many steps."""
    return {name: jax.tree.map(jnp.asarray, value) for name, value in values.items()}


def at_step(changing: Mapping[str, Array | np.ndarray], n: int) -> dict[str, Array]:
    """What a `course` holds for one step."""
    return {name: jnp.asarray(values[n]) for name, values in changing.items()}


def of_frames(coefficients: Coefficients, which: Any) -> Coefficients:
    """Those of one or some of several frames, for each of which there is a time, or one for all."""
    found = {
        name: jax.tree.map(lambda a: np.asarray(a)[which], value)
        if isinstance(value, Signal) and value.times.ndim == 2
        else value
        for name, value in coefficients.items()
    }
    if TIME in found:
        times = np.asarray(found[TIME])
        chosen = times[which] if times.ndim else np.broadcast_to(times, np.shape(which))
        found[TIME] = np.asarray(chosen)
    return found


def driven(
    coefficients: Coefficients, names: tuple[str, ...], change: Any, *, at: Any
) -> Coefficients:
    """The coefficients of a step with the frames around a moment alone of each input named, in the
    form that `change` gives them."""
    found = dict(coefficients)
    for name in names:
        found[name] = signal_of(coefficients, name).near(at).map(change)
    return found


def inputs_at(coefficients: Coefficients, names: tuple[str, ...]) -> Float[Array, "I *N"]:
    """The values of the inputs at the time among the coefficients."""
    return jnp.stack([signal_of(coefficients, name)(coefficients[TIME]) for name in names])


def signal_of(coefficients: Coefficients, name: str) -> Signal:
    """The values of an input over time."""
    found = coefficients.get(name)
    if not isinstance(found, Signal):
        raise SplatopError(
            f"expected values of the input {name} over time, got none: give them (inputs=, "
            "--inputs-file), or hold the last ones (hold_inputs=True, --hold-inputs)"
        )
    return found


def later(coefficients: Coefficients, elapsed: Any) -> Coefficients:
    """The coefficients so long after the beginning of a step."""
    if TIME not in coefficients:
        return coefficients
    return {**coefficients, TIME: coefficients[TIME] + elapsed}

"""The composite surrogate `u(t + Δt) = Φ(u) + N_θ(u)` (paper, Eqs. 3 and 11)."""

from collections.abc import Callable, Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .errors import unknown_name
from .operators import Conditioning, apply_network
from .physics import Physics
from .spectral import Field
from .stepper import INTERVAL, Coefficients, Stepper, inputs_at

COUPLINGS = ("parallel", "sequential", "rhs")


class Inputs(eqx.Module):
    """Known fields that a network sees as further channels, in units of the data."""

    names: tuple[str, ...] = eqx.field(static=True)
    center: Float[Array, " I"]
    spread: Float[Array, " I"]

    def __call__(self, coefficients: Coefficients) -> Float[Array, "I *N"]:
        """Their values at the beginning of a step."""
        values = inputs_at(coefficients, self.names)
        shape = (-1,) + (1,) * (values.ndim - 1)
        center, spread = (
            jax.lax.stop_gradient(a).reshape(shape) for a in (self.center, self.spread)
        )
        return (values - center) / spread


def _answer(
    network: Callable[..., Field],
    u: Field,
    condition: Float[Array, " P"] | None,
    inputs: Inputs | None,
    coefficients: Coefficients,
) -> Field:
    """What a network says of a state, and of the inputs beside it."""
    if inputs is None:
        return apply_network(network, u, condition)
    seen = jnp.concatenate([u, inputs(coefficients).astype(u.dtype)])
    return apply_network(network, seen, condition)[: len(u)]


class Surrogate(Stepper):
    """Embedded physics plus a neural operator, as a stepper of states `(C, *N)`.

    The network sees the state in units of the data (`center`, `spread`) and answers in units of
    the residual that Φ leaves (`scale`), so an untrained network cannot drown a good Φ. `coupling`
    is "parallel" (the paper), "sequential" (the network corrects Φ's output) or "rhs" (the network
    is a further term of du/dt, which multiplies `scale` by a rate). A step is differentiable as it
    is; in a training loss the gradient stops at Φ, `sg[Φ(u)] + N_θ(u)`, unless it shall go
    `through_physics`, which rollouts of a coarse Φ need. A `confined` step ends in the space that
    Φ computes in, and one that `conserves` leaves the mean of each field to Φ. Where intervals
    differ, the loss takes as many substeps for each as for the `longest`.
    """

    physics: Physics
    network: Callable[..., Field]
    center: Float[Array, " C"]
    spread: Float[Array, " C"]
    scale: Float[Array, " C"]
    conditioning: Conditioning | None = None
    coupling: str = eqx.field(static=True, default="parallel")
    through_physics: bool = eqx.field(static=True, default=False)
    confined: bool = eqx.field(static=True, default=False)
    conserves: bool = eqx.field(static=True, default=False)
    inputs: Inputs | None = None
    longest: float | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.coupling not in COUPLINGS:
            raise unknown_name("coupling", self.coupling, COUPLINGS)

    def __call__(self, u: Field, coefficients: Coefficients) -> Field:
        return self._advance(u, coefficients, stop_gradient=False)

    def in_loss(self, u: Field, coefficients: Coefficients) -> Field:
        substeps = None if self.longest is None else self.physics.substeps_over(self.longest)
        return self._advance(
            u, coefficients, stop_gradient=not self.through_physics, substeps=substeps
        )

    def _advance(
        self,
        u: Field,
        coefficients: Coefficients,
        *,
        stop_gradient: bool,
        substeps: int | None = None,
    ) -> Field:
        if self.coupling == "rhs":
            rate = 1 / self.physics.dt
            return self.physics.advance(
                u,
                coefficients,
                forcing=lambda v: rate * self.correction(v, coefficients),
                stop_gradient=stop_gradient,
                substeps=substeps,
            )
        physics = self.physics.advance(
            jax.lax.stop_gradient(u) if stop_gradient else u, coefficients, substeps=substeps
        )
        physics = jax.lax.stop_gradient(physics) if stop_gradient else physics
        seen = u if self.coupling == "parallel" else physics
        total = physics + self.correction(seen, coefficients)
        return self.physics.confine(total, coefficients) if self.confined else total

    @property
    def interval(self) -> float:
        return self.physics.dt

    @property
    def autonomous(self) -> bool:
        return self.physics.autonomous and self.inputs is None

    @property
    def embedded(self) -> Physics:
        return self.physics

    @property
    def loss_unit(self) -> Float[Array, "*members C"]:
        """What errors are measured in while training: what Φ leaves to the network."""
        return self.scale

    def correction(self, u: Field, coefficients: Coefficients) -> Field:
        """The neural operator's part, `N_θ(u; λ)`, in physical units.

        One that is told how long a step is answers for the model's own interval: what Φ leaves
        grows with it.
        """
        shape = (-1,) + (1,) * (u.ndim - 1)
        center, spread, scale = (
            jax.lax.stop_gradient(a).reshape(shape) for a in (self.center, self.spread, self.scale)
        )
        condition = None
        if self.conditioning is not None:
            told = {INTERVAL: self.physics.dt, **coefficients}
            condition = self.conditioning(told)
            if INTERVAL in self.conditioning.names:
                scale = scale * jnp.asarray(told[INTERVAL] / self.physics.dt, scale.dtype)
        seen = (u - center) / spread
        out = scale * _answer(self.network, seen, condition, self.inputs, coefficients)
        if self.conserves:
            out = out - jnp.mean(out, axis=tuple(range(1, out.ndim)), keepdims=True)
        return out


class ScaledOperator(Stepper):
    """A bare network as a stepper, in units of the data: `u_next = center + spread N((u - c)/s)`.

    With center 0 and spread 1 it is the paper's baseline.
    """

    network: Callable[..., Field]
    center: Float[Array, " C"]
    spread: Float[Array, " C"]
    conditioning: Conditioning | None = None
    inputs: Inputs | None = None

    @property
    def autonomous(self) -> bool:
        return self.inputs is None

    @property
    def loss_unit(self) -> Float[Array, "*members C"]:
        return self.spread

    def __call__(self, u: Field, coefficients: Coefficients) -> Field:
        shape = (-1,) + (1,) * (u.ndim - 1)
        center, spread = (
            jax.lax.stop_gradient(a).reshape(shape) for a in (self.center, self.spread)
        )
        condition = None if self.conditioning is None else self.conditioning(coefficients)
        seen = (u - center) / spread
        return center + spread * _answer(self.network, seen, condition, self.inputs, coefficients)


def residual_scale(
    physics: Physics,
    before: Float[Array, "n C *N"],
    after: Float[Array, "n C *N"],
    coefficients: Mapping[str, Float[Array, " n"]],
) -> Float[Array, " C"]:
    """Root mean square of what Φ leaves to the network, per channel.

    `coefficients` hold one value per sample.
    """
    predicted = jax.vmap(physics)(before, coefficients)
    axes = (0, *range(2, before.ndim))
    floor = 1e-7 * jnp.sqrt(jnp.mean(after**2, axis=axes))  # rounding of float32 data
    return jnp.maximum(jnp.sqrt(jnp.mean((after - predicted) ** 2, axis=axes)), floor)

"""The embedded physics Φ on a box with walls: the equation projected onto Gaussians that obey the
conditions at the edges."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..equation import Equation
from ..errors import check_field
from ..grid import as_number
from ..integrators import RK4, ExactPart, Integrator, Tendency, as_integrator
from ..physics import Physics
from ..points import Layout, Points
from ..precomputed import with_fields
from ..spaces import Sampling, Space
from ..spectral import Field
from ..stepper import Coefficients, later
from .conditions import check_conditions
from .galerkin import Galerkin


class WallPhysics(Physics):
    """Φ(u): samples to numbers of the space, the projected equation integrated over dt, and back.

    States are sampled as `layout` says along each axis, on any number of points, or at the points
    that it is.
    """

    equation: Equation
    space: Space
    layout: Layout = eqx.field(static=True)
    dt: float = eqx.field(static=True, converter=as_number)
    integrator: Integrator = eqx.field(default=RK4(), converter=as_integrator)

    def __check_init__(self):
        check_conditions(self.equation, self.space.domain)

    @property
    def lengths(self) -> tuple[float, ...]:
        return self.space.domain.lengths

    @property
    def autonomous(self) -> bool:
        return not self.equation.uses_time and not self.scheme.moving

    @property
    def rank(self) -> int:
        """Of one channel of a state: scattered points are one axis."""
        return 1 if isinstance(self.layout, Points) else self.space.dims

    @property
    def scheme(self) -> Galerkin:
        return Galerkin(self.equation, self.space)

    def moved_to(self, points: Points) -> "WallPhysics":
        """The same physics of states at other points of its shape."""
        space = with_fields(self.space, sampling=points)
        return with_fields(self, space=space, layout=points)

    def along(self, points: tuple[int, ...]) -> Sampling:
        """Where the samples of a state of this shape lie."""
        return self.space.sampled(points, self.layout)

    def advance(
        self,
        u: Field,
        coefficients: Coefficients,
        *,
        forcing: Callable[[Field], Field] | None = None,
        stop_gradient: bool = False,
        substeps: int | Array | None = None,
    ) -> Field:
        check_field(u, dims=self.rank, channels=len(self.equation.fields))
        scheme, along = self.scheme, self.along(tuple(u.shape[1:]))
        lifted = scheme.lifted(coefficients)
        c = scheme.enter(u, along, lifted)
        dt, substeps = self.frame(coefficients, substeps)
        coefficients = scheme.enter_inputs(coefficients, along, dt)

        def lifted_at(elapsed: Any) -> Any:
            return scheme.lifted(later(coefficients, elapsed)) if scheme.moving else lifted

        def with_forcing(known: Callable[..., Array]) -> Tendency:
            def total(c: Array, elapsed: Any) -> Array:
                now = lifted_at(elapsed)
                own = known(c, later(coefficients, elapsed), now)
                own = jax.lax.stop_gradient(own) if stop_gradient else own
                if forcing is None:
                    return own
                felt = forcing(scheme.leave(c, along, now))
                return own + self.space.fit(felt, along)

            return total

        split = ExactPart(
            lambda step: scheme.tables(step, coefficients), with_forcing(scheme.remainder)
        )
        c = self.integrator.advance(
            with_forcing(scheme.tendency), c, dt, substeps=substeps, split=lambda: split
        )
        return scheme.leave(c, along, lifted_at(dt)).astype(u.dtype)

    def tendency(self, u: Field, coefficients: Coefficients) -> Field:
        """du/dt at the points of `u`."""
        scheme, along = self.scheme, self.along(tuple(u.shape[1:]))
        lifted = scheme.lifted(coefficients)
        coefficients = scheme.enter_inputs(coefficients, along)
        rate = scheme.tendency(scheme.enter(u, along, lifted), coefficients, lifted)
        if scheme.moving:
            rate = rate + scheme.drift(coefficients).astype(rate.dtype)
        return self.space.evaluate(rate, along)

    def motion(self, u, coefficients, *, rest=False):
        scheme, along = self.scheme, self.along(tuple(u.shape[1:]))
        lifted = scheme.lifted(coefficients)
        coefficients = scheme.enter_inputs(coefficients, along)
        rate = scheme.remainder if rest else scheme.tendency
        return scheme.enter(u, along, lifted), lambda c: rate(c, coefficients, lifted)

    def confine(self, u: Field, coefficients: Coefficients) -> Field:
        """The closest field that obeys the conditions."""
        scheme, along = self.scheme, self.along(tuple(u.shape[1:]))
        lifted = scheme.lifted(coefficients)
        return scheme.leave(scheme.enter(jnp.asarray(u), along, lifted), along, lifted)

"""The terms an equation is made of.

Derivatives come from the filtered jet; algebraic factors use the current state, as the paper says.
"""

import abc
from collections.abc import Callable
from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..derivative import Derivative, gradient, laplacian
from ..errors import SplatopError
from ..jets import Jet
from ..spaces import resampled_between
from ..spectral import Field, resample
from ..stepper import Coefficients


class Term(eqx.Module):
    """One governing term: `coefficients[coefficient] * Σ parts`.

    Without a coefficient the term counts as it is, and may use any coefficients inside.
    `degree` is the polynomial degree in the state: 1 is linear, and `inf` is not a polynomial.
    """

    name: eqx.AbstractVar[str]
    coefficient: eqx.AbstractVar[str | None]
    degree: eqx.AbstractVar[float]

    @abc.abstractmethod
    def derivatives(self, dims: int) -> frozenset[Derivative]: ...

    @abc.abstractmethod
    def parts(self, jet: Jet, coefficients: Coefficients) -> tuple[Field, ...]:
        """What identification regresses on. Parts share the coefficient: a velocity has one part
        for each direction."""

    @property
    def inner_coefficients(self) -> tuple[str, ...]:
        """Coefficients that the parts themselves depend on."""
        return ()

    @property
    def learned_parameters(self) -> int:
        """Numbers in it that were learned from data."""
        return 0

    @property
    def uses_time(self) -> bool:
        """Whether the term changes in time by itself."""
        return False

    @property
    def homogeneous(self) -> bool:
        """Whether the term acts alike everywhere in the box; one that does not say so may not."""
        return False

    @property
    def reads(self) -> tuple[str, ...]:
        """Inputs that a jet has as further channels behind the fields, for this term."""
        return ()

    @property
    def rates(self) -> frozenset[str]:
        """Coefficients that multiply the time inside a function, such as a frequency."""
        return frozenset()

    def placed_at(self, origin: tuple[float, ...]) -> "Term":
        """The term on a box that begins at `origin`: itself, unless it uses coordinates."""
        return self

    def __call__(self, jet: Jet, coefficients: Coefficients) -> Field:
        first, *others = self.parts(jet, coefficients)
        total = sum(others, start=first)
        if self.coefficient is None:
            return total
        return jnp.asarray(coefficients[self.coefficient], jet.state.dtype) * total


class Advection(Term):
    """`-v w·∇u`: transport with velocity `v w`.

    The direction w is the vector of ones (the paper's `v 1`), a constant vector, or a velocity
    field `(d, *M)` sampled on a uniform grid of the box, from its first point on. A velocity that
    varies in space carries what it multiplies out of a filter's band as another field would.
    Between walls and on shapes, `layout` says where its samples lie along each axis of the box:
    "ends", "cells", or "left" where it is periodic.
    """

    velocity: Float[Array, "d *M"] | None = None
    coefficient: str | None = eqx.field(static=True, default="v")
    name: str = eqx.field(static=True, default="advection")
    layout: tuple[str, ...] = eqx.field(static=True, default=(), converter=tuple)

    degree: float = eqx.field(static=True, init=False)

    def __post_init__(self):
        self.degree = 1 if self.homogeneous else 2

    @property
    def homogeneous(self) -> bool:
        return self.velocity is None or np.ndim(self.velocity) == 1

    def derivatives(self, dims):
        return frozenset(gradient(dims))

    def parts(self, jet, coefficients):
        slopes = [jet[d] for d in gradient(jet.dims)]
        if self.velocity is None:
            return tuple(-slope for slope in slopes)
        w = self.velocity.astype(jet.state.dtype)
        if w.shape[0] != jet.dims or w.ndim not in (1, jet.dims + 1):
            raise SplatopError(
                f"expected a velocity of shape ({jet.dims},) or ({jet.dims}, *M) "
                f"for a {jet.dims}D field, got {w.shape}"
            )
        if w.ndim > 1:
            if jet.fractions is None:
                w = resample(w, jet.grid.points)
            else:
                w = resampled_between(w, self.layout, jet.fractions, scattered=jet.scattered)
        return tuple(-w[axis] * slope for axis, slope in enumerate(slopes))


class Diffusion(Term):
    """`D Δu`."""

    coefficient: str | None = eqx.field(static=True, default="D")
    name: str = eqx.field(static=True, default="diffusion")
    degree: float = eqx.field(static=True, default=1)

    @property
    def homogeneous(self) -> bool:
        return True

    def derivatives(self, dims):
        return frozenset({laplacian(dims)})

    def parts(self, jet, coefficients):
        return (jet[laplacian(jet.dims)],)


class SelfAdvection(Term):
    """`-c (u·∇)u`, Burgers' convection as the paper writes it."""

    coefficient: str | None = eqx.field(static=True, default="c")
    name: str = eqx.field(static=True, default="self_advection")
    degree: float = eqx.field(static=True, default=2)

    @property
    def homogeneous(self) -> bool:
        return True

    def derivatives(self, dims):
        return frozenset(gradient(dims))

    def parts(self, jet, coefficients):
        return (-_convection(jet),)


class ConservativeSelfAdvection(Term):
    """`-c/2 ∇·(u⊗u)`, expanded by the product rule. In 2D a different equation from `(u·∇)u`."""

    coefficient: str | None = eqx.field(static=True, default="c")
    name: str = eqx.field(static=True, default="self_advection")
    degree: float = eqx.field(static=True, default=2)

    @property
    def homogeneous(self) -> bool:
        return True

    def derivatives(self, dims):
        return frozenset(gradient(dims))

    def parts(self, jet, coefficients):
        convection = _convection(jet)
        divergence = sum(jet[d][axis] for axis, d in enumerate(gradient(jet.dims)))
        return (-(convection + jet.state * divergence) / 2,)


def _convection(jet: Jet) -> Field:
    if jet.state.shape[0] != jet.dims:
        raise SplatopError(
            f"self-advection expected one velocity component per axis ({jet.dims}), "
            f"got {jet.state.shape[0]} channel(s)"
        )
    slopes = [jet[d] for d in gradient(jet.dims)]
    return sum(
        (jet.state[axis] * slope for axis, slope in enumerate(slopes)),
        start=jnp.zeros_like(jet.state),
    )


class Reaction(Term):
    """`r Σ_p a_p u^p`, pointwise; `polynomial` holds a_0, a_1, ... (u - u³ is `(0, 1, 0, -1)`)."""

    polynomial: tuple[float, ...] = eqx.field(static=True)
    coefficient: str | None = eqx.field(static=True, default="r")
    name: str = eqx.field(static=True, default="reaction")

    @property
    def degree(self) -> float:  # type: ignore[override]
        return float(len(self.polynomial) - 1)

    @property
    def homogeneous(self) -> bool:
        return True

    def derivatives(self, dims):
        return frozenset()

    def parts(self, jet, coefficients):
        total = jnp.zeros_like(jet.state)
        for a in reversed(self.polynomial):
            total = total * jet.state + a
        return (total,)


class CustomTerm(Term):
    """A user's own function of the jet: `function(jet, coefficients) -> field`.

    `jet.coordinates()` are those of the box that the equation was placed on.
    """

    function: Callable[[Jet, Coefficients], Field]
    needs: frozenset[Derivative] = eqx.field(static=True)
    name: str = eqx.field(static=True)
    coefficient: str | None = eqx.field(static=True, default=None)
    degree: float = eqx.field(static=True, default=float("inf"))
    origin: tuple[float, ...] = eqx.field(static=True, default=())

    def placed_at(self, origin):
        return replace(self, origin=tuple(origin))

    def derivatives(self, dims):
        return self.needs

    def parts(self, jet, coefficients):
        return (self.function(replace(jet, origin=self.origin), coefficients),)

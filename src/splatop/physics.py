"""The embedded physics Φ: an equation on filtered jets, advanced in time (paper, appendix B)."""

import abc
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from .encoders import Encoder
from .equation import Equation
from .equation.expansion import split_linear
from .equation.values import time
from .errors import SplatopError, check_field
from .etdrk4 import Scheme, linear_symbols, mode_tables
from .grid import Grid, as_number
from .integrators import RK4, ExactPart, Integrator, Tendency, as_integrator
from .jets import JetProvider
from .spectral import Field, Other, derivative_symbol, from_modes, resample, to_modes
from .stepper import INTERVAL, Coefficients, Stepper, driven, inputs_at, interval_of, later


class Physics(Stepper):
    """The embedded physics Φ: what is known of an equation, advanced by one frame."""

    equation: eqx.AbstractVar[Equation]
    dt: eqx.AbstractVar[float]
    integrator: eqx.AbstractVar[Integrator]

    def __check_init__(self):
        if not self.dt > 0:
            raise SplatopError(f"expected a positive time step, got dt={self.dt:g}")

    @property
    def substeps(self) -> int:
        return self.integrator.substeps

    @property
    def embedded(self) -> "Physics":
        return self

    @property
    def interval(self) -> float:
        return self.dt

    @property
    def autonomous(self) -> bool:
        return not self.equation.uses_time

    def frame(
        self, coefficients: Coefficients, substeps: int | Array | None
    ) -> tuple[float | Array, int | Array | None]:
        """How long a step is, and its substeps: those of the integrator are for an interval of
        `dt`, and a longer one takes more."""
        interval = interval_of(coefficients, float(self.dt))
        if INTERVAL not in coefficients or substeps is not None:
            return interval, substeps
        share = jnp.asarray(interval) / self.dt
        # Rounding of float32 intervals adds no substep.
        needed = jnp.ceil(self.substeps * share * (1 - 1e-5)).astype(int)
        return interval, jnp.maximum(needed, 1)

    def substeps_over(self, interval: float) -> int:
        """As many substeps as a step of this length takes. Gradients flow back through a number
        that is known before, not through one that is traced with the interval."""
        return max(1, math.ceil(self.substeps * interval / self.dt * (1 - 1e-5)))

    def __call__(self, u: Field, coefficients: Coefficients) -> Field:
        return self.advance(u, coefficients)

    @abc.abstractmethod
    def advance(
        self,
        u: Field,
        coefficients: Coefficients,
        *,
        forcing: Callable[[Field], Field] | None = None,
        stop_gradient: bool = False,
        substeps: int | Array | None = None,
    ) -> Field:
        """One step; `forcing(u)` is added to du/dt, and gradients may be stopped around it.

        A number of `substeps` other than the integrator's own may be traced.
        """

    @abc.abstractmethod
    def tendency(self, u: Field, coefficients: Coefficients) -> Field:
        """du/dt, on the grid of `u`."""

    @abc.abstractmethod
    def motion(
        self, u: Field, coefficients: Coefficients, *, rest: bool = False
    ) -> tuple[Array, Callable[[Array], Array]]:
        """The state that an integrator starts from at `u`, and its rate of change as a function of
        it: all of it, or what an exponential integrator does not solve exactly."""

    @property
    def jet_provider(self) -> JetProvider | None:
        """What turns states on a grid into jets, where it is such a thing."""
        return None

    @property
    def encoder(self) -> Encoder | None:
        """The encoder of the Gaussians that are differentiated, if there is one."""
        return None

    @property
    @abc.abstractmethod
    def lengths(self) -> tuple[float, ...]:
        """The sides of the box."""

    @abc.abstractmethod
    def confine(self, u: Field, coefficients: Coefficients) -> Field:
        """The closest field that the physics can represent."""


class EmbeddedPhysics(Physics):
    """Φ(u) = Π_κ[the equation on filtered jets, integrated over dt]; RK4 in the paper.

    With `working_grid` the whole step runs on the coarsest grid that the jets can use without
    aliasing into the filter's band, which costs the same whatever the state's grid; without it, on
    the state's own grid as in the paper. The two agree for states inside the band.
    """

    equation: Equation
    jets: JetProvider
    dt: float = eqx.field(static=True, converter=as_number)
    integrator: Integrator = eqx.field(default=RK4(), converter=as_integrator)
    working_grid: bool = eqx.field(static=True, default=True)

    def advance(
        self,
        u: Field,
        coefficients: Coefficients,
        *,
        forcing: Callable[[Field], Field] | None = None,
        stop_gradient: bool = False,
        substeps: int | Array | None = None,
    ) -> Field:
        check_field(u, dims=len(self.jets.lengths), channels=len(self.equation.fields))
        points = tuple(u.shape[1:])
        if self.integrator.exponential and self._in_modes(points) and forcing is None:
            return self._advance_modes(u, coefficients, stop_gradient, substeps)
        start = resample(u, self.working_points(points) if self.working_grid else points)
        jets = self.jets.for_step(start)
        dt, substeps = self.frame(coefficients, substeps)
        coefficients = self._driven(coefficients, tuple(start.shape[1:]), dt)

        def with_forcing(known: Tendency) -> Tendency:
            def total(v: Field, elapsed: Any) -> Field:
                own = known(v, elapsed)
                own = jax.lax.stop_gradient(own) if stop_gradient else own
                return own if forcing is None else own + forcing(v)

            return total

        tendency = with_forcing(
            lambda v, elapsed: self._tendency(jets, v, later(coefficients, elapsed))
        )
        advanced = self.integrator.advance(
            tendency,
            start,
            dt,
            substeps=substeps,
            split=lambda: self._split(
                jets, tuple(start.shape[1:]), coefficients, with_forcing, forced=forcing is not None
            ),
        )
        return resample(self.jets.filter(advanced, self.jets.lengths), points)

    def enter(self, u: Field) -> Other:
        """On the working grid where that has fewer points: a rollout stays there."""
        points = tuple(u.shape[1:])
        near = self.working_points(points) if self.working_grid else points
        return resample(u, tuple(min(pair) for pair in zip(points, near, strict=True)))

    def leave(self, state: Field, points: tuple[int, ...]) -> Other:
        return resample(state, points)

    def _in_modes(self, points: tuple[int, ...]) -> bool:
        """Whether Gaussians differentiate the filter's band as Fourier modes do, so that a step
        need not leave the modes but for products."""
        band = self.jets.filter.band(Grid(points, self.jets.lengths))
        exact = self.jets.inside(band, self.jets.filter).is_spectral
        return self.working_grid and exact and not self.equation.inputs

    def _scheme(self, points: tuple[int, ...]) -> Scheme:
        """The equation on the modes of the filter's band."""
        grid = Grid(points, self.jets.lengths)
        return Scheme(self.equation, grid, self.jets.filter.band(grid), self.jets.filter)

    def _advance_modes(
        self,
        u: Field,
        coefficients: Coefficients,
        stop_gradient: bool,
        substeps: int | Array | None,
    ) -> Field:
        """The same on the band's modes alone: jets by one multiplication, products on the least
        grid."""
        points = tuple(u.shape[1:])
        scheme = self._scheme(points)
        dt, substeps = self.frame(coefficients, substeps)

        def rest(modes: Array, elapsed: Any) -> Array:
            own = scheme.nonlinear(modes, later(coefficients, elapsed))
            return jax.lax.stop_gradient(own) if stop_gradient else own

        split = ExactPart(
            lambda step: scheme.tables(step, coefficients),
            rest,
            comoving=scheme.comoving(coefficients),
        )
        modes = self.integrator.advance(
            rest, scheme.enter(u), dt, substeps=substeps, split=lambda: split
        )
        return scheme.leave(modes, points).astype(u.dtype)

    def _split(
        self,
        jets: JetProvider,
        points: tuple[int, ...],
        coefficients: Coefficients,
        with_forcing: Callable[[Tendency], Tendency],
        *,
        forced: bool,
    ) -> ExactPart:
        """The parts that act on each Fourier mode alone, and all the rest on jets as ever.

        The filter of the rest is a product of its modes, unless a forcing that it leaves alone is
        added to it: two transforms less in each stage.
        """
        linear, others = split_linear(self.equation, len(points))
        grid = Grid(points, self.jets.lengths)
        kept = Equation(others, self.equation.fields) if others else None
        merged = kept is not None and kept.leaves_the_band and not forced
        weights = jets.filter.weights(grid.wavenumbers()) if merged else None

        def remainder(v: Field, elapsed: Any) -> Field:
            if kept is None:
                return jnp.zeros_like(v)
            return self._tendency(
                jets, v, later(coefficients, elapsed), kept, filtered=weights is None
            )

        felt = with_forcing(remainder)

        def rest(modes: Array, elapsed: Any) -> Array:
            own = to_modes(felt(from_modes(modes, points), elapsed))
            return own if weights is None else own * jnp.asarray(weights, own.real.dtype)

        return ExactPart(
            tables=lambda step: mode_tables(
                linear_symbols(linear, lambda d: derivative_symbol(d, grid), coefficients),
                step,
                shape=(len(self.equation.fields), *points[:-1], points[-1] // 2 + 1),
            ),
            rest=rest,
            forth=to_modes,
            back=lambda modes: from_modes(modes, points),
        )

    def _driven(
        self, coefficients: Coefficients, points: tuple[int, ...], dt: Any = 0.0
    ) -> Coefficients:
        """With the inputs around a step on the grid that it is computed on."""
        names = self.equation.inputs
        if not names:
            return coefficients
        middle = time(coefficients) + dt / 2
        return driven(coefficients, names, lambda f: resample(f[None], points)[0], at=middle)

    def motion(self, u, coefficients, *, rest=False):
        points = tuple(u.shape[1:])
        state = resample(u, self.working_points(points) if self.working_grid else points)
        coefficients = self._driven(coefficients, tuple(state.shape[1:]))
        equation = self.equation
        if rest:
            kept = split_linear(equation, len(points))[1]
            if not kept:
                return state, jnp.zeros_like
            equation = Equation(kept, equation.fields)
        carried = self._carried(state, coefficients) if rest else None

        def rate(v: Field) -> Field:
            own = self._tendency(self.jets, v, coefficients, equation)
            return own if carried is None else own + carried(v)

        return state, rate

    def _carried(self, u: Field, coefficients: Coefficients) -> Callable[[Field], Field] | None:
        """What an exponential step from `u` adds to the rest because it moves along."""
        points = tuple(u.shape[1:])
        if not self._in_modes(points):
            return None
        scheme = self._scheme(points)
        comoving, start = scheme.comoving(coefficients), scheme.enter(u)
        if comoving is None or not comoving.transports:
            return None
        velocity = comoving.velocity(start, scheme.nonlinear(start, coefficients))
        return lambda v: scheme.leave(comoving.carried(velocity, scheme.enter(v)), points)

    @property
    def jet_provider(self) -> JetProvider | None:
        return self.jets

    @property
    def encoder(self) -> Encoder | None:
        return self.jets.gaussian_encoder

    @property
    def lengths(self) -> tuple[float, ...]:
        return self.jets.lengths

    def confine(self, u: Field, coefficients: Coefficients) -> Field:
        return self.jets.filter(u, self.jets.lengths)

    def tendency(self, u: Field, coefficients: Coefficients) -> Field:
        """du/dt of the filtered equation, on the grid of `u`."""
        return self._tendency(self.jets, u, coefficients)

    def _tendency(
        self,
        jets: JetProvider,
        u: Field,
        coefficients: Coefficients,
        equation: Equation | None = None,
        *,
        filtered: bool = True,
    ) -> Field:
        equation = self.equation if equation is None else equation
        if equation.inputs:
            given = inputs_at(coefficients, equation.inputs).astype(u.dtype)
            u = jnp.concatenate([u, given])
        jet = jets(u, sorted(equation.derivatives(u.ndim - 1)))
        tendency = equation(jet, coefficients)
        if filtered and equation.leaves_the_band:
            tendency = jets.filter(tendency, jets.lengths)
        return tendency

    def working_points(self, points: tuple[int, ...]) -> tuple[int, ...]:
        """The least grid on which nothing aliases into the filter's band: the jets know it.

        On a coarse state this can be finer than the state's own grid.
        """
        return self.jets.working_points(points, self.equation.degree)

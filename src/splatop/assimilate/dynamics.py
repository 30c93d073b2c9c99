"""What advances the state, and where it lives: from a model, or from an equation alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..benchmarks import BENCHMARKS
from ..domain import AXES, Domain
from ..equation import Equation, domain_from_text
from ..errors import SplatopError, unknown_name
from ..export import grid_of
from ..grid import Grid
from ..model import Model
from ..numerics import Numerics, build_physics
from ..physics import Physics
from ..points import Points
from ..spaces import BoxSpace, ShapeSpace, Space
from ..spectral import resample
from ..stepper import TIME, Stepper
from ..tune.substeps import choose_steps
from ..tune.tuned import TIME_TOLERANCE
from ..walls import check_conditions, wall_space
from ..walls.galerkin import Galerkin
from .bands import anchors_between, cheaper, inside_filter, told_apart
from .observe import Evaluator
from .on_shape import anchors_on_shape, shape_domain

# Points of the grid for each anchor that samples are fitted from.
_OVERSAMPLED = 2.5
# Factors by which unknown coefficients may become larger; the second where far values are tried.
_ROOM = (2.0, 200.0)


@dataclass(frozen=True, eq=False)
class Dynamics:
    """A stepper, its coefficients, and the fields that it moves.

    `grid` is what the stepper computes on, `written` what states are written on, and `space` holds
    the unknown state: on rings waves inside the physics' band (`kept`), between walls Gaussians.
    """

    stepper: Stepper | None  # None until it is known how fields look, see `with_steps`
    coefficients: dict[str, float]
    equation: Equation | None
    domain: Domain
    fields: tuple[str, ...]
    dt: float
    grid: Grid | Points
    written: Grid | Points
    space: Space
    kept: np.ndarray
    numerics: Numerics | None
    benchmark: str | None
    title: str
    # Of a state's size: what a trained model gets wrong in rollouts on data that were held out.
    own_error: float = 0.0

    @property
    def scheme(self) -> Galerkin | None:
        """What takes values set at the edges, between walls."""
        if self.domain.all_periodic or self.equation is None:
            return None
        return Galerkin(self.equation, self.space)

    @property
    def evaluator(self) -> Evaluator:
        return Evaluator(self.domain, self.grid, self.space.sizes)

    @property
    def linear(self) -> bool:
        """Whether a frame is a linear function of the one before: physics alone, of degree 1."""
        return isinstance(self.stepper, Physics) and self.stepper.equation.degree <= 1

    def clock(self, time: float) -> dict[str, float]:
        """The time among coefficients, where the equation or its edges depend on it."""
        scheme = self.scheme
        needed = self.equation is not None and self.equation.uses_time
        return {TIME: time} if needed or (scheme is not None and scheme.moving) else {}

    @property
    def moving(self) -> Stepper:
        assert self.stepper is not None
        return self.stepper

    def on_written(self, u: Any) -> np.ndarray:
        """States `(..., C, *N)` of the grid that is computed on, on that which is written."""
        u = np.asarray(u)
        if self.grid == self.written:
            return u
        flat = jnp.asarray(u.reshape(-1, *u.shape[-1 - self.domain.dims :]))
        if self.domain.all_periodic:
            made = jax.vmap(lambda v: resample(v, self.written.points))(flat)
        else:
            rows = [
                self.evaluator.along(number, c.ravel())
                for number, c in enumerate(self.written.coordinates())
            ]
            made = flat
            for number, matrix in enumerate(rows):
                m = jnp.asarray(matrix, made.dtype)
                made = jnp.moveaxis(jnp.tensordot(m, made, axes=(1, number + 2)), 0, number + 2)
        return np.asarray(made).reshape(*u.shape[: -self.domain.dims], *self.written.points)

    def with_steps(
        self, states: Float[np.ndarray, "n C *N"], unknown: Sequence[str], begin: float = 0.0
    ) -> "Dynamics":
        """With a stepper that integrates such states, on the grid, from the time `begin` on, to the
        tolerance of all physics; with room for unknown coefficients to become larger."""
        if self.stepper is not None:
            return self
        assert self.numerics is not None
        assert self.equation is not None
        tried = []
        for larger in _ROOM if unknown and self.equation.degree <= 1 else _ROOM[:1]:
            room = {n: v * (larger if n in unknown else 1.0) for n, v in self.coefficients.items()}
            room |= {name: np.full(len(states), when) for name, when in self.clock(begin).items()}
            build = partial(self._physics, dt=self.dt)
            tried.append(choose_steps(build, self.numerics, jnp.asarray(states), room))
        numerics, error, _, reason = tried[0]
        if tried[-1][1] <= TIME_TOLERANCE and tried[-1][0].substeps <= 2 * numerics.substeps:
            numerics, error, _, reason = tried[-1]
        if not error < 1e-3:
            raise SplatopError(
                f"expected a frame of dt = {self.dt:g} to be integrated with up to 64 substeps, "
                f"got an error of {error:.1e} ({reason}): give a smaller --dt, or check the sizes "
                "of coefficients and lengths"
            )
        return replace(self, numerics=numerics, stepper=self._physics(numerics, self.dt))

    def with_dt(self, parts: int) -> "Dynamics | None":
        """The same physics in frames that are so many times shorter; None for what is not physics
        alone."""
        if not isinstance(self.stepper, Physics) or self.numerics is None:
            return None
        finer = replace(self.numerics, substeps=max(1, -(-self.numerics.substeps // parts)))
        dt = self.dt / parts
        return replace(self, dt=dt, stepper=self._physics(finer, dt))

    def _physics(self, numerics: Numerics, dt: float) -> Physics:
        assert self.equation is not None
        return build_physics(
            self.equation,
            numerics,
            lengths=self.domain.lengths,
            dt=dt,
            domain=self.domain,
            layout=self.grid.layout,
        )


def dynamics_of_model(
    model: Model, coefficients: Mapping[str, float], points: Sequence[int] | None
) -> Dynamics:
    """A model as it is: physics alone on its working grid, with an operator on `points`."""
    spec, stepper = model.spec, model.stepper
    for name in coefficients:
        if name not in spec.full_equation.coefficient_names:
            raise unknown_name("coefficient", name, spec.full_equation.coefficient_names)
    domain = spec.domain or Domain.box(spec.lengths)
    domain = domain.on(spec.lengths, spec.origin)
    given = None if points is None else points[0] if len(points) == 1 else list(points)
    if isinstance(spec.layout, Points):
        return _dynamics_on_shape(model, coefficients, domain, points)
    written = Grid(grid_of(model, given), spec.lengths, spec.origin, spec.layout)
    physics, alone = model.physics, isinstance(stepper, Physics)
    numerics = spec.numerics if alone and spec.members == 1 else None
    if domain.all_periodic and numerics is not None:
        numerics = cheaper(numerics, written)
        stepper = physics = build_physics(
            spec.known_equation, numerics, lengths=spec.lengths, dt=spec.dt
        )
    if domain.all_periodic:
        jets = None if physics is None else physics.jet_provider
        if jets is None:
            sizes = tuple((n - 1) // 3 for n in written.points)
            kept = None
        else:
            sizes = jets.filter.band(written)
            kept = jets.filter
        space = BoxSpace(Domain(domain.axes), spec.fields, sizes)
        grid = written
        if alone and hasattr(stepper, "working_points"):
            grid = replace(written, points=stepper.working_points(written.points))  # type: ignore[attr-defined]
        mask = inside_filter(space, kept)
    else:
        own = getattr(physics, "space", None)
        space = own or wall_space(spec.full_equation, domain, anchors_between(written, domain))
        assert isinstance(space, BoxSpace)
        grid = written
        mask = np.ones((len(spec.fields), *space.shape), bool)
    return Dynamics(
        stepper=stepper,
        coefficients={**spec.coefficients, **coefficients},
        equation=spec.known_equation,
        domain=domain,
        fields=spec.fields,
        dt=spec.dt,
        grid=grid,
        written=written,
        space=space,
        kept=mask,
        numerics=numerics,
        benchmark=spec.benchmark if spec.benchmark in BENCHMARKS else None,
        title=f"the model of {spec.benchmark}" if spec.benchmark else "the model",
        own_error=_own_error(model),
    )


def _dynamics_on_shape(
    model: Model, coefficients: Mapping[str, float], domain: Domain, points: Sequence[int] | None
) -> Dynamics:
    """A model of a shape, at its own points."""
    spec, physics = model.spec, model.physics
    space = getattr(physics, "space", None)
    if points is not None or not isinstance(space, ShapeSpace):
        raise SplatopError(
            "expected a model of a shape with an equation, and no points, which are its own, got "
            + (f"points {tuple(points)}" if points is not None else "a network alone")
        )
    at = spec.layout
    assert isinstance(at, Points)
    alone = isinstance(model.stepper, Physics) and spec.members == 1
    return Dynamics(
        stepper=model.stepper,
        coefficients={**spec.coefficients, **coefficients},
        equation=spec.known_equation,
        domain=domain,
        fields=spec.fields,
        dt=spec.dt,
        grid=at,
        written=at,
        space=space,
        kept=told_apart(space),
        numerics=spec.numerics if alone else None,
        benchmark=None,
        title="the model",
        own_error=_own_error(model),
    )


def _own_error(model: Model) -> float:
    measured = model.record.get("measured") or {}
    found = float(measured.get("with_operator") or 0.0) if measured.get("held_out") else 0.0
    return found if np.isfinite(found) else 0.0


def dynamics_of_equation(
    equation: Equation,
    coefficients: Mapping[str, float],
    *,
    lengths: Sequence[float],
    points: Sequence[int],
    dt: float,
    origin: Sequence[float] = (),
    boundary: str | None = None,
    layout: Sequence[str] = (),
    benchmark: str | None = None,
    shape: str | None = None,
) -> Dynamics:
    """An equation without any training: modes up to a third of the points (all of them, if it is
    linear), between walls and on a `shape` as many Gaussians as the points can tell apart."""
    dims = len(lengths)
    begin = tuple(origin) or (0.0,) * dims
    at: Points | None = None
    if shape is not None:
        if dims != 2:
            raise SplatopError(
                f"expected two lengths and numbers of points for a shape, got {dims}D: shapes are "
                "2D, leave --shape out"
            )
        cells = Grid(tuple(points), tuple(lengths), begin)
        domain, at = shape_domain(shape, boundary, cells, equation.fields, ",".join(layout) or None)
    elif boundary is None:
        domain = Domain.box(lengths, begin)
    else:
        domain = domain_from_text(boundary, lengths=lengths, fields=equation.fields, origin=begin)
    equation = equation.placed_at(begin)
    equation.check_coefficients(coefficients)
    check_conditions(equation, domain)
    default = tuple("left" if axis.periodic else "ends" for axis in domain.axes)
    written = Grid(tuple(points), tuple(lengths), begin, tuple(layout) or default)
    for name, n in zip(AXES, written.points, strict=False):
        if n < 8:
            raise SplatopError(f"expected at least 8 points along {name}, got {n}: give more")
    grid: Grid | Points
    space: Space
    if at is not None:
        anchors = anchors_on_shape(equation, domain, at)
        numerics = Numerics("none", (), 0.0, anchors, 1)
        space = wall_space(equation, domain, anchors, at)
        grid = at
    elif domain.all_periodic:
        linear = equation.degree <= 1
        band = tuple((n - 1) // (2 if linear else 3) for n in written.points)
        cutoffs = tuple(b / length for b, length in zip(band, lengths, strict=True))
        numerics = Numerics("box", cutoffs, 0.0, (0,) * dims, 1, jets="spectral")
        space = BoxSpace(Domain(domain.axes), equation.fields, band)
        grid = written
    else:
        anchors = anchors_between(written, domain)
        numerics = Numerics("none", (), 0.0, anchors, 1)
        space = wall_space(equation, domain, anchors)
        assert isinstance(space, BoxSpace)
        finer = tuple(
            n if axis.periodic else max(n, int(np.ceil(_OVERSAMPLED * a)))
            for n, a, axis in zip(written.points, anchors, domain.axes, strict=True)
        )
        grid = replace(written, points=finer)
    made = Dynamics(
        stepper=None,
        coefficients=dict(coefficients),
        equation=equation,
        domain=domain,
        fields=equation.fields,
        dt=float(dt),
        grid=grid,
        written=at or written,
        space=space,
        kept=told_apart(space)
        if isinstance(space, ShapeSpace)
        else np.ones((len(equation.fields), *space.shape), bool),
        numerics=numerics,
        benchmark=benchmark,
        title="the equation",
    )
    if domain.all_periodic:
        physics = made._physics(numerics, dt)
        needed = physics.working_points(written.points)  # type: ignore[attr-defined]
        made = replace(made, grid=replace(written, points=needed))
    return made

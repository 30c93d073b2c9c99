"""The embedded physics Φ: an equation on filtered jets, advanced by RK4 (paper, appendix B)."""

from collections.abc import Callable

import equinox as eqx
import jax
from jaxtyping import Array

from .equation import Equation
from .errors import SplatopError, check_field
from .grid import Grid, as_number
from .jets import JetProvider, SplatJets
from .spectral import Field, resample
from .stepper import Coefficients, Stepper


class EmbeddedPhysics(Stepper):
    """Φ(u) = Π_κ[RK4 of the equation on filtered jets over dt], re-encoding at every stage.

    With `working_grid` the whole step runs on the coarsest grid that holds the filter's band
    without aliasing it, which costs the same whatever the state's grid; without it, on the
    state's own grid as in the paper. The two agree for states inside the band.
    """

    equation: Equation
    jets: JetProvider
    dt: float = eqx.field(static=True, converter=as_number)
    substeps: int = eqx.field(static=True, default=1)
    working_grid: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        if not self.dt > 0 or self.substeps < 1:
            raise SplatopError(
                f"expected a positive time step and at least one substep, "
                f"got dt={self.dt:g} and {self.substeps}"
            )

    def __call__(self, u: Field, coefficients: Coefficients) -> Field:
        return self.advance(u, coefficients)

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

        A number of `substeps` other than the physics' own may be traced.
        """
        check_field(u, dims=len(self.jets.lengths), channels=len(self.equation.fields))
        points = tuple(u.shape[1:])
        work = self.working_points(points) if self.working_grid else points
        start = resample(u, work)
        jets = self.jets.for_step(start)

        def tendency(v: Field) -> Field:
            known = self._tendency(jets, v, coefficients)
            known = jax.lax.stop_gradient(known) if stop_gradient else known
            return known if forcing is None else known + forcing(v)

        substeps = self.substeps if substeps is None else substeps
        advanced = _rk4(tendency, start, self.dt / substeps, substeps)
        return resample(self.jets.filter(advanced, self.jets.lengths), points)

    def tendency(self, u: Field, coefficients: Coefficients) -> Field:
        """du/dt of the filtered equation, on the grid of `u`."""
        return self._tendency(self.jets, u, coefficients)

    def _tendency(self, jets: JetProvider, u: Field, coefficients: Coefficients) -> Field:
        jet = jets(u, sorted(self.equation.derivatives(u.ndim - 1)))
        tendency = self.equation(jet, coefficients)
        if self.equation.degree > 1:  # products leave the band; linear terms stay inside
            tendency = jets.filter(tendency, jets.lengths)
        return tendency

    def working_points(self, points: tuple[int, ...]) -> tuple[int, ...]:
        """The least grid on which nothing aliases into the filter's band.

        Products of the equation's degree need `(degree + 1)` times the band. A lattice of A anchors
        mirrors mode k at A - k, which the grid must resolve to be told apart from k. On a coarse
        state this can be finer than the state's own grid.
        """
        band = self.jets.filter.band(Grid(points, self.jets.lengths))
        degree = min(self.equation.degree, 3)
        encoder = self.jets.encoder if isinstance(self.jets, SplatJets) else None
        anchors = encoder.anchors if encoder is not None else (0,) * len(points)
        return tuple(
            max(_fast_size(int((degree + 1) * b) + 1), _fast_size(2 * (a - b) + 1), a)
            for b, a in zip(band, anchors, strict=True)
        )


def _rk4(
    tendency: Callable[[Field], Field], u: Field, h: float | Array, steps: int | Array
) -> Field:
    """The classical fourth-order Runge-Kutta method."""

    def step(_, u):
        k1 = tendency(u)
        k2 = tendency(u + h / 2 * k1)
        k3 = tendency(u + h / 2 * k2)
        k4 = tendency(u + h * k3)
        return u + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    if isinstance(steps, int) and steps == 1:
        return step(0, u)
    return jax.lax.fori_loop(0, steps, step, u)


def _fast_size(least: int) -> int:
    """The next even size with only small prime factors."""
    size = max(4, least + least % 2)
    while True:
        rest = size
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return size
        size += 2

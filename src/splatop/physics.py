"""The embedded physics Φ: an equation on filtered jets, advanced in time (paper, appendix B)."""

from collections.abc import Callable

import equinox as eqx
import jax
from jaxtyping import Array

from .equation import Equation
from .errors import SplatopError, check_field
from .grid import as_number
from .integrators import RK4, Integrator, as_integrator
from .jets import JetProvider
from .spectral import Field, resample
from .stepper import Coefficients, Stepper


class EmbeddedPhysics(Stepper):
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

    def __check_init__(self):
        if not self.dt > 0:
            raise SplatopError(f"expected a positive time step, got dt={self.dt:g}")

    @property
    def substeps(self) -> int:
        return self.integrator.substeps

    @property
    def embedded(self) -> "EmbeddedPhysics":
        return self

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

        A number of `substeps` other than the integrator's own may be traced.
        """
        check_field(u, dims=len(self.jets.lengths), channels=len(self.equation.fields))
        points = tuple(u.shape[1:])
        start = resample(u, self.working_points(points) if self.working_grid else points)
        jets = self.jets.for_step(start)

        def tendency(v: Field) -> Field:
            known = self._tendency(jets, v, coefficients)
            known = jax.lax.stop_gradient(known) if stop_gradient else known
            return known if forcing is None else known + forcing(v)

        advanced = self.integrator.advance(tendency, start, self.dt, substeps=substeps)
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
        """The least grid on which nothing aliases into the filter's band: the jets know it.

        On a coarse state this can be finer than the state's own grid.
        """
        return self.jets.working_points(points, self.equation.degree)

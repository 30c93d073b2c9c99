"""The embedded physics Φ: an equation on filtered jets, advanced by RK4 (paper, appendix B)."""

import equinox as eqx
import jax

from .equation import Equation
from .errors import SplatopError, check_field
from .grid import Grid
from .jets import JetProvider
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
    dt: float = eqx.field(static=True)
    substeps: int = eqx.field(static=True, default=1)
    working_grid: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        if not self.dt > 0 or self.substeps < 1:
            raise SplatopError(
                f"expected a positive time step and at least one substep, "
                f"got dt={self.dt:g} and {self.substeps}"
            )

    def __call__(self, u: Field, coefficients: Coefficients) -> Field:
        check_field(u, dims=len(self.jets.lengths), channels=len(self.equation.fields))
        points = tuple(u.shape[1:])
        work = self.working_points(points) if self.working_grid else points
        advanced = self._advance(resample(u, work), coefficients)
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
        """The least grid on which products of the equation's degree do not alias into the band."""
        band = self.jets.filter.band(Grid(points, self.jets.lengths))
        degree = min(self.equation.degree, 3)
        encoder_needs = getattr(getattr(self.jets, "encoder", None), "anchors", (0,) * len(points))
        return tuple(
            min(n, max(_fast_size(int((degree + 1) * b) + 1), a))
            for n, b, a in zip(points, band, encoder_needs, strict=True)
        )

    def _advance(self, u: Field, coefficients: Coefficients) -> Field:
        h = self.dt / self.substeps
        jets = self.jets.for_step(u)

        def rk4(u, _):
            k1 = self._tendency(jets, u, coefficients)
            k2 = self._tendency(jets, u + h / 2 * k1, coefficients)
            k3 = self._tendency(jets, u + h / 2 * k2, coefficients)
            k4 = self._tendency(jets, u + h * k3, coefficients)
            return u + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

        if self.substeps == 1:
            return rk4(u, None)[0]
        return jax.lax.scan(rk4, u, length=self.substeps)[0]


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

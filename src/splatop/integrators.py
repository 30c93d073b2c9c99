"""Time integrators: how a tendency becomes a step."""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
from jaxtyping import Array

from .errors import SplatopError
from .spectral import Field

Tendency = Callable[[Field], Field]


class Integrator(eqx.Module):
    """Advances a state by `dt` in a number of equal substeps."""

    substeps: eqx.AbstractVar[int]

    @abc.abstractmethod
    def advance(
        self,
        tendency: Tendency,
        u: Field,
        dt: float | Array,
        *,
        substeps: int | Array | None = None,
    ) -> Field:
        """The state `dt` later, where `tendency(u)` is du/dt.

        A number of `substeps` other than the integrator's own may be traced.
        """


class RK4(Integrator):
    """The classical fourth-order Runge-Kutta method (paper, appendix B)."""

    substeps: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        if not isinstance(self.substeps, int) or self.substeps < 1:
            raise SplatopError(f"expected at least one substep of RK4, got {self.substeps}")

    def advance(self, tendency, u, dt, *, substeps=None):
        count = self.substeps if substeps is None else substeps
        h = dt / count

        def step(_, u):
            k1 = tendency(u)
            k2 = tendency(u + h / 2 * k1)
            k3 = tendency(u + h / 2 * k2)
            k4 = tendency(u + h * k3)
            return u + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

        if isinstance(count, int) and count == 1:
            return step(0, u)
        return jax.lax.fori_loop(0, count, step, u)


def as_integrator(value: Integrator | int) -> Integrator:
    """The integrator itself; a number stands for so many substeps of RK4."""
    return value if isinstance(value, Integrator) else RK4(value)

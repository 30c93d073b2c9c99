"""Time integrators: how a tendency becomes a step."""

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from .errors import SplatopError
from .exponential import Comoving, Tables, etdrk4_step

# A state may be samples of a field, or the numbers of a space: whatever the physics computes in.
State = Any
# du/dt of a state, and the time that has passed since the step began.
Tendency = Callable[[State, Any], State]


@dataclass(frozen=True)
class ExactPart:
    """A tendency as a part that is diagonal in some harmonics and the rest, for integrators that
    solve the first exactly.

    `tables(h)` are the factors of a step of length h, `rest` is the remaining tendency of the
    harmonics' numbers, and `forth` and `back` lead from a state to these numbers and back. Steps
    are `comoving` where that can be.
    """

    tables: Callable[[Any], Tables]
    rest: Tendency
    forth: Callable[[State], State] = lambda state: state
    back: Callable[[State], State] = lambda numbers: numbers
    comoving: Comoving | None = None


class Integrator(eqx.Module):
    """Advances a state by `dt` in a number of equal substeps."""

    substeps: eqx.AbstractVar[int]

    @property
    def exponential(self) -> bool:
        """Whether it solves the exact part of an `ExactPart`, and looks at nothing else."""
        return False

    @abc.abstractmethod
    def advance(
        self,
        tendency: Tendency,
        u: State,
        dt: float | Array,
        *,
        substeps: int | Array | None = None,
        split: Callable[[], ExactPart] | None = None,
    ) -> State:
        """The state `dt` later, where `tendency(u, elapsed)` is du/dt, and `split()` the same in
        two parts.

        A number of `substeps` other than the integrator's own may be traced.
        """


class RK4(Integrator):
    """The classical fourth-order Runge-Kutta method (paper, appendix B)."""

    substeps: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        if not isinstance(self.substeps, int) or self.substeps < 1:
            raise SplatopError(f"expected at least one substep of RK4, got {self.substeps}")

    def advance(self, tendency, u, dt, *, substeps=None, split=None):
        count = self.substeps if substeps is None else substeps
        h = dt / count

        def step(n, u):
            k1 = tendency(u, n * h)
            k2 = tendency(u + h / 2 * k1, (n + 0.5) * h)
            k3 = tendency(u + h / 2 * k2, (n + 0.5) * h)
            k4 = tendency(u + h * k3, (n + 1) * h)
            return u + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

        return _repeat(step, count, u)


class ETDRK4(Integrator):
    """Fourth order, with what is linear and diagonal integrated exactly (`exponential.py`)."""

    substeps: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        if not isinstance(self.substeps, int) or self.substeps < 1:
            raise SplatopError(f"expected at least one substep of ETDRK4, got {self.substeps}")

    @property
    def exponential(self) -> bool:
        return True

    def advance(self, tendency, u, dt, *, substeps=None, split=None):
        if split is None:
            raise SplatopError(
                "expected a physics that tells its linear part apart for ETDRK4, got one that does "
                "not: use RK4"
            )
        count = self.substeps if substeps is None else substeps
        parts = split()
        numbers = parts.forth(u)

        def cast(table: Any) -> Array:
            real = not jnp.iscomplexobj(numbers)
            return jnp.asarray(jnp.real(table) if real else table, numbers.dtype)

        h = dt / count
        tables = jax.tree.map(cast, parts.tables(h))

        def step(n, v):
            def rest(v, at):
                return parts.rest(v, (n + at) * h)

            return etdrk4_step(tables, rest, v, step=h, comoving=parts.comoving)

        return parts.back(_repeat(step, count, numbers))


def _repeat(step: Callable[[Any, State], State], count: int | Array, u: State) -> State:
    if isinstance(count, int) and count == 1:
        return step(0, u)
    return jax.lax.fori_loop(0, count, step, u)


def as_integrator(value: Integrator | int) -> Integrator:
    """The integrator itself; a number stands for so many substeps of RK4."""
    return value if isinstance(value, Integrator) else RK4(value)

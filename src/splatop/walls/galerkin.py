"""An equation on a space with walls: its tendency in the space's numbers, and what of it is
diagonal there and can be integrated exactly."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..derivative import Derivative, laplacian, value
from ..equation import Equation, Term
from ..equation.edge_values import edge_values, moves
from ..equation.equation import total as equation_total
from ..equation.expansion import LinearPart, split_linear
from ..equation.values import time
from ..errors import SplatopError
from ..exponential import Tables, etdrk4_step, etdrk4_tables
from ..jets import Jet
from ..signal import Signal
from ..spaces import BoxSpace, Sampling, Space, inverse_numbers, unconstrained
from ..stepper import TIME, Coefficients, driven, inputs_at, later, of_frames
from .conditions import check_potentials

Numbers = Float[Array, "C *R"]
Lifted = Float[Array, "C *S"]  # numbers of the unconstrained space


class Galerkin(eqx.Module):
    """`du/dt` of an equation projected onto a space.

    What is linear, acts on a field itself and is diagonal in the space's harmonics (diffusion
    between walls) is told apart from the rest, for exponential integrators.
    """

    equation: Equation
    space: Space
    exact: tuple[LinearPart, ...] = eqx.field(static=True)
    mixing: tuple[LinearPart, ...] = eqx.field(static=True)
    rest: tuple[Term, ...]

    def __init__(self, equation: Equation, space: Space):
        check_potentials(equation, space.domain)
        self.equation, self.space = equation, space
        linear, self.rest = split_linear(equation, space.dims)
        self.exact = tuple(p for p in linear if self._is_diagonal(p))
        self.mixing = tuple(p for p in linear if not self._is_diagonal(p))

    def lifted(self, coefficients: Coefficients) -> Lifted | None:
        """The field that takes what is set at the edges, in the unconstrained space; None if that
        is nothing but zeros."""
        return _lifted(self.space, coefficients)

    def lifted_of_frames(self, coefficients: Coefficients, count: int) -> list[Lifted | None]:
        """The same at each of so many frames, or once for all of them if it does not change."""
        return [self.lifted(of_frames(coefficients, n)) for n in range(count if self.moving else 1)]

    @property
    def moving(self) -> bool:
        """Whether what is set at the edges changes in time."""
        held = self.space.domain.conditions.items()
        return any(moves(condition) for (_, name), condition in held if name in self.space.fields)

    def drift(self, coefficients: Coefficients) -> Numbers:
        """The rate at which the lifted field itself changes, projected onto the space."""

        def at(t: Any) -> Any:
            return self.lifted({**coefficients, TIME: t})

        t = jnp.asarray(time(coefficients), float)
        rate = jax.jvp(at, (t,), (jnp.ones_like(t),))[1]
        itself = value(self.space.dims)
        return self.space.project(self.space.lift_derivatives(rate, [itself])[itself])

    def enter(self, u: Float[Array, "C *N"], along: Sampling, lifted: Lifted | None) -> Numbers:
        """A state sampled at the points of a grid as numbers of the space."""
        if lifted is not None:
            u = u - self.space.lift_evaluate(lifted.astype(u.dtype), along)
        return self.space.fit(u, along)

    def leave(self, c: Numbers, along: Sampling, lifted: Lifted | None) -> Float[Array, "C *N"]:
        """The state at the points of a grid."""
        u = self.space.evaluate(c, along)
        if lifted is None:
            return u
        return u + self.space.lift_evaluate(lifted.astype(c.dtype), along)

    def enter_inputs(
        self, coefficients: Coefficients, along: Sampling, dt: Any = 0.0
    ) -> Coefficients:
        """With the inputs around a step as numbers of the space without conditions."""
        names = self.equation.inputs
        if not names:
            return coefficients
        space = self._input_space(1)
        at = time(coefficients) + dt / 2
        return driven(coefficients, names, lambda f: space.fit(f[None], along)[0], at=at)

    def all_inputs(self, signals: Mapping[str, Signal], along: Sampling) -> dict[str, Signal]:
        """The inputs at all times as numbers of the space without conditions."""
        if not signals:
            return {}
        space = self._input_space(1)
        fit = jax.jit(lambda f: space.fit(f[None], along)[0])
        return {
            name: Signal(jnp.asarray(one.values, float), one.times).map(fit)
            for name, one in signals.items()
        }

    def _input_space(self, count: int) -> BoxSpace:
        if not isinstance(self.space, BoxSpace):
            raise SplatopError(
                "expected a box for an equation with inputs, got a shape: write what drives the "
                "fields as an expression in t, x and y"
            )
        return replace(unconstrained(self.space), fields=self.equation.inputs[:count])

    def jet(
        self,
        c: Numbers,
        derivatives: Any,
        lifted: Lifted | None,
        coefficients: Coefficients | None = None,
    ) -> Jet:
        """The state and its derivatives at the working points; behind its channels the inputs,
        where the equation has some and coefficients are given."""
        space = self.space
        itself = value(space.dims)
        wanted = sorted({itself, *derivatives})
        values = space.derivatives(c, wanted)
        if lifted is not None:
            added = space.lift_derivatives(lifted.astype(c.dtype), wanted)
            values = {d: values[d] + added[d] for d in wanted}
        for d, added in self._lifted_potentials(wanted, coefficients or {}).items():
            values[d] = values[d] + added.astype(c.dtype)
        names = self.equation.inputs
        if names and coefficients is not None:
            given = inputs_at(coefficients, names).astype(c.dtype)
            known = self._input_space(len(names)).derivatives(given, wanted)
            values = {d: jnp.concatenate([values[d], known[d]]) for d in wanted}
        fractions = tuple(tuple(x.tolist()) for x in space.fractions())
        return Jet(
            values[itself],
            values,
            space.domain.lengths,
            space.domain.origin,
            fractions=fractions,
            scattered=space.scattered,
        )

    def tendency(
        self, c: Numbers, coefficients: Coefficients, lifted: Lifted | None = None
    ) -> Numbers:
        """du/dt of the whole equation, in the space, less that of what is lifted."""
        if lifted is None and (self.exact or self._acts_on_numbers):
            rates = jnp.asarray(self.diagonal(coefficients), c.dtype)
            return rates * c + self.remainder(c, coefficients)
        jet = self.jet(c, self.equation.derivatives(self.space.dims), lifted, coefficients)
        rate = self.space.project(self.equation(jet, coefficients))
        return rate - self.drift(coefficients).astype(c.dtype) if self.moving else rate

    def remainder(
        self, c: Numbers, coefficients: Coefficients, lifted: Lifted | None = None
    ) -> Numbers:
        """du/dt without what `tables` integrate exactly."""
        mixing = self.mixing
        total: Any = jnp.zeros_like(c)
        if lifted is None and self._acts_on_numbers:
            for part in mixing:
                matrix = self.space.linear(part.operator)
                moved = c[part.source] @ jnp.asarray(matrix, c.dtype).T
                total = total.at[part.channel].add(part.rate(coefficients) * moved)
            mixing = ()
        needed = {d for term in self.rest for d in term.derivatives(self.space.dims)}
        needed |= {part.operator for part in mixing}
        if self.rest or mixing:
            jet = self.jet(c, needed, lifted, coefficients)
            values = equation_total(self.rest, jet, coefficients, channels=len(c))
            for part in mixing:
                factor = part.rate(coefficients)
                values = values.at[part.channel].add(factor * jet[part.operator][part.source])
            total = total + self.space.project(values)
        if lifted is not None and self.exact:
            operators = {part.operator for part in self.exact}
            fixed = self.space.lift_derivatives(lifted.astype(c.dtype), operators)
            for part in self.exact:
                own = part.rate(coefficients) * fixed[part.operator][part.source]
                alone = jnp.zeros((len(c), *own.shape), c.dtype).at[part.channel].set(own)
                total = total + self.space.project(alone)
        return total - self.drift(coefficients).astype(c.dtype) if self.moving else total

    def _lifted_potentials(self, wanted: list[Derivative], coefficients: Coefficients) -> Any:
        """What derivatives of inverse Laplacians gain from what is set for them at the edges."""
        asked = [d for d in wanted if d.inverse_laplacians]
        if not asked or not self._sets_potentials:
            return {}
        space = self.space.of_potentials
        lifted, second = _lifted(space, coefficients), laplacian(space.dims)
        asked_of_lift = {second, *(d.forward for d in asked)}
        field = space.lift_derivatives(lifted, asked_of_lift)
        # Less what the space finds for the lift's Laplacian by itself, with zeros at the edges.
        numbers = inverse_numbers(space, field[second])
        inner = space.derivatives(numbers, {d.forward for d in asked})
        return {d: field[d.forward] - inner[d.forward] for d in asked}

    @property
    def _sets_potentials(self) -> bool:
        held, own = self.space.domain.conditions.items(), self.space.fields
        return any(one.value != 0.0 for (_, name), one in held if name not in own)

    def diagonal(self, coefficients: Coefficients) -> Any:
        """The rates of the exact part, `(C, *R)`."""
        shape = (len(self.space.fields), *self.space.shape)
        rates: Any = np.zeros(shape)
        for part in self.exact:
            found = self.space.diagonal(part.operator)
            assert found is not None
            own = np.zeros(shape)
            own[part.channel] = found[part.channel]
            rates = rates + part.rate(coefficients) * own
        return rates

    def tables(self, step: Any, coefficients: Coefficients) -> Tables:
        """The factors of an exponential step, in double precision on the host where they can be."""
        return etdrk4_tables(self.diagonal(coefficients) * step, step)

    def exponential_step(
        self,
        c: Numbers,
        tables: Tables,
        coefficients: Coefficients,
        lifted: Lifted | None,
        step: Any,
    ) -> Numbers:
        """One step of this length, for which the tables are."""
        cast = jax.tree.map(lambda table: jnp.asarray(jnp.real(table), c.dtype), tables)

        def rest(c: Numbers, at: float) -> Numbers:
            now = later(coefficients, at * step)
            return self.remainder(c, now, self.lifted(now) if self.moving else lifted)

        return etdrk4_step(cast, rest, c)

    @property
    def _acts_on_numbers(self) -> bool:
        """Whether all linear parts are matrices that act on the numbers: no point is visited."""
        if self._sets_potentials:
            return False
        return bool(self.exact or self.mixing) and all(
            self.space.linear(part.operator) is not None for part in self.mixing + self.exact
        )

    def _is_diagonal(self, part: LinearPart) -> bool:
        return part.channel == part.source and self.space.diagonal(part.operator) is not None


def _lifted(space: Space, coefficients: Coefficients) -> Any:
    """A field that takes what is set at the edges for the fields of a space; None if only zeros."""
    edges = {
        (side, name): edge_values(condition, space.edge_coordinates(side), coefficients)
        for (side, name), condition in space.domain.conditions.items()
        if name in space.fields and condition.kind != "free" and condition.value != 0.0
    }
    return jnp.asarray(space.lift(edges)) if edges else None

"""ETDRK4 on spectral derivatives: the linear part exact, products without aliasing.

Kassam and Trefethen, Fourth-order time-stepping for stiff PDEs, SIAM J. Sci. Comput. 26 (2005).
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.fft
from jaxtyping import Array, Complex

from .derivative import Derivative
from .equation import Equation, Term
from .equation.equation import total
from .equation.expansion import LinearPart, split_linear
from .exponential import Tables, coupled_tables, etdrk4_step, etdrk4_tables
from .grid import Grid
from .jets import Jet
from .spectral import Field, from_modes, keep_band, pad_modes, to_modes
from .stepper import Coefficients, inputs_at, later

# Products of a degree beyond it, and functions of the state, alias from the tail of the spectrum.
HIGHEST_EXACT_DEGREE = 4

Modes = Complex[Array, "C *K"]


class Scheme(eqx.Module):
    """The equation split for ETDRK4 on one grid, inside a band of modes: `|k_i| <= band_i`.

    Without a band it is all that the grid holds, except Nyquist modes.
    """

    linear: tuple[LinearPart, ...] = eqx.field(static=True)
    rest: tuple[Term, ...]
    fields: tuple[str, ...] = eqx.field(static=True)
    grid: Grid = eqx.field(static=True)
    band: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, equation: Equation, grid: Grid, band: tuple[int, ...] | None = None):
        equation.derivatives(grid.dims)  # refuses an equation written for other dimensions
        self.linear, self.rest = split_linear(equation, grid.dims)
        self.fields, self.grid = equation.fields, grid
        self.band = band or tuple((n - 1) // 2 for n in grid.points)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Known fields that the terms read."""
        return next((term.reads for term in self.rest if term.reads), ())

    @property
    def fine(self) -> Grid:
        """The grid for products: degree p needs more than p + 1 bands (2 for coefficients in x)."""
        degree = max((term.degree for term in self.rest), default=1)
        degree = min(max(degree, 2), HIGHEST_EXACT_DEGREE)
        least = (int((degree + 1) * b + 1) for b in self.band)
        fast = tuple(int(scipy.fft.next_fast_len(n, True) or n) for n in least)
        return Grid(fast, self.grid.lengths)

    def wavenumbers(self) -> tuple[np.ndarray, ...]:
        """Cycles per unit length of the modes kept, in the layout of `rfftn`, broadcastable."""
        odd = Grid(tuple(2 * b + 1 for b in self.band), self.grid.lengths)
        return odd.wavenumbers()

    def tables(self, step: float | Array, coefficients: Coefficients) -> Tables:
        """The factors of a step, in double precision on the host unless a coefficient is traced."""
        wavenumbers = self.wavenumbers()
        return mode_tables(
            self.linear,
            lambda operator: operator.symbol(wavenumbers),
            step,
            coefficients,
            shape=(len(self.fields), *np.broadcast_shapes(*(k.shape for k in wavenumbers))),
        )

    def nonlinear(self, modes: Modes, coefficients: Coefficients) -> Modes:
        if not self.rest:
            return jnp.zeros_like(modes)
        fine, band, channels = self.fine, self.band, len(self.fields)
        wavenumbers = self.wavenumbers()
        if self.inputs:
            given = inputs_at(coefficients, self.inputs).astype(modes.real.dtype)
            modes = jnp.concatenate([modes, keep_band(to_modes(given), band)])

        def on_grid(symbol: np.ndarray | float) -> Field:
            scaled = modes * jnp.asarray(symbol, modes.dtype)
            return from_modes(pad_modes(scaled, band, fine.points), fine.points)

        needed = frozenset().union(*(term.derivatives(fine.dims) for term in self.rest))
        values = {d: on_grid(d.symbol(wavenumbers)) for d in sorted(needed)}
        jet = Jet(on_grid(1.0), values, fine.lengths)
        rate = total(self.rest, jet, coefficients, channels=channels)
        return keep_band(to_modes(rate), band)

    def advance(
        self,
        u: Field,
        tables: Tables,
        coefficients: Coefficients,
        substeps: int | Array,
        step: float | Array = 0.0,
    ) -> Field:
        """So many substeps of length `step`, which the tables are for. Only where t stands in the
        equation does it matter here."""

        def one(n: Array, v: Modes) -> Modes:
            def rest(v: Modes, at: float) -> Modes:
                return self.nonlinear(v, later(coefficients, (n + at) * step))

            return etdrk4_step(tables, rest, v)

        modes = keep_band(to_modes(u), self.band)
        modes = jax.lax.fori_loop(0, substeps, one, modes)
        return from_modes(pad_modes(modes, self.band, self.grid.points), self.grid.points)

    def multiply(self, factors: Array, u: Field) -> Field:
        """The field with each of its modes times a factor; modes beyond the band are dropped."""
        modes = factors * keep_band(to_modes(u), self.band)
        return from_modes(pad_modes(modes, self.band, self.grid.points), self.grid.points)


def mode_tables(
    linear: tuple[LinearPart, ...],
    symbol: Callable[[Derivative], np.ndarray],
    step: float | Array,
    coefficients: Coefficients,
    *,
    shape: tuple[int, ...],
) -> Tables:
    """The factors of a step for parts that act on each mode alone, given the operators' symbols;
    `shape` is that of the modes, `(C, *K)`."""
    channels, modes = shape[0], shape[1:]
    symbols: dict[tuple[int, int], Any] = {
        (c, c): np.zeros(modes, complex) for c in range(channels)
    }
    for part in linear:
        place = part.channel, part.source
        with np.errstate(all="ignore"):  # what is not finite shows in the states
            own = part.rate(coefficients) * symbol(part.operator)
            symbols[place] = symbols.get(place, 0.0) + own
    traced = any(isinstance(one, jax.Array) for one in symbols.values())
    xp = jnp if traced or isinstance(step, jax.Array) else np
    with np.errstate(all="ignore"):
        if len(symbols) == channels:
            own = xp.stack([symbols[c, c] for c in range(channels)])
            return etdrk4_tables(own * step, step)
        nothing = np.zeros(modes, complex)
        rows = [
            xp.stack([symbols.get((c, d), nothing) for d in range(channels)])
            for c in range(channels)
        ]
        return coupled_tables(xp.stack(rows) * step, step)

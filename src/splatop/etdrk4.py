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
from jaxtyping import Array, Complex, Float

from .derivative import Derivative
from .equation import Equation, Term
from .equation.equation import total
from .equation.expansion import LinearPart, split_linear
from .exponential import Comoving, Tables, coupled_tables, etdrk4_step, etdrk4_tables
from .grid import Grid
from .jets import Jet
from .spectral import (
    Field,
    Filter,
    Other,
    band_modes,
    band_values,
    from_modes,
    keep_band,
    pad_modes,
    resample,
    to_modes,
)
from .stepper import Coefficients, inputs_at, later

# Products of a degree beyond it, and functions of the state, alias from the tail of the spectrum.
HIGHEST_EXACT_DEGREE = 4

Modes = Complex[Array, "C *K"]


class Scheme(eqx.Module):
    """The equation split for ETDRK4 on one grid, inside a band of modes: `|k_i| <= band_i`.

    Without a band it is all that the grid holds, except Nyquist modes. With a filter, derivatives
    and tendencies are weighted by it.
    """

    linear: tuple[LinearPart, ...] = eqx.field(static=True)
    rest: tuple[Term, ...]
    fields: tuple[str, ...] = eqx.field(static=True)
    grid: Grid = eqx.field(static=True)
    band: tuple[int, ...] = eqx.field(static=True)
    filter: Filter | None

    def __init__(
        self,
        equation: Equation,
        grid: Grid,
        band: tuple[int, ...] | None = None,
        filter: Filter | None = None,
    ):
        equation.derivatives(grid.dims)  # refuses an equation written for other dimensions
        self.linear, self.rest = split_linear(equation, grid.dims)
        self.fields, self.grid, self.filter = equation.fields, grid, filter
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
        modes = np.broadcast_shapes(*(k.shape for k in self.wavenumbers()))
        return mode_tables(self._symbols(coefficients), step, shape=(len(self.fields), *modes))

    def comoving(self, coefficients: Coefficients) -> Comoving | None:
        """For steps that move along with the state, unless the rest knows one place from another.

        The tables are for steps that move with the `wind`.
        """
        if not self._homogeneous:
            return None
        transports = any(term.derivatives(self.grid.dims) for term in self.rest)
        wind = self._wind(coefficients)
        if not transports and not wind:
            return None
        symbols = self._symbols(coefficients)

        def rate(modes: Modes) -> Modes:
            rows = [jnp.zeros_like(own) for own in modes]
            for (channel, source), symbol in symbols.items():
                rows[channel] += jnp.asarray(symbol, modes.dtype) * modes[source]
            return jnp.stack(rows)

        wavenumbers = tuple(2 * np.pi * k for k in self.wavenumbers())
        return Comoving(rate, wavenumbers, wind or (0.0,) * self.grid.dims, transports)

    @property
    def _homogeneous(self) -> bool:
        return not self.inputs and all(term.homogeneous for term in self.rest)

    def _wind(self, coefficients: Coefficients) -> tuple[Any, ...]:
        """The constant velocity with which the linear part carries all fields, in their mean, along
        each axis; empty if there is none."""
        found: dict[int, Any] = {}
        for part in self.linear:
            if part.channel != part.source or part.operator.inverse_laplacians:
                continue
            for index, weight in part.operator.terms:
                if sum(index) == 1:
                    axis, own = index.index(1), part.rate(coefficients) * weight
                    found[axis] = found.get(axis, 0.0) - own / len(self.fields)
        return tuple(found.get(axis, 0.0) for axis in range(self.grid.dims)) if found else ()

    def _symbols(self, coefficients: Coefficients) -> dict[tuple[int, int], Any]:
        """By which the linear part changes modes, without the wind if steps move along with it."""
        wavenumbers = self.wavenumbers()
        found = linear_symbols(
            self.linear, lambda operator: operator.symbol(wavenumbers), coefficients
        )
        if self._homogeneous:
            wind = self._wind(coefficients)
            pairs = zip(wind, wavenumbers, strict=True) if wind else ()
            carried = sum(2j * np.pi * speed * k for speed, k in pairs)
            for c in range(len(self.fields) if wind else 0):
                found[c, c] = found.get((c, c), 0.0) + carried
        return found

    def nonlinear(self, modes: Modes, coefficients: Coefficients) -> Modes:
        if not self.rest:
            return jnp.zeros_like(modes)
        fine, channels = self.fine, len(self.fields)
        if self.inputs:
            given = inputs_at(coefficients, self.inputs).astype(modes.real.dtype)
            modes = jnp.concatenate([modes, keep_band(to_modes(given), self.band)])
        needed = frozenset().union(*(term.derivatives(fine.dims) for term in self.rest))
        wavenumbers, kept = self.wavenumbers(), self._weights()
        symbols = [1.0, *(kept * d.symbol(wavenumbers) for d in sorted(needed))]
        state, *others = band_values(modes, symbols, self.band, fine.points)
        jet = Jet(state, dict(zip(sorted(needed), others, strict=True)), fine.lengths)
        rate = total(self.rest, jet, coefficients, channels=channels)
        return band_modes(rate, kept, self.band)

    def _weights(self) -> np.ndarray | float:
        """Of derivatives and tendencies, mode by mode."""
        return 1.0 if self.filter is None else self.filter.weights(self.wavenumbers())

    def enter(self, u: Field) -> Modes:
        """The modes of the band, of a field on any grid that holds them."""
        return keep_band(to_modes(_at_most(u, self.fine.points)), self.band)

    def leave(self, modes: Modes, points: tuple[int, ...]) -> Float[Array, "C *N"]:
        """The field, filtered, on a grid that holds the band."""
        modes = modes * jnp.asarray(self._weights(), modes.real.dtype)
        near = tuple(min(pair) for pair in zip(points, self.fine.points, strict=True))
        return resample(from_modes(pad_modes(modes, self.band, near), near), points)

    def advance(
        self,
        u: Field,
        tables: Tables,
        coefficients: Coefficients,
        substeps: int | Array,
        step: float | Array,
    ) -> Field:
        """So many substeps of length `step`, which the tables are for."""
        comoving = self.comoving(coefficients)

        def one(n: Array, v: Modes) -> Modes:
            def rest(v: Modes, at: float) -> Modes:
                return self.nonlinear(v, later(coefficients, (n + at) * step))

            found = etdrk4_step(tables, rest, v, step=step, comoving=comoving)
            return found.astype(v.dtype)

        modes = keep_band(to_modes(u), self.band)
        modes = jax.lax.fori_loop(0, substeps, one, modes)
        return from_modes(pad_modes(modes, self.band, self.grid.points), self.grid.points)

    def multiply(self, factors: Array, u: Field) -> Field:
        """The field with each of its modes times a factor; modes beyond the band are dropped."""
        modes = factors * keep_band(to_modes(u), self.band)
        return from_modes(pad_modes(modes, self.band, self.grid.points), self.grid.points)


def _at_most(u: Field, points: tuple[int, ...]) -> Other:
    """On no more points than these along each axis."""
    return resample(u, tuple(min(n, m) for n, m in zip(u.shape[1:], points, strict=True)))


def linear_symbols(
    linear: tuple[LinearPart, ...],
    symbol: Callable[[Derivative], np.ndarray],
    coefficients: Coefficients,
) -> dict[tuple[int, int], Any]:
    """By which each mode of a channel changes with that of another one, or its own, given the
    operators' symbols."""
    found: dict[tuple[int, int], Any] = {}
    for part in linear:
        place = part.channel, part.source
        with np.errstate(all="ignore"):  # what is not finite shows in the states
            found[place] = found.get(place, 0.0) + part.rate(coefficients) * symbol(part.operator)
    return found


def mode_tables(
    symbols: dict[tuple[int, int], Any], step: float | Array, *, shape: tuple[int, ...]
) -> Tables:
    """The factors of a step for parts that act on each mode alone, given their symbols; `shape` is
    that of the modes, `(C, *K)`."""
    channels, modes = shape[0], shape[1:]
    nothing = np.zeros(modes, complex)
    symbols = {(c, c): nothing for c in range(channels)} | {
        place: nothing + own for place, own in symbols.items()
    }
    traced = any(isinstance(one, jax.Array) for one in symbols.values())
    xp = jnp if traced or isinstance(step, jax.Array) else np
    with np.errstate(all="ignore"):
        if len(symbols) == channels:
            own = xp.stack([symbols[c, c] for c in range(channels)])
            return etdrk4_tables(own * step, step)
        rows = [
            xp.stack([symbols.get((c, d), nothing) for d in range(channels)])
            for c in range(channels)
        ]
        return coupled_tables(xp.stack(rows) * step, step)

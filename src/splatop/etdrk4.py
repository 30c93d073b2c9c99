"""ETDRK4 on spectral derivatives: the linear part exact, products without aliasing.

Kassam and Trefethen, Fourth-order time-stepping for stiff PDEs, SIAM J. Sci. Comput. 26 (2005).
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.fft
from jaxtyping import Array, Complex

from .equation import Equation, Term
from .equation.expansion import LinearPart, split_linear
from .equation.expression import Coefficient
from .equation.values import evaluate
from .errors import is_concrete
from .grid import Grid
from .jets import Jet
from .spectral import Field, from_modes, to_modes
from .stepper import Coefficients

CONTOUR_POINTS = 32
# Products of a degree beyond it, and functions of the state, alias from the tail of the spectrum.
HIGHEST_EXACT_DEGREE = 4

Modes = Complex[Array, "C *K"]
Tables = tuple[Any, Any, Any, Any, Any, Any]


class Scheme(eqx.Module):
    """The equation split for ETDRK4 on one grid. Modes are the grid's without Nyquist ones."""

    linear: tuple[LinearPart, ...] = eqx.field(static=True)
    rest: tuple[Term, ...]
    fields: tuple[str, ...] = eqx.field(static=True)
    grid: Grid = eqx.field(static=True)

    def __init__(self, equation: Equation, grid: Grid):
        equation.derivatives(grid.dims)  # refuses an equation written for other dimensions
        self.linear, self.rest = split_linear(equation, grid.dims)
        self.fields, self.grid = equation.fields, grid

    @property
    def band(self) -> tuple[int, ...]:
        return tuple((n - 1) // 2 for n in self.grid.points)

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

    def tables(self, step: float, coefficients: Coefficients) -> Tables:
        """The factors of a step, in double precision on the host unless a coefficient is traced."""
        wavenumbers = self.wavenumbers()
        shape = np.broadcast_shapes(*(k.shape for k in wavenumbers))
        symbols: list[Any] = [np.zeros(shape, complex) for _ in self.fields]
        for part in self.linear:
            factor = evaluate(part.factor, lambda atom: _host_value(atom, coefficients))
            with np.errstate(all="ignore"):  # as below: what is not finite shows in the states
                symbols[part.channel] += factor * part.operator.symbol(wavenumbers)
        traced = any(isinstance(symbol, jax.Array) for symbol in symbols)
        return _etdrk4_tables(jnp.stack(symbols) if traced else np.stack(symbols), step)

    def nonlinear(self, modes: Modes, coefficients: Coefficients) -> Modes:
        if not self.rest:
            return jnp.zeros_like(modes)
        fine, band = self.fine, self.band
        wavenumbers = self.wavenumbers()

        def on_grid(symbol: np.ndarray | float) -> Field:
            scaled = modes * jnp.asarray(symbol, modes.dtype)
            return from_modes(_pad(scaled, band, fine.points), fine.points)

        needed = frozenset().union(*(term.derivatives(fine.dims) for term in self.rest))
        values = {d: on_grid(d.symbol(wavenumbers)) for d in sorted(needed)}
        jet = Jet(on_grid(1.0), values, fine.lengths)
        total = sum(
            (term(jet, coefficients) for term in self.rest), start=jnp.zeros_like(jet.state)
        )
        return _truncate(to_modes(total), band)

    def advance(
        self, u: Field, tables: Tables, coefficients: Coefficients, substeps: int | Array
    ) -> Field:
        step = partial(_etdrk4, tables, lambda v: self.nonlinear(v, coefficients))
        modes = _truncate(to_modes(u), self.band)
        modes = jax.lax.fori_loop(0, substeps, lambda _, v: step(v), modes)
        return from_modes(_pad(modes, self.band, self.grid.points), self.grid.points)


def _host_value(atom: Any, coefficients: Coefficients) -> Any:
    assert isinstance(atom, Coefficient)
    value = coefficients[atom.name]
    return float(value) if is_concrete(value) else value


def _etdrk4_tables(symbol: Any, step: float) -> Tables:
    """The scheme's factors by contour integrals, without cancellation near zero.

    The contour is a whole circle and the mean is kept complex: for transport and dispersion the
    symbol is imaginary, and its real part alone would be first order only.
    """
    with np.errstate(all="ignore"):
        z = symbol * step
    circle = np.exp(2j * np.pi * (np.arange(CONTOUR_POINTS) + 0.5) / CONTOUR_POINTS)
    weight = step / CONTOUR_POINTS
    if isinstance(z, jax.Array):

        def add(sums: tuple, point: Array) -> tuple[tuple, None]:
            return _plus(sums, _integrands(z + point, jnp)), None

        sums, _ = jax.lax.scan(add, (jnp.zeros_like(z),) * 4, jnp.asarray(circle, z.dtype))
        q, f1, f2, f3 = (weight * one for one in sums)
        return jnp.exp(z), jnp.exp(z / 2), q, f1, f2, f3
    with np.errstate(all="ignore"):  # growth without bound shows in the states, which are checked
        sums = (0.0,) * 4
        for point in circle:
            sums = _plus(sums, _integrands(z + point, np))
        q, f1, f2, f3 = (weight * one for one in sums)
        return np.exp(z), np.exp(z / 2), q, f1, f2, f3


def _plus(sums: tuple, terms: tuple) -> tuple:
    return tuple(a + b for a, b in zip(sums, terms, strict=True))


def _integrands(r: Any, xp: Any) -> tuple:
    e = xp.exp(r)
    return (
        (xp.exp(r / 2) - 1) / r,
        (-4 - r + e * (4 - 3 * r + r**2)) / r**3,
        (2 + r + e * (r - 2)) / r**3,
        (-4 - 3 * r - r**2 + e * (4 - r)) / r**3,
    )


def _etdrk4(tables: Tables, nonlinear: Any, v: Modes) -> Modes:
    whole, half, q, f1, f2, f3 = tables
    n_v = nonlinear(v)
    a = half * v + q * n_v
    n_a = nonlinear(a)
    b = half * v + q * n_a
    n_b = nonlinear(b)
    c = half * a + q * (2 * n_b - n_v)
    return whole * v + f1 * n_v + 2 * f2 * (n_a + n_b) + f3 * nonlinear(c)


def _pad(modes: Array, band: tuple[int, ...], points: tuple[int, ...]) -> Array:
    """Modes of the band to the layout of `rfftn` on a grid with these points."""
    *full, last = zip(band, points, strict=True)
    for axis, (b, n) in enumerate(full, start=1):
        gap = list(modes.shape)
        gap[axis] = n - (2 * b + 1)
        low, high = jnp.split(modes, [b + 1], axis=axis)
        modes = jnp.concatenate([low, jnp.zeros(gap, modes.dtype), high], axis=axis)
    widths = [(0, 0)] * (modes.ndim - 1) + [(0, last[1] // 2 - last[0])]
    return jnp.pad(modes, widths)


def _truncate(modes: Array, band: tuple[int, ...]) -> Array:
    for axis, b in enumerate(band[:-1], start=1):
        low = jax.lax.slice_in_dim(modes, 0, b + 1, axis=axis)
        size = modes.shape[axis]
        high = jax.lax.slice_in_dim(modes, size - b, size, axis=axis)
        modes = jnp.concatenate([low, high], axis=axis)
    return modes[..., : band[-1] + 1]

"""ETDRK4: a fourth-order Runge-Kutta scheme that integrates a diagonal linear part exactly.

The stages are Krogstad's (Generalized integrating factor methods for stiff PDEs, J. Comput. Phys.
203, 2005), which take as many products as those of Cox and Matthews and leave a third of their
error on Kuramoto-Sivashinsky; the factors are computed as in Kassam and Trefethen, Fourth-order
time-stepping for stiff PDEs, SIAM J. Sci. Comput. 26 (2005).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

# The mean over the circle leaves out Taylor terms from this order on: 1/17! of them.
CONTOUR_POINTS = 16
# Matrices up to 2^16 are halved to below one, where nine terms are exact to rounding.
_DOUBLINGS = 16
_TAYLOR = 9

# exp(z), exp(z/2), then those of the stages and of the step, each times its length.
Tables = tuple[Any, Any, Any, Any, Any, Any, Any, Any, Any]


def etdrk4_tables(z: Any, step: float | Array) -> Tables:
    """The scheme's factors by contour integrals, without cancellation near zero.

    The contour is a whole circle and the mean is kept complex: for transport and dispersion the
    symbol is imaginary, and its real part alone would be first order only.
    """
    circle = np.exp(2j * np.pi * (np.arange(CONTOUR_POINTS) + 0.5) / CONTOUR_POINTS)
    weight = step / CONTOUR_POINTS
    if isinstance(z, jax.Array):
        z = z.astype(jnp.result_type(z, 1j))  # the contour leaves the real axis

        def add(sums: tuple, point: Array) -> tuple[tuple, None]:
            return _plus(sums, _integrands(z + point, jnp)), None

        sums, _ = jax.lax.scan(add, (jnp.zeros_like(z),) * 7, jnp.asarray(circle, z.dtype))
        q, r, p, s, f1, f2, f3 = (weight * one for one in sums)
        return jnp.exp(z), jnp.exp(z / 2), q, r, p, s, f1, f2, f3
    with np.errstate(all="ignore"):  # growth without bound shows in the states, which are checked
        sums = (0.0,) * 7
        for point in circle:
            sums = _plus(sums, _integrands(z + point, np))
        q, r, p, s, f1, f2, f3 = (weight * one for one in sums)
        return np.exp(z), np.exp(z / 2), q, r, p, s, f1, f2, f3


def coupled_tables(z: Any, step: float | Array) -> Tables:
    """The same where a mode's channels are coupled: `z` and the factors are matrices `(C, C, *K)`.

    Taylor series of exp, φ₁, φ₂ and φ₃ at z / 2ˢ, then doubled s times.
    """
    one = np.eye(len(z)).reshape(*z.shape[:2], *(1,) * (z.ndim - 2)) + 0 * z

    def doubled(phis: tuple) -> tuple:
        e, p1, p2, p3 = phis
        return (
            _product(e, e),
            (_product(e, p1) + p1) / 2,
            (_product(p1, p1) + 2 * p2) / 4,
            (_product(p1, p2) + p2 + 2 * p3) / 8,
        )

    small = z / 2.0**_DOUBLINGS
    p3 = one / math.factorial(3 + _TAYLOR)
    for order in reversed(range(3, 3 + _TAYLOR)):
        p3 = one / math.factorial(order) + _product(small, p3)
    p2 = one / 2 + _product(small, p3)
    p1 = one + _product(small, p2)
    half = one + _product(small, p1), p1, p2, p3
    if isinstance(z, jax.Array):  # a loop compiles sooner
        half = jax.lax.fori_loop(0, _DOUBLINGS - 1, lambda _, phis: doubled(phis), half)
    else:
        for _ in range(_DOUBLINGS - 1):
            half = doubled(half)
    (e_half, q, r, _), (whole, p1, p2, p3) = half, doubled(half)
    return (
        whole,
        e_half,
        step / 2 * q,
        step * r,
        step * p1,
        2 * step * p2,
        step * (p1 - 3 * p2 + 4 * p3),
        step * (p2 - 2 * p3),
        step * (4 * p3 - p2),
    )


def _product(a: Any, b: Any) -> Any:
    """Of matrices `(C, C, *K)`, mode by mode; written out, since C is two or three."""
    return (a[:, :, None] * b[None]).sum(1)


def _times(table: Array, v: Array) -> Array:
    """A factor for each mode, or a matrix where channels are coupled."""
    return table * v if table.ndim == v.ndim else (table * v).sum(1)


def _plus(sums: tuple, terms: tuple) -> tuple:
    return tuple(a + b for a, b in zip(sums, terms, strict=True))


def _integrands(r: Any, xp: Any) -> tuple:
    e, half = xp.exp(r), xp.exp(r / 2)
    return (
        (half - 1) / r,
        4 * (half - 1 - r / 2) / r**2,
        (e - 1) / r,
        2 * (e - 1 - r) / r**2,
        (-4 - r + e * (4 - 3 * r + r**2)) / r**3,
        (2 + r + e * (r - 2)) / r**3,
        (-4 - 3 * r - r**2 + e * (4 - r)) / r**3,
    )


@dataclass(frozen=True)
class Comoving:
    """Steps in coordinates that move along with the state, for rests that act alike everywhere.

    What carries the whole state with one velocity V is then exact: the rest gains `V·∇v`, and the
    result is shifted by V times the step. Any V gives a step of the same order, a good one a small
    error: that of the wave as a whole for a soliton, where nothing changes in its own coordinates,
    and that of the flow for what is carried along. `linear` is what the tables integrate exactly,
    in coordinates that move with the `wind` already, and a rest that never `transports` adds
    nothing to it. `wavenumbers` are in radians per unit length, one broadcastable array for each
    axis of the modes, in the layout of `rfftn`.
    """

    linear: Callable[[Array], Array]
    wavenumbers: tuple[np.ndarray, ...]
    wind: tuple[Any, ...]
    transports: bool = True

    def velocity(self, v: Array, rest: Array) -> list[Array]:
        """Beside the wind, for modes `(C, *K)` and their rate of change by the rest.

        The velocity for which rest plus `V·∇v` is least in the mean square, each field in units of
        its own gradient, and that for which the whole rate plus `V·∇v` is; of these the mean,
        weighted by the fourth power of what each leaves, as the errors of a step are.
        """
        axes = len(self.wavenumbers)
        twice = np.where(self.wavenumbers[-1] > 0, 2.0, 1.0)  # modes that stand for two
        kinds = [*(1j * k * v for k in self.wavenumbers), rest, rest + self.linear(v)]
        rows = jnp.stack([(jnp.asarray(np.sqrt(twice), v.real.dtype) * one) for one in kinds], 1)
        rows = rows.reshape(*rows.shape[:2], -1)
        rows = jnp.concatenate([rows.real, rows.imag], axis=-1)
        # All that follows are sums of these few numbers, which one product has.
        products = rows @ jnp.swapaxes(rows, 1, 2)
        size = sum(products[:, a, a] for a in range(axes))
        unit = jnp.where(size > 0, 1 / jnp.where(size > 0, size, 1), 0)
        each = jnp.einsum("c,cij->ij", unit, products)
        matrix = [[each[a, b] for b in range(axes)] for a in range(axes)]

        def best(kind: int) -> tuple[list[Array], Array]:
            along = [each[a, kind] for a in range(axes)]
            found = _solved(matrix, [-one for one in along])
            left = each[kind, kind] + sum(a * b for a, b in zip(found, along, strict=True))
            return found, jnp.maximum(left, 0) ** 2

        (one, left), (other, less) = best(axes), best(axes + 1)
        share = jnp.where(left + less > 0, left / jnp.where(left + less > 0, left + less, 1), 0)
        return [a + share * (b - a) for a, b in zip(one, other, strict=True)]

    def carried(self, velocity: list[Array], v: Array) -> Array:
        """`V·∇v`."""
        pairs = zip(velocity, self.wavenumbers, strict=True)
        return 1j * sum(speed * jnp.asarray(k, speed.dtype) for speed, k in pairs) * v

    def shifted(self, velocity: list[Any], step: float | Array, v: Array) -> Array:
        """Back to coordinates at rest, after a step that moved with the wind and this velocity."""
        for wind, own, k in zip(self.wind, velocity, self.wavenumbers, strict=True):
            v = v * jnp.exp(jnp.asarray(-1j * (wind + own) * step * k, v.dtype))
        return v


def _solved(matrix: list[list[Array]], right: list[Array]) -> list[Array]:
    """Of a positive system of one to three numbers, by elimination; nearly nothing is added to its
    diagonal, as gradients may all point the same way."""
    size = len(right)
    little = 1e-5 * sum(matrix[i][i] for i in range(size))
    little = jnp.where(little > 0, little, 1)
    rows = [[*own, b] for own, b in zip(matrix, right, strict=True)]
    for i in range(size):
        rows[i][i] = rows[i][i] + little
    for i in range(size):
        for j in (j for j in range(size) if j != i):
            share = rows[j][i] / rows[i][i]
            rows[j] = [a - share * b for a, b in zip(rows[j], rows[i], strict=True)]
    return [row[-1] / row[i] for i, row in enumerate(rows)]


def etdrk4_step(
    tables: Tables,
    nonlinear: Any,
    v: Any,
    *,
    step: float | Array = 0.0,
    comoving: Comoving | None = None,
) -> Any:
    """One step of modes, or of the numbers of another space; `nonlinear` is du/dt without what the
    tables integrate exactly, of a state and the share of the step that has passed.

    A step that is `comoving` has to know its own length.
    """
    n_v = nonlinear(v, 0.0)
    if comoving is None:
        return _stages(tables, nonlinear, v, n_v)
    if not comoving.transports:
        at_rest = [0.0] * len(comoving.wind)
        return comoving.shifted(at_rest, step, _stages(tables, nonlinear, v, n_v))
    velocity = comoving.velocity(v, n_v)

    def rest(w: Any, at: float) -> Any:
        return nonlinear(w, at) + comoving.carried(velocity, w)

    end = _stages(tables, rest, v, n_v + comoving.carried(velocity, v))
    return comoving.shifted(velocity, step, end)


def _stages(tables: Tables, nonlinear: Any, v: Any, n_v: Any) -> Any:
    whole, half, q, r, p, s, f1, f2, f3 = tables
    a = _times(half, v) + _times(q, n_v)
    n_a = nonlinear(a, 0.5)
    b = a + _times(r, n_a - n_v)
    n_b = nonlinear(b, 0.5)
    carried = _times(whole, v)
    c = carried + _times(p, n_v) + _times(s, n_b - n_v)
    n_c = nonlinear(c, 1.0)
    return carried + _times(f1, n_v) + _times(2 * f2, n_a + n_b) + _times(f3, n_c)

"""ETDRK4: a fourth-order Runge-Kutta scheme that integrates a diagonal linear part exactly.

The stages are Krogstad's (Generalized integrating factor methods for stiff PDEs, J. Comput. Phys.
203, 2005), which take as many products as those of Cox and Matthews and leave a third of their
error on Kuramoto-Sivashinsky; the factors are computed as in Kassam and Trefethen, Fourth-order
time-stepping for stiff PDEs, SIAM J. Sci. Comput. 26 (2005).
"""

import math
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


def etdrk4_step(tables: Tables, nonlinear: Any, v: Any) -> Any:
    """One step of modes, or of the numbers of another space; `nonlinear` is du/dt without what the
    tables integrate exactly, of a state and the share of the step that has passed."""
    whole, half, q, r, p, s, f1, f2, f3 = tables
    n_v = nonlinear(v, 0.0)
    a = _times(half, v) + _times(q, n_v)
    n_a = nonlinear(a, 0.5)
    b = a + _times(r, n_a - n_v)
    n_b = nonlinear(b, 0.5)
    carried = _times(whole, v)
    c = carried + _times(p, n_v) + _times(s, n_b - n_v)
    n_c = nonlinear(c, 1.0)
    return carried + _times(f1, n_v) + _times(2 * f2, n_a + n_b) + _times(f3, n_c)

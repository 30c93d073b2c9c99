"""The paper's local renderer: a window of (2W+1)^d anchor cells around each point.

On grids it runs in blocks. All pixels of an anchor cell share one neighbourhood; in coordinates
local to the cell each exponent is a quadratic polynomial, so exponents are a GEMM against the
monomials of the pixels, and every derivative is a polynomial times the same exponential: one GEMM
against polynomial coefficients.
"""

import math
from collections.abc import Callable, Iterable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..derivative import Derivative
from ..errors import SplatopError
from ..gaussians import Gaussians, Splats, anchor_positions
from ..grid import Grid
from ..spectral import Field, Filter, PassThrough
from .dense import minimum_image
from .renderer import PointRenderer, Rendered, add_offset, physical_terms

# Polynomial in the pixel's local coordinates: exponents per axis -> coefficient per primitive.
Polynomial = dict[tuple[int, ...], Array]

# Exponentials that are computed before they are summed: 1 MB in float32, a core's cache. In 3D that
# is a few cells, too few to keep the cores busy.
CACHED_EXPONENTIALS = 2**18
LEAST_CELLS = 16


class LocalRenderer(PointRenderer):
    """Sums the primitives of the `2 window + 1` nearest anchor cells along each axis (Eq. 6).

    What it leaves out starts `window` cells away: relative to the peak exp(-½ (window h/σ)²),
    7e-7 at σ = 0.75 h and 3e-4 at σ = h for the paper's window of 4.
    """

    window: int = eqx.field(static=True, default=4)

    @classmethod
    def from_numerics(cls, numerics) -> "LocalRenderer":
        return cls(numerics.window)

    def __call__(
        self,
        splats: Splats,
        derivatives: Iterable[Derivative],
        grid: Grid,
        filter: Filter = PassThrough(),
    ) -> Rendered:
        gaussians = splats.explicit()
        derivatives = tuple(derivatives)
        blocks = _Blocks(_anchors(gaussians), grid.points, self.window)
        fields = _render_blocks(gaussians, derivatives, grid, blocks)
        return {
            d: filter(add_offset(fields[i], d, gaussians.offset), grid.lengths)
            for i, d in enumerate(derivatives)
        }

    def at(
        self,
        splats: Splats,
        derivatives: Iterable[Derivative],
        points: Float[Array, "Q d"],
        lengths: tuple[float, ...],
    ) -> dict[Derivative, Float[Array, "C Q"]]:
        gaussians = splats.explicit()
        positions = points / jnp.asarray(lengths, points.dtype) % 1.0
        near, r = self._window(gaussians, positions)
        precision = gaussians.precision()[near]
        bell = jnp.exp(-0.5 * jnp.einsum("qmi,qmij,qmj->qm", r, precision, r))
        amplitude = gaussians.amplitude[near]
        rendered = {}
        for d in derivatives:
            factor = jnp.zeros_like(bell)
            for index, weight in physical_terms(d, lengths):
                # Evaluated at the point itself, the local coordinate is zero and m = -r.
                polynomial = _hermite(index, precision, -r)
                factor = factor + weight * polynomial[(0,) * gaussians.dims]
            values = jnp.einsum("qm,qmc->cq", bell * factor, amplitude)
            rendered[d] = add_offset(values, d, gaussians.offset)
        return rendered

    def basis(self, gaussians: Gaussians, positions: Float[Array, "Q d"]) -> Float[Array, "Q G"]:
        near, r = self._window(gaussians, positions % 1.0)
        bell = jnp.exp(-0.5 * jnp.einsum("qmi,qmij,qmj->qm", r, gaussians.precision()[near], r))
        rows = jnp.arange(len(positions))[:, None]
        empty = jnp.zeros((len(positions), len(gaussians.center)), bell.dtype)
        return empty.at[rows, near].add(bell)

    def kernels(self, gaussians: Gaussians, points: tuple[int, ...]) -> "CellKernels":
        """Each primitive on the grid of `points`, as a linear map from amplitudes to the field."""
        return CellKernels.of(gaussians, _Blocks(_anchors(gaussians), points, self.window))

    def _window(self, gaussians: Gaussians, positions: Float[Array, "Q d"]):
        """The primitives around each point: indices `(Q, M)`, displacements `(Q, M, d)`."""
        anchors = np.asarray(_anchors(gaussians))
        around = _window_offsets(len(anchors), self.window)
        cell = jnp.minimum((positions * anchors).astype(int), anchors - 1)[:, None] + around
        near = jnp.ravel_multi_index(
            tuple(jnp.moveaxis(cell % anchors, -1, 0)), tuple(anchors), mode="clip"
        )
        inside = _offset_in_cell(gaussians)[near]
        return near, positions[:, None] - ((cell + 0.5) / anchors + inside)


class CellKernels(eqx.Module):
    """What local rendering sums, kept: worth its memory where amplitudes change and geometry does
    not."""

    bells: Float[Array, "cells M P"]
    blocks: "_Blocks" = eqx.field(static=True)

    @classmethod
    def of(cls, gaussians: Gaussians, blocks: "_Blocks") -> "CellKernels":
        cells = _Cells(gaussians, blocks)
        bells = cells.map(lambda near, pixels: _bells(*cells.around(near), pixels))
        return cls(bells, blocks)

    def __call__(self, amplitude: Float[Array, "G C"]) -> Field:
        near = amplitude[jnp.asarray(self.blocks.neighbours)]
        return self.blocks.assemble(jnp.einsum("kmc,kmp->ckp", near, self.bells))


def _anchors(gaussians: Gaussians) -> tuple[int, ...]:
    if gaussians.anchors is None:
        raise SplatopError(
            "local rendering expected Gaussians on an anchor lattice, got free ones: "
            "use DenseRenderer or FourierRenderer"
        )
    return gaussians.anchors


def _window_offsets(dims: int, window: int) -> np.ndarray:
    """Cell offsets of the window, `(M, d)`; in a box smaller than it, periodic images recur."""
    axis = np.arange(-window, window + 1)
    return np.stack(np.meshgrid(*(axis,) * dims, indexing="ij"), -1).reshape(-1, dims)


def _offset_in_cell(gaussians: Gaussians) -> Float[Array, "G d"]:
    """Where each primitive sits relative to the centre of its own cell, in box fractions."""
    home = jnp.asarray(anchor_positions(_anchors(gaussians)), gaussians.center.dtype)
    return minimum_image(gaussians.center - home)


class _Blocks:
    """How pixels fall into anchor cells: index tables, made once while tracing.

    A does not have to divide N: cells hold up to `P` pixels per axis, and the last one of a
    smaller cell is repeated.
    """

    def __init__(self, anchors: tuple[int, ...], points: tuple[int, ...], window: int):
        dims = len(anchors)
        pixels, slots, local = [], [], []
        for a, n in zip(anchors, points, strict=True):
            if n < a:
                raise SplatopError(
                    f"expected at least as many grid points as anchors along each axis, "
                    f"got {points} points and {anchors} anchors: use fewer anchors"
                )
            cell = np.arange(n) * a // n
            first = np.searchsorted(cell, np.arange(a))
            count = np.bincount(cell, minlength=a)
            most = int(count.max())
            inside = first[:, None] + np.minimum(np.arange(most), count[:, None] - 1)
            pixels.append(inside)
            slots.append((cell, np.arange(n) - first[cell]))
            # Local coordinate: distance from the cell's centre, in anchor spacings.
            local.append(inside * a / n - (np.arange(a)[:, None] + 0.5))
        self.anchors = anchors
        self.per_axis = tuple(p.shape[1] for p in pixels)
        self.uniform = all(n % a == 0 for a, n in zip(anchors, points, strict=True))
        self._slots = slots
        self.local = local
        cells = np.stack(np.meshgrid(*(np.arange(a) for a in anchors), indexing="ij"), -1).reshape(
            -1, dims
        )
        self.around = _window_offsets(dims, window)
        near = (cells[:, None] + self.around) % np.asarray(anchors)
        self.neighbours = np.ravel_multi_index(tuple(np.moveaxis(near, -1, 0)), anchors)

    def local_coordinates(self) -> np.ndarray:
        """`(cells or 1, d, P^d)`; one row serves all cells where A divides N."""
        dims = len(self.anchors)
        axes = [table[:1] for table in self.local] if self.uniform else self.local
        counts = [len(table) for table in axes]
        coordinates = []
        for axis, table in enumerate(axes):
            shape = [1] * (2 * dims)
            shape[axis], shape[dims + axis] = table.shape
            coordinates.append(np.broadcast_to(table.reshape(shape), (*counts, *self.per_axis)))
        return np.stack(coordinates).reshape(dims, int(np.prod(counts)), -1).transpose(1, 0, 2)

    def assemble(self, blocks: Array) -> Array:
        """`(..., cells, P^d)` to the pixels of the grid `(..., *N)`."""
        dims = len(self.anchors)
        lead = blocks.shape[:-2]
        blocks = blocks.reshape(*lead, *self.anchors, *self.per_axis)
        if self.uniform:
            order = [axis + part * dims for axis in range(dims) for part in range(2)]
            blocks = blocks.transpose(
                *range(len(lead)), *(len(lead) + position for position in order)
            )
            points = tuple(a * p for a, p in zip(self.anchors, self.per_axis, strict=True))
            return blocks.reshape(*lead, *points)
        cell = np.ix_(*(cell for cell, _ in self._slots))
        slot = np.ix_(*(slot for _, slot in self._slots))
        return blocks[(..., *cell, *slot)]


class _Cells:
    """Primitives by the cell whose pixels they reach, in units of the anchor spacing, in which
    everything is of order one, as float32 needs."""

    def __init__(self, gaussians: Gaussians, blocks: _Blocks):
        self._dims, self._dtype = gaussians.dims, gaussians.center.dtype
        anchors = jnp.asarray(blocks.anchors, self._dtype)
        precision = gaussians.precision() / (anchors[:, None] * anchors[None, :])
        inside = _offset_in_cell(gaussians) * anchors
        # One table, so that the geometry of a neighbourhood is one gather.
        self._geometry = jnp.concatenate([precision.reshape(-1, self._dims**2), inside], axis=1)
        self._around = jnp.asarray(blocks.around, self._dtype)
        self._blocks = blocks

    def around(self, near: Array) -> tuple[Float[Array, "M d d"], Float[Array, "M d"]]:
        """Precision and centre of the primitives `near` a cell, relative to its own centre."""
        of_cell = self._geometry[near]
        precision = of_cell[:, : self._dims**2].reshape(-1, self._dims, self._dims)
        return precision, self._around + of_cell[:, self._dims**2 :]

    def map(self, of_cell: Callable[[Array, Float[Array, "d P"]], Array]) -> Array:
        """`of_cell(near, pixels)` for every cell, as many at once as the cache holds."""
        near = jnp.asarray(self._blocks.neighbours)
        pixels = jnp.asarray(self._blocks.local_coordinates(), self._dtype)
        at_once = max(LEAST_CELLS, CACHED_EXPONENTIALS // (near.shape[1] * pixels.shape[2]))
        if self._blocks.uniform:
            return jax.lax.map(lambda one: of_cell(one, pixels[0]), near, batch_size=at_once)
        return jax.lax.map(lambda one: of_cell(*one), (near, pixels), batch_size=at_once)


def _bells(p: Array, m: Array, pixels: Float[Array, "d P"]) -> Float[Array, "M P"]:
    return jnp.exp(_evaluate(_quadratic(p, m), pixels))


def _render_blocks(
    gaussians: Gaussians, derivatives: tuple[Derivative, ...], grid: Grid, blocks: _Blocks
) -> Float[Array, "D C *N"]:
    channels = gaussians.amplitude.shape[1]
    lengths = tuple(length / a for length, a in zip(grid.lengths, blocks.anchors, strict=True))
    cells = _Cells(gaussians, blocks)

    # The backward pass computes a cell again rather than keep the exponentials of all of them.
    @jax.checkpoint
    def render_cell(near: Array, pixels: Float[Array, "d P"]) -> Float[Array, "D C P"]:
        """All derivatives at the pixels of one cell, from the primitives `near` it."""
        p, m = cells.around(near)
        amplitude = gaussians.amplitude[near].T
        polynomials = [_derivative_polynomial(d, lengths, p, m) for d in derivatives]
        rows = jnp.stack([c for polynomial in polynomials for c in polynomial.values()])
        rows = (rows[:, None] * amplitude).reshape(-1, len(near))
        sums = (rows @ _bells(p, m, pixels)).reshape(-1, channels, pixels.shape[1])
        fields, start = [], 0
        for polynomial in polynomials:
            part = sums[start : start + len(polynomial)]
            fields.append(
                sum(_monomial(k, pixels) * s for k, s in zip(polynomial, part, strict=True))
            )
            start += len(polynomial)
        return jnp.stack(fields)

    return blocks.assemble(jnp.moveaxis(cells.map(render_cell), 0, 2))


def _derivative_polynomial(
    derivative: Derivative, lengths: tuple[float, ...], p: Array, m: Array
) -> Polynomial:
    """What multiplies the exponential, in the units of p and m, of which a box has `lengths`."""
    total: Polynomial = {}
    for index, weight in physical_terms(derivative, lengths):
        for key, coefficient in _hermite(index, p, m).items():
            total[key] = total.get(key, 0.0) + weight * coefficient
    return total


def _monomial(powers: tuple[int, ...], x: Float[Array, "d P"]) -> Float[Array, " P"]:
    return math.prod(
        (x[axis] for axis, power in enumerate(powers) for _ in range(power)),
        start=jnp.ones_like(x[0]),
    )


def _evaluate(polynomial: Polynomial, x: Float[Array, "d P"]) -> Float[Array, "M P"]:
    """For each primitive at each pixel. Written as a sum of products, so that it and the
    exponential around it are one pass."""
    terms = [c[:, None] * _monomial(k, x) for k, c in polynomial.items()]
    return sum(terms[1:], start=terms[0])


def _unit(axis: int, dims: int) -> tuple[int, ...]:
    return tuple(int(i == axis) for i in range(dims))


def _quadratic(p: Array, m: Array) -> Polynomial:
    """`-½ (x - m)ᵀ P (x - m)` as a polynomial in x."""
    dims = m.shape[-1]
    pm = jnp.einsum("...ij,...j->...i", p, m)
    polynomial: Polynomial = {(0,) * dims: -0.5 * jnp.sum(m * pm, axis=-1)}
    for a in range(dims):
        polynomial[_unit(a, dims)] = pm[..., a]
        for b in range(a, dims):
            key = tuple(i + j for i, j in zip(_unit(a, dims), _unit(b, dims), strict=True))
            polynomial[key] = p[..., a, b] * (-0.5 if a == b else -1.0)
    return polynomial


def _hermite(index: tuple[int, ...], p: Array, m: Array) -> Polynomial:
    """The polynomial H with `∂^index exp(q) = H exp(q)`, q the quadratic above.

    From H_{α + e_a} = ∂_a H_α + (∂_a q) H_α, where ∂_a q = (P m - P x)_a.
    """
    dims = m.shape[-1]
    pm = jnp.einsum("...ij,...j->...i", p, m)
    h: Polynomial = {(0,) * dims: jnp.ones_like(pm[..., 0])}
    for axis in (a for a, order in enumerate(index) for _ in range(order)):
        following: Polynomial = {}

        def add(key, value, into=following):
            into[key] = into.get(key, 0.0) + value

        for key, coefficient in h.items():
            if key[axis]:
                lower = tuple(k - (i == axis) for i, k in enumerate(key))
                add(lower, key[axis] * coefficient)
            add(key, pm[..., axis] * coefficient)
            for b in range(dims):
                higher = tuple(k + (i == b) for i, k in enumerate(key))
                add(higher, -p[..., axis, b] * coefficient)
        h = following
    return h

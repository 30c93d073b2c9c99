"""The smooth fields on a box that obey its conditions: products of one basis for each axis."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..derivative import Derivative, value
from ..domain import AXES, Domain
from ..errors import SplatopError
from ..grid import Grid
from ..points import Layout, Points
from .axis import AxisBasis, ring, stacked, walls
from .chebyshev import chebyshev
from .potentials import inverse_numbers, inverse_rates
from .resampling import Fractions, Sampling, by_axis, root_of

Coefficients = Float[Array, "C *R"]
# A fit prefers smooth fields where the samples leave a choice: the weight of the function with the
# highest energy, relative to the largest singular value of the fit.
_SMOOTH = 1e-6


class BoxSpace(eqx.Module):
    """Fields on a box, `size` numbers for each axis and field: harmonics of the domain.

    `sizes` are anchors along an axis with ends, and the highest mode around a periodic one.
    `degree` is that of the products which are evaluated at the working points without aliasing.
    `between` two ends the functions are combinations of "gaussians"; the reference solver takes
    "chebyshev" polynomials, and its `sizes` are nodes.
    Fields with different conditions have different functions on the same Gaussians; where one has
    fewer of them, the rest of its numbers stay 0.
    """

    domain: Domain = eqx.field(static=True)
    fields: tuple[str, ...] = eqx.field(static=True)
    sizes: tuple[int, ...] = eqx.field(static=True)
    degree: int = eqx.field(static=True, default=2)
    between: str = eqx.field(static=True, default="gaussians")

    def __check_init__(self):
        if len(self.sizes) != self.domain.dims:
            raise SplatopError(
                f"expected one size for each of the {self.domain.dims} axes, got {self.sizes}"
            )

    @property
    def dims(self) -> int:
        return self.domain.dims

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of one field along each axis."""
        return tuple(max(b.size for b in self._bases(axis)) for axis in range(self.dims))

    @property
    def scattered(self) -> bool:
        """Whether working points have coordinates of their own, rather than by axis."""
        return False

    def sampled(self, points: tuple[int, ...], layout: Layout) -> Fractions:
        """Where the samples of a state lie along each axis."""
        if isinstance(layout, Points):
            return by_axis(layout)  # which refuses them
        for name, n, least in zip(AXES, points, self.sizes, strict=False):
            if n < least:
                raise SplatopError(
                    f"expected at least {least} points along {name}, as many as the physics has "
                    f"functions there, got {n}: give states on a finer grid, or train on these"
                )
        return Grid(points, (1.0,) * len(points), layout=layout).fractions()

    def working_points(self) -> tuple[np.ndarray, ...]:
        """Physical coordinates of the working points along each axis."""
        return tuple(
            axis.origin + axis.length * self._points(number)
            for number, axis in enumerate(self.domain.axes)
        )

    def eigenvalues(self, axis: int) -> np.ndarray | None:
        """Of the second derivative along an axis, `(C, r)`; None if an end of a field is free."""
        found = [basis.laplacian for basis in self._bases(axis)]
        if any(one is None for one in found):
            return None
        length, width = self.domain.axes[axis].length, self.shape[axis]
        padded = [np.pad(one, (0, width - len(one))) for one in found if one is not None]
        values = np.stack(padded) / length**2
        values[np.abs(values) < 1e-7 / length**2] = 0.0  # the constant, to rounding
        return values

    def energies(self) -> np.ndarray:
        """`∫ |∇φ|²` of each function, `(C, *r)`: the square of its wavenumber."""
        total: Any = 0.0
        for axis in range(self.dims):
            width, length = self.shape[axis], self.domain.axes[axis].length
            rows = [np.pad(b.energies, (0, width - b.size)) for b in self._bases(axis)]
            along = np.stack(rows) / length**2
            total = total + along.reshape(
                -1, *(width if i == axis else 1 for i in range(self.dims))
            )
        return np.broadcast_to(total, (len(self.fields), *self.shape))

    def diagonal(self, derivative: Derivative) -> np.ndarray | None:
        """What the operator multiplies each number by, `(C, *r)`; None if it mixes them."""
        if derivative.inverse_laplacians:
            return None
        total: Any = 0.0
        for index, weight in derivative.terms:
            factor: Any = weight
            for axis, order in enumerate(index):
                if not order:
                    continue
                values = self.eigenvalues(axis) if order % 2 == 0 else None
                if values is None:
                    return None
                place = (-1, *(values.shape[1] if i == axis else 1 for i in range(self.dims)))
                factor = factor * (values ** (order // 2)).reshape(place)
            total = total + factor
        return np.broadcast_to(total, (len(self.fields), *self.shape))

    def fit(self, u: Float[Array, "C *N"], along: Sampling) -> Coefficients:
        """The numbers whose field is closest to samples of a field with homogeneous conditions."""
        return self._each_axis(u, [self._fit(axis, x) for axis, x in enumerate(by_axis(along))])

    def evaluate(self, c: Coefficients, along: Sampling) -> Float[Array, "C *N"]:
        """The field at the points of a grid."""
        matrices = [self._matrix(axis, x, 0) for axis, x in enumerate(by_axis(along))]
        return self._each_axis(c, matrices)

    def roots(self, along: Sampling) -> tuple[np.ndarray, ...]:
        """A matrix for each axis, `(r, r)`, or `(C, r, r)` where fields differ: all of them make
        numbers as large as the samples of their field are, and noise of samples white."""
        return tuple(root_of(self._matrix(axis, x, 0)) for axis, x in enumerate(by_axis(along)))

    def gain(self, along: Sampling) -> np.ndarray:
        """Variance of each number from samples of unit variance, `(C, *r)`."""
        total: Any = 1.0
        for axis, x in enumerate(by_axis(along)):
            fit = self._fit(axis, x)
            squares = np.sum(np.broadcast_to(fit, (len(self.fields), *fit.shape[-2:])) ** 2, -1)
            place = [len(squares), *(1,) * self.dims]
            place[axis + 1] = squares.shape[1]
            total = total * squares.reshape(place)
        return total

    def at(
        self, c: Coefficients, places: Float[np.ndarray, "Q d"], derivative: Derivative
    ) -> Float[Array, "C Q"]:
        """A derivative of the field at scattered places, in physical coordinates."""
        total: Any = 0.0
        for index, weight in derivative.terms:
            part = c
            for number, axis in reversed(list(enumerate(self.domain.axes))):
                x = (np.asarray(places)[:, number] - axis.origin) / axis.length
                matrix = jnp.asarray(self._matrix(number, x, index[number]), c.dtype)
                # The places become the last axis, the next axis of space is the one before it.
                part = (
                    jnp.einsum("cqi,c...i->c...q", _per_field(matrix, len(c)), part)
                    if number == self.dims - 1
                    else jnp.einsum("cqi,c...iq->c...q", _per_field(matrix, len(c)), part)
                )
            total = total + weight * part
        return total

    def derivatives(
        self, c: Coefficients, wanted: Iterable[Derivative]
    ) -> dict[Derivative, Float[Array, "C *Q"]]:
        """Derivatives of the field at the working points."""
        # By inverse Laplacians, and the orders along the axes that are contracted already.
        partial: dict[tuple[int, tuple[int, ...]], Array] = {}

        def along(inverse: int, index: tuple[int, ...]) -> Array:
            """Contracted along the first axes, which derivatives share."""
            key = inverse, index
            if key not in partial and not index:
                partial[key] = self._inverted(c, inverse)
            elif key not in partial:
                axis = len(index) - 1
                matrix = self._matrix(axis, self._points(axis), index[-1])
                partial[key] = _contract(matrix, along(inverse, index[:-1]), axis + 1)
            return partial[key]

        def at_points(d: Derivative) -> Array:
            parts = (weight * along(d.inverse_laplacians, index) for index, weight in d.terms)
            return sum(parts, start=jnp.zeros((), c.dtype))

        walled = not self.domain.all_periodic
        return {
            d: self.potential(at_points(value(self.dims)), d)
            if d.inverse_laplacians and walled
            else at_points(d)
            for d in wanted
        }

    def _inverted(self, c: Coefficients, times: int) -> Coefficients:
        """The numbers of `Δ^-times` of a field around a periodic box, without its mean."""
        return c * jnp.asarray(inverse_rates(self, times), c.dtype) if times else c

    def potential(self, values: Float[Array, "C *Q"], wanted: Derivative) -> Float[Array, "C *Q"]:
        """A derivative of the inverse Laplacian of values at the working points, which is 0, or
        flat, at the edges where it has a condition. It has no mean where nothing sets one."""
        space = self.of_potentials
        numbers = inverse_numbers(space, values, wanted.inverse_laplacians)
        return space.derivatives(numbers, [wanted.forward])[wanted.forward]

    @property
    def of_potentials(self) -> "BoxSpace":
        """The space of the fields' inverse Laplacians."""
        return replace(self, domain=self.domain.of_potentials(self.fields))

    def project(self, values: Float[Array, "C *Q"]) -> Coefficients:
        """Values at the working points onto the space, in L²."""
        return self._each_axis(values, [self._projection(axis) for axis in range(self.dims)])

    def linear(self, derivative: Derivative) -> Array | None:
        """How it acts on all numbers as one matrix: axis by axis is cheaper here."""
        return None

    def edge_coordinates(self, side: str) -> dict[str, np.ndarray]:
        """Coordinates of the working points of a side, by the axes along it."""
        along = self.working_points()
        names = [AXES[axis] for axis in range(self.dims) if AXES[axis] != side[0]]
        others = [x for axis, x in enumerate(along) if AXES[axis] != side[0]]
        mesh = np.meshgrid(*others, indexing="ij") if others else []
        return dict(zip(names, mesh, strict=True))

    def lift(self, edges: Mapping[tuple[str, str], Any]) -> Any:
        """Numbers `(C, *R)`, without conditions, of a field with these values at the edges."""
        from .lift import lift  # it is made of spaces

        return lift(self, edges)

    def lift_evaluate(self, lifted: Array, along: Sampling) -> Float[Array, "C *N"]:
        return self._unconstrained.evaluate(lifted, along)

    def lift_derivatives(
        self, lifted: Array, wanted: Iterable[Derivative]
    ) -> dict[Derivative, Float[Array, "C *Q"]]:
        wanted, itself = tuple(wanted), value(self.dims)
        plain = {itself, *(d for d in wanted if not d.inverse_laplacians)}
        found = self._unconstrained.derivatives(lifted, plain)
        return {d: found[d] if d in found else self.potential(found[itself], d) for d in wanted}

    @property
    def _unconstrained(self) -> "BoxSpace":
        from .lift import unconstrained

        return unconstrained(self)

    def fractions(self) -> Fractions:
        """Where the working points lie along each axis."""
        return tuple(self._points(axis) for axis in range(self.dims))

    def _each_axis(self, values: Array, matrices: Sequence[np.ndarray]) -> Array:
        for axis, matrix in enumerate(matrices, start=1):
            values = _contract(matrix, values, axis)
        return values

    def _bases(self, axis: int) -> tuple[AxisBasis, ...]:
        """One basis for each field."""
        return _bases(self.domain, self.fields, axis, self.sizes[axis], self.between)

    def _points(self, axis: int) -> np.ndarray:
        return self._bases(axis)[0].points(self.degree)

    def _matrix(self, axis: int, x: np.ndarray, order: int) -> np.ndarray:
        """Derivatives of the functions at fractions of an axis: `(Q, r)`, or `(C, Q, r)` where
        fields differ."""
        key = x.tobytes()
        scale = self.domain.axes[axis].length ** -order
        return scale * _evaluated(self._bases(axis), key, order)

    def _fit(self, axis: int, x: np.ndarray) -> np.ndarray:
        return _fitting(self._bases(axis), x.tobytes())

    def _projection(self, axis: int) -> np.ndarray:
        return _analysis(self._bases(axis), self.degree)


def _contract(matrix: np.ndarray, values: Array, axis: int) -> Array:
    """The matrix times the values along one axis; a matrix for each field where fields differ."""
    m = jnp.asarray(matrix, values.dtype)
    moved = jnp.moveaxis(values, axis, -1)
    if m.ndim == 2:
        return jnp.moveaxis(moved @ m.T, -1, axis)
    spare = (1,) * (moved.ndim - 3)
    transposed = jnp.swapaxes(m, -1, -2).reshape(len(m), *spare, m.shape[2], m.shape[1])
    if moved.ndim == 2:
        return jnp.einsum("cqr,cr->cq", m, moved)
    return jnp.moveaxis(moved @ transposed, -1, axis)


def _per_field(matrix: Array, channels: int) -> Array:
    return matrix if matrix.ndim == 3 else jnp.broadcast_to(matrix, (channels, *matrix.shape))


@lru_cache(maxsize=512)
def _bases(
    domain: Domain, fields: tuple[str, ...], axis: int, size: int, between: str
) -> tuple[AxisBasis, ...]:
    if domain.axes[axis].periodic:
        return (ring(size),) * len(fields)
    make = {"gaussians": walls, "chebyshev": chebyshev}[between]
    ends = [domain.ends(axis, name) for name in fields]
    return tuple(make(size, (low.kind, high.kind)) for low, high in ends)


@lru_cache(maxsize=1024)
def _evaluated(bases: tuple[AxisBasis, ...], key: bytes, order: int) -> np.ndarray:
    """Derivatives at fractions of an axis, along that of length 1: `(Q, r)`, or `(C, Q, r)`."""
    x = np.frombuffer(key)
    return stacked({basis: basis.evaluate(x, order) for basis in set(bases)}, bases)


@lru_cache(maxsize=256)
def _analysis(bases: tuple[AxisBasis, ...], degree: int) -> np.ndarray:
    return stacked({basis: basis.analysis(degree) for basis in set(bases)}, bases, axis=-2)


@lru_cache(maxsize=256)
def _fitting(bases: tuple[AxisBasis, ...], key: bytes) -> np.ndarray:
    """Least squares from samples at fractions of an axis: `(r, N)`, or `(C, r, N)`.

    Of the fields that fit the samples equally well the smoothest is taken. There are several where
    points are few: values that ends set tell nothing, and the others are fewer than the functions.
    """
    x = np.frombuffer(key)
    fits = {basis: _smoothest(basis.evaluate(x), basis.energies) for basis in set(bases)}
    return stacked(fits, bases, axis=-2)


def _smoothest(rows: np.ndarray, energies: np.ndarray) -> np.ndarray:
    """The numbers `(r, N)` of a field for each of its samples, which `rows` `(N, r)` give."""
    rough = np.square(np.abs(energies) / np.max(np.abs(energies)))
    weight = _SMOOTH * np.linalg.norm(rows, 2) * rough
    whole = np.concatenate([rows, np.diag(weight)])
    return np.linalg.pinv(whole, rcond=1e-14)[:, : len(rows)]

"""The smooth fields on a shape that obey its conditions: one dense space of Gaussians."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..derivative import Derivative, value
from ..domain import Domain
from ..errors import SplatopError
from ..points import Layout, Points
from ..precomputed import Precomputed
from ..shapes import Quadrature
from .axis import stacked
from .kept import shape_basis_of
from .resampling import Sampling, at_points, root_of
from .shape_basis import Kinds, ShapeBasis, edge_points, spacing_of, working_nodes
from .shape_lift import check_lift, free_basis, lifting
from .shape_rows import fitting, laplacian_power, rows_of

Coefficients = Float[Array, "C R"]


class ShapeSpace(eqx.Module):
    """Fields on a domain with a shape, r numbers for each field: its harmonics.

    Answers what a `BoxSpace` does. `sizes` are the anchors of the lattice along the sides of the
    box. The matrices of the derivatives that are `wanted`, and those of samples at `sampling`, are
    precomputed arrays, which compiled functions get as arguments; others become constants of a
    compiled function when they are asked for. Fields with different conditions have different
    functions on the same Gaussians; where one has fewer of them, the rest of its numbers stay 0.
    """

    domain: Domain = eqx.field(static=True)
    fields: tuple[str, ...] = eqx.field(static=True)
    sizes: tuple[int, ...] = eqx.field(static=True)
    wanted: tuple[Derivative, ...] = eqx.field(static=True, default=())
    sampling: Points | None = eqx.field(static=True, default=None)
    tables: Precomputed | None = None

    def __check_init__(self):
        if self.domain.shape is None:
            raise SplatopError("expected a domain with a shape, got a box: use BoxSpace")
        if len(self.sizes) != 2:
            raise SplatopError(
                f"expected one number of anchors for each of 2 axes, got {self.sizes}"
            )
        if self.tables is None:
            # Once, also where this is built inside a function that JAX traces.
            with jax.ensure_compile_time_eval():
                held = Precomputed({k: jnp.asarray(v) for k, v in self._host_tables().items()})
            object.__setattr__(self, "tables", held)

    # --- what it is --------------------------------------------------------------------------

    @property
    def dims(self) -> int:
        return 2

    @property
    def scattered(self) -> bool:
        """Whether working points have coordinates of their own, rather than by axis."""
        return True

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of one field."""
        return (max(basis.size for basis in self.bases),)

    @property
    def bases(self) -> tuple[ShapeBasis, ...]:
        """One for each field."""
        return tuple(
            shape_basis_of(self._plain, self.sizes, _kinds(self.domain, name))
            for name in self.fields
        )

    @property
    def _plain(self) -> Domain:
        """The domain without what it sets, of which only the kind matters."""
        return self.domain.with_conditions({})

    @property
    def spacing(self) -> float:
        return max(spacing_of(self.domain.lengths, self.sizes))

    @property
    def nodes(self) -> Quadrature:
        assert self.domain.shape is not None
        singular = {at for basis in self.bases for at in basis.gaussians.singular}
        return working_nodes(self.domain.shape, self.spacing, tuple(sorted(singular)))

    def working_points(self) -> tuple[np.ndarray, ...]:
        """Physical coordinates of the working points."""
        return self.nodes.places[:, 0], self.nodes.places[:, 1]

    def fractions(self) -> tuple[np.ndarray, ...]:
        """The same as fractions of the box."""
        axes = self.domain.axes
        return tuple(
            (x - axis.origin) / axis.length
            for x, axis in zip(self.working_points(), axes, strict=True)
        )

    def energies(self) -> np.ndarray:
        """`∫ |∇φ|²` of each function, `(C, r)`: the square of its wavenumber."""
        return np.maximum(self._padded([basis.energies for basis in self.bases]), 0.0)

    def diagonal(self, derivative: Derivative) -> np.ndarray | None:
        """What the operator multiplies each number by, `(C, r)`; None if it mixes them."""
        if derivative.inverse_laplacians:
            return None
        power = laplacian_power(derivative)
        if power is None:
            return None
        order, weight = power
        found = [basis.laplacian for basis in self.bases]
        if order and any(one is None for one in found):
            return None
        if not order:
            return np.full((len(self.fields), *self.shape), weight)
        rows = [weight * one**order for one in found if one is not None]
        return self._padded(rows)

    # --- samples -----------------------------------------------------------------------------

    def sampled(self, points: tuple[int, ...], layout: Layout) -> Points:
        """Where the samples of a state lie; refused if that is not known."""
        if not isinstance(layout, Points) or layout.points != tuple(points):
            known = layout.points if isinstance(layout, Points) else "none"
            raise SplatopError(
                f"expected a state at the points of the model, (C, P) with P = {known}, got "
                f"{tuple(points)}: give the model other points (model.at(points))"
            )
        return layout

    def fit(self, u: Float[Array, "C P"], at: Sampling) -> Coefficients:
        """The numbers whose field is closest to samples of a field with homogeneous conditions."""
        return _apply(self._table("fit", at, self.fit_matrix), u)

    def evaluate(self, c: Coefficients, at: Sampling) -> Float[Array, "C P"]:
        """The field at points."""
        return _apply(self._table("evaluate", at, self.sample_matrix), c)

    def sample_matrix(self, at: Points) -> np.ndarray:
        """The functions at points: `(P, r)`, or `(C, P, r)` where fields differ."""
        return self._matrix(at.places, value(2))

    def roots(self, at: Sampling) -> tuple[np.ndarray, ...]:
        """One matrix that makes numbers as large as the samples of their field are, and noise of
        samples white."""
        return (root_of(self.sample_matrix(at_points(at))),)

    def gain(self, at: Sampling) -> np.ndarray:
        """Variance of each number from samples of unit variance, `(C, r)`."""
        fit = self.fit_matrix(at_points(at))
        return np.broadcast_to(np.sum(fit**2, axis=-1), (len(self.fields), *self.shape))

    def at(
        self, c: Coefficients, places: Float[np.ndarray, "Q d"], derivative: Derivative
    ) -> Float[Array, "C Q"]:
        """A derivative of the field at scattered places, in physical coordinates."""
        return _apply(jnp.asarray(self._matrix(np.asarray(places), derivative), c.dtype), c)

    def derivatives(
        self, c: Coefficients, wanted: Iterable[Derivative]
    ) -> dict[Derivative, Float[Array, "C Q"]]:
        """Derivatives of the field at the working points."""
        return {d: _apply(self._at_nodes("d", d, self._matrix), c) for d in wanted}

    def project(self, values: Float[Array, "C Q"]) -> Coefficients:
        """Values at the working points onto the space, in L²."""
        assert self.tables is not None
        return _apply(self.tables["project"].astype(values.dtype), values)

    @property
    def of_potentials(self) -> "ShapeSpace":
        """The space of the fields' inverse Laplacians."""
        domain = self.domain.of_potentials(self.fields)
        return ShapeSpace(domain, self.fields, self.sizes)

    def linear(self, derivative: Derivative) -> Array | None:
        """How it acts on the numbers of fields that share their conditions, `(r, r)`."""
        if len(set(self._kinds)) > 1 or derivative not in self.wanted:
            return None
        assert self.tables is not None
        found = self.tables[f"m{self.wanted.index(derivative)}"]
        return found if found.ndim == 2 else None

    # --- what is set at the edges --------------------------------------------------------------

    def edge_coordinates(self, side: str) -> dict[str, np.ndarray]:
        """Coordinates of the points along an edge at which a lift takes what is set."""
        names, places, _ = self._edges
        here = places[np.array(names) == side]
        return {"x": here[:, 0], "y": here[:, 1]}

    def lift(self, edges: Mapping[tuple[str, str], Any]) -> Any:
        """What is set at all points of the edges, `(C, E)`: the numbers of the field that takes
        it."""
        names = np.array(self._edges[0])
        rows = []
        for field in self.fields:
            row: Any = np.zeros(len(names))
            for (side, name), given in edges.items():
                if name == field:
                    placed = np.zeros((len(names), int((names == side).sum())))
                    placed[np.flatnonzero(names == side), np.arange(placed.shape[1])] = 1.0
                    row = row + placed @ given
            rows.append(row)
        if any(isinstance(row, jax.Array) for row in rows):
            return jnp.stack(rows)
        for name, kinds, row in zip(self.fields, self._kinds, rows, strict=True):
            check_lift(self._plain, self.sizes, kinds, name, row)
        return np.stack(rows)

    def lift_evaluate(self, lifted: Float[Array, "C E"], at: Sampling) -> Float[Array, "C P"]:
        def make(at: Points) -> np.ndarray:
            return self._lift_matrix(at.places, value(2))

        return _apply(self._table("lift", at, make), lifted)

    def lift_derivatives(
        self, lifted: Float[Array, "C E"], wanted: Iterable[Derivative]
    ) -> dict[Derivative, Float[Array, "C Q"]]:
        return {d: _apply(self._at_nodes("lift_d", d, self._lift_matrix), lifted) for d in wanted}

    @property
    def _edges(self) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
        assert self.domain.shape is not None
        return edge_points(self.domain.shape, self.spacing)

    @property
    def _sets_something(self) -> bool:
        return any(one.value != 0.0 for one in self.domain.conditions.values())

    def _lift_matrix(self, places: np.ndarray, derivative: Derivative) -> np.ndarray:
        """From what is set at the edges to a derivative of the field that takes it."""
        return self._per_field(
            derivative,
            lambda own, inverse: (
                rows_of(
                    free_basis(self._plain, self.sizes, own),
                    inverse,
                    self.nodes,
                    places,
                    derivative,
                )
                @ lifting(self._plain, self.sizes, own)
            ),
        )

    # --- matrices ------------------------------------------------------------------------------

    @property
    def _kinds(self) -> tuple[Kinds, ...]:
        return tuple(_kinds(self.domain, name) for name in self.fields)

    def _matrix(self, places: np.ndarray, derivative: Derivative) -> np.ndarray:
        """Derivatives of the functions at places: `(Q, r)`, or `(C, Q, r)` where fields differ."""
        found = dict(zip(self._kinds, self.bases, strict=True))
        return self._per_field(
            derivative,
            lambda own, inverse: rows_of(found[own], inverse, self.nodes, places, derivative),
        )

    def _per_field(
        self, derivative: Derivative, make: Callable[[Kinds, ShapeBasis | None], np.ndarray]
    ) -> np.ndarray:
        """What is made from the conditions of each field, and from the functions that its inverse
        Laplacian is made of where the derivative has one."""
        inverses: list[Kinds] = [()] * len(self.fields)
        if derivative.inverse_laplacians:
            domain = self.domain.of_potentials(self.fields)
            inverses = [_kinds(domain, name) for name in self.fields]
        order = tuple(zip(self._kinds, inverses, strict=True))
        rows = {
            (own, inverse): make(
                own, shape_basis_of(self._plain, self.sizes, inverse) if inverse else None
            )
            for own, inverse in set(order)
        }
        return stacked(rows, order)

    def fit_matrix(self, at: Points) -> np.ndarray:
        """Least squares from samples: `(r, P)`, or `(C, r, P)`."""
        found = dict(zip(self._kinds, self.bases, strict=True))
        least = max(basis.size for basis in found.values())
        if len(at.places) < least:
            raise SplatopError(
                f"expected at least {least} points, as many as there are functions of "
                f"{' x '.join(map(str, self.sizes))} anchors on the shape, got {len(at.places)}: "
                "take fewer anchors (--set anchors=..., anchors= in Python), or more points"
            )
        return fitting(self._plain, self.sizes, self._kinds, at)

    def _host_tables(self) -> dict[str, np.ndarray]:
        nodes, found = self.nodes, {}
        root = np.sqrt(nodes.weights)[:, None]
        at_nodes = self._matrix(nodes.places, value(2))
        weighted = root * at_nodes
        gram = np.swapaxes(weighted, -1, -2) @ weighted
        empty = np.diagonal(gram, axis1=-2, axis2=-1) == 0  # of fields with fewer functions
        gram = gram + np.eye(gram.shape[-1]) * empty[..., None, :]
        project = np.linalg.solve(gram, np.swapaxes(weighted * root, -1, -2))
        found["project"] = project
        for number, derivative in enumerate(self.wanted):
            rows = self._matrix(nodes.places, derivative)
            found[f"d{number}"] = rows
            if at_nodes.ndim == 2:
                found[f"m{number}"] = project @ rows
            if self._sets_something:
                found[f"lift_d{number}"] = self._lift_matrix(nodes.places, derivative)
        if self.sampling is not None:
            found["evaluate"] = self._matrix(self.sampling.places, value(2))
            found["fit"] = self.fit_matrix(self.sampling)
            if self._sets_something:
                found["lift"] = self._lift_matrix(self.sampling.places, value(2))
        return found

    def _table(self, name: str, at: Sampling, make: Callable[[Points], np.ndarray]) -> Any:
        if at == self.sampling and self.tables is not None and name in self.tables:
            return self.tables[name]
        return make(at_points(at))

    def _at_nodes(self, kind: str, derivative: Derivative, make: Any) -> Any:
        if derivative in self.wanted and self.tables is not None:
            return self.tables[f"{kind}{self.wanted.index(derivative)}"]
        return make(self.nodes.places, derivative)

    def _padded(self, rows: list[np.ndarray]) -> np.ndarray:
        width = self.shape[0]
        return np.stack([np.pad(row, (0, width - len(row))) for row in rows])


def _apply(matrix: Any, values: Array) -> Array:
    """The matrix times the numbers of each field; one matrix for each where fields differ."""
    m = jnp.asarray(matrix, values.dtype)
    return jnp.einsum("qr,cr->cq" if m.ndim == 2 else "cqr,cr->cq", m, values)


def _kinds(domain: Domain, name: str) -> Kinds:
    return tuple((side, domain.at(side, name).kind) for side in domain.sides)

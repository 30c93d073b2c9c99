"""Constant-coefficient linear differential operators: what a jet can be asked for."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .errors import SplatopError

MultiIndex = tuple[int, ...]


@dataclass(frozen=True, order=True)
class Derivative:
    """The operator `Δ^-inverse_laplacians Σ weight ∂^index`, in physical units.

    Hashable, so it is the key under which a jet holds the differentiated field. `Δ^-1` acts on
    the zero-mean part of a field (a stream function from its vorticity) around a periodic box; with
    edges it is what obeys the conditions that are stated for it.
    """

    terms: tuple[tuple[MultiIndex, float], ...]
    inverse_laplacians: int = 0

    @property
    def dims(self) -> int:
        return len(self.terms[0][0])

    @property
    def order(self) -> int:
        return max(sum(index) for index, _ in self.terms)

    @property
    def forward(self) -> "Derivative":
        """What acts on the inverse Laplacian."""
        return Derivative(self.terms)

    def __matmul__(self, other: "Derivative") -> "Derivative":
        """Composition: `(a @ b) u = a(b(u))`."""
        product: dict[MultiIndex, float] = {}
        for i, a in self.terms:
            for j, b in other.terms:
                index = tuple(p + q for p, q in zip(i, j, strict=True))
                product[index] = product.get(index, 0.0) + a * b
        return Derivative(
            tuple(sorted(product.items())), self.inverse_laplacians + other.inverse_laplacians
        )

    def symbol(self, wavenumbers: Sequence[np.ndarray]) -> np.ndarray:
        """The factor on a Fourier mode, from wavenumbers in cycles per unit length."""
        total = np.zeros(np.broadcast_shapes(*(k.shape for k in wavenumbers)), complex)
        for index, weight in self.terms:
            total = total + weight * math.prod(
                (2j * np.pi * k) ** p for k, p in zip(wavenumbers, index, strict=True)
            )
        if self.inverse_laplacians:
            minus_k2 = -sum((2 * np.pi * k) ** 2 for k in wavenumbers)
            safe = np.where(minus_k2 == 0, 1.0, minus_k2)
            inverse = np.where(minus_k2 == 0, 0.0, 1 / safe)
            total = total * inverse**self.inverse_laplacians
        return total

    def __str__(self) -> str:
        def one(index: MultiIndex, weight: float) -> str:
            name = "".join(
                f"d{'' if p == 1 else p}{axis}" for axis, p in zip("xyz", index, strict=False) if p
            )
            return (name or "1") if weight == 1 else f"{weight:g}*{name or '1'}"

        inverse = f"lap^-{self.inverse_laplacians} " if self.inverse_laplacians else ""
        return inverse + " + ".join(one(index, weight) for index, weight in self.terms)


def partial(*index: int) -> Derivative:
    """`partial(1, 0)` is ∂/∂x in 2D, `partial(0, 0)` the value itself."""
    if any(p < 0 for p in index) or not 1 <= len(index) <= 3:
        raise SplatopError(f"expected one order >= 0 for each of 1 to 3 axes, got {index}")
    return Derivative(((tuple(index), 1.0),))


def value(dims: int) -> Derivative:
    """The field itself, in so many dimensions."""
    return partial(*(0,) * dims)


def along(axis: int, dims: int, order: int = 1) -> Derivative:
    """The derivative of an order along one axis."""
    if not 0 <= axis < dims:
        raise SplatopError(f"expected an axis below {dims} (a {dims}D field), got {axis}")
    return partial(*(order if i == axis else 0 for i in range(dims)))


def gradient(dims: int) -> tuple[Derivative, ...]:
    """The first derivative along each axis."""
    return tuple(along(axis, dims) for axis in range(dims))


def laplacian(dims: int) -> Derivative:
    """The sum of the second derivatives."""
    return Derivative(tuple(sorted((along(axis, dims, 2).terms[0]) for axis in range(dims))))


def bilaplacian(dims: int) -> Derivative:
    """The Laplacian of the Laplacian."""
    return laplacian(dims) @ laplacian(dims)


def inverse_laplacian(dims: int) -> Derivative:
    """What the field is the Laplacian of, without its mean: a stream function of a vorticity."""
    return Derivative(value(dims).terms, inverse_laplacians=1)

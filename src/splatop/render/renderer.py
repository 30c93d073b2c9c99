"""The interface of a renderer."""

import abc
from collections.abc import Iterable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..derivative import Derivative
from ..errors import SplatopError
from ..gaussians import Gaussians, Splats
from ..grid import Grid
from ..spectral import Field, Filter, PassThrough

Rendered = dict[Derivative, Field]


class Renderer(eqx.Module):
    """Splats to filtered derivatives on a grid, in physical units."""

    @classmethod
    def from_numerics(cls, numerics: Any) -> "Renderer":
        """The renderer that `renderer=<its registered name>` in the settings stands for."""
        return cls()

    @property
    def in_modes(self) -> bool:
        """Whether it renders the modes inside the filter's band (`fourier_modes`) and no others."""
        return False

    @abc.abstractmethod
    def __call__(
        self,
        splats: Splats,
        derivatives: Iterable[Derivative],
        grid: Grid,
        filter: Filter = PassThrough(),
    ) -> Rendered: ...


class PointRenderer(Renderer):
    """A renderer that also works at arbitrary points, by summing primitives there."""

    @abc.abstractmethod
    def at(
        self,
        splats: Splats,
        derivatives: Iterable[Derivative],
        points: Float[Array, "Q d"],
        lengths: tuple[float, ...],
    ) -> dict[Derivative, Float[Array, "C Q"]]:
        """Derivatives at points given in physical coordinates."""

    @abc.abstractmethod
    def basis(self, gaussians: Gaussians, positions: Float[Array, "Q d"]) -> Float[Array, "Q G"]:
        """Each primitive with unit amplitude, at positions given as fractions of the box."""


def grid_positions(grid: Grid) -> np.ndarray:
    """Grid points as fractions of the box, `(prod N, d)`, row-major."""
    return Grid(grid.points, (1.0,) * grid.dims).places


def physical_terms(derivative: Derivative, lengths: tuple[float, ...]):
    """The operator's (index, weight) pairs acting on box fractions instead of lengths."""
    if derivative.inverse_laplacians:
        raise SplatopError(
            f"the inverse Laplacian in {derivative} needs Fourier space: use FourierRenderer"
        )
    for index, weight in derivative.terms:
        per_length = float(np.prod([length**-p for length, p in zip(lengths, index, strict=True)]))
        yield index, weight * per_length


def add_offset(values: Array, derivative: Derivative, offset: Float[Array, " C"]) -> Array:
    """The constant of each channel, seen only by the undifferentiated part."""
    constant = sum(weight for index, weight in derivative.terms if not any(index))
    if derivative.inverse_laplacians or not constant:
        return values
    return values + constant * jnp.reshape(offset, (-1,) + (1,) * (values.ndim - 1))

"""Bases of one axis: Gaussians between two ends, sines and cosines around a ring.

Everything here is set-up, in double precision, once for an axis; it is kept by value. A basis lives
on [0, 1]; derivatives along an axis of another length are scaled by whoever knows the length.
"""

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.polynomial import hermite_e, legendre
from scipy.linalg import null_space

from ..domain import Kind
from ..errors import SplatopError

# Gaussians beyond each end. With one fewer, slopes at the end are thirty times worse; with one more
# they are hardly better, and the fastest harmonic is faster.
BEYOND = 5
# σ over the spacing of the anchors.
WIDTH = 1.3
# Singular values below this share of the largest are not told apart from rounding.
NEGLIGIBLE = 1e-10
# Gauss points for the orthonormalisation, for each anchor.
FINE = 6
LEAST_ANCHORS = 6


class AxisBasis(abc.ABC):
    """r functions on [0, 1], orthonormal in L², in the order of their Laplacian eigenvalues.

    `laplacian` holds the eigenvalues of d²/dx² where the functions are its eigenfunctions, and is
    None where an end is free: there it is no symmetric operator.
    """

    size: int
    laplacian: np.ndarray | None
    energies: np.ndarray  # ∫ φ'², which orders the functions also where an end is free

    @abc.abstractmethod
    def evaluate(self, x: np.ndarray, order: int = 0) -> np.ndarray:
        """The derivative of each function at points, `(len(x), r)`."""

    @abc.abstractmethod
    def points(self, degree: int) -> np.ndarray:
        """The working points: enough of them that products of `degree` functions do not alias."""

    @abc.abstractmethod
    def analysis(self, degree: int) -> np.ndarray:
        """From values at the working points to the numbers of the closest field, `(r, Q)`."""


@dataclass(frozen=True)
class RingBasis(AxisBasis):
    """The constant, then cosine and sine of 1, 2, ... `band` waves around a periodic axis."""

    band: int

    @property
    def size(self) -> int:  # type: ignore[override]
        return 2 * self.band + 1

    @cached_property
    def _waves(self) -> np.ndarray:
        return 2 * np.pi * ((np.arange(self.size) + 1) // 2)

    @cached_property
    def laplacian(self) -> np.ndarray:  # type: ignore[override]
        return -(self._waves**2.0)

    @property
    def energies(self) -> np.ndarray:  # type: ignore[override]
        return -self.laplacian

    def evaluate(self, x: np.ndarray, order: int = 0) -> np.ndarray:
        number = np.arange(self.size)
        # Cosines have odd numbers; a sine is a cosine a quarter of a wave later.
        shift = np.where(number % 2 == 0, -np.pi / 2, 0.0) + order * np.pi / 2
        waves = np.where(number == 0, 0.0, np.sqrt(2.0)) * self._waves ** float(order)
        values = waves * np.cos(np.asarray(x, float)[:, None] * self._waves + shift)
        values[:, 0] = 1.0 if order == 0 else 0.0
        return values

    def points(self, degree: int) -> np.ndarray:
        count = (degree + 1) * self.band + 1
        count += count % 2
        return np.arange(count) / count

    def analysis(self, degree: int) -> np.ndarray:
        x = self.points(degree)
        return self.evaluate(x).T / len(x)


@dataclass(frozen=True)
class WallBasis(AxisBasis):
    """Gaussians on `anchors` sites between two ends and a few beyond, all combinations that obey
    the homogeneous conditions at the ends.

    The functions are the eigenfunctions of the Laplacian among them: all of them, so that nothing
    of the Gaussians' accuracy is lost. With a free end they are those of the form ∫ φ'ψ'.
    """

    anchors: int
    ends: tuple[Kind, Kind]

    def __post_init__(self):
        if self.anchors < LEAST_ANCHORS:
            raise SplatopError(
                f"expected at least {LEAST_ANCHORS} anchors between two ends, got {self.anchors}"
            )

    @cached_property
    def _solved(self) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """Amplitudes of each function, eigenvalues of the Laplacian, and energies."""
        free = _orthonormal(self.anchors)
        rows = [
            self._kernels(np.array([float(end)]), order) @ free / self.anchors**order
            for end, kind in enumerate(self.ends)
            if kind != "free"
            for order in (int(kind == "slope"),)
        ]
        own = free @ null_space(np.concatenate(rows)) if rows else free
        x, w = _gauss(FINE * self.anchors)
        slopes = np.sqrt(w)[:, None] * (self._kernels(x, 1) @ own)
        energies, turn = np.linalg.eigh(slopes.T @ slopes)
        own = own @ turn
        if "free" in self.ends:
            return own, None, np.maximum(energies, 0.0)
        values, curves = self._kernels(x, 0) @ own, self._kernels(x, 2) @ own
        second = (values * w[:, None]).T @ curves
        laplacian, turn = np.linalg.eigh((second + second.T) / 2)
        return (own @ turn)[:, ::-1], laplacian[::-1], np.maximum(-laplacian[::-1], 0.0)

    @property
    def size(self) -> int:  # type: ignore[override]
        return self._solved[0].shape[1]

    @property
    def laplacian(self) -> np.ndarray | None:  # type: ignore[override]
        return self._solved[1]

    @property
    def energies(self) -> np.ndarray:  # type: ignore[override]
        # That of a constant is 0, and rounds to either side of it.
        return np.maximum(self._solved[2], 0.0)

    def evaluate(self, x: np.ndarray, order: int = 0) -> np.ndarray:
        return self._kernels(np.asarray(x, float), order) @ self._solved[0]

    def points(self, degree: int) -> np.ndarray:
        return _gauss(_nodes(self.anchors, degree))[0]

    def analysis(self, degree: int) -> np.ndarray:
        x, w = _gauss(_nodes(self.anchors, degree))
        return (self.evaluate(x) * w[:, None]).T

    def _kernels(self, x: np.ndarray, order: int) -> np.ndarray:
        return _kernels(self.anchors, x, order)


def _nodes(anchors: int, degree: int) -> int:
    """Gauss points for products: 2 for each Gaussian integrate two functions to 1e-10, and leave
    cubes of resolved fields, whose highest harmonics are small, nothing to alias."""
    return int((2.0 if degree <= 3 else 2.5) * (anchors + BEYOND)) // 2 * 2


@lru_cache(maxsize=64)
def _orthonormal(anchors: int) -> np.ndarray:
    """Amplitudes of all combinations of the Gaussians that can be told apart, orthonormal."""
    x, w = _gauss(FINE * anchors)
    kernels = np.sqrt(w)[:, None] * _kernels(anchors, x, 0)
    _, singular, right = np.linalg.svd(kernels, full_matrices=False)
    kept = singular > NEGLIGIBLE * singular[0]
    combine = right[kept].T / singular[kept]
    for _ in range(2):  # division by the smallest ones has left them orthonormal to 1e-6 only
        triangle = np.asarray(np.linalg.qr(kernels @ combine, mode="r"))
        combine = np.linalg.solve(triangle.T, combine.T).T
    return combine


def _kernels(anchors: int, x: np.ndarray, order: int) -> np.ndarray:
    """The derivative of each Gaussian at points, `(len(x), anchors + 2 BEYOND)`."""
    spacing = 1 / (anchors - 1)
    sigma = WIDTH * spacing
    z = (x[:, None] - np.arange(-BEYOND, anchors + BEYOND) * spacing) / sigma
    hermite = hermite_e.hermeval(z, [0] * order + [1])
    return (-1 / sigma) ** order * hermite * np.exp(-z * z / 2)


@lru_cache(maxsize=64)
def _gauss(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre points and weights on [0, 1]."""
    x, w = legendre.leggauss(count)
    return (x + 1) / 2, w / 2


@lru_cache(maxsize=256)
def ring(band: int) -> RingBasis:
    return RingBasis(band)


@lru_cache(maxsize=256)
def walls(anchors: int, ends: tuple[Kind, Kind]) -> WallBasis:
    return WallBasis(anchors, ends)


def stacked(each: Mapping[Any, np.ndarray], order: tuple[Any, ...], axis: int = -1) -> np.ndarray:
    """The one matrix that all fields share, else one for each in this order, padded with zeros
    along an axis to the same width."""
    if len(each) == 1:
        return each[order[0]]
    width = max(one.shape[axis] for one in each.values())

    def padded(one: np.ndarray) -> np.ndarray:
        pads = [(0, 0)] * one.ndim
        pads[axis] = (0, width - one.shape[axis])
        return np.pad(one, pads)

    return np.stack([padded(each[key]) for key in order])

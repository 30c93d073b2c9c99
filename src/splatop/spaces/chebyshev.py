"""Chebyshev collocation between two ends: what the reference solver differentiates with.

It shares nothing with the Gaussians but the interface: functions are polynomials, conditions are
solved for the values at the ends, products are taken at the nodes and not projected.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from ..domain import Kind
from .axis import AxisBasis


@dataclass(frozen=True)
class ChebyshevBasis(AxisBasis):
    """Polynomials through `nodes` Chebyshev points that obey homogeneous conditions at the ends."""

    nodes: int
    ends: tuple[Kind, Kind]

    @cached_property
    def _solved(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Values of the functions at the nodes, the way back, and eigenvalues."""
        first = _differentiation(self.nodes)
        set_ends = [end for end, kind in enumerate(self.ends) if kind != "free"]
        at = [0 if end == 0 else self.nodes - 1 for end in set_ends]
        inner = [j for j in range(self.nodes) if j not in at]
        extend = np.zeros((self.nodes, len(inner)))
        extend[inner, range(len(inner))] = 1.0
        if at:
            rows = np.stack(
                [
                    first[j] if self.ends[end] == "slope" else np.eye(self.nodes)[j]
                    for end, j in zip(set_ends, at, strict=True)
                ]
            )
            extend[at] = -np.linalg.solve(rows[:, at], rows[:, inner])
        restrict = np.eye(self.nodes)[inner]
        if "free" in self.ends:
            return extend, restrict, None
        second = restrict @ first @ first @ extend
        eigenvalues, vectors = np.linalg.eig(second)
        order = np.argsort(-np.real(eigenvalues))
        eigenvalues, vectors = np.real(eigenvalues[order]), np.real(vectors[:, order])
        return extend @ vectors, np.linalg.solve(vectors, restrict), eigenvalues

    @property
    def size(self) -> int:  # type: ignore[override]
        return self._solved[0].shape[1]

    @property
    def laplacian(self) -> np.ndarray | None:  # type: ignore[override]
        return self._solved[2]

    @property
    def energies(self) -> np.ndarray:  # type: ignore[override]
        found = self._solved[2]
        return np.arange(float(self.size)) ** 2 if found is None else -found

    def evaluate(self, x: np.ndarray, order: int = 0) -> np.ndarray:
        values = self._solved[0]
        for _ in range(order):
            values = _differentiation(self.nodes) @ values
        return _interpolation(self.nodes, np.asarray(x, float)) @ values

    def points(self, degree: int) -> np.ndarray:
        return _points(self.nodes)

    def analysis(self, degree: int) -> np.ndarray:
        return self._solved[1]


def _points(nodes: int) -> np.ndarray:
    return (1 - np.cos(np.pi * np.arange(nodes) / (nodes - 1))) / 2


def _weights(nodes: int) -> np.ndarray:
    """Barycentric weights of the points."""
    weights = (-1.0) ** np.arange(nodes)
    weights[[0, -1]] /= 2
    return weights


@lru_cache(maxsize=64)
def _differentiation(nodes: int) -> np.ndarray:
    angle = np.pi * np.arange(nodes) / (nodes - 1)
    # Differences of the points as products of sines, which do not cancel.
    gaps = np.sin((angle[:, None] + angle) / 2) * np.sin((angle[:, None] - angle) / 2)
    np.fill_diagonal(gaps, 1.0)
    weights = _weights(nodes)
    matrix = weights[None, :] / weights[:, None] / gaps
    np.fill_diagonal(matrix, 0.0)
    np.fill_diagonal(matrix, -matrix.sum(axis=1))
    return matrix


def _interpolation(nodes: int, x: np.ndarray) -> np.ndarray:
    away = x[:, None] - _points(nodes)
    hit = np.abs(away) < 1e-14
    terms = _weights(nodes) / np.where(hit, 1.0, away)
    matrix = terms / terms.sum(axis=1, keepdims=True)
    rows = hit.any(axis=1)
    matrix[rows] = hit[rows]
    return matrix


@lru_cache(maxsize=64)
def chebyshev(nodes: int, ends: tuple[Kind, Kind]) -> ChebyshevBasis:
    return ChebyshevBasis(nodes, ends)

"""Least squares in double precision, and how far its answer can be trusted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy import special  # scipy.stats takes half a second to import

# Directions of the normalised columns weaker than this are not determined at all.
_RANK_TOLERANCE = 1e-9
# Enough clusters for a sandwich estimate to stand by itself.
_MANY_MODES = 10
# A residual up to this multiple of the expected noise is that noise.
SLACK = 1.2
# Frames of a residual that are alike by more than this many deviations are not noise.
LASTING = 6.0
_LEAST_FREEDOM = 3.0
# Deviations from which frames speak against a known value.
CONTRADICTED = 5.0


@dataclass(frozen=True)
class Spread:
    """Covariance of estimates, the degrees of freedom of their t intervals, and conditioning.

    `lost` marks estimates that the columns do not determine at all: their error is infinite.
    `systematic` are errors that no residual shows.
    """

    covariance: np.ndarray
    freedom: float
    condition: float
    lost: np.ndarray
    systematic: np.ndarray

    @property
    def errors(self) -> np.ndarray:
        return self._errors(1.0, 1.0)

    def half_widths(self, level: float = 0.95) -> np.ndarray:
        tail = 0.5 + level / 2
        return self._errors(float(special.stdtrit(self.freedom, tail)), float(special.ndtri(tail)))

    @property
    def correlation(self) -> np.ndarray:
        deviation = np.sqrt(np.maximum(np.diag(self.covariance), 1e-300))
        return self.covariance / np.outer(deviation, deviation)

    def tied(self, tie: np.ndarray, systematic: np.ndarray) -> "Spread":
        """The spread of `tie @ estimates`, with a systematic error."""
        covariance = tie @ self.covariance @ tie.T
        lost = (tie != 0) @ self.lost > 0
        return Spread(covariance, self.freedom, self.condition, lost, systematic)

    def _errors(self, random: float, systematic: float) -> np.ndarray:
        deviation = np.sqrt(np.diag(self.covariance))
        both = np.hypot(random * deviation, systematic * self.systematic)
        return np.where(self.lost, np.inf, both)


@dataclass(frozen=True)
class Fit:
    """What a method found: values, their spread, and residuals relative to the observed change.

    `residual` is what the equation leaves unexplained, `noise` what noise alone would leave.
    `lasting` is by how many deviations the residual's frames are more alike than those of noise.
    `settled` is whether the search came to an end. `contradicted` are known values that the frames
    speak against: by how many deviations, and the value that they call for; `missing` are terms
    that the equation does not have, likewise.
    """

    x: np.ndarray
    spread: Spread
    residual: float
    noise: float
    lasting: float = 0.0
    settled: bool = True
    contradicted: dict[str, tuple[float, float]] = field(default_factory=dict)
    missing: dict[str, tuple[float, float]] = field(default_factory=dict)


def beyond_noise(residual: np.ndarray, expected: float) -> float:
    """The size of what noise of an expected size does not explain of a residual."""
    return float(np.sqrt(max(np.sum(np.square(residual)) - (SLACK * expected) ** 2, 0.0)))


def contradictions(
    known: Mapping[str, float],
    columns: np.ndarray,
    known_columns: np.ndarray,
    residual: np.ndarray,
    deviation: float,
) -> dict[str, tuple[float, float]]:
    """Known values that a residual speaks against, more than an error of size `deviation` in any
    one direction can: by how many deviations, and the value that it calls for (a score test).

    `columns` `(p, ...)` and `known_columns` `(k, ...)` are the derivatives by unknown and known
    coefficients.
    """
    found = {}
    for (name, value), column in zip(known.items(), known_columns, strict=True):
        own = column - np.tensordot(solve(columns, column), columns, axes=1)
        square = float(np.sum(own**2))
        # What the unknowns can do as well says nothing of the known value.
        if square <= _RANK_TOLERANCE * float(np.sum(column**2)):
            continue
        along = float(np.sum(own * residual))
        off = abs(along) / np.sqrt(square) / max(deviation, 1e-300)
        if off > CONTRADICTED:
            found[name] = off, value + along / square
    return found


def solve(columns: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Least squares over columns `(p, ...)`, each normalised by its norm (appendix E)."""
    flat = columns.reshape(len(columns), -1)
    norms = np.linalg.norm(flat, axis=1)
    safe = np.where(norms > 0, norms, 1.0)
    solution = np.linalg.lstsq((flat / safe[:, None]).T, target.ravel(), rcond=_RANK_TOLERANCE)[0]
    return solution / safe


def spread(
    columns: np.ndarray,
    residual: np.ndarray,
    *,
    freedom: int,
    dims: int,
    rounding: float,
    unseen: float,
    white: bool = False,
) -> Spread:
    """Covariance of the least-squares estimate from columns `(p, R, C, *N)` and a residual.

    `freedom` counts the residual's degrees of freedom. If the residual is known to be `white`
    noise the textbook formula holds. Else it is model error or coloured noise: errors of one
    Fourier mode are then taken to be related and those of different modes not (a sandwich
    estimate with modes as clusters). Where few modes carry the information that is itself
    uncertain, and the larger of the two answers counts. The last `dims` axes are those of waves:
    without any, numbers are independent by themselves. `rounding` is the size of an error in the
    data that may look just like a column, as that of a solver which rounds the same way each step.
    `unseen` is the part of the residual that noise does not explain: it comes from a term that is
    missing or wrong, and as much of that may have gone into the estimates unseen.
    """
    p = len(columns)
    flat, r = columns.reshape(p, -1), residual.ravel()
    norms = np.linalg.norm(flat, axis=1)
    norms = np.where(norms > 0, norms, 1.0)
    gram = (flat / norms[:, None]) @ (flat / norms[:, None]).T
    values, vectors = np.linalg.eigh(gram)
    weak = values < (_RANK_TOLERANCE * max(values[-1], 1e-300))
    inverse = (vectors / np.where(weak, np.inf, values)) @ vectors.T
    condition = float(np.sqrt(values[-1] / values[0])) if values[0] > 0 else np.inf
    covariance = inverse * (r @ r) / max(freedom, 1)
    t_freedom = float(max(freedom, 1))
    if not white:
        scores = _scores(columns / norms.reshape(p, *(1,) * (columns.ndim - 1)), residual, dims)
        # Few modes carry the information of smooth fields: count those that matter.
        size = np.sum(scores**2, axis=1)
        effective = size.sum() ** 2 / max(np.sum(size**2), 1e-300)
        t_freedom = float(max(effective - p, _LEAST_FREEDOM))
        factor = effective / max(effective - p, 0.5)
        robust = inverse @ (scores.T @ scores) @ inverse * factor
        covariance = robust if effective >= _MANY_MODES + p else _larger(covariance, robust)
    covariance = covariance / np.outer(norms, norms)
    lost = np.any(np.abs(vectors[:, weak]) > 1e-3, axis=1)
    # An error of size e that lies along a column's own direction moves its estimate by e / own.
    own = norms / np.sqrt(np.maximum(np.diag(inverse), 1e-300))
    return Spread(covariance, t_freedom, condition, lost, np.hypot(rounding, unseen) / own)


def _larger(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The first covariance, its deviations raised to those of the second where these are larger."""
    grow = np.sqrt(np.maximum(1.0, np.diag(other) / np.maximum(np.diag(one), 1e-300)))
    return one * np.outer(grow, grow)


def _scores(columns: np.ndarray, residual: np.ndarray, dims: int) -> np.ndarray:
    """What each Fourier mode adds to `columns · residual`, `(modes, p)`; each number of a state
    where it has no axes of waves."""
    if not dims:
        return np.sum(columns * residual, axis=1).reshape(len(columns), -1).T
    axes = tuple(range(-dims, 0))
    points = residual.shape[-1]
    left = np.fft.rfftn(columns, axes=axes, norm="ortho")
    right = np.fft.rfftn(residual, axes=axes, norm="ortho")
    last = np.arange(left.shape[-1])
    twice = np.where((last == 0) | (2 * last == points), 1.0, 2.0)
    shares = np.real(np.conj(left) * right) * twice
    shares = shares.sum(axis=tuple(range(1, shares.ndim - dims)))
    return shares.reshape(len(columns), -1).T


def levenberg_marquardt(
    linearise: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    start: np.ndarray,
    *,
    iterations: int = 40,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Minimise `‖r(x)‖²`: the minimum, its residual `(n,)` and its columns `(p, n)` = -∂r/∂x.

    `linearise(x)` returns both. Marquardt's scaling makes it blind to the units of x. It ends when
    a step is a hundredth of what the residual says about the error of x, or below rounding.
    """
    x = np.array(start, float)
    residual, columns = linearise(x)
    if not (np.isfinite(residual).all() and np.isfinite(columns).all()):
        return x, np.full_like(residual, np.inf), columns
    damping = 1e-6
    for _ in range(iterations):
        cost = _square(residual)
        norms = np.maximum(np.linalg.norm(columns, axis=1), 1e-300)
        scaled = columns / norms[:, None]
        values, vectors = np.linalg.eigh(scaled @ scaled.T)
        slope = vectors.T @ (scaled @ residual)
        while True:
            step = vectors @ (slope / (np.maximum(values, 0.0) + damping)) / norms
            new_residual, new_columns = linearise(x + step)
            if np.isfinite(new_columns).all() and _square(new_residual) <= cost * (1 + 1e-9):
                damping = max(damping / 10, 1e-12)
                break
            damping *= 10
            if damping > 1e8:
                return x, residual, columns
        x, residual, columns = x + step, new_residual, new_columns
        deviation = np.sqrt(_square(residual) / residual.size)
        if np.all(np.abs(step) * norms <= np.maximum(0.01 * deviation, 1e-12 * np.abs(x) * norms)):
            break
    return x, residual, columns


def _square(residual: np.ndarray) -> float:
    total = float(residual @ residual)
    return total if np.isfinite(total) else np.inf


def own_sizes(jacobian: np.ndarray) -> np.ndarray:
    """The size of each column of a jacobian `(w, h, p)` without what the others can do as well."""
    normal = np.einsum("whp,whq->pq", jacobian, jacobian)
    return 1 / np.sqrt(np.maximum(np.diag(np.linalg.pinv(normal)), 1e-300))


def clustered_errors(
    r: np.ndarray, jacobian: np.ndarray, against: np.ndarray, overlap: float
) -> np.ndarray:
    """Standard errors that take what is left at one harmonic h, over all bumps w, as one draw.

    Bumps overlap in time, and what is left of clean frames is no noise: harmonics, of which there
    are many, are independent of each other. A coefficient that acts on few of them has no such
    draws: no error is below what the size of the rest says of rows of which `overlap` are one.
    Derivatives `(w, h, p)` are tested `against` others, or themselves.
    """
    inverse = np.linalg.pinv(np.einsum("whp,whq->pq", against, jacobian))
    scores = np.einsum("whp,wh->hp", against, r)
    spread = np.diag(inverse @ (scores.T @ scores) @ inverse.T)
    own = np.linalg.pinv(np.einsum("whp,whq->pq", jacobian, jacobian))
    return np.sqrt(np.maximum(spread, np.mean(r**2) * overlap * np.diag(own)))

"""What is known of a state before anything is measured, where there are no samples of states: a
smooth spectrum whose strength and length make the reports likeliest."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..derivative import value
from ..domain import Domain
from ..errors import SplatopError
from ..spaces import ShapeSpace, Space
from .observations import Observations
from .observe import footprints
from .unknowns import Prior

# Spectra that are tried: a Gaussian, and Matérn's of these orders.
_ORDERS = (np.inf, 3.5, 1.5)
_LENGTHS = 16  # correlation lengths that are tried
# Reports of one moment and of all moments together that strength and length are fitted to.
_MOST_EACH, _MOST_MOMENTS, _MOST_NUMBERS = 300, 12, 4e7
_MOST_GUESSED = 1000
# Reports between two others of a sensor, from which its noise is told, and how far it may be above.
_FEWEST_DIFFERENCES, _NOISIER = 30, 1.3


@dataclass(frozen=True)
class Smoothness:
    """Of one field: what its spectrum is, its standard deviation, correlation length, and noise."""

    order: float
    spread: float
    length: float
    noise: float
    mean: float

    def spectrum(self, wavenumber: np.ndarray, dims: int, measure: float = 1.0) -> np.ndarray:
        """Prior variances of functions with these wavenumbers (radians per length), whose squares
        have a mean of 1 / `measure`."""
        shape = _shape(wavenumber, self.order, self.length, dims)
        return self.spread**2 * measure * shape / shape.sum()


def evidence(observations: Observations, prior: Prior, space: Space, sigma: np.ndarray) -> float:
    """The logarithm of how likely a prior makes reports of one moment, up to a constant."""
    total = 0.0
    rng = np.random.default_rng(0)
    for name in np.unique(observations.fields):
        channel = space.fields.index(str(name))
        own = rng.permutation(np.flatnonzero(observations.fields == name))[:_MOST_EACH]
        rows = averaged_functions(space, observations.take(own), channel)
        covariance = (rows * prior.std[channel].ravel() ** 2) @ rows.T + np.diag(sigma[own] ** 2)
        rest = observations.values[own] - rows @ prior.mean[channel].ravel()
        factor = np.linalg.cholesky(covariance + 1e-12 * np.trace(covariance) * np.eye(len(own)))
        white = np.linalg.solve(factor, rest)
        total -= float(0.5 * white @ white + np.log(np.diag(factor)).sum())
    return total


def first_guess(
    observations: Observations,
    prior: Prior,
    space: Space,
    sigma: np.ndarray,
    *,
    seed: int | None = None,
) -> Float[np.ndarray, "C *R"]:
    """The likeliest numbers from reports of one moment alone, in standard deviations of the prior
    from its mean; with a `seed` random ones that agree with these reports as well."""
    chance = np.random.default_rng(seed)
    drawn = np.zeros_like(prior.std) if seed is None else chance.normal(size=prior.std.shape)
    guess = drawn.copy()
    rng = np.random.default_rng(0)
    for name in np.unique(observations.fields):
        channel = space.fields.index(str(name))
        own = rng.permutation(np.flatnonzero(observations.fields == name))[:_MOST_GUESSED]
        rows = averaged_functions(space, observations.take(own), channel)
        scaled = rows * prior.std[channel].ravel()
        covariance = scaled @ scaled.T + np.diag(sigma[own] ** 2)
        rest = observations.values[own] - rows @ prior.mean[channel].ravel()
        if seed is not None:
            noise = sigma[own] * chance.normal(size=len(own))
            rest = rest - scaled @ drawn[channel].ravel() - noise
        guess[channel] += (scaled.T @ np.linalg.solve(covariance, rest)).reshape(space.shape)
    return guess


def smooth_prior(found: dict[str, Smoothness], space: Space) -> Prior:
    """The prior of fitted smoothness; a field that nobody measures takes the average of others."""
    wave = np.sqrt(space.energies())
    mean, std = np.zeros(wave.shape), np.zeros(wave.shape)
    others = list(found.values())
    for channel, name in enumerate(space.fields):
        own = found.get(name) or Smoothness(
            others[0].order,
            float(np.mean([o.spread for o in others])),
            float(np.mean([o.length for o in others])),
            0.0,
            0.0,
        )
        size = measure(space)
        std[channel] = np.sqrt(own.spectrum(wave[channel], space.dims, size))
        constant = wave[channel] < 1e-6 * max(wave.max(), 1e-12)
        mean[channel] = np.where(constant, np.sqrt(size) * own.mean, 0.0)
        wide = np.maximum(std[channel], np.sqrt(size) * own.spread)
        std[channel] = np.where(constant, wide, std[channel])
    words = "; ".join(
        f"{name}: standard deviation {s.spread:.3g}, length {s.length:.3g}"
        for name, s in found.items()
    )
    return Prior(mean, std, f"a smooth field, fitted to the reports ({words})", fitted=True)


def fit_smoothness(
    observations: Observations, moments: np.ndarray, space: Space, *, as_likely: float = 0.0
) -> dict[str, Smoothness]:
    """For each field that was measured, the smoothness and noise that make its reports likeliest.

    `moments` `(n,)` numbers the reports of one time alike; different times count as independent.
    Of lengths whose likelihood is within `as_likely` (a logarithm) of the best, the longest is
    taken: where dynamics add what sensors far apart do not tell.
    """
    return {
        str(name): _fit_field(observations, moments, space, str(name), as_likely)
        for name in np.unique(observations.fields)
    }


def functions_at(space: Space, places: np.ndarray, channel: int) -> np.ndarray:
    """All functions of one field at places, `(n, R)`; in double precision."""
    if isinstance(space, ShapeSpace):
        rows = space._matrix(np.asarray(places, float), value(2))
        return rows if rows.ndim == 2 else rows[channel]
    every: np.ndarray | None = None
    for number, axis in enumerate(space.domain.axes):
        x = (np.asarray(places, float)[:, number] - axis.origin) / axis.length
        x = np.ascontiguousarray(x % 1.0 if axis.periodic else x)
        matrix = space._matrix(number, x, 0)
        along = matrix if matrix.ndim == 2 else matrix[channel]
        every = (
            along
            if every is None
            else (every[:, :, None] * along[:, None, :]).reshape(len(along), -1)
        )
    assert every is not None
    return every


def averaged_functions(space: Space, observations: Observations, channel: int) -> np.ndarray:
    """The functions as each observation sees them, `(n, R)`: at its place, or its footprint."""
    whose, where, weight = footprints(observations, np.array(_spacing(space)))
    if observations.spans is None:
        return functions_at(space, where, channel)
    values = weight[:, None] * functions_at(space, where, channel)
    out = np.zeros((len(observations), values.shape[1]))
    np.add.at(out, whose, values)
    return out


def _fit_field(
    observations: Observations, moments: np.ndarray, space: Space, name: str, as_likely: float
) -> Smoothness:
    own = np.flatnonzero(observations.fields == name)
    channel = space.fields.index(name)
    wave = np.sqrt(space.energies())[channel].ravel()
    constant = bool((wave < 1e-6 * wave.max()).any())
    mean = float(observations.values[own].mean()) if constant else 0.0
    spread = float(np.sqrt(np.mean((observations.values[own] - mean) ** 2)))
    if not spread > 0:
        raise SplatopError(
            f"expected reports of {name} that vary, got {observations.values[own][0]:g} in all "
            f"{len(own)}: nothing can be told from them"
        )
    groups = _moments(own, moments[own], len(wave))
    # What moves between reports that count as of one time counts as noise beside theirs.
    known = (
        observations.sigma is not None
        and bool(np.isfinite(observations.sigma[own]).all())
        and all(np.ptp(observations.times[group]) == 0 for group in groups)
    )
    rows, values, scales = [], [], []
    for group in groups:
        scale = observations.sigma[group] if known else np.full(len(group), spread)  # type: ignore[index]
        rows.append(averaged_functions(space, observations.take(group), channel))
        values.append(observations.values[group] - mean)
        scales.append(scale)
    most_noise = _most_noise(observations.take(own))
    tried: list[tuple[float, Smoothness]] = []
    for order in _ORDERS:
        for length in _lengths(space.domain, wave):
            shape = _shape(wave, order, length, space.dims)
            shape = measure(space) * shape / shape.sum()
            likelihood, strength, noise = _profile(rows, values, scales, shape, known, most_noise)
            found = Smoothness(order, float(np.sqrt(strength)), float(length), noise, mean)
            tried.append((likelihood, found))
    most = max(likelihood for likelihood, _ in tried)
    return max(
        (found for likelihood, found in tried if likelihood >= most - as_likely),
        key=lambda found: (found.length, found.order),
    )


def _profile(
    rows: list[np.ndarray],
    values: list[np.ndarray],
    scales: list[np.ndarray],
    shape: np.ndarray,
    known: bool,
    most_noise: float = np.inf,
) -> tuple[float, float, float]:
    """The largest likelihood over strength and noise, the variance and the noise there.

    In the eigenvectors of the covariance both enter as numbers, so that all of them are tried.
    """
    powers, seen = [], []
    for functions, held, scale in zip(rows, values, scales, strict=True):
        covariance = (functions * shape) @ functions.T / (scale[:, None] * scale)
        eigenvalues, turn = np.linalg.eigh(covariance)
        powers.append(np.maximum(eigenvalues, 0.0))
        seen.append(turn.T @ (held / scale))
    d, q = np.concatenate(powers), np.concatenate(seen) ** 2
    n = len(d)
    if known:  # noise is 1 in these units: variances in those of the field
        middle = max(float(np.mean(q)) / max(float(np.mean(d)), 1e-300), 1e-300)
        strengths = middle * np.logspace(-4, 4, 121)
        total = strengths[:, None] * d + 1
        likelihood = -0.5 * np.sum(np.log(total) + q / total, axis=1)
        best = int(np.argmax(likelihood))
        return float(likelihood[best]), float(strengths[best]), 0.0
    ratios = np.logspace(-9, 2, 111)
    total = d + ratios[:, None]
    strength = np.mean(q / total, axis=1)
    likelihood = -0.5 * (np.sum(np.log(total), axis=1) + n * np.log(strength) + n)
    noise = np.sqrt(ratios * strength) * scales[0][0]  # which rises with the ratio
    best = int(np.argmax(np.where(noise <= max(most_noise, noise[0]), likelihood, -np.inf)))
    return float(likelihood[best]), float(strength[best]), float(noise[best])


def _most_noise(own: Observations) -> float:
    """No more noise than sensors that stay show from report to report: what is rough between places
    far apart may be a small cloud. Infinite where they report too seldom to tell."""
    scatter, count = scatter_in_time(own)
    return _NOISIER * scatter if count >= _FEWEST_DIFFERENCES else np.inf


def scatter_in_time(own: Observations) -> tuple[float, int]:
    """How far reports of one field lie from the line between those before and after them of the
    same sensor, as a standard deviation of noise, which it is at most; and how many tell it."""
    assert own.sensors is not None
    order = np.lexsort((own.times, own.sensors))
    who, t, place = own.sensors[order], own.times[order], own.places[order]
    stays = (who[2:] == who[:-2]) & (place[2:] == place[:-2]).all(1) & (t[2:] > t[:-2])
    if not stays.any():
        return np.inf, 0
    share = ((t[1:-1] - t[:-2]) / np.where(stays, t[2:] - t[:-2], 1.0))[stays]
    first, middle, last = (own.values[order][k : len(t) - 2 + k][stays] for k in range(3))
    off = middle - (1 - share) * first - share * last
    square = off**2 / (1 + share**2 + (1 - share) ** 2)
    return float(np.sqrt(np.mean(square))), int(stays.sum())


def _moments(own: np.ndarray, moments: np.ndarray, functions: int) -> list[np.ndarray]:
    """Groups of reports of one time, spread over all times, thinned where there are very many."""
    distinct, count = np.unique(moments, return_counts=True)
    each = int(min(_MOST_EACH, max(40, _MOST_NUMBERS / functions)))
    full = distinct[count >= min(count.max(), each) / 2]
    total = max(1, min(_MOST_MOMENTS, round(4 * each / min(count.max(), each))))
    chosen = full[np.unique(np.linspace(0, len(full) - 1, total).astype(int))]
    rng = np.random.default_rng(0)
    groups = []
    for moment in chosen:
        group = own[moments == moment]
        groups.append(rng.permutation(group)[:each])
    return groups


def _shape(wave: np.ndarray, order: float, length: float, dims: int) -> np.ndarray:
    z = (wave * length) ** 2
    if np.isinf(order):
        return np.exp(-np.minimum(z / 2, 700.0))
    return (1 + z / (2 * order)) ** -(order + dims / 2)


def _lengths(domain: Domain, wave: np.ndarray) -> np.ndarray:
    """From half a wave of the finest function to half of the box."""
    return np.geomspace(1.5 / wave.max(), max(domain.lengths) / 2, _LENGTHS)


def measure(space: Space) -> float:
    """One over the mean square of a function: on a shape they are orthonormal over its area."""
    return 1.0 if space.domain.shape is None else float(space.domain.shape.area)


def _spacing(space: Space) -> list[float]:
    return [
        axis.length / (2 * size if axis.periodic else size)
        for axis, size in zip(space.domain.axes, space.sizes, strict=True)
    ]


def draw(prior: Prior, count: int, seed: int = 0) -> Float[np.ndarray, "n C *R"]:
    """Random states of the prior, as numbers of the space."""
    rng = np.random.default_rng(seed)
    return prior.mean + prior.std * rng.normal(size=(count, *prior.std.shape))

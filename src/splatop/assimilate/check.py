"""Does the analysis hold what it says? What the cost, the residuals and the spread tell."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .observations import Observations, stuck
from .prior import scatter_in_time

# Twice the cost over the observations, from which on something is wrong.
HIGH, LOW = 1.4, 0.5
# A sensor whose mean squared misfit is so many times the others' is named.
_SENSOR = 6.0
# Correlation of a fixed sensor's successive residuals that noise does not have.
_CORRELATED = 0.4
# The same with those up to so many reports later, of whatever sign: what an equation lacks comes
# and goes with the waves. What is fitted to noise correlates it, too, for its share of the reports.
_LATER, _LATER_CORRELATED = 4, 0.25
# Standard deviations of a mean square beyond which it is no chance. Differences of successive
# reports are correlated: n of them tell a mean square to sqrt(4 / n) of itself.
_SIGNIFICANT = 4.0
# A report so many standard deviations off is no chance (once in 10^11), if no more than a few are;
# half of normal numbers lie within the second.
_FAR, _MEDIAN, _FEW = 7.0, 0.674, 0.1
# Squared unknowns for each direction that the data tell, above which the state is not as assumed.
_UNLIKELY = 3.0


@dataclass(frozen=True)
class Check:
    """`ratio` is twice the cost over the observations, `residuals` are in units of the noise."""

    ratio: float
    residual_rms: float
    correlation: float
    explained: dict[str, float]
    warnings: tuple[str, ...]

    @property
    def trusted(self) -> bool:
        return not self.warnings


def check(
    observations: Observations,
    predicted: np.ndarray,
    sigma: np.ndarray,
    *,
    ratio: float,
    prior_share: float,
    converged: bool,
    estimated: Mapping[str, float],
) -> Check:
    """`prior_share` is the sum of squared unknowns over what is expected of it; `estimated` holds
    the noise of the fields whose reports did not say it."""
    residuals = (observations.values - predicted) / sigma
    explained = {}
    for name in np.unique(observations.fields):
        own = observations.fields == name
        spread = observations.values[own].std()
        left = np.sqrt(np.mean((observations.values[own] - predicted[own]) ** 2))
        explained[str(name)] = float(1 - min(1.0, (left / max(spread, 1e-300)) ** 2))
    correlation, _ = _lag_correlation(observations, residuals, 1)
    later = [_lag_correlation(observations, residuals, n) for n in range(2, _LATER + 1)]
    warnings = []
    if not np.isfinite(residuals).all():
        return Check(np.inf, np.inf, 0.0, explained, ("the rollout left the finite numbers",))
    if ratio > HIGH:
        warnings.append(
            f"twice the cost is {ratio:.3g} times the number of observations (expected: 1): the "
            "equation or its coefficients are not those of the data, sigma is too small, a unit is "
            "wrong, or the minimum is a wrong one (try shorter windows, or more sensors)"
        )
    elif ratio < LOW and not estimated:
        warnings.append(
            f"twice the cost is {ratio:.3g} times the number of observations (expected: 1): sigma "
            "is larger than the noise is"
        )
    for name, noise in estimated.items():
        if name in explained and explained[name] < 0.8:
            warnings.append(
                f"only {100 * explained[name]:.0f} % of the variance of {name} is explained, the "
                f"rest counts as noise of {noise:.3g}: the equation is not that of the data, or "
                "they are that noisy"
            )
        scatter, count = scatter_in_time(observations.take(observations.fields == name))
        if count and noise**2 > scatter**2 * (HIGH + _SIGNIFICANT * np.sqrt(4 / count)):
            warnings.append(
                f"what is not explained of {name} counts as noise of {noise:.3g}, but from report "
                f"to report sensors scatter by {scatter:.3g} only: the equation, a coefficient, a "
                "boundary or a sensor is wrong, or the minimum is a wrong one"
            )
    if correlation > _CORRELATED:
        warnings.append(
            f"successive residuals of a sensor are correlated ({correlation:.2f}): the equation, a "
            "coefficient or a sensor is biased"
        )
    fitted = max(0.0, 1 - float(np.mean(residuals**2)))
    for number, (one, pairs) in enumerate(later, start=2):
        if abs(one) > max(_LATER_CORRELATED, _SIGNIFICANT / np.sqrt(max(pairs, 1))) + 0.5 * fitted:
            warnings.append(
                f"residuals of a sensor are correlated with those {number} reports later "
                f"({one:.2f}): the equation, a coefficient or a sensor is biased"
            )
            break
    if prior_share > _UNLIKELY:
        warnings.append(
            f"the state is {np.sqrt(prior_share):.1f} times as far from what was expected before "
            "measuring as it should be: check the units of the values, or the prior"
        )
    warnings += _odd_sensors(observations, residuals) + _odd_reports(observations, residuals)
    warnings += stuck(observations) if warnings else []
    if not converged:
        warnings.append("the minimiser stopped before it converged: allow more steps")
    rms = float(np.sqrt(np.mean(residuals**2)))
    return Check(float(ratio), rms, correlation, explained, tuple(warnings))


def _lag_correlation(
    observations: Observations, residuals: np.ndarray, lag: int
) -> tuple[float, int]:
    """Of residuals of one sensor and field so many reports apart, over all of them; and how many
    pairs tell it."""
    assert observations.sensors is not None
    order = np.lexsort((observations.times, observations.fields, observations.sensors))
    r = residuals[order]
    same = (observations.sensors[order][lag:] == observations.sensors[order][:-lag]) & (
        observations.fields[order][lag:] == observations.fields[order][:-lag]
    )
    if same.sum() < 20:
        return 0.0, 0
    one, two = r[:-lag][same], r[lag:][same]
    together = float(np.sum(one * two))
    return together / max(np.sqrt(np.sum(one**2) * np.sum(two**2)), 1e-300), int(same.sum())


def _odd_sensors(observations: Observations, residuals: np.ndarray) -> list[str]:
    assert observations.sensors is not None
    names, own = np.unique(observations.sensors, return_inverse=True)
    count = np.bincount(own)
    mean = np.bincount(own, residuals**2) / count
    usual = np.median(mean)
    # The mean of n squares of normal numbers is above 1 + 5 sqrt(2/n) once in a million.
    odd = (mean > _SENSOR * max(usual, 1e-12)) & (mean > 1 + 5 * np.sqrt(2 / count))
    if not odd.any() or odd.mean() > 0.3:
        return []
    worst = names[np.argsort(-np.where(odd, mean, 0))][: min(3, int(odd.sum()))]
    return [
        f"{int(odd.sum())} sensors disagree with the others ({', '.join(worst)}): broken, in "
        "another unit, or at another place than the table says; look at them, or leave them out"
    ]


def _odd_reports(observations: Observations, residuals: np.ndarray) -> list[str]:
    """Single reports far from all others, which may have made the noise seem large."""
    usual = np.median(np.abs(residuals)) / _MEDIAN
    odd = np.abs(residuals) > _FAR * max(usual, 1e-12)
    if not odd.any() or odd.mean() > _FEW:
        return []
    assert observations.sensors is not None
    worst = np.argsort(-np.where(odd, np.abs(residuals), 0))[: min(3, int(odd.sum()))]
    named = ", ".join(
        f"{observations.fields[i]} = {observations.values[i]:.4g} of {observations.sensors[i]} at "
        f"t = {observations.times[i]:.6g}"
        for i in worst
    )
    return [
        f"{int(odd.sum())} reports are off by more than {_FAR:g} standard deviations of the others "
        f"({named}): leave them out if they are wrong"
    ]

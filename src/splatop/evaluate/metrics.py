"""The paper's metrics as functions of arrays (section "Evaluation metrics"), and three more.

Nothing here knows a model. Statistics of single frames are what a streamed rollout keeps; all else
follows from them in double precision.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..domain import Domain
from ..points import Layout, Points
from ..spaces import energy_spectrum
from ..spectral import Field

# The state of a rollout that left the range of its reference by this factor has diverged.
DIVERGED_FACTOR = 10.0
# Below the rounding of float32 an error is not a number worth telling apart: 144 dB at most.
ROUNDING = 2.0**-24
# A frame whose fluctuation is below this share of its energy has no pattern to correlate with.
_FLAT = 1e-10


class FrameStatistics(eqx.Module):
    """Means over a frame, all channels together; a leading axis when frames are stacked."""

    error: Float[Array, "*T"]  # of the squared difference
    prediction: Float[Array, "*T"]  # of the squared prediction
    reference: Float[Array, "*T"]
    covariance: Float[Array, "*T"]  # of the fluctuations around each channel's mean
    prediction_variance: Float[Array, "*T"]
    reference_variance: Float[Array, "*T"]
    prediction_spectrum: Float[Array, "*T K"]
    reference_spectrum: Float[Array, "*T K"]
    reference_mean: Float[Array, "*T C"]


def frame_statistics(
    prediction: Field, reference: Field, *, domain: Domain, layout: Layout
) -> FrameStatistics:
    """What the metrics need of one predicted frame and its reference."""
    space = tuple(range(1, reference.ndim))

    def mean(values: Array, **how) -> Array:
        """Over the domain: scattered points stand for areas of their own."""
        if not isinstance(layout, Points):
            return jnp.mean(values, **how)
        weights = jnp.asarray(layout.weights(domain.shape) * len(layout.places), values.dtype)
        return jnp.mean(values * weights, **how)

    prediction_mean = mean(prediction, axis=space, keepdims=True)
    reference_mean = mean(reference, axis=space, keepdims=True)
    p, r = prediction - prediction_mean, reference - reference_mean
    return FrameStatistics(
        error=mean((prediction - reference) ** 2),
        prediction=mean(prediction**2),
        reference=mean(reference**2),
        covariance=mean(p * r),
        prediction_variance=mean(p**2),
        reference_variance=mean(r**2),
        prediction_spectrum=energy_spectrum(prediction, domain, layout),
        reference_spectrum=energy_spectrum(reference, domain, layout),
        reference_mean=reference_mean.reshape(-1),
    )


def relative_l2(statistics: FrameStatistics) -> np.ndarray:
    """`rL2(k) = ||prediction - reference|| / ||reference||`, over all channels together."""
    error, reference = _double(statistics.error), _double(statistics.reference)
    with np.errstate(all="ignore"):
        return np.asarray(np.sqrt(error / reference))


def psnr(mean_squared_error: np.ndarray, value_range: float) -> np.ndarray:
    """`10 log10(R²/MSE)` in dB; R is the range of the reference over the whole test set."""
    floor = (value_range * ROUNDING) ** 2
    with np.errstate(all="ignore"):
        decibels = 10 * np.log10(value_range**2 / np.maximum(mean_squared_error, floor))
    return np.asarray(decibels)


def correlation(statistics: FrameStatistics) -> np.ndarray:
    """Pearson's correlation of prediction and reference; 1 where the reference is flat."""
    covariance = _double(statistics.covariance)
    variance = _double(statistics.reference_variance)
    with np.errstate(all="ignore"):
        size = np.sqrt(variance * _double(statistics.prediction_variance))
        value = np.where(size > 0, covariance / np.where(size > 0, size, 1.0), 0.0)
    return np.where(variance <= _FLAT * _double(statistics.reference), 1.0, value)


def energy_error(statistics: FrameStatistics) -> np.ndarray:
    """Relative error of the energy `||u||²`, with its sign."""
    prediction, reference = _double(statistics.prediction), _double(statistics.reference)
    with np.errstate(all="ignore"):
        return np.asarray((prediction - reference) / reference)


def spectral_error(prediction: np.ndarray, reference: np.ndarray, *, mean_evolves: bool) -> float:
    """`||E_pred - E_ref|| / ||E_ref||` of time-averaged radial spectra.

    Shell 0 is the domain mean: it counts only where the mean evolves.
    """
    first = 0 if mean_evolves else 1
    difference = np.asarray(prediction, float)[first:] - np.asarray(reference, float)[first:]
    return float(np.linalg.norm(difference) / np.linalg.norm(np.asarray(reference, float)[first:]))


def first_divergence(statistics: FrameStatistics, initial: float) -> int | None:
    """The first step (from 1) whose state is not finite or far out of the reference's range.

    `initial` is the mean square of the state that the rollout starts from.
    """
    prediction = _double(statistics.prediction)
    largest = max(initial, float(np.max(_double(statistics.reference))))
    with np.errstate(all="ignore"):
        bad = ~np.isfinite(_double(statistics.error))
        bad |= ~(prediction <= DIVERGED_FACTOR**2 * largest)
    return int(np.argmax(bad)) + 1 if bad.any() else None


def first_step_above(curve: np.ndarray, threshold: float) -> int | None:
    """The first step (from 1) at which a curve passes a threshold; None if it never does.

    Values after a divergence are NaN and count as above.
    """
    above = ~(np.asarray(curve, float) <= threshold)
    return int(np.argmax(above)) + 1 if above.any() else None


def first_step_below(curve: np.ndarray, threshold: float) -> int | None:
    """The first step (from 1) at which a curve falls below a threshold; None if it never does."""
    return first_step_above(-np.asarray(curve, float), -threshold)


def _double(values: Array | np.ndarray) -> np.ndarray:
    return np.asarray(values, np.float64)

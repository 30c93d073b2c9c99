"""How long a rollout of a chaotic system holds, and whether its long run looks right.

Two chaotic trajectories part whatever the model, so that their difference at a late step says
nothing: what counts is when they part, and whether each has the statistics of the other.
"""

import numpy as np

# A rollout has parted from the truth where its error passes this part of the standard deviation.
PARTED = 0.3
# The correlation that a field of eddies has to keep with the truth.
CORRELATED = 0.9


def horizon(errors: np.ndarray, deviation: float, *, stride: int = 1) -> int:
    """Frames until the error, a root mean square over trajectories for each step, passes `PARTED`
    standard deviations: the last one before it does, where a step is `stride` frames.

    What is not a number counts as passed.
    """
    passed = ~(np.asarray(errors, float) <= PARTED * deviation)
    return stride * (int(np.argmax(passed)) if passed.any() else len(passed))


def correlated(prediction: np.ndarray, truth: np.ndarray, *, stride: int = 1) -> int:
    """Frames until the correlation of states `(B, T, C, *N)` with the truth, in the mean over
    trajectories, falls below `CORRELATED`: the last one before it does."""
    one, other = (np.asarray(a, float) for a in (prediction, truth))
    axes = tuple(range(2, one.ndim))
    one, other = (a - a.mean(axis=axes, keepdims=True) for a in (one, other))
    with np.errstate(all="ignore"):
        sizes = np.sqrt(np.sum(one**2, axis=axes) * np.sum(other**2, axis=axes))
        found = np.mean(np.sum(one * other, axis=axes) / sizes, axis=0)
    fell = ~(found >= CORRELATED)
    return stride * (int(np.argmax(fell)) if fell.any() else len(fell))


def mean_errors(prediction: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The root mean square difference `(T,)` of frames `(B, T, C, *N)`, over all trajectories."""
    off = np.asarray(prediction, float) - np.asarray(truth, float)
    with np.errstate(all="ignore"):
        return np.sqrt(np.mean(off**2, axis=(0, *range(2, off.ndim))))


def long_run(frames: np.ndarray) -> dict[str, np.ndarray | float]:
    """Statistics of frames `(B, T, C, *N)` far from their start.

    Mean, standard deviation, skewness and kurtosis over all values, the mean energy of each mode
    along the last axis, and the time in frames until the correlation of a point with itself has
    fallen to 1/e (infinite if it has not within the frames).
    """
    values = np.asarray(frames, float)
    mean, deviation = values.mean(), values.std()
    scaled = (values - mean) / max(deviation, 1e-300)
    modes = np.fft.rfft(values, axis=-1, norm="forward")
    spectrum = np.mean(np.abs(modes) ** 2, axis=tuple(range(modes.ndim - 1)))
    return {
        "mean": float(mean),
        "deviation": float(deviation),
        "skewness": float(np.mean(scaled**3)),
        "kurtosis": float(np.mean(scaled**4)),
        "spectrum": spectrum,
        "correlation_frames": _correlation_frames(scaled),
    }


def _correlation_frames(scaled: np.ndarray) -> float:
    """By the transform in time, padded so that the ends do not meet."""
    steps = scaled.shape[1]
    modes = np.fft.rfft(scaled, n=2 * steps, axis=1)
    power = np.mean(np.abs(modes) ** 2, axis=(0, *range(2, modes.ndim)))
    correlation = np.fft.irfft(power)[:steps] / (steps - np.arange(steps))
    below = np.flatnonzero(correlation < correlation[0] / np.e)
    return float(below[0]) if len(below) else float("inf")

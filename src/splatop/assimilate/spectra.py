"""What sample states tell of others like them: the variance of each number of the space."""

import numpy as np
from jaxtyping import Float
from scipy.special import digamma, polygamma

from ..spaces import Space
from .unknowns import Prior

# A number's own variance among samples counts beside so many samples of those of like wavelength,
# where these do not tell themselves how alike they are; at most so many; a variance that is none.
_SHRINK, _MOST_SHRUNK, _NOTHING = 6.0, 1e4, 1e-14


def prior_of_samples(
    numbers: Float[np.ndarray, "n C *R"],
    space: Space,
    source: str,
    *,
    independent: int | None = None,
) -> Prior:
    """From states in the numbers of the space: their variance about their mean, where it is told
    from zero. Of several states of one trajectory only one is `independent`; else all are.

    Around a ring sines and cosines of one wavelength count as alike; each variance is shrunk
    towards that of those of like wavelength in all directions, as far as these are alike.
    """
    n = independent or len(numbers)
    mean = numbers.mean(axis=0)
    noise = numbers.std(axis=0) / np.sqrt(n)
    mean = np.where(np.abs(mean) > 4 * noise, mean, 0.0)
    second = np.mean((numbers - mean) ** 2, axis=0)
    return Prior(mean, np.sqrt(alike_means(second, space, samples=n)), source)


def alike_means(
    squares: Float[np.ndarray, "C *R"], space: Space, samples: int | None = None
) -> Float[np.ndarray, "C *R"]:
    """Mean squares of numbers, averaged over sines and cosines of one wavelength, and shrunk
    towards those of like wavelength: a little, or if they are of so many independent `samples`, as
    far as these differ by no more than chance."""
    wave = np.sqrt(space.energies())
    alike = np.arange(space.shape[0]) if space.scattered else np.zeros(space.shape, int)
    for number, axis in enumerate(() if space.scattered else space.domain.axes):
        along = np.arange(space.shape[number])
        along = (along + 1) // 2 if axis.periodic else along
        place = [-1 if i == number else 1 for i in range(space.dims)]
        alike = alike * space.shape[number] + along.reshape(place)
    means = np.empty_like(squares)
    for channel in range(len(squares)):
        shells = np.round(wave[channel] / _step(space)).astype(int)
        own, members = _mean_over(alike, squares[channel])
        weight = (samples or 1) * members
        if samples is None:
            like, shrink = _mean_over(shells, squares[channel])[0], np.array(_SHRINK)
        else:
            first = np.unique(alike, return_index=True)[1]
            like, shrink = _alike_variances(shells, own, weight, first)
        means[channel] = (weight * own + shrink * like) / (weight + shrink)
    return means


def _alike_variances(
    shells: np.ndarray, own: np.ndarray, weight: np.ndarray, first: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """For each number the variance of those in its shell, and as how many samples it counts.

    The variances of a shell, each of `weight` samples, scatter by chance and by being different;
    how much their logarithms scatter beyond chance tells how alike they are (Smyth 2004, moderated
    variances). So modes that no sample has stay at nothing beside others of their wavelength.
    `first` are the numbers, flat, that stand for those that are alike.
    """
    like, shrink = np.zeros(shells.max() + 1), np.full(shells.max() + 1, _SHRINK)
    least = max(_NOTHING * own.max(), 1e-300)
    for shell in np.unique(shells):
        members = first[shells.ravel()[first] == shell]
        held, d = np.maximum(own.ravel()[members], least), weight.ravel()[members] / 2
        e = np.log(held) - digamma(d) + np.log(d)
        like[shell] = np.average(held, weights=d)
        if len(members) < 2:
            continue
        beyond = float(e.var(ddof=1) - polygamma(1, d).mean())
        if beyond <= polygamma(1, _MOST_SHRUNK / 2):
            shrink[shell] = _MOST_SHRUNK
            continue
        half = _inverse_trigamma(beyond)
        shrink[shell] = 2 * half
        like[shell] = np.exp(e.mean() + digamma(half) - np.log(half))
    return like[shells], shrink[shells]


def _inverse_trigamma(wanted: float) -> float:
    """Between 1e-4 and 1e4, by halving the interval of its logarithm."""
    low, high = 1e-4, 1e4
    for _ in range(60):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if polygamma(1, middle) > wanted else (low, middle)
    return low


def _mean_over(groups: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean of the values of each one's group, and how many those are."""
    count = np.bincount(groups.ravel())
    mean = np.bincount(groups.ravel(), values.ravel()) / np.maximum(count, 1)
    return mean[groups], count[groups]


def _step(space: Space) -> float:
    """The wavenumber of half a wave along the longest side."""
    return np.pi / max(space.domain.lengths)

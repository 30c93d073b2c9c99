"""What can be expected of an initial state: how large its modes are, also those that noise hides.

A free mode that noise hides is fitted to noise. Where an equation turns it from frame to frame,
that noise then tells of its coefficients what is not there: the search crawls, and intervals are
too narrow. Held to its expected size a mode counts for as much as it tells.
"""

from collections.abc import Iterator

import numpy as np

from .followed import Followed
from .inverse import InverseProblem

# From this share of the band on modes tell how the spectrum falls off.
_TAIL = 0.5
# A mode stands out by so many deviations of the noise.
_DEVIATIONS = 5.0
# The energy of modes falls off at least as that of a jump.
_LEAST_DECAY = 2.0
# Modes that are held more than this say nothing of themselves.
_LEAST_SHARE = 0.05
_UNTOLD = 1e-6
# A mode that is held by this is held to nothing; held by more, its rounding would be a misfit.
_MOST = 1e4


def without(reduced: Followed) -> np.ndarray:
    """No restraint at all."""
    return np.zeros(reduced.modes(reduced.states[0, 0]).shape)


def first_restraint(problem: InverseProblem, reduced: Followed) -> np.ndarray:
    """Noise over the expected size of each mode of a state, `(C, *K)`.

    Times the mode it is a residual of the size of noise. Modes that stand out are free (to hold
    them would make them smaller, and look like less damping); the others are expected to go on
    falling as these do (a power of the wavenumber).
    """
    energy = np.abs(reduced.modes(reduced.states)) ** 2
    # Where a field decays, its pieces begin with more than their mean.
    begin = energy[:, : max(1, energy.shape[1] // 4)]
    dust = np.sqrt(1 / (begin.shape[0] * begin.shape[1]))
    found = []
    for c, (shell, carried, floor, weights) in enumerate(_channels(problem, reduced)):
        excess = begin[:, :, c].mean(axis=(0, 1)) - floor
        least = _DEVIATIONS * dust * floor
        seen = (excess > least) & carried
        expected = np.maximum(excess, least)
        if seen.any():
            tail = seen & (shell >= _TAIL)
            decay = _LEAST_DECAY
            if np.unique(shell[tail]).size > 2:
                logs = np.log(shell[tail]), np.log(excess[tail])
                decay = max(decay, -float(np.polyfit(*logs, 1, w=np.sqrt(weights[tail]))[0]))
            beyond = least * np.maximum(shell / np.max(shell[seen]), 1.0) ** -decay
            expected = np.where(seen, np.inf, beyond)
        found.append(np.sqrt(floor / np.maximum(2 * expected, 1e-300)))
    return np.minimum(np.stack(found), _MOST)


def next_restraint(
    problem: InverseProblem, reduced: Followed, states: np.ndarray, seen: np.ndarray
) -> np.ndarray:
    """The restraint that fitted states `(S, C, *M)` call for.

    `seen` `(C, *K)` is in how many frames each mode is seen. The spectrum beyond what stands out
    is the power of the wavenumber, or the exponential, that makes the fitted modes most likely.
    """
    assert reduced.restraint is not None
    modes = reduced.modes(states)
    with np.errstate(
        over="ignore"
    ):  # of what is held to nothing, and gone at once, nothing is seen
        share = 1 / (1 + np.square(reduced.restraint) / np.maximum(seen, 1e-300))
    found = []
    for c, (shell, carried, floor, weights) in enumerate(_channels(problem, reduced)):
        noise = floor / np.maximum(seen[c], 1e-300)
        told = (weights > 0) & (shell >= _TAIL) & (share[c] > _LEAST_SHARE)
        if not floor.any() or not told.any():
            found.append(reduced.restraint[c])
            continue
        # What is held to nothing says nothing, not even divided by its share.
        own = np.where(share[c] > _UNTOLD, modes[:, c] / np.maximum(share[c], _UNTOLD), 0.0)
        energy = np.mean(np.abs(own) ** 2, axis=0)
        curve = _likeliest(energy[told], noise[told], shell[told], weights[told])
        with np.errstate(over="ignore"):
            expected = curve(np.maximum(shell, _TAIL))
        stands_out = (energy > (1 + _DEVIATIONS) * noise) & carried
        expected = np.where(stands_out, np.inf, expected)
        found.append(np.sqrt(floor / np.maximum(expected, 1e-300)))
    return np.minimum(np.stack(found), _MOST)


def smoothed(reduced: Followed, states: np.ndarray) -> np.ndarray:
    """Noisy states `(S, C, *M)`, each mode as large as can be expected of it."""
    assert reduced.restraint is not None
    return reduced.smoothed(states)


def free_numbers(reduced: Followed) -> int:
    """How many numbers of a state are not held at all."""
    assert reduced.restraint is not None
    return int(np.sum((reduced.restraint == 0) * reduced.multiplicity))


def determined(reduced: Followed, seen: np.ndarray) -> float:
    """How many numbers of a state the frames determine, rather than the restraint."""
    assert reduced.restraint is not None
    share = seen / (seen + np.square(reduced.restraint))
    return float(np.sum(share * reduced.multiplicity))


def _likeliest(energy: np.ndarray, noise: np.ndarray, shell: np.ndarray, weights: np.ndarray):
    """The spectrum under which modes of this energy, with this noise on top, are most likely."""
    best, least = None, np.inf
    sizes = np.max(noise) * 10.0 ** np.arange(-4, 8, 0.2)[:, None]
    for law in (lambda decay, r: r**-decay, lambda decay, r: np.exp(-decay * (r - 1))):
        for decay in _LEAST_DECAY * 10.0 ** np.arange(0, 1.8, 0.05):
            whole = sizes * law(decay, shell) + noise
            misfit = np.sum(weights * (np.log(whole) + energy / whole), axis=1)
            if np.min(misfit) < least:
                least, best = np.min(misfit), (law, decay, float(sizes[np.argmin(misfit), 0]))
    assert best is not None
    law, decay, size = best
    return lambda r: size * law(decay, r)


def _channels(problem: InverseProblem, reduced: Followed) -> Iterator[tuple[np.ndarray, ...]]:
    """Of the modes of each channel the wavenumber, whether it may carry the field, the energy of
    noise in one frame, and how many they stand for."""
    shape, spectrum = reduced.modes(reduced.states[0, 0]).shape, problem.spectrum
    every = (
        reduced.shells(spectrum),
        reduced.carried(spectrum),
        reduced.floor(spectrum),
        reduced.multiplicity,
    )
    return zip(*(np.broadcast_to(part, shape) for part in every), strict=True)

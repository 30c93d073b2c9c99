"""Where the minimiser begins, and where it begins again if it ended in a wrong minimum."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from scipy.stats import norm, qmc

from .minimise import STUCK, Data, Forward, Minimum, Once, Progress, linear_step, minimise
from .observations import Observations
from .observe import Taps
from .prior import first_guess
from .resume import Entry
from .unknowns import Prior, Unknowns

# Reports of the first frame from which they are a beginning.
_ENOUGH = 3
# Beginnings that are tried, the likeliest first; and where windows half as long were explained, so
# that the model is right and only the way is not found.
_MOST, _MOST_ON_THE_WAY = 16, 48
# Of an equation that is linear but for its coefficients: values from which all unknowns go on, and
# standard deviations of logarithms of values that are tried: seventeen normal numbers reach 1.9 of
# them, factors of 4 and 200.
_FOLLOWED = 4
_REACHES = (np.log(2.0), np.log(16.0))


# A state to begin from, made when it is its turn.
Beginning = Callable[[], np.ndarray]


def beginnings(
    first: Observations, sigma: np.ndarray, prior: Prior, unknowns: Unknowns
) -> list[Beginning]:
    """What the first frame's reports tell alone, then random states that agree with them."""
    if len(first) < _ENOUGH:
        return [lambda: np.zeros(unknowns.size, np.float32)]

    def guessed(seed: int | None) -> np.ndarray:
        x = np.zeros(unknowns.size, np.float32)
        guess = first_guess(first, prior, unknowns.space, sigma, seed=seed)
        x[: unknowns.numbers_count] = guess.ravel()[np.asarray(unknowns.index)]
        return x

    return [partial(guessed, seed) for seed in (None, *range(1, _MOST_ON_THE_WAY))]


def from_coefficients(
    forward: Forward, window: tuple[Taps, Data], *, once: Once, **how: Any
) -> Minimum:
    """The first minimum that explains the reports, of an equation that is linear but for its
    unknown coefficients; if there is none, the best.

    For given coefficients the state is a linear problem. All together have many minima, because a
    wave of a wrong speed can fit by its next crest. So the likeliest states for several values come
    first, and all together go on from those that leave least.
    """
    unknowns = forward.unknowns
    # The first point of the sequence is 0, which no probability is.
    among = norm.ppf(qmc.Halton(len(unknowns.names), scramble=False).random(_MOST + 1)[1:])
    spread = np.asarray(unknowns.spread, float)
    tried = [np.zeros((1, len(spread))), *(reach * among / spread for reach in _REACHES)]
    entries = [
        once(partial(_likeliest_state, forward, window, values)) for values in np.concatenate(tried)
    ]
    entries.sort(key=lambda entry: float(entry["promised"]))
    best = min(entries, key=lambda entry: float(entry["left"]))
    found = []
    for entry in (*entries[:_FOLLOWED], best):
        found.append(minimise(forward, [window], entry["x"], once=once, **how))
        if found[-1].ratio <= STUCK:
            return found[-1]
    return min(found, key=lambda one: one.ratio if np.isfinite(one.ratio) else np.inf)


def _likeliest_state(forward: Forward, window: tuple[Taps, Data], values: np.ndarray) -> Entry:
    """All unknowns with the likeliest state for these values of the coefficients, twice the cost
    that is `left` there, and what is `promised` to be left by a step of all of them.

    Where reports are precise a right value that is missed by a few per cent leaves more than a
    wrong one, but a step leads to it.
    """
    unknowns = forward.unknowns
    x = np.zeros(unknowns.size, np.float32)
    x[unknowns.numbers_count : unknowns.known_count] = values
    held = eqx.tree_at(
        lambda f: f.unknowns.spread,
        Forward(forward.stepper, unknowns.shifted(x)),
        jnp.zeros_like(unknowns.spread),
    )
    alone = linear_step(held, window, np.zeros_like(x), exact=True)
    x = x + np.asarray(alone.step)
    together = linear_step(forward, window, x, exact=False)
    left = float(np.sum(np.asarray(together.sums)))
    promised = left - float(together.fall)
    left, promised = (one if np.isfinite(one) else np.inf for one in (left, promised))
    return {"x": x, "left": np.array(left), "promised": np.array(promised)}


def from_starts(
    forward: Forward,
    windows: list[tuple[Taps, Data]],
    starts: Sequence[Beginning],
    *,
    report: Callable[[Progress], None],
    **how: Any,
) -> Minimum:
    """The first minimum that explains the reports, by way of growing windows; if no start leads to
    one, the best that there is.

    Short windows tell little of a state, and all starts would end in what is likeliest by them. So
    on its way each random start is itself what is expected (randomised maximum likelihood), and
    only the last window has the prior again. Only the likeliest start is followed to the end in any
    case.
    """
    if len(windows) == 1 or len(starts) == 1:
        return minimise(forward, windows, starts[0](), report=report, **how)
    steps, explained = 0, 0

    def counted(p: Progress) -> None:
        report(Progress(p.frames, steps + p.step, p.cost, p.count))

    for number, start in enumerate(starts):
        if number >= _MOST and 2 * explained < len(windows):
            break
        x = start()
        centre = x if number else np.zeros_like(x)
        around = eqx.tree_at(lambda f: f.unknowns, forward, forward.unknowns.shifted(centre))
        led = minimise(around, windows[:-1], x - centre, leading=True, report=counted, **how)
        steps, explained = steps + led.steps, max(explained, led.explained)
        if not np.isfinite(led.misfit):
            continue
        found = minimise(forward, windows[-1:], centre + led.x, report=counted, **how)
        steps += found.steps
        if np.isfinite(found.misfit) and found.ratio <= STUCK:
            return replace(found, steps=steps)
    return minimise(forward, windows, starts[0](), report=counted, **how)

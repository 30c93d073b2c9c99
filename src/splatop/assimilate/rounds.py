"""The minimum of a window, with the scales that reports do not say: noise, strength of the prior,
error of the model."""

from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np

from .minimise import Data, Forward, Minimum, growing
from .observe import Taps
from .posterior import directions_told, told_each
from .runs import seen
from .starts import from_coefficients, from_starts
from .window import Options, Window

# Rounds in which scales are estimated, and the change that ends them.
_ROUNDS = 6
_SETTLED = 0.05  # of the logarithm of the noise; of other scales three times that
# By how much a scale changes in one round, at most.
_LEAST, _MOST = 0.3, 3.0
# Standard deviations from which on a sum of squares is not what was expected.
_SIGNIFICANT = 4.0
# A model error below this share of the field's spread in a frame is none.
NO_ERROR = 1e-5


@dataclass(frozen=True, eq=False)
class Settled:
    """The minimum of a window whose scales are settled; `noise` holds those that were estimated."""

    window: Window
    forward: Forward
    minimum: Minimum
    sigma: np.ndarray
    noise: dict[str, float]
    taps: Taps
    data: Data


def settle(window: Window, options: Options, start: np.ndarray | None = None) -> Settled:
    """The minimum, with the noise estimated where reports do not say it, and the strength of a
    prior that was fitted to single times, and of a model error that is not known.

    Of `n` reports that tell `d` directions of the unknowns, `n - d` squared residuals are expected
    in units of the noise, and as many squared unknowns of a kind as directions of them are told:
    scales are changed until it is so (MacKay's rule for the largest evidence).
    """
    observations = window.observations
    missing = {
        str(name): float(window.noise[str(name)])
        for name in np.unique(observations.fields)
        if not _says_noise(window, str(name))
    }
    mark = window.mark(options)

    def once(compute):
        return options.journal.once(mark, compute)

    sigma = observations.sigma_or(missing)
    starts = window.starts(sigma) if start is None else [lambda: start]
    grows = window.grow and not window.dynamics.linear
    lengths = growing(window.steps) if grows else [window.steps]
    widened = False
    for turn in range(_ROUNDS):
        sigma = observations.sigma_or(missing)
        forward = window.forward
        programs = window.programs(lengths if turn == 0 else lengths[-1:], sigma)
        how = {"most_steps": options.most_steps, "report": options.report, "once": once}
        if turn == 0 and start is None and window.dynamics.linear and window.unknown:
            found = from_coefficients(forward, programs[-1], **how)
        else:
            found = from_starts(forward, programs, starts, linear=window.linear, **how)
        settled = Settled(window, forward, found, sigma, missing, *programs[-1])
        if turn == _ROUNDS - 1 or not np.isfinite(found.misfit):
            break

        def told(among: slice, settled: Settled = settled) -> float:
            entry = once(lambda: {"told": np.array(_told(settled, among))})
            return float(entry["told"])

        changed, missing = _new_noise(settled, told)
        window, x, more = _new_scales(settled, told)
        if max(changed, more) < _SETTLED:
            wider = None if window.prior.fitted or widened else _wider(settled, once)
            if wider is None:
                break
            window, x = wider
            widened = True
        starts = [lambda x=x: x]
    return settled


def _at(settled: Settled):
    return settled.forward, settled.taps, settled.data, settled.minimum


def _told(settled: Settled, among: slice) -> float:
    return directions_told(*_at(settled), among)


def _new_noise(settled: Settled, told) -> tuple[float, dict[str, float]]:
    """The noise of fields whose reports do not say it, and the largest change of a logarithm."""
    if not settled.noise:
        return 0.0, {}
    found, observations = settled.minimum, settled.window.observations
    predicted = np.asarray(seen(settled.forward, jnp.asarray(found.x), settled.taps), float)
    free = max(1 - told(slice(None)) / found.count, 0.05)
    changed, noise = 0.0, {}
    for name, before in settled.noise.items():
        own = observations.fields == name
        left = float(np.mean((observations.values[own] - predicted[own]) ** 2))
        noise[name] = float(max(np.sqrt(left / free), 1e-6 * float(observations.values[own].std())))
        changed = max(changed, abs(np.log(noise[name] / before)))
    return changed, noise


def _new_scales(settled: Settled, told) -> tuple[Window, np.ndarray, float]:
    """The window with a prior and a model error of other strengths, the same unknowns in these
    units, and a third of the largest change of a logarithm."""
    window, x, changed = settled.window, settled.minimum.x.copy(), 0.0
    unknowns = settled.forward.unknowns

    def factor(among: slice) -> float:
        square = float(np.sum(np.square(x[among], dtype=float)))
        return float(np.clip(np.sqrt(square / max(told(among), 1e-9)), _LEAST, _MOST))

    if window.prior.fitted:
        among = slice(0, unknowns.numbers_count)
        change = factor(among)
        x[among] /= change
        changed = abs(np.log(change)) / 3
        window = replace(window, prior=window.prior.scaled(change))
    if window.errors is not None and window.errors.fitted and window.errors.scale > NO_ERROR:
        among = slice(unknowns.known_count, None)
        change = factor(among)
        x[among] /= change
        changed = max(changed, abs(np.log(change)) / 3)
        window = replace(window, errors=window.errors.scaled(change))
    return window, x, changed


def _wider(settled: Settled, once) -> tuple[Window, np.ndarray] | None:
    """With more expected of waves that the state has more of than a prior that was not fitted to it
    allows, and the same unknowns in these units; None if it agrees with the prior.

    Waves too fine to be told take the factor of those that are told next to them: most often states
    are older or younger than those that the prior was sampled from. Where reports are not
    explained, the equation may be wrong, and no more is allowed.
    """
    found, unknowns = settled.minimum, settled.forward.unknowns
    n = max(found.count, 1)
    if not found.ratio > 1 + _SIGNIFICANT * np.sqrt(2 / n):
        return None
    each = once(lambda: {"each": told_each(*_at(settled))})["each"][: unknowns.numbers_count]
    left = max(n - float(each.sum()), 1.0)
    if found.misfit > left + _SIGNIFICANT * np.sqrt(2 * left):
        return None
    shell = np.asarray(unknowns.shell)
    told = np.maximum(np.bincount(shell, each, unknowns.shells), 0.0)
    square = np.bincount(shell, found.x[: unknowns.numbers_count] ** 2, unknowns.shells)
    more = square > told + _SIGNIFICANT * np.sqrt(2 * np.maximum(told, 1.0))
    if not more.any():
        return None
    factor = np.where(more, np.sqrt(square / np.maximum(told, 1.0)), 1.0)
    fine = told < 0.5 * np.bincount(shell, minlength=unknowns.shells)
    for own in range(1, unknowns.shells):
        if fine[own] and not more[own]:
            factor[own] = factor[own - 1]
    std, x = settled.window.prior.std.copy(), found.x.copy()
    std.ravel()[np.asarray(unknowns.index)] *= factor[shell]
    x[: unknowns.numbers_count] /= factor[shell]
    prior = settled.window.prior
    source = f"{prior.source}; up to {factor.max():.1f} times more, as the reports tell"
    return replace(settled.window, prior=replace(prior, std=std, source=source)), x


def _says_noise(window: Window, name: str) -> bool:
    held = window.observations
    return held.sigma is not None and bool(np.isfinite(held.sigma[held.fields == name]).all())

"""Whether reports tell the coefficients that were unknown: other values that explain them as well,
and coefficients that they hardly see, or see together only."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from ..physics import Physics
from .minimise import Forward
from .runs import rolled
from .unknowns import COEFFICIENT_FACTOR
from .window import Window

# Waves and times whose phases are followed, and other values that are looked at.
_WAVES, _TIMES, _VALUES = 48, 200, 400
# What a value adds to the mean squared misfit, up to which it explains the reports as well.
_AS_WELL = 0.5
# Of a wave's change by a coefficient: what may be decay, or differ from state to state, where it is
# a phase that turns evenly.
_UNEVEN = 0.1
# The larger another value is, the less likely: one so many times the found one is only told beside
# it, unless it is much nearer to what was expected.
_FAR = 10.0
# Standard deviation of a logarithm from which on a coefficient is hardly told, and correlation from
# which on two are told together only.
_HARDLY, _TOGETHER = 0.5, 0.95


def other_values(
    window: Window, forward: Forward, x: np.ndarray, sigma: np.ndarray
) -> dict[str, tuple[float, ...]]:
    """Of unknown coefficients: values at which waves around a ring are in the same phase at the
    times of all reports as at the one that was found.

    Between two reports a wave may have passed once more, or many times, unseen.
    """
    physics, held = window.dynamics.moving, window.observations
    if not isinstance(physics, Physics) or not window.dynamics.domain.all_periodic:
        return {}
    wide = [name for name, factor in window.unknown.items() if factor == COEFFICIENT_FACTOR]
    position = np.round((held.times - window.begin) / window.dynamics.dt, 6)
    times, count = np.unique(position, return_counts=True)
    if not wide or len(times) < 2:
        return {}
    gap = float(np.diff(times).min()) * window.dynamics.dt
    few = np.unique(np.linspace(0, len(times) - 1, _TIMES).astype(int))
    times, share = times[few], count[few] / count[few].sum()
    value = {n: float(v) for n, v in forward.unknowns.coefficients(jnp.asarray(x)).items()}
    states = np.asarray(rolled(forward, jnp.asarray(x), window.steps), float)
    seen = [window.dynamics.fields.index(str(name)) for name in np.unique(held.fields)]
    noise = [np.median(sigma[held.fields == window.dynamics.fields[c]]) for c in seen]
    waves = _waves(states[:, seen]) / np.array(noise)[:, None]
    waves = waves.reshape(len(states), -1)
    kept = np.argsort(-np.mean(np.abs(waves) ** 2, axis=0))[:_WAVES]
    nearest = np.round(times).astype(int).clip(0, len(states) - 1)
    power = np.abs(waves[nearest][:, kept]) ** 2 * share[:, None]
    since = (times - times[0]) * window.dynamics.dt
    found = {}
    for name in wide:
        turn = _turning(physics, states, value, name, seen, kept, power.sum(axis=0))
        if turn is None:
            continue
        leading = turn[np.argmax(power.sum(axis=0) * turn**2)]
        start = abs(window.dynamics.coefficients[name])
        others = _others(value[name], abs(2 * np.pi / (gap * leading)), start)
        phase = since[:, None] * turn
        added = np.array([np.sum(power * 4 * np.sin(0.5 * v * phase) ** 2) for v in others])
        found[name] = tuple(value[name] + v for v in others[added <= _AS_WELL])
    return {name: values for name, values in found.items() if values}


def _waves(u: np.ndarray) -> np.ndarray:
    """Of states `(T, C, *N)` all waves that there are, `(T, C, K)`."""
    made = np.fft.fftn(u, axes=tuple(range(2, u.ndim)), norm="forward")
    return made.reshape(*u.shape[:2], -1)


def _turning(
    physics: Physics,
    states: np.ndarray,
    value: Mapping[str, float],
    name: str,
    seen: list[int],
    kept: np.ndarray,
    power: np.ndarray,
) -> np.ndarray | None:
    """By how much each wave's phase turns, in radians for each unit of time and of the coefficient;
    None if it does not turn evenly whatever the state is."""

    def rate(number: int) -> np.ndarray:
        u = jnp.asarray(states[number], jnp.float32)

        def tendency(one):
            return physics.tendency(u, {**value, name: one})

        change = jax.jvp(tendency, (jnp.asarray(value[name]),), (jnp.ones(()),))[1]
        both = np.stack([np.asarray(change, float), states[number]])[:, seen]
        changed, before = _waves(both).reshape(2, -1)[:, kept]
        return changed / np.where(np.abs(before) > 0, before, np.inf)

    first, later = rate(0), rate(len(states) // 2)
    whole = np.sum(power * np.abs(first) ** 2)
    uneven = np.sum(power * (np.real(first) ** 2 + np.abs(first - later) ** 2))
    return np.imag(first) if whole > 0 and uneven < _UNEVEN * whole else None


def _others(value: float, every: float, start: float) -> np.ndarray:
    """What is added to a value for those of its sign in such steps: all below and up to `_FAR`
    times it, and as far as they are much nearer to where it started."""
    size = abs(value)
    most = max(_FAR * size, start * np.sqrt(start / size)) - size
    up = every * np.arange(1, min(_VALUES, int(most / every)) + 1)
    down = -every * np.arange(1, min(_VALUES, int(0.999 * size / every)) + 1)
    return np.sign(value) * np.concatenate([down, up])


def doubts(
    window: Window,
    values: Mapping[str, float],
    deviations: np.ndarray | None,
    variances: np.ndarray,
    others: Mapping[str, tuple[float, ...]],
) -> list[str]:
    """What speaks against the estimates of coefficients."""
    found = []
    for name, also in others.items():
        near = sorted(also, key=lambda v: abs(np.log(v / values[name])))[:3]
        found.append(
            f"{name} = {', '.join(f'{v:.4g}' for v in near)} would explain the reports as well "
            f"as {values[name]:.4g}, because waves may pass unseen between two reports: give "
            f"reports closer in time or at uneven times, or {name} as known"
        )
    names = list(window.unknown)
    spread = np.log([window.unknown[name] for name in names]) if names else np.zeros(0)
    wide = [n for n, s, v in zip(names, spread, variances, strict=True) if s * np.sqrt(v) > _HARDLY]
    if not wide or deviations is None:
        return found
    first = window.unknowns.numbers_count
    own = deviations[:, first : first + len(names)]
    related = np.abs(np.corrcoef(own.T)) if len(names) > 1 else np.ones((1, 1))
    for name in wide:
        at = names.index(name)
        more = [n for n in names if n != name and related[at, names.index(n)] > _TOGETHER]
        why = f": only together with {', '.join(more)}" if more else ""
        found.append(
            f"{name} is hardly told by these reports{why}; one standard deviation is a factor of "
            f"{np.exp(spread[at] * np.sqrt(variances[at])):.2g}: give it as known, leave its term "
            "out, or give more reports"
        )
    return found

"""Window after window: what is known at the end of one is expected at the next's beginning."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..errors import SplatopError
from .analyse import analyse
from .check import HIGH
from .observations import Observations, checked
from .observe import ON_FRAME
from .runs import rolled
from .spectra import alike_means
from .state import Analysis
from .unknowns import COEFFICIENT_FACTOR, Prior
from .window import Options, Window

# Of what is expected at a window's beginning: the spread of the last analysis times this, and a
# share of what was expected at the very first, for errors of the model.
_INFLATED, _FLOOR = 2.0, 0.02
# Without samples: a share of what was expected at the very first.
_UNSAMPLED = 0.5


def cycle(
    whole: Window, length: int, options: Options, *, warnings: tuple[str, ...] = ()
) -> Analysis:
    """Analyses of windows of so many frames, one after the other; the last, with those before."""
    dt = whole.dynamics.dt
    steps = whole.steps
    found: Analysis | None = None
    for first in range(0, steps, length):
        last = min(first + length, steps)
        if steps - last < max(2, length // 4):
            last = steps
        low, high = whole.begin + first * dt, whole.begin + last * dt
        own = _between(whole.observations, low, high, first == 0, dt)
        held = (
            None if whole.held_out is None else _between(whole.held_out, low, high, first == 0, dt)
        )
        if own is None:
            raise SplatopError(
                f"expected reports in every window, got none between {low:g} and {high:g}: take "
                f"longer windows, or check the unit of time, in which frames are dt = {dt:g} apart"
            )
        if found is None:
            window = replace(whole, observations=own, held_out=held)
            found = analyse(window, options, warnings=warnings)
        else:
            found = _next(found, own, options, held)
        if last == steps:
            break
    assert found is not None
    return found


def next_window(analysis: Analysis, observations: Any, **changes: Any) -> Analysis:
    """See `Analysis.advance`; `changes` are of `Options`, or of how the table is read."""
    dynamics, before = analysis.dynamics, Options(**analysis.options)
    given = {
        name: changes.pop(name) for name in ("columns", "time_unit", "places") & changes.keys()
    }
    reading = {**before.reading, **given}
    if isinstance(observations, Observations):
        reading = {}
    held = Observations.read(
        observations, fields=dynamics.fields, since=analysis.observations.since, **reading
    )
    held, warnings = checked(held, dynamics.fields, dynamics.domain)
    late = held.times > analysis.end + ON_FRAME * dynamics.dt
    if not late.all():
        raise SplatopError(
            f"expected reports after {analysis.end:g}, where the last window ends, got "
            f"{int((~late).sum())} before, the first at {held.times.min():g}: they were used, or "
            "came too late"
        )
    options = replace(before, **{**changes, "reading": {**before.reading, **given}})
    return _next(analysis, held, options, None, tuple(warnings))


def _between(
    observations: Observations, low: float, high: float, first: bool, dt: float
) -> Observations | None:
    slack = ON_FRAME * dt
    inside = (observations.times <= high + slack) & (
        (observations.times >= low - slack) if first else (observations.times > low + slack)
    )
    return observations.take(inside) if inside.any() else None


def _next(
    before: Analysis,
    observations: Observations,
    options: Options,
    held: Observations | None,
    warnings: tuple[str, ...] = (),
) -> Analysis:
    expected, coefficients, factors = expected_at_end(before)
    coarse = before.dynamics if before.parts == 1 else before.dynamics.with_dt(1)
    assert coarse is not None
    # Cut frames are put together again: the next window's reports may fall elsewhere.
    whole = replace(coarse, coefficients=coefficients)
    if before.parts > 1:
        whole = replace(
            whole,
            dt=before.dt,
            stepper=whole._physics(_coarser(whole.numerics, before.parts), before.dt),
        )
    window = Window(
        dynamics=whole,
        observations=observations,
        prior=expected,
        unknown=factors,
        begin=before.end,
        noise=_noise(before),
        grow=False,
        held_out=held,
        climate=before.climate,
        errors=before.errors,
    )
    found = analyse(window, options, climate=before.climate, warnings=warnings)
    if found.check.ratio > HIGH:
        # Perhaps the last analysis was further off than it knew: begin as if cold, from its end.
        wide = replace(before.climate, mean=expected.mean, std=_UNSAMPLED * before.climate.std)
        cold = replace(window, prior=wide, grow=True)
        again = analyse(cold, options, climate=before.climate, warnings=warnings)
        if again.check.ratio < found.check.ratio:
            found = again
    return replace(found, earlier=before)


def _coarser(numerics: Any, parts: int) -> Any:
    return replace(numerics, substeps=numerics.substeps * parts)


def _noise(before: Analysis) -> dict[str, float]:
    names = np.unique(before.observations.fields)
    typical = {
        str(n): float(np.median(before.sigma[before.observations.fields == n])) for n in names
    }
    return {**dict.fromkeys(before.dynamics.fields, float(np.median(before.sigma))), **typical}


def expected_at_end(before: Analysis) -> tuple[Prior, dict[str, float], Mapping[str, float]]:
    """The state at the end of a window with its spread in each number, the coefficients, and the
    factors that unknown ones are known to."""
    unknowns = before.forward.unknowns
    x = jnp.asarray(before.minimum.x)

    def numbers(x: Any) -> np.ndarray:
        end = rolled(before.forward, x, before.steps)[-1]
        return np.asarray(unknowns.numbers_of(end, unknowns.coefficients(x)), float)

    mean, climate = numbers(x), before.climate.std
    std = _UNSAMPLED * climate
    factors = dict.fromkeys(unknowns.names, COEFFICIENT_FACTOR)
    if before.deviations is not None:
        apart = [numbers(x + deviation) - mean for deviation in before.deviations]
        square = alike_means(np.mean(np.square(apart), axis=0), unknowns.space)
        std = np.minimum(np.hypot(_INFLATED * np.sqrt(square), _FLOOR * climate), climate)
        factors = {
            name: float(np.exp(2 * spread * np.sqrt(max(variance, 1e-12))))
            for name, spread, variance in zip(
                unknowns.names, np.asarray(unknowns.spread), before.variances, strict=True
            )
        }
    source = f"the analysis until {before.end:g}"
    return Prior(mean, std, source), before.coefficients, factors

"""One window: from reports and a prior to an analysis."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from .check import HIGH, check
from .observations import Observations
from .observe import ON_FRAME
from .posterior import laplace, perturbed_analyses
from .rounds import Settled, settle
from .runs import seen
from .state import Analysis, HeldOut
from .told import doubts, other_values
from .unknowns import Prior
from .window import MOST_PARTS, Options, Window

# Frames may be cut into so many parts, such that reports fall on frames.
_PARTS = (1, 2, 3, 4, 5, 6, 8, MOST_PARTS)
# Beyond this many parts frames are not halved any more.
_MOST_HALVED = 8
# Of the noise: an error of interpolation in time that does no harm.
_IN_TIME = 0.25
SPREADS = ("laplace", "ensemble", "none")


def analyse(
    window: Window,
    options: Options,
    *,
    climate: Prior | None = None,
    warnings: tuple[str, ...] = (),
) -> Analysis:
    """The analysis of a window. Reports between frames have the frames cut into parts until the
    cubic between them is exact to a share of the noise."""
    parts, start = _parts(window), None
    while True:
        cut = window.finer(parts)
        assert cut is not None
        found = settle(cut, options, start)
        error = _error_in_time(found)
        if error <= _IN_TIME:
            break
        if 2 * parts > _MOST_HALVED or window.finer(2 * parts) is None:
            warnings = (
                *warnings,
                f"between frames the state is interpolated with an error of {error:.1f} times the "
                "noise: give reports at the times of frames, or a model with shorter frames",
            )
            break
        window = replace(window, prior=replace(found.window.prior, fitted=False))
        parts *= 2
        finer = window.finer(parts)
        assert finer is not None
        start = np.zeros(finer.unknowns.size, np.float32)
        known = found.forward.unknowns.known_count
        start[:known] = found.minimum.x[:known]
    return _made(found, options, climate=climate, warnings=warnings)


def _made(
    found: Settled, options: Options, *, climate: Prior | None, warnings: tuple[str, ...]
) -> Analysis:
    window, forward, minimum = found.window, found.forward, found.minimum
    predicted = np.asarray(seen(forward, jnp.asarray(minimum.x), found.taps), float)
    expected = min(len(found.data.values), forward.unknowns.size)
    checked = check(
        window.observations,
        predicted,
        found.sigma,
        ratio=minimum.ratio,
        prior_share=minimum.prior / max(expected, 1),
        converged=minimum.converged,
        estimated=found.noise,
    )
    deviations, variances = None, np.full(len(window.unknown), np.nan)
    if options.spread != "none":
        sample = laplace if options.spread == "laplace" else perturbed_analyses
        sampled = sample(
            forward,
            found.taps,
            found.data,
            minimum,
            seed=options.seed,
            samples=options.samples,
            report=options.sampled,
            once=lambda compute: options.journal.once(window.mark(options), compute),
        )
        if sampled is None:
            warnings = (
                *warnings,
                "the rollout's derivative leaves the finite numbers: there are no standard "
                "deviations, and the state is not to be used",
            )
        else:
            deviations, variances = sampled
    others = {}
    if minimum.ratio <= HIGH:
        others = other_values(window, forward, minimum.x, found.sigma)
    values = {
        name: float(v) for name, v in forward.unknowns.coefficients(jnp.asarray(minimum.x)).items()
    }
    warnings = (*warnings, *doubts(window, values, deviations, variances, others))
    made = Analysis(
        dynamics=window.dynamics,
        forward=forward,
        minimum=minimum,
        begin=window.begin,
        steps=window.steps,
        parts=window.parts,
        observations=window.observations,
        sigma=found.sigma,
        predicted=predicted,
        noise=found.noise,
        check=checked,
        prior=window.prior,
        climate=climate or window.prior,
        deviations=deviations,
        variances=variances,
        warnings=warnings,
        errors=window.errors,
        options={n: getattr(options, n) for n in ("spread", "samples", "seed", "reading")},
    )
    if window.held_out is not None:
        made = replace(made, held_out=_score(made, window.held_out))
    return made


def _parts(window: Window) -> int:
    """The fewest parts of a frame such that every report falls on one; 1 if no few do."""
    position = (window.observations.times - window.begin) / window.dynamics.dt
    for parts in _PARTS:
        near = np.abs(parts * position - np.round(parts * position)).max() <= ON_FRAME * parts
        if near and (parts == 1 or window.finer(parts) is not None):
            return parts
    return 1


def _error_in_time(found: Settled) -> float:
    """Of the cubic between frames, beside frames of half the length, in units of the noise."""
    window = found.window
    position = (window.observations.times - window.begin) / window.dynamics.dt
    between = np.abs(position - np.round(position)) > 20 * ON_FRAME
    half = window.finer(2)
    if not between.any() or half is None:
        return 0.0
    some = np.flatnonzero(between)[:: max(1, int(between.sum()) // 500)]
    few = window.observations.take(some)
    # Without increments, which are others between other frames.
    known = jnp.asarray(found.minimum.x[: found.forward.unknowns.known_count])
    found_by = []
    for own in (replace(window, errors=None), replace(half, errors=None)):
        steps = int(np.ceil((few.times.max() - own.begin) / own.dynamics.dt))
        taps = own.taps(few, max(1, steps))
        found_by.append(np.asarray(seen(own.forward, known, taps), float))
    return float(np.sqrt(np.mean(((found_by[0] - found_by[1]) / found.sigma[some]) ** 2)))


def _score(analysis: Analysis, held: Observations) -> HeldOut:
    mean, std = analysis.predict(held)
    spread = {n: held.values[held.fields == n].std() for n in np.unique(held.fields)}
    scale = np.array([max(spread[n], 1e-300) for n in held.fields])
    error = float(np.sqrt(np.mean(((held.values - mean) / scale) ** 2)))
    covered = None
    if std is not None:
        typical = {
            n: float(np.median(analysis.sigma[analysis.observations.fields == n]))
            for n in np.unique(analysis.observations.fields)
        }
        noise = held.sigma_or(typical)
        noise = np.where(np.isfinite(noise), noise, np.nanmedian(analysis.sigma))
        covered = float(np.mean(np.abs(held.values - mean) <= 2 * np.hypot(std, noise)))
    return HeldOut(len(held), error, covered)

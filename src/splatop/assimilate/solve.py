"""One window: from reports and a prior to an analysis."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from .check import check
from .dynamics import Dynamics, without_lift
from .minimise import Data, Forward, Minimum, Progress, growing
from .observations import Observations
from .observe import ON_FRAME, Taps, make_taps
from .posterior import laplace, perturbed_analyses
from .resume import fingerprint, keep, resumed
from .starts import beginnings, from_starts
from .state import Analysis, HeldOut, seen
from .unknowns import Prior, Unknowns, make_unknowns

# Frames may be cut into so many parts, such that reports fall on frames.
_PARTS = (1, 2, 3, 4, 5, 6, 8, 10)
_MOST_PARTS = 8
# Of the noise: an error of interpolation in time that does no harm.
_IN_TIME = 0.25
# Rounds in which noise and strength of the prior are estimated, and the change that ends them.
_ROUNDS = 5
_SETTLED = 0.05  # of their logarithms
# Windows longer than this have a shorter program of their own for the ones that lead to it.
_SHORT = 16
SPREADS = ("laplace", "ensemble", "none")

Say = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """How a window is analysed. `report` is called after each step of the minimiser, `sampled` with
    samples of the posterior done and in all, `keep` names a file for the best unknowns so far."""

    spread: str = "laplace"
    samples: int | None = None
    seed: int = 0
    most_steps: int = 15
    report: Callable[[Progress], None] = lambda _: None
    sampled: Callable[[int, int], None] = lambda *_: None
    keep: Path | None = None


@dataclass(frozen=True, eq=False)
class Window:
    """What is to be analysed: reports from `begin` on, with a prior for the state there."""

    dynamics: Dynamics
    observations: Observations
    prior: Prior
    unknown: Mapping[str, float]  # unknown coefficients, and the factor each is known to
    begin: float
    noise: Mapping[str, float]  # a first guess, for fields whose reports do not say it
    grow: bool = True
    held_out: Observations | None = None

    @property
    def steps(self) -> int:
        last = self.observations.span_of_time[1]
        if self.held_out is not None:
            last = max(last, self.held_out.span_of_time[1])
        return int(np.ceil((last - self.begin) / self.dynamics.dt - ON_FRAME))

    def finer(self, parts: int) -> "Window | None":
        dynamics = self.dynamics if parts == 1 else self.dynamics.with_dt(parts)
        return None if dynamics is None else replace(self, dynamics=dynamics)


def analyse(
    window: Window,
    options: Options,
    *,
    climate: Prior | None = None,
    start: np.ndarray | None = None,
    warnings: tuple[str, ...] = (),
) -> Analysis:
    """The analysis of a window. Reports between frames have the frames cut into parts until the
    cubic between them is exact to a share of the noise."""
    parts = _parts(window)
    while True:
        cut = window.finer(parts)
        assert cut is not None
        cut, found, sigma, noise, taps, data = _minimum(cut, options, start, parts)
        forward = _forward(cut)
        error = _error_in_time(cut, forward, found, sigma)
        if error <= _IN_TIME:
            break
        if 2 * parts > _MOST_PARTS or window.finer(2 * parts) is None:
            warnings = (
                *warnings,
                f"between frames the state is interpolated with an error of {error:.1f} times the "
                "noise: give reports at the times of frames, or a model with shorter frames",
            )
            break
        window = replace(window, prior=replace(cut.prior, fitted=False))
        parts, start = 2 * parts, found.x
    predicted = np.asarray(seen(forward, jnp.asarray(found.x), taps), float)
    expected = min(len(data.values), forward.unknowns.size)
    checked = check(
        cut.observations,
        predicted,
        sigma,
        ratio=found.ratio,
        prior_share=found.prior / max(expected, 1),
        converged=found.converged,
        estimated=noise,
    )
    deviations, variances = None, np.full(len(window.unknown), np.nan)
    if options.spread != "none":
        sample = laplace if options.spread == "laplace" else perturbed_analyses
        deviations, variances = sample(
            forward,
            taps,
            data,
            found,
            seed=options.seed,
            samples=options.samples,
            report=options.sampled,
        )
    made = Analysis(
        dynamics=cut.dynamics,
        forward=forward,
        minimum=found,
        begin=window.begin,
        steps=window.steps * parts,
        parts=parts,
        observations=window.observations,
        sigma=sigma,
        predicted=predicted,
        noise=noise,
        check=checked,
        prior=cut.prior,
        climate=climate or cut.prior,
        deviations=deviations,
        variances=variances,
        warnings=warnings,
        options={"spread": options.spread, "samples": options.samples, "seed": options.seed},
    )
    if window.held_out is not None:
        made = replace(made, held_out=_score(made, window.held_out))
    if options.keep is not None:
        options.keep.unlink(missing_ok=True)
    return made


def _minimum(
    window: Window, options: Options, start: np.ndarray | None, parts: int
) -> tuple[Window, Minimum, np.ndarray, dict[str, float], Taps, Data]:
    """The minimum, with the noise estimated where reports do not say it, and the strength of a
    prior that was fitted to single times.

    Of `n` reports that tell `d` directions of the unknowns, `n - d` squared residuals and `d`
    squared unknowns are expected in units of noise and prior: both are scaled until it is so.
    """
    observations = window.observations
    missing = {
        str(name): float(window.noise[str(name)])
        for name in np.unique(observations.fields)
        if not np.isfinite(_own_sigma(observations, str(name))).all()
    }
    mark = fingerprint(*_identity(window))
    forward = _forward(window)
    starts = (
        _starts(window, forward.unknowns, observations.sigma_or(missing))
        if start is None
        else [start]
    )
    skip, x = resumed(options.keep, mark, len(starts[0])) or (0, starts[0])
    steps = window.steps * parts
    frames = _frame_of(window, steps)
    lengths = growing(steps) if window.grow and not window.dynamics.linear else [steps]
    for turn in range(_ROUNDS):
        sigma = observations.sigma_or(missing)
        programs = _programs(window, steps, lengths, frames, sigma)
        found = from_starts(
            forward,
            programs[min(skip, len(programs) - 1) :] if turn == 0 else programs[-1:],
            starts if turn == 0 and skip == 0 else [x],
            linear=window.dynamics.linear and not window.unknown,
            most_steps=options.most_steps,
            report=options.report,
            keep=lambda number, best, turn=turn: keep(
                options.keep, mark, skip + number if turn == 0 else len(lengths) - 1, best
            ),
        )
        taps, data = programs[-1]
        told = float(np.sum(found.diagonal / (1 + found.diagonal)))
        told = min(told, 0.9 * found.count)
        changed, factor = 0.0, 1.0
        if window.prior.fitted and np.isfinite(found.prior):
            factor = float(np.clip(np.sqrt(found.prior / max(told, 1e-9)), 0.3, 3.0))
            changed = abs(np.log(factor)) / 3
        if missing:
            predicted = np.asarray(seen(forward, jnp.asarray(found.x), taps), float)
            free = max(1 - told / found.count, 0.05)
            for name in missing:
                own = observations.fields == name
                left = float(np.mean((observations.values[own] - predicted[own]) ** 2))
                new = max(np.sqrt(left / free), 1e-6 * float(observations.values[own].std()))
                changed = max(changed, abs(np.log(new / missing[name])))
                missing[name] = float(new)
        if changed < _SETTLED or turn == _ROUNDS - 1 or not np.isfinite(found.misfit):
            break
        count = forward.unknowns.numbers_count
        x = np.concatenate([found.x[:count] / factor, found.x[count:]]).astype(np.float32)
        window = replace(window, prior=window.prior.scaled(factor))
        forward = _forward(window)
    return window, found, sigma, missing, taps, data


def _starts(window: Window, unknowns: Unknowns, sigma: np.ndarray) -> list[np.ndarray]:
    first = window.observations.times <= window.begin + ON_FRAME * window.dynamics.dt
    if not window.grow or window.dynamics.linear:
        return [np.zeros(unknowns.size, np.float32)]
    held = without_lift(window.observations.take(first), window.dynamics)
    return beginnings(held, sigma[first], window.prior, unknowns)


def _programs(
    window: Window, steps: int, lengths: list[int], frames: np.ndarray, sigma: np.ndarray
) -> list[tuple[Taps, Data]]:
    """Taps and data of windows of these lengths: few different shapes, each compiled once, with the
    later reports of a shorter window left out of account."""
    short = -(-steps // 4) if steps > _SHORT else steps
    made: dict[int, tuple[Taps, Observations, np.ndarray, np.ndarray]] = {}
    programs = []
    for length in lengths:
        shape = short if length <= short else steps
        if shape not in made:
            inside = frames <= shape
            chosen = window.observations.take(inside)
            taps = make_taps(
                chosen,
                window.dynamics.fields,
                window.dynamics.evaluator,
                begin=window.begin,
                dt=window.dynamics.dt,
                frames=shape,
            )
            made[shape] = taps, chosen, sigma[inside], frames[inside]
        taps, chosen, own, at = made[shape]
        data = Data(
            values=jnp.asarray(chosen.values, jnp.float32),
            sigma=jnp.asarray(own, jnp.float32),
            used=jnp.asarray(at <= length, jnp.float32),
        )
        programs.append((taps, data))
    return programs


def _forward(window: Window) -> Forward:
    dynamics = window.dynamics
    return Forward(dynamics.moving, unknowns_of(dynamics, window.prior, window.unknown))


def unknowns_of(dynamics: Dynamics, prior: Prior, unknown: Mapping[str, float]) -> Unknowns:
    kept = replace(prior, std=np.where(dynamics.kept, prior.std, 0.0))
    return make_unknowns(
        kept,
        space=dynamics.space,
        grid=dynamics.grid,
        scheme=dynamics.scheme,
        coefficients=dynamics.coefficients,
        unknown=unknown,
    )


def _parts(window: Window) -> int:
    """The fewest parts of a frame such that every report falls on one; 1 if no few do."""
    position = (window.observations.times - window.begin) / window.dynamics.dt
    for parts in _PARTS:
        near = np.abs(parts * position - np.round(parts * position)).max() <= ON_FRAME * parts
        if near and (parts == 1 or window.finer(parts) is not None):
            return parts
    return 1


def _frame_of(window: Window, steps: int) -> np.ndarray:
    """The first frame at or after each report."""
    position = (window.observations.times - window.begin) / window.dynamics.dt
    return np.clip(np.ceil(position - 2 * ON_FRAME * _PARTS[-1]), 0, steps).astype(int)


def _error_in_time(window: Window, forward: Forward, found: Minimum, sigma: np.ndarray) -> float:
    """Of the cubic between frames, beside frames of half the length, in units of the noise."""
    position = (window.observations.times - window.begin) / window.dynamics.dt
    between = np.abs(position - np.round(position)) > 20 * ON_FRAME
    half = window.finer(2)
    if not between.any() or half is None:
        return 0.0
    some = np.flatnonzero(between)[:: max(1, int(between.sum()) // 500)]
    few = window.observations.take(some)
    found_by = []
    for own in (window, half):
        taps = make_taps(
            few,
            own.dynamics.fields,
            own.dynamics.evaluator,
            begin=own.begin,
            dt=own.dynamics.dt,
            frames=max(1, int(np.ceil((few.times.max() - own.begin) / own.dynamics.dt))),
        )
        stepper = Forward(own.dynamics.moving, forward.unknowns)
        found_by.append(np.asarray(seen(stepper, jnp.asarray(found.x), taps), float))
    return float(np.sqrt(np.mean(((found_by[0] - found_by[1]) / sigma[some]) ** 2)))


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


def _own_sigma(observations: Observations, name: str) -> np.ndarray:
    own = observations.fields == name
    return (
        np.full(int(own.sum()), np.nan) if observations.sigma is None else observations.sigma[own]
    )


def _identity(window: Window) -> tuple[list[np.ndarray], str]:
    """Everything that the unknowns depend on."""
    held, dynamics = window.observations, window.dynamics
    arrays = [held.times, held.places, held.values, window.prior.std, window.prior.mean]
    text = f"{dynamics.dt} {dynamics.coefficients} {dynamics.numerics} {dict(window.unknown)}"
    return arrays, f"{text} {window.begin} {held.fields.tolist()}"

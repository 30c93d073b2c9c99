"""`assimilate`: reports of sensors and a model or an equation in, the state out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..domain import AXES, Domain
from ..errors import SplatopError, unknown_name
from ..threads import one_blas_thread
from .analyse import SPREADS, analyse
from .begin import values_to_begin_at
from .cycle import cycle
from .dynamics import Dynamics
from .expected import choose_prior, with_steps
from .minimise import Progress
from .model_error import error_scale
from .observations import Observations, checked
from .observe import ON_FRAME
from .prior import fit_smoothness, smooth_prior
from .resume import Journal
from .source import EquationSetting, as_dynamics
from .state import Analysis
from .unknowns import COEFFICIENT_FACTOR
from .unlifted import without_lift
from .window import Options, Window

# Records longer than this are analysed in windows of so many frames, one after the other.
LONG, WINDOW = 60, 40
# Reports from which something can be told.
_FEWEST = 5
# Distinct places along each axis from which a smooth prior can be fitted.
_FEWEST_PLACES = 3
# A gap between sensors of more than this share of the box is seen by nobody, or in other units.
_GAP = 0.5
# Frames that a record may have: beyond, its times are in another unit than the equation's.
_MOST_FRAMES = 20_000
# Logarithm of a likelihood: a smoother prior is taken if it is less likely by no more.
_AS_LIKELY = 1.0


@one_blas_thread()
def assimilate(
    observations: Any,
    model: Any,
    *,
    coefficients: Mapping[str, float] | None = None,
    unknown: Iterable[str] | Mapping[str, float] = (),
    lengths: Sequence[float] | float | None = None,
    points: Sequence[int] | int | None = None,
    dt: float | None = None,
    origin: Sequence[float] | float | None = None,
    boundary: str | None = None,
    shape: str | None = None,
    sampling: Sequence[str] | str | None = None,
    begin: float | None = None,
    window: int | None = None,
    prior: Any = None,
    model_error: float | str | None = None,
    spread: str = "laplace",
    samples: int | None = None,
    hold_out: float = 0.0,
    columns: Mapping[str, str] | None = None,
    time_unit: str = "s",
    places: Any = None,
    seed: int = 0,
    keep: str | Path | None = None,
    report: Callable[[Progress], None] = lambda _: None,
    sampled: Callable[[int, int], None] = lambda *_: None,
    say: Callable[[str], None] = lambda _: None,
) -> Analysis:
    """The state of a field over time from reports of sensors, as the dynamics allow it.

    `observations` are `Observations`, a pandas table, xarray, or a file of either. `model` is a
    model, the name of a shipped one, a run folder, or an equation as text; an equation needs
    `lengths`, `points`, `dt` and its `coefficients`, and unless its box is periodic a `boundary`; a
    `shape` may be cut out of the box, "box - disk(0.4, 0.5, 0.15)".
    `unknown` coefficients are estimated with the state, from the values given for them on, or from
    what fields tell that are reconstructed without the equation.

    `window` frames are analysed at a time: by default all of up to 60, else 40. `prior` is a file
    of sample states, trajectories, or "climate" (states that a chaotic equation itself ends in); by
    default a shipped benchmark's own states, else a smooth field fitted to the reports. A model
    counts as exact unless `model_error` says by how much it is wrong in each frame, as a share of
    the field's spread, or "auto", where the reports shall tell. `spread` is
    how uncertainty is found: "laplace" (linearised), "ensemble" (perturbed analyses) or "none",
    from so many `samples`. A share of sensors, `hold_out`, is not used but predicted. `keep` names
    a file for an interrupted run to go on. `columns` says what columns of a table are called in it,
    `{"x": "lon"}`; moments are counted in `time_unit`; `places` are a table, or a mapping, of where
    stations are that the table only names.
    """
    if spread not in SPREADS:
        raise unknown_name("spread", spread, SPREADS)
    if window is not None and window < 1:
        raise SplatopError(f"expected at least one frame in a window, got {window}")
    errors = error_scale(model_error)
    setting = EquationSetting(coefficients, lengths, points, dt, origin, boundary, sampling, shape)
    starts = dict(unknown) if isinstance(unknown, Mapping) else {}
    names = tuple(unknown)

    reading = {"columns": columns, "time_unit": time_unit, "places": places}

    @cache
    def read(fields: tuple[str, ...]) -> Observations:
        return Observations.read(observations, fields=fields, **reading)

    given = {**(coefficients or {}), **starts}
    place = {"lengths": lengths, "points": points, "origin": origin}
    place |= {"boundary": boundary, "shape": shape}
    told = values_to_begin_at(read, model, given, names, place)
    if told:
        words = ", ".join(f"{name} = {value:.3g}" for name, value in told.items())
        say(f"fields without the equation tell about {words}: estimated with the state from there")
        starts |= told
    if starts:
        setting = replace(setting, coefficients={**(coefficients or {}), **starts})
    dynamics = as_dynamics(model, setting, names)
    held, warnings = checked(read(dynamics.fields), dynamics.fields, dynamics.domain)
    _check_unknown(names, dynamics)
    kept_out = None
    if hold_out:
        held, kept_out = held.split_off(hold_out, seed)
    first = held.span_of_time[0] if begin is None else float(begin)
    _check_times(held, first, dynamics.dt)
    if len(held) < max(_FEWEST, 2 * len(names) + 2):
        raise SplatopError(
            f"expected at least {max(_FEWEST, 2 * len(names) + 2)} reports to tell a state"
            f"{' and coefficients' if names else ''} from, got {len(held)}"
        )
    moments = np.round((held.times - first) / dynamics.dt).astype(int)
    smooth = None
    if not held.known_noise or (prior is None and dynamics.benchmark is None):
        smooth = fit_smoothness(
            without_lift(held, dynamics), moments, dynamics.space, as_likely=_AS_LIKELY
        )
    noise = {} if smooth is None else {n: max(s.noise, 1e-4 * s.spread) for n, s in smooth.items()}
    alike = smooth_prior(smooth, dynamics.space) if smooth else None
    dynamics = with_steps(dynamics, alike, names, first)
    chosen = choose_prior(prior, dynamics, smooth, held, moments, noise)
    say(f"expected before measuring: {chosen.source}")
    if chosen.fitted:
        warnings += _few_places(held) + _far_places(held, dynamics.domain)
    options = Options(
        spread=spread,
        samples=samples,
        seed=seed,
        report=report,
        sampled=sampled,
        journal=Journal(keep),
        reading=reading,
    )
    whole = Window(
        dynamics=dynamics,
        observations=held,
        prior=chosen,
        unknown=dict.fromkeys(names, COEFFICIENT_FACTOR),
        begin=first,
        noise=noise,
        held_out=kept_out,
        errors=errors,
    )
    length = window or (whole.frames if whole.frames <= LONG else WINDOW)
    if length >= whole.frames:
        found = analyse(whole, options, warnings=tuple(warnings))
    else:
        say(f"{whole.frames} frames, analysed in windows of {length}")
        found = cycle(whole, length, options, warnings=tuple(warnings))
    options.journal.remove()
    return found


def _few_places(held: Observations) -> list[str]:
    """What a smooth prior cannot be fitted to."""
    found = []
    for name in np.unique(held.fields):
        count = len(np.unique(held.places[held.fields == name], axis=0))
        if count < _FEWEST_PLACES**held.dims:
            found.append(
                f"{name} is measured at {count} places only, from which its size and smoothness "
                f"cannot be told (expected: {_FEWEST_PLACES**held.dims} or more): standard "
                "deviations may be far too small; give --prior with states such as are expected"
            )
    return found


def _far_places(held: Observations, domain: Domain) -> list[str]:
    """Along which axes no sensor stands in half of the box, where a prior was fitted to those that
    stand elsewhere."""
    found = []
    for number, axis in enumerate(domain.axes):
        place = np.unique(held.places[:, number])
        ends = [axis.origin, axis.origin + axis.length]
        if axis.periodic:
            ends = [place[-1] - axis.length, place[0] + axis.length]
        every = np.concatenate([ends[:1], place, ends[1:]])
        gap = int(np.argmax(np.diff(every)))
        if len(place) > 1 and every[gap + 1] - every[gap] > _GAP * axis.length:
            found.append(
                f"no sensor stands between {every[gap]:g} and {every[gap + 1]:g} along "
                f"{AXES[number]}, of a box from {axis.origin:g} to {axis.origin + axis.length:g}: "
                "what is said of it is a guess from elsewhere; check the units of places and "
                "lengths, or take a smaller box"
            )
    return found


def _check_unknown(names: Sequence[str], dynamics: Dynamics) -> None:
    for name in names:
        if name not in dynamics.coefficients:
            raise unknown_name("coefficient", name, dynamics.coefficients)
        if dynamics.coefficients[name] == 0:
            raise SplatopError(
                f"expected a value other than 0 to start {name} from, whose sign it keeps, got 0: "
                f"give --unknown {name}=0.1"
            )


def _check_times(observations: Observations, begin: float, dt: float) -> None:
    if not np.isfinite(begin):
        raise SplatopError(f"expected a finite time at which the window begins, got {begin:g}")
    early = observations.times < begin - ON_FRAME * dt
    if early.any():
        raise SplatopError(
            f"expected times from {begin:g} on, where the window begins, got {int(early.sum())} "
            f"reports before, the first at {observations.times.min():g}: leave them out, or begin "
            "earlier"
        )
    frames = (observations.times.max() - begin) / dt
    if frames > _MOST_FRAMES or 0 < frames < 1e-3:
        raise SplatopError(
            f"expected reports over 1 to {_MOST_FRAMES} frames of dt = {dt:g}, got "
            f"{observations.times.max() - begin:.6g} between the first and the last, "
            f"{frames:.3g} frames: times are in another unit than dt and the equation; scale one "
            "of them (moments by --time-unit)"
        )

"""Fields from reports without an equation, one time at a time: Gaussians with a fitted prior.

The mean and the standard deviation are those of Gaussian-process regression whose covariance is
the prior's: smoothness, strength and noise are those that make all reports likeliest.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..data.axes import as_lengths, as_origin
from ..domain import AXES, Axis, Domain
from ..equation import domain_from_text
from ..errors import SplatopError
from ..grid import Grid
from ..points import Points
from ..spaces import BoxSpace, ShapeSpace, Space
from ..threads import one_blas_thread
from ..walls.shape_resolution import shape_anchors
from .observations import Observations, checked
from .on_shape import shape_box, shape_domain
from .prior import Smoothness, averaged_functions, fit_smoothness, functions_at, measure
from .state import HeldOut
from .uncertain_frames import Frames

# Gaussians across a shape.
_ACROSS = 20
# Functions for each side of the box: highest wave around a ring, anchors between ends; by axes.
_RING, _ANCHORS = {1: 64, 2: 24, 3: 10}, {1: 64, 2: 28, 3: 12}
_MOST_REPORTS = 8000  # of one field at one time
# Where nothing holds at the ends of an axis, the functions live on one longer by this share at
# each end: at their own ends they are flat.
_BEYOND = 0.3


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """Fields at each time that was reported from, with what was fitted for each field."""

    frames: Frames
    smoothness: dict[str, Smoothness]
    held_out: HeldOut | None
    reports: int
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "times": len(self.frames),
            "observations": self.reports,
            "noise": {name: one.noise for name, one in self.smoothness.items()},
            "spread": {name: one.spread for name, one in self.smoothness.items()},
            "length": {name: one.length for name, one in self.smoothness.items()},
            "held_out": None if self.held_out is None else vars(self.held_out),
            "warnings": list(self.warnings),
        }


@one_blas_thread()
def reconstruct(
    observations: Any,
    *,
    points: Sequence[int] | int = 64,
    lengths: float | Sequence[float] | None = None,
    origin: float | Sequence[float] | None = None,
    boundary: str | None = None,
    shape: str | None = None,
    fields: Iterable[str] | None = None,
    columns: Mapping[str, str] | None = None,
    time_unit: str = "s",
    places: Any = None,
    hold_out: float = 0.0,
    seed: int = 0,
) -> Reconstruction:
    """Fields on a grid of `points` from reports alone, each time by itself.

    Without `lengths` the box is that around all sensors, or around the `shape` that is cut out of
    it; without a `boundary` nothing is set at its edges ("x: periodic" closes an axis).
    """
    held = Observations.read(
        observations, fields=fields, columns=columns, time_unit=time_unit, places=places
    )
    held, flat = (held, []) if fields is not None else _that_vary(held)
    names = tuple(fields) if fields is not None else tuple(dict.fromkeys(map(str, held.fields)))
    count = tuple(np.atleast_1d(points).tolist())
    sides, begin, at = as_lengths(lengths, held.dims), as_origin(origin, held.dims), None
    if shape is None:
        domain = _domain(held, sides, begin, boundary, names)
    else:
        domain, at = _shaped(shape, sides, begin, boundary, names, count)
    held, warnings = checked(held, names, domain)
    kept_out = None
    if hold_out:
        held, kept_out = held.split_off(hold_out, seed)
    if len(held) < 5:
        raise SplatopError(f"expected at least 5 reports to tell a field from, got {len(held)}")
    dims = domain.dims
    space: Space
    if at is None:
        sizes = tuple(_RING[dims] if axis.periodic else _ANCHORS[dims] for axis in domain.axes)
        space = BoxSpace(_wider(domain), names, sizes)
    else:
        space = ShapeSpace(domain, names, shape_anchors(domain, _ACROSS))
    times, moments = np.unique(held.times, return_inverse=True)
    smoothness = fit_smoothness(held, moments.reshape(-1), space)
    layout = tuple("left" if axis.periodic else "ends" for axis in domain.axes)
    many = count * dims if len(count) == 1 else count
    grid = Grid(many, domain.lengths, domain.origin, layout) if at is None else at
    places = grid.places
    mean = np.empty((len(times), len(names), *grid.points), np.float32)
    std = np.empty_like(mean)
    for channel, name in enumerate(names):
        if name not in smoothness:
            raise SplatopError(f"expected reports of {name}, got none: leave it out")
        regression = _Regression(space, channel, smoothness[name])
        target = regression.functions(places)
        for number in range(len(times)):
            own = held.take((moments.reshape(-1) == number) & (held.fields == name))
            value, deviation = regression.at(own, target)
            mean[number, channel] = value.reshape(grid.points)
            std[number, channel] = deviation.reshape(grid.points)
    frames = Frames(times, mean, std, grid, names, domain, {}, {"made_by": "splatop reconstruct"})
    scored = None
    if kept_out is not None:
        scored = _score(kept_out, held, space, smoothness, names)
    warnings += flat
    warnings += [
        f"the noise of {name} ({one.noise:.3g}) is most of what was reported (spread "
        f"{held.values[held.fields == name].std():.3g}): little can be told of it"
        for name, one in smoothness.items()
        if one.noise > 0.7 * held.values[held.fields == name].std()
    ]
    return Reconstruction(frames, smoothness, scored, len(held), tuple(warnings))


def _that_vary(held: Observations) -> tuple[Observations, list[str]]:
    """Without what is no field, such as the height of all stations: numbers that are all the same,
    if there are others; and what is said of it."""
    same = [n for n in np.unique(held.fields) if np.ptp(held.values[held.fields == n]) == 0]
    if not same or len(same) == len(np.unique(held.fields)):
        return held, []
    value = {n: held.values[held.fields == n][0] for n in same}
    words = [f"{n} is {value[n]:g} in all reports, and is left out" for n in same]
    return held.take(~np.isin(held.fields, same)), words


@dataclass(frozen=True, eq=False)
class _Regression:
    """Of one field, with its fitted prior."""

    space: Space
    channel: int
    smoothness: Smoothness

    @property
    def scale(self) -> np.ndarray:
        wave = np.sqrt(self.space.energies())[self.channel].ravel()
        size = measure(self.space)
        variance = self.smoothness.spectrum(wave, self.space.dims, size)
        # The mean over all reports is not that of one time.
        constant = wave < 1e-6 * wave.max()
        return np.sqrt(np.where(constant, variance + size * self.smoothness.spread**2, variance))

    def functions(self, places: np.ndarray) -> np.ndarray:
        return functions_at(self.space, places, self.channel) * self.scale

    def at(self, own: Observations, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation where `target` are the scaled functions."""
        prior = np.sum(target**2, axis=1)
        if len(own) == 0:
            return np.full(len(target), self.smoothness.mean), np.sqrt(prior)
        if len(own) > _MOST_REPORTS:
            raise SplatopError(
                f"expected at most {_MOST_REPORTS} reports of one field at one time, got "
                f"{len(own)}: thin them"
            )
        rows = averaged_functions(self.space, own, self.channel) * self.scale
        sigma = own.sigma_or(dict.fromkeys(own.fields, self.smoothness.noise))
        covariance = rows @ rows.T + np.diag(sigma**2 + 1e-10 * np.mean(prior))
        factor = cho_factor(covariance, lower=True)
        cross = target @ rows.T
        mean = self.smoothness.mean + cross @ cho_solve(factor, own.values - self.smoothness.mean)
        explained = np.sum(cross * cho_solve(factor, cross.T).T, axis=1)
        return mean, np.sqrt(np.maximum(prior - explained, 0.0))


def _domain(
    held: Observations,
    sides: tuple[float, ...] | None,
    begin: tuple[float, ...] | None,
    boundary: str | None,
    names: tuple[str, ...],
) -> Domain:
    low, high = held.places.min(axis=0), held.places.max(axis=0)
    if sides is None and begin is None:
        sides, begin = tuple(high - low), tuple(low)
        if min(sides) <= 0:
            flat = AXES[int(np.argmin(sides))]
            raise SplatopError(
                f"expected sensors at different {flat}, or the lengths of the box, got all at "
                f"{low[AXES.index(flat)]:g}: give --lengths"
            )
    begin = begin or (0.0,) * held.dims
    sides = sides or tuple(high - np.array(begin))
    if boundary is None:
        return Domain.box(sides, begin, (False,) * len(sides))
    return domain_from_text(boundary, lengths=sides, fields=names, origin=begin)


def _shaped(
    text: str,
    sides: tuple[float, ...] | None,
    begin: tuple[float, ...] | None,
    boundary: str | None,
    names: tuple[str, ...],
    count: tuple[int, ...],
) -> tuple[Domain, Points]:
    """The shape with nothing set at its edges, unless told, and the points that lie in it."""
    if sides is None:
        sides, begin = shape_box(text)
    grid = Grid(count * 2 if len(count) == 1 else count, sides, begin or ())
    return shape_domain(text, boundary or "all: free", grid, names, None)


def _wider(domain: Domain) -> Domain:
    """The box that functions live on."""
    axes = tuple(
        Axis((1 + 2 * _BEYOND) * axis.length, axis.origin - _BEYOND * axis.length, periodic=False)
        if not axis.periodic and not any(side[0] == name for side, _ in domain.conditions)
        else axis
        for name, axis in zip(AXES, domain.axes, strict=False)
    )
    return replace(domain, axes=axes)


def _score(
    held: Observations,
    used: Observations,
    space: Space,
    smoothness: dict[str, Smoothness],
    names: tuple[str, ...],
) -> HeldOut:
    errors, covered = [], []
    for channel, name in enumerate(names):
        regression = _Regression(space, channel, smoothness[name])
        spread = max(float(held.values[held.fields == name].std()), 1e-300)
        for time in np.unique(held.times[held.fields == name]):
            out = held.take((held.times == time) & (held.fields == name))
            own = used.take((used.times == time) & (used.fields == name))
            mean, std = regression.at(own, regression.functions(out.places))
            noise = out.sigma_or({name: smoothness[name].noise})
            errors.append((out.values - mean) / spread)
            covered.append(np.abs(out.values - mean) <= 2 * np.hypot(std, noise))
    return HeldOut(
        len(held),
        float(np.sqrt(np.mean(np.concatenate(errors) ** 2))),
        float(np.mean(np.concatenate(covered))),
    )

"""The analysis: the state that explains what sensors reported, how sure it is, and what follows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..errors import SplatopError, finite, unknown_name
from ..points import Points
from ..stepper import TIME
from .check import Check
from .dynamics import Dynamics
from .minimise import Forward, Minimum
from .model_error import ErrorScale
from .observations import Observations
from .observe import make_taps
from .runs import random_increments, rolled, seen
from .uncertain_frames import Frames
from .unknowns import Prior


@dataclass(frozen=True)
class Estimate:
    """A coefficient that was unknown, its standard deviation, and the 95 % interval."""

    value: float
    std: float
    low: float
    high: float


@dataclass(frozen=True)
class HeldOut:
    """How reports that were not used are predicted: root mean square of the error over the field's
    spread, and the share within two standard deviations, the noise's included."""

    reports: int
    error: float
    covered: float | None


@dataclass(frozen=True, eq=False)
class Analysis:
    """The state over a window of time from what sensors reported.

    `begin` is the time of its first frame, `steps` the frames computed after it, of which every
    `parts`-th is a frame of the dynamics' own time step.
    """

    dynamics: Dynamics
    forward: Forward
    minimum: Minimum
    begin: float
    steps: int
    parts: int
    observations: Observations
    sigma: np.ndarray
    predicted: np.ndarray
    noise: Mapping[str, float]  # estimated where reports did not say it
    check: Check
    prior: Prior
    climate: Prior  # the prior of the first window, which later ones fall back to
    deviations: np.ndarray | None  # samples of the unknowns about the minimum
    variances: np.ndarray  # of the unknown coefficients, whitened
    held_out: HeldOut | None = None
    warnings: tuple[str, ...] = ()
    earlier: "Analysis | None" = None
    errors: ErrorScale | None = None  # how wrong the model counts as; exact, if None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def trusted(self) -> bool:
        """Whether nothing speaks against the analysis of this window."""
        return not self.warnings and self.check.trusted

    @property
    def chain(self) -> "list[Analysis]":
        """The windows from the first to this one."""
        return [*(() if self.earlier is None else self.earlier.chain), self]

    def all_warnings(self) -> list[str]:
        """Of this window, and in a line each of those before that are not to be trusted."""
        before = [
            f"the window from {one.begin:g} to {one.end:g} is not trusted: "
            + "; ".join([*one.warnings, *one.check.warnings])
            for one in self.chain[:-1]
            if not one.trusted
        ]
        return [*self.warnings, *self.check.warnings, *before]

    @property
    def frames(self) -> int:
        """Frames after the first, in the dynamics' own time step."""
        return self.steps // self.parts

    @property
    def dt(self) -> float:
        return self.dynamics.dt * self.parts

    @property
    def end(self) -> float:
        return self.begin + self.steps * self.dynamics.dt

    @cached_property
    def coefficients(self) -> dict[str, float]:
        """All coefficients, with those that were unknown as they were found."""
        found = self.forward.unknowns.coefficients(jnp.asarray(self.minimum.x))
        return {name: float(value) for name, value in found.items() if name != TIME}

    @cached_property
    def estimates(self) -> dict[str, Estimate]:
        """The coefficients that were unknown, with intervals: their logarithms are normal."""
        unknowns = self.forward.unknowns
        found = {}
        for name, spread, variance in zip(
            unknowns.names, np.asarray(unknowns.spread), self.variances, strict=True
        ):
            value = self.coefficients[name]
            relative = float(spread * np.sqrt(np.maximum(variance, 0.0)))
            low, high = sorted((value * np.exp(-1.96 * relative), value * np.exp(1.96 * relative)))
            found[name] = Estimate(value, abs(value) * relative, float(low), float(high))
        return found

    @cached_property
    def window(self) -> Frames:
        """The state at each frame from the first report to the last."""
        return self._frames(0, self.frames)

    def forecast(self, frames: int) -> Frames:
        """The `frames` frames that follow the window."""
        if frames < 1:
            raise SplatopError(f"expected at least one frame to forecast, got {frames}")
        return self._frames(self.frames + 1, self.frames + frames)

    def record(self) -> Frames:
        """The frames of this window and of all before."""
        return (
            self.window if self.earlier is None else self.earlier.record().followed_by(self.window)
        )

    def at(
        self, places: Any, times: Any, fields: Sequence[str] | str | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Values and standard deviations `(n,)` of a field at places `(n, d)` and times `(n,)`, in
        the window or after it."""
        where = np.asarray(places, float)
        where = where[:, None] if where.ndim == 1 else where
        when = np.broadcast_to(np.asarray(times, float), (len(where),))
        names = np.asarray(self.dynamics.fields[0] if fields is None else fields)
        asked = Observations(
            when, where, np.broadcast_to(names, (len(where),)), np.zeros(len(where))
        )
        return self.predict(asked)

    def predict(self, observations: Observations) -> tuple[np.ndarray, np.ndarray | None]:
        """What sensors would report without noise, and the standard deviation of that."""
        position = (observations.times - self.begin) / self.dynamics.dt
        if position.min() < -1e-6:
            raise SplatopError(
                f"expected times from {self.begin:g} on, where the window begins, got "
                f"{observations.times.min():g}"
            )
        steps = max(self.steps, int(np.ceil(position.max() - 1e-6)))
        taps = make_taps(
            observations,
            self.dynamics.fields,
            self.dynamics.evaluator,
            begin=self.begin,
            dt=self.dynamics.dt,
            frames=steps,
        )
        x = jnp.asarray(self.minimum.x)
        mean = np.asarray(seen(self.forward, x, taps), float)
        if self.deviations is None:
            return mean, None
        total = np.zeros(len(mean))
        for number, deviation in enumerate(self.deviations):
            later = random_increments(self.forward, steps, number)
            member = seen(self.forward, x + deviation, taps, later)
            total += (np.asarray(member, float) - mean) ** 2
        size = self.dynamics.own_error * self._size
        channel = [self.dynamics.fields.index(name) for name in observations.fields]
        return mean, np.sqrt(total / len(self.deviations) + size[channel] ** 2)

    @cached_property
    def _size(self) -> np.ndarray:
        """Of each field at the window's end, root mean square, `(C,)`."""
        end = np.asarray(rolled(self.forward, jnp.asarray(self.minimum.x), self.steps)[-1], float)
        return np.sqrt(np.mean(end.reshape(len(end), -1) ** 2, axis=1))

    def advance(self, observations: Any, **changes: Any) -> "Analysis":
        """The next window, from this one's end to the last of the new reports.

        What is known at the end of this window, with its uncertainty, is what is expected there.
        Tables are read as the first one was (`columns`, `time_unit`, `places`, unless given anew),
        dates counted from the same moment.
        """
        from .cycle import next_window

        return next_window(self, observations, **changes)

    def save(self, path: str | Path, *, forecast: int = 0) -> Path:
        """Write the states of all windows, and a forecast, with their standard deviations."""
        frames = self.record()
        if forecast:
            frames = frames.followed_by(self.forecast(forecast))
        return frames.save(path)

    def to_xarray(self) -> Any:
        return self.window.to_xarray()

    def as_dict(self) -> dict[str, Any]:
        """What JSON can hold of it."""
        return {
            "begin": self.begin,
            "end": self.end,
            "dt": self.dt,
            "frames": self.frames,
            "observations": len(self.observations),
            "sensors": len(np.unique(self.observations.sensors)),  # type: ignore[arg-type]
            "unknowns": self.forward.unknowns.size,
            "steps": self.minimum.steps,
            "twice_cost_over_observations": finite(self.check.ratio),
            "trusted": all(one.trusted for one in self.chain),
            "warnings": self.all_warnings(),
            "windows": [
                {
                    "begin": one.begin,
                    "end": one.end,
                    "twice_cost_over_observations": finite(one.check.ratio),
                    "trusted": one.trusted,
                }
                for one in self.chain
            ],
            "explained": self.check.explained,
            "noise": dict(self.noise),
            "coefficients": {name: finite(v) for name, v in self.coefficients.items()},
            "estimates": {
                n: {key: finite(v) for key, v in vars(e).items()} for n, e in self.estimates.items()
            },
            "held_out": None if self.held_out is None else vars(self.held_out),
            "prior": self.prior.source,
            "model_error": None if self.errors is None else self.errors.scale,
        }

    def plot(self, field: str | None = None, ax: Any = None) -> Any:
        """A field at the end of the window, with two standard deviations in 1D, on matplotlib axes,
        which it returns."""
        from ..notebook import draw_state, new_axes

        name = self.dynamics.fields[0] if field is None else field
        if name not in self.dynamics.fields:
            raise unknown_name("field", name, self.dynamics.fields)
        frames, axes = self.window, new_axes(ax)
        channel = self.dynamics.fields.index(name)
        mean = frames.mean[-1, channel]
        if mean.ndim == 1 and frames.std is not None:
            wide = 2 * frames.std[-1, channel]
            axes.fill_between(frames.grid.coordinates()[0], mean - wide, mean + wide, alpha=0.3)
        draw_state(axes, mean, frames.grid)
        axes.set_title(f"{name}, t = {self.end:g}")
        return axes

    def _repr_html_(self) -> str:
        from ..notebook import card

        rows: dict[str, object] = {
            "time": f"{self.begin:g} to {self.end:g}",
            "reports": len(self.observations),
            **{
                n: f"{e.value:.6g} ({e.low:.6g} to {e.high:.6g})" for n, e in self.estimates.items()
            },
        }
        notes = [f"warning: {text}" for text in (*self.warnings, *self.check.warnings)]
        trust = "" if self.trusted else ", not trusted"
        return card(
            f"State from sensors{trust}", rows, notes=notes, draw=lambda ax: self.plot(ax=ax)
        )

    def _frames(self, first: int, last: int) -> Frames:
        steps = last * self.parts
        chosen = slice(first * self.parts, None, self.parts)
        x = jnp.asarray(self.minimum.x)
        on_grid = self.dynamics.on_written
        mean = on_grid(rolled(self.forward, x, steps)[chosen])
        std = None
        if self.deviations is not None:
            total = np.zeros(mean.shape)
            for number, deviation in enumerate(self.deviations):
                later = random_increments(self.forward, steps, number)
                member = on_grid(rolled(self.forward, x + deviation, steps, later)[chosen])
                total += (member - mean) ** 2
            own = (self.dynamics.own_error * self._size) ** 2
            total = total / len(self.deviations) + own.reshape(-1, *[1] * (mean.ndim - 2))
            std = smoothed_std(total, self)
        return Frames(
            times=self.begin + self.dt * np.arange(first, last + 1),
            mean=mean,
            std=std,
            grid=self.dynamics.written,
            fields=self.dynamics.fields,
            domain=self.dynamics.domain,
            coefficients=self.coefficients,
            attributes={
                "made_by": "splatop assimilate",
                "trusted": int(self.trusted),  # NetCDF has no truth values
                "warnings": "; ".join([*self.warnings, *self.check.warnings]),
                **({"times_since": since} if (since := self.observations.since) else {}),
            },
        )


def smoothed_std(variance: np.ndarray, analysis: Analysis) -> np.ndarray:
    """The root of a variance `(T, C, *N)` over few samples, averaged over neighbours first: a dozen
    samples alone would leave a fifth of it to chance."""
    from scipy.ndimage import gaussian_filter1d

    assert analysis.deviations is not None
    count = len(analysis.deviations)
    grid = analysis.dynamics.written
    if count < 50 and isinstance(grid, Points):
        # Each with its neighbours, as many as are within a fiftieth of the box.
        from scipy.spatial import KDTree

        reach = max(0.02 * max(grid.lengths), 1.5 * max(grid.spacing))
        near = KDTree(grid.places).query_ball_point(grid.places, reach)
        variance = np.stack([variance[..., own].mean(axis=-1) for own in near], axis=-1)
    elif count < 50:
        modes = ["wrap" if p else "nearest" for p in analysis.dynamics.domain.periodic]
        for axis, mode in enumerate(modes):
            width = 0.02 * variance.shape[axis + 2]
            variance = gaussian_filter1d(variance, width, axis=axis + 2, mode=mode)
    return np.sqrt(variance).astype(np.float32)

"""A window of time with its reports, and what the minimiser needs of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .dynamics import Dynamics
from .minimise import Data, Forward, Progress
from .model_error import ErrorScale, make_increments
from .observations import Observations
from .observe import ON_FRAME, Taps, make_taps
from .resume import Journal, fingerprint
from .starts import Beginning, beginnings
from .unknowns import Prior, Unknowns, make_unknowns
from .unlifted import without_lift

# Windows longer than this have a shorter program of their own for the ones that lead to it.
_SHORT = 16
# Frames are cut into at most so many parts, see `solve`.
MOST_PARTS = 10


@dataclass(frozen=True)
class Options:
    """How a window is analysed. `report` is called after each step of the minimiser, `sampled` with
    samples of the posterior done and in all; the `journal` keeps what is done."""

    spread: str = "laplace"
    samples: int | None = None
    seed: int = 0
    most_steps: int = 15
    report: Callable[[Progress], None] = lambda _: None
    sampled: Callable[[int, int], None] = lambda *_: None
    journal: Journal = field(default_factory=Journal)
    reading: Mapping[str, Any] = field(default_factory=dict)  # how tables of reports are read


@dataclass(frozen=True, eq=False)
class Window:
    """What is to be analysed: reports from `begin` on, with a prior for the state there.

    `climate` is what states are like before anything was measured, `errors` how wrong the model
    is; without them it counts as exact.
    """

    dynamics: Dynamics
    observations: Observations
    prior: Prior
    unknown: Mapping[str, float]  # unknown coefficients, and the factor each is known to
    begin: float
    noise: Mapping[str, float]  # a first guess, for fields whose reports do not say it
    grow: bool = True
    held_out: Observations | None = None
    climate: Prior | None = None
    errors: ErrorScale | None = None
    parts: int = 1  # that frames are cut into

    @property
    def frames(self) -> int:
        """From the first to the last report, held out ones too."""
        last = self.observations.span_of_time[1]
        if self.held_out is not None:
            last = max(last, self.held_out.span_of_time[1])
        return int(np.ceil((last - self.begin) / (self.parts * self.dynamics.dt) - ON_FRAME))

    @property
    def steps(self) -> int:
        return self.frames * self.parts

    def finer(self, parts: int) -> "Window | None":
        """With frames that are cut into so many times more parts; None if they cannot be."""
        dynamics = self.dynamics if parts == 1 else self.dynamics.with_dt(parts)
        if dynamics is None:
            return None
        return replace(self, dynamics=dynamics, parts=self.parts * parts)

    @property
    def forward(self) -> Forward:
        return Forward(self.dynamics.moving, self.unknowns)

    @property
    def unknowns(self) -> Unknowns:
        errors = None
        if self.errors is not None and self.steps:
            like = (self.climate or self.prior).std
            like = np.where(self.dynamics.kept, like, 0.0)
            errors = make_increments(self.errors, like, steps=self.steps, parts=self.parts)
        at = self.dynamics.clock(self.begin)
        return unknowns_of(self.dynamics, self.prior, self.unknown, errors=errors, at=at)

    @property
    def linear(self) -> bool:
        """Whether what sensors see is a linear function of all that is looked for."""
        return self.dynamics.linear and not self.unknown

    def starts(self, sigma: np.ndarray) -> list[Beginning]:
        """Where the minimiser begins, the likeliest first."""
        unknowns = self.unknowns
        if not self.grow or self.dynamics.linear:
            return [lambda: np.zeros(unknowns.size, np.float32)]
        first = self.observations.times <= self.begin + ON_FRAME * self.dynamics.dt
        held = without_lift(self.observations.take(first), self.dynamics)
        return beginnings(held, sigma[first], self.prior, unknowns)

    def programs(self, lengths: list[int], sigma: np.ndarray) -> list[tuple[Taps, Data]]:
        """Taps and data of windows of these lengths: few different shapes, each compiled once, with
        the later reports of a shorter window left out of account."""
        steps, frames = self.steps, self._frame_of()
        short = -(-steps // 4) if steps > _SHORT else steps
        made: dict[int, tuple[Taps, Observations, np.ndarray, np.ndarray]] = {}
        programs = []
        for length in lengths:
            shape = short if length <= short else steps
            if shape not in made:
                inside = frames <= shape
                chosen = self.observations.take(inside)
                taps = self.taps(chosen, shape)
                made[shape] = taps, chosen, sigma[inside], frames[inside]
            taps, chosen, own, at = made[shape]
            data = Data(
                values=jnp.asarray(chosen.values, jnp.float32),
                sigma=jnp.asarray(own, jnp.float32),
                used=jnp.asarray(at <= length, jnp.float32),
            )
            programs.append((taps, data))
        return programs

    def taps(self, observations: Observations, steps: int) -> Taps:
        return make_taps(
            observations,
            self.dynamics.fields,
            self.dynamics.evaluator,
            begin=self.begin,
            dt=self.dynamics.dt,
            frames=steps,
        )

    def _frame_of(self) -> np.ndarray:
        """The first frame at or after each report."""
        position = (self.observations.times - self.begin) / self.dynamics.dt
        return np.clip(np.ceil(position - 2 * ON_FRAME * MOST_PARTS), 0, self.steps).astype(int)

    def mark(self, options: Options) -> str:
        """A text that is another one for whatever the minimum and its spread depend on."""
        held, dynamics = self.observations, self.dynamics
        arrays = [held.times, held.places, held.values, held.sigma, held.spans]
        arrays += [self.prior.std, self.prior.mean]
        arrays += [np.asarray(a) for a in jax.tree.leaves(dynamics.stepper) if eqx.is_array(a)]
        words = (
            jax.tree.structure(dynamics.stepper),
            dynamics.coefficients,
            dict(self.unknown),
            self.begin,
            self.steps,
            self.grow,
            self.errors,
            dict(self.noise),
            held.fields.tolist(),
            options.spread,
            options.samples,
            options.seed,
            options.most_steps,
        )
        return fingerprint(arrays, repr(words))


def unknowns_of(
    dynamics: Dynamics, prior: Prior, unknown: Mapping[str, float], *, errors=None, at=None
) -> Unknowns:
    """The unknowns of a state; `at` says when it is, where that matters."""
    kept = replace(prior, std=np.where(dynamics.kept, prior.std, 0.0))
    return make_unknowns(
        kept,
        space=dynamics.space,
        grid=dynamics.grid,
        scheme=dynamics.scheme,
        coefficients={**dynamics.coefficients, **(at or {})},
        unknown=unknown,
        errors=errors,
    )

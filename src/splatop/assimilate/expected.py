"""What is expected of a state before measuring, where it comes from, and steps that suit it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..benchmarks import Benchmark, get_benchmark
from ..data import Trajectories, open_trajectories
from ..data.reference import initial_state, trajectory_keys
from ..errors import SplatopError
from ..grid import Grid
from ..spaces import Sampling
from ..stepper import rollout
from ..walls import random_state
from .dynamics import Dynamics
from .observations import Observations
from .prior import Smoothness, draw, evidence, measure, smooth_prior
from .spectra import prior_of_samples
from .unknowns import Prior
from .unlifted import without_lift
from .window import unknowns_of

# Trajectories that a benchmark's prior is sampled from, and the frames of them: fine waves decay so
# fast that those of a few frames later are far too small.
_TRAJECTORIES = 12
_AGES = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 17, 20, 24, 28, 34, 41, 50)
# The word for states that the equation itself ends in, and how many frames it is given.
CLIMATE, _LATE = "climate", (300, 350, 400, 450, 500)
# Without being asked it is looked for if points times steps are no more than this.
_AFFORDABLE = 5e6
# Parts of time whose means tell how a mean changes.
_PARTS_OF_TIME = 8
# Moments whose reports choose between priors, and numbers of a smooth one that were fitted.
_MOMENTS, _FITTED_NUMBERS = 8, 3


def with_steps(
    dynamics: Dynamics, shape: Prior | None, names: Sequence[str], begin: float = 0.0
) -> Dynamics:
    """With a stepper for states such as are expected at the time `begin`, where there is none
    yet."""
    if dynamics.stepper is not None:
        return dynamics
    shape = shape or smooth_of_length(dynamics, max(dynamics.domain.lengths) / 8)
    drawn = draw(shape, 2)
    unknowns = unknowns_of(dynamics, shape, {})
    held = {**dynamics.coefficients, **dynamics.clock(begin)}
    coefficients = {k: jnp.asarray(v) for k, v in held.items()}
    states = [unknowns.field(jnp.asarray(one, jnp.float32), coefficients) for one in drawn]
    return dynamics.with_steps(np.stack([np.asarray(s) for s in states]), names, begin)


def smooth_of_length(dynamics: Dynamics, length: float) -> Prior:
    """A smooth field of this correlation length and of size 1."""
    each = Smoothness(np.inf, 1.0, length, 0.0, 0.0)
    made = smooth_prior(dict.fromkeys(dynamics.fields, each), dynamics.space)
    return replace(made, source=f"a smooth field of correlation length {length:.3g}", fitted=False)


def choose_prior_without_reports(given: Any, dynamics: Dynamics, length: float | None) -> Prior:
    """The prior before there is any sensor."""
    if isinstance(given, Prior):
        return given
    if given is not None:
        return _prior_of_data(given, dynamics)
    if dynamics.benchmark is not None and dynamics.stepper is not None:
        by_age = _benchmark_samples(dynamics, get_benchmark(dynamics.benchmark))
        pooled = np.concatenate(list(by_age.values()))
        return prior_of_samples(pooled, dynamics.space, f"states of {dynamics.benchmark}")
    return smooth_of_length(dynamics, length or min(dynamics.domain.lengths) / 10)


def choose_prior(
    given: Any,
    dynamics: Dynamics,
    smooth: Mapping[str, Smoothness] | None,
    observations: Observations,
    moments: np.ndarray,
    noise: Mapping[str, float],
) -> Prior:
    """The prior that was given, or is sampled from a benchmark, or fitted to the reports.

    Of a benchmark's states of different ages those are taken that make the first reports likeliest;
    without a benchmark, states that the equation itself ends in, if they are as likely as the
    smooth ones that were fitted.
    """
    if isinstance(given, Prior):
        return given
    if given == CLIMATE:
        return _climate(
            dynamics, smooth, _told_means(without_lift(observations, dynamics), moments)
        )
    if given is not None:
        return _prior_of_data(given, dynamics)
    if dynamics.benchmark is None:
        assert smooth is not None
        return _likelier(dynamics, smooth, observations, moments, noise)
    by_age = _benchmark_samples(dynamics, get_benchmark(dynamics.benchmark))
    first = without_lift(observations.take(moments == moments.min()), dynamics)
    sigma = first.sigma_or(dict(noise))
    source = f"states of {dynamics.benchmark}"

    def told(numbers: np.ndarray, words: str) -> Prior:
        return prior_of_samples(numbers, dynamics.space, words, independent=_TRAJECTORIES)

    ages = list(by_age)
    candidates = []
    # Between two ages both count: what is younger has more of fine waves.
    for young, old in zip(ages, ages[:1] + ages[2:], strict=False):
        numbers = np.concatenate([by_age[age] for age in sorted({young, old})])
        when = f"{young}" if young == old else f"{young} to {old}"
        words = f"{source}, {when} frames after their beginning"
        candidates.append(told(numbers, words))
    candidates.append(told(np.concatenate(list(by_age.values())), f"{source} of all ages"))
    return max(candidates, key=lambda one: evidence(first, one, dynamics.space, sigma))


def _likelier(
    dynamics: Dynamics,
    smooth: Mapping[str, Smoothness],
    observations: Observations,
    moments: np.ndarray,
    noise: Mapping[str, float],
) -> Prior:
    """A smooth field fitted to the reports, unless those that the equation ends in are as likely.

    Few sensors far apart tell a spectrum badly; the equation's own states then tell it better. The
    smooth one has three numbers that were fitted to the same reports, which counts against it.
    """
    fitted = smooth_prior(dict(smooth), dynamics.space)
    work = np.prod(dynamics.grid.points) * _TRAJECTORIES * _LATE[-1]
    if dynamics.linear or work > _AFFORDABLE or not dynamics.moving.autonomous:
        return fitted
    bare = without_lift(observations, dynamics)
    try:
        climate = _climate(dynamics, smooth, _told_means(bare, moments))
    except SplatopError:
        return fitted
    if not climate.std.any():
        return fitted
    every = np.unique(moments)
    chosen = every[np.unique(np.linspace(0, len(every) - 1, _MOMENTS).astype(int))]
    gain, count = 0.0, 0
    for moment in chosen:
        own = bare.take(moments == moment)
        sigma = own.sigma_or(dict(noise))
        one, other = (evidence(own, p, dynamics.space, sigma) for p in (climate, fitted))
        gain, count = gain + one - other, count + len(own)
    if gain < -0.5 * _FITTED_NUMBERS * len(smooth) * np.log(max(count, 2)):
        return fitted
    return replace(climate, source=f"{climate.source}, as likely as smooth ones fitted to reports")


def _told_means(observations: Observations, moments: np.ndarray) -> dict[str, tuple[float, float]]:
    """The mean of each field that its reports tell, and how far the first state's may be from it:
    by what it changes over time, and by what few sensors miss."""
    assert observations.sensors is not None
    found = {}
    for name in np.unique(observations.fields):
        own = observations.fields == name
        values = observations.values[own]
        early = np.array_split(values[np.argsort(moments[own], kind="stable")], _PARTS_OF_TIME)
        if len(values) < 3 * _PARTS_OF_TIME:
            continue
        parts = np.array([part.mean() for part in early])
        who = np.unique(observations.sensors[own], return_inverse=True)[1]
        each = np.bincount(who, values) / np.bincount(who)
        missed = each.std() / np.sqrt(len(each))
        far = np.sqrt(parts.var(ddof=1) + (parts[0] - values.mean()) ** 2 + missed**2)
        found[str(name)] = float(values.mean()), float(far)
    return found


def _with_means(prior: Prior, dynamics: Dynamics, told: Mapping[str, tuple[float, float]]) -> Prior:
    """With the constants of its fields as the reports tell them, where that is narrower."""
    wave = np.sqrt(dynamics.space.energies())
    mean, std = prior.mean.copy(), prior.std.copy()
    root = np.sqrt(measure(dynamics.space))
    for name, (value, far) in told.items():
        channel = dynamics.fields.index(name)
        constant = wave[channel] < 1e-6 * max(wave.max(), 1e-12)
        if constant.any() and root * far < std[channel][constant].max():
            mean[channel][constant], std[channel][constant] = root * value, root * far
    return replace(prior, mean=mean, std=std)


def _climate(
    dynamics: Dynamics,
    smooth: Mapping[str, Smoothness] | None,
    told: Mapping[str, tuple[float, float]] | None = None,
) -> Prior:
    """Of states that the dynamics themselves end in, long after random smooth ones. These have the
    means that reports have `told`: many equations keep it for ever, and no
    late state would tell it."""
    start = (
        smooth_of_length(dynamics, max(dynamics.domain.lengths) / 20)
        if smooth is None
        else smooth_prior(dict(smooth), dynamics.space)
    )
    start = _with_means(start, dynamics, told or {})
    unknowns = unknowns_of(dynamics, start, {})
    drawn = [
        np.asarray(unknowns.field(jnp.asarray(one, jnp.float32), unknowns.start))
        for one in draw(start, _TRAJECTORIES)
    ]
    by_age = _aged(dynamics.moving, unknowns, np.stack(drawn), _LATE)
    if not by_age:
        raise SplatopError(
            "expected an equation whose states stay finite for the prior 'climate', got one that "
            "grows without bound: leave --prior out"
        )
    pooled = np.concatenate(list(by_age.values()))
    source = f"states that the equation ends in after {_LATE[0]} to {_LATE[-1]} frames"
    return prior_of_samples(pooled, dynamics.space, source)


def _benchmark_samples(dynamics: Dynamics, benchmark: Benchmark) -> dict[int, np.ndarray]:
    """Numbers `(n, C, *R)` of states of a benchmark, by the frames since their beginning."""
    states = []
    for index in range(_TRAJECTORIES):
        key = trajectory_keys(0, "train", index)[1]
        if dynamics.domain.all_periodic:
            own = benchmark.with_points(dynamics.grid.points[0])
            states.append(np.asarray(initial_state(own, key)))
        else:
            assert isinstance(dynamics.grid, Grid)
            states.append(
                random_state(
                    benchmark.equation,
                    dynamics.coefficients,
                    domain=dynamics.domain,
                    grid=dynamics.grid,
                    key=key,
                )
            )
    flat = np.ones((len(dynamics.fields), *dynamics.space.shape))
    unknowns = unknowns_of(dynamics, Prior(flat, flat, "any"), {})
    return _aged(dynamics.moving, unknowns, np.stack(states).astype(np.float32))


def _aged(
    stepper: Any, unknowns: Any, states: np.ndarray, ages: tuple[int, ...] = _AGES
) -> dict[int, np.ndarray]:
    @eqx.filter_jit
    def numbers(stepper, unknowns, states):
        def one(u0):
            later = rollout(stepper, u0, unknowns.start, steps=max(ages))
            chosen = jnp.concatenate([u0[None], later])[jnp.array(ages)]
            return jax.vmap(lambda u: unknowns.numbers_of(u, unknowns.start))(chosen)

        return jax.lax.map(one, states)

    found = np.asarray(numbers(stepper, unknowns, jnp.asarray(states)), float)
    finite: Any = np.isfinite(found).reshape(*found.shape[:2], -1).all(axis=-1)
    return {age: found[finite[:, i], i] for i, age in enumerate(ages) if finite[:, i].sum() >= 4}


def _prior_of_data(given: Any, dynamics: Dynamics) -> Prior:
    """Of states in a file, or in trajectories."""
    data = given if isinstance(given, Trajectories) else open_trajectories(given)
    if data.fields != dynamics.fields:
        raise SplatopError(
            f"expected states of {', '.join(dynamics.fields)} for the prior, got "
            f"{', '.join(data.fields)} in {data.source}"
        )
    chosen = np.unique(np.linspace(0, data.frames - 1, 8).astype(int))
    few = range(min(data.trajectories, 64))
    frames = data.windows(np.array([[i, f] for i in few for f in chosen]), 1)[:, 0]
    along: Sampling = dynamics.space.sampled(data.grid.points, data.grid.layout)
    scheme = dynamics.scheme
    lifted = None if scheme is None else scheme.lifted(dynamics.coefficients)
    fit = dynamics.space.fit if scheme is None else (lambda u, a: scheme.enter(u, a, lifted))
    numbers = np.stack([np.asarray(fit(jnp.asarray(u), along), float) for u in frames])
    return prior_of_samples(numbers, dynamics.space, f"states of {data.source}")

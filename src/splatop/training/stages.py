"""The two stages: the encoder by reconstruction, then the operator by rollouts."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from ..data import Trajectories, WindowSampler
from ..encoders import Encoder
from ..ensemble import member
from ..errors import SplatopError
from ..physics import Physics
from ..stepper import Stepper
from ..surrogate import residual_scale
from .checkpoints import Checkpoints
from .devices import OnDevices, member_placement, placement
from .loaded import Loaded
from .loop import Reporter, Stage, only, run_stage, warmup_cosine
from .losses import batch_rollout_loss, worst_frame, worst_prediction
from .prepare import Prepared, Say
from .run_folder import HISTORY
from .settings import Settings


@dataclass(frozen=True)
class Session:
    """What every stage of one run shares."""

    loaded: Loaded
    prepared: Prepared
    settings: Settings
    folder: Path
    report: Reporter
    say: Say

    def run(self, stage: Stage, model: Any) -> Any:
        return run_stage(
            stage,
            model,
            checkpoints=Checkpoints(self.folder / "checkpoints" / stage.name, say=self.say),
            history=self.folder / HISTORY,
            checkpoint_every=self.settings.checkpoint_every,
            checkpoint_minutes=self.settings.checkpoint_minutes,
            report=self.report,
        )

    def placement(self, batch: int) -> OnDevices:
        """Members are spread over the devices, the batches of a single model split."""
        members = self.settings.members
        return placement(batch) if members == 1 else member_placement(members)


def _together(streams: list[Iterator[Any]]) -> Iterator[Any]:
    """Batches of all members, stacked; those of a single model as they are."""
    for parts in zip(*streams, strict=True):
        yield parts[0] if len(parts) == 1 else jax.tree.map(lambda *own: np.stack(own), *parts)


def learned_encoder(stepper: Stepper) -> Encoder | None:
    """The encoder that stage 1 trains, if the physics has one."""
    encoder = _encoder_of(stepper)
    return encoder if encoder is not None and encoder.is_learned else None


def _encoder_of(stepper: Stepper) -> Encoder | None:
    physics = stepper.embedded
    return None if physics is None else physics.encoder


def train_encoder(stepper: Stepper, session: Session) -> Stepper:
    """Stage 1: the encoder alone, by reconstruction of single frames."""
    loaded, settings = session.loaded, session.settings
    encoder = learned_encoder(stepper)
    assert encoder is not None
    session.say(f"stage 1: encoder on {' x '.join(map(str, encoder.anchors))} anchors")
    coarse = settings.reconstruction == "shifted" and loaded.grid.dims < 3
    data = loaded.at(4 * encoder.anchors[0] if coarse else settings.phases[0][0])
    samplers = [
        WindowSampler(data, batch=settings.encoder_batch, frames=1, seed=seed)
        for seed in settings.member_seeds
    ]

    def stream(sampler: WindowSampler, first: int, stop: int) -> Iterator[Any]:
        for step, batch in zip(range(first, stop), sampler.prefetch(first, stop), strict=False):
            rng = np.random.default_rng([sampler.seed, 1, step])
            shift = rng.random((len(batch.windows), loaded.grid.dims), np.float32)
            frames = batch.windows[:, 0]
            if settings.reconstruction == "shifted":
                frames = np.stack([_mirrored(frame, rng) for frame in frames])
            yield frames, shift

    def batches(first: int, stop: int) -> Iterator[Any]:
        return _together([stream(sampler, first, stop) for sampler in samplers])

    def loss(model, batch):
        value = model.reconstruction_loss(
            *batch, sobolev=settings.sobolev, reconstruction=settings.reconstruction
        )
        return value, value

    schedule = warmup_cosine(
        settings.encoder_rate,
        warmup=settings.encoder_warmup,
        steps=settings.encoder_steps,
        final=settings.encoder_final_rate,
    )
    stage = Stage(
        "encoder",
        settings.encoder_steps,
        loss,
        batches,
        only(encoder, lambda e: e.learned),
        _optimiser(optax.adamw(schedule), settings.clip),
        schedule,
        lambda step: f"of frames {samplers[0].pairs(step).tolist()} (trajectory, frame)",
        lambda _, batch: worst_frame(batch[0], loaded.equation.fields),
        session.placement(settings.encoder_batch),
        settings.members,
    )
    return eqx.tree_at(_encoder_of, stepper, session.run(stage, encoder))


def _mirrored(frame: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The frame with its axes reversed, exchanged and its sign flipped, each at random.

    Gaussians represent such a frame as well as the original. The frames of a few hundred
    trajectories are too few and too similar: without this a network learns them by heart.
    """
    axes = np.arange(1, frame.ndim)
    frame = np.flip(frame, tuple(int(axis) for axis in axes if rng.random() < 0.5))
    if len(set(frame.shape[1:])) == 1:
        frame = frame.transpose(0, *rng.permutation(axes))
    return frame if rng.random() < 0.5 else -frame


def train_operator(stepper: Any, session: Session) -> Any:
    """Stage 2: the network alone, by rollouts of H steps; the encoder stays frozen."""
    loaded, prepared, settings = session.loaded, session.prepared, session.settings
    data = loaded.at(settings.phases[0][0])
    if stepper.embedded is not None:
        scale = jnp.ones_like(stepper.scale)
        if settings.residual_scaling:
            scale = _measured_residual(stepper.embedded, data, session)
            if not bool(jnp.isfinite(scale).all()):
                raise _not_finite(stepper.embedded, data, session)
            session.say(f"residual of the physics: {float(jnp.max(scale)):.2e} per step")
        stepper = eqx.tree_at(lambda s: s.scale, stepper, scale)
    # What the plain loss is at the start on typical data.
    typical_loss = float(jnp.mean(stepper.loss_unit**2)) if settings.residual_scaling else 0.0
    samplers: dict[tuple[int, int], list[WindowSampler]] = {}

    def samplers_at(points: int, horizon: int) -> list[WindowSampler]:
        """One of each member."""
        if (points, horizon) not in samplers:
            samplers.clear()  # one grid's data at a time
            samplers[points, horizon] = [
                WindowSampler(
                    loaded.at(points), batch=settings.batch, frames=horizon + 1, seed=seed
                )
                for seed in settings.member_seeds
            ]
        return samplers[points, horizon]

    def stream(sampler: WindowSampler, first: int, stop: int) -> Iterator[Any]:
        for step, batch in zip(range(first, stop), sampler.prefetch(first, stop), strict=False):
            windows = batch.windows
            if settings.noise:
                windows = _noisy(windows, settings.noise, prepared.spread, (sampler.seed, step))
            drive = sampler.trajectories.all_drive(batch.pairs, sampler.frames)
            yield windows, {**prepared.coefficients_of(batch.pairs[:, 0]), **drive}

    def batches(first: int, stop: int) -> Iterator[Any]:
        for points, horizon, begin, end in _phase_ranges(settings):
            begin, end = max(begin, first), min(end, stop)
            if begin < end:
                several = samplers_at(points, horizon)
                yield from _together([stream(s, begin, end) for s in several])

    def loss(model, batch):
        return batch_rollout_loss(
            model, *batch, scale=model.loss_unit, alike=settings.windows_alike
        )

    schedule = warmup_cosine(settings.peak_rate, warmup=settings.warmup, steps=settings.steps)

    def describe(step: int) -> str:
        place = next(p for *p, begin, end in _phase_ranges(settings) if begin <= step < end)
        return f"of windows {samplers_at(*place)[0].pairs(step).tolist()} (trajectory, start)"

    stage = Stage(
        "operator",
        settings.steps,
        loss,
        batches,
        only(stepper, lambda s: s.network),
        _optimiser(optax.adam(schedule), settings.clip),
        schedule,
        describe,
        lambda model, batch: worst_prediction(model, *batch, fields=prepared.spec.fields),
        session.placement(settings.batch),
        settings.members,
        typical_loss,
    )
    session.say(f"stage 2: {settings.model}, {settings.steps} steps")
    return session.run(stage, stepper)


def _optimiser(inner: optax.GradientTransformation, clip: float | None):
    return inner if clip is None else optax.chain(optax.clip_by_global_norm(clip), inner)


def _phase_ranges(settings: Settings) -> Iterator[tuple[int, int, int, int]]:
    """(points, horizon, first step, step after the last) of each phase, and of each rollout length
    within it: as many steps of one as of another."""
    begin = 0
    for points, steps in settings.phases:
        horizons = settings.horizons
        ends = [begin + steps * (i + 1) // len(horizons) for i in range(len(horizons))]
        for horizon, end in zip(horizons, ends, strict=True):
            yield points, horizon, begin, end
            begin = end


def _noisy(
    windows: np.ndarray, noise: float, spread: tuple[float, ...], seed: tuple[int, int]
) -> np.ndarray:
    """Windows whose first state has noise, of so many standard deviations of the data."""
    rng = np.random.default_rng([*seed, 2])
    size = noise * np.asarray(spread, np.float32).reshape(-1, *(1,) * (windows.ndim - 3))
    added = size * rng.standard_normal(windows[:, 0].shape, np.float32)
    return np.concatenate([(windows[:, 0] + added)[:, None], windows[:, 1:]], axis=1)


def _not_finite(physics: Physics, data: Trajectories, session: Session) -> SplatopError:
    """What is said of physics that does not survive a step on the data."""
    own = session.prepared.coefficients_of(np.array([0]))
    told = ", ".join(f"{name} = {float(value[0]):.4g}" for name, value in own.items())
    said = f"expected physics that is finite a step after the data, with {told or 'these terms'} it"
    first = _finite_from(physics, data, session)
    if first:
        return SplatopError(
            f"{said} is so from frame {first} on, but not before: if the first frames are rougher "
            f"than their grid, such as noise in each cell, leave them out (--start {first}; "
            f"start={first} of open_trajectories), or take more substeps"
        )
    return SplatopError(
        f"{said} is not: check signs and sizes (a negative diffusion grows without bound). If they "
        "were identified and are not trusted, identify them on frames that the grid resolves "
        "(splatop identify --start) and give them (--coefficients), or take more substeps"
    )


def _finite_from(physics: Physics, data: Trajectories, session: Session) -> int | None:
    """The first of some frames from which on a step of the physics is finite; None of none."""
    found = None
    for frame in np.unique(np.linspace(0, data.frames - 2, 12).astype(int))[::-1]:
        if not jnp.isfinite(_residual_at(physics, data, session, np.array([[0, frame]]))).all():
            return found
        found = int(frame)
    return found


def _measured_residual(physics: Physics, data: Trajectories, session: Session) -> jax.Array:
    """What Φ leaves over one step, on pairs spread over the data; of each member if several."""
    count = min(16, data.trajectories)
    which = np.linspace(0, data.trajectories - 1, count).astype(int)
    starts = np.linspace(0, data.frames - 2, count).astype(int)
    return _residual_at(physics, data, session, np.stack([which, starts], axis=1))


def _residual_at(
    physics: Physics, data: Trajectories, session: Session, pairs: np.ndarray
) -> jax.Array:
    which, starts = pairs.T
    windows = data.windows(pairs, 2)
    when = {name: values[:, 0] for name, values in data.all_when(starts, 2).items()}
    every = {**session.prepared.coefficients_of(which), **data.all_drive(pairs, 2), **when}
    own = jax.tree.map(jnp.asarray, every)
    before, after = jnp.asarray(windows[:, 0]), jnp.asarray(windows[:, 1])
    measure = eqx.filter_jit(residual_scale)
    if session.settings.members == 1:
        return measure(physics, before, after, own)
    if learned_encoder(physics) is None:  # then all members have the same physics
        scale = measure(physics, before, after, own)
        return jnp.broadcast_to(scale, (session.settings.members, *scale.shape))
    members = [member(physics, k) for k in range(session.settings.members)]
    return jnp.stack([measure(one, before, after, own) for one in members])

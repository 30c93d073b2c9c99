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
from ..encoders import UNetEncoder
from ..physics import EmbeddedPhysics
from ..stepper import Stepper
from ..surrogate import Surrogate, residual_scale
from .checkpoints import Checkpoints
from .devices import placement
from .loop import Reporter, Stage, only, run_stage, warmup_cosine
from .losses import (
    batch_reconstruction_loss,
    batch_rollout_loss,
    worst_frame,
    worst_prediction,
)
from .prepare import Prepared, Say
from .problem import Loaded
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


def learned_encoder(stepper: Stepper) -> UNetEncoder | None:
    """The encoder that stage 1 trains, if the physics has one."""
    physics = stepper.physics if isinstance(stepper, Surrogate) else stepper
    encoder = getattr(getattr(physics, "jets", None), "encoder", None)
    return encoder if isinstance(encoder, UNetEncoder) else None


def train_encoder(stepper: Stepper, session: Session) -> Stepper:
    """Stage 1: the encoder alone, by reconstruction of single frames."""
    loaded, settings = session.loaded, session.settings
    encoder = learned_encoder(stepper)
    assert encoder is not None
    session.say(f"stage 1: encoder on {' x '.join(map(str, encoder.anchors))} anchors")
    coarse = settings.reconstruction == "shifted" and loaded.grid.dims < 3
    data = loaded.at(4 * encoder.anchors[0] if coarse else settings.phases[0][0])
    sampler = WindowSampler(data, batch=settings.encoder_batch, frames=1, seed=settings.seed)

    def batches(first: int, stop: int) -> Iterator[Any]:
        for step, batch in zip(range(first, stop), sampler.prefetch(first, stop), strict=False):
            rng = np.random.default_rng([settings.seed, 1, step])
            shift = rng.random((len(batch.windows), loaded.grid.dims), np.float32)
            yield batch.windows[:, 0], shift

    def loss(model, batch):
        value = batch_reconstruction_loss(
            model, *batch, sobolev=settings.sobolev, reconstruction=settings.reconstruction
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
        only(encoder, lambda e: e.network),
        _optimiser(optax.adamw(schedule), settings.clip),
        schedule,
        lambda step: f"of frames {sampler.pairs(step).tolist()} (trajectory, frame)",
        lambda model, batch: worst_frame(model, *batch, fields=loaded.equation.fields),
        placement(settings.encoder_batch),
    )
    return eqx.tree_at(learned_encoder, stepper, session.run(stage, encoder))


def train_operator(stepper: Any, session: Session) -> Any:
    """Stage 2: the network alone, by rollouts of H steps; the encoder stays frozen."""
    loaded, prepared, settings = session.loaded, session.prepared, session.settings
    data = loaded.at(settings.phases[0][0])
    if isinstance(stepper, Surrogate):
        scale = jnp.ones(len(prepared.center))
        if settings.residual_scaling:
            scale = _measured_residual(stepper.physics, data, prepared)
            session.say(f"residual of the physics: {float(jnp.max(scale)):.2e} per step")
        stepper = eqx.tree_at(lambda s: s.scale, stepper, scale)
        loss_scale = scale
    else:
        loss_scale = stepper.spread
    samplers: dict[int, WindowSampler] = {}

    def sampler_at(points: int) -> WindowSampler:
        if points not in samplers:
            samplers.clear()  # one grid's data at a time
            samplers[points] = WindowSampler(
                loaded.at(points),
                batch=settings.batch,
                frames=settings.horizon + 1,
                seed=settings.seed,
            )
        return samplers[points]

    def batches(first: int, stop: int) -> Iterator[Any]:
        for points, begin, end in _phase_ranges(settings):
            begin, end = max(begin, first), min(end, stop)
            if begin < end:
                for batch in sampler_at(points).prefetch(begin, end):
                    own = prepared.coefficients_of(batch.pairs[:, 0])
                    yield batch.windows, own

    def loss(model, batch):
        return batch_rollout_loss(model, *batch, scale=loss_scale)

    schedule = warmup_cosine(settings.rate, warmup=settings.warmup, steps=settings.steps)

    def describe(step: int) -> str:
        points = next(p for p, begin, end in _phase_ranges(settings) if begin <= step < end)
        return f"of windows {sampler_at(points).pairs(step).tolist()} (trajectory, start)"

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
        placement(settings.batch),
    )
    session.say(f"stage 2: {settings.model}, {settings.steps} steps")
    return session.run(stage, stepper)


def _optimiser(inner: optax.GradientTransformation, clip: float | None):
    return inner if clip is None else optax.chain(optax.clip_by_global_norm(clip), inner)


def _phase_ranges(settings: Settings) -> Iterator[tuple[int, int, int]]:
    """(points, first step, step after the last) of each phase."""
    begin = 0
    for points, steps in settings.phases:
        yield points, begin, begin + steps
        begin += steps


def _measured_residual(
    physics: EmbeddedPhysics, data: Trajectories, prepared: Prepared
) -> jax.Array:
    """What Φ leaves over one step, on pairs spread over the data."""
    count = min(16, data.trajectories)
    which = np.linspace(0, data.trajectories - 1, count).astype(int)
    starts = np.linspace(0, data.frames - 2, count).astype(int)
    windows = data.windows(np.stack([which, starts], axis=1), 2)
    own = {k: jnp.asarray(v) for k, v in prepared.coefficients_of(which).items()}
    return eqx.filter_jit(residual_scale)(
        physics, jnp.asarray(windows[:, 0]), jnp.asarray(windows[:, 1]), own
    )

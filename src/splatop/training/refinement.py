"""The last stage of a coarse model that shall guess small scales: by regression on fine frames."""

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from ..coarse import Refiner, truncated_frames
from ..coarse.refiner import fresh_refiner, refinement_loss
from ..data import Trajectories, WindowSampler
from ..ensemble import Ensemble, repeat
from ..spectral import resample
from ..stepper import Stepper
from .loop import Stage, only, warmup_cosine
from .settings import FULL
from .stages import Session

BATCH, RATE, WARMUP = 8, 3e-3, 20
# A guess has to lower what is missing of frames that training has not seen by this part of it.
LEAST_GAIN = 0.02
# Frames that scales are measured on, and that decide.
_SAMPLED = 16


def train_refiner(session: Session) -> Refiner | None:
    """A guess of what the coarse space leaves out; None if it is of no use on unseen frames."""
    settings, loaded = session.settings, session.loaded
    fine, coarse = loaded.observed(FULL), loaded.grid.points
    points = fine.grid.points
    sample = _spread_frames(fine)
    beyond = sample - _coarse_part(sample, coarse)
    axes = (0, *range(2, sample.ndim))
    refiner = fresh_refiner(
        coarse,
        points,
        center=jnp.asarray(session.prepared.center, jnp.float32),
        spread=jnp.asarray(session.prepared.spread, jnp.float32),
        scale=jnp.asarray(np.sqrt(np.mean(beyond**2, axis=axes)) + 1e-12, jnp.float32),
        key=jax.random.key(settings.seed + 1),
    )
    sampler = WindowSampler(fine, batch=BATCH, frames=1, seed=settings.seed)

    def batches(first: int, stop: int) -> Iterator[Any]:
        for batch in sampler.prefetch(first, stop):
            yield batch.windows[:, 0]

    def loss(model: Refiner, frames: Any):
        value = refinement_loss(model, frames, coarse)
        return value, value

    schedule = warmup_cosine(RATE, warmup=WARMUP, steps=settings.refine_steps)
    stage = Stage(
        "refinement",
        settings.refine_steps,
        loss,
        batches,
        only(refiner, lambda r: r.network),
        optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule)),
        schedule,
        lambda step: f"of frames {sampler.pairs(step).tolist()} (trajectory, frame)",
    )
    session.say(f"stage 3: a guess of scales beyond {' x '.join(map(str, coarse))} points")
    refiner = session.run(stage, refiner)
    unseen = _spread_frames(loaded.deciding(FULL).observed)
    mute = jax.tree.map(lambda a: 0 * a if eqx.is_inexact_array(a) else a, refiner.network)
    silent = eqx.tree_at(lambda r: r.network, refiner, mute)
    measure = eqx.filter_jit(refinement_loss)
    left, missing = (float(measure(one, jnp.asarray(unseen), coarse)) for one in (refiner, silent))
    share = (left / max(missing, 1e-30)) ** 0.5
    kept = share < 1 - LEAST_GAIN
    session.say(
        f"the guess leaves {share:.2f} of what is missing beyond the coarse grid in frames that "
        + ("decide: kept, and marked as a guess" if kept else "decide: of no use, and left out")
    )
    return refiner if kept else None


def with_refiner(stepper: Any, refiner: Refiner) -> Stepper:
    """A coarse stepper, or an ensemble of such, that adds the guess."""
    if isinstance(stepper, Ensemble):
        members = _refined(stepper.members, repeat(refiner, stepper.count))
        return Ensemble(members, stepper.count)
    return _refined(stepper, refiner)


def _refined(stepper: Any, refiner: Refiner) -> Stepper:
    return eqx.tree_at(lambda s: s.refiner, stepper, refiner, is_leaf=lambda x: x is None)


def _spread_frames(data: Trajectories) -> np.ndarray:
    """Frames `(n, C, *N)` spread over the trajectories and over time."""
    which = np.linspace(0, data.trajectories - 1, _SAMPLED).astype(int)
    starts = np.linspace(0, data.frames - 1, _SAMPLED).astype(int)
    return data.windows(np.stack([which, starts], axis=1), 1)[:, 0]


def _coarse_part(frames: np.ndarray, coarse: tuple[int, ...]) -> np.ndarray:
    points = frames.shape[2:]
    low = truncated_frames(frames, coarse)
    return np.stack([np.asarray(resample(jnp.asarray(u), points)) for u in low])

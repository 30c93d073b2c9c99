"""Training a model into a run folder: prepare, stage 1, stage 2, save."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._version import __version__
from ..ensemble import Ensemble, member, stack
from ..errors import SplatopError
from ..model import Model, save_model
from ..spectral import Field
from ..stepper import Stepper, rollout
from ..surrogate import Surrogate
from .devices import from_writer, is_writer
from .loop import Reporter, silent
from .prepare import Prepared, Say, fresh_stepper, prepare
from .problem import Problem
from .run_folder import CONFIG, MODEL, claim, read_json, write_json, writing_run
from .settings import Settings
from .stages import Session, learned_encoder, train_encoder, train_operator

# The operator must lower the rollout error by this part of it, and by more than float32 rounding
# adds up to over a rollout: less than that is fitted noise, which other trajectories pay for.
LEAST_GAIN = 0.05
ROUNDING = 2e-6


def train(
    out: str | Path,
    problem: Problem,
    settings: Settings,
    *,
    operator: Callable[..., Field] | None = None,
    resume: bool = False,
    report: Reporter = silent,
    say: Say = lambda _: None,
) -> Model:
    """Train into the folder `out` and return the model, which is also written there.

    `operator`, an equinox module `u -> u` of one state `(C, *N)`, takes the place of the FNO.
    Of several processes the first one decides and writes; the others follow it.
    """
    folder, started, loaded = Path(out), time.monotonic(), None
    asked: dict[str, Any] = {"settings": settings.as_dict(), "problem": problem.as_dict()}
    if operator is not None:
        asked["operator"] = type(operator).__name__
    if not is_writer():
        report, say = silent, lambda _: None
    with contextlib.ExitStack() as run:

        def begin() -> dict[str, Any]:
            nonlocal loaded
            run.enter_context(writing_run(folder))
            held = claim(folder, asked, resume=resume)
            loaded = problem.load(settings, folder)
            if held is None:
                prepared = prepare(loaded, settings, say, operator=operator)
                held = {"version": __version__, **asked, "prepared": prepared.as_dict()}
                write_json(folder / CONFIG, held)
            else:
                for reason in held["prepared"]["reasons"]:
                    say(reason)
            for points, _ in settings.phases:
                loaded.store(points)
            return held["prepared"]

        prepared = Prepared.from_dict(from_writer(begin))
        loaded = loaded or problem.load(settings, folder)
        fresh = [
            fresh_stepper(prepared, replace(settings, seed=seed), operator=operator)
            for seed in settings.member_seeds
        ]
        # Of an ensemble every array has the member as its first axis.
        stepper = fresh[0] if len(fresh) == 1 else stack(fresh)
        session = Session(loaded, prepared, settings, folder, report, say)
        clock = _Clock(folder / "timing.json")
        clock.add("preparation", time.monotonic() - started)
        if learned_encoder(stepper) is not None:
            with clock.measuring("encoder"):
                stepper = train_encoder(stepper, session)
        if settings.model != "physics":
            with clock.measuring("operator"):
                stepper = train_operator(stepper, session)
        several = settings.members > 1
        trained: list[Any] = [stepper]
        if several:
            trained = [member(stepper, k) for k in range(settings.members)]
        earned = [True] * len(trained)
        if isinstance(stepper, Surrogate) and settings.keep_if_better:
            judged = [_keep_if_better(one, session) for one in trained]
            trained, earned = [one for one, _ in judged], [kept for _, kept in judged]
        stepper = Ensemble(stack(trained), len(trained)) if several else trained[0]
        record = {
            "preset": settings.preset,
            "train_minutes": sum(clock.minutes.values()),
            "stage_minutes": clock.minutes,
            "operator_earned_its_place": any(earned),
            "numerics": list(prepared.reasons),
            "trajectories": len(next(iter(prepared.coefficients.values()), ()))
            or settings.trajectories,
            "points": list(loaded.grid.points),
            "seed": list(settings.member_seeds) if several else settings.seed,
            "calibration_frames": settings.calibration_frames,
            "operator": settings.model if operator is None else type(operator).__name__,
        }
        if several:
            record["members_with_operator"] = sum(earned)
        model = Model(replace(prepared.spec, members=settings.members), stepper, record)
        if is_writer():
            save_model(folder / MODEL, model)
        return model


def _keep_if_better(stepper: Surrogate, session: Session) -> tuple[Surrogate, bool]:
    """Leave the operator out where it does not lower the rollout error of the training data.

    Judged on the last phase's grid, the finest: on a coarse one the reference has errors of its
    own that an operator can learn.
    """
    data = session.loaded.at(session.settings.phases[-1][0])
    count = min(4, data.trajectories)
    steps = data.frames - 1
    which = np.linspace(0, data.trajectories - 1, count).astype(int)

    @eqx.filter_jit
    def error(model, frames, own):
        predicted = rollout(model, frames[0], own, steps=steps)
        return jnp.linalg.norm(predicted - frames[1:]) / jnp.linalg.norm(frames[1:])

    def mean_error(model: Stepper) -> float:
        errors = []
        for b in which:
            own = session.prepared.coefficients_of(np.asarray([b]))
            own = {name: jnp.asarray(values[0]) for name, values in own.items()}
            errors.append(float(error(model, jnp.asarray(data.window(int(b), 0, steps + 1)), own)))
        return float(np.mean(errors))

    composite, physics = mean_error(stepper), mean_error(stepper.physics)
    earned = physics - composite > max(LEAST_GAIN * physics, ROUNDING)
    session.say(
        f"rollout error over {steps} steps: physics alone {physics:.3e}, with the operator "
        f"{composite:.3e}" + ("" if earned else "; the operator is left out")
    )
    if not earned:
        stepper = eqx.tree_at(lambda s: s.scale, stepper, jnp.zeros_like(stepper.scale))
    return stepper, earned


class _Clock:
    """Training time by stage, added up over interruptions."""

    def __init__(self, path: Path):
        self.path = path
        self.minutes: dict[str, float] = read_json(path) if path.exists() else {}

    def add(self, stage: str, seconds: float) -> None:
        self.minutes[stage] = self.minutes.get(stage, 0.0) + seconds / 60
        if is_writer():
            write_json(self.path, self.minutes)

    @contextlib.contextmanager
    def measuring(self, stage: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            with contextlib.suppress(SplatopError):  # a full disk is told by what it stopped
                self.add(stage, time.monotonic() - started)

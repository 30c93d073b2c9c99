"""Training a model into a run folder: prepare, stage 1, stage 2, save."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from .._version import __version__
from ..description import describe
from ..encoders import Encoder
from ..ensemble import Ensemble, stack
from ..errors import SplatopError
from ..model import FNO_OPERATOR, Model, on_given_grid, save_model
from ..spectral import Field
from ..stepper import Stepper
from ..threads import one_blas_thread
from .devices import from_writer, is_writer
from .found_terms import with_found_terms
from .loop import Reporter, silent
from .outcome import decide, measure, summary
from .prepare import Prepared, Say, fresh_stepper, prepare
from .problem import Problem
from .refinement import train_refiner, with_refiner
from .run_folder import CONFIG, MODEL, claim, read_json, write_json, writing_run
from .settings import Settings
from .stages import Session, learned_encoder, train_encoder, train_operator


@one_blas_thread()
def train(
    out: str | Path,
    problem: Problem,
    settings: Settings,
    *,
    operator: Callable[..., Field] | None = None,
    encoder: Encoder | None = None,
    resume: bool = False,
    report: Reporter = silent,
    say: Say = lambda _: None,
) -> Model:
    """Train a model of a problem and return it; the run is kept in the folder `out`.

    `operator`, an equinox module `u -> u` of one state `(C, *N)`, takes the place of the FNO, and
    `encoder`, of a registered class, that of the encoder which the settings name.
    Of several processes the first one decides and writes; the others follow it.
    """
    folder, started, loaded = Path(out), time.monotonic(), None
    earlier = read_json(folder / CONFIG) if resume and (folder / CONFIG).exists() else {}
    problem = with_found_terms(problem, earlier.get("problem"), say)
    asked: dict[str, Any] = {"settings": settings.as_dict(), "problem": problem.as_dict()}
    if operator is not None:
        asked["operator"] = type(operator).__name__
    if encoder is not None:
        asked["encoder"] = describe(encoder)
    if not is_writer():
        report, say = silent, lambda _: None
    with contextlib.ExitStack() as run:

        def begin() -> dict[str, Any]:
            nonlocal loaded
            run.enter_context(writing_run(folder))
            held = claim(folder, asked, resume=resume)
            loaded = problem.load(settings, folder)
            if held is None:
                prepared = prepare(
                    loaded,
                    settings.fitting(loaded.size[1]),
                    say,
                    operator=operator,
                    encoder=encoder,
                )
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
            fresh_stepper(
                prepared, replace(settings, seed=seed), operator=operator, encoder=encoder
            )
            for seed in settings.member_seeds
        ]
        # Of an ensemble every array has the member as its first axis.
        stepper = fresh[0] if len(fresh) == 1 else stack(fresh)
        settings = settings.fitting(loaded.size[1])
        session = Session(loaded, prepared, settings, folder, report, say)
        clock = _Clock(folder / "timing.json")
        clock.add("preparation", time.monotonic() - started)
        if learned_encoder(stepper) is not None:
            with clock.measuring("encoder"):
                stepper = train_encoder(stepper, session)
        if settings.model != "physics":
            with clock.measuring("operator"):
                stepper = train_operator(stepper, session)
        count, spec = settings.members, replace(prepared.spec, members=settings.members)
        stepper = on_given_grid(stepper, spec)
        finished, physics, decision = _finished(stepper, count), None, None
        if prepared.spec.kind == "surrogate":
            physics, alike = _physics(stepper, count)
            if settings.keep_if_better:
                decision = decide(finished, physics, session)
                say(str(decision))
            if decision is not None and not decision.kept:
                finished, spec, physics = physics, spec.without_operator(members=alike), None
        if settings.refine:
            with clock.measuring("refinement"):
                refiner = train_refiner(session)
            if refiner is not None:
                finished, spec = with_refiner(finished, refiner), replace(spec, refined=True)
        model = Model(spec, finished)
        measured = measure(finished, physics, session)
        trajectories, frames = loaded.size
        record = {
            "summary": summary(
                session,
                kind=spec.kind,
                parameters=model.parameters,
                decision=decision,
                measured=measured,
                found=None if problem.found is None else problem.found["said"],
            ),
            "preset": settings.preset,
            "train_minutes": sum(clock.minutes.values()),
            "stage_minutes": clock.minutes,
            "operator_earned_its_place": decision is None or decision.kept,
            "decision": None if decision is None else asdict(decision),
            "measured": asdict(measured),
            "numerics": list(prepared.reasons),
            "doubts": list(prepared.doubts),
            "trajectories": trajectories,
            "frames": frames,
            "points": list(loaded.given_grid.points),
            "seed": list(settings.member_seeds) if count > 1 else settings.seed,
            "calibration_frames": settings.calibration_frames,
            "operator": _operator_name(settings, operator),
        }
        if count > 1:
            record["members_with_operator"] = count if record["operator_earned_its_place"] else 0
        if problem.found is not None:
            record["unknown"] = problem.found
        model = replace(model, record=record)
        if is_writer():
            save_model(folder / MODEL, model)
        return model


def _finished(stepper: Any, members: int) -> Stepper:
    """Of several members, whose arrays are stacked, their mean."""
    return stepper if members == 1 else Ensemble(stepper, members)


def _physics(stepper: Any, members: int) -> tuple[Stepper, int]:
    """The physics of a surrogate and how many it is: members with one lattice have the same."""
    if members == 1 or learned_encoder(stepper) is None:
        return stepper.physics_alone, 1
    return Ensemble(stepper.physics_alone, members), members


def _operator_name(settings: Settings, operator: Any) -> str:
    if operator is not None:
        return type(operator).__name__
    return settings.model if settings.network == FNO_OPERATOR else settings.network


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

"""Training a model into a run folder: prepare, stage 1, stage 2, save."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from .._version import __version__
from ..benchmarks import get_benchmark
from ..data import Trajectories, WindowSampler
from ..encoders import UNetEncoder
from ..equation import Equation
from ..identify import identify_trajectories
from ..model import Model, ModelSpec, build_model, save_model
from ..numerics import build_encoder, paper_numerics
from ..operators import Conditioning
from ..stepper import rollout
from ..surrogate import Surrogate, residual_scale
from ..tune import choose_numerics
from .checkpoints import Checkpoints
from .devices import from_writer, is_writer, placement
from .loop import Reporter, Stage, only, run_stage, silent, warmup_cosine
from .losses import (
    batch_reconstruction_loss,
    batch_rollout_loss,
    worst_frame,
    worst_prediction,
)
from .problem import Loaded, Problem
from .run_folder import CONFIG, HISTORY, MODEL, claim, read_json, write_json, writing_run
from .settings import Settings

Say = Callable[[str], None]


@dataclass(frozen=True)
class Prepared:
    """What is decided before the first step: the model's description and the data's statistics.

    `coefficients` hold one value per training trajectory, identified where they were unknown.
    """

    spec: ModelSpec
    center: tuple[float, ...]
    spread: tuple[float, ...]
    coefficients: Mapping[str, tuple[float, ...]]
    reasons: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "spec": self.spec.as_dict(),
            "center": self.center,
            "spread": self.spread,
            "coefficients": {k: list(v) for k, v in self.coefficients.items()},
            "reasons": self.reasons,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Prepared":
        return cls(
            ModelSpec.from_dict(values["spec"]),
            tuple(values["center"]),
            tuple(values["spread"]),
            {k: tuple(v) for k, v in values["coefficients"].items()},
            tuple(values["reasons"]),
        )


def train(
    out: str | Path,
    problem: Problem,
    settings: Settings,
    *,
    resume: bool = False,
    report: Reporter = silent,
    say: Say = lambda _: None,
) -> Model:
    """Train into the folder `out` and return the model, which is also written there.

    Of several processes the first one decides and writes; the others follow it.
    """
    folder, started, loaded = Path(out), time.monotonic(), None
    asked = {"settings": settings.as_dict(), "problem": problem.as_dict()}
    if not is_writer():
        report, say = silent, lambda _: None
    with contextlib.ExitStack() as run:

        def begin() -> dict[str, Any]:
            nonlocal loaded
            run.enter_context(writing_run(folder))
            held = claim(folder, asked, resume=resume)
            loaded = problem.load(settings, folder)
            if held is None:
                prepared = prepare(loaded, settings, say)
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
        stepper = _fresh_stepper(prepared, settings)
        spent = _Clock(folder / "timing.json", started)
        try:
            encoder = _learned_encoder(stepper)
            if encoder is not None:
                encoder = _train_encoder(encoder, loaded, settings, folder, report, say)
                stepper = _with_encoder(stepper, encoder)
            if settings.model != "physics":
                stepper = _train_operator(stepper, loaded, prepared, settings, folder, report, say)
        finally:
            seconds = spent.stop()
        earned = True
        if isinstance(stepper, Surrogate) and settings.keep_if_better:
            stepper, earned = _keep_if_better(stepper, loaded, prepared, settings, say)
        record = {
            "preset": settings.preset,
            "train_minutes": seconds / 60,
            "operator_earned_its_place": earned,
            "numerics": list(prepared.reasons),
            "trajectories": len(next(iter(prepared.coefficients.values()), ()))
            or settings.trajectories,
            "seed": settings.seed,
            "calibration_frames": settings.calibration_frames,
        }
        model = Model(prepared.spec, stepper, record)
        if is_writer():
            save_model(folder / MODEL, model)
        return model


def prepare(loaded: Loaded, settings: Settings, say: Say = lambda _: None) -> Prepared:
    """Identify what is unknown, choose the numerics, measure the data."""
    frames = loaded.sample_frames()
    axes = (0, *range(2, frames.ndim))
    center = np.zeros(frames.shape[1])
    spread = np.ones(frames.shape[1])
    if settings.residual_scaling:
        center, spread = frames.mean(axis=axes), frames.std(axis=axes) + 1e-12
    known = loaded.equation.without(*settings.drop_terms)
    unknown = tuple(n for n in loaded.unknown if n in known.coefficient_names)
    fixed, coefficients = dict(loaded.known), {}
    if unknown:
        shared, coefficients = _identify(loaded, known, unknown, settings, say)
        fixed |= shared
        unknown = tuple(coefficients)
    needs_physics = settings.model in ("surrogate", "physics")
    numerics, reasons = None, ()
    if needs_physics:
        typical = {**fixed, **{k: float(np.mean(v)) for k, v in coefficients.items()}}
        if settings.numerics == "paper" and loaded.benchmark is not None:
            numerics = paper_numerics(get_benchmark(loaded.benchmark))
            reasons = ("numerics: the paper's published settings",)
        else:
            tuned = choose_numerics(
                known, typical, frames, lengths=loaded.grid.lengths, dt=loaded.dt
            )
            numerics, reasons = tuned.numerics, tuned.reasons
        numerics = settings.refine(numerics, loaded.grid.dims)
        for reason in reasons:
            say(reason)
    spec = ModelSpec(
        kind=settings.model,
        equation=loaded.equation_text,
        fields=loaded.equation.fields,
        lengths=loaded.grid.lengths,
        dt=loaded.dt,
        numerics=numerics,
        benchmark=loaded.benchmark,
        coefficients={k: v for k, v in fixed.items() if k in known.coefficient_names},
        unknown=unknown,
        conditioned=bool(unknown) and settings.model in ("surrogate", "fno"),
        dropped_terms=settings.drop_terms,
        coupling=settings.coupling,
        hidden=settings.hidden,
        modes=settings.modes,
        blocks=settings.blocks,
        tenfold=settings.tenfold,
    )
    return Prepared(
        spec,
        tuple(float(c) for c in center),
        tuple(float(s) for s in spread),
        coefficients,
        tuple(reasons),
    )


# Estimates that differ by less than this from trajectory to trajectory are one coefficient.
POOLED_SPREAD = 0.02


def _identify(
    loaded: Loaded, equation: Equation, unknown: tuple[str, ...], settings: Settings, say: Say
) -> tuple[dict[str, float], dict[str, tuple[float, ...]]]:
    """Unknown coefficients: those shared by all trajectories, and those of each by itself."""
    data = loaded.at(settings.phases[0][0])
    frames = min(settings.calibration_frames, data.frames)
    say(
        f"identifying {', '.join(unknown)} from {frames} frames of each of "
        f"{data.trajectories} trajectories"
    )
    found = identify_trajectories(
        equation, None, data, unknown=unknown, known=loaded.known, frames=frames
    )
    for warning in sorted({text for one in found for text in one.warnings}):
        say(f"warning: {warning}")
    shared, own = {}, {}
    for name in unknown:
        values = np.array([one.estimates[name] for one in found])
        errors = np.array([one.standard_errors[name] for one in found])
        middle = float(np.median(values))
        spread = float(np.median(np.abs(values - middle)))
        if spread <= max(POOLED_SPREAD * abs(middle), 3 * float(np.median(errors))):
            shared[name] = middle
            say(f"{name} = {middle:.6g} for all trajectories (they differ by {spread:.1e})")
        else:
            own[name] = tuple(float(v) for v in values)
            say(f"{name} differs by trajectory: {values.min():.4g} to {values.max():.4g}")
    return shared, own


def _fresh_stepper(prepared: Prepared, settings: Settings):
    spec = prepared.spec
    encoder_key, network_key = jax.random.split(jax.random.key(settings.seed))
    encoder = None
    if spec.numerics is not None:
        encoder = build_encoder(spec.numerics, len(spec.fields), key=encoder_key)
    conditioning = None
    if spec.conditioned:
        conditioning = Conditioning.fit(
            {k: np.asarray(prepared.coefficients[k]) for k in spec.unknown}
        )
    stepper = build_model(spec, key=network_key, encoder=encoder, conditioning=conditioning)
    if spec.kind == "physics":
        return stepper
    return eqx.tree_at(
        lambda s: (s.center, s.spread),
        stepper,
        (jnp.asarray(prepared.center, jnp.float32), jnp.asarray(prepared.spread, jnp.float32)),
    )


def _physics_of(stepper):
    return stepper.physics if isinstance(stepper, Surrogate) else stepper


def _learned_encoder(stepper) -> UNetEncoder | None:
    encoder = getattr(getattr(_physics_of(stepper), "jets", None), "encoder", None)
    return encoder if isinstance(encoder, UNetEncoder) else None


def _with_encoder(stepper, encoder: UNetEncoder):
    return eqx.tree_at(_learned_encoder, stepper, encoder)


def _train_encoder(
    encoder: UNetEncoder, loaded: Loaded, settings: Settings, folder: Path, report, say
) -> UNetEncoder:
    """Stage 1: the encoder alone, by reconstruction of single frames."""
    say(f"stage 1: encoder on {' x '.join(map(str, encoder.anchors))} anchors")
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
    return _run(stage, encoder, settings, folder, report, say)


def _train_operator(
    stepper, loaded: Loaded, prepared: Prepared, settings: Settings, folder: Path, report, say
):
    """Stage 2: the network alone, by rollouts of H steps; the encoder stays frozen."""
    data = loaded.at(settings.phases[0][0])
    if isinstance(stepper, Surrogate):
        scale = jnp.ones(len(prepared.center))
        if settings.residual_scaling:
            scale = _measured_residual(stepper.physics, data, prepared)
            say(f"residual of the physics: {float(jnp.max(scale)):.2e} per step")
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
                    own = _coefficients_of(prepared, batch.pairs[:, 0])
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
    say(f"stage 2: {settings.model}, {settings.steps} steps")
    return _run(stage, stepper, settings, folder, report, say)


def _run(stage: Stage, model, settings: Settings, folder: Path, report, say):
    return run_stage(
        stage,
        model,
        checkpoints=Checkpoints(folder / "checkpoints" / stage.name, say=say),
        history=folder / HISTORY,
        checkpoint_every=settings.checkpoint_every,
        checkpoint_minutes=settings.checkpoint_minutes,
        report=report,
    )


def _optimiser(inner: optax.GradientTransformation, clip: float | None):
    return inner if clip is None else optax.chain(optax.clip_by_global_norm(clip), inner)


def _phase_ranges(settings: Settings) -> Iterator[tuple[int, int, int]]:
    """(points, first step, step after the last) of each phase."""
    begin = 0
    for points, steps in settings.phases:
        yield points, begin, begin + steps
        begin += steps


def _coefficients_of(prepared: Prepared, trajectories: np.ndarray) -> dict[str, np.ndarray]:
    """The coefficients of a batch: fixed ones repeated, identified ones by trajectory."""
    fixed = {
        name: np.full(len(trajectories), value, np.float32)
        for name, value in prepared.spec.coefficients.items()
    }
    own = {
        name: np.asarray(values, np.float32)[trajectories]
        for name, values in prepared.coefficients.items()
    }
    return {**fixed, **own}


def _measured_residual(physics, data: Trajectories, prepared: Prepared):
    """What Φ leaves over one step, on pairs spread over the data."""
    count = min(16, data.trajectories)
    which = np.linspace(0, data.trajectories - 1, count).astype(int)
    starts = np.linspace(0, data.frames - 2, count).astype(int)
    windows = data.windows(np.stack([which, starts], axis=1), 2)
    own = {k: jnp.asarray(v) for k, v in _coefficients_of(prepared, which).items()}
    return jax.jit(residual_scale, static_argnums=())(
        physics, jnp.asarray(windows[:, 0]), jnp.asarray(windows[:, 1]), own
    )


def _keep_if_better(stepper: Surrogate, loaded: Loaded, prepared, settings: Settings, say):
    """Leave the operator out where it does not lower the rollout error of the training data."""
    data = loaded.at(settings.phases[0][0])
    count = min(4, data.trajectories)
    steps = data.frames - 1
    which = np.linspace(0, data.trajectories - 1, count).astype(int)

    @eqx.filter_jit
    def error(model, frames, own):
        predicted = rollout(model, frames[0], own, steps=steps)
        return jnp.linalg.norm(predicted - frames[1:]) / jnp.linalg.norm(frames[1:])

    def mean_error(model) -> float:
        errors = []
        for b in which:
            own = {
                k: jnp.asarray(v[0]) for k, v in _coefficients_of(prepared, np.asarray([b])).items()
            }
            errors.append(float(error(model, jnp.asarray(data.window(int(b), 0, steps + 1)), own)))
        return float(np.mean(errors))

    composite, physics = mean_error(stepper), mean_error(stepper.physics)
    earned = composite < physics
    say(
        f"rollout error over {steps} steps: physics alone {physics:.3e}, with the operator "
        f"{composite:.3e}" + ("" if earned else "; the operator is left out")
    )
    if not earned:
        stepper = eqx.tree_at(lambda s: s.scale, stepper, jnp.zeros_like(stepper.scale))
    return stepper, earned


class _Clock:
    """Training time added up over interruptions."""

    def __init__(self, path: Path, started: float):
        self.path, self.started = path, started

    def stop(self) -> float:
        before = read_json(self.path)["seconds"] if self.path.exists() else 0.0
        seconds = before + time.monotonic() - self.started
        if is_writer():
            write_json(self.path, {"seconds": seconds})
        return seconds

"""Train the models that ship and measure everything docs/results.md shows.

    python tools/measure.py [PART ...] [--runs DIR] [--only NAME]

Every part skips what is there already, so it can be interrupted and started again. `make results`
turns the JSON files it writes into tables and figures.
"""

import argparse
import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from splatop.benchmarks import BENCHMARKS, get_benchmark
from splatop.data.atomic import complete_or_absent
from splatop.encoders import LatticeEncoder
from splatop.evaluate import (
    ReferenceTrajectories,
    evaluate,
    load_metrics,
    save_metrics,
)
from splatop.evaluate.ablations import Ablation, ablate
from splatop.evaluate.representation import measured_frames, representation_errors
from splatop.jets import SplatJets
from splatop.model import SHIPPED, load_model
from splatop.spectral import PassThrough
from splatop.training import Problem, preset, train
from splatop.walls import shape_resolution

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"
SHIPPED_BENCHMARKS = [
    name
    for name, benchmark in BENCHMARKS.items()
    if name != "burgers2d_conservative" and not benchmark.boundary
]
BOUNDED_BENCHMARKS = [name for name, benchmark in BENCHMARKS.items() if benchmark.boundary]
BOUNDED_BENCHMARKS.sort(key=lambda name: (get_benchmark(name).dims, get_benchmark(name).points))
# Between walls and on shapes the whole equation is known and the physics is within 1e-5 of the
# reference or so: nothing is learned, numerics are chosen from a few trajectories.
BOUNDED: dict[str, Any] = {"trajectories": 8, "model": "physics"}
# The layer at the cylinder and the corner of the L call for as many anchors as their references
# have, and the model's error would say nothing: it has at most so many.
EVERY_SIZE = shape_resolution.CANDIDATES
BOUNDED_ANCHORS = {"tracer_cylinder": 28, "allen_cahn_lshape": 20}
BOUNDED_TESTS = 3
RESOLUTIONS = (64, 96, 160, 256)
LONG_STEPS = 1000

# Learned geometry at the paper's A = 20, in at most half an hour each.
ENCODED = [name for name in SHIPPED_BENCHMARKS if not get_benchmark(name).coefficient_ranges]
ENCODED.sort(key=lambda name: (get_benchmark(name).dims, name != "advection_allen_cahn2d"))
ENCODER_TRAINING: dict[int, dict[str, Any]] = {
    2: {"encoder_steps": 300, "model": "physics"},
    3: {"encoder_steps": 80, "encoder_batch": 2, "encoder_warmup": 10, "model": "physics"},
}
# Sharp interfaces are where geometry has most to learn.
ENCODER_STEPS = {"advection_allen_cahn2d": 2000, "burgers2d": 600}
# One setting at a time, beside the preset's own.
CHOICES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "no residual scaling": {"residual_scaling": False},
    "full grid, as many minutes": {"phases": ((0, 15),), "warmup": 2},
    "rate 1e-4": {"rate": 1e-4},
    "rate 1e-3": {"rate": 1e-3},
    "horizon 1": {"horizon": 1},
    "sequential coupling": {"coupling": "sequential"},
    "paper's cutoff and substeps": {
        "filter": "smooth",
        "cutoff": 6.0,
        "rolloff": 2.0,
        "substeps": 1,
    },
}
# Anchors per axis and steps of stage 1: a step at 40 costs as much as twenty at 20.
ANCHOR_STEPS = {10: 200, 14: 200, 20: 200, 28: 100, 40: 20}


def log(*words):
    print(*words, flush=True)


def write(path: Path, value) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with complete_or_absent(path) as partial:
        partial.write_text(json.dumps(value, indent=1, allow_nan=False) + "\n")


def trained(folder: Path, problem: Problem, settings):
    """The model of a run folder, trained now if it is not there."""
    if not (folder / "model.safetensors").exists():
        log("training", folder)
        steps = {}

        def report(stage, step, total, loss, rate):
            if step % 50 == 0 or step == total:
                log(f"  {stage} {step}/{total} loss {loss:.3e}")
            steps[stage] = step

        resume = (folder / "config.json").exists()
        train(folder, problem, settings, resume=resume, report=report, say=lambda t: log("  " + t))
    return load_model(folder)


def models(runs: Path) -> None:
    """One surrogate per benchmark, on the paper's protocol, into the package."""
    SHIPPED.mkdir(exist_ok=True)
    for name in SHIPPED_BENCHMARKS:
        target = SHIPPED / f"{name}.metrics.json"
        if target.exists():
            continue
        model = trained(runs / name, Problem(benchmark=name), preset("fast", name))
        metrics = evaluate(
            model,
            ReferenceTrajectories(get_benchmark(name)),
            name=name,
            also=("physics alone", "cost", "representation"),
        )
        shutil.copy(runs / name / "model.safetensors", SHIPPED / f"{name}.safetensors")
        save_metrics(target, metrics)
        # Where the operator was left out the model is its physics.
        alone = (metrics.physics_alone or metrics).rl2_mean
        log(name, "rL2", metrics.rl2_mean, "physics alone", alone)


def bounded(runs: Path) -> None:
    """One model for each benchmark with walls or a shape, into the package."""
    folder = SHIPPED / "bounded"
    folder.mkdir(exist_ok=True)
    for name in BOUNDED_BENCHMARKS:
        target = folder / f"{name}.metrics.json"
        if target.exists():
            continue
        settings = replace(preset("fast", name), **BOUNDED)
        most = BOUNDED_ANCHORS.get(name, max(EVERY_SIZE))
        shape_resolution.CANDIDATES = tuple(a for a in EVERY_SIZE if a <= most)
        model = trained(runs / name, Problem(benchmark=name), settings)
        benchmark, numerics = get_benchmark(name), model.spec.numerics
        if benchmark.shape and numerics and max(numerics.anchors) >= benchmark.anchors:
            log(name, "has the anchors of its own reference: its error would say nothing")
            continue
        tests = ReferenceTrajectories(benchmark, trajectories=BOUNDED_TESTS)
        metrics = evaluate(model, tests, name=name, also=("cost",))
        shutil.copy(runs / name / "model.safetensors", folder / f"{name}.safetensors")
        save_metrics(target, metrics)
        log(name, "rL2", metrics.rl2_mean)


def providers(runs: Path) -> None:
    """The shipped models with their derivatives from elsewhere."""
    for name in SHIPPED_BENCHMARKS:
        for jets in ("spectral", "finite-difference"):
            path = RESULTS / "jets" / f"{name}.{jets}.json"
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                model = ablate(load_model(name), Ablation(jets=jets))
                count = 10 if get_benchmark(name).dims == 2 else 4
                tests = ReferenceTrajectories(get_benchmark(name), trajectories=count)
                save_metrics(path, evaluate(model, tests, name=f"{name}, {jets}", also=()))
                log(path)


def resolutions(runs: Path) -> None:
    """The same model on other grids."""
    for name in SHIPPED_BENCHMARKS:
        path = RESULTS / "resolution" / f"{name}.json"
        if path.exists():
            continue
        benchmark = get_benchmark(name)
        found = {}
        for points in RESOLUTIONS if benchmark.dims == 2 else (32, 48, 64):
            tests = ReferenceTrajectories(
                benchmark, trajectories=8 if benchmark.dims == 2 else 3, points=points
            )
            found[str(points)] = evaluate(load_model(name), tests, also=()).rl2_mean
            log(name, points, found[str(points)])
        write(path, found)


def long_rollouts(runs: Path) -> None:
    """A thousand steps from test states: largest absolute value at the start and at the end."""
    for name in SHIPPED_BENCHMARKS:
        path = RESULTS / "long" / f"{name}.json"
        if path.exists():
            continue
        benchmark = get_benchmark(name)
        tests = ReferenceTrajectories(benchmark, trajectories=2, steps=7)
        model, found = load_model(name), []
        for index in range(tests.trajectories):
            u = jnp.asarray(tests.window(index, 0, 1)[0])
            own = tests.trajectory_coefficients(index)
            start, peak = float(jnp.abs(u).max()), 0.0
            for _ in range(LONG_STEPS // 100):
                frames = np.asarray(model.rollout(u, steps=100, coefficients=own))
                u, peak = jnp.asarray(frames[-1]), max(peak, float(np.abs(frames).max()))
            found.append({"start": start, "peak": peak, "end": float(jnp.abs(u).max())})
        write(path, {"steps": LONG_STEPS, "trajectories": found})
        log(name, found)


def true_coefficients(runs: Path) -> None:
    """The conditioned model told the true coefficients, beside what it identifies by itself."""
    name = "unknown_advection_diffusion2d"
    path = RESULTS / "true_coefficients.json"
    if path.exists():
        return
    tests, model = ReferenceTrajectories(get_benchmark(name)), load_model(name)
    errors = []
    for index in range(tests.trajectories):
        frames = tests.window(index, 0, tests.frames)
        own = {k: float(v[index]) for k, v in tests.coefficients.items()}
        found = np.asarray(model.rollout(frames[0], steps=tests.frames - 1, coefficients=own))
        axes = tuple(range(1, frames.ndim))
        distance = np.sqrt(np.sum((found - frames[1:]) ** 2, axis=axes))
        errors.append(np.mean(distance / np.sqrt(np.sum(frames[1:] ** 2, axis=axes))))
    identified = load_metrics(SHIPPED / f"{name}.metrics.json")
    found = {
        "rl2_identified": identified.rl2_mean,
        "rl2_true": float(np.mean(errors)),
        "coefficient_errors": identified.coefficients["relative_error"],
    }
    write(path, found)
    log(found)


def choices(runs: Path) -> None:
    """What each choice of the `fast` preset buys: advection2d, 100 steps, one thing changed."""
    name = "advection2d"
    base = replace(preset("fast", name), phases=((64, 100),), warmup=10, keep_if_better=False)
    for label, changes in CHOICES.items():
        file = re.sub("[^a-z0-9]+", "_", label.lower().replace("'", ""))
        path = RESULTS / "choices" / f"{file}.json"
        if path.exists():
            continue
        settings = replace(base, **changes)
        model = trained(runs / "choices" / file, Problem(benchmark=name), settings)
        tests = ReferenceTrajectories(get_benchmark(name), trajectories=6)
        metrics = evaluate(model, tests, name=label, also=("physics alone",))
        alone = metrics.physics_alone
        write(
            path,
            {
                "changed": label,
                "rl2_mean": metrics.rl2_mean,
                "physics_alone": alone.rl2_mean if alone else None,
                "minutes": model.record["stage_minutes"]["operator"],
                "steps": settings.steps,
            },
        )
        log(path, metrics.rl2_mean)


def encoders(runs: Path) -> None:
    """Gaussians at A = 20: learned with solved amplitudes, predicted ones, and the lattice."""
    for name in ENCODED:
        benchmark = get_benchmark(name)
        flat = benchmark.dims == 2
        for kind in ("lattice", "unet-predicted", "unet"):
            path = RESULTS / "encoders" / f"{name}.{kind}.json"
            if path.exists():
                continue
            settings = replace(
                preset("fast", name),
                encoder=kind,
                anchors=20,
                **ENCODER_TRAINING[benchmark.dims],
            )
            steps = settings.encoder_steps
            if kind == "unet":
                steps = ENCODER_STEPS.get(name, steps)
            settings = replace(settings, encoder_steps=steps)
            if kind == "lattice":
                settings = replace(settings, kernel_width=1.0)
            model = trained(runs / "encoders" / f"{name}-{kind}", Problem(benchmark=name), settings)
            tests = ReferenceTrajectories(benchmark, trajectories=4 if flat else 1)
            found = {
                **representation_errors(model.physics.jets, measured_frames(tests)),
                "rl2_mean": evaluate(model, tests, also=()).rl2_mean,
                "frames_seen": 0 if kind == "lattice" else steps * settings.encoder_batch,
                "minutes": model.record["stage_minutes"].get("encoder", 0.0),
            }
            write(path, found)
            log(name, kind, found)


def anchors(runs: Path) -> None:
    """Representation errors against the number of Gaussians: lattice and learned geometry."""
    name = "advection_allen_cahn2d"
    tests = ReferenceTrajectories(get_benchmark(name), trajectories=4)
    frames = measured_frames(tests)
    for count, steps in ANCHOR_STEPS.items():
        path = RESULTS / "anchors" / f"{name}.{count}.json"
        if path.exists():
            continue
        widths = {}
        for width in (0.8, 1.0, 1.2, 1.5):
            jets = SplatJets(
                encoder=LatticeEncoder((count, count), width),
                lengths=(1.0, 1.0),
                filter=PassThrough(),
            )
            widths[str(width)] = representation_errors(jets, frames)
        width = min(widths, key=lambda w: widths[w]["e_u"])
        settings = replace(
            preset("fast", name),
            model="physics",
            encoder="unet",
            anchors=count,
            encoder_steps=steps,
        )
        model = trained(runs / "anchors" / str(count), Problem(benchmark=name), settings)
        found = {
            "lattice": {**widths[width], "width": float(width)},
            "learned": {
                **representation_errors(model.physics.jets, frames),
                "frames_seen": steps * settings.encoder_batch,
                "minutes": model.record["stage_minutes"]["encoder"],
            },
        }
        write(path, found)
        log(count, found)


PARTS = {
    part.__name__: part
    for part in (
        models,
        bounded,
        providers,
        resolutions,
        long_rollouts,
        true_coefficients,
        choices,
        encoders,
        anchors,
    )
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help=", ".join(PARTS))
    parser.add_argument("--runs", type=Path, default=ROOT / "runs")
    parser.add_argument("--only", choices=BOUNDED_BENCHMARKS, help="one model of `bounded`")
    arguments = parser.parse_args()
    if arguments.only:
        BOUNDED_BENCHMARKS[:] = [arguments.only]
    for part in arguments.parts or PARTS:
        PARTS[part](arguments.runs)
    sys.exit(0)

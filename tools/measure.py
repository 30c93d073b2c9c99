"""Train the models that ship and measure everything docs/results.md shows.

    python tools/measure.py [PART ...] [--runs DIR]

Every part skips what is there already, so it can be interrupted and started again. `make results`
turns the JSON files it writes into tables and figures.
"""

import argparse
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from splatop.benchmarks import BENCHMARKS, get_benchmark
from splatop.data.atomic import complete_or_absent
from splatop.evaluate import ReferenceTrajectories, evaluate, evaluate_all, save_metrics
from splatop.evaluate.ablations import Ablation, ablate
from splatop.model import SHIPPED, load_model
from splatop.training import Problem, preset, train

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"
SHIPPED_BENCHMARKS = [name for name in BENCHMARKS if name != "burgers2d_conservative"]
RESOLUTIONS = (64, 96, 160, 256)
LONG_STEPS = 1000
# The comparison with baselines trained here, at the reduced size: the same data, loss and steps.
REDUCED = {"points": 64, "trajectories": 64, "phases": ((0, 300),), "warmup": 40, "batch": 20}


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
        alone = metrics.physics_alone.rl2_mean if metrics.physics_alone else None
        log(name, "rL2", metrics.rl2_mean, "physics alone", alone)


def providers(runs: Path) -> None:
    """The shipped models with their derivatives from elsewhere."""
    for name in SHIPPED_BENCHMARKS:
        for jets in ("spectral", "finite-difference"):
            path = RESULTS / "jets" / f"{name}.{jets}.json"
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                model = ablate(load_model(name), Ablation(jets=jets))
                count = 30 if get_benchmark(name).dims == 2 else 6
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


def baselines(runs: Path) -> None:
    """FNO, U-Net, ResNet and the surrogate at 64², with the same data, loss and steps."""
    for name in SHIPPED_BENCHMARKS:
        benchmark = get_benchmark(name)
        if benchmark.dims == 3 or benchmark.coefficient_ranges:
            continue
        kinds = ("surrogate", "fno", "unet", "resnet")
        paths = {kind: RESULTS / "baselines" / f"{name}.{kind}.json" for kind in kinds}
        for kind, path in paths.items():
            if path.exists():
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            settings = replace(preset("fast", name), model=kind, **REDUCED)
            model = trained(runs / "reduced" / f"{name}-{kind}", Problem(benchmark=name), settings)
            tests = ReferenceTrajectories(benchmark, points=REDUCED["points"])
            (metrics,) = evaluate_all({kind: model}, tests, also=("physics alone",)).values()
            save_metrics(path, metrics)
            log(name, kind, metrics.rl2_mean)


def missing_terms(runs: Path) -> None:
    """Physics without one term: truncated physics, FNO alone, and both together, at 64²."""
    cases = {
        "advection_allen_cahn2d": "reaction",
        "burgers2d": "diffusion",
        "advection_diffusion2d": "diffusion",
    }
    for name, term in cases.items():
        path = RESULTS / "missing" / f"{name}.surrogate.json"
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        settings = replace(preset("fast", name), drop_terms=(term,), **REDUCED)
        model = trained(runs / "missing" / name, Problem(benchmark=name), settings)
        tests = ReferenceTrajectories(get_benchmark(name), points=REDUCED["points"])
        save_metrics(
            path, evaluate(model, tests, name=f"{name} without {term}", also=("physics alone",))
        )
        log(path)


PARTS = {
    part.__name__: part
    for part in (models, providers, resolutions, long_rollouts, baselines, missing_terms)
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help=", ".join(PARTS))
    parser.add_argument("--runs", type=Path, default=ROOT / "runs")
    arguments = parser.parse_args()
    for part in arguments.parts or PARTS:
        PARTS[part](arguments.runs)
    sys.exit(0)

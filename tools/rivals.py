"""Networks that get their time: FNO and U-Net beside splatop on the same data, error against time.

    python tools/rivals.py train [BENCHMARK.KIND ...] [--minutes 60]   # into results/rivals

`make results` draws them. Each point is a training of its own, by the command that users have, to the end of its schedule:

    splatop train BENCHMARK --model KIND --preset long --set points=64 --set phases=0:STEPS --set rate=RATE

Ours is `splatop train BENCHMARK --set points=64`, once.

The rate is the best of three, a third, once and three times the default, by the error on held-out trajectories after
1,000 steps of the FNO, 100 of the U-Net, whose steps take twenty times as long. Longer trainings follow, each three times as long as the one before, until one brings less than
2 %, or three times the preset's own length is reached, or no time is left; what is there is kept, and one that was stopped goes
on. Times are of the processor: of both cores together, and the same on a busy machine.
"""

import argparse
import json
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from splatop.benchmarks import get_benchmark
from splatop.cli.compiled import keep_compiled
from splatop.data.atomic import write_whole
from splatop.evaluate import ReferenceTrajectories, evaluate
from splatop.model import load_model
from splatop.training import Problem, Settings, preset, train

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results" / "rivals"
BENCHMARKS = ("burgers2d", "advection_allen_cahn2d", "allen_cahn2d_insulated")
RIVALS = ("fno", "unet")
OURS = "surrogate"
POINTS = 64
LENGTHS = (100, 300, 1_000, 3_000, 10_000, 30_000)
RATES = (1 / 3, 1.0, 3.0)
RATED_AFTER = {"fno": 1_000, "unet": 100}  # steps
LEAST_GAIN = 0.02
CASES = [f"{name}.{kind}" for kind in (OURS, *RIVALS) for name in BENCHMARKS]


def settings_of(name: str, kind: str, steps: int, rate: float | None) -> Settings:
    if kind == OURS:
        return replace(preset("fast", name), points=POINTS)
    base = replace(preset("long", name), model=kind, points=POINTS)
    return replace(base, phases=((0, steps),), warmup=max(10, steps // 30), rate=rate)


def trained(folder: Path, name: str, settings: Settings) -> dict[str, Any]:
    """Train into the folder, or go on there; the error on held-out data, and the time it took."""
    clock = folder.with_suffix(".seconds")
    before = float(clock.read_text()) if clock.exists() else 0.0
    began = time.process_time()

    def spent() -> float:
        return before + time.process_time() - began

    def report(stage: str, step: int, steps: int, loss: float, rate: float) -> None:
        if step % 100 == 0 or step == steps:
            write_whole(clock, f"{spent():.1f}\n")
            print(
                f"  {folder.name} {step}/{steps} loss {loss:.3e} {spent() / 60:.1f} min", flush=True
            )

    folder.parent.mkdir(parents=True, exist_ok=True)
    resume = (folder / "config.json").exists()
    if not (folder / "model.safetensors").exists():
        train(folder, Problem(benchmark=name), settings, resume=resume, report=report)
        write_whole(clock, f"{spent():.1f}\n")
    model = load_model(folder)
    return {
        "held_out": model.record["measured"]["with_operator"],
        "minutes": float(clock.read_text()) / 60,
        "steps": settings.steps,
        "rate": settings.peak_rate,
        "parameters": model.parameters,
    }


@cache
def tests(name: str) -> ReferenceTrajectories:
    return ReferenceTrajectories(get_benchmark(name), points=POINTS)


def measured(folder: Path, name: str, kind: str, steps: int, rate: float | None) -> dict[str, Any]:
    """One point: a whole training and its error over the test trajectories."""
    point = trained(folder, name, settings_of(name, kind, steps, rate))
    metrics = evaluate(load_model(folder), tests(name), also=())
    return {**point, "rl2": metrics.rl2_mean, "curve": metrics.rl2_curve}


def case(name: str, kind: str, runs: Path, until: float) -> None:
    path = RESULTS / f"{name}.{kind}.json"
    held = json.loads(path.read_text()) if path.exists() else {"rates": [], "points": []}

    def keep() -> None:
        RESULTS.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(held, indent=1) + "\n")

    if kind == OURS:
        if not held["points"]:
            held["points"].append(measured(runs / f"{name}-{kind}", name, kind, 0, None))
            keep()
        return
    rated = RATED_AFTER[kind]
    usual = settings_of(name, kind, rated, None).peak_rate
    for factor in RATES[len(held["rates"]) :]:
        rate = factor * usual
        folder = runs / f"{name}-{kind}-{rated}-{rate:.2g}"
        held["rates"].append(trained(folder, name, settings_of(name, kind, rated, rate)))
        keep()
    best = min(held["rates"], key=lambda one: one["held_out"])["rate"]
    for steps in LENGTHS[len(held["points"]) :]:
        points = held["points"]
        if (len(points) > 1 and gain(*points[-2:]) < LEAST_GAIN) or time.monotonic() > until:
            return
        suffix = f"{steps}-{best:.2g}"
        points.append(measured(runs / f"{name}-{kind}-{suffix}", name, kind, steps, best))
        keep()
        print(name, kind, steps, "steps, rL2", points[-1]["rl2"], flush=True)


def gain(before: dict[str, Any], after: dict[str, Any]) -> float:
    """What a longer training brought, as a part of the error; lost rollouts count as an error of 10."""
    lost = 10.0
    return 1 - (after["rl2"] or lost) / (before["rl2"] or lost)


def finished(kind: str, points: list[dict[str, Any]]) -> str:
    """Why a contender's last training was its last."""
    if kind == OURS:
        return ""
    if points[-1]["steps"] == LENGTHS[-1]:
        return "three times the preset's length"
    if len(points) > 1 and gain(*points[-2:]) < LEAST_GAIN:
        return "converged"
    return "no time left"


def read() -> dict[str, dict[str, list[dict[str, Any]]]]:
    """For each benchmark and contender the points that were measured."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for one in CASES:
        name, kind = one.split(".")
        path = RESULTS / f"{one}.json"
        if path.exists() and (points := json.loads(path.read_text())["points"]):
            found.setdefault(name, {})[kind] = points
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("command", choices=["train"])
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], default=[])
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no training after these")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "rivals")
    given = parser.parse_args()
    keep_compiled()
    until = time.monotonic() + 60 * given.minutes
    for one in given.cases or CASES:
        name, kind = one.split(".")
        case(name, kind, given.runs, until)


if __name__ == "__main__":
    main()

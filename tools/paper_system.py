"""The paper's complete system: learned Gaussians at A = 20 in Φ with its cutoffs and one RK4 step, plus N_θ.

    python tools/paper_system.py train [BENCHMARK.KIND ...]   # into results/paper_system; goes on where it was stopped

`make results` makes the table. Each kind is a training by the command that users have,

    splatop train BENCHMARK --set numerics=paper --set encoder=KIND --set renderer=fourier --set working_grid=true \\
        --set hold_geometry=true --set keep_if_better=false --set horizon=HORIZON --set growing=true \\
        --set windows_alike=true --set batch=BATCH --set phases=64:STEPS

with `unet` for learned geometry and solved amplitudes, and `lattice` for as many Gaussians that nobody trained. Different
from the paper: Gaussians are rendered in Fourier space on the working grid, their geometry is held for the stages of a
step, the residual is scaled, windows count alike however far states have decayed (else the operator of burgers2d is
trained for the first frames, and adds more to late ones than Φ leaves there), rollouts of the loss grow from one step,
and training is far shorter. Tests are the paper's: its grid, 200 steps.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from measure import trained
from splatop.benchmarks import get_benchmark
from splatop.cli.compiled import keep_compiled
from splatop.data.atomic import write_whole
from splatop.evaluate import ReferenceTrajectories, evaluate
from splatop.evaluate.ablations import Ablation, ablate
from splatop.training import Problem, Settings, preset

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results" / "paper_system"
BENCHMARKS = ("burgers2d", "advection_allen_cahn2d")
KINDS = ("lattice", "unet")
CASES = [f"{name}.{kind}" for kind in KINDS for name in BENCHMARKS]
# Steps of N_θ, their batch and the length of their longest rollouts: a step with learned Gaussians costs as much as ten with a lattice.
OPERATOR = {"lattice": (3_000, 20, 8), "unet": (600, 4, 4)}
ENCODER_STEPS = {"burgers2d": 600, "advection_allen_cahn2d": 1_000}
TRAJECTORIES = 6


def settings_of(name: str, kind: str) -> Settings:
    steps, batch, horizon = OPERATOR[kind]
    return replace(
        preset("fast", name),
        numerics="paper",
        encoder=kind,
        renderer="fourier",
        working_grid=True,
        hold_geometry=True,
        keep_if_better=False,
        horizon=horizon,
        growing=True,
        windows_alike=True,
        encoder_steps=ENCODER_STEPS[name],
        phases=((64, steps),),
        warmup=steps // 20,
        batch=batch,
    )


def case(name: str, kind: str, runs: Path) -> dict[str, Any]:
    """Train, and measure the whole system beside itself without each of its parts."""
    settings = settings_of(name, kind)
    model = trained(runs / f"{name}-{kind}", Problem(benchmark=name), settings)
    tests = ReferenceTrajectories(get_benchmark(name), trajectories=TRAJECTORIES)
    whole = evaluate(model, tests, also=())
    found = {
        "rl2": whole.rl2_mean,
        "rl2_curve": whole.rl2_curve,
        "spectral_error": whole.spectral_error,
        "minutes": model.record["stage_minutes"],
        "frames_of_encoder": settings.encoder_steps * settings.encoder_batch,
        "steps": settings.steps,
        "batch": settings.batch,
    }
    for part in ("operator", "physics", "filter"):
        left = ablate(model, Ablation(without=part))
        found[f"without_{part}"] = evaluate(left, tests, also=()).rl2_mean
    return found


def read() -> dict[str, dict[str, Any]]:
    """What was measured, by benchmark and kind."""
    return {
        one: json.loads(path.read_text())
        for one in CASES
        if (path := RESULTS / f"{one}.json").exists()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("command", choices=["train"])
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], default=[])
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "paper_system")
    given = parser.parse_args()
    keep_compiled()
    RESULTS.mkdir(parents=True, exist_ok=True)
    for one in given.cases or CASES:
        path = RESULTS / f"{one}.json"
        if path.exists():
            continue
        found = case(*one.split("."), given.runs)
        write_whole(path, json.dumps(found, indent=1, allow_nan=False) + "\n")
        print(one, {k: v for k, v in found.items() if k != "rl2_curve"}, flush=True)


if __name__ == "__main__":
    main()

"""The operator on a domain's harmonics against the FNO on a padded box, trained equally.

    python tools/padding.py measure [CASE ...] [--steps 1500] [--runs DIR]   # into results/walls/padding
    python tools/padding.py tables                                           # docs/walls.md from these

One term of a benchmark is left out of Φ, and the operator has to learn it. Both have the same data, channels, modes,
blocks and steps; a training that was stopped goes on. Padding is as others do it: zeros beyond the far end of each
axis with two ends, an eighth of its points, cut off again behind the network.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import jax

import splatop
from measured import write_between
from splatop.benchmarks import get_benchmark
from splatop.cli.compiled import keep_compiled
from splatop.data.atomic import write_whole
from splatop.operators import FNO
from splatop.operators.baselines import parameter_count
from splatop.operators.harmonic import HarmonicOperator
from splatop.operators.padded import PaddedFNO
from splatop.training import Problem, Settings, preset, train

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results" / "walls" / "padding"
PAGE = ROOT / "docs" / "walls.md"
BEGIN, END = "<!-- padding:begin -->", "<!-- padding:end -->"
# The term that is left out, and the points along an axis.
PROBLEMS = {
    "burgers1d_walls": ("self_advection", 161),
    "allen_cahn2d_insulated": ("reaction", 48),
}
KINDS = ("harmonics", "padding")
CASES = [f"{name}.{kind}" for name in PROBLEMS for kind in KINDS]
HIDDEN, MODES, BLOCKS, SEED = 12, 10, 4, 0
TRAJECTORIES, DATA_STEPS = 16, 40


def settings_of(name: str, steps: int) -> Settings:
    term, points = PROBLEMS[name]
    return replace(
        preset("fast", name),
        drop_terms=(term,),
        points=points,
        trajectories=TRAJECTORIES,
        data_steps=DATA_STEPS,
        phases=((0, steps),),
        warmup=max(2, steps // 30),
        hidden=HIDDEN,
        modes=MODES,
        blocks=BLOCKS,
        keep_if_better=False,
        seed=SEED,
    )


def operator_of(name: str, kind: str) -> HarmonicOperator | PaddedFNO:
    benchmark = get_benchmark(name)
    channels, closed = len(benchmark.fields), benchmark.domain.periodic
    size = {"hidden": HIDDEN, "modes": MODES, "blocks": BLOCKS}
    key = jax.random.split(jax.random.key(SEED))[1]  # as the surrogate's own has it
    if kind == "padding":
        return PaddedFNO(FNO(len(closed), channels, key=key, **size), closed)
    layout = benchmark.grid.layout
    return HarmonicOperator(channels, closed=closed, layout=layout, key=key, **size)


def measure(case: str, steps: int, runs: Path) -> dict:
    """One training and the error of its rollouts of trajectories that it did not see."""
    name, kind = case.split(".")
    folder = runs / f"{case}-{steps}"
    clock = folder.with_suffix(".seconds")
    folder.parent.mkdir(parents=True, exist_ok=True)
    before = float(clock.read_text()) if clock.exists() else 0.0
    began = time.process_time()

    def spent() -> float:
        return before + time.process_time() - began

    def report(stage: str, step: int, total: int, loss: float, rate: float) -> None:
        if step % 100 == 0 or step == total:
            write_whole(clock, f"{spent():.1f}\n")
            print(f"  {case} {step}/{total} loss {loss:.3e}", flush=True)

    resume = (folder / "config.json").exists()
    settings = settings_of(name, steps)
    operator = operator_of(name, kind)
    if not (folder / "model.safetensors").exists():
        train(
            folder,
            Problem(benchmark=name),
            settings,
            operator=operator,
            resume=resume,
            report=report,
        )
        write_whole(clock, f"{spent():.1f}\n")
    model = splatop.load(folder)
    network = getattr(model.stepper, "network", None)
    measured = model.record["measured"]
    return {
        "steps": steps,
        "left_out": settings.drop_terms[0],
        "points": settings.points,
        "physics": measured["physics"],
        "with_operator": measured["with_operator"],
        "parameters": 0 if network is None else parameter_count(network),
        "cpu_minutes": float(clock.read_text()) / 60,
    }


def tables() -> None:
    rows = [
        "| benchmark, without its term | operator | parameters | error of held-out rollouts | "
        "without the operator | CPU minutes |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    steps = set()
    for case in CASES:
        name, kind = case.split(".")
        what = f"{name}, {PROBLEMS[name][0]}"
        path = RESULTS / f"{case}.json"
        if not path.exists():
            rows.append(f"| {what} | {kind} | not measured | | | |")
            continue
        found = json.loads(path.read_text())
        steps.add(found["steps"])
        rows.append(
            f"| {what} | {kind} | {found['parameters']:,} | {found['with_operator']:.2g} | "
            f"{found['physics']:.2g} | {found['cpu_minutes']:.1f} |"
        )
    intro = (
        "By `python tools/padding.py measure`: a term is left out of Φ, and an operator on the harmonics of the domain, or "
        "an FNO on the box padded with zeros (an eighth of the points of each axis with ends), has to learn it."
    )
    if steps:
        intro += f" Steps of training: {', '.join(f'{n:,}' for n in sorted(steps))}."
    write_between(PAGE, BEGIN, END, f"{intro}\n\n" + "\n".join(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("measure", "tables"))
    parser.add_argument("cases", nargs="*", choices=[*CASES, []])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "padding")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    if given.command == "tables":
        tables()
        return
    keep_compiled()
    given.out.mkdir(parents=True, exist_ok=True)
    for case in given.cases or CASES:
        found = measure(case, given.steps, given.runs)
        (given.out / f"{case}.json").write_text(json.dumps(found, indent=1) + "\n")
        print(case, found, flush=True)


if __name__ == "__main__":
    main()

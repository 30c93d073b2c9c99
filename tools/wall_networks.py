"""An FNO alone on the benchmarks between walls, beside the models that ship; the table in the docs.

python tools/wall_networks.py measure [NAME ...]   # into results/walls/fno/NAME.json, minutes each
python tools/wall_networks.py tables               # docs/walls.md from these

The shipped models know the whole equation and learn nothing, so "as long" is a number of CPU minutes that is longer than
most of them took to make. The network is that of `splatop train NAME --model fno`, on cosines between insulated walls and on a
padded box between others, with the trajectories that their numerics were chosen from.
"""

import json
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from measured import measure_or_tables, write_between
from splatop.benchmarks import BENCHMARKS, get_benchmark
from splatop.evaluate import ReferenceTrajectories, evaluate, load_metrics
from splatop.model import SHIPPED, Model
from splatop.operators.baselines import parameter_count
from splatop.training import Problem, Settings, preset, train

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results" / "walls" / "fno"
PAGE = ROOT / "docs" / "walls.md"
BEGIN, END = "<!-- networks:begin -->", "<!-- networks:end -->"
MINUTES = 1.5  # of CPU time in the steps of a training
TIMED = 6  # steps of a first training that says how long one takes; the first one compiles
TRAJECTORIES, TESTS = 8, 3  # as the shipped models have them
NAMES = [
    name for name, benchmark in BENCHMARKS.items() if benchmark.boundary and not benchmark.shape
]


def settings_of(name: str, steps: int) -> Settings:
    return replace(
        preset("fast", name),
        model="fno",
        trajectories=TRAJECTORIES,
        phases=((0, steps),),
        warmup=max(2, steps // 30),
    )


def trained(name: str, steps: int) -> tuple[Model, float]:
    """The network, and CPU seconds of one step."""
    clock: dict[int, float] = {}

    def report(stage: str, step: int, total: int, loss: float, rate: float) -> None:
        clock[step] = time.process_time()
        if step % 100 == 0:
            print(f"  {name} {step}/{total} loss {loss:.3e}", flush=True)

    with tempfile.TemporaryDirectory() as scratch:
        model = train(
            Path(scratch) / "run", Problem(benchmark=name), settings_of(name, steps), report=report
        )
    first, last = min(clock) + 1, max(clock)
    return model, (clock[last] - clock[first]) / max(1, last - first)


def measure(name: str, minutes: float = MINUTES) -> dict:
    _, seconds = trained(name, TIMED)
    steps = max(TIMED, round(60 * minutes / seconds))
    model, seconds = trained(name, steps)
    tests = ReferenceTrajectories(get_benchmark(name), trajectories=TESTS)
    found = evaluate(model, tests, name=name, also=())
    return {
        "rl2": found.rl2_mean,
        "diverged": found.diverged,
        "rollout_steps": found.steps,
        "trajectories": TESTS,
        "parameters": parameter_count(model.stepper),
        "optimiser_steps": steps,
        "cpu_minutes": steps * seconds / 60,
    }


def tables() -> None:
    rows = [
        "| benchmark | rL2 of the shipped model, 200 steps | FNO alone | parameters | optimiser steps |",
        "| --- | --- | --- | --- | --- |",
    ]
    minutes, made = [], []
    for name in NAMES:
        path, shipped = RESULTS / f"{name}.json", SHIPPED / "bounded" / f"{name}.metrics.json"
        own = "not measured"
        if shipped.exists():
            metrics = load_metrics(shipped)
            own = f"{metrics.rl2_mean:.1e}"
            made.append(metrics.model["train_minutes"])
        if not path.exists():
            rows.append(f"| {name} | {own} | not measured | | |")
            continue
        found = json.loads(path.read_text())
        minutes.append(found["cpu_minutes"])
        error = "diverges" if found["rl2"] is None else f"{found['rl2']:.2g}"
        rows.append(
            f"| {name} | {own} | {error} | {found['parameters']:,} | {found['optimiser_steps']:,} |"
        )
    intro = (
        "By `python tools/wall_networks.py measure`: the shipped models, which know the equation, beside an FNO alone "
        "(`splatop train NAME --model fno`) on the same data"
    )
    if minutes and made:
        intro += (
            f". Its steps take {min(minutes):.1f} to {max(minutes):.1f} CPU minutes; the models were made in "
            f"{min(made):.1f} to {max(made):.1f} minutes"
        )
    write_between(PAGE, BEGIN, END, f"{intro}.\n\n" + "\n".join(rows))


if __name__ == "__main__":
    measure_or_tables(__doc__, {name: partial(measure, name) for name in NAMES}, tables, RESULTS)

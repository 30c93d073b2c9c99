"""One unknown term: the error against how many trajectories there are to learn from.

    python tools/data_efficiency.py            # results/unknown/efficiency.json; what is there is kept
    python tools/data_efficiency.py --tables   # the figure and the table in docs/unknown.md

2D advection with Allen-Cahn's reaction at 64², 51 frames a trajectory. splatop knows the advection and the diffusion
and has `?` for the rest: found as a formula, and learned as a term. FNO and U-Net know no equation and train for
longer than splatop takes in any row, by `splatop train --model KIND` with the default preset. Errors are the mean
relative L2 errors of rollouts of four test trajectories over their 50 steps.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from measured import write_between
from missing import POINTS, STEPS, Case, case, formula, learned
from splatop.benchmarks import get_benchmark
from splatop.data import generate
from splatop.data.atomic import complete_or_absent, write_whole
from splatop.equation import format_equation
from splatop.reproduce.style import RC
from splatop.training import Problem, preset, train

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results" / "unknown" / "efficiency.json"
DOCS = ROOT / "docs" / "unknown.md"
PICTURE = ROOT / "docs" / "images" / "efficiency.png"
BEGIN, END = "<!-- efficiency:begin -->", "<!-- efficiency:end -->"
NAME, TERM = "advection_allen_cahn2d", "reaction"
COUNTS = (1, 2, 4, 8, 16, 64)
LOST = 10.0
# Optimiser steps: of each about as many seconds, which stand in the table.
NETWORK_STEPS = {"fno": 720, "unet": 40}
TITLES = {
    "known": "known terms alone",
    "formula": "splatop, formula",
    "learned": "splatop, learned term",
    "fno": "FNO alone",
    "unet": "U-Net alone",
}


def with_trajectories(count: int) -> Case:
    training = generate(
        get_benchmark(NAME), split="train", trajectories=count, steps=STEPS, points=POINTS
    )
    return replace(case(f"{NAME}.{TERM}"), training=training)


def by_formula(one: Case) -> dict[str, Any]:
    row = formula(one)
    return {
        "formula": row["formula_error"],
        "formula_seconds": row["formula_cpu_seconds"],
        "known": row["known_error"],
        "exact": row["exact"],
        "trusted": row["trusted"],
    }


def by_term(one: Case) -> dict[str, Any]:
    row = learned(one)
    return {"learned": row["learned_error"], "learned_seconds": row["learned_cpu_seconds"]}


def by_network(one: Case, kind: str) -> dict[str, Any]:
    assert one.whole is not None
    told = format_equation(one.whole, dims=one.training.grid.dims)
    problem = Problem(data=one.training, equation_text=told, coefficients=one.coefficients)
    settings = replace(preset("fast"), model=kind, phases=((0, NETWORK_STEPS[kind]),))
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        model = train(Path(folder) / kind, problem, settings)
    seconds = time.process_time() - began
    errors = []
    for i in range(one.test.trajectories):
        true = one.test.window(i, 0, STEPS + 1)
        made = np.asarray(model.rollout(true[0], steps=STEPS))
        off = np.linalg.norm((made - true[1:]).reshape(STEPS, -1), axis=1)
        size = np.linalg.norm(true[1:].reshape(STEPS, -1), axis=1)
        errors.append(np.minimum(np.nan_to_num(off / size, nan=LOST), LOST))
    return {
        kind: float(np.mean(errors)),
        f"{kind}_seconds": round(seconds, 1),
        f"{kind}_steps": NETWORK_STEPS[kind],
    }


CONTENDERS: dict[str, Callable[[Case], dict[str, Any]]] = {
    "formula": by_formula,
    "learned": by_term,
    **{kind: lambda one, kind=kind: by_network(one, kind) for kind in NETWORK_STEPS},
}


def read() -> dict[str, dict[str, Any]]:
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def table() -> str:
    lines = [
        "| trajectories | "
        + " | ".join(TITLES.values())
        + " | right terms, trusted | processor, s |",
        "|" + "---|" * (len(TITLES) + 3),
    ]
    for count, row in read().items():
        found = f"{'yes' if row['exact'] else 'no'}, {'yes' if row['trusted'] else 'no'}"
        seconds = ", ".join(
            f"{row[f'{k}_seconds']:.0f}" for k in CONTENDERS if f"{k}_seconds" in row
        )
        errors = " | ".join(f"{row[k]:.2g}" if k in row else "" for k in TITLES)
        lines.append(f"| {count} | {errors} | {found} | {seconds} |")
    return "\n".join(lines)


def draw() -> None:
    with matplotlib.rc_context(RC), complete_or_absent(PICTURE) as partial:
        figure = Figure(figsize=(5.4, 3.2), layout="constrained")
        axis = figure.add_subplot()
        for kind, title in TITLES.items():
            known = [(int(count), row[kind]) for count, row in read().items() if kind in row]
            axis.plot(*zip(*known, strict=True), "o-", label=title)
        axis.set(
            xscale="log", yscale="log", xlabel="training trajectories", ylabel="mean rL2, 50 steps"
        )
        axis.set_xticks(COUNTS, [str(count) for count in COUNTS])
        axis.minorticks_off()
        axis.legend()
        figure.savefig(partial, format="png", dpi=110, metadata={"Software": None})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tables", action="store_true")
    if parser.parse_args().tables:
        draw()
        picture = f"![Error against training trajectories](images/{PICTURE.name})"
        write_between(DOCS, BEGIN, END, f"{table()}\n\n{picture}")
        return
    for count in COUNTS:
        for name, measure in CONTENDERS.items():
            row = read().get(str(count), {})
            if name not in row or row.get(f"{name}_steps") != NETWORK_STEPS.get(name):
                row |= measure(with_trajectories(count))
                held = dict(
                    sorted({**read(), str(count): row}.items(), key=lambda one: int(one[0]))
                )
                write_whole(RESULTS, json.dumps(held, indent=1) + "\n")
                print(count, row, flush=True)


if __name__ == "__main__":
    main()

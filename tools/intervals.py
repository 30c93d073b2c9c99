"""One model for several intervals: burgers2d from frames 0.5, 1 and 2 apart at once, beside a model
for each alone, and at intervals that it has not seen; the table. Once the whole equation is known,
and once all but its diffusion, which an operator learns.

    python tools/intervals.py measure [physics] [operator]
    python tools/intervals.py tables
"""

import argparse
import json
from pathlib import Path

import jax
import numpy as np

import splatop
from measured import write_between
from splatop.solver import initial_condition, solve

ROOT = Path(__file__).parent.parent
RESULT, PAGE = ROOT / "results" / "intervals.json", ROOT / "docs" / "time.md"
BEGIN, END = "<!-- intervals: written by tools/intervals.py -->", "<!-- end of intervals -->"
STEP, FRAMES = 0.25, 96
STUDIES: dict[str, dict] = {
    "physics": {"points": 48, "trajectories": 1, "settings": {"model": "physics"}},
    "operator": {
        "points": 48,
        "trajectories": 6,
        "settings": {"phases": ((0, 400),), "batch": 8},
    },
}
SEEN, UNSEEN = (0.5, 1.0, 2.0), (0.75, 1.5, 3.0, 4.0)


def trajectory(benchmark: splatop.Benchmark, seed: int) -> np.ndarray:
    grid = benchmark.grid
    u0 = initial_condition("fourier", grid, channels=2, key=jax.random.key(seed))
    values, sides = benchmark.coefficients, benchmark.lengths
    return solve(
        benchmark.equation, values, u0, lengths=sides, dt=STEP, steps=FRAMES, tolerance=1e-7
    )[0].astype(np.float32)


def measured(kind: str) -> dict:
    study = STUDIES[kind]
    benchmark = splatop.get_benchmark("burgers2d").with_points(study["points"])
    given = np.stack([trajectory(benchmark, 1 + n) for n in range(study["trajectories"])])
    test = trajectory(benchmark, 0)
    dropped = () if kind == "physics" else ("diffusion",)
    equation = benchmark.equation.without(*dropped)
    common = {
        "coefficients": {n: benchmark.coefficients[n] for n in equation.coefficient_names},
        "lengths": benchmark.lengths,
        "settings": study["settings"],
        "periodic": True,
    }

    def error(model, interval: float) -> float:
        """Of the worst frame, relative."""
        stride = round(interval / STEP)
        at = np.arange(stride, FRAMES + 1, stride)
        found = np.asarray(model.rollout(test[0], times=STEP * at, t0=0.0))
        apart = np.linalg.norm((found - test[at]).reshape(len(at), -1), axis=1)
        return float(np.max(apart / np.linalg.norm(test[at].reshape(len(at), -1), axis=1)))

    places = np.cumsum([0, *([2, 4, 8] * 6)])
    together = splatop.fit(given[:, places], equation, times=STEP * places, **common)
    rows = []
    for interval in (*SEEN, *UNSEEN):
        row = {"interval": interval, "together": error(together, interval)}
        if interval in SEEN:
            stride = round(interval / STEP)
            alone = splatop.fit(given[:, ::stride], equation, dt=interval, **common)
            row["alone"] = error(alone, interval)
            if kind == "operator":
                known = splatop.fit(
                    given[:1, ::stride],
                    equation,
                    dt=interval,
                    **{**common, "settings": {"model": "physics"}},
                )
                row["known"] = error(known, interval)
        rows.append(row)
        print(kind, row, flush=True)
    return {
        "points": study["points"],
        "trajectories": study["trajectories"],
        "until": STEP * FRAMES,
        "parameters": together.model.parameters,
        "rows": rows,
    }


def tables() -> None:
    found = json.loads(RESULT.read_text())
    physics, learned = (found[kind] for kind in STUDIES)
    lines = [
        f"By `python tools/intervals.py measure`: burgers2d, one model of frames 0.5, 1 and 2 apart, and "
        "one for each alone; largest relative error of a held-out trajectory, to t = "
        f"{physics['until']:g}. Intervals without a model of their own are unseen ones. Once the "
        f"whole equation is known ({physics['points']}²), once all but its diffusion, which an "
        f"operator of {learned['parameters']:,} parameters learns from "
        f"{learned['trajectories']} trajectories at {learned['points']}².",
        "",
        "| interval | physics: one model for all | alone | operator: one model for all | alone | "
        "its physics alone |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row, other in zip(physics["rows"], learned["rows"], strict=True):
        cells = [row["together"], row.get("alone"), other["together"], other.get("alone")]
        told = ["" if cell is None else f"{cell:.2g}" for cell in (*cells, other.get("known"))]
        lines.append(f"| {row['interval']:g} | {' | '.join(told)} |")
    write_between(PAGE, BEGIN, END, "\n".join(lines))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("measure", "tables"))
    parser.add_argument("kinds", nargs="*", help=f"of {', '.join(STUDIES)}; else all")
    given = parser.parse_args()
    if given.command == "measure":
        held = json.loads(RESULT.read_text()) if RESULT.exists() else {}
        for kind in given.kinds or STUDIES:
            held[kind] = measured(kind)
            RESULT.write_text(json.dumps(held, indent=1) + "\n")
    tables()

"""One model for several intervals: burgers2d from frames 0.5, 1 and 2 apart at once, beside a model
for each alone, and at intervals that it has not seen; the table.

    python tools/intervals.py measure
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
POINTS, STEP, FRAMES = 48, 0.25, 96
SEEN, UNSEEN = (0.5, 1.0, 2.0), (0.75, 1.5, 3.0, 4.0)


def trajectory(benchmark: splatop.Benchmark, seed: int) -> np.ndarray:
    grid = benchmark.grid
    u0 = initial_condition("fourier", grid, channels=2, key=jax.random.key(seed))
    values, sides = benchmark.coefficients, benchmark.lengths
    return solve(
        benchmark.equation, values, u0, lengths=sides, dt=STEP, steps=FRAMES, tolerance=1e-7
    )[0].astype(np.float32)


def measure() -> dict:
    benchmark = splatop.get_benchmark("burgers2d").with_points(POINTS)
    given, test = trajectory(benchmark, 0), trajectory(benchmark, 1)
    common = {
        "coefficients": benchmark.coefficients,
        "lengths": benchmark.lengths,
        "settings": {"model": "physics"},
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
    together = splatop.fit(given[places], benchmark.equation, times=STEP * places, **common)
    rows = []
    for interval in (*SEEN, *UNSEEN):
        row = {"interval": interval, "together": error(together, interval)}
        if interval in SEEN:
            stride = round(interval / STEP)
            alone = splatop.fit(given[::stride], benchmark.equation, dt=interval, **common)
            row["alone"] = error(alone, interval)
        rows.append(row)
    return {"points": POINTS, "until": STEP * FRAMES, "rows": rows}


def tables() -> None:
    found = json.loads(RESULT.read_text())
    lines = [
        f"By `python tools/intervals.py measure`: burgers2d at {found['points']}², the whole equation "
        "known. One model of frames 0.5, 1 and 2 apart, and one for each alone; largest relative error "
        f"of a held-out trajectory, to t = {found['until']:g}. Intervals without a model of "
        "their own are unseen ones.",
        "",
        "| interval | one model for all | alone |",
        "| --- | --- | --- |",
    ]
    for row in found["rows"]:
        alone = f"{row['alone']:.1e}" if "alone" in row else ""
        lines.append(f"| {row['interval']:g} | {row['together']:.1e} | {alone} |")
    write_between(PAGE, BEGIN, END, "\n".join(lines))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("measure", "tables"))
    if parser.parse_args().command == "measure":
        RESULT.write_text(json.dumps(measure(), indent=1) + "\n")
        print(RESULT.read_text())
    else:
        tables()

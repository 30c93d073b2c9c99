"""The benchmarks between walls: physics alone and identification, measured; the table in the docs.

python tools/walls.py measure [NAME ...]   # into results/walls/NAME.json, a few minutes each
python tools/walls.py noisy NAME ...       # identification from noisy frames alone, anew in these
python tools/walls.py tables               # docs/walls.md from these
"""

import json
import sys
import time
from functools import partial
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import splatop
from measured import measure_or_tables, relative, write_between
from splatop.benchmarks import BENCHMARKS, Benchmark
from splatop.data import ArrayTrajectories, generate
from splatop.data.frames import spread_frames
from splatop.identify import identify_trajectories
from splatop.numerics import build_physics
from splatop.tune import choose_numerics

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results" / "walls"
PAGE = ROOT / "docs" / "walls.md"
BEGIN, END = "<!-- walls:begin -->", "<!-- walls:end -->"
TRAJECTORIES, STEPS, FRAMES = 3, 200, 101
NAMES = [
    name for name, benchmark in BENCHMARKS.items() if benchmark.boundary and not benchmark.shape
]


def measure(name: str) -> dict:
    benchmark = BENCHMARKS[name]
    data = generate(benchmark, split="test", trajectories=TRAJECTORIES, steps=STEPS)
    tuned = choose_numerics(
        benchmark.equation,
        benchmark.coefficients,
        spread_frames(data, 13),
        lengths=benchmark.lengths,
        dt=benchmark.dt,
        domain=benchmark.domain,
        layout=benchmark.layout,
    )
    physics = build_physics(
        benchmark.equation,
        tuned.numerics,
        domain=benchmark.domain,
        layout=benchmark.layout,
        dt=benchmark.dt,
    )

    @eqx.filter_jit
    def roll(u):
        return splatop.rollout(physics, u, dict(benchmark.coefficients), steps=STEPS)

    errors = []
    for index in range(TRAJECTORIES):
        truth = data.window(index, 0, STEPS + 1)
        states = np.asarray(roll(jnp.asarray(truth[0])))
        errors.append([relative(a, b) for a, b in zip(states, truth[1:], strict=True)])
    first = jnp.asarray(data.window(0, 0, 1)[0])
    jax.block_until_ready(roll(first))
    began = time.perf_counter()
    jax.block_until_ready(roll(first))
    return {
        "trajectories": TRAJECTORIES,
        "steps": STEPS,
        "points": list(benchmark.grid.points),
        "anchors": list(tuned.numerics.anchors),
        "integrator": tuned.numerics.integrator,
        "substeps": tuned.numerics.substeps,
        "rl2": float(np.mean(errors)),
        "rl2_last": float(np.mean([e[-1] for e in errors])),
        "ms_per_step": 1e3 * (time.perf_counter() - began) / STEPS,
        "reasons": list(tuned.reasons),
        "identified": {f"{noise:g}": _identified(benchmark, data, noise) for noise in (0.0, 0.01)},
    }


def _identified(benchmark: Benchmark, data: ArrayTrajectories, noise: float) -> dict:
    """Relative errors of all coefficients from one trajectory, in per cent, and whether trusted."""
    array = data.array[:1, :FRAMES]
    if noise:
        size = array.std(axis=(0, 1, *range(3, array.ndim)), keepdims=True)
        array = array + noise * size * np.random.default_rng(0).standard_normal(array.shape)
    noisy = ArrayTrajectories(array, data.grid, dt=data.dt, fields=data.fields)
    noisy.domain = data.domain
    (found,) = identify_trajectories(benchmark.equation, None, noisy, frames="all")
    return {
        "percent": {k: 100 * e for k, e in found.relative_errors(benchmark.coefficients).items()},
        "covered": found.covers(benchmark.coefficients),
        "trusted": found.trusted,
        "method": found.method,
    }


def tables() -> None:
    rows = [
        "| benchmark | points | Gaussians | steps a frame | rL2 of Φ alone, 200 frames | "
        "coefficients, clean | with 1 % noise |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in NAMES:
        path = RESULTS / f"{name}.json"
        if not path.exists():
            rows.append(f"| {name} | not measured | | | | | |")
            continue
        found = json.loads(path.read_text())
        sizes = " x ".join(map(str, found["points"])), " x ".join(map(str, found["anchors"]))
        steps = f"{found['substeps']} of {found['integrator'].upper()}"
        cells = [_cell(found["identified"][noise]) for noise in ("0", "0.01")]
        rows.append(
            f"| {name} | {' | '.join((*sizes, steps, format(found['rl2'], '.1e'), *cells))} |"
        )
    intro = (
        f"By `python tools/walls.py measure` on {TRAJECTORIES} test trajectories: the mean rL2 of the "
        "physics alone against the reference over 200 frames; the largest relative error of any "
        f"coefficient identified from {FRAMES} frames of one trajectory, and whether the 95 % "
        "intervals hold the truth."
    )
    bench = json.loads((RESULTS / "bench.json").read_text())["walls_right_side_over_periodic"]
    after = (
        f"An evaluation of the right-hand side takes {bench:.2f} of the time of a periodic one with "
        "as many anchors (`splatop bench --only walls`)."
    )
    write_between(PAGE, BEGIN, END, f"{intro}\n\n" + "\n".join(rows) + f"\n\n{after}")


def _cell(found: dict) -> str:
    worst = max(found["percent"].values(), default=0.0)
    covered = "covered" if all(found["covered"].values()) else "not covered"
    method = found.get("method", "weak")  # which all were before there were others
    return f"{worst:.2g} % ({method}), {covered}" + ("" if found["trusted"] else ", not trusted")


def noisy_anew(name: str) -> None:
    """Identification from noisy frames again, in the file of what was measured."""
    benchmark, path = BENCHMARKS[name], RESULTS / f"{name}.json"
    found = json.loads(path.read_text())
    data = generate(benchmark, split="test", trajectories=TRAJECTORIES, steps=STEPS)
    found["identified"]["0.01"] = _identified(benchmark, data, 0.01)
    path.write_text(json.dumps(found, indent=1) + "\n")
    print(name, found["identified"]["0.01"], flush=True)


if __name__ == "__main__" and sys.argv[1:2] == ["noisy"]:
    for chosen in sys.argv[2:]:
        noisy_anew(chosen)
elif __name__ == "__main__":
    measure_or_tables(__doc__, {name: partial(measure, name) for name in NAMES}, tables, RESULTS)

"""Stiff equations: what exponential steps save beside RK4, and Φ beside exponax; the table.

    python tools/stiff.py measure [kuramoto_sivashinsky gray_scott ...]
    python tools/stiff.py tables

`measure` writes `splatop bench --only stiff` row by row into results/stiff/NAME.json, those named or
those that are missing; `tables` the block in docs/time.md. Times are ratios of one run each, by the
wall clock or, on a machine that others use as well, in CPU time with `--cpu`.
"""

import argparse
import json
import time
from pathlib import Path

from measured import write_between
from splatop.bench.stiff import stiff_row
from splatop.threads import one_blas_thread

ROOT = Path(__file__).parent.parent
RESULTS, PAGE = ROOT / "results" / "stiff", ROOT / "docs" / "time.md"
BEGIN, END = "<!-- stiff: written by tools/stiff.py -->", "<!-- end of stiff -->"
PROBLEMS = {
    "kuramoto_sivashinsky": "Kuramoto-Sivashinsky, 128 points",
    "gray_scott": "Gray-Scott, 160²",
    "kdv": "KdV, 128 points, four frames a step",
    "reaction_diffusion2d": "FitzHugh-Nagumo between insulated walls, 160²",
}
# Of times and evaluations saved, what was aimed at.
WANTED = {
    "kuramoto_sivashinsky": (6, 3),
    "gray_scott": (4, 2),
    "kdv": (3, 1.5),
    "reaction_diffusion2d": (10, 5),
}


def tables() -> None:
    found = {name: _of(name) for name in PROBLEMS}
    lines = [
        "By `python tools/stiff.py measure` (`splatop bench --only stiff`), one step from a developed "
        "state with the band that `tune` chose: RK4 in the fewest substeps that keep it stable, "
        "ETDRK4 in the fewest that are no less accurate, both in one compiled loop, timed in turns. "
        "Aims in brackets." + _clocks(found),
        "",
        "| | substeps, RK4 | ETDRK4 | evaluations saved | time saved | error, RK4 | ETDRK4 |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, title in PROBLEMS.items():
        own, (fewer, quicker) = found[name], WANTED[name]
        if not own:
            lines.append(f"| {title} | not measured | | | | | |")
            continue
        lines.append(
            f"| {title} | {own['rk4_substeps']:.0f} | {own['etdrk4_substeps']:.0f} | "
            f"{own['evaluations_saved']:.3g} ({fewer:g}) | {own['time_saved']:.3g} ({quicker:g}) | "
            f"{own['rk4_error']:.1e} | {own['etdrk4_error']:.1e} |"
        )
    lines += [
        "",
        "Φ as `tune` chose it, beside exponax's ETDRK4 on the grid and with the steps that cost it least at "
        "its error, "
        "from a quarter of the data's points to half as many again: the time of a step of Φ over its time, "
        "each carried in its own form (aim 1, never over 1.5). Between walls exponax gets the periodic "
        "box that reflection makes, of four times the size.",
        "",
        "| | Φ over exponax | substeps of Φ | error of Φ | exponax | its error |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, title in PROBLEMS.items():
        own = found[name]
        ratio = own.get("over_exponax", "not measured")
        if isinstance(ratio, str):
            lines.append(f"| {title} | {ratio} | | | | |")
            continue
        lines.append(
            f"| {title} | {ratio:.2g} | {own['chosen']} | {own['chosen_error']:.1e} | "
            f"{own['exponax_points']:.0f} points along an axis, {own['exponax_substeps']:.0f} "
            f"step{'s' if own['exponax_substeps'] > 1 else ''} | {own['exponax_error']:.1e} |"
        )
    write_between(PAGE, BEGIN, END, "\n".join(lines))


def _clocks(found: dict[str, dict]) -> str:
    """Which rows were timed on a busy machine."""
    busy = [PROBLEMS[name] for name, own in found.items() if own.get("cpu_time")]
    return f" Times of {' and '.join(busy)} are CPU times." if busy else ""


def _of(name: str) -> dict:
    path, key = RESULTS / f"{name}.json", f"stiff_{name}_"
    found = json.loads(path.read_text()) if path.exists() else {}
    return {k.removeprefix(key): v for k, v in found.items()}


@one_blas_thread()
def measure(names: list[str], *, cpu: bool = False) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in names or [n for n in PROBLEMS if not (RESULTS / f"{n}.json").exists()]:
        clock = time.process_time if cpu else time.perf_counter
        found = stiff_row(name, clock=clock) | {"cpu_time": cpu}
        (RESULTS / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")
        print(json.dumps(found, indent=1), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("measure", "tables"))
    parser.add_argument("names", nargs="*", choices=[*PROBLEMS, []])
    parser.add_argument("--cpu", action="store_true")
    given = parser.parse_args()
    measure(given.names, cpu=given.cpu) if given.command == "measure" else tables()

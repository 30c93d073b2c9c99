"""Stiff equations: what exponential steps save beside RK4, and Φ beside exponax; the table.

python tools/stiff.py measure   # `splatop bench --only stiff` into results/stiff.json
python tools/stiff.py tables    # docs/time.md from it
"""

import argparse
import json
from pathlib import Path

from measured import write_between
from splatop.bench import measure

ROOT = Path(__file__).parent.parent
RESULT, PAGE = ROOT / "results" / "stiff.json", ROOT / "docs" / "time.md"
BEGIN, END = "<!-- stiff: written by tools/stiff.py -->", "<!-- end of stiff -->"
PROBLEMS = {
    "kuramoto_sivashinsky": "Kuramoto-Sivashinsky, 128 points",
    "gray_scott": "Gray-Scott, 64²",
    "kdv": "KdV, 128 points, four frames a step",
    "reaction_diffusion2d": "FitzHugh-Nagumo between insulated walls, 128²",
}
# Of times and evaluations saved, what was aimed at.
WANTED = {
    "kuramoto_sivashinsky": (6, 3),
    "gray_scott": (4, 2),
    "kdv": (3, 1.5),
    "reaction_diffusion2d": (10, 5),
}


def tables() -> None:
    found = json.loads(RESULT.read_text())
    lines = [
        "By `python tools/stiff.py measure` (`splatop bench --only stiff`), one step from a developed "
        "state with the numerics that `tune` chose: RK4 in the fewest substeps that keep it stable, "
        "ETDRK4 in the fewest that are no less accurate, both in one compiled loop, timed in turns. "
        "Aims in brackets.",
        "",
        "| | substeps, RK4 | ETDRK4 | evaluations saved | time saved | error, RK4 | ETDRK4 |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, title in PROBLEMS.items():
        own = _of(found, name)
        fewer, quicker = WANTED[name]
        lines.append(
            f"| {title} | {own['rk4_substeps']:.0f} | {own['etdrk4_substeps']:.0f} | "
            f"{own['evaluations_saved']:.2g} ({fewer:g}) | {own['time_saved']:.2g} ({quicker:g}) | "
            f"{own['rk4_error']:.1e} | {own['etdrk4_error']:.1e} |"
        )
    lines += [
        "",
        "Beside exponax's ETDRK4 on the grid and with the steps that cost it least at this error, "
        "from a quarter of the data's points to all of them: the time of Φ as `tune` chose it, and of "
        "the same band in harmonics, over its time.",
        "",
        "| | Φ | in harmonics | error | exponax | its error |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, title in PROBLEMS.items():
        own = _of(found, name)
        ratio = own["over_exponax"]
        if isinstance(ratio, str):
            lines.append(f"| {title} | {ratio} | | | | |")
            continue
        waves = own.get("harmonics_over_exponax")
        lines.append(
            f"| {title} | {ratio:.2g} | {'less accurate' if waves is None else f'{waves:.2g}'} | "
            f"{own['etdrk4_error']:.1e} | {own['exponax_points']:.0f} points, "
            f"{own['exponax_substeps']:.0f} steps | {own['exponax_error']:.1e} |"
        )
    write_between(PAGE, BEGIN, END, "\n".join(lines))


def _of(found: dict, name: str) -> dict:
    key = f"stiff_{name}_"
    return {k.removeprefix(key): v for k, v in found.items() if k.startswith(key)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("measure", "tables"))
    if parser.parse_args().command == "measure":
        RESULT.write_text(json.dumps(measure(["stiff"]), indent=1) + "\n")
    else:
        tables()

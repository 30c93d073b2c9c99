"""Write the measured block of docs/which_tool.md from what other commands measured beside peers.

python tools/which_tool.py
"""

import json
from pathlib import Path

from measured import table, write_between
from splatop.evaluate.written import plain

ROOT = Path(__file__).resolve().parent.parent
RESULTS, PAGE = ROOT / "results", ROOT / "docs" / "which_tool.md"
BEGIN, END = "<!-- peers: written by tools/which_tool.py -->", "<!-- end of peers -->"


def rows() -> list[tuple[str, str, str, str]]:
    """The job, the peer and its figure, ours, and the command that measured both in one run."""
    return [*_identification(), *_network(), *_stiff()]


def _identification() -> list[tuple[str, str, str, str]]:
    found = []
    for name in ("burgers", "kdv", "ks", "nls"):
        path = RESULTS / "identification" / f"{name}.json"
        if not path.exists():
            continue
        held = json.loads(path.read_text())
        ours = _mean_error([row["errors"] for row in held["rows"] if row["noise"] == 0.01])
        peer = _mean_error([row["errors"] for row in held["peers"] if row["noise"] == 0.01])
        if ours and peer:
            found.append(
                (
                    f"coefficients of {name} at 1 % noise, known terms: largest mean error",
                    f"PySINDy, weak form: {percent(peer)}",
                    percent(ours),
                    "`tools/identification.py study`",
                )
            )
    return found


def _mean_error(draws: list[dict]) -> float | None:
    if not draws:
        return None
    return max(sum(draw[name] for draw in draws) / len(draws) for name in draws[0])


def percent(value: float) -> str:
    return f"{plain(100 * value, 2)} %"


def _network() -> list[tuple[str, str, str, str]]:
    held = json.loads((RESULTS / "bench.json").read_text())
    times = held["fno_step_speedup"]
    return [
        (
            "one step of the same FNO at 160², time",
            "pdequinox: 1",
            plain(1 / times, 2),
            "`splatop bench`",
        )
    ]


def _stiff() -> list[tuple[str, str, str, str]]:
    found = []
    for name, title in {
        "kuramoto_sivashinsky": "KS",
        "gray_scott": "Gray-Scott",
        "kdv": "KdV",
    }.items():
        path = RESULTS / "stiff" / f"{name}.json"
        held = json.loads(path.read_text()) if path.exists() else {}
        ratio = held.get(f"stiff_{name}_over_exponax")
        if isinstance(ratio, float):
            job = f"{title}, one frame at the same error, time"
            peer = "exponax, its best grid and step: 1"
            found.append((job, peer, plain(ratio, 2), "`tools/stiff.py measure`"))
    return found


def main() -> None:
    header = ["job", "the peer", "splatop", "measured by"]
    write_between(PAGE, BEGIN, END, table(header, rows()))


if __name__ == "__main__":
    main()

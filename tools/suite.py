"""How long the tests take and how much of `src` they run, as CONTRIBUTING.md says it.

`python tools/suite.py quick` times what `make test` runs, `lines` counts the lines that it runs, and
`slow [FILE...]` runs the slow tests, a file at a time; all write into `results/tests`. `tables` writes
CONTRIBUTING.md from that.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measured import write_between

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results" / "tests"
PAGE = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- tests begin -->", "<!-- tests end -->"
# Rooms of which the quick tests leave most lines.
ROOMS = 6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("quick", "lines", "slow", "tables"))
    parser.add_argument("files", nargs="*", help="files of slow tests; else all of them")
    parser.add_argument("--workers", type=int, default=2, help="of the quick tests")
    given = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    if given.command == "tables":
        write_between(PAGE, BEGIN, END, said())
    elif given.command in ("quick", "lines"):
        sys.exit((quick if given.command == "quick" else lines)(given.workers))
    else:
        files = [Path(name).name for name in given.files] or slow_files()
        sys.exit(max([slow(name) for name in files], default=0))


def slow_files() -> list[str]:
    """The files of tests that have slow ones."""
    paths = sorted((ROOT / "tests").glob("test_*.py"))
    return [path.name for path in paths if "mark.slow" in path.read_text()]


def pytest(*arguments: str) -> tuple[int, dict]:
    """The exit code of a run of tests, and what it counted and took."""
    before, started = os.times(), time.perf_counter()
    command = [sys.executable, "-m", "pytest", *arguments]
    run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    last = ""
    for last in run.stdout:
        print(last, end="", flush=True)
    code, after = run.wait(), os.times()
    counted = {what: int(n) for n, what in re.findall(r"(\d+) (passed|failed|skipped|error)", last)}
    cpu = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    return code, {**counted, "seconds": time.perf_counter() - started, "cpu_seconds": cpu}


def quick(workers: int) -> int:
    """The quick tests as `make test` runs them, and the largest process among them."""
    code, found = pytest("-n", str(workers), "--dist", "loadfile")
    peak = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    if code == 0:
        write("quick", {**found, "workers": workers, "peak_bytes": peak})
    return code


def lines(workers: int) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        kept = Path(scratch) / "coverage.json"
        code, found = pytest(
            "-n", str(workers), "--dist", "loadfile", "--cov=splatop", f"--cov-report=json:{kept}",
            "--cov-report=html:build/coverage",
        )  # fmt: skip
        covered = json.loads(kept.read_text())
    rooms: dict[str, int] = {}
    for name, one in covered["files"].items():
        room = name.partition("splatop/")[2].split("/")[0]
        rooms[room] = rooms.get(room, 0) + one["summary"]["missing_lines"]
    found |= {
        "lines": covered["totals"]["num_statements"],
        "covered": covered["totals"]["covered_lines"],
        "missing": dict(sorted(rooms.items(), key=lambda item: -item[1])),
    }
    if code == 0:
        write("lines", found)
    return code


def slow(name: str) -> int:
    code, found = pytest("-m", "slow", "-p", "no:cacheprovider", "--durations=5", f"tests/{name}")
    if found.keys() & {"passed", "failed"}:
        write("slow", {**read("slow"), name: found})
    return code


def read(name: str) -> dict:
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def write(name: str, found: dict) -> None:
    (RESULTS / f"{name}.json").write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


def said() -> str:
    """What CONTRIBUTING.md says of the measurements."""
    parts = []
    if found := read("quick"):
        parts.append(
            f"The quick tests, {found['passed']:,} of them, take {found['seconds'] / 60:.1f} minutes "
            f"with {found['workers']} at a time, {found['cpu_seconds'] / 60:.1f} of CPU time; the "
            f"largest process holds {found['peak_bytes'] / 1e9:.1f} GB."
        )
    if found := read("lines"):
        most = sorted(found["missing"].items(), key=lambda item: -item[1])[:ROOMS]
        parts.append(
            f"The quick tests run {100 * found['covered'] / found['lines']:.1f} % of {found['lines']:,} lines; "
            f"what they leave is most in {', '.join(f'`{room}` ({n})' for room, n in most)}. Counting "
            f"lines, they take {found['cpu_seconds'] / 60:.0f} minutes of CPU time."
        )
    if held := read("slow"):
        total = {key: sum(one.get(key, 0) for one in held.values()) for key in ("passed", "failed")}
        longest = sorted(held, key=lambda name: -held[name]["cpu_seconds"])[:ROOMS]
        minutes = sum(one["cpu_seconds"] for one in held.values()) / 60
        parts.append(
            f"The slow tests of {len(held)} files were run, each by itself: {total['passed']} passed, "
            f"{total['failed']} failed, {minutes:.0f} minutes of CPU time, most in "
            + ", ".join(f"`{name}` ({held[name]['cpu_seconds']:.0f} s)" for name in longest)
            + "."
        )
    return "\n\n".join(parts)


if __name__ == "__main__":
    main()

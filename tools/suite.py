"""How long the tests take and how much of `src` they run, as CONTRIBUTING.md says it.

`python tools/suite.py quick` runs the quick tests and counts lines, `slow [FILE...]` the slow ones, a
file of tests at a time; both write into `results/tests`. `tables` writes CONTRIBUTING.md from that.
"""

import argparse
import json
import os
import re
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
    parser.add_argument("command", choices=("quick", "slow", "tables"))
    parser.add_argument("files", nargs="*", help="files of slow tests; else all of them")
    parser.add_argument("--workers", type=int, default=2, help="of the quick tests")
    given = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    if given.command == "tables":
        write_between(PAGE, BEGIN, END, said())
    elif given.command == "quick":
        sys.exit(quick(given.workers))
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
    with tempfile.TemporaryDirectory() as scratch:
        lines = Path(scratch) / "coverage.json"
        code, found = pytest(
            "-n", str(workers), "--dist", "loadfile", "--cov=splatop", f"--cov-report=json:{lines}",
            "--cov-report=html:build/coverage",
        )  # fmt: skip
        covered = json.loads(lines.read_text())
    rooms: dict[str, int] = {}
    for name, one in covered["files"].items():
        room = name.partition("splatop/")[2].split("/")[0]
        rooms[room] = rooms.get(room, 0) + one["summary"]["missing_lines"]
    found |= {
        "workers": workers,
        "lines": covered["totals"]["num_statements"],
        "covered": covered["totals"]["covered_lines"],
        "missing": dict(sorted(rooms.items(), key=lambda item: -item[1])),
    }
    if code == 0:
        (RESULTS / "quick.json").write_text(json.dumps(found, indent=1) + "\n")
    return code


def slow(name: str) -> int:
    code, found = pytest("-m", "slow", "-p", "no:cacheprovider", "--durations=5", f"tests/{name}")
    path = RESULTS / "slow.json"
    held = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**held, name: found}, indent=1, sort_keys=True) + "\n")
    return code


def said() -> str:
    """What CONTRIBUTING.md says of the measurements."""
    parts = []
    if (RESULTS / "quick.json").exists():
        found = json.loads((RESULTS / "quick.json").read_text())
        most = list(found["missing"].items())[:ROOMS]
        parts.append(
            f"The quick tests, {found['passed']:,} of them, take {found['cpu_seconds'] / 60:.0f} "
            f"minutes of CPU time while lines are counted. They run "
            f"{100 * found['covered'] / found['lines']:.1f} % of {found['lines']:,} lines; what they "
            f"leave is most in {', '.join(f'`{room}` ({lines})' for room, lines in most)}."
        )
    if (RESULTS / "slow.json").exists():
        held = json.loads((RESULTS / "slow.json").read_text())
        total = {key: sum(one.get(key, 0) for one in held.values()) for key in ("passed", "failed")}
        longest = sorted(held, key=lambda name: -held[name]["cpu_seconds"])[:ROOMS]
        minutes = sum(one["cpu_seconds"] for one in held.values()) / 60
        parts.append(
            f"The slow tests of {len(held)} files were run: {total['passed']} passed, "
            f"{total['failed']} failed, {minutes:.0f} minutes of CPU time, most in "
            + ", ".join(f"`{name}` ({held[name]['cpu_seconds']:.0f} s)" for name in longest)
            + "."
        )
    return "\n\n".join(parts)


if __name__ == "__main__":
    main()

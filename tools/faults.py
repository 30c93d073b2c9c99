"""Kill writers and trainings at random moments, fill the disk, damage checkpoints, and count.

    python tools/faults.py [--trials 8] [--seed 0]

Writes results/faults.json and the table in docs/reliability.md; exits with 1 if anything was lost.
"""

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from measured import table, write_between

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from command import run, same_run, start, train_arguments  # noqa: E402

RESULTS, PAGE = ROOT / "results" / "faults.json", ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- faults:begin -->", "<!-- faults:end -->"
DATA = ["generate", "advection2d", "--points", "64", "--trajectories", "40", "--steps", "40"]
TRAINING = {"phases": "0:400", "checkpoint_every": 20}


def killed_after(process: subprocess.Popen, ready: Callable[[], bool], delay: float) -> bool:
    """SIGKILL some time after `ready`; whether the process was still there."""
    while process.poll() is None and not ready():
        time.sleep(0.002)
    time.sleep(delay)
    alive = process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return alive


def whole(path: Path) -> bool:
    from splatop import open_trajectories

    with open_trajectories(path) as data:
        data.window(data.trajectories - 1, 0, data.frames)
        return data.shape[:2] == (40, 41)


def writer_killed(rng: random.Random, folder: Path) -> str:
    """A data set half written: nothing under its name; the next write leaves nothing else."""
    out = folder / "data.h5"
    process = start(*DATA, "--out", str(out))
    alive = killed_after(process, lambda: any(folder.glob(".data.h5.*")), rng.uniform(0, 0.15))
    if alive and out.exists():
        return "a file that was not complete"
    code, _, err = run(*DATA, "--out", str(out))
    if code:
        return err.strip()
    left = sorted(p.name for p in folder.iterdir())
    if left != ["data.h5"]:
        return f"left behind: {left}"
    return "" if whole(out) else "not what was asked for"


def training_killed(rng: random.Random, folder: Path) -> str:
    """A training killed three times: resumed, it ends with the bits of one that was not."""
    straight = folder.parent / "straight"
    if not straight.exists():
        code, _, err = run(*train_arguments(straight, **TRAINING))
        if code:
            return err
    out = folder / "run"
    for _ in range(3):
        before = set(out.glob("checkpoints/operator/*"))
        resume = ["--resume"] if (out / "config.json").exists() else []
        process = start(*train_arguments(out, *resume, **TRAINING))
        killed_after(
            process,
            lambda before=before: set(out.glob("checkpoints/operator/*")) != before,
            rng.uniform(0, 0.1),
        )
        if (out / "model.safetensors").exists():
            break
    code, _, err = run(*train_arguments(out, "--resume", **TRAINING))
    if code:
        return err
    try:
        same_run(out, straight)
    except AssertionError as error:
        return f"other bits: {error}"
    return ""


def disk_full(rng: random.Random, folder: Path) -> str:
    """The disk ends at a random byte: a message, and no file."""
    out, limit = folder / "data.h5", rng.randrange(1, 25_000_000)
    code = (
        "import resource\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from splatop.cli import main; main()"
    )
    command = [sys.executable, "-c", code, *DATA, "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    if "Traceback" in done.stderr or done.returncode != 1 or "full" not in done.stderr:
        return f"exit {done.returncode}: {done.stderr.strip()[-200:]}"
    left = sorted(p.name for p in folder.iterdir())
    return f"left behind: {left}" if left else ""


def checkpoint_damaged(rng: random.Random, folder: Path) -> str:
    """A byte of the newest checkpoint flipped: noticed, and the one before it used."""
    import numpy as np

    from splatop.training.checkpoints import Checkpoints

    states = [{"a": np.full((40, 30), k, np.float32)} for k in (1, 2)]
    checkpoints = Checkpoints(folder / "c")
    for step, state in enumerate(states, start=1):
        checkpoints.save(step, state)
    path = checkpoints.path(2)
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)
    found = checkpoints.restore(states[0])
    if found is None:
        return "no state came back"
    step, state = found
    return "" if np.array_equal(state["a"], states[step - 1]["a"]) else "a wrong state came back"


FAULTS = {
    "writer": ("SIGKILL while a data set is written", writer_killed, 1),
    "training": ("SIGKILL, three times, while training; then resumed", training_killed, 1),
    "disk": ("disk full at a random byte", disk_full, 1),
    "checkpoint": ("a bit of the newest checkpoint flipped", checkpoint_damaged, 10),
}


def drill(trials: int, seed: int, only: list[str] | None = None) -> dict:
    found: dict = {"seed": seed, "faults": {}}
    for name in only or FAULTS:
        what, fault, times = FAULTS[name]
        failures = []
        with tempfile.TemporaryDirectory() as scratch:
            for trial in range(trials * times):
                folder = Path(scratch) / f"trial-{trial}"
                folder.mkdir()
                problem = fault(random.Random(f"{name} {seed} {trial}"), folder)
                if problem:
                    failures.append({"trial": trial, "what": problem})
                shutil.rmtree(folder, ignore_errors=True)
        found["faults"][name] = {"what": what, "trials": trials * times, "failures": failures}
        print(f"{name:12} {trials * times:4} trials  {len(failures)} failures", flush=True)
        for failure in failures[:3]:
            print(f"    trial {failure['trial']}: {failure['what']}", flush=True)
    return found


def write_page(found: dict) -> None:
    rows = [
        [held["what"], str(held["trials"]), str(len(held["failures"]))]
        for held in found["faults"].values()
    ]
    written = table(["fault", "trials", "anything lost or left behind"], rows)
    said = f"Written by `tools/faults.py` (seed {found['seed']})."
    write_between(PAGE, BEGIN, END, f"{said}\n\n{written}")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--trials", type=int, default=8)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", action="append", choices=list(FAULTS))
    given = options.parse_args()
    found = drill(given.trials, given.seed, given.only)
    if not given.only:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
        write_page(found)
    return int(any(held["failures"] for held in found["faults"].values()))


if __name__ == "__main__":
    sys.exit(main())

"""The command line in processes of its own, for tests that kill it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import safetensors

# Seconds of work: 16² points, a network of 157 parameters.
SMALL = {
    "points": 16,
    "trajectories": 4,
    "data_steps": 8,
    "hidden": 2,
    "modes": 3,
    "blocks": 1,
    "batch": 4,
    "horizon": 2,
    "phases": "0:200",
    "warmup": 1,
    "substeps": 2,
    "checkpoint_every": 20,
}


def train_arguments(out: Path, *options: str, **settings) -> list[str]:
    pairs = [f"--set={key}={value}" for key, value in {**SMALL, **settings}.items()]
    return ["train", "advection2d", "--preset", "smoke", "--out", str(out), *options, *pairs]


def start(*arguments: str, **variables: str) -> subprocess.Popen:
    """A running `splatop`, its output readable as text."""
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "COLUMNS": "200",
        **variables,
    }
    return subprocess.Popen(
        [sys.executable, "-c", "from splatop.cli import main; main()", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*arguments: str, **variables: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a finished `splatop`."""
    process = start(*arguments, **variables)
    out, err = process.communicate(timeout=600)
    return process.returncode, out, err


def stop_when(process: subprocess.Popen, ready, number: int = signal.SIGKILL) -> tuple[int, str]:
    """Send a signal as soon as `ready()`; exit code and output."""
    deadline = time.monotonic() + 600
    while process.poll() is None and not ready():
        assert time.monotonic() < deadline, "the command did not get there"
        time.sleep(0.005)
    if process.poll() is None:
        process.send_signal(number)
    out, err = process.communicate(timeout=600)
    return process.returncode, out + err


def tensors(run_folder: Path) -> dict[str, np.ndarray]:
    with safetensors.safe_open(run_folder / "model.safetensors", framework="numpy") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def same_run(one: Path, other: Path) -> None:
    """Assert that two runs ended with the same bits."""
    assert (one / "history.csv").read_bytes() == (other / "history.csv").read_bytes()
    left, right = tensors(one), tensors(other)
    assert left.keys() == right.keys()
    for name in left:
        assert left[name].tobytes() == right[name].tobytes(), name

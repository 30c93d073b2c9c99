"""How soon splatop starts: CPU time of processes of its own, which a busy machine does not change.

Each figure is a ratio to a process that does the same without splatop, or without its cache.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from threadpoolctl import threadpool_limits

from .timing import Measured, measured_times

# One process each, named as in the results.
_STARTS = {
    "jax": "import jax",
    "jax_equinox": "import jax, equinox",
    "import": "import splatop",
    "version": "from splatop.cli import main; main()",
    "help": "from splatop.cli import main; main()",
    "train_help": "from splatop.cli import main; main()",
}
_ARGUMENTS = {"version": ["--version"], "help": ["--help"], "train_help": ["train", "--help"]}

# CPU seconds of the process with its imports done, and at its first step of a training or its
# first frame of a rollout.
_FIRST_STEP = """
import sys, tempfile, time
from splatop.cli.compiled import keep_compiled
keep_compiled()
from splatop.training import Problem, preset, train
print(time.process_time())
class First(Exception): pass
def report(*_): raise First
with tempfile.TemporaryDirectory() as out:
    try:
        train(out, Problem(benchmark="burgers2d"), preset("smoke", "burgers2d"), report=report)
    except First:
        print(time.process_time())
"""
_FIRST_FRAMES = """
import pathlib, sys, tempfile, time
from splatop.cli.compiled import keep_compiled
keep_compiled()
from splatop.evaluate.forecast import forecast
from splatop.model import load_model
print(time.process_time())
with tempfile.TemporaryDirectory() as out:
    forecast(load_model("advection_diffusion2d"), sys.argv[1], pathlib.Path(out) / "o.h5", steps=1)
    print(time.process_time())
"""


def startup(repeats: int = 5) -> Measured:
    """What a start costs over `import jax`, and how much sooner the second one has its first step.

    Ratios of CPU time, medians over processes started in turns. The second start of a training or
    a rollout finds what the first one compiled; "with_imports" counts from the process's start.
    """
    seconds: dict[str, list[float]] = {name: [] for name in _STARTS}
    for _ in range(repeats):
        for name, code in _STARTS.items():
            seconds[name].append(_cpu_seconds(code, _ARGUMENTS.get(name, [])))
    median = {name: float(np.median(values)) for name, values in seconds.items()}
    found = {
        "startup_version_over_import_jax": median["version"] / median["jax"],
        "startup_help_over_import_jax": median["help"] / median["jax"],
        "startup_train_help_over_import_jax": median["train_help"] / median["jax"],
        "startup_import_over_jax_equinox": median["import"] / median["jax_equinox"],
    }
    with tempfile.TemporaryDirectory() as scratch:
        data = _start_frames(Path(scratch))
        for name, code in (("train", _FIRST_STEP), ("rollout", _FIRST_FRAMES)):
            cache = str(Path(scratch) / name)
            starts = [tuple(map(float, _run(code, [data], cache).split())) for _ in range(4)]
            (begun, done), *later = starts
            again = float(np.median([end - begin for begin, end in later]))
            found[f"startup_{name}_second_start_speedup"] = (done - begun) / again
            again = float(np.median([end for _, end in later]))
            found[f"startup_{name}_second_start_with_imports_speedup"] = done / again
    return found


def threads(repeats: int = 9, rows: int = 400) -> Measured:
    """Factorising with the threads that OpenBLAS takes by itself over the one that we give it.

    Another process keeps a core busy meanwhile, as those of a shared machine do.
    """
    a = np.random.default_rng(0).normal(size=(rows, 2 * rows)).astype(np.float32)
    gram = jnp.asarray(a @ a.T)

    def solve(g):
        return jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(g), g[:, 0])

    seconds: dict[int, list[float]] = {cores: [] for cores in (os.cpu_count() or 1, 1)}
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            for _ in range(repeats):
                for count, found in seconds.items():
                    with threadpool_limits(count, "blas"):
                        found.append(measured_times({"": (solve, (gram,))}, 1)[""])
        finally:
            busy.kill()
    free, one = (float(np.median(found)) for found in seconds.values())
    return {"threads_free_over_one": free / one}


def _start_frames(folder: Path) -> str:
    """A file to roll out from."""
    from ..benchmarks import get_benchmark
    from ..data import generate_to_file

    path = folder / "start.h5"
    generate_to_file(
        get_benchmark("advection_diffusion2d").with_points(64), path, trajectories=1, steps=1
    )
    return str(path)


def _cpu_seconds(code: str, arguments: list[str]) -> float:
    """CPU time of a Python process, its start included."""
    before = os.times()
    _run(code, arguments, "off")
    after = os.times()
    used = after.children_user - before.children_user
    return used + after.children_system - before.children_system


def _run(code: str, arguments: list[str], cache: str) -> str:
    """What a Python process prints, its compiled programs kept in `cache`."""
    given = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**given, "SPLATOP_CACHE": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout

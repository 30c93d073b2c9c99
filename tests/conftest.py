"""Settings shared by all tests: double precision on request, compiled code kept between runs."""

import contextlib
import ctypes
import gc
import os
from importlib.metadata import version
from pathlib import Path

# Most of the time of these tests is compilation: no optimising of code that runs once, and what was
# compiled is kept beside pytest's own cache, also for the commands that tests start.
# The older emitters take two thirds of the time for one operation. XLA ends a process that gives it
# a flag it does not know, so that this one is for a version that has it.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0"
    + " --xla_cpu_use_fusion_emitters=false" * version("jaxlib").startswith("0.10."),
)
# Where in our code an operation stands is not written into what is compiled.
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parent.parent / ".pytest_cache" / "jax")
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "0")
# Workers share the cores: threads of BLAS would wait for each other (`splatop.threads`).
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax
import pytest
from hypothesis import settings

from splatop.cli import main

# The same examples every time, and no deadline: the first one also compiles.
settings.register_profile("splatop", deadline=None, derandomize=True, max_examples=12)
settings.load_profile("splatop")


@pytest.fixture(scope="module", autouse=True)
def forget_compiled():
    """Let go of what a file compiled: kept to the end, a worker would hold several gigabytes."""
    yield
    jax.clear_caches()
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # glibc keeps freed memory until asked
        ctypes.CDLL("libc.so.6").malloc_trim(0)


@pytest.fixture
def x64():
    """Double precision for the duration of one test."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def splatop(monkeypatch, capsys, tmp_path):
    """Run the command in a folder of its own: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["splatop", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return ended.value.code, captured.out, captured.err

    return run

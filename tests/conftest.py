"""Settings shared by all tests: double precision on request, compiled code kept between runs."""

import contextlib
import ctypes
import gc
import os
import sys
from importlib.metadata import version
from pathlib import Path

# Most of the time of these tests is compilation: no optimising of code that runs once, and what was
# compiled is kept beside pytest's own cache, also for the commands that tests start. XLA's older
# emitters, in one piece, take a third of the new ones' time. By themselves they crash and hang:
# sums that go to YNN, since 0.10.2, overrun arrays of seven axes (jax-ml/jax 40412; seen here with
# these emitters), and transforms that run on the pool of threads can wait for it. So sums do not go
# to YNN, and there is no pool.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false "
    "--xla_cpu_parallel_codegen_split_count=1 --xla_cpu_multi_thread_eigen=false"
    + " --xla_cpu_experimental_ynn_fusion_type=-reduce"
    * (tuple(map(int, version("jaxlib").split(".")[:3])) >= (0, 10, 2)),
)
# Where in our code an operation stands is not written into what is compiled.
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parent.parent / ".pytest_cache" / "jax")
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "0")
# The commands that tests start need not compile our modules each time anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Workers share the cores: threads of BLAS would wait for each other (`splatop.threads`).
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax
import pytest
from hypothesis import settings

from splatop.cli import main

# The same examples every time, and no deadline: the first one also compiles.
settings.register_profile("splatop", deadline=None, derandomize=True, max_examples=12)
settings.load_profile("splatop")

sys.dont_write_bytecode = False
# Tracing makes objects by the hundred thousand that stay: look for cycles less often.
gc.set_threshold(20_000, 20, 50)


MOST_RESIDENT = 1.2e9  # bytes of a worker after a file; one file adds a gigabyte at most


def pytest_collection_finish():
    """What is imported stays: no search for cycles goes through it again."""
    gc.collect()
    gc.freeze()


def resident() -> float:
    """Bytes of memory that this process holds; infinite where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return float("inf")
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(scope="module", autouse=True)
def forget_compiled():
    """Let go of what files compiled: kept to the end, a worker would hold several gigabytes."""
    yield
    if resident() < MOST_RESIDENT:
        return
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

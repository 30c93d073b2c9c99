"""Settings shared by all tests: double precision on request, compiled code kept between runs."""

import os
from pathlib import Path

# Most of the time of these tests is compilation: no optimising of code that runs once.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import jax
import pytest
from hypothesis import settings

# The same examples every time, and no deadline: the first one also compiles.
settings.register_profile("splatop", deadline=None, derandomize=True, max_examples=12)
settings.load_profile("splatop")

# What was compiled is kept beside pytest's own cache.
_CACHE = Path(__file__).parent.parent / ".pytest_cache" / "jax"
jax.config.update("jax_compilation_cache_dir", str(_CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)


@pytest.fixture
def x64():
    """Double precision for the duration of one test."""
    with jax.enable_x64(True):
        yield

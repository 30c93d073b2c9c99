"""Compiled programs kept in the user's cache folder: the second start of a command is quick.

SPLATOP_CACHE=off keeps nothing, SPLATOP_CACHE=/some/folder keeps it there.
"""

import contextlib
import functools
import hashlib
import os
import platform
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..cache import cache_folder

# A training takes about 2 MB.
MOST_BYTES = 64 * 2**20
# Programs that compile faster are not kept: JAX looks at every file when it adds one.
LEAST_SECONDS = 0.01


def keeps_compiled(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command start from what its last run compiled."""

    @functools.wraps(command)
    def with_cache(**given: Any) -> None:
        keep_compiled()
        command(**given)

    return with_cache


def keep_compiled() -> Path | None:
    """Keep what JAX compiles from now on; the folder, or none where that is not wanted or possible.

    Whoever has chosen a folder for JAX (JAX_COMPILATION_CACHE_DIR) has chosen.
    """
    import jax

    folder = _folder()
    chosen = getattr(jax.config, "jax_compilation_cache_dir", None)
    if folder is None or chosen is not None:
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _mend(folder)
    except OSError:
        return None
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return None
    # A full disk or a file of another user's: JAX compiles again, which is all there is to say.
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache")
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_compilation_cache_max_size", MOST_BYTES)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", LEAST_SECONDS)
    return folder


def _folder() -> Path | None:
    root = cache_folder()
    if root is None:
        return None
    return (root if os.environ.get("SPLATOP_CACHE") else root / "compiled") / _machine()


def _machine() -> str:
    """A name for this kind of processor: a home folder may be shared with machines of others."""
    features = ""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("flags", "Features", "model name")):
                features += line
            elif not line.strip():
                break  # the first core speaks for all
    name = f"{platform.machine()} {platform.processor()} {features}"
    return hashlib.sha256(name.encode()).hexdigest()[:12]


def _mend(folder: Path) -> None:
    """Remove entries without their time of use, which a killed process leaves: JAX needs both."""
    for entry in folder.glob("*-cache"):
        if not entry.with_name(entry.name.removesuffix("-cache") + "-atime").exists():
            entry.unlink(missing_ok=True)

"""The user's cache folder. SPLATOP_CACHE=off keeps nothing, SPLATOP_CACHE=/some/folder keeps it
there."""

import os
from pathlib import Path


def cache_folder() -> Path | None:
    """The folder, which need not exist; None where nothing is to be kept."""
    chosen = os.environ.get("SPLATOP_CACHE", "")
    if chosen.lower() in ("off", "0", "no", "none", "false"):
        return None
    if chosen:
        return Path(chosen).expanduser().absolute()
    from platformdirs import user_cache_path

    return user_cache_path("splatop", appauthor=False)

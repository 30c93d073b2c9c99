"""The run folder: one writer, one configuration, files that appear complete."""

import contextlib
import fcntl
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..data.atomic import complete_or_absent
from ..errors import SplatopError

CONFIG = "config.json"
MODEL = "model.safetensors"
HISTORY = "history.csv"
METRICS = "metrics.json"
REPORT = "report.html"


@contextlib.contextmanager
def writing_run(folder: Path) -> Iterator[Path]:
    """The folder, made if needed, locked against a second writer while the block runs."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("a")
    except OSError as error:
        raise SplatopError(
            f"expected a folder that can be written, got '{folder}' "
            f"({error.strerror}): choose another --out"
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise SplatopError(
                f"another process is writing to '{folder}': wait for it, or choose another --out"
            ) from error
        try:
            yield folder
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)
            if [p.name for p in folder.iterdir()] == [".lock"]:  # nothing was begun
                (folder / ".lock").unlink()
                folder.rmdir()


def write_json(path: Path, value: Any) -> None:
    with complete_or_absent(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, json.JSONDecodeError) as error:
        raise SplatopError(f"expected JSON in '{path}', got something else: {error}") from error


def claim(folder: Path, identity: dict[str, Any], *, resume: bool) -> dict[str, Any] | None:
    """The configuration of an interrupted run that is to be continued, or None for a fresh one.

    `identity` is what was asked for; a folder made for anything else is refused.
    """
    config = folder / CONFIG
    if not config.exists():
        stray = [p.name for p in folder.iterdir() if p.name != ".lock"]
        if stray:
            raise SplatopError(
                f"expected an empty folder or a run of splatop, got '{folder}' with "
                f"{', '.join(sorted(stray)[:4])}: choose another --out"
            )
        return None
    held = read_json(config)
    if not isinstance(held, dict) or "settings" not in held:
        raise SplatopError(f"expected the configuration of a run in '{config}', got something else")
    different = _differences(held, json.loads(json.dumps(identity)))
    if different:
        raise SplatopError(
            f"'{folder}' holds a run with other settings ({'; '.join(different[:4])}): "
            "choose another --out, or repeat its settings with --resume"
        )
    if not resume:
        raise SplatopError(
            f"'{folder}' holds a run with these settings already: continue it with --resume, "
            "or choose another --out"
        )
    return held


def _differences(held: dict[str, Any], asked: dict[str, Any]) -> list[str]:
    found = []
    for part in asked:
        before, after = held.get(part), asked[part]
        if isinstance(before, dict) and isinstance(after, dict):
            found += [
                f"{key} was {before.get(key)!r}, now {after.get(key)!r}"
                for key in sorted(set(before) | set(after))
                if before.get(key) != after.get(key)
            ]
        elif before != after:
            found.append(f"{part} was {before!r}, now {after!r}")
    return found



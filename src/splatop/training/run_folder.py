"""The run folder: one writer, one configuration, files that appear complete."""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..data.atomic import write_whole
from ..errors import SplatopError

CONFIG = "config.json"
MODEL = "model.safetensors"
HISTORY = "history.csv"
_LOCK = ".lock"
# What a run writes before its configuration: data sets that do not fit memory, files half written.
_BEFORE_CONFIG = (".splatop-train-*", "..splatop-train-*", f".{CONFIG}.*.partial")


@contextlib.contextmanager
def writing_run(folder: Path) -> Iterator[Path]:
    """The folder, made if needed, locked against a second writer while the block runs.

    If the block ends before there is a configuration, nothing that it made is left.
    """
    made = _missing(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = _locked(folder)
    except OSError as error:
        _remove_empty(made)
        raise SplatopError(
            f"expected a folder that can be written, got '{folder}' "
            f"({error.strerror}): choose another --out"
        ) from error
    try:
        yield folder
    finally:
        if not (folder / CONFIG).exists():
            _remove_leftovers(folder)
            (folder / _LOCK).unlink(missing_ok=True)
            _remove_empty(made)
        os.close(lock)


def _locked(folder: Path) -> int:
    """The descriptor of the folder's lock file, held by this process alone."""
    path = folder / _LOCK
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(lock)
            raise SplatopError(
                f"another process is writing to '{folder}': wait for it, or choose another --out"
            ) from error
        with contextlib.suppress(FileNotFoundError):
            if os.stat(path).st_ino == os.fstat(lock).st_ino:
                return lock
        os.close(lock)  # its owner removed the file between our opening and locking it


def _missing(folder: Path) -> list[Path]:
    """The folders that making this one would make, the deepest first."""
    chain = [folder, *folder.parents]
    return [path for path in chain if not path.exists()]


def _remove_empty(folders: list[Path]) -> None:
    for path in folders:
        with contextlib.suppress(OSError):
            path.rmdir()


def _remove_leftovers(folder: Path) -> None:
    for pattern in _BEFORE_CONFIG:
        for path in folder.glob(pattern):
            path.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    write_whole(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def read_json(path: Path, remedy: str = "") -> Any:
    """What a file holds, or that it is no JSON."""
    try:
        return json.loads(path.read_text())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise SplatopError(
            f"expected JSON in '{path}', got something else ({error}){remedy}"
        ) from error


def claim(folder: Path, identity: dict[str, Any], *, resume: bool) -> dict[str, Any] | None:
    """The configuration of an interrupted run that is to be continued, or None for a fresh one.

    `identity` is what was asked for; a folder made for anything else is refused.
    """
    config = folder / CONFIG
    if not config.exists():
        _remove_leftovers(folder)  # of a run that was killed before it had decided anything
        stray = [p.name for p in folder.iterdir() if p.name != _LOCK]
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


def _as_typed(value: Any) -> str:
    """A setting as `--set` takes it."""
    return "none" if value is None else repr(value)


def _differences(held: dict[str, Any], asked: dict[str, Any]) -> list[str]:
    found = []
    for part in asked:
        before, after = held.get(part), asked[part]
        if isinstance(before, dict) and isinstance(after, dict):
            found += [
                f"{key} was {_as_typed(before.get(key))}, now {_as_typed(after.get(key))}"
                for key in sorted(set(before) | set(after))
                if before.get(key) != after.get(key)
            ]
        elif before != after:
            found.append(f"{part} was {before!r}, now {after!r}")
    return found

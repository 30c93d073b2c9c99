"""Files that appear under their name only when they are complete."""

import contextlib
import errno
import fcntl
import glob
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from ..errors import SplatopError

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextlib.contextmanager
def complete_or_absent(path: str | Path, *, expected_bytes: int = 0) -> Iterator[Path]:
    """A temporary path beside `path` to write to, renamed to it when the block ends well.

    On an error or an interrupt nothing is left, and a file that was there before stays. What a
    process left that was killed while it wrote this file is removed.
    """
    path = Path(path)
    if path.is_dir():
        raise SplatopError(f"expected a file to write, got the folder {path}: add a file name")
    if not path.parent.is_dir():
        raise SplatopError(f"expected an existing folder, got {path.parent}: make it first")
    _remove_abandoned(path)
    free = shutil.disk_usage(path.parent).free
    if expected_bytes > free:
        raise SplatopError(
            f"expected {_gigabytes(expected_bytes)} of free disk for {path}, "
            f"got {_gigabytes(free)}: make room, or write fewer trajectories, steps or points"
        )
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    held = None
    try:
        held = _locked(partial)
        yield partial
        with partial.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(partial, path)
    except OSError as error:
        if error.errno not in _DISK_FULL and "No space left" not in str(error):
            raise
        raise SplatopError(
            f"the disk is full: {path} was not written ({_gigabytes(expected_bytes)} needed); "
            "make room and start again"
        ) from error
    except KeyboardInterrupt:
        partial.unlink(missing_ok=True)  # also between its making and our holding it
        raise
    finally:
        if held is not None:
            partial.unlink(missing_ok=True)
            os.close(held)


def _locked(partial: Path) -> int:
    """The descriptor of a new temporary file. Its lock ends with the process, however it ends."""
    while True:
        held = os.open(partial, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(held)
            raise SplatopError(f"another thread is writing {partial}: wait for it") from error
        except OSError:
            return held  # a file system without locks: nothing is ever taken for abandoned
        with contextlib.suppress(FileNotFoundError):
            if os.stat(partial).st_ino == os.fstat(held).st_ino:
                return held
        os.close(held)  # taken for abandoned between our opening and locking it


def _remove_abandoned(path: Path) -> None:
    """Remove temporary files of this name that no living process holds."""
    for other in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
        writer = other.name.removesuffix(".partial").removeprefix(f".{path.name}.")
        if not writer.isdecimal():
            continue  # of another name that begins alike
        with contextlib.suppress(OSError):
            held = os.open(other, os.O_RDWR)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                other.unlink(missing_ok=True)
            finally:
                os.close(held)


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.2g} GB"

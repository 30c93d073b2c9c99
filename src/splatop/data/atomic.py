"""Files that appear under their name only when they are complete."""

import contextlib
import errno
import fcntl
import glob
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from ..errors import SplatopError, size_text

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextlib.contextmanager
def complete_or_absent(
    path: str | Path, *, expected_bytes: int = 0, remedy: str = "make room there and start again"
) -> Iterator[Path]:
    """A temporary path beside `path` to write to, renamed to it when the block ends well.

    On an error or an interrupt nothing is left, and a file that was there before stays. What a
    process left that was killed while it wrote this file is removed. `remedy` is what a user can
    do about a full disk.
    """
    path = Path(path)
    if path.is_dir():
        raise SplatopError(f"expected a file to write, got the folder {path}: add a file name")
    if not path.parent.is_dir():
        raise SplatopError(f"expected an existing folder, got {path.parent}: make it first")
    _remove_abandoned(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    held = None
    try:
        held = _begun(partial, path)
        check_room(path, expected_bytes, remedy=remedy)
        yield partial
        with partial.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(partial, path)
    except OSError as error:
        if not _is_full(error):
            raise
        size = size_text(expected_bytes)
        if not expected_bytes:
            size = f"more than {size_text(partial.stat().st_size if partial.exists() else 0)}"
        partial.unlink(missing_ok=True)  # what is free is counted without it
        raise SplatopError(
            f"the disk is full ({error.strerror or error}): {path} was not written, it needs "
            f"{size} and {_place(path)} has {size_text(shutil.disk_usage(path.parent).free)} "
            f"free: {remedy}"
        ) from error
    except KeyboardInterrupt:
        partial.unlink(missing_ok=True)  # also between its making and our holding it
        raise
    finally:
        if held is not None:
            partial.unlink(missing_ok=True)
            os.close(held)


def check_room(path: Path, expected_bytes: int, *, remedy: str) -> None:
    """Refuse to write a file that the disk cannot hold."""
    usage = shutil.disk_usage(path.parent)
    if usage.total and expected_bytes > usage.free:  # /proc and its like have no size at all
        raise SplatopError(
            f"expected {size_text(expected_bytes)} of free disk for {path}, got "
            f"{size_text(usage.free)} in {_place(path)}: {remedy}"
        )


def write_whole(path: str | Path, content: bytes | str, **options: str) -> None:
    """Write a file whose content is known; `options` are those of `complete_or_absent`."""
    data = content.encode() if isinstance(content, str) else content
    with complete_or_absent(path, expected_bytes=len(data), **options) as partial:
        partial.write_bytes(data)


def _is_full(error: OSError) -> bool:
    # NumPy says how much it wrote, HDF5 has its own words; both forget the number.
    text = str(error)
    return error.errno in _DISK_FULL or "No space left" in text or "requested and" in text


def _place(path: Path) -> Path:
    return path.parent.absolute()


def _begun(partial: Path, path: Path) -> int:
    """The descriptor of a new temporary file."""
    try:
        return _locked(partial)
    except OSError as error:
        if _is_full(error):
            raise
        raise SplatopError(
            f"expected a folder that can be written, got {_place(path)} for {path} "
            f"({error.strerror or error}): choose another place"
        ) from error


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

"""Files that appear under their name only when they are complete."""

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from ..errors import SplatopError

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextlib.contextmanager
def complete_or_absent(path: str | Path, *, expected_bytes: int = 0) -> Iterator[Path]:
    """A temporary path beside `path` to write to, renamed to it when the block ends well.

    On an error or an interrupt nothing is left, and a file that was there before stays.
    """
    path = Path(path)
    if path.is_dir():
        raise SplatopError(f"expected a file to write, got the folder {path}: add a file name")
    if not path.parent.is_dir():
        raise SplatopError(f"expected an existing folder, got {path.parent}: make it first")
    free = shutil.disk_usage(path.parent).free
    if expected_bytes > free:
        raise SplatopError(
            f"expected {_gigabytes(expected_bytes)} of free disk for {path}, "
            f"got {_gigabytes(free)}: make room, or write fewer trajectories, steps or points"
        )
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
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
    finally:
        partial.unlink(missing_ok=True)


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.2g} GB"

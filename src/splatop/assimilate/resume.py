"""The best unknowns so far in a small file, for a run that is interrupted."""

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..data.atomic import write_whole
from ..errors import SplatopError


def fingerprint(arrays: Sequence[np.ndarray], text: str) -> str:
    """A short text that is another one for any other problem."""
    digest = hashlib.sha256(text.encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def keep(path: Path | None, mark: str, number: int, x: np.ndarray) -> None:
    """Write down the unknowns and the number of the window; nowhere without a path."""
    if path is None:
        return
    held = io.BytesIO()
    np.savez(held, x=x, number=number, mark=np.array(mark))
    write_whole(path, held.getvalue())


def resumed(path: Path | None, mark: str, size: int) -> tuple[int, np.ndarray] | None:
    """Where an interrupted run of the same problem stopped; None if there was none."""
    if path is None or not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as held:
            if str(held["mark"]) != mark or held["x"].shape != (size,):
                return None
            return int(held["number"]), held["x"].astype(np.float32)
    except (OSError, ValueError, KeyError):
        raise SplatopError(
            f"expected what an interrupted run left in {path}, which cannot be read: remove it"
        ) from None

"""What an interrupted run has done so far, in a small file: done again, it goes on exactly."""

import hashlib
import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from ..data.atomic import write_whole
from ..errors import SplatopError

Entry = Mapping[str, np.ndarray]


def fingerprint(arrays: Sequence[np.ndarray | None], text: str) -> str:
    """A short text that is another one for any other problem."""
    digest = hashlib.sha256(text.encode())
    for array in arrays:
        digest.update(b"none" if array is None else np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:20]


class Journal:
    """Results of the steps of a computation that always takes the same ones.

    `once` computes a result, or returns what an earlier, interrupted run of the same problem has
    written down for it. Without a path nothing is kept.
    """

    def __init__(self, path: str | Path | None = None):
        self.path = None if path is None else Path(path)
        self._seen: Counter[str] = Counter()
        self._held: dict[str, np.ndarray] = {}
        if self.path is not None and self.path.exists():
            try:
                with np.load(self.path, allow_pickle=False) as held:
                    self._held = {name: held[name] for name in held.files}
            except (OSError, ValueError, KeyError, BadZipFile):
                raise SplatopError(
                    f"expected what an interrupted run left in {self.path}, which cannot be read: "
                    "remove it"
                ) from None

    def once(self, mark: str, compute: Callable[[], Entry]) -> Entry:
        """The result of the next step of the problem that `mark` is the fingerprint of."""
        if self.path is None:
            return compute()
        name = f"{mark}.{self._seen[mark]}"
        self._seen[mark] += 1
        found = {k.split("/")[1]: v for k, v in self._held.items() if k.split("/")[0] == name}
        if found:
            return found
        made = compute()
        self._held |= {f"{name}/{key}": np.asarray(value) for key, value in made.items()}
        held = io.BytesIO()
        np.savez(held, **self._held)  # type: ignore[arg-type]
        write_whole(self.path, held.getvalue())
        return made

    def remove(self) -> None:
        """The run is done."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

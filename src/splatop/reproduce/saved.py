"""Values that figures are drawn from, kept in `.npz` files beside the runs."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..data.atomic import complete_or_absent
from ..errors import SplatopError


@dataclass(frozen=True)
class SavedArrays:
    """What a dataclass of arrays, and of fields that JSON holds, inherits to be saved."""

    what: ClassVar[str]  # it is, in words

    def save(self, path: Path) -> Path:
        """Write a `.npz` file, complete or not at all."""
        fields: dict[str, Any] = asdict(self)
        arrays: dict[str, Any] = {k: v for k, v in fields.items() if isinstance(v, np.ndarray)}
        about = {k: v for k, v in fields.items() if k not in arrays}
        with complete_or_absent(path) as partial, partial.open("wb") as file:
            np.savez(file, about=np.array(json.dumps(about)), **arrays)
        return path

    @classmethod
    def load(cls, path: Path):
        """Read what `save` wrote."""
        try:
            with np.load(path, allow_pickle=False) as held:
                about = json.loads(str(held["about"]))
                arrays = {name: held[name] for name in held.files if name != "about"}
            plain = {k: tuple(v) if isinstance(v, list) else v for k, v in about.items()}
            return cls(**arrays, **plain)
        except (OSError, KeyError, ValueError, TypeError) as error:
            raise SplatopError(
                f"expected {cls.what} in '{path}', got something else ({error}): "
                "delete it and reproduce again"
            ) from error

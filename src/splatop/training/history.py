"""The loss of a run's stages, as its `history.csv` holds it."""

import csv
from dataclasses import dataclass
from pathlib import Path

from ..errors import SplatopError


@dataclass(frozen=True)
class StageHistory:
    """The loss of one stage of training."""

    name: str
    steps: tuple[int, ...]
    loss: tuple[float | None, ...]


def read_history(path: Path) -> tuple[StageHistory, ...]:
    """Loss by stage; a run that trained nothing has no history."""
    if not path.exists():
        return ()
    stages: dict[str, list[tuple[int, float | None]]] = {}
    try:
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                loss = float(row["loss"])
                stages.setdefault(str(row["stage"]), []).append(
                    (int(row["step"]), loss if abs(loss) < float("inf") else None)
                )
    except (KeyError, TypeError, ValueError, UnicodeDecodeError, csv.Error) as error:
        raise SplatopError(
            f"expected columns stage, step and loss in '{path}', got something else ({error}): "
            "the file was cut or edited; remove it to report without loss curves"
        ) from error
    return tuple(
        StageHistory(name, tuple(s for s, _ in rows), tuple(v for _, v in rows))
        for name, rows in stages.items()
    )

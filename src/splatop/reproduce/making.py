"""Tables and figures of the paper, from runs that are trained and evaluated where missing."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from ..errors import SplatopError, unknown_name
from ..training import PRESETS
from .catalogue import Item, select
from .plots import save_figure
from .workshop import Size, Workshop


@dataclass(frozen=True)
class Reproduced:
    """Files that were written for each item, and what went wrong on the way."""

    files: dict[str, list[Path]]
    problems: list[str]


def reproduce(
    names: list[str],
    out: str | Path,
    *,
    preset: str = "fast",
    size: Size = Size(),
    say: Callable[[str], None] = lambda _: None,
) -> Reproduced:
    """Draw the named items into `out/preset`; their runs are kept in `out/preset/runs`.

    A run that fails is left out of what it appears in and reported; the rest goes on.
    """
    if preset not in PRESETS:
        raise unknown_name("preset", preset, PRESETS)
    items = select(names)
    folder = Path(out) / preset
    shop = Workshop(folder / "runs", preset, size, say)
    shop.folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, list[Path]] = {}
    problems: list[str] = []
    for item in items:
        try:
            files[item.name] = _draw(item, shop, folder, problems)
        except SplatopError as error:
            problems.append(f"{item.name}: {error}")
            continue
        say(f"wrote {', '.join(str(path) for path in files[item.name])}")
    return Reproduced(files, problems)


def _draw(item: Item, shop: Workshop, folder: Path, problems: list[str]) -> list[Path]:
    drawn = item.draw(shop, problems)
    stem = folder / item.name
    return save_figure(drawn, stem) if isinstance(drawn, Figure) else drawn.save(stem)

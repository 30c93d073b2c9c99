"""`train --sensors`: the table is analysed first, its frames are what is trained on."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import SplatopError
from .app import say
from .reading import Reading, arguments, numbers, unknown_of
from .sensor_options import Setting, table_arguments, whole_numbers

_USED = ("lengths", "origin", "dt", "boundary", "sampling", "shape")


@dataclass(frozen=True)
class Analysed:
    """The file of frames, all coefficients, and whether the equation explains the reports. `told`
    is None where an earlier part of the run has made the file."""

    frames: Path
    coefficients: dict[str, float]
    explained: bool
    told: Any = None

    def judge(self, model: Any) -> None:
        """Say how well a trained model explains the reports."""
        doubt = None if self.told is None else self.told.judge(model, say)
        if doubt is not None:
            say(f"warning: {doubt}")


def analysed(
    table: Path,
    equation: str | None,
    coefficients: str | None,
    *,
    other: Any,
    points: str | None,
    unknown: str | None,
    reading: Reading,
    how: Setting,
    out: Path,
    resume: bool,
) -> Analysed:
    """The frames of what sensors reported, in a file beside the run folder."""
    from ..assimilate.from_sensors import from_sensors
    from ..data import open_trajectories, save_trajectories
    from ..equation import parse_coefficients

    if other is not None:
        raise SplatopError(f"expected --sensors or other data to train on, got both ({other})")
    if equation is None:
        raise SplatopError(
            "expected an equation to train from sensors, got none: give --equation, for example "
            '"dt(u) = D*lap(u) + ?"'
        )
    given = arguments(reading)
    for name in given:
        if name not in _USED:
            raise SplatopError(
                f"expected no --{name.replace('_', '-')} with --sensors, got one: a table of "
                "sensors has columns of its own (splatop assimilate --help)"
            )
    path = out.with_name(f"{out.name}.sensors.h5")
    if resume and path.exists():
        with open_trajectories(path) as held:
            kept = dict(held.attributes.get("sensors") or {})
        if "coefficients" in kept:
            return Analysed(path, dict(kept["coefficients"]), bool(kept["explained"]))
    starts = unknown_of(unknown)[1]
    told = from_sensors(
        table,
        equation,
        coefficients=parse_coefficients(coefficients) if coefficients else {},
        points=whole_numbers(points),
        say=say,
        **({"unknown": starts} if starts else {}),
        **table_arguments(how),
        **{**given, "lengths": numbers(reading["lengths"], "lengths")},
    )
    frames = told.trajectories
    frames.attributes["sensors"] = {
        "coefficients": told.coefficients,
        "explained": told.explained,
    }
    save_trajectories(path, frames)
    say(f"wrote the frames that sensors tell: {path}")
    return Analysed(path, told.coefficients, told.explained, told)

"""The options that say how a file is to be read, the same for every command that reads one."""

import functools
import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import SplatopError

if TYPE_CHECKING:
    from ..data import Trajectories
    from ..model import ModelSpec
else:
    Trajectories = ModelSpec = Any

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A file of trajectories.")]
# What part of a file is looked at, and noise that studies add to it.
FirstTrajectoriesOption = Annotated[
    int | None, typer.Option(help="Only the first so many trajectories.")
]
NoiseOption = Annotated[
    float, typer.Option(help="For studies: add white noise of this relative size.")
]
NoiseSeedOption = Annotated[int, typer.Option(help="Of the added noise.")]
# Times that are asked for at once.
MOST_MOMENTS = 1_000_000
# Options of a command line, as they came, by name.
Reading = dict[str, Any]


def option(kind: Any, help: str, *flags: str, default: Any = None) -> tuple[Any, Any]:
    """An option's type, as typer reads it, and its default."""
    return Annotated[kind, typer.Option(*flags, help=help)], default


TEXT, NUMBER = str | None, float | None
_OPTIONS: dict[str, tuple[Any, Any]] = {
    "axes": option(TEXT, "Order of the axes where the file does not say: letters of b t c x y z."),
    "fields": option(
        TEXT,
        "Fields to read, or names of the channels: u,v,p. u=usol reads usol as u, v=dt(u) is the "
        "rate of u by differences.",
    ),
    "lengths": option(TEXT, "Side lengths of the box: 1 for all axes, or 1,2,1."),
    "origin": option(
        TEXT, "Where the axes begin, else the file's, or 0: -1 for all axes, or -1,0."
    ),
    "dt": option(NUMBER, "Time between frames."),
    "t0": option(NUMBER, "Time of the first frame, else what the file says."),
    "start": option(int | None, "The first frame to use; those before are left out."),
    "only": option(TEXT, "Trajectories of the file to read, numbered from 0: 3 or 0,4,7."),
    "inputs": option(TEXT, "Fields that drive the others and are not predicted: f,w."),
    "periodic": option(
        bool, "Take the data as periodic without looking.", "--periodic", default=False
    ),
    "boundary": option(
        TEXT,
        'What holds at the edges: "x0: u = 0; x1: dn(u) = 0; y: periodic". x means both ends, all '
        "everything, free sets nothing.",
    ),
    "sampling": option(
        TEXT,
        "Where the points of a bounded axis lie, if coordinates do not tell: ends, cells or left, "
        "for all axes or one for each.",
    ),
    "shape": option(
        TEXT,
        'The part of the plane that 2D data are of: "disk(0.5, 0.5, 0.4)", "box - disk(0.4, 0.5, '
        '0.15)", "polygon(0 0, 1 0, 0 1)", or a mesh file.',
    ),
    "mask": option(
        TEXT,
        "The shape as a variable of the file: 1 inside, 0 outside; or nan, where values outside "
        "are NaN.",
    ),
    "resample": option(
        bool, "Interpolate uneven coordinates and times to even ones.", "--resample", default=False
    ),
    "drop_end": option(
        bool, "Leave out a last point that repeats the first.", "--drop-end", default=False
    ),
}


def with_options(
    argument: str, options: dict[str, tuple[Any, Any]]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command options, each with its type and default, in the place of one `argument`, as
    which it gets all of them."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command)
        parameters = []
        for name, parameter in own.parameters.items():
            if name == argument:
                parameters += [
                    parameter.replace(name=option, default=default, annotation=kind)
                    for option, (kind, default) in options.items()
                ]
            else:
                parameters.append(parameter)
        parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]

        @functools.wraps(command)
        def with_all(**given: Any) -> None:
            command(**{argument: {name: given.pop(name) for name in options}, **given})

        vars(with_all)["__signature__"] = own.replace(parameters=parameters)
        with_all.__annotations__ = {p.name: p.annotation for p in parameters}
        return with_all

    return decorate


# Gives a command the options of reading, as its argument `reading`.
reads_a_file = with_options("reading", _OPTIONS)


def arguments(reading: Reading) -> dict[str, Any]:
    """Those arguments of `open_trajectories` that were given."""
    asked = {
        **reading,
        **{name: _names(reading[name]) for name in ("fields", "inputs")},
        "lengths": numbers(reading["lengths"], "lengths"),
        "origin": numbers(reading["origin"], "an origin"),
        "only": _whole(reading.get("only")),
    }
    # By identity: a 0 is given, as in --t0 0, and False is not.
    return {k: value for k, value in asked.items() if value is not None and value is not False}


def open_data(file: Any, reading: Reading) -> Trajectories:
    """Open a file with the options as they come from the command line."""
    from ..data import open_trajectories

    return open_trajectories(file, **arguments(reading))


def open_for(spec: ModelSpec, file: Any, reading: Reading) -> Trajectories:
    """Open a file that a model is applied to: edges that neither it nor the user states are the
    model's, which the data are held against."""
    told = any(reading[name] for name in ("boundary", "periodic", "shape", "mask"))
    domain = spec.domain
    if told or domain is None or domain.all_periodic or domain.shape is not None:
        return open_data(file, reading)
    try:
        return open_data(file, reading)
    except SplatopError:
        return open_data(file, {**reading, "boundary": domain.describe(spec.fields)})


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def numbers(text: str | None, what: str) -> list[float] | None:
    """Numbers separated by commas."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise SplatopError(f"expected {what} such as 1 or 1,2, got '{text}'") from None


def _whole(text: str | None) -> list[int] | None:
    try:
        return None if text is None else [int(part) for part in text.split(",")]
    except ValueError:
        raise SplatopError(
            f"expected numbers of trajectories such as 3 or 0,4,7, got '{text}'"
        ) from None


def moments(text: str) -> list[float]:
    """Times separated by commas, or from one to another in steps of a third: 0:10:0.25."""
    if ":" not in text:
        return numbers(text, "times") or []
    try:
        first, last, step = (float(part) for part in text.split(":"))
        count = math.floor((last - first) / step + 1e-9) if step > 0 else 0
    except (ValueError, OverflowError):
        first, step, count = 0.0, 0.0, 0
    if not 1 <= count <= MOST_MOMENTS:
        raise SplatopError(
            f"expected times such as 0.1,0.5,2 or 0:10:0.25 (from, to, step), got '{text}'"
        )
    return [first + step * n for n in range(1, count + 1)]


def unknown_of(text: str | None) -> tuple[tuple[str, ...], dict[str, float]]:
    """The names, and values to start from, of which there is one for every name or for none."""
    from ..equation import parse_coefficients

    parts = [part.strip() for part in (text or "").split(",") if part.strip()]
    given = [part for part in parts if "=" in part]
    if given and len(given) < len(parts):
        bare = ", ".join(part for part in parts if "=" not in part)
        raise SplatopError(
            f"expected a value to start from for every unknown, or for none, got none for {bare}: "
            "write --unknown c=6,b=1"
        )
    starts = dict(parse_coefficients(",".join(given))) if given else {}
    return tuple(starts or parts), starts

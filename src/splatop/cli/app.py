"""The typer application that the command modules add to, and how it ends."""

import json
import sys
import warnings
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from typer.core import TyperGroup

from .._version import __version__
from ..errors import SplatopError

# The order of `splatop --help`: that in which one uses the commands.
COMMANDS = {
    "Your data": ("inspect", "convert"),
    "Their equation": ("identify", "discover"),
    "A surrogate": ("train", "tune", "evaluate", "report", "rollout", "export", "info", "estimate"),
    "A few sensors": ("assimilate", "reconstruct", "place"),
    "What comes with splatop": (
        "demo",
        "benchmarks",
        "generate",
        "models",
        "reproduce",
        "bench",
    ),
}


class _Ordered(TyperGroup):
    """The commands in the order and under the headings of `COMMANDS`."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for names in COMMANDS.values() for name in names]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        headings = (heading for heading, names in COMMANDS.items() if cmd_name in names)
        if command is not None:
            vars(command)["rich_help_panel"] = next(headings)
        return command


app = typer.Typer(
    name="splatop",
    cls=_Ordered,
    help="Surrogates of PDEs from trajectories and what is known of the equation.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
console = Console(emoji=False)  # ":x:" in a path or a file is text
errors = Console(stderr=True, emoji=False)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


def _print_version(wanted: bool) -> bool:
    if wanted:
        say(f"splatop {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="And exit.")
    ] = False,
) -> None:
    pass


def numbers_table(*columns: str) -> Table:
    """A table of names and numbers that fits 80 columns: no borders, and no name cut short."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for index, column in enumerate(columns):
        table.add_column(column, no_wrap=True, justify="right" if index else "left")
    return table


def show(table: Table) -> None:
    """A table on the console. Where that is narrower, its lines go on: no number is cut short."""
    wanted = Measurement.get(console, console.options.update(width=10_000), table).maximum
    table.width = wanted if wanted > console.width else None
    console.print(table, markup=False, crop=False)


def say(text: object, *, style: str | None = None, to: Console = console) -> None:
    """Text for people as it is: no colours for numbers, no markup, lines broken by the terminal."""
    to.print(str(text), style=style, highlight=False, markup=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """JSON on standard output, for other programs: no colour, no wrapping, no NaN."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")


def run(application: typer.Typer) -> int:
    """Exit code of a run: 0 done, 1 a user's or the machine's mistake, 2 usage, 130 interrupted."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            application()
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except ImportError as error:  # what Ctrl-C becomes while a compiled module is loaded
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        return _fail("interrupted", 130)
    except SplatopError as error:
        return _fail(f"error: {error}", 1)
    except OSError as error:
        return _fail(f"error: {error.strerror or error}: {error.filename or ''}".rstrip(": "), 1)
    except (MemoryError, OverflowError) as error:
        return _fail(
            f"error: expected sizes that this machine can hold, got one that it cannot ({error}): "
            "ask for fewer points, steps, trajectories or anchors",
            1,
        )
    except RuntimeError as error:  # JAX's own kind, which is not imported for this
        if type(error).__name__ != "JaxRuntimeError" or "RESOURCE_EXHAUSTED" not in str(error):
            raise
        return _fail(
            f"error: expected what fits this machine's memory, got {str(error).splitlines()[0]}: "
            "ask for fewer points, steps, trajectories or anchors",
            1,
        )
    return 0


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """One line on standard error, without the place in our code."""
    say(f"warning: {message}", style="yellow", to=errors)


def _fail(message: str, code: int) -> int:
    say(message, style="bold red", to=errors)
    return code

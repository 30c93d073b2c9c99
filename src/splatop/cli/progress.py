"""How far a command has come."""

import contextlib
from collections.abc import Callable, Iterator

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from .app import console, errors


@contextlib.contextmanager
def progress_bar(description: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error, if it is a terminal, moved by calls with (done, total)."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=errors,
        transient=True,
        disable=not errors.is_terminal,
    )
    with bar:
        task = bar.add_task(description, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class TrainingProgress:
    """Step, loss, learning rate, throughput and time left, redrawn in place."""

    def __init__(self):
        self.progress = Progress(
            TextColumn("{task.description:<9}"),
            BarColumn(bar_width=28),
            MofNCompleteColumn(),
            TextColumn("loss {task.fields[loss]:.3e}  rate {task.fields[rate]:.1e}"),
            TextColumn("{task.fields[speed]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
        )
        self.tasks = {}

    def __enter__(self):
        self.progress.start()
        return self

    def __exit__(self, *_):
        self.progress.stop()

    def say(self, message: str) -> None:
        """A line above the bars."""
        self.progress.console.print(message, markup=False, highlight=False, soft_wrap=True)

    def __call__(self, stage: str, step: int, steps: int, loss: float, rate: float) -> None:
        if stage not in self.tasks:
            self.tasks[stage] = self.progress.add_task(
                stage, total=steps, loss=loss, rate=rate, speed=""
            )
        task = self.progress.tasks[self.tasks[stage]]
        speed = f"{task.speed:.1f} steps/s" if task.speed else ""
        self.progress.update(task.id, completed=step, loss=loss, rate=rate, speed=speed)

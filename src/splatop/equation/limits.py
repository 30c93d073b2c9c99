"""How much work the algebra of one equation may be, so that no text can make it run away."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..errors import SplatopError

MAX_WORK = 100_000  # factors looked at while one equation is multiplied out: half a second


class ExpressionError(SplatopError):
    """An operation that the algebra refuses; the parser adds where in the text it was."""


_work_left: ContextVar[list[int] | None] = ContextVar("work_left", default=None)


@contextmanager
def bounded_work() -> Iterator[None]:
    """Within it the algebra stops with an error after `MAX_WORK` steps."""
    token = _work_left.set([MAX_WORK])
    try:
        yield
    finally:
        _work_left.reset(token)


def work(steps: int) -> None:
    """Count steps of the algebra; an error when there were too many."""
    left = _work_left.get()
    if left is not None:
        left[0] -= steps
        if left[0] < 0:
            raise ExpressionError("the equation is too large when multiplied out: simplify it")

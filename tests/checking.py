"""Beartype as the tests use it: made for a function when it is first called, and once.

jaxtyping has every function of the package checked, and asks for a checker wherever a `def` is run.
Most functions are not called by a worker at all, and a function inside another one is defined
again with each call of that one: to make its checker takes a millisecond each time.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import beartype

_MADE: dict[tuple[Any, ...], Callable[..., Any]] = {}


def when_called(function: Callable[..., Any]) -> Callable[..., Any]:
    """Check arguments and result of a function, which jaxtyping makes of a signature alone."""
    checked = None

    @wraps(function)
    def call(*arguments, **options):
        nonlocal checked
        if checked is None:
            # Annotations are new objects each time, but read the same.
            read = tuple((name, str(kind)) for name, kind in function.__annotations__.items())
            key = (function.__module__, function.__qualname__, function.__code__, read)
            checked = _MADE.get(key) or _MADE.setdefault(key, beartype.beartype(function))
        return checked(*arguments, **options)

    return call

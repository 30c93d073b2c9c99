"""One error type for everything a user can get wrong, and the checks that raise it."""

import difflib
import math
import os
from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

# The command line raises these errors, and says its version and its help, without JAX and numpy.
if TYPE_CHECKING:
    import jax
    import numpy as np

    Values = jax.Array | np.ndarray
else:
    Values = Any


class SplatopError(ValueError):
    """Input that splatop cannot work with: what was expected, what came, what to do."""


def finite(value: float) -> float | None:
    """A number for JSON, where one that does not exist is None."""
    return float(value) if math.isfinite(value) else None


def in_percent(share: float) -> str:
    """A share of 1 in per cent, in two digits: 0.0123 is 1.2 %, 1.75 is 180 %."""
    return f"{float(f'{100 * share:.2g}'):.10g} %"


def unknown_name(kind: str, name: str, valid: Iterable[str]) -> SplatopError:
    """The error for a name that is not in a table; names the nearest valid one."""
    valid = sorted(valid)
    if not valid:
        return SplatopError(f"unknown {kind} '{name}': there is none to choose from, leave it out")
    close = difflib.get_close_matches(name, valid, n=1, cutoff=0.5)
    hint = f"did you mean '{close[0]}'? " if close else ""
    return SplatopError(f"unknown {kind} '{name}': {hint}valid names are {', '.join(valid)}")


def is_concrete(array: object) -> bool:
    """Whether values can be looked at, i.e. we are not inside `jit`, `vmap` or `grad`."""
    import jax.core

    return not isinstance(array, jax.core.Tracer)


def check_field(u: Values, *, dims: int | None = None, channels: int | None = None) -> None:
    """Refuse a field `(C, *N)` of wrong rank or channel count, or with values not finite.

    The values are checked only outside `jit`.
    """
    rank = u.ndim - 1
    wanted = f"{dims}D field" if dims else "1D, 2D or 3D field"
    if (dims is not None and rank != dims) or not 1 <= rank <= 3:
        raise SplatopError(
            f"expected u of shape (C, *N) for a {wanted}, got {tuple(u.shape)}: "
            "add a channel axis, or vmap over a batch"
        )
    if channels is not None and u.shape[0] != channels:
        raise SplatopError(
            f"expected u with {channels} channel(s) first, got shape {tuple(u.shape)}: "
            "pass a field with that many channels, or build the model for this one"
        )
    if is_concrete(u):
        check_finite(u)


def check_finite(u: Values, name: str = "u") -> None:
    """Refuse NaN and infinity, saying how many there are and where the first one is."""
    import numpy as np

    bad = ~np.isfinite(np.asarray(u))
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        raise SplatopError(
            f"expected finite values in {name}, got {int(bad.sum())} NaN or infinite "
            f"(the first at index {first}): remove or repair those frames"
        )


def size_text(count: int) -> str:
    """A number of bytes, however large, in the unit that suits it."""
    for power, unit in enumerate(("bytes", "kB", "MB", "GB", "TB", "PB")):
        if count < 1000 ** (power + 1):
            return f"{count / 1000**power:.3g} {unit}"
    return f"{Decimal(count):.0e} bytes"


def check_memory(needed: int, what: str, remedy: str) -> None:
    """Refuse what this machine's memory can never hold, before any of it is made."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > memory:
        raise SplatopError(
            f"expected {what} to fit into this machine's {size_text(memory)} of memory, got one "
            f"that needs {size_text(needed)}: {remedy}"
        )

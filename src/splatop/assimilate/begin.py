"""Where unknown coefficients begin, if nobody says it: at what fields tell that are reconstructed
without the equation."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ..data import ArrayTrajectories, Trajectories
from ..domain import AXES, Domain
from ..equation import Equation, parse_equation
from ..errors import SplatopError
from ..identify import identify_trajectories
from .observations import Observations
from .reconstruct import reconstruct
from .uncertain_frames import Frames

# Reports of one time, and such times, from which fields alone tell where coefficients begin.
_FEWEST_REPORTS, _FEWEST_TIMES = 8, 5


def values_to_begin_at(
    read: Callable[[tuple[str, ...]], Observations],
    model: Any,
    coefficients: Mapping[str, float],
    unknown: Iterable[str],
    place: Mapping[str, Any],
) -> dict[str, float]:
    """Of unknown coefficients of an equation that have no value yet; `read` gives the reports of
    fields."""
    written = isinstance(model, str) and "=" in model
    if not (written or isinstance(model, Equation)) or place["lengths"] is None:
        return {}
    dims = len(np.atleast_1d(place["lengths"]))
    if place["points"] is not None:
        dims = max(dims, len(np.atleast_1d(place["points"])))
    equation = parse_equation(model, dims=dims) if isinstance(model, str) else model
    names = equation.coefficient_names
    missing = [name for name in unknown if name in names and name not in coefficients]
    if not missing or {*names} - {*coefficients} != {*missing}:
        return {}
    return told_by_fields(read(equation.fields), equation, coefficients, missing, place)


def as_trajectories(frames: Frames, source: str) -> ArrayTrajectories:
    """The means of frames as one trajectory."""
    return ArrayTrajectories(
        frames.mean[None].astype(np.float32),
        frames.grid,
        dt=float(frames.times[1] - frames.times[0]),
        fields=frames.fields,
        attributes={"source": source},
        domain=frames.domain,
    )


def told_by_fields(
    held: Observations,
    equation: Equation,
    known: Mapping[str, float],
    missing: list[str],
    given: Mapping[str, Any],
) -> dict[str, float]:
    """Values of the `missing` coefficients from fields that are reconstructed one time at a time.

    `given` are arguments of `assimilate` that say where the state lives.
    """
    times, count = np.unique(held.times, return_counts=True)
    ask = f"unknown={{{', '.join(f'{n!r}: ...' for n in missing)}}}"
    ask += f" (--unknown {','.join(f'{n}=0.01' for n in missing)})"
    steps = np.diff(times)
    if (
        len(times) < _FEWEST_TIMES
        or np.min(count) < _FEWEST_REPORTS
        or np.ptp(steps) > 1e-3 * steps.mean()
        or given.get("shape") is not None
    ):
        raise SplatopError(
            f"expected values that {', '.join(missing)} may begin at, because too few sensors "
            f"report at the same times to tell them without, got none: give {ask}"
        )
    lengths = np.broadcast_to(np.asarray(given["lengths"], float), (held.dims,)).tolist()
    rings = "; ".join(f"{axis}: periodic" for axis in AXES[: held.dims])
    fields = reconstruct(
        held,
        points=32 if held.dims > 1 else 64,
        lengths=lengths,
        origin=given.get("origin") or [0.0] * held.dims,
        boundary=given.get("boundary") or rings,
        fields=equation.fields,
    ).frames
    data: Trajectories = as_trajectories(fields, "reconstructed fields")
    data.domain = fields.domain if given.get("boundary") else Domain.box(lengths)
    found = identify_trajectories(equation, None, data, unknown=tuple(missing), known=dict(known))
    values = {name: float(found[0].estimates[name]) for name in missing}
    for name, value in values.items():
        if not np.isfinite(value) or value == 0:
            raise SplatopError(
                f"expected a value that {name} may begin at, because reconstructed fields do not "
                f"tell it, got none: give {ask}"
            )
    return values

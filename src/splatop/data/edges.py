"""The domain of data: what the user says of its edges, what the file says, what the data look like.

In this order. Where nobody says, data that close are periodic, and for all others the error looks
at the ends and proposes the words to give.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..domain import AXES, FREE, Condition, Domain
from ..equation import parse_boundary
from ..errors import SplatopError
from ..grid import Grid
from .axes import as_lengths
from .edge_points import Conditions, grid_between, points_between
from .ends import Sampled, proposed, sampled, seen_at, violation
from .even_times import at_even_times
from .evened import evened, turned
from .sampling import both_ends
from .seam import MOST_JUMP, Seam, check_seam, open_seam, seams_of, without_end
from .shaped import settled_on_shape, speaks_of_a_shape
from .stated import OPEN, PERIODIC
from .trajectories import Trajectories
from .unseen import at_rest, check_holes

_TOLD = "as told"


class UndecidedEdges(SplatopError):
    """Nobody says what holds at the edges, and the data do not tell."""


@dataclass(frozen=True)
class Told:
    """What the user says of the box and its edges; None where nothing."""

    boundary: str | None = None
    sampling: str | Sequence[str] | None = None
    periodic: bool | None = None
    drop_end: bool = False
    lengths: float | Sequence[float] | None = None
    origin: float | Sequence[float] | None = None
    shape: str | None = None
    mask: np.ndarray | None = None  # True inside
    resample: bool = False


@dataclass(frozen=True)
class _Edges:
    """Which axes are periodic and the conditions of the others; `by` whom, for messages."""

    periodic: tuple[bool, ...]
    conditions: Conditions
    by: str
    exact: bool = False  # of our own file: nothing to check

    @property
    def rings(self) -> tuple[int, ...]:
        return tuple(axis for axis, ring in enumerate(self.periodic) if ring)


def settled(data: Trajectories, told: Told) -> Trajectories:
    """The data on their domain: without a repeated end, the grid's layout as the points lie.

    Refused with what to do if the edges are not known, or if the data break what is stated.
    """
    if told.boundary is not None and told.periodic:
        raise SplatopError("expected --boundary or --periodic, got both: 'all: periodic' is a text")
    if isinstance(data.grid, Grid):
        if told.mask is not None:
            told = replace(told, mask=turned(np.asarray(told.mask), data))
        data = evened(data, resample=told.resample, lengths=told.lengths, origin=told.origin)
    if told.resample:
        data = at_even_times(data)
    if speaks_of_a_shape(data, told.shape, told.mask):
        return settled_on_shape(data, told)
    if told.drop_end:
        keep = told.lengths is not None
        data = without_end(data, _may_be_rings(data, told), keep_lengths=keep)
    edges = _edges(data, told)
    # The Well's flag is about the points that it stores.
    if edges.by != "the file" or data.attributes.get("format") != "the_well":
        check_seam(data, edges.rings)
    if edges.by == _TOLD:
        _doubt_rings(data, edges.rings)
    if all(edges.periodic):
        if told.sampling is not None:
            raise SplatopError(
                f"{data.source}: expected --sampling for axes with two ends, got it for data that "
                f"are {_periodic_text(edges.by)}: leave it out, or give --boundary"
            )
        data.domain = Domain.box(data.grid.lengths, data.grid.origin)
        data.attributes["boundary_conditions"] = _periodic_text(edges.by)
        return data
    points = points_between(data, told, edges.periodic, edges.conditions)
    data.grid = grid_between(data, points)
    box = Domain.box(data.grid.lengths, data.grid.origin, edges.periodic)
    data.domain = box.with_conditions(edges.conditions)
    by = "" if edges.by == "the file" else f" ({edges.by})"
    data.attributes["boundary_conditions"] = data.domain.describe(data.fields) + by
    data.attributes["sampling"] = ", ".join(
        f"{AXES[axis]} {one.layout} ({one.why})" for axis, one in points.items()
    )
    if not edges.exact:
        broken = violation(data, sampled(data))
        if broken is not None:
            raise SplatopError(
                f"{data.source}: expected data that obey their boundary, but {broken}: state what "
                "holds there (--boundary), 'free' where nothing does, or say where the points lie "
                "(--sampling)"
            )
    return data


def _doubt_rings(data: Trajectories, axes: tuple[int, ...]) -> None:
    """Say where data jump at the end of what they are told to be a period of."""
    for axis, seam in zip(axes, seams_of(data, axes), strict=True):
        if seam.jump > MOST_JUMP and not seam.repeats:
            name = AXES[axis]
            warnings.warn(
                f"{data.source}: {name} was said to be periodic, {open_seam(seam, name)}: if it "
                "has ends, say what holds there (--boundary, boundary= in Python)",
                stacklevel=3,
            )


def _periodic_text(by: str) -> str:
    """As it always was said of periodic data."""
    match by:
        case "the file":
            return "periodic"
        case "the data closes":
            return "periodic (not stated, the data closes)"
        case str() if by.startswith("the data closes"):
            return f"periodic (not stated, {by})"
    return f"periodic ({by})"


# --- who says what -------------------------------------------------------------------------------


def _edges(data: Trajectories, told: Told) -> _Edges:
    dims, stated = data.grid.dims, data.stated
    if told.boundary is not None:
        periodic, conditions = parse_boundary(told.boundary, fields=data.fields, dims=dims)
        return _Edges(periodic, conditions, _TOLD)
    if told.periodic:
        return _Edges((True,) * dims, {}, _TOLD)
    if stated.domain is not None:
        held = stated.domain.held_by(data.fields)
        return _Edges(stated.domain.periodic, held, "the file", True)
    if stated.text is not None:
        return _from_text(data, stated.text)
    return _from_flags(data, told)


def _may_be_rings(data: Trajectories, told: Told) -> tuple[int, ...]:
    """The axes that nobody says to have ends."""
    every = tuple(range(data.grid.dims))
    stated = data.stated
    if told.periodic or (told.boundary is None and stated.text is None and stated.domain is None):
        walled = {side[0] for side, flag in stated.flags.items() if flag != PERIODIC}
        return tuple(a for a in every if told.periodic or AXES[a] not in walled)
    return _edges(data, told).rings


def _from_text(data: Trajectories, text: str) -> _Edges:
    """An attribute of the file, in our language or in one of its own."""
    if text.strip().lower() == PERIODIC:
        return _Edges((True,) * data.grid.dims, {}, "the file")
    try:
        periodic, conditions = parse_boundary(
            text, fields=data.fields, dims=data.grid.dims, others=data.stated.others
        )
    except SplatopError as error:
        reason = str(error).splitlines()[0]
        raise _unknown(
            data,
            Told(),
            (False,) * data.grid.dims,
            f"expected edges in the language of boundaries, got boundary_conditions = '{text}' "
            f"({reason})",
        ) from None
    return _Edges(periodic, conditions, data.stated.by)


def _from_flags(data: Trajectories, told: Told) -> _Edges:
    """The Well's flags and the like; where there is none, the data themselves."""
    stated = data.stated
    if stated.problem is not None:
        raise SplatopError(stated.problem)
    flags = [stated.flagged(axis) for axis in range(data.grid.dims)]
    if all(pair == (PERIODIC, PERIODIC) for pair in flags):
        return _Edges((True,) * data.grid.dims, {}, stated.by)
    for axis, pair in enumerate(flags):
        if PERIODIC in pair and pair != (PERIODIC, PERIODIC):
            raise SplatopError(
                f"{data.source}: expected both ends of {AXES[axis]} to be periodic, got flags "
                f"{pair[0]} and {pair[1]}: give --boundary"
            )
    unsaid = [axis for axis, pair in enumerate(flags) if None in pair]
    check_holes(data, unsaid)
    seams = dict(zip(unsaid, seams_of(data, tuple(unsaid)), strict=True))
    dropped = data.attributes.get("dropped_end", "")  # whoever drops an end says that it repeats
    torn = {
        axis: None
        if AXES[axis] in dropped
        else stated.ended.get(AXES[axis])
        or _two_ends(data, axis, seam, told)
        or open_seam(seam, AXES[axis])
        for axis, seam in seams.items()
    }
    looks = told.periodic is not False
    periodic = tuple(
        pair == (PERIODIC, PERIODIC) or (looks and axis in torn and torn[axis] is None)
        for axis, pair in enumerate(flags)
    )
    bounded = [axis for axis, ring in enumerate(periodic) if not ring]
    if not bounded:
        return _Edges(periodic, {}, "the data closes" + at_rest(data, unsaid))
    wanted = [(f"{AXES[a]}{end}", name) for a in bounded for end in (0, 1) for name in data.fields]
    known = {place: Condition("value", value) for place, value in stated.values.items()}
    known |= {place: FREE for place in wanted if stated.flags.get(place[0]) == OPEN}
    if all(place in known for place in wanted):
        return _Edges(periodic, {place: known[place] for place in wanted}, stated.by)
    lacking = [a for a in bounded if any(p[0][0] == AXES[a] and p not in known for p in wanted)]
    first = lacking[0]
    if None not in flags[first]:
        ends = " and ".join(
            f"'{flag}' at {AXES[first]}{end}" for end, flag in enumerate(flags[first])
        )
        reason = (
            f"expected to know what holds at the edges; {stated.by} says {ends}, which is not yet "
            "a condition"
        )
    else:
        why = torn[first] or "and it was told not to be periodic"
        reason = (
            f"expected edges that the file states, or data periodic along {AXES[first]}; the file "
            f"does not say, {why}"
        )
    raise _unknown(data, told, periodic, reason)


def _two_ends(data: Trajectories, axis: int, seam: Seam, told: Told) -> str | None:
    """Why an axis may not be periodic although nothing speaks against it: its coordinates hold both
    ends, and the points there are equal, or noise hides whether they are."""
    if seam.repeats or seam.held or not (seam.hidden or seam.equal):
        return None
    lengths = as_lengths(told.lengths, data.grid.dims)
    found = both_ends(data, axis, None if lengths is None else lengths[axis])
    if found is None:
        return None
    name, end = AXES[axis], found.begin + found.length
    seen = "its first and last points are equal" if seam.equal else "noise hides whether it closes"
    return (
        f"and along {name} {seen}, and both of its ends, {found.begin:g} and {end:g}, are points, "
        "as with walls or where a period's end is there twice (--drop-end, drop_end=True)"
    )


def _unknown(
    data: Trajectories, told: Told, periodic: tuple[bool, ...], reason: str
) -> UndecidedEdges:
    """The error that looks at the ends and proposes the words to give."""
    box = Domain.box(data.grid.lengths, data.grid.origin, periodic)
    sample = sampled(data)
    grid, missing = _assumed(data, told, periodic, sample)
    guess = proposed(sample, grid, box, data.fields)
    freed = {
        at: one for at, one in guess.conditions.items() if data.stated.flags.get(at[0]) != OPEN
    }
    guess = box.with_conditions(freed)
    words = f'--boundary "{guess.describe(data.fields)}"' + missing
    found = seen_at(sample, grid, guess, data.fields, but=data.stated.opened)
    shown = ", ".join(found[:6]) + (f" and {len(found) - 6} more" if len(found) > 6 else "")
    return UndecidedEdges(
        f"{data.source}: {reason}. In the data {shown}: if that is what holds, give {words} "
        "(boundary= in Python), else what does, or --periodic (periodic=True) for a period"
    )


def _assumed(
    data: Trajectories, told: Told, periodic: tuple[bool, ...], sample: Sampled
) -> tuple[Grid, str]:
    """A grid to look at the ends with, and the option to give if its layout is not told."""
    try:
        return grid_between(data, points_between(data, told, periodic, {})), ""
    except SplatopError:
        pass
    grids = {
        word: replace(
            data.grid,
            layout=tuple("left" if ring else word for ring in periodic),
        )
        for word in ("ends", "cells")
    }
    box = Domain.box(data.grid.lengths, data.grid.origin, periodic)
    set_by = {
        word: len(proposed(sample, grid, box, data.fields).conditions)
        for word, grid in grids.items()
    }
    word = max(grids, key=lambda one: set_by[one])
    return grids[word], f" --sampling {word}"

"""What a file itself says of its edges and of where its points lie."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..domain import AXES, Domain

PERIODIC, WALL, OPEN = "periodic", "wall", "open"


@dataclass(frozen=True)
class Stated:
    """Nothing, a whole domain, a text in the language of boundaries, or flags.

    `domain` and `layout` are of our own files, exact. `text` may name `others`, fields that the
    file has but that are not read. `flags` are by end: "periodic", "wall" or "open"; `values` are
    those that walls state, by end and field; `ended` are axes that are no period, with the reason.
    `problem` is what nobody but the user can settle. `by` names who says it, for messages.
    """

    by: str = "the file"
    domain: Domain | None = None
    layout: tuple[str, ...] = ()
    text: str | None = None
    others: tuple[str, ...] = ()
    flags: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[tuple[str, str], float] = field(default_factory=dict)
    ended: Mapping[str, str] = field(default_factory=dict)
    problem: str | None = None

    @property
    def opened(self) -> tuple[str, ...]:
        """The ends that the flags leave open."""
        return tuple(side for side, flag in self.flags.items() if flag == OPEN)

    def flagged(self, axis: int) -> tuple[str | None, str | None]:
        """The flags at the two ends of an axis."""
        first, last = (self.flags.get(f"{AXES[axis]}{end}") for end in (0, 1))
        return first, last


def all_periodic(dims: int, *, by: str) -> Stated:
    return Stated(by, flags={f"{axis}{end}": PERIODIC for axis in AXES[:dims] for end in (0, 1)})

"""Fields read under other names than a file's own: `u=usol`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..errors import SplatopError
from .axes import components_of
from .stated import Stated
from .trajectories import Trajectories


def names_asked(fields: Sequence[str] | None) -> tuple[list[str] | None, dict[str, str]]:
    """The file's names of the fields asked for, and by these the names they are to have.

    A field is asked for by the file's name, `usol`, or with a name of its own, `u=usol`.
    """
    if fields is None:
        return None, {}
    named: dict[str, str] = {}
    for asked in fields:
        new, equals, old = (part.strip() for part in str(asked).partition("="))
        if not new or (equals and (not old or not new.isidentifier())):
            raise SplatopError(
                "expected fields as the file names them, or with a name of their own as in "
                f"u=usol, got '{asked}'"
            )
        if (old or new) in named:
            raise SplatopError(f"expected each field of the file once, got '{old or new}' twice")
        named[old or new] = new
    if len(set(named.values())) < len(named):
        raise SplatopError(f"expected fields of different names, got {', '.join(fields)}")
    changed = {old: new for old, new in named.items() if old != new}
    return list(named), changed


class Renamed(Trajectories):
    """The same trajectories, their fields called otherwise."""

    def __init__(self, whole: Trajectories, names: Mapping[str, str]):
        self.whole = whole
        self._like(whole)
        vectors = {old: components_of(old, whole.fields) for old in names}
        names = dict(names) | {
            one: names[old] + one[len(old) :]
            for old, components in vectors.items()
            for one in components
            if one not in names
        }
        self.fields = tuple(names.get(name, name) for name in whole.fields)
        self.complex_fields = tuple(names.get(name, name) for name in whole.complex_fields)
        self.stated = _stated(whole.stated, names)

    def read(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        return self.whole.read(trajectory, start, frames)

    def close(self) -> None:
        self.whole.close()


def _stated(stated: Stated, names: Mapping[str, str]) -> Stated:
    """What a file says of its edges, said of the new names."""
    domain, text = stated.domain, stated.text
    if domain is not None:
        held = tuple((end, names.get(name, name), one) for end, name, one in domain.stated)
        domain = replace(domain, stated=held)
    if text is not None:
        text = re.sub(r"[^\W\d]\w*", lambda found: names.get(found[0], found[0]), text)
    return replace(
        stated,
        domain=domain,
        text=text,
        values={(end, names.get(name, name)): v for (end, name), v in stated.values.items()},
    )

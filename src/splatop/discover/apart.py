"""Trajectories that obey the same terms, each with coefficients of its own."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..data import Trajectories
from .discovered import Discovered
from .rivals import ADEQUATE

# Trajectories that are looked at by themselves.
_MOST = 3


def alone(found: Discovered, data: Trajectories) -> list[int]:
    """Trajectories to look at by themselves: none if together they have an equation."""
    if data.trajectories == 1 or found.relative_residual <= ADEQUATE:
        return []
    return np.unique(np.linspace(0, data.trajectories - 1, _MOST).astype(int)).tolist()


def each_by_itself(found: Discovered, own: Sequence[tuple[Discovered, str]]) -> Discovered:
    """What several trajectories have that were looked at by themselves, if they have the same
    terms; else what was found of all together. `own` has with each its equation with names."""
    first, named = own[0]
    terms = [{term.sides: term for term in one.terms} for one, _ in own]
    if any(one.keys() != terms[0].keys() for one in terms) or not terms[0]:
        return found
    if any(one.relative_residual > ADEQUATE for one, _ in own):
        return found
    apart = []
    for sides, term in terms[0].items():
        each = [one[sides] for one in terms]
        if max(t.low for t in each) > min(t.high for t in each):
            values = sorted(t.coefficient for t in each)
            apart.append(f"{term.text} from {values[0]:.4g} to {values[-1]:.4g}")
    if not apart:
        return found
    doubt = (
        "trajectories have the same terms with coefficients of their own: "
        f"{', '.join(apart)} in {len(own)} of them, of which the first one's stand here; "
        f"`splatop identify --equation '{named}'` finds those of each"
    )
    return replace(first, trusted=False, warnings=(doubt, *first.warnings))

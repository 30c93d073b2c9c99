"""A formula for a learned term: what a network of the jet is close to, if anything."""

import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np

from .learn import Learned
from .search import Normal, best_sets

_DEGREE = 3
_MOST = 120


def distilled(learned: Learned) -> dict[str, Any] | None:
    """Products of up to three arguments that reproduce a learned term within its own error, on
    values that its arguments have in the data. None if no few of them do, or if it is a flux.
    """
    term = learned.term
    if term.conservative:
        return None
    x = learned.samples
    y = np.asarray(term.values(jnp.asarray(x.T, jnp.float32)), np.float64)
    names, columns = _products(learned.names, x)
    if len(names) > _MOST:
        return None
    allowed = max(1 - learned.explained, 1e-6)
    sides = {}
    for target, values in zip(term.targets, y, strict=True):
        gram, moment = columns @ columns.T, columns @ values
        energy = float(values @ values)
        normal = Normal(gram, moment, energy, gram, 1e-6 * energy)
        for chosen in best_sets(normal, largest=6).values():
            c, left = normal.solve(chosen)
            if chosen and left <= 4 * allowed * energy:
                parts = [f"{v:+.4g}*{names[i]}" for v, i in zip(c, chosen, strict=True)]
                sides[target] = " ".join(parts)
                break
        else:
            return None
    text = "; ".join(f"{side} in dt({field})" for field, side in sides.items())
    return {"text": text, "sides": sides}


def _products(names: tuple[str, ...], x: np.ndarray) -> tuple[list[str], np.ndarray]:
    found, columns = ["1"], [np.ones(len(x))]
    for degree in range(1, _DEGREE + 1):
        for some in itertools.combinations_with_replacement(range(len(names)), degree):
            found.append("*".join(names[i] for i in some))
            columns.append(np.prod(x[:, some], axis=1))
    return found, np.stack(columns)

"""The right-hand side as columns: what multiplies each unknown coefficient, and the rest."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..equation import Equation
from ..errors import SplatopError
from ..jets import Jet, JetProvider
from ..spectral import Field
from ..stepper import Coefficients, inputs_at
from .inverse import InverseProblem
from .reduced import Reduced

# A column below what noise of this relative size would give is rounding, not signal.
_ROUNDING = 1e-6


class Columns(eqx.Module):
    """`du/dt = offset + Σ λ_m Σ parts[m]`, for coefficients in which it is linear."""

    parts: dict[str, Float[Array, "k C *N"]]
    offset: Field


@eqx.filter_jit
def columns_of(
    equation: Equation,
    jets: JetProvider,
    u: Field,
    unknown: tuple[str, ...],
    coefficients: Coefficients,
) -> Columns:
    """Columns of the `unknown`; all other coefficients are taken from `coefficients`."""
    jet = driven_jet(equation, jets, u, coefficients)
    own = jet.first(len(u))
    found: dict[str, list[tuple[Field, ...]]] = {name: [] for name in unknown}
    offset = jnp.zeros_like(u)
    for term in equation.terms:
        if term.coefficient in found:
            found[term.coefficient].append(term.parts(jet if term.reads else own, coefficients))
        else:
            offset = offset + term(jet if term.reads else own, coefficients)
    return Columns({name: _tied(parts) for name, parts in found.items()}, offset)


def driven_jet(equation: Equation, jets: JetProvider, u: Field, coefficients: Coefficients) -> Jet:
    """The jet of a state, and of the inputs behind it where the equation has some."""
    if equation.inputs:
        u = jnp.concatenate([u, inputs_at(coefficients, equation.inputs).astype(u.dtype)])
    return jets(u, sorted(equation.derivatives(u.ndim - 1)))


def _tied(terms: list[tuple[Field, ...]]) -> Float[Array, "k C *N"]:
    """Terms that share a coefficient add up; the directions of one velocity stay apart."""
    if len({len(parts) for parts in terms}) == 1:
        return jnp.stack([sum(same[1:], start=same[0]) for same in zip(*terms, strict=True)])
    everything = [part for parts in terms for part in parts]
    return sum(everything[1:], start=everything[0])[None]


def acting_parts(problem: InverseProblem, reduced: Reduced) -> dict[str, np.ndarray]:
    """Which parts of each unknown are not zero on the data; an error if one has none.

    A part counts as zero if noise at the level of rounding would make as large a column.
    """
    pieces, length = reduced.states.shape[:2]
    u = reduced.states[pieces // 2, length // 2]
    given = {**problem.given, **reduced.moment(pieces // 2, length // 2)}
    deviation = np.std(u, axis=tuple(range(1, u.ndim)), keepdims=True)
    speck = _ROUNDING * deviation * np.random.default_rng(0).standard_normal(u.shape)
    still, moved = (
        columns_of(problem.equation, reduced.jets, jnp.asarray(state), problem.unknown, given).parts
        for state in (u, u + speck)
    )
    acting = {}
    for name, parts in still.items():
        axes = tuple(range(1, parts.ndim))
        if not np.isfinite(parts).all():
            raise SplatopError(
                f"expected a term of '{name}' that is finite on these frames, it is not: check the "
                "range of its functions (a root or logarithm of negative values?)"
            )
        size = np.sum(np.square(parts), axis=axes)
        acting[name] = size > np.sum(np.square(moved[name] - parts), axis=axes)
        if not acting[name].any():
            raise SplatopError(
                f"expected frames on which the term of '{name}' acts, it is zero on these: "
                f"'{name}' cannot be identified from them; give it as known, or pass frames "
                "in which it acts"
            )
    return acting

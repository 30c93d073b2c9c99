"""Numerics of a coarse physics: every mode that its grid tells apart, and so few time steps that
what the space leaves out is the larger error."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..data import Trajectories
from ..domain import Domain
from ..equation import Equation
from ..grid import Grid
from ..numerics import Numerics, build_physics
from ..physics import Physics
from ..points import Layout, Points
from ..stability import RK4_REACH, spectral_radius
from ..stepper import Coefficients
from ..walls import most_anchors
from .tuned import Tuned

# Twice the substeps must leave less than this part of the error, or are not worth their time.
_WORTH = 0.9
_MOST = 64


@dataclass(frozen=True)
class Pairs:
    """States `(n, C, *M)` and what became of each one step later; `when` are coefficients that
    belong to each, such as its time."""

    before: np.ndarray
    after: np.ndarray
    when: Mapping[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def spread_over(cls, data: Trajectories, count: int) -> "Pairs":
        """So many, over all trajectories and all of their time."""
        which = np.linspace(0, data.trajectories - 1, count).astype(int)
        starts = np.linspace(0, data.frames - 2, count).astype(int)
        windows = data.windows(np.stack([which, starts], axis=1), 2)
        when = {name: values[:, 0] for name, values in data.all_when(starts, 2).items()}
        return cls(windows[:, 0], windows[:, 1], when)


def choose_coarse(
    equation: Equation,
    coefficients: Coefficients,
    pairs: Pairs,
    *,
    domain: Domain,
    layout: Layout,
    dt: float,
    space: str = "harmonics",
) -> Tuned:
    """Numerics for a box from states of the coarse grid and what became of them a time `dt` later.
    On few points of a periodic one harmonics are the cheaper `space` for the same numbers.

    Unlike those of a fine grid the steps in time need not converge: what the space leaves out, the
    operator has to make up for anyway.
    """
    points = tuple(pairs.before.shape[2:])
    numerics, held, reason = _all_of(points, equation, domain, layout, space)

    def build(scheme: str, count: int) -> Physics:
        chosen = replace(numerics, integrator=scheme, substeps=count)
        return build_physics(equation, chosen, dt=dt, domain=domain, layout=layout)

    @eqx.filter_jit
    def advance(physics, states, when):
        return jax.vmap(lambda u, now: physics(u, {**coefficients, **now}))(states, when)

    start, truth = jnp.asarray(pairs.before), jnp.asarray(pairs.after)
    when = {name: jnp.asarray(values) for name, values in pairs.when.items()}
    last = {**coefficients, **{name: values[-1] for name, values in when.items()}}
    axes = (0, *range(2, truth.ndim))
    size = jnp.std(truth, axis=axes) + 1e-30

    def residual(scheme: str, count: int) -> float:
        made = advance(build(scheme, count), start, when)
        off = jnp.sqrt(jnp.mean((made - truth) ** 2, axis=axes))
        found = float(jnp.max(off / size))
        return found if math.isfinite(found) else math.inf

    plain = build("rk4", 1)
    radius = {
        "rk4": spectral_radius(plain, start[-1], last),
        "etdrk4": spectral_radius(plain, start[-1], last, rest=True),
    }
    tried: dict[str, tuple[int, float]] = {}
    for scheme in ("etdrk4", "rk4"):
        if scheme == "etdrk4" and math.isclose(radius["etdrk4"], radius["rk4"], rel_tol=1e-6):
            continue  # nothing is diagonal
        count = max(1, math.ceil(1.15 * radius[scheme] * dt / RK4_REACH))
        left = residual(scheme, count)
        while count < _MOST and (finer := residual(scheme, 2 * count)) < _WORTH * left:
            count, left = 2 * count, finer
        tried[scheme] = count, left
    least = min(left for _, left in tried.values())
    # In harmonics, where the tables are constants, a substep of either costs the same.
    cost = {scheme: count for scheme, (count, left) in tried.items() if left <= least / _WORTH}
    scheme = min(cost, key=lambda name: cost[name]) if cost else "rk4"
    count, left = tried[scheme]
    reasons = (
        reason,
        f"substeps: {count} of {scheme.upper()} for a step of {dt:g}; the physics alone is then "
        f"off by {left:.1e} standard deviations after one step, and twice as many leave more than "
        f"{_WORTH:g} of that",
    )
    chosen = replace(numerics, integrator=scheme, substeps=count)
    return Tuned(chosen, reasons, held, 0.0, 0.0, left, radius[scheme] * dt / count)


def _all_of(
    points: tuple[int, ...], equation: Equation, domain: Domain, layout: Layout, space: str
) -> tuple[Numerics, tuple[int, ...], str]:
    """Numerics that keep all that a grid of so many points tells apart, how much that is along each
    axis, and the same in words."""
    across = " x ".join(map(str, points))
    if not domain.all_periodic:
        assert not isinstance(layout, Points)  # a shape has no coarser grid
        grid = Grid(points, domain.lengths, domain.origin, layout)
        anchors = most_anchors(equation, domain, grid)
        many = " x ".join(map(str, anchors))
        said = f"anchors: {many}, all that {across} points tell apart (around a ring: waves)"
        return Numerics("none", (), 0.0, anchors, 1), anchors, said
    band = tuple((n - 1) // 2 for n in points)
    cutoffs = tuple(b / length for b, length in zip(band, domain.lengths, strict=True))
    modes = " x ".join(map(str, band))
    said = f"band: all modes that {across} points tell apart, up to {modes}"
    return Numerics("box", cutoffs, 0.0, points, 1, jets="spectral", space=space), band, said

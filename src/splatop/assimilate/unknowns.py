"""What is looked for, as numbers that are standard normal before anything was measured: the state
at the first frame in the harmonics of its domain, coefficients, and what the model gets wrong."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..grid import Grid
from ..points import Points
from ..spaces import Sampling, Space
from ..spectral import Field
from ..walls.galerkin import Galerkin
from .model_error import Increments

# Before anything was measured an unknown coefficient is known to this factor, one standard
# deviation.
COEFFICIENT_FACTOR = 10.0
# Numbers of the state whose prior standard deviations together are below this share of it are held.
_NEGLIGIBLE = 1e-5
# More numbers than the first are rounded up to a multiple of the second, so that windows whose
# priors differ a little share compiled programs.
_ROUNDED = (512, 64)
# Groups of like wavelength that the preconditioner tells apart, and of increments by their time.
_SHELLS, _TIMES = 10, 3


@dataclass(frozen=True, eq=False)
class Prior:
    """Mean and standard deviation of each number of a state in its space, `(C, *R)`."""

    mean: Float[np.ndarray, "C *R"]
    std: Float[np.ndarray, "C *R"]
    source: str  # in words
    fitted: bool = False  # to the reports of single times: its strength is corrected by the window

    def scaled(self, factor: float) -> "Prior":
        return replace(self, std=factor * self.std)

    def size(self) -> float:
        """The standard deviation of the field at a point, over all fields."""
        return float(np.sqrt(np.sum(self.std**2) / len(self.std)))


class Unknowns(eqx.Module):
    """Whitened unknowns `x`, `(m + p + w,)`: m numbers of the state, then p coefficients, then w of
    the increments that make up for the model's `errors`, if it has any.

    A number of the state is `mean + std x`; a coefficient is `start exp(spread x)` and so keeps its
    sign.
    """

    space: Space
    grid: Grid | Points = eqx.field(static=True)
    scheme: Galerkin | None
    mean: Float[Array, "C *R"]
    std: Float[Array, " m"]
    index: Array  # of the numbers that are looked for, among all of them
    start: dict[str, Array]  # all coefficients
    names: tuple[str, ...] = eqx.field(static=True)  # of the unknown ones
    spread: Float[Array, " p"]
    shell: Array  # of each number looked for: those of like wavelength
    shells: int = eqx.field(static=True)
    signs: Float[Array, " m"]  # random
    errors: Increments | None = None

    @property
    def along(self) -> Sampling:
        """Where the samples of a state lie."""
        return self.space.sampled(self.grid.points, self.grid.layout)

    @property
    def numbers_count(self) -> int:
        return len(self.std)

    @property
    def known_count(self) -> int:
        """Of the state and the coefficients together, which come before the increments."""
        return len(self.std) + len(self.names)

    @property
    def size(self) -> int:
        return self.known_count + (0 if self.errors is None else self.errors.size)

    def coefficients(self, x: Array) -> dict[str, Any]:
        values: dict[str, Any] = dict(self.start)
        own = x[self.numbers_count : self.known_count]
        for name, spread, one in zip(self.names, self.spread, own, strict=True):
            values[name] = self.start[name] * jnp.exp(spread * one)
        return values

    def increments(self, x: Array, steps: int, later: Array | None = None) -> Array | None:
        """What is added after each of so many steps, as numbers; None for an exact model."""
        if self.errors is None or steps == 0:
            return None
        return self.errors.course(x[self.known_count :], steps, later)

    def added(self, increment: Float[Array, " k"]) -> Field:
        """One of the increments at the points of the grid."""
        assert self.errors is not None
        flat = jnp.zeros(self.mean.size).at[self.errors.index].set(increment)
        return self.space.evaluate(flat.reshape(self.mean.shape), self.along)

    def numbers(self, x: Array) -> Float[Array, "C *R"]:
        """Of the state, in its space."""
        flat = self.mean.ravel().at[self.index].add(self.std * x[: self.numbers_count])
        return flat.reshape(self.mean.shape)

    def state(self, x: Array) -> Field:
        """The state at the points of the grid."""
        return self.field(self.numbers(x), self.coefficients(x))

    def field(self, numbers: Float[Array, "C *R"], coefficients: Mapping[str, Any]) -> Field:
        along = self.along
        if self.scheme is None:
            return self.space.evaluate(numbers, along)
        return self.scheme.leave(numbers, along, self.scheme.lifted(coefficients))

    def numbers_of(self, u: Field, coefficients: Mapping[str, Any]) -> Float[Array, "C *R"]:
        """The numbers of the state closest to samples on the grid."""
        along = self.along
        if self.scheme is None:
            return self.space.fit(u, along)
        return self.scheme.enter(u, along, self.scheme.lifted(coefficients))

    def shifted(self, shift: np.ndarray) -> "Unknowns":
        """The same unknowns, counted from others: `shifted(a)` at x is this at `a + x`."""
        a = jnp.asarray(shift, jnp.float32)
        moved = self.coefficients(a)
        made = eqx.tree_at(
            lambda u: (u.mean, u.start),
            self,
            (self.numbers(a), {name: moved[name] for name in self.start}),
        )
        if self.errors is None:
            return made
        own = self.errors.shift + a[self.known_count :].reshape(self.errors.shift.shape)
        return eqx.tree_at(lambda u: u.errors.shift, made, own)

    def sensitivity(self, tangent: Callable[[Array], Array]) -> Float[Array, " s"]:
        """About the diagonal of `JᵀJ` of a linear map J of the unknowns, which preconditions.

        Of the numbers of a state it is averaged over those of like wavelength, by one random
        combination of each kind, and so of increments about as late; of coefficients it is exact.
        """
        groups, std, signs = [self.shell], [self.std], [self.signs]
        groups.append(self.shells + jnp.arange(len(self.names)))
        kinds = self.shells + len(self.names)
        std.append(jnp.ones(len(self.names)))
        signs.append(jnp.ones(len(self.names)))
        if self.errors is not None:
            everyone = jnp.zeros(self.mean.size, int).at[self.index].set(self.shell)
            own, several = self.errors.groups(everyone, self.shells, _TIMES)
            groups.append(kinds + own)
            kinds += several
            std.append(jnp.tile(self.errors.std, self.errors.steps))
            signs.append(jnp.resize(self.signs, (self.errors.size,)))
        group, scale, sign = (jnp.concatenate(parts) for parts in (groups, std, signs))

        def power(kind):
            return jnp.sum(tangent(jnp.where(group == kind, sign, 0.0)) ** 2)

        powers = jax.lax.map(power, jnp.arange(kinds))
        whole = jax.ops.segment_sum(scale**2, group, kinds)
        return scale**2 * (powers / jnp.maximum(whole, 1e-30))[group]


def make_unknowns(
    prior: Prior,
    *,
    space: Space,
    grid: Grid | Points,
    scheme: Galerkin | None,
    coefficients: Mapping[str, float],
    unknown: Mapping[str, float],
    errors: Increments | None = None,
) -> Unknowns:
    """`unknown` holds for each unknown coefficient the factor that it is known to."""
    flat = prior.std.ravel()
    order = np.argsort(-flat)
    left = np.cumsum((flat[order] ** 2)[::-1])[::-1]
    count = int(np.sum((left > (_NEGLIGIBLE**2) * left[0]) & (flat[order] > 0)))
    if count > _ROUNDED[0]:
        count = min(-(-count // _ROUNDED[1]) * _ROUNDED[1], int(np.sum(flat > 0)))
    kept = np.sort(order[:count])
    energy = np.sqrt(space.energies()).ravel()[kept]
    edges = np.unique(np.quantile(energy, np.linspace(0, 1, _SHELLS + 1)[1:-1]))
    shell = np.unique(np.searchsorted(edges, energy), return_inverse=True)[1].reshape(-1)
    return Unknowns(
        space=space,
        grid=grid,
        scheme=scheme,
        mean=jnp.asarray(prior.mean, jnp.float32),
        std=jnp.asarray(flat[kept], jnp.float32),
        index=jnp.asarray(kept),
        start={name: jnp.asarray(value, jnp.float32) for name, value in coefficients.items()},
        names=tuple(unknown),
        spread=jnp.asarray([np.log(factor) for factor in unknown.values()], jnp.float32),
        shell=jnp.asarray(shell),
        shells=int(shell.max()) + 1,
        signs=jnp.asarray(np.random.default_rng(0).choice((-1.0, 1.0), len(kept)), jnp.float32),
        errors=errors,
    )

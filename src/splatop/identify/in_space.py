"""Frames between walls, or on a shape, as numbers of a space that obeys their conditions.

Noise is white at the samples, not in the numbers: a fit gathers it at walls. Residuals are
therefore weighed by the triangle of a QR decomposition of the samples of the space's functions,
in which least squares are those of the samples.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..derivative import Derivative
from ..equation import Equation
from ..stepper import TIME, Coefficients, later
from ..walls import Galerkin
from .followed import Advance, Derived, Followed, as_precise
from .in_harmonics import HEARD, Harmonics
from .noise import Spectrum
from .reduced import times_seen

_ALWAYS: Coefficients = {}
# Directions of a state that samples tell this much less of than of others are not told of at all.
_RCOND = 1e-6
# How closely a first guess of a state is solved for.
_CLOSE, _MOST = 1e-3, 200


class InSpace(Followed):
    """Frames as numbers of a space.

    `roots` make noise of samples white, one matrix for each axis of numbers; `gain` `(C, *R)` is
    the variance of each number of a fit to samples of unit variance, and `shell` its wavenumber in
    units of the highest that is heard.
    """

    states: np.ndarray
    times: np.ndarray
    weights: np.ndarray
    scheme: Galerkin
    roots: tuple[np.ndarray, ...]
    gain: np.ndarray
    shell: np.ndarray
    driving: np.ndarray | None = None
    inputs: tuple[str, ...] = eqx.field(static=True, default=())
    intervals: np.ndarray | None = None
    restraint: np.ndarray | None = None

    @property
    def freedom(self) -> int:
        return int(np.sum(self.multiplicity))

    @property
    def directions(self) -> float:
        # Their preconditioner is close to the inverse: tens of iterations, each a step forth and
        # one back.
        return 256.0

    @property
    def dims(self) -> int:
        return self.scheme.space.dims

    @property
    def waves(self) -> int:
        return 0

    @property
    def multiplicity(self) -> np.ndarray:
        return (np.asarray(self.gain) > 0).astype(float)

    def modes(self, states: np.ndarray) -> np.ndarray:
        return states

    def smoothed(self, states: np.ndarray) -> np.ndarray:
        """What is closest at the samples. Numbers of noise at a wall cancel each other there: made
        smaller one by one, they would not."""
        return np.asarray(_smoothed(self, jnp.asarray(states)))

    def rows(self, weighed: np.ndarray) -> np.ndarray:
        return weighed

    def shells(self, spectrum: Spectrum) -> np.ndarray:
        return self.shell

    def carried(self, spectrum: Spectrum) -> np.ndarray:
        return self.shell <= 1

    def floor(self, spectrum: Spectrum) -> np.ndarray:
        return np.square(spectrum.noise).reshape(-1, *(1,) * len(self.roots)) * self.gain

    def noise_energy(self, spectrum: Spectrum) -> np.ndarray:
        return np.square(spectrum.noise * self.weights)

    def weigh(self, states: Any) -> Any:
        return _by_axis(states, self.roots) * self.weights.reshape(-1, *(1,) * len(self.roots))

    def basis(self) -> np.ndarray:
        """Each number by itself."""
        shape = self.gain.shape
        return np.eye(int(np.prod(shape))).reshape(-1, *shape)[np.asarray(self.gain).ravel() > 0]

    def confined(self, states: Array) -> Array:
        return states

    def held(self, states: Array) -> Array:
        assert self.restraint is not None
        deviation = jnp.sqrt(jnp.where(self.gain > 0, self.gain, 1.0))
        each = self.restraint * self.weights.reshape(-1, *(1,) * len(self.roots)) / deviation
        return states * each

    def propagator(
        self, equation: Equation, coefficients: Coefficients, dt: float, substeps: int | Array
    ) -> Advance:
        scheme, step = self.scheme, dt / substeps
        tables = scheme.tables(step, coefficients)
        fixed = None if scheme.moving else scheme.lifted(coefficients)

        def advance(c: Array, now: Coefficients = _ALWAYS) -> Array:
            factors, begin, lift = as_precise(c, (tables, {**coefficients, **now}, fixed))

            def one(n: Array, c: Array) -> Array:
                found = scheme.exponential_step(c, factors, later(begin, n * step), lift, step)
                return found.astype(c.dtype)

            return jax.lax.fori_loop(0, substeps, one, c)

        return advance

    def seen(self, coefficients: Coefficients, dt: float) -> Array:
        return times_seen(
            jnp.asarray(self.scheme.tables(dt, coefficients)[0]), jnp.arange(self.states.shape[1])
        )

    def frames_seen(self, coefficients: Coefficients, dt: float) -> np.ndarray:
        return np.asarray(self.seen(coefficients, dt))

    def preconditioner(self, coefficients: Coefficients, dt: float) -> Callable[[Array], Array]:
        return self._preconditioner(self.seen(coefficients, dt))

    def _preconditioner(self, seen: Any) -> Callable[[Array], Array]:
        inverses = [jnp.linalg.pinv(root, rtol=_RCOND) for root in self.roots]
        transposed = [jnp.swapaxes(one, -1, -2) for one in inverses]
        held = 0.0 if self.restraint is None else jnp.square(self.restraint)
        size = jnp.sqrt(seen + held)
        size = size * self.weights.reshape(-1, *(1,) * len(self.roots))

        def precondition(change: Array) -> Array:
            return _by_axis(_by_axis(change / size, transposed), inverses) / size

        return precondition

    def derived(
        self, states: np.ndarray, coefficients: Coefficients, wanted: set[tuple[int, int]]
    ) -> Derived:
        frames = jnp.asarray(states), jnp.asarray(self.times)
        order = {one: _along(*one, dims=self.dims) for one in sorted(wanted)}
        found = _derivatives(self.scheme, frames, coefficients, tuple(order.values()))
        return {one: np.asarray(values) for one, values in zip(order, found, strict=True)}

    def project(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(_projected(self.scheme, jnp.asarray(values)))


@eqx.filter_jit
def _smoothed(space: InSpace, states: Array) -> Array:
    def rows(states: Array) -> tuple[Array, Array]:
        return space.weigh(states), space.held(states)

    back = jax.linear_transpose(rows, states)
    wanted = back((space.weigh(states), jnp.zeros_like(states)))[0]
    precondition = space._preconditioner(1.0)
    return jax.scipy.sparse.linalg.cg(
        lambda c: back(rows(c))[0], wanted, M=jax.vmap(precondition), tol=_CLOSE, maxiter=_MOST
    )[0]


def _along(axis: int, order: int, *, dims: int) -> Derivative:
    return Derivative(((tuple(order if i == axis else 0 for i in range(dims)), 1.0),))


@eqx.filter_jit
def _derivatives(
    scheme: Galerkin, frames: Any, coefficients: Coefficients, wanted: tuple[Derivative, ...]
) -> list[Array]:
    """Derivatives of frames at the working points, with what is set at the edges."""

    def at(c: Array, t: Array) -> list[Array]:
        jet = scheme.jet(c, wanted, scheme.lifted({**coefficients, TIME: t}))
        return [jet[one] for one in wanted]

    return jax.lax.map(lambda piece: jax.vmap(at)(*piece), frames)


@eqx.filter_jit
def _projected(scheme: Galerkin, values: Array) -> Array:
    return jax.lax.map(jax.vmap(scheme.space.project), values)


def in_space(held: Harmonics) -> InSpace:
    """The frames of a trajectory in the space that holds them."""
    space = held.scheme.space
    wavenumber = np.sqrt(np.maximum(space.energies(), 0.0))
    loud = np.sqrt(np.mean(np.square(np.asarray(held.numbers)), axis=(0, 1)))
    reach = np.max(wavenumber, where=loud > HEARD * held.deviation, initial=1e-300)
    scale = np.maximum(held.sizes, 1e-300)
    return InSpace(
        states=np.asarray(held.numbers),
        times=np.asarray(held.times),
        weights=1 / np.where(held.sizes > 0, scale, 1.0),
        scheme=held.scheme,
        roots=space.roots(held.along),
        gain=np.broadcast_to(space.gain(held.along), wavenumber.shape),
        shell=wavenumber / reach,
    )


def _by_axis(states: Any, matrices: Any) -> Any:
    """A matrix for each of the last axes of states `(..., C, *R)`, or one for each channel."""
    dims = len(matrices)
    for axis, matrix in enumerate(matrices, start=-dims):
        moved, turned = states.swapaxes(axis, -1), matrix.swapaxes(-1, -2)
        if matrix.ndim == 3:
            turned = turned.reshape(len(matrix), *(1,) * (dims - 1), *turned.shape[1:])
            states = (moved[..., None, :] @ turned)[..., 0, :].swapaxes(axis, -1)
        else:
            states = (moved @ turned).swapaxes(axis, -1)
    return states

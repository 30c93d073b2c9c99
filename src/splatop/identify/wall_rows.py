"""What an equation leaves of frames between walls, row by row: projected onto the harmonics that
are heard, integrated against bumps in time."""

from collections.abc import Sequence
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..errors import SplatopError
from ..stepper import TIME
from ..walls import Galerkin
from .bumps import test_function
from .in_harmonics import HEARD, Harmonics

# Half the frames of a bump in time.
_SHORTEST, _LONGEST = 3, 16
# What clean frames in single precision and the quadrature in time leave, relative to the change.
FLOOR = 1e-6
# Noise below this share of the fields is rounding.
_CLEAN = 1e-4
# The amplitude of a harmonic, with its noise, in units of that, from which it takes part in
# products; and from which fewer do.
_KEPT, _FEWER = 1.1, 1.6


class Rows:
    """One row for each piece, bump and harmonic that is heard: what the equation leaves there, in
    all frames, or in every other one from the `first` on."""

    def __init__(self, held: Harmonics, dt: float, every: int = 1, first: int = 0):
        self.held, self.dt = held, every * dt
        length = held.numbers.shape[1] // every
        self.frames = slice(first, first + every * length, every)
        loud = np.sqrt(np.mean(np.square(np.asarray(held.numbers)), axis=(0, 1)))
        self.heard = loud > HEARD * held.deviation
        # Products of noise with noise, which a fit gathers at walls, are larger than what harmonics
        # add to them that are noise for the most part.
        self.noisy = held.relative_noise > _CLEAN and not held.unresolved
        self.kept, self.fewer = (
            loud > (least if self.noisy else 0.0) * held.deviation for least in (_KEPT, _FEWER)
        )
        if not self.heard.any():
            raise SplatopError(
                "expected fields that stand out from their noise, got none: the frames are noise, "
                "or constant"
            )
        half = int(np.clip((length - 1) // 4, _SHORTEST, _LONGEST))
        stride = max(1, half // 2)
        self.starts = np.arange(0, length - 2 * half, stride)
        self.overlap = 2 * half / stride  # bumps that one frame is in
        self.bump, self.slope = test_function(half, self.dt)
        self.change = np.asarray(-self._against(held.numbers[:, self.frames], self.slope))
        # What is left of clean frames is an error of the quadrature, and as large as the change is.
        self.floor = FLOOR * np.sqrt(np.mean(self.change[:, :, self.heard] ** 2))
        variance = held.deviation**2 * np.sum(self.slope**2)
        self.weight = np.diag(1 / np.sqrt(variance[self.heard] + self.floor**2))

    def weigh(self, added: np.ndarray) -> None:
        """Rows weighed by what noise adds to them, `(draws, rows, harmonics)`.

        Noise that gathers at a wall is heard in all harmonics at once: what they have in common is
        weighed less than what tells them apart. The fewer the draws for the harmonics, the less
        is made of what they seem to have in common.
        """
        flat = added.reshape(-1, added.shape[-1])
        draws, harmonics = len(flat) / self.overlap, flat.shape[1]
        together = flat.T @ flat / len(flat)
        alone = harmonics / (harmonics + draws)
        np.fill_diagonal(together, np.diag(together) / (1 - alone))
        noise = (1 - alone) * together + self.floor**2 * np.eye(harmonics)
        values, vectors = np.linalg.eigh(noise)
        weight = vectors / np.sqrt(values)
        self.weight = weight / np.sqrt(np.mean((flat @ weight) ** 2))

    def _against(self, values, weights: np.ndarray):
        """Integrals of `(pieces, T, ...)` against bumps: `(pieces, bumps, ...)`."""
        parts = [
            jnp.tensordot(jnp.asarray(weights), values[:, s : s + len(weights)], axes=(0, 1))
            for s in self.starts
        ]
        return jnp.stack(parts, axis=1)

    def rest(self, scheme: Galerkin, kept, numbers, coefficients) -> jax.Array:
        """What the equation leaves, `(rows, harmonics)`, of the numbers of all frames, with
        products of those `kept`."""
        fixed = None if scheme.moving else scheme.lifted(coefficients)

        def rate(at):
            c, t = at
            now = {**coefficients, **self.held.drive, TIME: t}
            lifted = scheme.lifted(now) if scheme.moving else fixed
            return scheme.tendency(c, now, lifted)

        numbers, times = numbers[:, self.frames], self.held.times[:, self.frames]
        flat = (numbers * kept).reshape(-1, *numbers.shape[2:])
        rates = jax.lax.map(rate, (flat, times.reshape(-1)))
        rest = -self._against(numbers, self.slope) - self._against(
            rates.reshape(numbers.shape), self.bump
        )
        return rest[:, :, self.heard].reshape(-1, int(self.heard.sum()))


def evaluated(parts: Sequence[Rows], names: tuple[str, ...], known: dict[str, float]):
    """What the equation leaves at x of numbers, its derivatives, and what these are tested
    against, compiled: `(x, numbers)` for what is kept.

    Noise in a derivative makes least squares take it for smaller than it is. Of two parts each is
    tested against the derivatives of the other, whose noise is another.
    """

    @eqx.filter_jit
    def all_of(scheme, kept, x, numbers):
        def left(x):
            given = {**known, **dict(zip(names, x, strict=True))}
            return [rows.rest(scheme, kept, numbers, given) for rows in parts]

        rests, slopes = left(x), jax.jacfwd(left)(x)
        return tuple(jnp.concatenate(one) for one in (rests, slopes, slopes[::-1]))

    # The matrices of a shape are arguments: as constants they take minutes to compile.
    return lambda kept: partial(all_of, parts[0].held.scheme, jnp.asarray(kept))

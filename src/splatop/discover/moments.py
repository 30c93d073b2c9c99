"""Inner products of all candidates in the weak form, from one pass over the frames.

In space the test functions are the Fourier modes of the data's band, in time bells of several
widths. What is kept are Gram matrices, for each block of time and each shell of modes: any choice
of candidates, weights or blocks can then be tried without the data.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..data import Trajectories
from ..equation import Equation
from ..equation.expression import Expression, FieldDerivative, atoms
from ..equation.values import field_value
from ..grid import Grid
from ..identify.noise import Spectrum, measure, project
from ..jets import SpectralJets
from ..spectral import BoxFilter
from ..stepper import Coefficients
from .bells import bells, usable_halves

SHELLS = 16
BLOCKS = 12
# Values of columns that are computed in all.
_MOST = 6e8
# Values of all columns in one frame, and what may be left out of clean data to keep below that.
_PER_FRAME = 6e6
_TAILS = (1e-6, 1e-5, 1e-4, 1e-3)
_LEAST_BAND = 4
# Relative noise below which its share need not be known well.
_QUIET = 1e-5


@dataclass(frozen=True)
class Moments:
    """Gram matrices `(B, K, q, q)` of blocks and shells, the expected share `(K, q, q)` of noise in
    their sum over blocks, and how many independent real numbers `(B, K)` went into each.

    The q columns are the basis products, then `∂u/∂t` of each field, then its known terms.
    """

    gram: np.ndarray
    noise: np.ndarray
    rows: np.ndarray
    half: int


@dataclass(frozen=True)
class Frames:
    """Pieces of trajectories inside their common band. `states` are `(S, L, C, *M)`."""

    states: np.ndarray
    owner: np.ndarray  # the trajectory of each piece
    grid: Grid
    band: tuple[int, ...]
    spectrum: Spectrum
    noise: np.ndarray  # deviation of noise on the grid's points, per channel
    dt: float


def gather(
    data: Trajectories, begin: np.ndarray, length: int, degree: int, columns: int = 1
) -> Frames:
    """The frames inside the band of all of them, on a grid that holds products without aliasing.

    So many columns must fit on it: where the band of clean data is too wide for that, what lies in
    its tail is left out.
    """
    owner = np.repeat(np.arange(data.trajectories), len(begin))
    places = np.array([[i, s] for i in range(data.trajectories) for s in begin])
    pieces = [data.windows(places[owner == i], length) for i in range(data.trajectories)]
    for tail in _TAILS:
        spectra = [measure(piece.astype(np.float64), tail=tail) for piece in pieces]
        band = tuple(int(b) for b in np.max([s.band for s in spectra], axis=0))
        points = tuple(_even((degree + 1) * b + 2) for b in band)
        if columns * math.prod(points) <= _PER_FRAME:
            break
    while columns * math.prod(points) > _PER_FRAME and max(band) > _LEAST_BAND:
        band = tuple(max(_LEAST_BAND, int(0.9 * b)) for b in band)
        points = tuple(_even((degree + 1) * b + 2) for b in band)
    states = np.concatenate([project(p.astype(np.float64), band, points) for p in pieces])
    loudest = spectra[int(np.argmax([s.relative_noise for s in spectra]))]
    size = np.sqrt(np.mean(states**2, axis=(0, 1, *range(3, states.ndim))))
    noise = np.sqrt(np.mean([np.square(s.noise) for s in spectra], axis=0))
    noise = np.maximum(noise, np.finfo(np.float32).eps * size / 4)
    ratio = math.sqrt(math.prod(points) / math.prod(data.grid.points))
    grid = Grid(points, data.grid.lengths, data.grid.origin)
    return Frames(states, owner, grid, band, loudest, noise * ratio, data.dt)


def _even(n: int) -> int:
    """An even number that FFTs like, not below n."""
    while True:
        rest = n
        for factor in (2, 3, 5):
            while rest % factor == 0:
                rest //= factor
        if rest == 1 and n % 2 == 0:
            return n
        n += 1


class _Columns(eqx.Module):
    """States to the modes of all columns."""

    jets: SpectralJets
    known: Equation | None
    expressions: tuple[Expression, ...] = eqx.field(static=True)
    fields: tuple[str, ...] = eqx.field(static=True)
    band: tuple[int, ...] = eqx.field(static=True)

    @eqx.filter_jit
    def __call__(self, states: Array, order: Array, weights: Array, coefficients) -> Array:
        """`(F, C, *M)` to `(F, p + 2C, 2 modes)`: products, states and known terms, the real and
        imaginary parts of their modes in this order, times the weights."""

        def one(u: Array) -> Array:
            modes = self._modes(u, coefficients)[:, order] * weights
            return jnp.stack([modes.real, modes.imag], axis=-1).reshape(len(modes), -1)

        return jax.lax.map(one, states)

    def _modes(self, u: Array, coefficients: Coefficients) -> Array:
        dims = u.ndim - 1
        plain, others = _plain_products(self.expressions)
        atoms_used = tuple(dict.fromkeys(a for product in plain.values() for a in product))
        wanted = {
            atom.operator
            for atom in (*atoms_used, *(a for i in others for a in atoms(self.expressions[i])))
            if isinstance(atom, FieldDerivative) and not atom.is_value
        }
        if self.known is not None:
            wanted |= self.known.derivatives(dims)
        jet = self.jets(u, sorted(wanted))
        # One gather and product for all of them compiles in a fraction of the time of each.
        values = [
            (u if atom.is_value else jet[atom.operator])[self.fields.index(atom.field)]
            for atom in atoms_used
        ]
        held = jnp.stack([jnp.ones_like(u[0]), *values])
        place = {atom: i for i, atom in enumerate(atoms_used, start=1)}
        factors = max((len(product) for product in plain.values()), default=0)
        index = np.zeros((factors, len(self.expressions)), int)
        for column, product in plain.items():
            index[: len(product), column] = [place[atom] for atom in product]
        columns = jnp.ones((len(self.expressions), *u.shape[1:]), u.dtype)
        for row in index:
            columns = columns * held[row]
        for i in others:
            side = field_value(self.expressions[i], jet, fields=self.fields, coefficients={})
            columns = columns.at[i].set(side)
        known = jnp.zeros_like(u) if self.known is None else self.known(jet, coefficients)
        columns = jnp.concatenate([columns, u, known])
        modes = jnp.fft.rfftn(columns, axes=range(1, dims + 1), norm="forward")
        for axis, b in enumerate(self.band, start=1):
            last = modes.shape[axis]
            kept = np.arange(b + 1)
            if axis < dims:
                kept = np.concatenate([kept, np.arange(last - b, last)])
            modes = jnp.take(modes, kept, axis=axis)
        return modes.reshape(len(columns), -1)


def _plain_products(
    expressions: tuple[Expression, ...],
) -> tuple[dict[int, tuple[FieldDerivative, ...]], list[int]]:
    """Expressions that are products of fields and derivatives, as their factors; the others."""
    plain, others = {}, []
    for i, side in enumerate(expressions):
        ((monomial, number),) = side.monomials
        simple = number == 1 and all(
            isinstance(a, FieldDerivative) and isinstance(e, int) and e > 0 for a, e in monomial
        )
        if simple:
            plain[i] = tuple(a for a, e in monomial for _ in range(int(e)))
        else:
            others.append(i)
    return plain, others


def accumulate(
    frames: Frames,
    basis: Sequence[Expression],
    *,
    fields: tuple[str, ...],
    known: Equation | None,
    coefficients: Coefficients,
    progress: Callable[[int, int], None] | None = None,
) -> list[Moments]:
    """Moments for each width of the bells, narrow to wide. Runs in double precision."""
    with jax.enable_x64(True):
        return _accumulate(
            frames, tuple(basis), fields, known, coefficients, progress or (lambda *_: None)
        )


def _accumulate(frames, basis, fields, known, coefficients, progress):
    lengths = frames.grid.lengths
    cutoffs = tuple(b / side for b, side in zip(frames.band, lengths, strict=True))
    if known is not None:
        known = known.placed_at(frames.grid.origin)
    columns = _Columns(SpectralJets(lengths, BoxFilter(cutoffs)), known, basis, fields, frames.band)
    pieces, length, channels = frames.states.shape[:3]
    tests = {half: bells(length, half) for half in usable_halves(length, len(frames.band))}
    order, weights, edges = _shells(frames.band)
    q = len(basis) + 2 * channels
    groups = _blocks(frames.owner, length)
    count = max(group for group, _, _ in groups) + 1
    held = {
        half: [np.zeros((count, SHELLS, q, q)), np.zeros((SHELLS, q, q)), np.zeros((count, SHELLS))]
        for half in tests
    }
    generator = np.random.default_rng(0)
    deviation = frames.noise.reshape(-1, *(1,) * len(frames.band))
    # Noise at the level of rounding matters little: some pieces tell how much.
    quiet = frames.spectrum.relative_noise < _QUIET
    shaken = set(range(0, pieces, max(1, pieces // 4))) if quiet else set(range(pieces))
    freedom = np.array([np.sum(weights[a:b] ** 2) for a, b in pairwise(edges)])

    def modes(states: np.ndarray) -> np.ndarray:
        at = jnp.asarray(order), jnp.asarray(weights)
        found = columns(jnp.asarray(states), *at, coefficients)
        return np.asarray(found)

    for piece, states in enumerate(frames.states):
        clean = modes(states)
        moved = None
        if piece in shaken:
            speck = deviation * generator.standard_normal(states.shape)
            moved = modes(states + project(speck, frames.band, frames.grid.points)) - clean
        for half, (a, b, overlap) in tests.items():
            gram, noise, rows = held[half]
            own = _tested(clean, a, b / frames.dt, channels)
            for group, at, share in groups:
                if at == piece:
                    chosen = slice(int(share[0] * len(a)), int(share[1] * len(a)))
                    gram[group] += _grams(own[:, chosen], edges)
                    rows[group] += (chosen.stop - chosen.start) * freedom / overlap
            if moved is not None:
                shake = _grams(_tested(moved, a, b / frames.dt, channels), edges)
                noise += shake * (pieces / len(shaken))
        progress(piece + 1, pieces)
    return [Moments(gram, noise, rows, half) for half, (gram, noise, rows) in held.items()]


def _blocks(owner: np.ndarray, length: int) -> list[tuple[int, int, tuple[float, float]]]:
    """(block, piece, from which share of its windows to which)."""
    pieces = len(owner)
    if pieces >= BLOCKS:
        return [(i * BLOCKS // pieces, i, (0.0, 1.0)) for i in range(pieces)]
    each = min(-(-BLOCKS // pieces), max(1, length // 8))
    return [
        (i * each + j, i, (j / each, (j + 1) / each)) for i in range(pieces) for j in range(each)
    ]


def _shells(band: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An order of the modes by their distance from 0, the root of how many real numbers each
    stands for, in that order, and where the shells begin and end."""
    full = [np.concatenate([np.arange(b + 1), np.arange(-b, 0)]) for b in band[:-1]]
    modes = np.meshgrid(*full, np.arange(band[-1] + 1), indexing="ij")
    radius = np.sqrt(sum((k / b) ** 2 for k, b in zip(modes, band, strict=True))).ravel()
    order = np.argsort(radius, kind="stable")
    limits = np.linspace(0, radius.max() * (1 + 1e-9), SHELLS + 1)
    edges = np.searchsorted(radius[order], limits)
    weights = np.sqrt(np.where(modes[-1].ravel() == 0, 1.0, 2.0))[order]
    return order, weights, edges


def _tested(modes: np.ndarray, a: np.ndarray, b: np.ndarray, channels: int) -> np.ndarray:
    """Columns `(L, q, n)` integrated against the bells, `(q, windows, n)`; states become rates."""
    length, q, n = modes.shape
    first = q - 2 * channels
    tested = (a @ modes.reshape(length, -1)).reshape(-1, q, n)
    states = modes[:, first : first + channels].reshape(length, -1)
    tested[:, first : first + channels] = (b @ states).reshape(-1, channels, n)
    return np.ascontiguousarray(tested.transpose(1, 0, 2))


def _grams(columns: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Inner products of columns `(q, W, 2 modes)` over windows, for each shell of modes."""
    q = len(columns)
    found = np.zeros((len(edges) - 1, q, q))
    for shell, (first, last) in enumerate(pairwise(2 * edges)):
        flat = columns[:, :, first:last].reshape(q, -1)
        found[shell] = flat @ flat.T
    return found


def most_frames(grid_points: int, columns: int) -> int:
    """How many frames a pass over them may take."""
    return max(24, int(_MOST / (grid_points * columns)))

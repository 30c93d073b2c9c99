"""Inner products of all candidates in the weak form, from one pass over the frames.

In space the test functions are modes of the data (`modes.py`), in time bells of several widths.
What is kept are Gram matrices, for each block of time and each shell of modes: any choice of
candidates, weights or blocks can then be tried without the data.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jaxtyping import Array

from ..equation import Equation
from ..equation.expression import Expression, FieldDerivative, atoms
from ..equation.values import field_value
from ..stepper import Coefficients
from .bells import bells, usable_halves
from .gather import Gathered
from .modes import SHELLS, Modes

BLOCKS = 12
# Values of columns that are computed in all.
_MOST = 6e8
# Relative noise below which its share need not be known well.
_QUIET = 1e-5
# Radians from frame to frame beyond which a mode is taken for a slower one; and fewest frames of a
# piece that show it.
_FAST = 2.5
_SHOWING = 16
# Shells of which more turns fast tell nothing: what is taken for slow there is as often faster.
_TOO_FAST = 1e-3
# A shell is heard above so many times the energy of its noise.
_HEARD = 10.0


@dataclass(frozen=True)
class Moments:
    """Gram matrices `(B, K, q, q)` of blocks and shells, the expected share `(K, q, q)` of noise in
    their sum over blocks, and how many independent real numbers `(B, K)` went into each.

    The q columns are the basis products, then `∂u/∂t` of each field, then its known terms. `fast`
    is the share `(K,)` of the states' energy that turns too fast from frame to frame for a bell.
    """

    gram: np.ndarray
    noise: np.ndarray
    rows: np.ndarray
    fast: np.ndarray
    half: int


class _Columns(eqx.Module):
    """States to the inner products of all columns with the test functions."""

    modes: Modes
    known: Equation | None
    expressions: tuple[Expression, ...] = eqx.field(static=True)
    fields: tuple[str, ...] = eqx.field(static=True)

    @eqx.filter_jit
    def __call__(self, states: Array, coefficients) -> Array:
        """`(F, C, *M)` to `(F, p + 2C, n)`: products, states and known terms."""
        return jax.lax.map(lambda u: self._columns(u, coefficients), states)

    def _columns(self, state: Array, coefficients: Coefficients) -> Array:
        dims = self.modes.dims
        plain, others = _plain_products(self.expressions)
        atoms_used = tuple(dict.fromkeys(a for product in plain.values() for a in product))
        wanted = {
            atom.operator
            for atom in (*atoms_used, *(a for i in others for a in atoms(self.expressions[i])))
            if isinstance(atom, FieldDerivative) and not atom.is_value
        }
        if self.known is not None:
            wanted |= self.known.derivatives(dims)
        jet = self.modes.jet(state, sorted(wanted))
        u = jet.state
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
        known = jnp.zeros_like(u)  # inputs are given: nothing is known of their change
        if self.known is not None:
            told = self.known(jet, coefficients)
            known = known.at[: len(told)].set(told)
        columns = jnp.concatenate([columns, u, known])
        return self.modes.against(columns)


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
    frames: Gathered,
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
    if known is not None:
        known = known.placed_at(frames.origin)
    columns = _Columns(frames.modes, known, basis, fields)
    pieces, length, channels = frames.states.shape[:3]
    tests = {half: bells(length, half) for half in usable_halves(length, frames.modes.dims)}
    edges, freedom = np.array(frames.modes.edges), np.array(frames.modes.freedom)
    q = len(basis) + 2 * channels
    groups = _blocks(frames.owner, length)
    count = max(group for group, _, _ in groups) + 1
    held = {
        half: [np.zeros((count, SHELLS, q, q)), np.zeros((SHELLS, q, q)), np.zeros((count, SHELLS))]
        for half in tests
    }
    generator = np.random.default_rng(0)
    # Noise at the level of rounding matters little: some pieces tell how much.
    quiet = frames.spectrum.relative_noise < _QUIET
    shaken = set(range(0, pieces, max(1, pieces // 4))) if quiet else set(range(pieces))

    turning, shaking = np.zeros((2, channels, SHELLS, 2))
    own_states = slice(len(basis), len(basis) + channels)

    def modes(states: np.ndarray) -> np.ndarray:
        return np.asarray(columns(jnp.asarray(states), coefficients))

    for piece, states in enumerate(frames.states):
        clean = modes(states)
        moved = None
        if piece in shaken:
            speck = frames.noise * generator.standard_normal(states.shape)
            moved = modes(states + frames.modes.noise(speck)) - clean
            shaking += _turning(moved[:, own_states], edges) * (pieces / len(shaken))
        turning += _turning(clean[:, own_states], edges)
        for half, (a, b, overlap) in tests.items():
            gram, noise, rows = held[half]
            own = _tested(clean, a, b / frames.dt, channels)
            for group, at, share in groups:
                if at == piece:
                    chosen = slice(int(share[0] * len(a)), int(share[1] * len(a)))
                    gram[group] += _grams(own[chosen], edges)
                    rows[group] += (chosen.stop - chosen.start) * freedom / overlap
            if moved is not None:
                shake = _grams(_tested(moved, a, b / frames.dt, channels), edges)
                noise += shake * (pieces / len(shaken))
        progress(piece + 1, pieces)
    fast = _share_of_fast(turning, shaking)
    told = fast <= _TOO_FAST
    if not told[0]:  # the time step is too long for all of the data
        told[:] = True
    each = told[:, None, None]
    return [
        Moments(gram * each, noise * each, rows * told, fast, half)
        for half, (gram, noise, rows) in held.items()
    ]


def _turning(states: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Energy of states `(L, C, n)` in each shell, `(C, K, 2)`: of what turns fast, and of all."""
    length = len(states)
    if length < _SHOWING:
        return np.zeros((states.shape[1], len(edges) - 1, 2))
    taper = np.hanning(length).reshape(-1, 1, 1) ** 2
    energy = np.abs(np.fft.rfft(states * taper, axis=0)) ** 2
    quick = 2 * np.pi * np.arange(len(energy)) / length > _FAST
    both = np.stack([energy[quick].sum(axis=0), energy.sum(axis=0)], axis=-1)  # (C, n, 2)
    ends = np.concatenate([np.zeros_like(both[:, :1]), np.cumsum(both, axis=1)], axis=1)
    return np.diff(ends[:, edges], axis=1)


def _share_of_fast(turning: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """For each shell, of the field that has most; shells that are little more than noise do not
    tell. Beyond a shell that turns fast others turn faster still, though they may seem slow."""
    fast = np.maximum(turning[..., 0] - _HEARD * noise[..., 0], 0.0)
    whole = turning[..., 1]
    heard = whole > _HEARD * noise[..., 1]
    share = np.where(heard, fast / np.where(heard, whole, 1.0), 0.0).max(axis=0)
    return np.maximum.accumulate(np.minimum(share, 1.0))


def _blocks(owner: np.ndarray, length: int) -> list[tuple[int, int, tuple[float, float]]]:
    """(block, piece, from which share of its windows to which)."""
    pieces = len(owner)
    if pieces >= BLOCKS:
        return [(i * BLOCKS // pieces, i, (0.0, 1.0)) for i in range(pieces)]
    each = min(-(-BLOCKS // pieces), max(1, length // 8))
    return [
        (i * each + j, i, (j / each, (j + 1) / each)) for i in range(pieces) for j in range(each)
    ]


def _tested(modes: np.ndarray, a: np.ndarray, b: np.ndarray, channels: int) -> np.ndarray:
    """Columns `(L, q, n)` integrated against the bells, `(windows, q, n)`; states become rates."""
    length, q, n = modes.shape
    first = q - 2 * channels
    # A bell touches few of the frames.
    tested = (scipy.sparse.csr_array(a) @ modes.reshape(length, -1)).reshape(-1, q, n)
    states = modes[:, first : first + channels].reshape(length, -1)
    tested[:, first : first + channels] = (b @ states).reshape(-1, channels, n)
    return tested


def _grams(columns: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Inner products of columns `(W, q, n)` over windows, for each shell of functions."""
    q = columns.shape[1]
    found = np.zeros((len(edges) - 1, q, q))
    for shell, (first, last) in enumerate(pairwise(edges)):
        flat = columns[:, :, first:last].transpose(1, 0, 2).reshape(q, -1)
        found[shell] = flat @ flat.T
    return found


def most_frames(grid_points: int, columns: int) -> int:
    """How many frames a pass over them may take."""
    return max(24, int(_MOST / (grid_points * columns)))

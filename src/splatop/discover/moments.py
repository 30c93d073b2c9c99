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
# Neighbouring sums over as many windows as count as one have this share of their variance in
# common, on both sides together: bells are about Gaussian.
_TOUCHING = 0.32
# A shell is heard above so many times the energy of its noise.
_HEARD = 10.0


@dataclass(frozen=True)
class Moments:
    """Gram matrices `(B, K, q, q)` of blocks and shells without the expected share of noise, which
    is `(K, q, q)` over all blocks, and how many independent real numbers `(B, K)` went into each.

    The q columns are the basis products, then `∂u/∂t` of each field, then its known terms. `fast`
    is the share `(K,)` of the states' energy that turns too fast from frame to frame for a bell.
    What modes beyond the band would change is about what the last of the band do: `hidden`
    `(K, q, q)` are the inner products of these changes, `lean` those of the columns with them.
    `touching` is the variance of a sum over blocks, over the sum of their variances.
    """

    gram: np.ndarray
    noise: np.ndarray
    hidden: np.ndarray
    lean: np.ndarray
    rows: np.ndarray
    fast: np.ndarray
    half: int
    touching: float


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
    held = {half: _Sums.of(frames.owner, len(tests[half][0]), tests[half][2], q) for half in tests}
    generator = np.random.default_rng(0)
    # Some pieces tell how much rounding matters, which is little, and modes beyond the band.
    some = set(range(0, pieces, max(1, pieces // 4)))
    quiet = frames.spectrum.relative_noise < _QUIET
    shaken = some if quiet else set(range(pieces))
    every = pieces / len(shaken)
    bent = np.array([sum(e for _, e in side.monomials[0][0]) != 1 for side in basis])
    bent = np.concatenate([bent, np.zeros(channels, bool), np.ones(channels, bool)])

    turning, shaking = np.zeros((2, channels, SHELLS, 2))
    sharp = np.zeros((2, channels))
    own_states = slice(len(basis), len(basis) + channels)

    def modes(states: np.ndarray) -> np.ndarray:
        return np.asarray(columns(jnp.asarray(states), coefficients))

    for piece, states in enumerate(frames.states):
        clean = modes(states)
        moved = cut = None
        if piece in shaken:
            speck = frames.noise(generator)
            moved = modes(states + speck) - clean
            if piece in some:
                sharp += _last_parts(frames.modes, states) - _last_parts(frames.modes, speck)
            shaking += _turning(moved[:, own_states], edges) * every
        if piece in some and bent.any():
            cut = (clean - modes(frames.modes.narrower(states, 1))) * bent[:, None]
        turning += _turning(clean[:, own_states], edges)
        for half, (a, b, overlap) in tests.items():
            sums = held[half]
            own = _tested(clean, a, b / frames.dt, channels)
            shake = None if moved is None else _tested(moved, a, b / frames.dt, channels)
            for group, at, chosen in sums.groups:
                if at == piece:
                    sums.gram[group] += _grams(own[chosen], own[chosen], edges)
                    sums.rows[group] += (chosen.stop - chosen.start) * freedom / overlap
                    if shake is not None:
                        share = every * _grams(shake[chosen], shake[chosen], edges)
                        sums.shake(share, group, measured=not quiet)
            if cut is not None:
                change = _tested(cut, a, b / frames.dt, channels)
                sums.hidden += _grams(change, change, edges) * (pieces / len(some))
                sums.lean += _grams(own, change, edges) * (pieces / len(some))
        progress(piece + 1, pieces)
    fast = _share_of_fast(turning, shaking)
    told = fast <= _TOO_FAST
    if not told[0]:  # the time step is too long for all of the data
        told[:] = True
    beyond = _beyond(sharp)
    inner = np.arange(SHELLS) < frames.modes.inner
    return [
        sums.moments(half, fast, told=told, inner=inner, beyond=beyond)
        for half, sums in held.items()
    ]


def _last_parts(modes: Modes, states: np.ndarray) -> np.ndarray:
    """The energy of states `(L, C, *M)` in the last two parts of their band, `(2, C)`."""
    once, twice = (modes.narrower(states, times) for times in (1, 2))
    both = np.stack([states - once, once - twice])
    return np.sum(both**2, axis=(1, *range(3, both.ndim)))


def _beyond(sharp: np.ndarray) -> float:
    """Amplitude beyond a band over that in its last part, from the energy `(2, C)` of its last two
    parts, each a share of what is before it: they go on to fall as they do."""
    last, before = np.maximum(sharp, 0.0)
    falls = np.where(before > 0, last / np.where(before > 0, before, 1.0), 0.0)
    falls = np.minimum(falls, 0.5)
    return float(np.sqrt(np.max(falls / (1 - falls))))


@dataclass
class _Sums:
    """What a pass adds up for one width of the bells: `groups` are (block, piece, its windows)."""

    groups: list[tuple[int, int, slice]]
    gram: np.ndarray
    noise: np.ndarray
    hidden: np.ndarray
    lean: np.ndarray
    rows: np.ndarray
    touching: float

    @classmethod
    def of(cls, owner: np.ndarray, windows: int, overlap: float, q: int) -> "_Sums":
        pieces, apart = len(owner), windows / overlap
        if pieces >= BLOCKS:
            groups = [(i * BLOCKS // pieces, i, slice(0, windows)) for i in range(pieces)]
        else:
            each = min(-(-BLOCKS // pieces), max(1, int(apart)))
            ends = np.linspace(0, windows, each + 1).astype(int).tolist()
            groups = [
                (i * each + j, i, slice(first, last))
                for i in range(pieces)
                for j, (first, last) in enumerate(pairwise(ends))
            ]
        count = 1 + max(group for group, _, _ in groups)
        noise, hidden, lean = np.zeros((3, SHELLS, q, q))
        rows, gram = np.zeros((count, SHELLS)), np.zeros((count, SHELLS, q, q))
        touching = 1 + _TOUCHING * count / (apart * pieces)
        return cls(groups, gram, noise, hidden, lean, rows, touching)

    def shake(self, share: np.ndarray, group: int, *, measured: bool) -> None:
        """Takes the share of noise `(K, q, q)` out of a block: out of each its own, for noise in
        products is as large as what it is multiplied by. Rounding, whose size was not `measured`,
        is an error of its shells alone: what stays the same is rounded the same in all frames."""
        self.noise += share
        if measured:
            self.gram[group] -= share

    def moments(
        self, half: int, fast: np.ndarray, *, told: np.ndarray, inner: np.ndarray, beyond: float
    ) -> Moments:
        """Of the shells that are `told`. What is `beyond` the band is so much of its last part,
        without which those inside of that say how they lean."""
        each, leaning = told[:, None, None], (told & inner)[:, None, None]
        return Moments(
            self.gram * each,
            self.noise * each,
            beyond**2 * self.hidden * each,
            beyond * self.lean * leaning,
            self.rows * told,
            fast,
            half,
            self.touching,
        )


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


def _tested(modes: np.ndarray, a: np.ndarray, b: np.ndarray, channels: int) -> np.ndarray:
    """Columns `(L, q, n)` integrated against the bells, `(windows, q, n)`; states become rates."""
    length, q, n = modes.shape
    first = q - 2 * channels
    # A bell touches few of the frames.
    tested = (scipy.sparse.csr_array(a) @ modes.reshape(length, -1)).reshape(-1, q, n)
    states = modes[:, first : first + channels].reshape(length, -1)
    tested[:, first : first + channels] = (b @ states).reshape(-1, channels, n)
    return tested


def _grams(columns: np.ndarray, others: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Inner products of columns `(W, q, n)` with others over windows, in each shell."""
    q = columns.shape[1]
    found = np.zeros((len(edges) - 1, q, q))
    for shell, (first, last) in enumerate(pairwise(edges)):
        flat, other = (
            part[:, :, first:last].transpose(1, 0, 2).reshape(q, -1) for part in (columns, others)
        )
        found[shell] = flat @ other.T
    return found


def most_frames(grid_points: int, columns: int) -> int:
    """How many frames a pass over them may take."""
    return max(24, int(_MOST / (grid_points * columns)))

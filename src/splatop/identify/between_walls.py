"""Coefficients from frames between walls: the equation in the domain's harmonics, weak in time.

The projection of the equation onto a harmonic is its weak form in space; multiplied by a bump in
time and integrated by parts, no frame is differentiated. Harmonics that noise hides are left out.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..data import Trajectories
from ..equation import Equation
from ..errors import SplatopError
from ..stepper import TIME
from ..walls import Galerkin, check_stated, check_told
from .bumps import test_function
from .diagnose import UNRESOLVED, Remark, unresolved_text
from .frame_pieces import cut
from .identified import Identified
from .in_harmonics import HEARD, Harmonics, times_of
from .noise import VISIBLE
from .uncertainty import beyond_noise, clustered_errors, own_sizes
from .walled import Asked, can_follow, follow, smoothed_numbers

LEAST_FRAMES = 7
# Half the frames of a bump in time.
_SHORTEST, _LONGEST = 3, 16
# What clean frames in single precision and the quadrature in time leave, relative to the change.
_FLOOR = 1e-6
# Noise below this share of the fields is rounding.
_CLEAN = 1e-4
# What noise moves an estimate by, as a share of it, is taken off up to here.
_LARGE_SHARE = 0.2
_STEPS = 30
_DRAWS = 12
# The share of frames that are taken to be resolved where some are not.
_QUIETEST = 0.1
# Bounds of what is believed, as for periodic data: see diagnose.py.
_UNEXPLAINED = 0.01
_ILL_CONDITIONED = 1e3
_LASTING = 3.0


def identify_between_walls(
    equation: Equation,
    trajectories: Trajectories,
    index: int,
    *,
    begin: Sequence[int],
    length: int,
    unknown: Mapping[str, float],
    known: Mapping[str, float],
    method: str = "auto",
) -> Identified:
    """The `unknown` coefficients, with values to start from, behind pieces of one trajectory.

    The weak form gives the values from which `flow` and `trajectory` begin; "auto" takes the one
    that fits the noise, as on a periodic box.
    """
    domain = trajectories.domain
    check_stated(equation, domain)
    check_told(domain, unknown)
    if not can_follow(equation, trajectories, method):
        method = "weak"
    if length < LEAST_FRAMES:
        raise SplatopError(
            f"expected at least {LEAST_FRAMES} successive frames between walls, got {length}: pass "
            "more frames"
        )
    times = times_of(trajectories, begin, length)
    frames = np.stack([trajectories.window(index, int(b), length) for b in begin])
    precision = float(np.finfo(np.result_type(frames, np.float16)).eps)
    frames = frames.astype(float)
    given = {**known, **unknown}
    signals = trajectories.signals(index) if trajectories.inputs else {}
    notes = []
    with jax.enable_x64(True):
        held = Harmonics(equation, trajectories, frames, times, given, signals)
        if held.unresolved:
            own, kept = _resolved(held)
            if kept.any():
                total = frames.shape[0] * length
                frames, times = cut(frames, own)[kept], cut(times, own)[kept]
                left_out = total - frames.shape[0] * frames.shape[1]
                if left_out:
                    notes.append(
                        f"{left_out} of {total} frames hold scales that the grid does not resolve "
                        "and were left out"
                    )
                held = Harmonics(equation, trajectories, frames, times, given, signals)
        rows = _Rows(held, trajectories.dt)
        if method == "auto" and held.unresolved:
            method = "weak"  # what cannot be resolved is not heard there; frame to frame all counts
        if method != "weak":
            asked = Asked(
                equation, dict(unknown), dict(known), frames, times, trajectories.dt, precision
            )
            remarks = [Remark(text) for text in notes]
            numbers = smoothed_numbers(asked, held)
            start = _first(rows, dict(unknown), dict(known), numbers)
            found = follow(asked, held, method, start, remarks)
            if found is not None:
                return found
            notes = [remark.text for remark in remarks]
        return _solve(rows, dict(unknown), dict(known), notes)


def _resolved(held: Harmonics) -> tuple[int, np.ndarray]:
    """A length to cut pieces to, and which of these the grid resolves: as many frames as can be
    had."""
    sizes = np.maximum(held.sizes, 1e-150)
    off = np.mean(held.rest**2, axis=tuple(range(3, held.rest.ndim))) / sizes**2  # (S, L, C)
    # The quietest frames tell how much of the rest is noise; the energy of white noise in f numbers
    # varies by sqrt(2/f).
    noise = np.quantile(off, _QUIETEST, axis=(0, 1)) * (1 + 5 * np.sqrt(2 / held.freedom))
    good = (off <= np.maximum(noise, VISIBLE**2)).all(axis=2)
    length = good.shape[1]
    found: list[tuple[int, int, np.ndarray]] = []
    for own in sorted({length // parts for parts in range(1, length // LEAST_FRAMES + 1)}):
        pieces = cut(good, own)
        if pieces.shape[1] >= LEAST_FRAMES:
            kept = np.asarray(pieces.all(axis=1))
            found.append((int(kept.sum()) * pieces.shape[1], own, kept))
    _, own, kept = max(found, key=lambda one: one[:2])
    return own, kept


class _Rows:
    """One row for each piece, bump and harmonic that is heard: what the equation leaves there."""

    def __init__(self, held: Harmonics, dt: float):
        self.held, self.dt = held, dt
        loud = np.sqrt(np.mean(np.square(np.asarray(held.numbers)), axis=(0, 1)))
        self.heard = loud > HEARD * held.deviation
        if not self.heard.any():
            raise SplatopError(
                "expected fields that stand out from their noise, got none: the frames are noise, "
                "or constant"
            )
        length = held.numbers.shape[1]
        half = int(np.clip((length - 1) // 4, _SHORTEST, _LONGEST))
        stride = max(1, half // 2)
        self.starts = np.arange(0, length - 2 * half, stride)
        self.overlap = 2 * half / stride  # bumps that one frame is in
        self.bump, self.slope = test_function(half, dt)
        self.change = np.asarray(-self._against(held.numbers, self.slope))
        # What is left of clean frames is an error of the quadrature, and as large as the change is.
        self.floor = _FLOOR * np.sqrt(np.mean(self.change[:, :, self.heard] ** 2))
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

    def _rest(self, scheme: Galerkin, numbers, coefficients) -> jax.Array:
        """What the equation leaves, `(rows, harmonics)`, of the numbers of all frames."""
        fixed = None if scheme.moving else scheme.lifted(coefficients)

        def rate(at):
            c, t = at
            now = {**coefficients, **self.held.drive, TIME: t}
            lifted = scheme.lifted(now) if scheme.moving else fixed
            return scheme.tendency(c, now, lifted)

        flat = numbers.reshape(-1, *numbers.shape[2:])
        rates = jax.lax.map(rate, (flat, self.held.times.reshape(-1)))
        rest = -self._against(numbers, self.slope) - self._against(
            rates.reshape(numbers.shape), self.bump
        )
        return rest[:, :, self.heard].reshape(-1, int(self.heard.sum()))


def _evaluated(rows: _Rows, names: tuple[str, ...], known: dict[str, float]):
    """What the equation leaves of numbers at x, and its derivatives, compiled."""

    @eqx.filter_jit
    def both(scheme, x, numbers):
        def left(x):
            return rows._rest(scheme, numbers, {**known, **dict(zip(names, x, strict=True))})

        return left(x), jax.jacfwd(left)(x)

    # The matrices of a shape are arguments: as constants they take minutes to compile.
    return partial(both, rows.held.scheme)


def _first(
    rows: _Rows, unknown: dict[str, float], known: dict[str, float], numbers: np.ndarray
) -> np.ndarray:
    """The least squares of the weak form for these numbers of the frames."""
    start = np.array(list(unknown.values()))
    evaluate = _evaluated(rows, tuple(unknown), known)
    return _search(evaluate, tuple(unknown), jnp.asarray(numbers), rows.weight, start)[0]


def _solve(
    rows: _Rows,
    unknown: dict[str, float],
    known: dict[str, float],
    notes: list[str],
) -> Identified:
    names, held = tuple(unknown), rows.held
    noisy = held.relative_noise > _CLEAN and not held.unresolved

    evaluate = _evaluated(rows, names, known)
    start = np.array([float(unknown[name]) for name in names])
    x, _, _, settled = _search(evaluate, names, held.numbers, rows.weight, start)
    bias, drawn = 0.0, []
    if noisy:
        # As much noise once more: what it adds to a row, and what it moves the estimates by. It has
        # moved them by as much once before (simulation extrapolation).
        before = np.asarray(evaluate(x, held.numbers)[0])
        again = [held.noisier(key) for key in range(_DRAWS)]
        rows.weigh(np.stack([np.asarray(evaluate(x, n)[0]) - before for n in again]))
        x, _, _, settled = _search(evaluate, names, held.numbers, rows.weight, x)
        drawn = [_search(evaluate, names, n, rows.weight, x, steps=3)[0] - x for n in again]
        bias = np.mean(drawn, axis=0)
    r, jacobian = (np.asarray(part) for part in evaluate(x, held.numbers))
    r, jacobian = r @ rows.weight, np.einsum("whp,hk->wkp", jacobian, rows.weight)
    sizes = np.linalg.norm(jacobian.reshape(-1, len(names)), axis=0)
    scaled = jacobian / sizes
    condition = float(np.linalg.cond(scaled.reshape(-1, len(names))))
    # Draws say what noise does to the estimates; without them bumps of one frame count once.
    errors = clustered_errors(r, scaled, 0.0 if len(drawn) else rows.overlap) / sizes
    # As much as noise does not explain may have gone into the estimates unseen (`spread`).
    unseen = beyond_noise(r, np.sqrt(r.size)) / own_sizes(scaled) / sizes
    if len(drawn):
        # The correction is itself known to a part of what a draw moves.
        moved = np.std(drawn, axis=0, ddof=1)
        errors = np.sqrt(np.maximum(errors, moved) ** 2 + moved**2 / _DRAWS)
    # Rounding and quadrature shift all rows alike, which what is left does not show.
    errors = np.sqrt(errors**2 + (_FLOOR * x) ** 2)
    x = x - bias
    # The correction is of first order: of a share s of an estimate it leaves about s² of it.
    share = np.abs(bias) / np.maximum(np.abs(x), 1e-300)
    whole = np.asarray(rows.change)[:, :, rows.heard] @ rows.weight
    unexplained = float(np.linalg.norm(r) / np.linalg.norm(whole))
    excess = float(np.sqrt(np.mean(r**2)))
    doubts = []
    if held.unresolved and unexplained > UNRESOLVED:
        doubts.append(unresolved_text(held.unresolved))
    if not settled:
        doubts.append("the search did not settle: give values to start from (--unknown)")
    if unexplained > _UNEXPLAINED and excess > _LASTING:
        doubts.append(
            f"the equation leaves {unexplained:.1%} of the change unexplained, {excess:.0f} times "
            "what the noise does: a term is missing or wrong, or what is said about the edges, or "
            "the solver that made the data was too coarse"
        )
    if condition > _ILL_CONDITIONED:
        doubts.append(
            f"terms can hardly be told apart (condition number {condition:.0e}): the estimates "
            "depend on each other; fix one of the coefficients"
        )
    # Clean frames: what is left is systematic, and no draw.
    half = np.hypot((2.0 if noisy else 4.0) * errors, 2 * unseen) + share**2 * np.abs(x)
    errors = np.hypot(np.hypot(errors, unseen), share**2 * np.abs(x) / 2)
    values = dict(zip(names, map(float, x), strict=True))
    for name, h, by in zip(names, half, share, strict=True):
        if abs(values[name]) <= h:
            doubts.append(f"{name} cannot be told from zero: the term may not be there")
        if by > _LARGE_SHARE:
            doubts.append(
                f"noise has moved {name} by {by:.0%} of its value, more than can be taken off: use "
                "more frames, or --method trajectory where the edges have conditions"
            )
    if noisy:
        notes.append(f"the frames hold about {100 * held.relative_noise:.2g} % of noise")
    return Identified(
        method="weak",
        estimates=values,
        standard_errors=dict(zip(names, map(float, errors), strict=True)),
        intervals={
            name: (values[name] - float(h), values[name] + float(h))
            for name, h in zip(names, half, strict=True)
        },
        known=known,
        frames=held.numbers.shape[0] * held.numbers.shape[1],
        relative_residual=unexplained,
        noise_level=held.relative_noise,
        condition_number=condition,
        warnings=(*doubts, *notes),
        trusted=not doubts,
    )


def _search(
    evaluate,
    names: tuple[str, ...],
    numbers,
    weight: np.ndarray,
    x: np.ndarray,
    steps: int = _STEPS,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
    """Gauss-Newton: the estimates, what they leave and its derivatives, and whether it settled."""
    for _ in range(steps):
        r, jacobian = (np.asarray(part) for part in evaluate(jnp.asarray(x), numbers))
        flat = np.einsum("whp,hk->wkp", jacobian, weight).reshape(-1, len(names))
        sizes = np.linalg.norm(flat, axis=0)
        if not (np.isfinite(flat).all() and sizes.all()):
            raise _without_effect(names, x, sizes)
        step, *_ = np.linalg.lstsq(flat / sizes, -(r @ weight).ravel(), rcond=1e-12)
        x = x + step / sizes
        if np.all(np.abs(step / sizes) <= 1e-9 * np.maximum(np.abs(x), 1e-12)):
            return x, r, jacobian, True
    return x, r, jacobian, False


def _without_effect(names: tuple[str, ...], x: np.ndarray, sizes: np.ndarray) -> SplatopError:
    at = ", ".join(f"{name}={value:.3g}" for name, value in zip(names, x, strict=True))
    start = ",".join(f"{name}=0.5" for name in names)
    if not np.isfinite(sizes).all():
        return SplatopError(
            f"expected an equation that is finite on these frames, got NaN at {at}: check what it "
            f"divides by and takes logarithms of, or give values to start from (--unknown {start})"
        )
    dead = ", ".join(name for name, size in zip(names, sizes, strict=True) if size == 0)
    return SplatopError(
        f"expected coefficients that change something, got {dead} without any effect on these "
        f"frames at {at}: give values to start from (--unknown {start}), or leave the term out"
    )

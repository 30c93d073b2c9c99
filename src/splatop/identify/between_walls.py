"""Coefficients from frames between walls: the equation in the domain's harmonics, weak in time.

The projection of the equation onto a harmonic is its weak form in space; multiplied by a bump in
time and integrated by parts, no frame is differentiated. Harmonics that noise hides are left out.
"""

from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from ..data import Trajectories
from ..equation import Equation
from ..errors import SplatopError, in_percent
from ..walls import check_stated, check_told
from .diagnose import UNRESOLVED, Remark, unresolved_text
from .frame_pieces import cut
from .identified import Identified
from .in_harmonics import Harmonics, times_of
from .noise import VISIBLE
from .uncertainty import beyond_noise, clustered_errors, own_sizes
from .wall_rows import FLOOR, Rows, evaluated
from .walled import Asked, can_follow, follow, smoothed_numbers

LEAST_FRAMES = 7
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
        rows = Rows(held, trajectories.dt)
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


def _first(
    rows: Rows, unknown: dict[str, float], known: dict[str, float], numbers: np.ndarray
) -> np.ndarray:
    """The least squares of the weak form for these numbers of the frames."""
    start = np.array(list(unknown.values()))
    evaluate = evaluated([rows], tuple(unknown), known)(rows.kept)
    return _search(evaluate, tuple(unknown), jnp.asarray(numbers), rows.weight, start)[0]


def _solve(
    rows: Rows,
    unknown: dict[str, float],
    known: dict[str, float],
    notes: list[str],
) -> Identified:
    names, held = tuple(unknown), rows.held
    noisy, parts = rows.noisy, [rows]
    if noisy and held.numbers.shape[1] >= 2 * LEAST_FRAMES:
        parts = [Rows(held, rows.dt, 2, first) for first in (0, 1)]
        rows = parts[0]

    compiled = evaluated(parts, names, known)
    evaluate = compiled(rows.kept)
    start = np.array([float(unknown[name]) for name in names])
    x, _, _, settled = _search(evaluate, names, held.numbers, rows.weight, start)
    bias = bent = np.zeros(len(names))
    drawn: list[np.ndarray] = []
    if noisy:
        # As much noise once more: what it adds to a row, and what it moves the estimates by. It has
        # moved them by as much once before (simulation extrapolation).
        before = np.asarray(evaluate(x, held.numbers)[0])
        again = [held.noisier(key) for key in range(_DRAWS)]
        rows.weigh(np.stack([np.asarray(evaluate(x, n)[0]) - before for n in again]))
        x, _, _, settled = _search(evaluate, names, held.numbers, rows.weight, x)

        def moved_by(numbers) -> np.ndarray:
            return _search(evaluate, names, numbers, rows.weight, x, steps=3)[0] - x

        drawn = [moved_by(n) for n in again]
        bias = np.mean(drawn, axis=0)
        # What twice the noise moves them by beyond twice as much is not of first order.
        twice = [moved_by(held.noisier(key, 2.0)) for key in range(_DRAWS)]
        bent = np.abs(np.mean(twice, axis=0) - 2 * bias)
        # What is left out of products is less than what fewer harmonics would leave out more.
        few = compiled(rows.fewer)
        bent = bent + np.abs(_search(few, names, held.numbers, rows.weight, x, steps=3)[0] - x)
    r, *slopes = (np.asarray(part) for part in evaluate(x, held.numbers))
    r, slopes = r @ rows.weight, np.einsum("nwhp,hk->nwkp", np.stack(slopes), rows.weight)
    sizes = np.linalg.norm(slopes[0].reshape(-1, len(names)), axis=0)
    scaled, against = slopes / sizes
    condition = float(np.linalg.cond(scaled.reshape(-1, len(names))))
    # Draws say what noise does to the estimates; without them bumps of one frame count once.
    errors = clustered_errors(r, scaled, against, 0.0 if len(drawn) else rows.overlap) / sizes
    # As much as noise does not explain may have gone into the estimates unseen (`spread`).
    unseen = beyond_noise(r, np.sqrt(r.size)) / own_sizes(scaled) / sizes
    if len(drawn):
        # The correction is itself known to a part of what a draw moves.
        moved = np.std(drawn, axis=0, ddof=1)
        errors = np.sqrt(np.maximum(errors, moved) ** 2 + moved**2 / _DRAWS)
    # Rounding and quadrature shift all rows alike, which what is left does not show.
    errors = np.sqrt(errors**2 + (FLOOR * x) ** 2)
    x = x - bias
    share = np.abs(bias) / np.maximum(np.abs(x), 1e-300)
    whole = np.stack([part.change[:, :, rows.heard] for part in parts]) @ rows.weight
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
    half = np.hypot((2.0 if noisy else 4.0) * errors, 2 * unseen) + bent
    errors = np.hypot(np.hypot(errors, unseen), bent / 2)
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
        notes.append(f"the frames hold about {in_percent(held.relative_noise)} of noise")
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
        r, jacobian, against = (np.asarray(part) for part in evaluate(jnp.asarray(x), numbers))
        flat, other = (
            np.einsum("whp,hk->wkp", one, weight).reshape(-1, len(names))
            for one in (jacobian, against)
        )
        sizes = np.linalg.norm(flat, axis=0)
        if not (np.isfinite(flat).all() and sizes.all()):
            raise _without_effect(names, x, sizes)
        flat, other = flat / sizes, other / sizes
        step, *_ = np.linalg.lstsq(other.T @ flat, -other.T @ (r @ weight).ravel(), rcond=1e-14)
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

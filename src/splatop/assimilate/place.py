"""Where sensors should stand: those places, one after the other, whose reports lower the expected
spread of the state at the window's end most."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..errors import SplatopError, unknown_name
from ..points import Points
from ..threads import one_blas_thread
from .dynamics import Dynamics
from .expected import choose_prior_without_reports, with_steps
from .minimise import Forward
from .observe import look
from .prior import draw, measure
from .source import EquationSetting, as_dynamics
from .unknowns import Prior
from .window import unknowns_of

# Numbers of the state that are followed, the largest of the prior; the others count as noise.
_FOLLOWED = 400
_CANDIDATES = 900


@dataclass(frozen=True, eq=False)
class Placement:
    """The chosen `places` `(k, d)` in their order, and the expected standard deviation of the state
    (root mean square over the box and all fields) without any and after each, `(k + 1,)`."""

    places: np.ndarray
    expected: np.ndarray
    candidates: np.ndarray
    spread: np.ndarray  # what is left at the points of the grid, `(C, *N)`
    dynamics: Dynamics
    prior: str

    def as_dict(self) -> dict[str, Any]:
        return {
            "places": self.places.tolist(),
            "expected_std": self.expected.tolist(),
            "candidates": len(self.candidates),
            "prior": self.prior,
        }


@one_blas_thread()
def place(
    model: Any,
    *,
    sensors: int,
    frames: int = 10,
    sigma: float | None = None,
    noise: float = 0.01,
    candidates: Any = None,
    fields: Sequence[str] | None = None,
    coefficients: Mapping[str, float] | None = None,
    lengths: Sequence[float] | float | None = None,
    points: Sequence[int] | int | None = None,
    dt: float | None = None,
    origin: Sequence[float] | float | None = None,
    boundary: str | None = None,
    shape: str | None = None,
    sampling: Sequence[str] | str | None = None,
    prior: Any = None,
    length: float | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Placement:
    """Places for so many `sensors`, each reporting all of `fields` in each of `frames` + 1 frames
    with noise `sigma`, or `noise` times the field's own spread.

    `candidates` are places `(n, d)`, else the points of the grid, thinned. The prior is `prior`
    (trajectories, or a file of them), a shipped benchmark's, or a smooth field of correlation
    `length` (a tenth of the box, unless given).
    """
    if sensors < 1:
        raise SplatopError(f"expected at least one sensor to place, got {sensors}")
    if frames < 0:
        raise SplatopError(f"expected frames that sensors report in, got {frames}")
    if not (noise > 0 and (sigma is None or sigma > 0)):
        raise SplatopError(
            f"expected noise above 0, got {noise:g}" + ("" if sigma is None else f" and {sigma:g}")
        )
    setting = EquationSetting(coefficients, lengths, points, dt, origin, boundary, sampling, shape)
    dynamics = as_dynamics(model, setting)
    known = choose_prior_without_reports(prior, dynamics, length)
    dynamics = with_steps(dynamics, known, ())
    known = choose_prior_without_reports(prior, dynamics, length) if prior is None else known
    where = _candidates(candidates, dynamics)
    if len(where) < sensors:
        raise SplatopError(
            f"expected at least {sensors} candidate places, got {len(where)}: give more"
        )
    chosen_fields = tuple(fields) if fields else dynamics.fields
    for name in chosen_fields:
        if name not in dynamics.fields:
            raise unknown_name("field", name, dynamics.fields)
    channels = [dynamics.fields.index(name) for name in chosen_fields]
    held, tail = _largest(known, dynamics)
    unknowns = unknowns_of(dynamics, held, {})
    forward = Forward(dynamics.moving, unknowns)
    x = draw(Prior(np.zeros(unknowns.size), np.ones(unknowns.size), ""), 1, seed)[0]
    rows = tuple(jnp.asarray(r, jnp.float32) for r in dynamics.evaluator.rows(where))
    size = known.size() / np.sqrt(measure(dynamics.space))
    error = noise * size if sigma is None else sigma
    error = float(np.hypot(error, tail / np.sqrt(measure(dynamics.space))))
    seen, ends = [], []
    columns = np.eye(unknowns.size, dtype=np.float32)
    for first in range(0, unknowns.size, 50):
        block = jnp.asarray(columns[first : first + 50])
        one, end = _tangents(forward, jnp.asarray(x, jnp.float32), block, rows, frames)
        seen.append(np.asarray(one, float))
        ends.append(np.asarray(end, float))
        progress(min(first + 50, unknowns.size), unknowns.size + 2 * sensors)
    # (K, F + 1, C, n) and (K, C, *N)
    reports = np.concatenate(seen)[:, :, channels] / error
    targets = np.concatenate(ends)
    flat = targets.reshape(len(targets), -1)
    targets_each = flat / np.sqrt(flat.shape[1])
    chosen, _, _ = _greedy(
        reports,
        targets_each,
        sensors,
        lambda done: progress(unknowns.size + done, unknowns.size + 2 * sensors),
    )
    chosen, expected, left = _exchanged(
        reports,
        targets_each,
        chosen,
        lambda done: progress(unknowns.size + sensors + done, unknowns.size + 2 * sensors),
    )
    spread = np.sqrt(np.einsum("kp,kl,lp->p", flat, left, flat, optimize=True))
    return Placement(
        places=where[chosen],
        expected=expected,
        candidates=where,
        spread=dynamics.on_written(spread.reshape(targets.shape[1:]).astype(np.float32)),
        dynamics=dynamics,
        prior=known.source,
    )


def _greedy(
    reports: np.ndarray, targets: np.ndarray, sensors: int, progress: Callable[[int], None]
) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Candidates in the order of what each adds; the expected spread after each; the covariance of
    the unknowns that is left."""
    each = _each(reports)
    covariance, gram = np.eye(len(reports)), targets @ targets.T
    chosen: list[int] = []
    expected = [float(np.sqrt(np.trace(gram)))]
    for number in range(sensors):
        gains = _gains(each, covariance, gram)
        gains[chosen] = -np.inf
        chosen.append(int(np.argmax(gains)))
        covariance = _with(each[chosen[-1]], covariance)
        expected.append(float(np.sqrt(max(np.sum(covariance * gram), 0.0))))
        progress(number + 1)
    return chosen, np.array(expected), covariance


def _exchanged(
    reports: np.ndarray, targets: np.ndarray, chosen: list[int], progress: Callable[[int], None]
) -> tuple[list[int], np.ndarray, np.ndarray]:
    """As `_greedy`, from what it has chosen: each sensor once more, with all others known."""
    each, gram = _each(reports), targets @ targets.T
    kept = list(chosen)
    precision = np.eye(len(reports)) + sum(each[i].T @ each[i] for i in kept)
    for place in range(len(kept)):
        one = each[kept[place]]
        precision = precision - one.T @ one
        gains = _gains(each, np.linalg.inv(precision), gram)
        gains[kept[:place] + kept[place + 1 :]] = -np.inf
        kept[place] = int(np.argmax(gains))
        precision = precision + each[kept[place]].T @ each[kept[place]]
        progress(place + 1)
    # In the order of what each adds, among these.
    order, expected, covariance = _greedy(reports[..., kept], targets, len(kept), lambda _: None)
    return [kept[i] for i in order], expected, covariance


def _each(reports: np.ndarray) -> np.ndarray:
    """What each candidate reports of each unknown, `(n, q, K)`."""
    k, times, channels, n = reports.shape
    return np.ascontiguousarray(reports.reshape(k, times * channels, n).transpose(2, 1, 0))


def _gains(each: np.ndarray, covariance: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """What the reports of each candidate take from the variance of the targets: with A the reports,
    P the covariance and G the targets' Gram matrix, `tr[(I + A P Aᵀ)⁻¹ A P G P Aᵀ]`."""
    seen = each @ covariance
    inner = np.eye(each.shape[1]) + seen @ each.transpose(0, 2, 1)
    lowered = np.linalg.solve(inner, seen @ gram @ seen.transpose(0, 2, 1))
    return np.trace(lowered, axis1=1, axis2=2)


def _with(one: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """The covariance that is left when a candidate reports."""
    seen = one @ covariance
    left = covariance - seen.T @ np.linalg.solve(np.eye(len(one)) + seen @ one.T, seen)
    return (left + left.T) / 2


@eqx.filter_jit
def _tangents(forward: Forward, x: Any, columns: Any, rows: Any, frames: int) -> tuple[Any, Any]:
    """What each unknown does to all fields at the candidates in each frame, and to the last one."""

    def run(x):
        coefficients = forward.unknowns.coefficients(x)

        def advance(u, _):
            u = forward.stepper(u, coefficients)
            return u, look(u, rows)

        u0 = forward.unknowns.state(x)
        end, later = jax.lax.scan(advance, u0, length=frames)
        return jnp.concatenate([look(u0, rows)[None], later]), end

    _, tangent = jax.linearize(run, x)
    return jax.lax.map(tangent, columns)


def _candidates(given: Any, dynamics: Dynamics) -> np.ndarray:
    if given is not None:
        if isinstance(given, np.ndarray | list | tuple):
            where = np.asarray(given, float)
            where = where[:, None] if where.ndim == 1 else where
        else:
            where = _places(given)
        if where.ndim != 2 or where.shape[1] != dynamics.domain.dims:
            raise SplatopError(
                f"expected candidate places (n, {dynamics.domain.dims}), got {where.shape}"
            )
        low = np.array(dynamics.domain.origin)
        high = low + np.array(dynamics.domain.lengths)
        outside = ((where < low) | (where > high)).any(axis=1)
        if dynamics.domain.shape is not None:
            away = np.asarray(dynamics.domain.shape.distance(where))
            outside = away > 1e-5 * max(dynamics.domain.lengths)
        if outside.any():
            first = ", ".join(f"{x:g}" for x in where[outside][0])
            raise SplatopError(
                f"expected candidate places inside the domain, got {int(outside.sum())} outside, "
                f"the first at ({first}): leave them out"
            )
        return np.unique(where, axis=0)
    if isinstance(dynamics.written, Points):
        every = dynamics.written.places
        return every[:: max(1, -(-len(every) // _CANDIDATES))]
    each = max(2, int(_CANDIDATES ** (1 / dynamics.domain.dims)))
    axes = [c.ravel()[:: max(1, -(-c.size // each))] for c in dynamics.written.coordinates()]
    mesh = np.meshgrid(*axes, indexing="ij")
    return np.stack([m.ravel() for m in mesh], axis=1)


def _places(source: Any) -> np.ndarray:
    """The places of a table, whatever else is in it."""
    from .observation_files import read_places

    return read_places(source)


def _largest(prior: Prior, dynamics: Dynamics) -> tuple[Prior, float]:
    """The prior with its largest numbers alone, and the standard deviation of the rest."""
    std = np.where(dynamics.kept, prior.std, 0.0)
    if np.count_nonzero(std) <= _FOLLOWED:
        return prior, 0.0
    least = np.sort(std.ravel())[-_FOLLOWED]
    rest = np.where(std < least, std, 0.0)
    held = Prior(prior.mean, np.where(std >= least, std, 0.0), prior.source)
    return held, float(np.sqrt(np.sum(rest**2) / len(rest)))

"""What the operator learned in place of a term that its physics was not told."""

from dataclasses import dataclass, replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..benchmarks import BENCHMARKS
from ..equation import Equation
from ..surrogate import Surrogate
from .evaluated import EvaluatedRun
from .playback import Playback

FRAMES = 9


@dataclass(frozen=True)
class LearnedPart:
    """The dropped terms' change over one step and the operator's, at reference states.

    `share` is the slope of a fit through the origin: 1 if the operator restores all of it.
    """

    terms: tuple[str, ...]
    step: int
    dropped: np.ndarray  # (C, *N) at `step`
    learned: np.ndarray
    correlation: float | None
    share: float | None
    by_step: tuple[tuple[int, float | None], ...]


def compare_with_dropped(run: EvaluatedRun, playback: Playback, coefficients: dict[str, float]):
    """None if the model dropped nothing, has no operator, or the term's coefficient is unknown."""
    spec, stepper = run.model.spec, run.model.stepper
    if not spec.dropped_terms or not isinstance(stepper, Surrogate):
        return None
    full = spec.full_equation
    if full.uses_time or not stepper.autonomous:
        return None
    kept = [name for name in full.term_names if name not in spec.dropped_terms]
    dropped = full.without(*kept)
    benchmark = BENCHMARKS.get(spec.benchmark or "")
    known = {
        **(benchmark.typical_coefficients() if benchmark else {}),
        **playback.truth,
        **spec.coefficients,
        **coefficients,
    }
    if any(name not in known for name in dropped.coefficient_names):
        return None
    values = {k: jnp.asarray(v, jnp.float32) for k, v in known.items()}
    last = len(playback.steps) - 1
    frames = np.unique(np.linspace(0, last, min(FRAMES, last + 1)).astype(int))
    pairs = [_changes(stepper, dropped, jnp.asarray(playback.reference[k]), values) for k in frames]
    truth = np.stack([np.asarray(p[0], float) for p in pairs])
    found = np.stack([np.asarray(p[1], float) for p in pairs])
    middle = len(frames) // 2
    return LearnedPart(
        terms=spec.dropped_terms,
        step=playback.steps[frames[middle]],
        dropped=truth[middle],
        learned=found[middle],
        correlation=_correlation(truth, found),
        share=_share(truth, found),
        by_step=tuple(
            (playback.steps[k], _correlation(a, b))
            for k, a, b in zip(frames, truth, found, strict=True)
        ),
    )


@eqx.filter_jit
def _changes(stepper: Surrogate, dropped: Equation, u, coefficients):
    """`dt F_dropped[u]` and `N_θ(u)`, both the change of the state over one step."""
    physics = stepper.physics
    alone = replace(physics, equation=dropped)
    seen = u if stepper.coupling != "sequential" else physics(u, coefficients)
    change = physics.dt * alone.tendency(u, coefficients)
    return change, stepper.correction(seen, coefficients)


def _correlation(a: np.ndarray, b: np.ndarray) -> float | None:
    """Pearson's, over space, channels and frames."""
    a, b = a - a.mean(), b - b.mean()
    size = np.linalg.norm(a) * np.linalg.norm(b)
    return float((a * b).sum() / size) if size > 0 and np.isfinite(size) else None


def _share(truth: np.ndarray, found: np.ndarray) -> float | None:
    size = float((truth**2).sum())
    return float((truth * found).sum() / size) if size > 0 else None

"""The verdict: what the numbers say, in sentences."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..evaluate.results import Metrics, divergence_text, measured_on
from ..evaluate.written import percent
from .evaluated import Entry, EvaluatedRun

# An operator that removes less than a tenth of the error of its physics changes nothing of note.
NOTABLE = 0.1
# With physics this accurate an operator cannot show what it is worth, and is not blamed.
NEGLIGIBLE = 1e-3


@dataclass(frozen=True)
class ReportVerdict:
    """A headline, sentences that support it, and whether it is good news."""

    headline: str
    sentences: tuple[str, ...]
    tone: str  # "good", "mixed" or "bad"


def verdict(
    runs: Sequence[EvaluatedRun], shown: Sequence[Entry], published: float | None
) -> ReportVerdict:
    """What a reader should take away; `published` is the paper's error for this benchmark."""
    if len(runs) == 1:
        return _one(runs[0], published)
    return _several(runs, shown, published)


def _one(run: EvaluatedRun, published: float | None) -> ReportVerdict:
    metrics = run.metrics
    if metrics.diverged:
        return ReportVerdict(
            f"{_share(metrics)} diverged, the first at step {_first(metrics)}.",
            (
                _divergence(metrics),
                *_physics(run),
                "A rollout that diverged has no mean error: its curve ends at that step.",
            ),
            "bad",
        )
    alone = metrics.physics_alone
    sentences = [_accuracy(metrics), *_physics(run), _horizon(metrics)]
    if published is not None:
        sentences.append(_against_paper(metrics, published))
    error = metrics.rl2_mean or 0.0
    idle = (
        alone is not None
        and alone.rl2_mean is not None
        and error > alone.rl2_mean * (1 - NOTABLE)
        and error > NEGLIGIBLE
    )
    tone = "mixed" if idle or error > 0.1 else "good"
    return ReportVerdict(
        f"Off by {percent(metrics.rl2_mean)} on average over {metrics.steps} steps.",
        tuple(sentences),
        tone,
    )


def _several(
    runs: Sequence[EvaluatedRun], shown: Sequence[Entry], published: float | None
) -> ReportVerdict:
    finished = sorted(
        (run for run in runs if run.metrics.rl2_mean is not None),
        key=lambda run: run.metrics.rl2_mean or 0.0,
    )
    lost = [run for run in runs if run.metrics.diverged]
    failures = [f"{run.label}: {_divergence(run.metrics)}" for run in lost]
    if not finished:
        return ReportVerdict("Every run diverged.", tuple(failures), "bad")
    best, *rest = finished
    sentences = [_accuracy(best.metrics, f"With {best.label}")]
    if rest:
        sentences.append(
            "The others: "
            + ", ".join(
                f"{run.label} {percent(run.metrics.rl2_mean)} "
                f"({_times(run.metrics.rl2_mean, best.metrics.rl2_mean)})"
                for run in rest
            )
            + "."
        )
    many = sum(run.is_surrogate for run in runs) > 1
    for run in finished:
        sentences += [
            f"{run.label}: {said[0].lower()}{said[1:]}" if many else said for said in _physics(run)
        ]
    if published is not None and any(run.is_surrogate for run in finished):
        first = next(run for run in finished if run.is_surrogate)
        sentences.append(_against_paper(first.metrics, published, first.label))
    against = f", against {percent(rest[0].metrics.rl2_mean)} for {rest[0].label}" if rest else ""
    alone = [e for e in shown if e.is_physics_alone and e.metrics.rl2_mean is not None]
    better = min(alone, key=lambda e: e.metrics.rl2_mean or 0.0, default=None)
    error = best.metrics.rl2_mean or 0.0
    beaten = (
        better is not None
        and error > NEGLIGIBLE
        and (better.metrics.rl2_mean or 0.0) < error * (1 - NOTABLE)
    )
    headline = f"{best.label} is the most accurate: off by {percent(error)} on average{against}."
    if better is not None and beaten:
        headline = (
            f"{best.label} is the most accurate run, off by {percent(error)} on average, but "
            f"{better.label} reaches {percent(better.metrics.rl2_mean)}."
        )
    return ReportVerdict(headline, (*sentences, *failures), "mixed" if lost or beaten else "good")


def _accuracy(metrics: Metrics, lead: str = "") -> str:
    spread = (
        ""
        if metrics.rl2_std is None or metrics.trajectories == 1
        else (f" (± {percent(metrics.rl2_std)} from trajectory to trajectory)")
    )
    start = f"{lead} the prediction" if lead else "The prediction"
    worst = [e for e in metrics.per_trajectory.get("rl2") or [] if e is not None]
    last = metrics.rl2_curve[-1] if metrics.rl2_curve else None
    tail = f"; at the last step by {percent(last)}" if last is not None else ""
    if len(worst) > 1:
        tail += f", in the worst trajectory by {percent(max(worst))} on average"
    return (
        f"{start} differs from the reference by {percent(metrics.rl2_mean)}{spread} in the "
        f"relative L2 norm, averaged over {metrics.steps} steps of "
        f"{measured_on(metrics)}{tail}."
    )


def _physics(run: EvaluatedRun) -> list[str]:
    """Whether the operator earns its place beside the physics."""
    metrics, alone = run.metrics, run.metrics.physics_alone
    if run.model.record.get("operator_earned_its_place") is False:
        return [_left_out(run)]
    if not run.is_surrogate or alone is None:
        return []
    if alone.rl2_mean is None:
        if metrics.rl2_mean is None:
            return [f"Physics alone {divergence_text(alone)} as well."]
        return [
            f"Physics alone {divergence_text(alone)}: the operator earns its place by keeping the "
            "rollout stable."
        ]
    if metrics.rl2_mean is None:
        return [
            f"Physics alone stays stable, at {percent(alone.rl2_mean)}: here the operator does "
            "harm; use the physics alone, or train longer."
        ]
    cost = _cost(metrics, alone)
    change = 1 - metrics.rl2_mean / alone.rl2_mean if alone.rl2_mean else 0.0
    said = f"Physics alone comes to {percent(alone.rl2_mean)}"
    if change > NOTABLE:
        return [
            f"{said}: the operator removes {100 * change:.0f} % of that error{cost}, so it "
            "earns its place."
        ]
    if change < -NOTABLE:
        return [
            f"{said}: the operator makes it worse{cost}; use the physics alone, or train longer."
        ]
    return [
        f"{said}: the operator changes that by less than a tenth{cost}, so it hardly earns its "
        "place; the physics would do alone."
    ]


def _left_out(run: EvaluatedRun) -> str:
    decision = run.model.record.get("decision")
    data = decision.get("data") if isinstance(decision, dict) else None
    where = f" ({data})" if isinstance(data, str) else ""
    return (
        f"The operator did not lower the rollout error{where} and was left out: this model is its "
        "embedded physics alone."
    )


def _cost(metrics: Metrics, alone: Metrics) -> str:
    a, b = metrics.cost_ms_per_step, alone.cost_ms_per_step
    if not a or not b:
        return ""
    return f" at {a / b:.1f} times the cost of a step" if a > 1.05 * b else " at the same cost"


def _horizon(metrics: Metrics) -> str:
    text = "No rollout diverged"
    if metrics.step_above is not None:
        return f"{text}; the mean error passes 10 % at step {metrics.step_above}."
    return f"{text}, and the mean error stays below 10 % throughout."


def _against_paper(metrics: Metrics, published: float, label: str = "this run") -> str:
    ours = metrics.rl2_mean
    if ours is None:
        return f"The paper reports {percent(published)} for this benchmark."
    ratio = ours / published
    compared = f"{ratio:.1f} times as large" if ratio >= 1 else f"{1 / ratio:.1f} times smaller"
    if ratio < 1e-2:
        compared = f"{1 / ratio:.0f} times smaller"
    points = metrics.data.get("points") or []
    grid = " × ".join(str(n) for n in points)
    where = f" on {grid} points" if grid else ""
    return (
        f"The paper publishes {percent(published)} for its surrogate on this benchmark: the error "
        f"of {label} is {compared} (paper: 30 trajectories of 200 steps on its own grid; here "
        f"{metrics.trajectories} of {metrics.steps}{where})."
    )


def _times(value: float | None, best: float | None) -> str:
    if not value or not best:
        return "not comparable"
    ratio = value / best
    return f"{ratio:.1f} times as much" if ratio < 100 else f"{ratio:,.0f} times as much"


def _first(metrics: Metrics) -> int:
    return min(entry["step"] for entry in metrics.diverged)


def _share(metrics: Metrics) -> str:
    count, total = len(metrics.diverged), metrics.trajectories
    if total == 1:
        return "The rollout"
    return "All rollouts" if count == total else f"{count} of {total} rollouts"


def _divergence(metrics: Metrics) -> str:
    listed = [f"trajectory {e['trajectory']} at step {e['step']}" for e in metrics.diverged[:4]]
    more = len(metrics.diverged) - len(listed)
    return "diverged in " + ", ".join(listed) + (f" and {more} more" if more else "") + "."

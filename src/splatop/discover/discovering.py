"""`discover`: the terms of an equation from data."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from ..data import Trajectories, part
from ..data.held import as_trajectories
from ..equation import format_expression, parse_partial_equation
from ..equation.printing import format_equation
from ..errors import SplatopError
from ..identify.inverse import NOISY
from .apart import alone, each_by_itself
from .candidates import Candidate
from .chosen_frames import check_enough, pieces_of
from .discovered import Discovered, FoundTerm, number_text
from .evidence import Choice, choose
from .gather import Gathered
from .moments import accumulate
from .question import Question, ask
from .refine import Refined, refine, seconds_for_noisy, slowness
from .symmetry import Setting
from .trust import UNEXPLAINED, Trust, judge

DEFAULT_BUDGET = 10.0
# Derivatives in a product, at most; on a shape half as many, which can be relied on at its edges.
_ORDER = 4
# Standard errors so many times those of the weak form, in clean data, and relative ones that are
# small enough for all that.
_FAR_LESS_SURE = 10.0
_SURE = 1e-4
# Rounds of taking away a term that the refined fit cannot tell from zero.
_PRUNINGS = 4

Say = Callable[[str], None]


def discover(
    data: Any,
    equation: str = "dt(u) = ?",
    *,
    known: Mapping[str, float] | None = None,
    terms: str | Sequence[str] | None = None,
    symmetry: str | Iterable[str] = (),
    velocity: Sequence[str] | None = None,
    degree: int = 3,
    order: int | None = None,
    frames: int | str | None = None,
    start: int = 0,
    budget: float = DEFAULT_BUDGET,
    dt: float | None = None,
    lengths: float | Sequence[float] | np.ndarray | None = None,
    origin: float | Sequence[float] | np.ndarray | None = None,
    fields: Sequence[str] | None = None,
    periodic: bool | None = None,
    drop_end: bool = False,
    boundary: str | None = None,
    sampling: str | Sequence[str] | None = None,
    shape: str | None = None,
    mask: str | np.ndarray | None = None,
    points: np.ndarray | None = None,
    inputs: Sequence[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Discovered:
    """The equation behind trajectories, where its text has `?` for what is not known.

    `data` are trajectories, a file of them, or arrays as `fit` takes them, with `dt`, `lengths`,
    `origin`, `fields`, `periodic`, `drop_end`, `boundary`, `sampling`, `shape`, `mask`, `points`
    and `inputs`, which have no equation but stand in candidates. `known` are values of coefficients
    that the text names; those it names without a value are found along. Candidates are `terms`
    ("u, u^2, u*dx(u)"), or products of up to `degree` fields and derivatives up to the `order`
    (else 4, on a shape 2) that respect each `symmetry` named: rotation, mirror, galilei,
    conservation. `velocity` names the fields that are its components.

    `frames` successive ones from `start` on are used, or as many of all as a pass allows for.
    About `budget` seconds go into refining the coefficients in time; with 0, or where noisy frames
    would need more, they stay those of the weak form. Runs in double precision, whatever the
    default.
    """
    trajectories = as_trajectories(
        data,
        dt=dt,
        lengths=lengths,
        origin=origin,
        fields=fields,
        periodic=periodic,
        drop_end=drop_end,
        boundary=boundary,
        sampling=sampling,
        shape=shape,
        mask=mask,
        points=points,
        inputs=inputs,
    )
    partial = parse_partial_equation(
        equation,
        dims=trajectories.grid.dims,
        fields=trajectories.fields,
        inputs=trajectories.inputs,
    )
    if not trajectories.even:
        raise SplatopError(
            f"{trajectories.source}: expected evenly spaced frames to find terms in, got uneven "
            "ones: give --resample (resample=True) to interpolate them to even times"
        )
    told = () if partial.known is None else partial.known.terms
    if any(term.uses_time for term in told):
        raise SplatopError(
            "expected known terms without the time t beside ?, got some with it: terms of an "
            "equation that depends on time cannot be found yet"
        )
    setting = Setting.of(
        (*trajectories.fields, *trajectories.inputs),
        trajectories.grid.dims,
        symmetry,
        velocity,
        degree,
        order if order is not None else _ORDER if trajectories.domain.shape is None else 2,
    )
    setting = replace(setting, streams=trajectories.domain.all_periodic)
    question = ask(partial, setting, known=dict(known or {}), terms=terms)
    found, _ = _discovered(trajectories, question, frames, start, budget, progress)
    if found.trusted or not (which := alone(found, trajectories)):
        return found
    # Trajectories that have no equation in common may each have one.
    own = [
        _discovered(part(trajectories, slice(i, i + 1), which=""), question, frames, start, 0.0)
        for i in which
    ]
    return each_by_itself(found, own)


def _discovered(
    trajectories: Trajectories,
    question: Question,
    frames: int | str | None,
    start: int,
    budget: float,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Discovered, str]:
    """What is found, and its equation with a name for each coefficient."""
    held = pieces_of(trajectories.together, question, frames, start)
    basis, _ = question.basis
    moments = accumulate(
        held,
        basis.expressions(),
        fields=question.channels,
        known=question.known,
        coefficients=question.values,
        progress=progress,
    )
    tasks = {group: [question.task(group, one) for one in moments] for group in question.groups}
    for group, own in tasks.items():
        check_enough(own[0].rows.sum(), len(group.candidates))
    noise = held.spectrum.relative_noise
    choices = [choose(question, group, own, noise=noise) for group, own in tasks.items()]
    window = (start, frames if isinstance(frames, int) else None)
    needed, slow = 0.0, 1.0
    if noise >= NOISY:
        terms = [
            pair for choice in choices for pair in zip(choice.candidates, choice.c, strict=True)
        ]
        slow = slowness(terms, trajectories, held.spectrum.band)
        needed = seconds_for_noisy(trajectories, slow)
    too_long = 0 < budget < needed
    # Where a term is missing others stand for it, and to follow them takes long and tells nothing;
    # what a grid leaves out is no such term.
    missing = max(choice.left for choice in choices) > UNEXPLAINED and not held.spectrum.unresolved
    budget = 0.0 if too_long or missing else budget / slow
    refined, choices = _refined(question, choices, trajectories, budget, window)
    verdict = judge(question, held, choices, refined, needed if too_long else None)
    found = _result(question, held, choices, refined, verdict)
    return found, _text(question, _named(question, choices), _values(question))


Terms = tuple[tuple[str, Candidate], ...]


def _named(question: Question, choices: list[Choice]) -> Terms:
    """All terms with a name for the coefficient of each: the user's, or one that is free."""
    taken = {*question.fields, *question.partial.coefficient_names}
    free = (name for i in range(10_000) if (name := f"found{i}") not in taken)
    return tuple(
        (choice.names[i] if i < len(choice.names) else next(free), candidate)
        for choice in choices
        for i, candidate in enumerate(choice.candidates)
    )


def _refined(
    question: Question,
    choices: list[Choice],
    data: Trajectories,
    budget: float,
    window: tuple[int, int | None],
) -> tuple[Refined | None, list[Choice]]:
    """The refined coefficients, without terms that they cannot tell from zero."""
    found: Refined | None = None
    for left in reversed(range(_PRUNINGS + 1)):
        terms = _named(question, choices)
        if not terms or budget <= 0:
            return None, choices
        start = np.concatenate([choice.c for choice in choices])
        found = refine(question, terms, start, data, budget=budget, window=window)
        forced = {name for choice in choices for name in choice.names}
        if found is None:
            break
        vague = [i for i in found.vague if terms[i][0] not in forced]
        if not vague or len(terms) == 1 or not left:
            break
        ratio = np.abs(found.values) / np.maximum(found.half_widths, 1e-300)
        choices = _without_vague(choices, {i: ratio[i] for i in vague})
    return found, choices


def _without_vague(choices: list[Choice], ratio: Mapping[int, float]) -> list[Choice]:
    """Without the vaguer half of each group's vague terms, but not without any term at all: of
    several that stand for each other the rest may become sure."""
    ends = np.cumsum([0, *(len(choice.candidates) for choice in choices)])
    own = [
        sorted((i for i in ratio if a <= i < b), key=ratio.__getitem__) for a, b in pairwise(ends)
    ]
    gone = [some[: (len(some) + 1) // 2] for some in own]
    if sum(map(len, gone)) == ends[-1]:
        least = min(ratio, key=ratio.__getitem__)
        gone = [[i for i in some if i == least] for some in gone]
    found = []
    for choice, some, first in zip(choices, gone, ends, strict=False):
        for i in sorted(some, reverse=True):
            choice = choice.dropped(i - int(first))
        found.append(choice)
    return found


def _result(
    question: Question,
    held: Gathered,
    choices: list[Choice],
    refined: Refined | None,
    verdict: Trust,
) -> Discovered:
    terms = _named(question, choices)
    weak = np.concatenate([choice.c for choice in choices]) if choices else np.zeros(0)
    errors = np.concatenate([np.sqrt(np.diag(choice.covariance)) for choice in choices])
    widths = 2 * errors
    use = refined is not None and verdict.use_refined and _surer(refined, weak, errors)
    if refined is not None and use:
        weak, errors, widths = refined.values, refined.errors, refined.half_widths
    without = [value for choice in choices for value in choice.without]
    support = [value for choice in choices for value in choice.support]
    own = {name for choice in choices for name in choice.names}
    found = tuple(
        FoundTerm(
            tuple((f, format_expression(side)) for f, side in candidate.sides),
            float(weak[i]),
            float(errors[i]),
            float(weak[i] - widths[i]),
            float(weak[i] + widths[i]),
            without[i],
            support[i],
            name if name in own else None,
        )
        for i, (name, candidate) in enumerate(terms)
    )
    numbers = {name: number_text(weak[i], errors[i]) for i, (name, _) in enumerate(terms)}
    residual = max(choice.left for choice in choices)
    return Discovered(
        equation=_text(question, terms, {**_values(question), **numbers}),
        named=_text(question, terms, {k: v for k, v in numbers.items() if k not in own}),
        terms=found,
        trusted=verdict.trusted,
        warnings=verdict.warnings,
        alternatives=verdict.alternatives,
        relative_residual=residual,
        noise_level=held.spectrum.relative_noise,
        candidates=sum(len(group.candidates) for group in question.groups),
        frames=held.states.shape[0] * held.states.shape[1],
        method=refined.method if refined is not None and use else "weak",
        left_out=tuple(
            sorted((one for c in choices for one in c.left_out), key=lambda one: -one.share)
        ),
    )


def _surer(refined: Refined, weak: np.ndarray, errors: np.ndarray) -> bool:
    """Whether following the equation in time tells the coefficients better, on the frames that its
    budget allows for. Clean frames can be followed to more digits than the weak form integrates,
    unless their solver left scales out that are needed for that: then it is far less sure."""
    size = np.maximum(np.abs(weak), 1e-300)
    most = float(np.mean(errors / size))
    if refined.noise < NOISY:
        most = max(_FAR_LESS_SURE * most, _SURE)
    return bool(np.mean(refined.errors / size) <= most)


def _values(question: Question) -> dict[str, str]:
    return {name: repr(float(value)) for name, value in question.values.items()}


def _text(question: Question, terms: Terms, numbers: Mapping[str, str]) -> str:
    """The equation with these numbers for names."""
    lines = dict.fromkeys(question.fields, "")
    if question.known is not None:
        told = format_equation(question.known, dims=question.setting.dims)
        for line in told.split("; "):
            head, _, side = line.partition(" = ")
            lines[head[3:-1]] = "" if side == "0" else side
        for name in question.values:
            if name in numbers:
                lines = {f: _replaced(side, name, numbers[name]) for f, side in lines.items()}
    for name, candidate in terms:
        for field, _ in candidate.sides:
            minus, piece = candidate.times(field, numbers.get(name, name))
            before = lines[field]
            sign = (" - " if minus else " + ") if before else ("-" if minus else "")
            lines[field] = before + sign + piece
    return "; ".join(f"dt({field}) = {side or '0'}" for field, side in lines.items())


def _replaced(side: str, name: str, number: str) -> str:
    shown = f"({number})" if number.startswith("-") else number
    return re.sub(rf"\b{re.escape(name)}\b", shown, side)

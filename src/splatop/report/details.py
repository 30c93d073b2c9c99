"""The lower half of the page: equation, coefficients, what was learned, settings and reasons."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..description import describe, own_parts
from ..equation import Equation, latex_lines
from ..errors import SplatopError
from ..evaluate.written import percent, typeset
from ..model import ModelSpec
from .charts import Line, chart, legend
from .evaluated import EvaluatedRun
from .learned_part import LearnedPart
from .markup import Child, Html, table, tag, wide
from .mathml import mathml
from .pictures import DIVERGING, field_picture
from .playback import Playback
from .sections import Charts, section
from .ticks import ChartAxis


def equation_section(spec: ModelSpec) -> Html:
    """The equation as formula and as text, and which terms the physics was not told."""
    try:
        equation = spec.full_equation
        formulas: list[Child] = [mathml(line) for line in latex_lines(equation, dims=spec.dims)]
    except SplatopError:  # a network needs no equation that can be read
        equation, formulas = None, []
    known = [f"{name} = {value:.6g}" for name, value in spec.coefficients.items()]
    if spec.unknown:
        known.append(f"{', '.join(spec.unknown)} identified from each trajectory's first frames")
    return section(
        "equation",
        "Equation",
        wide(*formulas, label="Equation", class_="formula") if formulas else None,
        tag("p.source", tag("code", spec.equation)),
        tag("p", "Coefficients: " + "; ".join(known) + ".") if known else None,
        _dropped(spec, equation),
    )


def _dropped(spec: ModelSpec, equation: Equation | None) -> Html | None:
    if not spec.dropped_terms or equation is None:
        return None
    try:
        lines = latex_lines(spec.known_equation, dims=spec.dims)
    except SplatopError:
        lines = ()
    return tag(
        "div",
        tag("p", f"The physics was not told of: {', '.join(spec.dropped_terms)}. It knows"),
        wide(*(mathml(line) for line in lines), label="What the physics knows", class_="formula"),
    )


def coefficients_section(runs: Sequence[EvaluatedRun], playback: Playback | None) -> Html | None:
    """Identified values with their errors over the test set, and intervals where they are known."""
    rows = []
    for run in runs:
        held = run.metrics.coefficients
        estimated, true = held.get("estimated") or {}, held.get("true") or {}
        for name, values in estimated.items():
            rows.append(_coefficient_row(run, name, values, true.get(name), playback))
    if not rows:
        return None
    head = [
        "run",
        "coefficient",
        "estimate",
        "95 % interval",
        "true",
        "mean error",
        "largest error",
    ]
    if all(row[3] is None for row in rows):
        head, *rows = ([*row[:3], *row[4:]] for row in (head, *rows))
    rows = [["–" if cell is None else cell for cell in row] for row in rows]
    return section(
        "coefficients",
        "Identified coefficients",
        wide(table(head, rows), label="Identified coefficients"),
        tag(
            "p.note",
            "Estimate and true value belong to the trajectory of the player, or to the first one; "
            "the errors are relative and over all test trajectories.",
        ),
    )


def _coefficient_row(
    run: EvaluatedRun, name: str, values: list, true: list | None, playback: Playback | None
) -> list[str | None]:
    index = playback.trajectory if playback and playback.trajectory < len(values) else 0
    held = run.metrics.coefficients
    rollouts = playback.rollouts if playback else ()
    rollout = next((r for r in rollouts if r.label == run.label), None)
    interval = rollout.intervals.get(name) if rollout else None
    return [
        run.label,
        name,
        typeset(values[index], 4),
        None if interval is None else _half_width(interval),
        typeset(true[index], 4) if true and index < len(true) else "unknown",
        _error(held, "relative_error", name),
        _error(held, "relative_error_max", name),
    ]


def _half_width(interval: tuple[float, float]) -> str:
    half = (interval[1] - interval[0]) / 2
    return f"± {typeset(half)}" if math.isfinite(half) else "unbounded"


def _error(held: Mapping[str, Any], key: str, name: str) -> str:
    value = (held.get(key) or {}).get(name)
    return "–" if value is None else percent(value)


def learned_section(
    charts: Charts, found: Sequence[tuple[EvaluatedRun, LearnedPart]], playback: Playback
) -> Html | None:
    """Maps of the dropped terms' change over a step and of the operator's, side by side."""
    if not found:
        return None
    return section(
        "learned",
        "What the operator learned in place of the missing terms",
        *(
            _learned(charts, run, learned, playback, many=len(found) > 1, position=i)
            for i, (run, learned) in enumerate(found)
        ),
    )


def _learned(
    charts: Charts,
    run: EvaluatedRun,
    learned: LearnedPart,
    playback: Playback,
    *,
    many: bool,
    position: int,
) -> Html:
    terms = ", ".join(learned.terms)
    said = (
        "no correlation can be computed, because one of the two is constant"
        if learned.correlation is None
        else f"their correlation over space and {len(learned.by_step)} moments is "
        f"{learned.correlation:.3f}, and the operator restores "
        f"{percent(learned.share)} of the term"
    )
    caption = (
        f"At reference states of step {learned.step}: the change over one step that the dropped "
        f"terms ({terms}) would make, Δt F[u], and the operator's output N_θ(u), in the same "
        f"colours, x to the right and y upwards; {said}."
    )
    pictures = (
        _profiles(charts, learned, playback, position)
        if playback.grid.dims == 1
        else _maps(learned, playback)
    )
    return tag("div", tag("h3", run.label) if many else None, pictures, tag("p.note", caption))


def _maps(learned: LearnedPart, playback: Playback) -> Html:
    rows = []
    for channel, field in enumerate(playback.fields):
        truth, found = (_plane(a[channel]) for a in (learned.dropped, learned.learned))
        limit = float(max(np.abs(truth).max(), np.abs(found).max())) or 1.0
        for title, values in (
            (f"dropped term × Δt, {field}", truth),
            (f"operator’s correction, {field}", found),
            (f"difference, {field}", found - truth),
        ):
            rows.append(
                tag(
                    "figure.field",
                    tag("figcaption", title),
                    tag("img", src=field_picture(values, -limit, limit, DIVERGING), alt=title),
                    tag("p.range", f"−{typeset(limit)} … +{typeset(limit)}"),
                )
            )
    return tag("div.maps", *rows)


def _plane(values: np.ndarray) -> np.ndarray:
    return values[..., values.shape[-1] // 2] if values.ndim == 3 else values


def _profiles(charts: Charts, learned: LearnedPart, playback: Playback, position: int) -> Html:
    x = playback.grid.coordinates()[0].ravel().tolist()
    parts = []
    for channel, field in enumerate(playback.fields):
        lines = [
            Line("dropped term × Δt", x, learned.dropped[channel].tolist(), "reference"),
            Line("operator’s correction", x, learned.learned[channel].tolist(), "s0"),
        ]
        drawn = chart(
            lines,
            x=ChartAxis("x"),
            y=ChartAxis(f"change of {field} over a step"),
            title=f"Dropped term and correction, {field}",
            height=260,
        )
        parts += [legend(lines), charts.figure(f"learned{position}-{channel}", drawn, "")]
    return tag("div.column", *parts)


def settings_section(runs: Sequence[EvaluatedRun]) -> Html:
    """Why the numerics are what they are, and every setting that was used."""
    return section("settings", "Settings", *(_settings(run, named=len(runs) > 1) for run in runs))


def _settings(run: EvaluatedRun, *, named: bool) -> Html:
    spec, record = run.model.spec, dict(run.model.record)
    reasons = _reasons(run)
    has_fno = spec.kind in ("surrogate", "fno") and spec.operator == "fno"
    model = {
        "kind": spec.kind,
        "operator": spec.operator if spec.kind == "surrogate" else None,
        "coupling": spec.coupling if spec.kind == "surrogate" else None,
        "hidden channels": spec.hidden if has_fno else None,
        "modes": spec.modes if has_fno else None,
        "blocks": spec.blocks if has_fno else None,
        "conditioned on coefficients": spec.conditioned or None,
        "parameters": run.model.parameters,
    }
    training = {  # the summary stands at the top of the page
        k: v for k, v in record.items() if not isinstance(v, list | dict) and k != "summary"
    }
    tables: list[tuple[str, Mapping[str, Any]]] = [
        ("Model", model),
        ("Parts of your own", own_parts(describe(run.model.stepper, strict=False))),
        ("Numerics", {} if spec.numerics is None else spec.numerics.as_dict()),
        ("Training", training),
        ("Gaussians against exact derivatives", _representation(run.metrics.representation)),
    ]
    chosen = run.config.get("settings")
    every = chosen if isinstance(chosen, dict) else {}
    return tag(
        "div.run-settings",
        tag("h3", run.label) if named else None,
        tag(
            "dl.reasons",
            *(
                tag("div", tag("dt", name), tag("dd", why))
                for name, _, why in (reason.partition(": ") for reason in reasons)
            ),
        )
        if reasons
        else None,
        tag("div.sheets", *(_table(name, values) for name, values in tables if values)),
        tag("details.all", tag("summary", "All training settings"), _table("", every))
        if every
        else None,
    )


def _representation(held: Mapping[str, Any] | None) -> dict[str, str]:
    """Relative errors of the representation, where the evaluation measured them."""
    names = {"e_u": "field", "e_grad": "gradient", "e_lap": "Laplacian"}
    return {
        f"{name}, relative error": typeset(held[key])
        for key, name in names.items()
        if held and isinstance(held.get(key), float)
    }


def _reasons(run: EvaluatedRun) -> list[str]:
    """The sentences of the automatic numerics, where training wrote them down."""
    prepared = run.config.get("prepared")
    for held in (
        run.model.record.get("numerics"),
        prepared.get("reasons") if isinstance(prepared, dict) else None,
    ):
        if isinstance(held, list) and held:
            return [str(reason) for reason in held]
    return []


def _table(name: str, values: Mapping[str, Any]) -> Html:
    rows = [
        tag("tr", tag("th", str(key).replace("_", " "), scope="row"), tag("td", _value(value)))
        for key, value in values.items()
        if value is not None
    ]
    return tag("table.sheet", tag("caption", name) if name else None, tag("tbody", *rows))


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return ", ".join(_value(item) for item in value) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{k} = {_value(v)}" for k, v in value.items()) or "none"
    return str(value)

"""What `?` in the equation stands for: in words, in numbers, and as a picture."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..equation import LearnedTerm
from ..evaluate.written import percent, typeset
from .charts import Line, Span, chart, legend
from .evaluated import EvaluatedRun
from .markup import Child, Html, table, tag
from .pictures import SEQUENTIAL, field_picture
from .sections import Charts, section
from .term_curves import Curve, Map, curves, learned_term, sampled_arguments, shown_as, term_map
from .ticks import ChartAxis

_TRIALS = {
    "known": "known terms alone",
    "formula": "with the formula found",
    "learned": "with a learned term",
}
_PARTS = {"known": "the known terms", "found": "what was found for ?", "left": "left unexplained"}


def unknown_section(charts: Charts, runs: Sequence[EvaluatedRun]) -> Html | None:
    """None if no run's equation had a `?`."""
    asked = [(run, found) for run in runs if (found := run.model.record.get("unknown"))]
    if not asked:
        return None
    return section(
        "unknown",
        "What ? stands for",
        *(
            tag(
                "div",
                tag("h3", run.label) if len(asked) > 1 else None,
                *answer(charts, found, learned_term(run.model), position),
            )
            for position, (run, found) in enumerate(asked)
        ),
    )


def answer(
    charts: Charts, found: Mapping[str, Any], term: LearnedTerm | None, position: int = 0
) -> list[Child]:
    """What the record of a run says was found, and a picture of the term that was learned."""
    said = str(found.get("said", ""))
    parts: list[Child] = [
        tag("p.headline", f"{said[:1].upper()}{said[1:]}."),
        _shares(found.get("shares") or {}),
        _trials(found),
        _formula(found.get("formula") or {}) if found.get("kept") == "formula" else None,
    ]
    if found.get("kept") == "learned" and term is not None:
        parts += [_picture(charts, found, term, position), _offer(found.get("distilled"))]
    return parts


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Html:
    return tag("div.scroll", table(head, rows))


def _shares(shares: Mapping[str, float]) -> Html | None:
    if not shares:
        return None
    rows = [(name, percent(shares[key])) for key, name in _PARTS.items() if key in shares]
    return _table(["part", "share of the change in the data"], rows)


def _trials(found: Mapping[str, Any]) -> Html | None:
    errors = found.get("errors") or {}
    rows = [
        (f"{name} (kept)" if key == found.get("kept") else name, typeset(errors[key]))
        for key, name in _TRIALS.items()
        if key in errors
    ]
    if not rows:
        return None
    return _table(["physics, without an operator", "error of held-out rollouts"], rows)


def _formula(formula: Mapping[str, Any]) -> Child:
    rows = [
        (
            str(term["term"]),
            typeset(term["coefficient"], 4),
            f"{typeset(term['low'], 4)} to {typeset(term['high'], 4)}",
            typeset(term["error_without"]),
            percent(term["support"]),
        )
        for term in formula.get("terms", ())
    ]
    head = ["term", "coefficient", "95 % interval", "error without it", "chosen"]
    notes = [tag("p.note", f"Warning: {text}.") for text in formula.get("warnings", ())]
    return tag("div", _table(head, rows), *notes)


def _offer(distilled: Mapping[str, Any] | None) -> Html | None:
    if not distilled:
        return None
    return tag("p", "Within its own error it is ", tag("code", str(distilled["text"])), ".")


def _picture(charts: Charts, found: Mapping[str, Any], term: LearnedTerm, position: int) -> Html:
    names, samples = sampled_arguments(found)
    labels = shown_as(term)
    if len(names) == 2:
        return _maps(term_map(term, names, samples), labels)
    several = len(names) > 1
    parts = [
        _curve(charts, one, labels, f"unknown{position}-{i}", several=several)
        for i, one in enumerate(curves(term, names, samples))
    ]
    return tag("div.columns", *parts)


def _curve(
    charts: Charts, one: Curve, labels: tuple[str, ...], name: str, *, several: bool
) -> Html:
    lines = [
        Line(label, one.x.tolist(), y.tolist(), f"s{i % 6}")
        for i, (label, y) in enumerate(zip(labels, one.y, strict=True))
    ]
    drawn = chart(
        lines,
        x=ChartAxis(one.name),
        y=ChartAxis("learned term, mean" if several else "learned term"),
        title=f"The learned term against {one.name}",
        spans=(Span(float(one.x[0]), one.low), Span(one.high, float(one.x[-1]))),
        height=260,
    )
    caption = "Shaded: no data there, the term stays what it is at the edge."
    if several:
        caption += " The mean over the values that the other arguments have in the data."
    return tag("div", legend(lines), charts.figure(name, drawn, caption))


def _maps(found: Map, labels: tuple[str, ...]) -> Html:
    figures = []
    for label, values in zip(labels, found.values, strict=True):
        low, high = float(values.min()), float(values.max())
        title = f"learned term {label}"
        figures.append(
            tag(
                "figure.field",
                tag("figcaption", title),
                tag(
                    "img",
                    src=field_picture(values, low, high, SEQUENTIAL, faint=found.empty),
                    alt=title,
                ),
                tag("p.range", f"{typeset(low)} … {typeset(high)}"),
            )
        )
    (a, b), x, y = found.names, found.x, found.y
    caption = (
        f"{a} to the right from {typeset(x[0])} to {typeset(x[-1])}, {b} upwards from "
        f"{typeset(y[0])} to {typeset(y[-1])}; pale where there were no data."
    )
    return tag("div", tag("div.maps", *figures), tag("p.note", caption))

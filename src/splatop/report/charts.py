"""Line charts as inline SVG, styled by the page, with their numbers for its script."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .markup import Html, join, tag
from .ticks import ChartAxis, Number, Scale, fitted_scale, usable

# More points than a chart has pixels only make the page heavy.
MOST_POINTS = 400


@dataclass(frozen=True)
class Line:
    """A curve; `style` is a class of the style sheet, None in `y` breaks the line."""

    label: str
    x: Sequence[Number]
    y: Sequence[Number | None]
    style: str
    band: tuple[Sequence[Number | None], Sequence[Number | None]] | None = None


@dataclass(frozen=True)
class Mark:
    """A vertical line with a note, where something happens."""

    x: Number
    note: str


@dataclass(frozen=True)
class Span:
    """A shaded stretch of the horizontal axis."""

    low: Number
    high: Number


@dataclass(frozen=True)
class Chart:
    """The drawing, and what a script needs to read values off it."""

    svg: Html
    hover: dict[str, Any]


def chart(
    lines: Sequence[Line],
    *,
    x: ChartAxis,
    y: ChartAxis,
    title: str,
    marks: Sequence[Mark] = (),
    spans: Sequence[Span] = (),
    level: Number | None = None,
    height: int = 320,
) -> Chart:
    """Curves over common axes; `level` draws a horizontal rule, `title` is for screen readers."""
    lines = [_thinned(line) for line in lines]
    width, left, right, top, bottom = 580, 62, 14, 12, 44
    xs = fitted_scale(x, [v for line in lines for v in line.x], left, width - right, tight=True)
    shown = [v for line in lines for part in (line.y, *(line.band or ())) for v in part]
    if level is not None:
        shown.append(level)
    ys = fitted_scale(y, shown, height - bottom, top, tight=False)
    parts = [
        tag("title", title),
        *(_span(span, xs, top, height - bottom) for span in spans),
        _grid(xs, ys, x.label, y.label, width, height),
        None if level is None else _line("level", xs.start, xs.end, ys(level), ys(level)),
        *(_mark(mark, xs, top, height - bottom) for mark in marks if xs.low <= mark.x <= xs.high),
        *(_band(line, xs, ys) for line in lines if line.band),
        *(
            tag("path", class_=f"curve {line.style}", d=_path(line.x, line.y, xs, ys))
            for line in lines
        ),
        *(
            _line(name, left, left, top, height - bottom, visibility="hidden")
            for name in ("cursor", "now")
        ),
    ]
    svg = tag("svg.chart", *parts, viewBox=f"0 0 {width} {height}", role="img", aria_label=title)
    hover = {
        "plot": [left, top, width - right, height - bottom],
        "size": [width, height],
        "x": {"low": xs.low, "high": xs.high, "log": xs.log, "label": x.label},
        "y": {"low": ys.low, "high": ys.high, "log": ys.log},
        "lines": [
            {
                "label": line.label,
                "style": line.style,
                "x": [_short(v) for v in line.x],
                "y": [_short(v) for v in line.y],
            }
            for line in lines
        ],
    }
    return Chart(svg, hover)


def legend(lines: Sequence[Line]) -> Html | None:
    """One swatch and label per curve."""
    if len(lines) < 2:
        return None
    return tag("ul.legend", *(tag("li", swatch(line.style), line.label) for line in lines))


def swatch(style: str) -> Html:
    """A short piece of a curve."""
    piece = tag("line", class_=f"curve {style}", x1=0, x2=26, y1=5, y2=5)
    return tag("svg.swatch", piece, viewBox="0 0 26 10", aria_hidden="true")


def _thinned(line: Line) -> Line:
    if len(line.x) <= MOST_POINTS:
        return line
    keep = np.unique(np.linspace(0, len(line.x) - 1, MOST_POINTS).astype(int))
    band = line.band and ([line.band[0][i] for i in keep], [line.band[1][i] for i in keep])
    return Line(line.label, [line.x[i] for i in keep], [line.y[i] for i in keep], line.style, band)


def _grid(xs: Scale, ys: Scale, x_label: str, y_label: str, width: int, height: int) -> Html:
    parts = []
    for value, label in ys.ticks:
        at = ys(value)
        parts.append(_line("grid", xs.start, xs.end, at, at))
        beside = tag("text.tick.y", label, x=_px(xs.start - 7), y=_px(at), dy="0.33em")
        parts.append(beside)
    for value, label in xs.ticks:
        at = xs(value)
        parts.append(_line("tick", at, at, ys.start, ys.start + 4))
        parts.append(tag("text.tick.x", label, x=_px(at), y=_px(ys.start + 18)))
    middle_x, middle_y = (xs.start + xs.end) / 2, (ys.start + ys.end) / 2
    parts += [
        _line("axis", xs.start, xs.end, ys.start, ys.start),
        tag("text.label.x", x_label, x=_px(middle_x), y=height - 6),
        tag("text.label.y", y_label, transform=f"translate(13 {_px(middle_y)}) rotate(-90)"),
    ]
    return join(parts)


def _span(span: Span, xs: Scale, top: Number, bottom: Number) -> Html:
    left, right = xs(max(span.low, xs.low)), xs(min(span.high, xs.high))
    return tag(
        "rect.span",
        x=_px(left),
        y=_px(top),
        width=_px(max(right - left, 0)),
        height=_px(bottom - top),
    )


def _mark(mark: Mark, xs: Scale, top: Number, bottom: Number) -> Html:
    at = xs(mark.x)
    near_end = at > (xs.start + xs.end) / 2
    return tag(
        "g.mark",
        _line(None, at, at, top, bottom),
        tag(
            "text",
            mark.note,
            x=_px(at - 5 if near_end else at + 5),
            y=_px(top + 11),
            text_anchor="end" if near_end else "start",
        ),
    )


def _path(x: Sequence[Number], y: Sequence[Number | None], xs: Scale, ys: Scale) -> str:
    commands, pen_down, before = [], False, None
    for a, b in zip(x, y, strict=True):
        if not (usable(a, xs.log) and b is not None and usable(b, ys.log)):
            pen_down, before = False, None
            continue
        inside = min(max(b, ys.low), ys.high)
        if inside != b and inside == before:  # a curve that left the frame stays away
            pen_down = False
            continue
        commands.append(f"{'L' if pen_down else 'M'}{xs(a):.1f} {ys(inside):.1f}")
        pen_down, before = True, inside
    if len(commands) == 1:  # a single point is a dot, not nothing
        commands.append("h0.01")
    return "".join(commands)


def _band(line: Line, xs: Scale, ys: Scale) -> Html:
    assert line.band is not None
    points = [
        (xs(a), ys(max(low, ys.low)), ys(min(high, ys.high)))
        for a, low, high in zip(line.x, *line.band, strict=True)
        if usable(a, xs.log)
        and low is not None
        and usable(low, ys.log)
        and high is not None
        and usable(high, ys.log)
    ]
    outline = [(a, high) for a, _, high in points] + [(a, low) for a, low, _ in reversed(points)]
    return tag(
        "path",
        class_=f"band {line.style}",
        d="M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in outline) + "Z" if points else "",
    )


def _line(kind: str | None, x1: Number, x2: Number, y1: Number, y2: Number, **more: object) -> Html:
    ends = {"x1": _px(x1), "x2": _px(x2), "y1": _px(y1), "y2": _px(y2)}
    return tag("line", class_=kind, **ends, **more)


def _px(value: Number) -> str:
    return f"{value:.1f}"


def _short(value: Number | None) -> float | None:
    """Six digits are all that a reader, or a page, needs."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")

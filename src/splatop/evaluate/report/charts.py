"""Line charts as inline SVG, styled by the page, with their numbers for the pointer and keyboard."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .markup import Html, join, tag

# More points than a chart has pixels only make the page heavy.
MOST_POINTS = 400

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Line:
    """A curve; `style` is a class of the style sheet, None in `y` breaks the line."""

    label: str
    x: Sequence[float]
    y: Sequence[float | None]
    style: str
    band: tuple[Sequence[float | None], Sequence[float | None]] | None = None


@dataclass(frozen=True)
class Axis:
    """What an axis shows. Limits that are not given follow the data."""

    label: str
    log: bool = False
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Mark:
    """A vertical line with a note, where something happens."""

    x: float
    note: str


@dataclass(frozen=True)
class Chart:
    """The drawing, and what a script needs to read values off it."""

    svg: Html
    hover: dict[str, Any]


@dataclass
class _Scale:
    low: float
    high: float
    log: bool
    start: float
    end: float
    ticks: list[tuple[float, str]] = field(default_factory=list)

    def __call__(self, value: float) -> float:
        a, b = (math.log10(v) if self.log else v for v in (self.low, self.high))
        v = math.log10(value) if self.log else value
        return self.start + (self.end - self.start) * (v - a) / (b - a)


def chart(
    lines: Sequence[Line],
    *,
    x: Axis,
    y: Axis,
    title: str,
    marks: Sequence[Mark] = (),
    level: float | None = None,
    height: int = 320,
) -> Chart:
    """Curves over common axes; `level` draws a horizontal rule, `title` is for screen readers."""
    lines = [_thinned(line) for line in lines]
    width, left, right, top, bottom = 580, 62, 14, 12, 44
    xs = _scale(x, [v for line in lines for v in line.x], left, width - right, tight=True)
    shown = [v for line in lines for part in (line.y, *(line.band or ())) for v in part]
    if level is not None:
        shown.append(level)
    ys = _scale(y, shown, height - bottom, top, tight=False)
    parts = [
        tag("title", title),
        _grid(xs, ys, x.label, y.label, width, height),
        None
        if level is None
        else tag(
            "line", class_="level", x1=left, x2=width - right, y1=_px(ys(level)), y2=_px(ys(level))
        ),
        *(_mark(mark, xs, top, height - bottom) for mark in marks if xs.low <= mark.x <= xs.high),
        *(_band(line, xs, ys) for line in lines if line.band),
        *(
            tag("path", class_=f"curve {line.style}", d=_path(line.x, line.y, xs, ys))
            for line in lines
        ),
        tag(
            "line",
            class_="cursor",
            x1=left,
            x2=left,
            y1=top,
            y2=height - bottom,
            visibility="hidden",
        ),
        tag(
            "line", class_="now", x1=left, x2=left, y1=top, y2=height - bottom, visibility="hidden"
        ),
    ]
    svg = tag(
        "svg", *parts, viewBox=f"0 0 {width} {height}", role="img", aria_label=title, class_="chart"
    )
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
    return tag(
        "ul",
        *(
            tag(
                "li",
                tag(
                    "svg",
                    tag("line", class_=f"curve {line.style}", x1=0, x2=26, y1=5, y2=5),
                    viewBox="0 0 26 10",
                    class_="swatch",
                    aria_hidden="true",
                ),
                line.label,
            )
            for line in lines
        ),
        class_="legend",
    )


def _thinned(line: Line) -> Line:
    if len(line.x) <= MOST_POINTS:
        return line
    keep = np.unique(np.linspace(0, len(line.x) - 1, MOST_POINTS).astype(int))
    band = line.band and ([line.band[0][i] for i in keep], [line.band[1][i] for i in keep])
    return Line(line.label, [line.x[i] for i in keep], [line.y[i] for i in keep], line.style, band)


def _usable(value: float | None, log: bool) -> bool:
    return value is not None and math.isfinite(value) and (value > 0 or not log)


def _scale(
    axis: Axis, values: list[float | None], start: float, end: float, *, tight: bool
) -> _Scale:
    held = [v for v in values if v is not None and _usable(v, axis.log)]
    held = held or [1.0, 10.0]
    low = min(held) if axis.low is None else axis.low
    high = max(held) if axis.high is None else axis.high
    if axis.log:
        # A curve that falls to rounding should not squeeze all others into the top.
        low = max(low, high * 1e-12)
        if high < low * 1.5:
            low, high = low / 1.5, high * 1.5
        if not tight:
            low = low if axis.low is not None else _decade(low, -1)
            high = high if axis.high is not None else _decade(high, 1)
        return _Scale(low, high, True, start, end, _log_ticks(low, high))
    if high <= low:
        low, high = low - (abs(low) or 1) * 0.5, high + (abs(high) or 1) * 0.5
    ticks = _linear_ticks(low, high)
    if not tight:
        step = ticks[1] - ticks[0]
        low = low if axis.low is not None else math.floor(low / step + 1e-9) * step
        high = high if axis.high is not None else math.ceil(high / step - 1e-9) * step
        ticks = _linear_ticks(low, high)
    return _Scale(low, high, False, start, end, [(t, _number(t)) for t in ticks])


def _decade(value: float, direction: int) -> float:
    """The next of 1, 2, 5 times a power of ten, downwards or upwards."""
    power = 10.0 ** math.floor(math.log10(value))
    steps = [power * m for m in (1, 2, 5, 10)]
    if direction < 0:
        return max(s for s in steps if s <= value * (1 + 1e-9))
    return min(s for s in steps if s >= value * (1 - 1e-9))


def _log_ticks(low: float, high: float) -> list[tuple[float, str]]:
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    multiples = (1, 2, 5) if math.log10(high / low) <= 2.2 else (1,)
    stride = max(1, math.ceil((last - first) / 7))
    plain = low >= 0.9e-3 and high < 1e4
    ticks = []
    for power in range(first, last + 1, stride):
        for m in multiples:
            value = m * 10.0**power
            if low * (1 - 1e-9) <= value <= high * (1 + 1e-9):
                times = "" if m == 1 else f"{m}·"
                power_of_ten = f"{times}10{str(power).translate(_SUPERSCRIPTS)}"
                ticks.append((value, f"{value:g}" if plain else power_of_ten))
    return ticks


def _linear_ticks(low: float, high: float) -> list[float]:
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = min((m * power for m in (1, 2, 2.5, 5, 10)), key=lambda s: abs(s - rough))
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)] or [low, high]


def _number(value: float) -> str:
    return f"{value:.4g}".replace("-", "−") if abs(value) > 1e-15 else "0"


def _grid(xs: _Scale, ys: _Scale, x_label: str, y_label: str, width: int, height: int) -> Html:
    parts = []
    for value, label in ys.ticks:
        at = _px(ys(value))
        parts.append(tag("line", class_="grid", x1=_px(xs.start), x2=_px(xs.end), y1=at, y2=at))
        parts.append(tag("text", label, class_="tick y", x=_px(xs.start - 7), y=at, dy="0.33em"))
    for value, label in xs.ticks:
        at = _px(xs(value))
        parts.append(
            tag("line", class_="tick", x1=at, x2=at, y1=_px(ys.start), y2=_px(ys.start + 4))
        )
        parts.append(tag("text", label, class_="tick x", x=at, y=_px(ys.start + 18)))
    middle_x, middle_y = (xs.start + xs.end) / 2, (ys.start + ys.end) / 2
    parts += [
        tag(
            "line",
            class_="axis",
            x1=_px(xs.start),
            x2=_px(xs.end),
            y1=_px(ys.start),
            y2=_px(ys.start),
        ),
        tag("text", x_label, class_="label x", x=_px(middle_x), y=height - 6),
        tag(
            "text",
            y_label,
            class_="label y",
            transform=f"translate(13 {_px(middle_y)}) rotate(-90)",
        ),
    ]
    return join(parts)


def _mark(mark: Mark, xs: _Scale, top: float, bottom: float) -> Html:
    at = xs(mark.x)
    near_end = at > (xs.start + xs.end) / 2
    return tag(
        "g",
        tag("line", x1=_px(at), x2=_px(at), y1=_px(top), y2=_px(bottom)),
        tag(
            "text",
            mark.note,
            x=_px(at - 5 if near_end else at + 5),
            y=_px(top + 11),
            text_anchor="end" if near_end else "start",
        ),
        class_="mark",
    )


def _path(x: Sequence[float], y: Sequence[float | None], xs: _Scale, ys: _Scale) -> str:
    commands, pen_down = [], False
    for a, b in zip(x, y, strict=True):
        if not (_usable(a, xs.log) and b is not None and _usable(b, ys.log)):
            pen_down = False
            continue
        b = min(max(b, ys.low), ys.high)
        commands.append(f"{'L' if pen_down else 'M'}{xs(a):.1f} {ys(b):.1f}")
        pen_down = True
    if len(commands) == 1:  # a single point is a dot, not nothing
        commands.append("h0.01")
    return "".join(commands)


def _band(line: Line, xs: _Scale, ys: _Scale) -> Html:
    assert line.band is not None
    points = [
        (xs(a), ys(max(low, ys.low)), ys(min(high, ys.high)))
        for a, low, high in zip(line.x, *line.band, strict=True)
        if _usable(a, xs.log)
        and low is not None
        and _usable(low, ys.log)
        and high is not None
        and _usable(high, ys.log)
    ]
    outline = [(a, high) for a, _, high in points] + [(a, low) for a, low, _ in reversed(points)]
    return tag(
        "path",
        class_=f"band {line.style}",
        d="M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in outline) + "Z" if points else "",
    )


def _px(value: float) -> str:
    return f"{value:.1f}"


def _short(value: float | None) -> float | None:
    """Six digits are all that a reader, or a page, needs."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")

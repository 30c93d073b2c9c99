"""The page about an analysis of sensors."""

from pathlib import Path

import numpy as np

from .._version import __version__
from ..assimilate import Analysis
from ..assimilate.uncertain_frames import Frames
from ..data.atomic import write_whole
from ..errors import SplatopError
from .charts import Line, chart, legend
from .markup import Child, Html, table, tag
from .page import page_text
from .sections import Charts, section
from .sensor_pictures import frame_picture, space_time_picture
from .ticks import ChartAxis

_SCRIPTS = ("values.js", "curves.js", "sensors.js")
_LINKS = (
    ("verdict", "Verdict"),
    ("map", "Field and sensors"),
    ("misfit", "Misfit"),
    ("spread", "Spread"),
    ("numbers", "Numbers"),
)
_MOST_FRAMES = 25
_WORST = 10


def write_sensor_report(analysis: Analysis, out: str | Path, *, forecast: int = 0) -> Path:
    """One HTML page that needs nothing outside: the field with its sensors and spread at each
    frame, how far reports are from it by time and sensor, and what was held out."""
    out = Path(out)
    if out.suffix.lower() not in (".html", ".htm"):
        raise SplatopError(f"expected a report named .html, got '{out}'")
    frames = analysis.record()
    if forecast:
        frames = frames.followed_by(analysis.forecast(forecast))
    charts = Charts()
    sections: list[Child] = [
        _header(analysis),
        _verdict(analysis),
        _map(analysis, frames),
        _misfit(charts, analysis),
        _spread(charts, analysis, frames),
        _numbers(analysis),
    ]
    page = page_text(
        "State from sensors", sections, {"charts": charts.hover}, scripts=_SCRIPTS, links=_LINKS
    )
    write_whole(out, page)
    return out


def _header(analysis: Analysis) -> Html:
    held = analysis.observations
    return tag(
        "header",
        tag("h1", "The state from sensors"),
        tag(
            "p.note",
            f"{len(held):,} reports of {len(np.unique(held.sensors)):,} sensors, "
            f"{', '.join(analysis.dynamics.fields)}, t = {analysis.begin:g} to {analysis.end:g}; "
            f"{analysis.dynamics.title}; splatop {__version__}",
        ),
    )


def _verdict(analysis: Analysis) -> Html:
    ratio = analysis.check.ratio
    said = [*analysis.warnings, *analysis.check.warnings]
    lines: list[Child] = [
        tag(
            "p",
            "Nothing speaks against this state. "
            if analysis.trusted
            else "Not trusted: read the warnings before you use this state. ",
            f"Twice the cost over the number of reports is {ratio:.3g}; it is 1 where equation, "
            "noise and prior are as assumed.",
        )
    ]
    if analysis.held_out is not None:
        held = analysis.held_out
        covered = (
            ""
            if held.covered is None
            else (f", {100 * held.covered:.0f} % of them within two standard deviations")
        )
        lines.append(
            tag(
                "p",
                f"{held.reports:,} reports of sensors that were not used are predicted with an "
                f"error of {held.error:.3g} of their spread{covered}.",
            )
        )
    lines += [tag("p.note.missing", text) for text in said]
    return section("verdict", "Verdict", *lines)


def _map(analysis: Analysis, frames: Frames) -> Html:
    if frames.grid.dims == 1:
        pictures = [space_time_picture(analysis, frames)]
        shown = [0]
    else:
        count = min(len(frames), _MOST_FRAMES)
        shown = np.unique(np.linspace(0, len(frames) - 1, count).astype(int)).tolist()
        pictures = [frame_picture(analysis, frames, number) for number in shown]
    figures = [
        tag(
            "figure",
            tag(
                "img",
                src=picture,
                alt=f"field and spread at t = {frames.times[n]:g}",
                style="max-width: 100%",
            ),
            hidden=None if index == 0 else "hidden",
        )
        for index, (n, picture) in enumerate(zip(shown, pictures, strict=True))
    ]
    slider = (
        tag(
            "input",
            type="range",
            min=0,
            max=len(figures) - 1,
            value=0,
            style="width: 100%",
            aria_label="frame",
        )
        if len(figures) > 1
        else tag("input", type="hidden", value=0)
    )
    return section(
        "map",
        "Field and sensors",
        tag("div", slider, *figures, data_frames="frames"),
        tag(
            "p.note",
            "Dots are the sensors that report at the time, filled with what they report. Three "
            "dimensions are shown in the middle of the third axis.",
        ),
    )


def _misfit(charts: Charts, analysis: Analysis) -> Html:
    held = analysis.observations
    residual = (held.values - analysis.predicted) / analysis.sigma
    frame = np.round((held.times - analysis.begin) / analysis.dt).astype(int)
    lines = []
    for number, name in enumerate(analysis.dynamics.fields):
        own = held.fields == name
        if not own.any():
            continue
        count = np.bincount(frame[own])
        square = np.bincount(frame[own], residual[own] ** 2)
        at = np.flatnonzero(count)
        rms = np.sqrt(square[at] / count[at])
        times = (analysis.begin + analysis.dt * at).tolist()
        lines.append(Line(name, times, rms.tolist(), f"p{number % 3}"))
    drawn = chart(
        lines,
        x=ChartAxis("time"),
        y=ChartAxis("root mean square misfit / noise", low=0.0),
        title="Misfit of the reports by time, in units of their noise",
        level=1.0,
    )
    names, own = np.unique(held.sensors, return_inverse=True)
    each = np.sqrt(np.bincount(own, residual**2) / np.bincount(own))
    worst = np.argsort(-each)[:_WORST]
    rows = [
        (
            str(names[i]),
            ", ".join(f"{x:.4g}" for x in held.places[own == i][0]),
            f"{int((own == i).sum())}",
            f"{each[i]:.2f}",
        )
        for i in worst
    ]
    return section(
        "misfit",
        "Misfit",
        tag(
            "div.columns",
            tag(
                "div.column",
                tag("h3", "By time"),
                legend(lines),
                charts.figure("misfit", drawn, "In units of the noise: 1 is as it should be."),
            ),
            tag(
                "div.column",
                tag("h3", "By sensor: the largest"),
                table(("sensor", "place", "reports", "misfit"), rows),
            ),
        ),
    )


def _spread(charts: Charts, analysis: Analysis, frames: Frames) -> Html | None:
    if frames.std is None:
        return None
    axes = tuple(range(1, frames.std.ndim - 1))
    lines = [
        Line(
            name,
            frames.times.tolist(),
            np.sqrt(np.mean(np.square(frames.std[:, number]), axis=axes)).tolist(),
            f"p{number % 3}",
        )
        for number, name in enumerate(frames.fields)
    ]
    drawn = chart(
        lines,
        x=ChartAxis("time"),
        y=ChartAxis("standard deviation", low=0.0),
        title="Standard deviation of the state by time",
    )
    return section(
        "spread",
        "Spread",
        tag(
            "div.columns",
            tag(
                "div.column",
                legend(lines),
                charts.figure(
                    "spread",
                    drawn,
                    f"Root mean square over the domain; reports end at t = {analysis.end:g}.",
                ),
            ),
        ),
    )


def _numbers(analysis: Analysis) -> Html:
    errors = analysis.errors
    wrong = "counts as exact" if errors is None else f"{errors.scale:.2g} of the spread in a frame"
    rows: list[tuple[str, str]] = [
        ("the model", wrong),
        ("frames", f"{analysis.frames} of {analysis.dt:g}"),
        ("unknowns", f"{analysis.forward.unknowns.size:,}"),
        ("steps of the minimiser", str(analysis.minimum.steps)),
        ("expected before measuring", analysis.prior.source),
    ]
    rows += [(f"noise of {n}, estimated", f"{v:.4g}") for n, v in analysis.noise.items()]
    rows += [
        (n, f"{e.value:.6g} ± {e.std:.2g} (95 %: {e.low:.6g} to {e.high:.6g})")
        for n, e in analysis.estimates.items()
    ]
    rows += [
        (n, f"{v:.6g}") for n, v in analysis.coefficients.items() if n not in analysis.estimates
    ]
    return section(
        "numbers",
        "Numbers",
        tag("table", tag("tbody", *(tag("tr", tag("th", a), tag("td", b)) for a, b in rows))),
    )

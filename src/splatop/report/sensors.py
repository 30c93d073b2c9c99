"""The page about an analysis of sensors, and the map of placed ones."""

import io
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from .._version import __version__
from ..assimilate import Analysis, Placement
from ..assimilate.frames import Frames
from ..data.atomic import write_whole
from ..errors import SplatopError
from .charts import Line, chart, legend
from .markup import Child, Html, tag
from .page import page_text
from .pictures import DIVERGING, SEQUENTIAL, picture_address
from .sections import Charts, section
from .ticks import Axis

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


def write_placement_picture(placement: Placement, out: str | Path) -> Path:
    """The chosen places, numbered, on what is left of the spread; and how it falls."""
    out = Path(out)
    kind = out.suffix.lower().removeprefix(".")
    if kind not in ("png", "svg", "pdf"):
        raise SplatopError(f"expected a picture named .png, .svg or .pdf, got '{out}'")
    figure = Figure(figsize=(9.0, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    dynamics = placement.dynamics
    spread = np.sqrt(np.mean(np.square(placement.spread), axis=0))
    at = placement.places
    if dynamics.domain.dims == 1:
        left.plot(dynamics.written.coordinates()[0].ravel(), spread, color="0.3")
        left.plot(at[:, 0], np.zeros(len(at)), "k^", clip_on=False)
        left.set(xlabel="x", ylabel="expected standard deviation", ylim=(0, None))
    else:
        _image(left, _plane(spread), placement.dynamics.written, SEQUENTIAL)
        left.plot(at[:, 0], at[:, 1], "o", color="w", markeredgecolor="k", markersize=5)
        for number, where in enumerate(at[:40]):
            left.annotate(
                str(number + 1),
                where[:2],
                fontsize=6,
                color="w",
                xytext=(3, 3),
                textcoords="offset points",
            )
        left.set_title("what is left of the spread", fontsize=9)
    right.plot(range(len(placement.expected)), placement.expected, "k.-")
    right.set(xlabel="sensors", ylabel="expected standard deviation", ylim=(0, None))
    write_whole(out, _bytes(figure, kind))
    return out


def _header(analysis: Analysis) -> Html:
    held = analysis.observations
    return tag(
        "header",
        tag("h1", "The state from sensors"),
        tag(
            "p",
            f"{len(held):,} reports of {len(np.unique(held.sensors)):,} sensors, "
            f"{', '.join(analysis.dynamics.fields)}, t = {analysis.begin:g} to {analysis.end:g}; "
            f"{analysis.dynamics.title}; splatop {__version__}",
            class_="note",
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
    lines += [tag("p", text, class_="note missing") for text in said]
    return section("verdict", "Verdict", *lines)


def _map(analysis: Analysis, frames: Frames) -> Html:
    if frames.grid.dims == 1:
        pictures = [_space_time(analysis, frames)]
        shown = [0]
    else:
        count = min(len(frames), _MOST_FRAMES)
        shown = np.unique(np.linspace(0, len(frames) - 1, count).astype(int)).tolist()
        pictures = [_frame(analysis, frames, number) for number in shown]
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
            "p",
            "Dots are the sensors that report at the time, filled with what they report. Three "
            "dimensions are shown in the middle of the third axis.",
            class_="note",
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
        x=Axis("time"),
        y=Axis("root mean square misfit / noise", low=0.0),
        title="Misfit of the reports by time, in units of their noise",
        level=1.0,
    )
    names, own = np.unique(held.sensors, return_inverse=True)
    each = np.sqrt(np.bincount(own, residual**2) / np.bincount(own))
    worst = np.argsort(-each)[:_WORST]
    rows = [
        tag(
            "tr",
            tag("td", str(names[i])),
            tag("td", ", ".join(f"{x:.4g}" for x in held.places[own == i][0])),
            tag("td", f"{int((own == i).sum())}"),
            tag("td", f"{each[i]:.2f}"),
        )
        for i in worst
    ]
    head = tag("tr", *(tag("th", text) for text in ("sensor", "place", "reports", "misfit")))
    return section(
        "misfit",
        "Misfit",
        tag(
            "div",
            tag(
                "div",
                tag("h3", "By time"),
                legend(lines),
                charts.figure("misfit", drawn, "In units of the noise: 1 is as it should be."),
                class_="column",
            ),
            tag(
                "div",
                tag("h3", "By sensor: the largest"),
                tag("table", tag("thead", head), tag("tbody", *rows)),
                class_="column",
            ),
            class_="columns",
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
        x=Axis("time"),
        y=Axis("standard deviation", low=0.0),
        title="Standard deviation of the state by time",
    )
    return section(
        "spread",
        "Spread",
        legend(lines),
        charts.figure(
            "spread",
            drawn,
            f"Root mean square over the box; reports end at t = {analysis.end:g}.",
        ),
    )


def _numbers(analysis: Analysis) -> Html:
    rows: list[tuple[str, str]] = [
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


def _frame(analysis: Analysis, frames: Frames, number: int) -> str:
    """One row of pictures: each field with the sensors of the time, and its spread."""
    fields = frames.fields
    rows = 1 if frames.std is None else 2
    figure = Figure(figsize=(4.2 * len(fields), 3.6 * rows), layout="constrained")
    axes = np.atleast_2d(figure.subplots(rows, len(fields), squeeze=False))
    held = analysis.observations
    near = np.abs(held.times - frames.times[number]) <= 0.5 * analysis.dt
    for column, name in enumerate(fields):
        limit = float(np.abs(frames.mean[:, column]).max()) or 1.0
        image = _image(
            axes[0, column], _plane(frames.mean[number, column]), frames.grid, DIVERGING, limit
        )
        figure.colorbar(image, ax=axes[0, column], shrink=0.8)
        axes[0, column].set_title(f"{name}, t = {frames.times[number]:g}", fontsize=9)
        own = near & (held.fields == name)
        axes[0, column].scatter(
            held.places[own, 0],
            held.places[own, 1],
            c=held.values[own],
            cmap=DIVERGING,
            vmin=-limit,
            vmax=limit,
            s=10,
            edgecolors="k",
            linewidths=0.4,
        )
        if frames.std is not None:
            image = _image(
                axes[1, column], _plane(frames.std[number, column]), frames.grid, SEQUENTIAL
            )
            figure.colorbar(image, ax=axes[1, column], shrink=0.8)
            axes[1, column].set_title("standard deviation", fontsize=9)
    return picture_address(_bytes(figure, "png"), "png")


def _space_time(analysis: Analysis, frames: Frames) -> str:
    fields = frames.fields
    figure = Figure(figsize=(9.0, 3.6 * len(fields)), layout="constrained")
    axes = figure.subplots(len(fields), 2, squeeze=False)
    x = frames.grid.coordinates()[0].ravel()
    held = analysis.observations
    for row, name in enumerate(fields):
        limit = float(np.abs(frames.mean[:, row]).max()) or 1.0
        image = axes[row, 0].pcolormesh(
            frames.times,
            x,
            frames.mean[:, row].T,
            cmap=DIVERGING,
            vmin=-limit,
            vmax=limit,
            shading="nearest",
            rasterized=True,
        )
        own = held.fields == name
        axes[row, 0].scatter(held.times[own], held.places[own, 0], s=1.5, color="k")
        axes[row, 0].set(xlabel="t", ylabel="x", title=name)
        figure.colorbar(image, ax=axes[row, 0])
        if frames.std is not None:
            image = axes[row, 1].pcolormesh(
                frames.times,
                x,
                frames.std[:, row].T,
                cmap=SEQUENTIAL,
                shading="nearest",
                rasterized=True,
            )
            axes[row, 1].set(xlabel="t", ylabel="x", title="standard deviation")
            figure.colorbar(image, ax=axes[row, 1])
        else:
            axes[row, 1].set_axis_off()
    return picture_address(_bytes(figure, "png"), "png")


def _plane(values: np.ndarray) -> np.ndarray:
    return values if values.ndim == 2 else values[:, :, values.shape[2] // 2]


def _image(
    axes: Any, values: np.ndarray, grid: Any, colours: str, limit: float | None = None
) -> Any:
    x0, y0 = grid.origin[:2]
    x1, y1 = x0 + grid.lengths[0], y0 + grid.lengths[1]
    low = None if limit is None else -limit
    return axes.imshow(
        values.T,
        origin="lower",
        extent=(x0, x1, y0, y1),
        cmap=matplotlib.colormaps[colours],
        vmin=low,
        vmax=limit,
        interpolation="nearest",
    )


def _bytes(figure: Figure, kind: str) -> bytes:
    held = io.BytesIO()
    figure.savefig(held, format=kind, dpi=90)
    return held.getvalue()

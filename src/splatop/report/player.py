"""The player: its controls as HTML, and the frames for the script that draws them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .ellipses import packed_gaussians
from .evaluated import Entry
from .isosurface import LEVEL, draw_isosurfaces
from .markup import Child, Html, tag
from .packing import error_limit, field_scale, pack_bytes, quantise_field, quantise_signed
from .pictures import DIVERGING, ERROR, SEQUENTIAL, colour_table, picture_address
from .playback import Playback, PlayedRollout, shown_points, strides, thinned
from .sections import section


def player_data(playback: Playback, shown: Sequence[Entry]) -> dict[str, Any]:
    """Frames in 8 bits, each on a scale of its own, and Gaussians, as the script reads them."""
    points = playback.grid.points
    reference = thinned(playback.reference, points)
    channels = range(reference.shape[1])
    scales = [field_scale(reference[:, c]) for c in channels]
    codes = np.empty(reference.shape, np.uint8)
    ranges = [[(0.0, 0.0) for _ in channels] for _ in reference]
    for k, c in np.ndindex(codes.shape[:2]):
        codes[k, c], ranges[k][c] = quantise_field(reference[k, c])
    models = []
    for entry, rollout in zip(shown, playback.rollouts, strict=True):
        with np.errstate(all="ignore"):
            error = thinned(rollout.states, points).astype(float) - reference
        limits = [[error_limit(frame[c], scales[c]) for c in channels] for frame in error]
        packed = np.empty(codes.shape, np.uint8)
        for k, c in np.ndindex(codes.shape[:2]):
            packed[k, c] = quantise_signed(error[k, c], limits[k][c])
        models.append(
            {
                "label": entry.label,
                "error": pack_bytes(packed),
                "limits": limits,
                "rl2": _errors_at_frames(playback, rollout),
                "gaussians": packed_gaussians(entry.model, rollout.states),
            }
        )
    return {
        "dims": playback.grid.dims,
        "points": list(shown_points(points)),
        # Pixels that the box is wide: not a whole number if the stride does not divide the grid.
        "cells": [n / k for n, k in zip(points, strides(points), strict=True)],
        "lengths": list(playback.grid.lengths),
        "origin": list(playback.grid.origin),
        "dt": playback.dt,
        "steps": list(playback.steps),
        "fields": list(playback.fields),
        "scales": [{"low": s.low, "high": s.high, "signed": s.signed} for s in scales],
        "reference": pack_bytes(codes),
        "ranges": ranges,
        "models": models,
        "tables": {
            "sequential": colour_table(SEQUENTIAL),
            "diverging": colour_table(DIVERGING),
            "error": colour_table(ERROR),
        },
    }


def _errors_at_frames(playback: Playback, rollout: PlayedRollout) -> list[float | None]:
    errors = [0.0 if step == 0 else rollout.rl2[step - 1] for step in playback.steps]
    return [None if error is None else float(f"{error:.4g}") for error in errors]


def player_section(playback: Playback, data: dict[str, Any], shown: Sequence[Entry]) -> Html:
    """The player: reference, predictions and errors side by side, with its controls."""
    dims = playback.grid.dims
    has_gaussians = any(model["gaussians"] for model in data["models"])
    controls = [
        tag(
            "div.transport",
            tag("button", "▶ Play", id="play", type="button", aria_pressed="false"),
            tag("label.sr", "Time", for_="time"),
            tag(
                "input",
                id="time",
                type="range",
                min=0,
                max=len(playback.steps) - 1,
                value=0,
                step=1,
                aria_label="Time",
            ),
            tag("output", id="now", for_="time"),
        ),
        tag(
            "div.options",
            _choice("model", "Model", [entry.label for entry in shown]),
            _choice("field", "Field", list(playback.fields)) if len(playback.fields) > 1 else None,
            *(_slice_controls(data["points"]) if dims == 3 else ()),
            _choice("colours", "Colours", ["fixed", "per frame"]) if dims > 1 else None,
            _choice("scale", "Error", ["signed", "log magnitude"]),
            tag(
                "label.check",
                tag("input", id="gaussians", type="checkbox"),
                " Gaussians" if dims > 1 else " Gaussians (μ ± σ)",
            )
            if has_gaussians
            else None,
        ),
    ]
    panels = tag(
        "div",
        _panel("reference", "Reference"),
        _panel("prediction", "Prediction"),
        _panel("error", "Error"),
        _colour_bar("field-bar", "both"),
        _colour_bar("error-bar", "one"),
        class_=f"panels d{dims}",
    )
    profile = (
        tag(
            "div.profile",
            tag(
                "canvas",
                id="profile",
                width=1160,
                height=230,
                role="img",
                aria_label="Profile at the chosen time",
            ),
        )
        if dims == 1
        else None
    )
    return section(
        "player",
        "Reference and prediction, side by side",
        tag(
            "div.player",
            *controls,
            panels,
            profile,
            data_ready="no",
            tabindex=0,
            role="group",
            aria_label="Player: left and right move in time, space plays",
        ),
        tag("p.note", _caption(playback, has_gaussians, dims)),
    )


def _caption(playback: Playback, has_gaussians: bool, dims: int) -> str:
    shown = " × ".join(str(n) for n in shown_points(playback.grid.points))
    held = " × ".join(str(n) for n in playback.grid.points)
    every = f", of which {shown} are shown" if shown != held else ""
    view = {
        1: "Time runs upwards; the line marks the moment whose profile stands below. ",
        2: "",
        3: "A slice through the volume. ",
    }[dims]
    gaussians = (
        {
            1: "Gaussians are drawn as bars from μ − σ to μ + σ. ",
            2: "Gaussians are drawn as their 1σ ellipses over the prediction, opaque where their "
            "amplitude is large, solid where it is positive, dashed where negative. ",
            3: "Gaussians are drawn where their 1σ ellipsoids cut the slice. ",
        }[dims]
        if has_gaussians
        else ""
    )
    return (
        f"Trajectory {playback.trajectory} of {playback.source} on {held} points{every}. {view}"
        "Reference and prediction share one colour scale, fixed over time unless chosen "
        f"otherwise. {gaussians}"
        "Keys: left and right move in time, space plays."
    )


def _choice(identifier: str, label: str, options: Sequence[str]) -> Html:
    return tag(
        "label",
        label + " ",
        tag(
            "select",
            *(tag("option", name, value=index) for index, name in enumerate(options)),
            id=identifier,
        ),
    )


def _slice_controls(points: Sequence[int]) -> tuple[Child, ...]:
    return (
        _choice("axis", "Slice across", ["z", "y", "x"]),
        tag(
            "label.slice",
            "at ",
            tag(
                "input",
                id="slice",
                type="range",
                min=0,
                max=points[2] - 1,
                value=points[2] // 2,
                aria_label="Position of the slice",
            ),
            tag("output", id="slice-at", for_="slice"),
        ),
    )


def _panel(identifier: str, title: str) -> Html:
    """A canvas with the ends of its axes; the script writes them, as slices change them."""
    return tag(
        "figure.field",
        tag("figcaption", tag("span", title), tag("span.what")),
        tag("div.axis-y", tag("span"), tag("span.name"), tag("span", "0")),
        tag("canvas", id=identifier, width=480, height=480, role="img", aria_label=title),
        tag("div.axis-x", tag("span", "0"), tag("span.name"), tag("span")),
    )


def _colour_bar(identifier: str, span: str) -> Html:
    return tag(
        "div",
        tag("canvas", id=identifier, width=256, height=1, aria_hidden="true"),
        tag("div.ends", tag("span"), tag("span"), tag("span"), id=f"{identifier}-labels"),
        class_=f"bar {span}",
    )


def isosurface_section(playback: Playback, shown: Sequence[Entry]) -> Html | None:
    """3D fields at four times, reference above the models."""
    if playback.grid.dims != 3:
        return None
    picked = np.unique(np.linspace(0, len(playback.steps) - 1, 4).astype(int))
    points = playback.grid.points
    level = LEVEL * float(np.abs(playback.reference[0, 0]).max())
    rows = [("reference", [thinned(playback.reference[k, 0], points) for k in picked])]
    for entry, rollout in list(zip(shown, playback.rollouts, strict=True))[:4]:
        rows.append((entry.label, [thinned(rollout.states[k, 0], points) for k in picked]))
    times = [f"t = {playback.steps[k] * playback.dt:g}" for k in picked]
    field, lengths = playback.fields[0], playback.grid.lengths
    strips = []
    for label, fields in rows:
        picture = draw_isosurfaces(fields, level=level, lengths=lengths)
        alternative = f"Isosurfaces of {field} at {', '.join(times)}, {label}"
        strips += [
            tag("p", label),
            tag("img", src=picture_address(picture, "webp"), alt=alternative),
        ]
    return section(
        "isosurfaces",
        "Isosurfaces",
        tag(
            "figure.panel",
            tag(
                "div.strips",
                tag("p", "at time"),
                tag("div.times", *(tag("span", time) for time in times)),
                *strips,
            ),
            tag(
                "figcaption",
                f"Surfaces {field} = +{level:.3g} (red) and −{level:.3g} (blue) in the box of "
                f"{' × '.join(f'{length:g}' for length in lengths)}. The view and the levels are "
                "the same in all pictures.",
            ),
        ),
    )

"""The tables of docs/sensors.md from the draws in results/sensors."""

import json
from pathlib import Path
from typing import Any

import numpy as np

_BURGERS = {
    "burgers": "5 % of the points, 1 % noise",
    "burgers_sensors_2": "2 %, 1 %",
    "burgers_noise_5": "5 %, 5 %",
    "burgers_moving": "5 %, 1 %, sensors that move",
    "burgers_missing": "5 %, 1 %, half of the reports missing",
    "burgers_later": "5 %, 1 %, from frame 20 on",
    "burgers_160": "as the first row, the same number of sensors, 160² points",
}


def write_tables(results: Path, page: Path, begin: str, end: str) -> None:
    draws = {
        path.stem: list(json.loads(path.read_text())["draws"].values())
        for path in sorted(results.glob("*.json"))
    }
    parts = [_burgers(draws), _transport(draws), _ks(draws), _others(draws)]
    text = "\n\n".join(part for part in parts if part)
    before, rest = page.read_text().split(begin)
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}")


def _burgers(draws: dict[str, list]) -> str:
    rows = [
        "**2D Burgers, 64² points, eleven frames** (relative errors: median over draws, worst in "
        "brackets; the share of truth within two standard deviations):",
        "",
        "| sensors, noise | draws | state | forecast, 50 frames | covered: window, forecast | "
        "2J/n | trusted | processor, s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, words in _BURGERS.items():
        if name not in draws:
            continue
        own = draws[name]
        rows.append(
            f"| {words} | {len(own)} | {_both(own, 'state')} | {_both(own, 'forecast')} | "
            f"{_percent(own, 'covered')}, {_percent(own, 'covered_forecast')} | "
            f"{np.median([d['ratio'] for d in own]):.2f} | {sum(d['trusted'] for d in own)} | "
            f"{_both(own, 'seconds')} |"
        )
    best = draws.get("best", [])
    if best:
        rows.append(
            f"| the first row, the best estimate there can be (expected) | {len(best)} | "
            f"{_both(best, 'state')} | | | | | |"
        )
    peers = draws.get("interpolation", [])
    for key, words in (("splines", "thin-plate splines"), ("gaussian_process", "Gaussian process")):
        held = [d[key] for d in peers]
        if held:
            rows.append(
                f"| the first row by {words}, last frame alone | {len(held)} | "
                f"{_both(held, 'state')} | {_both(held, 'forecast')} | | | | |"
            )
    if not any(name in draws for name in _BURGERS):
        return ""
    most = [d["gigabytes"] for name in _BURGERS for d in draws.get(name, [])]
    rows += ["", f"The process that measured these rows held {max(most):.2g} GB at most."]
    return "\n".join(rows)


def _transport(draws: dict[str, list]) -> str:
    own = draws.get("transport", [])
    if not own:
        return ""
    rows = [
        f"**2D advection-diffusion, v and D unknown**, 64² points, 3 % sensors, 1 % noise, eleven "
        f"frames, {_draws(own)}: state {_both(own, 'state')}, forecast of 50 frames "
        f"{_both(own, 'forecast')}.",
        "",
        "| coefficient | error, median (worst) | its stated standard deviation | in its 95 % interval |",
        "|---|---|---|---|",
    ]
    for name in ("v", "D"):
        each = [d[name] for d in own]
        rows.append(
            f"| {name} | {100 * np.median([e['error'] for e in each]):.2g} % "
            f"({100 * max(e['error'] for e in each):.2g} %) | "
            f"{100 * np.median([e['std'] for e in each]):.2g} % | "
            f"{sum(e['covered'] for e in each)} of {len(each)} |"
        )
    return "\n".join(rows)


def _ks(draws: dict[str, list]) -> str:
    own = draws.get("kuramoto_sivashinsky", [])
    if not own:
        return ""
    every = [w for d in own for w in d["windows"]]
    good = [w for w in every if w["trusted"]]
    ends = [w["end"] for w in good]
    seconds = np.median([d["seconds"] / len(d["windows"]) for d in own])
    lost = (
        f"{len(every) - len(good)} of {len(every)} windows end in a wrong minimum and are not trusted "
        f"(error up to {max(w['end'] for w in every):.2g} of the attractor's standard deviation); in "
        "the others"
        if len(good) < len(every)
        else f"all {len(every)} windows are trusted;"
    )
    return (
        f"**Kuramoto-Sivashinsky**, 12 sensors on a box of 60, 1 % noise, windows of 40 frames of 0.2 "
        f"for 400 frames, data by exponax (converged steps), {_draws(own)}: {lost} the error at the "
        f"end, over the attractor's standard deviation, is {np.median(ends):.2g} (median; worst {max(ends):.2g}), and "
        f"{100 * np.mean([w['covered'] for w in good]):.0f} % of the truth there and "
        f"{100 * np.mean([w['covered_all'] for w in good]):.0f} % over the whole window lie within two "
        f"standard deviations; the free run from the first window ends at "
        f"{np.median([d['free_run'] for d in own]):.2g}. A window takes {seconds:.1f} s of the "
        "processor."
    )


def _others(draws: dict[str, list]) -> str:
    parts = []
    own = draws.get("reaction_diffusion", [])
    if own:
        parts.append(
            f"**Reaction-diffusion between insulated walls**, 100 sensors of both fields, 1 % noise, "
            f"eleven frames, {_draws(own)}: state {_both(own, 'state')}, forecast of 50 frames "
            f"{_both(own, 'forecast')}; within two standard deviations lie {_percent(own, 'covered')} of the "
            f"truth over the window, {_percent(own, 'covered_forecast')} of the forecast."
        )
    own = draws.get("cylinder", [])
    if own:
        parts.append(
            f"**A tracer around a cylinder** (a shape, by the model that ships), 100 sensors, 1 % noise, eleven frames, "
            f"{_draws(own)}: state {_both(own, 'state')}, forecast of ten frames "
            f"{_both(own, 'forecast')}; within two standard deviations lie {_percent(own, 'covered_first')} of "
            f"the truth in the first frame, {_percent(own, 'covered_state')} in the window's last, "
            f"{_percent(own, 'covered_forecast')} of the forecast."
        )
    own = draws.get("placement", [])
    if own:
        parts.append(
            f"**Placed sensors against random ones**, 20 in a channel with inflow and outflow, "
            f"{_draws(own)}: error {_both(own, 'placed')} against {_both(own, 'random')}; "
            f"{np.median([d['gain'] for d in own]):.2g} times lower (median)."
        )
    return "\n\n".join(parts)


def _both(own: list[dict[str, Any]], key: str) -> str:
    values = [d[key] for d in own]
    return f"{np.median(values):.2g} ({max(values):.2g})"


def _percent(own: list[dict[str, Any]], key: str) -> str:
    return f"{100 * np.mean([d[key] for d in own]):.0f} %"


def _draws(own: list) -> str:
    return "one draw" if len(own) == 1 else f"{len(own)} draws"

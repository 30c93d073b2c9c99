"""How right and how sure identification is: six equations, three noise levels, twenty draws.

    python tools/identification.py study   # about an hour: results/identification/
    python tools/identification.py wrong   # half an hour: 200 wrong equations, wrong.json
    python tools/identification.py tables  # the tables in docs/identification.md

The data come from a solver of their own (study_problems.py). PySINDy's weak form, told the same
terms, stands beside on the same draws (`pip install splatop[peers]`). What was measured is kept
and not measured again.
"""

import argparse
import itertools
import json
import time
import warnings
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from splatop.data import ArrayTrajectories
from splatop.data.atomic import write_whole
from splatop.equation import parse_equation
from splatop.errors import SplatopError
from splatop.grid import Grid
from splatop.identify import Identified, add_noise, identify_trajectories
from study_problems import PROBLEMS, Problem, draw

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results" / "identification"
DOCS = ROOT / "docs" / "identification.md"
NOISE = (0.0, 0.01, 0.05)
DRAWS = 20
WRONG = 200
# PySINDy's subdomains: half widths as shares of each axis. The best on the first noisy draw, by its
# true error, is used for all draws of an equation.
PEER_DOMAINS = 300
PEER_WIDTHS = (0.05, 0.1, 0.2)
# Targets that were set beforehand: clean, 1 %, 5 % noise, in per cent.
TARGETS = {
    "burgers": (1e-4, 0.05, 0.3),
    "kdv": (1e-3, 0.2, 1.0),
    "ks": (1e-3, 0.5, 3.0),
    "nls": (0.01, 0.2, 1.0),
}


@lru_cache(maxsize=4 * DRAWS)
def clean_frames(name: str, seed: int) -> np.ndarray:
    return draw(PROBLEMS[name], seed).astype(np.float32)


def frames_of(name: str, seed: int, noise: float) -> np.ndarray:
    clean = clean_frames(name, seed)
    return add_noise(clean, noise, (7, seed)) if noise else clean


def identified(
    problem: Problem, text: str, states: np.ndarray, *, dt: float = 1.0, **options: Any
) -> Identified:
    """The time step is stated as `dt` times what it is."""
    grid = Grid(problem.points, problem.lengths)
    data = ArrayTrajectories(states[None], grid, dt=dt * problem.dt, fields=problem.fields)
    equation = parse_equation(text, dims=grid.dims, fields=problem.fields)
    (found,) = identify_trajectories(equation, None, data, **options)
    return found


def measured(name: str, seed: int, noise: float) -> dict[str, Any]:
    problem, frames = PROBLEMS[name], frames_of(name, seed, noise)
    started = time.process_time()
    found = identified(problem, problem.text, frames, frames="all")
    return {
        "noise": noise,
        "draw": seed,
        "method": found.method,
        "frames": found.frames,
        "cpu_seconds": round(time.process_time() - started, 2),
        "trusted": found.trusted,
        "warnings": list(found.warnings),
        "errors": found.relative_errors(problem.true),
        "covered": found.covers(problem.true),
        "half_widths": {
            name: (high - low) / 2 / abs(problem.true[name])
            for name, (low, high) in found.intervals.items()
        },
    }


def peer_errors(problem: Problem, frames: np.ndarray, width: float) -> dict[str, float]:
    """PySINDy's weak form, told which terms there are: least squares on its own integrals."""
    import pysindy

    times = problem.dt * np.arange(len(frames))
    axes = [
        np.arange(n) * side / n for n, side in zip(problem.points, problem.lengths, strict=True)
    ]
    mesh = np.stack(np.meshgrid(*axes, times, indexing="ij"), axis=-1)
    names = {n for side in problem.features for parts in side.values() for n in parts}
    order = max(len(n.rsplit("_", 1)[-1]) for n in names if "_" in n)
    cubic = any("^3" in n for n in names)
    np.random.seed(0)  # noqa: NPY002  (PySINDy draws its subdomains from the global state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library = pysindy.WeakPDELibrary(
            function_library=pysindy.PolynomialLibrary(3 if cubic else 1, include_bias=False),
            derivative_order=order,
            spatiotemporal_grid=mesh,
            K=PEER_DOMAINS,
            H_xt=[width * float(np.ptp(a)) for a in (*axes, times)],
            p=order + 1,
            include_interaction=any("x0x0" in n for n in names),
        )
        u = np.moveaxis(np.asarray(frames, np.float64), (0, 1), (-2, -1))
        u = pysindy.AxesArray(u, pysindy.utils.comprehend_axes(u))
        library.fit([u])
        integrals = dict(
            zip(library.get_feature_names(), np.asarray(library.transform([u])[0]).T, strict=True)
        )
        targets = np.asarray(library.convert_u_dot_integral(u)).T
    columns = [
        np.concatenate(
            [sum(w * integrals[n] for n, w in side[name].items()) for side in problem.features]
        )
        for name in problem.true
    ]
    scales = [np.linalg.norm(column) for column in columns]
    matrix = np.stack([c / s for c, s in zip(columns, scales, strict=True)], axis=1)
    estimates = np.linalg.lstsq(matrix, np.concatenate(list(targets)))[0] / scales
    true = problem.true.values()
    return {n: abs(e / t - 1) for n, e, t in zip(problem.true, estimates, true, strict=True)}


def study(names: list[str]) -> None:
    """A few draws of every equation first, so that each row says something early."""
    for first, last in itertools.pairwise((0, 2, 5, 10, DRAWS)):
        for name in names:
            study_one(name, range(first, last))


def study_one(name: str, draws: range) -> None:
    problem, path = PROBLEMS[name], RESULTS / f"{name}.json"
    held = json.loads(path.read_text()) if path.exists() else {}
    if "peer_width" not in held:
        noisy = frames_of(name, 0, 0.01)
        rated = [(max(peer_errors(problem, noisy, w).values()), w) for w in PEER_WIDTHS]
        held["peer_width"] = min(rated)[1]
    done, peers = (
        {(row["noise"], row["draw"]) for row in held.setdefault(kind, [])}
        for kind in ("rows", "peers")
    )
    for noise in NOISE:
        for seed in draws:
            if (noise, seed) not in peers:
                errors = peer_errors(problem, frames_of(name, seed, noise), held["peer_width"])
                held["peers"].append({"noise": noise, "draw": seed, "errors": errors})
            if (noise, seed) in done:
                continue
            row = measured(name, seed, noise)
            held["rows"].append(row)
            write_whole(path, json.dumps(held, indent=1))
            errors = {n: f"{100 * e:.2g} %" for n, e in row["errors"].items()}
            print(
                name,
                noise,
                seed,
                errors,
                row["covered"],
                row["trusted"],
                row["cpu_seconds"],
                flush=True,
            )


# --- wrong equations -----------------------------------------------------------------------------

TERMS_1D = ("u*dx(u)", "u^2*dx(u)", "dx(u)", "d2x(u)", "d3x(u)", "d4x(u)", "u", "u^2", "u^3")
_FORMS = {
    "burgers": {"c": "-u*dx(u)", "nu": "d2x(u)"},
    "kdv": {"c": "-u*dx(u)", "b": "-d3x(u)"},
    "ks": {"a": "-u*dx(u)", "b": "-d2x(u)", "c": "-d4x(u)"},
    "allen_cahn": {"D": "d2x(u)", "r": "(u - u^3)"},
    "nls": {},
    "advection_diffusion2d": {},
}


def wrong_equations(count: int) -> Iterator[dict[str, Any]]:
    """Random wrong equations for data of the four with one field in 1D: what is wrong, the text,
    the values held to be known, and the coefficients whose true value is still defined."""
    generator = np.random.default_rng(0)
    usable = [name for name, forms in _FORMS.items() if forms]
    for number in range(count):
        name = str(generator.choice(usable))
        forms, true = dict(_FORMS[name]), PROBLEMS[name].true
        kind = str(generator.choice(["dropped", "replaced", "added", "known", "time"]))
        victim = str(generator.choice(list(forms)))
        case: dict[str, Any] = {"known": {}, "dt": 1.0}
        others = [t for t in TERMS_1D if all(t not in own for own in forms.values())]
        if kind == "dropped":
            del forms[victim]
        elif kind == "replaced":
            forms[victim] = str(generator.choice(others))
        elif kind == "added":
            forms["e"] = str(generator.choice(others))
        else:
            factor = 1 + float(generator.choice([-1, 1]) * generator.uniform(0.02, 0.5))
            # A time step that is stated too long makes all rates too small: that of the known term
            # is then off, and the truth about the others is what it is per stated time.
            case["dt"] = factor if kind == "time" else 1.0
            case["known"] = {victim: true[victim] * (factor if kind == "known" else 1.0)}
            true = {n: t / case["dt"] for n, t in true.items()}
        defined = {n: t for n, t in true.items() if n in forms and n not in case["known"]}
        if kind == "replaced":
            defined.pop(victim)
        if kind == "added":
            defined["e"] = 0.0
        yield {
            "number": number,
            "problem": name,
            "kind": kind,
            "noise": float(generator.choice(NOISE)),
            "draw": int(generator.integers(DRAWS)),
            "text": "dt(u) = " + " + ".join(f"{n}*({form})" for n, form in forms.items()),
            "true": defined,
            **case,
        }


def judged(case: dict[str, Any]) -> dict[str, Any]:
    """How far the truth lies from the estimate, in half-widths of its interval, if it is trusted."""
    problem = PROBLEMS[case["problem"]]
    states = frames_of(case["problem"], case["draw"], case["noise"])
    try:
        found = identified(
            problem,
            case["text"],
            states,
            dt=case["dt"],
            known=case["known"],
            frames=17,
            start=len(states) // 3,
        )
    except SplatopError as refused:
        return {**case, "refused": str(refused), "trusted": False, "misses": {}}
    misses = {}
    for name, value in case["true"].items():
        low, high = found.intervals[name]
        misses[name] = abs(found.estimates[name] - value) / max((high - low) / 2, 1e-300)
    return {**case, "trusted": found.trusted, "misses": misses, "warnings": list(found.warnings)}


def wrong(count: int) -> None:
    path = RESULTS / "wrong.json"
    rows = json.loads(path.read_text()) if path.exists() else []
    for case in wrong_equations(count):
        if case["number"] < len(rows):
            continue
        rows.append(judged(case))
        write_whole(path, json.dumps(rows, indent=1))
        last = rows[-1]
        shown = {n: round(m, 2) for n, m in last["misses"].items()}
        print(
            case["number"],
            case["problem"],
            case["kind"],
            case["noise"],
            case["text"],
            last["trusted"],
            shown,
            flush=True,
        )


# --- tables --------------------------------------------------------------------------------------


def write_tables() -> None:
    for marker, table in (("study", study_table()), ("wrong", wrong_table())):
        begin, end = f"<!-- {marker}:begin -->", f"<!-- {marker}:end -->"
        text = DOCS.read_text()
        before, rest = text.split(begin)
        after = rest.split(end)[1]
        DOCS.write_text(f"{before}{begin}\n{table}\n{end}{after}")


def study_table() -> str:
    lines = [
        "| equation | noise | mean error | target, all below | covered | trusted "
        "| PySINDy weak form, mean error |",
        "|---|---|---|---|---|---|---|",
    ]
    covered: dict[float, list[bool]] = {noise: [] for noise in NOISE}
    for name in PROBLEMS:
        path = RESULTS / f"{name}.json"
        held = json.loads(path.read_text()) if path.exists() else {"rows": [], "peers": []}
        for level, noise in enumerate(NOISE):
            own, peers = (
                [row for row in held[kind] if row["noise"] == noise] for kind in ("rows", "peers")
            )
            if not own:
                lines.append(f"| {name} | {100 * noise:g} % | not measured | | | | |")
                continue
            drawn = {row["draw"] for row in own}
            peers = [row for row in peers if row["draw"] in drawn]
            hits = [hit for row in own for hit in row["covered"].values()]
            covered[noise] += hits
            target = TARGETS[name][level] if name in TARGETS else None
            lines.append(
                f"| {name} | {100 * noise:g} % | {_errors(own)} "
                f"| {'–' if target is None else f'{target:g} %'} | {100 * np.mean(hits):.0f} % "
                f"| {sum(row['trusted'] for row in own)} of {len(own)} "
                f"| {_errors(peers)} |"
            )
    pooled = ", ".join(
        f"{100 * np.mean(hits):.1f} % at {100 * noise:g} % noise"
        for noise, hits in covered.items()
        if hits
    )
    return "\n".join([*lines, "", f"All 95 % intervals together cover: {pooled}."])


def _errors(rows: list[dict[str, Any]]) -> str:
    means = {n: 100 * np.mean([row["errors"][n] for row in rows]) for n in rows[0]["errors"]}
    return ", ".join(f"{n} {mean:.2g} %" for n, mean in means.items())


def wrong_table() -> str:
    path = RESULTS / "wrong.json"
    if not path.exists():
        return "Not measured."
    rows = json.loads(path.read_text())
    lines = [
        "| what is wrong | equations | trusted | refused | farthest truth, in half-widths: all "
        "| of trusted ones |",
        "|---|---|---|---|---|---|",
    ]
    names = {
        "dropped": "a term is missing",
        "replaced": "a term is another one",
        "added": "a term too many (its coefficient is 0)",
        "known": "a known value is off by 2 to 50 %",
        "time": "the time step is off by 2 to 50 %, one value known",
    }
    for kind, words in [*names.items(), (None, "all")]:
        own = [row for row in rows if kind in (None, row["kind"])]
        far, trusted = (
            max((m for row in some for m in row["misses"].values()), default=0.0)
            for some in (own, [row for row in own if row["trusted"]])
        )
        lines.append(
            f"| {words} | {len(own)} | {sum(row['trusted'] for row in own)} "
            f"| {sum('refused' in row for row in own)} | {far:.2g} | {trusted:.2g} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["study", "wrong", "tables"])
    parser.add_argument("--equations", nargs="+", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--count", type=int, default=WRONG)
    options = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    if options.what == "study":
        study(options.equations)
    elif options.what == "wrong":
        wrong(options.count)
    else:
        write_tables()


if __name__ == "__main__":
    main()

"""Equations from nothing: how often `discover` finds exactly the right terms, nine equations, three
noise levels, ten draws.

    python tools/unknown.py study             # hours: results/unknown/study.json
    python tools/unknown.py study --draws 3   # fewer; what was measured is kept, and not measured again
    python tools/unknown.py study --again     # but what was measured by other code of discover/
    python tools/unknown.py peers             # the same draws by PySINDy's weak form and STLSQ
    python tools/unknown.py speed             # seconds of 16 trajectories of 50 frames at 64²
    python tools/unknown.py tables            # the tables in docs/unknown.md

The data come from a solver of their own (unknown_problems.py), one trajectory each. Terms and
coefficients are those of the weak form (`budget=0`): following an equation in time afterwards costs
ten times as much, and is measured by tools/identification.py. PySINDy
(`pip install splatop[peers]`) gets the same frames and the products of its own library; each of its
thresholds is tried, and the one that is best by its true result counts.
"""

import argparse
import json
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from measured import digest, write_between
from splatop import Discovered, discover, generate, get_benchmark
from splatop.data.atomic import write_whole
from splatop.discover.candidates import parse_terms, plain_expression
from splatop.errors import SplatopError
from splatop.identify import add_noise
from unknown_problems import PROBLEMS, Unknown, draw

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results" / "unknown"
DOCS = ROOT / "docs" / "unknown.md"
# Without how results show themselves.
CODE = digest(ROOT / "src" / "splatop" / "discover", but="discovered.py")
NOISE = (0.0, 0.01, 0.05)
DRAWS = 10
TARGETS = {0.0: 100, 0.01: 90, 0.05: 60}
PEER_DOMAINS = 300
PEER_WIDTH = 0.1
SPEED = ("advection_allen_cahn2d", "burgers2d")
THRESHOLDS = (1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3)
# The right terms in the words of PySINDy's weak library, where that has them.
PEER_TERMS = {
    "burgers": [{"x0x0_1", "x0_11"}],
    "kdv": [{"x0x0_1", "x0_111"}],
    "ks": [{"x0x0_1", "x0_11", "x0_1111"}],
    "fisher": [{"x0", "x0^2", "x0_11"}],
    "allen_cahn2d": [{"x0", "x0^3", "x0_11", "x0_22"}],
    "gray_scott": [{"1", "x0", "x0 x1^2", "x0_11", "x0_22"}, {"x1", "x0 x1^2", "x1_11", "x1_22"}],
    "fitzhugh_nagumo": [{"x0", "x0^3", "x1", "x0_11"}, {"1", "x0", "x1"}],
    "nls": [{"x1_11", "x0^2 x1", "x1^3"}, {"x0_11", "x0^3", "x0 x1^2"}],
}
PEER_ORDER = {"kdv": 4, "ks": 4, "burgers": 4, "fisher": 4, "fitzhugh_nagumo": 4, "nls": 4}

Coefficients = dict[str, dict[Any, float]]


def monomials(problem: Unknown, terms: dict[str, dict[str, float]]) -> Coefficients:
    """Coefficients of products of plain derivatives, for each field."""
    found: Coefficients = {}
    for field, own in terms.items():
        total: dict[Any, float] = {}
        for text, number in own.items():
            (side,) = parse_terms(text, dims=len(problem.lengths), fields=problem.fields)
            for monomial, weight in plain_expression(side).monomials:
                total[monomial] = total.get(monomial, 0.0) + number * weight
        found[field] = total
    return found


def frames_of(name: str, seed: int, noise: float) -> np.ndarray:
    clean = draw(name, seed)
    return add_noise(clean, noise, (7, seed)) if noise else clean


def measured(name: str, seed: int, noise: float) -> dict[str, Any]:
    problem, frames = PROBLEMS[name], frames_of(name, seed, noise)
    started, cpu = time.perf_counter(), time.process_time()
    row: dict[str, Any] = {"noise": noise, "draw": seed, "code": CODE}
    try:
        found = discover(
            frames,
            problem.question,
            dt=problem.dt,
            lengths=problem.lengths,
            fields=problem.fields,
            periodic=True,
            budget=0.0,
        )
    except SplatopError as error:
        return {**row, "exact": False, "refused": str(error), "trusted": False}
    terms: dict[str, dict[str, float]] = {field: {} for field in problem.fields}
    for term in found.terms:
        for field, text in term.sides:
            terms[field][text] = term.coefficient
    own, true = monomials(problem, terms), monomials(problem, problem.true)
    exact = all(own[field].keys() == true[field].keys() for field in true)
    errors = [
        abs(own[field][m] / value - 1)
        for field, side in true.items()
        for m, value in side.items()
        if m in own[field]
    ]
    return {
        **row,
        "exact": exact,
        "trusted": found.trusted,
        "largest_error": max(errors, default=None),
        "covered": covered(problem, found) if exact else None,
        "equation": found.equation,
        "method": found.method,
        "warnings": list(found.warnings),
        "alternatives": list(found.alternatives),
        "seconds": round(time.perf_counter() - started, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
    }


def covered(problem: Unknown, found: Discovered) -> list[bool]:
    """Whether the 95 % interval of each term holds its true coefficient, if the terms are right."""
    true = monomials(problem, problem.true)
    inside = []
    for term in found.terms:
        field, text = term.sides[0]
        ((monomial, weight), *_) = monomials(problem, {field: {text: 1.0}})[field].items()
        inside.append(term.low <= true[field][monomial] / weight <= term.high)
    return inside


def peer(name: str, seed: int, noise: float) -> dict[str, Any]:
    """Which thresholds of STLSQ give exactly the right terms."""
    import pysindy

    problem, frames = PROBLEMS[name], frames_of(name, seed, noise)
    points = frames.shape[2:]
    times = problem.dt * np.arange(len(frames))
    axes = [np.arange(n) * side / n for n, side in zip(points, problem.lengths, strict=True)]
    mesh = np.stack(np.meshgrid(*axes, times, indexing="ij"), axis=-1)
    np.random.seed(0)  # noqa: NPY002  (PySINDy draws its subdomains from the global state)
    order = PEER_ORDER.get(name, 2)
    u = np.moveaxis(np.asarray(frames, np.float64), (0, 1), (-2, -1))
    exact = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library = pysindy.WeakPDELibrary(
            function_library=pysindy.PolynomialLibrary(3, include_bias=False),
            derivative_order=order,
            spatiotemporal_grid=mesh,
            K=PEER_DOMAINS,
            H_xt=[PEER_WIDTH * float(np.ptp(a)) for a in (*axes, times)],
            p=order + 1,
            include_bias=True,
            include_interaction=True,
        )
        for threshold in THRESHOLDS:
            model = pysindy.SINDy(
                feature_library=library,
                optimizer=pysindy.STLSQ(threshold=threshold, alpha=1e-5, normalize_columns=False),
            )
            model.fit(u, t=problem.dt)
            names = model.get_feature_names()
            found = [
                {n for n, c in zip(names, row, strict=True) if c} for row in model.coefficients()
            ]
            exact[str(threshold)] = found == PEER_TERMS[name]
    return {"noise": noise, "draw": seed, "exact": exact, "candidates": len(names)}


def speed() -> None:
    """Seconds on the clock that `discover` takes from nothing, with all of its defaults."""
    measured = {}
    for name in SPEED:
        data = generate(get_benchmark(name), split="train", trajectories=16, steps=49, points=64)
        asked = "; ".join(f"dt({field}) = ?" for field in data.fields)
        began, cpu = time.perf_counter(), time.process_time()
        found = discover(data, asked)
        measured[name] = {
            "seconds": round(time.perf_counter() - began, 1),
            "cpu_seconds": round(time.process_time() - cpu, 1),
            "busy_cores": round(os.getloadavg()[0], 1),
            "equation": found.equation,
            "trusted": found.trusted,
            "candidates": found.candidates,
            "method": found.method,
            "code": CODE,
        }
        print(name, measured[name], flush=True)
    write_whole(RESULTS / "speed.json", json.dumps(measured, indent=1) + "\n")


def speed_table() -> str:
    lines = [
        "| benchmark | seconds on the clock | of the processor | processes that waited or ran "
        "| trusted | equation found |",
        "|---|---|---|---|---|---|",
    ]
    rows: Any = read(RESULTS / "speed.json")
    for name, row in rows.items():
        trusted = "yes" if row["trusted"] else "no"
        spent = f"{row['seconds']:.0f} | {row['cpu_seconds']:.0f} | {row['busy_cores']:.0f}"
        lines.append(f"| {name} | {spent} | {trusted} | `{row['equation']}` |")
    return "\n".join(lines)


def read(path: Path) -> dict[str, list[dict[str, Any]]]:
    return json.loads(path.read_text()) if path.exists() else {}


def run(path: Path, draws: int, one: Any, names: list[str], *, again: bool, seconds: float) -> None:
    """Measure what is not there yet, draw by draw over all equations; `again` what other code
    measured. No draw begins after so many seconds."""
    began = time.perf_counter()
    RESULTS.mkdir(parents=True, exist_ok=True)
    for seed in range(draws):
        for name in names:
            for noise in NOISE:
                held = read(path)
                rows = held.setdefault(name, [])
                own = [r for r in rows if r["noise"] == noise and r["draw"] == seed]
                if own and (not again or own[0].get("code") == CODE):
                    continue
                if time.perf_counter() - began > seconds:
                    return
                row = one(name, seed, noise)
                rows[:] = [*(r for r in rows if r not in own), row]
                rows.sort(key=lambda r: (r["noise"], r["draw"]))
                write_whole(path, json.dumps(held, indent=1) + "\n")
                print(name, seed, noise, row.get("exact"), row.get("trusted"), flush=True)


def tables() -> str:
    ours, theirs = read(RESULTS / "study.json"), read(RESULTS / "peers.json")
    lines = [
        "| equation | noise | exact terms | target | of these trusted | wrong but trusted "
        "| largest error of a coefficient, mean | within the 95 % interval | PySINDy exact |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in PROBLEMS:
        for noise in NOISE:
            rows = [r for r in ours.get(name, []) if r["noise"] == noise]
            if not rows:
                continue
            exact = [r for r in rows if r["exact"]]
            sure = sum(r["trusted"] for r in exact)
            wrong = sum(r["trusted"] and not r["exact"] for r in rows)
            error = 100 * np.mean([r["largest_error"] for r in exact]) if exact else None
            peers = [r for r in theirs.get(name, []) if r["noise"] == noise]
            held = [one for r in exact for one in r["covered"]]
            best = max((sum(r["exact"][str(t)] for r in peers) for t in THRESHOLDS), default=0)
            lines.append(
                f"| {name} | {100 * noise:g} % | {len(exact)} of {len(rows)} | {TARGETS[noise]} % "
                f"| {sure} of {len(exact)} | {wrong} | "
                + (" | " if error is None else f"{error:.2g} % | {sum(held)} of {len(held)}")
                + f" | {f'{best} of {len(peers)}' if peers else 'not measured'} |"
            )
    rows = [r for own in ours.values() for r in own]
    older = sum(r.get("code") != CODE for r in rows)
    told = f"{older} of these {len(rows)} draws" if older else f"None of these {len(rows)} draws"
    said = f"{told} {'were' if older > 1 else 'was'} measured by an earlier state of `discover`."
    return "\n".join([*lines, "", said])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["study", "peers", "speed", "tables"])
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--only", nargs="*", choices=list(PROBLEMS))
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    given = parser.parse_args()
    if given.what == "tables":
        write_between(DOCS, "<!-- study:begin -->", "<!-- study:end -->", tables())
        write_between(DOCS, "<!-- speed:begin -->", "<!-- speed:end -->", speed_table())
    elif given.what == "speed":
        speed()
    elif given.what == "study":
        run(
            RESULTS / "study.json",
            given.draws,
            measured,
            given.only or list(PROBLEMS),
            again=given.again,
            seconds=given.seconds,
        )
    else:
        names = given.only or list(PEER_TERMS)
        run(RESULTS / "peers.json", given.draws, peer, names, again=False, seconds=given.seconds)


if __name__ == "__main__":
    main()

"""One term not told: found as a formula, and learned alone.

    python tools/missing.py [NAME.TERM ...]   # results/unknown/missing.json; what is there is kept
    python tools/missing.py --tables          # the table in docs/unknown.md

The equations and terms are those of tools/examples.py, with its data: 12 trajectories to learn
from, 4 to test on; and two terms that no candidate is. `?` stands in the equation of every field.
Errors are relative L2 errors of rollouts of the test trajectories, their mean over the steps.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from examples import DROPPED, TEST, TRAIN, solved
from splatop import discover
from splatop.data import ArrayTrajectories
from splatop.data.atomic import write_whole
from splatop.discover.candidates import Expression, parse_terms, plain_expression
from splatop.discover.learn import learn
from splatop.equation import (
    EXAMPLES,
    Equation,
    Example,
    format_equation,
    format_partial,
    parse_equation,
    parse_partial_equation,
)
from splatop.equation.expansion import expand
from splatop.grid import Grid
from splatop.training.unknown import rollout_error
from unknown_problems import solve, waves

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results" / "unknown" / "missing.json"
DOCS = ROOT / "docs" / "unknown.md"

# Terms outside the library, which no text of ours can say: solved by unknown_problems.py.
TOLD = {"strange.reaction": "dt(u) = 0.001*d2x(u) + ?(u)", "strange.flux": "dt(u) = 0.1*u + ?"}
STRANGE_DT = {"strange.reaction": 0.05, "strange.flux": 0.02}


def strange(name: str, trajectories: int, seed: int) -> ArrayTrajectories:
    """`sin(3u) exp(-u²)` beside diffusion; the flux `0.02 u_x/(1 + u²)` beside growth."""
    k = 2j * np.pi * np.fft.fftfreq(256, 1 / 256)
    grid, dt = Grid((128,), (1.0,)), STRANGE_DT[name]

    def reaction(u: np.ndarray, slope: Any) -> np.ndarray:
        return np.sin(3 * u) * np.exp(-(u**2))

    def flux(u: np.ndarray, slope: Any) -> np.ndarray:
        rest = 0.02 * slope(0, 0) * (1 / (1 + u[0] ** 2) - 1)
        return np.fft.ifft(k * np.fft.fft(rest)).real[None]

    frames = [
        solve(
            1.5 * waves(np.random.default_rng((seed, i)), (128,), 4)[None],
            grid.lengths,
            dt,
            41,
            rate=(lambda m: [0.001 * m])
            if name == "strange.reaction"
            else (lambda m: [0.02 * m + 0.1]),
            rest=reaction if name == "strange.reaction" else flux,
            substeps=16,
        )
        for i in range(trajectories)
    ]
    return ArrayTrajectories(np.stack(frames).astype(np.float32), grid, dt=dt, fields=("u",))


def rows() -> dict[str, tuple[Example | None, str | None]]:
    found: dict[str, tuple[Example | None, str | None]] = {
        f"{name}.{term}": (EXAMPLES[name], term)
        for name, terms in DROPPED.items()
        for term in terms
    }
    return {**found, **dict.fromkeys(TOLD, (None, None))}


def products(sides: dict[str, Expression]) -> dict[str, set[Any]]:
    return {f: {m for m, _ in plain_expression(s).monomials} for f, s in sides.items()}


def measured(name: str, example: Example | None, dropped: str | None) -> dict[str, Any]:
    if example is None or dropped is None:
        training, test = (strange(name, n, seed) for n, seed in ((TRAIN, 0), (TEST, 1)))
        whole, given, wanted, question = None, {}, None, TOLD[name]
    else:
        training = solved(example, trajectories=TRAIN)
        test = solved(example, trajectories=TEST, seed=1)
        whole, given = example.equation, dict(example.coefficients)
        known = format_equation(whole.without(dropped), dims=example.dims)
        asked = "; ".join(f"{line} + ?" for line in known.split("; "))
        question = format_partial(parse_partial_equation(asked, dims=example.dims))
        term = next(t for t in whole.terms if t.name == dropped)
        sides = expand(term, whole.fields, example.dims)
        wanted = None if sides is None else products(dict(zip(whole.fields, sides, strict=True)))
    dims, fields = training.grid.dims, training.fields
    partial = parse_partial_equation(question, dims=dims, fields=fields)
    own = {n: given[n] for n in partial.coefficient_names}
    started = time.process_time()
    found = discover(training, question, known=own, budget=0.0)
    row: dict[str, Any] = {
        "question": question,
        "formula": found.equation,
        "trusted": found.trusted,
        "formula_cpu_seconds": round(time.process_time() - started, 1),
        "formula_error": rollout_error(
            parse_equation(found.equation, dims=dims, fields=fields), {}, training, test
        ),
    }
    if whole is not None:
        row["whole_error"] = rollout_error(whole, given, training, test)
    if wanted is not None:
        got: dict[str, Expression] = dict.fromkeys(fields, Expression())
        for one in found.terms:
            for field, text in one.sides:
                (side,) = parse_terms(text, dims=dims, fields=fields)
                got[field] = got[field] + side
        row["exact"] = products(got) == wanted
    started = time.process_time()
    learned = learn(training, partial, known=partial.known, coefficients=own)
    row["learned_cpu_seconds"] = round(time.process_time() - started, 1)
    row["explained"] = learned.explained
    told = () if partial.known is None else partial.known.terms
    row["learned_error"] = rollout_error(
        Equation((*told, learned.term), fields), own, training, test
    )
    if partial.known is not None:
        row["known_error"] = rollout_error(partial.known, own, training, test)
    return row


def read() -> dict[str, Any]:
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def table() -> str:
    lines = [
        "| not told | known terms alone | formula: right terms | trusted | formula's error "
        "| whole equation's | learned term's error |",
        "|---|---|---|---|---|---|---|",
    ]

    def shown(row: dict[str, Any], key: str) -> str:
        return f"{row[key]:.2g}" if key in row else ""

    for name, row in read().items():
        exact = {True: "yes", False: "no", None: "not a formula"}[row.get("exact")]
        lines.append(
            f"| {name.replace('.', ', ')} | {shown(row, 'known_error')} | {exact} "
            f"| {'yes' if row['trusted'] else 'no'} | {shown(row, 'formula_error')} "
            f"| {shown(row, 'whole_error')} | {shown(row, 'learned_error')} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[[], *rows()])
    parser.add_argument("--tables", action="store_true")
    given = parser.parse_args()
    if given.tables:
        begin, end = "<!-- missing:begin -->", "<!-- missing:end -->"
        head, _, rest = DOCS.read_text().partition(begin)
        DOCS.write_text(f"{head}{begin}\n{table()}\n{end}{rest.partition(end)[2]}")
        return
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    for name in given.names or rows():
        if name not in read():
            row = measured(name, *rows()[name])
            write_whole(RESULTS, json.dumps({**read(), name: row}, indent=1) + "\n")
            print(name, {k: v for k, v in row.items() if k != "question"}, flush=True)


if __name__ == "__main__":
    main()

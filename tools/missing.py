"""One term not told: found as a formula, and learned alone.

    python tools/missing.py [NAME.TERM ...]   # results/unknown/missing.json; what is there is kept
    python tools/missing.py --again           # but what was measured by other code
    python tools/missing.py --tables          # the table in docs/unknown.md

The equations and terms are those of tools/examples.py, with its data, and of three benchmarks at
64² points: 12 trajectories to learn from, 4 to test on; and two terms that no candidate is. `?`
stands in the equation of every field. Errors are relative L2 errors of rollouts of the test
trajectories, their mean over up to 100 steps.
"""

import argparse
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from examples import DROPPED, TEST, TRAIN, solved
from measured import digest, write_between
from splatop import discover
from splatop.benchmarks import get_benchmark
from splatop.data import ArrayTrajectories, generate, split
from splatop.data.atomic import write_whole
from splatop.discover.candidates import Expression, parse_terms, plain_expression
from splatop.equation import (
    EXAMPLES,
    Equation,
    format_equation,
    format_partial,
    parse_equation,
    parse_partial_equation,
)
from splatop.equation.expansion import expand
from splatop.equation.expression import Coefficient
from splatop.grid import Grid
from splatop.training.found_terms import learned_trial, rollout_error
from unknown_problems import solve, waves

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results" / "unknown" / "missing.json"
DOCS = ROOT / "docs" / "unknown.md"
# Without how results show themselves.
CODE = digest(ROOT / "src" / "splatop" / "discover", but="discovered.py")

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


# Terms of benchmarks that docs/results.md leaves out, and frames of a trajectory.
BENCHMARK_TERMS = {
    "advection_allen_cahn2d": "reaction",
    "burgers2d": "diffusion",
    "advection_diffusion2d": "diffusion",
}
STEPS, POINTS = 50, 64


def rows() -> tuple[str, ...]:
    examples = [f"{name}.{term}" for name, terms in DROPPED.items() for term in terms]
    return (*TOLD, *examples, *(f"{name}.{term}" for name, term in BENCHMARK_TERMS.items()))


@dataclass(frozen=True)
class Case:
    """Data to learn from and to test on, and what of their equation is told."""

    training: ArrayTrajectories
    test: ArrayTrajectories
    question: str
    whole: Equation | None = None
    coefficients: Mapping[str, float] = field(default_factory=dict)
    dropped: str | None = None


def case(name: str) -> Case:
    if name in TOLD:
        training, test = (strange(name, n, seed) for n, seed in ((TRAIN, 0), (TEST, 1)))
        return Case(training, test, TOLD[name])
    first, _, term = name.partition(".")
    if first in EXAMPLES:
        example = EXAMPLES[first]
        training = solved(example, trajectories=TRAIN)
        test = solved(example, trajectories=TEST, seed=1)
        whole, given = example.equation, dict(example.coefficients)
    else:
        benchmark = get_benchmark(first)
        whole, given = benchmark.equation, benchmark.typical_coefficients()
        training, test = (
            generate(benchmark, split=part, trajectories=n, steps=STEPS, points=POINTS)
            for part, n in (("train", TRAIN), ("test", TEST))
        )
    known = format_equation(whole.without(term), dims=training.grid.dims)
    asked = "; ".join(f"{line} + ?" for line in known.split("; "))
    question = format_partial(parse_partial_equation(asked, dims=training.grid.dims))
    return Case(training, test, question, whole, given, term)


def products(sides: dict[str, Expression]) -> dict[str, set[Any]]:
    """Of fields and their derivatives; coefficients with names of their own are numbers."""
    return {
        field: {
            tuple(factor for factor in monomial if not isinstance(factor[0], Coefficient))
            for monomial, _ in plain_expression(side).monomials
        }
        for field, side in sides.items()
    }


def formula(one: Case) -> dict[str, Any]:
    """What `discover` finds."""
    dims, fields = one.training.grid.dims, one.training.fields
    partial = parse_partial_equation(one.question, dims=dims, fields=fields)
    own = {n: one.coefficients[n] for n in partial.coefficient_names}
    started = time.process_time()
    found = discover(one.training, one.question, known=own)
    equation = parse_equation(found.equation, dims=dims, fields=fields)
    row: dict[str, Any] = {
        "question": one.question,
        "formula": found.equation,
        "trusted": found.trusted,
        "method": found.method,
        "warnings": list(found.warnings),
        "formula_cpu_seconds": round(time.process_time() - started, 1),
        "formula_error": rollout_error(equation, {}, one.training, one.test),
    }
    if partial.known is not None:
        row["known_error"] = rollout_error(partial.known, own, one.training, one.test)
    if one.whole is None:
        return row
    row["whole_error"] = rollout_error(one.whole, one.coefficients, one.training, one.test)
    term = next(t for t in one.whole.terms if t.name == one.dropped)
    sides = expand(term, fields, dims)
    if sides is not None:
        got: dict[str, Expression] = dict.fromkeys(fields, Expression())
        for part in found.terms:
            for name, text in part.sides:
                (side,) = parse_terms(text, dims=dims, fields=fields)
                got[name] = got[name] + side
        row["exact"] = products(got) == products(dict(zip(fields, sides, strict=True)))
    return row


def learned(one: Case) -> dict[str, Any]:
    """What a learned term makes of it, as training learns it."""
    fields = one.training.fields
    partial = parse_partial_equation(one.question, dims=one.training.grid.dims, fields=fields)
    started = time.process_time()
    said: list[str] = []
    term, trial = learned_trial(
        partial, dict(one.coefficients), (), split(one.training), said.append
    )
    return {
        "learned_cpu_seconds": round(time.process_time() - started, 1),
        "explained": term.explained,
        "arguments": list(term.names),
        "followed": bool(said),
        "learned_error": rollout_error(trial.equation, trial.coefficients, one.training, one.test),
    }


def read() -> dict[str, Any]:
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def table() -> str:
    lines = [
        "| not told | known terms alone | formula: right terms | trusted | formula's error "
        "| whole equation's | learned term's error |",
        "|---|---|---|---|---|---|---|",
    ]

    trusted = {True: "yes", False: "no", None: ""}

    def shown(row: dict[str, Any], key: str) -> str:
        return f"{row[key]:.2g}" if key in row else ""

    for name, row in read().items():
        exact = {True: "yes", False: "no", None: "not a formula"}[row.get("exact")]
        if "formula_error" not in row:
            exact = ""
        lines.append(
            f"| {name.replace('.', ', ')} | {shown(row, 'known_error')} | {exact} "
            f"| {trusted[row.get('trusted')]} | {shown(row, 'formula_error')} "
            f"| {shown(row, 'whole_error')} | {shown(row, 'learned_error')} |"
        )
    parts = [
        row.get(f"{part}_code")
        for row in read().values()
        for part in ("formula", "learned")
        if f"{part}_error" in row
    ]
    older = sum(code != CODE for code in parts)
    said = f"{older or 'None'} of these {len(parts)} answers "
    said += f"{'were' if older > 1 else 'was'} measured by an earlier state of `discover`."
    return "\n".join([*lines, "", said])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[[], *rows()])
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--again", action="store_true")
    given = parser.parse_args()
    if given.tables:
        write_between(DOCS, "<!-- missing:begin -->", "<!-- missing:end -->", table())
        return
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    for name in given.names or rows():
        for key, measured in (("formula_error", formula), ("learned_error", learned)):
            row = read().get(name, {})
            code = f"{measured.__name__}_code"
            if key not in row or (given.again and row.get(code) != CODE):
                row |= {**measured(case(name)), code: CODE}
                write_whole(RESULTS, json.dumps({**read(), name: row}, indent=1) + "\n")
                print(name, {k: v for k, v in row.items() if k != "question"}, flush=True)


if __name__ == "__main__":
    main()

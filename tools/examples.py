"""Generate, train and evaluate every example equation, and write docs/examples.md.

    python tools/examples.py [NAME ...] [--out results/examples.json] [--page]

For each: reference data of `splatop.equation.EXAMPLES` at its size, and then, with the same data,
loss and number of optimiser steps, a surrogate, an FNO alone, and the physics alone with the
surrogate's numerics; once with the whole equation and once with a term that the physics is not
told. Examples that the JSON file holds already are left as they are. `--page` only writes the page.
"""

import argparse
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import jax
import numpy as np

from measured import table
from splatop.data import ArrayTrajectories
from splatop.data.atomic import complete_or_absent
from splatop.equation import EXAMPLES, Example
from splatop.evaluate import evaluate_all
from splatop.evaluate.written import plain
from splatop.grid import Grid
from splatop.model import Model
from splatop.solver import solve_trajectories
from splatop.training import Problem, Settings, preset, train
from splatop.tune import WIDEST

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results" / "examples.json"
PAGE = ROOT / "docs" / "examples.md"

TRAIN, TEST = 12, 4
_COMMON = replace(preset("fast"), batch=4, warmup=20, checkpoint_every=10_000)
# In 1D a step costs little, and solitons need their modes.
SETTINGS = {
    1: replace(_COMMON, phases=((0, 1500),), modes=24, hidden=16),
    2: replace(_COMMON, phases=((0, 120),), modes=8),
}
# Terms that the physics is not told, one at a time.
DROPPED = {
    "fisher_kpp": ("reaction",),
    "kuramoto_sivashinsky": ("diffusion",),
    "kdv": ("self_advection", "dispersion"),
    "gray_scott": ("reaction",),
    "navier_stokes_vorticity": ("diffusion",),
    "burgers": ("self_advection", "diffusion"),
    "fitzhugh_nagumo": ("reaction", "reaction_eps"),
    "variable_advection": ("diffusion",),
}
# Below this an error over a rollout is float32 rounding, and there is nothing left to learn.
ROUNDING = 1e-5
# An error within this part of another is not told apart from it.
ALIKE = 0.05


def solved(
    example: Example, *, trajectories: int, steps: int | None = None, seed: int = 0
) -> ArrayTrajectories:
    """Reference trajectories of an example, in memory."""
    grid = Grid(example.points, example.lengths)
    frames = solve_trajectories(
        example.equation,
        example.coefficients,
        grid=grid,
        dt=example.dt,
        steps=steps or example.steps,
        trajectories=trajectories,
        initial=example.initial,
        seed=seed,
    )
    return ArrayTrajectories(
        np.stack(list(frames)),
        grid,
        dt=example.dt,
        fields=example.equation.fields,
        coefficients=dict(example.coefficients),
        attributes={"source": f"{trajectories} trajectories, seed {seed}"},
    )


def measured(
    example: Example,
    training: ArrayTrajectories,
    test: ArrayTrajectories,
    settings: Settings,
    *,
    dropped: str | None = None,
) -> dict[str, Any]:
    """rL2 of the surrogate, of its physics alone, and of an FNO alone with as many steps.

    The FNO does not know the equation, so what is dropped from it changes nothing there.
    """
    problem = Problem(
        data=training, equation_text=example.text, coefficients=dict(example.coefficients)
    )
    kinds = ["surrogate", "fno"] if dropped is None else ["surrogate"]
    models: dict[str, Model] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for kind in kinds:
            terms = (dropped,) if dropped and kind == "surrogate" else ()
            chosen = replace(settings, model=kind, drop_terms=terms)
            models[kind] = train(Path(scratch) / kind, problem, chosen)
    found = evaluate_all(models, test, steps=test.frames - 1, also=("physics alone",))
    surrogate = found["surrogate"]
    alone = surrogate.physics_alone
    record = models["surrogate"].record
    result: dict[str, Any] = {
        "surrogate": surrogate.rl2_mean,
        # Where the operator was left out the model is its physics.
        "physics_alone": (surrogate if alone is None else alone).rl2_mean,
        "operator_earned_its_place": record["operator_earned_its_place"],
        "train_minutes": record["train_minutes"],
        "numerics": list(record["numerics"]),
    }
    if "fno" in found:
        result["fno"] = found["fno"].rl2_mean
        result["fno_minutes"] = models["fno"].record["train_minutes"]
    return result


def example_results(
    name: str,
    settings: Settings | None = None,
    *,
    sizes: dict[str, Any] | None = None,
    held: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The whole equation, and each term dropped; what is `held` already is not measured again.

    `sizes` replace fields of the example, for tests.
    """
    settings = settings or SETTINGS[EXAMPLES[name].dims]
    counts = {"train": TRAIN, "test": TEST, **(sizes or {}).pop("counts", {})}
    example = replace(EXAMPLES[name], **(sizes or {}))
    training = solved(example, trajectories=counts["train"])
    test = solved(example, trajectories=counts["test"], seed=1)
    complete = held["complete"] if held else measured(example, training, test, settings)
    partial = dict(held["partial"]) if held else {}
    for term in DROPPED[name]:
        if term not in partial:
            found = measured(example, training, test, settings, dropped=term)
            partial[term] = {**found, "fno": complete["fno"]}
    return {
        "equation": example.text,
        "title": example.title,
        "coefficients": dict(example.coefficients),
        "points": list(example.points),
        "lengths": list(example.lengths),
        "dt": example.dt,
        "test_steps": test.frames - 1,
        "train_trajectories": counts["train"],
        "test_trajectories": counts["test"],
        "optimiser_steps": settings.steps,
        "batch": settings.batch,
        "modes": settings.modes,
        "hidden": settings.hidden,
        "complete": complete,
        "partial": {term: partial[term] for term in DROPPED[name]},
    }


def number(value: float | None) -> str:
    return plain(value, 2, missing="diverged")


def beats(one: float | None, other: float | None) -> bool:
    """Whether an error is lower by more than what is not told apart."""
    if one is None or other is None:
        return one is not None
    return one < (1 - ALIKE) * other


def verdict(case: dict[str, Any]) -> str:
    """What a row of the table says about itself."""
    surrogate, physics, fno = case["surrogate"], case["physics_alone"], case["fno"]
    if not beats(surrogate, fno):
        return "the FNO is better"
    if beats(surrogate, physics):
        return "beats both"
    if physics is not None and physics < ROUNDING:
        return "equals its physics, which is at rounding"
    if not case["operator_earned_its_place"]:
        return "equals its physics: the operator was left out"
    return "no better than its physics"


def row(label: str, case: dict[str, Any]) -> list[str]:
    errors = [case["surrogate"], case["physics_alone"], case["fno"]]
    held = [e for e in errors if e is not None]
    shown = [f"**{number(e)}**" if held and e == min(held) else number(e) for e in errors]
    return [label, *shown, verdict(case)]


HEADER = ["example", "surrogate", "physics alone", "FNO alone", ""]


def page(results: dict[str, Any]) -> str:
    one = next(iter(results.values()))
    complete = [row(f"`{name}`", r["complete"]) for name, r in results.items()]
    cases = [
        (f"`{name}` without {term}", case)
        for name, r in results.items()
        for term, case in r["partial"].items()
    ]
    partial = [row(label, case) for label, case in cases]
    minutes = [
        case[key]
        for r in results.values()
        for case in (r["complete"], *r["partial"].values())
        for key in ("train_minutes", "fno_minutes")
        if key in case
    ]
    won = sum(verdict(r["complete"]) == "beats both" for r in results.values())
    won_partial = sum(verdict(case) == "beats both" for _, case in cases)
    exact = sum((r["complete"]["physics_alone"] or 1) < ROUNDING for r in results.values())
    sections = [
        "# Examples",
        "Written by `python tools/examples.py --page` from `results/examples.json`, which "
        "`python tools/examples.py` measures. The equations, boxes, numbers and initial states are "
        "those of `splatop.equation.EXAMPLES` ([equations](equations.md)).",
        f"Each: {one['train_trajectories']} training trajectories, and for the surrogate and the "
        "FNO alone the same network, the same optimiser steps and batches, and the same five-step "
        "rollout loss. Errors are mean rL2 over "
        f"{one['test_trajectories']} held-out trajectories and all their steps. *Physics alone* is "
        "the surrogate without its operator: the same band, Gaussians and substeps. Half of "
        f"the trainings took less than {60 * median(minutes):.0f} s on two cores.",
        "## The whole equation",
        table(HEADER, complete),
        f"With the whole equation and automatic numerics the surrogate beats both in {won} of "
        f"{len(results)} examples. In {exact} the physics alone is below {ROUNDING:.0e}, where "
        "float32 rounding begins: nothing is left to learn, the operator is left out, and the "
        "surrogate is its physics. Elsewhere the small grid is the limit: its data reach beyond "
        f"the modes kept, at most {WIDEST:g} of the points per axis, and an operator of few modes, "
        "trained this shortly, puts back little of what lies there. The FNO alone, which has to "
        "learn the equation from the same data, is behind by the factor that can be read off.",
        "## One term that the physics is not told",
        table(HEADER, partial),
        "Here learning has something to do: the equation's term named in the row is left out of "
        f"the physics. The surrogate beats both in {won_partial} of {len(cases)}. "
        "The FNO is the same as above, since it knows no equation. An operator that is added to a "
        "physics cannot keep it in bounds: Burgers without diffusion steepens into shocks that no "
        "grid holds. Errors around one and above mean that nothing is predicted, and there a "
        "network that predicts little looks better. Tell the physics what keeps it stable, and "
        "leave the rest to the operator. Where the operator was left out, as many steps as here "
        "did not lower the error of whole training rollouts by the 5 % that it takes to be kept.",
        "## Settings",
        table(
            [
                "example",
                "box",
                "points",
                "Δt",
                "test steps",
                "optimiser steps x batch",
                "FNO modes, channels",
                "chosen by the program",
            ],
            [
                [
                    f"`{name}`",
                    " × ".join(f"{x:g}" for x in r["lengths"]),
                    " × ".join(map(str, r["points"])),
                    f"{r['dt']:g}",
                    str(r["test_steps"]),
                    f"{r['optimiser_steps']} x {r['batch']}",
                    f"{r['modes']}, {r['hidden']}",
                    _numerics(r["complete"]["numerics"]),
                ]
                for name, r in results.items()
            ],
        ),
    ]
    return "\n\n".join(sections) + "\n"


def _numerics(reasons: list[str]) -> str:
    """The choices without their explanations."""
    short = []
    for reason in reasons:
        what, _, words = reason.partition(": ")
        words = words.split(";")[0].split(" hold ")[0].split(", because")[0].split(" give ")[0]
        if what != "filter":
            short.append(words)
    return "; ".join(short)


def main(names: list[str], out: Path, page_only: bool) -> None:
    results = json.loads(out.read_text()) if out.exists() else {}
    for name in names or EXAMPLES:
        held = None if name in names else results.get(name)
        if page_only or (held and set(DROPPED[name]) <= set(held["partial"])):
            continue
        print("measuring", name, flush=True)
        results[name] = found = example_results(name, held=held)
        for label, case in {"complete": found["complete"], **found["partial"]}.items():
            print(" ", *row(label, case), flush=True)
        ordered = {key: results[key] for key in EXAMPLES if key in results}
        out.parent.mkdir(parents=True, exist_ok=True)
        with complete_or_absent(out) as partial:
            partial.write_text(json.dumps(ordered, indent=1, allow_nan=False) + "\n")
        results = ordered
        jax.clear_caches()
    if out == RESULTS:
        PAGE.write_text(page(results))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(EXAMPLES))
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--page", action="store_true")
    arguments = parser.parse_args()
    main(arguments.names, arguments.out, arguments.page)
    sys.exit(0)

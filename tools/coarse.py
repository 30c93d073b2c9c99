"""Coarse models: their data, their training, what they cost and how far they hold; the tables.

python tools/coarse.py data NAME          # made by exponax, into .cache/coarse/NAME.h5
python tools/coarse.py train NAME [...]   # into .cache/coarse/runs/NAME; more are settings key=value
python tools/coarse.py ship NAME          # the trained model into the package
python tools/coarse.py measure [NAME ...] # into results/coarse/NAME.json
python tools/coarse.py times NAME --cpu   # times alone, into the same file
python tools/coarse.py statistics NAME    # of a chaotic case alone, into the same file
python tools/coarse.py tables             # docs/coarse.md from these

The names are those of the keys of `splatop bench --only coarse`.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from measured import write_between
from splatop.bench.coarse_cases import CoarseCase, Rollout, cases, of_stepper
from splatop.bench.coarse_cost import SEED, cost_per_frame, judges
from splatop.coarse import truncate
from splatop.coarse.chaos import CORRELATED, long_run
from splatop.data import ArrayTrajectories, save_trajectories
from splatop.grid import Grid
from splatop.model import SHIPPED, coarse_models, load_model
from splatop.threads import one_blas_thread

ROOT = Path(__file__).parent.parent
CACHE = Path(os.environ.get("SPLATOP_COARSE", ROOT / ".cache" / "coarse"))
RESULTS = ROOT / "results" / "coarse"
PAGE = ROOT / "docs" / "coarse.md"
BEGIN, END = "<!-- coarse:begin -->", "<!-- coarse:end -->"
# Frames of the long run, and how far off the state is that shows what can be predicted at all.
LONG_RUN, OFF = 5000, 1e-3
BATCH = 16
COMMANDS = ("data", "train", "fno", "ship", "measure", "times", "statistics", "tables")


def data(name: str) -> Path:
    """The trajectories of a problem: for training, to decide on the operator, to report on."""
    case, path = cases()[name], CACHE / f"{name}.h5"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    points = case.training_points or case.points
    made = ArrayTrajectories(
        case.reference(case.trajectories, seed=0, frames=case.frames, points=points),
        Grid((points,) * case.dims, (case.length,) * case.dims),
        dt=case.dt,
        fields=case.fields,
        attributes={"source": f"{case.name}, by exponax"},
    )
    save_trajectories(path, made)
    return path


def train(name: str, settings: list[str], *, model: str = "surrogate") -> None:
    """The command that a user would give, with --resume if it was begun."""
    case, out = cases()[name], _run(name, model)
    command = [sys.executable, "-m", "splatop", "train", "--data", str(data(name))]
    command += ["--equation", case.equation, "--hold-out", str(case.held_out)]
    command += ["--coarse", str(case.coarse), "--stride", str(case.stride)]
    command += ["--model", model, "--out", str(out)]
    for pair in (*(f"{k}={v}" for k, v in case.settings.items()), *settings):
        command += ["--set", pair]
    if (out / "config.json").exists():
        command.append("--resume")
    print(" ".join(command), flush=True)
    subprocess.run(command, check=True)


def _run(name: str, model: str = "surrogate") -> Path:
    return CACHE / "runs" / (f"{name}_fno" if model == "fno" else name)


def ship(name: str) -> None:
    target = SHIPPED / "coarse" / f"coarse_{name}.safetensors"
    target.parent.mkdir(exist_ok=True)
    shutil.copy(_run(name) / "model.safetensors", target)


@one_blas_thread()
def measure(name: str, *, cpu: bool = False) -> dict:
    """Scores and costs of the model, its physics, the solver at several sizes, and FNO alone."""
    case, model = cases()[name], load_model(f"coarse_{name}")
    truth = judges(case)
    spec, rows = model.spec, _models(name)
    scores = {label: case.score(roll, truth) for label, roll in rows.items()}
    for solver in case.solvers():
        label = _solver_label(solver)
        scores[label] = case.score(solver, truth)
        print(label, scores[label], flush=True)
    found = {
        "case": case.name,
        "points": case.points,
        "coarse": list(spec.coarse),
        "stride": spec.stride,
        "dt": case.dt,
        "chaotic": case.chaotic,
        "parameters": model.parameters,
        "train_minutes": model.record["train_minutes"],
        "trajectories": model.record["trajectories"],
        "judged_on": len(truth),
        "scores": scores,
        **times(name, scores, truth, cpu=cpu),
    }
    return {**found, **(statistics(name, truth) if case.chaotic else {})}


def times(name: str, scores: dict[str, float], truth: np.ndarray, *, cpu: bool) -> dict:
    """What the models and those solvers cost that are better than all cheaper ones."""
    case, rows = cases()[name], _models(name)
    solvers = {_solver_label(solver): solver for solver in case.solvers()}
    good = [label for label in solvers if scores[label] >= scores["surrogate"]]
    kept = {*_front(list(solvers), scores), *good[:1]}
    clock = time.process_time if cpu else time.perf_counter
    alone = cost_per_frame({**rows, **{k: solvers[k] for k in kept}}, truth, 5, clock=clock)
    size = min(BATCH, len(truth))
    beside = {**rows, **{k: solvers[k] for k in good[:1]}}
    together = cost_per_frame(beside, truth, 5, batch=size, clock=clock)
    return {
        "clock": "CPU time of all threads" if cpu else "wall clock",
        "microseconds_per_frame": {k: 1e6 * v for k, v in alone.items()},
        "microseconds_per_frame_in_a_batch": {k: 1e6 * v for k, v in together.items()},
        "batch": size,
        "solver_as_good": good[0] if good else None,
    }


def _solver_label(solver: Rollout) -> str:
    return f"solver, {solver.points[0]} points, {solver.stride} frames a step"


def _models(name: str) -> dict[str, Rollout]:
    """The model, its physics alone, and FNO alone where one was trained."""
    model = load_model(f"coarse_{name}")
    values, spec = model.complete(None), model.spec
    steppers = {"surrogate": model.stepper, "its physics alone": model.physics_only().stepper}
    rows = {k: of_stepper(s, values, spec.coarse, spec.stride) for k, s in steppers.items()}
    if (_run(name, "fno") / "model.safetensors").exists():
        fno = load_model(_run(name, "fno"))
        rows["FNO alone"] = of_stepper(fno.stepper, {}, fno.spec.coarse, fno.spec.stride)
    return rows


def statistics(name: str, truth: np.ndarray) -> dict:
    """How long anything can hold, and the long run of each model."""
    case = cases()[name]
    return {"limit": _limit(case, truth), "long_run": _long_run(case, _models(name), truth)}


def _front(labels: list[str], scores: dict[str, float]) -> list[str]:
    """Of solvers from cheap to dear, those better than all cheaper ones."""
    best, kept = -np.inf, []
    for label in labels:
        if scores[label] > best:
            best = scores[label]
            kept.append(label)
    return kept


def _limit(case: CoarseCase, truth: np.ndarray) -> float:
    """The horizon of the fine solver itself, from a state that is off by a thousandth."""
    rng = np.random.default_rng(SEED)
    off = truth.copy()
    off[:, 0] += OFF * truth.std() * rng.standard_normal(truth[:, 0].shape).astype(np.float32)
    return case.score(case.fine(), np.concatenate([off[:, :1], truth[:, 1:]], axis=1))


def _long_run(case: CoarseCase, rows: dict[str, Rollout], truth: np.ndarray) -> dict:
    """Statistics of the last four fifths of a long rollout, in the coarse space."""
    coarse = rows["surrogate"].points
    fine = case.fine()
    stride = rows["surrogate"].stride
    found = {}
    for label, roll in {"reference": fine, **rows}.items():
        steps = LONG_RUN // roll.stride

        @jax.jit
        def run(u, roll=roll, steps=steps):
            states = roll.states(truncate(u, roll.points) if roll is not fine else u, steps)
            return jax.vmap(truncate, in_axes=(0, None))(states, coarse)

        frames = np.stack([np.asarray(run(jnp.asarray(t[0]))) for t in truth[:4]])
        frames = frames[:, :: stride // roll.stride][:, LONG_RUN // stride // 5 :]
        if not np.isfinite(frames).all():
            found[label] = "not finite"
            continue
        numbers = long_run(frames)
        numbers["correlation_frames"] *= stride
        found[label] = {
            k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in numbers.items()
        }
    return found


def tables() -> None:
    """The measured block of the page, and one figure for each case."""
    parts = []
    for name in cases():
        path = RESULTS / f"{name}.json"
        if path.exists():
            found = json.loads(path.read_text())
            parts.append(_section(name, found))
            _figure(name, found)
        else:
            ships = f"coarse_{name}" in coarse_models()
            said = "A model ships" if ships else "No model ships"
            parts.append(f"### {cases()[name].name}\n\n{said}; not measured.")
    write_between(PAGE, BEGIN, END, "\n\n".join(parts))


def _section(name: str, found: dict) -> str:
    case, scores = cases()[name], found["scores"]
    cost, together = found["microseconds_per_frame"], found["microseconds_per_frame_in_a_batch"]
    what = _measure(case)
    lines = [
        f"### {case.name}: {_across(found['points'], case.dims)} points to "
        f"{_across(found['coarse'][0], case.dims)}, {found['stride']} frames a step",
        "",
        f"By `python tools/coarse.py measure {name}` on {found['judged_on']} trajectories that no "
        f"training saw; {found['parameters']:,} parameters, trained on {found['trajectories']} "
        f"trajectories for {found['train_minutes']:.0f} minutes beside other work. Time is that of "
        "one state for the time of one frame of the data, in one compiled loop, over that of the "
        f"solver which is as good; all in one run ({found.get('clock', 'wall clock')}).",
        "",
        f"| what | {what} | time, over the solver's |",
        "| --- | --- | --- |",
    ]
    good = found["solver_as_good"]
    base = cost[good] if good else None
    for label in sorted(cost, key=lambda one: cost[one]):
        score = f"{scores[label]:.0f}" if found["chaotic"] else f"{-scores[label]:.1e}"
        ratio = "" if base is None else f"{cost[label] / base:.2g}"
        shown = f"**{label}**" if label == "surrogate" else label
        lines.append(f"| {shown} | {score} | {ratio} |")
    lines.append("")
    if good:
        lines.append(
            f"As good is the {good}. In a batch of {found['batch']} states the surrogate takes "
            f"{together['surrogate'] / together[good]:.2g} of its time, its physics alone "
            f"{together['its physics alone'] / together[good]:.2g}."
        )
    if "limit" in found:
        lines.append(
            f"The fine solver itself, from a state that is off by {OFF:g} of the standard "
            f"deviation, holds for {found['limit']} frames: about what can be expected of any model "
            "from such states (it varies from draw to draw)."
        )
    if good is None:
        lines.append("No solver that was tried is as good.")
    if "long_run" in found:
        lines += ["", *_long_table(found["long_run"])]
    lines += ["", f"![horizon or error against cost](images/coarse_{name}.svg)"]
    return "\n".join(lines)


def _measure(case: CoarseCase) -> str:
    """What a case is judged by, in words."""
    return {
        "horizon": "horizon, frames",
        "correlation": f"frames with a correlation above {CORRELATED:g}",
        "error": f"mean rL2, {case.judged} frames",
    }[case.judge]


def _across(points: int, dims: int) -> str:
    return f"{points}" + ("²" if dims == 2 else "")


def _long_table(held: dict) -> list[str]:
    rows = [
        f"The last four fifths of {LONG_RUN} frames, in the coarse space:",
        "",
        "| what | standard deviation | skewness | kurtosis | correlation falls to 1/e, frames | "
        "worst mode of the spectrum below two thirds of the band |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    true = np.asarray(held["reference"]["spectrum"])
    kept = slice(1, 2 * len(true) // 3)
    for label, numbers in held.items():
        if isinstance(numbers, str):
            rows.append(f"| {label} | {numbers} | | | | |")
            continue
        off = np.abs(np.asarray(numbers["spectrum"])[kept] / true[kept] - 1).max()
        rows.append(
            f"| {label} | {numbers['deviation']:.3f} | {numbers['skewness']:.3f} | "
            f"{numbers['kurtosis']:.3f} | {numbers['correlation_frames']:.0f} | {100 * off:.0f} % |"
        )
    return rows


def _figure(name: str, found: dict) -> None:
    """Horizon or error against cost per unit of simulated time."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.6))
    cost = {k: v / found["dt"] for k, v in found["microseconds_per_frame"].items()}
    solvers = sorted((k for k in cost if k.startswith("solver")), key=lambda one: cost[one])
    sign = 1 if found["chaotic"] else -1
    axes.plot(
        [cost[k] for k in solvers],
        [sign * found["scores"][k] for k in solvers],
        "o-",
        color="0.5",
        label="exponax ETDRK4, several grids and steps",
    )
    for label in cost:
        if label not in solvers:
            axes.plot(cost[label], sign * found["scores"][label], "s", label=label)
    axes.set_xscale("log")
    axes.set_xlabel("microseconds per unit of simulated time")
    axes.set_ylabel(_measure(cases()[name]))
    if "limit" in found:
        axes.axhline(found["limit"], color="0.8", label="fine solver, state off by 1e-3")
    if not found["chaotic"]:
        axes.set_yscale("log")
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(PAGE.parent / "images" / f"coarse_{name}.svg", metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--cpu", action="store_true", help="CPU time, on a machine that is busy")
    given = parser.parse_args()
    if given.command == "data":
        for one in given.names or cases():
            print(data(one))
    elif given.command in ("train", "fno"):
        case = cases()[given.names[0]]
        train(
            given.names[0], given.names[1:], model=case.model if given.command == "train" else "fno"
        )
    elif given.command == "ship":
        for one in given.names:
            ship(one)
    elif given.command == "measure":
        RESULTS.mkdir(parents=True, exist_ok=True)
        for one in given.names:
            (RESULTS / f"{one}.json").write_text(
                json.dumps(measure(one, cpu=given.cpu), indent=1) + "\n"
            )
    elif given.command in ("statistics", "times"):
        for one in given.names:
            path, truth = RESULTS / f"{one}.json", judges(cases()[one])
            held = json.loads(path.read_text())
            if given.command == "times":
                held |= times(one, held["scores"], truth, cpu=given.cpu)
            else:
                held |= statistics(one, truth)
            path.write_text(json.dumps(held, indent=1) + "\n")
    else:
        tables()

"""The main job in a few minutes: noisy data between walls, an equation known in part, contenders
side by side on held-out trajectories, a report."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import in_percent
from .app import app, console, say, show
from .compiled import keeps_compiled

if TYPE_CHECKING:
    from ..evaluate import Metrics
    from ..model import Model
else:
    Metrics = Model = Any

# The true equation, which no contender is told, and the part of it that is known.
TRUTH, VALUES = "dt(u) = D*d2x(u) + r*u - r*u^3", {"D": 0.005, "r": 1.0}
KNOWN, ASKED = "dt(u) = D*d2x(u)", "dt(u) = D*d2x(u) + ?(u)"
WALLS = "x: dn(u) = 0"
POINTS, DT, NOISE = 128, 0.05, 0.01
# Trajectories and steps, to learn from (with noise) and to test on (without).
TRAINING, TEST = (15, 80), (6, 160)
# Of stage 2. The FNO has everything to learn, splatop's operator what noise and a formula leave.
# The FNO's width and rate are the best of those tried, by its errors on the test data.
STEPS = {"splatop": 60, "fno": 3000}
FNO = {"hidden": 24, "modes": 16, "rate": 1e-3}
TITLES = {
    "physics": "physics alone: the known term",
    "fno": "FNO alone",
    "splatop": "splatop",
}


@app.command()
@keeps_compiled
def demo(
    out: Annotated[Path, typer.Option(help="The folder to write.")] = Path("demo"),
) -> None:
    """An equation known in part, from noisy data between walls: found, learned, compared."""
    from ..data import open_trajectories
    from ..evaluate import evaluate_all, save_metrics
    from ..report import write_report
    from ..training.loop import Interrupted
    from .progress import progress_bar

    say(f"What nature does between insulated walls: {TRUTH}, with {_truth()}.")
    say(f"What we know of it: {ASKED}. D is not known, ? is a term that nobody has written down.")
    say(f"Data: {TRAINING[0]} trajectories of {TRAINING[1]} steps with {100 * NOISE:g} % noise.")
    training, test = _files(out)
    try:
        console.rule("splatop: finds the term and D, then trains")
        found = _trained(out / "splatop", training, ASKED, steps=STEPS["splatop"])
        say(answer(found))
        console.rule("physics alone: the known term, with the D that was found")
        known = {"D": named_values(found)["D"]}
        models = {
            "physics": _trained(out / "physics", training, KNOWN, model="physics", values=known)
        }
        console.rule("FNO alone: the same data, no equation")
        models["fno"] = _trained(
            out / "fno", training, KNOWN, model="fno", steps=STEPS["fno"], values=known, **FNO
        )
    except Interrupted as stop:
        say(f"{stop}; the same command continues")
        raise typer.Exit(130) from stop
    models["splatop"] = found
    console.rule(f"{TEST[0]} held-out trajectories, {TEST[1]} steps, without noise")
    tests = open_trajectories(test)
    with progress_bar("evaluating") as progress:
        metrics = evaluate_all(models, tests, steps=TEST[1], also=("cost",), progress=progress)
    for name, one in metrics.items():
        save_metrics(out / name / "metrics.json", one)
    _print_errors(metrics)
    say(answer(found))
    order = [out / name for name in ("splatop", "fno", "physics")]
    written = write_report(order, out / "report.html", data=tests)
    say(f"report: {written.path}, picture: {_picture(models, tests, metrics, out / 'demo.png')}")


def answer(model: Model) -> str:
    """What was identified and found, in one line, with the truth beside it."""
    asked = model.record.get("unknown") or {}
    values = named_values(model)
    diffusion = f"D = {values['D']:.4g}" if "D" in values else "D was not found"
    return f"{diffusion}; {asked.get('said', 'no term was found')}. True: {_truth()}."


def _truth() -> str:
    return ", ".join(f"{name} = {value:g}" for name, value in VALUES.items())


def named_values(model: Model) -> dict[str, float]:
    """The coefficients that the question names, as they were found along with `?`."""
    formula = (model.record.get("unknown") or {}).get("formula") or {}
    named = {t["name"]: t["coefficient"] for t in formula.get("terms", ()) if t["name"]}
    return {**model.spec.coefficients, **named}


def _files(out: Path) -> tuple[Path, Path]:
    """The data to learn from and to test on, by the reference solver between walls; kept."""
    import numpy as np

    from ..data import ArrayTrajectories, open_trajectories, save_trajectories, solve_to_file
    from ..equation import parse_equation
    from ..grid import Grid
    from .generate import box_edges
    from .progress import progress_bar

    out.mkdir(parents=True, exist_ok=True)
    equation = parse_equation(TRUTH, dims=1)
    domain, grid = box_edges(WALLS, None, Grid((POINTS,), (1.0,)), equation.fields)
    clean, noisy, test = (out / f"{name}.h5" for name in ("clean", "training", "test"))
    sizes = {clean: TRAINING, test: TEST}
    for seed, (path, (trajectories, steps)) in enumerate(sizes.items()):
        if path.exists():
            continue
        with progress_bar(f"solving for {path.name}") as progress:
            solve_to_file(
                equation,
                path,
                coefficients=VALUES,
                grid=grid,
                dt=DT,
                steps=steps,
                trajectories=trajectories,
                seed=seed,
                domain=domain,
                progress=progress,
            )
    if not noisy.exists():
        with open_trajectories(clean) as data:
            exact = np.stack([data.window(i, 0, data.frames) for i in range(data.trajectories)])
            # The same size of noise in all trajectories, as of one instrument.
            drawn = np.random.default_rng(0).standard_normal(exact.shape)
            frames = (exact + NOISE * exact.std() * drawn).astype(np.float32)
            made = ArrayTrajectories(
                frames, data.grid, dt=DT, fields=data.fields, domain=data.domain, times=data.times
            )
            save_trajectories(noisy, made)
    return noisy, test


def _trained(
    folder: Path,
    data: Path,
    equation: str,
    *,
    model: str = "surrogate",
    steps: int = 1,
    values: dict[str, float] | None = None,
    **changes: Any,
) -> Model:
    from ..model import load_model
    from ..training import Problem, preset, train
    from .progress import TrainingProgress

    if (folder / "model.safetensors").exists():
        say(f"trained before, in {folder}")
        return load_model(folder)
    # Every contender gets all of the data.
    base = replace(preset("smoke"), trajectories=None, data_steps=None, batch=10, **changes)
    settings = replace(base, model=model, phases=((0, steps),), warmup=steps // 8)
    with TrainingProgress() as progress:
        return train(
            folder,
            Problem(data=str(data), equation_text=equation, coefficients=values or {}),
            settings,
            resume=(folder / "config.json").exists(),
            report=progress,
            say=progress.say,
        )


def _print_errors(metrics: dict[str, Metrics]) -> None:
    from rich.table import Table

    from ..evaluate.written import plain

    table = Table("", title="relative L2 error", box=None)
    last = len(next(iter(metrics.values())).rl2_curve)
    shown = [step for step in (20, 80, last) if step <= last]
    for title in (*(f"step {step}" for step in shown), "mean"):
        table.add_column(title, justify="right")
    for name, one in metrics.items():
        values = [*(one.rl2_curve[step - 1] for step in shown), one.rl2_mean]
        table.add_row(TITLES[name], *(plain(v, 2, missing="diverged") for v in values))
    show(table)


def _picture(models: dict[str, Model], tests: Any, metrics: dict[str, Metrics], path: Path) -> Path:
    """One test trajectory in space and time, as it was and as each contender has it."""
    import numpy as np
    from matplotlib.figure import Figure

    steps = tests.frames - 1
    truth = tests.window(0, 0, steps + 1)
    shown = {"reference": truth[:, 0]}
    for name in ("splatop", "fno", "physics"):
        made = np.asarray(models[name].rollout(truth[0], steps))
        mean = metrics[name].rl2_mean
        off = "diverged" if mean is None else f"{in_percent(mean)} off"
        title = f"{TITLES[name].partition(':')[0]}: {off}"
        shown[title] = np.concatenate([truth[:1, 0], made[:, 0]])
    figure = Figure(figsize=(12, 3.1), layout="constrained")
    limit = float(np.abs(truth).max())
    for number, (title, field) in enumerate(shown.items()):
        axis = figure.add_subplot(1, len(shown), number + 1)
        image = axis.imshow(
            field, origin="lower", aspect="auto", cmap="RdBu_r", vmin=-limit, vmax=limit,
            extent=(0, 1, 0, steps * DT),
        )  # fmt: skip
        axis.set(title=title, xlabel="x", ylabel="" if number else "time")
    figure.colorbar(image, ax=figure.axes, shrink=0.8)
    figure.savefig(path, dpi=100)
    return path

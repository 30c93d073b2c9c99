"""Commands that make and use models: tune, train, rollout."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import SplatopError, unknown_name
from .app import JsonOption, app, console, print_json, say
from .coarse_options import CoarseOption, factor_of, proposals, typical, within_budget
from .compiled import keeps_compiled
from .progress import TrainingProgress
from .reading import Reading, arguments, moments, open_for, reads_a_file
from .sensor_options import PointsOption, reads_a_table

Benchmark = Annotated[str | None, typer.Argument(help="A benchmark (see `splatop benchmarks`).")]
DataOption = Annotated[Path | None, typer.Option("--data", help="A file of trajectories.")]
EquationOption = Annotated[
    str | None, typer.Option("--equation", help='Such as "dt(u) = -v*dx(u) + D*lap(u)".')
]
CoefficientsOption = Annotated[
    str | None,
    typer.Option("--coefficients", help="Known ones, v=0.1,D=1e-3; the others are identified."),
]


def _problem(
    benchmark, data, equation, coefficients, *, reading, hold_out=None, symmetry=None, found=None
):
    """What is to be trained on; `found` are the frames that sensors tell, if there are such."""
    from ..discover.symmetry import symmetry_names
    from ..equation import parse_coefficients
    from ..training import Problem

    known = parse_coefficients(coefficients) if coefficients else {}
    how = arguments(reading) if data is not None else {}
    if found is not None:
        data, known = found.frames, found.coefficients
    return Problem(
        benchmark=benchmark,
        data=None if data is None else str(data),
        reading=how,
        equation_text=equation,
        coefficients=known,
        hold_out=hold_out,
        symmetry=symmetry_names(symmetry or ""),
    )


def _overrides(pairs: list[str]) -> dict[str, str]:
    overrides = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise SplatopError(f"expected --set key=value, got '{pair}'")
        overrides[name.strip()] = value.strip()
    return overrides


@app.command()
@reads_a_file
@reads_a_table
@keeps_compiled
def train(
    benchmark: Benchmark = None,
    *,
    out: Annotated[Path, typer.Option("--out", help="The run folder to write.")],
    data: DataOption = None,
    sensors: Annotated[
        Path | None,
        typer.Option(
            help="Instead: a table of what sensors reported (splatop assimilate); with --equation, "
            "--lengths, --points and --dt."
        ),
    ] = None,
    equation: EquationOption = None,
    coefficients: CoefficientsOption = None,
    points: PointsOption = None,
    unknown: Annotated[
        str | None, typer.Option(help="With --sensors: where coefficients begin: v=0.5,D=1e-3.")
    ] = None,
    hold_out: Annotated[
        int | None,
        typer.Option(
            help="Trajectories of --data to keep from training, the last ones; 0: none. Else one "
            "in five, and of fewer than five the last fifth in time."
        ),
    ] = None,
    symmetry: Annotated[
        str | None,
        typer.Option(help="What a term found for ? must respect, as for `splatop discover`."),
    ] = None,
    preset: Annotated[str, typer.Option(help="paper, fast, long or smoke.")] = "fast",
    model: Annotated[str, typer.Option(help="surrogate, physics, fno, unet or resnet.")] = (
        "surrogate"
    ),
    drop_term: Annotated[
        list[str] | None, typer.Option(help="A term that the physics shall not know; repeatable.")
    ] = None,
    coarse: CoarseOption = None,
    stride: Annotated[int, typer.Option(help="Frames of the data that one step takes.")] = 1,
    budget: Annotated[
        float | None,
        typer.Option(help="With --coarse auto: the part of the arithmetic that is allowed."),
    ] = None,
    grid: Annotated[
        str, typer.Option(help="Of a coarse model's states: given (as those put in) or coarse.")
    ] = "given",
    refine: Annotated[
        bool,
        typer.Option("--refine", help="Add a learned guess of what the coarse grid leaves out."),
    ] = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Any setting, key=value; repeatable.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of data, weights and batches.")] = 0,
    seeds: Annotated[
        int | None, typer.Option(help="Train an ensemble of so many, from seed on, on one device.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")] = False,
    distributed: Annotated[
        bool,
        typer.Option("--distributed", help="One process of several (JAX cluster variables)."),
    ] = False,
    reading: Reading,
    how: Reading,
) -> None:
    """Train a model on a benchmark, or on your own data and equation."""
    from dataclasses import replace

    from .. import training
    from ..model.spec import KINDS
    from ..training.devices import is_writer, start_distributed
    from ..training.loop import Interrupted

    if model not in KINDS:
        raise unknown_name("model", model, KINDS)
    if distributed:
        start_distributed()
    found = None
    if sensors is not None:
        from .sensor_training import analysed

        found = analysed(
            sensors,
            equation,
            coefficients,
            other=benchmark or data,
            points=points,
            unknown=unknown,
            reading=reading,
            how=how,
            out=out,
            resume=resume,
        )
        model = "physics" if found.explained and model == "surrogate" else model
    problem = _problem(
        benchmark,
        data,
        equation,
        coefficients,
        hold_out=hold_out,
        reading=reading,
        symmetry=symmetry,
        found=found,
    )
    chosen = training.preset(preset, benchmark)
    factor = factor_of(coarse)
    if coarse == "auto" or budget is not None:
        factor, stride = within_budget(problem, coarse, stride, budget, out, resume)
    chosen = training.coarser(chosen, factor=factor, stride=stride, answers=grid, refine=refine)
    chosen = replace(chosen, model=model, seed=seed, seeds=seeds, drop_terms=tuple(drop_term or ()))
    chosen = chosen.with_overrides(_overrides(settings or []))
    with TrainingProgress() as progress:
        try:
            trained = training.train(
                out, problem, chosen, resume=resume, report=progress, say=progress.say
            )
        except Interrupted as stop:
            progress.say(f"{stop}; continue with the same command and --resume")
            raise typer.Exit(130) from stop
    if not is_writer():
        return
    minutes = trained.record["train_minutes"]
    say(
        f"trained in {minutes:.1f} minutes, {trained.parameters:,} parameters: "
        f"{out / 'model.safetensors'}"
    )
    say(trained.record["summary"])
    if found is not None:
        found.judge(trained)
    if (trained.record.get("unknown") or {}).get("kept") == "learned":
        from ..reproduce.learned_term import draw_learned
        from ..reproduce.plots import save_figure

        picture, *_ = save_figure(draw_learned(trained), out / "learned")
        say(f"a picture of the learned term: {picture}")


@app.command()
@reads_a_file
def tune(
    benchmark: Benchmark = None,
    *,
    data: DataOption = None,
    equation: EquationOption = None,
    coefficients: CoefficientsOption = None,
    speed: Annotated[
        float | None,
        typer.Option(help="Propose points and stride of a coarse model that is so much faster."),
    ] = None,
    json: JsonOption = False,
    reading: Reading,
) -> None:
    """Choose filter, anchors and substeps from the data and the equation, and say why."""
    import tempfile
    from dataclasses import asdict

    from ..training import PRESETS
    from ..tune import choose_numerics

    problem = _problem(
        benchmark,
        data,
        equation,
        coefficients,
        reading=reading,
    )
    if speed is not None:
        proposed = proposals(problem, speed)
        if json:
            print_json([asdict(one) for one in proposed])
            return
        for one in proposed:
            say(f"• {one}")
        return
    with tempfile.TemporaryDirectory() as scratch:
        loaded = problem.load(PRESETS["fast"], Path(scratch))
        frames, at = loaded.sample()
        tuned = choose_numerics(
            loaded.equation,
            {**typical(loaded), **at},
            frames,
            lengths=loaded.grid.lengths,
            dt=loaded.dt,
            domain=loaded.domain,
            layout=loaded.grid.layout,
        )
    if json:
        print_json(asdict(tuned))
        return
    for reason in tuned.reasons:
        say(f"• {reason}")


@app.command()
@reads_a_file
@keeps_compiled
def rollout(
    model: Annotated[str, typer.Argument(help="A run folder, a .safetensors file or a name.")],
    *,
    data: Annotated[Path, typer.Option("--data", help="Trajectories to start from.")],
    out: Annotated[Path, typer.Option("--out", help="The HDF5 file to write.")],
    steps: Annotated[int | None, typer.Option(help="Frames to predict; else 200.")] = None,
    times: Annotated[
        str | None, typer.Option(help="Times to predict instead: 0.1,0.5,2; or 0:10:0.25.")
    ] = None,
    trajectories: Annotated[int | None, typer.Option(help="Only the first ones.")] = None,
    inputs_file: Annotated[
        Path | None, typer.Option(help="What drives the model, over the time of the rollout.")
    ] = None,
    hold_inputs: Annotated[
        bool, typer.Option("--hold-inputs", help="Beyond their end inputs stay what they are.")
    ] = False,
    reading: Reading,
) -> None:
    """Predict the frames that follow the first state of each trajectory."""
    from rich.progress import track

    from ..evaluate.forecast import forecast
    from ..model import load_model

    loaded = load_model(model)
    if loaded.spec.inputs and reading["inputs"] is None:
        reading["inputs"] = ",".join(loaded.spec.inputs)
    given = None
    if inputs_file is not None:
        from ..data.inputs import open_inputs

        given = open_inputs(inputs_file, loaded.spec.inputs, arguments(reading))
    with open_for(loaded.spec, data, reading) as opened:
        written = forecast(
            loaded,
            opened,
            out,
            steps=200 if steps is None and times is None else steps,
            times=None if times is None else moments(times),
            trajectories=trajectories,
            inputs=given,
            hold_inputs=hold_inputs,
            progress=lambda items: track(items, "rollout", console=console),
        )
    length = f"{steps or 200} steps" if times is None else f"{len(moments(times))} times"
    say(f"wrote {written} trajectories of {length}: {out}")

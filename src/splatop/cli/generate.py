"""Commands that make data: benchmarks, generate."""

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import SplatopError
from .app import JsonOption, app, print_json, say
from .data import check_output, report_written
from .progress import progress_bar
from .reading import numbers

if TYPE_CHECKING:
    from ..benchmarks import Benchmark
    from ..domain import Domain
    from ..grid import Grid
else:
    Benchmark = Domain = Grid = Any

MOST_POINTS = 10**9


@app.command()
def benchmarks(json: JsonOption = False) -> None:
    """List the benchmarks with their equation and parameters."""
    from ..benchmarks import BENCHMARKS

    if json:
        print_json([_describe(benchmark) for benchmark in BENCHMARKS.values()])
        return
    for benchmark in BENCHMARKS.values():
        numbers = [f"{k} = {v:g}" for k, v in benchmark.coefficients.items()]
        numbers += [f"{k} in [{a:g}, {b:g}]" for k, (a, b) in benchmark.coefficient_ranges.items()]
        lines = [
            f"{benchmark.name}: {benchmark.title}",
            *benchmark.equation_text.split("; "),
            ", ".join(numbers),
            f"grid {benchmark.points}^{benchmark.dims}, dt = {benchmark.dt:g}, "
            f"fields {', '.join(benchmark.fields)}, filter {_filter_text(benchmark)}",
        ]
        say("\n    ".join(lines))
    first = next(iter(BENCHMARKS.values()))
    say(
        f"Each: {first.train_trajectories} trajectories of {first.train_steps} steps to train, "
        f"{first.test_trajectories} of {first.test_steps} to test."
    )


@app.command()
def generate(
    benchmark: Annotated[
        str | None, typer.Argument(metavar="[BENCHMARK]", help="A name from `splatop benchmarks`.")
    ] = None,
    *,
    out: Annotated[Path, typer.Option(help="The HDF5 file to write.")],
    split: Annotated[str, typer.Option(help="Of a benchmark: train or test.")] = "train",
    trajectories: Annotated[int | None, typer.Option(help="How many; else the paper's.")] = None,
    steps: Annotated[int | None, typer.Option(help="Of each; else the paper's.")] = None,
    points: Annotated[
        str | None,
        typer.Option(help="Per axis; else the paper's. Of an equation's box also 64,32."),
    ] = None,
    reduced: Annotated[
        bool,
        typer.Option("--reduced", help="A small set: 64^2 or 24^3 points, 64 + 8 trajectories."),
    ] = False,
    seed: Annotated[int, typer.Option(help="Same seed, same bits.")] = 0,
    equation: Annotated[
        str | None, typer.Option(help='Of your own, such as "dt(u) = D*lap(u)".')
    ] = None,
    coefficients: Annotated[str | None, typer.Option(help="Its numbers: D=1e-3,r=0.5.")] = None,
    dims: Annotated[int, typer.Option(help="Of its box.")] = 2,
    lengths: Annotated[
        str,
        typer.Option("--lengths", "--length", help="Of its box: one, or one per axis with commas."),
    ] = "1.0",
    origin: Annotated[
        str | None, typer.Option(help="Where its box begins, else 0: one, or one per axis.")
    ] = None,
    dt: Annotated[float | None, typer.Option(help="From frame to frame.")] = None,
    t0: Annotated[float, typer.Option(help="The time of its first frame.")] = 0.0,
    initial: Annotated[
        str,
        typer.Option(
            help="Initial states: fourier, positive, seeds, solitons; between walls harmonics."
        ),
    ] = "fourier",
    boundary: Annotated[
        str | None,
        typer.Option(help='What holds at its edges: "x0: u = 0; x1: dn(u) = 0; y: periodic".'),
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option(
            help='Cut out of its box: "disk(0.5, 0.5, 0.4)", "box - disk(0.4, 0.5, 0.1)".'
        ),
    ] = None,
    scattered: Annotated[
        int | None,
        typer.Option(help="On a shape: so many random points instead of those of a grid."),
    ] = None,
    sampling: Annotated[
        str | None,
        typer.Option(help="Points between its walls: ends, cells or left; one, or one per axis."),
    ] = None,
) -> None:
    """Write reference trajectories of a benchmark, or of an equation of your own."""
    from .. import data
    from ..benchmarks import get_benchmark
    from ..equation import parse_coefficients, parse_valued_equation

    if (benchmark is None) == (equation is None):
        raise SplatopError(
            "expected a benchmark or --equation to generate data of, "
            f"got {'none' if benchmark is None else 'both'}"
        )
    check_output(out)
    started = time.perf_counter()
    if benchmark is not None:
        chosen = get_benchmark(benchmark)
        sides = _points(points, 1)
        with progress_bar(f"generating {chosen.name}") as progress:
            data.generate_to_file(
                chosen.reduced() if reduced else chosen,
                out,
                split=split,
                trajectories=trajectories,
                steps=steps,
                points=sides[0] if sides else None,
                seed=seed,
                progress=progress,
            )
    else:
        assert equation is not None
        if dt is None:
            raise SplatopError("expected --dt, the time from frame to frame, for an equation")
        values = parse_coefficients(coefficients) if coefficients else {}
        parsed = parse_valued_equation(equation, dims=dims, values=values)
        grid = _box(
            dims,
            _points(points, dims) or (64,),
            tuple(numbers(lengths, "lengths") or [1.0]),
            data.as_origin(numbers(origin, "an origin"), dims),
        )
        if shape is not None:
            domain, grid = data.shape_and_points(
                shape,
                boundary,
                grid,
                parsed.fields,
                sampling=sampling,
                scattered=scattered,
                seed=seed,
            )
        elif scattered is not None:
            raise SplatopError("expected --scattered with --shape, got it for a box")
        else:
            domain, grid = box_edges(boundary, sampling, grid, parsed.fields)
        with progress_bar("solving") as progress:
            data.solve_to_file(
                parsed,
                out,
                coefficients=values,
                grid=grid,
                dt=dt,
                steps=50 if steps is None else steps,
                trajectories=8 if trajectories is None else trajectories,
                initial=initial,
                seed=seed,
                domain=domain,
                t0=t0,
                progress=progress,
            )
    report_written(out, started)


def _box(
    dims: int,
    points: tuple[int, ...],
    lengths: tuple[float, ...],
    origin: tuple[float, ...] | None,
) -> Grid:
    from ..grid import Grid

    if len(lengths) not in (1, dims):
        raise SplatopError(f"expected one length, or {dims} of them, got {len(lengths)}")
    return Grid(
        points * dims if len(points) == 1 else points,
        lengths * dims if len(lengths) == 1 else lengths,
        origin or (),
    )


def box_edges(
    boundary: str | None, sampling: str | None, grid: Grid, fields: tuple[str, ...]
) -> tuple[Domain | None, Grid]:
    """The domain that a text states, and the grid with points where they are asked for."""
    from .. import data
    from ..equation import domain_from_text

    if boundary is None:
        if sampling is not None:
            raise SplatopError("expected --sampling with --boundary, got it for a periodic box")
        return None, grid
    domain = domain_from_text(boundary, lengths=grid.lengths, origin=grid.origin, fields=fields)
    words = data.sampling_words(sampling, grid.dims)
    layout = tuple(
        "left" if closed else word or "ends"
        for closed, word in zip(domain.periodic, words, strict=True)
    )
    return domain, replace(grid, layout=layout)


def _points(text: str | None, dims: int) -> tuple[int, ...] | None:
    """One number of points, or one for each axis."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    whole = all(part.removeprefix("-").isdecimal() for part in parts)
    if len(parts) not in (1, dims) or not whole:
        wanted = "one whole number" + (f", or {dims} with commas," if dims > 1 else "")
        raise SplatopError(f"expected {wanted} for --points, got '{_shortened(text)}'")
    if any(part.startswith("-") or not part.strip("0") for part in parts):
        raise SplatopError(
            f"expected a positive number of --points per axis, got {_shortened(text)}"
        )
    if any(len(part.lstrip("0")) > len(str(MOST_POINTS)) - 1 for part in parts):
        raise SplatopError(
            f"expected fewer than {MOST_POINTS:,} --points per axis, got {_shortened(text)}: "
            "no memory holds as many, ask for fewer"
        )
    return tuple(int(part) for part in parts)


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:12]}... ({len(text)} characters)"


def _describe(benchmark: Benchmark) -> dict[str, Any]:
    small = benchmark.reduced()
    return {
        "name": benchmark.name,
        "title": benchmark.title,
        "equation": benchmark.equation_text,
        "fields": list(benchmark.fields),
        "coefficients": dict(benchmark.coefficients),
        "coefficient_ranges": {k: list(v) for k, v in benchmark.coefficient_ranges.items()},
        "points": list(benchmark.grid.points),
        "lengths": list(benchmark.lengths),
        "dt": benchmark.dt,
        "channels": benchmark.channels,
        "initial_cutoff": benchmark.initial_cutoff,
        "paper_filter": _filter_text(benchmark),
        "paper_anchors": benchmark.paper_anchors,
        "train": dict(zip(("trajectories", "steps"), benchmark.size("train"), strict=True)),
        "test": dict(zip(("trajectories", "steps"), benchmark.size("test"), strict=True)),
        "mean_evolves": benchmark.mean_evolves,
        "reduced_points": list(small.grid.points),
    }


def _filter_text(benchmark: Benchmark) -> str:
    chosen = benchmark.paper_filter
    if chosen is None:
        return "none"
    width = getattr(chosen, "width", 0.0)
    return f"{'smooth' if width else 'sharp'} {getattr(chosen, 'cutoff', 0.0):g}" + (
        f", width {width:g}" if width else ""
    )

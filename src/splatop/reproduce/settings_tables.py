"""The paper's tables of settings: its benchmarks, cutoffs and hyperparameters, beside ours."""

from collections.abc import Sequence
from typing import Any

from ..benchmarks import Benchmark, get_benchmark
from ..evaluate.labels import benchmark_label
from ..evaluate.metrics_tables import Table
from ..evaluate.results import Metrics
from ..numerics import paper_numerics
from ..training import Settings, preset


def benchmarks_table(names: Sequence[str]) -> Table:
    """Equation, coefficients, grid and time step of each benchmark."""
    rows, records = [], []
    for benchmark in map(get_benchmark, names):
        fixed = [f"{name} = {value:.3g}" for name, value in benchmark.coefficients.items()]
        drawn = [
            f"{name} in [{low:g}, {high:g}]"
            for name, (low, high) in benchmark.coefficient_ranges.items()
        ]
        rows.append(
            (
                benchmark.title,
                benchmark.equation_text,
                ", ".join(fixed + drawn),
                f"{benchmark.points}^{benchmark.dims}",
                f"{benchmark.dt:g}",
            )
        )
        records.append(_benchmark_record(benchmark))
    some = get_benchmark(names[0])
    return Table(
        "Benchmarks and data-generation parameters",
        ("Case", "Governing equation", "Coefficients", "Grid", "Δt"),
        tuple(rows),
        tuple(records),
        (
            f"Unit periodic box. Initial conditions are random Fourier series with modes up to "
            f"{some.initial_cutoff} along each axis. {some.train_trajectories} training "
            f"trajectories of {some.train_steps} steps, {some.test_trajectories} test trajectories "
            f"of {some.test_steps}.",
        ),
    )


def _benchmark_record(benchmark: Benchmark) -> dict[str, Any]:
    return {
        "benchmark": benchmark.name,
        "equation": benchmark.equation_text,
        **benchmark.coefficients,
        **{f"{k}_range": f"{a:g}..{b:g}" for k, (a, b) in benchmark.coefficient_ranges.items()},
        "points": benchmark.points,
        "dims": benchmark.dims,
        "dt": benchmark.dt,
    }


def cutoffs_table(several: Sequence[Metrics]) -> Table:
    """The paper's filters beside those that the runs used."""
    rows, records = [], []
    for metrics in several:
        if metrics.benchmark is None:
            continue
        benchmark = get_benchmark(metrics.benchmark)
        for source, values in (
            ("published", paper_numerics(benchmark).as_dict()),
            ("this run", metrics.model["numerics"]),
        ):
            cutoff = ", ".join(f"{k:g}" for k in dict.fromkeys(values["cutoff"]))
            rows.append(
                (
                    benchmark_label(benchmark.name),
                    source,
                    str((benchmark.points if source == "published" else _points(metrics)) // 2),
                    f"{benchmark.dt:g}",
                    cutoff,
                    values["filter"]
                    + (f", W = {values['rolloff']:g}" if values["rolloff"] else ""),
                    str(values["substeps"]),
                    " x ".join(map(str, values["anchors"])),
                    values["encoder"],
                )
            )
            records.append({"benchmark": benchmark.name, "source": source, **values})
    return Table(
        "Spectral filtering and time-step parameters of the embedded physics",
        ("Benchmark", "Source", "k_Nyq", "Δt", "κ", "Filter", "Substeps", "Anchors", "Encoder"),
        tuple(rows),
        tuple(records),
        ("κ in cycles per unit length; a box filter keeps |k_i| <= κ along each axis.",),
    )


def _points(metrics: Metrics) -> int:
    return int(metrics.data["points"][0])


def hyperparameters_table(name: str) -> Table:
    """The paper's training settings beside those of a preset."""
    paper, ours = preset("paper"), preset(name)
    lines = (
        ("Stage 1 steps", lambda s: s.encoder_steps),
        ("Stage 1 batch size", lambda s: s.encoder_batch),
        ("Stage 1 peak learning rate", lambda s: s.encoder_rate),
        ("Stage 1 final learning rate", lambda s: s.encoder_final_rate),
        ("Stage 2 steps", lambda s: s.steps),
        ("Stage 2 grids (points: steps)", _phases),
        ("Stage 2 batch size", lambda s: s.batch),
        ("Stage 2 rollout length", lambda s: s.horizon),
        ("Stage 2 peak learning rate", lambda s: s.peak_rate),
        ("Stage 2 warm-up steps", lambda s: s.warmup),
        ("Gradient clipping", lambda s: "none" if s.clip is None else s.clip),
        ("Numerics of the physics", lambda s: s.numerics),
        ("Operator in units of the residual", lambda s: "yes" if s.residual_scaling else "no"),
    )
    rows = tuple((title, _text(get(paper)), _text(get(ours))) for title, get in lines)
    records = tuple({"setting": a, "paper": b, f"preset {name}": c} for a, b, c in rows)
    return Table(
        "Training hyperparameters",
        ("Setting", "Paper (preset paper)", f"This reproduction (preset {name})"),
        rows,
        records,
        (
            "Optimisers: AdamW with cosine decay (stage 1), Adam with warm-up and cosine decay "
            "(stage 2). In the paper stage 1 takes 80 epochs of 256 x 51 frames. In 3D: batches of "
            "8 and 12, 40 epochs; with unknown coefficients: 100 epochs, batch 64.",
        ),
    )


def _phases(settings: Settings) -> str:
    return ", ".join(f"{points or 'own'}: {steps}" for points, steps in settings.phases)


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)

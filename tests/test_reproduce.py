"""Tables and figures from metrics.json alone; runs that are found, made or left out."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

from splatop.benchmarks import BENCHMARKS, get_benchmark
from splatop.cli import app
from splatop.errors import SplatopError
from splatop.evaluate import Metrics, ReferenceTrajectories, load_metrics, save_metrics
from splatop.evaluate.averages import describe_model
from splatop.evaluate.labels import default_name
from splatop.evaluate.metrics_tables import rollout_table
from splatop.evaluate.written import plain, with_deviation
from splatop.model import Model, ModelSpec, build_model
from splatop.numerics import Numerics
from splatop.reproduce import workshop
from splatop.reproduce.catalogue import GROUPS, ITEMS, UNKNOWN, matched, select, tenfold
from splatop.reproduce.encoding import Encoding, encode_frame
from splatop.reproduce.making import reproduce
from splatop.reproduce.rollout_frames import RolloutFrames, rollout_frames
from splatop.reproduce.snapshots import snapshot_figure
from splatop.reproduce.style import RC, styled_in_order
from splatop.reproduce.workshop import SMOKE, PlannedRun, Size, Workshop

STEPS, COUNT = 12, 3

# Every \label of a table or figure in the paper.
PAPER = {
    "fig:architecture", "tab:benchmarks", "tab:metrics_comparison", "fig:rollout",
    "fig:advdiff3d_field", "fig:burgers2d_spectrum_all", "fig:partial_baselines", "fig:cost",
    "fig:ablation_full", "fig:partial_ablation", "tab:local_dense_rendering", "tab:cutoffs",
    "tab:hparams", "fig:additional_rollout_curves", "fig:snapshot_ac", "fig:snapshot_ad",
    "fig:snapshot_burgers", "fig:additional_spectra", "fig:capacity_control",
    "tab:representation_diagnostics",
}  # fmt: skip


def numerics(dims: int) -> Numerics:
    return Numerics("box", (5.0,), 0.0, (14,) * dims, 1)


def made_up(run: PlannedRun, *, diverged: bool = False) -> Metrics:
    """Metrics as `splatop evaluate` writes them, with an error that grows like the step."""
    benchmark = get_benchmark(run.benchmark)
    points = SMOKE[benchmark.dims].points
    level = 0.01 * (1 + len(run.folder) % 7)
    curve = (level * np.arange(1, STEPS + 1)).tolist()
    energy = np.exp(-np.arange(points // 2 + 1.0))
    kind = run.kind
    metrics = Metrics(
        rl2_mean=float(np.mean(curve)),
        rl2_std=0.1 * level,
        psnr_mean=40.0,
        psnr_std=1.0,
        spectral_error=level / 3,
        rl2_curve=curve,
        rl2_band={"low": curve, "high": curve},
        steps=STEPS,
        trajectories=COUNT,
        model={
            "name": run.name,
            "kind": kind,
            "benchmark": run.benchmark,
            "equation": benchmark.equation_text,
            "parameters": 57_800,
            "tenfold": run.settings.get("tenfold") == "true",
            "conditioned": False,
            "coupling": None,
            "dropped_terms": [],
            "numerics": numerics(benchmark.dims).as_dict() if kind == "surrogate" else None,
            "ablation": None,
            "train_minutes": 1.0,
        },
        data={
            "source": "made up",
            "points": [points] * benchmark.dims,
            "dt": 1.0,
            "held_out": True,
        },
        per_trajectory={"rl2": [1.0] * COUNT},
        spectrum={
            "wavenumber": list(map(float, range(len(energy)))),
            "prediction": (energy * (1 + level)).tolist(),
            "reference": energy.tolist(),
            "mean_evolves": benchmark.mean_evolves,
        },
        correlation_time={"0.9": None, "0.8": None},
        energy_drift=level,
        step_above=None,
        cost_ms_per_step=3.0,
        coefficients={
            "relative_error": {"v": 1e-3, "D": 2e-2},
            "relative_error_max": {"v": 2e-3, "D": 3e-2},
        }
        if run.benchmark == UNKNOWN
        else {},
        representation={
            "e_u": 1e-4, "e_grad": 1e-3, "e_lap": 1e-2, "frames": 12, "gaussians": 400,
            "local_against_dense": None if benchmark.dims == 3 else
            {"u": 1e-6, "dx": 2e-6, "dy": 3e-6, "lap": 4e-6, "window": 4, "speedup": 20.0},
        }
        if kind == "surrogate"
        else None,
    )  # fmt: skip
    if diverged:
        metrics = replace(
            metrics, rl2_mean=None, rl2_std=None, psnr_mean=None, psnr_std=None,
            spectral_error=None, rl2_curve=curve[:5] + [None] * 7,
            spectrum={**metrics.spectrum, "prediction": None},
            diverged=[{"trajectory": 1, "step": 6}],
        )  # fmt: skip
    if kind == "surrogate":
        alone = {**metrics.model, "name": "Physics alone", "kind": "physics", "parameters": 0}
        metrics = replace(metrics, physics_alone=replace(metrics, model=alone))
    return metrics


class Shelf(Workshop):
    """A workshop that may read what is there and must not make anything."""

    def model(self, run: PlannedRun) -> Model:
        raise AssertionError(f"nothing may be trained or loaded here, asked for {run.folder}")


def all_runs() -> list[PlannedRun]:
    periodic = [name for name, benchmark in BENCHMARKS.items() if not benchmark.boundary]
    chosen = [run for name in periodic for run in matched(name)]
    chosen += [*tenfold("burgers2d"), *tenfold(UNKNOWN)]
    chosen += [PlannedRun(UNKNOWN, "fno", {"conditioned": "false"})]
    chosen += [PlannedRun(UNKNOWN, "fno", {"tenfold": "true", "conditioned": "false"})]
    chosen += [
        PlannedRun("burgers2d", settings={"filter": "none"}, label="Surrogate without filter")
    ]
    return chosen


def frames_of(run: PlannedRun, steps: list[int]) -> RolloutFrames:
    benchmark = get_benchmark(run.benchmark)
    points = SMOKE[benchmark.dims].points
    x = np.sin(2 * np.pi * (np.arange(points) / points + 0.01 * len(run.folder)))
    field = x * x[:, None] if benchmark.dims == 2 else x * x[:, None] * x[:, None, None]
    shape = (len(steps), benchmark.channels, *field.shape)
    states = np.broadcast_to(field, shape).astype(np.float32)
    lost = states.copy()
    if run.kind == "unet":
        lost[-1] = np.nan
    return RolloutFrames(
        tuple(steps), lost, states, run.name, run.kind, run.benchmark, benchmark.lengths, 1.0
    )


@pytest.fixture(scope="module")
def shelf(tmp_path_factory) -> Path:
    """A reproduction folder in which every run has its files already."""
    out = tmp_path_factory.mktemp("reproduction")
    shop = Shelf(out / "smoke" / "runs", "smoke", Size(COUNT, STEPS))
    for run in all_runs():
        folder = shop.path(run)
        folder.mkdir(parents=True)
        lost = run.settings.get("filter") == "none"
        metrics = made_up(run, diverged=lost)
        save_metrics(folder / "metrics.json", metrics)
        save_metrics(folder / "metrics.train.json", metrics)
    for item, fractions in (
        ("advection_diffusion3d", (0.0, 0.25, 0.5, 1.0)),
        ("burgers2d", (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        ("advection_allen_cahn2d", (0.0, 0.165, 0.33, 0.5, 0.665, 0.83, 0.995)),
        ("advection_diffusion2d", (0.0, 0.165, 0.33, 0.5, 0.665, 0.83, 0.995)),
    ):
        for run in matched(item):
            steps = shop.steps_at(item, fractions)
            frames_of(run, steps).save(shop.path(run) / "frames.npz")
    field = np.random.default_rng(0).standard_normal((8, 8))
    Encoding(
        field, np.full((4, 2), 0.5), np.tile(1e-2 * np.eye(2), (4, 1, 1)), np.arange(4.0),
        field, field, field, "lattice",
    ).save(shop.path(PlannedRun("burgers2d")) / "encoding.npz")  # fmt: skip
    return out


@pytest.fixture
def nothing_is_made(monkeypatch):
    monkeypatch.setattr(workshop.Workshop, "model", Shelf.model)


def test_every_table_and_figure_of_the_paper_has_a_name():
    labels = {item.label for item in ITEMS.values()}
    assert labels - PAPER == {"sec:partial:identify"}  # numbers that the paper gives in its text
    assert labels >= PAPER
    assert set(GROUPS["fig-snapshots"]) <= set(ITEMS)
    for name in ("table-rollout", "table-representation", "table-local-rendering", "fig-rollout",
                 "fig-spectra", "fig-isosurfaces-3d", "fig-partial", "fig-cost", "fig-ablation",
                 "fig-partial-ablation", "fig-capacity"):  # fmt: skip
        assert name in ITEMS


def test_every_item_is_drawn_from_saved_files_alone(shelf, nothing_is_made):
    shop, problems = Workshop(shelf / "smoke" / "runs", "smoke", Size(COUNT, STEPS)), []
    for item in ITEMS.values():
        drawn = item.draw(shop, problems)
        if isinstance(drawn, Figure):
            parts = [drawn, *drawn.subfigs]
            assert all(ax.has_data() or ax.texts or ax.patches for f in parts for ax in f.axes)
        else:
            assert drawn.markdown().count("\n") > 2
    assert problems == []


@pytest.mark.slow
def test_all_of_it_comes_from_saved_files_alone(shelf, nothing_is_made, monkeypatch):
    monkeypatch.setitem(RC, "savefig.dpi", 40)
    done = reproduce(["all"], shelf, preset="smoke", size=Size(COUNT, STEPS))
    assert done.problems == []
    assert set(done.files) == set(ITEMS)
    for name, paths in done.files.items():
        kinds = [".md", ".csv"] if name.startswith("table") else [".png", ".pdf"]
        assert [path.suffix for path in paths] == kinds
        for path in paths:
            content = path.read_bytes()
            start = {".png": b"\x89PNG", ".pdf": b"%PDF"}.get(path.suffix, b"")
            assert content.startswith(start)
            assert len(content) > 100
            if path.suffix in (".md", ".csv"):
                assert "nan" not in content.decode().lower()


def test_tables_hold_the_numbers_of_the_metrics(shelf):
    metrics = load_metrics(shelf / "smoke" / "runs" / "burgers2d-surrogate")
    table = rollout_table({"burgers2d": [metrics]})
    rows = list(csv.DictReader(io.StringIO(table.csv())))
    assert [row["source"] for row in rows] == ["measured"] * 2 + ["published"] * 4
    assert float(rows[0]["rl2_mean"]) == metrics.rl2_mean
    assert rows[1]["method"] == "Physics alone"
    assert float(rows[-1]["rl2_mean"]) == 0.057
    text = table.markdown()
    assert "| 2D Burgers | Surrogate | 57.8k | 40.00 ± 1.00 |" in text
    assert "published surrogate" in text
    assert "3 held-out trajectories, 12 steps on 32x32 points" in text


def test_numbers_are_written_to_be_read():
    assert with_deviation(0.052, 0.014) == "0.0520 ± 0.0140"
    assert with_deviation(44.751, 1.9) == "44.75 ± 1.90"
    assert with_deviation(3.14e-5, 2e-6) == "3.1e-05 ± 2e-06"
    assert with_deviation(None, None) == plain(None) == "-"
    assert plain(0.0031) == "0.0031"
    assert plain(7e-4) == "7.0e-04"
    assert plain(0.0) == "0"


def test_each_method_has_one_colour_and_a_variant_another():
    several = [
        made_up(PlannedRun("burgers2d", kind)) for kind in ("resnet", "fno", "unet", "surrogate")
    ]
    bare = made_up(
        PlannedRun("burgers2d", settings={"filter": "none"}, label="Surrogate without filter")
    )
    styled = styled_in_order([bare, *several])
    names = [metrics.name for metrics, _ in styled]
    assert names == ["Surrogate", "Surrogate without filter", "FNO", "U-Net", "ResNet"]
    colours = [style["color"] for _, style in styled]
    assert len(set(colours)) == 5
    assert [s["color"] for _, s in styled_in_order(several)] == [colours[i] for i in (0, 2, 3, 4)]


def test_metrics_of_another_size_are_measured_again(tmp_path, monkeypatch):
    run = PlannedRun("burgers2d", "fno")
    shop = Workshop(tmp_path, "smoke", Size(COUNT, STEPS))
    shop.path(run).mkdir()
    save_metrics(shop.path(run) / "metrics.json", made_up(run))
    monkeypatch.setattr(workshop.Workshop, "model", lambda self, run: "the model")
    asked = []

    def evaluate(model, data, *, steps, name, also):
        asked.append((model, data.trajectories, data.grid.points, steps, name))
        return made_up(run)

    monkeypatch.setattr(workshop, "evaluate", evaluate)
    shop.metrics(run)
    assert asked == []
    replace(shop, size=Size(2, STEPS)).metrics(run)
    assert asked == [("the model", 2, (32, 32), STEPS, "FNO")]


def test_what_is_missing_is_trained_with_the_preset_and_continued(tmp_path, monkeypatch):
    asked = []

    def train(out, problem, settings, *, resume):
        asked.append((Path(out).name, problem.benchmark, settings, resume))
        if not resume:
            (Path(out) / "config.json").write_text("{}")
            raise SplatopError("training stopped at step 3")

    monkeypatch.setattr(workshop, "train", train)
    held = tiny_model()
    monkeypatch.setattr(workshop, "load_model", lambda path: held)
    shop = Workshop(tmp_path, "smoke")
    run = PlannedRun("burgers2d", "unet", {"tenfold": "true"})
    with pytest.raises(SplatopError, match="stopped at step 3"):
        shop.model(run)
    assert shop.model(run) is held
    folder, benchmark, settings, resume = asked[0]
    assert (folder, benchmark, resume) == ("burgers2d-unet-tenfold-true", "burgers2d", False)
    assert (settings.model, settings.tenfold, settings.preset) == ("unet", True, "smoke")
    assert asked[1][3] is True


def test_a_run_that_fails_is_left_out_and_reported(shelf, tmp_path, monkeypatch):
    def train(*_, **__):
        raise SplatopError("the loss is nan")

    monkeypatch.setattr(workshop, "train", train)
    folder = tmp_path / "smoke" / "runs"
    for kind in ("surrogate", "fno"):
        name = PlannedRun("burgers2d", kind).folder
        (folder / name).mkdir(parents=True)
        content = (shelf / "smoke" / "runs" / name / "metrics.json").read_text()
        (folder / name / "metrics.json").write_text(content)
    done = reproduce(["fig-spectra", "table-benchmarks"], tmp_path, preset="smoke",
                     size=Size(COUNT, STEPS))  # fmt: skip
    assert set(done.files) == {"fig-spectra", "table-benchmarks"}
    assert done.problems == [
        "U-Net on burgers2d: the loss is nan",
        "ResNet on burgers2d: the loss is nan",
    ]
    done = reproduce(["fig-cost"], tmp_path, preset="smoke", size=Size(COUNT, STEPS))
    assert done.files == {}
    assert "fig-cost: expected at least one of its runs" in done.problems[-1]


def tiny_model() -> Model:
    benchmark = get_benchmark("advection2d")
    spec = ModelSpec(
        "physics", benchmark.equation_text, benchmark.fields, benchmark.lengths, benchmark.dt,
        numerics(2), benchmark.name, dict(benchmark.coefficients),
    )  # fmt: skip
    return Model(spec, build_model(spec))


def test_frames_are_those_of_the_rollout_and_survive_the_file(tmp_path):
    data = ReferenceTrajectories(get_benchmark("advection2d"), trajectories=2, steps=4, points=16)
    model = tiny_model()
    found = rollout_frames(model, data, steps=[0, 1, 4], trajectory=1, name="Physics")
    states = model.rollout(data.window(1, 0, 1)[0], steps=4)
    np.testing.assert_array_equal(found.prediction[0], data.window(1, 0, 1)[0])
    # The same operations, compiled for other lengths: rounding may differ.
    np.testing.assert_allclose(found.prediction[1:], np.asarray(states)[[0, 3]], atol=1e-5)
    np.testing.assert_array_equal(found.reference, data.window(1, 0, 5)[[0, 1, 4]])
    again = RolloutFrames.load(found.save(tmp_path / "frames.npz"))
    np.testing.assert_array_equal(again.prediction, found.prediction)
    assert (again.steps, again.name, again.benchmark) == ((0, 1, 4), "Physics", "advection2d")
    with pytest.raises(SplatopError, match="expected steps from 0 to 4"):
        rollout_frames(model, data, steps=[5])
    (tmp_path / "broken.npz").write_bytes(b"broken")
    with pytest.raises(SplatopError, match="expected frames of a rollout"):
        RolloutFrames.load(tmp_path / "broken.npz")
    with pytest.raises(SplatopError, match="same benchmark and steps"):
        snapshot_figure([found, replace(found, steps=(0, 1, 3))])


def test_an_encoded_frame_survives_the_file(tmp_path):
    x = np.arange(16) / 16
    u = np.sin(2 * np.pi * x)[None, :, None] * np.ones((1, 16, 16))
    found = encode_frame(tiny_model(), u.astype(np.float32))
    again = Encoding.load(found.save(tmp_path / "encoding.npz"))
    np.testing.assert_array_equal(again.slope, found.slope)
    assert again.encoder == "lattice"
    # A lattice of 14 resolves mode 1 to 1e-6; its slope is 2π times as large.
    np.testing.assert_allclose(again.rendered, u[0], atol=1e-4)
    np.testing.assert_allclose(
        again.slope, 2 * np.pi * np.cos(2 * np.pi * x)[:, None] * np.ones(16), atol=1e-3
    )


def test_description_of_a_model_names_what_tables_show():
    described = describe_model("mine", tiny_model())
    assert described["name"] == "mine"
    assert described["parameters"] == 0
    assert default_name(described) == "Physics alone"
    json.dumps(described)


def command(*arguments: object):
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)])


def test_command_lists_maps_and_refuses(tmp_path, shelf, nothing_is_made):
    result = command("--list")
    assert result.exit_code == 0
    for item in ITEMS.values():
        assert f"{item.name} ({item.label})" in result.output
    listed = json.loads(command("--list", "--json").output)
    assert [entry["name"] for entry in listed] == list(ITEMS)
    assert "expected the name of a table" in str(command().exception)
    assert "did you mean 'fig-spectra'" in str(command("fig-spectr", "--out", tmp_path).exception)
    result = command("fig-cost", "--preset", "quick", "--out", tmp_path)
    assert "unknown preset 'quick'" in str(result.exception)
    result = command(
        "table-rollout", "--preset", "smoke", "--out", shelf, "--trajectories", COUNT,
        "--steps", STEPS, "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert [item.name for item in select(["fig-snapshots"])] == list(GROUPS["fig-snapshots"])


@pytest.mark.slow
def test_smoke_reproduces_a_table_from_nothing(tmp_path):
    names = ["table-representation", "table-identification", "fig-rollout", "fig-snapshots-burgers"]
    done = reproduce(names, tmp_path, preset="smoke")
    assert done.problems == []
    assert set(done.files) == set(names)
    metrics = load_metrics(tmp_path / "smoke" / "runs" / "burgers2d-surrogate")
    assert metrics.rl2_mean is not None
    assert metrics.rl2_mean < 1e-2  # physics with its own numerics, on 32² points

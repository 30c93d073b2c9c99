"""The report: its parts against truth, bad input, and the page itself in a headless browser."""

import base64
import csv
import json
import math
import re
import shutil
import sys
import xml.etree.ElementTree as ElementTree
import zlib
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest
from typer.testing import CliRunner

from chromium import Page, browsing, find_chromium
from splatop.benchmarks import BENCHMARKS, get_benchmark
from splatop.cli.app import app, run
from splatop.data import ArrayTrajectories, save_trajectories
from splatop.equation import EXAMPLES, latex_lines, parse_equation
from splatop.errors import SplatopError
from splatop.evaluate import ReferenceTrajectories, evaluate, load_metrics, save_metrics
from splatop.evaluate.written import percent, typeset
from splatop.grid import Grid
from splatop.model import Model, ModelSpec, build_model, load_model, save_model
from splatop.numerics import Numerics
from splatop.report import write_report
from splatop.report.charts import Line, chart
from splatop.report.details import coefficients_section
from splatop.report.ellipses import packed_gaussians
from splatop.report.evaluated import EvaluatedRun, entries, read_runs
from splatop.report.isosurface import isosurface
from splatop.report.learned_part import compare_with_dropped
from splatop.report.markup import embedded_json, tag
from splatop.report.mathml import mathml
from splatop.report.packing import pack_bytes, quantise_field, quantise_signed
from splatop.report.playback import Playback, PlayedRollout, _trained_on, play
from splatop.report.sections import Charts, error_section, ratio_of
from splatop.report.ticks import ChartAxis, fitted_scale
from splatop.report.words import verdict
from splatop.surrogate import Surrogate

HOSTILE = "<script>alert(1)</script>"
IMAGE = "<img src=x onerror=alert(1)>"
AXE = Path(sys.prefix) / "axe" / "node_modules" / "axe-core" / "axe.min.js"
STEPS, POINTS = 8, 24


def restore_signed(codes: np.ndarray, limit: float) -> np.ndarray:
    """What the page's script makes of the codes of `quantise_signed`."""
    share = (codes.astype(float) - 128) / 127
    return np.where(codes == 0, np.nan, np.sign(share) * share**2 * limit)


def unpack_bytes(text: str, shape: tuple[int, ...]) -> np.ndarray:
    """The bytes that `pack_bytes` packed."""
    raw = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8).reshape(shape)
    return np.cumsum(raw, axis=-1, dtype=np.uint8)


def burgers_spec(**changes) -> ModelSpec:
    benchmark = get_benchmark("burgers2d")
    spec = ModelSpec(
        kind="surrogate",
        equation=benchmark.equation_text,
        fields=benchmark.fields,
        lengths=benchmark.lengths,
        dt=benchmark.dt,
        numerics=Numerics("sharp", (6.0,), 0.0, (16, 16), 1),
        benchmark="burgers2d",
        coefficients=dict(benchmark.coefficients),
        modes=3,
        hidden=2,
    )
    return replace(spec, **changes)


def noisy(spec: ModelSpec, size: float = 1e-3, seed: int = 0) -> Model:
    """A surrogate with an operator that does something."""
    stepper = build_model(spec)
    arrays, rest = eqx.partition(stepper.network, eqx.is_inexact_array)
    keys = jax.random.key(seed)
    shaken = jax.tree.map(lambda a: a + 0.3 * jax.random.normal(keys, a.shape), arrays)
    stepper = eqx.tree_at(lambda s: s.network, stepper, eqx.combine(shaken, rest))
    stepper = eqx.tree_at(lambda s: s.scale, stepper, jnp.full(len(spec.fields), size))
    reasons = [f"band: modes up to 5 hold all of it {HOSTILE}", "substeps: 1 of RK4 per frame"]
    return Model(spec, stepper, {"preset": "smoke", "numerics": reasons, "seed": seed})


def save_run(folder: Path, model: Model, data, *, steps: int) -> Path:
    folder.mkdir(parents=True)
    save_model(folder / "model.safetensors", model)
    metrics = evaluate(model, data, steps=steps, name=folder.name, also=("physics alone",))
    save_metrics(folder / "metrics.json", metrics)
    (folder / "config.json").write_text(json.dumps({"settings": {"note": HOSTILE, "rate": 1e-3}}))
    with (folder / "history.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["stage", "step", "loss", "learning_rate", "gradient_norm"])
        writer.writerows(["operator", k, 1 / k, 1e-3, 1.0] for k in range(1, 301))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def test_data() -> ReferenceTrajectories:
    return ReferenceTrajectories(
        get_benchmark("burgers2d"), trajectories=2, steps=STEPS, points=POINTS
    )


@pytest.fixture(scope="module")
def surrogate_run(folder, test_data) -> Path:
    """A surrogate whose fields have hostile names."""
    spec = burgers_spec(fields=(HOSTILE, "u_y"))
    return save_run(folder / "surrogate", noisy(spec), test_data, steps=STEPS)


@pytest.fixture(scope="module")
def network_run(folder, test_data) -> Path:
    """A network in a folder with a hostile name, with an equation that nobody can read."""
    spec = burgers_spec(kind="fno", numerics=None, equation=IMAGE, fields=(HOSTILE, "u_y"))
    name = "<b>fno & $co^"
    return save_run(folder / name, Model(spec, build_model(spec)), test_data, steps=STEPS)


@pytest.fixture(scope="module")
def report(folder, surrogate_run) -> Path:
    return write_report([surrogate_run], folder / "one.html").path


@pytest.fixture(scope="module")
def comparison(folder, surrogate_run, network_run) -> Path:
    return write_report([surrogate_run, network_run], folder / "two.html").path


def edited_run(source: Path, target: Path, **changes) -> Path:
    """A copy of a run with other metrics."""
    shutil.copytree(source, target)
    metrics = json.loads((target / "metrics.json").read_text())
    (target / "metrics.json").write_text(json.dumps({**metrics, **changes}))
    return target


# ---- parts ----


def test_plain_strings_become_text_and_never_markup():
    written = tag("p", HOSTILE, tag("b", "&"), title='"><script>')
    assert written == (
        '<p title="&quot;&gt;&lt;script&gt;">&lt;script&gt;alert(1)&lt;/script&gt;<b>&amp;</b></p>'
    )


def test_embedded_json_holds_no_tag_and_reads_back():
    value = {"name": "</script><!--&", "numbers": [1.5, None]}
    written = embedded_json(value)
    assert not re.search("[<>&]", written)
    assert json.loads(written) == value
    with pytest.raises(ValueError, match="JSON"):
        embedded_json(math.nan)


def test_frames_survive_packing():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, (3, 2, 7, 5)).astype(np.uint8)
    assert np.array_equal(unpack_bytes(pack_bytes(codes), codes.shape), codes)

    frame = rng.normal(size=(9, 9))
    levels, (low, high) = quantise_field(frame)
    # Rounding to one of 255 steps leaves half a step.
    assert np.abs(low + levels / 255 * (high - low) - frame).max() <= (high - low) / 510 * 1.0001


def test_errors_keep_their_sign_and_four_decades():
    limit = 0.7
    error = np.concatenate([-np.geomspace(1e-4, 1, 50), [0.0], np.geomspace(1e-4, 1, 50)]) * limit
    found = restore_signed(quantise_signed(error, limit), limit)
    # The code is 127 sqrt(e): half a level is 2 sqrt(e) / 254 + 1 / 254² of the limit.
    share = np.abs(error) / limit
    assert (np.abs(found - error) <= limit * (2 * np.sqrt(share) / 254 + 254.0**-2) * 1.0001).all()
    assert np.array_equal(np.sign(found), np.sign(error))
    assert quantise_signed(np.array([np.nan, np.inf]), limit).tolist() == [0, 0]


def test_isosurface_of_a_ball_has_its_area_and_looks_outward():
    n, radius = 40, 13.0
    axes = np.arange(n) - (n - 1) / 2
    distance = np.sqrt(axes[:, None, None] ** 2 + axes[:, None] ** 2 + axes**2)
    faces = isosurface(radius - distance, 0.0)
    vertices = faces - (n - 1) / 2
    # Linear interpolation of a distance errs by at most an edge squared over 8 r: 3 / 8 / 13.
    assert np.abs(np.linalg.norm(vertices, axis=-1) - radius).max() < 0.03
    normal = np.cross(vertices[:, 1] - vertices[:, 0], vertices[:, 2] - vertices[:, 0]) / 2
    area = np.linalg.norm(normal, axis=1)
    # Flat faces of edge h lose a share of h² / (4 r²) < 0.5 % of the area.
    assert area.sum() == pytest.approx(4 * np.pi * radius**2, rel=0.005)
    outward = (normal * vertices.mean(axis=1)).sum(axis=1)
    assert (outward[area > 1e-6] > 0).all()


@pytest.mark.parametrize(
    "equation", [b.equation for b in BENCHMARKS.values()], ids=list(BENCHMARKS)
)
def test_formulas_of_the_benchmarks_are_well_formed(equation):
    for line in latex_lines(equation):
        assert ElementTree.fromstring(mathml(line)).tag == "math"


def test_formulas_of_the_examples_are_well_formed_and_leave_nothing_unread():
    for example in EXAMPLES.values():
        for line in latex_lines(parse_equation(example.text, dims=example.dims)):
            formula = ElementTree.fromstring(mathml(line))
            assert "\\" not in "".join(formula.itertext()), line


def test_a_formula_reads_as_the_equation():
    equation = parse_equation("dt(u) = -v*(dx(u) + dy(u)) + D*lap(u)", dims=2)
    formula = ElementTree.fromstring(mathml(latex_lines(equation)[0]))
    assert "".join(formula.itertext()) == "∂tu=−v(∂xu+∂yu)+DΔu"
    assert mathml(HOSTILE).count("<script") == 0


def test_a_log_axis_puts_decades_at_equal_distances():
    scale = fitted_scale(ChartAxis("", log=True, low=1e-4, high=1e0), [], 400.0, 0.0, tight=False)
    assert [scale(10.0**p) for p in (-4, -3, -2, -1, 0)] == pytest.approx([400, 300, 200, 100, 0])
    assert [label for _, label in scale.ticks] == ["10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "10⁰"]


def test_a_chart_breaks_the_line_where_there_is_no_value():
    lines = [Line("a", [1, 2, 3, 4], [1.0, None, 10.0, 100.0], "s0")]
    drawn = chart(lines, x=ChartAxis("x"), y=ChartAxis("y", log=True), title="t")
    path = re.search(r'class="curve s0" d="([^"]*)"', drawn.svg)
    assert path
    assert re.sub("[^ML]", "", path[1]) == "MML"
    ElementTree.fromstring(drawn.svg)
    assert drawn.hover["lines"][0]["y"] == [1.0, None, 10.0, 100.0]


def test_shells_without_energy_have_no_ratio():
    """A wave that is carried along has energy in few shells, and exactly none between them."""
    with np.errstate(all="raise"):
        ratio = ratio_of(np.array([0.9, 0, 0.1, 0.5]), np.array([1, 0, 0, 0.5]))
    np.testing.assert_array_equal(ratio, [0.9, np.nan, np.nan, 1.0])


def test_numbers_read_well():
    assert [percent(x) for x in (0.0, 1.23e-7, 0.00123, 0.5, 1.83, None)] == [
        "0 %",
        "1.2 × 10⁻⁷",
        "0.12 %",
        "50 %",
        "180 %",
        "no finite value",
    ]
    assert [typeset(x) for x in (0.0071, 57.3, -3e-9, 0.0, None)] == [
        "0.0071",
        "57",
        "−3.0 × 10⁻⁹",
        "0",
        "–",
    ]


def test_packed_gaussians_are_the_field(surrogate_run):
    """Sums of the Gaussians as the page gets them, against the frame they were made of."""
    model = load_model(surrogate_run)
    x = np.arange(POINTS) / POINTS
    wave = np.sin(2 * np.pi * (x[:, None] - 2 * x)) + 0.5 * np.cos(6 * np.pi * x)[:, None]
    state = np.stack([wave, wave.T]).astype(np.float32)
    packed = packed_gaussians(model, np.stack([state, 0.5 * state]))
    assert packed is not None
    assert packed["fixed"]

    def floats(key, *shape):
        return np.frombuffer(zlib.decompress(base64.b64decode(packed[key])), "<f4").reshape(shape)

    center, shape = floats("center", 256, 2), floats("covariance", 256, 3)
    codes = unpack_bytes(packed["amplitude"], (2, 2, 256)).astype(float) - 128
    points = np.stack(np.meshgrid(x, x, indexing="ij"), -1)
    gap = points[:, :, None] - center
    gap -= np.rint(gap)
    determinant = shape[:, 0] * shape[:, 2] - shape[:, 1] ** 2
    form = (
        shape[:, 2] * gap[..., 0] ** 2
        - 2 * shape[:, 1] * gap[..., 0] * gap[..., 1]
        + shape[:, 0] * gap[..., 1] ** 2
    ) / determinant
    kernel = np.exp(-form / 2)
    for frame, channel in np.ndindex(2, 2):
        found = kernel @ codes[frame, channel]
        # Amplitudes are known up to a factor, and to half of 1/127 each. Errors of 256 of them add
        # up at random over the 2 pi 1.2² = 9 kernels that reach a point: 0.3 % of the largest
        # amplitude times sqrt(9), while the field is the sum of kernels: 1 % of it.
        assert np.corrcoef(found.ravel(), state[channel].ravel())[0, 1] > 0.9995


class Restoring(eqx.Module):
    """An operator that puts back `sign` times the diffusion of one step."""

    change: float = eqx.field(static=True)

    def __call__(self, u):
        k = 2 * np.pi * np.fft.fftfreq(u.shape[-1], 1 / u.shape[-1])
        square = jnp.asarray(k[:, None] ** 2 + k[: u.shape[-1] // 2 + 1] ** 2, jnp.float32)
        return self.change * jnp.fft.irfftn(-square * jnp.fft.rfftn(u, axes=(1, 2)), axes=(1, 2))


@pytest.mark.parametrize("sign", [1, -1])
def test_what_was_learned_is_compared_with_the_dropped_term(sign, surrogate_run):
    spec = burgers_spec(dropped_terms=("diffusion",))
    stepper = build_model(spec)
    assert isinstance(stepper, Surrogate)
    network = Restoring(sign * spec.dt * spec.coefficients["nu"])
    stepper = eqx.tree_at(lambda s: s.network, stepper, network, is_leaf=lambda x: x is None)
    x = np.arange(POINTS) / POINTS
    wave = np.sin(2 * np.pi * x[:, None]) * np.cos(4 * np.pi * x)
    frames = np.stack([np.stack([wave, wave.T]), 0.5 * np.stack([wave, -wave])]).astype(np.float32)
    playback = Playback(
        "test", 0, Grid((POINTS, POINTS), (1.0, 1.0)), 1.0, spec.fields, (0, 1), frames, {}, ()
    )
    metrics = load_metrics(surrogate_run)
    held = EvaluatedRun("run", surrogate_run, Model(spec, stepper), metrics, {}, ())
    found = compare_with_dropped(held, playback, {})
    assert found is not None
    # The lattice's derivatives are within 1e-4 of spectral ones here.
    assert found.correlation == pytest.approx(sign, abs=1e-3)
    assert found.share == pytest.approx(sign, abs=1e-2)
    whole = replace(held, model=Model(burgers_spec(), stepper))
    assert compare_with_dropped(whole, playback, {}) is None


def test_identified_coefficients_stand_beside_the_truth(surrogate_run):
    held = read_runs([surrogate_run])[0]
    found = {
        "estimated": {"D": [2.0e-6, 3.0e-6]},
        "true": {"D": [2.1e-6, 3.1e-6]},
        "relative_error": {"D": 0.04},
        "relative_error_max": {"D": 0.048},
    }
    held = replace(held, metrics=replace(held.metrics, coefficients=found))
    frames = np.zeros((1, 2, 4, 4), np.float32)
    rollout = PlayedRollout(held.label, frames, (), {"D": 3.0e-6}, {"D": (2.9e-6, 3.1e-6)})
    playback = Playback(
        "test", 1, Grid((4, 4), (1.0, 1.0)), 1.0, ("a", "b"), (0,), frames, {}, (rollout,)
    )
    text = _visible(str(coefficients_section([held], playback)))
    for shown in ("3.000 × 10⁻⁶", "± 1.0 × 10⁻⁷", "3.100 × 10⁻⁶", "4 %", "4.8 %"):
        assert shown in text
    assert coefficients_section(read_runs([surrogate_run]), playback) is None


# ---- words ----


def _run(surrogate_run: Path, **changes) -> EvaluatedRun:
    held = read_runs([surrogate_run])[0]
    return replace(held, metrics=replace(held.metrics, **changes))


@pytest.mark.parametrize(
    ("error", "said", "tone"),
    [
        (0.02, "removes 80 % of that error, so it earns its place", "good"),
        (0.099, "hardly earns its place", "mixed"),
        (0.15, "makes it worse", "mixed"),
    ],
)
def test_the_verdict_says_whether_the_operator_earns_its_place(surrogate_run, error, said, tone):
    alone = replace(load_metrics(surrogate_run), rl2_mean=0.1, physics_alone=None)
    held = _run(surrogate_run, rl2_mean=error, physics_alone=alone, diverged=[])
    found = verdict([held], entries([held]), published=0.05)
    assert said in " ".join(found.sentences)
    assert found.tone == tone
    assert f"Off by {percent(error)}" in found.headline
    factor = "2.5 times smaller" if error == 0.02 else "times as large"
    assert factor in found.sentences[-1]


def test_a_divergence_is_told_by_its_step(surrogate_run, folder):
    diverged = edited_run(
        surrogate_run,
        folder / "diverged",
        diverged=[{"trajectory": 1, "step": 5}],
        rl2_mean=None, rl2_std=None, psnr_mean=None, psnr_std=None, spectral_error=None,
        energy_drift=None,
        rl2_curve=[0.1, 0.2, 0.4, 2.0] + [None] * (STEPS - 4),
        per_trajectory={"rl2": [0.1, None], "diverged_step": [None, 5]},
    )  # fmt: skip
    written = write_report([diverged], folder / "diverged.html")
    assert written.verdict.tone == "bad"
    assert written.verdict.headline == "1 of 2 rollouts diverged, the first at step 5."
    page = written.path.read_text()
    assert "diverged (1 of 2, step 5)" in page
    assert not re.search(r"\b([Nn]a[Nn]|inf|None|null)\b", _visible(page))


def _visible(page: str) -> str:
    """The page without scripts, styles and markup."""
    page = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"<[^>]*>", " ", page)


def test_the_best_of_several_runs_is_named(surrogate_run, network_run):
    runs = read_runs([surrogate_run, network_run])
    better = replace(runs[1], metrics=replace(runs[1].metrics, rl2_mean=1e-5, diverged=[]))
    worse = replace(runs[0], metrics=replace(runs[0].metrics, rl2_mean=2e-5, diverged=[]))
    found = verdict([worse, better], entries([worse, better]), published=None)
    assert found.headline.startswith(f"{better.label} is the most accurate")
    assert "(2.0 times as much)" in " ".join(found.sentences)


def test_seeds_of_one_model_make_a_band(surrogate_run, tmp_path):
    second = edited_run(
        surrogate_run, tmp_path / "second", rl2_curve=[0.5] * STEPS, physics_alone=None
    )
    drawn = error_section(Charts(), entries(read_runs([surrogate_run, second])), 1.0)
    assert "mean of 2 seeds" in drawn
    assert 'class="band ensemble"' in drawn
    alone = error_section(Charts(), entries(read_runs([surrogate_run])), 1.0)
    assert "seeds" not in alone


# ---- the page as a file ----


def test_the_page_is_complete_small_and_escaped(report, comparison):
    for path in (report, comparison):
        page = path.read_text()
        assert path.stat().st_size < 5e6
        assert not re.search(r"(src|href)=[\"'](?!data:|#)", page)
        assert "http://" not in page
        assert "https://" not in page
        assert "alert(1)</script>" not in page
        assert "onerror=alert(1)>" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
        for word in ("rL2", "Published".lower(), "ratio to reference", "substeps", "Δt"):
            assert word in page
    assert "&lt;img src=x onerror=alert(1)&gt;" not in report.read_text()
    assert "&lt;b&gt;fno &amp; $co^" in comparison.read_text()


def test_the_page_shows_published_numbers_as_published(report):
    text = _visible(report.read_text())
    assert "published in the paper" in text
    assert re.search(r"surrogate\s+57\u2009800\s+0.057 ± 0.023", text)


def test_playing_agrees_with_the_metrics(surrogate_run):
    """The rollout of the player is the one that was evaluated, trajectory by trajectory."""
    shown = entries(read_runs([surrogate_run]))
    assert [entry.label for entry in shown] == ["surrogate", "physics alone"]
    for trajectory in range(2):
        playback = play(shown, trajectory=trajectory)
        assert playback is not None
        assert playback.steps == tuple(range(STEPS + 1))
        for entry, rollout in zip(shown, playback.rollouts, strict=True):
            evaluated = entry.metrics.per_trajectory["rl2"][trajectory]
            # Two programs of float32: the same up to rounding of the error's mean.
            assert np.mean(rollout.rl2) == pytest.approx(evaluated, rel=1e-3)


def test_the_command_writes_into_the_run(surrogate_run):
    result = CliRunner().invoke(app, ["report", str(surrogate_run), "--trajectory", "1"])
    assert result.exit_code == 0, result.output
    assert (surrogate_run / "report.html").exists()
    assert "Off by" in result.output
    (surrogate_run / "report.html").unlink()


@pytest.mark.slow
def test_a_run_on_a_file_needs_the_file_to_play(folder, test_data, surrogate_run):
    array = np.stack([test_data.window(b, 0, STEPS + 1) for b in range(2)])
    data = ArrayTrajectories(array, test_data.grid, dt=1.0, fields=("a", "b"))
    save_trajectories(folder / "own.h5", data)
    metrics = json.loads((surrogate_run / "metrics.json").read_text())["data"]
    missing = {**metrics, "benchmark": None, "split": None, "seed": None, "source": "own.h5"}
    own = edited_run(surrogate_run, folder / "own", data=missing)
    spec = burgers_spec(benchmark=None)
    save_model(own / "model.safetensors", noisy(spec))
    without = write_report([own], folder / "without.html").path.read_text()
    assert "Write the report again with --data FILE" in without
    with pytest.raises(SplatopError, match="play trajectory 1 of"):
        write_report([own], folder / "without.html", trajectory=1)
    given = write_report([own], folder / "given.html", data=folder / "own.h5").path.read_text()
    assert 'id="time"' in given
    # What the settings name is found without asking.
    (own / "config.json").write_text(json.dumps({"problem": {"data": str(folder / "own.h5")}}))
    assert play(entries(read_runs([own]))) is not None


# ---- bad input ----


def test_unfinished_and_broken_runs_are_refused(folder, surrogate_run, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / ".lock").touch()
    unfinished = tmp_path / "unfinished"
    unfinished.mkdir()
    (unfinished / "config.json").write_text("{}")
    unevaluated = tmp_path / "unevaluated"
    shutil.copytree(surrogate_run, unevaluated)
    (unevaluated / "metrics.json").unlink()
    cut = tmp_path / "cut"
    shutil.copytree(surrogate_run, cut)
    (cut / "metrics.json").write_text('{"rl2_mean": 0.')
    settings = tmp_path / "settings"
    shutil.copytree(surrogate_run, settings)
    (settings / "config.json").write_text("[1, 2]")
    history = tmp_path / "history"
    shutil.copytree(surrogate_run, history)
    (history / "history.csv").write_text("stage,step,loss\noperator,1,zero\n")
    for path, message in (
        (tmp_path / "nowhere", "does not exist"),
        (surrogate_run / "model.safetensors", "give the folder that it is in"),
        (empty, "the folder is empty"),
        (unfinished, "without model.safetensors"),
        (unevaluated, "without metrics.json"),
        (cut, "expected JSON"),
        (settings, "expected the settings of a run"),
        (history, "expected columns stage, step and loss"),
    ):
        with pytest.raises(SplatopError, match=message):
            write_report([path], tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_runs_that_do_not_belong_together_are_refused(surrogate_run, tmp_path):
    out = tmp_path / "report.html"
    with pytest.raises(SplatopError, match="each run once"):
        write_report([surrogate_run, surrogate_run], out)
    with pytest.raises(SplatopError, match="at least one run"):
        write_report([], out)

    other = tmp_path / "other"
    shutil.copytree(surrogate_run, other)
    save_model(
        other / "model.safetensors",
        noisy(
            burgers_spec(
                benchmark="burgers2d_conservative",
                equation=get_benchmark("burgers2d_conservative").equation_text,
                fields=(HOSTILE, "u_y"),
            )
        ),
    )
    with pytest.raises(SplatopError, match="runs of the same problem"):
        write_report([surrogate_run, other], out)

    longer = edited_run(surrogate_run, tmp_path / "longer", steps=STEPS + 1)
    with pytest.raises(SplatopError, match="number of steps"):
        write_report([surrogate_run, longer], out)

    old = edited_run(surrogate_run, tmp_path / "old", version=0)
    with pytest.raises(SplatopError, match="version"):
        write_report([old], out)


def test_wrong_options_are_refused(surrogate_run, tmp_path, monkeypatch, capsys):
    with pytest.raises(SplatopError, match=r"named \.html"):
        write_report([surrogate_run], tmp_path / "report.pdf")
    with pytest.raises(SplatopError, match="trajectory from 0 to 1"):
        write_report([surrogate_run], tmp_path / "r.html", trajectory=2)
    with pytest.raises(SplatopError, match="does not exist"):
        write_report([surrogate_run], tmp_path / "r.html", data=tmp_path / "none.h5")
    with pytest.raises(SplatopError, match="make it first"):
        write_report([surrogate_run], tmp_path / "nowhere" / "r.html")
    monkeypatch.setattr("sys.argv", ["splatop", "report", str(tmp_path / "none")])
    assert run(app) == 1
    assert "does not exist" in capsys.readouterr().err


# ---- the page in a browser ----


@pytest.fixture(scope="module")
def page():
    program = find_chromium()
    if program is None:
        pytest.skip(
            "no Chromium on this machine, so the page is not opened: "
            "install one (apt-get install chromium) and run the tests again"
        )
    with browsing(program) as opened:
        opened.resize(1366, 768)
        yield opened


def ready(page: Page, path: Path) -> None:
    page.open(path)
    page.wait_for("document.querySelector('.player').dataset.ready === 'yes'")


def pixels(page: Page, name: str) -> np.ndarray:
    """What a canvas shows, `(height, width, 3)`."""
    width, height, text = page.evaluate(
        f"(() => {{ const c = document.getElementById('{name}');"
        # Reading a canvas itself would change how the browser draws it: a copy is read instead.
        "const copy = document.createElement('canvas'); copy.width = c.width; "
        "copy.height = c.height; const out = copy.getContext('2d', {willReadFrequently: true});"
        "out.drawImage(c, 0, 0); const d = out.getImageData(0, 0, c.width, c.height).data;"
        "let s = ''; "
        "for (let i = 0; i < d.length; i += 4) s += String.fromCharCode(d[i], d[i+1], d[i+2]); "
        "return [c.width, c.height, btoa(s)]; })()"
    )
    return np.frombuffer(base64.b64decode(text), np.uint8).reshape(height, width, 3)


def same(first: np.ndarray, second: np.ndarray) -> bool:
    """Equal but for the rounding with which a browser scales a picture: one of 255 levels."""
    return bool(np.abs(first.astype(int) - second.astype(int)).max() <= 1)


def choose(page: Page, name: str, value: int, event: str = "change") -> None:
    page.evaluate(
        f"(() => {{ const e = document.getElementById('{name}'); e.value = {value}; "
        f"e.dispatchEvent(new Event('{event}')); }})()"
    )


def test_the_slider_moves_the_pictures(page, report):
    ready(page, report)
    choose(page, "time", 0, "input")
    assert "step 0 of 8" in page.evaluate("document.getElementById('now').textContent")
    first = {name: pixels(page, name) for name in ("reference", "prediction", "error")}
    # At the start prediction and reference are the same state.
    assert same(first["reference"], first["prediction"])
    choose(page, "time", STEPS, "input")
    for name, before in first.items():
        assert (pixels(page, name) != before).any(axis=-1).mean() > 0.05, name
    assert not page.errors


def test_the_pictures_show_the_field_as_it_is(page, report, surrogate_run):
    """Colours at grid points, against the colour map of the values; x right, y up."""
    playback = play(entries(read_runs([surrogate_run])))
    assert playback is not None
    limit = np.abs(playback.reference[:, 1]).max()
    ready(page, report)
    choose(page, "field", 1)
    choose(page, "time", STEPS, "input")
    for name, states in (
        ("reference", playback.reference),
        ("prediction", playback.rollouts[0].states),
    ):
        shown = pixels(page, name).astype(int)
        places = ((np.arange(POINTS) + 0.5) * 480 / POINTS).astype(int)
        found = shown[np.ix_(479 - places, places)].transpose(1, 0, 2)  # as the array: x, y

        def wanted(values):
            share = (values / limit + 1) / 2
            return matplotlib.colormaps["RdBu_r"](share, bytes=True)[..., :3].astype(int)

        def distance(values, found=found, wanted=wanted):
            return np.abs(found - wanted(values)).mean()

        # 8 bits and the smoothing between pixels move a colour by a few of 255 levels; a picture
        # that is flipped or transposed is off by the contrast of the field.
        u = states[-1, 1]
        assert distance(u) < 6
        assert min(distance(u.T), distance(u[::-1]), distance(u[:, ::-1])) > 3 * distance(u)


def test_ellipses_are_drawn_over_the_prediction_alone(page, report):
    ready(page, report)
    before = {name: pixels(page, name) for name in ("reference", "prediction", "error")}
    page.evaluate("document.getElementById('gaussians').click()")
    assert (pixels(page, "prediction") != before["prediction"]).any(axis=-1).mean() > 0.02
    for name in ("reference", "error"):
        assert same(pixels(page, name), before[name])
    page.evaluate("document.getElementById('gaussians').click()")
    assert same(pixels(page, "prediction"), before["prediction"])
    assert not page.errors


def test_ellipses_lie_on_their_gaussians(page, folder, test_data, surrogate_run):
    """One Gaussian that leans to the right: the ellipse covers it where the field is large."""
    ready(page, folder / "one.html")
    drawn = page.evaluate(
        "(() => { const c = document.createElement('canvas'); c.width = c.height = 200;"
        "const g = { count: 1, center: new Float32Array([0.3, 0.6]),"
        " covariance: new Float32Array([0.01, 0.008, 0.01]) };"
        "drawGaussians(c, g, { geometry: 0, amplitude: () => 1 }, 2,"
        " { a: 0, b: 1, columns: 100, rows: 100, boxColumns: 100, boxRows: 100 });"
        "const d = c.getContext('2d').getImageData(0, 0, 200, 200).data; const found = [];"
        "for (let y = 0; y < 200; y++) for (let x = 0; x < 200; x++)"
        " if (d[4 * (200 * y + x) + 3] > 150) found.push([x, y]); return found; })()"
    )
    x, y = np.array(drawn, float).T
    gap = np.stack([(x + 0.5 - 1) / 200 - 0.3, (200 - y - 0.5 - 1) / 200 - 0.6])
    inverse = np.linalg.inv([[0.01, 0.008], [0.008, 0.01]])
    radius = np.sqrt(np.einsum("in,ij,jn->n", gap, inverse, gap))
    # The line is 1 px wide and the minor axis 0.045 * 200 = 9 px: it stays within 1 / 9 of 1 sigma.
    assert len(radius) > 40
    assert np.abs(radius - 1).max() < 0.15


def test_a_slice_cuts_an_ellipsoid_where_it_should(page, report):
    """The conditional Gaussian of the plane, against points of the ellipsoid itself."""
    ready(page, report)
    rng = np.random.default_rng(1)
    root = 0.05 * rng.normal(size=(3, 3)) + 0.12 * np.eye(3)
    covariance = root @ root.T
    center, position = np.array([0.4, 0.5, 0.55]), 0.6
    packed = covariance[np.triu_indices(3)].tolist()

    def cut(at):
        plane = f"{{a: 0, b: 1, across: 2, position: {at}}}"
        return page.evaluate(f"slicedEllipse({center.tolist()}, {packed}, {plane})")

    x, y, sxx, sxy, syy = cut(position)
    around = np.linspace(0, 2 * np.pi, 50)
    edge = np.linalg.cholesky([[sxx, sxy], [sxy, syy]]) @ [np.cos(around), np.sin(around)]
    points = np.stack([x + edge[0], y + edge[1], np.full(50, position)]) - center[:, None]
    radius = np.einsum("in,ij,jn->n", points, np.linalg.inv(covariance), points)
    assert radius == pytest.approx(np.ones(50), abs=1e-9)
    assert cut(0.05) is None


def test_keys_and_the_button_move_time(page, report):
    ready(page, report)
    choose(page, "time", 3, "input")
    page.evaluate("document.querySelector('.player').focus()")
    page.press("ArrowRight")
    page.press("ArrowRight")
    page.press("ArrowLeft")
    assert page.evaluate("document.getElementById('time').value") == "4"
    page.press(" ", " ")
    page.wait_for("document.getElementById('time').value === '8'")
    page.wait_for("document.getElementById('play').getAttribute('aria-pressed') === 'false'")
    page.evaluate("document.getElementById('play').click()")
    page.wait_for("Number(document.getElementById('time').value) < 8")
    page.evaluate("document.getElementById('play').click()")
    assert not page.errors


def test_every_control_can_be_reached_with_tab(page, comparison):
    ready(page, comparison)
    seen = set()
    for _ in range(40):
        page.press("Tab")
        seen.add(page.evaluate("document.activeElement.id || document.activeElement.dataset.chart"))
    assert {"play", "time", "model", "field", "colours", "scale", "gaussians"} <= seen
    assert {"error", "spectrum", "ratio", "loss0"} <= seen


def test_curves_tell_their_values(page, report, surrogate_run):
    metrics = load_metrics(surrogate_run)
    ready(page, report)
    page.hover("[data-chart=error]", 0.97)
    said = page.evaluate("document.querySelector('[data-chart=error] .tip').innerText")
    assert f"step {STEPS}" in said
    shown = [float(line.split()[-1]) for line in said.splitlines()[1:]]
    alone = metrics.physics_alone
    assert alone is not None
    assert shown == pytest.approx([metrics.rl2_curve[-1], alone.rl2_curve[-1]], rel=5e-3)
    page.evaluate("document.querySelector('[data-chart=error]').focus()")
    page.press("ArrowRight")
    assert page.evaluate("!document.querySelector('[data-chart=error] .tip').hidden")


def test_models_are_compared_and_hostile_names_are_text(page, comparison):
    ready(page, comparison)
    before = pixels(page, "prediction")
    choose(page, "model", 1)
    assert not same(pixels(page, "prediction"), before)
    body = page.evaluate("document.body.innerText")
    assert HOSTILE in body
    assert "<b>fno & $co^" in body
    assert page.evaluate("document.querySelectorAll('main script, main b, img[src=x]').length") == 0
    page.hover("[data-chart=error]", 0.5)
    assert "<b>fno & $co^" in page.evaluate("document.querySelector('.tip').innerText")
    assert not page.errors


def test_the_page_loads_nothing_and_fits_a_laptop(page, comparison):
    ready(page, comparison)
    assert all(url.startswith(("file:", "data:")) for url in page.requests)
    assert len([url for url in page.requests if url.startswith("file:")]) == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 1366
    # All of the player is seen at once.
    assert page.evaluate("document.querySelector('.player').offsetHeight") < 768
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.resize(1366, 768, dark=True)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    page.resize(1366, 768)


def test_the_page_fits_a_phone(page, comparison):
    page.resize(390, 844)
    ready(page, comparison)
    try:
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.evaluate("document.querySelector('#play').offsetHeight") >= 24
    finally:
        page.resize(1366, 768)


@pytest.mark.parametrize(("width", "dark"), [(1366, False), (390, True)])
def test_axe_finds_nothing_serious(page, comparison, width, dark):
    """Labels, roles, contrast, order: the rules of axe-core, which the Makefile installs by npm."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make browser")
    page.resize(width, 844, dark=dark)
    ready(page, comparison)
    try:
        page.evaluate(AXE.read_text() + "; true")
        found = page.evaluate(
            "axe.run().then((r) => r.violations.filter((v) => ['serious', 'critical'].includes("
            "v.impact)).map((v) => [v.id, v.help, v.nodes.slice(0, 3).map((n) => n.html)]))"
        )
    finally:
        page.resize(1366, 768)
    assert found == []


def contrast(first: str, second: str) -> float:
    """The ratio of luminances that accessibility guidelines ask to be 4.5 for text."""

    def luminance(colour: str) -> float:
        parts = [int(v) / 255 for v in re.findall(r"\d+", colour)[:3]]
        linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    low, high = sorted([luminance(first), luminance(second)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_text_and_curves_stand_out(page, comparison, dark):
    page.resize(1366, 768, dark=dark)
    ready(page, comparison)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    for selector in ("h1", ".note", ".verdict p", "thead th", ".published td", "nav a"):
        colour = page.evaluate(f"getComputedStyle(document.querySelector('{selector}')).color")
        assert contrast(colour, ground) >= 4.5, selector
    strokes = page.evaluate(
        "[...document.querySelectorAll('.chart .curve')].map((e) => getComputedStyle(e).stroke)"
    )
    # Lines need 3 to 1.
    assert min(contrast(stroke, ground) for stroke in strokes) >= 3
    page.resize(1366, 768)


def test_one_dimension_is_a_space_time_picture(page, folder):
    x = np.arange(48) / 48 * 2.0
    frames = np.stack([np.sin(np.pi * (x - 0.02 * k)) + 0.3 for k in range(9)])
    data = ArrayTrajectories(
        frames[None, :, None].astype(np.float32), Grid((48,), (2.0,)), dt=1.0, fields=("u",)
    )
    save_trajectories(folder / "waves.h5", data)
    spec = ModelSpec(
        kind="physics",
        equation="dt(u) = -c*dx(u)",
        fields=("u",),
        lengths=(2.0,),
        dt=1.0,
        numerics=Numerics("sharp", (3.0,), 0.0, (16,), 1),
        coefficients={"c": 0.02},
    )
    held = save_run(folder / "waves", Model(spec, build_model(spec)), data, steps=8)
    written = write_report([held], folder / "waves.html", data=folder / "waves.h5")
    ready(page, written.path)
    text = page.evaluate("document.body.innerText")
    assert "Time runs upwards" in text
    assert "A 1D model of u" in text
    reference = pixels(page, "reference").astype(int)
    # The crest moves right as time goes up: it starts at x = 0.5 and is at 0.66 after 8 steps.
    colours = matplotlib.colormaps["RdBu_r"](np.arange(256), bytes=True)[:, :3].astype(int)

    def crest(row):
        level = np.abs(reference[row][:, None] - colours).sum(axis=-1).argmin(axis=1)
        return np.mean(np.flatnonzero(level > level.max() - 3)) / 480 * 2

    start, end = crest(-10), crest(10)
    assert (start, end) == pytest.approx((0.5, 0.66), abs=0.06)
    before = pixels(page, "profile")
    page.evaluate("document.getElementById('gaussians').click()")
    assert not same(pixels(page, "profile"), before)
    assert not page.errors


@pytest.mark.slow
def test_three_dimensions_are_slices_and_isosurfaces(page, folder):
    benchmark = get_benchmark("advection_diffusion3d")
    data = ReferenceTrajectories(benchmark, trajectories=1, steps=2, points=14)
    spec = ModelSpec(
        kind="physics",
        equation=benchmark.equation_text,
        fields=benchmark.fields,
        lengths=benchmark.lengths,
        dt=benchmark.dt,
        numerics=Numerics("sharp", (6.0,), 0.0, (12, 12, 12), 1),
        benchmark=benchmark.name,
        coefficients=dict(benchmark.coefficients),
    )
    held = save_run(folder / "cube", Model(spec, build_model(spec)), data, steps=2)
    written = write_report([held], folder / "cube.html")
    ready(page, written.path)
    assert "Isosurfaces" in page.evaluate("document.body.innerText")
    assert page.evaluate("[...document.images].every((i) => i.complete && i.naturalWidth > 300)")
    volume = data.window(0, 0, 1)[0, 0]
    limit = np.abs(data.window(0, 0, 3)).max()
    choose(page, "time", 0, "input")
    places = ((np.arange(14) + 0.5) * 480 / 14).astype(int)
    for axis, index, plane in ((0, 9, volume[:, :, 9]), (1, 4, volume[:, 4]), (2, 11, volume[11])):
        choose(page, "axis", axis)
        choose(page, "slice", index, "input")
        found = pixels(page, "reference").astype(int)[np.ix_(479 - places, places)]
        share = (plane / limit + 1) / 2
        wanted = matplotlib.colormaps["RdBu_r"](share, bytes=True)[..., :3].astype(int)
        right = np.abs(found.transpose(1, 0, 2) - wanted).mean()
        # Coarse cells blur more than fine ones; the transposed slice is another picture.
        assert right < 12
        assert np.abs(found - wanted).mean() > 2 * right
    before = pixels(page, "prediction")
    page.evaluate("document.getElementById('gaussians').click()")
    assert not same(pixels(page, "prediction"), before)
    assert not page.errors


def test_the_file_that_a_run_learned_from_is_read_as_it_was(surrogate_run, tmp_path, monkeypatch):
    """Axes that lengths do not tell were told to training: the report need not be told again."""
    np.savez(tmp_path / "own.npz", u=np.ones((8, 9, 16)), x=np.arange(16) / 16, t=np.arange(9.0))
    monkeypatch.chdir(tmp_path)
    (run,) = read_runs([surrogate_run])
    metrics = replace(run.metrics, data={**run.metrics.data, "source": "own.npz"})
    reading = {"axes": "btx", "periodic": True}
    for config in (
        {"data": "own.npz", "reading": reading},
        {"problem": {"data": "own.npz", "reading": reading}},
    ):
        data = _trained_on(replace(run, metrics=metrics, config=config))
        assert data is not None
        assert (data.trajectories, data.frames) == (8, 9)
        data.close()

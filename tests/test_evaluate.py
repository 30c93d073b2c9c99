"""Evaluation against closed forms and a plain computation; files, ablations, the command."""

import json
import re
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

from splatop.benchmarks import get_benchmark
from splatop.cli import app
from splatop.data import ArrayTrajectories, generate, save_trajectories
from splatop.errors import SplatopError
from splatop.evaluate import (
    Metrics,
    ReferenceTrajectories,
    check_comparable,
    evaluate,
    evaluate_all,
    evaluation,
    load_metrics,
    save_metrics,
)
from splatop.evaluate.ablations import Ablation, OperatorAlone, ablate
from splatop.evaluate.metrics_tables import protocol_note, rollout_row, rollout_table
from splatop.evaluate.published import (
    published_identification,
    published_local_rendering,
    published_representation,
    published_rollout,
)
from splatop.grid import Grid
from splatop.model import Model, ModelSpec, build_model, save_model
from splatop.numerics import Numerics
from splatop.stepper import Stepper, rollout

POINTS, STEPS, COUNT = 16, 6, 3
ADVECTION = get_benchmark("advection2d").with_points(POINTS)


class Scaled(Stepper):
    """The true solution of 2D advection, a little too small at each step."""

    factor: float

    def __call__(self, u, coefficients):
        shift = np.exp(-2j * np.pi * coefficients["v"] * np.fft.fftfreq(POINTS, 1 / POINTS))
        modes = jnp.fft.fft2(u) * jnp.asarray(shift[:, None] * shift[None, :])
        return self.factor * jnp.real(jnp.fft.ifft2(modes)).astype(u.dtype)


class Explodes(Stepper):
    """Multiplies by a hundred, a value at a time."""

    def __call__(self, u, coefficients):
        return 100.0 * u


class Broken(Stepper):
    def __call__(self, u, coefficients):
        return u * jnp.nan


def model_of(stepper: Stepper, kind: str = "fno", benchmark=ADVECTION) -> Model:
    return Model(spec_of(kind, benchmark), stepper)


def spec_of(kind: str, benchmark=ADVECTION) -> ModelSpec:
    numerics = Numerics("sharp", (5.0,), 0.0, (14,) * benchmark.dims, 1)
    return ModelSpec(
        kind,
        benchmark.equation_text,
        benchmark.fields,
        benchmark.lengths,
        benchmark.dt,
        numerics if kind in ("surrogate", "physics") else None,
        benchmark.name,
        dict(benchmark.coefficients),
        hidden=4,
        modes=4,
        blocks=1,
    )


def surrogate() -> Model:
    spec = spec_of("surrogate")
    stepper = build_model(spec)
    weights = 1e-3 * jnp.ones_like(stepper.network.projection_weight)
    stepper = eqx.tree_at(lambda s: s.network.projection_weight, stepper, weights)
    return Model(spec, stepper)


@pytest.fixture(scope="module")
def data() -> ArrayTrajectories:
    return generate(ADVECTION, split="test", trajectories=COUNT, steps=STEPS)


@pytest.fixture(scope="module")
def metrics(data) -> Metrics:
    return evaluate(model_of(Scaled(0.98)), data, steps=STEPS, also=())


def test_reference_trajectories_are_those_of_generate(data):
    lazy = ReferenceTrajectories(ADVECTION, trajectories=COUNT, steps=STEPS)
    for index in (1, 0, 2, 2):
        np.testing.assert_array_equal(
            lazy.window(index, 0, STEPS + 1), data.window(index, 0, STEPS + 1)
        )
    assert lazy.coefficients["v"].tolist() == data.coefficients["v"].tolist()
    varying = get_benchmark("unknown_advection_diffusion2d").with_points(POINTS)
    lazy = ReferenceTrajectories(varying, trajectories=2, steps=2)
    held = generate(varying, split="test", trajectories=2, steps=2)
    np.testing.assert_array_equal(lazy.window(1, 0, 3), held.window(1, 0, 3))
    np.testing.assert_array_equal(lazy.coefficients["D"], held.coefficients["D"])


def test_a_prediction_that_shrinks_has_closed_form_metrics(metrics, data):
    # p_k = 0.98^k u_k, so rL2(k) = 1 - 0.98^k. Six shifts and means in float32: a few 1e-6.
    lost = 1 - 0.98 ** np.arange(1, STEPS + 1)
    np.testing.assert_allclose(metrics.rl2_curve, lost, atol=1e-5)
    assert metrics.rl2_mean == pytest.approx(lost.mean(), abs=1e-5)
    assert metrics.rl2_std == pytest.approx(0.0, abs=1e-5)
    assert metrics.energy_drift == pytest.approx(0.98 ** (2 * STEPS) - 1, abs=2e-5)
    kept = np.mean((1 - lost) ** 2)
    assert metrics.spectral_error == pytest.approx(1 - kept, abs=2e-5)
    assert metrics.step_above == 6  # 1 - 0.98^5 = 0.096, 1 - 0.98^6 = 0.114
    assert metrics.correlation_time == {"0.9": None, "0.8": None}
    size = np.square(data.array, dtype=float).mean(axis=(2, 3, 4))[:, 1:]
    expected = 10 * np.log10(np.ptp(data.array) ** 2 / (lost**2 * size))
    assert metrics.psnr_mean == pytest.approx(expected.mean(), abs=1e-3)
    assert metrics.psnr_std == pytest.approx(expected.mean(axis=1).std(), abs=1e-3)
    assert metrics.data["range"] == pytest.approx(np.ptp(data.array))
    assert metrics.diverged == []


def test_streamed_metrics_equal_those_of_whole_rollouts(monkeypatch, data):
    model = Model(spec_of("fno"), build_model(spec_of("fno")))
    # Pieces of two frames.
    monkeypatch.setattr(evaluation, "_CHUNK_BYTES", 2 * 4 * POINTS**2)
    found = evaluate(model, data, steps=STEPS, also=())
    errors, spectra = [], []
    for truth in data.array.astype(float):
        states = rollout(model.stepper, jnp.asarray(truth[0], jnp.float32), {"v": 0.025}, steps=6)
        states = np.asarray(states, float)
        axes = (1, 2, 3)
        errors.append(np.sqrt(((states - truth[1:]) ** 2).sum(axes) / (truth[1:] ** 2).sum(axes)))
        modes = np.abs(np.fft.fft2(states[:, 0], norm="forward")) ** 2
        shell = np.floor(np.hypot(*np.meshgrid(*[np.fft.fftfreq(16, 1 / 16)] * 2)) + 0.5)
        spectra.append([[m[shell == k].sum() for k in range(9)] for m in modes])
    np.testing.assert_allclose(found.rl2_curve, np.mean(errors, axis=0), rtol=1e-4)
    np.testing.assert_allclose(found.per_trajectory["rl2"], np.mean(errors, axis=1), rtol=1e-4)
    assert found.rl2_std == pytest.approx(np.mean(errors, axis=1).std(), rel=1e-3)
    expected = np.mean(spectra, axis=(0, 1))
    np.testing.assert_allclose(
        found.spectrum["prediction"], expected, rtol=1e-3, atol=1e-6 * expected.max()
    )


def test_several_models_share_the_reference_and_keep_their_names(data):
    found = evaluate_all(
        {"good": model_of(Scaled(0.999)), "bad": model_of(Scaled(0.9))}, data, steps=2, also=()
    )
    assert [m.name for m in found.values()] == ["good", "bad"]
    assert found["bad"].rl2_curve == pytest.approx([0.1, 0.19], abs=1e-5)
    assert found["good"].rl2_curve == pytest.approx([0.001, 0.001999], abs=1e-5)


@pytest.mark.slow
def test_physics_alone_stands_beside_a_surrogate(data):
    model = surrogate()
    found = evaluate(model, data, steps=3, also=("physics alone", "cost", "representation"))
    alone = evaluate(model.physics_only(), data, steps=3, also=())
    assert found.physics_alone is not None
    assert found.physics_alone.rl2_curve == alone.rl2_curve
    assert found.physics_alone.model["kind"] == "physics"
    assert found.physics_alone.model["parameters"] == 0
    assert found.rl2_curve != alone.rl2_curve
    assert found.cost_ms_per_step is not None
    assert found.cost_ms_per_step > 0
    assert found.representation is not None
    assert 0 < found.representation["e_u"] < found.representation["e_lap"]
    assert found.representation["gaussians"] == 14 * 14


@pytest.mark.parametrize(("stepper", "step"), [(Explodes(), 1), (Broken(), 1)])
def test_divergence_is_reported_by_its_step_and_never_as_nan(stepper, step, data, tmp_path):
    found = evaluate(model_of(stepper), data, steps=STEPS, also=())
    assert [d["step"] for d in found.diverged] == [step] * COUNT
    assert found.rl2_mean is None
    assert found.spectral_error is None
    assert found.spectrum["prediction"] is None
    assert found.step_above == 1
    text = save_metrics(tmp_path / "metrics.json", found).read_text()
    assert "NaN" not in text
    assert "Infinity" not in text
    assert "diverged (3 of 3, step 1)" in rollout_row(found)
    assert load_metrics(tmp_path).diverged == found.diverged
    assert "nan" not in rollout_table({"advection2d": [found]}).markdown().lower()


def test_the_papers_sizes_are_named_beside_its_own_benchmarks_alone(metrics):
    assert "The paper: 30 trajectories" in protocol_note([metrics])
    assert "paper" not in protocol_note(
        [replace(metrics, model={**metrics.model, "benchmark": None})]
    )


def test_a_curve_ends_where_one_trajectory_diverges(data):
    class Late(Stepper):
        def __call__(self, u, coefficients):
            # The third trajectory alone begins with this value.
            lost = jnp.abs(u[0, 0, 0] - first) < 1e-6
            return jnp.where(lost, jnp.nan, 0.5) * u

    first = float(data.array[2, 0, 0, 0, 0])
    found = evaluate(model_of(Late()), data, steps=3, also=())
    assert found.diverged == [{"trajectory": 2, "step": 1}]
    assert found.rl2_curve == [None, None, None]
    assert [v is None for v in found.per_trajectory["rl2"]] == [False, False, True]


def own_data(array: np.ndarray) -> ArrayTrajectories:
    grid = Grid(array.shape[3:], (1.0,) * (array.ndim - 3))
    return ArrayTrajectories(array, grid, dt=1.0, fields=("u",))


def test_the_mean_counts_where_the_data_show_that_it_evolves():
    class Still(Stepper):
        def __call__(self, u, coefficients):
            return u

    x = np.sin(2 * np.pi * np.arange(POINTS) / POINTS)
    spec = replace(spec_of("fno"), benchmark=None, lengths=(1.0,))
    steady = own_data(np.broadcast_to(x, (1, 3, 1, POINTS)))
    found = evaluate(Model(spec, Still()), steady, steps=2, also=())
    assert found.spectrum["mean_evolves"] is False
    rising = own_data(x + np.array([0.0, 0.1, 0.2]).reshape(1, 3, 1, 1))
    found = evaluate(Model(spec, Still()), rising, steps=2, also=())
    assert found.spectrum["mean_evolves"] is True
    # E_ref = (mean of 0.1² and 0.2², 1/2), E_pred = (0, 1/2).
    assert found.spectral_error == pytest.approx(0.025 / np.hypot(0.025, 0.5), rel=1e-4)


def test_refusals(data):
    model = model_of(Scaled(1.0))
    with pytest.raises(SplatopError, match="expected 1 to 6 steps"):
        evaluate(model, data, steps=STEPS + 1)
    with pytest.raises(SplatopError, match="unknown further measurement 'costs'"):
        evaluate(model, data, steps=1, also=("costs",))
    other = generate(get_benchmark("advection_diffusion2d"), points=16, trajectories=1, steps=2)
    with pytest.raises(SplatopError, match="expected data of advection2d"):
        evaluate(model, other, steps=1)
    with pytest.raises(SplatopError, match="time step"):
        evaluate(Model(replace(model.spec, dt=0.5), model.stepper), data, steps=1)
    zero = own_data(np.zeros((1, 2, 1, POINTS, POINTS)))
    with pytest.raises(SplatopError, match="not zero, got one at step 1 of trajectory 0"):
        evaluate(model, zero, steps=1)


def test_metrics_files_are_checked(metrics, tmp_path):
    save_metrics(tmp_path / "metrics.json", metrics)
    assert load_metrics(tmp_path).as_dict() == metrics.as_dict()
    held = json.loads((tmp_path / "metrics.json").read_text())
    required = {"rl2_mean", "rl2_std", "psnr_mean", "psnr_std", "spectral_error", "rl2_curve"}
    assert required | {"steps", "trajectories", "step_above_0.1", "version"} <= set(held)
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "metrics.json").write_text(json.dumps({**held, "version": 0}))
    with pytest.raises(SplatopError, match="expected metrics of version 1, got version 0"):
        load_metrics(tmp_path / "old")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SplatopError, match="folder without metrics"):
        load_metrics(tmp_path / "empty")
    (tmp_path / "text.json").write_text("not JSON")
    with pytest.raises(SplatopError, match="expected JSON"):
        load_metrics(tmp_path / "text.json")
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(SplatopError, match="got something else"):
        load_metrics(tmp_path / "other.json")


def test_only_like_is_compared_with_like(metrics):
    check_comparable([metrics, metrics])
    burgers = replace(metrics, model={**metrics.model, "benchmark": "burgers2d"})
    with pytest.raises(SplatopError, match=r"benchmark advection2d .* and burgers2d"):
        check_comparable([metrics, burgers])
    with pytest.raises(SplatopError, match=r"number of steps 6 .* and 5"):
        check_comparable([metrics, replace(metrics, steps=5)])
    finer = replace(metrics, data={**metrics.data, "points": [32, 32]})
    with pytest.raises(SplatopError, match="points of the test data"):
        check_comparable([metrics, finer])


@pytest.mark.slow
def test_ablations_change_the_stepper_and_keep_the_weights(data):
    model = surrogate()
    u = jnp.asarray(data.array[0, 0])
    known = dict(model.spec.coefficients)
    changed = {
        "jets spectral": Ablation(jets="spectral"),
        "anchors 16": Ablation(anchors=16),
        "window 2": Ablation(window=2),
        "cutoff 3": Ablation(cutoff=3.0),
        "coupling sequential": Ablation(coupling="sequential"),
        "substeps 2": Ablation(substeps=2),
        "without filter": Ablation(without="filter"),
        "jets finite-difference": Ablation(jets="finite-difference"),
    }
    before = np.asarray(model.stepper(u, known))
    for label, ablation in changed.items():
        assert ablation.label == label
        other = ablate(model, ablation)
        assert other.stepper.network is model.stepper.network
        after = np.asarray(other.stepper(u, known))
        assert np.isfinite(after).all()
        # Exact derivatives and denser lattices agree with the model's to rounding, nearly.
        same = label in ("jets spectral", "anchors 16")
        assert np.allclose(after, before, atol=1e-3) if same else np.abs(after - before).max() > 0
    assert ablate(model, Ablation()) is model
    alone = ablate(model, Ablation(without="operator"))
    np.testing.assert_array_equal(alone.stepper(u, known), model.physics_only().stepper(u, known))
    bare = ablate(model, Ablation(without="physics"))
    assert isinstance(bare.stepper, OperatorAlone)
    np.testing.assert_allclose(
        bare.stepper(u, known), u + model.stepper.correction(u, known), rtol=1e-6
    )


def test_cutting_the_band_removes_its_modes(data):
    # Data have modes up to 5; a cutoff of 2 leaves only those below in the physics.
    narrow = ablate(surrogate().physics_only(), Ablation(cutoff=2.0))
    state = np.asarray(narrow.stepper(jnp.asarray(data.array[0, 0]), {"v": 0.025}))[0]
    modes = np.abs(np.fft.fft2(state, norm="forward"))
    k = np.hypot(*np.meshgrid(*[np.fft.fftfreq(POINTS, 1 / POINTS)] * 2))
    assert modes[k > 2.01].max() < 1e-6 < modes[k <= 2].max()


def test_ablations_that_make_no_sense_are_refused():
    with pytest.raises(SplatopError, match="unknown part to leave out 'filters': did you mean"):
        Ablation(without="filters")
    with pytest.raises(SplatopError, match="expected substeps above 0 and up to 1,000,000, got 0"):
        Ablation(substeps=0)
    with pytest.raises(SplatopError, match="unknown derivative provider"):
        ablate(surrogate(), Ablation(jets="exact"))
    with pytest.raises(SplatopError, match="got a 'fno' model"):
        ablate(model_of(Scaled(1.0)), Ablation(cutoff=3.0))
    with pytest.raises(SplatopError, match="it has no operator"):
        ablate(surrogate().physics_only(), Ablation(without="physics"))
    assert Ablation(without="filter", substeps=2).metrics_file == (
        "metrics.without-filter-substeps-2.json"
    )


def test_published_numbers_are_the_papers():
    burgers = published_rollout("burgers2d")
    assert burgers["surrogate"].rl2 == (0.057, 0.023)
    assert burgers["resnet"].psnr == (49.83, 0.82)
    assert burgers["fno"].label == "published FNO"
    assert published_rollout("burgers2d_conservative") == published_rollout(None) == {}
    assert published_representation("advection2d")["e_lap"] == 6.51e-3
    assert published_local_rendering("burgers2d")["speedup"] == 13.9
    assert published_identification() == {"v": 0.0034, "D": 0.0284}


def run(*arguments: object):
    return CliRunner().invoke(app, ["evaluate", *map(str, arguments)])


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two run folders of one benchmark, one of another, and an unfinished one."""
    root = tmp_path_factory.mktemp("runs")
    for name in ("mine", "fno", "burgers", "unfinished"):
        (root / name).mkdir()
    save_model(root / "mine" / "model.safetensors", surrogate())
    save_model(
        root / "fno" / "model.safetensors", Model(spec_of("fno"), build_model(spec_of("fno")))
    )
    other = spec_of("fno", get_benchmark("burgers2d"))
    save_model(root / "burgers" / "model.safetensors", Model(other, build_model(other)))
    return root


@pytest.mark.slow
def test_command_writes_metrics_and_prints_published_numbers_beside(runs):
    size = ("--points", POINTS, "--trajectories", 2, "--steps", 2)
    result = run(runs / "mine", runs / "fno", *size)
    assert result.exit_code == 0, result.output
    for text in ("Surrogate", "Physics alone", "published FNO", "0.0890", "paper's numbers"):
        assert text in result.output
    mine = load_metrics(runs / "mine")
    assert mine.physics_alone is not None
    assert (mine.steps, mine.trajectories, mine.data["points"]) == (2, 2, [POINTS, POINTS])
    # An ablation does not overwrite what the model itself reached.
    before = (runs / "mine" / "metrics.json").read_text()
    result = run(runs / "mine", *size, "--without", "filter", "--json")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.output)
    assert printed["model"]["ablation"] == "without filter"
    assert (runs / "mine" / "metrics.json").read_text() == before
    held = json.loads((runs / "mine" / "metrics.without-filter.json").read_text())
    assert held == printed


def test_command_on_a_data_file(runs, data, tmp_path):
    save_trajectories(tmp_path / "test.h5", data)
    result = run(
        runs / "fno", "--data", tmp_path / "test.h5", "--trajectories", 1, "--steps", 2,
        "--json", "--out", tmp_path / "out.json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    printed = json.loads(result.output)
    assert printed == json.loads((tmp_path / "out.json").read_text())
    assert printed["trajectories"] == 1
    result = run(runs / "fno", "--data", tmp_path / "test.h5", "--points", 32)
    assert "only for a generated test split" in str(result.exception)


def test_command_refuses_bad_input(runs, tmp_path):
    for arguments, message in (
        ([runs / "unfinished"], "folder without model.safetensors"),
        ([runs / "mine", runs / "burgers"], "models of one benchmark in one comparison"),
        ([runs / "mine", runs / "mine"], "each model once"),
        ([runs / "fno", "--without", "filter"], "got a 'fno' model"),
        ([runs / "mine", "--jets", "spectrall"], "did you mean 'spectral'"),
    ):
        result = run(*arguments, "--points", POINTS)
        assert isinstance(result.exception, SplatopError)
        assert message in str(result.exception)


@pytest.mark.slow
def test_unknown_coefficients_are_identified_from_the_first_frames():
    benchmark = get_benchmark("unknown_advection_diffusion2d").with_points(24)
    spec = replace(
        spec_of("physics", benchmark), unknown=("v", "D"), coefficients={},
        numerics=Numerics("box", (5.0,), 0.0, (16, 16), 8),
    )  # fmt: skip
    test_set = ReferenceTrajectories(benchmark, trajectories=2, steps=8)
    found = evaluate(Model(spec, build_model(spec)), test_set, steps=8, also=())
    errors = found.coefficients["relative_error"]
    # Exact data in float32, seven frames: the paper's regression reaches 0.3 % and 3 %.
    assert errors["v"] < 1e-4
    assert errors["D"] < 1e-2
    assert found.coefficients["true"]["v"] == pytest.approx(test_set.coefficients["v"])
    # With them the physics follows the reference. The fastest mode turns by v 2π 10 = 1.6 at most
    # per step, 0.2 per substep, where RK4 is off by 0.2^5/120 = 3e-6: 2e-4 after 64 substeps.
    assert found.rl2_mean is not None
    assert found.rl2_mean < 1e-3


@pytest.mark.slow
def test_the_example_of_the_docs(tmp_path, monkeypatch, capsys):
    page = (Path(__file__).parent.parent / "docs" / "evaluation.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    numerics = Numerics("box", (8.0,), 0.0, (24, 24), 2)
    spec = replace(spec_of("surrogate", get_benchmark("burgers2d")), numerics=numerics)
    (tmp_path / "runs" / "burgers").mkdir(parents=True)
    model = Model(spec, build_model(spec))  # an untrained operator adds nothing
    save_model(tmp_path / "runs" / "burgers" / "model.safetensors", model)
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    composite, alone = map(float, capsys.readouterr().out.split())
    assert 0 < composite < 0.05  # the modes that Burgers makes beyond 8
    assert composite == pytest.approx(alone, rel=1e-3)

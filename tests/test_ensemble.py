"""Ensembles: every member as if trained alone, their mean, their spread."""

import json
import os
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from command import run, same_run, tensors, train_arguments
from splatop.data import ArrayTrajectories
from splatop.ensemble import Ensemble
from splatop.errors import SplatopError
from splatop.evaluate import evaluate, load_metrics, save_metrics
from splatop.evaluate.ablations import Ablation, ablate
from splatop.grid import Grid
from splatop.model import Model, ensemble_of, load_model, save_model
from splatop.report import write_report
from splatop.stepper import rollout
from splatop.training import Problem, preset, train
from test_model import SPEC, field, made, spec_of

SMALL = {
    **{"points": "16", "trajectories": "3", "data_steps": "6", "hidden": "2", "modes": "3"},
    **{"blocks": "1", "batch": "3", "horizon": "2", "phases": "0:30", "warmup": "2"},
    **{"substeps": "1", "checkpoint_every": "10", "keep_if_better": "no", "rate": "1e-3"},
}
# The same numbers in another order of summation. Where a gradient is nothing but rounding, Adam
# still moves the weight by a part of its rate of 1e-3 in every step: one whole step of the thirty.
WEIGHTS = 1e-3
# What those weights multiply is rounding, too, so predictions agree far better.
FLOAT32 = 1e-5


def settings(**changes):
    chosen = preset("smoke").with_overrides(SMALL)
    return replace(chosen, **changes)


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """The folder of an ensemble of the seeds 4 and 5."""
    folder = tmp_path_factory.mktemp("together") / "run"
    train(folder, Problem(benchmark="advection2d"), settings(seed=4, seeds=2))
    return folder


def three() -> Model:
    return ensemble_of([made(seed=k) for k in range(3)])


def arrays(stepper) -> list[np.ndarray]:
    return [np.asarray(a) for a in jax.tree.leaves(eqx.filter(stepper, eqx.is_inexact_array))]


def same_as_alone(
    tmp_path, together: Model, weights: float = WEIGHTS, step: float = FLOAT32, **changes
) -> None:
    """Compare the second member with a training of its seed."""
    alone = train(
        tmp_path / "alone",
        Problem(benchmark="advection2d"),
        settings(seed=5, data_seed=4, **changes),
    )
    member = together.members[1]
    for one, other in zip(arrays(member.stepper), arrays(alone.stepper), strict=True):
        np.testing.assert_allclose(one, other, atol=weights)
    np.testing.assert_allclose(member.step(field()), alone.step(field()), atol=step)
    # The seed matters: the members are different models.
    first, second = (arrays(m.stepper.network) for m in together.members)
    assert max(np.abs(a - b).max() for a, b in zip(first, second, strict=True)) > 0.05


@pytest.mark.slow
def test_a_member_is_the_model_of_its_seed_trained_alone(tmp_path, together):
    model = load_model(together)
    assert isinstance(model.stepper, Ensemble)
    assert model.record["seed"] == [4, 5]
    same_as_alone(tmp_path, model)


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{"model": "fno"}, {"encoder": "unet", "anchors": 8}])
def test_the_same_for_a_network_alone_and_for_a_learned_encoder(tmp_path, changes):
    changes = {**changes, "encoder_steps": 4, "encoder_batch": 2, "phases": ((0, 3),)}
    problem = Problem(benchmark="advection2d")
    trained = train(tmp_path / "run", problem, settings(seed=4, seeds=2, **changes))
    assert eqx.tree_equal(load_model(tmp_path / "run").stepper, trained.stepper)
    # The amplitudes' solve has more rounding, and Adam follows the sign of it where a bias has no
    # gradient, which shifts a prediction as a whole: in three steps at most three times the rate.
    same_as_alone(tmp_path, trained, weights=3e-3, step=1e-3, **changes)


@pytest.mark.slow
def test_an_interrupted_ensemble_resumes_to_the_same_bits(tmp_path, together):
    problem, chosen = Problem(benchmark="advection2d"), settings(seed=4, seeds=2)

    def stop(stage, step, steps, loss, rate):
        if step == 25:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "broken", problem, chosen, report=stop)
    train(tmp_path / "broken", problem, chosen, resume=True)
    same_run(tmp_path / "broken", together)


@pytest.mark.slow
def test_members_are_spread_over_devices(tmp_path):
    two = {"XLA_FLAGS": f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=2"}
    arguments = {"phases": "0:6", "checkpoint_every": 3, "rate": 1e-3}
    code, _, err = run(*train_arguments(tmp_path / "one", "--seeds", "2", **arguments))
    assert code == 0, err
    code, _, err = run(*train_arguments(tmp_path / "two", "--seeds", "2", **arguments), **two)
    assert code == 0, err
    left, right = tensors(tmp_path / "one"), tensors(tmp_path / "two")
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_allclose(left[name], right[name], atol=WEIGHTS)
    code, _, err = run(*train_arguments(tmp_path / "three", "--seeds", "3", **arguments), **two)
    assert code == 1
    assert "use a multiple of 2" in err


@pytest.mark.slow
def test_a_step_is_the_mean_of_the_members():
    model = three()
    steps = [one.step(field()) for one in model.members]
    np.testing.assert_allclose(model.step(field()), np.mean(steps, axis=0), atol=FLOAT32)
    states = jnp.stack([field(), 2 * field(), -field()])
    each = model.stepper.each(states, model.complete({}))
    for one, u, found in zip(model.members, states, each, strict=True):
        np.testing.assert_allclose(found, one.step(u), atol=2 * FLOAT32)


@pytest.mark.parametrize("kind", ["surrogate", "fno", pytest.param("unet", marks=pytest.mark.slow)])
def test_the_file_holds_all_members(tmp_path, kind):
    model = ensemble_of([made(spec_of(kind), seed=k) for k in range(3)])
    loaded = load_model(save_model(tmp_path / "m.safetensors", model))
    assert eqx.tree_equal(loaded.stepper, model.stepper)
    assert loaded.parameters == 3 * made(spec_of(kind)).parameters
    assert (loaded.physics is not None) == (kind == "surrogate")


def test_ablations_reach_every_member():
    model = ablate(three(), Ablation(substeps=2))
    assert [m.physics.substeps for m in model.members] == [2, 2, 2]
    changed = ablate(three(), Ablation(coupling="sequential"))
    assert [m.stepper.coupling for m in changed.members] == ["sequential"] * 3


@pytest.mark.slow
def test_spread_is_measured_and_drawn(tmp_path):
    model = three()
    start = np.asarray(field())
    truth = np.asarray(rollout(model.physics, field(), model.complete({}), steps=5))
    data = ArrayTrajectories(
        np.concatenate([start[None], truth])[None],
        Grid((16, 16), (1.0, 1.0)),
        dt=SPEC.dt,
        fields=("u",),
        coefficients={},
    )
    metrics = evaluate(model, data, steps=5, also=())
    found = metrics.ensemble
    assert found is not None
    curves = np.array(found["rl2_curves"])
    assert curves.shape == (3, 5)
    for one, curve in zip(model.members, curves, strict=True):
        alone = evaluate(one, data, steps=5, also=())
        np.testing.assert_allclose(curve, alone.rl2_curve, rtol=1e-4)
    # The spread by hand: the deviation over members, relative to the reference.
    free = np.stack([one.rollout(start, steps=5) for one in model.members])
    deviation = np.sqrt((free.std(axis=0) ** 2).mean(axis=(1, 2, 3)))
    expected = deviation / np.sqrt((truth**2).mean(axis=(1, 2, 3)))
    np.testing.assert_allclose(found["spread_curve"], expected, rtol=1e-3)
    folder = tmp_path / "run"
    folder.mkdir()
    save_model(folder / "model.safetensors", model)
    save_metrics(folder / "metrics.json", metrics)
    assert load_metrics(folder).ensemble == found
    page = write_report([folder], tmp_path / "report.html").path.read_text()
    assert "spread of 3 members" in page
    assert "Each of 3 members" in page


def test_metrics_written_before_there_were_ensembles_are_read(tmp_path):
    truth = np.broadcast_to(np.asarray(field()), (1, 4, 1, 16, 16))
    grid = Grid((16, 16), (1.0, 1.0))
    data = ArrayTrajectories(np.array(truth), grid, dt=0.5, fields=("u",), coefficients={})
    held = evaluate(made(), data, steps=3, also=()).as_dict()
    del held["ensemble"]
    (tmp_path / "metrics.json").write_text(json.dumps(held))
    assert load_metrics(tmp_path).ensemble is None


def test_refuses_what_makes_no_ensemble():
    with pytest.raises(SplatopError, match="at least one seed"):
        settings(seeds=0)
    with pytest.raises(SplatopError, match="physics without a network"):
        settings(seeds=2, model="physics")
    with pytest.raises(SplatopError, match="one description"):
        ensemble_of([made(), made(replace(SPEC, dt=0.25))])

"""Unknown coefficients end to end: identified from frames, never taken from the data set."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from splatop.benchmarks import get_benchmark
from splatop.data import ArrayTrajectories
from splatop.evaluate import ReferenceTrajectories, evaluate
from splatop.evaluate.on_demand import SomeTrajectories
from splatop.stepper import rollout
from splatop.training import Problem, loaded, preset, train

NAME = "unknown_advection_diffusion2d"
SIZES = {
    "points": "24", "trajectories": "6", "data_steps": "12", "batch": "4", "horizon": "3",
    "modes": "6", "blocks": "2", "phases": "0:12", "rate": "1e-2", "warmup": "2",
}  # fmt: skip
# The operator stays, whether or not so little training lowers the error: it is what is tested.
SETTINGS = replace(preset("smoke", NAME).with_overrides(SIZES), keep_if_better=False)


def poisoned(data) -> ArrayTrajectories:
    """The same frames, with coefficients that would ruin whatever looked at them."""
    frames = np.stack([data.window(b, 0, data.frames) for b in range(data.trajectories)])
    return ArrayTrajectories(
        frames,
        data.grid,
        dt=data.dt,
        fields=data.fields,
        coefficients={name: np.full_like(v, 1e3) for name, v in data.coefficients.items()},
        attributes=data.attributes,
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return train(tmp_path_factory.mktemp("run") / "run", Problem(benchmark=NAME), SETTINGS)


@pytest.fixture(scope="module")
def tests():
    reference = ReferenceTrajectories(get_benchmark(NAME), trajectories=2, steps=16, points=24)
    return SomeTrajectories(poisoned(reference), range(2)), reference


@pytest.mark.slow
def test_true_coefficients_never_reach_training(model, tmp_path, monkeypatch):
    honest = loaded.generate
    monkeypatch.setattr(loaded, "generate", lambda *a, **k: poisoned(honest(*a, **k)))
    blind = train(tmp_path / "run", Problem(benchmark=NAME), SETTINGS)
    assert blind.spec == model.spec
    for ours, theirs in zip(
        jax.tree.leaves(blind.stepper), jax.tree.leaves(model.stepper), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_true_coefficients_never_reach_evaluation(model, tests):
    blind, honest = (evaluate(model, data, steps=16, also=()) for data in tests)
    np.testing.assert_array_equal(blind.rl2_curve, honest.rl2_curve)
    assert blind.coefficients["estimated"] == honest.coefficients["estimated"]
    assert blind.coefficients["relative_error"]["v"] > 0.99  # measured against the poison
    assert honest.coefficients["relative_error"]["v"] < 1e-3


def test_the_network_sees_coefficients_standardised_by_the_training_estimates(model):
    data = loaded.generate(
        get_benchmark(NAME).with_points(24), split="train", trajectories=6, steps=12
    )
    conditioning = model.stepper.conditioning
    assert set(conditioning.names) == {"v", "D"}
    for name, mean, std in zip(
        conditioning.names, conditioning.mean, conditioning.std, strict=True
    ):
        # Estimates of clean frames are the truth to a part in a hundred.
        assert mean == pytest.approx(data.coefficients[name].mean(), rel=1e-2)
        assert std == pytest.approx(data.coefficients[name].std(), rel=5e-2)


def test_rollouts_with_estimates_are_as_good_as_with_the_truth(model, tests):
    _, reference = tests
    found = evaluate(model, reference, steps=16, also=())
    errors = []
    for index in range(2):
        own = {k: jnp.asarray(v[index]) for k, v in reference.coefficients.items()}
        states = jnp.asarray(reference.window(index, 0, 17))
        predicted = rollout(model.stepper, states[0], own, steps=16)
        distance = jnp.linalg.norm((predicted - states[1:]).reshape(16, -1), axis=1)
        errors.append(distance / jnp.linalg.norm(states[1:].reshape(16, -1), axis=1))
    assert found.rl2_mean <= 1.5 * float(np.mean(errors))

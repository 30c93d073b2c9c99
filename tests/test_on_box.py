"""Baselines on shapes: networks of grids on the box around the points."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from splatop.domain import Condition, Domain
from splatop.model import Model, ModelSpec, build_model, load_model, save_model
from splatop.operators.on_box import OnBox, sides_for
from splatop.points import random_points
from splatop.shapes import Disk

DISK = Disk(0.5, 0.5, 0.4)
DOMAIN = replace(Domain.box((1.0, 1.0), periodic=(False, False)), shape=DISK).with_conditions(
    {("disk1", "u"): Condition("value")}
)


def places(count: int, seed: int = 0):
    return random_points(DISK, count, seed, lengths=(1.0, 1.0), origin=(0.0, 0.0))


@pytest.mark.parametrize("padding", [0, 3])
def test_linear_fields_come_back_from_the_box(padding):
    at = places(600)
    network = lambda u: u.at[:-1].multiply(u[-1])  # noqa: E731  (what is outside becomes 0)
    box = OnBox(network, DOMAIN, at, (28, 28), padding)
    u = jnp.asarray(np.stack([1 + at.places[:, 0], at.places[:, 1]]), jnp.float32)
    inner = DISK.distance(at.places) < -0.08  # all corners of its cell lie between the points
    found = np.asarray(box(u))
    assert inner.sum() > 200
    # Linear interpolation holds linear fields to single precision.
    assert np.abs(found - np.asarray(u))[:, inner].max() < 1e-6
    outer = DISK.distance(at.places) > -0.005  # of the cells at the edge a part lies outside
    assert (found[:, outer] < np.asarray(u)[:, outer]).mean() > 0.8


@pytest.mark.parametrize("kind", ["fno", "unet", "resnet"])
def test_baselines_on_a_shape_are_built_kept_and_moved(kind, tmp_path):
    at, other = places(300), places(400, seed=3)
    spec = ModelSpec(
        kind=kind,
        equation="dt(u) = D*lap(u)",
        fields=("u",),
        lengths=(1.0, 1.0),
        origin=(0.0, 0.0),
        dt=0.1,
        coefficients={"D": 0.01},
        domain=DOMAIN,
        layout=at,
    )
    assert sides_for(DOMAIN, at) == (20, 20)  # 300 points in half of the disk's box: 19.5 across
    model = Model(spec, build_model(spec, key=jax.random.key(1)))
    u = jnp.asarray(np.cos(3 * at.places[:, 0]), jnp.float32)[None]
    after = model.rollout(u, steps=2)
    assert np.isfinite(after).all()
    again = load_model(save_model(tmp_path / "m.safetensors", model))
    assert np.array_equal(again.rollout(u, steps=2), after)
    there = model.at(other).rollout(jnp.ones((1, 400)), steps=1)
    assert there.shape == (1, 1, 400)

"""Primitives: covariances, rotations and the paper's parameterisation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import random_gaussians, random_raw
from splatop.errors import SplatopError
from splatop.gaussians import (
    BoundedScales,
    ClippedScales,
    GaussianLattice,
    Gaussians,
    anchor_positions,
    gaussians_from_raw,
    geometry_outputs,
    rotation_2d,
    rotation_3d,
)


def test_a_quarter_turn_takes_x_to_y():
    turn = rotation_2d(jnp.asarray([np.pi / 2]))[0]
    np.testing.assert_allclose(turn @ jnp.asarray([1.0, 0.0]), [0, 1], atol=1e-7)


def test_a_quaternion_turns_about_its_axis():
    # (cos 45°, 0, 0, sin 45°) is a quarter turn about z; its length does not matter.
    turn = rotation_3d(jnp.asarray([[2.0, 0.0, 0.0, 2.0]]))[0]
    np.testing.assert_allclose(turn @ jnp.eye(3), [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-6)


@given(st.lists(st.floats(-2, 2), min_size=4, max_size=4).filter(lambda q: np.linalg.norm(q) > 0.1))
def test_quaternions_give_proper_rotations(q):
    turn = np.asarray(rotation_3d(jnp.asarray([q]))[0], float)
    np.testing.assert_allclose(turn @ turn.T, np.eye(3), atol=1e-5)
    assert np.linalg.det(turn) == pytest.approx(1, abs=1e-5)


def test_the_zero_quaternion_has_a_finite_gradient():
    gradient = jax.grad(lambda q: rotation_3d(q).sum())(jnp.zeros((1, 4)))
    assert np.isfinite(gradient).all()


@pytest.mark.usefixtures("x64")
def test_covariance_has_the_scales_along_the_turned_axes():
    turn = rotation_2d(jnp.asarray([0.4]))
    g = Gaussians(
        jnp.full((1, 2), 0.5), turn, jnp.asarray([[0.1, 0.02]]), jnp.ones((1, 1)), jnp.zeros(1)
    )
    long_axis = jnp.asarray([np.cos(0.4), np.sin(0.4)])
    np.testing.assert_allclose(g.covariance()[0] @ long_axis, 0.1**2 * long_axis, rtol=1e-12)
    np.testing.assert_allclose(g.precision()[0] @ g.covariance()[0], np.eye(2), atol=1e-12)


@pytest.mark.parametrize("anchors", [(5,), (4, 6), (3, 4, 5)])
def test_zeros_are_the_isotropic_lattice(anchors):
    dims = len(anchors)
    raw = jnp.zeros((geometry_outputs(dims) + 2, *anchors))
    g = gaussians_from_raw(raw, scales=ClippedScales(), channels=2)
    np.testing.assert_allclose(g.center, anchor_positions(anchors), rtol=1e-6)
    expected = np.clip(np.broadcast_to([1 / a for a in anchors], g.scale.shape), 0.008, 0.25)
    np.testing.assert_allclose(g.scale, expected, rtol=1e-6)
    np.testing.assert_allclose(
        g.rotation, np.broadcast_to(np.eye(dims), g.rotation.shape), atol=1e-6
    )
    assert g.amplitude.shape == (np.prod(anchors), 2)


@pytest.mark.parametrize("anchors", [(6,), (4, 6), (4, 5, 6)])
def test_centres_stay_in_their_cells(anchors):
    raw = 50 * random_raw(anchors)
    g = gaussians_from_raw(raw, scales=BoundedScales(), channels=1)
    away = np.asarray(g.center) - anchor_positions(anchors)
    away -= np.round(away)
    assert (np.abs(away) <= 0.5 / np.asarray(anchors) + 1e-6).all()
    assert (np.abs(away) > 0.4 / np.asarray(anchors)).any()  # and reach to the edges
    assert (np.asarray(g.center) >= 0).all()
    assert (np.asarray(g.center) < 1).all()


def test_scales_are_clipped_as_the_paper_says():
    spacing = jnp.asarray([0.05, 0.05])
    raw = jnp.asarray([[-9.0, 9.0], [0.0, 0.5]])
    found = ClippedScales()(raw, spacing)
    np.testing.assert_allclose(found, [[0.008, 0.25], [0.05, 0.05 * np.exp(0.5)]], rtol=1e-6)


def test_bounded_scales_are_bounded_and_keep_a_gradient():
    scales = BoundedScales(ratio=0.8, span=0.9)
    spacing = jnp.asarray([0.05])
    low, middle, high = (float(scales(jnp.asarray([[x]]), spacing)[0, 0]) for x in (-30, 0, 30))
    assert middle == pytest.approx(0.04)
    assert low == pytest.approx(0.04 * np.exp(-0.9))
    assert high == pytest.approx(0.04 * np.exp(0.9))
    assert float(jax.grad(lambda x: scales(x, spacing).sum())(jnp.asarray([[2.0]]))[0, 0]) > 1e-3


def test_a_lattice_is_its_primitives_written_out():
    amplitude = jnp.arange(24.0).reshape(2, 3, 4)
    explicit = GaussianLattice(amplitude, jnp.asarray([1.0, 2.0]), 1.1).explicit()
    assert explicit.anchors == (3, 4)
    np.testing.assert_array_equal(explicit.amplitude[:, 1].reshape(3, 4), amplitude[1])
    np.testing.assert_allclose(explicit.scale[0], [1.1 / 3, 1.1 / 4], rtol=1e-6)
    # primitive (1, 2) sits at the centre of cell (1, 2)
    np.testing.assert_allclose(explicit.center[1 * 4 + 2], [1.5 / 3, 2.5 / 4], rtol=1e-6)


@pytest.mark.parametrize("scale", [0.0, -0.1, 0.6, np.nan])
def test_scales_outside_the_range_are_refused(scale):
    g = random_gaussians((4, 4))
    with pytest.raises(SplatopError, match=r"expected scales in \(0, 0.5\]"):
        Gaussians(g.center, g.rotation, g.scale.at[3, 1].set(scale), g.amplitude, g.offset)


def test_one_primitive_per_anchor():
    g = random_gaussians((4, 4))
    with pytest.raises(SplatopError, match="one primitive for each of"):
        Gaussians(g.center, g.rotation, g.scale, g.amplitude, g.offset, (4, 5))


def test_checks_do_not_stop_a_trace():
    # The geometry is known, the amplitude is not, as in a least-squares solve inside jit.
    g = random_gaussians((4, 4))
    total = jax.jit(lambda a: g.with_amplitude(a, g.offset).amplitude.sum())(g.amplitude)
    assert float(total) == pytest.approx(float(g.amplitude.sum()), rel=1e-5)

"""Terms from values at scattered points of a disk, where heat is known in Bessel functions."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

import splatop
from splatop.data.held import as_trajectories
from splatop.discover.learn import learn
from splatop.equation import parse_partial_equation

D, RADIUS = 0.02, 0.4


@pytest.fixture(scope="module")
def heat():
    """Five modes of a disk with a cold edge, at 500 points."""
    drawn = np.random.default_rng(0).random((1200, 2))
    places = drawn[np.hypot(*(drawn - 0.5).T) < RADIUS][:500]
    r = np.hypot(*(places - 0.5).T) / RADIUS
    angle = np.arctan2(places[:, 1] - 0.5, places[:, 0] - 0.5)
    t = 0.05 * np.arange(16)
    u = np.zeros((len(t), len(places)))
    for order, which, size, turn in (
        (0, 0, 1.0, 0.0),
        (1, 0, 1.0, 0.3),
        (0, 1, 0.8, 0.0),
        (2, 0, 0.7, 1.0),
        (1, 1, 0.5, 2.0),
    ):
        k = scipy.special.jn_zeros(order, 2)[which]
        shape = scipy.special.jv(order, k * r) * np.cos(order * angle - turn)
        u += size * np.exp(-D * (k / RADIUS) ** 2 * t)[:, None] * shape
    reading = {
        "dt": 0.05,
        "lengths": 1.0,
        "origin": 0.0,
        "points": places,
        "shape": "disk(0.5, 0.5, 0.4)",
        "boundary": "disk1: u = 0",
    }
    return u[:, None].astype(np.float32), reading


@pytest.mark.slow
def test_diffusion_is_found_at_scattered_points(heat):
    frames, reading = heat
    found = splatop.discover(frames, "dt(u) = ?", **reading)
    assert found.trusted
    (term,) = found.terms
    assert term.text == "lap(u)"
    # Single precision, 6e-8 of u in each of 16 frames, of which diffusion changes a third.
    assert term.coefficient == pytest.approx(D, rel=1e-5)
    assert term.low < D < term.high


@pytest.mark.slow
def test_a_term_is_learned_at_scattered_points(heat):
    frames, reading = heat
    data = as_trajectories(frames, **reading)
    partial = parse_partial_equation("dt(u) = ?(lap(u))", dims=2)
    found = learn(data, partial, known=None, coefficients={}, steps=1)
    # Δu is good to some 1e-4 at the edge of a shape, so 1e-8 in energy there.
    assert 1 - found.explained < 1e-6
    made = np.asarray(found.term.values(jnp.asarray([[-10.0, 5.0]])))[0]
    assert made == pytest.approx([-0.2, 0.1], rel=1e-2)

"""Coarse models between walls: the projection onto few Gaussians, steps and training there."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import make_interp_spline

import splatop
from splatop.coarse import CoarseStepper, axis_words, coarse_points, expand, truncate
from splatop.domain import Domain
from splatop.errors import SplatopError
from splatop.grid import Grid
from splatop.operators import Convolutions

FINE, COARSE, LENGTH = 96, 24, 2.0


def along(points, word):
    return Grid((points,), (1.0,), layout=(word,)).fractions()[0]


@pytest.mark.parametrize("word", ["ends", "cells", "left"])
def test_a_smooth_field_goes_down_and_up_again_and_the_rest_is_left_out(word):
    """Neither the slope nor the value at the ends is zero: no wave would hold this field."""

    def smooth(x):
        return (1 + x**2 + np.sin(3 * x))[None]

    fine, coarse = along(FINE, word), along(COARSE, word)
    u = jnp.asarray(smooth(fine), jnp.float32)
    down = truncate(u, (COARSE,), (word,))
    # Float32 rounding of values of size 3, 2e-7; with one end alone the last fine points lie most
    # of a coarse cell beyond the last coarse sample, where it grows by several hundred.
    np.testing.assert_allclose(down, smooth(coarse), atol=2e-6)
    np.testing.assert_allclose(expand(down, (FINE,), (word,)), u, atol=1e-4)
    # A wave of 20 half-lengths is far above what 24 points hold: hardly any of it is kept, and
    # a second projection changes nothing.
    rough = jnp.asarray(np.sin(40 * np.pi * fine)[None], jnp.float32)
    kept = truncate(rough, (COARSE,), (word,))
    assert np.sqrt(np.mean(kept**2)) < 0.3 * np.sqrt(np.mean(rough**2))
    again = truncate(expand(kept, (FINE,), (word,)), (COARSE,), (word,))
    np.testing.assert_allclose(again, kept, atol=3e-5)


def test_rings_and_ends_mix_and_shapes_are_refused():
    domain = Domain.box((1.0, 2.0), periodic=(True, False))
    words = axis_words(domain, ("left", "ends"))
    assert words == ("ring", "ends")
    assert axis_words(Domain.box((1.0,)), ("left",)) == ()
    x, y = np.arange(32) / 32, along(64, "ends")
    u = np.cos(2 * np.pi * x)[:, None] * np.exp(y) + y**2
    down = truncate(jnp.asarray(u[None], jnp.float32), (16, 32), words)
    np.testing.assert_allclose(down[0], _at(u, y), atol=1e-4)
    with pytest.raises(SplatopError, match=r"at least 8 \(between two ends 24\).*leaves 8 x 16"):
        coarse_points(Grid((32, 64), (1.0, 2.0)), 4, words)


def _at(u, y):
    """The same field on 16 x 32 points, by splines through many samples."""
    return make_interp_spline(y, u[::2], k=7, axis=1)(along(32, "ends"))


def heat(points, frames, dt, *, seed=0):
    """u = 1 at one end and 0 at the other, and modes that decay: exact."""
    rng = np.random.default_rng(seed)
    x, t = LENGTH * along(points, "ends"), dt * np.arange(frames)
    u = np.broadcast_to(1 - x / LENGTH, (frames, points)).copy()
    for k in range(1, 5):
        rate = 0.05 * (k * np.pi / LENGTH) ** 2
        u += rng.normal() * np.exp(-rate * t)[:, None] * np.sin(k * np.pi * x / LENGTH)
    return u[:, None].astype(np.float32)


def fit_heat(data, **options):
    return splatop.fit(
        data,
        "dt(u) = D*lap(u)",
        coefficients={"D": 0.05},
        dt=0.1,
        lengths=(LENGTH,),
        boundary="x0: u = 1; x1: u = 0",
        sampling="ends",
        preset="smoke",
        **options,
    )


@pytest.mark.parametrize(
    "settings",
    [{"model": "physics"}, pytest.param({"phases": ((0, 4),), "batch": 4}, marks=pytest.mark.slow)],
)
def test_a_coarse_model_between_walls_is_trained_saved_and_rolled_out(settings, tmp_path):
    data = np.stack([heat(FINE, 25, 0.1, seed=seed) for seed in range(5)])
    fitted = fit_heat(data, coarse=4, stride=3, settings=settings)
    spec = fitted.model.spec
    assert (spec.coarse, spec.stride, spec.layout) == ((COARSE,), 3, ("ends",))
    assert isinstance(fitted.model.stepper, CoarseStepper)
    fitted.save(tmp_path / "model.safetensors")
    loaded = splatop.load(tmp_path / "model.safetensors")
    unseen = heat(FINE, 31, 0.1, seed=9)
    for one in (
        fitted.rollout(unseen[0], 10),
        splatop.rollout(loaded.stepper, jnp.asarray(unseen[0]), loaded.spec.coefficients, steps=10),
    ):
        # 12 Gaussians hold four half-waves to 1e-5 of their size.
        np.testing.assert_allclose(one, unseen[3::3], atol=2e-4)
    with pytest.raises(SplatopError, match=r"periodic box to guess the small scales.*leave out"):
        fit_heat(data, coarse=4, refine=True)


def test_convolutions_do_not_wrap_around_an_end():
    """What lies at one end is not seen at the other; with a ring it is."""
    u = np.zeros((1, 32), np.float32)
    u[0, 0] = 1.0
    answers = {}
    for closed in ((True,), (False,)):
        network = Convolutions(1, 1, hidden=4, blocks=2, closed=closed, key=jax.random.key(0))
        network = eqx.tree_at(lambda n: n.layers[-1].weight, network, replace_fn=jnp.ones_like)
        still, moved = (np.asarray(network(jnp.asarray(v)))[0] for v in (0 * u, u))
        answers[closed] = np.abs(moved - still)
    assert answers[(True,)][-1] > 1e-3
    assert answers[(False,)][-1] < 1e-7
    assert answers[(False,)][1] > 1e-3

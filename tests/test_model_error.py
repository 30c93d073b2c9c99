"""A model that is not exact: increments against dense linear algebra, and a wrong coefficient."""

import jax.numpy as jnp
import numpy as np
import pytest

from splatop import Observations, SplatopError, assimilate
from splatop.assimilate.model_error import MEMORY, ErrorScale, make_increments
from test_assimilate import BAND, BOX, DT, LENGTH, TRANSPORT, D, V, functions, prior

SCALE, SIGMA, FRAMES = 0.1, 0.02, 6
COUNT = 2 * BAND + 1


def seen_unknowns(x, t):
    """What each whitened unknown does to reports, `(n, 15 (1 + F))`: waves that begin at the first
    frame, and those that errors add after each step, which keep a share from step to step."""
    keeps = np.exp(-1 / MEMORY)
    std = prior().std[0]
    blocks = [functions(x, t) * std]
    for drawn in range(FRAMES):
        block = np.zeros((len(x), COUNT))
        for step in range(drawn, FRAMES):
            share = keeps ** (step - drawn) * (1 if drawn == 0 else np.sqrt(1 - keeps**2))
            elapsed = t - (step + 1) * DT
            there = elapsed > -1e-9
            block[there] += share * SCALE * functions(x[there], elapsed[there]) * std
        blocks.append(block)
    return np.concatenate(blocks, axis=1)


@pytest.mark.slow
def test_the_weak_constraint_is_dense_linear_algebra():
    rng = np.random.default_rng(8)
    n = 90
    x, t = rng.uniform(0, LENGTH, n), rng.integers(0, FRAMES + 1, n) * DT
    t[:2] = 0, FRAMES * DT
    h = seen_unknowns(x, t)
    values = h @ rng.normal(size=h.shape[1]) + SIGMA * rng.normal(size=n)
    found = assimilate(
        Observations(t, x, "u", values, sigma=SIGMA),
        TRANSPORT,
        coefficients={"v": V, "D": D},
        prior=prior(),
        model_error=SCALE,
        samples=1500,
        **BOX,
    )
    covariance = np.linalg.inv(np.eye(h.shape[1]) + h.T @ h / SIGMA**2)
    mean = covariance @ h.T @ values / SIGMA**2
    at, when = np.array([0.3, 1.1, 1.7, 0.9]), np.array([0.0, 0.5, 1.5, 1.25])
    rows = seen_unknowns(at, when)
    value, std = found.at(at, when)
    # Frames are exact to 2e-6, the normal equations are solved to 1e-5; fields have size 2.
    assert value == pytest.approx(rows @ mean, abs=2e-3)
    # 1,500 samples know a standard deviation to 1/sqrt(3000) = 1.8 %; five of these.
    assert std == pytest.approx(np.sqrt(np.diag(rows @ covariance @ rows.T)), rel=0.09)
    assert found.trusted


@pytest.fixture(scope="module")
def faster():
    """Waves that travel with V, analysed as if they were a tenth faster."""
    rng = np.random.default_rng(5)
    where = rng.uniform(0, LENGTH, 12)
    t, x = np.repeat(np.arange(13) * DT, 12), np.tile(where, 13)
    truth = prior().std[0] * rng.normal(size=COUNT)
    values = functions(x, t) @ truth + 0.02 * rng.normal(size=len(x))
    obs = Observations(t, x, "u", values, sigma=0.02)

    def analysed(**how):
        return assimilate(obs, TRANSPORT, coefficients={"v": 1.1 * V, "D": D}, **how, **BOX)

    return truth, analysed


def covered(found, truth, frame=-1):
    window = found.window
    grid = window.grid.coordinates()[0].ravel()
    error = window.mean[frame, 0] - functions(grid, np.full(len(grid), window.times[frame])) @ truth
    return np.mean(np.abs(error) <= 2 * window.std[frame, 0]), np.sqrt(np.mean(error**2))


@pytest.mark.slow
def test_a_wrong_coefficient_biases_the_strong_constraint_and_not_the_weak_one(faster):
    truth, analysed = faster
    strong, weak = analysed(prior=prior()), analysed(prior=prior(), model_error="auto")
    assert strong.check.ratio > 3
    assert not strong.trusted
    assert weak.trusted
    # A tenth of v moves waves of wavenumber q by 0.1 q v dt in a frame: 2 % of the field at q = 3.
    assert 0.003 < weak.errors.scale < 0.1
    (share, error), (narrow, biased) = covered(weak, truth), covered(strong, truth)
    assert share >= 0.9
    assert narrow < 0.6
    assert error < 0.6 * biased
    # Beyond the window the error goes on: its forecast is less sure than that of an exact model.
    assert weak.forecast(8).std[-1].mean() > 3 * strong.forecast(8).std[-1].mean()


@pytest.mark.slow
def test_an_exact_model_has_no_error_to_find(faster):
    truth, _ = faster
    rng = np.random.default_rng(6)
    t, x = np.repeat(np.arange(9) * DT, 12), np.tile(rng.uniform(0, LENGTH, 12), 9)
    values = functions(x, t) @ truth + 0.02 * rng.normal(size=len(x))
    found = assimilate(
        Observations(t, x, "u", values, sigma=0.02),
        TRANSPORT,
        coefficients={"v": V, "D": D},
        prior=prior(),
        model_error="auto",
        spread="none",
        **BOX,
    )
    # An error of 0.002 of the field's size 1.5 in each of 8 frames would add up to the noise.
    assert found.errors.scale < 0.003
    assert found.trusted


def test_increments_are_stationary_and_fade_after_the_window():
    made = make_increments(ErrorScale(0.5), np.array([[2.0, 1.0]]), steps=3, parts=2)
    keeps = np.exp(-1 / (2 * MEMORY))
    rows = [np.asarray(made.course(jnp.asarray(e), 5)) for e in np.eye(6, dtype=np.float32)]
    seen = np.stack(rows)[:, :, 0]  # (unknown, step) of the first number
    # Half a frame each: 0.5 * 2 / 2 for each step, alike by `keeps` from one to the next.
    assert np.sum(seen[:, :3] ** 2, axis=0) == pytest.approx(0.25, rel=1e-5)
    assert seen[:, 0] @ seen[:, 2] == pytest.approx(0.25 * keeps**2, rel=1e-5)
    assert seen[:, 4] == pytest.approx(seen[:, 2] * keeps**2, rel=1e-5)


@pytest.mark.parametrize("wrong", [0.0, -0.1, "much", np.nan])
def test_a_model_error_is_a_positive_share(wrong):
    obs = Observations(DT * np.arange(6), np.linspace(0, 1, 6), "u", np.arange(6.0), sigma=0.1)
    with pytest.raises(SplatopError, match="model error"):
        assimilate(obs, TRANSPORT, coefficients={"v": V, "D": D}, model_error=wrong, **BOX)

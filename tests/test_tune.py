"""Automatic numerics: whatever the equation and the spectrum, stable and covering the data."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from oracles import random_field, relative
from splatop.equation import parse_equation
from splatop.errors import SplatopError
from splatop.grid import Grid
from splatop.numerics import build_filter, build_physics
from splatop.spectral import PassThrough
from splatop.stability import RK4_REACH
from splatop.stepper import rollout
from splatop.tune import MOST_SUBSTEPS, TAIL, TIME_TOLERANCE, choose_numerics

# Each with the sizes of its coefficients at which a frame changes by a sensible amount.
EQUATIONS = {
    "dt(u) = -v*dx(u) - w*dy(u)": {"v": 0.1, "w": 0.05},
    "dt(u) = -v*dx(u) + D*lap(u)": {"v": 0.1, "D": 1e-3},
    "dt(u) = D*lap(u) + r*u*(1-u)": {"D": 1e-3, "r": 0.3},
    "dt(u) = -c*u*dx(u) + D*lap(u)": {"c": 0.02, "D": 2e-3},
    "dt(u) = -B*bilap(u) - D*lap(u)": {"B": 1e-6, "D": 1e-4},
}


def sample(points: int, band: int, seed: int) -> np.ndarray:
    grid = Grid.unit(points, 2)
    return np.stack([random_field(grid, band, seed=seed + i) for i in range(3)])


@pytest.mark.slow
@settings(max_examples=3, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    text=st.sampled_from(sorted(EQUATIONS)),
    scale=st.floats(0.3, 3.0),
    band=st.integers(2, 7),
    dt=st.sampled_from([0.1, 1.0]),
    seed=st.integers(0, 1000),
)
def test_stable_converged_and_covering_for_any_equation_and_spectrum(text, scale, band, dt, seed):
    equation = parse_equation(text, dims=2)
    coefficients = {name: scale * value for name, value in EQUATIONS[text].items()}
    frames = sample(32, band, seed)
    tuned = choose_numerics(equation, coefficients, frames, lengths=(1.0, 1.0), dt=dt)
    # The band holds the data: the filter leaves them as they are.
    filter = build_filter(tuned.numerics, 2)
    for u in frames:
        assert relative(filter(jnp.asarray(u), (1.0, 1.0)), u) <= TAIL + 1e-6
    # Reliable derivatives and a stable step.
    assert tuned.derivative_error <= 1e-5
    assert tuned.stability_reach <= RK4_REACH
    # Converged in time: four times the substeps change a frame by no more than was promised, and
    # rounding, which the band's highest derivative carries into the state.
    physics, finer = (
        build_physics(
            equation,
            replace(tuned.numerics, substeps=times * tuned.numerics.substeps),
            lengths=(1.0, 1.0),
            dt=dt,
        )
        for times in (1, 4)
    )
    u = jnp.asarray(frames[0])
    assert relative(physics(u, coefficients), finer(u, coefficients)) <= 3 * TIME_TOLERANCE + 1e-5
    # From states around 0.5 none of these equations leaves the finite numbers in 20 steps.
    last = rollout(physics, 0.5 + 0.1 * u, coefficients, steps=20)[-1]
    assert bool(jnp.all(jnp.isfinite(last)))


@pytest.mark.slow
def test_a_stiff_equation_gets_the_substeps_it_needs():
    equation = parse_equation("dt(u) = -B*bilap(u)", dims=2)
    frames = sample(24, 7, 0)
    tuned = choose_numerics(equation, {"B": 1e-5}, frames, lengths=(1.0, 1.0), dt=2.0)
    # RK4 would be unstable with fewer than a hundred; all of it is exact on Fourier modes.
    assert (tuned.numerics.integrator, tuned.numerics.substeps) == ("etdrk4", 1)
    assert int(tuned.reasons[-1].rsplit(" ", 1)[1]) > MOST_SUBSTEPS
    physics = build_physics(equation, tuned.numerics, lengths=(1.0, 1.0), dt=2.0)
    u = jnp.asarray(frames[0])
    # Mode k decays by exp(-(2π k)⁴ B t).
    modes = np.fft.fftfreq(24, 1 / 24)
    square = modes[:, None] ** 2 + modes[: 24 // 2 + 1] ** 2
    decay = np.exp(-((2 * np.pi) ** 4) * square**2 * 1e-5 * 2.0)
    exact = np.fft.irfft2(np.fft.rfft2(frames[0]) * decay, (24, 24))
    assert relative(physics(u, {"B": 1e-5}), exact) < 1e-4


@pytest.mark.slow
def test_noise_does_not_widen_the_band():
    equation = parse_equation("dt(u) = -v*dx(u)", dims=2)
    clean = sample(48, 5, 0)
    noisy = clean + 0.02 * np.random.default_rng(0).standard_normal(clean.shape).astype(np.float32)
    bands = [
        choose_numerics(equation, {"v": 0.1}, f, lengths=(1.0, 1.0), dt=1.0).band
        for f in (clean, noisy)
    ]
    assert bands[0] == (5, 5)
    assert max(bands[1]) <= 8


@pytest.mark.slow
def test_a_wider_spectrum_gets_a_wider_band_and_more_gaussians():
    equation = parse_equation("dt(u) = D*lap(u)", dims=2)
    few, many = (
        choose_numerics(equation, {"D": 1e-4}, sample(48, band, 0), lengths=(1.0, 1.0), dt=1.0)
        for band in (3, 9)
    )
    assert few.band == (3, 3)
    assert many.band == (9, 9)
    assert many.numerics.anchors > few.numerics.anchors


@pytest.mark.slow
def test_reasons_name_what_was_chosen():
    equation = parse_equation("dt(u) = -v*dx(u)", dims=2)
    tuned = choose_numerics(equation, {"v": 0.1}, sample(32, 4, 0), lengths=(1.0, 1.0), dt=1.0)
    said = "\n".join(tuned.reasons)
    assert "modes up to 4 x 4" in said
    assert f"{tuned.numerics.anchors[0]} x {tuned.numerics.anchors[1]} Gaussians" in said
    assert f"{tuned.numerics.substeps} of {tuned.numerics.integrator.upper()} per frame" in said
    assert not isinstance(build_filter(tuned.numerics, 2), PassThrough)


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        (np.zeros((0, 1, 8, 8)), "expected sample frames"),
        (np.zeros((2, 8, 8)), "expected sample frames"),
        (np.full((2, 1, 8, 8), np.nan), "finite"),
    ],
)
def test_frames_that_cannot_be_used_are_refused(frames, message):
    with pytest.raises(SplatopError, match=message):
        choose_numerics(
            parse_equation("dt(u) = lap(u)", dims=2), {}, frames, lengths=(1.0, 1.0), dt=1.0
        )


@pytest.mark.parametrize("scale", [0.0, 1e30, 1e-44])
def test_data_of_no_variation_or_extreme_size_are_refused(scale):
    wave = np.sin(2 * np.pi * np.arange(16) / 16)
    frames = np.broadcast_to(scale * wave, (2, 1, 16, 16)).astype(np.float32)
    with pytest.raises(SplatopError, match="expected data that vary in space"):
        choose_numerics(
            parse_equation("dt(u) = D*lap(u)", dims=2),
            {"D": 1e-3},
            frames,
            lengths=(1.0, 1.0),
            dt=0.1,
        )


def test_coefficients_beyond_single_precision_are_refused():
    wave = np.sin(2 * np.pi * np.arange(16) / 16)
    frames = np.broadcast_to(wave, (2, 1, 16, 16)).astype(np.float32)
    with pytest.raises(SplatopError, match="check the sizes of the coefficients"):
        choose_numerics(
            parse_equation("dt(u) = D*lap(u)", dims=2),
            {"D": 1e308},
            frames,
            lengths=(1.0, 1.0),
            dt=0.1,
        )

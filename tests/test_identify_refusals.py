"""What identification refuses, and what it warns of."""

import numpy as np
import pytest

from splatop.data import ArrayTrajectories
from splatop.equation import parse_equation
from splatop.errors import SplatopError
from splatop.grid import Grid
from splatop.identify import add_noise, identify, identify_trajectories, lattice_jets

JETS = lattice_jets((3,), Grid.unit(32, 1))
PLANE = lattice_jets((3, 3), Grid.unit(32, 2))
EQUATION = parse_equation("dt(u) = -v*dx(u) + D*d2x(u)", dims=1)


def exact(*, v=0.03, d=1e-4, frames=7, dt=1.0, modes=(1, 2, 3)) -> np.ndarray:
    """Frames `(T, 1, 32)` of waves that travel and decay."""
    x, t = np.arange(32) / 32, dt * np.arange(frames)[:, None]
    return sum(
        np.exp(-d * (2 * np.pi * k) ** 2 * t) * np.cos(2 * np.pi * k * (x - v * t) + k) / k
        for k in modes
    )[:, None]


def test_frames_that_do_not_fit():
    with pytest.raises(SplatopError, match=r"frames of shape \(T, 1, \*N\) in 1D, got \(7, 32\)"):
        identify(EQUATION, JETS, exact()[:, 0], 1.0)
    with pytest.raises(SplatopError, match="at least 2 frames"):
        identify(EQUATION, JETS, exact(frames=1), 1.0)
    with pytest.raises(SplatopError, match="positive time"):
        identify(EQUATION, JETS, exact(), 0.0)
    with pytest.raises(SplatopError, match="constant"):
        identify(EQUATION, JETS, np.ones((7, 1, 32)), 1.0)
    broken = exact()
    broken[3, 0, 5] = np.nan
    with pytest.raises(SplatopError, match=r"finite values in frames, got 1 .* \(3, 0, 5\)"):
        identify(EQUATION, JETS, broken, 1.0)


@pytest.mark.parametrize(("method", "needs"), [("paper", 3), ("weak", 5), ("trajectory", 3)])
def test_fewer_frames_than_a_method_needs(method, needs):
    with pytest.raises(SplatopError, match=f"at least {needs} frames for the {method} method"):
        identify(EQUATION, JETS, exact(frames=needs - 1), 1.0, method=method)


def test_names():
    with pytest.raises(SplatopError, match="unknown coefficient 'w'"):
        identify(EQUATION, JETS, exact(), 1.0, unknown=("w",))
    with pytest.raises(SplatopError, match="unknown coefficient 'nu'"):
        identify(EQUATION, JETS, exact(), 1.0, known={"nu": 1.0})
    with pytest.raises(SplatopError, match="either known or unknown"):
        identify(EQUATION, JETS, exact(), 1.0, unknown=("v", "D"), known={"v": 1.0})
    with pytest.raises(SplatopError, match="a value for D"):
        identify(EQUATION, JETS, exact(), 1.0, unknown=("v",))
    with pytest.raises(SplatopError, match="at least one unknown"):
        identify(EQUATION, JETS, exact(), 1.0, known={"v": 1.0, "D": 1.0})
    with pytest.raises(SplatopError, match="did you mean 'paper'"):
        identify(EQUATION, JETS, exact(), 1.0, method="papers")


@pytest.mark.parametrize("method", ["paper", "flow", "weak", "trajectory"])
def test_a_term_that_is_zero_on_the_data(method):
    equation = parse_equation("dt(u) = -v*dx(u) + w*dy(u)", dims=2)
    frames = np.repeat(exact()[..., None], 32, axis=-1)  # nothing varies along y
    with pytest.raises(SplatopError, match="the term of 'w' acts, it is zero"):
        identify(equation, PLANE, frames, 1.0, method=method)


def test_a_term_that_is_not_finite_on_the_data():
    equation = parse_equation("dt(u) = a*sqrt(u)", dims=1)
    with pytest.raises(SplatopError, match="finite on these frames"):
        identify(equation, JETS, exact(), 1.0)


def test_a_direction_that_does_not_act_is_left_out_of_the_average():
    equation = parse_equation("dt(u) = -v*(dx(u) + dy(u))", dims=2)
    frames = np.repeat(exact(d=0.0)[..., None], 32, axis=-1)
    found = identify(equation, PLANE, frames, 1.0, method="paper")
    assert found.estimates["v"] == pytest.approx(0.03, rel=1e-3)


def test_a_window_outside_the_data():
    data = ArrayTrajectories(exact()[None], Grid((32,), (1.0,)), dt=1.0, fields=("u",))
    with pytest.raises(SplatopError, match="7 that each"):
        identify_trajectories(EQUATION, None, data, frames=8)
    with pytest.raises(SplatopError, match="start earlier"):
        identify_trajectories(EQUATION, None, data, frames=5, start=3)


# --- warnings ------------------------------------------------------------------------------------


def warned(found, *words: str) -> bool:
    return any(all(word in text for word in words) for text in found.warnings)


def test_a_plausible_fit_warns_of_nothing():
    assert identify(EQUATION, JETS, exact(), 1.0, method="weak").warnings == ()


def test_terms_that_are_proportional():
    # On one wavelength growth and diffusion are the same thing.
    equation = parse_equation("dt(u) = D*d2x(u) + r*u", dims=1)
    found = identify(equation, JETS, exact(v=0.0, modes=(2,)), 1.0, method="weak")
    assert warned(found, "'D' and 'r' cannot be told apart")
    assert found.intervals["D"] == (-np.inf, np.inf)
    # Their sum is determined nevertheless.
    rate = found.estimates["r"] - found.estimates["D"] * (4 * np.pi) ** 2
    assert rate == pytest.approx(-1e-4 * (4 * np.pi) ** 2, rel=1e-3)


def test_a_term_that_is_absent():
    noisy = add_noise(exact(d=0.0), 0.05, 0)
    found = identify(EQUATION, JETS, noisy, 1.0, method="weak")
    assert warned(found, "'D' cannot be told from zero")
    assert not warned(found, "'v'")


def test_few_frames():
    assert warned(
        identify(EQUATION, JETS, exact(frames=5), 1.0, method="paper"), "5 frames", "order 4"
    )


def test_an_aliased_time_step():
    # Mode 2 and 3 turn by 2π·0.2·k = 2.5 and 3.8 rad per frame.
    found = identify(EQUATION, JETS, exact(v=0.2, modes=(2, 3)), 1.0, method="weak")
    assert warned(found, "aliased")


def test_a_wrong_time_step():
    # With v known, half the time step leaves half of the motion unexplained. (If every
    # coefficient is unknown a wrong time step just scales them, and cannot be seen.)
    found = identify(EQUATION, JETS, exact(), 0.5, known={"v": 0.03}, method="weak")
    assert warned(found, "unexplained", "dt = 0.5")


def test_noise_for_a_method_that_cannot_stand_it():
    found = identify(EQUATION, JETS, add_noise(exact(), 0.05, 0), 1.0, method="paper")
    assert warned(found, "noise", "use the trajectory method")


def test_gaussians_too_few_for_the_data():
    fine = exact(modes=(1, 12))
    found = identify(EQUATION, JETS, fine, 1.0, method="paper")
    assert warned(found, "20 Gaussians cannot carry", "reach 12")

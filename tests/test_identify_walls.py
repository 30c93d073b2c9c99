"""Coefficients behind frames between walls, followed in the space that obeys the conditions."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from scipy.fft import dctn, idctn
from scipy.special import jn_zeros, jv

from splatop.data import ArrayTrajectories
from splatop.domain import Condition, Domain
from splatop.equation import parse_equation
from splatop.equation.boundary import domain_from_text
from splatop.errors import SplatopError
from splatop.grid import Grid
from splatop.identify import add_noise, identify_trajectories
from splatop.identify.in_harmonics import Harmonics
from splatop.identify.in_space import in_space
from splatop.points import random_points
from splatop.shapes import Disk
from splatop.spaces import BoxSpace

D, POINTS, FRAMES, STEP = 0.02, 41, 21, 0.1
HEAT = "dt(u) = D*d2x(u)"


def heat_data(noise, layout="ends"):
    """Three sines that decay between cold walls, on [1, 3]: an analytic solution."""
    grid = Grid((POINTS,), (2.0,), (1.0,), (layout,))
    (x,) = grid.coordinates()
    t = STEP * np.arange(FRAMES)[:, None]
    frames = sum(
        size * np.exp(-D * (n * np.pi / 2) ** 2 * t) * np.sin(n * np.pi * (x - 1) / 2)
        for n, size in ((1, 1.0), (2, -0.7), (3, 0.5))
    )
    frames = frames + noise * np.std(frames) * np.random.default_rng(1).normal(size=frames.shape)
    data = ArrayTrajectories(frames[None, :, None], grid, dt=STEP, fields=("u",))
    data.domain = domain_from_text("x: u = 0", lengths=(2.0,), origin=(1.0,), fields=("u",))
    return data


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_the_method_follows_from_the_noise(noise):
    (found,) = identify_trajectories(parse_equation(HEAT, dims=1), None, heat_data(noise))
    assert found.method == ("trajectory" if noise else "flow")
    assert found.trusted, found.warnings
    low, high = found.intervals["D"]
    assert low <= D <= high
    # The error of a rate from white noise: three amplitudes of N samples at 21 times. For one sine
    # of amplitude a the information about D is (a k² )² N/2 Σ t² e^(-2 D k² t) / σ², less what the
    # unknown amplitude takes, which leaves about a quarter.
    k = np.arange(1, 4) * np.pi / 2
    t = STEP * np.arange(FRAMES)[:, None]
    decay = np.exp(-D * k**2 * t)
    slope = -t * k**2 * decay
    own = slope - decay * np.sum(slope * decay, 0) / np.sum(decay**2, 0)
    amplitudes = np.array([1.0, 0.7, 0.5])
    sigma = noise * np.std(heat_data(0.0).array)
    information = (POINTS - 1) / 2 * np.sum(amplitudes**2 * np.sum(own**2, 0))
    bound = sigma / np.sqrt(information)  # Cramér and Rao
    if noise:
        # It is the maximum of the likelihood: as sharp as can be, to the error of σ and the share
        # of the noise that the restraint of hidden harmonics keeps out.
        assert found.standard_errors["D"] == pytest.approx(bound, rel=0.1)
        assert abs(found.estimates["D"] - D) < 3 * bound
    else:
        assert found.estimates["D"] == pytest.approx(D, rel=1e-6)


def test_a_known_method_can_be_asked_for():
    data, equation = heat_data(0.0), parse_equation(HEAT, dims=1)
    for method in ("weak", "trajectory"):
        (found,) = identify_trajectories(equation, None, data, method=method)
        assert found.method == method
        assert found.estimates["D"] == pytest.approx(D, rel=1e-5)
    with pytest.raises(SplatopError, match="'flow', 'weak' or 'trajectory'"):
        identify_trajectories(equation, None, data, method="paper")
    with pytest.raises(SplatopError, match="trajectory"):
        identify_trajectories(equation, None, data, method="trajektory")


def test_a_harmonic_is_seen_as_often_as_its_decay_allows():
    data, equation = heat_data(0.02), parse_equation(HEAT, dims=1)
    times = STEP * np.arange(FRAMES)[None]
    with jax.enable_x64(True):
        space = in_space(Harmonics(equation, data, data.array, times, {"D": D}))
        seen = np.sort(space.frames_seen({"D": D}, STEP)[0])[::-1]
    k = np.arange(1, len(seen) + 1) * np.pi / 2
    exact = np.sum(np.exp(-2 * D * k**2 * times.T), axis=0)
    # The first harmonics are sines; the last ones are Gaussians at the walls, and seen once.
    np.testing.assert_allclose(seen[:6], exact[:6], rtol=1e-5)
    assert np.all((seen >= 1) & (seen <= FRAMES))


@pytest.mark.slow
def test_a_space_for_noisy_frames_holds_what_their_noise_hides():
    """Followed over all frames the equation adds it up: a right one in a disk was called wrong."""
    disk = Disk(0.5, 0.5, 0.4)
    at = random_points(disk, 2000, 0, lengths=(1.0, 1.0), origin=(0.0, 0.0))
    x, y = (at.places - 0.5).T
    r, angle = np.hypot(x, y) / 0.4, np.arctan2(y, x)
    modes = [(m, z) for m in range(4) for z in jn_zeros(m, 3)]
    clean = np.stack(
        [
            np.exp(2.5 * x)
            * sum(np.exp(-0.0025 * z**2 * k) * jv(m, z * r) * np.cos(m * angle) for m, z in modes)
            for k in range(8)
        ]
    )
    noisy = clean + 0.01 * clean.std() * np.random.default_rng(0).normal(size=clean.shape)
    box = Domain.box((1.0, 1.0), periodic=(False, False))
    cold = {("disk1", "u"): Condition("value", 0.0)}
    domain = replace(box, shape=disk).with_conditions(cold)
    data = ArrayTrajectories(noisy[None, :, None], at, dt=0.02, fields=("u",), domain=domain)
    equation, times = parse_equation("dt(u) = D*lap(u)", dims=2), 0.02 * np.arange(8)[None]
    with jax.enable_x64(True):
        space = Harmonics(equation, data, data.array, times, {"D": 0.02}).scheme.space
        fitted = np.squeeze(space.sample_matrix(at) @ (space.fit_matrix(at) @ clean.T))
    off = np.linalg.norm(fitted.T - clean) / np.linalg.norm(clean)
    assert off < 0.01 / np.sqrt(clean.size)  # less than noise leaves of all samples together


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_a_wrong_equation_is_not_trusted(noise):
    wrong = parse_equation("dt(u) = -r*u + a*u^2", dims=1)
    data = heat_data(noise)
    data.domain = domain_from_text("x: free", lengths=(2.0,), origin=(1.0,), fields=("u",))
    (found,) = identify_trajectories(wrong, None, data)
    assert not found.trusted


@pytest.mark.parametrize("layout", ["ends", "cells"])
def test_noise_of_samples_is_white_in_what_is_compared(layout):
    """Two fields with different conditions: `T fit` has orthonormal rows, for each of them."""
    domain = domain_from_text(
        "x0: u = 0, v = 1; x1: dn(u) = 0, v = 0", lengths=(2.0,), fields=("u", "v")
    )
    space = BoxSpace(domain, ("u", "v"), (12,))
    along = Grid((POINTS,), (2.0,), layout=(layout,)).fractions()
    (root,) = space.roots(along)
    samples = space._matrix(0, along[0], 0)
    # As large as the samples, whatever the numbers ...
    c = np.random.default_rng(0).normal(size=(2, space.shape[0]))
    np.testing.assert_allclose(
        np.linalg.norm(np.einsum("cij,cj->ci", root, c), axis=1),
        np.linalg.norm(np.einsum("cij,cj->ci", samples, c), axis=1),
        rtol=1e-10,
    )
    # ... and white: a fit drops directions below 1e-6, of which these have none.
    rows = root @ space._fit(0, along[0])
    for own, basis in zip(rows @ np.swapaxes(rows, 1, 2), space._bases(0), strict=True):
        np.testing.assert_allclose(own[: basis.size, : basis.size], np.eye(basis.size), atol=1e-6)


def test_what_is_set_at_an_edge_is_not_identified():
    """omega was: the frames in the space of a wrong one were no solution of anything."""
    x, t = np.linspace(0, 1, 17), 0.1 * np.arange(12)
    u = np.sin(2 * t)[:, None] * (1 - x)
    data = ArrayTrajectories(
        u[None, :, None], Grid((17,), (1.0,), layout=("ends",)), dt=0.1, fields=("u",), times=t
    )
    text = "x0: u = sin(omega*t); x1: u = 0"
    data.domain = domain_from_text(text, lengths=(1.0,), fields=("u",))
    equation = parse_equation("dt(u) = D*lap(u) + A*omega*cos(omega*t)*(1 - x)", dims=1)
    with pytest.raises(SplatopError, match=r"value of omega, which 'x0: u = sin.*' sets"):
        identify_trajectories(equation, None, data, known={"D": 0.1})


@pytest.mark.parametrize("seed", [0, 1])
def test_scales_that_a_bounded_grid_does_not_hold_are_left_to_the_weak_form(seed):
    """Cosines that decay, up to the shortest of the grid, as after random initial states: followed
    from frame to frame, D was lost."""
    n, true = 64, 1e-3
    k, x = np.pi * np.arange(n), (np.arange(n) + 0.5) / n
    sizes = np.random.default_rng(seed).standard_normal(n) * np.exp(-0.1 * np.arange(n))
    decay = np.exp(-true * k**2 * 0.02 * np.arange(30)[:, None])
    data = ArrayTrajectories(
        ((sizes * decay) @ np.cos(np.outer(k, x)))[None, :, None],
        Grid((n,), (1.0,), layout=("cells",)),
        dt=0.02,
        fields=("u",),
        domain=domain_from_text("x: dn(u) = 0", lengths=(1.0,), fields=("u",)),
    )
    (found,) = identify_trajectories(parse_equation("dt(u) = D*d2x(u)", dims=1), None, data)
    assert found.estimates["D"] == pytest.approx(true, rel=0.05)
    assert found.covers({"D": true})["D"]
    assert not found.trusted


def test_values_to_start_from_are_asked_for_where_a_coefficient_changes_nothing():
    """D begins at 0, where what divides it has no effect."""
    equation = parse_equation("dt(u) = D/(1 + a*u^2)*d2x(u)", dims=1)
    with pytest.raises(SplatopError, match=r"a without any effect .* at D=0, a=0: give values to"):
        identify_trajectories(equation, None, heat_data(0.0), unknown=("D", "a"), method="weak")
    undefined = parse_equation("dt(u) = D*log(u - 5)*d2x(u)", dims=1)
    with pytest.raises(SplatopError, match="expected an equation that is finite on these frames"):
        identify_trajectories(undefined, None, heat_data(0.0), unknown=("D",), method="weak")


def test_fronts_at_rest_between_walls_are_told_from_their_noise():
    """Once fronts stand, the two terms of Allen-Cahn all but cancel: products of the noise that a
    fit gathers at walls had moved both by a fifth."""
    n, frames, step, true = 48, 61, 0.1, {"D": 2e-3, "r": 1.0}
    k = np.pi * np.arange(n)
    squares = k[:, None] ** 2 + k**2
    modes = np.zeros((n, n))
    modes[:5, :5] = np.random.default_rng(2).normal(size=(5, 5))
    u = dctn(modes, type=3)
    u = 0.9 * u / np.abs(u).max()

    def rate(u):
        return idctn(-true["D"] * squares * dctn(u)) + true["r"] * (u - u**3)

    states = [u]
    for _ in range(frames - 1):
        for _ in range(5):  # Runge-Kutta: 0.02 times the fastest rate of 90 is 1.8
            h = step / 5
            a = rate(u)
            b = rate(u + h / 2 * a)
            c = rate(u + h / 2 * b)
            u = u + h / 6 * (a + 2 * b + 2 * c + rate(u + h * c))
        states.append(u)
    data = ArrayTrajectories(
        add_noise(np.stack(states)[:, None], 0.02, 0)[None],
        Grid((n, n), (1.0, 1.0), layout=("cells", "cells")),
        dt=step,
        fields=("u",),
        domain=domain_from_text("all: dn(u) = 0", lengths=(1.0, 1.0), fields=("u",)),
    )
    equation = parse_equation("dt(u) = D*lap(u) + r*(u - u^3)", dims=2)
    (found,) = identify_trajectories(equation, None, data, frames="all", method="weak")
    assert found.trusted, found.warnings
    assert all(found.covers(true).values())
    for name, value in true.items():
        low, high = found.intervals[name]
        assert abs(found.estimates[name] / value - 1) < 0.02
        assert high - low < 0.06 * value

"""The spectral toolbox against analytic waves and slow loops."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import random_field, relative, wave
from splatop.derivative import (
    bilaplacian,
    gradient,
    inverse_laplacian,
    laplacian,
    partial,
)
from splatop.errors import SplatopError
from splatop.grid import Grid
from splatop.spectral import (
    BoxFilter,
    PassThrough,
    SharpFilter,
    SmoothFilter,
    derivative_symbol,
    differentiate,
    from_modes,
    radial_spectrum,
    resample,
    to_modes,
)

GRIDS = [
    Grid((16,), (1.0,)),
    Grid((17,), (2.5,)),
    Grid((12, 15), (1.0, 3.0)),
    Grid((9, 14), (0.5, 2.0)),
    Grid((8, 9, 10), (1.0, 2.0, 0.7)),
]


def full_modes(grid):
    """Mode numbers of the full transform, `(d, *N)`."""
    return np.stack(
        np.meshgrid(*(np.fft.fftfreq(n, 1 / n) for n in grid.points), indexing="ij")
    ).astype(int)


@given(st.lists(st.tuples(st.integers(5, 13), st.floats(0.5, 3)), min_size=1, max_size=3))
def test_modes_are_those_of_numpy(axes):
    points, lengths = zip(*axes, strict=True)
    grid = Grid(points, lengths)
    shapes = np.fft.rfftn(np.zeros(grid.points)).shape
    assert np.broadcast_shapes(*(k.shape for k in grid.modes())) == shapes
    for axis, n in enumerate(grid.points):
        expected = np.fft.fftfreq(n, 1 / n) if axis < grid.dims - 1 else np.fft.rfftfreq(n, 1 / n)
        np.testing.assert_array_equal(grid.modes()[axis].ravel(), expected)
        np.testing.assert_allclose(
            grid.wavenumbers()[axis] * grid.lengths[axis], grid.modes()[axis]
        )


@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.usefixtures("x64")
def test_a_wave_is_one_mode(grid):
    modes = (2,) * grid.dims
    u = jnp.asarray(wave(grid, modes, phase=0.3))
    coefficients = np.asarray(to_modes(u))[0]
    assert coefficients[modes] == pytest.approx(np.exp(0.3j) / 2)  # cos is half of each ±k
    np.testing.assert_allclose(from_modes(to_modes(u), grid.points), u, atol=1e-14)


@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.usefixtures("x64")
def test_derivatives_of_a_wave(grid):
    k = (2, -3, 1)[: grid.dims]
    u = jnp.asarray(wave(grid, k))
    mixed = partial(*(2, 1, 1)[: grid.dims])
    wanted = (*gradient(grid.dims), laplacian(grid.dims), bilaplacian(grid.dims), mixed)
    for d in (*wanted, inverse_laplacian(grid.dims)):
        # Rounding of the transform, 1e-16, times the highest symbol over that of the wave: 1e4.
        assert relative(differentiate(u, d, grid.lengths), wave(grid, k, d)) < 1e-11


@pytest.mark.parametrize("points", [(8,), (7,), (6, 8), (6, 7), (7, 6), (4, 6, 6)])
@pytest.mark.usefixtures("x64")
def test_nyquist_modes_differentiate_as_the_interpolant_does(points):
    # The interpolant shares a Nyquist mode between ±N/2, which an odd grid twice as fine holds
    # without ambiguity. White noise has every mode, also the corners where two axes are Nyquist.
    grid = Grid(points, (1.0, 2.0, 0.5)[: len(points)])
    u = jnp.asarray(np.random.default_rng(0).normal(size=(1, *points)))
    fine = resample(u, tuple(3 * n for n in points))
    orders = itertools.product(range(3), repeat=grid.dims)
    for d in (partial(*order) for order in orders):
        exact = differentiate(fine, d, grid.lengths)[(0, *(slice(None, None, 3),) * grid.dims)]
        found = differentiate(u, d, grid.lengths)[0]
        scale = np.abs(derivative_symbol(d, grid)).max() + 1e-30
        np.testing.assert_allclose(found / scale, exact / scale, atol=1e-13)


SIZES = [(8, 12), (8, 13), (9, 12), (9, 13), (12, 8), (13, 8), (12, 9), (13, 9), (8, 8)]


@pytest.mark.parametrize(("source", "target"), SIZES)
@pytest.mark.usefixtures("x64")
def test_resampling_is_exact_inside_the_band(source, target):
    for k in range((min(source, target) - 1) // 2 + 1):
        u = jnp.asarray(wave(Grid((source,), (1.0,)), (k,)))
        expected = wave(Grid((target,), (1.0,)), (k,))
        np.testing.assert_allclose(resample(u, (target,)), expected, atol=1e-13)


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(3, 9), st.integers(0, 5)), min_size=1, max_size=3))
def test_up_and_down_again_is_the_identity(axes):
    # For noise, which has Nyquist modes too. float32: a few roundings of 6e-8 per axis.
    points = tuple(n for n, _ in axes)
    u = jnp.asarray(np.random.default_rng(1).normal(size=(2, *points)), jnp.float32)
    up = resample(u, tuple(n + more for n, more in axes))
    np.testing.assert_allclose(resample(up, points), u, atol=3e-6)


@pytest.mark.parametrize("target", [8, 9])
@pytest.mark.usefixtures("x64")
def test_resampling_down_drops_what_does_not_fit(target):
    grid = Grid((20,), (1.0,))
    low, high = jnp.asarray(wave(grid, (3,))), jnp.asarray(wave(grid, (6,)))
    np.testing.assert_allclose(
        resample(low + high, (target,)), wave(Grid((target,), (1.0,)), (3,)), atol=1e-13
    )


def test_resampling_to_the_wrong_rank_is_refused():
    with pytest.raises(SplatopError, match="expected 2 target sizes"):
        resample(jnp.ones((1, 4, 4)), (8,))


def slow_filter(u, weight, grid):
    """Appendix B, mode by mode over the full transform."""
    modes = np.fft.fftn(u)
    for index in np.ndindex(*grid.points):
        k = full_modes(grid)[(slice(None), *index)] / np.asarray(grid.lengths)
        modes[index] *= weight(k)
    return np.fft.ifftn(modes).real


def smooth(k, cutoff, width):
    radius = np.linalg.norm(k)
    return 1.0 if radius <= cutoff else np.exp(-(((radius - cutoff) / width) ** 2))


FILTERS = {
    "sharp": (SharpFilter(2.0), lambda k: float(np.linalg.norm(k) <= 2)),
    "smooth": (SmoothFilter(1.5, 0.8), lambda k: smooth(k, 1.5, 0.8)),
    "box": (BoxFilter((2.0, 1.0)), lambda k: float(abs(k[0]) <= 2 and abs(k[1]) <= 1)),
    "smooth box": (
        BoxFilter((2.0, 1.0), 0.7),
        lambda k: smooth(k[:1], 2, 0.7) * smooth(k[1:], 1, 0.7),
    ),
    "none": (PassThrough(), lambda k: 1.0),
}


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("grid", [Grid((10, 9), (1.0, 1.0)), Grid((9, 12), (2.0, 1.5))], ids=str)
@pytest.mark.usefixtures("x64")
def test_filters_follow_their_formulas(name, grid):
    filter, weight = FILTERS[name]
    u = np.random.default_rng(0).normal(size=grid.points)
    found = filter(jnp.asarray(u)[None], grid.lengths)[0]
    # Weights below 1e-7 are dropped.
    np.testing.assert_allclose(found, slow_filter(u, weight, grid), atol=2e-7)


@pytest.mark.parametrize("name", ["sharp", "box"])
def test_sharp_filters_are_projections(name):
    filter, _ = FILTERS[name]
    u = jnp.asarray(np.random.default_rng(0).normal(size=(1, 12, 12)), jnp.float32)
    once = filter(u, (1.0, 1.0))
    np.testing.assert_allclose(filter(once, (1.0, 1.0)), once, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in FILTERS if name != "none"])
@pytest.mark.parametrize("grid", [Grid((40, 41), (1.0, 1.0)), Grid((40, 60), (2.0, 1.5))], ids=str)
def test_nothing_is_kept_outside_the_band(name, grid):
    filter, _ = FILTERS[name]
    band = filter.band(grid)
    weights = filter.weights(grid.wavenumbers())
    inside = np.ones(weights.shape, bool)
    for k, b in zip(grid.modes(), band, strict=True):
        inside = inside & (np.abs(k) <= b)
    assert not weights[~inside].any()
    # and the band is not wider than it must be
    for axis, (k, b) in enumerate(zip(grid.modes(), band, strict=True)):
        edge = np.broadcast_to(np.abs(k) == b, weights.shape)
        assert weights[edge].any(), axis


def test_the_band_ends_below_nyquist():
    assert PassThrough().band(Grid((8, 9), (1.0, 1.0))) == (3, 4)
    assert SharpFilter(100.0).band(Grid((8, 9), (1.0, 1.0))) == (3, 4)
    assert SharpFilter(2.0).band(Grid((64, 64), (1.0, 2.0))) == (2, 4)


def test_a_box_filter_of_the_wrong_dimension_is_refused():
    with pytest.raises(SplatopError, match="one cutoff per axis"):
        BoxFilter((2.0,))(jnp.ones((1, 8, 8)), (1.0, 1.0))


@pytest.mark.parametrize("grid", [*GRIDS, Grid((16, 16), (1.0, 1.0))], ids=str)
@pytest.mark.usefixtures("x64")
def test_radial_spectrum_against_a_loop_over_modes(grid):
    u = np.random.default_rng(0).normal(size=(2, *grid.points))
    modes = np.abs(np.fft.fftn(u, axes=range(1, grid.dims + 1), norm="forward")) ** 2
    longest = max(grid.lengths)
    found = np.asarray(radial_spectrum(jnp.asarray(u), grid.lengths))
    expected = np.zeros(len(found))
    for index in np.ndindex(*grid.points):
        q = full_modes(grid)[(slice(None), *index)] * longest / np.asarray(grid.lengths)
        for shell in range(len(expected)):
            if shell - 0.5 <= np.linalg.norm(q) < shell + 0.5:
                expected[shell] += modes[(slice(None), *index)].sum()
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_radial_spectrum_reaches_to_the_nyquist_mode():
    assert radial_spectrum(jnp.ones((1, 160, 160)), (1.0, 1.0)).shape == (81,)
    assert radial_spectrum(jnp.ones((1, 9, 9)), (1.0, 1.0)).shape == (5,)


@pytest.mark.usefixtures("x64")
def test_radial_spectrum_of_known_waves():
    grid = Grid.unit(32, 2)
    u = jnp.asarray(3 * wave(grid, (3, 4)) + wave(grid, (0, 2)) + 0.5)
    energy = radial_spectrum(u, grid.lengths)
    expected = np.zeros(17)
    expected[[0, 2, 5]] = 0.25, 1 / 2, 9 / 2  # a wave of amplitude a has energy a²/2
    np.testing.assert_allclose(energy, expected, atol=1e-14)


@pytest.mark.usefixtures("x64")
def test_energy_is_shared_among_the_shells():
    # Parseval: all shells together hold the mean square of a field below the last shell.
    grid = Grid.unit(24, 2)
    u = jnp.asarray(random_field(grid, 5, channels=2))
    total = float(radial_spectrum(u, grid.lengths).sum())
    assert total == pytest.approx(float(jnp.sum(jnp.mean(u**2, axis=(1, 2)))))


@pytest.mark.parametrize(
    ("points", "lengths"), [((8, 8), (1.0,)), ((0, 8), (1.0, 1.0)), ((8,), (0.0,)), ((), ())]
)
def test_impossible_grids_are_refused(points, lengths):
    with pytest.raises(SplatopError, match="expected"):
        Grid(points, lengths)

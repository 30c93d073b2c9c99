"""Three renderers: against calculus, against each other, and against what symmetry demands."""

import itertools
import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import WidthsAround, random_gaussians, random_raw, relative
from splatop.derivative import (
    bilaplacian,
    gradient,
    inverse_laplacian,
    laplacian,
    partial,
    value,
)
from splatop.errors import SplatopError
from splatop.gaussians import (
    ClippedScales,
    GaussianLattice,
    Gaussians,
    gaussians_from_raw,
    rotation_2d,
)
from splatop.grid import Grid
from splatop.render import DenseRenderer, FourierRenderer, LocalRenderer
from splatop.spectral import PassThrough, SharpFilter, SmoothFilter, differentiate

DENSE, LOCAL, FOURIER = DenseRenderer(), LocalRenderer(), FourierRenderer()


@eqx.filter_jit
def render(renderer, splats, wanted, grid, filter=PassThrough()):
    return renderer(splats, wanted, grid, filter)


@eqx.filter_jit
def render_at(renderer, splats, wanted, points, lengths):
    return renderer.at(splats, wanted, points, lengths)


# Anchors, points and lengths: 1D to 3D, boxes that are not unit cubes, N not divisible by A.
CASES = {
    "1D": ((16,), Grid((64,), (2.0,))),
    "1D uneven": ((13,), Grid((40,), (1.0,))),
    "2D": ((10, 10), Grid((40, 40), (1.0, 1.0))),
    "2D uneven": ((10, 12), Grid((43, 50), (2.0, 0.7))),
    "3D uneven": ((8, 10, 9), Grid((21, 24, 20), (1.0, 2.0, 0.5))),
}
cases = pytest.mark.parametrize(("anchors", "grid"), CASES.values(), ids=CASES)


def first_two_orders(dims):
    second = [
        partial(*index) for index in itertools.product(range(3), repeat=dims) if sum(index) == 2
    ]
    return (value(dims), *gradient(dims), *second, laplacian(dims))


def scattered(grid, count=7, seed=0):
    """Points of the box and outside it, where the field goes on periodically."""
    unit = np.random.default_rng(seed).uniform(-0.5, 1.5, size=(count, grid.dims))
    return jnp.asarray(unit * np.asarray(grid.lengths))


def oracle(g, x, lengths):
    """The value at one point, straight from the definition of the Gaussians."""
    fraction = x / jnp.asarray(lengths)
    r = fraction - g.center
    r = r - jnp.round(r)
    inverse = jnp.linalg.inv(g.covariance())
    return g.offset + jnp.exp(-0.5 * jnp.einsum("gi,gij,gj->g", r, inverse, r)) @ g.amplitude


@cases
@pytest.mark.usefixtures("x64")
def test_closed_forms_against_automatic_differentiation(anchors, grid):
    g = random_gaussians(anchors, channels=2)
    points = scattered(grid)
    wanted = first_two_orders(grid.dims)
    found = render_at(DENSE, g, wanted, points, grid.lengths)

    def truth_at(x):
        return oracle(g, x, grid.lengths)

    truth = jax.jit(jax.vmap(truth_at))(points)
    jacobian = jax.jit(jax.vmap(jax.jacfwd(truth_at)))(points)  # Q C d
    hessian = jax.jit(jax.vmap(jax.hessian(truth_at)))(points)  # Q C d d
    assert relative(found[value(grid.dims)], truth.T) < 1e-10
    assert relative(found[laplacian(grid.dims)], jnp.trace(hessian, axis1=2, axis2=3).T) < 1e-10
    for a in range(grid.dims):
        assert relative(found[gradient(grid.dims)[a]], jacobian[:, :, a].T) < 1e-10
        for b in range(grid.dims):
            index = [0] * grid.dims
            index[a] += 1
            index[b] += 1
            assert relative(found[partial(*index)], hessian[:, :, a, b].T) < 1e-10


@cases
@pytest.mark.usefixtures("x64")
def test_local_against_dense_on_grids(anchors, grid):
    # σ <= 0.45 * 1.25 h, so the window of 4 cells reaches 7.1 σ: a tail of exp(-25) = 1e-11, times
    # up to (7.1)² in second derivatives, relative to fields of order one.
    g = random_gaussians(anchors, channels=2, ratio=0.45, spread=0.25)
    wanted = first_two_orders(grid.dims)
    found, truth = render(LOCAL, g, wanted, grid), render(DENSE, g, wanted, grid)
    for d in wanted:
        assert found[d].shape == (2, *grid.points)
        assert relative(found[d], truth[d]) < 1e-8, d


@cases
@pytest.mark.usefixtures("x64")
def test_local_against_dense_at_points(anchors, grid):
    g = random_gaussians(anchors, channels=2, ratio=0.45, spread=0.25)
    wanted = first_two_orders(grid.dims)
    points = scattered(grid)
    found, truth = (render_at(r, g, wanted, points, grid.lengths) for r in (LOCAL, DENSE))
    for d in wanted:
        assert found[d].shape == (2, len(points))
        assert relative(found[d], truth[d]) < 1e-8, d


@pytest.mark.slow
@cases
@pytest.mark.usefixtures("x64")
def test_points_of_the_grid_are_points(anchors, grid):
    g = random_gaussians(anchors)
    points = np.stack(np.meshgrid(*(x.ravel() for x in grid.coordinates()), indexing="ij"), -1)
    points = jnp.asarray(points.reshape(-1, grid.dims))
    wanted = (value(grid.dims), *gradient(grid.dims))
    for renderer in (DENSE, LOCAL):
        on_grid, at_points = (
            render(renderer, g, wanted, grid),
            render_at(renderer, g, wanted, points, grid.lengths),
        )
        for d in wanted:
            assert relative(at_points[d].reshape(1, *grid.points), on_grid[d]) < 1e-9


@cases
@pytest.mark.usefixtures("x64")
def test_fourier_against_dense(anchors, grid):
    # Wide enough for the grid: the transform at the Nyquist mode k = N/2 is below
    # exp(-2π²(σ_min N/2)²), with σ_min >= 0.6 h and N >= 2.2 A below exp(-8) at worst (3D), so a
    # finer grid is used, where it is below exp(-2π² 0.36 * 9) = exp(-64).
    fine = Grid(tuple(6 * a for a in anchors), grid.lengths)
    g = random_gaussians(anchors, channels=2, ratio=0.65, spread=0.05)
    wanted = (value(grid.dims), *gradient(grid.dims), laplacian(grid.dims))
    if grid.dims == 3:
        wanted = wanted[:2]
        fine = Grid((24, 25, 26), grid.lengths)
    found, truth = render(FOURIER, g, wanted, fine), render(DENSE, g, wanted, fine)
    # Dense keeps the nearest image only: with A >= 8 the next is 4/0.68 = 5.9 σ away, exp(-17).
    tolerance = 2e-3 if grid.dims == 3 else 1e-6
    for d in wanted:
        assert relative(found[d], truth[d]) < tolerance, d


@pytest.mark.parametrize(
    "filter", [SharpFilter(5.0), SmoothFilter(3.0, 1.0)], ids=["sharp", "smooth"]
)
@pytest.mark.parametrize("points", [(48, 48), (47, 45)], ids=["even", "odd"])
@pytest.mark.usefixtures("x64")
def test_fourier_filters_as_dense_then_filter(filter, points):
    grid = Grid(points, (1.0, 1.5))
    g = random_gaussians((12, 12), channels=2, ratio=0.65, spread=0.2)
    wanted = (value(2), *gradient(2), laplacian(2), partial(1, 1))
    found, truth = render(FOURIER, g, wanted, grid, filter), render(DENSE, g, wanted, grid, filter)
    # Aliases of the sampled dense render: exp(-2π² (0.54/12)² (48 - 5)²) = 1e-32; images, exp(-29).
    for d in wanted:
        assert relative(found[d], truth[d]) < 1e-9, d


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_higher_derivatives_agree_between_all_three():
    # σ = 0.4 h ± 5 %: the window reaches 9.5 σ. N = 16 A/… resolves the fourth derivative: at the
    # Nyquist mode exp(-2π² (0.38 * 4)²) = 1e-20 against (2π * 0.38 * 4)⁴ = 8e3.
    g = random_gaussians((10, 10), ratio=0.4, spread=0.05)
    grid = Grid((80, 81), (1.0, 2.0))
    wanted = [partial(*index) for index in ((3, 0), (2, 1), (0, 3), (4, 0), (2, 2), (1, 3))]
    wanted += [bilaplacian(2)]
    dense, local, fourier = (render(r, g, wanted, grid) for r in (DENSE, LOCAL, FOURIER))
    for d in wanted:
        assert relative(local[d], dense[d]) < 1e-9, d
        assert relative(fourier[d], dense[d]) < 1e-9, d


@pytest.mark.usefixtures("x64")
def test_higher_derivatives_at_points():
    g = random_gaussians((10, 10), ratio=0.4, spread=0.05)
    lengths, points = (1.0, 2.0), scattered(Grid((8, 8), (1.0, 2.0)))
    wanted = (partial(2, 1), partial(4, 0))

    def truth_at(x):
        return oracle(g, x, lengths)[0]

    third = jax.jit(jax.vmap(jax.jacfwd(jax.hessian(truth_at))))(points)
    dense, local = (render_at(r, g, wanted, points, lengths) for r in (DENSE, LOCAL))
    assert relative(dense[wanted[0]][0], third[:, 0, 0, 1]) < 1e-10
    for d in wanted:
        assert relative(local[d], dense[d]) < 1e-9


@pytest.mark.usefixtures("x64")
def test_fourier_agrees_with_spectral_derivatives_of_its_own_field():
    g = random_gaussians((9, 8), channels=2)
    grid = Grid((33, 40), (1.0, 2.0))
    wanted = (partial(1, 2), bilaplacian(2), inverse_laplacian(2))
    filter = SharpFilter(6.0)
    found = render(FOURIER, g, (*wanted, value(2)), grid, filter)
    for d in wanted:
        assert relative(found[d], differentiate(found[value(2)], d, grid.lengths)) < 1e-10


@pytest.mark.parametrize("anchors", [(12,), (9, 12), (5, 6, 7)])
@pytest.mark.usefixtures("x64")
def test_a_lattice_renders_as_its_primitives(anchors):
    rng = np.random.default_rng(0)
    lattice = GaussianLattice(
        jnp.asarray(rng.normal(size=(2, *anchors))), jnp.asarray([1.0, -2.0]), 0.8
    )
    grid = Grid(tuple(2 * a + 1 for a in anchors), (1.0, 2.0, 0.5)[: len(anchors)])
    wanted = (value(grid.dims), *gradient(grid.dims))
    for renderer in (FOURIER, LOCAL):
        short, long = (render(renderer, s, wanted, grid) for s in (lattice, lattice.explicit()))
        for d in wanted:
            assert relative(short[d], long[d]) < 1e-11


@pytest.mark.parametrize("renderer", [DENSE, LOCAL, FOURIER], ids=["dense", "local", "fourier"])
def test_the_constant_is_in_the_value_and_nowhere_else(renderer):
    g = random_gaussians((8, 8), channels=2)
    lifted = g.with_amplitude(g.amplitude, g.offset + jnp.asarray([10.0, -5.0]))
    wanted = (value(2), *gradient(2), laplacian(2))
    grid = Grid.unit(24, 2)
    low, high = render(renderer, g, wanted, grid), render(renderer, lifted, wanted, grid)
    np.testing.assert_allclose(
        high[value(2)] - low[value(2)],
        np.broadcast_to([[[10.0]], [[-5.0]]], (2, 24, 24)),
        rtol=1e-5,
    )
    for d in wanted[1:]:
        np.testing.assert_array_equal(low[d], high[d])


@pytest.mark.parametrize("renderer", [LOCAL, FOURIER], ids=["local", "fourier"])
@pytest.mark.usefixtures("x64")
def test_equal_primitives_cover_the_domain_evenly(renderer):
    # A sum of equal Gaussians on a lattice is a constant, (2π)^{d/2} (σ/h)^d, with ripples of
    # 2 exp(-2π² (σ/h)²) = 6e-6 along each axis at σ = 0.8 h: no pixel is missed or counted twice,
    # also where 7 anchors meet 24 points. The window cuts at 5 σ: exp(-12.5) = 4e-6.
    lattice = GaussianLattice(jnp.ones((1, 7, 9)), jnp.zeros(1), 0.8)
    field = render(renderer, lattice, [value(2)], Grid((24, 25), (1.0, 1.0)))[value(2)]
    np.testing.assert_allclose(field, 2 * np.pi * 0.8**2, rtol=6e-5)


def moved(g, shift):
    return Gaussians((g.center + shift) % 1.0, g.rotation, g.scale, g.amplitude, g.offset)


@pytest.mark.parametrize("renderer", [DENSE, FOURIER], ids=["dense", "fourier"])
@pytest.mark.usefixtures("x64")
def test_translated_primitives_translate_the_field(renderer):
    grid = Grid((24, 30), (1.0, 2.0))
    g = random_gaussians((8, 10), ratio=0.4)
    wanted = (value(2), *gradient(2), laplacian(2))
    # 5 and 11 grid points: the field is that of before, rolled.
    there = render(
        renderer, moved(g, jnp.asarray([5 / 24, 11 / 30])), wanted, grid, SharpFilter(5.0)
    )
    here = render(renderer, g, wanted, grid, SharpFilter(5.0))
    for d in wanted:
        assert relative(there[d], jnp.roll(here[d], (5, 11), axis=(1, 2))) < 1e-9


@pytest.mark.usefixtures("x64")
def test_rotated_primitives_rotate_the_field():
    # All near the middle of the box, and narrow: no periodic image matters.
    rng = np.random.default_rng(0)
    turn = rotation_2d(jnp.asarray([0.7]))[0]
    center = jnp.asarray(rng.uniform(-0.1, 0.1, size=(6, 2)))
    angle = jnp.asarray(rng.uniform(0, 3, size=6))
    scale = jnp.asarray(rng.uniform(0.02, 0.05, size=(6, 2)))
    amplitude = jnp.asarray(rng.normal(size=(6, 1)))
    before = Gaussians(center + 0.5, rotation_2d(angle), scale, amplitude, jnp.zeros(1))
    after = Gaussians(
        center @ turn.T + 0.5, rotation_2d(angle + 0.7), scale, amplitude, jnp.zeros(1)
    )
    x = jnp.asarray(rng.uniform(-0.1, 0.1, size=(9, 2)))
    wanted = (value(2), *gradient(2), laplacian(2))
    old = render_at(DENSE, before, wanted, x + 0.5, (1.0, 1.0))
    new = render_at(DENSE, after, wanted, x @ turn.T + 0.5, (1.0, 1.0))
    assert relative(new[value(2)], old[value(2)]) < 1e-10
    assert relative(new[laplacian(2)], old[laplacian(2)]) < 1e-10
    slope = jnp.stack([old[d][0] for d in gradient(2)])  # turns along
    assert relative(jnp.stack([new[d][0] for d in gradient(2)]), turn @ slope) < 1e-10


@pytest.mark.parametrize("renderer", [DENSE, LOCAL, FOURIER], ids=["dense", "local", "fourier"])
@pytest.mark.parametrize("points", [40, 50])
@pytest.mark.usefixtures("x64")
def test_primitives_moved_by_one_anchor_cell_move_the_field(renderer, points):
    anchors, raw = (10, 10), random_raw((10, 10))
    scales = WidthsAround(0.5, 0.3)
    grid, cell = Grid.unit(points, 2), points // 10
    wanted = (value(2), *gradient(2), laplacian(2))
    here = render(renderer, gaussians_from_raw(raw, scales=scales, channels=1), wanted, grid)
    rolled = jnp.roll(raw, (1, -2), axis=(1, 2))
    there = render(renderer, gaussians_from_raw(rolled, scales=scales, channels=1), wanted, grid)
    assert here[value(2)].shape[1:] == grid.points == tuple(cell * a for a in anchors)
    for d in wanted:
        assert relative(there[d], jnp.roll(here[d], (cell, -2 * cell), axis=(1, 2))) < 1e-9


@pytest.mark.parametrize(
    "anchors", [(12,), (8, 9), pytest.param((6, 7, 8), marks=pytest.mark.slow)]
)
@pytest.mark.usefixtures("x64")
def test_gradients_with_respect_to_the_primitives_agree(anchors):
    dims = len(anchors)
    grid = Grid(tuple(3 * a + 1 for a in anchors), (1.0, 2.0, 0.5)[:dims])
    filter = SharpFilter(1.5)
    wanted = (laplacian(dims),) if dims == 3 else (value(dims), laplacian(dims))
    target = jnp.asarray(np.random.default_rng(1).normal(size=(1, *grid.points)))

    def loss(raw, renderer):
        g = gaussians_from_raw(raw, scales=WidthsAround(0.42, 0.05), channels=1)
        fields = renderer(g, wanted, grid, filter)
        return sum(jnp.mean(field * target) for field in fields.values())

    gradients = [
        jax.jit(jax.grad(loss), static_argnums=1)(random_raw(anchors), r)
        for r in (DENSE, LOCAL, FOURIER)
    ]
    assert np.isfinite(gradients[0]).all()
    # σ = 0.40 to 0.44 h. Aliases of the sampled renders into the band of 3 modes are below
    # exp(-2π² (0.40 (3 - 2/A))²) = 1e-10, and so are the images that dense leaves out, 3/0.44 =
    # 6.8 σ away in 3D; polynomials of fourth degree make up to 6.8⁴ = 2e3 times more of them.
    for gradient_of_other in gradients[1:]:
        assert relative(gradient_of_other, gradients[0]) < 1e-5


def test_gradients_stay_finite_for_the_narrowest_primitives():
    # The paper's narrowest scale, 0.008, is 0.16 of the anchor spacing at A = 20.
    raw = random_raw((20, 20)).at[2:4].set(-9.0)
    grid = Grid.unit(40, 2)

    def loss(raw, renderer):
        g = gaussians_from_raw(raw, scales=ClippedScales(), channels=1)
        return sum(jnp.mean(f**2) for f in renderer(g, (value(2), laplacian(2)), grid).values())

    for renderer in (LOCAL, FOURIER):
        assert np.isfinite(jax.jit(jax.grad(loss), static_argnums=1)(raw, renderer)).all()


@pytest.mark.slow
@settings(max_examples=4)
@given(
    st.lists(st.tuples(st.integers(9, 12), st.integers(0, 9)), min_size=1, max_size=2),
    st.integers(1, 3),
)
def test_any_shape_renders(axes, channels):
    anchors = tuple(a for a, _ in axes)
    grid = Grid(tuple(a + more for a, more in axes), (1.5,) * len(axes))
    g = random_gaussians(anchors, channels, ratio=0.45, spread=0.1)
    wanted = (value(grid.dims), laplacian(grid.dims))
    found, truth = render(LOCAL, g, wanted, grid), render(DENSE, g, wanted, grid)
    filtered = render(FOURIER, g, wanted, grid, SharpFilter(2.0))
    for d in wanted:
        assert found[d].shape == filtered[d].shape == (channels, *grid.points)
        # float32: exponents up to 25 lose 25 * 6e-8, times a few for second derivatives.
        assert relative(found[d], truth[d]) < 3e-5


def test_a_window_wider_than_the_box_sums_periodic_images():
    # 5 anchors, a window of 9: images recur, as in the periodic sum that Fourier takes.
    g = random_gaussians((5, 5), ratio=0.6, spread=0.1)
    grid = Grid.unit(25, 2)
    local, fourier = (render(r, g, [value(2)], grid)[value(2)] for r in (LOCAL, FOURIER))
    # The window ends 4/0.66 = 6 σ away, exp(-18); the Nyquist mode is at exp(-2π² (0.54*2.5)²).
    assert relative(local, fourier) < 1e-5


def test_the_window_cuts_what_the_docstring_says():
    # At σ = h the tail beyond 4 cells is exp(-8) of a peak; at 0.75 h it is 7e-7.
    lattice = [
        GaussianLattice(
            jnp.asarray(np.random.default_rng(0).normal(size=(1, 20, 20)), jnp.float32),
            jnp.zeros(1),
            ratio,
        )
        for ratio in (0.75, 1.0)
    ]
    grid = Grid.unit(40, 2)
    errors = [
        relative(
            render(LOCAL, s, [value(2)], grid)[value(2)],
            render(DENSE, s, [value(2)], grid)[value(2)],
        )
        for s in lattice
    ]
    assert errors[0] < 1e-5
    assert 1e-5 < errors[1] < 3e-3


def test_filters_apply_to_local_rendering():
    g = random_gaussians((10, 10))
    grid, filter = Grid.unit(40, 2), SmoothFilter(4.0, 1.0)
    wanted = (value(2), laplacian(2))
    found, raw = (
        render(LOCAL, g, wanted, grid, filter),
        render(LOCAL, g, wanted, grid, PassThrough()),
    )
    for d in wanted:
        np.testing.assert_array_equal(found[d], filter(raw[d], grid.lengths))


# Cells with equally many pixels, and cells with one or two along an axis.
@pytest.mark.parametrize(("anchors", "points"), [((6, 6), (12, 12)), ((4, 6, 5), (7, 12, 5))])
def test_kept_kernels_render_and_transpose(anchors, points):
    # An iterative solve does both.
    g = random_gaussians(anchors, channels=2)
    g = g.with_amplitude(g.amplitude, jnp.zeros(2))
    which, grid = value(len(points)), Grid(points, (1.0,) * len(points))
    w = jnp.asarray(np.random.default_rng(0).normal(size=(2, *points)), jnp.float32)

    @jax.jit
    def both(g, w):
        kernels = LOCAL.kernels(g, points)
        return kernels(g.amplitude), jax.linear_transpose(kernels, g.amplitude)(w)[0]

    rendered, transposed = both(g, w)
    assert relative(rendered, render(LOCAL, g, [which], grid)[which]) < 1e-6
    assert float(jnp.vdot(rendered, w)) == pytest.approx(
        float(jnp.vdot(g.amplitude, transposed)), rel=1e-4
    )


@pytest.mark.parametrize("renderer", [DENSE, LOCAL], ids=["dense", "local"])
@pytest.mark.usefixtures("x64")
def test_basis_times_amplitude_is_the_field(renderer):
    g = random_gaussians((6, 7), channels=2)
    grid = Grid.unit(11, 2)
    positions = jnp.asarray(
        np.stack(np.meshgrid(*(np.arange(11) / 11,) * 2, indexing="ij"), -1).reshape(-1, 2)
    )
    field = (jax.jit(renderer.basis)(g, positions) @ g.amplitude + g.offset).T.reshape(2, 11, 11)
    assert relative(field, render(renderer, g, [value(2)], grid)[value(2)]) < 1e-10


def test_nothing_asked_nothing_rendered():
    assert render(FOURIER, random_gaussians((8, 8)), (), Grid.unit(16, 2)) == {}


def test_local_rendering_needs_a_lattice():
    g = random_gaussians((4, 4))
    free = Gaussians(g.center, g.rotation, g.scale, g.amplitude, g.offset)
    with pytest.raises(SplatopError, match="expected Gaussians on an anchor lattice"):
        render(LOCAL, free, [value(2)], Grid.unit(16, 2))


def test_local_rendering_needs_a_point_per_anchor():
    with pytest.raises(SplatopError, match="at least as many grid points as anchors"):
        render(LOCAL, random_gaussians((12, 12)), [value(2)], Grid((11, 16), (1.0, 1.0)))


@pytest.mark.parametrize("renderer", [DENSE, LOCAL], ids=["dense", "local"])
def test_the_inverse_laplacian_needs_fourier(renderer):
    with pytest.raises(SplatopError, match="use FourierRenderer"):
        render(renderer, random_gaussians((8, 8)), [inverse_laplacian(2)], Grid.unit(16, 2))


_RENDER_3D = r"""
import pathlib, re
import jax, jax.numpy as jnp
from splatop.derivative import gradient, laplacian, value
from splatop.gaussians import BoundedScales, gaussians_from_raw
from splatop.grid import Grid
from splatop.render import LocalRenderer
raw = 0.5 * jax.random.normal(jax.random.key(0), (11, 20, 20, 20))
g = gaussians_from_raw(raw, scales=BoundedScales(), channels=1)
wanted = (value(3), *gradient(3), laplacian(3))
fields = jax.jit(lambda g: LocalRenderer(4)(g, wanted, Grid.unit(64, 3)))(g)
assert all(bool(jnp.isfinite(f).all()) for f in fields.values())
status = pathlib.Path("/proc/self/status").read_text()
print(re.search(r"VmHWM:\s*(\d+) kB", status)[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_3d_render_stays_below_2_gb():
    # By itself in a process, whose peak is that of the render (and of importing JAX, 0.3 GB). Not
    # ru_maxrss: Linux hands a child its parent's, which here is that of all tests before.
    run = subprocess.run(
        [sys.executable, "-c", _RENDER_3D], capture_output=True, text=True, check=True
    )
    assert int(run.stdout) * 1024 < 2e9

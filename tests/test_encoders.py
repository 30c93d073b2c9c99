"""Encoders: what they reconstruct, what they choose, and what they refuse."""

from functools import lru_cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from oracles import WidthsAround, random_field, random_gaussians, random_raw, relative, wave
from splatop.benchmarks import BENCHMARKS
from splatop.data.reference import initial_state, reference_stepper, trajectory_keys
from splatop.derivative import gradient, laplacian, value
from splatop.encoders import LatticeEncoder, UNetEncoder, anchors_for, solve_amplitudes
from splatop.encoders import amplitudes as solve_module
from splatop.encoders.encoder import normalise
from splatop.errors import SplatopError
from splatop.gaussians import BoundedScales, ClippedScales, Gaussians, gaussians_from_raw
from splatop.grid import Grid
from splatop.render import DenseRenderer, FourierRenderer, LocalRenderer
from splatop.spectral import differentiate
from splatop.stepper import rollout

WANTED = (value(2), *gradient(2), laplacian(2))


def diagnostics(u, splats, renderer=FourierRenderer()):
    """e_u, e_∇u and e_Δu against spectral derivatives (paper, appendix F)."""
    lengths = (1.0, 1.0)
    found = renderer(splats, WANTED, Grid(u.shape[1:], lengths))
    truth = {d: differentiate(u, d, lengths) for d in WANTED}
    slopes = [jnp.stack([f[d] for d in gradient(2)]) for f in (found, truth)]
    pairs = ((found[value(2)], u), slopes, (found[laplacian(2)], truth[laplacian(2)]))
    return jnp.stack([jnp.linalg.norm(a - b) / jnp.linalg.norm(b) for a, b in pairs])


@lru_cache
def reference_field(name, step, index):
    benchmark = BENCHMARKS[name]
    u = initial_state(benchmark, trajectory_keys(0, "test", index)[1])
    if step:
        stepper = reference_stepper(benchmark)
        coefficients = benchmark.typical_coefficients()
        u = eqx.filter_jit(lambda u: rollout(stepper, u, coefficients, steps=step)[-1])(u)
    return u


# Field, frame and anchors; e_u, e_∇u, e_Δu of the design's table, printed there to two digits at
# most, so each may round down to it.
TABLE = [
    ("advection2d", 0, 20, (3.4e-5, 1.14e-4, 3.44e-4)),
    ("burgers2d", 50, 20, (1.94e-4, 1.14e-3, 4.64e-3)),
    ("advection_allen_cahn2d", 60, 40, (9.54e-5, 1.14e-3, 7.14e-3)),
]


@pytest.mark.parametrize(("name", "step", "anchors", "table"), TABLE, ids=[t[0] for t in TABLE])
def test_lattice_encoder_reaches_the_table(name, step, anchors, table):
    measure = eqx.filter_jit(
        lambda u, ratio: diagnostics(u, LatticeEncoder((anchors,) * 2, ratio)(u))
    )
    fields = [reference_field(name, step, index) for index in range(3)]
    at_one = np.mean([measure(u, 1.0) for u in fields], axis=0)
    assert (at_one <= table).all(), at_one
    # Wider kernels do better where nothing truncates them: the default.
    default = np.mean([measure(u, LatticeEncoder().ratio) for u in fields], axis=0)
    assert (default < at_one).all(), (default, at_one)


@pytest.mark.parametrize(("name", "step"), [t[:2] for t in TABLE], ids=[t[0] for t in TABLE])
def test_anchors_chosen_from_the_spectrum_do_well(name, step):
    u = reference_field(name, step, 0)
    encoder = LatticeEncoder.for_field(u)
    assert all(12 <= a <= 160 for a in encoder.anchors)
    errors = eqx.filter_jit(lambda u: diagnostics(u, encoder(u)))(u)
    # A tail of 1e-6 is left out; float32 amplitudes of a wide kernel round at about 1e-5, which
    # derivatives amplify.
    assert (np.asarray(errors) < [3e-5, 1e-4, 1e-3]).all(), errors
    np.testing.assert_array_equal(LatticeEncoder("auto")(u).amplitude, encoder(u).amplitude)


def test_more_modes_ask_for_more_anchors():
    grid = Grid((96, 96), (1.0, 2.0))
    chosen = [anchors_for(jnp.asarray(wave(grid, (k, 4)))) for k in (2, 8, 16)]
    assert [a[1] for a in chosen] == [chosen[0][1]] * 3  # the other axis has the same mode
    assert chosen[0][0] < chosen[1][0] < chosen[2][0]
    assert all(a[0] > 2 * k for a, k in zip(chosen, (2, 8, 16), strict=True))


def test_automatic_anchors_need_values():
    with pytest.raises(SplatopError, match="inside jit"):
        jax.jit(LatticeEncoder())(jnp.asarray(wave(Grid.unit(32, 2), (1, 2))))


@pytest.mark.parametrize(
    "grid",
    [Grid((40,), (1.0,)), Grid((30, 41), (1.0, 2.0)), Grid((20, 22, 24), (1.0,) * 3)],
    ids=str,
)
@pytest.mark.usefixtures("x64")
def test_lattice_encoder_in_any_dimension(grid):
    u = jnp.asarray(random_field(grid, 2, channels=2) + 5)
    encoder = LatticeEncoder(tuple(n // 2 + 1 for n in grid.points))
    wanted = (value(grid.dims), laplacian(grid.dims))
    found = FourierRenderer()(encoder(u), wanted, grid)
    # Mode 2 of A >= 11 anchors aliases at exp(-2π² 1.44 (1 - 4/11)) = 1e-8 of itself, of which the
    # Laplacian makes ((A - 2)/2)² = 20 times more.
    assert relative(found[value(grid.dims)], u) < 1e-7
    assert (
        relative(found[laplacian(grid.dims)], differentiate(u, laplacian(grid.dims), grid.lengths))
        < 1e-5
    )


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_lattice_amplitudes_are_the_least_squares_solution():
    # The residual of a least-squares fit is orthogonal to every primitive.
    grid = Grid.unit(24, 2)
    u = jnp.asarray(random_field(grid, 9))
    lattice = LatticeEncoder((10, 10), 0.7)(u)
    residual = FourierRenderer()(lattice, [value(2)], Grid.unit(24, 2))
    basis = np.asarray(
        DenseRenderer().basis(
            lattice.explicit(),
            jnp.asarray(
                np.stack(np.meshgrid(*(np.arange(24) / 24,) * 2, indexing="ij"), -1).reshape(-1, 2)
            ),
        )
    )
    residual = basis @ np.asarray(lattice.amplitude).reshape(-1) + lattice.offset - u.reshape(-1)
    # Dense keeps the nearest image of 5/0.7 = 7.1 σ: exp(-25).
    assert np.abs(basis.T @ residual).max() < 1e-8 * np.linalg.norm(basis) * np.linalg.norm(u)


@pytest.mark.parametrize("points", [16, 32, 48])
@pytest.mark.usefixtures("x64")
def test_shift_by_one_anchor_cell(points):
    u = jnp.asarray(random_field(Grid.unit(points, 2), 3))
    cell = points // 16
    encoder = LatticeEncoder((16, 16), 0.9)
    shifted = encoder(jnp.roll(u, (cell, -2 * cell), axis=(1, 2))).amplitude
    np.testing.assert_allclose(
        shifted, jnp.roll(encoder(u).amplitude, (1, -2), axis=(1, 2)), atol=1e-9
    )


def test_as_many_anchors_as_points():
    # On an even grid the Nyquist mode vanishes between the points, where the anchors sit.
    u = jnp.asarray(random_field(Grid.unit(24, 2), 4), jnp.float32)
    lattice = LatticeEncoder((24, 24), 1.0)(u)
    assert float(jnp.abs(lattice.amplitude).max()) < 1e3
    found = FourierRenderer()(lattice, [value(2)], Grid.unit(24, 2))[value(2)]
    assert relative(found, u) < 1e-4


def test_normalisation_is_per_frame_and_channel():
    u = jnp.asarray(
        np.random.default_rng(0).normal(size=(2, 9, 8)) * [[[3.0]], [[0.1]]] + [[[7.0]], [[-2.0]]]
    )
    normalised, mean, std = normalise(u)
    np.testing.assert_allclose(mean, np.mean(u, axis=(1, 2)), rtol=1e-5)
    np.testing.assert_allclose(std, np.std(u, axis=(1, 2)) + 1e-6, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(normalised).std(axis=(1, 2)), 1, rtol=1e-4)


# --- solved amplitudes


@pytest.mark.slow
@pytest.mark.parametrize("renderer", [DenseRenderer(), LocalRenderer()], ids=["dense", "local"])
@pytest.mark.usefixtures("x64")
def test_solving_finds_the_amplitudes_that_made_the_field(renderer):
    truth = random_gaussians((9, 10), channels=2, ratio=0.7)
    truth = truth.with_amplitude(truth.amplitude, jnp.zeros(2))
    u = renderer(truth, [value(2)], Grid.unit(40, 2))[value(2)]
    blank = truth.with_amplitude(0 * truth.amplitude, truth.offset)
    solved = solve_amplitudes(blank, u, points=(40, 40), renderer=renderer, ridge=1e-14)
    assert relative(solved.amplitude, truth.amplitude) < 1e-6


@pytest.mark.usefixtures("x64")
def test_at_the_optimum_the_geometry_needs_no_gradient_of_the_solve():
    # Envelope theorem: the amplitudes are stationary, so their dependence drops out.
    grid, raw = Grid.unit(18, 2), random_raw((7, 7), channels=0)
    u = jnp.asarray(random_field(grid, 4))
    renderer = DenseRenderer()
    positions = jnp.asarray(
        np.stack(np.meshgrid(*(np.arange(18) / 18,) * 2, indexing="ij"), -1).reshape(-1, 2)
    )
    values = u.reshape(1, -1).T

    def misfit(gaussians):
        return jnp.sum((renderer.basis(gaussians, positions) @ gaussians.amplitude - values) ** 2)

    def stopped(raw):
        g = gaussians_from_raw(raw, scales=WidthsAround(0.7, 0.3), channels=1)
        return misfit(solve_amplitudes(g, u, points=(18, 18), ridge=1e-15))

    def through(raw):
        g = gaussians_from_raw(raw, scales=WidthsAround(0.7, 0.3), channels=1)
        amplitude = solve_module.least_squares(renderer.basis(g, positions), values, 1e-15)
        return misfit(g.with_amplitude(amplitude, g.offset))

    assert relative(jax.jit(jax.grad(stopped))(raw), jax.jit(jax.grad(through))(raw)) < 1e-6


@pytest.mark.slow
def test_the_iterative_solve_agrees_with_the_direct_one(monkeypatch):
    # Not too far from the lattice, or gaps are left that no amplitudes fill.
    raw = 0.1 * random_raw((10, 10))
    g = gaussians_from_raw(raw, scales=BoundedScales(), channels=1)
    u = jnp.asarray(random_field(Grid.unit(40, 2), 3), jnp.float32)
    u = u - u.mean()
    blank = g.with_amplitude(0 * g.amplitude, jnp.zeros(1))
    local, grid = LocalRenderer(), Grid.unit(40, 2)

    def solved():
        render = jax.jit(
            lambda u: local(solve_amplitudes(blank, u, renderer=local), [value(2)], grid)
        )
        return render(u)[value(2)]

    direct = solved()
    monkeypatch.setattr(solve_module, "LARGEST_DIRECT_SOLVE", 0)
    fast = solved()
    monkeypatch.setattr(solve_module, "CG_ITERATIONS", 300)
    converged = solved()
    # The normal matrix has a condition number of exp(2π² 0.8²) = 3e5: it takes hundreds of
    # iterations to converge to the tolerance of 1e-5; the usual 20 cost little of the accuracy.
    assert relative(converged, direct) < 2e-3
    assert relative(fast, u) < 1.2 * relative(direct, u)
    # Without the preconditioner they would cost all of it.
    monkeypatch.setattr(solve_module, "CG_ITERATIONS", 20)
    monkeypatch.setattr(solve_module, "PRECONDITIONER_FLOOR", 1e6)
    assert relative(solved(), u) > 2 * relative(fast, u)


def test_solving_needs_points_without_a_lattice():
    g = random_gaussians((6, 6))
    free = Gaussians(g.center, g.rotation, g.scale, g.amplitude, g.offset)
    with pytest.raises(SplatopError, match="expected `points`"):
        solve_amplitudes(free, jnp.ones((1, 16, 16)))


# --- the learned encoder


def small_unet(anchors=(8, 8), channels=1, **settings):
    settings = {"widths": (4, 4, 4, 4), "pixels": 2} | settings
    return UNetEncoder(anchors, channels, key=jax.random.key(0), **settings)


@pytest.mark.parametrize(("dims", "count"), [(2, 451e3), (3, 1.33e6)])
def test_unet_has_the_paper_s_size(dims, count):
    shapes = eqx.filter_eval_shape(
        lambda: UNetEncoder((20,) * dims, 1, key=jax.random.key(0), amplitudes="predicted")
    )
    size = sum(
        np.prod(x.shape) for x in jax.tree.leaves(eqx.filter(shapes, lambda x: hasattr(x, "shape")))
    )
    assert size == pytest.approx(count, rel=0.02)


@pytest.mark.parametrize("points", [(24, 24), (17, 30), (8, 9)])
def test_unet_takes_any_grid(points):
    u = jnp.asarray(random_field(Grid(points, (1.0, 1.0)), 2, channels=2), jnp.float32)
    g = eqx.filter_jit(small_unet(channels=2))(u)
    assert g.anchors == (8, 8)
    assert g.amplitude.shape == (64, 2)
    assert np.isfinite(g.amplitude).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("amplitudes", "scales"), [("solved", BoundedScales()), ("predicted", ClippedScales())]
)
def test_unet_restores_the_physical_scale(amplitudes, scales):
    # Appendix A: of a u + b the encoder sees the same normalised frame.
    u = jnp.asarray(random_field(Grid.unit(24, 2), 3), jnp.float32)
    encoder = small_unet(amplitudes=amplitudes, scales=scales)
    one, other = encoder(u), encoder(50 * u + 300)
    np.testing.assert_allclose(other.center, one.center, atol=1e-4)
    np.testing.assert_allclose(other.amplitude, 50 * one.amplitude, atol=0.05)
    np.testing.assert_allclose(other.offset, 50 * one.offset + 300, rtol=1e-5)


@pytest.mark.slow
def test_solved_amplitudes_fit_the_field_they_are_rendered_to():
    u = jnp.asarray(random_field(Grid.unit(24, 2), 2), jnp.float32)
    for renderer in (DenseRenderer(), LocalRenderer()):
        encoder = small_unet((12, 12), renderer=renderer)
        found = eqx.filter_jit(renderer)(eqx.filter_jit(encoder)(u), [value(2)], Grid.unit(24, 2))
        assert relative(found[value(2)], u) < 5e-3


@pytest.mark.slow
def test_unet_is_equivariant_to_whole_strides():
    # Three halvings of the lattice: shifts by 8 anchors commute.
    u = jnp.asarray(random_field(Grid.unit(32, 2), 3), jnp.float32)
    encoder = small_unet((16, 16))
    one, other = encoder(u), encoder(jnp.roll(u, 16, axis=1))
    rolled = jnp.roll(one.amplitude.reshape(16, 16), 8, axis=0).reshape(-1, 1)
    np.testing.assert_allclose(other.amplitude, rolled, atol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("amplitudes", ["solved", "predicted"])
def test_unet_learns(amplitudes):
    u = jnp.asarray(random_field(Grid.unit(16, 2), 3), jnp.float32)
    encoder = small_unet(amplitudes=amplitudes)

    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def loss(encoder):
        found = DenseRenderer()(encoder(u), [value(2)], Grid.unit(16, 2))[value(2)]
        return jnp.mean((found - u) ** 2)

    before, slope = loss(encoder)
    size = float(jnp.sqrt(sum(jnp.sum(x**2) for x in jax.tree.leaves(slope))))
    assert 0 < size < np.inf
    # Along the gradient the loss falls as fast as it says: by 2e-4 of itself, up to curvature.
    step = jax.tree.map(lambda g: -2e-4 * float(before) / size**2 * g, slope)
    after, _ = loss(eqx.apply_updates(encoder, step))
    assert float(after / before) == pytest.approx(1 - 2e-4, abs=1e-4)


def test_held_geometry_solves_for_what_is_near():
    u = jnp.asarray(random_field(Grid.unit(24, 2), 2), jnp.float32)
    encoder = small_unet((12, 12))
    held = eqx.filter_jit(lambda: encoder.hold(u))()
    again, twice = (eqx.filter_jit(held)(v) for v in (u, 1.1 * u))
    np.testing.assert_allclose(again.amplitude, eqx.filter_jit(encoder)(u).amplitude, atol=1e-3)
    np.testing.assert_array_equal(twice.center, again.center)
    assert small_unet(amplitudes="predicted").hold(u).anchors == (8, 8)


# --- bad input

ENCODERS = {"lattice": lambda: LatticeEncoder((8, 8)), "unet": small_unet}


@pytest.mark.parametrize("make", ENCODERS.values(), ids=ENCODERS)
def test_what_no_encoder_can_represent(make):
    encoder = make()
    u = jnp.asarray(random_field(Grid.unit(16, 2), 2))
    with pytest.raises(SplatopError, match=r"got \(16, 16\): add a channel axis"):
        encoder(u[0])
    with pytest.raises(SplatopError, match="1 NaN or infinite"):
        encoder(u.at[0, 1, 2].set(jnp.nan))
    with pytest.raises(SplatopError, match=r"got \(6, 16\) points and \(8, 8\) anchors: use fewer"):
        encoder(u[:, :6])
    with pytest.raises(SplatopError, match=r"constant one \(std 0\)"):
        encoder(jnp.full((1, 16, 16), 3.0))


def test_a_wrong_number_of_channels():
    with pytest.raises(SplatopError, match=r"expected a field with 1 channel\(s\)"):
        small_unet()(jnp.asarray(random_field(Grid.unit(16, 2), 2, channels=2)))


@pytest.mark.parametrize("ratio", [0.3, 2.5])
def test_kernel_widths_that_cannot_work(ratio):
    with pytest.raises(SplatopError, match=r"kernel width of 0\.5 to 2 anchor spacings"):
        LatticeEncoder((8, 8), ratio)


def test_too_few_anchors_for_a_kernel():
    with pytest.raises(SplatopError, match="expected more than 2 anchors"):
        LatticeEncoder((2, 8))


def test_unet_settings_that_do_not_exist():
    with pytest.raises(SplatopError, match="unknown amplitude rule 'solve'"):
        small_unet(amplitudes="solve")
    with pytest.raises(SplatopError, match="at least one channel"):
        small_unet(channels=0)

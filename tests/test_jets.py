"""Jet providers: interchangeable, filtered, and each as accurate as it claims."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from oracles import random_field, relative, wave
from splatop.derivative import (
    Derivative,
    bilaplacian,
    gradient,
    inverse_laplacian,
    laplacian,
    partial,
    value,
)
from splatop.encoders import LatticeEncoder, UNetEncoder
from splatop.errors import SplatopError
from splatop.finite_differences import FiniteDifferenceJets
from splatop.grid import Grid
from splatop.jets import Jet, SpectralJets, SplatJets
from splatop.render import DenseRenderer, FourierRenderer, LocalRenderer
from splatop.spectral import PassThrough, SharpFilter, SmoothFilter, differentiate

GRID = Grid((36, 40), (1.0, 2.0))
WANTED = (*gradient(2), laplacian(2), partial(1, 1))


def field(band=3):
    return jnp.asarray(random_field(GRID, band))


@pytest.mark.usefixtures("x64")
def test_spectral_jets_are_exact():
    u = jnp.asarray(wave(GRID, (3, -5)))
    jet = SpectralJets(GRID.lengths, PassThrough())(u, (*WANTED, bilaplacian(2)))
    for d in (*WANTED, bilaplacian(2)):
        assert relative(jet[d], wave(GRID, (3, -5), d)) < 1e-11


@pytest.mark.parametrize(
    ("ratio", "tolerance"),
    # The kernel's transform falls to exp(-2π² (ratio k/A)²) at mode k; its alias at A - k is what
    # the lattice cannot tell apart: exp(-2π² ratio² (1 - 2k/A)) at k/A = 3/16 and below.
    [(1.0, 1e-4), (1.2, 1e-6)],
)
@pytest.mark.usefixtures("x64")
def test_splat_jets_agree_with_spectral_ones(ratio, tolerance):
    u, filter = field(), SharpFilter(6.0)
    splat = SplatJets(LatticeEncoder((16, 16), ratio), GRID.lengths, filter)
    exact = SpectralJets(GRID.lengths, filter)
    found, truth = splat(u, WANTED), exact(u, WANTED)
    for d in WANTED:
        assert relative(found[d], truth[d]) < tolerance


# A band with fewer numbers than there are amplitudes, and one with more.
@pytest.mark.parametrize("cutoff", [2.0, 6.0])
@pytest.mark.usefixtures("x64")
def test_a_held_geometry_gives_the_jets_of_its_gaussians(cutoff):
    u, filter = jnp.concatenate([field(), 0.3 + field(2)]), SharpFilter(cutoff)
    encoder = UNetEncoder((12, 14), 2, widths=(4, 4), key=jax.random.key(0))
    encoder = jax.tree.map(lambda x: 20 * x, encoder)  # away from the lattice
    jets = SplatJets(encoder, GRID.lengths, filter, hold_geometry=True)
    later = u + 0.1 * jnp.roll(u, 3, axis=2) + 0.5
    wanted = (*WANTED, value(2))

    @jax.jit
    def both(u, later):
        step = jets.for_step(u)
        # A state's change goes through: the map is linear.
        found, change = jax.jvp(lambda v: step(v, wanted).values, (later,), (later,))
        return found, change, FourierRenderer()(encoder.hold(u)(later), wanted, GRID, filter)

    found, change, truth = both(u, later)
    for d in wanted:
        assert relative(found[d], truth[d]) < 1e-9
        assert relative(change[d], truth[d]) < 1e-9


@pytest.mark.parametrize("amplitudes", ["predicted", "solved"])
@pytest.mark.usefixtures("x64")
def test_amplitudes_that_stay_and_a_lattice_that_holds_the_difference(amplitudes, monkeypatch):
    # As if there were too many to solve for in every stage.
    for module in ("unet", "amplitudes"):
        monkeypatch.setattr(f"splatop.encoders.{module}.LARGEST_DIRECT_SOLVE", 100)
    u, filter = field(), SharpFilter(3.0)
    encoder = UNetEncoder((12, 14), 1, amplitudes=amplitudes, widths=(4, 4), key=jax.random.key(0))
    later = u + 0.1 * jnp.roll(u, 3, axis=2) + 0.5

    @jax.jit
    def jets_of(u, later):
        step = SplatJets(encoder, GRID.lengths, filter, hold_geometry=True).for_step(u)
        assert step(u, ()).values == {}
        predicted = FourierRenderer()(encoder(u), WANTED, GRID, filter)
        return step(u, WANTED), step(later, WANTED), predicted

    at_start, found, predicted = jets_of(u, later)
    exact = SpectralJets(GRID.lengths, filter)(later - u, WANTED)
    for d in WANTED:
        assert relative(at_start[d], predicted[d]) < 1e-9
        assert relative(found[d] - at_start[d], exact[d]) < 1e-4


@pytest.mark.usefixtures("x64")
def test_renderers_fill_the_same_slot():
    u, encoder, filter = field(), LatticeEncoder((16, 16), 0.6), SharpFilter(4.0)
    dense, local, fourier = (
        jax.jit(SplatJets(encoder, GRID.lengths, filter, renderer), static_argnums=1)(u, WANTED)
        for renderer in (DenseRenderer(), LocalRenderer(), FourierRenderer())
    )
    for d in WANTED:
        # The window reaches 6.7 σ; the samples alias exp(-2π² (0.6/16)² 28²).
        assert relative(local[d], dense[d]) < 1e-7
        assert relative(fourier[d], dense[d]) < 1e-7


@pytest.mark.parametrize("accuracy", [2, 4])
@pytest.mark.parametrize("d", [partial(1, 0), partial(0, 2), partial(3, 0), partial(1, 3)], ids=str)
@pytest.mark.usefixtures("x64")
def test_finite_differences_have_their_order(accuracy, d):
    errors = []
    for n in (24, 48):
        grid = Grid((n, n), (1.0, 2.0))
        jet = FiniteDifferenceJets(grid.lengths, PassThrough(), accuracy)(
            jnp.asarray(wave(grid, (1, 2))), [d]
        )
        errors.append(relative(jet[d], wave(grid, (1, 2), d)))
    # Halving the spacing divides the error by 2^order; the next order in h adds a few percent.
    assert np.log2(errors[0] / errors[1]) == pytest.approx(accuracy, abs=0.15)


@pytest.mark.usefixtures("x64")
def test_every_derivative_is_filtered_and_the_state_is_not():
    u = jnp.asarray(wave(GRID, (2, 1)) + wave(GRID, (9, 0)))
    filter = SmoothFilter(4.0, 1.0)
    for provider in (
        SpectralJets(GRID.lengths, filter),
        FiniteDifferenceJets(GRID.lengths, filter),
        SplatJets(LatticeEncoder((24, 24)), GRID.lengths, filter),
    ):
        jet = provider(u, [partial(1, 0)])
        np.testing.assert_array_equal(jet.state, u)
        # Mode 9 is damped by exp(-25); the lattice leaks mode 9 into 24 - 9 = 15, dropped too.
        assert relative(jet[partial(1, 0)], wave(GRID, (2, 1), partial(1, 0))) < 5e-3


def test_a_value_can_be_asked_for_too():
    u = field().astype(jnp.float32)
    jet = SpectralJets(GRID.lengths, SharpFilter(2.0))(u, [value(2)])
    np.testing.assert_allclose(jet[value(2)], SharpFilter(2.0)(u, GRID.lengths), atol=1e-6)


@pytest.mark.usefixtures("x64")
def test_the_stream_function_of_a_vorticity():
    u = jnp.asarray(wave(GRID, (2, 1)))
    d = inverse_laplacian(2)
    for provider in (
        SpectralJets(GRID.lengths, PassThrough()),
        SplatJets(LatticeEncoder((18, 20)), GRID.lengths, SharpFilter(8.0)),
    ):
        psi = provider(u, [d])[d]
        assert relative(differentiate(psi, laplacian(2), GRID.lengths), u) < 1e-6


def test_an_absent_derivative_is_named():
    jet = SpectralJets(GRID.lengths, PassThrough())(field(), [partial(1, 0)])
    with pytest.raises(SplatopError, match=r"derivative d2y \+ d2x, it holds dx"):
        jet[laplacian(2)]


@pytest.mark.parametrize("d", [inverse_laplacian(2), partial(5, 0)], ids=str)
def test_finite_differences_refuse_what_they_cannot_give(d):
    with pytest.raises(SplatopError, match="finite differences give derivatives up to fourth"):
        FiniteDifferenceJets(GRID.lengths, PassThrough())(field(), [d])


@pytest.mark.parametrize("renderer", [DenseRenderer(), LocalRenderer()], ids=["dense", "local"])
def test_splats_without_fourier_refuse_the_inverse_laplacian(renderer):
    provider = SplatJets(LatticeEncoder((16, 16)), GRID.lengths, PassThrough(), renderer)
    with pytest.raises(SplatopError, match="use FourierRenderer"):
        provider(field(), [inverse_laplacian(2)])


def test_only_known_accuracies():
    with pytest.raises(SplatopError, match="accuracy 2 or 4, got 3"):
        FiniteDifferenceJets(GRID.lengths, PassThrough(), 3)


def providers():
    return [
        SpectralJets((1.0, 2.0), PassThrough()),
        FiniteDifferenceJets((1.0, 2.0), PassThrough()),
        SplatJets(LatticeEncoder((16, 16)), (1.0, 2.0), PassThrough()),
    ]


@pytest.mark.parametrize("provider", providers(), ids=lambda p: type(p).__name__)
def test_bad_fields_are_refused(provider):
    with pytest.raises(SplatopError, match="add a channel axis"):
        provider(jnp.ones((36, 40)), [])
    with pytest.raises(SplatopError, match="1 NaN or infinite"):
        provider(field().at[0, 3, 4].set(jnp.inf), [partial(1, 0)])


def test_a_lattice_that_changes_with_the_field_is_refused():
    with pytest.raises(SplatopError, match=r"LatticeEncoder\.for_field"):
        SplatJets(LatticeEncoder(), (1.0, 1.0), PassThrough())


def test_jets_pass_through_jit():
    u = field().astype(jnp.float32)
    jet = jax.jit(lambda u: SpectralJets(GRID.lengths, PassThrough())(u, WANTED))(u)
    assert isinstance(jet, Jet)
    assert jet.grid == GRID
    assert set(jet.values) == set(WANTED)


@pytest.mark.parametrize(("layout", "accuracy"), [("ends", 2), ("ends", 4), ("cells", 4)])
def test_one_sided_differences_between_ends(layout, accuracy, x64):
    """Exact for polynomials below their accuracy plus order, up to the walls."""
    grid = Grid((20, 9), (2.0, 1.0), layout=(layout, "left"))
    x, y = grid.coordinates()
    jets = FiniteDifferenceJets((2.0, 1.0), PassThrough(), accuracy, (layout, "left"))
    for order in (1, 2, 3, 4):
        power = order + accuracy - 1
        u = jnp.asarray(x**power + 0 * y)[None]
        wanted = Derivative((((order, 0), 1.0),))
        exact = x ** (power - order) * np.prod(np.arange(power - order + 1, power + 1.0)) + 0 * y
        np.testing.assert_allclose(jets(u, [wanted])[wanted][0], exact, atol=1e-8 * np.max(exact))


def test_differences_between_ends_want_no_filter_and_enough_points():
    with pytest.raises(SplatopError, match="PassThrough"):
        FiniteDifferenceJets((1.0,), SharpFilter(3.0), 4, ("ends",))
    jets = FiniteDifferenceJets((1.0,), PassThrough(), 4, ("ends",))
    with pytest.raises(SplatopError, match="at least 6 points"):
        jets(jnp.zeros((1, 5)), [Derivative((((2,), 1.0),))])

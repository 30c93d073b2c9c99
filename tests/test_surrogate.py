"""The composite step: what it equals before training, and where gradients go."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from splatop.encoders import UNetEncoder
from splatop.equation import Equation
from splatop.equation.terms import Diffusion, SelfAdvection
from splatop.errors import SplatopError
from splatop.numerics import Numerics, build_physics
from splatop.operators import FNO, Conditioning
from splatop.surrogate import COUPLINGS, ScaledOperator, Surrogate, residual_scale
from splatop.training.losses import rollout_loss

BURGERS = Equation((SelfAdvection(), Diffusion(coefficient="nu")), ("u_x", "u_y"))
COEFFICIENTS = {"c": 0.02, "nu": 1e-3}
NUMERICS = Numerics("box", (5.0,), 0.0, (14, 14), substeps=1)
POINTS, LENGTHS, DT = 16, (1.0, 1.0), 0.5


def smooth_field(seed: int, channels: int = 2) -> jax.Array:
    """Random modes up to 3 in each direction."""
    rng = np.random.default_rng(seed)
    x = np.arange(POINTS) / POINTS
    u = np.zeros((channels, POINTS, POINTS))
    for c in range(channels):
        for k in range(-3, 4):
            for m in range(4):
                phase = 2 * np.pi * (k * x[:, None] + m * x[None] + rng.random())
                u[c] += rng.normal() * np.cos(phase) / 4
    return jnp.asarray(u, jnp.result_type(float))


def physics(encoder=None, numerics: Numerics = NUMERICS):
    return build_physics(BURGERS, numerics, lengths=LENGTHS, dt=DT, encoder=encoder)


def small_unet():
    return UNetEncoder((8, 8), 2, key=jax.random.key(3), widths=(4, 4), pixels=2)


def surrogate(network=None, *, phi=None, coupling="parallel", conditioning=None, **options):
    if network is None:
        conditions = 0 if conditioning is None else 2
        network = FNO(
            2, 2, hidden=3, modes=3, blocks=2, conditions=conditions, key=jax.random.key(1)
        )
    center, spread, scale = jnp.array([0.1, -0.2]), jnp.array([0.5, 2.0]), jnp.array([0.03, 0.01])
    return Surrogate(
        physics() if phi is None else phi, network, center, spread, scale,
        conditioning, coupling, **options,
    )  # fmt: skip


def trained(model: Surrogate) -> Surrogate:
    """As if it had been trained: no array of the network is zero."""
    arrays, rest = eqx.partition(model.network, eqx.is_inexact_array)
    leaves, structure = jax.tree.flatten(arrays)
    keys = jax.random.split(jax.random.key(7), len(leaves))
    moved = [
        a + 0.3 * jax.random.normal(k, a.shape, a.dtype) for a, k in zip(leaves, keys, strict=True)
    ]
    network = eqx.combine(jax.tree.unflatten(structure, moved), rest)
    return eqx.tree_at(lambda m: m.network, model, network)


@pytest.mark.slow
@pytest.mark.parametrize("coupling", COUPLINGS)
def test_untrained_composite_is_the_physics_to_the_last_bit(coupling):
    model, u = surrogate(coupling=coupling), smooth_field(0)
    # The same operations one by one: a compiler could round a fused one differently.
    with jax.disable_jit():
        composite, alone = model(u, COEFFICIENTS), model.physics(u, COEFFICIENTS)
    assert np.array_equal(composite, alone)


@pytest.mark.slow
def test_parallel_coupling_adds_the_operator_in_units_of_the_residual():
    model, u = trained(surrogate()), smooth_field(1)
    center, spread, scale = (a[:, None, None] for a in (model.center, model.spread, model.scale))
    expected = model.physics(u, COEFFICIENTS) + scale * model.network((u - center) / spread)
    np.testing.assert_allclose(model(u, COEFFICIENTS), expected, rtol=0, atol=1e-6)
    assert not np.allclose(expected, model.physics(u, COEFFICIENTS), atol=1e-3)


def test_sequential_coupling_corrects_what_the_physics_returns():
    model, u = trained(surrogate(coupling="sequential")), smooth_field(1)
    after = model.physics(u, COEFFICIENTS)
    expected = after + model.correction(after, COEFFICIENTS)
    np.testing.assert_allclose(model(u, COEFFICIENTS), expected, rtol=0, atol=1e-6)
    # Not the parallel one: a step of DT moves the fields by several percent.
    parallel = after + model.correction(u, COEFFICIENTS)
    assert np.abs(np.asarray(expected - parallel)).max() > 1e-4


def test_rhs_coupling_is_rk4_of_physics_plus_operator():
    phi = physics(numerics=replace(NUMERICS, working_grid=False))
    model, u = trained(surrogate(phi=phi, coupling="rhs")), smooth_field(1)

    def slope(v):
        return model.physics.tendency(v, COEFFICIENTS) + model.correction(v, COEFFICIENTS) / DT

    k1 = slope(u)
    k2 = slope(u + DT / 2 * k1)
    k3 = slope(u + DT / 2 * k2)
    k4 = slope(u + DT * k3)
    after = u + DT / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    expected = model.physics.jets.filter(after, LENGTHS)
    np.testing.assert_allclose(model(u, COEFFICIENTS), expected, rtol=0, atol=2e-6)


def test_unknown_coupling_names_the_nearest():
    with pytest.raises(SplatopError, match="did you mean 'sequential'"):
        surrogate(coupling="sequental")


def gradients(model, window):
    def loss(arrays, rest):
        stepper = eqx.combine(arrays, rest)
        return rollout_loss(stepper, window, COEFFICIENTS, scale=model.scale)[0]

    arrays, rest = eqx.partition(model, eqx.is_inexact_array)
    return eqx.filter_jit(jax.grad(loss))(arrays, rest)


@pytest.mark.slow
@pytest.mark.parametrize(
    "coupling",
    [pytest.param(c, marks=() if c == "parallel" else pytest.mark.slow) for c in COUPLINGS],
)
def test_every_network_parameter_learns_and_nothing_else_does(coupling):
    conditioning = Conditioning(("c", "nu"), [0.01, 2e-3], [0.02, 1e-3])
    numerics = replace(NUMERICS, encoder="unet", anchors=(8, 8))
    model = surrogate(
        phi=physics(small_unet(), numerics), coupling=coupling, conditioning=conditioning
    )
    model = trained(model)
    window = jnp.stack([smooth_field(s) for s in range(3)])
    gradient = gradients(model, window)
    of_network = jax.tree.leaves(gradient.network)
    assert len(of_network) == len(jax.tree.leaves(eqx.filter(model.network, eqx.is_array)))
    for leaf in of_network:
        # Imaginary parts of modes that mirror themselves never matter; everything else does.
        assert np.mean(np.asarray(leaf) != 0) > 0.5
    rest = eqx.tree_at(lambda m: m.network, gradient, None)
    frozen = jax.tree.leaves(rest)
    # Center, spread, scale, two statistics of the coefficients, the encoder's convolutions.
    assert len(frozen) > 10
    assert all(np.all(np.asarray(leaf) == 0) for leaf in frozen)


def slope_and_difference(step, u, size: float = 1e-5) -> tuple[float, float]:
    """The derivative of a loss of two steps along a direction, by autodiff and by differences."""
    target, direction = smooth_field(2), smooth_field(3)

    @jax.jit
    def loss(by):
        after = u + by * direction
        for _ in range(2):
            after = step(after, {"c": 0.02 + by, "nu": 1e-3})
        return jnp.mean((after - target) ** 2)

    difference = float(loss(size) - loss(-size)) / (2 * size)
    return float(jax.jit(jax.grad(loss))(0.0)), difference


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    "coupling",
    [pytest.param(c, marks=() if c == "parallel" else pytest.mark.slow) for c in COUPLINGS],
)
def test_a_step_is_differentiable_and_only_the_loss_stops_at_the_physics(coupling):
    model = trained(surrogate(coupling=coupling))
    slope, difference = slope_and_difference(model, smooth_field(1))
    # Central differences: h² times a third derivative, here 1e-10 of a slope of order one.
    assert slope == pytest.approx(difference, rel=1e-6)
    assert abs(slope) > 1e-2

    def in_loss(nu):
        return jnp.mean(model.in_loss(smooth_field(1), {"c": 0.02, "nu": nu}) ** 2)

    assert float(jax.grad(in_loss)(1e-3)) == 0.0
    np.testing.assert_array_equal(
        model.in_loss(smooth_field(1), COEFFICIENTS), model(smooth_field(1), COEFFICIENTS)
    )


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("hold", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_gradients_pass_through_a_learned_geometry_and_its_solve(hold):
    numerics = replace(NUMERICS, encoder="unet", anchors=(8, 8), hold_geometry=hold)
    model = surrogate(phi=physics(small_unet(), numerics))
    slope, difference = slope_and_difference(model, smooth_field(1))
    assert slope == pytest.approx(difference, rel=1e-5)


def test_conditioning_reaches_the_network():
    conditioning = Conditioning(("c", "nu"), [0.01, 2e-3], [0.02, 1e-3])
    model, u = trained(surrogate(conditioning=conditioning)), smooth_field(1)
    center, spread, scale = (a[:, None, None] for a in (model.center, model.spread, model.scale))
    # (0.02 - 0.01)/0.02 and (1e-3 - 2e-3)/1e-3.
    expected = scale * model.network((u - center) / spread, jnp.array([0.5, -1.0]))
    found = model.correction(u, COEFFICIENTS)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    other = model.correction(u, {**COEFFICIENTS, "nu": 4e-3})
    assert np.abs(np.asarray(other - found)).max() > 1e-4
    with pytest.raises(SplatopError, match="nu"):
        model.correction(u, {"c": 0.02})


def test_scaled_operator_sees_and_answers_in_units_of_the_data():
    network = FNO(2, 2, hidden=3, modes=3, blocks=1, key=jax.random.key(1), zero_projection=False)
    center, spread = jnp.array([0.1, -0.2]), jnp.array([0.5, 2.0])
    u = smooth_field(1)
    c, s = center[:, None, None], spread[:, None, None]
    expected = c + s * network((u - c) / s)
    found = ScaledOperator(network, center, spread)(u, {})
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_residual_scale_is_what_the_physics_misses():
    phi = physics()
    before = jnp.stack([smooth_field(s) for s in range(4)])
    own = {k: jnp.full(4, v) for k, v in COEFFICIENTS.items()}
    exact = jax.vmap(phi)(before, own)
    rng = np.random.default_rng(0)
    missed = jnp.asarray(rng.normal(size=exact.shape), exact.dtype) * jnp.array(
        [0.1, 0.02]
    ).reshape(2, 1, 1)
    found = residual_scale(phi, before, exact + missed, own)
    # 1,024 normal numbers per channel: their root mean square is known to 2 %.
    np.testing.assert_allclose(found, [0.1, 0.02], rtol=0.08)
    floor = residual_scale(phi, before, exact, own)
    assert np.all(np.asarray(floor) > 0)


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_refuses_fields_of_the_wrong_shape(coupling):
    model = surrogate(coupling=coupling)
    with pytest.raises(SplatopError, match=r"2 channel"):
        model(smooth_field(0, channels=1), COEFFICIENTS)
    with pytest.raises(SplatopError, match="add a channel axis"):
        model(smooth_field(0)[0], COEFFICIENTS)


@pytest.mark.parametrize("coupling", ["parallel", "rhs"])
def test_a_loss_over_unlike_intervals_has_a_gradient(coupling):
    """A traced number of substeps has a derivative forwards alone: both ways agree."""
    model = trained(
        surrogate(coupling=coupling, through_physics=True, longest=1.5 * DT, phi=physics())
    )
    u, way = smooth_field(0), smooth_field(1)

    def after(u, interval):
        return jnp.sum(model.in_loss(u, {**COEFFICIENTS, "dt": interval}) ** 2)

    interval = jnp.asarray(0.8 * DT)
    slopes = jax.grad(after)(u, interval)
    _, forwards = jax.jvp(lambda u: after(u, interval), (u,), (way,))
    assert float(forwards) == pytest.approx(float(jnp.vdot(slopes, way)), rel=1e-4)
    plain = jnp.sum(model(u, {**COEFFICIENTS, "dt": interval}) ** 2)
    assert float(after(u, interval)) == pytest.approx(float(plain), rel=1e-3)

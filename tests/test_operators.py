"""The FNO against pdequinox's, its derivatives, batching, conditioning, and the baselines."""

import subprocess
import sys
from functools import lru_cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pdequinox as pdeqx
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from oracles import relative
from splatop.errors import SplatopError
from splatop.operators import (
    FNO,
    Conditioning,
    OperatorStepper,
    baseline,
    batching,
    parameter_count,
)
from splatop.operators.dft import analysis, from_modes, synthesis, to_modes
from splatop.operators.kernels import activate
from splatop.stepper import rollout

KEY = jax.random.key(0)


@lru_cache
def reference(dims, channels, *, modes=3, hidden=4, blocks=2):
    """A pdequinox FNO with weights three times the usual, so that all of its paths matter."""
    model = pdeqx.arch.ClassicFNO(
        dims,
        channels,
        channels,
        hidden_channels=hidden,
        num_modes=modes,
        num_blocks=blocks,
        key=KEY,
    )
    return jax.tree.map(lambda x: 3 * x if eqx.is_inexact_array(x) else x, model)


def noise(*shape, seed=1):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape))


@eqx.filter_jit
def run(network, *inputs):
    return network(*inputs)


def conditioned(network, scale=0.3):
    """The network with FiLM layers away from the identity."""
    leaves = [leaf for block in network.blocks for leaf in (block.film.weight, block.film.bias)]
    drawn = [scale * noise(*leaf.shape, seed=i) for i, leaf in enumerate(leaves)]
    return eqx.tree_at(
        lambda n: [leaf for block in n.blocks for leaf in (block.film.weight, block.film.bias)],
        network,
        drawn,
    )


def with_weights_of(plain, network):
    """A conditioned network with the weights of an unconditioned one, and its own FiLM layers."""
    films = [block.film for block in network.blocks]
    filled = eqx.tree_at(
        lambda n: [block.film for block in n.blocks], plain, films, is_leaf=lambda x: x is None
    )
    arrays = jax.tree.leaves(filled)
    return jax.tree.unflatten(jax.tree.structure(network), arrays)


# Weights of three times the usual make every path count; the smallest sizes put the kept modes at
# the limit: N = 2m on leading axes, and the Nyquist mode N/2 = m - 1 on the last.
SHAPES = [
    (1, (4,)), (1, (9,)), (2, (32,)),
    (1, (6, 4)), (1, (16, 11)), (2, (7, 12)),
    (1, (6, 6, 4)), (2, (7, 8, 9)),
]  # fmt: skip


@pytest.mark.parametrize(("channels", "points"), SHAPES)
def test_agrees_with_pdequinox(channels, points):
    with jax.enable_x64(True):
        model = reference(len(points), channels)
        u = noise(channels, *points)
        # Rounding: sums of some 1e3 terms in float64 leave 1e-14, through the blocks.
        assert relative(run(FNO.from_pdequinox(model), u), run(model, u)) < 1e-12


def test_paper_settings_agree_in_float32():
    model = reference(2, 2, modes=10, hidden=6, blocks=4)
    u = noise(2, 40, 64)
    # Sums of 64 terms by 1e-7 each, through four blocks.
    assert relative(run(FNO.from_pdequinox(model), u), run(model, u)) < 3e-6


def test_modes_may_differ_per_axis():
    with jax.enable_x64(True):
        model = reference(3, 1, modes=(2, 4, 3))
        u = noise(1, 4, 9, 10)
        assert relative(run(FNO.from_pdequinox(model), u), run(model, u)) < 1e-12


def test_wide_networks_agree_too():
    """Beyond 32 hidden channels the sums over channels are matrix products."""
    with jax.enable_x64(True):
        model = reference(2, 1, hidden=33)
        u = noise(1, 6, 7)
        assert relative(run(FNO.from_pdequinox(model), u), run(model, u)) < 1e-12


def test_same_key_same_network_as_pdequinox():
    ours = FNO(2, 1, modes=3, key=KEY, zero_projection=False)
    theirs = pdeqx.arch.ClassicFNO(2, 1, 1, hidden_channels=6, num_modes=3, num_blocks=4, key=KEY)
    assert eqx.tree_equal(ours, FNO.from_pdequinox(theirs))


@pytest.mark.parametrize("points", [(12,), (8, 11), (6, 7, 8)])
def test_gradients_agree_with_pdequinox(points):
    with jax.enable_x64(True):
        model = reference(len(points), 2)
        u, target = noise(2, *points), noise(2, *points, seed=2)

        @eqx.filter_jit
        @eqx.filter_grad
        def gradients(inputs):
            network, u = inputs
            return jnp.mean((network(u) - target) ** 2)

        theirs, du = gradients((model, u))
        # A gradient with respect to weights changes layout as the weights do.
        static = eqx.filter(model, eqx.is_inexact_array, inverse=True)
        theirs = FNO.from_pdequinox(eqx.combine(theirs, static))
        ours, our_du = gradients((FNO.from_pdequinox(model), u))
        assert relative(our_du, du) < 1e-12
        for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            assert relative(a, b) < 1e-11


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("batched", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_forward_mode_agrees_with_finite_differences(batched):
    """`jvp` and `linearize`, in weights and state, and their transpose; of one state or more."""
    network = FNO(2, 1, hidden=3, modes=2, blocks=2, key=jax.random.key(0), zero_projection=False)
    rng = np.random.default_rng(0)

    def drawn(tree):
        return jax.tree.map(lambda a: jnp.asarray(rng.normal(size=a.shape)), tree)

    weights, rest = eqx.partition(network, eqx.is_array)
    weights = drawn(weights)
    x = (weights, jnp.asarray(rng.normal(size=(3, 1, 6, 7) if batched else (1, 6, 7))))
    direction = drawn(x)

    @jax.jit
    def outputs(x):
        one = eqx.combine(x[0], rest)
        return jax.vmap(one)(x[1]) if batched else one(x[1])

    def moved(size):
        return outputs(jax.tree.map(lambda a, d: a + size * d, x, direction))

    out, tangent = jax.jit(lambda x, d: jax.jvp(outputs, (x,), (d,)))(x, direction)
    # Central differences are off by h² = 1e-10 times third derivatives, up to 1e3 of the output.
    difference = (moved(1e-5) - moved(-1e-5)) / 2e-5
    assert relative(tangent, difference) < 1e-6
    assert relative(out, outputs(x)) < 1e-12
    value, linear = jax.linearize(outputs, x)
    assert relative(linear(direction), tangent) < 1e-12
    # The other mode is the transpose: <J d, y> = <d, Jᵀ y>.
    y = jnp.asarray(rng.normal(size=value.shape))
    (back,) = jax.vjp(outputs, x)[1](y)
    pairs = zip(jax.tree.leaves(back), jax.tree.leaves(direction), strict=True)
    assert sum(float(jnp.vdot(b, d)) for b, d in pairs) == pytest.approx(
        float(jnp.vdot(tangent, y)), rel=1e-10
    )
    # In the state alone, as assimilation needs it.
    still = jax.tree.map(jnp.zeros_like, direction[0])
    of_state = jax.jvp(lambda u: outputs((weights, u)), (x[1],), (direction[1],))[1]
    both = jax.jvp(outputs, (x,), ((still, direction[1]),))[1]
    assert relative(of_state, both) < 1e-12


def test_untrained_network_is_exactly_zero():
    assert not jnp.any(run(FNO(2, 2, modes=3, key=KEY), noise(2, 12, 12)))
    assert jnp.any(run(FNO(2, 2, modes=3, key=KEY, zero_projection=False), noise(2, 12, 12)))


@pytest.mark.slow
def test_output_hardly_depends_on_resolution():
    """The GELU of a smooth field is smooth: what aliases falls off geometrically with N."""
    with jax.enable_x64(True):
        network = FNO(1, 1, modes=3, hidden=4, blocks=2, key=KEY, zero_projection=False)

        def sampled(n):
            x = jnp.arange(n) / n
            u = 0.4 * jnp.sin(2 * jnp.pi * x) + 0.2 * jnp.cos(4 * jnp.pi * x)
            return run(network, u[None])[:, :: n // 8]

        fine = sampled(256)
        errors = [relative(sampled(n), fine) for n in (8, 16, 32)]
        assert errors[1] < errors[0] / 30
        assert errors[2] < errors[1] / 30
        assert errors[2] < 1e-7


@pytest.mark.slow
def test_transform_is_a_truncated_rfft():
    with jax.enable_x64(True):
        h = noise(7, 8, 2, 9)  # (x, y, channel, z)
        real, imag = to_modes(analysis(h, (2, 3, 4)))
        full = jnp.fft.rfftn(h, axes=(0, 1, 3), norm="forward")
        kept = full[np.ix_([0, 1, -1, -2], [0, 1, 2, -1, -2, -3], [0, 1], range(4))]
        np.testing.assert_allclose(real + 1j * imag, kept, atol=1e-14)
        # `from_modes` is the transpose of `to_modes`; back in space, nothing but the kept modes.
        z, g = analysis(h, (2, 3, 4)), (noise(4, 6, 2, 4), noise(4, 6, 2, 4, seed=3))
        forth = jnp.vdot(real, g[0]) + jnp.vdot(imag, g[1])
        assert jnp.isclose(jnp.vdot(z, from_modes(g)), forth, rtol=1e-13)
        mask = jnp.zeros(full.shape).at[np.ix_([0, 1, -1, -2], [0, 1, 2, -1, -2, -3])].set(1.0)
        mask = mask.at[..., 4:].set(0.0)
        again = jnp.fft.irfftn(full * mask, s=(7, 8, 9), axes=(0, 1, 3), norm="forward")
        back = synthesis(from_modes((real, imag)), (7, 8, 9))
        np.testing.assert_allclose(back, again, atol=1e-13)


def test_activation_and_its_derivative():
    """Against `jax.nn.gelu`, also where the exponential would overflow."""
    x = jnp.array([-1e4, -60.0, -9.0, -1.0, -1e-3, 0.0, 0.5, 3.0, 60.0, 1e4])
    one, zero = jnp.ones((1, 1)), jnp.zeros((1, x.size))

    def ours(x):
        return activate(zero, one, x[None])[0]

    np.testing.assert_allclose(ours(x), jax.nn.gelu(x), rtol=1e-5, atol=1e-7)
    slope = jax.vmap(jax.grad(jax.nn.gelu))(jnp.clip(x, -60, 60))  # theirs overflows further out
    np.testing.assert_allclose(jax.grad(lambda x: ours(x).sum())(x), slope, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_batches_equal_single_samples(monkeypatch):
    """A batch of six as a loop over three pairs; its gradients, summed and per sample."""
    monkeypatch.setattr(batching, "CACHE_BYTES", 2 * 4 * 9 * 8 * 8)  # two float64 samples
    with jax.enable_x64(True):
        network = FNO(2, 1, modes=3, hidden=4, blocks=2, conditions=2, key=KEY)
        network = conditioned(eqx.tree_at(lambda n: n.projection_weight, network, noise(1, 4)))
        u, c, target = noise(6, 1, 9, 8), noise(6, 2, seed=2), noise(6, 1, 9, 8, seed=3)

        def loss(network, u, c, target):
            out = network(u, c)
            return jnp.sum((out - target) ** 2), out

        def batch_loss(network, u, c, target):
            losses, out = jax.vmap(loss, (None, 0, 0, 0))(network, u, c, target)
            return jnp.sum(losses), out

        grad = jax.jit(jax.grad(loss, argnums=(0, 1, 2), has_aux=True))
        singles = [grad(network, u[i], c[i], target[i]) for i in range(6)]
        stacked, out = jax.tree.map(lambda *parts: jnp.stack(parts), *singles)

        each = jax.jit(jax.vmap(grad, (None, 0, 0, 0)))
        assert "while" in each.lower(network, u, c, target).as_text()
        per_sample, batch_out = each(network, u, c, target)
        assert relative(batch_out, out) < 1e-13
        for a, b in zip(jax.tree.leaves(per_sample), jax.tree.leaves(stacked), strict=True):
            assert relative(a, b) < 1e-11

        summed = jax.jit(jax.grad(batch_loss, argnums=(0, 1, 2), has_aux=True))
        (dn, du, dc), batch_out = summed(network, u, c, target)
        assert relative(batch_out, out) < 1e-13
        for a, b in zip(jax.tree.leaves(dn), jax.tree.leaves(stacked[0]), strict=True):
            assert relative(a, b.sum(0)) < 1e-11
        assert relative(du, stacked[1]) < 1e-11
        assert relative(dc, stacked[2]) < 1e-11


@pytest.mark.parametrize(
    ("batch", "sample", "piece"), [(20, 0.6, 1), (20, 0.1, 10), (20, 0.01, 20), (7, 0.5, 1)]
)
def test_pieces_divide_the_batch_and_fit_the_cache(batch, sample, piece):
    assert batching.piece_size(batch, int(sample * batching.CACHE_BYTES)) == piece


@pytest.mark.slow
def test_batch_of_batches_and_batch_of_networks():
    network = FNO(1, 1, modes=3, hidden=4, blocks=2, key=KEY, zero_projection=False)
    u = noise(2, 3, 1, 8)
    nested = jax.jit(lambda u: jax.vmap(jax.vmap(network))(u))(u)
    np.testing.assert_allclose(nested[1, 2], run(network, u[1, 2]), rtol=1e-5, atol=1e-7)
    networks = jax.tree.map(lambda w: jnp.stack([w, 2 * w]), network)
    pair = jax.jit(jax.vmap(lambda n: n(u[0, 0])))(networks)
    np.testing.assert_allclose(pair[0], nested[0, 0], rtol=1e-5, atol=1e-7)
    assert relative(pair[1], pair[0]) > 0.1


def test_linear_maps_keep_the_sharding_of_types():
    """With explicit axes shardings are a part of types; one device has them as well."""
    mesh = jax.make_mesh((1,), ("batch",), axis_types=(AxisType.Explicit,))
    network = FNO(2, 1, modes=2, hidden=2, blocks=1, key=KEY, zero_projection=False)
    u = jax.device_put(jnp.ones((4, 1, 8, 8)), NamedSharding(mesh, PartitionSpec("batch")))
    network = jax.device_put(network, NamedSharding(mesh, PartitionSpec()))
    out = jax.eval_shape(jax.vmap(network), u)
    assert out.sharding.spec[0] == "batch"


SHARDED = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from splatop.operators import FNO, batching
batching.CACHE_BYTES = 1
network = FNO(2, 1, modes=3, key=jax.random.key(0), zero_projection=False)
u = jax.random.normal(jax.random.key(1), (8, 1, 12, 12))
loss = jax.jit(jax.value_and_grad(lambda n, u: jnp.mean(jax.vmap(n)(u) ** 2)))
for axis_type in (AxisType.Auto, AxisType.Explicit):
    mesh = jax.make_mesh((2,), ("batch",), axis_types=(axis_type,))
    spread = jax.device_put(u, NamedSharding(mesh, P("batch")))
    everywhere = jax.device_put(network, NamedSharding(mesh, P()))
    compiled = loss.lower(everywhere, spread).compile().as_text()
    assert "while" in compiled
    assert "all-gather" not in compiled and "all-to-all" not in compiled, axis_type
    for x, y in zip(jax.tree.leaves(loss(network, u)), jax.tree.leaves(loss(everywhere, spread))):
        assert jnp.allclose(jax.device_get(x), jax.device_get(y), rtol=1e-4, atol=1e-6)
"""


@pytest.mark.slow
def test_a_sharded_batch_stays_sharded():
    environment = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "PATH": ""}
    subprocess.run([sys.executable, "-c", SHARDED], check=True, env=environment)


@pytest.mark.slow
def test_film_modulates_before_the_activation():
    """Against the blocks of pdequinox with the modulation of appendix C written out."""
    with jax.enable_x64(True):
        model = reference(2, 1)
        plain = FNO.from_pdequinox(model)
        network = FNO(2, 1, modes=3, hidden=4, blocks=2, conditions=2, key=KEY)
        assert parameter_count(network) == parameter_count(plain) + 2 * 2 * 4 * (2 + 1)
        network = with_weights_of(plain, network)
        u, condition = noise(1, 9, 8), jnp.array([0.7, -1.2])
        assert (
            relative(run(network, u, condition), run(model, u)) < 1e-12
        )  # the identity to begin with

        network = conditioned(network)
        x = model.lifting(u)
        for block, ours in zip(model.blocks, network.blocks, strict=True):
            scale, shift = (ours.film.weight @ condition + ours.film.bias)[:, :, None, None]
            x = block.spectral_conv(x) + block.by_pass_conv(x)
            x = jax.nn.gelu(x * (1 + scale) + shift)
        assert relative(run(network, u, condition), model.projection(x)) < 1e-12


def test_every_film_parameter_receives_a_gradient():
    network = FNO(1, 1, modes=3, blocks=2, conditions=2, key=KEY, zero_projection=False)
    condition = jnp.array([0.5, -1.0])
    gradient = jax.jit(jax.grad(lambda n: jnp.sum(n(noise(1, 8), condition) ** 2)))(network)
    assert all(
        jnp.all(leaf != 0) for block in gradient.blocks for leaf in jax.tree.leaves(block.film)
    )


def test_conditioning_standardises_in_order():
    conditioning = Conditioning.fit({"v": np.array([1.0, 3.0]), "D": np.array([0.1, 0.1])})
    assert conditioning.names == ("v", "D")
    # "D" does not vary: deviation 1. The order given does not matter, nor do further ones.
    vector = conditioning({"D": 0.6, "other": 9.0, "v": 1.0})
    np.testing.assert_allclose(vector, [-1.0, 0.5], rtol=1e-6)
    gradient = jax.grad(lambda c: c({"v": 5.0, "D": 1.0}).sum())(conditioning)
    assert not jnp.any(gradient.mean)
    assert not jnp.any(gradient.std)
    wrt = jax.grad(lambda v: conditioning({"v": v, "D": 1.0}).sum())(5.0)
    assert jnp.isclose(wrt, 1.0)


@pytest.mark.slow
def test_steppers_roll_out():
    conditioning = Conditioning(("v",), np.array([1.0]), np.array([2.0]))
    network = conditioned(FNO(1, 1, modes=3, conditions=1, key=KEY, zero_projection=False))
    stepper = OperatorStepper(network, conditioning)
    assert stepper.coefficient_names == ("v",)
    u = noise(1, 12)
    first = run(network, u, jnp.array([1.0]))
    states = rollout(stepper, u, {"v": 3.0}, steps=2)
    np.testing.assert_allclose(states[0], first, rtol=1e-5)
    np.testing.assert_allclose(
        states[1], run(network, first, jnp.array([1.0])), rtol=1e-4, atol=1e-6
    )

    decay = OperatorStepper(lambda u: 0.5 * u)  # any callable will do
    assert decay.coefficient_names == ()
    np.testing.assert_allclose(rollout(decay, u, {}, steps=3)[-1], u / 8, rtol=1e-6)


COUNTS = {
    ("fno", 2, 1): 57_787, ("fno", 2, 2): 57_800, ("fno", 3, 1): 1_152_187,
    ("unet", 2, 1): 55_661, ("unet", 2, 2): 55_762, ("unet", 3, 1): 1_115_817,
    ("resnet", 2, 1): 61_179, ("resnet", 2, 2): 61_232, ("resnet", 3, 1): 1_151_868,
}  # fmt: skip


@pytest.mark.parametrize(("name", "dims", "channels"), COUNTS)
def test_parameter_counts_are_the_papers(name, dims, channels):
    # Shapes suffice, and skip drawing a million weights.
    network = eqx.filter_eval_shape(baseline, name, dims, channels, key=KEY)
    count = sum(
        leaf.size for leaf in jax.tree.leaves(network) if isinstance(leaf, jax.ShapeDtypeStruct)
    )
    assert count == COUNTS[name, dims, channels]


@pytest.mark.parametrize(
    ("name", "count"), [("fno", 579_217), ("unet", 564_930), ("resnet", 577_202)]
)
def test_tenfold_baselines(name, count):
    assert parameter_count(baseline(name, 2, 2, key=KEY, tenfold=True)) == count


@pytest.mark.parametrize("name", ["fno", "unet", "resnet"])
def test_baselines_commute_with_periodic_shifts(name):
    network, u = baseline(name, 2, 1, key=KEY), noise(1, 24, 24)
    shift = (4, 8)  # multiples of the coarsest cell of two U-Net levels
    shifted = run(network, jnp.roll(u, shift, axis=(1, 2)))
    # float32 sums of about 1e3 terms in another order
    np.testing.assert_allclose(shifted, jnp.roll(run(network, u), shift, axis=(1, 2)), atol=2e-5)
    assert jnp.any(shifted)


def test_errors_say_what_to_do():
    network = FNO(2, 1, modes=4, key=KEY)
    with pytest.raises(SplatopError, match=r"grid coarser than the model's modes.*\(8, 6\)"):
        network(noise(1, 7, 8))
    with pytest.raises(SplatopError, match="grid coarser"):
        network(noise(1, 8, 5))
    with pytest.raises(SplatopError, match="1 channel"):
        network(noise(2, 8, 8))
    with pytest.raises(SplatopError, match="add a channel axis"):
        network(noise(8, 8))
    with pytest.raises(SplatopError, match="condition of 0"):
        network(noise(1, 8, 8), jnp.ones(1))
    with pytest.raises(SplatopError, match="condition of 2"):
        FNO(2, 1, modes=3, conditions=2, key=KEY)(noise(1, 8, 8))
    with pytest.raises(SplatopError, match="at least one"):
        FNO(2, 1, modes=0, key=KEY)
    with pytest.raises(SplatopError, match="expected a pdequinox ClassicFNO"):
        FNO.from_pdequinox(baseline("unet", 2, 1, key=KEY))
    with pytest.raises(SplatopError, match="did you mean 'resnet'"):
        baseline("resnets", 2, 1, key=KEY)
    with pytest.raises(SplatopError, match="ten-fold"):
        baseline("fno", 3, 1, key=KEY, tenfold=True)
    with pytest.raises(SplatopError, match="give a value for D"):
        Conditioning(("v", "D"), np.zeros(2), np.ones(2))({"v": 1.0})
    with pytest.raises(SplatopError, match="positive deviations"):
        Conditioning(("v",), np.zeros(1), np.zeros(1))
    with pytest.raises(SplatopError, match="one mean and one deviation"):
        Conditioning(("v", "D"), np.zeros(1), np.ones(1))
    with pytest.raises(SplatopError, match="its input's shape"):
        OperatorStepper(lambda u: u[:, ::2])(noise(1, 8, 8), {})

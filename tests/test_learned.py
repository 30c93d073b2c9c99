"""Learned terms: what they are, that they learn, and that they stay finite."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import splatop
from splatop.data import ArrayTrajectories
from splatop.description import build, describe
from splatop.discover.distil import distilled
from splatop.discover.learn import learn
from splatop.discover.shares import shares_of_change
from splatop.equation import (
    Equation,
    LearnedTerm,
    domain_from_text,
    format_equation,
    parse_partial_equation,
)
from splatop.equation.learned import feature_names, usual_arguments
from splatop.errors import SplatopError
from splatop.grid import Grid
from splatop.jets import SpectralJets
from splatop.report.markup import join
from splatop.report.sections import Charts
from splatop.report.unknown_section import answer
from splatop.spectral import PassThrough
from splatop.training.follow import followed, learned_term
from splatop.training.found_terms import physics_of, rollout_error

GRID = Grid((32, 32), (1.0, 1.0))


def term(**options):
    """With random weights, for u and v, from values, gradients and Laplacians."""
    fields = ("u", "v")
    arguments = usual_arguments(fields, 2)
    invariant = options.get("invariant", False)
    count = 7 if invariant else len(arguments)
    outputs = 2 if not options.get("conservative") else 4
    weights = jax.random.normal(jax.random.key(2), (outputs, count + count * (count + 1) // 2))
    return LearnedTerm(
        network=eqx.nn.MLP(count, outputs, 8, 2, activation=jax.nn.gelu, key=jax.random.key(1)),
        centre=jnp.zeros(count),
        spread=jnp.ones(count),
        low=-3 * jnp.ones(count),
        high=3 * jnp.ones(count),
        size=jnp.ones(outputs),
        fields=fields,
        targets=fields,
        arguments=arguments,
        direct=weights / 10,
        **options,
    )


def state(seed=0):
    modes = np.random.default_rng(seed).normal(size=(2, 32, 32))
    k = np.abs(np.fft.fftfreq(32, 1 / 32))
    inside = (k[:, None] <= 3) & (k[None] <= 3)
    u = np.fft.ifft2(np.fft.fft2(modes) * inside).real
    return jnp.asarray(u / np.abs(u).max(), jnp.float32)


def value(one, u):
    jets = SpectralJets(GRID.lengths, PassThrough())
    return one(jets(u, sorted(one.derivatives(2))), {})


def test_it_is_described_built_printed_and_dropped():
    one = term()
    again = build(describe(one, inline=True), {})
    assert jnp.array_equal(value(again, state()), value(one, state()))
    known = splatop.parse_equation("dt(u) = lap(u); dt(v) = lap(v)", dims=2)
    equation = Equation((*known.terms, one), ("u", "v"))
    assert "<learned>" in format_equation(equation, dims=2)
    assert equation.without("learned").term_names == known.term_names
    # Layers of 8 to 8, 8 to 8 and 8 to 2 with biases; 8 arguments and 36 products for 2 outputs.
    assert one.learned_parameters == 72 + 72 + 18 + 2 * 44
    assert sum(part.learned_parameters for part in known.terms) == 0


@pytest.mark.parametrize("invariant", [False, True])
def test_products_of_three_values_are_exact(invariant):
    one = replace(term(invariant=invariant), cubic=True)
    pairs, triples = one.products
    assert triples.tolist() == [[0, 0, 0], [0, 0, 4], [0, 4, 4], [4, 4, 4]] or invariant
    # Of u, u, v in the equation of v, beside which all weights are 0.
    direct = jnp.zeros((2, one.centre.size + len(pairs) + len(triples))).at[1, -3].set(2.0)
    one = replace(one, direct=direct)
    hidden = one.weights.shape[1] - direct.shape[1]
    one = one.with_weights(one.weights.at[:, :hidden].set(0.0))
    u = state()
    expected = jnp.stack([jnp.zeros_like(u[0]), 2 * u[0] ** 2 * u[1]])
    np.testing.assert_allclose(value(one, u), expected, atol=1e-6)


def test_a_flux_conserves_the_mean():
    found = value(term(conservative=True), state())
    size = float(jnp.abs(found).max())
    assert size > 1e-2
    # A sum of 1024 numbers in single precision.
    assert jnp.abs(found.mean(axis=(1, 2))).max() < 1e-5 * size


@pytest.mark.parametrize("conservative", [False, True])
def test_invariants_do_not_change_when_the_axes_turn(conservative):
    one, u = term(invariant=True, conservative=conservative), state()
    turned = jnp.rot90(u, axes=(1, 2))
    a, b = jnp.rot90(value(one, u), axes=(1, 2)), value(one, turned)
    # A quarter turn moves points onto points; only rounding differs, which derivatives of order 2
    # of 3 waves magnify by (6π)².
    assert jnp.abs(a - b).max() < 1e-3 * jnp.abs(a).max()
    plain = term()
    assert (
        jnp.abs(jnp.rot90(value(plain, u), axes=(1, 2)) - value(plain, turned)).max()
        > 1e-2 * jnp.abs(value(plain, u)).max()
    )


def test_outside_the_range_of_the_data_it_stays_what_it_is_at_the_edge():
    one, u = term(), state()
    far = value(one, 1e6 * u)
    assert jnp.isfinite(far).all()
    assert jnp.abs(far).max() < 100


def test_it_is_differentiable():
    one, u = term(), state()
    slope = eqx.filter_grad(lambda t: jnp.sum(value(t, u) ** 2))(one)
    assert float(jnp.abs(slope.network.layers[0].weight).max()) > 0
    assert float(jnp.abs(jax.grad(lambda u: jnp.sum(value(one, u) ** 2))(u)).max()) > 0


@pytest.fixture(scope="module")
def waves():
    """u_t = D u_xx + sin(3u) exp(-u²) by a fine RK4 on 64 points, where D u_xx is known."""
    x = np.arange(64) / 64
    k = np.fft.rfftfreq(64, 1 / 64)

    def rate(u):
        bent = np.fft.irfft(-((2 * np.pi * k) ** 2) * np.fft.rfft(u), 64)
        return 1e-3 * bent + np.sin(3 * u) * np.exp(-(u**2))

    generator = np.random.default_rng(0)
    trajectories = []
    for _ in range(3):
        u = sum(
            generator.normal() * np.cos(2 * np.pi * m * x + generator.uniform(0, 6)) / m
            for m in (1, 2, 3)
        )
        frames = []
        for _ in range(21):
            frames.append(u)
            for _ in range(10):
                h = 0.005
                a = rate(u)
                b = rate(u + h / 2 * a)
                c = rate(u + h / 2 * b)
                u = u + h / 6 * (a + 2 * b + 2 * c + rate(u + h * c))
        trajectories.append(frames)
    array = np.array(trajectories)[:, :, None].astype(np.float32)
    return ArrayTrajectories(array, Grid((64,), (1.0,)), dt=0.05, fields=("u",))


def test_a_reaction_that_is_no_polynomial_is_learned(waves):
    partial = parse_partial_equation("dt(u) = 1e-3*d2x(u) + ?(u)", dims=1)
    found = learn(waves, partial, known=partial.known, coefficients={}, steps=400)
    # 400 steps of training leave some 1e-3 of the energy; a wrong sign would leave four times it.
    assert found.explained > 0.99
    u = np.linspace(-0.8, 0.8, 9, dtype=np.float32)
    made = np.asarray(found.term.values(jnp.asarray(u)[None]))[0]
    assert made == pytest.approx(np.sin(3 * u) * np.exp(-(u**2)), abs=0.1)
    assert found.names == ("u",)


def test_a_polynomial_is_distilled_from_what_was_learned(waves):
    partial = parse_partial_equation("dt(u) = ?(u)", dims=1)
    found = learn(waves, partial, known=None, coefficients={}, steps=1)
    u = found.term
    # The network is replaced by a known function of its argument: the identity of one unit.
    network = eqx.nn.MLP(1, 1, 1, 0, key=jax.random.key(0))
    network = eqx.tree_at(
        lambda n: (n.layers[0].weight, n.layers[0].bias),
        network,
        (jnp.ones((1, 1)), jnp.zeros(1)),
    )
    exact = replace(u, network=network, direct=None)
    offer = distilled(replace(found, term=exact, explained=1.0))
    assert offer is not None
    scale = float(u.size[0] / u.spread[0])
    assert f"{scale:+.4g}*u" in offer["text"]


def test_too_few_frames_are_refused(waves):
    short = ArrayTrajectories(waves.array[:, :5], waves.grid, dt=0.05, fields=("u",))
    partial = parse_partial_equation("dt(u) = ?", dims=1)
    with pytest.raises(SplatopError, match="at least 7 frames"):
        learn(short, partial, known=None, coefficients={})


def stepped(rate, trajectories=2, frames=15, dt=0.02):
    """Frames of `u_t = rate(k, u)` on 64 points by a fine RK4, from three waves each."""
    x, k = np.arange(64) / 64, 2j * np.pi * np.fft.rfftfreq(64, 1 / 64)
    generator = np.random.default_rng(1)
    found = []
    for _ in range(trajectories):
        u = sum(
            generator.normal() * np.cos(2 * np.pi * m * x + generator.uniform(0, 6))
            for m in (1, 2, 3)
        )
        own = []
        for _ in range(frames):
            own.append(u)
            for _ in range(20):
                h = dt / 20
                a = rate(k, u)
                b = rate(k, u + h / 2 * a)
                c = rate(k, u + h / 2 * b)
                u = u + h / 6 * (a + 2 * b + 2 * c + rate(k, u + h * c))
        found.append(own)
    array = np.array(found)[:, :, None].astype(np.float32)
    return ArrayTrajectories(array, Grid((64,), (1.0,)), dt=dt, fields=("u",))


def slope(k, u, order=1):
    return np.fft.irfft(k**order * np.fft.rfft(u), 64)


def test_products_of_arguments_are_learned_exactly():
    """Self-advection and diffusion are among the units, so nothing is left for a network."""
    data = stepped(lambda k, u: -0.1 * u * slope(k, u) + 2e-3 * slope(k, u, 2))
    found = learn(data, parse_partial_equation("dt(u) = ?", dims=1), known=None, coefficients={})
    # Frames in single precision are off by 6e-8 of u, a rate from seven of them by some 1e-6.
    assert 1 - found.explained < 1e-8
    assert found.names == ("u", "dx(u)", "d2x(u)")
    at = jnp.asarray([[0.5], [2.0], [-30.0]])
    assert float(found.term.values(at)[0, 0]) == pytest.approx(-0.1 + 2e-3 * -30, rel=1e-3)


def test_higher_derivatives_are_arguments_where_others_do_not_do():
    data = stepped(lambda k, u: -1e-4 * slope(k, u, 3))
    found = learn(data, parse_partial_equation("dt(u) = ?", dims=1), known=None, coefficients={})
    assert "d3x(u)" in found.names
    assert 1 - found.explained < 1e-8


def test_a_flux_is_learned_and_keeps_the_mean():
    """D(u) u_x with D = 1 + u, which is a product: the divergence is exact."""
    data = stepped(lambda k, u: slope(k, 2e-3 * (3 + u) * slope(k, u)))
    partial = parse_partial_equation("dt(u) = ?", dims=1)
    found = learn(data, partial, known=None, coefficients={}, symmetry=["conservation"], steps=4)
    assert found.term.conservative
    assert 1 - found.explained < 1e-6
    jets = SpectralJets((1.0,), PassThrough())
    u = jnp.asarray(data.array[0, 0])
    rate = found.term(jets(u, sorted(found.term.derivatives(1))), {})
    # The sum of 64 rounded numbers.
    assert abs(float(rate.mean())) < 1e-6 * float(jnp.abs(rate).max())


@pytest.mark.slow
@pytest.mark.parametrize("apart", [(1, 1), (1, 2)])
def test_rollouts_mend_weights(apart):
    data = stepped(lambda k, u: -0.1 * slope(k, u) + 4e-3 * slope(k, u, 2))
    places = np.flatnonzero(np.cumsum(np.resize(apart, data.frames)) < data.frames)
    places = np.cumsum(np.resize(apart, data.frames))[places]
    data = ArrayTrajectories(
        data.array[:, places], data.grid, dt=data.dt, fields=("u",), times=data.dt * places
    )
    found = learn(data, parse_partial_equation("dt(u) = ?", dims=1), known=None, coefficients={})
    spoiled = found.term.with_weights(0.9 * found.term.weights)
    physics = physics_of(Equation((spoiled,), ("u",)), {}, data)
    mended = followed(physics, found.gram, {}, data)
    assert mended is not None
    before, after = (rollout_error(one.equation, {}, data, data) for one in (physics, mended))
    # The problem is linear in the weights to 10 % of a tenth of the change: one step gains 10x.
    assert after < 0.1 * before


def test_a_term_is_learned_between_walls():
    """Modes of a cold and an insulated wall decay; the Laplacian is one of the units."""
    x, t, k = np.linspace(0, 1, 41), 0.02 * np.arange(12), np.pi * (np.arange(3) + 0.5)
    draws = np.random.default_rng(0).normal(size=(2, 3))
    u = np.einsum("bk,kt,kx->btx", draws, np.exp(-0.05 * np.outer(k**2, t)), np.sin(np.outer(k, x)))
    domain = domain_from_text("x0: u = 0; x1: dn(u) = 0", lengths=(1.0,), fields=("u",))
    grid = Grid((41,), (1.0,), (0.0,), ("ends",))
    array = u[:, :, None].astype(np.float32)
    data = ArrayTrajectories(array, grid, dt=0.02, fields=("u",), domain=domain)
    partial = parse_partial_equation("dt(u) = ?(d2x(u))", dims=1)
    found = learn(data, partial, known=None, coefficients={}, steps=1)
    # A Laplacian up to the walls is good to 1e-4 from samples in single precision.
    assert 1 - found.explained < 1e-5
    at = jnp.asarray([[-3.0, 2.0]])
    assert np.asarray(found.term.values(at))[0] == pytest.approx([-0.15, 0.1], rel=0.02)
    flux = {"known": None, "coefficients": {}, "symmetry": ["conservation"]}
    with pytest.raises(SplatopError, match="periodic box to learn a flux"):
        learn(data, partial, **flux)


def test_the_shares_of_the_change_add_up():
    """u_t = -c u_x + D u_xx: the two parts are orthogonal on a ring, so shares are their energy."""
    data = stepped(lambda k, u: -0.1 * slope(k, u) + 4e-3 * slope(k, u, 2))
    whole = splatop.parse_equation("dt(u) = -0.1*dx(u) + 4e-3*d2x(u)", dims=1)
    known = splatop.parse_equation("dt(u) = -0.1*dx(u)", dims=1)
    shares = shares_of_change((whole, {}), (known, {}), data)
    energy = [
        np.sum([rate(u) ** 2 for one in data.array[:, 3:-3, 0] for u in one])
        for rate in (
            lambda u: 0.1 * slope(2j * np.pi * np.fft.rfftfreq(64, 1 / 64), u),
            lambda u: 4e-3 * slope(2j * np.pi * np.fft.rfftfreq(64, 1 / 64), u, 2),
        )
    ]
    # The windows and these frames weigh moments a little differently.
    assert shares["known"] == pytest.approx(energy[0] / sum(energy), abs=0.05)
    assert 0 <= shares["left"] < 1e-8
    assert shares["known"] + shares["found"] == pytest.approx(1, abs=1e-4)
    wrong = splatop.parse_equation("dt(u) = -0.1*dx(u) - 4e-3*d2x(u)", dims=1)
    # Diffusion the wrong way leaves twice it, four times its energy.
    left = shares_of_change((wrong, {}), None, data)["left"]
    assert left == pytest.approx(4 * shares["found"], rel=1e-3)


def test_noise_is_no_share_of_the_change():
    """The fourth derivative of noise is far above the change of a field that is nearly at rest."""
    x = np.arange(64) / 64
    wave = np.sin(2 * np.pi * x) + 0.3 * np.cos(8 * np.pi * x)
    u = np.stack([wave * np.exp(-0.01 * t) for t in range(60)])
    u += 0.03 * u.std() * np.random.default_rng(0).normal(size=u.shape)
    array = u[None, :, None].astype(np.float32)
    data = ArrayTrajectories(array, Grid((64,), (1.0,)), dt=1.0, fields=("u",))
    quiet, whole = (
        shares_of_change(
            (splatop.parse_equation(f"dt(u) = -0.01*u + {e}*d4x(u)", dims=1), {}), None, data
        )
        for e in ("1e-12", "1e-6")
    )
    assert quiet["left"] < 0.05
    assert whole["left"] > 1  # a wrong term is what is left, with noise and without


def test_nothing_missing_is_said_so():
    """v is found along, and there is no other term: none is named."""
    data = stepped(lambda k, u: -0.1 * slope(k, u) + 4e-3 * slope(k, u, 2))
    fitted = splatop.fit(
        data, "dt(u) = -v*dx(u) + 4e-3*d2x(u) + ?(u)", settings={"model": "physics"}
    )
    assert "no term is missing: the known terms make 100 % of the change" in fitted.summary


@pytest.mark.slow
def test_training_learns_what_no_formula_is(waves, tmp_path):
    """From text with ? to a saved model, and a picture of what was learned."""
    fitted = splatop.fit(
        waves,
        "dt(u) = 1e-3*d2x(u) + ?(u)",
        settings={"model": "physics"},
        out=tmp_path / "run",
    )
    assert fitted.model.record["unknown"]["kept"] == "learned"
    assert "was learned" in fitted.summary
    path = fitted.save(tmp_path / "model.safetensors")
    u0 = waves.array[0, 0]
    made = splatop.load(path).rollout(u0, steps=20)
    assert jnp.array_equal(made, fitted.model.rollout(u0, steps=20))
    error = np.linalg.norm(np.asarray(made) - waves.array[0, 1:]) / np.linalg.norm(waves.array[0])
    assert error < 0.02
    from splatop.reproduce.learned_term import draw_learned

    assert draw_learned(fitted.model).axes[0].get_xlabel() == "u"


def reported(one, names, samples):
    """What the report says of a `?` that was learned as this term."""
    record = {
        "kept": "learned",
        "said": "the missing term was learned",
        "shares": {"known": 0.25, "found": 0.7499, "left": 1e-4},
        "errors": {"known": 0.5, "learned": 1e-3},
        "learned": {"arguments": names, "samples": samples.tolist()},
        "distilled": {"text": "+1*u in dt(u)"},
    }
    charts = Charts()
    return join(answer(charts, record, one)), charts


def test_the_report_shows_what_was_learned():
    """The term u - 2v: curves shaded where there were no data; with two arguments a map."""
    one = term()
    place = {name: i for i, name in enumerate(["u", "dx(u)", "dy(u)", "lap(u)", "v"])}
    weights = jnp.zeros_like(one.weights).at[0, 9 + place["u"]].set(1.0)
    one = one.with_weights(weights.at[0, 9 + place["v"]].set(-2.0))
    samples = np.random.default_rng(0).uniform(-1, 1, size=(50, 8))
    names = feature_names(one.fields, one.arguments, invariant=False)
    page, charts = reported(one, names, samples)
    assert page.count('class="span"') == 2 * len(names)
    for said in ("25 %", "the known terms", "+1*u in dt(u)"):
        assert said in page
    line = charts.hover["unknown0-4"]["lines"][0]
    # Clipped at 3, so inside the data it is a line of slope -2.
    assert np.polyfit(line["x"], line["y"], 1)[0] == pytest.approx(-2, rel=1e-3)
    few = replace(
        one,
        arguments=(one.arguments[0], one.arguments[4]),
        network=eqx.nn.MLP(2, 2, 8, 2, key=jax.random.key(0)),
        **{name: getattr(one, name)[:2] for name in ("centre", "spread", "low", "high")},
        direct=jnp.zeros((2, 5)).at[0, 0].set(1.0),
    )
    page, _ = reported(few, ("u", "v"), samples[:, :2])
    assert page.count("<img") == 2
    assert "pale where there were no data" in page


def test_short_rollouts_mend_the_weights_of_a_reaction():
    """u_t = -u/2 at each point, with weights a tenth too small; too few frames mend nothing."""
    t = 0.1 * np.arange(9)[:, None]
    x = np.arange(16) / 16
    starts = (np.cos(2 * np.pi * x) + 0.3, np.sin(2 * np.pi * x) - 0.5)
    array = np.stack([np.exp(-t / 2) * u for u in starts])[:, :, None].astype(np.float32)
    data = ArrayTrajectories(array, Grid((16,), (1.0,)), dt=0.1, fields=("u",))
    partial = parse_partial_equation("dt(u) = ?(u)", dims=1)
    found = learn(data, partial, known=None, coefficients={}, steps=1)
    spoiled = found.term.with_weights(0.9 * found.term.weights)
    physics = physics_of(Equation((spoiled,), ("u",)), {}, data)
    mended = followed(physics, found.gram, {}, data)
    assert mended is not None
    term = learned_term(mended.equation)
    u = np.linspace(-1.0, 1.0, 9, dtype=np.float32)
    made = np.asarray(term.values(jnp.asarray(u)[None]))[0]
    assert np.abs(made + u / 2).max() < 0.02  # before 0.05, a tenth of the largest
    few = ArrayTrajectories(array[:, :4], data.grid, dt=0.1, fields=("u",))
    assert followed(physics, found.gram, {}, few) is None

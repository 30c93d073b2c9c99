"""Parts of a user's own: registered in one line, then chosen, saved, loaded and shown like ours."""

import json
import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import splatop
from splatop import registry
from splatop.description import build, describe, own_parts
from splatop.encoders.encoder import Encoder
from splatop.errors import SplatopError
from splatop.evaluate import evaluate
from splatop.model import Model, ModelSpec, build_model, load_model, save_model
from splatop.numerics import Numerics, build_encoder, build_physics
from splatop.report.details import _settings
from splatop.report.evaluated import EvaluatedRun


@pytest.fixture(autouse=True)
def own(monkeypatch):
    """What a test registers is forgotten after it."""
    monkeypatch.setattr(registry, "_OWN", {})


class Half(splatop.Encoder):
    """Half of what a lattice holds."""

    anchors: tuple[int, ...] = eqx.field(static=True)
    factor: float = eqx.field(static=True, default=0.5)

    def __call__(self, u):
        lattice = splatop.LatticeEncoder(self.anchors)(u)
        return eqx.tree_at(lambda g: g.amplitude, lattice, self.factor * lattice.amplitude)


class Growth(splatop.Term):
    """`r w u` with a weight w for each field, an array."""

    weight: jax.Array
    coefficient: str | None = eqx.field(static=True, default="r")
    name: str = eqx.field(static=True, default="growth")
    degree: float = eqx.field(static=True, default=1)

    def derivatives(self, dims):
        return frozenset()

    def parts(self, jet, coefficients):
        return (self.weight[:, None] * jet.state,)


class Shift(eqx.Module):
    """`a u`, moved by a whole number of points."""

    a: jax.Array
    by: int = eqx.field(static=True, default=1)
    function: object = eqx.field(static=True, default=jax.nn.tanh)

    def __call__(self, u):
        return self.a * jnp.roll(self.function(u), self.by, axis=-1)


NUMERICS = Numerics("box", (5.0,), 0.0, (14,), substeps=2)


def field(points: int = 32) -> jax.Array:
    x = np.arange(points) / points
    return jnp.asarray(np.sin(2 * np.pi * x) + np.cos(6 * np.pi * x + 1), jnp.float32)[None]


def equation() -> splatop.Equation:
    text = splatop.parse_equation("dt(u) = D*lap(u)", dims=1)
    return splatop.Equation((*text.terms, Growth(jnp.asarray([0.7]))))


def model(*, encoder=None, operator=None, members: int = 1) -> Model:
    """A surrogate with a term of one's own, and perhaps an encoder and an operator."""
    spec = ModelSpec(
        kind="physics" if operator is None else "surrogate",
        equation="dt(u) = D*lap(u) + r*<growth>",
        fields=("u",),
        lengths=(1.0,),
        dt=0.01,
        numerics=NUMERICS,
        coefficients={"D": 1e-3, "r": 2.0},
        operator="fno" if operator is None else registry.name_of(type(operator)) or "own",
        members=members,
        terms=describe(equation(), inline=True),
    )
    return Model(spec, build_model(spec, encoder=encoder, operator=operator))


def test_a_registered_encoder_is_a_choice_by_name_and_does_what_its_class_does():
    with pytest.raises(SplatopError, match=r"unknown encoder 'half': valid names are lattice"):
        Numerics("box", (5.0,), 0.0, (14,), substeps=1, encoder="half")
    splatop.register(Half, name="half")
    numerics = Numerics("box", (5.0,), 0.0, (14,), substeps=1, encoder="half")
    assert build_encoder(numerics, 1) == Half((14,))
    heat = splatop.parse_equation("dt(u) = D*lap(u)", dims=1)
    u, d = field() - 0.3, splatop.laplacian(1)
    jets = build_physics(heat, numerics, lengths=(1.0,), dt=0.01).jets
    ours = build_physics(heat, NUMERICS, lengths=(1.0,), dt=0.01).jets
    # Linear in the amplitudes.
    np.testing.assert_allclose(2 * jets(u, [d])[d], ours(u, [d])[d], rtol=1e-4, atol=1e-3)


def test_parts_of_ones_own_come_back_from_a_file(tmp_path):
    splatop.register(Half, name="half")
    splatop.register(Growth, name="growth-term")
    splatop.register(Shift, name="shift")
    made = model(encoder=Half((14,), 0.25), operator=Shift(jnp.asarray(0.3), 3))
    path = save_model(tmp_path / "m.safetensors", made)
    loaded = load_model(path)
    assert eqx.tree_equal(loaded.stepper, made.stepper)
    assert loaded.spec == made.spec
    np.testing.assert_array_equal(loaded.step(field()), made.step(field()))
    # The term counts: without it the state would not grow by exp(2.0 * 0.7 * 0.01) a step.
    alone = splatop.Surrogate.__call__(loaded.stepper, field(), {"D": 0.0, "r": 0.0})
    grown = splatop.Surrogate.__call__(loaded.stepper, field(), {"D": 0.0, "r": 2.0})
    physics = loaded.stepper.physics
    ratio = jnp.linalg.norm(physics(field(), {"D": 0.0, "r": 2.0})) / jnp.linalg.norm(field())
    assert float(ratio) == pytest.approx(np.exp(0.014), rel=1e-4)
    assert not np.array_equal(alone, grown)


def test_what_nobody_registered_is_refused_with_the_module_to_import(tmp_path, monkeypatch):
    splatop.register(Growth, name="growth-term")
    path = save_model(tmp_path / "m.safetensors", model())
    monkeypatch.setattr(registry, "_OWN", {})
    with pytest.raises(SplatopError, match=r"it was \S*test_own.Growth, so import \S*test_own fir"):
        load_model(path)


def test_an_unregistered_operator_is_passed_again(tmp_path):
    splatop.register(Growth, name="growth-term")
    made = model(operator=Shift(jnp.asarray(0.3), 3))
    path = save_model(tmp_path / "m.safetensors", made)
    with pytest.raises(SplatopError, match=r"test_own.Shift, got none: .*operator=\.\.\."):
        load_model(path)
    loaded = load_model(path, operator=Shift(jnp.asarray(9.0), 3))
    assert eqx.tree_equal(loaded.stepper, made.stepper)
    with pytest.raises(SplatopError, match="shape"):
        load_model(path, operator=Shift(jnp.ones(4), 3))


def test_an_unregistered_term_or_lambda_is_refused_before_training():
    with pytest.raises(SplatopError, match=r"got \S*test_own.Growth: register it once"):
        describe(equation())
    splatop.register(Shift, name="shift")
    with pytest.raises(SplatopError, match="<lambda>: register it once"):
        describe(Shift(jnp.asarray(1.0), function=lambda u: u))


def test_a_registered_function_is_stored_by_its_name():
    def cube(jet, coefficients):
        return -(jet.state**3)

    term = splatop.equation.CustomTerm(cube, needs=frozenset(), name="cubic", coefficient="r")
    with pytest.raises(SplatopError, match="register it once"):
        describe(term)
    splatop.register(cube, name="cube")
    tree = json.loads(json.dumps(describe(term)))
    assert tree["fields"]["degree"] == {"float": "inf"}
    assert build(tree, {}) == term


def test_names_are_given_once():
    splatop.register(Half, name="half")
    assert splatop.register(Half, name="half") is Half  # a cell that is run again
    with pytest.raises(SplatopError, match=r"got 'half', which \S*test_own.Half has"):
        splatop.register(Shift, name="half")
    with pytest.raises(SplatopError, match="got 'lattice'"):
        splatop.register(Half, name="lattice")
    with pytest.raises(SplatopError, match="an equinox module, a frozen dataclass or a function"):
        splatop.register(3, name="three")
    with pytest.raises(SplatopError, match="a name to register"):
        splatop.register(Half, name="")
    with pytest.raises(SplatopError, match="did you mean 'half'"):
        registry.chosen(Encoder, "encoder", "halff")


def test_the_report_names_them():
    splatop.register(Half, name="half")
    splatop.register(Growth, name="growth-term")
    made = model(encoder=Half((14,), 0.25), operator=Shift(jnp.asarray(0.3), 3))
    found = own_parts(describe(made.stepper, strict=False))
    assert found["physics.jets.encoder"].startswith("half (")
    assert "factor = 0.25" in found["physics.jets.encoder"]
    assert "without a registered name" in found["network"]

    frames = np.stack([field(), field(), field()])[None]
    data = splatop.ArrayTrajectories(frames, splatop.Grid((32,), (1.0,)), dt=0.01, fields=("u",))
    metrics = evaluate(made, data, steps=2, also=())
    page = str(_settings(EvaluatedRun("run", Path("."), made, metrics, {}, ()), named=False))
    assert "Parts of your own" in page
    assert "growth-term (" in page


def test_an_ensemble_of_ones_own(tmp_path):
    splatop.register(Growth, name="growth-term")
    splatop.register(Shift, name="shift")
    made = model(operator=Shift(jnp.asarray(0.3), 3), members=3)
    loaded = load_model(save_model(tmp_path / "m.safetensors", made))
    assert eqx.tree_equal(loaded.stepper, made.stepper)
    assert len(loaded.members) == 3


def test_models_are_pytrees():
    splatop.register(Growth, name="growth-term")
    made = model(operator=Shift(jnp.asarray(0.3), 3))
    u = field()
    expected = made.step(u)
    # Compiled as a whole, sums may be taken in another order.
    close = {"rtol": 1e-5, "atol": 1e-6}
    np.testing.assert_allclose(jax.jit(lambda m, v: m.step(v))(made, u), expected, **close)
    batch = jax.vmap(lambda m, v: m.step(v), in_axes=(None, 0))(made, jnp.stack([u, 2 * u]))
    np.testing.assert_allclose(batch[0], expected, **close)
    slope = jax.grad(lambda m: jnp.sum(m.step(u)))(made).stepper.network.a
    rest = made.physics(u, made.complete(None))
    # The step is Φ(u) + a tanh(u) moved: its derivative in a is the sum of tanh(u).
    assert float(slope) == pytest.approx(float(jnp.sum(jnp.tanh(u))), abs=1e-4)
    assert float(jnp.sum(expected - rest)) == pytest.approx(0.3 * float(slope), abs=1e-4)


def test_public_names():
    """In a process of its own, where nothing else has been imported."""
    names = (
        *("identify", "train", "Term", "Encoder", "Renderer", "JetProvider", "Filter"),
        *("Conditioning", "register", "Integrator", "RK4", "Problem", "Settings", "fit"),
    )
    code = f"import splatop; print([n for n in {names} if not callable(getattr(splatop, n))])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr

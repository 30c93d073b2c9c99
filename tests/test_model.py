"""Model files: what goes in comes out, and nothing else is taken for one."""

import json
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

import splatop
from splatop.benchmarks import get_benchmark
from splatop.data import ArrayTrajectories, save_trajectories
from splatop.description import build, describe
from splatop.errors import SplatopError
from splatop.evaluate.forecast import forecast
from splatop.grid import Grid
from splatop.model import (
    KINDS,
    Model,
    ModelSpec,
    build_model,
    ensemble_of,
    load_model,
    save_model,
)
from splatop.numerics import Numerics
from splatop.operators import Conditioning
from splatop.stepper import rollout

NUMERICS = Numerics("box", (5.0,), 0.0, (14, 14), substeps=1)
SPEC = ModelSpec(
    kind="surrogate",
    equation="dt(u) = -v*(dx(u) + dy(u)) + D*lap(u)",
    fields=("u",),
    lengths=(1.0, 1.0),
    dt=0.5,
    numerics=NUMERICS,
    coefficients={"v": 0.1, "D": 1e-3},
    hidden=3,
    modes=3,
    blocks=1,
)


def field(points: int = 16, channels: int = 1) -> jax.Array:
    x = np.arange(points) / points
    u = np.sin(2 * np.pi * x)[:, None] + np.cos(4 * np.pi * x)[None]
    return jnp.asarray(np.broadcast_to(u, (channels, points, points)), jnp.float32)


def made(spec: ModelSpec = SPEC, seed: int = 0) -> Model:
    """A model whose arrays are all different from those of a fresh one."""
    arrays, rest = eqx.partition(build_model(spec), eqx.is_inexact_array)
    rng = np.random.default_rng(seed)
    arrays = jax.tree.map(
        lambda a: a + jnp.asarray(rng.uniform(0.01, 0.02, a.shape), a.dtype), arrays
    )
    return Model(spec, eqx.combine(arrays, rest), {"seed": seed, "note": "test"})


def spec_of(kind: str) -> ModelSpec:
    return replace(SPEC, kind=kind, numerics=NUMERICS if kind in ("surrogate", "physics") else None)


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip_is_exact(tmp_path, kind):
    model = made(spec_of(kind))
    loaded = splatop.load(save_model(tmp_path / "m.safetensors", model))
    assert loaded.spec == model.spec
    assert loaded.record == model.record
    assert eqx.tree_equal(loaded.stepper, model.stepper)
    assert loaded.parameters == model.parameters


@pytest.mark.slow
def test_round_trip_of_a_learned_encoder_and_conditioning(tmp_path):
    spec = replace(
        SPEC,
        numerics=replace(NUMERICS, encoder="unet", anchors=(8, 8)),
        coefficients={"D": 1e-3},
        unknown=("v",),
        conditioned=True,
        coupling="sequential",
        dropped_terms=(),
    )
    conditioning = Conditioning(("v",), [0.3], [0.2])
    model = Model(spec, build_model(spec, key=jax.random.key(5), conditioning=conditioning))
    loaded = load_model(save_model(tmp_path / "m.safetensors", model))
    assert eqx.tree_equal(loaded.stepper, model.stepper)
    assert loaded.stepper.conditioning.mean == pytest.approx(0.3)
    u = field()
    expected = model.step(u, {"v": 0.25})
    assert np.array_equal(loaded.step(u, {"v": 0.25}), expected)
    with pytest.raises(SplatopError, match="values for the coefficients v"):
        loaded.step(u)


def test_a_run_folder_stands_for_its_model(tmp_path):
    with pytest.raises(SplatopError, match="--resume"):
        load_model(tmp_path)
    save_model(tmp_path / "model.safetensors", made())
    assert load_model(tmp_path).spec == SPEC


def test_the_file_has_the_permissions_of_any_other(tmp_path):
    path, plain = tmp_path / "m.safetensors", tmp_path / "plain"
    save_model(path, made())
    plain.write_text("")
    assert path.stat().st_mode == plain.stat().st_mode


def changed(tmp_path, *, tensors=None, valid_checksum=True, **metadata):
    """A model file with its content replaced, and a checksum that fits it or not."""
    from splatop.model.file import _checksum

    path = save_model(tmp_path / "m.safetensors", made())
    with safetensors.safe_open(path, framework="numpy") as file:
        held = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        described = dict(file.metadata())
    held = held if tensors is None else tensors(held)
    described = {k: v for k, v in {**described, **metadata}.items() if v is not None}
    if valid_checksum:
        described["sha256"] = _checksum(held, described)
    path.write_bytes(safetensors.numpy.save(held, described))
    return path


def described(**changes) -> str:
    return json.dumps({**SPEC.as_dict(), **changes})


# What a file of version 1 lacks.
VERSION_1 = {"format_version": "1", "parts": None}


def test_refuses_a_truncated_file(tmp_path):
    path = save_model(tmp_path / "m.safetensors", made())
    whole = path.read_bytes()
    for size in (0, 4, 8, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(SplatopError, match="damaged or something else"):
            load_model(path)


def test_refuses_any_flipped_byte(tmp_path):
    path = save_model(tmp_path / "m.safetensors", made())
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    header = int.from_bytes(whole[:8], "little")
    for position in [*rng.integers(8, 8 + header, 20), *rng.integers(header + 8, len(whole), 10)]:
        damaged = bytearray(whole)
        damaged[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(damaged))
        with pytest.raises(SplatopError):
            load_model(path)


def test_refuses_other_files(tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes(b"\x80\x04\x95 not safetensors at all")
    with pytest.raises(SplatopError, match="expected a safetensors file"):
        load_model(path)
    path.write_bytes(safetensors.numpy.save({"a": np.zeros(3)}))
    with pytest.raises(SplatopError, match="another program"):
        load_model(path)
    with pytest.raises(SplatopError, match="no such run folder"):
        load_model(tmp_path / "absent.safetensors")


def test_refuses_another_version(tmp_path):
    with pytest.raises(SplatopError, match=r"version 1 to 2, got 3 .* another version of splatop"):
        load_model(changed(tmp_path, format_version="3"))


def test_refuses_a_wrong_checksum(tmp_path):
    path = changed(
        tmp_path,
        tensors=lambda held: {k: v + 1 for k, v in held.items()},
        valid_checksum=False,
    )
    with pytest.raises(SplatopError, match="checksum"):
        load_model(path)
    with pytest.raises(SplatopError, match="checksum"):
        load_model(changed(tmp_path, spec=described(dt=0.25), valid_checksum=False))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda held: {k: v for k, v in held.items() if "lifting_bias" not in k}, "lifting_bias"),
        (lambda held: {**held, "extra": np.zeros(3, np.float32)}, "extra"),
        (lambda held: {k: np.zeros((5, 5), np.float32) for k in held}, "of shape"),
        (lambda held: {k: v.astype(np.int32) for k, v in held.items()}, "int32"),
    ],
)
def test_refuses_wrong_tensors(tmp_path, change, message):
    with pytest.raises(SplatopError, match=message):
        load_model(changed(tmp_path, tensors=change))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (described(colour="red"), "unknown fields colour"),
        (described(kind="surogate"), "did you mean 'surrogate'"),
        (described(coupling="paralel"), "did you mean 'parallel'"),
        (described(numerics={"filter": "box"}), "fields of Numerics"),
        (described(numerics=None), "expected numerics"),
        (described(benchmark="advection"), "did you mean 'advection2d'"),
        (described(equation="dt(u) = exec(u)"), "exec"),
        (described(lengths="wide"), "description"),
        (described(dt=-1.0), "positive time step"),
        # No memory is taken for what the tensors cannot fill.
        (described(hidden=10**7), "shape"),
        (described(modes="many"), "description"),
        (json.dumps({"kind": "surrogate"}), "model description"),
        (json.dumps([1, 2]), "model description"),
        ("{", "description"),
    ],
)
def test_refuses_a_description_that_means_nothing(tmp_path, text, message):
    """In a file of version 1, whose stepper is built from the spec."""
    with pytest.raises(SplatopError, match=message):
        load_model(changed(tmp_path, spec=text, **VERSION_1))


def test_a_file_of_version_1_gives_the_same_model(tmp_path):
    model = made()
    loaded = load_model(changed(tmp_path, **VERSION_1))
    assert eqx.tree_equal(loaded.stepper, model.stepper)
    assert loaded.spec == model.spec


def parts(change) -> str:
    """The description of the model's parts with a change."""
    tree = describe(made().stepper)
    change(tree["fields"])
    return json.dumps(tree)


def of_physics(**changes) -> str:
    return parts(lambda fields: fields["physics"]["fields"].update(changes))


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (parts(lambda f: f.update(colour="red")), "unknown fields colour of 'surrogate'"),
        (parts(lambda f: f["network"].update(type="fnoo")), "did you mean 'fno'"),
        (parts(lambda f: f.update(network={"function": "os.system"})), "tensors"),
        (parts(lambda f: f.update(coupling="paralel")), "did you mean 'parallel'"),
        (parts(lambda f: f.update(coupling=["parallel"])), "for 'coupling' of 'surrogate', got"),
        (of_physics(dt=-1.0), "positive time step"),
        (of_physics(dt="soon"), "for 'dt' of 'physics', got str"),
        (of_physics(dt=0.25), "time step"),
        (of_physics(jets={"type": "none", "fields": {}}), "for 'jets' of 'physics'"),
        (of_physics(jets={"function": "os.system"}), "part of a model 'os.system'"),
        (of_physics(jets={"type": "mine", "from": "a.b.Mine", "fields": {}}), "import a.b first"),
        (parts(lambda f: f["physics"]["fields"].pop("jets")), "expected the field 'jets'"),
        # No memory is taken for what the tensors cannot fill.
        (parts(lambda f: f["center"].update(array=[10**12])), "shape"),
        (parts(lambda f: f["center"].update(dtype="int32")), "type int32"),
        (parts(lambda f: f["center"].update(array="wide")), "shape|description"),
        (json.dumps({"type": "none", "fields": {}}), "tensors"),
        (nested(100), "tensors"),
        (nested(100_000), "description"),
        ("{", "description"),
    ],
)
def test_refuses_parts_that_mean_nothing(tmp_path, text, message):
    with pytest.raises(SplatopError, match=message):
        load_model(changed(tmp_path, parts=text))


def test_parts_are_not_nested_without_end():
    with pytest.raises(SplatopError, match="nested at most 60 deep"):
        build(json.loads(nested(100)), {})


@pytest.mark.parametrize("name", ["load", "memmap", "__import__"])
def test_a_term_calls_no_function_but_its_own(tmp_path, name):
    """Names of functions in the text of a term come from the file too."""
    spec = replace(SPEC, equation="dt(u) = D*sin(u)", coefficients={"D": 0.1}, kind="physics")
    path = save_model(tmp_path / "m.safetensors", made(spec))
    with safetensors.safe_open(path, framework="numpy") as file:
        text = file.metadata()["parts"]
    assert '"name": "sin"' in text
    with pytest.raises(SplatopError, match="expected one of the functions sin"):
        build(json.loads(text.replace('"name": "sin"', f'"name": "{name}"')), {})


def test_refuses_wrong_fields_and_zero_steps():
    model = made()
    with pytest.raises(SplatopError, match="1 channel"):
        model.step(field(channels=2))
    with pytest.raises(SplatopError, match="add a channel axis"):
        model.step(field()[0])
    with pytest.raises(SplatopError, match="NaN or infinite"):
        model.step(field().at[0, 3, 4].set(jnp.nan))
    with pytest.raises(SplatopError, match="at least one step, got 0"):
        model.rollout(field(), steps=0)


@pytest.mark.parametrize("kind", ["surrogate", "fno"])
def test_refuses_a_grid_coarser_than_its_modes(kind):
    model = made(replace(spec_of(kind), modes=6))
    with pytest.raises(SplatopError, match="modes"):
        model.step(field(points=10))


def trajectories(tmp_path, *, points=16, dt=0.5, fields=("u",), lengths=(1.0, 1.0)):
    frames = np.broadcast_to(
        np.asarray(field(points, len(fields))), (2, 3, len(fields), points, points)
    )
    data = ArrayTrajectories(
        np.array(frames), Grid((points, points), lengths), dt=dt, fields=fields, coefficients={}
    )
    path = tmp_path / "data.h5"
    save_trajectories(path, data)
    return path


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"dt": 0.25}, "time step"),
        ({"fields": ("u", "w")}, "channels"),
        ({"lengths": (1.0, 2.0)}, "side lengths"),
        ({"points": 4}, "points|modes|anchors"),
    ],
)
def test_refuses_data_of_another_problem(tmp_path, data, message):
    out = tmp_path / "out.h5"
    with pytest.raises(SplatopError, match=message):
        forecast(made(), trajectories(tmp_path, **data), out, steps=2)
    assert not out.exists()


def test_refuses_zero_steps_of_a_forecast(tmp_path):
    with pytest.raises(SplatopError, match="at least one step, got 0"):
        forecast(made(), trajectories(tmp_path), tmp_path / "out.h5", steps=0)


def test_forecast_writes_what_the_model_predicts(tmp_path):
    model, out = made(), tmp_path / "out.h5"
    assert forecast(model, trajectories(tmp_path), out, steps=3) == 2
    with splatop.open_trajectories(out) as written:
        expected = model.rollout(field(), steps=3)
        np.testing.assert_array_equal(written.window(1, 1, 3), expected)
        np.testing.assert_array_equal(written.window(1, 0, 1)[0], field())
        assert written.dt == 0.5


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("members", [1, 3])
def test_a_loaded_model_is_differentiable_as_it_is(tmp_path, members):
    """In the state and in the coefficients, through the physics; of an ensemble too."""
    made_of = [made(seed=k) for k in range(members)]
    model = made_of[0] if members == 1 else ensemble_of(made_of)
    stepper = splatop.load(save_model(tmp_path / "m.safetensors", model)).stepper
    u = jnp.asarray(field(), jnp.float64)
    direction = jnp.roll(u, 3, axis=1) ** 2

    @jax.jit
    def loss(by):
        after = rollout(stepper, u + by * direction, {"v": 0.1 + by, "D": 1e-3}, steps=2)
        return jnp.sum(after[-1] ** 3)

    # Central differences: an error of the order of h² = 1e-10.
    difference = float(loss(1e-5) - loss(-1e-5)) / 2e-5
    slope = float(jax.grad(loss)(0.0))
    assert slope == pytest.approx(difference, rel=1e-5)
    assert abs(slope) > 1.0


def test_the_stored_equation_counts_also_with_a_benchmark():
    spec = replace(SPEC, kind="physics", benchmark="advection_diffusion2d")
    assert spec.full_equation == get_benchmark("advection_diffusion2d").equation
    other = replace(spec, equation="dt(u) = -2*v*(dx(u) + dy(u)) + D*lap(u)")
    steps = [Model(s, build_model(s)).step(field()) for s in (spec, other)]
    twice = replace(spec, coefficients={"v": 0.2, "D": 1e-3})
    expected = Model(twice, build_model(twice)).step(field())
    np.testing.assert_allclose(steps[1], expected, atol=1e-5)
    assert np.abs(np.asarray(steps[1] - steps[0])).max() > 0.1
    with pytest.raises(SplatopError, match="did you mean 'advection2d'"):
        replace(spec, benchmark="advection_2d").full_equation  # noqa: B018

"""Exported functions: run by JAX and flatbuffers alone, and nothing else is taken for one."""

import json
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from jax import export as jax_export
from typer.testing import CliRunner

from splatop.cli.app import app
from splatop.errors import SplatopError
from splatop.export import export_model, is_export, read_export, save_export
from splatop.model import Model, build_model, load_model, save_model
from splatop.operators import Conditioning
from test_model import SPEC, field, made, spec_of

# Another order of the same float32 operations: a few roundings of a field of size one per step.
ROUNDING = 1e-5

# What JAX brings along, and what reading an export takes beside it.
JAX = ("jax", "jaxlib", "numpy", "scipy", "ml_dtypes", "opt_einsum")
NEEDED = (*JAX, "flatbuffers")

# A program that finds these packages and the standard library only.
LOADER = """
import sys
from importlib.machinery import PathFinder

class Hiding(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        package = name.partition(".")[0]
        own = package.startswith("_") or package in sys.stdlib_module_names
        if own or package in sys.argv[4:]:
            return super().find_spec(name, path, target)

sys.meta_path[:] = [Hiding if finder is PathFinder else finder for finder in sys.meta_path]
import json, zipfile
import numpy as np
import jax.export

path, states, out = sys.argv[1:4]
if zipfile.is_zipfile(path):
    data = zipfile.ZipFile(path).read("function.bin")
else:
    data = open(path, "rb").read()
function = jax.export.deserialize(bytearray(data))
arguments = np.load(states)
np.save(out, function.call(*(arguments[name] for name in sorted(arguments))))
assert not any(name.split(".")[0] in ("splatop", "equinox") for name in sys.modules)
"""


def called(path, tmp_path, *arguments, packages=NEEDED) -> np.ndarray:
    """What a separate process, with these packages alone, computes from a file."""
    states, out = tmp_path / "in.npz", tmp_path / "out.npy"
    np.savez(states, **{f"a{i}": np.asarray(a) for i, a in enumerate(arguments)})
    command = [sys.executable, "-I", "-c", LOADER, str(path), str(states), str(out), *packages]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return np.load(out)


def states(batch: int = 3) -> np.ndarray:
    rng = np.random.default_rng(0)
    u = np.asarray(field())
    return np.stack([np.roll(u, int(rng.integers(16)), axis=1) for _ in range(batch)])


def conditioned() -> Model:
    spec = replace(SPEC, coefficients={"D": 1e-3}, unknown=("v",), conditioned=True)
    return Model(spec, build_model(spec, conditioning=Conditioning(("v",), [0.3], [0.2])))


@pytest.mark.slow
@pytest.mark.parametrize("format", ["stablehlo", "saved"])
def test_runs_without_splatop_and_matches_the_rollout(tmp_path, format):
    model, path = made(), tmp_path / "step.bin"
    save_export(path, export_model(model, points=16, steps=4), model, format=format)
    found = called(path, tmp_path, states())
    expected = np.stack([model.rollout(u, steps=4) for u in states()])
    np.testing.assert_allclose(found, expected, atol=ROUNDING)


def test_flatbuffers_is_needed_and_said_to_be(tmp_path):
    model, path = made(), tmp_path / "step.bin"
    save_export(path, export_model(model, points=16), model, format="stablehlo")
    with pytest.raises(RuntimeError, match="flatbuffers"):
        called(path, tmp_path, states(), packages=JAX)
    root = Path(__file__).parent.parent
    for page in ("README.md", "docs/export.md", "docs/index.md"):
        assert "flatbuffers" in (root / page).read_text()
    assert "flatbuffers" in " ".join(CliRunner().invoke(app, ["export", "--help"]).output.split())


@pytest.mark.slow
def test_coefficients_of_a_trajectory_are_an_argument(tmp_path):
    model, path = conditioned(), tmp_path / "step.bin"
    exported = export_model(model, points=16)
    save_export(path, exported, model, format="stablehlo")
    assert exported.description["coefficients"] == ["v"]
    assert [i["shape"] for i in exported.description["inputs"]] == [
        ["batch", 1, 16, 16],
        ["batch", 1],
    ]
    # Slow enough for one RK4 step of this dt to be stable: it would amplify roundings otherwise.
    values = np.array([[0.08], [0.04], [-0.06]], np.float32)
    found = called(path, tmp_path, states(), values)
    expected = np.stack(
        [model.step(u, {"v": float(v)}) for u, (v,) in zip(states(), values, strict=True)]
    )
    np.testing.assert_allclose(found, expected, atol=ROUNDING)
    # The second argument matters: the field travels by v dt.
    assert np.abs(expected[0] - expected[1]).max() > 0.1


@pytest.mark.parametrize("kind", ["physics", "fno", "unet", "resnet"])
def test_every_kind_exports_with_an_open_batch(kind):
    model = made(spec_of(kind))
    exported = export_model(model, points=16)
    function = jax_export.deserialize(bytearray(exported.function))
    assert set(function.platforms) == {"cpu", "cuda", "tpu"}
    for batch in (1, 2):
        found = jax.jit(function.call)(states(batch))
        expected = np.stack([model.step(u) for u in states(batch)])
        # A convolution sums hundreds of terms.
        size = max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(found, expected, atol=10 * ROUNDING * size)


@pytest.mark.slow
def test_learned_encoder_exports():
    spec = replace(SPEC, numerics=replace(SPEC.numerics, encoder="unet", anchors=(8, 8)))
    model = made(spec)
    exported = export_model(model, points=16, platforms=["cpu"])
    function = jax_export.deserialize(bytearray(exported.function))
    # The solve of the amplitudes loses two digits more than a sum does.
    np.testing.assert_allclose(
        function.call(states(1))[0], model.step(states(1)[0]), atol=100 * ROUNDING
    )


def test_saved_archive_holds_the_model_itself(tmp_path):
    model, path = made(), tmp_path / "all.zip"
    save_export(path, export_model(model, points=16), model, format="saved")
    assert is_export(path)
    with zipfile.ZipFile(path) as archive:
        archive.extract("model.safetensors", tmp_path)
        assert json.loads(archive.read("description.json"))["dt"] == model.spec.dt
    again = load_model(tmp_path / "model.safetensors")
    assert np.array_equal(again.step(field()), model.step(field()))


def test_command_writes_and_info_shows(tmp_path):
    save_model(tmp_path / "m.safetensors", made())
    out = tmp_path / "step.bin"
    arguments = ["export", str(tmp_path / "m.safetensors"), "--out", str(out), "--points", "16"]
    assert CliRunner().invoke(app, arguments, catch_exceptions=False).exit_code == 0
    done = CliRunner().invoke(app, ["info", str(out), "--json"], catch_exceptions=False)
    held = json.loads(done.output)["export"]
    assert (held["points"], held["channels"], held["dt"]) == ([16, 16], ["u"], 0.5)
    assert held["fixed_coefficients"] == {"v": 0.1, "D": 1e-3}
    table = CliRunner().invoke(app, ["info", str(out)], catch_exceptions=False)
    assert "dt(u)" in table.output


def test_the_grid_of_the_training_is_the_default():
    trained = replace(made(), record={"points": [16, 18]})
    assert export_model(trained, platforms=["cpu"]).description["points"] == [16, 18]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "expected --points"),
        ({"points": [16, 16, 16]}, "one per axis"),
        ({"points": 16, "steps": 0}, "at least one step"),
        ({"points": 16, "platforms": ["cdua"]}, "did you mean 'cuda'"),
        ({"points": 4}, "modes"),
    ],
)
def test_refuses_what_cannot_be_exported(options, message):
    with pytest.raises(SplatopError, match=message):
        export_model(made(), **options)


def test_refuses_damaged_and_foreign_files(tmp_path):
    model = made()
    exported = export_model(model, points=16, platforms=["cpu"])
    with pytest.raises(SplatopError, match="did you mean 'saved'"):
        save_export(tmp_path / "a", exported, model, format="save")
    for format in ("stablehlo", "saved"):
        path = tmp_path / format
        save_export(path, exported, model, format=format)
        assert read_export(path).description == exported.description
        whole = path.read_bytes()
        middle = len(whole) // 2
        flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
        for damaged in (whole[:-30], b"", flipped):
            path.write_bytes(damaged)
            with pytest.raises(SplatopError, match=r"damaged|checksum"):
                read_export(path)
    path = tmp_path / "other.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "b")
    with pytest.raises(SplatopError, match="something else"):
        read_export(path)

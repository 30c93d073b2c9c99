"""A model as a function that any JAX can run: StableHLO through `jax.export`, without splatop.

`jax.export` reads and writes it with flatbuffers, which JAX does not install by itself. The batch
size stays open; grid, weights and fixed coefficients are part of the function.
"""

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import export as jax_export

from ._version import __version__
from .benchmarks import BENCHMARKS
from .data.atomic import write_whole
from .errors import SplatopError, unknown_name
from .model import Model, model_bytes
from .signal import KNOTS, Signal
from .stepper import TIME, rollout

FORMATS = ("stablehlo", "saved")
PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
EXPORT_FORMAT = "splatop-export"
EXPORT_VERSION = 1
# What a "saved" archive holds.
_FUNCTION, _MODULE, _MODEL, _DESCRIPTION = (
    "function.bin",
    "module.mlirbc",
    "model.safetensors",
    "description.json",
)
# More than this is not a description.
_MOST_STEPS = 1_000_000
_MOST_DESCRIPTION_BYTES = 2**20


@dataclass(frozen=True)
class Export:
    """The bytes of `jax.export`, the StableHLO module in them, and what inputs and output mean."""

    function: bytes
    module: bytes
    description: dict[str, Any]


def export_model(
    model: Model,
    *,
    points: int | Sequence[int] | None = None,
    steps: int = 1,
    platforms: Sequence[str] = ("cpu", "cuda", "tpu"),
) -> Export:
    """The function `(batch, C, *N) -> (batch, C, *N)`, or `-> (batch, steps, C, *N)` of a rollout.

    Coefficients that belong to a trajectory are a second argument `(batch, P)`, in the order that
    the description states; where the equation depends on it the last one is the time `t` of the
    state. What drives the model are two more, the frames `(batch, steps + 3, I, *N)` of its inputs
    around the steps and the times `(batch, steps + 3)` of these, between which they are cubic.
    Without `points` the grid is the one that the model was trained for.
    """
    if steps < 1:
        raise SplatopError(f"expected at least one step to export, got {steps}")
    if steps > _MOST_STEPS:
        raise SplatopError(f"expected at most {_MOST_STEPS:,} steps in one call, got {steps}")
    for platform in platforms:
        if platform not in PLATFORMS:
            raise unknown_name("platform", platform, PLATFORMS)
    spec, grid = model.spec, grid_of(model, points)
    names = spec.unknown if model.stepper.autonomous else (*spec.unknown, TIME)
    # One frame before the state and one behind the last step make the cubic around each step.
    known = steps + KNOTS - 1

    def one(u, values, given, when):
        own = model.complete(dict(zip(names, values, strict=True)))
        own |= {name: Signal(given[:, i], when) for i, name in enumerate(spec.inputs)}
        # A loop also where steps in a row would be quicker on CPUs: the file holds one step.
        frames = rollout(model.stepper, u, own, steps=steps, loop=True)
        return frames[0] if steps == 1 else frames

    (batch,) = jax_export.symbolic_shape("batch")
    shapes = {"state": (batch, len(spec.fields), *grid)}
    if names:
        shapes["coefficients"] = (batch, len(names))
    if spec.inputs:
        shapes["inputs"] = (batch, known, len(spec.inputs), *grid)
        shapes["input_times"] = (batch, known)

    def function(*arguments):
        own = dict(zip(shapes, arguments, strict=True))
        nothing = jnp.zeros((own["state"].shape[0], 0), jnp.float32)
        return jax.vmap(one)(
            own["state"],
            own.get("coefficients", nothing),
            own.get("inputs", nothing),
            own.get("input_times", nothing),
        )

    arguments = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes.values()]
    exported = jax_export.export(jax.jit(function), platforms=list(platforms))(*arguments)
    data = bytes(exported.serialize())
    description = {
        "format": EXPORT_FORMAT,
        "format_version": EXPORT_VERSION,
        "splatop_version": __version__,
        "jax_version": jax.__version__,
        "platforms": list(platforms),
        "inputs": [
            {"name": name, "shape": [_size(n) for n in shape], "dtype": "float32"}
            for name, shape in shapes.items()
        ],
        "output": {"shape": [_size(n) for n in exported.out_avals[0].shape], "dtype": "float32"},
        "channels": list(spec.fields),
        "points": list(grid),
        "lengths": list(spec.lengths),
        "origin": list(spec.origin),
        "dt": spec.dt,
        "steps": steps,
        "coefficients": list(names),
        "driven_by": list(spec.inputs),
        "fixed_coefficients": dict(spec.coefficients),
        "kind": spec.kind,
        "benchmark": spec.benchmark,
        "equation": spec.equation,
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    return Export(data, exported.mlir_module_serialized, description)


def _size(dimension: Any) -> int | str:
    return dimension if isinstance(dimension, int) else str(dimension)


def grid_of(model: Model, points: int | Sequence[int] | None) -> tuple[int, ...]:
    """Points per axis: those given, else those of the training, else the benchmark's."""
    spec = model.spec
    if points is None:
        points = model.record.get("points")
    if points is None and spec.benchmark in BENCHMARKS:
        points = BENCHMARKS[spec.benchmark].points
    if points is None:
        raise SplatopError(
            "expected --points for a model that does not say what grid it was trained on, got none"
        )
    grid = (points,) * spec.dims if isinstance(points, int) else tuple(int(n) for n in points)
    if len(grid) != spec.dims or min(grid) < 2:
        raise SplatopError(
            f"expected one number of points, or {spec.dims}, one per axis, got {list(grid)}"
        )
    return grid


def save_export(path: str | Path, export: Export, model: Model, *, format: str) -> list[Path]:
    """Write an export; return the files that were written.

    "stablehlo" is the bytes of `jax.export` as they are, with the description in PATH.json beside.
    "saved" is one zip archive of both, of the bare StableHLO module for programs that are not JAX,
    and of the model itself.
    """
    path = Path(path)
    if not path.name or path.is_dir():
        raise SplatopError(f"expected the name of a file to write, got the folder '{path}'")
    if format not in FORMATS:
        raise unknown_name("format", format, FORMATS)
    text = json.dumps(export.description, indent=2, allow_nan=False) + "\n"
    if format == "stablehlo":
        sidecar = sidecar_of(path)
        write_whole(path, export.function)
        write_whole(sidecar, text)
        return [path, sidecar]
    content = {
        _DESCRIPTION: text.encode(),
        _FUNCTION: export.function,
        _MODULE: export.module,
        _MODEL: model_bytes(model),
    }
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in content.items():
            file.writestr(name, data)
    write_whole(path, archive.getvalue())
    return [path]


def sidecar_of(path: Path) -> Path:
    return path.with_name(path.name + ".json")


def is_export(path: str | Path) -> bool:
    """Whether a file looks like an export: an archive, or bytes with a description beside them."""
    path = Path(path)
    if not path.is_file():
        return False
    return sidecar_of(path).is_file() or zipfile.is_zipfile(path)


def read_export(path: str | Path) -> Export:
    """An export from its file, verified by its checksum."""
    path = Path(path)
    try:
        function, module, text = _parts(path)
        description = json.loads(text)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, zlib.error, RuntimeError) as error:
        raise SplatopError(
            f"expected an export of splatop, got '{path}', which is damaged or something else "
            f"({error}): export the model again"
        ) from error
    if not isinstance(description, dict) or description.get("format") != EXPORT_FORMAT:
        raise SplatopError(f"expected an export of splatop, got '{path}', of another program")
    if description.get("format_version") != EXPORT_VERSION:
        raise SplatopError(
            f"expected an export of version {EXPORT_VERSION}, got "
            f"{description.get('format_version')} in '{path}': it needs another version of splatop"
        )
    if hashlib.sha256(function).hexdigest() != description.get("sha256"):
        raise SplatopError(f"the checksum of '{path}' does not match: the file was damaged")
    return Export(function, module, description)


def _parts(path: Path) -> tuple[bytes, bytes, str]:
    sidecar = sidecar_of(path)
    if sidecar.is_file():
        return path.read_bytes(), b"", sidecar.read_text()
    with zipfile.ZipFile(path) as archive:
        if archive.getinfo(_DESCRIPTION).file_size > _MOST_DESCRIPTION_BYTES:
            raise ValueError("a description of more than a megabyte")
        return (
            archive.read(_FUNCTION),
            archive.read(_MODULE),
            archive.read(_DESCRIPTION).decode(),
        )

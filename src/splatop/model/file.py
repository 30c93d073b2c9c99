"""Model files: a model in one safetensors file, written whole and verified when read.

The file holds arrays by name, and as JSON the model's parts (`description.py`), its `ModelSpec` and
the record of its training. Nothing in it is executed. Files of version 1 held no parts: theirs are
those of the stepper that their spec asks for.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import safetensors
import safetensors.numpy

from .._version import __version__
from ..data.atomic import write_whole
from ..description import Tree, arrays_of, build, describe, unregistered_in
from ..ensemble import repeat
from ..errors import SplatopError, unknown_name
from ..spectral import Field
from ..stepper import Stepper
from .build import build_model
from .model import Model
from .spec import ModelSpec

FORMAT = "splatop-model"
FORMAT_VERSION = 2
SHIPPED = Path(__file__).parent.parent / "models"
_HASHED = ("format", "format_version", "splatop_version", "spec", "record", "parts")


def save_model(path: str | Path, model: Model) -> Path:
    """Write the model to one safetensors file, complete or not at all."""
    path = Path(path)
    write_whole(path, model_bytes(model))
    return path


def model_bytes(model: Model) -> bytes:
    """The content of a model's file."""
    tree = describe(model.stepper, strict=False)
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "splatop_version": __version__,
        "spec": json.dumps(model.spec.as_dict()),
        "record": json.dumps(dict(model.record)),
        "parts": json.dumps(tree, allow_nan=False),
    }
    tensors = _tensors(model.stepper, tree)
    metadata["sha256"] = _checksum(tensors, metadata)
    return safetensors.numpy.save(tensors, metadata)


def shipped_models() -> dict[str, Path]:
    """The trained models inside the package, by name."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.safetensors"))}


def bounded_models() -> dict[str, Path]:
    """The models inside the package for boxes with walls and for shapes, by name."""
    return {path.stem: path for path in sorted((SHIPPED / "bounded").glob("*.safetensors"))}


def coarse_models() -> dict[str, Path]:
    """The coarse models inside the package, by name: fast rather than exact."""
    return {path.stem: path for path in sorted((SHIPPED / "coarse").glob("*.safetensors"))}


def load_model(path: str | Path, *, operator: Callable[..., Field] | None = None) -> Model:
    """A model from its file, from the run folder it was trained in, or a shipped one by name.

    A surrogate whose operator is of a class without a registered name gets its weights filled into
    `operator`, a module of the same structure.
    """
    shipped = {**shipped_models(), **bounded_models(), **coarse_models()}
    if not Path(path).exists() and str(path) in shipped:
        path = shipped[str(path)]
    path = Path(path)
    if path.is_dir():
        if not (path / "model.safetensors").exists():
            raise SplatopError(
                f"expected a finished run in '{path}', got a folder without model.safetensors: "
                "train it, or continue with --resume"
            )
        path = path / "model.safetensors"
    if not path.exists():
        raise unknown_name("model (no such run folder or .safetensors file)", str(path), shipped)
    metadata, tensors = _read(path)
    if metadata.get("format") != FORMAT:
        raise SplatopError(f"expected a splatop model, got '{path}', a file of another program")
    if metadata.get("format_version") not in ("1", str(FORMAT_VERSION)):
        raise SplatopError(
            f"expected a model file of version 1 to {FORMAT_VERSION}, got "
            f"{metadata.get('format_version')} in '{path}': it needs another version of splatop"
        )
    if _checksum(tensors, metadata) != metadata.get("sha256"):
        raise SplatopError(f"the checksum of '{path}' does not match: the file was damaged")
    try:
        spec = ModelSpec.from_dict(json.loads(metadata["spec"]))
        record = json.loads(metadata.get("record", "{}"))
        if not isinstance(record, dict):
            raise SplatopError(f"expected a record of the training, got {type(record).__name__}")
        if metadata["format_version"] == "1":
            # Shapes alone: nothing is allocated for a spec that does not fit its tensors.
            skeleton = eqx.filter_eval_shape(build_model, spec, operator=operator)
            tree = describe(skeleton, strict=False)
        else:
            tree = json.loads(metadata["parts"])
        stepper = _built(tree, spec, tensors, operator)
    except SplatopError as error:
        raise SplatopError(f"{error} (in '{path}')") from error
    except Exception as error:  # whatever a senseless description makes the builder raise
        raise SplatopError(
            f"expected a model description in '{path}', got none valid ({error})"
        ) from error
    return Model(spec, stepper, record)


def _read(path: Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            names = list(file.keys())
            return file.metadata() or {}, {name: file.get_tensor(name) for name in names}
    except (safetensors.SafetensorError, OSError, ValueError, TypeError) as error:
        raise SplatopError(
            f"expected a safetensors file, got '{path}', which is damaged or something else "
            f"({error}): copy it again"
        ) from error


def _leaves(module: Any, chosen: Callable[[Any], bool]) -> dict[str, Any]:
    leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(module, chosen))
    return {jax.tree_util.keystr(path).lstrip("."): leaf for path, leaf in leaves}


def _tensors(stepper: Stepper, tree: Tree) -> dict[str, np.ndarray]:
    """The arrays of all parts that the tree describes; of others, those that training changes."""
    leaves = _leaves(stepper, eqx.is_array)
    names = {name for name, _, _ in arrays_of(tree)}
    mentioned = tuple(path for path, _ in unregistered_in(tree))
    for name in _leaves(stepper, eqx.is_inexact_array):
        if name.startswith(mentioned):
            names.add(name)
    if missing := names - set(leaves):
        raise SplatopError(
            f"expected arrays that JAX sees, got static ones in the model: {', '.join(missing)}"
        )
    return {name: np.asarray(leaves[name], order="C") for name in sorted(names)}


def _built(
    tree: Tree,
    spec: ModelSpec,
    tensors: dict[str, np.ndarray],
    operator: Callable[..., Field] | None,
) -> Stepper:
    """The stepper that a tree describes, with these arrays, all of which it must ask for."""
    missing = dict(unregistered_in(tree))
    if bool(missing) != (operator is not None):
        raise SplatopError(
            "expected the Python model that is this surrogate's operator, "
            f"{', '.join(missing.values())}, got none: pass one of the same structure, "
            "load(path, operator=...), or register its class before training"
            if operator is None
            else "expected no operator for a model whose parts are all in its file, got "
            f"{type(operator).__name__}: leave it out"
        )
    wanted = {name: (shape, dtype) for name, shape, dtype in arrays_of(tree)}
    shapes: dict[str, Any] = {}
    for path in missing:
        shapes[path] = eqx.filter_eval_shape(
            lambda: operator if spec.members == 1 else repeat(operator, spec.members)
        )
        for name, leaf in _leaves(shapes[path], _is_shape).items():
            if jnp.issubdtype(leaf.dtype, jnp.inexact):
                inner = f"{path}.{name}" if not name.startswith("[") else f"{path}{name}"
                wanted[inner] = (leaf.shape, str(leaf.dtype))
    _check_tensors(wanted, tensors)
    arrays = {name: jnp.asarray(tensor) for name, tensor in tensors.items()}
    given = {path: _filled(operator, path, arrays) for path in missing}
    stepper = build(tree, arrays, given=given)
    _check_stepper(stepper, spec)
    return stepper


def _is_shape(leaf: Any) -> bool:
    return isinstance(leaf, jax.ShapeDtypeStruct)


def _check_tensors(
    wanted: Mapping[str, tuple[tuple[int, ...], str]], tensors: Mapping[str, np.ndarray]
) -> None:
    if set(wanted) != set(tensors):
        wrong = sorted(set(wanted) ^ set(tensors))
        raise SplatopError(
            "expected the tensors of the model that the file describes, got others: "
            f"{', '.join(wrong[:4])}{' ...' if len(wrong) > 4 else ''}"
        )
    for name, (shape, dtype) in wanted.items():
        held = tensors[name]
        if held.shape != shape or held.dtype.kind != np.dtype(dtype).kind:
            raise SplatopError(
                f"expected tensor '{name}' of shape {shape} and type {dtype}, got {held.dtype} of "
                f"shape {held.shape}"
            )


def _filled(part: Any, path: str, arrays: Mapping[str, jax.Array]) -> Any:
    """The part with the arrays of its path instead of its own."""

    def held(where, leaf):
        name = jax.tree_util.keystr(where)
        return arrays[path + name] if eqx.is_inexact_array(leaf) else leaf

    return jax.tree_util.tree_map_with_path(held, part)


def _check_stepper(stepper: Any, spec: ModelSpec) -> None:
    """Refuse parts that are not what the spec, which all else relies on, says."""
    if not isinstance(stepper, Stepper):
        raise SplatopError(f"expected a stepper, got {type(stepper).__name__}")
    physics = stepper.embedded
    if (physics is None) != (spec.kind not in ("surrogate", "physics")):
        raise SplatopError(f"expected the parts of a '{spec.kind}' model, got others")
    if len(stepper.alone) != spec.members:
        raise SplatopError(f"expected {spec.members} member(s), got {len(stepper.alone)}")
    if physics is not None:
        said = (len(spec.fields), spec.lengths, spec.dt)
        held = (len(physics.equation.fields), physics.lengths, physics.dt)
        if said != held:
            raise SplatopError(
                f"expected physics of so many fields, these lengths and time step: {said}, got "
                f"{held}"
            )


def _checksum(tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    for name in _HASHED:
        digest.update(metadata.get(name, "").encode())
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(str(tensors[name].shape).encode())
        digest.update(np.ascontiguousarray(tensors[name]).tobytes())
    return digest.hexdigest()

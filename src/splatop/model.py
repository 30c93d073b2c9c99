"""A model as a value: what it is made of, how to build it, one file that holds it.

The file is safetensors: arrays by name, and a description in JSON from which the stepper is built
again. Nothing in it is executed.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import safetensors
import safetensors.numpy
from jaxtyping import Array, Float, PRNGKeyArray

from ._version import __version__
from .benchmarks import get_benchmark
from .data.atomic import write_whole
from .encoders import Encoder
from .ensemble import Ensemble, repeat, stack
from .equation import Equation, parse_equation
from .errors import SplatopError, check_field, unknown_name
from .grid import Grid
from .numerics import Numerics, build_encoder, build_physics
from .operators import BASELINES, FNO, Conditioning, baseline, parameter_count
from .physics import EmbeddedPhysics
from .spectral import Field
from .stepper import Coefficients, Stepper, rollout
from .surrogate import ScaledOperator, Surrogate

GivenField = Float[Array | np.ndarray, "C *N"]

FORMAT = "splatop-model"
FORMAT_VERSION = 1
SHIPPED = Path(__file__).parent / "models"
KINDS = ("surrogate", "physics", *BASELINES)
# What corrects the physics of a surrogate: our network, or one that only the user's code can build.
FNO_OPERATOR, OWN_OPERATOR = "fno", "own"


@dataclass(frozen=True)
class ModelSpec:
    """What a model is, in a form that JSON can hold; its arrays are stored beside it.

    `unknown` coefficients belong to a trajectory and are identified from its first frames;
    `coefficients` are the same for all. `conditioned` says whether the network sees the unknown.
    The box begins at `origin`, which is 0 in files that do not say.
    """

    kind: str
    equation: str
    fields: tuple[str, ...]
    lengths: tuple[float, ...]
    dt: float
    numerics: Numerics | None = None
    benchmark: str | None = None
    coefficients: Mapping[str, float] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    conditioned: bool = False
    dropped_terms: tuple[str, ...] = ()
    coupling: str = "parallel"
    hidden: int = 6
    modes: int = 10
    blocks: int = 4
    tenfold: bool = False
    operator: str = FNO_OPERATOR
    members: int = 1  # of an ensemble
    origin: tuple[float, ...] = ()

    def __post_init__(self):
        if not self.origin:
            object.__setattr__(self, "origin", (0.0,) * self.dims)
        if not isinstance(self.members, int) or self.members < 1:
            raise SplatopError(f"expected at least one member of a model, got {self.members}")
        if self.kind not in KINDS:
            raise unknown_name("model", self.kind, KINDS)
        if self.operator not in (FNO_OPERATOR, OWN_OPERATOR):
            raise unknown_name("operator", self.operator, (FNO_OPERATOR, OWN_OPERATOR))

    @property
    def dims(self) -> int:
        return len(self.lengths)

    @cached_property
    def full_equation(self) -> Equation:
        """The governing equation, with every term: the one that is stored.

        A benchmark has its own in the form that the reference solver takes.
        """
        if self.benchmark is not None:
            benchmark = get_benchmark(self.benchmark)
            if self.equation == benchmark.equation_text:
                return benchmark.equation
        parsed = parse_equation(self.equation, dims=self.dims, fields=self.fields)
        return parsed.placed_at(self.origin)

    @property
    def known_equation(self) -> Equation:
        """The part of it that Φ knows."""
        return self.full_equation.without(*self.dropped_terms)

    def check_origin(self, grid: Grid, source: str) -> None:
        """Refuse data that begin elsewhere, if the equation says where in the box it acts."""
        if not grid.begins_like(self.origin) and self.full_equation.uses_coordinates:
            here, there = (", ".join(f"{o:g}" for o in one) for one in (self.origin, grid.origin))
            raise SplatopError(
                f"expected coordinates that begin at {here}, as where the model was trained, "
                f"because its equation uses them, got {there} in {source}: use data of the same "
                "box, or train on these"
            )

    def without_operator(self, *, members: int = 1) -> "ModelSpec":
        """The description of its physics alone."""
        return replace(
            self, kind="physics", members=members, conditioned=False, operator=FNO_OPERATOR
        )

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "ModelSpec":
        names = {f.name for f in fields(cls)}
        if not isinstance(values, dict) or not {"kind", "equation", "lengths"} <= set(values):
            raise SplatopError("expected a model description, got something else")
        extra = sorted(set(values) - names)
        if extra:
            raise SplatopError(
                f"unknown fields {', '.join(extra)} in the model description: "
                "the file was made by another version of splatop"
            )
        known: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in values.items()
        }
        if known.get("numerics") is not None:
            known["numerics"] = Numerics.from_dict(known["numerics"])
        return cls(**known)


def build_model(
    spec: ModelSpec,
    *,
    key: PRNGKeyArray | None = None,
    encoder: Encoder | None = None,
    conditioning: Conditioning | None = None,
    operator: Callable[..., Field] | None = None,
) -> Stepper:
    """The stepper that a description stands for, with fresh weights and unit scales.

    A surrogate with an operator of the user's own needs it again: a description is no program.
    """
    key = jax.random.key(0) if key is None else key
    channels = len(spec.fields)
    if spec.members > 1:
        one = build_model(
            replace(spec, members=1),
            key=key,
            encoder=encoder,
            conditioning=conditioning,
            operator=operator,
        )
        return Ensemble(repeat(one, spec.members), spec.members)
    if spec.conditioned and conditioning is None:
        zeros = np.zeros(len(spec.unknown))
        conditioning = Conditioning(spec.unknown, zeros, zeros + 1)
    zero, one = jnp.zeros(channels), jnp.ones(channels)
    if spec.kind in BASELINES:
        if spec.conditioned and spec.kind != "fno":
            raise SplatopError(
                f"expected an FNO for coefficients that vary, got '{spec.kind}': "
                "only the FNO can be conditioned"
            )
        if spec.kind == "fno" and not spec.tenfold:
            network = _fno(spec, key, zero_projection=False)
        else:
            network = baseline(spec.kind, spec.dims, channels, key=key, tenfold=spec.tenfold)
        return ScaledOperator(network, zero, one, conditioning)
    if spec.numerics is None:
        raise SplatopError(f"a {spec.kind} model expected numerics for its physics, got none")
    if encoder is None:
        encoder = build_encoder(spec.numerics, channels)
    physics = build_physics(
        spec.known_equation, spec.numerics, lengths=spec.lengths, dt=spec.dt, encoder=encoder
    )
    if spec.kind == "physics":
        return physics
    if (spec.operator == OWN_OPERATOR) != (operator is not None):
        raise SplatopError(
            "expected the Python model that is this surrogate's operator, got none: pass one of "
            "the same structure, load(path, operator=...)"
            if operator is None
            else "expected no operator for a surrogate with an FNO of its own, got "
            f"{type(operator).__name__}: leave it out"
        )
    network = _fno(spec, key, zero_projection=True) if operator is None else operator
    return Surrogate(physics, network, zero, one, one, conditioning, spec.coupling)


def _fno(spec: ModelSpec, key: PRNGKeyArray, *, zero_projection: bool) -> FNO:
    return FNO(
        spec.dims,
        len(spec.fields),
        hidden=spec.hidden,
        modes=spec.modes,
        blocks=spec.blocks,
        conditions=len(spec.unknown) if spec.conditioned else 0,
        key=key,
        zero_projection=zero_projection,
    )


@dataclass(frozen=True)
class Model:
    """A stepper with its description. `record` is what training wrote down about it."""

    spec: ModelSpec
    stepper: Stepper
    record: Mapping[str, Any] = field(default_factory=dict)

    @property
    def physics(self) -> EmbeddedPhysics | None:
        """The embedded physics alone, if the model has one; of an ensemble the first member's."""
        stepper = self.stepper
        stepper = stepper.member(0) if isinstance(stepper, Ensemble) else stepper
        if isinstance(stepper, Surrogate):
            return stepper.physics
        return stepper if isinstance(stepper, EmbeddedPhysics) else None

    @property
    def members(self) -> list["Model"]:
        """The models of an ensemble one by one; of any other the model itself."""
        if not isinstance(self.stepper, Ensemble):
            return [self]
        one = replace(self.spec, members=1)
        return [Model(one, self.stepper.member(k), self.record) for k in range(self.stepper.count)]

    @property
    def parameters(self) -> int:
        """Trainable parameters of the dynamics map; the encoder is counted apart, as the paper."""
        network = getattr(self.stepper, "network", None)
        return 0 if network is None else parameter_count(network)

    def physics_only(self) -> "Model":
        """The ablation without the operator."""
        if self.physics is None:
            raise SplatopError(f"a '{self.spec.kind}' model has no physics to run alone")
        return Model(self.spec.without_operator(), self.physics, self.record)

    def complete(self, coefficients: Coefficients | None) -> dict[str, Any]:
        """The model's fixed coefficients with a trajectory's own ones."""
        given = {**self.spec.coefficients, **(coefficients or {})}
        missing = [name for name in self.spec.unknown if name not in given]
        if missing:
            raise SplatopError(
                f"expected values for the coefficients {', '.join(missing)}, which belong to a "
                "trajectory: identify them from its first frames, or pass them"
            )
        return given

    def step(self, u: GivenField, coefficients: Coefficients | None = None) -> Field:
        """The state one frame later."""
        return _jitted_step(self.stepper, self._checked(u), self.complete(coefficients))

    def rollout(
        self, u0: GivenField, *, steps: int, coefficients: Coefficients | None = None
    ) -> Float[Array, "T C *N"]:
        """The `steps` states that follow `u0`."""
        if steps < 1:
            raise SplatopError(f"expected at least one step, got {steps}")
        u, own = self._checked(u0), self.complete(coefficients)
        if self.spec.kind in ("unet", "resnet"):
            # XLA's convolutions are ten times slower in a compiled loop on CPUs.
            states = []
            for _ in range(steps):
                u = _jitted_step(self.stepper, u, own)
                states.append(u)
            return jnp.stack(states)
        return _jitted_rollout(self.stepper, u, own, steps)

    def _checked(self, u: GivenField) -> Array:
        u = jnp.asarray(u)
        check_field(u, dims=self.spec.dims, channels=len(self.spec.fields))
        return u


@eqx.filter_jit
def _jitted_step(stepper, u, coefficients):
    return stepper(u, coefficients)


@eqx.filter_jit
def _jitted_rollout(stepper, u0, coefficients, steps):
    return rollout(stepper, u0, coefficients, steps=steps)


def ensemble_of(models: Sequence[Model]) -> Model:
    """Models of one description, as one."""
    first = models[0]
    if any(other.spec != first.spec for other in models):
        raise SplatopError("expected models of one description in an ensemble, got different ones")
    stepper = Ensemble(stack([model.stepper for model in models]), len(models))
    return Model(replace(first.spec, members=len(models)), stepper, first.record)


def save_model(path: str | Path, model: Model) -> Path:
    """Write the model to one safetensors file, complete or not at all."""
    path = Path(path)
    write_whole(path, model_bytes(model))
    return path


def model_bytes(model: Model) -> bytes:
    """The content of a model's file."""
    tensors = _tensors(model.stepper)
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "splatop_version": __version__,
        "spec": json.dumps(model.spec.as_dict()),
        "record": json.dumps(dict(model.record)),
    }
    metadata["sha256"] = _checksum(tensors, metadata)
    return safetensors.numpy.save(tensors, metadata)


def shipped_models() -> dict[str, Path]:
    """The trained models inside the package, by name."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.safetensors"))}


def load_model(path: str | Path, *, operator: Callable[..., Field] | None = None) -> Model:
    """A model from its file, from the run folder it was trained in, or a shipped one by name.

    A surrogate that was trained with an operator of the user's own gets its weights filled into
    `operator`, a module of the same structure.
    """
    shipped = shipped_models()
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
    if metadata.get("format_version") != str(FORMAT_VERSION):
        raise SplatopError(
            f"expected a model file of version {FORMAT_VERSION}, got "
            f"{metadata.get('format_version')} in '{path}': it needs another version of splatop"
        )
    if _checksum(tensors, metadata) != metadata.get("sha256"):
        raise SplatopError(f"the checksum of '{path}' does not match: the file was damaged")
    try:
        spec = ModelSpec.from_dict(json.loads(metadata["spec"]))
        record = json.loads(metadata.get("record", "{}"))
        if not isinstance(record, dict):
            raise SplatopError(f"expected a record of the training, got {type(record).__name__}")
        # Shapes alone: nothing is allocated for a description that does not fit its tensors.
        skeleton = eqx.filter_eval_shape(build_model, spec, operator=operator)
    except SplatopError as error:
        raise SplatopError(f"{error} (in '{path}')") from error
    except Exception as error:  # whatever a senseless description makes the builder raise
        raise SplatopError(
            f"expected a model description in '{path}', got none valid ({error})"
        ) from error
    return Model(spec, _filled(skeleton, tensors, path), record)


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


def _tensors(stepper: Stepper) -> dict[str, np.ndarray]:
    leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(stepper, eqx.is_inexact_array))
    return {
        jax.tree_util.keystr(path).lstrip("."): np.ascontiguousarray(leaf) for path, leaf in leaves
    }


def _filled(skeleton: Stepper, tensors: dict[str, np.ndarray], path: Path) -> Stepper:
    arrays, rest = eqx.partition(skeleton, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))
    wanted = {
        jax.tree_util.keystr(where).lstrip("."): leaf
        for where, leaf in jax.tree_util.tree_leaves_with_path(arrays)
    }
    if set(wanted) != set(tensors):
        wrong = sorted(set(wanted) ^ set(tensors))
        raise SplatopError(
            f"expected the tensors of the model that '{path}' describes, got others: "
            f"{', '.join(wrong[:4])}{' ...' if len(wrong) > 4 else ''}"
        )
    for name, leaf in wanted.items():
        if tensors[name].shape != leaf.shape or not np.issubdtype(tensors[name].dtype, np.floating):
            raise SplatopError(
                f"expected tensor '{name}' of shape {leaf.shape}, got {tensors[name].dtype} of "
                f"shape {tensors[name].shape} in '{path}'"
            )
    filled = jax.tree_util.tree_map_with_path(
        lambda where, _: jnp.asarray(tensors[jax.tree_util.keystr(where).lstrip(".")]), arrays
    )
    return eqx.combine(filled, rest)


def _checksum(tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    for name in ("format", "format_version", "splatop_version", "spec", "record"):
        digest.update(metadata.get(name, "").encode())
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(str(tensors[name].shape).encode())
        digest.update(np.ascontiguousarray(tensors[name]).tobytes())
    return digest.hexdigest()

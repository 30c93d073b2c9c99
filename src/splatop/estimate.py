"""What a model costs on paper: floating-point operations and memory, before anything is run.

The counts follow the matrix products of the code; `tests/test_estimate.py` holds them against what
XLA counts and allocates for the compiled program.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .errors import SplatopError
from .grid import Grid
from .model import Model, ModelSpec, build_model
from .operators.batching import piece_size
from .physics import EmbeddedPhysics
from .stepper import TIME

FLOAT = 4
# Operations per point and channel: of a GELU without its tanh, and of RK4's sums in each stage.
_GELU = 10
_RK4 = 4
# The backward pass forms the hidden fields again, which is half of the products, then needs two
# products where there was one; the transforms it remembers.
_BACKWARD = 2.05
# Hidden fields of one sample that XLA keeps alive at once, forward and backward.
_LIVE_FORWARD, _LIVE_BACKWARD = 3, 10


@dataclass(frozen=True)
class Cost:
    """Costs of one step. Operations are of one state, or one training step on all devices; bytes
    are of one device.
    """

    physics_flops: float
    operator_flops: float
    training_flops: float
    training_flops_per_device: float
    parameters: int
    inference_bytes: int
    training_bytes: dict[str, int]

    @property
    def step_flops(self) -> float:
        return self.physics_flops + self.operator_flops

    def as_dict(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "step_flops": self.step_flops,
            "training_bytes_total": sum(self.training_bytes.values()),
        }


def estimate(
    spec: ModelSpec,
    points: tuple[int, ...],
    *,
    batch: int = 20,
    horizon: int = 5,
    devices: int = 1,
) -> Cost:
    """Operations and bytes of a step of a model on a grid of `points`, and of a training step with
    `batch` windows of `horizon` steps, shared by so many `devices`."""
    _check(spec, points, batch, horizon, devices)
    channels, cells = len(spec.fields), math.prod(points)
    physics, work = 0.0, 0
    if spec.kind != "fno":
        built = Model(spec, build_model(spec)).physics
        assert isinstance(built, EmbeddedPhysics)  # walls were refused
        physics, work = _physics(built, spec, points)
    network = 0.0
    parameters = 0
    if spec.kind != "physics":
        network = _fno(spec, points)
        parameters = _parameters(spec) * spec.members
    samples = batch * horizon * spec.members
    training = samples * (physics + (1 + _BACKWARD) * network)
    # The members of an ensemble share the devices, else the samples of a batch do.
    spread = spec.members > 1
    members = math.ceil(spec.members / devices) if spread else 1
    samples_here = batch if spread else math.ceil(batch / devices)
    state = FLOAT * channels * cells
    hidden = FLOAT * spec.hidden * cells if spec.kind != "physics" else 0
    pieces = piece_size(samples_here, hidden) if hidden else 0
    kept = 2 * state + (FLOAT * _transforms(spec) if hidden else 0)
    return Cost(
        physics_flops=physics,
        operator_flops=network,
        training_flops=training,
        training_flops_per_device=training / devices,
        parameters=parameters,
        inference_bytes=FLOAT * parameters + 2 * state + max(work, _LIVE_FORWARD * hidden),
        training_bytes={
            # Weights, gradient, and the two moments of Adam.
            "weights_and_optimiser": 4 * FLOAT * parameters // spec.members * members,
            "batch": members * samples_here * (horizon + 1) * state,
            "kept_for_the_gradient": members * samples_here * horizon * kept,
            "workspace": members * (samples_here * work + pieces * _LIVE_BACKWARD * hidden),
        },
    )


def counted(spec: ModelSpec, points: tuple[int, ...]) -> tuple[float, int]:
    """Operations and bytes of one step as XLA counts and allocates them: compiles it, runs nothing.

    XLA counts the body of a loop once, so that the physics has one substep here, and a transform of
    several dimensions with the product of its logarithms, where the algorithm takes their sum.
    """
    model = Model(spec, build_model(spec))
    arrays, rest = eqx.partition(model.stepper, eqx.is_inexact_array)
    given = model.complete({**dict.fromkeys(spec.unknown, 1.0), TIME: 0.0})
    state = jax.ShapeDtypeStruct((len(spec.fields), *points), jnp.float32)
    step = jax.jit(lambda own, u: eqx.combine(own, rest)(u, given))
    lowered = step.lower(arrays, state)
    memory: Any = lowered.compile().memory_analysis()
    return float((lowered.cost_analysis() or {}).get("flops", math.nan)), int(
        memory.temp_size_in_bytes + memory.argument_size_in_bytes + memory.output_size_in_bytes
    )


def _check(spec: ModelSpec, points: tuple[int, ...], batch: int, horizon: int, devices: int):
    if spec.domain is not None:
        raise SplatopError(
            "expected a model of a periodic box to estimate the cost of, got one with walls: "
            "measure it, `splatop evaluate` gives the time of a step"
        )
    if spec.kind not in ("surrogate", "physics", "fno") or spec.tenfold or spec.operator != "fno":
        raise SplatopError(
            f"expected a surrogate, physics or FNO to estimate, got '{spec.kind}': there is no "
            "model of its cost; `splatop evaluate` measures it"
        )
    if spec.numerics is not None and spec.numerics.encoder != "lattice":
        raise SplatopError(
            "expected the lattice encoder, whose cost is a closed form, got "
            f"'{spec.numerics.encoder}': `splatop evaluate` measures it"
        )
    if len(points) != spec.dims or min(*points, batch, horizon, devices) < 1:
        raise SplatopError(
            f"expected {spec.dims} numbers of points and at least one sample, step and device, got "
            f"points {points}, batch {batch}, horizon {horizon}, devices {devices}"
        )


def _parameters(spec: ModelSpec) -> int:
    """Weights of the FNO."""
    channels, h, m = len(spec.fields), spec.hidden, spec.modes
    kernel = 2 * (2 * m) ** (spec.dims - 1) * m * h * h
    film = 2 * h * (len(spec.unknown) + 1) if spec.conditioned else 0
    block = kernel + h * h + h + film
    return spec.blocks * block + channels * h + h + h * channels + channels


def _transforms(spec: ModelSpec) -> int:
    """Numbers of the blocks' transforms, which one step keeps for its gradient."""
    each = (2 * (spec.modes + 1)) ** (spec.dims - 1) * 2 * spec.modes
    return each * (len(spec.fields) + (spec.blocks - 1) * spec.hidden)


def _fno(spec: ModelSpec, points: tuple[int, ...]) -> float:
    """One pass of the network over one state."""
    channels, h, m, cells = len(spec.fields), spec.hidden, spec.modes, math.prod(points)
    per_mode = 8 * h * h * (2 * m) ** (spec.dims - 1) * m
    total = 0.0
    for block in range(spec.blocks):
        into = channels if block == 0 else h
        total += _truncated_dft(points, m, into) + per_mode + _truncated_dft(points, m, h)
        total += cells * h * (2 * into + _GELU)
    return total + 2 * cells * h * channels


def _truncated_dft(points: tuple[int, ...], modes: int, channels: int) -> float:
    """Matrix products of one transform, axis by axis from the last; back costs the same."""
    sizes, total = list(points), 0.0
    for axis in reversed(range(len(points))):
        rows = 2 * modes if axis == len(points) - 1 else 2 * (modes + 1)
        total += 2 * rows * math.prod(sizes) * channels
        sizes[axis] = rows
    return total


def _physics(
    physics: EmbeddedPhysics, spec: ModelSpec, points: tuple[int, ...]
) -> tuple[float, int]:
    """Operations and bytes of one step of Φ for one state."""
    channels = len(spec.fields)
    work = physics.working_points(points) if physics.working_grid else points
    derivatives = len(physics.equation.derivatives(spec.dims))
    cells = math.prod(work)
    there = 0.0 if work == points else _resampling(points, work, channels)
    encode, lattice = 0.0, 0
    encoder = physics.jets.gaussian_encoder
    if encoder is not None:
        anchors = encoder.anchors
        encode = _resampling(work, anchors, channels) + channels * _fft(anchors)
        lattice = math.prod(anchors)
    else:
        encode = channels * _fft(work)
    band = physics.jets.filter.band(Grid(work, physics.jets.lengths))
    modes = math.prod(2 * b + 1 for b in band)
    render = derivatives * channels * (_fft(work) + 6 * modes)
    products = channels * cells * (2 * len(physics.equation.term_names) * spec.dims + _RK4)
    there_and_back = 2 * channels * _fft(work)
    filtered = there_and_back if physics.equation.degree > 1 else 0.0
    stage = encode + render + products + filtered
    total = 2 * there + 4 * physics.substeps * stage + there_and_back
    # Stages of RK4, the rendered derivatives, and their modes, which are complex.
    live = FLOAT * channels * (cells * (5 + 2 * derivatives) + 2 * lattice)
    return total, live


def _resampling(source: tuple[int, ...], target: tuple[int, ...], channels: int) -> float:
    """One matrix product per axis."""
    sizes, total = list(source), 0.0
    for axis, rows in enumerate(target):
        if sizes[axis] != rows:
            total += 2 * rows * math.prod(sizes) * channels
            sizes[axis] = rows
    return total


def _fft(points: tuple[int, ...]) -> float:
    """Of real numbers: half of the usual 5 n log2 n."""
    cells = math.prod(points)
    return 2.5 * cells * math.log2(max(cells, 2))

"""Costs on paper beside what XLA counts and allocates for the compiled program."""

import json
import math
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from jax.extend.core import jaxprs_in_params
from typer.testing import CliRunner

from splatop.cli.app import app
from splatop.errors import SplatopError
from splatop.estimate import counted, estimate
from splatop.model import Model, ModelSpec, build_model, save_model
from splatop.numerics import Numerics
from splatop.training.losses import batch_rollout_loss
from test_model import SPEC, made

EQUATIONS = {
    1: "dt(u) = -v*dx(u) + D*lap(u)",
    2: "dt(u) = -v*(dx(u) + dy(u)) + D*lap(u)",
    3: "dt(u) = -v*(dx(u) + dy(u) + dz(u)) + D*lap(u)",
}
# (d, N, A): each of the three is varied by itself.
SIZES = [(1, 256, 16), (2, 48, 16), (2, 96, 16), (2, 96, 32), (3, 24, 12)]


def spec_of(dims: int, anchors: int, kind: str = "surrogate") -> ModelSpec:
    numerics = Numerics("box", (4.0,), 0.0, (anchors,) * dims, substeps=1)
    return ModelSpec(
        kind=kind,
        equation=EQUATIONS[dims],
        fields=("u",),
        lengths=(1.0,) * dims,
        dt=0.1,
        numerics=None if kind == "fno" else numerics,
        coefficients={"v": 0.1, "D": 1e-3},
        modes=8 if dims < 3 else 4,
    )


def transforms(jaxpr) -> list:
    """The Fourier transforms of a program: inputs, kind and lengths."""
    found = []
    for equation in jaxpr.eqns:
        if equation.primitive is jax.lax.fft_p:
            aval = equation.invars[0].aval
            found.append((aval, equation.params["fft_type"], equation.params["fft_lengths"]))
        for inner in jaxprs_in_params(equation.params):
            found += transforms(inner)
    return found


def operations(function, *arguments) -> float:
    """What XLA counts, with transforms by the usual 2.5 n log2 n of real numbers.

    XLA takes the product of the axes' logarithms, where the algorithm takes their sum, and 8
    operations for each number that goes in.
    """
    total = jax.jit(function).lower(*arguments).cost_analysis()["flops"]
    for aval, kind, lengths in transforms(jax.make_jaxpr(function)(*arguments).jaxpr):
        alone = jax.jit(lambda x, k=kind, n=lengths: jax.lax.fft(x, k, n))
        real = jax.lax.FftType.RFFT, jax.lax.FftType.IRFFT
        usual = (2.5 if kind in real else 5.0) * math.prod(lengths) * math.log2(math.prod(lengths))
        several = math.prod(aval.shape[: len(aval.shape) - len(lengths)])
        total += several * usual - alone.lower(aval).cost_analysis()["flops"]
    return total


def step_of(spec: ModelSpec, points: tuple[int, ...]) -> float:
    """The operations of one step."""
    model = Model(spec, build_model(spec))
    arrays, rest = eqx.partition(model.stepper, eqx.is_inexact_array)
    given = model.complete(dict.fromkeys(spec.unknown, 1.0))
    state = jax.ShapeDtypeStruct((len(spec.fields), *points), jnp.float32)
    return operations(lambda own, u: eqx.combine(own, rest)(u, given), arrays, state)


def gradient_of(spec: ModelSpec, points: int, batch: int, horizon: int):
    """What XLA says of the gradient of a batch of windows."""
    model = Model(spec, build_model(spec))
    arrays, rest = eqx.partition(model.stepper, eqx.is_inexact_array)
    shape = (batch, horizon + 1, 1, *(points,) * spec.dims)

    def function(own, windows):
        def loss(own):
            values = {k: jnp.full(batch, v) for k, v in model.complete({}).items()}
            stepper = eqx.combine(own, rest)
            return batch_rollout_loss(stepper, windows, values, scale=jnp.ones(1))[0]

        return jax.value_and_grad(loss)(own)

    arguments = arrays, jax.ShapeDtypeStruct(shape, jnp.float32)
    memory = jax.jit(function).lower(*arguments).compile().memory_analysis()
    return operations(function, *arguments), memory


def within(factor: float, estimated: float, truth: float) -> bool:
    return truth / factor <= estimated <= truth * factor


@pytest.mark.slow
@pytest.mark.parametrize(("dims", "points", "anchors"), SIZES)
def test_a_step_is_within_a_quarter_of_what_xla_counts(dims, points, anchors):
    for kind in ("physics", "fno", "surrogate"):
        spec = spec_of(dims, anchors, kind)
        found = estimate(spec, (points,) * dims)
        flops, held = step_of(spec, (points,) * dims), counted(spec, (points,) * dims)[1]
        assert within(1.25, found.step_flops, flops), (kind, found.step_flops, flops)
        assert within(2.0, found.inference_bytes, held), (kind, found.inference_bytes, held)


@pytest.mark.slow
@pytest.mark.parametrize(("dims", "points", "anchors"), [SIZES[0], SIZES[1]])
def test_a_training_step_is_within_a_quarter_and_its_memory_within_a_factor_of_two(
    dims, points, anchors
):
    spec = spec_of(dims, anchors)
    # XLA counts the body of a loop once, so that only a window of one step can be compared.
    flops, _ = gradient_of(spec, points, 1, 1)
    found = estimate(spec, (points,) * dims, batch=1, horizon=1)
    assert within(1.25, found.training_flops, flops), (found.training_flops, flops)
    _, memory = gradient_of(spec, points, 4, 5)
    held = estimate(spec, (points,) * dims, batch=4, horizon=5).training_bytes
    total = sum(held.values()) - held["weights_and_optimiser"]
    truth = memory.temp_size_in_bytes + 4 * 4 * 6 * points**dims
    assert within(2.0, total, truth), (total, truth)


def test_parameters_are_exact():
    for spec in (SPEC, replace(SPEC, coefficients={"D": 1e-3}, unknown=("v",), conditioned=True)):
        model = Model(spec, build_model(spec))
        assert estimate(spec, (16, 16)).parameters == model.parameters


def test_what_devices_and_members_share():
    one = estimate(SPEC, (64, 64), batch=8)
    two = estimate(SPEC, (64, 64), batch=8, devices=2)
    assert two.training_flops == one.training_flops == 2 * two.training_flops_per_device
    assert two.training_bytes["batch"] == one.training_bytes["batch"] / 2
    assert (
        two.training_bytes["weights_and_optimiser"] == (one.training_bytes["weights_and_optimiser"])
    )
    ensemble = estimate(replace(SPEC, members=4), (64, 64), batch=8, devices=2)
    assert ensemble.training_flops == 4 * one.training_flops
    assert ensemble.training_bytes["batch"] == 2 * one.training_bytes["batch"]


def test_command(tmp_path):
    save_model(tmp_path / "m.safetensors", replace(made(), record={"points": [16, 16]}))
    arguments = ["estimate", str(tmp_path / "m.safetensors"), "--json"]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert json.loads(done.output)["points"] == [16, 16]
    grids = [*arguments[:-1], "--points", "32", "--points", "64", "--anchors", "20"]
    table = CliRunner().invoke(app, grids, catch_exceptions=False)
    assert "32 x 32" in table.output
    assert "64 x 64" in table.output


def test_refuses_what_has_no_closed_form():
    with pytest.raises(SplatopError, match="no model of its cost"):
        estimate(replace(SPEC, kind="unet", numerics=None), (16, 16))
    learned = replace(SPEC, numerics=replace(SPEC.numerics, encoder="unet"))
    with pytest.raises(SplatopError, match="lattice encoder"):
        estimate(learned, (16, 16))
    with pytest.raises(SplatopError, match="at least one sample"):
        estimate(SPEC, (16, 16), batch=0)

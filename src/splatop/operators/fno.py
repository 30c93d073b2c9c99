"""The Fourier neural operator of the paper, with `pdequinox.arch.ClassicFNO`'s parameters."""

import math
from functools import lru_cache, partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pdequinox as pdeqx
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Array, Float, PRNGKeyArray

from ..errors import SplatopError, check_field
from ..spectral import Field
from .batching import batch_in_pieces
from .dft import analysis, check_modes, constant_mode, recall, synthesis
from .kernels import PLAIN, REVERSE, Kernels
from .linear import LinearMap, apply


class FiLM(eqx.Module):
    """An affine map from the condition to a scale and a shift per channel (paper, appendix C).

    Starts as the identity: zero weights, so zero scale and shift.
    """

    weight: Float[Array, "2 H P"]
    bias: Float[Array, "2 H"]

    def __init__(self, hidden: int, conditions: int):
        self.weight = jnp.zeros((2, hidden, conditions))
        self.bias = jnp.zeros((2, hidden))

    def __call__(self, condition: Float[Array, " P"]) -> Float[Array, "2 H"]:
        return self.weight @ condition + self.bias


class FourierBlock(eqx.Module):
    """`GELU(FiLM(K z + W z + b))`: K multiplies the kept modes, W mixes the channels.

    Leading axes of the kernel hold the modes `0 ... m - 1, -1 ... -m`, its last `0 ... m - 1`.
    """

    kernel_real: Float[Array, "*K I O m"]
    kernel_imag: Float[Array, "*K I O m"]
    weight: Float[Array, "O I"]
    bias: Float[Array, " O"]
    film: FiLM | None


class FNO(eqx.Module):
    """Lifting, Fourier blocks, projection: the same function of the same weights as pdequinox's.

    Runs at any resolution that holds its modes. With `conditions`, the features of each block are
    modulated before its GELU: `z <- z (1 + s) + b`, with s and b affine in the condition.
    A zero projection (the default) makes the untrained network exactly zero. The same key draws
    the same weights as in pdequinox. Derivatives are of both modes, second ones in forward mode
    only.
    """

    lifting_weight: Float[Array, "H C"]
    lifting_bias: Float[Array, " H"]
    blocks: tuple[FourierBlock, ...]
    projection_weight: Float[Array, "C H"]
    projection_bias: Float[Array, " C"]
    modes: tuple[int, ...] = eqx.field(static=True)
    conditions: int = eqx.field(static=True)

    # For steppers: no convolution that a compiled loop would slow down, and of the hidden fields
    # only their few modes are kept for the gradient.
    scannable: ClassVar[bool] = True
    light_gradient: ClassVar[bool] = True

    def __init__(
        self,
        dims: int,
        channels: int,
        *,
        hidden: int = 6,
        modes: int | tuple[int, ...] = 10,
        blocks: int = 4,
        conditions: int = 0,
        key: PRNGKeyArray,
        zero_projection: bool = True,
    ):
        if not 1 <= dims <= 3 or min(channels, hidden, blocks, int(np.min(modes))) < 1:
            raise SplatopError(
                "expected 1 to 3 dimensions and at least one channel, hidden channel, mode and "
                f"block, got {dims}, {channels}, {hidden}, {modes} and {blocks}"
            )
        drawn = pdeqx.arch.ClassicFNO(
            dims,
            channels,
            channels,
            hidden_channels=hidden,
            num_modes=modes,  # pyright: ignore[reportArgumentType]
            num_blocks=blocks,
            key=key,
        )
        self.modes = (modes,) * dims if isinstance(modes, int) else modes
        self.conditions = conditions
        lifting, self.blocks, projection = _layers_of(drawn, conditions)
        self.lifting_weight, self.lifting_bias = lifting
        if zero_projection:
            projection = jax.tree.map(jnp.zeros_like, projection)
        self.projection_weight, self.projection_bias = projection

    @classmethod
    def from_pdequinox(cls, model: Any) -> "FNO":
        """The same network as a `pdequinox.arch.ClassicFNO`: outputs agree to rounding."""
        if not isinstance(model, pdeqx.arch.ClassicFNO):
            raise SplatopError(
                f"expected a pdequinox ClassicFNO to copy, got {type(model).__name__}"
            )
        lifting, blocks, projection = _layers_of(model, 0)
        activations = {block.activation for block in model.blocks}  # pyright: ignore
        if lifting[0].shape != projection[0].shape[::-1] or activations != {jax.nn.gelu}:
            raise SplatopError(
                "expected a ClassicFNO with as many output as input channels and jax.nn.gelu, got "
                f"{lifting[0].shape[1]} and {projection[0].shape[0]} channels, {activations}"
            )
        *leading, hidden, _, last = blocks[0].kernel_real.shape
        network = cls(
            len(leading) + 1,
            lifting[0].shape[1],
            hidden=hidden,
            modes=(*(n // 2 for n in leading), last),
            blocks=len(blocks),
            key=jax.random.key(0),
        )
        return eqx.tree_at(
            lambda n: (
                n.lifting_weight,
                n.lifting_bias,
                n.blocks,
                n.projection_weight,
                n.projection_bias,
            ),
            network,
            (*lifting, blocks, *projection),
        )

    def __call__(self, u: Field, condition: Float[Array, " P"] | None = None) -> Field:
        check_field(u, dims=len(self.modes), channels=self.projection_weight.shape[0])
        check_modes(tuple(u.shape[1:]), self.modes)
        given = 0 if condition is None else condition.size
        if given != self.conditions:
            raise SplatopError(
                f"expected a condition of {self.conditions} coefficient(s), got {given}: pass the "
                "standardised coefficients that the network was built for"
            )
        dtype = self.lifting_weight.dtype
        condition = None if condition is None else condition.astype(dtype)
        return _propagate(self, u.astype(dtype), condition).astype(u.dtype)


def _evaluate(
    network: FNO,
    u: Field,
    condition: Float[Array, " P"] | None,
    known: tuple[Array, ...] = (),
    kernels: Kernels = PLAIN,
) -> tuple[Field, tuple[Array, ...]]:
    """The network's output and the transform of each block's input.

    Given the transforms from an earlier evaluation, uses them instead of computing them again.
    """
    points = tuple(u.shape[1:])
    constant = jnp.asarray(constant_mode(network.modes), u.dtype)
    h, transforms = jnp.moveaxis(u, 0, -2), []
    for i, block in enumerate(network.blocks):
        z = recall(known[i], h, network.modes) if known else analysis(h, network.modes)
        transforms.append(z)
        weight, bias = block.weight, block.bias
        if i == 0:
            # The lifting is pointwise and linear, so it commutes with the transform: it is applied
            # to the modes of u and folded into the block's weights, and its result never formed.
            lifted = kernels.mix_channels(network.lifting_weight, z)
            z = lifted + network.lifting_bias[:, None] * constant
            bias = weight @ network.lifting_bias + bias
            weight = weight @ network.lifting_weight
        z = kernels.multiply_modes(z, block.kernel_real, block.kernel_imag)
        if block.film is not None and condition is not None:
            # Before the GELU everything is linear, so the modulation acts on modes and weights.
            scale, shift = block.film(condition)
            weight, bias = (1 + scale)[:, None] * weight, (1 + scale) * bias + shift
            z = (1 + scale)[:, None] * z
        # The bias is the mode of the constant; its gradient then comes with the transform's.
        h = kernels.activate(synthesis(z + bias[:, None] * constant, points), weight, h)
    h = kernels.mix_channels(network.projection_weight, h) + network.projection_bias[:, None]
    return jnp.moveaxis(h, -2, 0), tuple(transforms)


def _hidden_bytes(network: Any, u: Any, *_) -> int:
    """Size of one hidden field, from the shapes of the arguments."""
    return math.prod(u.shape[1:]) * network.lifting_bias.size * u.dtype.itemsize


@batch_in_pieces(_hidden_bytes)
def _forward(network, u, condition):
    return _evaluate(network, u, condition)


@jax.custom_jvp
def _propagate(network: FNO, u: Field, condition: Float[Array, " P"] | None) -> Field:
    """Keeps the few modes of the hidden fields for the way back, and computes the fields again."""
    return _forward(network, u, condition)[0]


@partial(_propagate.defjvp, symbolic_zeros=True)
def _propagate_jvp(primals, tangents):
    leaves, structure = jax.tree.flatten(primals)
    moved = [not isinstance(t, SymbolicZero) for t in jax.tree.leaves(tangents)]
    tangents = [t for t in jax.tree.leaves(tangents) if not isinstance(t, SymbolicZero)]
    out, transforms = _forward(*primals)
    if not tangents:
        return out, jnp.zeros_like(out)
    linear = _derivative(structure, tuple(moved), len(transforms))
    return out, apply(linear, [*leaves, *transforms], tangents)[0]


@lru_cache(maxsize=64)
def _derivative(structure: Any, moved: tuple[bool, ...], blocks: int) -> LinearMap:
    """The derivative in those arguments that move, as a map of their tangents.

    Its first arguments are all leaves of network, state and condition, then the transforms of the
    blocks' inputs.
    """
    count = len(moved)

    def given(operands) -> tuple[Any, ...]:
        """Network, state, condition and transforms."""
        return (*jax.tree.unflatten(structure, operands[:count]), operands[count : count + blocks])

    def output(operands, kernels: Kernels):
        """The network's output as a function of what moves, and the latter's values."""
        *_, transforms = given(operands)

        def function(*own):
            values = iter(own)
            leaves = [next(values) if m else x for m, x in zip(moved, operands, strict=False)]
            known = tuple(transforms) if kernels is REVERSE else ()
            network, u, condition = jax.tree.unflatten(structure, leaves)
            return _evaluate(network, u, condition, known, kernels)[0]

        return function, [x for m, x in zip(moved, operands, strict=False) if m]

    def sample_bytes(*operands) -> int:
        return _hidden_bytes(*given(operands))

    @batch_in_pieces(sample_bytes)
    def forward(*operands):
        function, own = output(operands, PLAIN)
        return [jax.jvp(function, own, list(operands[count + blocks :]))[1]]

    @batch_in_pieces(sample_bytes)
    def transpose(*operands):
        function, own = output(operands, REVERSE)
        return list(jax.vjp(function, *own)[1](operands[-1]))

    return LinearMap(forward, transpose)


def _layers_of(model: Any, conditions: int):
    """Lifting, blocks and projection of a `ClassicFNO` in the layout used here."""
    blocks = []
    for block in model.blocks:
        weight, bias = _pointwise(block.by_pass_conv)
        blocks.append(
            FourierBlock(
                kernel_real=_signed_modes(block.spectral_conv.weights_real),
                kernel_imag=_signed_modes(block.spectral_conv.weights_imag),
                weight=weight,
                bias=bias,
                film=FiLM(weight.shape[0], conditions) if conditions else None,
            )
        )
    return _pointwise(model.lifting), tuple(blocks), _pointwise(model.projection)


def _pointwise(convolution: Any) -> tuple[Float[Array, "O I"], Float[Array, " O"]]:
    """Weight and bias of a 1x1 convolution as a matrix and a vector."""
    out, into = convolution.weight.shape[:2]
    return convolution.weight.reshape(out, into), convolution.bias.reshape(out)


def _signed_modes(weights: Float[Array, "G O I *m"]) -> Float[Array, "*K I O last"]:
    """pdequinox keeps one array per choice of signs of the leading modes: put them side by side.

    In its list of choices the sign of the first axis varies fastest, and it keeps negative modes
    as `-m ... -1`.
    """
    dims = weights.ndim - 4  # leading ones
    signed = weights.reshape(*(2,) * dims, *weights.shape[1:])
    for axis in range(dims):
        sign, mode = dims - 1 - axis, dims + 2 + axis
        plus, minus = jnp.split(signed, 2, axis=sign)
        signed = jnp.concatenate([plus, jnp.flip(minus, axis=mode)], axis=sign)
    # (s_d .. s_1, O, I, m_1 .. m_d, last) -> (s_1 m_1, .. s_d m_d, I, O, last)
    pairs = [axis for i in range(dims) for axis in (dims - 1 - i, dims + 2 + i)]
    signed = signed.transpose(*pairs, dims + 1, dims, 2 * dims + 2)
    leading = [2 * m for m in weights.shape[3:-1]]
    return signed.reshape(*leading, weights.shape[2], weights.shape[1], weights.shape[-1])

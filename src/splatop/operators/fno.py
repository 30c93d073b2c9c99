"""The Fourier neural operator of the paper, with `pdequinox.arch.ClassicFNO`'s parameters."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pdequinox as pdeqx
from jaxtyping import Array, Float, PRNGKeyArray

from ..errors import check_field
from ..spectral import Field
from .dft import analysis, check_modes, constant_mode, synthesis
from .layers import activate, mix_channels, multiply_modes


class FiLM(eqx.Module):
    """An affine map from the condition to a scale and a bias per channel (paper, appendix C).

    Starts as the identity: zero weights, zero scale and bias.
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

    Leading axes of the kernel hold the modes `0 ... m - 1, -1 ... -m`.
    """

    kernel_real: Float[Array, "*K I O m"]
    kernel_imag: Float[Array, "*K I O m"]
    weight: Float[Array, "O I"]
    bias: Float[Array, " O"]
    film: FiLM | None


class FNO(eqx.Module):
    """Lifting, Fourier blocks, projection; the same function of the same weights as pdequinox's.

    Works at any resolution that resolves the modes. With `conditions`, each block's features are
    modulated before its GELU: `z <- z (1 + s) + b`, scale and bias affine in the condition.
    A zero projection (the default) makes the untrained network exactly zero.
    """

    lifting_weight: Float[Array, "H C"]
    lifting_bias: Float[Array, " H"]
    blocks: tuple[FourierBlock, ...]
    projection_weight: Float[Array, "C H"]
    projection_bias: Float[Array, " C"]
    modes: tuple[int, ...] = eqx.field(static=True)
    conditions: int = eqx.field(static=True)

    def __init__(
        self,
        dims: int,
        channels: int,
        *,
        hidden: int = 6,
        modes: int = 10,
        blocks: int = 4,
        conditions: int = 0,
        key: PRNGKeyArray,
        zero_projection: bool = True,
    ):
        model = pdeqx.arch.ClassicFNO(
            dims,
            channels,
            channels,
            hidden_channels=hidden,
            num_modes=modes,
            num_blocks=blocks,
            key=key,
        )
        self.lifting_weight, self.lifting_bias = _pointwise(model.lifting)
        self.blocks = tuple(_block(block, conditions) for block in model.blocks)
        self.projection_weight, self.projection_bias = _pointwise(model.projection)
        if zero_projection:
            self.projection_weight = jnp.zeros_like(self.projection_weight)
            self.projection_bias = jnp.zeros_like(self.projection_bias)
        self.modes = (modes,) * dims
        self.conditions = conditions

    @classmethod
    def from_pdequinox(cls, model: "pdeqx.arch.ClassicFNO") -> "FNO":
        """The same network: the output agrees to rounding."""
        convolution = model.blocks[0].spectral_conv
        network = cls(
            convolution.num_spatial_dims,
            model.projection.out_channels,
            hidden=model.lifting.out_channels,
            modes=convolution.num_modes[0],
            blocks=len(model.blocks),
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
            (
                *_pointwise(model.lifting),
                tuple(_block(block, 0) for block in model.blocks),
                *_pointwise(model.projection),
            ),
        )

    def __call__(self, u: Field, condition: Float[Array, " P"] | None = None) -> Field:
        dims = len(self.modes)
        check_field(u, dims=dims, channels=self.projection_weight.shape[0])
        points = tuple(u.shape[1:])
        check_modes(points, self.modes)
        constant = jnp.asarray(constant_mode(self.modes), u.dtype)
        h = jnp.moveaxis(u, 0, -2)
        # The lifting is pointwise and linear, so it commutes with the transform: it is applied to
        # the modes of u and folded into the first block's weights, and its result never formed.
        z = mix_channels(self.lifting_weight, analysis(h, self.modes))
        z = z + self.lifting_bias[:, None] * constant
        for i, block in enumerate(self.blocks):
            weight, bias = block.weight, block.bias
            if i == 0:
                weight, bias = weight @ self.lifting_weight, weight @ self.lifting_bias + bias
            else:
                z = analysis(h, self.modes)
            z = multiply_modes(z, block.kernel_real, block.kernel_imag)
            # The bias is the mode of the constant; its gradient then comes with the transform's.
            z = z + bias[:, None] * constant
            h = activate(synthesis(z, points), weight, h)
        h = mix_channels(self.projection_weight, h) + self.projection_bias[:, None]
        return jnp.moveaxis(h, -2, 0)


def _pointwise(convolution) -> tuple[Array, Array]:
    """Weight and bias of a 1x1 convolution as a matrix and a vector."""
    out, into = convolution.weight.shape[:2]
    return convolution.weight.reshape(out, into), convolution.bias.reshape(out)


def _block(block, conditions: int) -> FourierBlock:
    weight, bias = _pointwise(block.by_pass_conv)
    film = FiLM(weight.shape[0], conditions) if conditions else None
    convolution = block.spectral_conv
    return FourierBlock(
        kernel_real=_signed_modes(convolution.weights_real),
        kernel_imag=_signed_modes(convolution.weights_imag),
        weight=weight,
        bias=bias,
        film=film,
    )


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

"""The Fourier neural operator of the paper, with `pdequinox.arch.ClassicFNO`'s parameters."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pdequinox as pdeqx
from jaxtyping import Array, Float, PRNGKeyArray

from ..errors import SplatopError, check_field
from ..spectral import Field
from .dft import check_modes, forward, inverse


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
    """`GELU(FiLM(K z + W z + b))`: K multiplies the kept modes, W mixes the channels."""

    kernel: Float[Array, "2 *K I O m"]
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
        h = jnp.moveaxis(u, 0, -2)
        h = _mix(self.lifting_weight, h) + self.lifting_bias[:, None]
        for block in self.blocks:
            z = _multiply(block.kernel, forward(h, self.modes))
            h = inverse(z, points) + _mix(block.weight, h) + block.bias[:, None]
            if block.film is not None:
                scale, bias = block.film(condition)[..., None]
                h = h * (1 + scale) + bias
            h = jax.nn.gelu(h)
        h = _mix(self.projection_weight, h) + self.projection_bias[:, None]
        return jnp.moveaxis(h, -2, 0)


def _mix(weight: Float[Array, "O I"], h: Float[Array, "*N I last"]) -> Float[Array, "*N O last"]:
    """A matrix over the channels, as a sum that fuses with what follows."""
    terms = (weight[:, i, None] * h[..., i, None, :] for i in range(weight.shape[1]))
    return sum(terms, start=jnp.zeros((), h.dtype))


def _multiply(kernel: Array, z: Array) -> Array:
    real, imag = kernel[0], kernel[1]
    a, b = z[..., 0, :], z[..., 1, :]
    out = [
        jnp.einsum("...iom,...im->...om", real, a) - jnp.einsum("...iom,...im->...om", imag, b),
        jnp.einsum("...iom,...im->...om", real, b) + jnp.einsum("...iom,...im->...om", imag, a),
    ]
    return jnp.stack(out, axis=-2)


def _pointwise(convolution) -> tuple[Array, Array]:
    """Weight and bias of a 1x1 convolution as a matrix and a vector."""
    out, into = convolution.weight.shape[:2]
    return convolution.weight.reshape(out, into), convolution.bias.reshape(out)


def _block(block, conditions: int) -> FourierBlock:
    weight, bias = _pointwise(block.by_pass_conv)
    film = FiLM(weight.shape[0], conditions) if conditions else None
    convolution = block.spectral_conv
    parts = jnp.stack([convolution.weights_real, convolution.weights_imag])
    return FourierBlock(kernel=_signed_modes(parts), weight=weight, bias=bias, film=film)


def _signed_modes(weights: Float[Array, "2 G O I *m"]) -> Float[Array, "2 *K I O last"]:
    """pdequinox keeps one array per choice of signs of the leading modes: put them side by side.

    The sign of the first axis varies fastest in its list of groups.
    """
    dims = weights.ndim - 5  # leading ones
    signed = weights.reshape(2, *(2,) * dims, *weights.shape[2:])
    # (2, s_d .. s_1, O, I, m_1 .. m_d, last) -> (2, s_1 m_1, .. s_d m_d, I, O, last)
    pairs = [axis for i in range(dims) for axis in (dims - i, 3 + dims + i)]
    signed = signed.transpose(0, *pairs, 2 + dims, 1 + dims, 3 + 2 * dims)
    leading = [2 * m for m in weights.shape[4:-1]]
    return signed.reshape(2, *leading, weights.shape[3], weights.shape[2], weights.shape[-1])

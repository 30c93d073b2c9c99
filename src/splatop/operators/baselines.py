"""The paper's neural-operator baselines, at its parameter budget and at ten times that."""

from collections.abc import Callable

import equinox as eqx
import jax
import pdequinox as pdeqx
from jaxtyping import PRNGKeyArray

from ..errors import SplatopError, unknown_name
from .fno import FNO

# (hidden channels, blocks or levels); the FNO keeps 10 modes per axis throughout.
_MATCHED = {"fno": (6, 4), "unet": (10, 2), "resnet": (26, 5)}
_MATCHED_3D = {"fno": (6, 4), "unet": (26, 2), "resnet": (73, 4)}
_TENFOLD = {"fno": (19, 4), "unet": (32, 2), "resnet": (80, 5)}

BASELINES = tuple(_MATCHED)


def baseline(
    name: str,
    dims: int,
    channels: int,
    *,
    key: PRNGKeyArray,
    tenfold: bool = False,
    walls: bool = False,
) -> Callable:
    """A network `u -> u_next` of the paper's comparison: "fno", "unet" or "resnet".

    Convolutions are padded periodically, or with `walls` by the values at the edges.

    Parameters, 2D scalar / 2D two channels / 3D scalar: FNO 57,787 / 57,800 / 1,152,187; U-Net
    55,661 / 55,762 / 1,115,817; ResNet 61,179 / 61,232 / 1,151,868. Ten-fold, two channels:
    579,217; 564,930; 577,202. The FNO's projection starts as pdequinox draws it, not at zero.
    """
    if name not in BASELINES:
        raise unknown_name("baseline", name, BASELINES)
    if tenfold and dims == 3:
        raise SplatopError(
            "expected a 1D or 2D field for a ten-fold baseline, got 3D: the matched 3D baselines "
            "have over a million parameters already"
        )
    table = _TENFOLD if tenfold else _MATCHED_3D if dims == 3 else _MATCHED
    hidden, depth = table[name]
    padding = "neumann" if walls else "periodic"
    if name == "fno":
        return FNO(dims, channels, hidden=hidden, blocks=depth, key=key, zero_projection=False)
    if name == "unet":
        return pdeqx.arch.ClassicUNet(
            dims,
            channels,
            channels,
            hidden_channels=hidden,
            num_levels=depth,
            boundary_mode=padding,
            key=key,
        )
    return pdeqx.arch.ClassicResNet(
        dims,
        channels,
        channels,
        hidden_channels=hidden,
        num_blocks=depth,
        boundary_mode=padding,
        key=key,
    )


def parameter_count(module) -> int:
    """How many numbers an optimiser would train: the elements of all floating-point arrays."""
    return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(module, eqx.is_inexact_array)))

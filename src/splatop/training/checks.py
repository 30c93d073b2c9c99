"""What is refused before a training begins: modes, anchors and parts that do not fit the data."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from ..description import describe
from ..encoders import Encoder
from ..errors import SplatopError
from ..model import CONVOLUTIONS
from ..numerics import Numerics
from ..operators import apply_network
from ..operators.convolutions import REACH
from ..points import Points
from ..registry import name_of
from ..spectral import Field
from .loaded import Loaded
from .settings import Settings


def check_modes(loaded: Loaded, settings: Settings) -> None:
    """Refuse a grid too coarse for the network before anything is written."""
    if settings.model not in ("surrogate", "fno"):
        return
    if isinstance(loaded.grid, Points):
        wanted, held = settings.modes**2, len(loaded.grid.places)
        if held < 2 * wanted:
            raise SplatopError(
                f"too few points for the model's harmonics: {wanted} (modes={settings.modes} "
                f"squared) need at least {2 * wanted}, got {held}: use fewer modes "
                f"(modes={int((held / 2) ** 0.5)}), or more points"
            )
        return
    if settings.model == "surrogate" and settings.network == CONVOLUTIONS:
        reach, fewest = REACH[loaded.grid.dims], min(loaded.grid.points)
        if fewest < reach:
            raise SplatopError(
                f"grid coarser than the network's reach: its convolutions span {reach} points, got "
                f"{fewest}: use a finer grid, or network=fno"
            )
        return
    for points, _ in settings.phases:
        coarsest = min(loaded.points_at(points))
        if coarsest < 2 * settings.modes:
            raise SplatopError(
                f"grid coarser than the model's modes: {settings.modes} modes per axis need at "
                f"least {2 * settings.modes} points, got {coarsest}: use fewer modes "
                f"(modes={coarsest // 2}), or a finer grid"
            )


def check_anchors(loaded: Loaded, settings: Settings, numerics: Numerics) -> None:
    """Refuse more Gaussians than points, on any grid that will be encoded, likewise."""
    if isinstance(loaded.grid, Points):
        return  # counted in functions, by the space itself
    trained = settings.phases if settings.model == "surrogate" else ()
    for grid in (loaded.grid.points, *(loaded.points_at(points) for points, _ in trained)):
        if any(a > n for a, n in zip(numerics.anchors, grid, strict=True)):
            raise SplatopError(
                f"expected at most as many anchors as grid points along each axis, got "
                f"{numerics.anchors} anchors for {grid} points: use fewer anchors, or finer phases"
            )


def check_operator(operator: Callable[..., Field], loaded: Loaded, settings: Settings) -> None:
    """Refuse a network that cannot be trained, or does not return what it is given."""
    if settings.model != "surrogate":
        raise SplatopError(
            f"expected an own operator for a surrogate, got one for model={settings.model}: leave "
            "out one of the two"
        )
    if not any(eqx.is_inexact_array(leaf) for leaf in jax.tree.leaves(operator)):
        raise SplatopError(
            "expected an operator with arrays to train, such as an equinox module, got "
            f"{type(operator).__name__} without any"
        )
    for points, _ in settings.phases:
        shape = (len(loaded.equation.fields), *loaded.points_at(points))
        shape = (shape[0] + len(loaded.inputs), *shape[1:])
        u = jax.ShapeDtypeStruct(shape, jnp.float32)
        eqx.filter_eval_shape(apply_network, operator, u, None)
    if name_of(type(operator)) is not None:
        describe(operator)  # what cannot be saved is refused before it is trained


def check_encoder(encoder: Encoder, loaded: Loaded, settings: Settings) -> None:
    """Refuse an encoder that cannot be used or saved, before it is trained."""
    if settings.model not in ("surrogate", "physics"):
        raise SplatopError(
            f"expected an own encoder for embedded physics, got one for model={settings.model}: "
            "leave out one of the two"
        )
    for name in ("jets", "encoder", "anchors"):
        held = getattr(settings, name)
        if held is not None and (name, held) != ("jets", "splat"):
            raise SplatopError(
                f"expected the encoder itself or the setting {name}, got both ({name}={held}): "
                "leave out one of the two"
            )
    describe(encoder)
    if len(encoder.anchors) != loaded.grid.dims:
        raise SplatopError(
            f"expected an encoder for {loaded.grid.dims}D data, got one with anchors "
            f"{encoder.anchors}"
        )

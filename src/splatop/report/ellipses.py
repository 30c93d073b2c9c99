"""The Gaussians that a model's encoder makes of its own states, for drawing over them."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..encoders import Encoder
from ..errors import SplatopError
from ..gaussians import Gaussians
from ..model import Model
from ..spectral import Field
from .packing import pack_bytes, pack_floats

# Bytes before compression; more frames than this holds share the Gaussians of the nearest one.
BUDGET = 1_200_000


def packed_gaussians(model: Model, states: np.ndarray) -> dict[str, Any] | None:
    """Centres, covariances and amplitudes at the frames `(F, C, *N)`, as fractions of the box.

    None if the model has no Gaussians. A geometry that never changes is stored once; amplitudes
    are bytes relative to the largest of their frame.
    """
    encoder = None if model.physics is None else model.physics.encoder
    if encoder is None:
        return None
    good = [k for k, state in enumerate(states) if _encodable(state)]
    if not good:
        return None
    points = tuple(states.shape[2:])
    anchors = encoder.anchors
    count, dims, channels = int(np.prod(anchors)), len(points), states.shape[1]
    per_frame = count * (4 * (dims + dims * (dims + 1) // 2) + channels)
    kept = good[:: max(1, -(-len(good) * per_frame // BUDGET))]
    try:
        found = [_encoded(encoder, jnp.asarray(states[k])) for k in kept]
    except SplatopError:  # a state that the encoder refuses, such as a constant one
        return None
    centers = np.stack([np.asarray(g.center) for g in found])
    upper = np.triu_indices(dims)
    shapes = np.stack([np.asarray(g.covariance())[:, upper[0], upper[1]] for g in found])
    amplitudes = np.stack([np.asarray(g.amplitude).T for g in found])  # (F, C, G)
    if np.ptp(centers, axis=0).max() == 0 and np.ptp(shapes, axis=0).max() == 0:
        centers, shapes = centers[:1], shapes[:1]
    largest = np.abs(amplitudes).max(axis=2, keepdims=True)
    codes = np.rint(127 * amplitudes / np.maximum(largest, 1e-30)) + 128
    return {
        "count": count,
        "anchors": list(anchors),
        "frames": [int(k) for k in kept],
        "fixed": len(centers) == 1,
        "center": pack_floats(centers),
        "covariance": pack_floats(shapes),
        "amplitude": pack_bytes(codes.astype(np.uint8)),
    }


@eqx.filter_jit
def _encoded(encoder: Encoder, u: Field) -> Gaussians:
    return encoder(u).explicit()


def _encodable(state: np.ndarray) -> bool:
    return bool(np.isfinite(state).all() and np.ptp(state) > 0)

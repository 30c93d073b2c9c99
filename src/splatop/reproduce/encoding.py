"""One frame as Gaussians with the field and derivatives they render, saved for a figure."""

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from ..derivative import gradient, laplacian, value
from ..errors import SplatopError
from ..jets import SplatJets
from ..model import Model
from ..spectral import PassThrough
from .saved import SavedArrays

ENCODING_FILE = "encoding.npz"


@dataclass(frozen=True)
class Encoding(SavedArrays):
    """The first channel of a 2D field; Gaussians in fractions of the box."""

    what: ClassVar[str] = "an encoded frame"
    field: np.ndarray
    center: np.ndarray
    covariance: np.ndarray
    amplitude: np.ndarray
    rendered: np.ndarray
    slope: np.ndarray
    laplacian: np.ndarray
    encoder: str


def encode_frame(model: Model, u: np.ndarray) -> Encoding:
    """What the model's encoder makes of a 2D state `(C, X, Y)`."""
    physics = model.physics
    if physics is None or physics.encoder is None or u.ndim != 3:
        raise SplatopError("expected a 2D model whose derivatives come from Gaussians, got another")
    jets = SplatJets(encoder=physics.encoder, lengths=physics.lengths, filter=PassThrough())
    splats = jets.encoder(jnp.asarray(u)).explicit()
    wanted = (value(2), gradient(2)[0], laplacian(2))
    jet = jets(jnp.asarray(u), wanted)
    numerics = model.spec.numerics
    return Encoding(
        np.asarray(u[0]),
        np.asarray(splats.center),
        np.asarray(splats.covariance()),
        np.asarray(splats.amplitude[:, 0]),
        *(np.asarray(jet[d][0]) for d in wanted),
        encoder="" if numerics is None else numerics.encoder,
    )

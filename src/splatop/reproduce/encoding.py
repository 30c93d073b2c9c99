"""One frame as Gaussians with the field and derivatives they render, saved for a figure."""

import json
from dataclasses import dataclass
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from ..data.atomic import complete_or_absent
from ..derivative import gradient, laplacian, value
from ..errors import SplatopError
from ..jets import SplatJets
from ..model import Model
from ..spectral import PassThrough

ENCODING_FILE = "encoding.npz"
_ARRAYS = ("field", "center", "covariance", "amplitude", "rendered", "slope", "laplacian")


@dataclass(frozen=True)
class Encoding:
    """The first channel of a 2D field; Gaussians in fractions of the box."""

    field: np.ndarray
    center: np.ndarray
    covariance: np.ndarray
    amplitude: np.ndarray
    rendered: np.ndarray
    slope: np.ndarray
    laplacian: np.ndarray
    encoder: str

    def save(self, path: Path) -> Path:
        """Write a `.npz` file, complete or not at all."""
        with complete_or_absent(path) as partial, partial.open("wb") as file:
            np.savez(
                file,
                about=np.array(json.dumps({"encoder": self.encoder})),
                **{name: getattr(self, name) for name in _ARRAYS},
            )
        return path

    @classmethod
    def load(cls, path: Path) -> "Encoding":
        """Read what `save` wrote."""
        try:
            with np.load(path, allow_pickle=False) as held:
                about = json.loads(str(held["about"]))
                arrays = {name: held[name] for name in _ARRAYS}
                return cls(**arrays, encoder=about["encoder"])
        except (OSError, KeyError, ValueError) as error:
            raise SplatopError(
                f"expected an encoded frame in '{path}', got something else ({error}): "
                "delete it and reproduce again"
            ) from error


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

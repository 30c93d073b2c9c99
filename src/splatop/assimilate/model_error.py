"""What a model gets wrong from frame to frame, as unknowns beside the state (weak constraint)."""

from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import SplatopError

# Frames over which an error stays alike: what an equation lacks changes as the state does.
MEMORY = 4.0
# Where the scale is to be estimated it starts from this share of the field's spread in a frame.
START = 0.01
# Numbers of an increment whose standard deviations together are below this share are left out.
_NEGLIGIBLE = 1e-2


@dataclass(frozen=True)
class ErrorScale:
    """How wrong a model is: in each frame it adds an error of `scale` times the field's spread,
    with the spectrum of states, that stays alike for `memory` frames.

    `fitted` says that the scale is a first guess which the reports correct.
    """

    scale: float = START
    fitted: bool = True
    memory: float = MEMORY

    def __post_init__(self):
        if not (np.isfinite(self.scale) and self.scale > 0):
            raise SplatopError(
                "expected a model error above 0, as a share of the field's spread in each frame, "
                f"got {self.scale:g}: leave it out for a model that counts as exact"
            )

    def scaled(self, factor: float) -> "ErrorScale":
        return replace(self, scale=factor * self.scale)


def error_scale(given: float | str | bool | None) -> ErrorScale | None:
    """From what a user says: nothing, a share of the field's spread, or "auto"."""
    if given is None or given is False:
        return None
    if given is True or given == "auto":
        return ErrorScale()
    try:
        return ErrorScale(float(given), fitted=False)
    except ValueError:
        raise SplatopError(
            "expected a model error as a share of the field's spread in each frame, such as 0.01, "
            f"or auto, got '{given}'"
        ) from None


class Increments(eqx.Module):
    """What is added to the state after each of `steps` steps, whitened: an autoregressive process
    of the first order in each number, stationary, of standard deviation `std`.

    `keeps` is the share of one step's error that the next one has.
    """

    std: Float[Array, " k"]
    index: Array  # of the numbers, among all of a state
    shift: Float[Array, "S k"]  # what unknowns are counted from
    steps: int = eqx.field(static=True)
    keeps: float = eqx.field(static=True)

    @property
    def size(self) -> int:
        return self.steps * len(self.std)

    def course(
        self, white: Float[Array, " w"], steps: int, later: Float[Array, "L k"] | None = None
    ) -> Float[Array, "T k"]:
        """The increments of the first `steps` steps. After the last unknown one they are those
        `later`, else what is expected of them: they fade."""
        own = white.reshape(self.steps, -1) + self.shift
        if steps > self.steps:
            more = jnp.zeros((steps - self.steps, len(self.std))) if later is None else later
            own = jnp.concatenate([own, more[: steps - self.steps]])
        fresh = np.sqrt(1 - self.keeps**2)

        def advance(error, drawn):
            error = self.keeps * error + fresh * drawn
            return error, error

        _, rest = jax.lax.scan(advance, own[0], own[1:steps])
        return self.std * jnp.concatenate([own[:1], rest])

    def groups(self, shell: Array, shells: int, wanted: int) -> tuple[Array, int]:
        """Which unknowns are like each other, `(w,)`, and how many kinds there may be: of like
        wavelength (`shell`, of all numbers) and about as late."""
        early = min(wanted, self.steps)
        late = jnp.arange(self.steps) * early // self.steps
        return (late[:, None] * shells + shell[self.index]).ravel(), early * shells


def make_increments(scale: ErrorScale, std: np.ndarray, *, steps: int, parts: int) -> Increments:
    """For a window of so many steps, of which `parts` make a frame; `std` is that of each number of
    a state."""
    flat = std.ravel()
    order = np.argsort(-flat)
    left = np.cumsum((flat[order] ** 2)[::-1])[::-1]
    kept = np.sort(order[(left > _NEGLIGIBLE**2 * left[0]) & (flat[order] > 0)])
    return Increments(
        std=jnp.asarray(scale.scale / parts * flat[kept], jnp.float32),
        index=jnp.asarray(kept),
        shift=jnp.zeros((steps, len(kept)), jnp.float32),
        steps=steps,
        keeps=float(np.exp(-1 / (scale.memory * parts))),
    )

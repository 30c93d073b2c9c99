"""Rollouts written to a file: what a model predicts from the first state of each trajectory."""

from collections.abc import Callable, Iterable
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from .._version import __version__
from ..data import Trajectories, open_trajectories
from ..data.well_writer import Layout, writing
from ..errors import SplatopError
from ..model import Model
from ..threads import one_blas_thread
from .coefficients import identified_coefficients
from .evaluation import check_model_fits

# Frames computed in one compiled call; the file holds the rest.
_CHUNK = 50


@one_blas_thread()
def forecast(
    model: Model,
    data: str | Path | Trajectories,
    out: str | Path,
    *,
    steps: int,
    trajectories: int | None = None,
    progress: Callable[[Iterable[int]], Iterable[int]] = lambda items: items,
) -> int:
    """Write the start and the `steps` predicted frames of each trajectory; return how many."""
    if steps < 1:
        raise SplatopError(f"expected at least one step, got {steps}")
    if trajectories is not None and trajectories < 1:
        raise SplatopError(f"expected at least one trajectory, got {trajectories}")
    with data if isinstance(data, Trajectories) else open_trajectories(data) as given:
        source = model.spec.view(given)
        check_model_fits(model, source)
        count = min(trajectories or source.trajectories, source.trajectories)
        own = [identified_coefficients(model, source, b) for b in range(count)]
        names = own[0] if own else {}
        layout = Layout(
            (count, steps + 1, *source.shape[2:]),
            source.grid,
            source.dt,
            source.fields,
            {
                **{k: np.full(count, v) for k, v in model.spec.coefficients.items()},
                **{k: np.asarray([one[k] for one in own]) for k in names},
            },
            {"predicted_by": model.spec.kind, "splatop_version": __version__},
            source.domain,
        )
        with writing(out, layout) as write:
            for b in progress(range(count)):
                state = source.window(b, 0, 1)
                write(b, 0, state)
                for begin in range(0, steps, _CHUNK):
                    ahead = min(_CHUNK, steps - begin)
                    frames = np.asarray(
                        model.rollout(jnp.asarray(state[-1]), steps=ahead, coefficients=own[b])
                    )
                    if not np.isfinite(frames).all():
                        bad = (
                            begin
                            + 1
                            + int(
                                np.argmin(
                                    np.isfinite(frames)
                                    .all(axis=(1, 2))
                                    .reshape(ahead, -1)
                                    .all(axis=1)
                                )
                            )
                        )
                        raise SplatopError(
                            f"the rollout of trajectory {b} diverged at step {bad}: "
                            "ask for fewer steps, or train with more substeps"
                        )
                    write(b, begin + 1, frames)
                    state = frames
    return count

"""How well Gaussians hold a field and its derivatives (paper, "Representation diagnostics")."""

from collections.abc import Iterable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..data import Trajectories, spread_frames
from ..derivative import Derivative, gradient, laplacian, value
from ..encoders import Encoder
from ..errors import SplatopError
from ..gaussians import Splats
from ..grid import Grid
from ..jets import JetProvider
from ..render import DenseRenderer, LocalRenderer, Renderer
from ..spectral import Field, PassThrough, differentiate
from .cost import quickest

# Fields change most at the beginning, which does not dominate among so many frames.
_MOMENTS = 12


def measured_frames(trajectories: Trajectories) -> np.ndarray:
    """The frames on which representation is measured, without the first of each trajectory."""
    return spread_frames(trajectories, _MOMENTS, first=1)


def representation_errors(jets: JetProvider, frames: np.ndarray) -> dict[str, float]:
    """`e_u`, `e_grad` and `e_lap`: relative errors against spectral derivatives, unfiltered.

    Averaged over frames; the gradient over all its components together.
    """
    unfiltered = eqx.tree_at(
        lambda j: j.filter, jets, PassThrough(), is_leaf=lambda leaf: leaf is jets.filter
    )
    errors = np.mean([_errors(unfiltered, jnp.asarray(u)) for u in frames], axis=0)
    return {name: float(e) for name, e in zip(("e_u", "e_grad", "e_lap"), errors, strict=True)}


@eqx.filter_jit
def _errors(jets: JetProvider, u: Field) -> jax.Array:
    dims = len(jets.lengths)
    groups = ([value(dims)], list(gradient(dims)), [laplacian(dims)])
    jet = jets(u, [d for group in groups for d in group])

    def error(group: Iterable[Derivative]):
        truth = jnp.stack([differentiate(u, d, jets.lengths) for d in group])
        return jnp.linalg.norm(jnp.stack([jet[d] for d in group]) - truth) / jnp.linalg.norm(truth)

    return jnp.stack([error(group) for group in groups])


def local_against_dense(
    encoder: Encoder, frames: np.ndarray, *, lengths: tuple[float, ...], window: int = 4
) -> dict[str, Any]:
    """Relative difference of local and dense rendering, per derivative, and the speed-up.

    Discrepancies are averaged over frames; each time is the minimum of several after a warm-up.
    """
    grid = Grid(tuple(frames.shape[2:]), lengths)
    names = ("dx", "dy", "dz")[: grid.dims]
    wanted = {"u": value(grid.dims), **dict(zip(names, gradient(grid.dims), strict=True))}
    wanted["lap"] = laplacian(grid.dims)
    local, dense = LocalRenderer(window), DenseRenderer()
    differences = {name: [] for name in wanted}
    splats = None
    for u in frames:
        splats = encoder(jnp.asarray(u))
        near = _render(local, splats, tuple(wanted.values()), grid)
        full = _render(dense, splats, tuple(wanted.values()), grid)
        for name, d in wanted.items():
            distance = jnp.linalg.norm(near[d] - full[d]) / jnp.linalg.norm(full[d])
            differences[name].append(float(distance))
    if splats is None:
        raise SplatopError("expected at least one frame to render, got none")
    last, every = splats, tuple(wanted.values())
    milliseconds = {
        name: 1e3 * quickest(lambda r=renderer: _render(r, last, every, grid))
        for name, renderer in (("local", local), ("dense", dense))
    }
    return {
        **{name: float(np.mean(values)) for name, values in differences.items()},
        "window": window,
        "local_ms": milliseconds["local"],
        "dense_ms": milliseconds["dense"],
        "speedup": milliseconds["dense"] / milliseconds["local"],
    }


@eqx.filter_jit
def _render(renderer: Renderer, splats: Splats, derivatives: tuple[Derivative, ...], grid: Grid):
    return renderer(splats, derivatives, grid)


def describe_representation(
    jets: JetProvider | None, trajectories: Trajectories, *, window: int = 4
) -> dict[str, Any] | None:
    """Both diagnostics on frames of a test set; None where no Gaussians are used.

    Dense rendering is left out in 3D, where it sums thousands of primitives at each point.
    """
    encoder = None if jets is None else jets.gaussian_encoder
    if jets is None or encoder is None:
        return None
    frames = measured_frames(trajectories)
    found: dict[str, Any] = {**representation_errors(jets, frames), "frames": len(frames)}
    found["gaussians"] = int(np.prod(encoder.anchors))
    found["local_against_dense"] = (
        local_against_dense(
            encoder, frames[:: max(1, len(frames) // 2)], lengths=jets.lengths, window=window
        )
        if len(jets.lengths) < 3
        else None
    )
    return found

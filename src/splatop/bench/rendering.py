"""Rendering and encoding: speed over the dense sum, and what each leaves out."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..benchmarks import get_benchmark
from ..data import generate
from ..derivative import gradient, laplacian, value
from ..encoders import LatticeEncoder
from ..gaussians import BoundedScales, gaussians_from_raw, geometry_outputs
from ..grid import Grid
from ..render import DenseRenderer, FourierRenderer, LocalRenderer
from ..spectral import SmoothFilter, differentiate
from .timing import Measured, measured_times, relative_error

# Benchmark, frame and anchors per axis of the lattice encoder's table.
LATTICE_CASES = (
    ("advection2d", 0, 20),
    ("burgers2d", 50, 20),
    ("advection_allen_cahn2d", 60, 20),
    ("advection_allen_cahn2d", 60, 40),
)


def render(repeats: int = 9, points: int = 160, anchors: int = 20) -> Measured:
    """Value, gradient and Laplacian of A² Gaussians with σ <= 0.75 h: local, Fourier, dense."""
    raw = jax.random.normal(jax.random.key(0), (geometry_outputs(2) + 1, anchors, anchors))
    # 0.65 h times exp(±0.14) stays below 0.75 h, where a window of 4 cells reaches 5.3 σ.
    splats = gaussians_from_raw(raw, scales=BoundedScales(0.65, 0.14), channels=1)
    wanted = (value(2), *gradient(2), laplacian(2))
    grid, work = Grid.unit(points, 2), Grid.unit(min(points, 40), 2)
    band = SmoothFilter(6.0, 2.0)
    dense, local, fourier = DenseRenderer(), LocalRenderer(), FourierRenderer()
    contenders = {
        "dense": lambda g: dense(g, wanted, grid),
        "local": lambda g: local(g, wanted, grid),
        "fourier": lambda g: fourier(g, wanted, work, band),
    }
    times = measured_times({k: (f, (splats,)) for k, f in contenders.items()}, repeats)
    exact, near = contenders["dense"](splats), contenders["local"](splats)
    filtered = dense(splats, wanted, grid, band)
    inside = fourier(splats, wanted, grid, band)
    return {
        "render_local_over_dense_speedup": times["dense"] / times["local"],
        "render_fourier_over_dense_speedup": times["dense"] / times["fourier"],
        "render_local_error": relative_error(near[value(2)], exact[value(2)]),
        "render_local_laplacian_error": relative_error(near[laplacian(2)], exact[laplacian(2)]),
        "render_fourier_error": max(relative_error(inside[d], filtered[d]) for d in wanted),
    }


def window(points: int = 160, anchors: int = 20) -> Measured:
    """What a window of four cells leaves out, against the width of the Gaussians."""
    found = {}
    for ratio in (0.5, 0.6, 0.75, 0.9, 1.0, 1.2):
        raw = jax.random.normal(jax.random.key(0), (geometry_outputs(2) + 1, anchors, anchors))
        splats = gaussians_from_raw(raw, scales=BoundedScales(ratio, 1e-3), channels=1)
        grid = Grid.unit(points, 2)
        exact = DenseRenderer()(splats, [value(2), laplacian(2)], grid)
        near = LocalRenderer()(splats, [value(2), laplacian(2)], grid)
        found[f"window_error_at_{ratio:g}h"] = relative_error(near[value(2)], exact[value(2)])
        found[f"window_laplacian_error_at_{ratio:g}h"] = relative_error(
            near[laplacian(2)], exact[laplacian(2)]
        )
    return found


def lattice(points: int = 160, trajectories: int = 3) -> Measured:
    """Errors of the lattice encoder in value, gradient and Laplacian, against its kernel's width.

    Rendered by Fourier, which truncates nothing, on frames of the reference solver.
    """
    found = {}
    for name, step, anchors in LATTICE_CASES:
        benchmark = get_benchmark(name).with_points(points)
        data = generate(benchmark, split="test", trajectories=trajectories, steps=max(step, 1))
        frames = [jnp.asarray(data.window(i, step, 1)[0]) for i in range(trajectories)]
        for ratio in (0.8, 1.0, 1.2, 1.4):
            encoder = LatticeEncoder((anchors, anchors), ratio)
            errors = np.mean([_representation_errors(encoder, u) for u in frames], axis=0)
            for kind, error in zip(("value", "gradient", "laplacian"), errors, strict=True):
                found[f"lattice_{name}_{anchors}_{kind}_error_at_{ratio:g}h"] = float(error)
    return found


@eqx.filter_jit
def _representation_errors(encoder: LatticeEncoder, u: jax.Array) -> jax.Array:
    dims = u.ndim - 1
    lengths = (1.0,) * dims
    wanted = (value(dims), *gradient(dims), laplacian(dims))
    rendered = FourierRenderer()(encoder(u), wanted, Grid(u.shape[1:], lengths))
    exact = {d: differentiate(u, d, lengths) for d in wanted}
    groups = (wanted[:1], gradient(dims), wanted[-1:])
    pairs = [[jnp.stack([f[d] for d in group]) for f in (rendered, exact)] for group in groups]
    return jnp.stack([jnp.linalg.norm(a - b) / jnp.linalg.norm(b) for a, b in pairs])

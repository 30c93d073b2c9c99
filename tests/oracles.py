"""Things whose truth is known: waves with analytic derivatives, and Gaussians to render."""

from collections.abc import Iterable

import jax.numpy as jnp
import numpy as np

from splatop.derivative import Derivative
from splatop.gaussians import Gaussians, ScaleMap, gaussians_from_raw, geometry_outputs
from splatop.grid import Grid


def relative(a, b) -> float:
    """`|a - b| / |b|` in the Euclidean norm, in double precision."""
    a, b = np.asarray(a, complex), np.asarray(b, complex)
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def wave(grid: Grid, modes: Iterable[int], derivative: Derivative | None = None, phase=0.3):
    """`cos(2π k·x + phase)` on the grid, `(1, *N)`, or a derivative of it, by calculus."""
    k = [m / length for m, length in zip(modes, grid.lengths, strict=True)]
    angle = sum(2 * np.pi * a * x for a, x in zip(k, grid.coordinates(), strict=True)) + phase
    if derivative is None:
        return np.cos(angle)[None]
    total = np.zeros_like(angle)
    for index, weight in derivative.terms:
        # Each derivative of cos(s) turns it a quarter: cos(s + π/2) = -sin(s).
        factor = np.prod([(2 * np.pi * a) ** p for a, p in zip(k, index, strict=True)])
        total = total + weight * factor * np.cos(angle + sum(index) * np.pi / 2)
    for _ in range(derivative.inverse_laplacians):
        total = total / -sum((2 * np.pi * a) ** 2 for a in k)
    return total[None]


class WidthsAround(ScaleMap):
    """Scales of `ratio` anchor spacings, up to a factor `1 + spread` wider or narrower."""

    ratio: float
    spread: float

    def __call__(self, raw, spacing):
        return spacing * self.ratio * (1 + self.spread) ** jnp.tanh(raw)


def random_raw(anchors: tuple[int, ...], channels: int = 1, seed: int = 0):
    """What a network might say: every primitive off its centre, anisotropic and turned."""
    rng = np.random.default_rng(seed)
    outputs = geometry_outputs(len(anchors)) + channels
    return jnp.asarray(rng.normal(size=(outputs, *anchors)), jnp.zeros(0).dtype)


def random_gaussians(
    anchors: tuple[int, ...], channels: int = 1, *, ratio=0.5, spread=0.3, seed=0
) -> Gaussians:
    gaussians = gaussians_from_raw(
        random_raw(anchors, channels, seed), scales=WidthsAround(ratio, spread), channels=channels
    )
    offset = jnp.arange(1, channels + 1, dtype=gaussians.amplitude.dtype) / 3
    return gaussians.with_amplitude(gaussians.amplitude, offset)


def random_field(grid: Grid, band: int, channels: int = 1, seed: int = 0) -> np.ndarray:
    """A smooth field with modes up to `band` along each axis, of amplitude of order one."""
    rng = np.random.default_rng(seed)
    fields = []
    for _ in range(channels):
        total = np.zeros((1, *grid.points))
        for _ in range(12):
            modes = rng.integers(-band, band + 1, size=grid.dims)
            total = total + rng.normal() * wave(grid, modes, phase=rng.uniform(0, 6))
        fields.append(total)
    return np.concatenate(fields) / 3

"""Automatic numerics on a periodic box: filter, anchors, substeps from data and equation alone.

The kept band covers the data, derivatives inside it agree with spectral ones, and RK4 is stable
and converged at the frame interval. Each choice comes with its numbers in words.
"""

import math
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..derivative import gradient, laplacian
from ..equation import Equation
from ..errors import SplatopError
from ..grid import Grid
from ..jets import SpectralJets
from ..numerics import Numerics, build_filter, build_jets, build_physics
from ..physics import EmbeddedPhysics
from ..spectral import resample
from ..stepper import Coefficients, of_frames
from .substeps import choose_steps
from .tuned import DERIVATIVE_TOLERANCE, TAIL, Tuned

# The highest mode kept of an equation with products, as a part of the points. The working grid is
# fine enough for the products; modes closer to the grid's highest are noise and aliases as often as
# data.
WIDEST = 0.45


def choose_on_rings(
    equation: Equation,
    coefficients: Coefficients,
    frames: np.ndarray,
    *,
    lengths: tuple[float, ...],
    dt: float,
    tail: float = TAIL,
) -> Tuned:
    """Numerics for a periodic box."""
    grid = Grid(tuple(frames.shape[2:]), lengths)
    band, kept_tail, numerics, reasons = _choose_band(equation, frames, grid, tail)
    numerics, derivative_error, reason = _choose_anchors(equation, frames, numerics, grid, band)
    reasons.append(reason)
    numerics, time_error, reach, reason = _choose_steps(
        equation, coefficients, frames, numerics, lengths=lengths, dt=dt
    )
    reasons.append(reason)
    return Tuned(numerics, tuple(reasons), band, kept_tail, derivative_error, time_error, reach)


def _choose_band(equation: Equation, frames: np.ndarray, grid: Grid, tail: float):
    energy = _mode_energy(frames, grid)
    modes = [np.abs(k) for k in grid.modes()]
    linear = equation.degree <= 1
    limits = [(n - 1) // 2 if linear else int(WIDEST * n) for n in grid.points]
    band = tuple(
        min(limit, _least_band(energy, mode, tail / math.sqrt(grid.dims)))
        for limit, mode in zip(limits, modes, strict=True)
    )
    if len(set(grid.points)) == len(set(grid.lengths)) == 1:
        band = (max(band),) * grid.dims  # axes that are alike get like numerics
    outside = np.zeros(energy.shape[1:], bool)
    for k, b in zip(modes, band, strict=True):
        outside = outside | (k > b)
    box_tail = _fraction(energy, outside)
    radius = np.sqrt(sum((k / length) ** 2 for k, length in zip(modes, grid.lengths, strict=True)))
    widest = max(b / length for b, length in zip(band, grid.lengths, strict=True))
    radial_tail = _fraction(energy, radius > widest + 1e-9)
    anywhere = " x ".join(str(b) for b in band)
    reasons = [
        f"band: modes up to {anywhere} (per axis) hold all but {box_tail:.1e} of the amplitude "
        f"of the sample frames (wanted {tail:.0e})"
        + (
            "; the data fill the grid, which resolves no more"
            if any(b == limit for b, limit in zip(band, limits, strict=True))
            else ""
        )
    ]
    if radial_tail <= max(2 * box_tail, tail):
        reasons.append(
            f"filter: sharp and radial at {widest:g} cycles per unit length, because the corners "
            f"of the band are empty (a disc leaves out {radial_tail:.1e})"
        )
        numerics = Numerics("sharp", (float(widest),), 0.0, (0,) * grid.dims, 1)
        box_tail = radial_tail
    else:
        cutoffs = tuple(float(b / length) for b, length in zip(band, grid.lengths, strict=True))
        reasons.append(
            "filter: sharp along each axis (a box), because the corners of the band carry data: "
            f"a disc of the same cutoff would leave out {radial_tail:.1e} of the amplitude"
        )
        numerics = Numerics("box", cutoffs, 0.0, (0,) * grid.dims, 1)
    return band, box_tail, numerics, reasons


def _mode_energy(frames: np.ndarray, grid: Grid) -> np.ndarray:
    """Energy per mode of each frame `(n, *K)`, without a white noise floor.

    The floor is the median over the outer half of the modes: noise is flat, a smooth field is not.
    """
    axes = tuple(range(2, frames.ndim))
    modes = np.fft.rfftn(frames.astype(float), axes=axes, norm="forward")
    energy = np.sum(np.abs(modes) ** 2, axis=1) * grid.multiplicity()
    outer = np.zeros(energy.shape[1:], bool)
    for k, n in zip(grid.modes(), grid.points, strict=True):
        outer = outer | (np.abs(k) > 0.4 * n)
    floor = np.median(energy[:, outer], axis=1)
    floor = floor.reshape(-1, *(1,) * grid.dims)
    # A mode of noise has an exponentially distributed energy, over c times its median with
    # probability 2^-c: c such that among all modes hardly one is mistaken for data.
    beyond = math.log2(energy.size / 0.01)
    return np.where(energy > beyond * floor, energy, 0.0)


def _few(frames: np.ndarray, count: int = 4) -> np.ndarray:
    """A few of them: of different trajectories and times if the frames are ordered by both."""
    return np.linspace(0, len(frames) - 1, min(count, len(frames))).astype(int)


def _fraction(energy: np.ndarray, outside: np.ndarray) -> float:
    """Largest relative amplitude among the frames in the modes marked."""
    axes = tuple(range(1, energy.ndim))
    total = np.maximum(energy.sum(axis=axes), 1e-300)
    return float(np.sqrt(np.max((energy * outside).sum(axis=axes) / total)))


def _least_band(energy: np.ndarray, mode: np.ndarray, tail: float) -> int:
    for band in range(1, int(mode.max()) + 1):
        if _fraction(energy, np.broadcast_to(mode > band, energy.shape[1:])) <= tail:
            return band
    return int(mode.max())


def _choose_anchors(
    equation: Equation, frames: np.ndarray, numerics: Numerics, grid: Grid, band: tuple[int, ...]
):
    """The fewest anchors whose derivatives inside the band equal spectral ones."""
    channels = frames.shape[1]
    wanted = sorted({*gradient(grid.dims), laplacian(grid.dims)})
    exact = SpectralJets(grid.lengths, build_filter(numerics, grid.dims))
    sample = jnp.asarray(frames[_few(frames)])

    @eqx.filter_jit
    def derivatives(jets):
        return jax.vmap(lambda u: jets(u, wanted).values)(sample)

    truth = derivatives(exact)
    # Data may not vary along an axis: rounding there is measured beside the other derivatives.
    sizes = {d: float(jnp.linalg.norm(truth[d])) for d in wanted}
    least = 1e-6 * max(sizes.values())
    if not 0 < least < math.inf:
        raise SplatopError(
            "expected data that vary in space, of sizes whose squares single precision holds "
            f"(1e-15 to 1e15), got values up to {np.abs(frames).max():.2g} with derivatives of "
            f"size {max(sizes.values()):.2g}: choose other units for the fields"
        )
    best, best_error = numerics, math.inf
    for margin in (4, 6, 8, 12, 16, 24, 32):
        anchors = tuple(min(n, 2 * b + margin) for n, b in zip(grid.points, band, strict=True))
        for width in (1.2, 1.0, 1.5):
            trial = replace(numerics, anchors=anchors, kernel_width=width)
            jets = build_jets(trial, channels, lengths=grid.lengths)
            found = derivatives(jets)
            error = max(
                float(jnp.linalg.norm(found[d] - truth[d])) / max(sizes[d], least) for d in wanted
            )
            if error < best_error:
                best, best_error = trial, error
        if best_error <= DERIVATIVE_TOLERANCE:
            break
    return (
        best,
        best_error,
        (
            f"anchors: {' x '.join(map(str, best.anchors))} Gaussians of width "
            f"{best.kernel_width:g} spacings give gradient and Laplacian inside the band within "
            f"{best_error:.1e} of spectral ones (wanted {DERIVATIVE_TOLERANCE:.0e})"
        ),
    )


def _choose_steps(
    equation: Equation,
    coefficients: Coefficients,
    frames: np.ndarray,
    numerics: Numerics,
    *,
    lengths: tuple[float, ...],
    dt: float,
):
    """On the working grid, which is all that a step sees."""

    def build(numerics: Numerics) -> EmbeddedPhysics:
        built = build_physics(equation, numerics, lengths=lengths, dt=dt)
        assert isinstance(built, EmbeddedPhysics)
        return built

    points = build(numerics).working_points(tuple(frames.shape[2:]))
    few = _few(frames)
    states = jax.vmap(lambda u: resample(u, points))(jnp.asarray(frames[few]))
    return choose_steps(build, numerics, states, of_frames(coefficients, few))

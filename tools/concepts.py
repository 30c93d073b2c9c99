"""Draw the figures of docs/concepts.md: splats, a jet, and why the filter."""

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle

import splatop
from splatop.derivative import gradient, value
from splatop.spectral import differentiate, radial_spectrum

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
POINTS, STEPS, ANCHORS = 96, 120, 20
BOX = (1.0, 1.0)


def frames() -> np.ndarray:
    """Advection-Allen-Cahn: from smooth waves to sharp fronts."""
    problem = splatop.get_benchmark("advection_allen_cahn2d").with_points(POINTS)
    data = splatop.generate(problem, split="test", trajectories=1, steps=STEPS)
    return data.window(0, 0, STEPS + 1)


def shown(axis, field: np.ndarray, title: str, limit: float) -> None:
    axis.imshow(
        field.T, origin="lower", cmap="RdBu_r", vmin=-limit, vmax=limit, extent=(0, 1, 0, 1)
    )
    axis.set(title=title, xticks=[], yticks=[])


def draw_splats(u: np.ndarray) -> None:
    encoder = splatop.LatticeEncoder((ANCHORS, ANCHORS), 0.7)
    splats = encoder(jnp.asarray(u))
    which, grid = value(2), splatop.Grid((POINTS, POINTS), BOX)
    rendered = np.asarray(splatop.FourierRenderer()(splats, [which], grid)[which])
    figure, axes = plt.subplots(1, 4, figsize=(12, 3.3), layout="constrained")
    limit = float(np.abs(u).max())
    shown(axes[0], u[0], f"state on {POINTS} x {POINTS} points", limit)
    explicit = splats.explicit()
    amplitude = np.asarray(explicit.amplitude)[:, 0]
    colours = plt.get_cmap("RdBu_r")(0.5 + amplitude / (2 * np.abs(amplitude).max()))
    for center, scale, colour in zip(
        np.asarray(explicit.center), np.asarray(explicit.scale), colours, strict=True
    ):
        axes[1].add_patch(Circle(center, 0.6 * scale[0], color=colour, lw=0))
    axes[1].set(
        title=f"{len(amplitude)} Gaussians, colour: amplitude",
        xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=[], yticks=[],
    )  # fmt: skip
    shown(axes[2], rendered[0], "what they render", limit)
    error = rendered[0] - u[0]
    largest = float(np.abs(error).max())
    shown(axes[3], error, f"difference, at most {largest:.1e}", largest)
    figure.savefig(IMAGES / "concept-splats.png", dpi=60)


def draw_jet(u: np.ndarray) -> None:
    state, lap = jnp.asarray(u), splatop.laplacian(2)
    slope = gradient(2)[0]
    band = splatop.BoxFilter((0.4 * ANCHORS,) * 2)
    splats = splatop.SplatJets(splatop.LatticeEncoder((ANCHORS, ANCHORS)), BOX, band)
    exact = splatop.SpectralJets(BOX, band)
    wanted = {"u": value(2), "∂u/∂x": slope, "Δu": lap}
    found, truth = (jets(state, list(wanted.values())) for jets in (splats, exact))
    x, row = np.arange(POINTS) / POINTS, POINTS // 2
    figure, axes = plt.subplots(1, 3, figsize=(12, 2.9), layout="constrained")
    for axis, (name, derivative) in zip(axes, wanted.items(), strict=True):
        axis.plot(x, truth[derivative][0][:, row], color="#999", lw=4, label="exact, filtered")
        axis.plot(x, found[derivative][0][:, row], color="#c33", lw=1.4, label="from Gaussians")
        axis.set(title=name, xlabel="x")
    axes[0].legend(frameon=False)
    figure.savefig(IMAGES / "concept-jet.png", dpi=80)


def draw_filter(states: np.ndarray) -> None:
    problem = splatop.get_benchmark("advection_allen_cahn2d").with_points(POINTS)
    state, lap = jnp.asarray(states[STEPS // 2]), splatop.laplacian(2)
    open_jets = splatop.SplatJets(
        splatop.LatticeEncoder((ANCHORS, ANCHORS)), BOX, splatop.PassThrough()
    )
    truth = differentiate(state, lap, BOX)
    error = radial_spectrum(open_jets(state, [lap])[lap] - truth, BOX)
    ratio = np.sqrt(np.asarray(error) / np.asarray(radial_spectrum(truth, BOX)))[1:-1]
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 3.3), layout="constrained")
    left.semilogy(np.arange(1, len(ratio) + 1), ratio, color="#c33")
    left.axvline(ANCHORS / 2, color="#999", ls=":")
    left.text(ANCHORS / 2 + 0.5, ratio.min(), "A/2", color="#777")
    left.set(
        title=f"relative error of Δu from {ANCHORS} x {ANCHORS} Gaussians",
        xlabel="wavenumber",
    )
    tuned = splatop.choose_numerics(
        problem.equation, problem.coefficients, states[::20], lengths=BOX, dt=problem.dt
    ).numerics
    few = replace(tuned, anchors=(ANCHORS,) * 2, working_grid=False)
    shown_runs = {
        "no filter": replace(few, filter="none"),
        f"band {0.4 * ANCHORS:g}": replace(few, filter="box", cutoff=(0.4 * ANCHORS,), rolloff=0.0),
        f"chosen: band {tuned.cutoff[0]:.0f}, {tuned.anchors[0]} x {tuned.anchors[0]} Gaussians": tuned,
    }
    for (label, numerics), colour in zip(shown_runs.items(), ("#c33", "#e90", "#27c"), strict=True):
        physics = splatop.build_physics(problem.equation, numerics, lengths=BOX, dt=problem.dt)
        roll = jax.jit(
            lambda u, p=physics: splatop.rollout(p, u, problem.coefficients, steps=STEPS)
        )
        predicted = np.asarray(roll(jnp.asarray(states[0])), float)
        axes = (1, 2, 3)
        error = np.sqrt(((predicted - states[1:]) ** 2).sum(axes) / (states[1:] ** 2).sum(axes))
        right.semilogy(np.arange(1, STEPS + 1), np.minimum(error, 10), color=colour, label=label)
    right.set(title="error of the physics alone along a rollout", xlabel="step", ylim=(None, 12))
    right.legend(frameon=False, loc="center")
    figure.savefig(IMAGES / "concept-filter.png", dpi=80)


def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    states = frames()
    draw_splats(states[STEPS // 2])
    draw_jet(states[STEPS // 2])
    draw_filter(states)


if __name__ == "__main__":
    main()

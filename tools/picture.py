"""Draw the README's picture: Burgers' vorticity after 200 steps of the embedded physics."""

from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import splatop
from splatop.derivative import gradient
from splatop.spectral import differentiate

OUT = Path(__file__).resolve().parent.parent / "docs" / "images" / "burgers.png"
STEPS = 200


def vorticity(u: np.ndarray) -> np.ndarray:
    x, y = gradient(2)
    v = jnp.asarray(u)
    return np.asarray(differentiate(v[1:], x, (1.0, 1.0)) - differentiate(v[:1], y, (1.0, 1.0)))[0]


def main() -> None:
    burgers = splatop.get_benchmark("burgers2d")
    data = splatop.generate(burgers, split="test", trajectories=1, steps=STEPS)
    frames = data.window(0, 0, STEPS + 1)
    tuned = splatop.choose_numerics(
        burgers.equation,
        burgers.coefficients,
        frames[:51:10],
        lengths=burgers.lengths,
        dt=burgers.dt,
    )
    physics = splatop.build_physics(
        burgers.equation, tuned.numerics, lengths=burgers.lengths, dt=burgers.dt
    )
    roll = jax.jit(lambda u: splatop.rollout(physics, u, burgers.coefficients, steps=STEPS)[-1])
    truth, found = vorticity(frames[-1]), vorticity(np.asarray(roll(jnp.asarray(frames[0]))))
    figure, axes = plt.subplots(1, 4, figsize=(12, 3.2), layout="constrained")
    start = vorticity(frames[0])
    shown = {
        "start": start,
        f"reference, step {STEPS}": truth,
        f"splatop, step {STEPS}": found,
        "error": found - truth,
    }
    for axis, (title, field) in zip(axes, shown.items(), strict=True):
        limit = np.abs(truth if "step" in title else field).max()
        image = axis.imshow(
            field.T, origin="lower", cmap="RdBu_r", vmin=-limit, vmax=limit, extent=(0, 1, 0, 1)
        )
        axis.set(title=title, xticks=[], yticks=[])
        figure.colorbar(image, ax=axis, shrink=0.8, format="%.1e" if title == "error" else None)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(OUT, dpi=110)


if __name__ == "__main__":
    main()

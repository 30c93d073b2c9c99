"""An equation as text, its embedded physics, and a rollout: no data, no training."""

import jax.numpy as jnp
import numpy as np

import splatop


def main(points: int = 64, steps: int = 50) -> float:
    equation = splatop.parse_equation("dt(u) = -v*(dx(u) + dy(u)) + D*lap(u) + r*(u - u^3)", dims=2)
    known, box, dt = {"v": 0.02, "D": 5e-4, "r": 0.2}, (1.0, 1.0), 0.5
    x = np.arange(points) / points
    start = 0.5 * np.sin(2 * np.pi * x)[:, None] * np.cos(4 * np.pi * x)[None]
    truth, _ = splatop.solve(equation, known, start[None], lengths=box, dt=dt, steps=steps)
    truth = truth.astype(np.float32)

    tuned = splatop.choose_numerics(equation, known, truth[::5], lengths=box, dt=dt)
    print(*tuned.reasons, sep="\n")
    physics = splatop.build_physics(equation, tuned.numerics, lengths=box, dt=dt)
    found = splatop.rollout(physics, jnp.asarray(truth[0]), known, steps=steps)
    error = float(abs(found - truth[1:]).max())
    print(f"largest error over {steps} steps: {error:.1e}")
    return error


if __name__ == "__main__":
    main()

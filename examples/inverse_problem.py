"""Gradients through the physics: find the state that a later frame came from."""

import jax
import jax.numpy as jnp
import optax

import splatop


def main(points: int = 48, steps: int = 5, iterations: int = 150) -> float:
    problem = splatop.get_benchmark("advection_diffusion2d").with_points(points)
    frames = splatop.generate(problem, split="test", trajectories=1, steps=steps).window(
        0, 0, steps + 1
    )
    tuned = splatop.choose_numerics(
        problem.equation, problem.coefficients, frames, lengths=problem.lengths, dt=problem.dt
    )
    physics = splatop.build_physics(
        problem.equation, tuned.numerics, lengths=problem.lengths, dt=problem.dt
    )

    def misfit(start):
        end = splatop.rollout(physics, start, problem.coefficients, steps=steps)[-1]
        return jnp.mean((end - frames[-1]) ** 2)

    optimiser = optax.adam(0.05)
    start = jnp.asarray(frames[-1])  # a first guess
    state = optimiser.init(start)
    step = jax.jit(jax.value_and_grad(misfit))
    for _ in range(iterations):
        loss, gradient = step(start)
        changes, state = optimiser.update(gradient, state)
        start = optax.apply_updates(start, changes)
    error = float(jnp.linalg.norm(start - frames[0]) / jnp.linalg.norm(frames[0]))
    print(f"misfit {float(loss):.1e}, relative error of the state found: {error:.1e}")
    return error


if __name__ == "__main__":
    main()

"""Gradients through the physics: find the state that a later frame came from."""

import jax
import jax.numpy as jnp
import optax

import splatop


def main(points: int = 48, steps: int = 5, iterations: int = 150) -> float:
    problem = splatop.get_benchmark("advection2d").with_points(points)
    known, box, dt = problem.coefficients, problem.lengths, problem.dt
    data = splatop.generate(problem, split="test", trajectories=1, steps=steps)
    frames = data.window(0, 0, steps + 1)
    tuned = splatop.choose_numerics(problem.equation, known, frames, lengths=box, dt=dt)
    physics = splatop.build_physics(problem.equation, tuned.numerics, lengths=box, dt=dt)

    def state(guess):
        """What the physics can see of a guess: the band of its filter."""
        return physics.jets.filter(guess, box)

    def misfit(guess):
        end = splatop.rollout(physics, state(guess), known, steps=steps)[-1]
        return jnp.mean((end - frames[-1]) ** 2)

    guess, optimiser = jnp.asarray(frames[-1]), optax.adam(0.05)
    held, step = optimiser.init(guess), jax.jit(jax.value_and_grad(misfit))
    for _ in range(iterations):
        loss, gradient = step(guess)
        changes, held = optimiser.update(gradient, held)
        guess = optax.apply_updates(guess, changes)
    error = float(jnp.linalg.norm(state(guess) - frames[0]) / jnp.linalg.norm(frames[0]))
    print(f"misfit {float(loss):.1e}, relative error of the state found: {error:.1e}")
    return error


if __name__ == "__main__":
    main()

"""Patterns between walls

Two fields of PDEBench's reaction-diffusion problem in a closed box. Told are the equation without
its three numbers, and what holds at the walls; the numbers are identified. Errors are those of a
trajectory that was held out.
"""

import numpy as np

import splatop

POINTS, STEPS = 64, 60

problem = splatop.get_benchmark("reaction_diffusion2d").with_points(POINTS)
frames = splatop.generate(problem, split="test", trajectories=2, steps=STEPS)
data, truth = frames.window(0, 0, STEPS + 1), frames.window(1, 0, STEPS + 1)

surrogate = splatop.fit(
    data,
    "dt(u) = Du*lap(u) + u - u^3 - k - v; dt(v) = Dv*lap(v) + u - v",
    boundary="all: dn(u) = 0, dn(v) = 0",
    dt=problem.dt,
    lengths=(2.0, 2.0),
    sampling="cells",
    settings={"model": "physics"},
)
predicted = surrogate.rollout(truth[0], STEPS)

found = surrogate.coefficients
error = np.linalg.norm(predicted[-1] - truth[-1]) / np.linalg.norm(truth[-1])
film = {"reference": truth[1:, 0], "splatop": predicted[:, 0]}

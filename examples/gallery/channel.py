"""A channel: inflow, outflow, walls

A tracer enters on the left, is carried through by a flow that is slower at the walls, and leaves
on the right without an echo. Told are the equation and the edges; U and D are identified from one
trajectory.
"""

import numpy as np

import splatop

POINTS, STEPS = 96, 60

problem = splatop.get_benchmark("advection_channel2d").with_points(POINTS)
frames = splatop.generate(problem, split="test", trajectories=2, steps=STEPS)
data, truth = frames.window(0, 0, STEPS + 1), frames.window(1, 0, STEPS + 1)

surrogate = splatop.fit(
    data,
    "dt(u) = -4*U*y*(1 - y)*dx(u) + D*lap(u)",
    boundary="x0: u = sin(pi*y)^2; x1: dn(u) = 0; y: dn(u) = 0",
    dt=problem.dt,
    lengths=(2.0, 1.0),
    sampling="ends",
    settings={"model": "physics"},
)
predicted = surrogate.rollout(truth[0], STEPS)

found = surrogate.coefficients
error = np.linalg.norm(predicted[-1] - truth[-1]) / np.linalg.norm(truth[-1])
film = {"reference": truth[1:, 0], "splatop": predicted[:, 0]}

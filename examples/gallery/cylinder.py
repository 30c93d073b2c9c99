"""A tracer around a cylinder

A potential flow carries a tracer around a cylinder in a channel: a box with a hole, inflow left,
outflow right. The velocity is written into the equation as functions of x and y; D is identified.
"""

import numpy as np

import splatop

STEPS = 60

problem = splatop.get_benchmark("tracer_cylinder")
frames = splatop.generate(problem, split="test", trajectories=2, steps=STEPS)
data, truth = frames.window(0, 0, STEPS + 1), frames.window(1, 0, STEPS + 1)

model = splatop.fit(
    frames, problem.equation_text, coefficients={"U": 0.5}, settings={"model": "physics"}
)
predicted = model.rollout(truth[0], STEPS)

found = model.coefficients
inside = np.isfinite(truth[-1])
error = np.linalg.norm((predicted[-1] - truth[-1])[inside]) / np.linalg.norm(truth[-1][inside])
film = {"reference": truth[1:, 0], "splatop": predicted[:, 0]}

"""Three dimensions

Advection and diffusion in a box, by a model that ships: one slice of the field, after each of a
hundred steps.
"""

import numpy as np

import splatop

POINTS, STEPS = 48, 50

problem = splatop.get_benchmark("advection_diffusion3d").with_points(POINTS)
truth = splatop.generate(problem, split="test", trajectories=1, steps=STEPS).window(0, 0, STEPS + 1)
model = splatop.load("advection_diffusion3d")
predicted = model.rollout(truth[0], STEPS)

error = np.linalg.norm(predicted[-1] - truth[-1]) / np.linalg.norm(truth[-1])
middle = POINTS // 2
film = {"reference": truth[1:, 0, :, :, middle], "splatop": predicted[:, 0, :, :, middle]}

"""The whole field from a few sensors, and its forecast

Two fields of Burgers' equation are measured at 5 % of the points, with 1 % of noise, over eleven
frames. The equation tells the rest: the state everywhere, its spread, and fifty frames ahead.
"""

import numpy as np

import splatop

POINTS, SENSORS, AHEAD = 48, 115, 50

problem = splatop.get_benchmark("burgers2d").with_points(POINTS)
truth = splatop.generate(problem, split="test", trajectories=1, steps=10 + AHEAD).window(
    0, 0, 11 + AHEAD
)
rng = np.random.default_rng(0)
i, j = rng.integers(0, POINTS, (2, SENSORS))
frame, sensor, field = np.indices((11, SENSORS, 2)).reshape(3, -1)
clean = truth[frame, field, i[sensor], j[sensor]]
reports = splatop.Observations(
    times=frame * problem.dt,
    places=np.stack([i[sensor], j[sensor]], axis=1) / POINTS,
    fields=np.array(["u_x", "u_y"])[field],
    values=clean + 0.01 * truth.std() * rng.standard_normal(len(clean)),
)

state = splatop.assimilate(reports, "burgers2d", points=(POINTS, POINTS))
ahead = state.forecast(AHEAD)

error = np.linalg.norm(ahead.mean[-1] - truth[-1]) / np.linalg.norm(truth[-1])
pictures = {
    "truth, frame 60": truth[-1, 0],
    "forecast from sensors": ahead.mean[-1, 0],
    "error": ahead.mean[-1, 0] - truth[-1, 0],
    "error: standard deviation told": ahead.std[-1, 0],
}
